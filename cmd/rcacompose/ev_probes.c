/*
 * Probes with their paths, a CSV with the columns src, dst, sent, recv and
 * path (links with blanks between; others are ignored), and what they say of
 * each link and of each end.
 *
 * Which of the things on the lossy paths is to blame is found greedily: the
 * one on which most of the lost packets passed, if at least --rule loss
 * (default faulty>0.005) of what passed it was lost. Where another thing shares
 * nine tenths of those losses the probes cannot tell them apart: both are
 * unknown(ambiguous), unless the other one's further paths are clean where
 * they should have lost at least twenty packets. Then the paths through it are
 * set aside, and the rest is looked at again. What is left with enough packets
 * (--min-n) and loss at or below the healthy limit (0.001) is healthy, with the
 * loss that could have gone unseen as bound (3/n, Hanley and Lippman-Hand
 * 1983).
 *
 * Nobody is blamed for what others explain who lose packets on other paths: two
 * bad links behind a good one make it look worse than either.
 *
 * With the columns time and, if it took longer, since, a row says when its
 * packets were sent. A path clears nobody but at the times of the losses: one
 * that was looked at before a flap says nothing of it.
 */
#include "ev.h"

#include "csv.h"
#include "map.h"
#include "num.h"
#include "reasons.h"
#include "sort.h"

enum {
	ROWS_MAX = 1 << 22,
	HOPS_ALL_MAX = 1 << 26, /* hops of all rows together */
	LOST_MIN = 3,           /* packets: fewer are chance */
	EXPECTED_MIN = 20,      /* losses that should have been there */
};

/* Share of the losses on one thing that make another ambiguous with it. */
static const double ALIKE = 0.9;

/* So many times what others explain must be lost before one is blamed. */
static const double EXPLAINED = 2;

/* When packets were sent, both ends included. */
struct span {
	int64_t from, to;
};

static const struct span always = { INT64_MIN, INT64_MAX },
			 never = { INT64_MAX, INT64_MIN };

struct probe {
	uint64_t sent, lost;
	struct span when;
	size_t first, n; /* its hops */
	bool aside;      /* explained */
};

struct thing {
	struct str name;
	uint64_t sent, lost; /* over the rows that are left */
	uint64_t shared;     /* losses in common with the one looked at */
	/* On paths that avoid the one looked at. */
	uint64_t apart_sent, apart_lost;
	struct span seen;   /* when packets passed it, over all rows */
	struct span failed; /* when some were lost that are left */
	enum { OPEN, FAULTY, AMBIGUOUS } state;
};

struct tomography {
	struct ev *ev;
	struct map names;
	struct thing *t;
	struct probe *p;
	uint32_t *hop;
	struct span *loss; /* times of losses on one thing, apart, in order */
	size_t nt, np, nh, nl, ct, cp, ch;
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
add_hop(struct tomography *g, struct str name)
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
		*at = g->nt;
		if (!grow(g->ev, &g->t, g->nt, &g->ct, sizeof *g->t))
			return false;
		g->t[g->nt++] = (struct thing){ .name = name, .seen = never };
	}
	struct probe *p = &g->p[g->np - 1];
	for (size_t i = 0; i < p->n; i++)
		if (g->hop[p->first + i] == (uint32_t)*at)
			return true; /* there and back */
	if (g->nh == HOPS_ALL_MAX ||
	    !grow(g->ev, &g->hop, g->nh, &g->ch, sizeof *g->hop))
		return false;
	g->hop[g->nh++] = (uint32_t)*at;
	p->n++;
	return true;
}

static bool
add_named(struct tomography *g, const char *kind, struct str name)
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

static void
widen(struct span *s, const struct span *by)
{
	if (by->from < s->from)
		s->from = by->from;
	if (by->to > s->to)
		s->to = by->to;
}

