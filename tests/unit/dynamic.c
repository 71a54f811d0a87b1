/* ELF files of other machines, and the linker's cache. */
#include "dynamic.h"

#include "test.h"

#define CORPUS "tests/fuzz/corpus/dynamic/"

static void
test_big_endian(void)
{
	struct arena a = { 0 };
	struct dynamic d, other;
	struct src *src;
	struct err e;
	if (!CHECK(src_open(&src, CORPUS "ppc32", NULL, 0, &e) == 0))
		return;
	CHECK(dynamic_read(&d, src, &a, &e) == 0);
	CHECK(d.bits == 32 && d.big && d.machine == 20); /* EM_PPC */
	CHECK(d.n == 1 && str_is(d.needed[0], "liby.so"));
	CHECK(str_is(d.runpath, "/opt/lib") && !d.rpath.len && !d.interp.len);
	src_close(src);
	if (!CHECK(src_open(&src, CORPUS "x86-64", NULL, 0, &e) == 0))
		return;
	CHECK(dynamic_read(&other, src, &a, &e) == 0);
	CHECK(other.bits == 64 && !other.big && other.machine == 62);
	CHECK(other.n == 1 && str_is(other.needed[0], "libc.so.6"));
	CHECK(str_is(other.runpath, "$ORIGIN/lib"));
	CHECK(str_starts(other.interp, "/"));
	CHECK(!dynamic_fits(&d, &other) && dynamic_fits(&d, &d));
	src_close(src);
	arena_free(&a);
}

static void
test_cache(void)
{
	char text[512];
	size_t n;
	struct src *src;
	struct err e;
	struct dynamic_cache c;
	struct str name, path;
	bool some;
	if (!CHECK(src_open(&src, CORPUS "cache", NULL, 0, &e) == 0))
		return;
	CHECK(src_read_some(src, 0, text, sizeof text, &n, &e) == 0);
	src_close(src);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	CHECK(dynamic_cache_open(&c, (struct str){ text, n }, &e) == 0);
	CHECK(c.n == 2);
	CHECK(dynamic_cache_entry(&c, 0, &name, &path, &some, &e) == 0);
	CHECK(str_is(name, "libx.so.1") && str_is(path, "/lib/libx.so.1"));
	CHECK(!some);
	CHECK(dynamic_cache_entry(&c, 1, &name, &path, &some, &e) == 0 && some);
	CHECK(
	    dynamic_cache_open(&c, (struct str){ text, 90 }, &e) == SE_EFORMAT);
#endif
	CHECK(dynamic_cache_open(&c, STR_LIT("text"), &e) == SE_EUNSUP);
}

static void
test_not_elf(void)
{
	struct arena a = { 0 };
	struct dynamic d;
	struct src *src;
	struct err e;
	static const char text[64] = "#!/bin/sh";
	CHECK(src_open_mem(&src, text, sizeof text, &e) == 0);
	CHECK(dynamic_read(&d, src, &a, &e) == SE_EFORMAT);
	src_close(src);
	arena_free(&a);
}

int
main(void)
{
	test_big_endian();
	test_cache();
	test_not_elf();
	return test_done("dynamic");
}
