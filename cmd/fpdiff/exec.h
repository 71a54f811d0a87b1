/*
 * Two runs in the order of execution, while they are compared. lockstep.c
 * reads them; exec.c says what becomes of each pair and concludes.
 */
#ifndef EXEC_H
#define EXEC_H

#include "lane.h"
#include "map.h"

struct exec {
	struct report *report;
	struct side *side[2];
	struct align *align;
	struct lane **lane; /* by number, in order of appearance */
	size_t nlanes, cap;
	struct map ranks; /* rank -> number + 1 */
	size_t last_lane; /* where the last record belonged */
	bool ended[2];
	struct entry *alone[2]; /* the first without a partner, by side */
	uint64_t tail[2];       /* of those, since the last pair */
	bool stop; /* --first: enough was seen, what is held is only freed */
	bool no_sequence; /* some records have none: only the end is proof */
	struct judged judged;
	struct seen *seen; /* --follow, or NULL */
	bool flipped, flip_step_given;
	uint64_t flip_step; /* lowest step of an unstable flip */
	struct rec rec;
	struct buf undone;
};

/* ---- exec.c -------------------------------------------------------------- */

/* The number of the lane that records of this rank belong to. */
size_t exec_lane(struct exec *x, struct str rank);
/* Two records that are partners. */
void exec_pair(struct exec *x, struct lane *l, const struct entry *a,
    const struct entry *b);

/* ---- lockstep.c ---------------------------------------------------------- */

/* Reads on, on the side that is behind; what is aligned comes as events. */
void lockstep_read(struct exec *x);

#endif
