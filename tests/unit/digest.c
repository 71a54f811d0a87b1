/*
 * Digests of a tensor. The numbers come from numpy and `xxhsum -H2`, put
 * together as straightedge-fingerprints(5) says; see the comment at each.
 */
#include "digest.h"

#include <math.h>
#include <stdlib.h>

#include "test.h"

enum { ROWS = 5, COLS = 7, N = ROWS * COLS };

static float data[N];
static const uint64_t shape[] = { ROWS, COLS };

static void
make_data(void)
{
	static const struct {
		int at;
		uint32_t bits;
	} odd[] = { { 3, 0x80000000 }, { 8, 0x7fc00001 }, { 9, 0xffc00000 },
		{ 20, 0x7f800000 }, { 21, 0xff800000 } };
	for (int i = 0; i < N; i++)
		data[i] = (float)(i * 37 % 101) * 0.25f - 12;
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
		memcpy(&data[odd[i].at], &odd[i].bits, 4);
}

static struct tensor
tensor_of(const char *dtype, unsigned ndim, const uint64_t *dims)
{
	struct tensor t = { .dtype = dtype_find(str_c(dtype)),
		.ndim = ndim,
		.shape = dims,
		.count = 1 };
	for (unsigned i = 0; i < ndim; i++)
		t.count *= dims[i];
	t.bytes = t.count / t.dtype->block * t.dtype->size;
	return t;
}

static bool
is(struct u128 v, const char *hex)
{
	struct u128 want;
	return u128_parse(str_c(hex), &want) && u128_same(v, want);
}

/* Bytes in pieces of whole elements, at random edges if `seed` is not 0. */
static struct digest_result
run(const struct digest_how *how, const struct tensor *t, const void *p,
    unsigned seed, struct u128 *tiles)
{
	struct digest *d;
	struct digest_result r;
	struct err e;
	const char *at = p;
	CHECK(digest_new(&d, how, &e) == 0);
	digest_start(d, t);
	for (size_t left = t->bytes; left;) {
		size_t n = left;
		if (seed) {
			seed = seed * 1103515245 + 12345;
			n = (seed >> 16) % 9 * t->dtype->size;
			n = n < left ? n : left;
		}
		if (n)
			CHECK(digest_add(d, at, n, &e) == 0);
		at += n;
		left -= n;
	}
	digest_end(d, &r);
	for (unsigned i = 0; tiles && i < r.ntiles; i++)
		tiles[i] = r.tile[i];
	digest_free(d);
	return r;
}

static void
test_all(unsigned seed)
{
	struct digest_how how = { .canon = true,
		.rows = true,
		.stats = true,
		.unit = 3,
		.tiles = 3 };
	struct tensor t = tensor_of("f32", 2, shape);
	struct u128 tile[3];
	struct digest_result r = run(&how, &t, data, seed, tile);
	CHECK(is(r.hash, "c2021adee17f1ca480c6a5b4483faa68"));
	/* NaNs as 0x7fc00000, -0 as 0 */
	CHECK(r.canon_given && is(r.canon, "65b8b1867b0490b29e507f5e744841da"));
	/* units of 3, 3 and 1 elements in each row */
	CHECK(r.shardsum_given &&
	      is(r.shardsum, "58250fb7ce6a1ca81a58414d18eabce9"));
	CHECK(r.rows_given && is(r.rows, "cc4e90e48a56a190b65d848e4ce17f0c"));
	/* rows 0; 1 and 2; 3 and 4 */
	CHECK(r.ntiles == 3 && is(tile[0], "39531f00a45c7244445282489a84a002"));
	CHECK(is(tile[1], "b8e85a781a80d1c1f03237019b82e334"));
	CHECK(is(tile[2], "3a11835715c056fd339668b6b01d71a2"));
	CHECK(r.stats_given && r.stats.nan == 2 && r.stats.inf == 2);
	CHECK(r.stats.zero == 1 && isinf(r.stats.min) && r.stats.min < 0);
	CHECK(isinf(r.stats.max) &&
	      fabs(r.stats.mean - 0.29838709677419356) < 1e-15);
	CHECK(!r.note);
}

static void
test_mix64(unsigned seed)
{
	struct digest_how how = { .mix64 = true, .canon = true };
	struct tensor t = tensor_of("f32", 2, shape);
	struct digest_result r = run(&how, &t, data, seed, NULL);
	CHECK(r.hash.hi == 0 && r.hash.lo == UINT64_C(0x048b064e4cf13fea));
	CHECK(r.canon.lo == UINT64_C(0xbff198f29cb933a0));
}

