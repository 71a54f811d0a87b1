/*
 * JSON for traces: finds objects in a stream of bytes at about the speed of
 * memory, and takes them apart without copying. Tolerant where real traces
 * are wrong, and it says so; scan_valid() is the strict judge of what is
 * written out again.
 */
#ifndef SCAN_H
#define SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "str.h"

enum {
	SCAN_SLACK = 64, /* bytes that must be readable behind a text */
	SCAN_OBJECT_MAX = 1 << 20, /* bytes of one event: args with a stack */
	SCAN_CHILDREN_MAX = 64,    /* objects directly inside an event */
	SCAN_DEPTH_MAX = 64,       /* nesting of what is written out again */
};

/* An object directly inside another: args, id2. */
struct scan_child {
	uint32_t open, close; /* of its braces */
	uint32_t quote;       /* index of the first quote behind it */
};

/* Where the quotes and inner objects of the last object are. */
struct scan_span {
	uint32_t *quote; /* room for SCAN_OBJECT_MAX + SCAN_SLACK */
	uint32_t nquote;
	struct scan_child child[SCAN_CHILDREN_MAX];
	uint32_t nchild;
	bool control; /* a raw control byte inside a string */
};

/*
 * The length of the object at p[0] == '{', 0 if it does not end within `len`,
 * -1 if a line ends inside a string (then it never will). SCAN_SLACK bytes
 * behind p + len must be readable.
 */
long scan_object(struct scan_span *s, const char *p, size_t len);

/* The value behind p (white space skipped): its text and where it ends. */
const char *scan_value(const char *p, const char *end, struct str *value);

/*
 * Members of an object's text, one by one: start with *at = text.p + 1.
 * False at the end or where the text breaks. Keys and string values come
 * without quotes; *string tells them from literals.
 */
bool scan_member(struct str object, const char **at, struct str *key,
    struct str *value, bool *string);
/* The value of a key, empty if absent. */
struct str scan_get(struct str object, const char *key);
/* Elements of an array's text in the same way. */
bool scan_element(
    struct str array, const char **at, struct str *value, bool *string);

/* Exactly one valid JSON value (RFC 8259, UTF-8), nothing around it. */
bool scan_valid(struct str text);

/* Appends the plain text of JSON string content; bad escapes stay. */
void scan_plain(struct buf *b, struct str content);
/* Appends plain text as JSON string content; bad UTF-8 becomes U+FFFD. */
void scan_quote(struct buf *b, struct str text);

/*
 * A decimal number of `unit` nanoseconds, exactly, to nanoseconds; digits
 * beyond are cut toward zero and *cut is set. False if it is no number or
 * does not fit. unit: 1, 1000, 1000000 or 1000000000.
 */
bool scan_time(struct str number, int64_t unit, int64_t *ns, bool *cut);

static inline bool
scan_space(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

#endif
