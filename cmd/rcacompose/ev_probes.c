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
 */
#include "ev.h"

#include "csv.h"
#include "map.h"
#include "num.h"
#include "reasons.h"

enum {
	ROWS_MAX = 1 << 22,
	HOPS_ALL_MAX = 1 << 26, /* hops of all rows together */
	LOST_MIN = 3,           /* packets: fewer are chance */
	EXPECTED_MIN = 20,      /* losses that should have been there */
};

/* Share of the losses on one thing that make another ambiguous with it. */
static const double ALIKE = 0.9;

struct probe {
	uint64_t sent, lost;
	size_t first, n; /* its hops */
	bool aside;      /* explained */
};

struct thing {
	struct str name;
	uint64_t sent, lost; /* over the rows that are left */
	uint64_t shared;     /* losses in common with the one looked at */
	uint64_t all_sent;   /* over all rows */
	enum { OPEN, FAULTY, AMBIGUOUS } state;
	size_t with; /* AMBIGUOUS: the other */
};

struct tomography {
	struct ev *ev;
	struct map names;
	struct thing *t;
	struct probe *p;
	uint32_t *hop;
	size_t nt, np, nh, ct, cp, ch;
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
		g->t[g->nt++] = (struct thing){ .name = name };
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

enum { SRC, DST, SENT, RECV, PATH, COLUMNS };

static const char *const columns[COLUMNS] = { "src", "dst", "sent", "recv",
	"path" };

static int
find_columns(const struct csv_row *row, size_t at[COLUMNS], struct err *e)
{
	for (int c = 0; c < COLUMNS; c++) {
		size_t i = 0;
		while (i < row->n && !str_is(row->cell[i], columns[c]))
			i++;
		if (i == row->n)
			return err_set(
			    e, SE_EFORMAT, "no column \"%s\"", columns[c]);
		at[c] = i;
	}
	return 0;
}

static int
take_row(struct tomography *g, const struct csv_row *row,
    const size_t at[COLUMNS], struct err *e)
{
	struct str cell[COLUMNS], hop;
	uint64_t sent, got;
	for (int c = 0; c < COLUMNS; c++) {
		if (at[c] >= row->n) {
			g->ev->bad++;
			return 0;
		}
		cell[c] = ev_trim(row->cell[at[c]]);
	}
	if (num_u64(cell[SENT], 0, UINT32_MAX, &sent, NULL) ||
	    num_u64(cell[RECV], 0, UINT32_MAX, &got, NULL) || !cell[PATH].len) {
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
		.first = g->nh };
	bool ok =
	    add_named(g, "host", cell[SRC]) && add_named(g, "host", cell[DST]);
	while (ok && ev_word(&cell[PATH], &hop))
		ok = add_named(g, "link", hop);
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

/*
 * Losses that x, were it to blame, should show on paths that avoid t, and does
 * not: enough of them missing, and x is out of it.
 */
static bool
is_clear(const struct tomography *g, size_t x, size_t t)
{
	uint64_t sent = 0, lost = 0;
	for (size_t k = 0; k < g->np; k++) {
		const struct probe *p = &g->p[k];
		if (p->aside || crosses(g, p, t) || !crosses(g, p, x))
			continue;
		sent += p->sent;
		lost += p->lost;
	}
	return (double)sent * rate(&g->t[t]) >= EXPECTED_MIN &&
	       (double)lost <= g->ev->loss_healthy * (double)sent;
}

static void
blame(struct tomography *g, size_t t)
{
	bool alone = true;
	share(g, t);
	for (size_t i = 0; i < g->nt; i++) {
		struct thing *x = &g->t[i];
		if (i == t ||
		    (double)x->shared < ALIKE * (double)g->t[t].lost ||
		    is_clear(g, i, t))
			continue;
		alone = false;
		g->t[t].with = i;
		if (x->state == OPEN) {
			x->state = AMBIGUOUS;
			x->with = t;
		}
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
	int64_t since = ev->since;
	/* 3/n: nothing lost in n; else what was lost and a margin. */
	double bound = t->sent ? ((double)t->lost + 3) / (double)t->sent : NAN;
	if (t->state == FAULTY)
		ev_evidence(
		    ev, t->name, "faulty", ev->at, since, ev->at, NULL, NAN);
	else if (t->state == AMBIGUOUS)
		ev_evidence(ev, t->name, "unknown", ev->at, NO_TIME, NO_TIME,
		    REASON_AMBIGUOUS, NAN);
	else if (t->sent < ev->min_n || !t->sent)
		ev_evidence(ev, t->name, "unknown", ev->at, NO_TIME, NO_TIME,
		    REASON_NODATA, NAN);
	else if (rate(t) <= ev->loss_healthy)
		ev_evidence(
		    ev, t->name, "healthy", ev->at, since, ev->at, NULL, bound);
	else
		ev_evidence(ev, t->name, "unknown", ev->at, NO_TIME, NO_TIME,
		    REASON_IN_BAND, NAN);
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
