/*
 * The answers of a diff: exact counters by their bounds, others by sign-flip
 * tests over the family. See family.h.
 */
#define _GNU_SOURCE
#include "family.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "stats.h"

enum { NEED_ONE_RUN = 10 }; /* pairs, where nothing is known of the noise */

bool
family_known(const double *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (isnan(v[i]))
			return false;
	return true;
}

static double
widest(const double *v, size_t n)
{
	double lo = v[0], hi = v[0];
	for (size_t i = 1; i < n; i++) {
		lo = v[i] < lo ? v[i] : lo;
		hi = v[i] > hi ? v[i] : hi;
	}
	return hi - lo;
}

double
family_median(const double *v, size_t n)
{
	double *s = cli_alloc(n, sizeof *s);
	memcpy(s, v, n * sizeof *s);
	double m = stats_median(s, n);
	free(s);
	return m;
}

/* Median absolute deviation of the logarithms: what layout and noise do to one
 * and the same program. */
static double
layout_of(const double *v, size_t n)
{
	double *s = cli_alloc(n, sizeof *s);
	for (size_t i = 0; i < n; i++)
		s[i] = log(v[i]);
	double m = stats_median(s, n);
	for (size_t i = 0; i < n; i++)
		s[i] = fabs(s[i] - m);
	m = stats_median(s, n);
	free(s);
	return m;
}

static void
answer(struct item *k, const char *result, const char *reason)
{
	k->result = result;
	k->reason = reason;
}

/* A deterministic count: equal in all runs of a side, up to its bound. */
static bool
by_bound(struct item *k, size_t n)
{
	double bound[2];
	for (int side = 0; side < 2; side++) {
		bound[side] = k->err[side];
		if (widest(k->v[side], n) > 2 * bound[side] + 1e-9)
			return false;
	}
	double a = family_median(k->v[0], n), b = family_median(k->v[1], n);
	bool apart = fabs(a - b) > bound[0] + bound[1] + 1e-9;
	answer(k, apart ? "changed" : "same", REASON_EXACT);
	k->p = apart ? 0 : 1;
	return true;
}

/* Log ratios of the pairs; false where they cannot be formed. */
static bool
ratios(const struct item *k, size_t n, double *d)
{
	for (size_t i = 0; i < n; i++) {
		if (!(k->v[0][i] > 0) || !(k->v[1][i] > 0))
			return false;
		d[i] = log(k->v[1][i] / k->v[0][i]);
	}
	return true;
}

static bool
is_absent(const struct item *k, int side, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isnan(k->n[side][i]))
			return false;
	return true;
}

/* First pass: all that does not need the family. */
static void
examine(struct item *k, size_t n, double margin, const bool *torn)
{
	k->p = 2; /* not tested */
	if (!family_known(k->v[0], n) || !family_known(k->v[1], n)) {
		bool gone[2] = { is_absent(k, 0, n), is_absent(k, 1, n) };
		/* Where lines are missing it may have been in one of them. */
		if (gone[0] != gone[1] && !torn[gone[1]])
			answer(k, "changed", REASON_ABSENT);
		else
			answer(k, "unknown", REASON_NO_VALUE);
		return;
	}
	double a = family_median(k->v[0], n), b = family_median(k->v[1], n);
	k->change = a != 0 ? b / a - 1 : NAN;
	if (k->exact && by_bound(k, n))
		return;
	if (k->dominated) {
		answer(k, "unknown", REASON_DOMINATED);
		return;
	}
	double d[ROUNDS_MAX];
	if (!ratios(k, n, d)) {
		answer(k, "unknown", REASON_NOT_POSITIVE);
		return;
	}
	double sd = signflip_sd(d, n), mean = fabs(signflip_mean(d, n));
	k->need = signflip_need(sd, mean > margin ? mean : margin);
	if (n < 2) {
		answer(k, "unknown", REASON_ONE_RUN);
		k->need = NEED_ONE_RUN;
		return;
	}
	double la = layout_of(k->v[0], n), lb = layout_of(k->v[1], n);
	k->layout = la > lb ? la : lb;
	k->change = expm1(signflip_mean(d, n));
	k->p = signflip_two_sided(d, n);
	k->p_same = signflip_within(d, n, margin);
}

/* Do the calls of this function compare? */
static bool
calls_differ(const struct family *f, const struct item *k)
{
	const struct item *c = &f->item[k->calls_of];
	return c != k && (!c->result || strcmp(c->result, "same"));
}

static void
decide(struct item *k)
{
	bool far = fabs(log1p(k->change)) > k->layout;
	if (k->p < FAMILY_ALPHA && far)
		answer(k, "changed", NULL);
	else if (k->p_same < FAMILY_ALPHA_SAME)
		answer(k, "same", NULL);
	else
		answer(k, "unknown",
		    k->p < FAMILY_ALPHA ? REASON_LAYOUT : REASON_NOISE);
}

/* Holm's correction over all questions that a test has to answer. */
void
family_judge(struct family *f, double margin)
{
	size_t n = 0;
	double *p = cli_alloc(f->n, sizeof *p);
	for (size_t i = 0; i < f->n; i++) {
		examine(&f->item[i], f->runs, margin, f->torn);
		if (!f->item[i].result)
			p[n++] = f->item[i].p;
	}
	signflip_holm(p, n);
	n = 0;
	for (size_t i = 0; i < f->n; i++) {
		struct item *k = &f->item[i];
		if (k->result)
			continue;
		k->p = p[n++];
		decide(k);
	}
	for (size_t i = 0; i < f->n; i++) {
		struct item *k = &f->item[i];
		if (calls_differ(f, k) &&
		    (!k->reason || strcmp(k->reason, REASON_ABSENT)))
			answer(k, "unknown", REASON_CALLS_DIFFER);
	}
	free(p);
}
