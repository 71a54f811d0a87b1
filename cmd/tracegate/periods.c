/* Periods: see periods.h. */
#include "periods.h"

#include <stdlib.h>

#include "cli.h"
#include "measure.h"
#include "num.h"
#include "sort.h"

/* ---- steps -------------------------------------------------------------- */

static bool
is_step(const struct model *m, const struct marks *s, uint32_t slice)
{
	return s->kinds->keys.key[s->key[slice]].cls == CLASS_STEP &&
	       m->slice[slice].kind != SLICE_DEVICE;
}

/* Annotations of a device repeat those of the host. */
static bool
on_device_lane(const struct model *m, const struct marks *s, uint32_t slice)
{
	struct str cat = key_cat(&s->kinds->keys.key[s->key[slice]]);
	return str_starts(cat, "gpu_");
}

static bool
outermost(const struct model *m, const struct marks *s, uint32_t slice)
{
	int32_t up = m->slice[slice].parent;
	for (; up >= 0; up = m->slice[up].parent)
		if (is_step(m, s, (uint32_t)up))
			return false;
	return true;
}

static void
add(struct periods *p, uint32_t *cap, struct period it)
{
	if (p->n == *cap) {
		*cap = *cap ? *cap * 2 : 256;
		p->period = cli_realloc(p->period, *cap, sizeof *p->period);
	}
	p->period[p->n++] = it;
}

static void
lane_steps(struct periods *p, uint32_t *cap, const struct model *m,
    const struct marks *s, uint32_t model, uint32_t lane)
{
	int64_t before = INT64_MIN;
	for (uint32_t i = 0; i < m->run[lane].n; i++) {
		uint32_t k = m->order[m->run[lane].first + i];
		const struct slice *it = &m->slice[k];
		if (!is_step(m, s, k) || on_device_lane(m, s, k) ||
		    !outermost(m, s, k))
			continue;
		bool gap = before != INT64_MIN && before < it->ts;
		add(p, cap,
		    (struct period){ .model = model,
			.slice = k,
			.key = s->key[k],
			.from = gap ? before : it->ts,
			.ts = it->ts,
			.until = it->end });
		before = it->end > before ? it->end : before;
	}
}

/* A step that was begun and never ended lasts as long as anything does. */
static void
mark_unfinished(struct periods *p, const struct model *m, uint32_t n)
{
	int64_t last = INT64_MIN;
	for (uint32_t i = 0; i < n; i++)
		if (m[i].last + m[i].info.base_ns > last)
			last = m[i].last + m[i].info.base_ns;
	for (uint32_t i = 0; i < p->n; i++) {
		struct period *it = &p->period[i];
		const struct model *own = &m[it->model];
		const struct stack *open =
		    &own->lanes.lane[own->slice[it->slice].lane].open;
		for (uint32_t k = 0; k < open->n; k++)
			it->unfinished |= open->v[k] == it->slice;
		if (it->unfinished)
			it->until = last - own->info.base_ns;
	}
}

/* ---- what belongs together ---------------------------------------------- */

static int
by_kind(const void *a, const void *b)
{
	const struct period *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->model != y->model)
		return x->model < y->model ? -1 : 1;
	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	return x->slice < y->slice ? -1 : x->slice > y->slice;
}

static int
by_ordinal(const void *a, const void *b)
{
	const struct period *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->ordinal != y->ordinal)
		return x->ordinal < y->ordinal ? -1 : 1;
	return x->model < y->model ? -1 : x->model > y->model;
}

/* The last run of digits of a name. */
static bool
number_in(struct str name, uint64_t *v)
{
	size_t end = name.len;
	while (end && (name.p[end - 1] < '0' || name.p[end - 1] > '9'))
		end--;
	size_t from = end;
	while (from && name.p[from - 1] >= '0' && name.p[from - 1] <= '9')
		from--;
	return !num_u64(
	    (struct str){ name.p + from, end - from }, 0, UINT64_MAX, v, NULL);
}

/*
 * Ranks run the same steps: the number in the name tells which is which, if it
 * rises on every rank; otherwise the place does.
 */
