/* Growable bytes: see buf.h. */
#include "buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

char *
buf_grow(struct buf *b, size_t n)
{
	if (b->failed)
		return NULL;
	size_t cap = b->cap ? b->cap : 256;
	while (cap - b->len < n) {
		if (cap > SIZE_MAX / 4) {
			b->failed = true;
			return NULL;
		}
		cap *= 2;
	}
	char *p = realloc(b->p, cap);
	if (!p) {
		b->failed = true;
		return NULL;
	}
	b->p = p;
	b->cap = cap;
	return p + b->len;
}

void
buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	char *to = n < 0 ? NULL : buf_room(b, (size_t)n + 1);
	if (to) {
		vsnprintf(to, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
}

const char *
buf_cstr(struct buf *b)
{
	char *end = buf_room(b, 1);
	if (!end)
		return "";
	*end = 0;
	return b->p;
}

void
buf_free(struct buf *b)
{
	free(b->p);
	*b = (struct buf){ 0 };
}
