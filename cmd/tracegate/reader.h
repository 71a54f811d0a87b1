/*
 * Readers of traces: one file a format behind one table. A reader gives
 * events in the order of its input and keeps an account of everything that
 * was wrong with it.
 */
#ifndef READER_H
#define READER_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"
#include "event.h"
#include "feed.h"
#include "scan.h"
#include "str.h"

/* How the input is built, which decides how the output is. */
enum trace_form {
	FORM_OBJECT, /* {"traceEvents": [...], ...} */
	FORM_ARRAY,  /* [...] */
	FORM_LINES,  /* one JSON event a line */
	FORM_TEXT,   /* not JSON events: rendered by its reader */
};

/* What the input says about itself, and what was wrong with it. */
struct trace_info {
	int form;
	struct buf head, tail; /* members of the object around the events */
	int64_t base_ns;       /* baseTimeNanoseconds */
	int64_t rank;          /* of distributedInfo, or -1 */
	bool kineto;           /* written by libkineto */
	bool window_end;       /* its last event was seen */
	uint64_t bad;          /* events or lines that could not be used */
	uint64_t control;      /* raw control bytes in strings: not JSON */
	uint64_t lost;         /* records that the producer says it dropped */
	uint64_t cut_ns;       /* stamps with digits below a nanosecond */
	uint64_t open;         /* slices begun that never ended */
	bool truncated;        /* the end is missing */
	const char *torn;      /* why, for people */
	struct err first_bad;  /* the first of the bad ones */
};

enum {
	READ_END = 0,
	READ_EVENT = 1,
	READ_IDLE = 2,
};

struct reader;

struct format {
	const char *name;
	const char *help;
	/* How sure these first bytes are ours: 0 to 100. */
	int (*probe)(const char *p, size_t len);
	int (*open)(struct reader *r, struct err *e); /* may be NULL */
	/* READ_*, or an error that ends the input. Bad events are counted. */
	int (*next)(struct reader *r, struct event *ev, struct err *e);
	void (*close)(struct reader *r); /* may be NULL */
};

/* Column names for CSV, TSV and JSON Lines. */
struct fields {
	const char *ts, *dur, *name, *cost, *thread, *proc;
	int64_t unit; /* of ts and dur, in ns */
};

struct reader {
	const struct format *format;
	const char *name; /* of the input, for messages */
	int fd;           /* of the input: the source owns it */
	struct feed feed;
	struct trace_info info;
	struct buf raw; /* the event as JSON, where the reader renders it */
	size_t args_at; /* of its args */
	bool in_args;
	void *state; /* of the format */
	const struct fields *fields;
};

/* Ended by NULL. */
extern const struct format *const reader_formats[];

/*
 * Opens PATH ("-": standard input). `type` forces a format, NULL looks at the
 * content. The reader keeps `name` and `fields` by reference.
 */
int reader_open(struct reader *r, const char *path, const char *type,
    const struct fields *fields, const char *tmpdir, struct err *e);
/* The same over bytes that outlive the reader. */
int reader_open_mem(struct reader *r, const void *p, size_t len,
    const char *type, const struct fields *fields, struct err *e);
/* Live input: wakes up now and then. Not for gzip, which buffers. */
void reader_watch(struct reader *r);
int reader_next(struct reader *r, struct event *ev, struct err *e);
void reader_close(struct reader *r);
/* Does it begin like {"traceEvents": ...}, which nobody writes piecemeal? */
bool reader_is_object(const struct reader *r);

/* Is raw a piece of the input, or was it made by the reader? */
static inline bool
reader_renders(const struct reader *r)
{
	return r->info.form == FORM_TEXT;
}

/* Counts a bad event or line and keeps the first message. */
void reader_bad(struct reader *r, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- for readers that render -------------------------------------------- */

/*
 * Starts the JSON of an event in r->raw with its name and times; then args
 * may follow; render_end gives the event its slices.
 */
void render_begin(struct reader *r, struct event *ev, char ph, struct str name,
    struct str cat);
void
render_lane(struct reader *r, struct event *ev, struct str pid, struct str tid);
/* Text is escaped. Numbers are to be JSON already. */
void render_arg(struct reader *r, const char *key, struct str text);
void render_number(struct reader *r, const char *key, struct str number);
void render_end(struct reader *r, struct event *ev);

/* Microseconds with three decimals. */
void put_us(struct buf *b, int64_t ns);

#endif
