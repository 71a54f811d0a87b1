/*
 * A cursor over bytes in memory. It keeps its first failure, and a failed
 * cursor has nothing left and reads zeros: read a whole header, then ask
 * `failed` once. Nothing else indexes untrusted binary input.
 */
#ifndef CUR_H
#define CUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "str.h"

struct cur {
	const unsigned char *p, *end;
	const unsigned char *start;
	bool failed;
};

static inline struct cur
cur_over(const void *p, size_t len)
{
	const unsigned char *b = p;
	return (struct cur){ b, b ? b + len : b, b, false };
}

static inline size_t
cur_left(const struct cur *c)
{
	return (size_t)(c->end - c->p);
}

/* Bytes consumed so far. */
static inline size_t
cur_off(const struct cur *c)
{
	return (size_t)(c->p - c->start);
}

static inline void
cur_fail(struct cur *c)
{
	c->failed = true;
	c->p = c->end;
}

/* The next n bytes, or NULL and a failed cursor. */
static inline const unsigned char *
cur_take(struct cur *c, size_t n)
{
	if (n > cur_left(c)) {
		cur_fail(c);
		return NULL;
	}
	const unsigned char *p = c->p;
	c->p += n;
	return p;
}

static inline struct str
cur_str(struct cur *c, size_t n)
{
	const unsigned char *p = cur_take(c, n);
	return (struct str){ (const char *)p, p ? n : 0 };
}

uint8_t cur_u8(struct cur *c);
uint16_t cur_le16(struct cur *c);
uint32_t cur_le32(struct cur *c);
uint64_t cur_le64(struct cur *c);
uint64_t cur_be64(struct cur *c);

#endif
