/*
 * Intervals and exact tests for counts: how much k out of n says.
 *
 * Wilson: E. B. Wilson, JASA 22 (1927), the score interval. Clopper-Pearson:
 * Biometrika 26 (1934), which never covers less than it promises. McNemar:
 * exact and mid-p, Fagerland, Lydersen and Laake, BMC Med. Res. Methodol. 13:91
 * (2013).
 */
#ifndef STATS_H
#define STATS_H

#include <stddef.h>
#include <stdint.h>

struct interval {
	double low, high;
};

/* The normal quantile for 95 % two-sided. */
#define STATS_Z95 1.959963984540054

/* Score interval of k out of n; 0 to 1 when n is 0. */
struct interval stats_wilson(uint64_t k, uint64_t n, double z);
/* Exact interval, alpha/2 on each side. */
struct interval stats_clopper_pearson(uint64_t k, uint64_t n, double alpha);
/* One-sided upper end: P(at most k of n) = alpha. */
double stats_upper(uint64_t k, uint64_t n, double alpha);

/* P[X <= k] and P[X = k] for X binomial(n, p). */
double stats_binomial_cdf(uint64_t k, uint64_t n, double p);
double stats_binomial_pmf(uint64_t k, uint64_t n, double p);

/* b pairs went one way, c the other. */
struct mcnemar {
	double exact; /* two-sided */
	double mid;   /* two-sided, mid-p */
	double worse; /* one-sided, P[X >= b] */
};
struct mcnemar stats_mcnemar(uint64_t b, uint64_t c);

/*
 * The rate that n clean trials exclude, one-sided: 1 - alpha^(1/n), where
 * stats_upper(0, n, alpha) has a closed form. 1 when n is 0.
 */
double stats_clean(uint64_t n, double alpha);
/* Clean trials needed so that "less than p" can be claimed, one-sided. */
uint64_t stats_trials(double p, double alpha);

/* The middle of n values (of the two middle ones the mean); sorts them. */
double stats_median(double *v, size_t n);

/* Regularised incomplete beta function I_x(a, b), for a, b > 0. */
double stats_beta(double x, double a, double b);

#endif
