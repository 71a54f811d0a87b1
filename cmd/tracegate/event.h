/*
 * One trace event, as every reader gives it. Text is JSON text: the bytes
 * between the quotes, escapes left as they are, so that nothing is lost on
 * the way to the output. Times are integer nanoseconds.
 */
#ifndef EVENT_H
#define EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "str.h"

/* What is odd about an event. */
enum {
	EVENT_HAS_TS = 1,
	EVENT_HAS_DUR = 2,
	EVENT_CONTROL = 4, /* raw control bytes in a string: not JSON */
	EVENT_CUT_NS = 8,  /* digits beyond the nanosecond were cut */
};

struct event {
	int64_t ts, dur; /* ns; dur is 0 when there is none */
	char ph;         /* phase of the Chrome trace event format */
	unsigned char flags;
	struct str name, cat;
	struct str pid, tid; /* number or string content; empty: absent */
	struct str id;       /* of async events and flows */
	struct str args;     /* the object with its braces, or empty */
	struct str raw;      /* the whole object, valid until the next one */
	uint64_t off;        /* of raw: in the input, or in its spool */
};

/* The end of its slice; an instant ends where it begins. */
static inline int64_t
event_end(const struct event *ev)
{
	return ev->ts + ev->dur;
}

#endif
