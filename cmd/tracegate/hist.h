/*
 * Durations as integer log histograms: 16 sub-buckets an octave, so a quantile
 * is at most 1/16 above the truth. Deterministic, no floats, no sorting.
 */
#ifndef HIST_H
#define HIST_H

#include <stdint.h>

enum {
	HIST_SUB = 16,
	HIST_BUCKETS = 768, /* up to 2^51 ns: 26 days */
	HIST_HALF = 8192,   /* samples until the older half is dropped */
	HIST_TAIL = 256,    /* samples below which a tail is a guess */
};

/* Two halves: the current samples, and the 8192 before them. */
struct hist {
	uint32_t cur[HIST_BUCKETS], prev[HIST_BUCKETS];
	uint32_t ncur, nprev;
};

/* The quantiles a threshold is made of, in ns. */
struct quantiles {
	uint64_t n;
	int64_t q50, q99, q999;
};

static inline uint32_t
hist_bucket(int64_t ns)
{
	uint64_t v = ns > 0 ? (uint64_t)ns : 0;
	if (v < HIST_SUB)
		return (uint32_t)v;
	int e = 63 - __builtin_clzll(v);
	uint32_t b =
	    (uint32_t)(e - 3) * HIST_SUB + (uint32_t)(v >> (e - 4) & 15);
	return b < HIST_BUCKETS ? b : HIST_BUCKETS - 1;
}

/* The largest value of a bucket. */
int64_t hist_top(uint32_t bucket);

/* `half`: samples until the older half is forgotten; 0: never. */
void hist_add(struct hist *h, int64_t ns, uint32_t half);
void hist_quantiles(const struct hist *h, struct quantiles *q);

/*
 * How fast the tail falls: a in P(d > x) ~ x^-a, from the quantiles 90 % to
 * 99 % and 97 % to 99 %, whichever falls faster. 0: too few samples.
 */
double hist_tail(const struct hist *h);

/*
 * The same for all samples but one that fell into `bucket`: what a sample of a
 * finished file is compared with.
 */
struct hist_rest {
	uint64_t n;
	uint32_t at[3], next[3]; /* buckets of the ranks, and one rank on */
};
void hist_rest_make(const struct hist *h, struct hist_rest *r);
void hist_rest_without(
    const struct hist_rest *r, uint32_t bucket, struct quantiles *q);

#endif
