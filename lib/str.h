/* Byte slices: a pointer and a length, no terminator promised. */
#ifndef STR_H
#define STR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct str {
	const char *p;
	size_t len;
};

#define STR_LIT(s) ((struct str){ (s), sizeof(s) - 1 })
#define STR_NULL ((struct str){ NULL, 0 })
/* For "%.*s": only for text that is already safe to print. */
#define STR_ARG(s) (int)(s).len, (s).p

static inline struct str
str_c(const char *s)
{
	return (struct str){ s, s ? strlen(s) : 0 };
}

static inline bool
str_same(struct str a, struct str b)
{
	return a.len == b.len && (a.len == 0 || !memcmp(a.p, b.p, a.len));
}

static inline bool
str_is(struct str a, const char *s)
{
	return str_same(a, str_c(s));
}

static inline bool
str_starts(struct str a, const char *s)
{
	size_t n = strlen(s);
	return a.len >= n && !memcmp(a.p, s, n);
}

static inline bool
str_ends(struct str a, const char *s)
{
	size_t n = strlen(s);
	return a.len >= n && !memcmp(a.p + (a.len - n), s, n);
}

/* Behind the last byte, also of a string that is nowhere. */
static inline const char *
str_end(struct str s)
{
	return s.len ? s.p + s.len : s.p;
}

/* Byte order, shorter first: the order of `LC_ALL=C sort`. */
static inline int
str_order(struct str a, struct str b)
{
	size_t n = a.len < b.len ? a.len : b.len;
	int c = n ? memcmp(a.p, b.p, n) : 0;
	return c ? c : (a.len > b.len) - (a.len < b.len);
}

/*
 * Cuts the text before the first `sep` off `*rest` into `*word`.
 * False once nothing is left; an empty last word after a separator counts.
 * Start with rest->p not NULL.
 */
static inline bool
str_cut(struct str *rest, char sep, struct str *word)
{
	if (!rest->p)
		return false;
	const char *q = rest->len ? memchr(rest->p, sep, rest->len) : NULL;
	if (!q) {
		*word = *rest;
		*rest = STR_NULL;
		return true;
	}
	*word = (struct str){ rest->p, (size_t)(q - rest->p) };
	rest->len -= word->len + 1;
	rest->p = q + 1;
	return true;
}

#endif
