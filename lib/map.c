/* A table from bytes to a 64-bit value: see map.h. */
#include "map.h"

#include <stdlib.h>

#include "hash.h"

enum { SLOTS_MIN = 16 };

struct map_entry {
	struct str key;
	uint64_t hash, value;
};

/*
 * A slot is 0, or the upper half of the hash and the number of the entry, from
 * 1. Slots are small, so that a million keys stay near the processor; the
 * entry is looked at only where half a hash agrees.
 */
#define SLOT_ENTRY UINT32_MAX

static uint64_t *
find(const struct map *m, struct str key, uint64_t h)
{
	size_t mask = m->size - 1;
	for (size_t i = (size_t)h & mask;; i = (i + 1) & mask) {
		uint64_t slot = m->slot[i];
		if (!slot)
			return &m->slot[i];
		if ((slot ^ h) >> 32)
			continue;
		const struct map_entry *en = &m->entry[(slot & SLOT_ENTRY) - 1];
		if (en->hash == h && str_same(en->key, key))
			return &m->slot[i];
	}
}

static size_t
room(size_t slots)
{
	return slots / 4 * 3;
}

static bool
grow(struct map *m)
{
	size_t size = m->size ? m->size * 2 : SLOTS_MIN;
	if (room(size) >= SLOT_ENTRY)
		return false;
	uint64_t *slot = calloc(size, sizeof *slot);
	struct map_entry *entry = realloc(m->entry, room(size) * sizeof *entry);
	if (entry)
		m->entry = entry;
	if (!entry || !slot) {
		free(slot);
		return false;
	}
	/*
	 * Input chooses the keys: an address that the input does not know
	 * keeps it from choosing the collisions.
	 */
	if (!m->size)
		m->seed = (uint64_t)(uintptr_t)slot;
	for (size_t k = 0; k < m->n; k++) {
		uint64_t h = entry[k].hash;
		size_t i = (size_t)h & (size - 1);
		while (slot[i])
			i = (i + 1) & (size - 1);
		slot[i] = (h & ~(uint64_t)SLOT_ENTRY) | (k + 1);
	}
	free(m->slot);
	m->slot = slot;
	m->size = size;
	return true;
}

uint64_t *
map_at(struct map *m, struct str key, bool *fresh)
{
	if (m->n >= room(m->size) && !grow(m))
		return NULL;
	uint64_t h = hash_table(key.p, key.len, m->seed);
	uint64_t *slot = find(m, key, h);
	*fresh = !*slot;
	if (*fresh) {
		m->entry[m->n++] = (struct map_entry){ key, h, 0 };
		*slot = (h & ~(uint64_t)SLOT_ENTRY) | m->n;
	}
	return &m->entry[(*slot & SLOT_ENTRY) - 1].value;
}

uint64_t *
map_get(const struct map *m, struct str key)
{
	if (!m->size)
		return NULL;
	uint64_t *slot = find(m, key, hash_table(key.p, key.len, m->seed));
	return *slot ? &m->entry[(*slot & SLOT_ENTRY) - 1].value : NULL;
}

void
map_free(struct map *m)
{
	free(m->entry);
	free(m->slot);
	*m = (struct map){ 0 };
}
