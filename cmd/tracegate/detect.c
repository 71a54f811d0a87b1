/* When is a slice slow? See detect.h. */
#include "detect.h"

#include <math.h>

#include "reasons.h"

/* A healthy stream is called an anomaly once in so many. */
#define LEVEL 0.001

const char *const why_name[WHY_COUNT] = {
	[WHY_NONE] = "",
	[WHY_SLOW] = REASON_SLOW,
	[WHY_COLD] = REASON_COLD,
	[WHY_TAIL] = REASON_TAIL,
	[WHY_SLO] = REASON_SLO,
	[WHY_BASELINE] = REASON_BASELINE,
	[WHY_FAST] = REASON_FAST,
	[WHY_GAP] = REASON_GAP,
	[WHY_AUDIT] = REASON_AUDIT,
	[WHY_COST] = REASON_COST,
	[WHY_RATE] = REASON_RATE,
	[WHY_PEER] = REASON_PEER,
};

static int64_t
max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Quantiles are below 2^52: no product here can overflow. */
static int
by_quantiles(const struct detect *d, const struct key *k,
    const struct quantiles *q, int64_t ns, int64_t *t)
{
	if (q->n == 0)
		return WHY_NONE;
	if (q->n < DETECT_COLD - 1) {
		*t = max(3 * q->q50, q->q50 + d->floor);
		return ns > *t ? WHY_COLD : WHY_NONE;
	}
	*t = max(max(q->q999 * 3 / 2, 2 * q->q50), q->q50 + d->floor);
	if (ns > *t)
		return WHY_SLOW;
	if (k->cls == CLASS_PLAIN && !d->sensitive)
		return WHY_NONE;
	*t = 2 * q->q99 + d->floor;
	return ns > *t ? WHY_TAIL : WHY_NONE;
}

int
detect_slice(const struct detect *d, const struct key *k,
    const struct quantiles *q, int64_t ns, int64_t *t)
{
	*t = k->slo ? k->slo : k->cls == CLASS_STEP ? d->slo : 0;
	if (*t && ns > *t)
		return WHY_SLO;
	if (k->fixed) {
		*t = k->fixed_t;
		return ns > *t ? WHY_BASELINE : WHY_NONE;
	}
	if (k->cls == CLASS_PLAIN && !d->plain)
		return WHY_NONE;
	int why = by_quantiles(d, k, q, ns, t);
	if (why || !d->fast || q->n < DETECT_COLD || q->q50 < d->floor)
		return why;
	*t = q->q50 / 3;
	return ns < *t ? WHY_FAST : WHY_NONE;
}

int
detect_cost(const struct detect *d, const struct key *k, uint8_t bin,
    int64_t ns, int64_t *t)
{
	*t = k->slo ? k->slo : k->cls == CLASS_STEP ? d->slo : 0;
	if (*t && ns > *t)
		return WHY_SLO;
	*t = k->cost->limit[bin];
	return *t && ns > *t ? WHY_COST : WHY_NONE;
}

uint32_t
opening_percent(const struct opening *o)
{
	if (o->threshold <= 0)
		return UINT32_MAX;
	double p = 100.0 * (double)o->value / (double)o->threshold;
	return p >= (double)UINT32_MAX ? UINT32_MAX : (uint32_t)p;
}

/*
 * What the tail of its own durations makes a key open at, per slice: healthy
 * durations with a heavy tail (Pareto) have no end that a stall could be
 * beyond. A rare mode far from the rest, as a garbage collection is, has
 * hardly any tail between it and the rest, and is not excused by this.
 */
static double
tail_beyond(const struct key *k, int64_t ns)
{
	struct quantiles q;
	double a = k->hist && !k->cost ? hist_tail(k->hist) : 0;
	if (a <= 0)
		return 0;
	hist_quantiles(k->hist, &q);
	return 0.01 * pow((double)ns / (double)q.q99, -a);
}

/* By the rule that is the easiest to break. */
static double
tail_rate(const struct detect *d, const struct key *k)
{
	struct quantiles q = { 0 };
	if (k->hist)
		hist_quantiles(k->hist, &q);
	if (k->cls != CLASS_PLAIN || d->sensitive)
		return tail_beyond(k, 2 * q.q99 + d->floor);
	return tail_beyond(
	    k, max(max(q.q999 * 3 / 2, 2 * q.q50), q.q50 + d->floor));
}

static double
key_expected(const struct detect *d, const struct key *k)
{
	double ppm = k->cls == CLASS_PLAIN ? BASE_PLAIN_PPM : BASE_SYNC_PPM;
	double cold = k->slices < DETECT_COLD ? (double)k->slices : DETECT_COLD;
	ppm = fmax(ppm, tail_rate(d, k) * 1e6);
	return (cold * BASE_COLD_PPM + ((double)k->slices - cold) * ppm +
		   (double)k->compared * BASE_SYNC_PPM) /
	       1e6;
}

double
detect_expected(const struct detect *d, const struct keys *k)
{
	double e = 0;
	for (uint32_t i = 1; i < k->n; i++)
		e += key_expected(d, &k->key[i]);
	return e;
}

uint32_t
detect_far(const struct keys *k)
{
	for (uint32_t i = 1; i < k->n; i++) {
		const struct key *it = &k->key[i];
		if (it->far &&
		    (double)it->slices * tail_beyond(it, it->far) < LEVEL)
			return i;
	}
	return KEY_OVERFLOW;
}

/*
 * Sums the terms. For large means the normal approximation with z = 4, which
 * is beyond any level asked for here.
 */
uint64_t
poisson_limit(double mean, double alpha)
{
	if (mean > 500)
		return (uint64_t)(mean + 4 * sqrt(mean) + 1);
	double term = exp(-mean), sum = term;
	uint64_t k = 0;
	while (sum < 1 - alpha && k < 2000) {
		k++;
		term *= mean / (double)k;
		sum += term;
	}
	return k;
}

uint32_t
detect_many(const struct detect *d, const struct keys *k)
{
	uint32_t tested = 0;
	for (uint32_t i = 1; i < k->n; i++)
		tested += k->key[i].slices > 0;
	for (uint32_t i = 1; i < k->n; i++)
		if (k->key[i].opened >
		    poisson_limit(
			key_expected(d, &k->key[i]), LEVEL / (double)tested))
			return i;
	return KEY_OVERFLOW;
}
