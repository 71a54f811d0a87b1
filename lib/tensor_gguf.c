/*
 * GGUF, versions 2 and 3: a header of keys and values, tensor descriptions,
 * data at a multiple of the alignment.
 * Source: docs/gguf.md and src/gguf.cpp of ggml; block sizes as
 * ggml-common.h compiles to.
 *
 * Keys become scalars kv:KEY. Arrays and long strings are given by the hash
 * of their bytes in the file, which are little-endian and self-delimiting.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "cur.h"
#include "esc.h"
#include "hash.h"
#include "num.h"
#include "tensor_formats.h"

enum {
	WINDOW = 32 << 10,   /* read ahead, less than SRC_BACK */
	TEXT_MAX = 64 << 10, /* strings longer are given by their hash */
	NAME_MAX_LEN = 64,   /* GGML_MAX_NAME, with its NUL */
	NDIM = 4,            /* GGML_MAX_DIMS */
	ALIGN = 32,          /* without general.alignment */
	/* Least bytes of a key with its value and of a tensor description. */
	KV_LEAST = 8 + 1 + 4 + 1,
	INFO_LEAST = 8 + 4 + 4 + 8,
};

enum kv_type { T_BOOL = 7, T_STRING = 8, T_ARRAY = 9, T_COUNT = 13 };

static const struct {
	const char *name;
	unsigned size; /* 0: has a length of its own */
	char kind;     /* unsigned, integer, float, bool */
} kv_types[T_COUNT] = {
	{ "u8", 1, 'u' },
	{ "i8", 1, 'i' },
	{ "u16", 2, 'u' },
	{ "i16", 2, 'i' },
	{ "u32", 4, 'u' },
	{ "i32", 4, 'i' },
	{ "f32", 4, 'f' },
	{ "bool", 1, 'b' },
	{ "str", 0, 0 },
	{ "array", 0, 0 },
	{ "u64", 8, 'u' },
	{ "i64", 8, 'i' },
	{ "f64", 8, 'f' },
};

// clang-format off
/* By id; those left out were removed from ggml. Block 1: a plain type. */
static const struct {
	const char *name;
	uint32_t block, size;
} types[] = {
	[0] = { "f32", 1, 4 },		[1] = { "f16", 1, 2 },
	[2] = { "q4_0", 32, 18 },	[3] = { "q4_1", 32, 20 },
	[6] = { "q5_0", 32, 22 },	[7] = { "q5_1", 32, 24 },
	[8] = { "q8_0", 32, 34 },	[9] = { "q8_1", 32, 36 },
	[10] = { "q2_k", 256, 84 },	[11] = { "q3_k", 256, 110 },
	[12] = { "q4_k", 256, 144 },	[13] = { "q5_k", 256, 176 },
	[14] = { "q6_k", 256, 210 },	[15] = { "q8_k", 256, 292 },
	[16] = { "iq2_xxs", 256, 66 },	[17] = { "iq2_xs", 256, 74 },
	[18] = { "iq3_xxs", 256, 98 },	[19] = { "iq1_s", 256, 50 },
	[20] = { "iq4_nl", 32, 18 },	[21] = { "iq3_s", 256, 110 },
	[22] = { "iq2_s", 256, 82 },	[23] = { "iq4_xs", 256, 136 },
	[24] = { "i8", 1, 1 },		[25] = { "i16", 1, 2 },
	[26] = { "i32", 1, 4 },		[27] = { "i64", 1, 8 },
	[28] = { "f64", 1, 8 },		[29] = { "iq1_m", 256, 56 },
	[30] = { "bf16", 1, 2 },	[34] = { "tq1_0", 256, 54 },
	[35] = { "tq2_0", 256, 66 },	[39] = { "mxfp4", 32, 17 },
	[40] = { "nvfp4", 64, 36 },	[41] = { "q1_0", 128, 18 },
	[42] = { "q2_0", 64, 18 },
};
// clang-format on
enum { NTYPES = sizeof types / sizeof *types };

