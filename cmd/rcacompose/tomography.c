/* Who is to blame for lost packets: see tomography.h. */
#include "tomography.h"

#include "sort.h"

enum {
	LOST_MIN = 3,      /* packets: fewer are chance */
	EXPECTED_MIN = 20, /* losses that should have been there */
};

/* Share of the losses on one thing that make another ambiguous with it. */
static const double ALIKE = 0.9;

/* So many times what others explain must be lost before one is blamed. */
static const double EXPLAINED = 2;

void
span_widen(struct span *s, const struct span *by)
{
	if (by->from < s->from)
		s->from = by->from;
	if (by->to > s->to)
		s->to = by->to;
}

static double
ratio(uint64_t part, uint64_t all)
{
	return all ? (double)part / (double)all : 0;
}

double
thing_rate(const struct thing *t)
{
	return ratio(t->lost, t->sent);
}

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

/* The thing with most losses that is over the limit, or nt. */
static size_t
worst(const struct tomography *g)
{
	size_t best = g->nt;
	for (size_t i = 0; i < g->nt; i++) {
		const struct thing *t = &g->t[i];
		if (t->state != OPEN || t->lost < LOST_MIN ||
		    thing_rate(t) <= g->faulty)
			continue;
		if (best == g->nt || t->lost > g->t[best].lost ||
		    (t->lost == g->t[best].lost &&
			thing_rate(t) > thing_rate(&g->t[best])))
			best = i;
	}
	return best;
}

/* What each other thing has in common with t. */
static void
share(struct tomography *g, size_t t)
{
	for (size_t i = 0; i < g->nt; i++)
		g->t[i].common = g->t[i].shared = 0;
	for (size_t k = 0; k < g->np; k++) {
		const struct probe *p = &g->p[k];
		if (p->aside || !crosses(g, p, t))
			continue;
		for (size_t i = 0; i < p->n; i++) {
			g->t[g->hop[p->first + i]].common += p->sent;
			g->t[g->hop[p->first + i]].shared += p->lost;
		}
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
			span_widen(&g->loss[g->nl - 1], &g->loss[i]);
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
	return (double)sent * thing_rate(&g->t[t]) >= EXPECTED_MIN &&
	       (double)lost <= g->healthy * (double)sent;
}

/*
 * The rate of x where t is not. If too little is left of that, with the paths
 * that were set aside: who cannot be cleared is not.
 */
static double
apart_rate(const struct thing *x, const struct thing *t)
{
	uint64_t sent = x->apart_sent, lost = x->apart_lost;
	if ((double)sent * thing_rate(t) < LOST_MIN) {
		sent += x->aside_sent;
		lost += x->aside_lost;
	}
	return lost < LOST_MIN ? 0 : ratio(lost, sent);
}

/* The worst rate that somebody else on this path has where t is not. */
static double
worst_apart(const struct tomography *g, const struct probe *p, size_t t)
{
	double worst = 0;
	for (size_t i = 0; i < p->n; i++) {
		size_t x = g->hop[p->first + i];
		double r = x == t ? 0 : apart_rate(&g->t[x], &g->t[t]);
		if (r > worst)
			worst = r;
	}
	return worst;
}

/* What passed each thing where t is not. */
static void
count_apart(struct tomography *g, size_t t)
{
	for (size_t i = 0; i < g->nt; i++) {
		g->t[i].apart_sent = g->t[i].apart_lost = 0;
		g->t[i].aside_sent = g->t[i].aside_lost = 0;
	}
	for (size_t k = 0; k < g->np; k++) {
		const struct probe *p = &g->p[k];
		if (crosses(g, p, t))
			continue;
		for (size_t i = 0; i < p->n; i++) {
			struct thing *x = &g->t[g->hop[p->first + i]];
			*(p->aside ? &x->aside_sent : &x->apart_sent) +=
			    p->sent;
			*(p->aside ? &x->aside_lost : &x->apart_lost) +=
			    p->lost;
		}
	}
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
	count_apart(g, t);
	for (size_t k = 0; k < g->np; k++) {
		const struct probe *p = &g->p[k];
		if (!p->aside && crosses(g, p, t))
			expected += (double)p->sent * worst_apart(g, p, t);
	}
	return (double)g->t[t].lost > EXPLAINED * expected;
}

/*
 * Most of t's losses are on paths with x, and without x it loses less than half
 * of that: so x may be to blame, unless it does well enough without t.
 */
static bool
rather(const struct thing *x, const struct thing *t)
{
	double with = ratio(x->shared, x->common);
	double without = ratio(t->lost - x->shared, t->sent - x->common);
	bool excused = (double)x->apart_sent * with >= EXPECTED_MIN &&
		       ratio(x->apart_lost, x->apart_sent) < with / 2;
	return 2 * x->shared >= t->lost && without < with / 2 && !excused;
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
		bool alike =
		    (double)x->shared >= ALIKE * (double)g->t[t].lost &&
		    !is_clear(g, i, t);
		if (i == t || (!alike && !rather(x, &g->t[t])))
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

void
tomography_blame(struct tomography *g)
{
	size_t t;
	count(g);
	while ((t = worst(g)) < g->nt) {
		blame(g, t);
		count(g);
	}
}
