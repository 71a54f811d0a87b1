/* Looking at the nodes of a pickle: see pickle.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "num.h"
#include "pickle.h"
#include "sort.h"

bool
pickle_is_global(const struct pickle_node *n, const char *name)
{
	return n && n->kind == PICKLE_GLOBAL && str_is(n->s, name);
}

bool
pickle_is_call(const struct pickle_node *n, const char *name)
{
	return n && n->kind == PICKLE_CALL &&
	       pickle_is_global(n->call->func, name);
}

struct pickle_node *
pickle_get(const struct pickle_node *dict, const char *key)
{
	/* The last one wins, as in Python. */
	for (uint32_t i = dict && dict->kind == PICKLE_DICT ? dict->n : 0;
	     i >= 2; i -= 2) {
		const struct pickle_node *k = dict->item[i - 2];
		if (k->kind == PICKLE_STR && str_is(k->s, key))
			return dict->item[i - 1];
	}
	return NULL;
}

/* Two-byte UTF-8 of U+0080 to U+00FF back to one byte each. */
static bool
latin1(struct str s, struct arena *a, struct str *out)
{
	char *to = arena_alloc(a, s.len);
	if (!to)
		return false;
	size_t n = 0;
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if (c >= 0x80) {
			unsigned char d =
			    i + 1 < s.len ? (unsigned char)s.p[++i] : 0;
			if ((c & 0xfe) != 0xc2 || (d & 0xc0) != 0x80)
				return false;
			c = (unsigned char)(c << 6 | (d & 0x3f));
		}
		to[n++] = (char)c;
	}
	*out = (struct str){ to, n };
	return true;
}

/* Protocols below 3 write bytes as text with code points up to 255. */
static bool
encoded(const struct pickle_node *args, struct arena *a, struct str *out)
{
	struct pickle_node *const *arg = args->item;
	if (args->n != 2 || arg[0]->kind != PICKLE_STR ||
	    arg[1]->kind != PICKLE_STR)
		return false;
	bool known =
	    str_is(arg[1]->s, "latin1") || str_is(arg[1]->s, "latin-1");
	return known && latin1(arg[0]->s, a, out);
}

/* Not a recursive function: a pickle may nest as deep as it likes. */
static bool
plain_bytes(const struct pickle_node *n, struct arena *a, struct str *out)
{
	*out = STR_LIT("");
	if (n->kind == PICKLE_BYTES) {
		*out = n->s;
		return true;
	}
	if (pickle_is_call(n, "_codecs encode"))
		return encoded(n->call->args, a, out);
	return pickle_is_call(n, "builtins bytes") && n->call->args->n == 0;
}

bool
pickle_bytes(const struct pickle_node *n, struct arena *a, struct str *out)
{
	if (!pickle_is_call(n, "builtins bytearray"))
		return plain_bytes(n, a, out);
	const struct pickle_node *args = n->call->args;
	*out = STR_LIT("");
	if (args->n == 1)
		return plain_bytes(args->item[0], a, out);
	return args->n == 0 || encoded(args, a, out);
}

const struct pickle_node *
pickle_set(const struct pickle_node *n)
{
	if (n->kind == PICKLE_SET)
		return n;
	if (!pickle_is_call(n, "builtins set") &&
	    !pickle_is_call(n, "builtins frozenset"))
		return NULL;
	const struct pickle_node *args = n->call->args;
	if (args->n == 0)
		return args;
	const struct pickle_node *in = args->n == 1 ? args->item[0] : NULL;
	return in && (in->kind == PICKLE_LIST || in->kind == PICKLE_TUPLE)
		   ? in
		   : NULL;
}

/* ---- text ------------------------------------------------------------ */

static void
put_hex(struct buf *b, struct str s, bool backwards)
{
	for (size_t i = 0; i < s.len; i++)
		buf_printf(b, "%02x",
		    (unsigned char)s.p[backwards ? s.len - 1 - i : i]);
}

static int
text_order(const void *a, const void *b)
{
	return str_order(*(const struct str *)a, *(const struct str *)b);
}