struct reader {
	struct tensor_set *set;
	struct src *src;
	struct err *e;
	int code;       /* first failure; then everything reads as zeros */
	uint64_t off;   /* of window[at] in the source */
	size_t at, len; /* used and valid bytes of the window */
	uint64_t align;
	const struct dtype *type[NTYPES];
	struct buf name, text;
	unsigned char window[WINDOW];
};

static int
probe(const unsigned char *head, size_t len)
{
	return len >= 8 && !memcmp(head, "GGUF", 4) ? 100 : 0;
}

/* ---- bytes ----------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static bool
fail(struct reader *g, int code, const char *fmt, ...)
{
	if (g->code)
		return false;
	char msg[300];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof msg, fmt, ap);
	va_end(ap);
	g->code = err_set(
	    g->e, code, "GGUF header, offset %" PRIu64 ": %s", g->off, msg);
	return false;
}

/* The next 1 to n bytes, in *got, or NULL and a failure. */
static const unsigned char *
some(struct reader *g, uint64_t n, size_t *got)
{
	*got = 0;
	if (g->code)
		return NULL;
	if (g->at == g->len) {
		g->at = 0;
		g->code = src_read_some(
		    g->src, g->off, g->window, WINDOW, &g->len, g->e);
		if (!g->code && !g->len)
			fail(g, SE_ETRUNC,
			    "need %" PRIu64 " bytes, the input ends", n);
		if (g->code)
			return NULL;
	}
	*got = n < g->len - g->at ? (size_t)n : g->len - g->at;
	const unsigned char *p = g->window + g->at;
	g->at += *got;
	g->off += *got;
	return p;
}

/* Zeros after a failure. */
static uint64_t
number(struct reader *g, unsigned size)
{
	unsigned char b[8] = { 0 };
	size_t got;
	for (size_t i = 0; i < size; i += got) {
		const unsigned char *p = some(g, size - i, &got);
		if (!p)
			return 0;
		memcpy(b + i, p, got);
	}
	struct cur c = cur_over(b, sizeof b);
	return cur_le64(&c);
}

/* A count of things of `least` bytes each: are there so many bytes? */
static bool
plausible(struct reader *g, uint64_t n, uint64_t least)
{
	uint64_t size = src_size(g->src);
	if (g->code)
		return false;
	if (size == SRC_UNKNOWN || n <= (size - g->off) / least)
		return true;
	return fail(g, SE_ETRUNC,
	    "%" PRIu64 " items of %" PRIu64
	    " bytes or more, the input ends at %" PRIu64,
	    n, least, size);
}

/* Exactly n bytes, n at most TENSOR_NAME_MAX, behind what `to` has. */
static bool
text(struct reader *g, struct buf *to, uint64_t n)
{
	size_t got;
	if (!plausible(g, n, 1))
		return false;
	for (; n; n -= got) {
		const unsigned char *p = some(g, n, &got);
		if (!p)
			return false;
		buf_add(to, p, got);
	}
	if (to->failed)
		g->code = err_mem(g->e);
	return !g->code;
}

static bool
hash_bytes(struct reader *g, struct hash *h, uint64_t n)
{
	size_t got;
	if (!plausible(g, n, 1))
		return false;
	for (; n; n -= got) {
		const unsigned char *p = some(g, n, &got);
		if (!p)
			return false;
		hash_add(h, p, got);
	}
	return true;
}

/* ---- keys and values --------------------------------------------------- */

static int64_t
signed_of(uint64_t v, unsigned size)
{
	unsigned shift = 64 - 8 * size;
	return (int64_t)(v << shift) >> shift;
}

static void
put_float(struct buf *b, uint64_t bits, unsigned size)
{
	uint32_t low = (uint32_t)bits;
	double d;
	float f;
	memcpy(&d, &bits, sizeof d);
	memcpy(&f, &low, sizeof f);
	if (size == 8)
		num_put_f64(b, d);
	else
		num_put_f32(b, f);
}

