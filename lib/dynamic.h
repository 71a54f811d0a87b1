/*
 * What an ELF file asks the dynamic linker for. Reads only the headers, the
 * dynamic section and its strings, in any class and byte order, so that a
 * library of gigabytes costs nothing.
 *
 * Format: System V ABI, gABI chapters 4 and 5. The linker's cache: glibc,
 * sysdeps/generic/dl-cache.h, format "glibc-ld.so.cache1.1".
 */
#ifndef DYNAMIC_H
#define DYNAMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "err.h"
#include "src.h"
#include "str.h"

#define DYNAMIC_NEEDED_MAX 4096u         /* libraries of one file */
#define DYNAMIC_STRINGS_MAX (256u << 20) /* its names, all symbols included */
#define DYNAMIC_CACHE_MAX (64u << 20)    /* the linker's cache */

struct dynamic {
	unsigned bits;                     /* 32 or 64 */
	unsigned machine;                  /* e_machine */
	bool big;                          /* big-endian */
	struct str interp;                 /* the linker itself, or "" */
	struct str rpath, runpath, soname; /* or "" */
	struct str *needed;
	size_t n;
};

/*
 * Texts live in the arena and end with NUL. A file without a dynamic section
 * (static) has no needed. SE_EFORMAT if it is no ELF file or contradicts
 * itself.
 */
int dynamic_read(
    struct dynamic *d, struct src *src, struct arena *a, struct err *e);

/* Could both be loaded into one process? */
bool dynamic_fits(const struct dynamic *a, const struct dynamic *b);

/* The linker's cache, in memory. */
struct dynamic_cache {
	struct str bytes;
	size_t n; /* entries */
};

/* Checks the header; `bytes` is borrowed. */
int
dynamic_cache_open(struct dynamic_cache *c, struct str bytes, struct err *e);
/*
 * Entry i: name, path, and whether it is for some processors only (the
 * glibc-hwcaps directories). SE_EFORMAT if it points outside.
 */
int dynamic_cache_entry(const struct dynamic_cache *c, size_t i,
    struct str *name, struct str *path, bool *some, struct err *e);

#endif
