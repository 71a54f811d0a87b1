/* A table from bytes to a 64-bit value: see map.h. */
#include "map.h"

#include <stdlib.h>

#include "hash.h"

struct map_slot {
	struct str key;
	uint64_t hash, value;
	bool used;
};

static struct map_slot *
find(const struct map *m, struct str key, uint64_t h)
{
	size_t i = (size_t)h & (m->size - 1);
	while (m->slot[i].used &&
	       (m->slot[i].hash != h || !str_same(m->slot[i].key, key)))
		i = (i + 1) & (m->size - 1);
	return &m->slot[i];
}

static bool
grow(struct map *m)
{
	struct map next = { .n = m->n, .seed = m->seed };
	next.size = m->size ? m->size * 2 : 16;
	next.slot = calloc(next.size, sizeof *next.slot);
	if (!next.slot)
		return false;
	/*
	 * Input chooses the keys: an address that the input does not know
	 * keeps it from choosing the collisions.
	 */
	if (!m->size)
		next.seed = (uint64_t)(uintptr_t)next.slot;
	for (size_t i = 0; i < m->size; i++)
		if (m->slot[i].used)
			*find(&next, m->slot[i].key, m->slot[i].hash) =
			    m->slot[i];
	free(m->slot);
	*m = next;
	return true;
}

uint64_t *
map_at(struct map *m, struct str key, bool *fresh)
{
	if (m->n >= m->size / 4 * 3 && !grow(m))
		return NULL;
	uint64_t h = hash_table(key.p, key.len, m->seed);
	struct map_slot *s = find(m, key, h);
	*fresh = !s->used;
	if (*fresh) {
		*s = (struct map_slot){ key, h, 0, true };
		m->n++;
	}
	return &s->value;
}

uint64_t *
map_get(const struct map *m, struct str key)
{
	if (!m->size)
		return NULL;
	struct map_slot *s = find(m, key, hash_table(key.p, key.len, m->seed));
	return s->used ? &s->value : NULL;
}

void
map_free(struct map *m)
{
	free(m->slot);
	*m = (struct map){ 0 };
}
