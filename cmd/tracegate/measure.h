/*
 * What lies within one period of one trace, added up: time by set of names, on
 * the critical path and in all; how busy the device was; where nothing ran.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "marks.h"
#include "model.h"
#include "periods.h"
#include "walk.h"

/* Time of one device slice, for comparing kernels of one name. */
struct kernel {
	uint32_t name;
	int64_t dur;
};

struct measure {
	int64_t dur;
	/* by set: */
	int64_t on_path[SETS_MAX]; /* inside slices of it */
	int64_t time[SETS_MAX];    /* on any lane, overlaps once */
	int64_t sum[SETS_MAX];     /* of whole slices that begin here */
	uint32_t slices[SETS_MAX], count[SETS_MAX]; /* with instants */
	double value[SETS_MAX];                     /* the largest */
	uint64_t has_value;                         /* a bit a set */
	/* of all: */
	int64_t covered;  /* path inside slices that are no mere frame */
	int64_t busy;     /* some stream runs */
	int64_t gap_busy; /* before the step begins */
	int64_t gap;      /* before the step begins */
	int64_t hole;     /* in the step, nothing on its lane: the longest */
	int64_t idle;     /* nothing on any lane: the longest */
	int64_t lock;     /* waits on its lane that another lane ended */
	uint32_t kernels, starved; /* device slices, without a queue */
	struct kernel *kernel;     /* by name, no collectives */
	uint32_t nkernel;
	int stop; /* of the walk */
};

struct measure *measure_make(
    const struct model *m, const struct marks *s, const struct period *p);
void measure_free(struct measure *x);

/* Is it a collective of ranks, by its name? */
bool measure_collective(struct str name);

#endif
