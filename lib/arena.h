/*
 * Memory that dies together. An arena hands out aligned blocks and frees all
 * of them at once; zero-initialised it is empty and ready.
 * Not thread safe: one arena, one thread at a time.
 */
#ifndef ARENA_H
#define ARENA_H

#include <stddef.h>

#include "str.h"

struct arena {
	struct arena_block *head;
	size_t total; /* bytes handed out */
	size_t limit; /* refuse to go beyond, 0 = no limit */
};

/* Zeroed memory aligned for any type, valid until arena_free; NULL if none. */
void *arena_alloc(struct arena *a, size_t size);
/* n * size with the product checked. */
void *arena_array(struct arena *a, size_t n, size_t size);
/* Copies with a NUL appended (not counted in len); .p is NULL if no memory. */
struct str arena_str(struct arena *a, struct str s);
void arena_free(struct arena *a);

#endif