/* Appends the number that is next, as text. */
static void
put_value(struct reader *g, unsigned type)
{
	unsigned size = kv_types[type].size;
	uint64_t v = number(g, size);
	switch (kv_types[type].kind) {
	case 'b':
		if (v > 1)
			fail(g, SE_EFORMAT, "bool %" PRIu64, v);
		buf_puts(&g->text, v ? "true" : "false");
		break;
	case 'f':
		put_float(&g->text, v, size);
		break;
	case 'i':
		buf_printf(&g->text, "%" PRId64, signed_of(v, size));
		break;
	default:
		num_put_u64(&g->text, v);
	}
}

static void
put_hash(struct buf *b, const struct hash *h)
{
	buf_puts(b, "xxh3-128:");
	u128_put(b, hash_value(h));
}

static bool
hash_strings(struct reader *g, struct hash *h, uint64_t n)
{
	while (n-- && !g->code) {
		uint64_t len = number(g, 8);
		unsigned char b[8];
		for (unsigned i = 0; i < 8; i++)
			b[i] = (unsigned char)(len >> 8 * i);
		hash_add(h, b, sizeof b);
		if (!hash_bytes(g, h, len))
			return false;
	}
	return !g->code;
}

static bool
put_array(struct reader *g, struct buf *vtype)
{
	uint32_t type = (uint32_t)number(g, 4);
	uint64_t n = number(g, 8), bytes = 0;
	if (type >= T_COUNT || type == T_ARRAY)
		return fail(g, SE_EUNSUP, "array of type %" PRIu32, type);
	unsigned size = kv_types[type].size;
	buf_printf(vtype, "%s[%" PRIu64 "]", kv_types[type].name, n);
	if (!plausible(g, n, size ? size : 8))
		return false;
	if (!num_mul(n, size, &bytes))
		return fail(g, SE_EFORMAT, "array size overflows");
	struct hash *h = hash_new();
	if (!h)
		return fail(g, SE_ENOMEM, "out of memory");
	bool ok =
	    type == T_STRING ? hash_strings(g, h, n) : hash_bytes(g, h, bytes);
	put_hash(&g->text, h);
	hash_free(h);
	return ok;
}

/* Short ones as they are. */
static bool
put_string(struct reader *g, struct buf *vtype)
{
	uint64_t len = number(g, 8);
	if (len <= TEXT_MAX)
		return text(g, &g->text, len);
	struct hash *h = hash_new();
	if (!h)
		return fail(g, SE_ENOMEM, "out of memory");
	buf_printf(vtype, "[%" PRIu64 "]", len);
	bool ok = hash_bytes(g, h, len);
	put_hash(&g->text, h);
	hash_free(h);
	return ok;
}

static bool
set_align(struct reader *g, uint32_t type)
{
	uint64_t v = 0;
	if (type != 4)
		return fail(g, SE_EFORMAT,
		    "general.alignment must be u32, is of type %" PRIu32, type);
	if (num_u64(buf_view(&g->text), 1, UINT32_MAX, &v, NULL) || v & (v - 1))
		return fail(g, SE_EFORMAT,
		    "general.alignment %.*s is no power of two",
		    STR_ARG(buf_view(&g->text)));
	g->align = v;
	return true;
}

/* A length and so many bytes behind what g->name has. */
static bool
read_name(struct reader *g, uint64_t least, uint64_t max)
{
	uint64_t len = number(g, 8);
	if (!g->code && (len < least || len > max))
		return fail(g, SE_EFORMAT,
		    "name of %" PRIu64 " bytes, expected %" PRIu64
		    " to %" PRIu64,
		    len, least, max);
	return text(g, &g->name, len);
}

