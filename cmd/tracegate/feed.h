/*
 * Bytes of a trace as they come: a window over a source that a reader parses
 * in place. Live input is waited for with a timeout and can be interrupted.
 */
#ifndef FEED_H
#define FEED_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "src.h"
#include "str.h"

enum {
	FEED_END = 0,
	FEED_MORE = 1,
	FEED_IDLE = 2, /* live input had nothing for a while */
};

struct feed {
	struct src *src;
	char *buf;
	size_t at, end, cap; /* what is not parsed yet: buf[at..end) */
	size_t chunk;        /* read at a time; the first is for probes */
	uint64_t off;        /* of buf[at] in the input */
	bool eof;
	uint64_t line; /* lines taken so far, for messages */
	/* live input only */
	int fd;                            /* to wait for, or -1 */
	int idle_ms;                       /* give up waiting after this */
	const volatile sig_atomic_t *stop; /* end of input when set */
};

/* Takes over `src`. */
int feed_open(struct feed *f, struct src *src, struct err *e);
void feed_close(struct feed *f);

/* Reads behind buf[end]; moves the window. FEED_*, or an error. */
int feed_more(struct feed *f, struct err *e);
/* At least n bytes in the window, if the input has them. FEED_* or error. */
int feed_need(struct feed *f, size_t n, struct err *e);

static inline size_t
feed_left(const struct feed *f)
{
	return f->end - f->at;
}

static inline void
feed_skip(struct feed *f, size_t n)
{
	f->at += n;
	f->off += n;
}

/*
 * The next line without its LF; the last one may lack it (*whole false).
 * FEED_MORE with a line, FEED_END, FEED_IDLE, or an error; SE_ELIMIT is a line
 * beyond `max` bytes, which is skipped.
 */
int feed_line(
    struct feed *f, size_t max, struct str *line, bool *whole, struct err *e);

#endif
