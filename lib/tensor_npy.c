/*
 * NumPy arrays (.npy), versions 1.0, 2.0 and 3.0.
 * Source: NumPy Enhancement Proposal 1 and numpy/lib/format.py.
 *
 * The header is a Python literal; it is read by a scanner that knows only
 * strings, integers, booleans, tuples, lists and this one dict.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "cur.h"
#include "num.h"
#include "tensor_formats.h"

enum {
	PREFIX = 12,           /* magic, version, length of version 2 and 3 */
	HEADER_MAX = 64 << 10, /* numpy itself refuses more than 10000 */
	DEPTH_MAX = 8,         /* nested records */
	ITEM_MAX = 64 << 10,   /* the smallest buffer of tensor_blocks */
};

static const char magic[] = "\x93NUMPY";

/* The rest of the literal. It keeps its first failure. */
struct lit {
	const char *p, *end, *start;
	int code;
	struct err *e;
};

/* What a descr says, and how we call it. */
struct item {
	const struct dtype *known; /* NULL: opaque, named by `text` */
	struct buf text;
	uint64_t size;
	uint32_t word;
	bool swap;
};

struct header {
	struct item item;
	bool fortran;
	unsigned ndim;
	uint64_t shape[TENSOR_NDIM_MAX];
	unsigned seen; /* bit per key */
};

static int
probe(const unsigned char *head, size_t len)
{
	return len >= 8 && !memcmp(head, magic, 6) ? 100 : 0;
}

/* ---- the literal ------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static bool
fail(struct lit *l, int code, const char *fmt, ...)
{
	if (l->code)
		return false;
	char msg[300];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof msg, fmt, ap);
	va_end(ap);
	l->code = err_set(
	    l->e, code, "npy header, character %td: %s", l->p - l->start, msg);
	l->p = l->end;
	return false;
}

static char
peek(struct lit *l)
{
	while (l->p < l->end && (*l->p == ' ' || *l->p == '\n' ||
				    *l->p == '\t' || *l->p == '\r'))
		l->p++;
	return l->p < l->end ? *l->p : 0;
}

static bool
take(struct lit *l, char c)
{
	if (peek(l) != c || l->p == l->end)
		return false;
	l->p++;
	return true;
}

static bool
expect(struct lit *l, char c)
{
	if (take(l, c))
		return true;
	char found = peek(l);
	if (l->p == l->end)
		return fail(l, SE_EFORMAT, "expected '%c', found the end", c);
	return fail(l, SE_EFORMAT, "expected '%c', found 0x%02x", c,
	    (unsigned char)found);
}

/* The text between the quotes, as it stands: escapes are not undone. */
static bool
string(struct lit *l, struct str *out)
{
	char quote = peek(l);
	if (quote != '\'' && quote != '"')
		return fail(l, SE_EFORMAT, "expected a string");
	const char *from = ++l->p;
	while (l->p < l->end && *l->p != quote)
		l->p += *l->p == '\\' && l->end - l->p > 1 ? 2 : 1;
	if (l->p >= l->end)
		return fail(l, SE_EFORMAT, "string without an end");
	*out = (struct str){ from, (size_t)(l->p - from) };
	l->p++;
	return true;
}

/* Not negative; Python 2 wrote 10L. */
static bool
integer(struct lit *l, uint64_t *out)
{
	peek(l);
	const char *from = l->p;
	while (l->p < l->end && *l->p >= '0' && *l->p <= '9')
		l->p++;
	struct str s = { from, (size_t)(l->p - from) };
	if (!s.len)
		return fail(l, SE_EFORMAT, "expected a size of 0 or more");
	if (num_u64(s, 0, INT64_MAX, out, NULL))
		return fail(l, SE_EFORMAT, "size beyond 2^63");
	if (l->p < l->end && *l->p == 'L')
		l->p++;
	return true;
}

static bool
boolean(struct lit *l, bool *out)
{
	peek(l);
	struct str rest = { l->p, (size_t)(l->end - l->p) };
	*out = str_starts(rest, "True");
	if (!*out && !str_starts(rest, "False"))
		return fail(l, SE_EFORMAT, "expected True or False");
	l->p += *out ? 4 : 5;
	return true;
}

/* (), (3,), (3, 4): a lone (3) is no tuple. */
static bool
shape(struct lit *l, uint64_t *dim, unsigned *n)
{
	*n = 0;
	if (!expect(l, '('))
		return false;
	while (!take(l, ')')) {
		if (*n == TENSOR_NDIM_MAX)
			return fail(l, SE_ELIMIT, "more than %d dimensions",
			    TENSOR_NDIM_MAX);
		if (!integer(l, &dim[*n]))
			return false;
		++*n;
		if (!take(l, ',') && (*n == 1 || peek(l) != ')'))
			return expect(l, ',');
	}
	return true;
}

