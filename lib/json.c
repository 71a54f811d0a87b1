/* JSON text: see json.h. */
#include "json.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include "esc.h"
#include "num.h"

bool
json_fail(struct json *j, int code, const char *fmt, ...)
{
	if (j->err.code)
		return false;
	char msg[sizeof j->err.msg - 40];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof msg, fmt, ap);
	va_end(ap);
	err_set(&j->err, code, "JSON byte %zu: %s", json_off(j), msg);
	j->p = j->end;
	j->value_due = false;
	return false;
}

void
json_init(struct json *j, struct str text, struct arena *arena, unsigned flags)
{
	if (!text.p)
		text = STR_LIT("");
	*j = (struct json){ .p = text.p,
		.end = text.p + text.len,
		.start = text.p,
		.arena = arena,
		.flags = flags,
		.value_due = true };
}

static bool
failed(const struct json *j)
{
	return j->err.code != 0;
}

/* The next byte that is not white space, or -1. */
static int
peek(struct json *j)
{
	for (; j->p < j->end; j->p++) {
		unsigned char c = (unsigned char)*j->p;
		if (c > ' ' ||
		    (c != ' ' && c != '\n' && c != '\r' && c != '\t'))
			return c;
	}
	return -1;
}

static bool
unexpected(struct json *j, const char *expected)
{
	if (j->p >= j->end)
		return json_fail(
		    j, SE_ETRUNC, "expected %s, found the end", expected);
	unsigned char c = (unsigned char)*j->p;
	if (c >= 0x20 && c < 0x7f)
		return json_fail(
		    j, SE_EFORMAT, "expected %s, found '%c'", expected, c);
	return json_fail(
	    j, SE_EFORMAT, "expected %s, found byte 0x%02x", expected, c);
}

/* ---- strings ----------------------------------------------------------- */

/* Length of the UTF-8 sequence at p (RFC 3629), 0 if it is none. */
static size_t
utf8(const unsigned char *p, size_t n)
{
	static const struct {
		unsigned char from, to, low, high;
		size_t len;
	} lead[] = { { 0xc2, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 } };
	for (size_t i = 0; i < sizeof lead / sizeof *lead; i++) {
		if (p[0] < lead[i].from || p[0] > lead[i].to)
			continue;
		if (n < lead[i].len || p[1] < lead[i].low ||
		    p[1] > lead[i].high)
			return 0;
		for (size_t k = 2; k < lead[i].len; k++)
			if ((p[k] & 0xc0) != 0x80)
				return 0;
		return lead[i].len;
	}
	return 0;
}

/* Bytes of a string that need a look. */
#define FOUR(c) [c] = 1, [(c) + 1] = 1, [(c) + 2] = 1, [(c) + 3] = 1
#define SIXTEEN(c) FOUR(c), FOUR((c) + 4), FOUR((c) + 8), FOUR((c) + 12)
static const unsigned char stops[256] = { SIXTEEN(0x00),
	SIXTEEN(0x10), ['"'] = 1, ['\\'] = 1, SIXTEEN(0x80), SIXTEEN(0x90),
	SIXTEEN(0xa0), SIXTEEN(0xb0), SIXTEEN(0xc0), SIXTEEN(0xd0),
	SIXTEEN(0xe0), SIXTEEN(0xf0) };

/*
 * Moves over plain text up to a quote, a backslash or the end; false where
 * a byte may not stand in a string.
 */
static bool
plain(struct json *j)
{
	const unsigned char *p = (const unsigned char *)j->p;
	const unsigned char *end = (const unsigned char *)j->end;
	size_t n = 1;
	for (;; p += n) {
		while (p < end && !stops[*p])
			p++;
		if (p == end || *p == '"' || *p == '\\')
			break;
		n = *p < 0x80 ? 0 : utf8(p, (size_t)(end - p));
		if (!n)
			break;
	}
	j->p = (const char *)p;
	if (p == end)
		return unexpected(j, "the end of a string");
	if (n)
		return true;
	return json_fail(j, SE_EFORMAT,
	    *p < 0x20 ? "control byte 0x%02x in a string"
		      : "byte 0x%02x is not UTF-8",
	    *p);
}

