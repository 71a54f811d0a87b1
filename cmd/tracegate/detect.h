/*
 * When is a slice slow? One threshold a key, made of the quantiles of its own
 * past; see tracegate(1), DETECTOR.
 */
#ifndef DETECT_H
#define DETECT_H

#include <stdbool.h>
#include <stdint.h>

#include "keys.h"

enum {
	DETECT_COLD = 64,  /* samples below which the threshold is a guess */
	DETECT_EVERY = 64, /* live: samples between recomputations */
	DETECT_HUGE = 10,  /* times the threshold: an anomaly on its own */
	/* Stated base rates: openings per million tested on healthy data. */
	BASE_SYNC_PPM = 600, /* sync points and steps */
	BASE_PLAIN_PPM = 400,
	BASE_COLD_PPM = 5000, /* among the first DETECT_COLD of a key */
};

enum why {
	WHY_NONE = 0,
	WHY_SLOW = 1,     /* beyond 1.5 x Q0.999 and 2 x Q0.5 */
	WHY_COLD = 2,     /* beyond 3 x Q0.5 of a few samples */
	WHY_TAIL = 3,     /* sync point or step beyond 2 x Q0.99 */
	WHY_SLO = 4,      /* beyond --slo */
	WHY_BASELINE = 5, /* beyond the frozen baseline */
	WHY_FAST = 6,     /* far below its own past */
	WHY_GAP = 7,      /* a beat is missing */
	WHY_AUDIT = 8,    /* not slow: a random sample of normal steps */
	WHY_COST = 9,     /* beyond what its tokens or the like explain */
	WHY_RATE = 10,    /* --steady: too many, or too few */
	WHY_PEER = 11,    /* --peers: beyond what the others took */
	WHY_COUNT
};

extern const char *const why_name[WHY_COUNT];

struct detect {
	int64_t floor;  /* ns beyond the median that a stall must have */
	int64_t slo;    /* of every step; 0: none */
	bool sensitive; /* 2 x Q0.99 for all keys */
	bool fast;      /* low side too */
	bool plain;     /* test plain keys, not only sync points and steps */
};

struct opening {
	int64_t ts, dur; /* the slice, or the gap */
	int64_t value, threshold;
	uint32_t key, lane;
	uint8_t why;
};

/* value / threshold in hundredths, at most UINT32_MAX. */
uint32_t opening_percent(const struct opening *o);

/* The same for one that carries a cost, of `bin`. */
int detect_cost(const struct detect *d, const struct key *k, uint8_t bin,
    int64_t ns, int64_t *threshold);
/* WHY_NONE, or why a slice of `ns` opens; *threshold is what it passed. */
int detect_slice(const struct detect *d, const struct key *k,
    const struct quantiles *q, int64_t ns, int64_t *threshold);

/*
 * The expected number of openings among what was tested: the stated base rate,
 * or what the tail of the durations says if that is more.
 */
double detect_expected(const struct detect *d, const struct keys *k);
/*
 * The first key with an opening beyond DETECT_HUGE thresholds, and too far for
 * the tail of its durations; KEY_OVERFLOW if none.
 */
uint32_t detect_far(const struct keys *k);
/* The smallest count that a Poisson variable exceeds with less than `alpha`. */
uint64_t poisson_limit(double mean, double alpha);
/*
 * The first key that opened more often than its base rate explains, at a
 * level of 1 in 1000 over all keys; KEY_OVERFLOW if none.
 */
uint32_t detect_many(const struct detect *d, const struct keys *k);

#endif
