/* How often a kind of event comes: see pace.h. */
#include "pace.h"

#include <math.h>

/* Five standard deviations of a Poisson count, and half as many again. */
static bool
is_odd(const struct pace *p, uint64_t *limit)
{
	struct quantiles q;
	hist_quantiles(&p->past, &q);
	if (q.n < PACE_WARM)
		return false;
	double usual = (double)q.q50, spread = 5 * sqrt(usual) + 5;
	double most = fmax(1.5 * (double)q.q999, usual + spread);
	double least = fmin(usual / 2, usual - spread);
	*limit = (uint64_t)((double)p->n > most ? most : fmax(least, 0));
	return (double)p->n > most || (double)p->n < least;
}

static int64_t
stretch_of(const struct pace *p, int64_t ts)
{
	return ts / p->period - (ts % p->period < 0);
}

bool
pace_before(struct pace *p, int64_t ts, struct odd_pace *odd)
{
	int64_t at = stretch_of(p, ts);
	if (!p->begun) {
		/* The first stretch is not whole. */
		p->begun = true;
		p->at = at + 1;
		return false;
	}
	if (at <= p->at)
		return false;
	bool found = is_odd(p, &odd->expected);
	odd->from = p->at * p->period;
	odd->n = p->n;
	hist_add(&p->past, (int64_t)p->n, HIST_HALF);
	/* Many empty ones say no more than one. */
	if (!p->n && at > p->at + 1)
		p->at = at - 1;
	p->at++;
	p->n = 0;
	return found || pace_before(p, ts, odd);
}

void
pace_count(struct pace *p, int64_t ts)
{
	p->n += stretch_of(p, ts) == p->at;
}
