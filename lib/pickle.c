/* Python pickles as data: see pickle.h. */
#include "pickle.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cur.h"
#include "num.h"

enum {
	PROTO_MAX = 5,
	LONG_DIGITS_MAX = 400, /* decimal digits of an L argument */
};

struct vm {
	struct pickle *p;
	struct cur c;
	size_t at; /* offset of the opcode, for messages */
	struct pickle_node **stack, **memo;
	size_t *mark;
	size_t nstack, stack_cap;
	size_t nmark, mark_cap;
	size_t nmemo, memo_cap; /* entries set, places */
	bool stopped;
	struct err *e;
};

__attribute__((format(printf, 3, 4))) static int
fail(struct vm *v, int code, const char *fmt, ...)
{
	char text[200];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return err_set(v->e, code, "pickle byte %zu: %s", v->at, text);
}

static int
no_memory(struct vm *v)
{
	return err_mem(v->e);
}

/* ---- nodes ----------------------------------------------------------- */

static const char *const kind_names[] = {
	[PICKLE_NONE] = "None",
	[PICKLE_BOOL] = "a bool",
	[PICKLE_INT] = "an int",
	[PICKLE_LONG] = "an int",
	[PICKLE_FLOAT] = "a float",
	[PICKLE_STR] = "a string",
	[PICKLE_BYTES] = "bytes",
	[PICKLE_GLOBAL] = "a name",
	[PICKLE_TUPLE] = "a tuple",
	[PICKLE_LIST] = "a list",
	[PICKLE_SET] = "a set",
	[PICKLE_DICT] = "a dict",
	[PICKLE_PERSID] = "a persistent id",
	[PICKLE_CALL] = "an object",
};

static int
new_node(struct vm *v, unsigned kind, struct pickle_node **out)
{
	if (v->p->nnodes >= PICKLE_NODES_MAX)
		return fail(
		    v, SE_ELIMIT, "more than %u objects", PICKLE_NODES_MAX);
	*out = arena_alloc(&v->p->arena, sizeof **out);
	if (!*out)
		return no_memory(v);
	v->p->nnodes++;
	(*out)->kind = (unsigned char)kind;
	return 0;
}

/* Room for one more in a growing array of pointers or marks. */
static int
room(struct vm *v, void **array, size_t n, size_t *cap, size_t size)
{
	if (n < *cap)
		return 0;
	if (n >= PICKLE_NODES_MAX)
		return fail(v, SE_ELIMIT, "more than %u values on the stack",
		    PICKLE_NODES_MAX);
	size_t want = *cap ? *cap * 2 : 256;
	void *p = realloc(*array, want * size);
	if (!p)
		return no_memory(v);
	*array = p;
	*cap = want;
	return 0;
}

static int
push(struct vm *v, struct pickle_node *n)
{
	int r = room(
	    v, (void **)&v->stack, v->nstack, &v->stack_cap, sizeof(void *));
	if (!r)
		v->stack[v->nstack++] = n;
	return r;
}

/* Values above the last mark are ours to take. */
static size_t
available(const struct vm *v)
{
	return v->nstack - (v->nmark ? v->mark[v->nmark - 1] : 0);
}

static int
need(struct vm *v, size_t n)
{
	if (available(v) >= n)
		return 0;
	return fail(v, SE_EFORMAT, "needs %zu values on the stack, has %zu", n,
	    available(v));
}

static int
pop(struct vm *v, struct pickle_node **out)
{
	int r = need(v, 1);
	if (!r)
		*out = v->stack[--v->nstack];
	return r;
}

static int
pop_mark(struct vm *v, struct pickle_node ***items, size_t *n)
{
	*items = NULL;
	*n = 0;
	if (!v->nmark)
		return fail(v, SE_EFORMAT, "no mark on the stack");
	size_t at = v->mark[--v->nmark];
	*n = v->nstack - at;
	*items = *n ? v->stack + at : NULL;
	v->nstack = at;
	return 0;
}