static bool
read_kv(struct reader *g)
{
	struct buf vtype = { 0 };
	g->name.len = g->text.len = 0;
	buf_puts(&g->name, "kv:");
	if (!read_name(g, 1, TENSOR_NAME_MAX - 3))
		return false;
	uint32_t type = (uint32_t)number(g, 4);
	if (type >= T_COUNT)
		return fail(g, SE_EUNSUP, "value of type %" PRIu32, type);
	bool ok = true;
	if (type == T_ARRAY) {
		ok = put_array(g, &vtype);
	} else {
		buf_puts(&vtype, kv_types[type].name);
		if (type == T_STRING)
			ok = put_string(g, &vtype);
		else
			put_value(g, type);
	}
	if (ok && str_is(buf_view(&g->name), "kv:general.alignment"))
		ok = set_align(g, type);
	if (ok && !g->code)
		g->code =
		    tensor_add_scalar(g->set, TENSOR_META, buf_view(&g->name),
			buf_view(&vtype), buf_view(&g->text), g->e);
	buf_free(&vtype);
	return !g->code;
}

/* ---- tensors ----------------------------------------------------------- */

static const struct dtype *
type_of(struct reader *g, uint32_t id)
{
	if (id >= NTYPES || !types[id].name) {
		fail(g, SE_EUNSUP, "tensor of type %" PRIu32, id);
		return NULL;
	}
	struct str name = str_c(types[id].name);
	if (!g->type[id])
		g->type[id] = types[id].block == 1
				  ? dtype_find(name)
				  : dtype_opaque(&g->set->arena, name,
					types[id].block, types[id].size, 1);
	if (!g->type[id])
		fail(g, SE_ENOMEM, "out of memory");
	return g->type[id];
}

/* ne[] has the innermost dimension first, ours the outermost. */
static bool
read_dims(struct reader *g, struct tensor *t, uint64_t *count)
{
	uint32_t n = (uint32_t)number(g, 4);
	uint64_t ne[NDIM];
	if (n > NDIM)
		return fail(g, SE_EFORMAT, "%" PRIu32 " dimensions, at most %d",
		    n, NDIM);
	uint64_t *shape = arena_array(&g->set->arena, n, sizeof *shape);
	if (!shape)
		return fail(g, SE_ENOMEM, "out of memory");
	bool zero = false, fits = true;
	*count = 1;
	for (uint32_t i = 0; i < n; i++) {
		ne[i] = number(g, 8);
		if (ne[i] > INT64_MAX)
			return fail(g, SE_EFORMAT, "negative dimension");
		shape[n - 1 - i] = ne[i];
		zero = zero || ne[i] == 0;
		fits = fits && num_mul(*count, ne[i], count);
	}
	if (zero)
		*count = 0;
	else if (!fits || *count > INT64_MAX)
		return fail(g, SE_EFORMAT, "number of elements overflows");
	t->ndim = n;
	t->shape = shape;
	return !g->code;
}

/* Reads one description; *end is where the data so far ends. */
static bool
read_info(struct reader *g, uint64_t *end)
{
	uint64_t count = 0;
	g->name.len = 0;
	if (!read_name(g, 0, NAME_MAX_LEN - 1))
		return false;
	struct tensor *t = tensor_add(g->set, g->e);
	if (!t)
		return fail(g, SE_ENOMEM, "out of memory");
	t->src = g->src;
	t->name = arena_str(&g->set->arena, buf_view(&g->name));
	if (!t->name.p)
		return fail(g, SE_ENOMEM, "out of memory");
	if (!read_dims(g, t, &count))
		return false;
	uint32_t id = (uint32_t)number(g, 4);
	t->off = number(g, 8);
	if (g->code)
		return false;
	t->dtype = type_of(g, id);
	if (!t->dtype)
		return false;
	uint64_t row = t->ndim ? t->shape[t->ndim - 1] : 1;
	if (row % t->dtype->block)
		return fail(g, SE_EFORMAT,
		    "rows of %" PRIu64 " elements, %s needs a multiple of "
		    "%" PRIu32,
		    row, t->dtype->name, t->dtype->block);
	if (!dtype_bytes(t->dtype, count, &t->limit) ||
	    t->limit > INT64_MAX - g->align)
		return fail(g, SE_EFORMAT, "tensor size overflows");
	if (t->off != *end)
		return fail(g, SE_EFORMAT,
		    "tensor data at %" PRIu64 ", expected at %" PRIu64, t->off,
		    *end);
	uint64_t padded = (t->limit + g->align - 1) & ~(g->align - 1);
	if (!num_add(*end, padded, end) || *end > INT64_MAX)
		return fail(g, SE_EFORMAT, "data size overflows");
	return true;
}

