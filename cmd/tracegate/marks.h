/*
 * What classify keeps of a trace beside its slices: what kind each of them is,
 * and the numbers that counters and arguments give.
 */
#ifndef MARKS_H
#define MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "keys.h"
#include "map.h"
#include "model.h"
#include "rules.h"

enum {
	MARKS_MAX = 1 << 24, /* numbers: 400 MiB */
	ARG_NAMES_MAX = 4096,
};

/* A number, or an instant, that belongs to a set of names. */
struct mark {
	int64_t ts;
	double v;
	uint8_t set;
	bool holds;   /* a counter: until its next one */
	bool instant; /* no number: something happened */
};

/* Shared by all traces: kinds of events and the sets they are in. */
struct kinds {
	struct keys keys;
	uint64_t *sets; /* by key */
	bool *holds;    /* by key: a step that others lie in */
	uint32_t nsets;
	uint64_t valued; /* the sets that rules want numbers of */
	uint64_t pathed; /* and those they want on the path */
	const struct rules *rules;
	struct map arg; /* name -> sets */
	struct arena arena;
};

struct marks {
	struct kinds *kinds;
	uint32_t *key; /* by slice */
	uint32_t n, cap;
	struct mark *mark; /* in order of set and time, once marks_sort ran */
	uint32_t nmarks, marks_cap;
	uint32_t first[SETS_MAX + 1]; /* of each set */
	uint64_t dropped;             /* beyond MARKS_MAX */
	int64_t group;                /* ranks in the largest collective */
	bool any;
	int64_t last;         /* end of its last event */
	uint64_t devices;     /* slices of streams */
	uint64_t collectives; /* of them */
	uint32_t *wake;       /* slices that release, by what and when */
	uint32_t nwakes;
	uint64_t seen[SETS_MAX]; /* slices and instants of each set */
};

void kinds_init(struct kinds *k, const struct rules *rules,
    const struct sync_rule *sync, size_t nsync);
void kinds_free(struct kinds *k);
static inline uint64_t
kinds_sets(const struct kinds *k, uint32_t key)
{
	return key < k->nsets ? k->sets[key] : 0;
}

/* For model_watch, with a struct marks. */
void marks_see(void *user, const struct event *ev, int64_t slice);
void marks_sort(struct marks *s, const struct model *m);
/* Did another lane release this wait before it ended? */
bool marks_woken(
    const struct marks *s, const struct model *m, const struct slice *wait);
void marks_free(struct marks *s);

#endif
