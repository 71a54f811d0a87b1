/* ELF files and the linker's cache from anywhere. */
#include <stdint.h>
#include <stdlib.h>

#include "dynamic.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);

/* Every byte that is handed out may be read. */
static void
touch(struct str s)
{
	volatile char any = 0;
	for (size_t i = 0; i < s.len; i++)
		any ^= s.p[i];
	(void)any;
}

static void
read_elf(const uint8_t *p, size_t len)
{
	struct arena a = { .limit = 16u << 20 };
	struct dynamic d;
	struct src *src;
	struct err e;
	if (src_open_mem(&src, p, len, &e))
		return;
	if (!dynamic_read(&d, src, &a, &e)) {
		touch(d.interp);
		touch(d.rpath);
		touch(d.runpath);
		touch(d.soname);
		for (size_t i = 0; i < d.n; i++)
			touch(d.needed[i]);
		if (!dynamic_fits(&d, &d))
			abort();
	}
	src_close(src);
	arena_free(&a);
}

static void
read_cache(const uint8_t *p, size_t len)
{
	struct dynamic_cache c;
	struct str name, path;
	bool some;
	struct err e;
	struct str bytes = { (const char *)p, len };
	if (dynamic_cache_open(&c, bytes, &e))
		return;
	for (size_t i = 0; i < c.n; i++)
		if (!dynamic_cache_entry(&c, i, &name, &path, &some, &e)) {
			touch(name);
			touch(path);
		}
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	read_elf(p, len);
	read_cache(p, len);
	return 0;
}