/* Appends to a container; the arena keeps the outgrown array. */
static int
add_items(
    struct vm *v, struct pickle_node *to, struct pickle_node **items, size_t n)
{
	size_t want = to->n + n;
	if (want > UINT32_MAX / 2)
		return fail(v, SE_ELIMIT, "more than %u items", UINT32_MAX / 2);
	if (want > to->cap) {
		size_t cap = want > 2 * (size_t)to->cap ? want : 2 * want;
		struct pickle_node **p =
		    arena_array(&v->p->arena, cap, sizeof *p);
		if (!p)
			return no_memory(v);
		if (to->n)
			memcpy(p, to->item, to->n * sizeof *p);
		to->item = p;
		to->cap = (uint32_t)cap;
	}
	if (n)
		memcpy(to->item + to->n, items, n * sizeof *items);
	to->n = (uint32_t)want;
	return 0;
}

static int
push_items(struct vm *v, unsigned kind, struct pickle_node **items, size_t n)
{
	struct pickle_node *t;
	int r = new_node(v, kind, &t);
	if (!r)
		r = add_items(v, t, items, n);
	return r ? r : push(v, t);
}

static int
push_str(struct vm *v, unsigned kind, struct str s)
{
	struct pickle_node *t;
	int r = new_node(v, kind, &t);
	if (r)
		return r;
	t->s = s;
	return push(v, t);
}

static int
push_int(struct vm *v, unsigned kind, int64_t i)
{
	struct pickle_node *t;
	int r = new_node(v, kind, &t);
	if (r)
		return r;
	t->i = i;
	return push(v, t);
}

static int
push_float(struct vm *v, double f)
{
	struct pickle_node *t;
	int r = new_node(v, PICKLE_FLOAT, &t);
	if (r)
		return r;
	t->f = f;
	return push(v, t);
}

/* ---- arguments ---------------------------------------------------------- */

/* A line without its newline. */
static struct str
take_line(struct vm *v)
{
	const unsigned char *p = v->c.p;
	const unsigned char *nl =
	    cur_left(&v->c) ? memchr(p, '\n', cur_left(&v->c)) : NULL;
	if (!nl) {
		cur_fail(&v->c);
		return STR_NULL;
	}
	struct str s = cur_str(&v->c, (size_t)(nl - p));
	cur_u8(&v->c);
	return s;
}

static struct str
take_counted(struct vm *v, unsigned width)
{
	uint64_t n = width == 1   ? cur_u8(&v->c)
		     : width == 4 ? cur_le32(&v->c)
				  : cur_le64(&v->c);
	if (n > cur_left(&v->c)) {
		cur_fail(&v->c);
		return STR_NULL;
	}
	return cur_str(&v->c, (size_t)n);
}

/* Two's complement, little-endian, any length. */
static int
push_long(struct vm *v, struct str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	while (s.len > 1 && (p[s.len - 1] == 0 || p[s.len - 1] == 0xff) &&
	       (p[s.len - 1] ^ p[s.len - 2]) < 0x80)
		s.len--; /* bytes that only repeat the sign */
	if (s.len > 8)
		return push_str(v, PICKLE_LONG, s);
	uint64_t u = s.len && p[s.len - 1] & 0x80 ? UINT64_MAX : 0;
	for (size_t i = s.len; i-- > 0;)
		u = u << 8 | p[i];
	return push_int(v, PICKLE_INT, (int64_t)u);
}

