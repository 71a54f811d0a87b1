/* zip: archives right and wrong in every field that is checked. */
#include "zip.h"

#include <stdlib.h>

#include "test.h"
#include "zipmake.h"

static char big[200000];

static int
open_bytes(
    const void *p, size_t len, struct zip *z, struct src **src, struct err *e)
{
	*z = (struct zip){ 0 };
	e->code = 0;
	e->msg[0] = 0;
	int r = src_open_mem(src, p, len, e);
	return r ? r : zip_open(z, *src, e);
}

static int
verify_all(struct zip *z, struct err *e)
{
	int r = 0;
	for (size_t i = 0; !r && i < z->n; i++)
		r = zip_verify(z, &z->m[i], e);
	return r;
}

/* The first failure of opening and reading everything. */
static int
read_bytes(const void *p, size_t len, struct err *e)
{
	struct zip z;
	struct src *src;
	int r = open_bytes(p, len, &z, &src, e);
	if (!r)
		r = verify_all(&z, e);
	zip_close(&z);
	src_close(src);
	return r;
}

static bool
refused(const struct buf *b, int code, const char *text)
{
	struct err e;
	int r = read_bytes(b->p, b->len, &e);
	if (r == code && strstr(e.msg, text))
		return true;
	fprintf(stderr, "got %d \"%s\", expected %d \"%s\"\n", r, e.msg, code,
	    text);
	return false;
}

static void
three(struct zipmake *z, unsigned how)
{
	*z = (struct zipmake){ 0 };
	zipmake_add(z, "a", "hello", 5, how);
	zipmake_add(z, "x/", "", 0, 0);
	zipmake_add(z, "x/big", big, sizeof big, how | MAKE_DEFLATE);
	zipmake_add(z, "empty", "", 0, how);
	zipmake_end(z, how);
}

static void
test_forms(void)
{
	static const unsigned forms[] = { 0, MAKE_DESCRIPTOR, MAKE_ZIP64,
		MAKE_DESCRIPTOR | MAKE_NOSIG, MAKE_DESCRIPTOR | MAKE_ZIP64,
		MAKE_DESCRIPTOR | MAKE_ZIP64 | MAKE_NOSIG, MAKE_DEFLATE,
		MAKE_DEFLATE | MAKE_DESCRIPTOR };
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		struct zipmake m;
		three(&m, forms[i]);
		struct zip z;
		struct src *src;
		struct err e;
		CHECK(open_bytes(m.out.p, m.out.len, &z, &src, &e) == 0);
		CHECK(z.n == 3);
		CHECK(verify_all(&z, &e) == 0);
		const struct zip_member *a = zip_find(&z, STR_LIT("a"));
		CHECK(a && a->size == 5 && a->crc == 0x3610a686);
		if (a && a->method == ZIP_STORED)
			CHECK(!memcmp(m.out.p + a->off, "hello", 5));
		struct str all;
		CHECK(!zip_read_all(&z, a, 5, &z.arena, &all, &e) &&
		      str_is(all, "hello"));
		CHECK(zip_read_all(&z, a, 4, &z.arena, &all, &e) == SE_ELIMIT);
		const struct zip_member *b = zip_find(&z, STR_LIT("x/big"));
		CHECK(b && b->method == ZIP_DEFLATED);
		CHECK(!zip_read_all(&z, b, sizeof big, &z.arena, &all, &e) &&
		      all.len == sizeof big && !memcmp(all.p, big, sizeof big));
		CHECK(!zip_find(&z, STR_LIT("x/")));
		CHECK(!zip_find(&z, STR_LIT("b")));
		zip_close(&z);
		src_close(src);
		zipmake_free(&m);
	}
}

/* One byte at a time gives the same as all at once. */
static void
test_small_reads(void)
{
	struct zipmake m;
	three(&m, 0);
	struct zip z;
	struct src *src;
	struct err e;
	CHECK(!open_bytes(m.out.p, m.out.len, &z, &src, &e));
	struct zip_reader *r;
	CHECK(!zip_reader_new(&r, &z, zip_find(&z, STR_LIT("x/big")), &e));
	size_t n = 1, at = 0;
	bool same = true;
	for (char c; at <= sizeof big; at += n) {
		if (zip_read(r, &c, 1, &n, &e) || !n)
			break;
		same = same && c == big[at];
	}
	CHECK(same && at == sizeof big && n == 0);
	zip_reader_free(r);
	zip_close(&z);
	src_close(src);
	zipmake_free(&m);
}