static int
take_row(struct tomography *g, const struct csv_row *row,
    const size_t at[COLUMNS], struct err *e)
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
	if (g->np == ROWS_MAX ||
	    !grow(g->ev, &g->p, g->np, &g->cp, sizeof *g->p))
		return err_set(e, SE_ELIMIT, "more than %d probes", ROWS_MAX);
	g->p[g->np++] = (struct probe){ .sent = sent,
		.lost = got < sent ? sent - got : 0,
		.when = when,
		.first = g->nh };
	bool ok =
	    add_named(g, "host", cell[SRC]) && add_named(g, "host", cell[DST]);
	while (ok && ev_word(&cell[PATH], &hop))
		ok = add_named(g, "link", hop);
	const struct probe *p = &g->p[g->np - 1];
	for (size_t i = 0; i < p->n; i++)
		widen(&g->t[g->hop[p->first + i]].seen, &when);
	return ok ? 0 : err_mem(e);
}

/* ---- blaming --------------------------------------------------------- */

static void
count(struct tomography *g)
{
	for (size_t i = 0; i < g->nt; i++)
		g->t[i].sent = g->t[i].lost = 0;
	for (size_t k = 0; k < g->np; k++) {
		const struct probe *p = &g->p[k];
		for (size_t i = 0; i < p->n && !p->aside; i++) {
			g->t[g->hop[p->first + i]].sent += p->sent;
			g->t[g->hop[p->first + i]].lost += p->lost;
		}
	}
}

static bool
crosses(const struct tomography *g, const struct probe *p, size_t t)
{
	for (size_t i = 0; i < p->n; i++)
		if (g->hop[p->first + i] == t)
			return true;
	return false;
}

static double
rate(const struct thing *t)
{
	return t->sent ? (double)t->lost / (double)t->sent : 0;
}

/* The thing with most losses that is over the limit, or nt. */
static size_t
worst(const struct tomography *g)
{
	size_t best = g->nt;
	for (size_t i = 0; i < g->nt; i++) {
		const struct thing *t = &g->t[i];
		if (t->state != OPEN || t->lost < LOST_MIN ||
		    rate(t) <= g->ev->loss_faulty)
			continue;
		if (best == g->nt || t->lost > g->t[best].lost ||
		    (t->lost == g->t[best].lost && rate(t) > rate(&g->t[best])))
			best = i;
	}
	return best;
}

/* Losses that each other thing has in common with t. */
static void
share(struct tomography *g, size_t t)
{
	for (size_t i = 0; i < g->nt; i++)
		g->t[i].shared = 0;
	for (size_t k = 0; k < g->np; k++) {
		const struct probe *p = &g->p[k];
		if (p->aside || !p->lost || !crosses(g, p, t))
			continue;
		for (size_t i = 0; i < p->n; i++)
			g->t[g->hop[p->first + i]].shared += p->lost;
	}
}

static int
by_begin(const void *x, const void *y)
{
	const struct span *a = x, *b = y;
	return (a->from > b->from) - (a->from < b->from);
}

/* When was something lost on t? Times that meet are one. */
static void
find_losses(struct tomography *g, size_t t)
{
	size_t n = 0;
	for (size_t k = 0; k < g->np; k++)
		if (!g->p[k].aside && g->p[k].lost && crosses(g, &g->p[k], t))
			g->loss[n++] = g->p[k].when;
	sort_array(g->loss, n, sizeof *g->loss, by_begin);
	g->nl = 0;
	for (size_t i = 0; i < n; i++)
		if (g->nl && g->loss[i].from <= g->loss[g->nl - 1].to)
			widen(&g->loss[g->nl - 1], &g->loss[i]);
		else
			g->loss[g->nl++] = g->loss[i];
}

static bool
is_at_losses(const struct tomography *g, const struct span *s)
{
	size_t low = 0, high = g->nl; /* the first that ends after s begins */
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (g->loss[mid].to < s->from)
			low = mid + 1;
		else
			high = mid;
	}
	return low < g->nl && g->loss[low].from <= s->to;
}