/* One unit a row when the unit is longer than the row. */
static void
test_long_unit(void)
{
	struct digest_how how = { .unit = 100 };
	struct tensor t = tensor_of("f32", 2, shape);
	struct digest_result r = run(&how, &t, data, 7, NULL);
	CHECK(is(r.shardsum, "045d6f9682d2e42e2e88948af89a8d1d"));
}

static void
test_empty(void)
{
	struct digest_how how = { .canon = true,
		.rows = true,
		.stats = true,
		.unit = 3,
		.tiles = 3 };
	const uint64_t none[] = { 4, 0 };
	struct tensor t = tensor_of("f32", 2, none);
	struct digest_result r = run(&how, &t, data, 0, NULL);
	/* printf '' | xxhsum -H2 */
	CHECK(is(r.hash, "99aa06d3014798d86001c324468d497f"));
	CHECK(r.ntiles == 0 && !r.stats.range && !r.stats.average);
	CHECK(u128_same(r.shardsum, (struct u128){ 0, 0 }));
	/* No dimension at all: one row, one tile, one unit. */
	t = tensor_of("f32", 0, NULL);
	struct u128 tile[3];
	r = run(&how, &t, data, 0, tile);
	CHECK(r.ntiles == 1 && u128_same(tile[0], hash_xxh3(data, 4)));
	CHECK(u128_same(r.rows, hash_xxh3(data, 4)));
	CHECK(u128_same(r.shardsum, hash_unit(0, data, 4)));
}

/* A part of the 5 x 7 data as a shard of its own. */
static struct u128
shard(uint64_t r0, uint64_t r1, uint64_t c0, uint64_t c1, uint64_t unit,
    const char **note)
{
	const uint64_t dims[] = { r1 - r0, c1 - c0 }, at[] = { r0, c0 };
	float part[N];
	size_t n = 0;
	for (uint64_t r = r0; r < r1; r++)
		for (uint64_t c = c0; c < c1; c++)
			part[n++] = data[r * COLS + c];
	struct tensor t = tensor_of("f32", 2, dims);
	t.flags = TENSOR_CHUNK;
	t.global = shape;
	t.offset = at;
	struct digest_how how = { .unit = unit };
	struct digest_result d = run(&how, &t, part, 3, NULL);
	CHECK(d.shardsum_given == !d.note);
	*note = d.note;
	return d.shardsum;
}

static void
test_shards(void)
{
	struct digest_how how = { .unit = 3 };
	struct tensor t = tensor_of("f32", 2, shape);
	struct u128 whole = run(&how, &t, data, 0, NULL).shardsum;
	const char *note;
	/* by rows, by columns, and a grid of both */
	struct u128 rows = u128_add(
	    shard(0, 2, 0, COLS, 3, &note), shard(2, ROWS, 0, COLS, 3, &note));
	CHECK(u128_same(rows, whole));
	struct u128 cols = u128_add(
	    shard(0, ROWS, 0, 3, 3, &note), shard(0, ROWS, 3, COLS, 3, &note));
	CHECK(u128_same(cols, whole));
	struct u128 grid = shard(0, 1, 0, 6, 3, &note);
	grid = u128_add(grid, shard(1, ROWS, 0, 6, 3, &note));
	grid = u128_add(grid, shard(0, ROWS, 6, COLS, 3, &note));
	CHECK(u128_same(grid, whole));
	/* Exchanged shards do not add up to the same. */
	CHECK(!u128_same(
	    shard(0, 2, 0, COLS, 3, &note), shard(2, 4, 0, COLS, 3, &note)));
	/* An edge inside a unit. */
	shard(0, ROWS, 0, 2, 3, &note);
	CHECK(note != NULL);
}

/*
 * Short rows that a sum with the row's number as XXH3 seed confuses: the pair
 * must differ here.
 */