/* One field of one header changed. Offsets are those of APPNOTE 4.3. */
static const struct {
	const char *what;
	bool central; /* else local */
	unsigned off, len;
	unsigned long long value;
	int code;
	const char *text;
} lies[] = {
	{ "signature", false, 0, 4, 0, SE_EFORMAT, "no local header" },
	{ "signature", true, 0, 4, 0, SE_EFORMAT, "no whole entry" },
	{ "flags", false, 6, 2, 0, SE_EFORMAT, "flags" },
	{ "flags", true, 8, 2, 0, SE_EFORMAT, "flags" },
	{ "encrypted", true, 8, 2, 1, SE_EUNSUP, "encrypted" },
	{ "strong", true, 8, 2, 0x40, SE_EUNSUP, "encrypted" },
	{ "patch", true, 8, 2, 0x20, SE_EUNSUP, "patch" },
	{ "odd flag", true, 8, 2, 0x100, SE_EUNSUP, "flag bits 0x0100" },
	{ "method", false, 8, 2, 8, SE_EFORMAT, "method 8" },
	{ "bzip2", true, 10, 2, 12, SE_EUNSUP, "bzip2" },
	{ "zstd", true, 10, 2, 93, SE_EUNSUP, "zstd" },
	{ "method", true, 10, 2, 77, SE_EUNSUP, "method 77" },
	{ "crc", false, 14, 4, 1, SE_EFORMAT, "CRC 00000001" },
	{ "crc", true, 16, 4, 1, SE_EFORMAT, "CRC 3610a686" },
	{ "csize", false, 18, 4, 4, SE_EFORMAT, "4 and 5 bytes" },
	{ "size", false, 22, 4, 6, SE_EFORMAT, "5 and 6 bytes" },
	{ "csize", true, 20, 4, 4, SE_EFORMAT, "stored, but 4" },
	{ "size", true, 24, 4, 6, SE_EFORMAT, "stored, but 5" },
	{ "zip64", true, 24, 4, 0xffffffff, SE_EFORMAT, "zip64" },
	{ "name", false, 30, 1, 'b', SE_EFORMAT, "another name" },
	{ "name length", false, 26, 2, 2, SE_EFORMAT, "another name" },
	{ "name", true, 46, 1, 'b', SE_EFORMAT, "another name" },
	{ "name length", true, 28, 2, 60000, SE_EFORMAT, "whole entry" },
	{ "extra length", false, 28, 2, 7, SE_EFORMAT, "extra field" },
	{ "extra length", false, 28, 2, 60000, SE_EFORMAT, "reach into" },
	{ "disk", true, 34, 2, 1, SE_EUNSUP, "another part" },
	{ "offset", true, 42, 4, 1, SE_EFORMAT, "no local header" },
	{ "offset", true, 42, 4, 0x7fffffff, SE_EFORMAT, "reach into" },
};

static void
test_lies(void)
{
	for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
		struct zipmake m = { 0 };
		zipmake_add(&m, "a", "hello", 5, 0);
		poke(lies[i].central ? &m.dir : &m.out, lies[i].off,
		    lies[i].value, lies[i].len);
		zipmake_end(&m, 0);
		if (!CHECK(refused(&m.out, lies[i].code, lies[i].text)))
			fprintf(stderr, "%s\n", lies[i].what);
		zipmake_free(&m);
	}
}

static void
test_end_record(void)
{
	static const struct {
		unsigned off, len;
		unsigned long long value;
		int code;
		const char *text;
	} end[] = {
		{ 4, 2, 1, SE_EUNSUP, "parts" },
		{ 8, 2, 2, SE_EUNSUP, "parts" },
		{ 8, 4, 0x00020002, SE_EFORMAT, "cannot hold 2" },
		{ 8, 4, 0, SE_EFORMAT, "after the 0 entries" },
		{ 12, 4, 0xffffff, SE_EFORMAT, "directory of" },
		{ 12, 4, 46, SE_EFORMAT, "belong to no part" },
		{ 16, 4, 0xffffff, SE_EFORMAT, "directory of" },
		{ 20, 2, 5, SE_ETRUNC, "comment of 5" },
	};
	for (size_t i = 0; i < sizeof end / sizeof *end; i++) {
		struct zipmake m = { 0 };
		zipmake_add(&m, "a", "hello", 5, 0);
		zipmake_end(&m, 0);
		poke(&m.out, m.out.len - 22 + end[i].off, end[i].value,
		    end[i].len);
		CHECK(refused(&m.out, end[i].code, end[i].text));
		zipmake_free(&m);
	}
}

