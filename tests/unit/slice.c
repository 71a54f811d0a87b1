/* Parts of tensors, against the same parts taken by hand. */
#include "slice.h"

#include <stdlib.h>

#include "test.h"

enum { X = 3, Y = 4, Z = 5 };

static unsigned char data[X * Y * Z];
static const uint64_t shape[] = { X, Y, Z };

static int
collect(void *user, const void *p, size_t len, struct err *e)
{
	(void)e;
	buf_add(user, p, len);
	return 0;
}

static int
from_memory(
    const struct tensor *t, uint64_t off, void *to, size_t len, struct err *e)
{
	(void)t;
	(void)e;
	memcpy(to, data + off, len);
	return 0;
}

/* The slice's bytes are `want`; stored, behind a reader, and turned round. */
static void
slice_is(const char *text, const char *resolved, const unsigned char *want,
    size_t n, bool reader)
{
	struct slice s;
	struct err e;
	struct src *src;
	struct arena a = { 0 };
	struct buf range = { 0 }, got = { 0 };
	struct tensor view, t = { .name = STR_LIT("t"),
		.dtype = dtype_find(STR_LIT("u8")),
		.ndim = 3,
		.shape = shape,
		.limit = SRC_UNKNOWN,
		.count = X * Y * Z,
		.bytes = X * Y * Z };
	uint64_t left;
	static unsigned char block[64 << 10];
	CHECK(src_open_mem(&src, data, sizeof data, &e) == 0);
	t.src = src;
	t.read = reader ? from_memory : NULL;
	CHECK(slice_parse(&s, str_c(text), &e) == 0);
	CHECK(slice_matches(&s, t.name));
	CHECK(slice_view(&s, &t, &view, &a, &left, &range, &e) == 0);
	CHECK(left == X * Y * Z - n && view.bytes == n && view.count == n);
	CHECK(str_is(buf_view(&range), resolved));
	CHECK(
	    tensor_blocks(&view, block, sizeof block, collect, &got, &e) == 0);
	CHECK(got.len == n && (!n || !memcmp(got.p, want, n)));
	buf_free(&range);
	buf_free(&got);
	src_close(src);
	arena_free(&a);
}

static size_t
by_hand(unsigned char *to, int x0, int x1, int y0, int y1, int z0, int z1)
{
	size_t n = 0;
	for (int x = x0; x < x1; x++)
		for (int y = y0; y < y1; y++)
			for (int z = z0; z < z1; z++)
				to[n++] = data[(x * Y + y) * Z + z];
	return n;
}

static void
test_views(bool reader)
{
	unsigned char want[sizeof data];
	size_t n = by_hand(want, 0, 2, 0, Y, 0, Z);
	slice_is("t[:2]", "0:2", want, n, reader);
	n = by_hand(want, 1, 3, 0, Y, 2, 4);
	slice_is("t[1:,:,2:4]", "1:3,:,2:4", want, n, reader);
	n = by_hand(want, 0, X, 0, Y, 0, Z);
	slice_is("t[:]", ":", want, n, reader);
	slice_is("t[0:3,0:4,0:5]", "0:3,0:4,0:5", want, n, reader);
	slice_is("t[2:2]", "2:2", want, 0, reader);
	slice_is("t[3:]", "3:3", want, 0, reader);
}

static void
test_bad(void)
{
	const char *bad[] = { "", "t", "t[]", "[1:2]", "t[1]", "t[2:1]",
		"t[1:2", "t[1:2:3]", "t[-1:]", "t[a:b]", "t[1:2,]", NULL };
	struct slice s;
	for (int i = 0; bad[i]; i++)
		CHECK(slice_parse(&s, str_c(bad[i]), NULL) == SE_EINVAL);
	/* Does not fit the tensor. */
	struct tensor view, t = { .dtype = dtype_find(STR_LIT("u8")),
		.ndim = 1,
		.shape = shape,
		.count = X,
		.bytes = X };
	struct arena a = { 0 };
	struct buf b = { 0 };
	uint64_t left;
	const char *wrong[] = { "t[:4]", "t[4:]", "t[:1,:1]", NULL };
	for (int i = 0; wrong[i]; i++) {
		CHECK(slice_parse(&s, str_c(wrong[i]), NULL) == 0);
		CHECK(slice_view(&s, &t, &view, &a, &left, &b, NULL) ==
		      SE_EINVAL);
	}
	CHECK(slice_parse(&s, STR_LIT("a.*[:1]"), NULL) == 0);
	CHECK(slice_matches(&s, STR_LIT("a.b")));
	CHECK(!slice_matches(&s, STR_LIT("b.a")));
	arena_free(&a);
	buf_free(&b);
}

int
main(void)
{
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (unsigned char)(i * 7 + 1);
	test_views(false);
	test_views(true);
	test_bad();
	return test_done("slice");
}