/* Offsets count from `base`; the last padding may be missing. */
static int
place(struct reader *g, size_t first, uint64_t end)
{
	struct tensor_set *set = g->set;
	uint64_t base, last = g->off, size = src_size(g->src);
	if (!num_add(g->off, g->align - 1, &base))
		return err_set(g->e, SE_EFORMAT, "GGUF data offset overflows");
	base &= ~(g->align - 1);
	for (size_t i = first; i < set->n; i++) {
		struct tensor *t = &set->t[i];
		if (!num_add(t->off, base, &t->off) ||
		    t->limit > INT64_MAX - t->off)
			return err_set(
			    g->e, SE_EFORMAT, "GGUF data offset overflows");
		last = t->off + t->limit;
	}
	set->end = base + end;
	if (size >= set->end || size < last)
		return 0;
	set->end = size;
	return tensor_note(set, g->e, "no padding behind the last GGUF tensor");
}

static int
read_all(struct reader *g)
{
	char magic[4];
	uint32_t m = (uint32_t)number(g, 4), version = (uint32_t)number(g, 4);
	for (unsigned i = 0; i < 4; i++)
		magic[i] = (char)(m >> 8 * i);
	if (!g->code && memcmp(magic, "GGUF", 4))
		fail(g, SE_EFORMAT, "expected the GGUF magic");
	if (version && (version & 0xffff) == 0)
		fail(g, SE_EUNSUP, "big-endian GGUF is not read");
	if (version < 2 || version > 3)
		fail(g, SE_EUNSUP, "GGUF version %" PRIu32 " is not known",
		    version);
	uint64_t ntensors = number(g, 8), nkv = number(g, 8), end = 0;
	if (ntensors > TENSOR_MAX || nkv > TENSOR_MAX)
		fail(g, SE_ELIMIT,
		    "%" PRIu64 " tensors and %" PRIu64
		    " keys, at most %u of each",
		    ntensors, nkv, TENSOR_MAX);
	if (!plausible(g, nkv, KV_LEAST) || !plausible(g, ntensors, INFO_LEAST))
		return g->code;
	for (uint64_t i = 0; i < nkv; i++)
		if (!read_kv(g)) {
			esc_prefix(g->e, "GGUF key", buf_view(&g->name));
			return g->code;
		}
	size_t first = g->set->n;
	for (uint64_t i = 0; i < ntensors; i++)
		if (!read_info(g, &end)) {
			esc_prefix(g->e, "tensor", buf_view(&g->name));
			return g->code;
		}
	return place(g, first, end);
}

static int
open_set(struct tensor_set *set, struct src *src,
    const struct tensor_hints *hints, struct err *e)
{
	/* 32 KiB of window are too much for the stack of a thread. */
	struct reader *g = arena_alloc(&set->arena, sizeof *g);
	if (!g)
		return err_mem(e);
	g->set = set;
	g->src = src;
	g->e = e;
	g->align = ALIGN;
	int r = read_all(g);
	buf_free(&g->name);
	buf_free(&g->text);
	return r;
}

const struct tensor_format tensor_gguf = {
	.name = "gguf",
	.what = "GGUF model",
	.probe = probe,
	.open = open_set,
	.selfends = true,
};
