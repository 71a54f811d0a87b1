/*
 * A table from bytes to a 64-bit value. Zero-initialised it is empty and
 * ready. Keys are not copied: they live at least as long as the map. There is
 * no order, so nothing printed may depend on one.
 */
#ifndef MAP_H
#define MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "str.h"

struct map {
	struct map_entry *entry; /* in the order they came */
	uint64_t *slot;          /* where in entry[], by hash */
	size_t n, size;          /* entries, slots (0 or a power of two) */
	uint64_t seed;
};

/*
 * The value of `key`, added with *fresh true and value 0 if it was not there.
 * Valid until the next map_at. NULL: out of memory.
 */
uint64_t *map_at(struct map *m, struct str key, bool *fresh);
/* The value of `key`, or NULL. Valid until the next map_at. */
uint64_t *map_get(const struct map *m, struct str key);
void map_free(struct map *m);

#endif
