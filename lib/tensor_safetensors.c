/*
 * safetensors: a length, a JSON header, the data.
 * Source: the format section of the safetensors README and
 * safetensors/src/tensor.rs (Metadata::validate).
 */
#include <inttypes.h>
#include <stdlib.h>

#include "cur.h"
#include "esc.h"
#include "json.h"
#include "sort.h"
#include "tensor_formats.h"

/* The reference reader's own limit. */
#define HEADER_MAX 100000000u

// clang-format off
static const struct {
	const char *theirs, *ours;
} types[] = {
	{ "F32", "f32" }, { "BF16", "bf16" }, { "F16", "f16" },
	{ "F64", "f64" }, { "I64", "i64" }, { "I32", "i32" },
	{ "I16", "i16" }, { "I8", "i8" }, { "U64", "u64" }, { "U32", "u32" },
	{ "U16", "u16" }, { "U8", "u8" }, { "BOOL", "bool" },
	{ "F8_E4M3", "e4m3" }, { "F8_E5M2", "e5m2" }, { "F8_E8M0", "e8m0" },
	{ "F8_E4M3FNUZ", "e4m3fnuz" }, { "F8_E5M2FNUZ", "e5m2fnuz" },
	{ "C64", "c64" }, { "F4", "e2m1" }, { "F6_E2M3", "e2m3" },
	{ "F6_E3M2", "e3m2" },
};
// clang-format on
enum { NTYPES = sizeof types / sizeof *types };

struct reader {
	struct tensor_set *set;
	struct src *src;
	struct json j;
	uint64_t base;                    /* of the data */
	size_t first;                     /* entry of this file */
	const struct dtype *type[NTYPES]; /* looked up once */
	bool metadata;                    /* seen */
};

/* What an entry says, and a bit for each that it did. */
enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4 };

struct entry {
	unsigned seen;
	const struct dtype *dtype;
	unsigned ndim;
	uint64_t shape[TENSOR_NDIM_MAX], offset[2];
};

static int
probe(const unsigned char *head, size_t len)
{
	struct cur c = cur_over(head, len);
	uint64_t n = cur_le64(&c);
	if (n < 2 || n > HEADER_MAX)
		return 0;
	uint8_t b = cur_u8(&c);
	if (b == '{')
		return 95;
	/* Some writers begin the header with white space. */
	while (!c.failed && (b == ' ' || b == '\n' || b == '\t' || b == '\r'))
		b = cur_u8(&c);
	return b == '{' ? 50 : 0;
}

static bool
read_type(struct reader *r, struct entry *en)
{
	struct str s;
	if (!json_expect(&r->j, JSON_STRING, &s))
		return false;
	for (size_t i = 0; i < NTYPES; i++)
		if (str_is(s, types[i].theirs)) {
			en->dtype = r->type[i];
			return true;
		}
	struct err e = { 0 };
	err_set(&e, SE_EUNSUP, "not known");
	esc_prefix(&e, "type", s);
	return json_fail(&r->j, SE_EUNSUP, "%s", e.msg);
}

static bool
read_numbers(struct json *j, uint64_t *to, unsigned max, unsigned *n)
{
	*n = 0;
	json_expect(j, JSON_ARRAY, NULL);
	while (json_element(j)) {
		if (*n == max)
			return json_fail(
			    j, SE_ELIMIT, "expected at most %u numbers", max);
		if (!json_u64(j, UINT64_MAX, &to[(*n)++]))
			return false;
	}
	return !j->err.code;
}

static bool
read_field(struct reader *r, struct str key, struct entry *en)
{
	struct json *j = &r->j;
	unsigned n, bit = str_is(key, "dtype")          ? DTYPE
			  : str_is(key, "shape")        ? SHAPE
			  : str_is(key, "data_offsets") ? OFFSETS
							: 0;
	if (en->seen & bit)
		return json_fail(
		    j, SE_EFORMAT, "key \"%.*s\" appears twice", STR_ARG(key));
	en->seen |= bit;
	switch (bit) {
	case DTYPE:
		return read_type(r, en);
	case SHAPE:
		return read_numbers(j, en->shape, TENSOR_NDIM_MAX, &en->ndim);
	case OFFSETS:
		if (!read_numbers(j, en->offset, 2, &n))
			return false;
		return n == 2 ||
		       json_fail(j, SE_EFORMAT, "expected two data_offsets");
	default:
		/* The reference reader ignores what it does not know. */
		json_skip(j);
		return !j->err.code;
	}
}

