/*
 * An object file of the target: its functions by symbol, and the places in
 * them that a compiler left for instrumentation.
 */
#ifndef OBJECT_H
#define OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "elf.h"
#include "err.h"

struct func {
	const char *name;  /* as in the symbol table */
	const char *shown; /* demangled, or the same pointer */
	const char *file;  /* of a local symbol: its source, or NULL */
	uint64_t vaddr, size;
	uint64_t off;      /* in the file */
	uint32_t alias_of; /* index + 1 of the function at the same place */
	bool ifunc;
};

struct site {
	uint64_t vaddr;
	uint32_t func; /* index */
	uint16_t kind; /* enum pmu_site */
	uint16_t before;
};

struct object {
	char *path;
	struct elf elf;
	struct arena arena;
	struct func *func; /* sorted by address, aliases behind the first */
	size_t nfuncs;
	struct site *site; /* sorted by address, one per function */
	size_t nsites;
	size_t by_section, by_scan; /* sites found by the compiler's list, or
				       by their bytes only */
	size_t odd;                 /* listed places whose bytes are no sled */
	bool hooks;                 /* calls __cyg_profile_func_enter */
	bool go;                    /* built by Go */
	bool dynamic;     /* has an interpreter: takes preloaded libraries */
	bool contexts;    /* imports swapcontext and friends */
	bool from_dynsym; /* stripped: exported functions only */
	void *map;
	size_t len;
};

/* SE_ENOENT, SE_EFORMAT...; no symbols is no error: nfuncs is 0. */
int object_open(struct object **out, const char *path, struct err *e);
/* The same from memory, which is borrowed until object_close. */
int
object_open_mem(struct object **out, const void *p, size_t len, struct err *e);
void object_close(struct object *o);
/*
 * Gives functions their names for people; before it, shown is name. Functions
 * of one name (static ones of several files) become "name@file.c", and where
 * that is not enough "name#2" in order of address.
 */
void object_demangle(struct object *o);

/* The function whose code contains the address, or NULL. */
const struct func *object_at(const struct object *o, uint64_t vaddr);
/* Bytes of the file at an address; empty if there are none. */
struct str object_code(const struct object *o, uint64_t vaddr, size_t len);

/* Does the pattern (a GLOB) match the function, by either name? */
bool func_matches(const struct func *f, const char *pattern);

#endif
