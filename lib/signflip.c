/* Paired differences: see signflip.h. */
#include "signflip.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* A sum that differs by rounding only counts as equal. */
static double
slack(const double *d, size_t n)
{
	double all = 0;
	for (size_t i = 0; i < n; i++)
		all += isnan(d[i]) ? 0 : fabs(d[i]);
	return all * 1e-12;
}

static double
sum_of(const double *d, size_t n)
{
	double s = 0;
	for (size_t i = 0; i < n; i++)
		s += isnan(d[i]) ? 0 : d[i];
	return s;
}

/* SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). */
static uint64_t
draw(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

struct tally {
	double seen, slack;
	uint64_t far, low, all;
};

static void
count(struct tally *t, double sum)
{
	t->all++;
	t->far += fabs(sum) >= fabs(t->seen) - t->slack;
	t->low += sum <= t->seen + t->slack;
}

/* All 2^n patterns in the order of the Gray code: one flip a step. */
static void
every_pattern(struct tally *t, const double *d, size_t n)
{
	double sum = sum_of(d, n);
	uint64_t signs = 0;
	count(t, sum);
	for (uint64_t i = 1; i < UINT64_C(1) << n; i++) {
		unsigned k = (unsigned)__builtin_ctzll(i);
		double x = isnan(d[k]) ? 0 : d[k];
		sum += signs >> k & 1 ? 2 * x : -2 * x;
		signs ^= UINT64_C(1) << k;
		count(t, sum);
	}
}

static void
some_patterns(struct tally *t, const double *d, size_t n)
{
	uint64_t state = n, bits = 0;
	count(t, t->seen); /* the observed one is one of them */
	for (int i = 1; i < SIGNFLIP_DRAWS; i++) {
		double sum = 0;
		for (size_t k = 0; k < n; k++) {
			if (k % 64 == 0)
				bits = draw(&state);
			double x = isnan(d[k]) ? 0 : d[k];
			sum += bits >> k % 64 & 1 ? x : -x;
		}
		count(t, sum);
	}
}

static struct tally
patterns(const double *d, size_t n)
{
	struct tally t = { .seen = sum_of(d, n), .slack = slack(d, n) };
	if (n <= SIGNFLIP_EXACT)
		every_pattern(&t, d, n);
	else
		some_patterns(&t, d, n);
	return t;
}

double
signflip_two_sided(const double *d, size_t n)
{
	struct tally t = patterns(d, n);
	return (double)t.far / (double)t.all;
}

double
signflip_below(const double *d, size_t n)
{
	struct tally t = patterns(d, n);
	return (double)t.low / (double)t.all;
}

double
signflip_within(const double *d, size_t n, double margin)
{
	double shifted[SIGNFLIP_PAIRS];
	if (n > SIGNFLIP_PAIRS || !n)
		return 1;
	for (size_t i = 0; i < n; i++)
		shifted[i] = d[i] - margin;
	double upper = signflip_below(shifted, n);
	for (size_t i = 0; i < n; i++)
		shifted[i] = -d[i] - margin;
	double lower = signflip_below(shifted, n);
	return upper > lower ? upper : lower;
}

void
signflip_holm(double *p, size_t n)
{
	double done = 0;
	/* The smallest left times the number left, never below the last. */
	for (size_t left = n; left > 0; left--) {
		size_t least = n;
		for (size_t i = 0; i < n; i++)
			if (p[i] >= 0 && (least == n || p[i] < p[least]))
				least = i;
		if (least == n)
			break;
		double q = p[least] * (double)left;
		done = q > done ? q : done;
		p[least] = -1 - (done < 1 ? done : 1); /* marked as done */
	}
	for (size_t i = 0; i < n; i++)
		p[i] = -1 - p[i];
}

double
signflip_need(double sd, double effect)
{
	const double z = 2.575829 + 0.841621; /* 0.995 and 0.8 quantiles */
	if (!(effect > 0) || !(sd > 0))
		return 8;
	double n = ceil(z * sd / effect * (z * sd / effect));
	return n < 8 ? 8 : n;
}

double
signflip_mean(const double *d, size_t n)
{
	return n ? sum_of(d, n) / (double)n : 0;
}

double
signflip_sd(const double *d, size_t n)
{
	double m = signflip_mean(d, n), s = 0;
	for (size_t i = 0; i < n; i++)
		s += (d[i] - m) * (d[i] - m);
	return n > 1 ? sqrt(s / (double)(n - 1)) : 0;
}