static bool
add(struct reader *r, struct str name, const struct entry *en)
{
	struct json *j = &r->j;
	if (en->seen != (DTYPE | SHAPE | OFFSETS))
		return json_fail(j, SE_EFORMAT, "%s is missing",
		    !(en->seen & DTYPE)   ? "dtype"
		    : !(en->seen & SHAPE) ? "shape"
					  : "data_offsets");
	if (en->offset[1] < en->offset[0])
		return json_fail(j, SE_EFORMAT, "data ends before it starts");
	if (en->offset[1] > INT64_MAX)
		return json_fail(j, SE_EFORMAT, "data offset beyond 2^63");
	struct tensor *t = tensor_add(r->set, &j->err);
	if (!t)
		return false;
	uint64_t *dim = arena_array(&r->set->arena, en->ndim, sizeof *dim);
	if (!dim)
		return json_fail(j, SE_ENOMEM, "out of memory");
	memcpy(dim, en->shape, en->ndim * sizeof *dim);
	t->name = name;
	t->dtype = en->dtype;
	t->ndim = en->ndim;
	t->shape = dim;
	t->src = r->src;
	t->off = r->base + en->offset[0];
	t->limit = en->offset[1] - en->offset[0];
	return true;
}

static bool
read_entry(struct reader *r, struct str name)
{
	struct entry en;
	struct str key;
	en.seen = 0;
	json_expect(&r->j, JSON_OBJECT, NULL);
	while (json_member(&r->j, &key) && read_field(r, key, &en))
		;
	if (!r->j.err.code && add(r, name, &en))
		return true;
	if (r->j.err.code)
		esc_prefix(&r->j.err, "tensor", name);
	return false;
}

/* Strings only; they become scalars kv:KEY. */
static bool
read_metadata(struct reader *r)
{
	struct json *j = &r->j;
	struct str key, value;
	if (r->metadata)
		return json_fail(j, SE_EFORMAT, "__metadata__ appears twice");
	r->metadata = true;
	json_expect(j, JSON_OBJECT, NULL);
	while (json_member(j, &key)) {
		if (!json_expect(j, JSON_STRING, &value)) {
			esc_prefix(&j->err, "__metadata__", key);
			return false;
		}
		struct buf name = { 0 };
		buf_puts(&name, "kv:");
		buf_str(&name, key);
		int code = name.failed ? err_mem(&j->err)
				       : tensor_add_scalar(r->set, TENSOR_META,
					     buf_view(&name), STR_LIT("str"),
					     value, &j->err);
		buf_free(&name);
		if (code)
			return false;
	}
	return !j->err.code;
}

static int
by_offset(const void *a, const void *b)
{
	const struct tensor *x = *(struct tensor *const *)a;
	const struct tensor *y = *(struct tensor *const *)b;
	if (x->off != y->off)
		return x->off < y->off ? -1 : 1;
	return (x->limit > y->limit) - (x->limit < y->limit);
}

static int
misplaced(
    const struct reader *r, const struct tensor *t, uint64_t end, struct err *e)
{
	/* A name given twice is the usual reason: say that instead. */
	int code = tensor_check_unique(r->set, e);
	if (code)
		return code;
	code = err_set(e, SE_EFORMAT,
	    "data starts at %" PRIu64 ", the data before it ends at %" PRIu64,
	    t->off - r->base, end - r->base);
	esc_prefix(e, "tensor", t->name);
	return code;
}

/* Data must follow one another without holes or overlaps. */
static int
follow(struct reader *r, const struct tensor *t, struct err *e)
{
	struct tensor_set *set = r->set;
	if (t->off != set->end)
		return misplaced(r, t, set->end, e);
	set->end += t->limit;
	return 0;
}