/*
 * Losses that x, were it to blame, should show on paths that avoid t, and does
 * not: enough of them missing at the times of the losses, and x is out of it.
 */
static bool
is_clear(const struct tomography *g, size_t x, size_t t)
{
	uint64_t sent = 0, lost = 0;
	for (size_t k = 0; k < g->np; k++) {
		const struct probe *p = &g->p[k];
		if (p->aside || crosses(g, p, t) || !crosses(g, p, x) ||
		    !is_at_losses(g, &p->when))
			continue;
		sent += p->sent;
		lost += p->lost;
	}
	return (double)sent * rate(&g->t[t]) >= EXPECTED_MIN &&
	       (double)lost <= g->ev->loss_healthy * (double)sent;
}

/* The worst rate that somebody else on this path has where t is not. */
static double
worst_apart(const struct tomography *g, const struct probe *p, size_t t)
{
	double worst = 0;
	for (size_t i = 0; i < p->n; i++) {
		const struct thing *x = &g->t[g->hop[p->first + i]];
		if (x == &g->t[t] || x->apart_lost < LOST_MIN)
			continue;
		double r = (double)x->apart_lost / (double)x->apart_sent;
		if (r > worst)
			worst = r;
	}
	return worst;
}

/*
 * Two bad links behind a good one make it look worse than either. So on t there
 * must be twice the losses that those would explain who lose packets without
 * it.
 */
static bool
stands(struct tomography *g, size_t t)
{
	double expected = 0;
	for (size_t i = 0; i < g->nt; i++)
		g->t[i].apart_sent = g->t[i].apart_lost = 0;
	for (size_t k = 0; k < g->np; k++) {
		const struct probe *p = &g->p[k];
		if (p->aside || crosses(g, p, t))
			continue;
		for (size_t i = 0; i < p->n; i++) {
			g->t[g->hop[p->first + i]].apart_sent += p->sent;
			g->t[g->hop[p->first + i]].apart_lost += p->lost;
		}
	}
	for (size_t k = 0; k < g->np; k++) {
		const struct probe *p = &g->p[k];
		if (!p->aside && crosses(g, p, t))
			expected += (double)p->sent * worst_apart(g, p, t);
	}
	return (double)g->t[t].lost > EXPLAINED * expected;
}

static void
blame(struct tomography *g, size_t t)
{
	bool alone = stands(g, t);
	share(g, t);
	find_losses(g, t);
	g->t[t].failed =
	    (struct span){ g->loss[0].from, g->loss[g->nl - 1].to };
	for (size_t i = 0; i < g->nt; i++) {
		struct thing *x = &g->t[i];
		if (i == t ||
		    (double)x->shared < ALIKE * (double)g->t[t].lost ||
		    is_clear(g, i, t))
			continue;
		alone = false;
		if (x->state == OPEN)
			x->state = AMBIGUOUS;
	}
	g->t[t].state = alone ? FAULTY : AMBIGUOUS;
	for (size_t k = 0; k < g->np; k++)
		if (!g->p[k].aside && crosses(g, &g->p[k], t))
			g->p[k].aside = true;
}

static void
put(struct tomography *g, const struct thing *t)
{
	struct ev *ev = g->ev;
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
	else if (t->state == OPEN && rate(t) > ev->loss_healthy)
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
	struct tomography g = { .ev = ev };
	struct csv *csv;
	struct csv_row row;
	size_t at[COLUMNS], t;
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
	g.loss = arena_array(ev->arena, g.np + 1, sizeof *g.loss);
	if (!r && !g.loss)
		r = err_mem(e);
	count(&g);
	while (!r && (t = worst(&g)) < g.nt) {
		blame(&g, t);
		count(&g);
	}
	for (size_t i = 0; i < g.nt && !r; i++)
		put(&g, &g.t[i]);
	map_free(&g.names);
	return r;
}