static void
test_order(void)
{
	const uint64_t dims[] = { 2, 4 };
	uint8_t a[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	uint8_t b[] = { 5, 6, 7, 8, 1, 2, 3, 4 };
	struct digest_how how = { .unit = 4, .rows = true };
	struct tensor t = tensor_of("u8", 2, dims);
	struct digest_result x = run(&how, &t, a, 0, NULL);
	struct digest_result y = run(&how, &t, b, 0, NULL);
	CHECK(!u128_same(x.shardsum, y.shardsum));
	CHECK(u128_same(x.rows, y.rows));
	b[0]++;
	y = run(&how, &t, b, 0, NULL);
	CHECK(!u128_same(x.rows, y.rows));
}

static void
canon_is(const char *dtype, const void *in, const void *out, size_t n)
{
	struct tensor t = tensor_of(dtype, 1, &(uint64_t){ n });
	struct digest_how how = { .canon = true };
	struct digest_result r = run(&how, &t, in, 5, NULL);
	CHECK(r.canon_given && u128_same(r.canon, hash_xxh3(out, t.bytes)));
	CHECK(u128_same(r.hash, hash_xxh3(in, t.bytes)));
}

/* -0, quiet and signalling NaN, infinities and the smallest numbers. */
static void
test_canon(void)
{
	const uint64_t d[] = { UINT64_C(1) << 63, UINT64_C(0x7ff0000000000001),
		UINT64_C(0xfff8000000000000), UINT64_C(0xfff0000000000000),
		UINT64_C(0x8000000000000001) };
	const uint64_t dc[] = { 0, UINT64_C(0x7ff8000000000000),
		UINT64_C(0x7ff8000000000000), UINT64_C(0xfff0000000000000),
		UINT64_C(0x8000000000000001) };
	canon_is("f64", d, dc, 5);
	const uint16_t h[] = { 0x8000, 0x7c01, 0xfe00, 0xfc00, 0x8001 };
	const uint16_t hc[] = { 0, 0x7e00, 0x7e00, 0xfc00, 0x8001 };
	canon_is("f16", h, hc, 5);
	const uint16_t b[] = { 0x8000, 0x7f81, 0xffc0, 0xff80, 0x8001 };
	const uint16_t bc[] = { 0, 0x7fc0, 0x7fc0, 0xff80, 0x8001 };
	canon_is("bf16", b, bc, 5);
	const uint8_t e[] = { 0x80, 0x7d, 0xff, 0xfc, 0x81 };
	const uint8_t ec[] = { 0, 0x7e, 0x7e, 0xfc, 0x81 };
	canon_is("e5m2", e, ec, 5);
	const uint8_t m[] = { 0x80, 0x7f, 0xff, 0xfe, 0x81 };
	const uint8_t mc[] = { 0, 0x7f, 0x7f, 0xfe, 0x81 };
	canon_is("e4m3", m, mc, 5);
	const uint32_t c[] = { 0x80000000, 0x3f800000, 0xffc00000, 0 };
	const uint32_t cc[] = { 0, 0x3f800000, 0x7fc00000, 0 };
	canon_is("c64", c, cc, 2);
	const uint8_t t[] = { 0, 1, 2, 255 }, tc[] = { 0, 1, 1, 1 };
	canon_is("bool", t, tc, 4);
	/* Nothing to unify in integers. */
	struct digest_how how = { .canon = true };
	struct tensor i = tensor_of("i32", 1, &(uint64_t){ 1 });
	CHECK(!run(&how, &i, c, 0, NULL).canon_given);
}

static struct digest_stats
stats_of(const char *dtype, const void *p, uint64_t n)
{
	struct tensor t = tensor_of(dtype, 1, &n);
	struct digest_how how = { .stats = true };
	return run(&how, &t, p, 9, NULL).stats;
}

static void
test_stats(void)
{
	const int64_t i[] = { -3, 0, 7, 2 };
	struct digest_stats s = stats_of("i64", i, 4);
	CHECK(s.min == -3 && s.max == 7 && s.mean == 1.5 && s.zero == 1);
	const uint16_t b[] = { 0x3f80, 0xc000, 0x7fc0, 0x8000 };
	s = stats_of("bf16", b, 4);
	CHECK(s.min == -2 && s.max == 1 && s.nan == 1 && s.zero == 1);
	CHECK(s.average && fabs(s.mean + 1.0 / 3) < 1e-15);
	const float c[] = { 1, NAN, 0, 2 };
	s = stats_of("c64", c, 2);
	CHECK(s.nan == 1 && s.zero == 1 && !s.range && !s.average);
	const float n[] = { NAN, NAN };
	s = stats_of("f32", n, 2);
	CHECK(s.nan == 2 && !s.range && !s.average);
	/* Not numbers at all. */
	struct tensor t = tensor_of("bytes", 1, &(uint64_t){ 4 });
	struct digest_how how = { .stats = true };
	CHECK(!run(&how, &t, b, 0, NULL).stats_given);
}

int
main(void)
{
	make_data();
	for (unsigned seed = 0; seed < 50; seed++) {
		test_all(seed);
		test_mix64(seed);
	}
	test_long_unit();
	test_empty();
	test_shards();
	test_order();
	test_canon();
	test_stats();
	return test_done("digest");
}
