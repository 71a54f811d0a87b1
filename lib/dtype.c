/* Element types and their canonical names: see dtype.h. */
#include "dtype.h"

#include <math.h>
#include <string.h>

#include "num.h"

/* How a small float spends its highest exponent. */
enum special {
	NONE, /* no NaN, no infinity */
	IEEE, /* infinity at mantissa 0, else NaN */
	FN,   /* finite: only all ones is NaN, no infinity */
	FNUZ, /* finite, unsigned zero: the one NaN is where -0 would be */
	E8M0, /* no sign, no mantissa: 2^(v - bias), 0xff is NaN */
};

/* A type and, for floats up to 16 bits, how its bits are spent. */
struct entry {
	struct dtype t; /* first: a pointer to it is one to the entry */
	unsigned char exp, man, bias, special;
	const char *alias; /* separated by blanks */
};

/*
 * Sources: IEEE 754; OCP 8-bit Floating Point Specification 1.0 (e4m3, e5m2);
 * OCP Microscaling Formats 1.0 (e8m0, e2m1, e2m3, e3m2); the FNUZ types as in
 * LLVM's APFloat. Sub-byte types are packed: two e2m1 in a byte, four 6-bit
 * ones in three.
 */
// clang-format off
static const struct entry table[] = {
	{ { "f64", DTYPE_FLOAT, 1, 8, 8 }, .alias = "float64 double fp64" },
	{ { "f32", DTYPE_FLOAT, 1, 4, 4 }, .alias = "float32 float fp32" },
	{ { "f16", DTYPE_FLOAT, 1, 2, 2 }, 5, 10, 15, IEEE,
		"float16 half fp16" },
	{ { "bf16", DTYPE_FLOAT, 1, 2, 2 }, 8, 7, 127, IEEE, "bfloat16" },
	{ { "e4m3", DTYPE_FLOAT, 1, 1, 1 }, 4, 3, 7, FN,
		"f8_e4m3 e4m3fn float8_e4m3fn" },
	{ { "e5m2", DTYPE_FLOAT, 1, 1, 1 }, 5, 2, 15, IEEE,
		"f8_e5m2 float8_e5m2" },
	{ { "e4m3fnuz", DTYPE_FLOAT, 1, 1, 1 }, 4, 3, 8, FNUZ,
		"f8_e4m3fnuz float8_e4m3fnuz" },
	{ { "e5m2fnuz", DTYPE_FLOAT, 1, 1, 1 }, 5, 2, 16, FNUZ,
		"f8_e5m2fnuz float8_e5m2fnuz" },
	{ { "e8m0", DTYPE_FLOAT, 1, 1, 1 }, 8, 0, 127, E8M0,
		"f8_e8m0 float8_e8m0fnu" },
	{ { "e2m1", DTYPE_FLOAT, 2, 1, 1 }, .alias = "f4 f4_e2m1" },
	{ { "e2m3", DTYPE_FLOAT, 4, 3, 1 }, .alias = "f6_e2m3" },
	{ { "e3m2", DTYPE_FLOAT, 4, 3, 1 }, .alias = "f6_e3m2" },
	{ { "c128", DTYPE_COMPLEX, 1, 16, 8 }, .alias = "complex128" },
	{ { "c64", DTYPE_COMPLEX, 1, 8, 4 }, .alias = "complex64" },
	{ { "c32", DTYPE_COMPLEX, 1, 4, 2 }, 5, 10, 15, IEEE, "complex32" },
	{ { "i64", DTYPE_INT, 1, 8, 8 }, .alias = "int64 long" },
	{ { "i32", DTYPE_INT, 1, 4, 4 }, .alias = "int32 int" },
	{ { "i16", DTYPE_INT, 1, 2, 2 }, .alias = "int16 short" },
	{ { "i8", DTYPE_INT, 1, 1, 1 }, .alias = "int8" },
	{ { "u64", DTYPE_UINT, 1, 8, 8 }, .alias = "uint64" },
	{ { "u32", DTYPE_UINT, 1, 4, 4 }, .alias = "uint32" },
	{ { "u16", DTYPE_UINT, 1, 2, 2 }, .alias = "uint16" },
	{ { "u8", DTYPE_UINT, 1, 1, 1 }, .alias = "uint8 byte" },
	{ { "bool", DTYPE_BOOL, 1, 1, 1 }, .alias = "boolean" },
	{ { "bytes", DTYPE_OPAQUE, 1, 1, 1 }, .alias = "raw" },
};
// clang-format on

