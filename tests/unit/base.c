/* BASE: buf, esc, num, map, hash, cur against values known from elsewhere. */
#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "arena.h"
#include "cur.h"
#include "ere.h"
#include "esc.h"
#include "hash.h"
#include "map.h"
#include "num.h"

static const char *
esc(struct buf *b, const char *p, size_t len)
{
	b->len = 0;
	esc_put(b, (struct str){ p, len });
	return buf_cstr(b);
}

static void
test_esc(void)
{
	struct buf b = { 0 };
#define ESC(in) esc(&b, in, sizeof in - 1)
	CHECK(!strcmp(ESC("plain text"), "plain text"));
	CHECK(!strcmp(ESC("a\tb\nc\rd\\e"), "a\\tb\\nc\\rd\\\\e"));
	CHECK(!strcmp(ESC("\0\x1b[31m\x7f"), "\\x00\\x1b[31m\\x7f"));
	CHECK(!strcmp(ESC("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f"));
	CHECK(!strcmp(ESC("\xc2\x85"), "\\xc2\\x85"));          /* U+0085 NEL */
	CHECK(!strcmp(ESC("\xe2\x80\xae"), "\\xe2\\x80\\xae")); /* RLO */
	CHECK(!strcmp(ESC("\xe2\x81\xa6"), "\\xe2\\x81\\xa6")); /* LRI */
	CHECK(!strcmp(ESC("\xc0\xaf"), "\\xc0\\xaf"));          /* overlong */
	CHECK(!strcmp(ESC("\xed\xa0\x80"), "\\xed\\xa0\\x80")); /* surrogate */
	CHECK(!strcmp(ESC("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80"));
	CHECK(!strcmp(ESC("x\xff"), "x\\xff"));
	CHECK(!strcmp(ESC("\xe2\x82"), "\\xe2\\x82")); /* cut */
#undef ESC
	/* Every byte string comes back, whatever is in it. */
	unsigned state = 1;
	for (int round = 0; round < 2000; round++) {
		char in[40], back[200];
		size_t n = (size_t)round % sizeof in, len = 0;
		for (size_t i = 0; i < n; i++) {
			state = state * 1103515245u + 12345u;
			in[i] = (char)(state >> 16);
		}
		esc(&b, in, n);
		CHECK(esc_undo(buf_view(&b), back, &len, NULL) == 0);
		CHECK(len == n && !memcmp(in, back, n));
	}
	static const char *bad[] = { "\\", "\\q", "\\x", "\\x1", "\\xg0",
		"\\x0g", "\\0", "a\\" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char to[8];
		size_t len;
		CHECK(esc_undo(str_c(bad[i]), to, &len, NULL) == SE_EFORMAT);
	}
	buf_free(&b);
}

static void
test_num(void)
{
	uint64_t u = 7;
	int64_t i = 7;
	double d = 7;
	struct err e;
	CHECK(!num_u64(STR_LIT("18446744073709551615"), 0, UINT64_MAX, &u, &e));
	CHECK(u == UINT64_MAX);
	CHECK(num_u64(STR_LIT("18446744073709551616"), 0, UINT64_MAX, &u, &e));
	CHECK(num_u64(STR_LIT(""), 0, 9, &u, &e));
	CHECK(num_u64(STR_LIT("+1"), 0, 9, &u, &e));
	CHECK(num_u64(STR_LIT("10"), 0, 9, &u, &e));
	CHECK(!strcmp(e.msg, "expected an integer 0 to 9, found \"10\""));
	CHECK(!num_i64(STR_LIT("-9223372036854775808"), INT64_MIN, INT64_MAX,
		  &i, &e) &&
	      i == INT64_MIN);
	CHECK(num_i64(
	    STR_LIT("9223372036854775808"), INT64_MIN, INT64_MAX, &i, &e));
	CHECK(!num_f64(STR_LIT("-1.5e-3"), &d, &e) && d == -1.5e-3);
	CHECK(!num_f64(STR_LIT("-inf"), &d, &e) && d == -INFINITY);
	CHECK(num_f64(STR_LIT("0x1p3"), &d, &e));
	CHECK(num_f64(STR_LIT("."), &d, &e));
	CHECK(num_f64(STR_LIT("1e"), &d, &e));
	CHECK(!num_size(STR_LIT("64K"), 0, UINT64_MAX, &u, &e) && u == 65536);
	CHECK(num_size(STR_LIT("17179869184G"), 0, UINT64_MAX, &u, &e));
	CHECK(!num_duration(STR_LIT("1.5ms"), &i, &e) && i == 1500000);
	CHECK(!num_duration(STR_LIT("2d"), &i, &e) && i == 172800000000000);
	CHECK(num_duration(STR_LIT("5"), &i, &e));
	CHECK(num_duration(STR_LIT("-5s"), &i, &e));
	/* date -u -d ... +%s */
	CHECK(!num_time(STR_LIT("2026-11-30T10:00:00Z"), &i, &e));
	CHECK(i == INT64_C(1796032800) * 1000000000);
	CHECK(!num_time(STR_LIT("2024-02-29T23:59:59.25+01:30"), &i, &e));
	CHECK(i == INT64_C(1709245799) * 1000000000 + 250000000);
	CHECK(!num_time(STR_LIT("1709245799.000000001"), &i, &e));
	CHECK(i == INT64_C(1709245799000000001));
	CHECK(num_time(STR_LIT("2023-02-29T00:00:00Z"), &i, &e));
	CHECK(num_time(STR_LIT("2026-11-30T10:00:00"), &i, &e));

	struct buf b = { 0 };
	static const struct {
		double v;
		const char *text;
	} f[] = { { 0.1, "0.1" }, { 1.0 / 3, "0.3333333333333333" },
		{ 5e-324, "4.94065645841247e-324" }, { -0.0, "-0" },
		{ 1e300, "1e+300" }, { NAN, "nan" }, { -INFINITY, "-inf" } };
	for (size_t k = 0; k < sizeof f / sizeof *f; k++) {
		b.len = 0;
		num_put_f64(&b, f[k].v);
		CHECK(!strcmp(buf_cstr(&b), f[k].text));
	}
	b.len = 0;
	num_put_f32(&b, 0.1f);
	CHECK(!strcmp(buf_cstr(&b), "0.1"));
	b.len = 0;
	num_put_time(&b, INT64_C(1709245799250000000));
	CHECK(!strcmp(buf_cstr(&b), "1709245799.25"));
	buf_free(&b);
}

/*
 * Pieces of up to 240 bytes go the plain way, larger ones may go a wider one:
 * whatever the way, one value.
 */
static void
test_hash_ways(void)
{
	static unsigned char data[5000];
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (unsigned char)(i * 167 + (i >> 3));
	struct hash *h = hash_new();
	for (size_t len = 0; len <= sizeof data; len += len < 600 ? 1 : 77) {
		struct u128 once = hash_xxh3(data, len);
		for (size_t piece = 1; piece <= 1000; piece *= 3) {
			hash_reset(h);
			for (size_t at = 0, n; at < len; at += n) {
				n = len - at < piece ? len - at : piece;
				hash_add(h, data + at, n);
			}
			CHECK(u128_same(hash_value(h), once));
		}
	}
	hash_free(h);
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
/*
 * XINUSE (Intel SDM volume 1, 13.6): bit 2 is clear while no upper half of a
 * vector register is in use. Left in use they slow down the caller's SSE code.
 */
static void
test_hash_registers(void)
{
	static unsigned char data[5000];
	unsigned a, b, c, d;
	if (!__get_cpuid_count(0xd, 1, &a, &b, &c, &d) || !(a & 4))
		return;
	struct hash *h = hash_new();
	for (int way = 0; way < 2; way++) {
		if (way)
			hash_add(h, data, sizeof data);
		else
			hash_xxh3(data, sizeof data);
		__asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(1));
		CHECK(!(a & 4));
	}
	hash_free(h);
}
#else
static void
test_hash_registers(void)
{
}
#endif

static void
test_hash(void)
{
	struct buf b = { 0 };
	/* xxhsum -H2 of the empty input and of "abc" */
	u128_put(&b, hash_xxh3("", 0));
	CHECK(!strcmp(buf_cstr(&b), "99aa06d3014798d86001c324468d497f"));
	b.len = 0;
	u128_put(&b, hash_xxh3("abc", 3));
	CHECK(!strcmp(buf_cstr(&b), "06b05ab6733a618578af5f94892f3950"));
	struct u128 back;
	CHECK(u128_parse(buf_view(&b), &back));
	CHECK(u128_same(back, hash_xxh3("abc", 3)));
	buf_free(&b);

	struct hash *h = hash_new();
	hash_add(h, "a", 1);
	hash_add(h, "bc", 2);
	CHECK(u128_same(hash_value(h), hash_xxh3("abc", 3)));
	hash_free(h);

	/* mix(0 ^ 0*K) = 0; SplitMix64 seeded with 0 gives mix(K) first. */
	CHECK(hash_mix64("\0\0\0\0\0\0\0\0", 8, 0) == 0);
	CHECK(hash_mix64("\0\0\0\0\0\0\0\0", 8, 1) ==
	      UINT64_C(0xe220a8397b1dcdaf));
	unsigned char data[100];
	for (int i = 0; i < 100; i++)
		data[i] = (unsigned char)(i * 37);
	CHECK(hash_mix64(data, 100, 0) ==
	      hash_mix64(data, 40, 0) + hash_mix64(data + 40, 60, 5));
	CHECK(u128_same(
	    u128_add((struct u128){ 0, UINT64_MAX }, (struct u128){ 0, 1 }),
	    (struct u128){ 1, 0 }));
}

static void
test_map(void)
{
	struct map m = { 0 };
	struct arena a = { 0 };
	bool fresh;
	for (uint64_t i = 0; i < 10000; i++) {
		struct str k = arena_str(&a, (struct str){ (char *)&i, 3 });
		uint64_t *v = map_at(&m, k, &fresh);
		CHECK(v && fresh);
		*v = i;
	}
	for (uint64_t i = 0; i < 10000; i++) {
		uint64_t *v = map_get(&m, (struct str){ (char *)&i, 3 });
		CHECK(v && *v == i);
	}
	CHECK(!map_get(&m, STR_LIT("abcd")));
	map_free(&m);
	arena_free(&a);
}

static void
test_cur(void)
{
	struct cur c = cur_over("\1\2\3\4\5\6\7\10\11", 9);
	CHECK(cur_le16(&c) == 0x0201);
	CHECK(cur_le32(&c) == 0x06050403);
	CHECK(cur_left(&c) == 3 && cur_off(&c) == 6);
	CHECK(cur_le32(&c) == 0 && c.failed);
	CHECK(cur_u8(&c) == 0 && cur_left(&c) == 0);
}

/* Sizes by hand; what is refused would take regcomp's memory. */
static void
test_ere(void)
{
	static const struct {
		const char *pattern;
		int result;
	} c[] = {
		{ "", 0 },
		{ "layers[.][0-9]+[.](fc1|fc2)", 0 },
		{ "a{2}(b(c|d){3,5})*", 0 },
		{ "[]()*+{99999}]{2}", 0 },
		{ "[^]((]x", 0 },
		{ "[[:alpha:](]x", 0 },
		{ "\\(a\\)", 0 },
		{ "a{x", 0 },
		{ "(a{100}){50}", 0 },
		{ "(a{100}){51}", SE_ELIMIT },
		{ "a{99999999999999999999}", SE_ELIMIT },
		{ "((a{99}){99}){99}", SE_ELIMIT },
		{ "a++++++++++++", 0 },          /* 2^12 */
		{ "a+++++++++++++", SE_ELIMIT }, /* 2^13 */
		{ "a)|(b", SE_EFORMAT },
		{ "(a", SE_EFORMAT },
	};
	struct err e;
	for (size_t i = 0; i < sizeof c / sizeof *c; i++)
		CHECK(ere_check(str_c(c[i].pattern), &e) == c[i].result);
	struct buf b = { 0 };
	for (int depth = 1; depth <= ERE_DEPTH_MAX + 1; depth++) {
		b.len = 0;
		for (int i = 0; i < depth; i++)
			buf_putc(&b, '(');
		buf_putc(&b, 'a');
		for (int i = 0; i < depth; i++)
			buf_putc(&b, ')');
		CHECK(ere_check(buf_view(&b), &e) ==
		      (depth > ERE_DEPTH_MAX ? SE_ELIMIT : 0));
	}
	buf_free(&b);
}

int
main(void)
{
	test_esc();
	test_ere();
	test_num();
	test_hash();
	test_hash_ways();
	test_hash_registers();
	test_map();
	test_cur();
	return test_done("unit base");
}
