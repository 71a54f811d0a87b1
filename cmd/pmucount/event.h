/* Counters by name, and what the kernel says when they are opened. */
#ifndef EVENT_H
#define EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "rt/shared.h"
#include "str.h"

struct event {
	const char *name;
	uint32_t source; /* enum pmu_source wanted */
	uint32_t type;
	uint64_t config;
	bool exact; /* the same program gives the same count */
	const char *unit;
};

struct event_set {
	struct event event[PMU_COUNTERS];
	unsigned n;
};

/* All names we know, ended by a NULL name. */
extern const struct event event_table[];

/* A name of the table, or rHEX for a raw code. SE_EINVAL lists the names. */
int event_find(struct event *out, struct str name, struct err *e);
/* "a,b,c" added to the set. */
int event_add(struct event_set *set, const char *list, struct err *e);

/* The name as it is in record keys: raw codes and dashes stay. */
bool event_is_hardware(const struct event *ev);

/*
 * Opens one for the calling thread, disabled: 0, or the errno. With `keep`
 * the descriptor is handed out, else it is closed.
 */
int event_try(const struct event *ev, int *keep);
/* One sentence for an errno of perf_event_open. */
const char *event_why(const struct event *ev, int error);

#endif
