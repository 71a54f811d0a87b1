/*
 * JSON text (RFC 8259), read strictly by pulling: one value after the other,
 * no tree. Whole documents in memory, such as a header or a line.
 *
 *	json_init(&j, text, &arena, 0);
 *	if (json_value(&j, &v) != JSON_OBJECT) ...
 *	while (json_member(&j, &key))
 *		if (str_is(key, "shape"))
 *			for (json_enter(&j, JSON_ARRAY); json_element(&j);)
 *				json_value(&j, &v);
 *		else
 *			json_skip(&j);
 *	return json_end(&j, e);
 *
 * It keeps its first failure: then nothing more comes, every loop ends, and
 * json_end says what it was, where. Numbers stay text, as printed.
 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "err.h"
#include "map.h"
#include "str.h"

#define JSON_DEPTH_MAX 64 /* nested arrays and objects */
#define JSON_FEW 8        /* keys compared one by one before a map is made */

enum json_type {
	JSON_FAILED = 0, /* or nothing left where a value was asked for */
	JSON_OBJECT = 1,
	JSON_ARRAY = 2,
	JSON_STRING = 3,
	JSON_NUMBER = 4,
	JSON_TRUE = 5,
	JSON_FALSE = 6,
	JSON_NULL = 7,
};

enum {
	/* The caller looks for duplicate keys himself (and must). */
	JSON_ANY_KEYS = 1,
	/* NaN, Infinity and -Infinity are numbers, as Python prints them. */
	JSON_NONFINITE = 2,
};

struct json_level {
	enum json_type type;
	bool first;     /* nothing of it was read yet */
	unsigned nkeys; /* of keys[], or JSON_FEW + 1: see `many` */
	struct str keys[JSON_FEW];
	struct map many;
};

struct json {
	const char *p, *end, *start;
	struct arena *arena; /* decoded strings; NULL: the same as failed */
	unsigned flags, depth;
	bool value_due; /* after a key, a comma, or at the start */
	struct json_level *level[JSON_DEPTH_MAX];
	struct err err; /* code 0: fine so far */
};

/*
 * Strings without escapes point into `text`, others into the arena; both
 * outlive what is made of them. Levels are arena memory as well.
 */
void
json_init(struct json *j, struct str text, struct arena *arena, unsigned flags);
/*
 * The next value. *text gets a decoded string (any bytes that are UTF-8, NUL
 * included) or the digits of a number. Objects and arrays are entered: read
 * them to their end with json_member or json_element.
 */
enum json_type json_value(struct json *j, struct str *text);
/* Reads a value that must have this type; false and failed if not. */
bool json_expect(struct json *j, enum json_type type, struct str *text);
/* In an object: the next key, its value is due. False at the end. */
bool json_member(struct json *j, struct str *key);
/* In an array: is there another value? */
bool json_element(struct json *j);
/* Reads the value that is due and drops it, however deep. */
void json_skip(struct json *j);
/* An integer that is due, 0 to max: no sign, fraction or exponent. */
bool json_u64(struct json *j, uint64_t max, uint64_t *out);
/* For the caller's own complaints, with the place. Returns false. */
bool json_fail(struct json *j, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Only white space is left, and all went well: 0. Frees what json_init made. */
int json_end(struct json *j, struct err *e);

/* Bytes read so far. */
static inline size_t
json_off(const struct json *j)
{
	return (size_t)(j->p - j->start);
}

#endif