/* Python's order of a set of strings changes from run to run. */
static bool
sort_texts(struct buf *b, size_t start, const size_t *len, size_t n)
{
	struct str *s = calloc(n ? n : 1, sizeof *s);
	struct buf all = { 0 };
	buf_add(&all, b->p + start, b->len - start);
	if (!s || all.failed) {
		free(s);
		return false;
	}
	size_t at = 0;
	for (size_t i = 0; i < n; i++) {
		s[i] = (struct str){ all.p + at, len[i] };
		at += len[i];
	}
	sort_array(s, n, sizeof *s, text_order);
	b->len = start;
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_putc(b, ',');
		buf_str(b, s[i]);
	}
	free(s);
	buf_free(&all);
	return true;
}

static bool
put_bytes(struct buf *b, const struct pickle_node *n)
{
	struct arena a = { 0 };
	struct str s;
	bool ok = pickle_bytes(n, &a, &s);
	if (ok)
		put_hex(b, s, false);
	arena_free(&a);
	return ok;
}

/* A name as Python writes it: module.name. */
static void
put_global(struct buf *b, struct str s)
{
	size_t at = b->len;
	buf_str(b, s);
	char *blank = b->failed ? NULL : memchr(b->p + at, ' ', s.len);
	if (blank)
		*blank = '.';
}

static void
put_leaf(struct buf *b, const struct pickle_node *n)
{
	switch (n->kind) {
	case PICKLE_NONE:
		buf_puts(b, "none");
		break;
	case PICKLE_BOOL:
		buf_puts(b, n->i ? "true" : "false");
		break;
	case PICKLE_INT:
		buf_printf(b, "%" PRId64, n->i);
		break;
	case PICKLE_LONG:
		/* Sign and all, as stored: for comparing, not for sums. */
		buf_puts(b, "0x");
		put_hex(b, n->s, true);
		break;
	case PICKLE_FLOAT:
		num_put_f64(b, n->f);
		break;
	case PICKLE_STR:
		buf_str(b, n->s);
		break;
	case PICKLE_BYTES:
		put_hex(b, n->s, false);
		break;
	default:
		put_global(b, n->s);
	}
}

static bool
put_text(struct buf *b, const struct pickle_node *n, int depth)
{
	if (depth <= 0 || b->len > PICKLE_TEXT_MAX || b->failed)
		return false;
	if (n->kind <= PICKLE_GLOBAL) {
		put_leaf(b, n);
		return b->len <= PICKLE_TEXT_MAX;
	}
	const struct pickle_node *set = pickle_set(n);
	if (n->kind == PICKLE_CALL && !set) {
		if (put_bytes(b, n))
			return true;
		const struct pickle_call *c = n->call;
		return !c->kwargs && !c->state && !c->list && !c->dict &&
		       put_text(b, c->func, depth - 1) &&
		       put_text(b, c->args, depth - 1);
	}
	n = set ? set : n;
	bool tuple = n->kind == PICKLE_TUPLE;
	const char *braces = set ? "{}" : tuple ? "()" : "[]";
	/* Dicts and persistent ids are never keys or leaves. */
	if (n->kind == PICKLE_DICT || n->kind == PICKLE_PERSID)
		return false;
	size_t *len = set ? calloc((size_t)n->n + 1, sizeof *len) : NULL;
	bool ok = !set || len;
	buf_putc(b, braces[0]);
	size_t start = b->len;
	for (uint32_t i = 0; ok && i < n->n; i++) {
		size_t at = b->len;
		if (i && !set)
			buf_putc(b, ',');
		ok = put_text(b, n->item[i], depth - 1);
		if (set)
			len[i] = b->len - at;
	}
	if (ok && set)
		ok = sort_texts(b, start, len, n->n);
	free(len);
	buf_putc(b, braces[1]);
	return ok && b->len <= PICKLE_TEXT_MAX;
}

bool
pickle_text(struct buf *b, const struct pickle_node *n)
{
	size_t at = b->len;
	bool ok = put_text(b, n, PICKLE_TEXT_DEPTH);
	if (!ok)
		b->len = at;
	return ok;
}
