/*
 * Paired differences without assumptions about their distribution: under the
 * hypothesis of no difference each pair could as well have come the other way
 * round, so the observed mean is compared with those of all sign patterns.
 *
 * Sign-flip (Fisher's randomisation) test: E. S. Edgington and P. Onghena,
 * Randomization Tests, 4th ed. (2007), chapter 6. Holm's correction: Scand. J.
 * Statist. 6 (1979). Equivalence by two one-sided tests: D. J. Schuirmann, J.
 * Pharmacokin. Biopharm. 15 (1987).
 */
#ifndef SIGNFLIP_H
#define SIGNFLIP_H

#include <stddef.h>

enum {
	SIGNFLIP_EXACT = 18,      /* pairs up to which all patterns are tried */
	SIGNFLIP_DRAWS = 1 << 17, /* patterns drawn beyond, always the same */
};

/* P(|mean| at least as large as seen), 1 for n = 0. NaN counts as 0. */
double signflip_two_sided(const double *d, size_t n);
/* P(mean at most as large as seen): small if the mean is below zero. */
double signflip_below(const double *d, size_t n);

/*
 * Is the mean within -margin .. margin? The larger of the two one-sided p
 * values against "it is outside"; n at most SIGNFLIP_PAIRS.
 */
enum { SIGNFLIP_PAIRS = 1000 };
double signflip_within(const double *d, size_t n, double margin);

/* Holm's correction of a family, in place; the order is kept. */
void signflip_holm(double *p, size_t n);

/*
 * Pairs that would show a mean of `effect` at two-sided `alpha` 0.01 with
 * power 0.8, for differences with standard deviation `sd` (normal
 * approximation); at least 8, below which no pattern is rare enough.
 */
double signflip_need(double sd, double effect);

double signflip_mean(const double *d, size_t n);
double signflip_sd(const double *d, size_t n);

#endif
