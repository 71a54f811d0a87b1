/*
 * Probes with their paths, a CSV with the columns src, dst, sent, recv and
 * path (links with blanks between; others are ignored), and what they say of
 * each link and of each end: who is to blame (tomography.h, limits from --rule
 * loss), and what is well: with enough packets (--min-n) and loss at or below
 * the healthy limit, with the loss that could have gone unseen as bound (3/n,
 * Hanley and Lippman-Hand 1983).
 *
 * With the columns time and, if it took longer, since, a row says when its
 * packets were sent.
 */
#include "ev.h"

#include "csv.h"
#include "map.h"
#include "num.h"
#include "reasons.h"
#include "tomography.h"

enum {
	ROWS_MAX = 1 << 22,
	HOPS_ALL_MAX = 1 << 26, /* hops of all rows together */
};

static const struct span always = { INT64_MIN, INT64_MAX },
			 never = { INT64_MAX, INT64_MIN };

struct reading {
	struct ev *ev;
	struct map names; /* of things, to their place */
	struct tomography all;
	size_t ct, cp, ch; /* room */
};

static bool
grow(struct ev *ev, void *array, size_t n, size_t *cap, size_t size)
{
	void **p = array;
	if (n < *cap)
		return true;
	size_t want = *cap ? 2 * *cap : 256;
	void *q = arena_array(ev->arena, want, size);
	if (!q)
		return false;
	if (n)
		memcpy(q, *p, n * size);
	*p = q;
	*cap = want;
	return true;
}

static bool
add_hop(struct reading *g, struct str name)
{
	bool fresh;
	if (!map_get(&g->names, name)) {
		name = arena_str(g->ev->arena, name);
		if (!name.p)
			return false;
	}
	uint64_t *at = map_at(&g->names, name, &fresh);
	if (!at)
		return false;
	if (fresh) {
		*at = g->all.nt;
		if (!grow(
			g->ev, &g->all.t, g->all.nt, &g->ct, sizeof *g->all.t))
			return false;
		g->all.t[g->all.nt++] =
		    (struct thing){ .name = name, .seen = never };
	}
	struct probe *p = &g->all.p[g->all.np - 1];
	for (size_t i = 0; i < p->n; i++)
		if (g->all.hop[p->first + i] == (uint32_t)*at)
			return true; /* there and back */
	if (g->all.nh == HOPS_ALL_MAX ||
	    !grow(g->ev, &g->all.hop, g->all.nh, &g->ch, sizeof *g->all.hop))
		return false;
	g->all.hop[g->all.nh++] = (uint32_t)*at;
	p->n++;
	return true;
}

static bool
add_named(struct reading *g, const char *kind, struct str name)
{
	char text[1024];
	if (memchr(name.p, ':', name.len))
		return add_hop(g, name);
	int n = snprintf(text, sizeof text, "%s:%.*s", kind, STR_ARG(name));
	return n > 0 && (size_t)n < sizeof text &&
	       add_hop(g, (struct str){ text, (size_t)n });
}

/* ---- reading --------------------------------------------------------- */

enum { SRC, DST, SENT, RECV, PATH, TIME, SINCE, COLUMNS, NEEDED = TIME };

static const char *const columns[COLUMNS] = { "src", "dst", "sent", "recv",
	"path", "time", "since" };

static int
find_columns(const struct csv_row *row, size_t at[COLUMNS], struct err *e)
{
	for (int c = 0; c < COLUMNS; c++) {
		size_t i = 0;
		while (i < row->n && !str_is(row->cell[i], columns[c]))
			i++;
		if (i == row->n && c < NEEDED)
			return err_set(
			    e, SE_EFORMAT, "no column \"%s\"", columns[c]);
		at[c] = i < row->n ? i : SIZE_MAX;
	}
	if (at[SINCE] != SIZE_MAX && at[TIME] == SIZE_MAX)
		return err_set(e, SE_EFORMAT, "since, but no column \"time\"");
	return 0;
}

/* False: not in the form of a time, or it ends before it begins. */
static bool
read_span(const struct str *cell, const size_t at[COLUMNS], struct span *s)
{
	*s = always;
	if (at[TIME] == SIZE_MAX)
		return true;
	if (num_time(cell[TIME], &s->to, NULL))
		return false;
	s->from = s->to;
	return at[SINCE] == SIZE_MAX ||
	       (!num_time(cell[SINCE], &s->from, NULL) && s->from <= s->to);
}