/* Decimal digits to two's complement; 400 digits are 167 bytes. */
static int
push_digits(struct vm *v, struct str s)
{
	bool neg = s.len && s.p[0] == '-';
	struct str d = { s.p + neg, s.len - neg };
	if (!d.len || d.len > LONG_DIGITS_MAX)
		return fail(v, SE_EFORMAT, "an integer of %zu digits", d.len);
	size_t len = d.len / 2 + 2;
	unsigned char *b = arena_alloc(&v->p->arena, len);
	if (!b)
		return no_memory(v);
	for (size_t i = 0; i < d.len; i++) {
		if (d.p[i] < '0' || d.p[i] > '9')
			return fail(v, SE_EFORMAT, "expected a digit");
		unsigned carry = (unsigned)(d.p[i] - '0');
		for (size_t k = 0; k < len; k++) {
			carry += b[k] * 10u;
			b[k] = (unsigned char)carry;
			carry >>= 8;
		}
	}
	for (size_t k = 0, carry = 1; neg && k < len; k++) {
		carry += (unsigned char)~b[k];
		b[k] = (unsigned char)carry;
		carry >>= 8;
	}
	return push_long(v, (struct str){ (char *)b, len });
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Value of n hex digits at s[at]; -1 if they are not there. */
static int64_t
hex_at(struct str s, size_t at, size_t n)
{
	int64_t value = 0;
	for (size_t i = at; i < at + n; i++) {
		int d = i < s.len ? hex_digit(s.p[i]) : -1;
		if (d < 0)
			return -1;
		value = value << 4 | d;
	}
	return value;
}

static char *
put_utf8(char *to, uint32_t cp)
{
	if (cp < 0x80) {
		*to++ = (char)cp;
		return to;
	}
	if (cp < 0x800) {
		*to++ = (char)(0xc0 | cp >> 6);
	} else {
		if (cp < 0x10000) {
			*to++ = (char)(0xe0 | cp >> 12);
		} else {
			*to++ = (char)(0xf0 | cp >> 18);
			*to++ = (char)(0x80 | (cp >> 12 & 0x3f));
		}
		*to++ = (char)(0x80 | (cp >> 6 & 0x3f));
	}
	*to++ = (char)(0x80 | (cp & 0x3f));
	return to;
}

/* raw-unicode-escape: \uXXXX, \UXXXXXXXX, every other byte is Latin-1. */
static int
op_unicode(struct vm *v, unsigned op)
{
	struct str s = take_line(v);
	char *text = arena_array(&v->p->arena, s.len + 1, 2), *to = text;
	if (!text)
		return no_memory(v);
	for (size_t i = 0; i < s.len; i++) {
		uint32_t cp = (unsigned char)s.p[i];
		char kind = cp == '\\' && i + 1 < s.len ? s.p[i + 1] : 0;
		size_t n = kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
		if (n) {
			int64_t x = hex_at(s, i + 2, n);
			if (x < 0 || x > 0x10ffff)
				return fail(
				    v, SE_EFORMAT, "bad \\%c escape", kind);
			cp = (uint32_t)x;
			i += 1 + n;
		}
		to = put_utf8(to, cp);
	}
	return push_str(
	    v, PICKLE_STR, (struct str){ text, (size_t)(to - text) });
}

/* The repr of a Python 2 string: quotes and backslash escapes. */
static int
op_string(struct vm *v, unsigned op)
{
	static const char named[] = "n\nr\rt\t\\\\'\'\"\"a\ab\bf\fv\v";
	struct str s = take_line(v);
	if (v->c.failed)
		return 0;
	char q = s.len ? s.p[0] : 0;
	if (s.len < 2 || (q != '\'' && q != '"') || s.p[s.len - 1] != q)
		return fail(v, SE_EFORMAT, "a string without quotes");
	s = (struct str){ s.p + 1, s.len - 2 };
	char *text = arena_alloc(&v->p->arena, s.len + 1), *to = text;
	if (!text)
		return no_memory(v);
	for (size_t i = 0; i < s.len; i++) {
		char c = s.p[i], k = i + 1 < s.len ? s.p[i + 1] : 0;
		if (c != '\\' || !k) {
			*to++ = c;
			continue;
		}
		int64_t x = k == 'x' ? hex_at(s, i + 2, 2) : -1;
		size_t at = 0;
		while (at < sizeof named - 1 && named[at] != k)
			at += 2;
		if (x < 0 && at >= sizeof named - 1)
			return fail(v, SE_EFORMAT, "bad escape in a string");
		*to++ = x >= 0 ? (char)x : named[at + 1];
		i += x >= 0 ? 3 : 1;
	}
	return push_str(
	    v, PICKLE_STR, (struct str){ text, (size_t)(to - text) });
}

/* ---- opcodes: values ---------------------------------------------------- */

static int
op_proto(struct vm *v, unsigned op)
{
	unsigned n = cur_u8(&v->c);
	if (n > PROTO_MAX)
		return fail(v, SE_EUNSUP, "protocol %u, at most %d is read", n,
		    PROTO_MAX);
	return 0;
}

/* A frame only says how much may be read at once. */
static int
op_frame(struct vm *v, unsigned op)
{
	if (cur_le64(&v->c) > cur_left(&v->c))
		cur_fail(&v->c);
	return 0;
}

static int
op_none(struct vm *v, unsigned op)
{
	return push_int(v, PICKLE_NONE, 0);
}

static int
op_bool(struct vm *v, unsigned op)
{
	return push_int(v, PICKLE_BOOL, op == 0x88);
}

static int
op_int(struct vm *v, unsigned op)
{
	int64_t i = op == 'K'   ? cur_u8(&v->c)
		    : op == 'M' ? cur_le16(&v->c)
				: (int32_t)cur_le32(&v->c);
	return push_int(v, PICKLE_INT, i);
}

/* "00" and "01" are how protocol 0 writes bools. */
static int
op_int_text(struct vm *v, unsigned op)
{
	struct str s = take_line(v);
	if (v->c.failed)
		return 0;
	if (op == 'I' && (str_is(s, "00") || str_is(s, "01")))
		return push_int(v, PICKLE_BOOL, s.p[1] == '1');
	if (op == 'L' && str_ends(s, "L"))
		s.len--;
	return push_digits(v, s);
}

static int
op_long(struct vm *v, unsigned op)
{
	struct str s = take_counted(v, op == 0x8a ? 1 : 4);
	return push_long(v, s);
}

static int
op_float(struct vm *v, unsigned op)
{
	uint64_t bits = cur_be64(&v->c);
	double f;
	memcpy(&f, &bits, sizeof f);
	return push_float(v, f);
}

static int
op_float_text(struct vm *v, unsigned op)
{
	struct str s = take_line(v);
	double f = 0;
	if (v->c.failed)
		return 0;
	if (num_f64(s, &f, NULL))
		return fail(v, SE_EFORMAT, "expected a float");
	return push_float(v, f);
}

static int
op_str(struct vm *v, unsigned op)
{
	bool one = op == 'U' || op == 0x8c, eight = op == 0x8d;
	return push_str(v, PICKLE_STR,
	    take_counted(v, one     ? 1
			    : eight ? 8
				    : 4));
}

static int
op_bytes(struct vm *v, unsigned op)
{
	unsigned width = op == 'C' ? 1 : op == 'B' ? 4 : 8;
	return push_str(v, PICKLE_BYTES, take_counted(v, width));
}

/* ---- opcodes: containers ------------------------------------------------ */

static int
op_empty(struct vm *v, unsigned op)
{
	unsigned kind = op == ')'   ? PICKLE_TUPLE
			: op == ']' ? PICKLE_LIST
			: op == '}' ? PICKLE_DICT
				    : PICKLE_SET;
	return push_items(v, kind, NULL, 0);
}

static int
op_tuple_n(struct vm *v, unsigned op)
{
	size_t n = op - 0x84;
	int r = need(v, n);
	if (r)
		return r;
	v->nstack -= n;
	return push_items(v, PICKLE_TUPLE, v->stack + v->nstack, n);
}

static int
op_from_mark(struct vm *v, unsigned op)
{
	struct pickle_node **items;
	size_t n;
	int r = pop_mark(v, &items, &n);
	if (r)
		return r;
	if (op == 'd' && n % 2)
		return fail(v, SE_EFORMAT, "a dict from %zu values", n);
	unsigned kind = op == 't'   ? PICKLE_TUPLE
			: op == 'l' ? PICKLE_LIST
			: op == 'd' ? PICKLE_DICT
				    : PICKLE_SET;
	return push_items(v, kind, items, n);
}

/* The container that items are put into: itself, or the object's. */
static int
target(struct vm *v, unsigned kind, struct pickle_node **out)
{
	*out = NULL;
	int r = need(v, 1);
	if (r)
		return r;
	struct pickle_node *t = v->stack[v->nstack - 1];
	if (t->kind == kind) {
		*out = t;
		return 0;
	}
	if (t->kind != PICKLE_CALL)
		return fail(v, SE_EFORMAT,
		    "expected %s to put items into, "
		    "found %s",
		    kind_names[kind], kind_names[t->kind]);
	struct pickle_node **in =
	    kind == PICKLE_DICT ? &t->call->dict : &t->call->list;
	r = *in ? 0 : new_node(v, kind, in);
	*out = *in;
	return r;
}

static int
put_into(struct vm *v, unsigned kind, struct pickle_node **items, size_t n)
{
	struct pickle_node *to;
	int r = target(v, kind, &to);
	return r ? r : add_items(v, to, items, n);
}

static int
op_append(struct vm *v, unsigned op)
{
	struct pickle_node *x;
	int r = pop(v, &x);
	return r ? r : put_into(v, PICKLE_LIST, &x, 1);
}

static int
op_appends(struct vm *v, unsigned op)
{
	struct pickle_node **items;
	size_t n;
	int r = pop_mark(v, &items, &n);
	unsigned kind = op == 'e' ? PICKLE_LIST : PICKLE_SET;
	return r ? r : put_into(v, kind, items, n);
}

static int
op_setitem(struct vm *v, unsigned op)
{
	int r = need(v, 2);
	if (r)
		return r;
	v->nstack -= 2;
	return put_into(v, PICKLE_DICT, v->stack + v->nstack, 2);
}

static int
op_setitems(struct vm *v, unsigned op)
{
	struct pickle_node **items;
	size_t n;
	int r = pop_mark(v, &items, &n);
	if (!r && n % 2)
		r = fail(v, SE_EFORMAT, "%zu values as keys and values", n);
	return r ? r : put_into(v, PICKLE_DICT, items, n);
}

/* ---- opcodes: stack and memo -------------------------------------------- */

static int
op_mark(struct vm *v, unsigned op)
{
	int r =
	    room(v, (void **)&v->mark, v->nmark, &v->mark_cap, sizeof *v->mark);
	if (!r)
		v->mark[v->nmark++] = v->nstack;
	return r;
}

static int
op_pop(struct vm *v, unsigned op)
{
	/* CPython lets POP take a mark. */
	if (v->nmark && !available(v)) {
		v->nmark--;
		return 0;
	}
	struct pickle_node *x;
	return pop(v, &x);
}

static int
op_pop_mark(struct vm *v, unsigned op)
{
	struct pickle_node **items;
	size_t n;
	return pop_mark(v, &items, &n);
}

static int
op_dup(struct vm *v, unsigned op)
{
	int r = need(v, 1);
	return r ? r : push(v, v->stack[v->nstack - 1]);
}

static int
memo_put(struct vm *v, uint64_t at)
{
	int r = need(v, 1);
	if (r)
		return r;
	/*
	 * Picklers number from 0, one for each value: an index beyond the
	 * bytes of the pickle is a lie that would cost memory.
	 */
	if (at > v->at)
		return fail(v, SE_EFORMAT,
		    "memo index %" PRIu64 " after %zu bytes", at, v->at);
	if (at >= v->memo_cap) {
		size_t cap = (size_t)at * 2 + 64;
		struct pickle_node **p = realloc(v->memo, cap * sizeof *p);
		if (!p)
			return no_memory(v);
		memset(p + v->memo_cap, 0, (cap - v->memo_cap) * sizeof *p);
		v->memo = p;
		v->memo_cap = cap;
	}
	v->nmemo += !v->memo[at];
	v->memo[at] = v->stack[v->nstack - 1];
	return 0;
}

static int
memo_get(struct vm *v, uint64_t at)
{
	if (at >= v->memo_cap || !v->memo[at])
		return fail(v, SE_EFORMAT, "memo has no entry %" PRIu64, at);
	return push(v, v->memo[at]);
}

static int
op_memo(struct vm *v, unsigned op)
{
	uint64_t at;
	switch (op) {
	case 'q':
	case 'h':
		at = cur_u8(&v->c);
		break;
	case 'r':
	case 'j':
		at = cur_le32(&v->c);
		break;
	case 'p':
	case 'g':
		if (num_u64(take_line(v), 0, UINT32_MAX, &at, NULL))
			return v->c.failed ? 0
					   : fail(v, SE_EFORMAT,
						 "expected a memo index");
		break;
	default: /* MEMOIZE */
		at = v->nmemo;
	}
	if (v->c.failed)
		return 0;
	bool get = op == 'h' || op == 'j' || op == 'g';
	return get ? memo_get(v, at) : memo_put(v, at);
}

/* ---- opcodes: names and calls ------------------------------------------- */

static int
push_global(struct vm *v, struct str module, struct str name)
{
	if (module.len > PICKLE_NAME_MAX || name.len > PICKLE_NAME_MAX)
		return fail(v, SE_ELIMIT, "a name of more than %d bytes",
		    PICKLE_NAME_MAX);
	/* Python 2, and 3 in protocols below 3, call it so. */
	if (str_is(module, "__builtin__"))
		module = STR_LIT("builtins");
	char *p = arena_alloc(&v->p->arena, module.len + 1 + name.len);
	if (!p)
		return no_memory(v);
	if (module.len)
		memcpy(p, module.p, module.len);
	p[module.len] = ' ';
	if (name.len)
		memcpy(p + module.len + 1, name.p, name.len);
	return push_str(
	    v, PICKLE_GLOBAL, (struct str){ p, module.len + 1 + name.len });
}

static int
op_global(struct vm *v, unsigned op)
{
	struct str module = take_line(v), name = take_line(v);
	return v->c.failed ? 0 : push_global(v, module, name);
}

static int
op_stack_global(struct vm *v, unsigned op)
{
	int r = need(v, 2);
	if (r)
		return r;
	struct pickle_node *module = v->stack[v->nstack - 2];
	struct pickle_node *name = v->stack[v->nstack - 1];
	if (module->kind != PICKLE_STR || name->kind != PICKLE_STR)
		return fail(v, SE_EFORMAT,
		    "expected two strings for a name, "
		    "found %s and %s",
		    kind_names[module->kind], kind_names[name->kind]);
	v->nstack -= 2;
	return push_global(v, module->s, name->s);
}

static int
call(struct vm *v, struct pickle_node *func, struct pickle_node *args,
    struct pickle_node *kwargs)
{
	/* An object may be callable; a list never is. */
	if (func->kind != PICKLE_GLOBAL && func->kind != PICKLE_PERSID &&
	    func->kind != PICKLE_CALL)
		return fail(
		    v, SE_EFORMAT, "call of %s", kind_names[func->kind]);
	if (args->kind != PICKLE_TUPLE)
		return fail(v, SE_EFORMAT, "call with %s, expected a tuple",
		    kind_names[args->kind]);
	struct pickle_node *t;
	int r = new_node(v, PICKLE_CALL, &t);
	if (r)
		return r;
	t->call = arena_alloc(&v->p->arena, sizeof *t->call);
	if (!t->call)
		return no_memory(v);
	*t->call = (struct pickle_call){ func, args, kwargs, NULL, NULL, NULL };
	return push(v, t);
}

/* REDUCE and NEWOBJ: f(*args) and f.__new__(f, *args). */
static int
op_call(struct vm *v, unsigned op)
{
	int r = need(v, 2);
	if (r)
		return r;
	v->nstack -= 2;
	return call(v, v->stack[v->nstack], v->stack[v->nstack + 1], NULL);
}

static int
op_newobj_ex(struct vm *v, unsigned op)
{
	int r = need(v, 3);
	if (r)
		return r;
	v->nstack -= 3;
	struct pickle_node **a = v->stack + v->nstack;
	if (a[2]->kind != PICKLE_DICT)
		return fail(v, SE_EFORMAT,
		    "call with %s for names, expected "
		    "a dict",
		    kind_names[a[2]->kind]);
	return call(v, a[0], a[1], a[2]);
}

static int
op_build(struct vm *v, unsigned op)
{
	struct pickle_node *state;
	int r = pop(v, &state);
	if (!r)
		r = need(v, 1);
	if (r)
		return r;
	struct pickle_node *t = v->stack[v->nstack - 1];
	if (t->kind != PICKLE_CALL)
		return fail(v, SE_EFORMAT, "state for %s, expected an object",
		    kind_names[t->kind]);
	if (t->call->state)
		return fail(v, SE_EFORMAT, "a second state for an object");
	t->call->state = state;
	return 0;
}

static int
push_persid(struct vm *v, struct pickle_node *id)
{
	int r = push_items(v, PICKLE_PERSID, &id, 1);
	if (!r)
		r = room(v, (void **)&v->p->persid, v->p->npersid,
		    &v->p->persid_cap, sizeof(void *));
	if (!r)
		v->p->persid[v->p->npersid++] = v->stack[v->nstack - 1];
	return r;
}

static int
op_persid(struct vm *v, unsigned op)
{
	struct pickle_node *id;
	int r = op == 'P' ? push_str(v, PICKLE_STR, take_line(v)) : 0;
	if (!r)
		r = pop(v, &id);
	return r ? r : push_persid(v, id);
}

static int
op_stop(struct vm *v, unsigned op)
{
	if (v->nmark || v->nstack != 1)
		return fail(v, SE_EFORMAT,
		    "%zu values and %zu marks left at "
		    "the end, expected 1 and 0",
		    v->nstack, v->nmark);
	v->p->root = v->stack[0];
	v->stopped = true;
	return 0;
}

/* ---- the table ---------------------------------------------------------- */

// clang-format off
static const struct {
	const char *name;
	int (*run)(struct vm *v, unsigned op); /* NULL: refused */
} ops[256] = {
	['('] = { "MARK", op_mark },
	['.'] = { "STOP", op_stop },
	['0'] = { "POP", op_pop },
	['1'] = { "POP_MARK", op_pop_mark },
	['2'] = { "DUP", op_dup },
	['F'] = { "FLOAT", op_float_text },
	['I'] = { "INT", op_int_text },
	['J'] = { "BININT", op_int },
	['K'] = { "BININT1", op_int },
	['L'] = { "LONG", op_int_text },
	['M'] = { "BININT2", op_int },
	['N'] = { "NONE", op_none },
	['P'] = { "PERSID", op_persid },
	['Q'] = { "BINPERSID", op_persid },
	['R'] = { "REDUCE", op_call },
	['S'] = { "STRING", op_string },
	['T'] = { "BINSTRING", op_str },
	['U'] = { "SHORT_BINSTRING", op_str },
	['V'] = { "UNICODE", op_unicode },
	['X'] = { "BINUNICODE", op_str },
	['a'] = { "APPEND", op_append },
	['b'] = { "BUILD", op_build },
	['c'] = { "GLOBAL", op_global },
	['d'] = { "DICT", op_from_mark },
	['}'] = { "EMPTY_DICT", op_empty },
	['e'] = { "APPENDS", op_appends },
	['g'] = { "GET", op_memo },
	['h'] = { "BINGET", op_memo },
	['i'] = { "INST", NULL },
	['j'] = { "LONG_BINGET", op_memo },
	['l'] = { "LIST", op_from_mark },
	[']'] = { "EMPTY_LIST", op_empty },
	['o'] = { "OBJ", NULL },
	['p'] = { "PUT", op_memo },
	['q'] = { "BINPUT", op_memo },
	['r'] = { "LONG_BINPUT", op_memo },
	['s'] = { "SETITEM", op_setitem },
	['t'] = { "TUPLE", op_from_mark },
	[')'] = { "EMPTY_TUPLE", op_empty },
	['u'] = { "SETITEMS", op_setitems },
	['G'] = { "BINFLOAT", op_float },
	['B'] = { "BINBYTES", op_bytes },
	['C'] = { "SHORT_BINBYTES", op_bytes },
	[0x80] = { "PROTO", op_proto },
	[0x81] = { "NEWOBJ", op_call },
	[0x82] = { "EXT1", NULL },
	[0x83] = { "EXT2", NULL },
	[0x84] = { "EXT4", NULL },
	[0x85] = { "TUPLE1", op_tuple_n },
	[0x86] = { "TUPLE2", op_tuple_n },
	[0x87] = { "TUPLE3", op_tuple_n },
	[0x88] = { "NEWTRUE", op_bool },
	[0x89] = { "NEWFALSE", op_bool },
	[0x8a] = { "LONG1", op_long },
	[0x8b] = { "LONG4", op_long },
	[0x8c] = { "SHORT_BINUNICODE", op_str },
	[0x8d] = { "BINUNICODE8", op_str },
	[0x8e] = { "BINBYTES8", op_bytes },
	[0x8f] = { "EMPTY_SET", op_empty },
	[0x90] = { "ADDITEMS", op_appends },
	[0x91] = { "FROZENSET", op_from_mark },
	[0x92] = { "NEWOBJ_EX", op_newobj_ex },
	[0x93] = { "STACK_GLOBAL", op_stack_global },
	[0x94] = { "MEMOIZE", op_memo },
	[0x95] = { "FRAME", op_frame },
	[0x96] = { "BYTEARRAY8", op_bytes },
	[0x97] = { "NEXT_BUFFER", NULL },
	[0x98] = { "READONLY_BUFFER", NULL },
};
// clang-format on

static int
step(struct vm *v)
{
	v->at = cur_off(&v->c);
	unsigned op = cur_u8(&v->c);
	if (v->c.failed)
		return fail(v, SE_ETRUNC, "ends before STOP");
	if (!ops[op].name)
		return fail(v, SE_EFORMAT, "unknown opcode 0x%02x", op);
	if (!ops[op].run)
		return fail(
		    v, SE_EUNSUP, "opcode %s is not supported", ops[op].name);
	int r = ops[op].run(v, op);
	if (v->c.failed)
		return fail(v, SE_ETRUNC, "ends inside %s", ops[op].name);
	return r;
}

int
pickle_load(struct pickle *p, const void *bytes, size_t len, struct err *e)
{
	*p = (struct pickle){ 0 };
	if (len > PICKLE_SIZE_MAX)
		len = PICKLE_SIZE_MAX;
	struct vm v = { .p = p, .c = cur_over(bytes, len), .e = e };
	int r = 0;
	while (!r && !v.stopped)
		r = step(&v);
	if (r == SE_ETRUNC && len == PICKLE_SIZE_MAX)
		r = err_set(e, SE_ELIMIT, "pickle of more than %zu bytes",
		    PICKLE_SIZE_MAX);
	p->len = cur_off(&v.c);
	free(v.stack);
	free(v.mark);
	free(v.memo);
	return r;
}

void
pickle_free(struct pickle *p)
{
	free(p->persid);
	arena_free(&p->arena);
	*p = (struct pickle){ 0 };
}
