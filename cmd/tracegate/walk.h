/*
 * The last-finisher walk: from the end of an interval back along the lane that
 * ended last, jumping at a wait to the lane that released it. A jump needs a
 * relation between the two; without one the walk stops, and the rest of the
 * interval is unknown.
 */
#ifndef WALK_H
#define WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "model.h"

enum walk_stop {
	WALK_DONE = 0,    /* reached the start of the interval */
	WALK_NO_SYNC,     /* a wait for the device, and no sync records */
	WALK_NO_RELEASER, /* a wait that nothing in the trace ends */
	WALK_TIE,         /* two that could have */
	WALK_BAD_REF,     /* the record names an event that is not there */
	WALK_ORPHAN,      /* device work whose launch is missing */
	WALK_COUNT
};

extern const char *const walk_reason[WALK_COUNT];

/* A stretch of the path on one slice (-1: between slices). */
struct step {
	int64_t from, until;
	int32_t slice;
	int32_t around; /* the innermost there, an annotation too; or -1 */
	bool jump;      /* reached by a jump from what follows */
};

struct walk {
	struct step *step; /* last one first */
	uint32_t n, cap;
	int64_t from, until; /* of the interval */
	int64_t covered;     /* ns inside slices */
	int stop;
	int64_t stop_at;
	int32_t stop_slice;
};

/* Walks [from, until]. */
void
walk_run(struct walk *w, const struct model *m, int64_t from, int64_t until);
void walk_free(struct walk *w);

#endif
