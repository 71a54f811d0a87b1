/* Collectives across ranks: see ranks.h. */
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "glob.h"
#include "sort.h"

static bool
is_collective(const struct model *m, const struct slice *s)
{
	struct str name = m->name[s->name];
	return s->kind == SLICE_DEVICE &&
	       (str_starts(name, "nccl") || str_starts(name, "rccl"));
}

/* ---- meeting --------------------------------------------------------- */

/* A collective of one rank before it is matched. */
struct found {
	uint32_t model, slice;
	struct str name;
	int64_t ts;
	uint32_t occ;
};

static int
by_time(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	if (x->model != y->model)
		return x->model < y->model ? -1 : 1;
	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	return x->slice < y->slice ? -1 : x->slice > y->slice;
}

/*
 * The n-th collective of a rank meets the n-th of the others: ranks of one
 * group run the same collectives in the same order. The name must agree.
 */
static int
by_meeting(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	if (x->occ != y->occ)
		return x->occ < y->occ ? -1 : 1;
	return x->model < y->model ? -1 : x->model > y->model;
}

static struct found *
collect(const struct model *m, uint32_t n, uint32_t *count)
{
	struct found *f = NULL;
	uint32_t k = 0, cap = 0;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t s = 0; s < m[i].n; s++) {
			if (!is_collective(&m[i], &m[i].slice[s]))
				continue;
			if (k == cap) {
				cap = cap ? cap * 2 : 256;
				f = cli_realloc(f, cap, sizeof *f);
			}
			f[k++] =
			    (struct found){ i, s, m[i].name[m[i].slice[s].name],
				    m[i].slice[s].ts, 0 };
		}
	if (k)
		sort_array(f, k, sizeof *f, by_time);
	for (uint32_t i = 1; i < k; i++)
		f[i].occ = f[i].model == f[i - 1].model ? f[i - 1].occ + 1 : 0;
	if (k)
		sort_array(f, k, sizeof *f, by_meeting);
	*count = k;
	return f;
}

static void
meet(struct ranks *r, const struct found *f, uint32_t n)
{
	r->meeting = cli_alloc(n, sizeof *r->meeting);
	r->member = cli_alloc(n, sizeof *r->member);
	for (uint32_t i = 0; i < n;) {
		uint32_t j = i;
		bool same = true;
		for (; j < n && f[j].occ == f[i].occ; j++)
			same = same && str_same(f[j].name, f[i].name);
		/* Other names: the ranks did not do the same. */
		if (j - i > 1 && same) {
			r->meeting[r->nmeetings] =
			    (struct meeting){ .name = f[i].name,
				    .occ = f[i].occ,
				    .first = r->nmembers,
				    .n = j - i };
			for (; i < j; i++)
				r->member[r->nmembers++] =
				    (struct member){ f[i].model, r->nmeetings,
					    f[i].slice };
			r->nmeetings++;
		}
		i = j;
	}
}

/* ---- clocks ---------------------------------------------------------- */

static int
by_int(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static int64_t
median(int64_t *v, uint32_t n)
{
	sort_array(v, n, sizeof *v, by_int);
	return v[n / 2];
}

static int64_t
stamp(const struct model *m, const struct member *b, bool end)
{
	const struct slice *s = &m[b->model].slice[b->slice];
	return (end ? s->end : s->ts) + m[b->model].info.base_ns;
}

/* Where a member's end lies against the median end of its meeting. */
static void
clocks(struct ranks *r, const struct model *m, uint32_t n)
{
	int64_t *ends = cli_alloc(r->nmembers, sizeof *ends);
	int64_t *off = cli_alloc(r->nmembers, sizeof *off);
	int64_t *own = cli_alloc(r->nmembers, sizeof *own);
	for (uint32_t i = 0; i < r->nmeetings; i++) {
		const struct meeting *g = &r->meeting[i];
		for (uint32_t k = 0; k < g->n; k++)
			ends[k] = stamp(m, &r->member[g->first + k], true);
		int64_t mid = median(ends, g->n);
		for (uint32_t k = 0; k < g->n; k++)
			off[g->first + k] =
			    stamp(m, &r->member[g->first + k], true) - mid;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t c = 0;
		for (uint32_t k = 0; k < r->nmembers; k++)
			if (r->member[k].model == i)
				own[c++] = off[k];
		if (!c)
			continue;
		r->clock[i].offset = median(own, c);
		r->clock[i].n = c;
		r->clock[i].uncertainty = (own[c - 1] - own[0] + 1) / 2;
	}
	free(ends);
	free(off);
	free(own);
}

/* ---- stragglers --------------------------------------------------------- */

static void
judge(struct ranks *r, struct meeting *g, const struct model *m)
{
	int64_t first = INT64_MAX, last = INT64_MIN, second = INT64_MIN;
	int64_t early = INT64_MAX, final = INT64_MIN;
	uint32_t who = 0, next = 0;
	bool known = true;
	for (uint32_t k = 0; k < g->n; k++) {
		const struct member *b = &r->member[g->first + k];
		const struct rank_clock *c = &r->clock[b->model];
		int64_t t = stamp(m, b, false) - c->offset;
		int64_t end = stamp(m, b, true) - c->offset;
		known = known && c->n >= OCC_MIN;
		first = t < first ? t : first;
		early = end < early ? end : early;
		final = end > final ? end : final;
		if (t > last) {
			second = last;
			next = who;
			last = t;
			who = b->model;
		} else if (t > second) {
			second = t;
			next = b->model;
		}
	}
	g->latest = who;
	g->late = last - first;
	g->margin = last - second;
	g->certain = known && g->margin > r->clock[who].uncertainty +
					      r->clock[next].uncertainty;
	if (final - early > r->spread)
		r->spread = final - early;
}

void
ranks_make(struct ranks *r, const struct model *m, uint32_t n)
{
	uint32_t count;
	*r = (struct ranks){ 0 };
	r->clock = cli_alloc(n, sizeof *r->clock);
	struct found *f = collect(m, n, &count);
	meet(r, f, count);
	free(f);
	clocks(r, m, n);
	for (uint32_t i = 0; i < r->nmeetings; i++)
		judge(r, &r->meeting[i], m);
}

void
ranks_free(struct ranks *r)
{
	free(r->clock);
	free(r->meeting);
	free(r->member);
}
