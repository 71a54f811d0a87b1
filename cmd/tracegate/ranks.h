/*
 * Collectives across ranks: a barrier, so that all members end together, and
 * the one that started last is who the others waited for.
 */
#ifndef RANKS_H
#define RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "model.h"

enum {
	RANKS_MAX = 4096,
	OCC_MIN = 3, /* collectives before a clock offset means anything */
};

/* What is known of one rank's clock against the median rank. */
struct rank_clock {
	int64_t offset, uncertainty; /* ns */
	uint32_t n;                  /* collectives it was in */
};

/* One collective, met by several ranks. */
struct meeting {
	struct str group, name;
	uint32_t occ;      /* of the group, from 0 */
	uint32_t first, n; /* in members */
	uint32_t latest;   /* index of the straggler's model */
	int64_t late;      /* after the earliest, clocks corrected */
	int64_t margin;    /* after the second latest */
	bool certain;      /* the margin is beyond the uncertainty */
};

struct member {
	uint32_t model, meeting, slice;
};

struct ranks {
	struct rank_clock *clock; /* by model */
	struct meeting *meeting;
	uint32_t nmeetings;
	struct member *member;
	uint32_t nmembers;
	int64_t spread; /* largest distance of ends, clocks corrected */
};

/* Needs at least two models. */
void ranks_make(struct ranks *r, const struct model *m, uint32_t n);
void ranks_free(struct ranks *r);

#endif