/* ---- element types ----------------------------------------------------- */

/* Those that other formats know too. */
static const struct {
	char kind;
	unsigned char size;
	const char *name;
} known[] = {
	{ 'b', 1, "bool" },
	{ 'i', 1, "i8" },
	{ 'i', 2, "i16" },
	{ 'i', 4, "i32" },
	{ 'i', 8, "i64" },
	{ 'u', 1, "u8" },
	{ 'u', 2, "u16" },
	{ 'u', 4, "u32" },
	{ 'u', 8, "u64" },
	{ 'f', 2, "f16" },
	{ 'f', 4, "f32" },
	{ 'f', 8, "f64" },
	{ 'c', 8, "c64" },
	{ 'c', 16, "c128" },
};

/* Opaque ones: the unit of byte order; 0: half of the size or all of it. */
static const struct {
	char kind;
	unsigned char scale, word;
} other[] = {
	{ 'S', 1, 1 },
	{ 'a', 1, 1 },
	{ 'V', 1, 1 },
	{ 'U', 4, 4 },
	{ 'm', 1, 8 },
	{ 'M', 1, 8 },
	/* long double, and what ml_dtypes makes up (float8 as f1, g2) */
	{ 'f', 1, 0 },
	{ 'c', 1, 0 },
	{ 'g', 1, 0 },
};

static bool
opaque_kind(struct lit *l, struct item *it, char kind, uint64_t n)
{
	for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
		if (other[i].kind != kind)
			continue;
		it->size = n * other[i].scale;
		it->word = other[i].word;
		if (!it->word)
			it->word = (uint32_t)(kind == 'c' ? n / 2 : n);
		if ((kind == 'm' || kind == 'M') && n != 8)
			break;
		if (it->word && it->size % it->word == 0)
			return true;
	}
	return fail(l, SE_EUNSUP, "element type %c%" PRIu64 " is not known",
	    kind >= ' ' && kind < 127 ? kind : '?', n);
}

/* [<>=|] kind size [unit] */
static bool
simple(struct lit *l, struct str s, struct item *it)
{
	struct str d = s;
	char order = '|';
	if (d.len && memchr("<>=|", d.p[0], 4)) {
		order = d.p[0];
		d.p++;
		d.len--;
	}
	if (!d.len)
		return fail(l, SE_EFORMAT, "empty element type");
	char kind = d.p[0];
	if (kind == 'O')
		return fail(l, SE_EUNSUP,
		    "object arrays are Python pickles and are not read");
	size_t n = 1;
	while (n < d.len && d.p[n] >= '0' && d.p[n] <= '9')
		n++;
	struct str unit = { d.p + n, d.len - n };
	uint64_t size;
	if (num_u64((struct str){ d.p + 1, n - 1 }, 0, UINT32_MAX, &size, NULL))
		return fail(
		    l, SE_EFORMAT, "expected a size in the element type");
	bool dated = kind == 'm' || kind == 'M';
	if (unit.len && (!dated || unit.p[0] != '[' || !str_ends(unit, "]")))
		return fail(l, SE_EFORMAT, "text behind the element type");
	it->swap = order == '>';
	buf_str(&it->text, d);
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].kind == kind && known[i].size == size) {
			it->known = dtype_find(str_c(known[i].name));
			it->size = it->known->size;
			it->word = it->known->word;
			return true;
		}
	if (!opaque_kind(l, it, kind, size))
		return false;
	/* numpy's f16 is a long double, ours a half: keep them apart. */
	const struct dtype *ours = dtype_find(d);
	if (ours && str_is(d, ours->name)) {
		it->text.len -= d.len;
		buf_puts(&it->text, "numpy-");
		buf_str(&it->text, d);
	}
	return true;
}

static bool descr(struct lit *l, unsigned depth, struct item *it);

/* A field's own text is kept with its byte order: ('a','<i4'). */
static void
put_type(struct buf *b, const struct item *it)
{
	if (it->text.len && it->text.p[0] != '[' && it->text.p[0] != '(') {
		buf_putc(b, '\'');
		buf_putc(b, it->word < 2 ? '|' : it->swap ? '>' : '<');
		buf_str(b, buf_view(&it->text));
		buf_putc(b, '\'');
	} else {
		buf_str(b, buf_view(&it->text));
	}
}

static void
put_quoted(struct buf *b, struct str s)
{
	char q = s.len && memchr(s.p, '\'', s.len) ? '"' : '\'';
	buf_putc(b, q);
	buf_str(b, s);
	buf_putc(b, q);
}

