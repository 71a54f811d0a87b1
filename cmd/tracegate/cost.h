/*
 * Durations that depend on a cost (tokens, a batch size): what is usual for
 * each cost, and a line through it. A step of ten times the tokens may take
 * ten times as long; one that does not fit its tokens may not.
 */
#ifndef COST_H
#define COST_H

#include <stdbool.h>
#include <stdint.h>

#include "hist.h"

enum {
	COST_BINS = 250,  /* 4 an octave; 0 stands for "no cost" */
	COST_MIN = 16,    /* samples of a bin before it counts */
	COST_ALONE = 128, /* and when there are less than three */
	COST_EVERY = 256, /* stream: samples between two fits */
	COST_KEYS = 64,   /* kinds with a cost, each up to 1.5 MiB */
};

struct cost {
	struct hist *bin[COST_BINS];
	int64_t limit[COST_BINS]; /* ns; 0: no line reaches there */
	uint64_t n;
	bool fitted;
};

/* Where a cost falls; negative ones have none. */
uint8_t cost_bin(int64_t cost);
/* `half` as in hist_add(). */
void cost_add(struct cost *c, uint8_t bin, int64_t ns, uint32_t half);
/*
 * Theil-Sen through the 99 % quantiles of the bins: the median of the slopes
 * of all pairs, which a third of the bins may spoil. A limit is 1.5 times the
 * line, and `floor` above it.
 */
void cost_fit(struct cost *c, int64_t floor);
void cost_free(struct cost *c);

#endif