static bool
same_folded(struct str a, struct str b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++) {
		char c = a.p[i];
		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if (c != b.p[i])
			return false;
	}
	return true;
}

const struct dtype *
dtype_find(struct str name)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		if (same_folded(name, str_c(table[i].t.name)))
			return &table[i].t;
		struct str rest = str_c(table[i].alias), word;
		while (str_cut(&rest, ' ', &word))
			if (same_folded(name, word))
				return &table[i].t;
	}
	return NULL;
}

const struct dtype *
dtype_opaque(struct arena *a, struct str name, uint32_t block, uint32_t size,
    uint32_t word)
{
	struct dtype *t = arena_alloc(a, sizeof *t);
	struct str copy = arena_str(a, name);
	if (!t || !copy.p)
		return NULL;
	*t = (struct dtype){ copy.p, DTYPE_OPAQUE, block, size, word };
	return t;
}

bool
dtype_bytes(const struct dtype *t, uint64_t n, uint64_t *bytes)
{
	return n % t->block == 0 && num_mul(n / t->block, t->size, bytes);
}

static uint64_t
load(const unsigned char *p, unsigned n)
{
	uint64_t v = 0;
	while (n-- > 0)
		v = v << 8 | p[n];
	return v;
}

static double
small_float(const struct entry *t, unsigned v)
{
	unsigned ones = (1u << t->exp) - 1;
	unsigned man = v & ((1u << t->man) - 1);
	unsigned exp = v >> t->man & ones;
	bool neg = v >> (t->man + t->exp) & 1;
	if (t->special == E8M0)
		return v == 0xff ? NAN : ldexp(1, (int)v - t->bias);
	if (t->special == FNUZ && neg && !exp && !man)
		return NAN;
	if (t->special == FN && exp == ones && man == (1u << t->man) - 1)
		return NAN;
	if (t->special == IEEE && exp == ones) {
		if (man)
			return NAN;
		return neg ? -INFINITY : INFINITY;
	}
	int scale = (int)(exp ? exp : 1) - t->bias - t->man;
	double m = ldexp(exp ? man | 1u << t->man : man, scale);
	return neg ? -m : m;
}

static double
float_at(const struct entry *t, const unsigned char *p)
{
	unsigned size = t->t.word;
	if (size == 8) {
		uint64_t bits = load(p, 8);
		double d;
		memcpy(&d, &bits, sizeof d);
		return d;
	}
	if (size == 4) {
		uint32_t bits = (uint32_t)load(p, 4);
		float f;
		memcpy(&f, &bits, sizeof f);
		return (double)f;
	}
	return small_float(t, (unsigned)load(p, size));
}

bool
dtype_value(
    const struct dtype *t, const void *data, size_t i, int part, double *out)
{
	if (t->block != 1 || t->kind == DTYPE_OPAQUE)
		return false;
	/* Types that are not opaque all come from the table. */
	const struct entry *en = (const struct entry *)t;
	const unsigned char *p = (const unsigned char *)data + i * t->size;
	if (t->kind == DTYPE_COMPLEX) {
		*out = float_at(en, p + (size_t)part * t->word);
		return true;
	}
	if (part)
		return false;
	if (t->kind == DTYPE_FLOAT) {
		*out = float_at(en, p);
		return true;
	}
	uint64_t v = load(p, t->size);
	*out = (double)v;
	if (t->kind == DTYPE_INT) {
		unsigned shift = 64 - 8 * t->size;
		*out = (double)((int64_t)(v << shift) >> shift);
	}
	return true;
}
