/*
 * A whole trace in memory, for questions about how its slices depend on each
 * other: lanes in order of time, launches and device work by correlation,
 * waits and what releases them.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "lanes.h"
#include "map.h"
#include "reader.h"

enum {
	MODEL_MAX = 1 << 26, /* slices: 6 GiB; a larger trace is cut first */
};

/* What a slice is, as far as waiting goes. */
enum slice_kind {
	SLICE_CPU,    /* runs on a thread */
	SLICE_NOTE,   /* an annotation around others: no work of its own */
	SLICE_CALL,   /* a call into the device's runtime */
	SLICE_DEVICE, /* runs on a stream */
	SLICE_SYNC,   /* a record of what a call waited for (cuda_sync) */
	SLICE_WAIT,   /* a thread waits for another (futex, recv) */
	SLICE_WAKE,   /* and is released */
};

/* What a call does to its thread. */
enum slice_blocks {
	BLOCKS_NOT,
	BLOCKS_STREAM, /* until a stream, or an event on it, is through */
	BLOCKS_DEVICE, /* until all of the device's streams are */
};

struct slice {
	int64_t ts, end;
	uint32_t name, lane; /* name: index of model.name */
	uint32_t nth;        /* place in the file */
	int32_t parent;      /* the slice around it on its lane, or -1 */
	int64_t corr;        /* correlation, or 0 */
	int64_t stream;      /* DEVICE; SYNC: what was waited for; or -1 */
	int64_t waiter;      /* SYNC: the stream that waited, or -1 */
	int64_t record_corr; /* SYNC of an event: its cudaEventRecord */
	uint64_t relation;   /* WAIT, WAKE: same object, same number */
	uint8_t kind, blocks;
	bool op;         /* CPU: an operator, not a frame or the like */
	bool annotation; /* NOTE: of a program, on a thread */
};

/* A run of slices of one lane, in order of time. */
struct run_of {
	uint32_t first, n; /* in model.order */
};

struct model {
	const char *path;
	struct trace_info info;
	int64_t rank;
	struct slice *slice;
	uint32_t n, cap;
	struct str *name; /* JSON text */
	uint32_t nnames, names_cap;
	struct lanes lanes;
	uint32_t *order;    /* by lane, then ts, then longer first */
	struct run_of *run; /* by lane */
	uint32_t *by_corr;  /* device work in order of corr */
	uint32_t nby_corr;
	uint32_t *call_of; /* calls in order of corr */
	uint32_t ncalls;
	bool sync_records; /* there is a cuda_sync */
	uint64_t orphans;  /* device work without a launch */
	uint64_t nest;     /* slices that outlive the one around them */
	int64_t first, last;
	struct map names;
	struct arena arena;
};

/* Is told of every event while a trace is read; slice: its number, or -1. */
struct model_watch {
	void (*see)(void *user, const struct event *ev, int64_t slice);
	void *user;
};

/* Reads all of it. 0, or an error. */
int model_load(struct model *m, const char *path, const char *type,
    const struct fields *fields, struct err *e);
int model_load_watched(struct model *m, const char *path, const char *type,
    const struct fields *fields, const struct model_watch *watch,
    struct err *e);
void model_free(struct model *m);

static inline const struct slice *
lane_slice(const struct model *m, uint32_t lane, uint32_t i)
{
	return &m->slice[m->order[m->run[lane].first + i]];
}

/* The slice numbers with this correlation: *first..*n of by_corr. */
void
model_device(const struct model *m, int64_t corr, uint32_t *first, uint32_t *n);
/* The call with it, or -1. */
int32_t model_call(const struct model *m, int64_t corr);

#endif