static int
take_row(struct reading *g, const struct csv_row *row, const size_t at[COLUMNS],
    struct err *e)
{
	struct str cell[COLUMNS], hop;
	uint64_t sent, got;
	struct span when;
	for (int c = 0; c < COLUMNS; c++) {
		if (at[c] == SIZE_MAX)
			continue;
		if (at[c] >= row->n) {
			g->ev->bad++;
			return 0;
		}
		cell[c] = ev_trim(row->cell[at[c]]);
	}
	if (num_u64(cell[SENT], 0, UINT32_MAX, &sent, NULL) ||
	    num_u64(cell[RECV], 0, UINT32_MAX, &got, NULL) || !cell[PATH].len ||
	    !read_span(cell, at, &when)) {
		g->ev->bad++;
		return 0;
	}
	if (!sent)
		return 0;
	if (g->all.np == ROWS_MAX ||
	    !grow(g->ev, &g->all.p, g->all.np, &g->cp, sizeof *g->all.p))
		return err_set(e, SE_ELIMIT, "more than %d probes", ROWS_MAX);
	g->all.p[g->all.np++] = (struct probe){ .sent = sent,
		.lost = got < sent ? sent - got : 0,
		.when = when,
		.first = g->all.nh };
	bool ok =
	    add_named(g, "host", cell[SRC]) && add_named(g, "host", cell[DST]);
	while (ok && ev_word(&cell[PATH], &hop))
		ok = add_named(g, "link", hop);
	const struct probe *p = &g->all.p[g->all.np - 1];
	for (size_t i = 0; i < p->n; i++)
		span_widen(&g->all.t[g->all.hop[p->first + i]].seen, &when);
	return ok ? 0 : err_mem(e);
}

static void
put(struct ev *ev, const struct thing *t)
{
	bool timed = t->seen.to != always.to;
	int64_t time = timed ? t->seen.to : ev->at;
	int64_t since = timed ? t->seen.from : ev->since;
	int64_t onset = timed ? t->failed.from : ev->since;
	int64_t until = timed ? t->failed.to : ev->at;
	/* 3/n: nothing lost in n; else what was lost and a margin. */
	double bound = t->sent ? ((double)t->lost + 3) / (double)t->sent : NAN;
	const char *unknown = NULL;
	if (t->state == AMBIGUOUS)
		unknown = REASON_AMBIGUOUS;
	else if (t->state == OPEN && (t->sent < ev->min_n || !t->sent))
		unknown = REASON_NODATA;
	else if (t->state == OPEN && thing_rate(t) > ev->loss_healthy)
		unknown = REASON_IN_BAND;
	if (unknown)
		ev_evidence(ev, t->name, "unknown", time, NO_TIME, NO_TIME,
		    unknown, NAN);
	else if (t->state == FAULTY)
		ev_evidence(
		    ev, t->name, "faulty", time, onset, until, NULL, NAN);
	else
		ev_evidence(
		    ev, t->name, "healthy", time, since, time, NULL, bound);
}

int
ev_probes(struct ev *ev, struct src *src, struct err *e)
{
	struct reading g = { .ev = ev,
		.all = {
		    .faulty = ev->loss_faulty, .healthy = ev->loss_healthy } };
	struct csv *csv;
	struct csv_row row;
	size_t at[COLUMNS];
	int got, r = csv_open(&csv, src, CSV_COMMAS, e);
	if (r)
		return r;
	got = csv_next(csv, &row, e);
	if (got == 0)
		r = err_set(e, SE_EFORMAT, "expected a line of column names");
	else
		r = got == 1 ? find_columns(&row, at, e) : got;
	while (!r && (got = csv_next(csv, &row, e)) == 1)
		r = take_row(&g, &row, at, e);
	if (!r && got < 0)
		r = got;
	csv_close(csv);
	struct tomography *all = &g.all;
	all->loss = arena_array(ev->arena, all->np + 1, sizeof *all->loss);
	if (!r && !all->loss)
		r = err_mem(e);
	if (!r)
		tomography_blame(all);
	for (size_t i = 0; i < all->nt && !r; i++)
		put(ev, &all->t[i]);
	map_free(&g.names);
	return r;
}