static bool
is_sorted(const struct reader *r)
{
	const struct tensor *last = NULL;
	for (size_t i = r->first; i < r->set->n; i++) {
		const struct tensor *t = &r->set->t[i];
		if (t->flags & TENSOR_SCALAR)
			continue;
		if (last && by_offset(&last, &t) > 0)
			return false;
		last = t;
	}
	return true;
}

static int
check_sorted(struct reader *r, struct err *e)
{
	int code = 0;
	for (size_t i = r->first; !code && i < r->set->n; i++)
		if (!(r->set->t[i].flags & TENSOR_SCALAR))
			code = follow(r, &r->set->t[i], e);
	return code;
}

static int
check_unsorted(struct reader *r, struct err *e)
{
	struct tensor_set *set = r->set;
	struct tensor **order = malloc((set->n - r->first + 1) * sizeof *order);
	if (!order)
		return err_mem(e);
	size_t n = 0;
	for (size_t i = r->first; i < set->n; i++)
		if (!(set->t[i].flags & TENSOR_SCALAR))
			order[n++] = &set->t[i];
	sort_array(order, n, sizeof *order, by_offset);
	int code = 0;
	for (size_t i = 0; !code && i < n; i++)
		code = follow(r, order[i], e);
	free(order);
	return code;
}

static int
check_tiling(struct reader *r, struct err *e)
{
	r->set->end = r->base;
	return is_sorted(r) ? check_sorted(r, e) : check_unsorted(r, e);
}

static int
parse(struct reader *r, struct str text, struct err *e)
{
	struct str key;
	json_init(&r->j, text, &r->set->arena, JSON_ANY_KEYS);
	json_expect(&r->j, JSON_OBJECT, NULL);
	while (json_member(&r->j, &key))
		if (str_is(key, "__metadata__") ? !read_metadata(r)
						: !read_entry(r, key))
			break;
	int code = json_end(&r->j, e);
	if (code) {
		err_prefix(e, "safetensors header");
		/* The header is whole: its text ends early, not the file. */
		return code == SE_ETRUNC ? SE_EFORMAT : code;
	}
	if (text.p[0] != '{')
		code = tensor_note(
		    r->set, e, "white space before the safetensors header");
	return code ? code : check_tiling(r, e);
}

static int
open_set(struct tensor_set *set, struct src *src,
    const struct tensor_hints *hints, struct err *e)
{
	unsigned char head[8];
	int code = src_read_at(src, 0, head, sizeof head, e);
	if (code) {
		err_prefix(e, "safetensors header length");
		return code;
	}
	struct cur c = cur_over(head, sizeof head);
	uint64_t n = cur_le64(&c), size = src_size(src);
	if (n > HEADER_MAX)
		return err_set(e, SE_ELIMIT,
		    "safetensors header of %" PRIu64 " bytes, at most %u", n,
		    HEADER_MAX);
	if (n < 2)
		return err_set(e, SE_EFORMAT,
		    "safetensors header of %" PRIu64 " bytes", n);
	if (size != SRC_UNKNOWN && n > size - 8)
		return err_set(e, SE_ETRUNC,
		    "safetensors header: need %" PRIu64
		    " bytes at offset 8, the input ends at %" PRIu64,
		    n, size);
	char *text = arena_alloc(&set->arena, (size_t)n);
	if (!text)
		return err_mem(e);
	code = src_read_at(src, 8, text, (size_t)n, e);
	if (code) {
		err_prefix(e, "safetensors header");
		return code;
	}
	struct reader r = {
		.set = set, .src = src, .base = 8 + n, .first = set->n
	};
	for (size_t i = 0; i < NTYPES; i++)
		r.type[i] = dtype_find(str_c(types[i].ours));
	return parse(&r, (struct str){ text, (size_t)n }, e);
}

const struct tensor_format tensor_safetensors = {
	.name = "safetensors",
	.what = "safetensors file",
	.probe = probe,
	.open = open_set,
	.selfends = true,
	.exact = true,
};
