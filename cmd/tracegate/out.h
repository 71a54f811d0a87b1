/*
 * The trace that comes out: valid whatever happens. Events go out as they came
 * in; what is not JSON is written again from what was understood of it.
 */
#ifndef OUT_H
#define OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"
#include "reader.h"
#include "rec.h"

enum out_form {
	OUT_JSON, /* as the input: object or array */
	OUT_EV,   /* ev lines */
};

struct out {
	int fd; /* -1: nothing is wanted */
	int form;
	bool gzip, object, begun, closed;
	bool holds; /* writes only when it is flushed or closed */
	struct buf b;
	struct rec_out *ev;
	uint64_t events, bytes;
	uint64_t repaired; /* events that had to be written again */
	int64_t base_ns;
	struct err failure; /* the first */
};

/* Writes to `fd`, which stays the caller's. */
void out_open(struct out *o, int fd, int form, bool gzip);
/* Before the first event: what stood around the events. */
void out_head(struct out *o, const struct trace_info *info);
void out_event(struct out *o, struct str raw);
/* A mark of ours: a global instant of category tracegate. `args` is JSON. */
void out_mark(struct out *o, int64_t ts, const char *name, const char *args);
void out_flush(struct out *o);
/* Ends the trace. 0, or the first failure. */
int out_close(struct out *o, const struct trace_info *info, struct err *e);

#endif