static void
test_zip64_end(void)
{
	static const struct {
		int off; /* from the zip64 end record */
		unsigned len;
		unsigned long long value;
		int code;
		const char *text;
	} end[] = {
		{ 0, 4, 0, SE_EFORMAT, "no zip64 end record" },
		{ 4, 8, 45, SE_EFORMAT, "does not reach" },
		{ 24, 8, 2, SE_EUNSUP, "parts" },
		{ 40, 8, UINT64_MAX, SE_EFORMAT, "directory of" },
		{ 48, 8, UINT64_MAX, SE_EFORMAT, "directory of" },
		{ 56 + 8, 8, UINT64_MAX, SE_EFORMAT, "said to be at" },
		{ 56 + 16, 4, 2, SE_EUNSUP, "in 2 parts" },
		{ 76 + 8, 4, 0x00070007, SE_EFORMAT, "disagree" },
	};
	for (size_t i = 0; i < sizeof end / sizeof *end; i++) {
		struct zipmake m = { 0 };
		zipmake_add(&m, "a", "hello", 5, MAKE_ZIP64);
		zipmake_end(&m, MAKE_ZIP64);
		poke(&m.out, m.out.len - 98 + (size_t)end[i].off, end[i].value,
		    end[i].len);
		CHECK(refused(&m.out, end[i].code, end[i].text));
		zipmake_free(&m);
	}
}

static void
test_damage(void)
{
	struct zipmake m = { 0 };
	zipmake_add(&m, "a\n", "hello", 5, 0);
	zipmake_end(&m, 0);
	m.out.p[30 + 2 + 5] ^= 1;
	CHECK(refused(&m.out, SE_EFORMAT, "zip member a\\n: content has CRC"));
	m.out.p[30 + 2 + 5] ^= 1;
	struct buf b = { 0 };
	buf_puts(&b, "MZ");
	buf_str(&b, buf_view(&m.out));
	CHECK(refused(&b, SE_EFORMAT, "2 bytes that belong to no part"));
	b.len = 0;
	buf_str(&b, buf_view(&m.out));
	buf_puts(&b, "\n");
	CHECK(refused(&b, SE_EFORMAT, "1 bytes after the zip end"));
	zipmake_free(&m);

	/* In front, and all offsets agree: a program that is an archive. */
	m = (struct zipmake){ 0 };
	buf_puts(&m.out, "MZ");
	zipmake_add(&m, "a", "hello", 5, 0);
	zipmake_end(&m, 0);
	CHECK(refused(&m.out, SE_EFORMAT, "2 bytes before the first"));
	zipmake_free(&m);

	/* The size says less or more than the stream has; both places agree. */
	for (int d = -1; d <= 1; d += 2) {
		m = (struct zipmake){ 0 };
		zipmake_add(&m, "a", big, 1000, MAKE_DEFLATE);
		poke(&m.out, 22, (unsigned)(1000 + d), 4);
		poke(&m.dir, 24, (unsigned)(1000 + d), 4);
		zipmake_end(&m, 0);
		CHECK(refused(&m.out, SE_EFORMAT,
		    d < 0 ? "more than the 999 bytes declared"
			  : "1001 bytes decl"));
		zipmake_free(&m);
	}
	/* A bomb: more than deflate can make is refused unread. */
	m = (struct zipmake){ 0 };
	zipmake_add(&m, "a", "", 0, MAKE_DEFLATE);
	poke(&m.out, 22, 1u << 30, 4);
	poke(&m.dir, 24, 1u << 30, 4);
	zipmake_end(&m, 0);
	CHECK(refused(&m.out, SE_EFORMAT, "cannot hold"));
	zipmake_free(&m);

	m = (struct zipmake){ 0 };
	zipmake_add(&m, "a", "hello", 5, MAKE_DESCRIPTOR);
	poke(&m.out, m.out.len - 4, 6, 4);
	zipmake_end(&m, 0);
	CHECK(refused(&m.out, SE_EFORMAT, "no data descriptor"));
	zipmake_free(&m);
	buf_free(&b);
}

