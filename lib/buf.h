/*
 * Growable bytes. Zero-initialised it is empty and ready. It keeps its first
 * failure: after one allocation failed every further call does nothing, so a
 * caller builds the whole text and asks `failed` once.
 */
#ifndef BUF_H
#define BUF_H

#include <stdbool.h>
#include <stddef.h>

#include "str.h"

struct buf {
	char *p;
	size_t len, cap;
	bool failed;
};

/* Makes room for n more bytes; NULL: no memory. */
char *buf_grow(struct buf *b, size_t n);

/* Room for n more bytes at b->p + b->len, or NULL. Does not change len. */
static inline char *
buf_room(struct buf *b, size_t n)
{
	if (b->p && !b->failed && n <= b->cap - b->len)
		return b->p + b->len;
	return buf_grow(b, n);
}

static inline void
buf_add(struct buf *b, const void *p, size_t n)
{
	char *to = buf_room(b, n);
	if (!to || !n)
		return;
	memcpy(to, p, n);
	b->len += n;
}

static inline void
buf_str(struct buf *b, struct str s)
{
	buf_add(b, s.p, s.len);
}

static inline void
buf_puts(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_printf(struct buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void buf_free(struct buf *b);

static inline void
buf_putc(struct buf *b, char c)
{
	if (b->len < b->cap && !b->failed)
		b->p[b->len++] = c;
	else
		buf_add(b, &c, 1);
}

/* A NUL behind the text, not counted; "" when the buffer failed. */
const char *buf_cstr(struct buf *b);

static inline struct str
buf_view(const struct buf *b)
{
	return (struct str){ b->p, b->len };
}

#endif