/* ",(2,3)" if a shape follows; its product goes into *n. */
static bool
subshape(struct lit *l, struct buf *b, uint64_t *n)
{
	uint64_t dim[TENSOR_NDIM_MAX];
	unsigned ndim;
	*n = 1;
	if (!shape(l, dim, &ndim))
		return false;
	buf_puts(b, ",(");
	for (unsigned i = 0; i < ndim; i++) {
		buf_printf(b, "%" PRIu64 ",", dim[i]);
		if (!num_mul(*n, dim[i], n))
			return fail(l, SE_EFORMAT, "element size overflows");
	}
	buf_putc(b, ')');
	return true;
}

static bool
grow(struct lit *l, struct item *it, uint64_t size, uint64_t n)
{
	uint64_t part;
	if (!num_mul(size, n, &part) || !num_add(it->size, part, &it->size) ||
	    it->size > ITEM_MAX)
		return fail(
		    l, SE_ELIMIT, "elements of more than %d bytes", ITEM_MAX);
	return true;
}

/* 'name' or ('title', 'name') */
static bool
field_name(struct lit *l, struct buf *b)
{
	struct str name, title;
	if (peek(l) != '(') {
		if (!string(l, &name))
			return false;
		put_quoted(b, name);
		return true;
	}
	if (!expect(l, '(') || !string(l, &title) || !expect(l, ',') ||
	    !string(l, &name))
		return false;
	take(l, ',');
	buf_putc(b, '(');
	put_quoted(b, title);
	buf_putc(b, ',');
	put_quoted(b, name);
	buf_putc(b, ')');
	return expect(l, ')');
}

/* (name, descr) or (name, descr, shape) */
static bool
field(struct lit *l, unsigned depth, struct item *it)
{
	struct buf *b = &it->text;
	struct item sub = { 0 };
	uint64_t n = 1;
	if (!expect(l, '('))
		return false;
	buf_putc(b, '(');
	bool ok =
	    field_name(l, b) && expect(l, ',') && descr(l, depth + 1, &sub);
	if (ok) {
		buf_putc(b, ',');
		put_type(b, &sub);
		if (take(l, ',') && peek(l) == '(')
			ok = subshape(l, b, &n);
		take(l, ',');
		ok = ok && expect(l, ')') && grow(l, it, sub.size, n);
		buf_putc(b, ')');
	}
	buf_free(&sub.text);
	return ok;
}

/* (descr, shape) */
static bool
subarray(struct lit *l, unsigned depth, struct item *it)
{
	struct item sub = { 0 };
	uint64_t n;
	bool ok = expect(l, '(') && descr(l, depth + 1, &sub) && expect(l, ',');
	if (ok) {
		buf_putc(&it->text, '(');
		put_type(&it->text, &sub);
		ok = subshape(l, &it->text, &n);
		take(l, ',');
		ok = ok && expect(l, ')') && grow(l, it, sub.size, n);
		buf_putc(&it->text, ')');
	}
	buf_free(&sub.text);
	return ok;
}

/* The depth limit bounds the recursion. */
static bool
descr(struct lit *l, unsigned depth, struct item *it)
{
	struct str s;
	if (depth > DEPTH_MAX)
		return fail(
		    l, SE_ELIMIT, "records nested deeper than %d", DEPTH_MAX);
	it->word = 1;
	char c = peek(l);
	if (c == '(')
		return subarray(l, depth, it);
	if (c != '[')
		return string(l, &s) && simple(l, s, it);
	expect(l, '[');
	buf_putc(&it->text, '[');
	for (bool first = true; !take(l, ']'); first = false) {
		if (!first)
			buf_putc(&it->text, ',');
		if (!field(l, depth, it))
			return false;
		if (!take(l, ',') && peek(l) != ']')
			return expect(l, ',');
	}
	buf_putc(&it->text, ']');
	return true;
}

/* ---- the header -------------------------------------------------------- */

static bool
value_of(struct lit *l, unsigned key, struct header *h)
{
	switch (key) {
	case 0:
		return descr(l, 0, &h->item);
	case 1:
		return boolean(l, &h->fortran);
	default:
		return shape(l, h->shape, &h->ndim);
	}
}

