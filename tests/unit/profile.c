/* The profile of a difference, against changes made on purpose. */
#include "profile.h"

#include <math.h>
#include <string.h>

#include "test.h"

enum { ROWS = 6, COLS = 8, N = ROWS * COLS };

static const uint64_t shape[2] = { ROWS, COLS };

static void
compare(struct profile *p, const char *type, const void *a, const void *b,
    size_t len)
{
	const struct dtype *t = dtype_find(str_c(type));
	CHECK(!profile_start(p, t, 2, shape, NULL));
	/* In pieces: a row and a half. */
	size_t cut = len / 4 / t->size * t->size;
	profile_add(p, a, b, cut);
	profile_add(p, (const char *)a + cut, (const char *)b + cut, len - cut);
	profile_end(p);
	CHECK(p->count == N);
}

static bool
text(void (*put)(struct buf *, const struct profile *), const struct profile *p,
    const char *want)
{
	struct buf b = { 0 };
	put(&b, p);
	bool ok = str_is(buf_view(&b), want);
	if (!ok)
		fprintf(stderr, "found %s, expected %s\n", buf_cstr(&b), want);
	buf_free(&b);
	return ok;
}

static void
fill(float *v)
{
	for (int i = 0; i < N; i++)
		v[i] = 1.0f + (float)i / 64;
}

static void
flip(float *v, unsigned bit)
{
	uint32_t u;
	memcpy(&u, v, 4);
	u ^= UINT32_C(1) << bit;
	memcpy(v, &u, 4);
}

static bool
is_class(const struct profile *p, const char *want)
{
	const char *c = profile_class(p);
	return c && !strcmp(c, want);
}

static void
test_floats(void)
{
	struct profile p;
	float a[N], b[N];
	fill(a);
	fill(b);
	compare(&p, "f32", a, b, sizeof a);
	CHECK(p.differing == 0 && !profile_class(&p));

	flip(&b[3 * COLS + 5], 20);
	compare(&p, "f32", a, b, sizeof a);
	CHECK(p.differing == 1 && p.nrows == 1 && p.ulp == 1u << 20);
	CHECK(is_class(&p, "single-bit"));
	CHECK(text(profile_put_first, &p, "3,5"));
	CHECK(text(profile_put_box, &p, "3,5"));
	CHECK(text(profile_put_rows, &p, "3"));
	CHECK(text(profile_put_bits, &p, "20x1"));
	CHECK(p.abs_given && p.abs == fabs((double)a[29] - (double)b[29]));

	flip(&b[3 * COLS + 5], 21);
	flip(&b[5 * COLS + 1], 0);
	compare(&p, "f32", a, b, sizeof a);
	CHECK(is_class(&p, "multi-bit") && p.differing == 2);
	CHECK(text(profile_put_box, &p, "3-5,1-5"));
	CHECK(text(profile_put_rows, &p, "3,5"));
	CHECK(text(profile_put_bits, &p, "0x1,20x1,21x1"));
}

static void
test_classes(void)
{
	struct profile p;
	float a[N], b[N];
	fill(a);
	fill(b);
	for (int i = 4; i < N; i += 4)
		b[i] = 0;
	compare(&p, "f32", a, b, sizeof a);
	CHECK(is_class(&p, "nullified") && p.stride == 4);
	CHECK(text(profile_put_rows, &p, "0-5") && p.nrows == 6);

	fill(b);
	b[7] = NAN;
	b[9] = -INFINITY;
	compare(&p, "f32", a, b, sizeof a);
	CHECK(is_class(&p, "nan-inf") && p.stride == 0);

	fill(b);
	a[2] = 0.0f;
	b[2] = -0.0f;
	compare(&p, "f32", a, b, sizeof a);
	CHECK(is_class(&p, "zero-sign") && p.ulp == 0 && p.abs == 0);

	fill(a);
	fill(b);
	memcpy(b + COLS, a + 2 * COLS, COLS * sizeof *a);
	memcpy(b + 2 * COLS, a + COLS, COLS * sizeof *a);
	compare(&p, "f32", a, b, sizeof a);
	CHECK(is_class(&p, "rows-permuted"));
	/* The same values in other columns are not permuted rows. */
	fill(b);
	b[0] = a[3];
	b[3] = a[0];
	compare(&p, "f32", a, b, sizeof a);
	CHECK(is_class(&p, "multi-bit"));
}

static void
test_others(void)
{
	struct profile p;
	int16_t a[N], b[N];
	uint16_t ha[N], hb[N];
	double da[2 * N] = { 0 }, db[2 * N] = { 0 };
	for (int i = 0; i < N; i++) {
		a[i] = b[i] = (int16_t)(i * 100 - 2000);
		ha[i] = hb[i] = 0x3f80; /* bf16 1.0 */
	}
	b[10] = (int16_t)(b[10] + 7);
	compare(&p, "i16", a, b, sizeof a);
	CHECK(p.differing == 1 && p.abs == 7 && !p.ulp_given);

	hb[0] = 0xbf80; /* -1.0 */
	compare(&p, "bf16", ha, hb, sizeof ha);
	CHECK(p.abs == 2 && p.ulp == 2 * 0x3f80 && p.width == 16);
	CHECK(text(profile_put_bits, &p, "15x1"));

	db[2 * 9 + 1] = 0.5; /* an imaginary part */
	compare(&p, "c128", da, db, sizeof da);
	CHECK(p.differing == 1 && p.abs == 0.5);
	CHECK(text(profile_put_first, &p, "1,1"));
}

int
main(void)
{
	test_floats();
	test_classes();
	test_others();
	return test_done("profile");
}
