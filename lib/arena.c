/* Memory that dies together: see arena.h. */
#include "arena.h"

#include <stdint.h>
#include <stdlib.h>

enum { BLOCK = 16 << 10, ALIGN = 16 };

struct arena_block {
	struct arena_block *next;
	size_t used, size;
	_Alignas(ALIGN) char data[];
};

void *
arena_alloc(struct arena *a, size_t size)
{
	if (size > SIZE_MAX / 2)
		return NULL;
	size = size ? (size + ALIGN - 1) & ~(size_t)(ALIGN - 1) : ALIGN;
	if (a->limit && size > a->limit - a->total)
		return NULL;

	struct arena_block *b = a->head;
	if (!b || size > b->size - b->used) {
		size_t want = size > BLOCK / 4 ? size : BLOCK;
		struct arena_block *fresh = malloc(sizeof *fresh + want);
		if (!fresh)
			return NULL;
		fresh->used = 0;
		fresh->size = want;
		/* A large block goes behind the head, which still has room. */
		if (b && want != BLOCK) {
			fresh->next = b->next;
			b->next = fresh;
		} else {
			fresh->next = b;
			a->head = fresh;
		}
		b = fresh;
	}
	void *p = b->data + b->used;
	b->used += size;
	a->total += size;
	return memset(p, 0, size);
}

void *
arena_array(struct arena *a, size_t n, size_t size)
{
	if (size && n > SIZE_MAX / size)
		return NULL;
	return arena_alloc(a, n * size);
}

struct str
arena_str(struct arena *a, struct str s)
{
	char *p = s.len < SIZE_MAX ? arena_alloc(a, s.len + 1) : NULL;
	if (!p)
		return STR_NULL;
	if (s.len)
		memcpy(p, s.p, s.len);
	return (struct str){ p, s.len };
}

void
arena_free(struct arena *a)
{
	for (struct arena_block *b = a->head, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	a->head = NULL;
	a->total = 0;
}
