/* Bytes of a trace as they come: see feed.h. */
#include "feed.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "scan.h"

enum {
	CHUNK = 256 << 10, /* read at a time: half of a second-level cache */
	FIRST = 32 << 10,  /* what a pipe can give again: SRC_BACK */
};

int
feed_open(struct feed *f, struct src *src, struct err *e)
{
	*f = (struct feed){ .src = src, .fd = -1, .idle_ms = -1 };
	f->cap = 2 * CHUNK;
	f->chunk = FIRST;
	f->buf = malloc(f->cap + SCAN_SLACK);
	if (!f->buf)
		return err_mem(e);
	return 0;
}

void
feed_close(struct feed *f)
{
	src_close(f->src);
	free(f->buf);
	*f = (struct feed){ .fd = -1 };
}

/* Room for a chunk behind the window: moves it to the front, or grows. */
static int
make_room(struct feed *f, struct err *e)
{
	if (f->at) {
		memmove(f->buf, f->buf + f->at, feed_left(f));
		f->end -= f->at;
		f->at = 0;
	}
	if (f->cap - f->end >= CHUNK)
		return 0;
	char *p = realloc(f->buf, f->cap * 2 + SCAN_SLACK);
	if (!p)
		return err_mem(e);
	f->buf = p;
	f->cap *= 2;
	return 0;
}

/* 1: there is something to read. */
static int
wait_input(struct feed *f, struct err *e)
{
	struct pollfd p = { .fd = f->fd, .events = POLLIN };
	for (;;) {
		if (f->stop && *f->stop)
			return FEED_END;
		int n = poll(&p, 1, f->idle_ms);
		if (n > 0)
			return FEED_MORE;
		if (n == 0)
			return FEED_IDLE;
		if (errno != EINTR)
			return err_sys(e, "poll");
	}
}

int
feed_more(struct feed *f, struct err *e)
{
	if (f->eof || (f->stop && *f->stop))
		return FEED_END;
	if (f->cap - f->end < CHUNK) {
		int r = make_room(f, e);
		if (r)
			return r;
	}
	if (f->fd >= 0) {
		int r = wait_input(f, e);
		if (r != FEED_MORE)
			return r;
	}
	size_t got;
	int r = src_read_next(
	    f->src, f->off + feed_left(f), f->buf + f->end, f->chunk, &got, e);
	f->chunk = CHUNK;
	if (r) {
		f->eof = true;
		return r;
	}
	f->end += got;
	memset(f->buf + f->end, 0, SCAN_SLACK);
	f->eof = got == 0;
	return got ? FEED_MORE : FEED_END;
}

int
feed_need(struct feed *f, size_t n, struct err *e)
{
	while (feed_left(f) < n) {
		int r = feed_more(f, e);
		if (r != FEED_MORE)
			return r;
	}
	return FEED_MORE;
}

/* A line that is too long: on to the next one. */
static int
skip_line(struct feed *f, struct err *e)
{
	for (;;) {
		char *nl = memchr(f->buf + f->at, '\n', feed_left(f));
		if (nl) {
			feed_skip(f, (size_t)(nl + 1 - (f->buf + f->at)));
			return 0;
		}
		feed_skip(f, feed_left(f));
		int r = feed_more(f, e);
		if (r == FEED_END || r < 0)
			return r;
	}
}

int
feed_line(
    struct feed *f, size_t max, struct str *line, bool *whole, struct err *e)
{
	size_t seen = 0;
	for (;;) {
		char *from = f->buf + f->at;
		char *nl = memchr(from + seen, '\n', feed_left(f) - seen);
		seen = feed_left(f);
		*whole = nl != NULL;
		size_t len = nl ? (size_t)(nl - from) : seen;
		if (len > max) {
			f->line++;
			int r = skip_line(f, e);
			return r < 0 ? r
				     : err_set(e, SE_ELIMIT,
					   "%" PRIu64
					   ": line of more than %zu bytes",
					   f->line, max);
		}
		if (!nl) {
			int r = feed_more(f, e);
			if (r == FEED_MORE)
				continue;
			if (r != FEED_END || !seen)
				return r;
			from = f->buf + f->at;
		}
		*line = (struct str){ from, len };
		f->line++;
		feed_skip(f, len + (nl != NULL));
		if (line->len && line->p[line->len - 1] == '\r')
			line->len--;
		return FEED_MORE;
	}
}
