/* INPUT: dtype, against the values the specifications print. */
#include "test.h"

#include <math.h>
#include <string.h>

#include "dtype.h"

static double
value(const char *type, uint64_t bits, int part)
{
	unsigned char b[16];
	double v = 12345;
	for (int i = 0; i < 16; i++)
		b[i] = i < 8 ? (unsigned char)(bits >> 8 * i) : 0;
	const struct dtype *t = dtype_find(str_c(type));
	CHECK(t && dtype_value(t, b, 0, part, &v));
	return v;
}

static void
test_values(void)
{
	static const struct {
		const char *type;
		uint64_t bits;
		double value;
	} c[] = {
		/* OCP 8-bit Floating Point Specification, table 1 */
		{ "e4m3", 0x7e, 448 },
		{ "e4m3", 0x08, 0x1p-6 },
		{ "e4m3", 0x01, 0x1p-9 },
		{ "e4m3", 0xfe, -448 },
		{ "e4m3", 0x7f, NAN },
		{ "e4m3", 0xff, NAN },
		{ "e4m3", 0x78, 256 },
		{ "e5m2", 0x7b, 57344 },
		{ "e5m2", 0x04, 0x1p-14 },
		{ "e5m2", 0x01, 0x1p-16 },
		{ "e5m2", 0x7c, INFINITY },
		{ "e5m2", 0xfc, -INFINITY },
		{ "e5m2", 0x7d, NAN },
		/* FNUZ: one bias more, no infinity, the NaN at 0x80 */
		{ "e4m3fnuz", 0x7f, 240 },
		{ "e4m3fnuz", 0x40, 1 },
		{ "e4m3fnuz", 0x01, 0x1p-10 },
		{ "e4m3fnuz", 0x80, NAN },
		{ "e5m2fnuz", 0x7f, 57344 },
		{ "e5m2fnuz", 0x40, 1 },
		{ "e5m2fnuz", 0x01, 0x1p-17 },
		{ "e5m2fnuz", 0x80, NAN },
		/* OCP Microscaling Formats, section 5.4 */
		{ "e8m0", 127, 1 },
		{ "e8m0", 0, 0x1p-127 },
		{ "e8m0", 254, 0x1p127 },
		{ "e8m0", 255, NAN },
		/* IEEE 754 */
		{ "f16", 0x3c00, 1 },
		{ "f16", 0x7bff, 65504 },
		{ "f16", 0x0001, 0x1p-24 },
		{ "f16", 0x8000, -0.0 },
		{ "f16", 0xfc00, -INFINITY },
		{ "f16", 0x7e00, NAN },
		{ "bf16", 0x3f80, 1 },
		{ "bf16", 0x0001, 0x1p-133 },
		{ "bf16", 0x7f80, INFINITY },
		{ "bf16", 0xc049, -3.140625 },
		{ "f32", 0xbf800000, -1 },
		{ "f32", 1, 0x1p-149 },
		{ "f64", UINT64_C(0x3ff0000000000000), 1 },
		{ "i8", 0xff, -1 },
		{ "u8", 0xff, 255 },
		{ "i16", 0x8000, -32768 },
		{ "u16", 0x8000, 32768 },
		{ "i32", 0xfffffffe, -2 },
		{ "u32", 0xfffffffe, 4294967294.0 },
		{ "i64", UINT64_MAX, -1 },
		{ "u64", UINT64_MAX, 0x1p64 },
		{ "bool", 1, 1 },
		{ "c64", 0x3f800000, 1 },
	};
	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		double v = value(c[i].type, c[i].bits, 0);
		bool same = isnan(c[i].value)
				? isnan(v)
				: v == c[i].value &&
				      !signbit(v) == !signbit(c[i].value);
		if (!CHECK(same))
			fprintf(stderr, "%s %#jx: %g, wanted %g\n", c[i].type,
			    (uintmax_t)c[i].bits, v, c[i].value);
	}
	CHECK(value("c64", UINT64_C(0x4000000000000000), 1) == 2);
	CHECK(value("c32", 0x40003c00, 0) == 1);
	CHECK(value("c32", 0x40003c00, 1) == 2);
	double v;
	CHECK(!dtype_value(dtype_find(STR_LIT("f32")), "1234", 0, 1, &v));
	CHECK(!dtype_value(dtype_find(STR_LIT("bytes")), "1234", 0, 0, &v));
	CHECK(!dtype_value(dtype_find(STR_LIT("e2m1")), "1234", 0, 0, &v));
}

static void
test_names(void)
{
	static const char *const same[][2] = { { "f32", "float32" },
		{ "f32", "FP32" }, { "f16", "half" }, { "f64", "double" },
		{ "bf16", "BFloat16" }, { "i64", "long" }, { "u8", "byte" },
		{ "e4m3", "F8_E4M3" }, { "e5m2", "float8_e5m2" },
		{ "c64", "complex64" }, { "e2m1", "F4" } };
	for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
		const struct dtype *t = dtype_find(str_c(same[i][0]));
		CHECK(t && t == dtype_find(str_c(same[i][1])));
		CHECK(t && !strcmp(t->name, same[i][0]));
	}
	CHECK(!dtype_find(STR_LIT("")));
	CHECK(!dtype_find(STR_LIT("f")));
	CHECK(!dtype_find(STR_LIT("f321")));
	CHECK(!dtype_find(STR_LIT("float32 float")));

	uint64_t n;
	CHECK(dtype_bytes(dtype_find(STR_LIT("c128")), 3, &n) && n == 48);
	CHECK(dtype_bytes(dtype_find(STR_LIT("e2m3")), 8, &n) && n == 6);
	CHECK(!dtype_bytes(dtype_find(STR_LIT("e2m3")), 6, &n));
	CHECK(!dtype_bytes(dtype_find(STR_LIT("f32")), UINT64_MAX / 2, &n));

	struct arena a = { 0 };
	const struct dtype *q = dtype_opaque(&a, STR_LIT("q4_0"), 32, 18, 1);
	CHECK(q && !strcmp(q->name, "q4_0") && q->kind == DTYPE_OPAQUE);
	CHECK(dtype_bytes(q, 64, &n) && n == 36);
	arena_free(&a);
}

int
main(void)
{
	test_values();
	test_names();
	return test_done("unit dtype");
}