static void
number_kind(struct period *v, uint32_t n, const struct model *m)
{
	bool rises = true;
	for (uint32_t i = 0; i < n; i++) {
		const struct slice *s = &m[v[i].model].slice[v[i].slice];
		bool same = i && v[i - 1].model == v[i].model;
		v[i].nth = same ? v[i - 1].nth + 1 : 0;
		rises = rises &&
			number_in(m[v[i].model].name[s->name], &v[i].ordinal) &&
			(!same || v[i].ordinal > v[i - 1].ordinal);
	}
	for (uint32_t i = 0; i < n && !rises; i++)
		v[i].ordinal = v[i].nth;
}

/* ---- which are slow ----------------------------------------------------- */

static int
by_int(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static int64_t
median_dur(const struct period *v, uint32_t n, uint32_t *finished)
{
	int64_t *d = cli_alloc(n, sizeof *d);
	*finished = 0;
	for (uint32_t i = 0; i < n; i++)
		if (!v[i].unfinished)
			d[(*finished)++] = period_dur(&v[i]);
	sort_array(d, *finished, sizeof *d, by_int);
	int64_t median = *finished ? d[*finished / 2] : 0;
	free(d);
	return median;
}

/* The periods of one kind and one trace. */
static bool
judge_run(struct period *v, uint32_t n, const struct key *key,
    const struct slow_rule *rule)
{
	uint32_t finished;
	int64_t usual = median_dur(v, n, &finished);
	bool cold = finished < PERIODS_MIN;
	if (key->fixed && key->fixed_median) {
		usual = key->fixed_median;
		cold = false;
	}
	for (uint32_t i = 0; i < n; i++) {
		int64_t dur = period_dur(&v[i]), step = v[i].until - v[i].ts;
		v[i].usual = cold ? 0 : usual;
		v[i].slow = !cold && dur > usual + rule->floor &&
			    (double)dur > rule->factor * (double)usual;
		v[i].slow |= rule->slo && step > rule->slo;
		v[i].slow |= key->fixed && step > key->fixed_t;
	}
	return !cold || rule->slo;
}

static void
judge_all(struct periods *p, const struct model *m, const struct kinds *kinds,
    const struct slow_rule *rule)
{
	for (uint32_t i = 0, j; i < p->n; i = j) {
		bool warm = false;
		for (j = i; j < p->n && p->period[j].key == p->period[i].key;)
			j++;
		for (uint32_t a = i, b; a < j; a = b) {
			for (b = a;
			     b < j && p->period[b].model == p->period[a].model;)
				b++;
			warm |= judge_run(&p->period[a], b - a,
			    &kinds->keys.key[p->period[i].key], rule);
		}
		number_kind(&p->period[i], j - i, m);
		p->kinds++;
		p->cold += !warm;
	}
}

/* ---- across ranks ------------------------------------------------------- */

static double
how_slow(const struct period *p)
{
	return (double)period_dur(p) / (p->usual ? (double)p->usual : 1.0);
}

static int
by_begin(const void *a, const void *b)
{
	const struct slow *x = a, *y = b;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static void
find_slow(struct periods *p, const struct model *m)
{
	p->slow = cli_alloc(p->n, sizeof *p->slow);
	for (uint32_t i = 0, j; i < p->n; i = j) {
		const struct period *v = p->period;
		bool slow = false;
		uint32_t worst = i;
		for (j = i; j < p->n && v[j].key == v[i].key &&
			    v[j].ordinal == v[i].ordinal;
		     j++) {
			slow |= v[j].slow;
			if (how_slow(&v[j]) > how_slow(&v[worst]))
				worst = j;
		}
		if (slow)
			p->slow[p->nslow++] = (struct slow){ i, j - i, worst,
				v[worst].from +
				    m[v[worst].model].info.base_ns };
	}
	sort_array(p->slow, p->nslow, sizeof *p->slow, by_begin);
}

void
periods_make(struct periods *p, const struct model *m, const struct marks *s,
    uint32_t n, const struct slow_rule *rule)
{
	uint32_t cap = 0;
	*p = (struct periods){ 0 };
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t l = 0; l < m[i].lanes.n; l++)
			lane_steps(p, &cap, &m[i], &s[i], i, l);
	mark_unfinished(p, m, n);
	sort_array(p->period, p->n, sizeof *p->period, by_kind);
	if (n)
		judge_all(p, m, s->kinds, rule);
	sort_array(p->period, p->n, sizeof *p->period, by_ordinal);
	find_slow(p, m);
}

void
periods_free(struct periods *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		measure_free(p->period[i].measure);
	free(p->period);
	free(p->slow);
}
