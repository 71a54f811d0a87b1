/*
 * What all of a group do at the same time (ranks in a step, threads of a
 * pool): the n-th slice of a kind on each lane is compared with the n-th on
 * the others. Needs no history.
 */
#ifndef PEERS_H
#define PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "hist.h"

enum {
	PEERS_LANES = 256, /* more are not compared */
	PEERS_TURNS = 64,  /* turns that may be under way at a time */
	PEERS_LEAST = 3,   /* lanes that make a group */
	PEERS_WARM = 64,   /* turns before the spread is known */
};

struct peer {
	int64_t ts, dur;
	uint32_t lane;
};

struct turn {
	uint64_t nth;
	uint32_t n;
	struct peer peer[PEERS_LANES];
};

struct peers {
	struct turn *turn;
	struct turn over; /* the one that was returned last */
	uint32_t lane[PEERS_LANES];
	uint64_t next[PEERS_LANES]; /* turn of each lane */
	uint32_t nlanes;
	uint64_t first; /* turns before it are over */
	struct hist
	    spread; /* of the second longest, in permille of the median */
};

struct peers *peers_new(void);
void peers_free(struct peers *p);
/*
 * Adds a slice. The turn that is complete by it, or too old to wait for, or
 * NULL; valid until the next call.
 */
const struct turn *peers_add(struct peers *p, const struct peer *one);
/* The next one that is complete already, or NULL. */
const struct turn *peers_ready(struct peers *p);
/* What is left at the end, one turn a call. */
const struct turn *peers_rest(struct peers *p);
/*
 * How long is too long in this turn: 1.5 medians, times what the second
 * longest usually takes. 0: too few to say. Learns from it.
 */
int64_t peers_limit(struct peers *p, const struct turn *t, int64_t floor);

#endif