static bool
parse(struct lit *l, struct header *h)
{
	static const char *const names[] = { "descr", "fortran_order",
		"shape" };
	enum { N = sizeof names / sizeof *names };
	if (!expect(l, '{'))
		return false;
	while (!take(l, '}')) {
		struct str key;
		if (!string(l, &key))
			return false;
		unsigned k = 0;
		while (k < N && !str_is(key, names[k]))
			k++;
		if (k == N)
			return fail(l, SE_EFORMAT,
			    "expected only the keys "
			    "descr, fortran_order and shape");
		if (h->seen & 1u << k)
			return fail(
			    l, SE_EFORMAT, "key %s appears twice", names[k]);
		h->seen |= 1u << k;
		if (!expect(l, ':') || !value_of(l, k, h))
			return false;
		if (!take(l, ',') && peek(l) != '}')
			return expect(l, ',');
	}
	for (unsigned k = 0; k < N; k++)
		if (!(h->seen & 1u << k))
			return fail(
			    l, SE_EFORMAT, "key %s is missing", names[k]);
	if (peek(l) || l->p < l->end)
		return fail(l, SE_EFORMAT, "text behind the header");
	if (h->item.size > ITEM_MAX)
		return fail(
		    l, SE_ELIMIT, "elements of more than %d bytes", ITEM_MAX);
	return true;
}

static int
in_header(int r, struct err *e)
{
	if (r)
		err_prefix(e, "npy header");
	return r;
}

/* Version and length; *at is where the text starts. */
static int
read_prefix(struct src *src, size_t *at, size_t *len, struct err *e)
{
	unsigned char head[PREFIX];
	int r = src_read_at(src, 0, head, 10, e);
	if (r)
		return in_header(r, e);
	if (memcmp(head, magic, 6))
		return err_set(e, SE_EFORMAT, "expected the npy magic");
	unsigned version = head[6];
	if (version < 1 || version > 3 || head[7])
		return err_set(e, SE_EUNSUP, "npy version %u.%u is not known",
		    head[6], head[7]);
	*at = version == 1 ? 10 : PREFIX;
	r = src_read_at(src, 10, head + 10, *at - 10, e);
	if (r)
		return in_header(r, e);
	struct cur c = cur_over(head + 8, *at - 8);
	*len = version == 1 ? cur_le16(&c) : cur_le32(&c);
	if (*len > HEADER_MAX)
		return err_set(e, SE_ELIMIT,
		    "npy header of %zu bytes, at most %d", *len, HEADER_MAX);
	return 0;
}

/* Strides of Fortran order and the size in all; false on overflow. */
static bool
layout(const struct header *h, int64_t *stride, uint64_t *bytes)
{
	*bytes = 0;
	for (unsigned i = 0; i < h->ndim; i++)
		if (h->shape[i] == 0)
			return true;
	uint64_t step = 1;
	for (unsigned i = 0; i < h->ndim; i++) {
		stride[i] = (int64_t)step;
		if (!num_mul(step, h->shape[i], &step) || step > INT64_MAX)
			return false;
	}
	return num_mul(step, h->item.size, bytes);
}

static int
add(struct tensor_set *set, struct src *src, uint64_t off,
    const struct header *h, struct err *e)
{
	struct arena *a = &set->arena;
	struct tensor *t = tensor_add(set, e);
	if (!t)
		return SE_ENOMEM;
	const struct item *it = &h->item;
	t->dtype = it->known ? it->known
			     : dtype_opaque(a, buf_view(&it->text), 1,
				   (uint32_t)it->size, it->word);
	uint64_t *dim = arena_array(a, h->ndim, sizeof *dim);
	int64_t *stride = arena_array(a, h->ndim, sizeof *stride);
	if (!t->dtype || !dim || !stride || it->text.failed)
		return err_mem(e);
	memcpy(dim, h->shape, h->ndim * sizeof *dim);
	if (!layout(h, stride, &t->limit))
		return err_set(
		    e, SE_EFORMAT, "npy shape: the number of bytes overflows");
	t->src = src;
	t->off = off;
	t->ndim = h->ndim;
	t->shape = dim;
	t->stride = h->fortran ? stride : NULL;
	t->flags = it->swap ? TENSOR_SWAP : 0;
	set->end = off + t->limit;
	return 0;
}

static int
open_set(struct tensor_set *set, struct src *src,
    const struct tensor_hints *hints, struct err *e)
{
	size_t at = 0, len = 0;
	int r = read_prefix(src, &at, &len, e);
	if (r)
		return r;
	char *text = arena_alloc(&set->arena, len);
	if (!text)
		return err_mem(e);
	r = src_read_at(src, at, text, len, e);
	if (r)
		return in_header(r, e);
	if (memchr(text, 0, len))
		return err_set(e, SE_EFORMAT, "npy header: a NUL byte");
	struct lit l = { text, text + len, text, 0, e };
	struct header h = { 0 };
	r = parse(&l, &h) ? add(set, src, at + len, &h, e) : l.code;
	buf_free(&h.item.text);
	return r;
}

const struct tensor_format tensor_npy = {
	.name = "npy",
	.what = "NumPy array",
	.probe = probe,
	.open = open_set,
	.selfends = true,
};