static bool
hex4(struct json *j, unsigned *out)
{
	*out = 0;
	for (int i = 0; i < 4; i++) {
		if (j->p >= j->end)
			return unexpected(j, "a hexadecimal digit");
		char c = *j->p;
		unsigned v = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
			     : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
			     : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
						    : 16;
		if (v > 15)
			return unexpected(j, "a hexadecimal digit");
		*out = *out << 4 | v;
		j->p++;
	}
	return true;
}

static char *
put_utf8(char *to, unsigned c)
{
	if (c < 0x80) {
		*to++ = (char)c;
		return to;
	}
	if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
	} else if (c < 0x10000) {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
	} else {
		*to++ = (char)(0xf0 | c >> 18);
		*to++ = (char)(0x80 | (c >> 12 & 0x3f));
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
	}
	*to++ = (char)(0x80 | (c & 0x3f));
	return to;
}

/* Behind "\u". A surrogate must come with its other half. */
static char *
unicode(struct json *j, char *to)
{
	unsigned c, low;
	if (!hex4(j, &c))
		return NULL;
	if (c < 0xd800 || c > 0xdfff)
		return put_utf8(to, c);
	if (c < 0xdc00 && j->end - j->p >= 2 && j->p[0] == '\\' &&
	    j->p[1] == 'u') {
		j->p += 2;
		if (!hex4(j, &low))
			return NULL;
		if (low >= 0xdc00 && low <= 0xdfff)
			return put_utf8(to,
			    0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
	}
	json_fail(j, SE_EFORMAT, "half a surrogate pair \\u%04x", c);
	return NULL;
}

/* At the backslash; where the decoded text goes on, or NULL. */
static char *
escape(struct json *j, char *to)
{
	static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
	j->p++;
	if (j->p >= j->end) {
		unexpected(j, "an escape");
		return NULL;
	}
	const char *at = memchr(from, *j->p, sizeof from - 1);
	if (!at && *j->p != 'u') {
		unexpected(j, "an escape");
		return NULL;
	}
	j->p++;
	if (!at)
		return unicode(j, to);
	*to++ = into[at - from];
	return to;
}

/* A string with escapes: decoded it is no longer than written. */
static bool
decode(struct json *j, const char *from, struct str *out)
{
	const char *q = j->p;
	while (q < j->end && *q != '"')
		q += *q == '\\' ? 2 : 1;
	char *text =
	    q < j->end ? arena_alloc(j->arena, (size_t)(q - from)) : NULL;
	if (!text)
		return q < j->end
			   ? json_fail(j, SE_ENOMEM, "out of memory")
			   : json_fail(j, SE_ETRUNC, "string without an end");
	char *to = text;
	for (;;) {
		memcpy(to, from, (size_t)(j->p - from));
		to += j->p - from;
		if (*j->p == '"')
			break;
		to = escape(j, to);
		from = j->p;
		if (!to || !plain(j))
			return false;
	}
	*out = (struct str){ text, (size_t)(to - text) };
	j->p++;
	return true;
}

static bool
string(struct json *j, struct str *out)
{
	const char *from = ++j->p;
	if (!plain(j))
		return false;
	if (*j->p == '\\')
		return decode(j, from, out);
	*out = (struct str){ from, (size_t)(j->p - from) };
	j->p++;
	return true;
}

/* ---- numbers and words ------------------------------------------------- */

static size_t
digits(struct json *j)
{
	const char *from = j->p;
	while (j->p < j->end && *j->p >= '0' && *j->p <= '9')
		j->p++;
	return (size_t)(j->p - from);
}

static bool
is(const struct json *j, char c)
{
	return j->p < j->end && *j->p == c;
}

/* Not of RFC 8259: what Python's json.dumps prints all the same. */
static bool
nonfinite(struct json *j, struct str *out)
{
	static const char *const words[] = { "NaN", "Infinity", "-Infinity" };
	struct str rest = { j->p, (size_t)(j->end - j->p) };
	if (!(j->flags & JSON_NONFINITE))
		return false;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (str_starts(rest, words[i])) {
			*out = (struct str){ j->p, strlen(words[i]) };
			j->p += out->len;
			return true;
		}
	return false;
}

/* RFC 8259 section 6. */
static bool
number(struct json *j, struct str *out)
{
	const char *from = j->p;
	j->p += is(j, '-');
	const char *first = j->p;
	size_t n = digits(j);
	if (!n)
		return unexpected(j, "a digit");
	if (*first == '0' && n > 1)
		return json_fail(j, SE_EFORMAT, "number with a leading zero");
	if (is(j, '.')) {
		j->p++;
		if (!digits(j))
			return unexpected(j, "a digit");
	}
	if (is(j, 'e') || is(j, 'E')) {
		j->p++;
		j->p += is(j, '+') || is(j, '-');
		if (!digits(j))
			return unexpected(j, "a digit");
	}
	*out = (struct str){ from, (size_t)(j->p - from) };
	return true;
}

static enum json_type
word(struct json *j)
{
	static const struct {
		const char *text;
		enum json_type type;
	} words[] = { { "true", JSON_TRUE }, { "false", JSON_FALSE },
		{ "null", JSON_NULL } };
	struct str rest = { j->p, (size_t)(j->end - j->p) };
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (str_starts(rest, words[i].text)) {
			j->p += strlen(words[i].text);
			return words[i].type;
		}
	unexpected(j, "a value");
	return JSON_FAILED;
}

/* ---- structure --------------------------------------------------------- */

static bool
enter(struct json *j, enum json_type type)
{
	if (j->depth == JSON_DEPTH_MAX)
		return json_fail(
		    j, SE_ELIMIT, "nested deeper than %d", JSON_DEPTH_MAX);
	struct json_level *l = j->level[j->depth];
	if (!l)
		l = arena_alloc(j->arena, sizeof *l);
	if (!l)
		return json_fail(j, SE_ENOMEM, "out of memory");
	l->type = type;
	l->first = true;
	l->nkeys = 0;
	j->level[j->depth++] = l;
	j->p++;
	return true;
}

static void
leave(struct json *j)
{
	struct json_level *l = j->level[--j->depth];
	if (l->nkeys > JSON_FEW)
		map_free(&l->many);
	l->nkeys = 0;
	j->p++;
}

static bool
twice(struct json *j, struct str key)
{
	struct buf b = { 0 };
	esc_put(&b, key);
	json_fail(j, SE_EFORMAT, "key \"%.*s\" appears twice", ESC_SHOWN,
	    buf_cstr(&b));
	buf_free(&b);
	return false;
}

static bool
remember(struct json *j, struct json_level *l, struct str key)
{
	bool fresh = true;
	for (unsigned i = 0; i < l->nkeys && l->nkeys <= JSON_FEW; i++)
		if (str_same(l->keys[i], key))
			return twice(j, key);
	if (l->nkeys < JSON_FEW) {
		l->keys[l->nkeys++] = key;
		return true;
	}
	if (l->nkeys == JSON_FEW) {
		l->many = (struct map){ 0 };
		l->nkeys++;
		for (unsigned i = 0; i < JSON_FEW; i++)
			if (!map_at(&l->many, l->keys[i], &fresh))
				return json_fail(j, SE_ENOMEM, "out of memory");
	}
	if (!map_at(&l->many, key, &fresh))
		return json_fail(j, SE_ENOMEM, "out of memory");
	return fresh || twice(j, key);
}

/* Over the comma, or the end of an array or object and out of it. */
static bool
more(struct json *j, enum json_type type, int close)
{
	if (failed(j))
		return false;
	struct json_level *l = j->depth ? j->level[j->depth - 1] : NULL;
	if (!l || l->type != type || j->value_due)
		return json_fail(j, SE_EINVAL, "read out of order");
	int c = peek(j);
	if (c == close) {
		leave(j);
		return false;
	}
	if (!l->first) {
		if (c != ',')
			return unexpected(
			    j, close == '}' ? "',' or '}'" : "',' or ']'");
		j->p++;
	}
	l->first = false;
	return true;
}

bool
json_member(struct json *j, struct str *key)
{
	if (!more(j, JSON_OBJECT, '}'))
		return false;
	if (peek(j) != '"')
		return unexpected(j, "a key");
	if (!string(j, key))
		return false;
	if (!(j->flags & JSON_ANY_KEYS) &&
	    !remember(j, j->level[j->depth - 1], *key))
		return false;
	if (peek(j) != ':')
		return unexpected(j, "':'");
	j->p++;
	j->value_due = true;
	return true;
}

bool
json_element(struct json *j)
{
	if (!more(j, JSON_ARRAY, ']'))
		return false;
	return j->value_due = true;
}

enum json_type
json_value(struct json *j, struct str *text)
{
	*text = STR_NULL;
	if (failed(j))
		return JSON_FAILED;
	if (!j->value_due) {
		json_fail(j, SE_EINVAL, "read out of order");
		return JSON_FAILED;
	}
	j->value_due = false;
	int c = peek(j);
	switch (c) {
	case '{':
		return enter(j, JSON_OBJECT) ? JSON_OBJECT : JSON_FAILED;
	case '[':
		return enter(j, JSON_ARRAY) ? JSON_ARRAY : JSON_FAILED;
	case '"':
		return string(j, text) ? JSON_STRING : JSON_FAILED;
	default:
		if (nonfinite(j, text))
			return JSON_NUMBER;
		if (c == '-' || (c >= '0' && c <= '9'))
			return number(j, text) ? JSON_NUMBER : JSON_FAILED;
		return word(j);
	}
}

bool
json_expect(struct json *j, enum json_type type, struct str *text)
{
	static const char *const name[] = { "nothing", "an object", "an array",
		"a string", "a number", "true", "false", "null" };
	struct str any;
	enum json_type found = json_value(j, text ? text : &any);
	if (found == type)
		return true;
	if (found == JSON_FAILED)
		return false;
	return json_fail(
	    j, SE_EFORMAT, "expected %s, found %s", name[type], name[found]);
}

bool
json_u64(struct json *j, uint64_t max, uint64_t *out)
{
	struct str s;
	struct err e;
	if (!json_expect(j, JSON_NUMBER, &s))
		return false;
	if (num_u64(s, 0, max, out, &e))
		return json_fail(j, SE_EFORMAT, "%s", e.msg);
	return true;
}

void
json_skip(struct json *j)
{
	struct str any;
	unsigned base = j->depth;
	json_value(j, &any);
	while (!failed(j) && j->depth > base) {
		bool on = j->level[j->depth - 1]->type == JSON_OBJECT
			      ? json_member(j, &any)
			      : json_element(j);
		if (on)
			json_value(j, &any);
	}
}

int
json_end(struct json *j, struct err *e)
{
	if (!failed(j)) {
		if (j->depth || j->value_due)
			unexpected(j, "the rest of the value");
		else if (peek(j) >= 0)
			unexpected(j, "nothing more");
	}
	for (unsigned i = 0; i < j->depth; i++)
		if (j->level[i]->nkeys > JSON_FEW)
			map_free(&j->level[i]->many);
	j->depth = 0;
	return failed(j) ? err_set(e, j->err.code, "%s", j->err.msg) : 0;
}