static void
test_overlap(void)
{
	/* A second entry over the first one's data (CVE-2024-0450). */
	struct zipmake m = { 0 };
	zipmake_add(&m, "a", "hello", 5, 0);
	struct buf one = { 0 };
	buf_str(&one, buf_view(&m.dir));
	buf_str(&m.dir, buf_view(&one));
	m.n = 2;
	zipmake_end(&m, 0);
	CHECK(refused(&m.out, SE_EFORMAT, "overlaps"));
	zipmake_free(&m);
	buf_free(&one);

	m = (struct zipmake){ 0 };
	zipmake_add(&m, "a", "hello", 5, 0);
	zipmake_add(&m, "a", "hello", 5, 0);
	zipmake_end(&m, 0);
	CHECK(refused(&m.out, SE_EFORMAT, "zip member a: is there twice"));
	zipmake_free(&m);

	/* Inner: a member inside the data of another. */
	struct zipmake in = { 0 };
	zipmake_add(&in, "b", "x", 1, 0);
	m = (struct zipmake){ 0 };
	zipmake_add(&m, "a", in.out.p, in.out.len, 0);
	poke(&in.dir, 42, m.out.len - in.out.len, 4);
	buf_str(&m.dir, buf_view(&in.dir));
	m.n = 2;
	zipmake_end(&m, 0);
	CHECK(refused(&m.out, SE_EFORMAT, "zip member b: overlaps"));
	zipmake_free(&m);
	zipmake_free(&in);
}

static bool
content_is(const struct zip *z, const char *name, const void *p, size_t len)
{
	struct arena a = { 0 };
	struct str all;
	const struct zip_member *m = zip_find(z, str_c(name));
	bool same = m && !zip_read_all(z, m, len, &a, &all, NULL) &&
		    str_same(all, (struct str){ p, len });
	arena_free(&a);
	return same;
}

/* Refused, or nothing that matters was changed (a time, a spare bit). */
static bool
refused_or_same(const struct buf *b)
{
	struct zip z;
	struct src *src;
	struct err e;
	int r = open_bytes(b->p, b->len, &z, &src, &e);
	if (!r)
		r = verify_all(&z, &e);
	bool ok = r || (z.n == 2 && content_is(&z, "a", "hello", 5) &&
			   content_is(&z, "b/c", big, 300));
	zip_close(&z);
	src_close(src);
	return ok;
}

static void
test_cut_and_flip(unsigned how)
{
	struct zipmake m = { 0 };
	struct err e;
	zipmake_add(&m, "a", "hello", 5, how);
	zipmake_add(&m, "b/c", big, 300, how | MAKE_DEFLATE);
	zipmake_end(&m, how);
	CHECK(read_bytes(m.out.p, m.out.len, &e) == 0);
	for (size_t n = 0; n < m.out.len; n++) {
		char *p = malloc(n ? n : 1); /* so that ASan sees the end */
		memcpy(p, m.out.p, n);
		CHECK(read_bytes(p, n, &e) != 0);
		free(p);
	}
	for (size_t i = 0; i < m.out.len * 8; i++) {
		m.out.p[i / 8] ^= (char)(1 << i % 8);
		CHECK(refused_or_same(&m.out));
		m.out.p[i / 8] ^= (char)(1 << i % 8);
	}
	zipmake_free(&m);
}

int
main(void)
{
	for (size_t i = 0; i < sizeof big; i++)
		big[i] = (char)(i * i >> 7);
	test_forms();
	test_small_reads();
	test_lies();
	test_end_record();
	test_zip64_end();
	test_damage();
	test_overlap();
	test_cut_and_flip(0);
	test_cut_and_flip(MAKE_DESCRIPTOR);
	test_cut_and_flip(MAKE_ZIP64 | MAKE_DESCRIPTOR);
	return test_done("unit zip");
}
