/*
 * How often a kind of event comes: its number in each stretch of time against
 * the stretches before, both ways.
 */
#ifndef PACE_H
#define PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "hist.h"

enum {
	PACE_WARM = 16, /* stretches before anything is judged */
};

struct pace {
	int64_t period; /* ns */
	int64_t at;     /* number of the stretch that is counted */
	uint64_t n;     /* events in it */
	bool begun;
	struct hist past;
};

/* A stretch that is too full or too empty. */
struct odd_pace {
	int64_t from;         /* ns */
	uint64_t n, expected; /* events: found, and the limit passed */
};

/*
 * An event at `ts`, in order of time. True: *odd is a stretch before it; ask
 * again with the same ts until false.
 */
bool pace_before(struct pace *p, int64_t ts, struct odd_pace *odd);
void pace_count(struct pace *p, int64_t ts);

#endif
