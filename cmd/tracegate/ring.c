/* Bytes of events that wait: see ring.h. */
#include "ring.h"

#include <string.h>

#include "big.h"

/* Before each block. `room` counts it, the bytes and the padding. */
struct block {
	uint32_t room, len;
	uint64_t dead;
};

void
ring_init(struct ring *r, uint64_t size)
{
	*r = (struct ring){ .size = size / sizeof(struct block) *
				    sizeof(struct block) };
	r->mem = big_alloc(1, r->size);
}

void
ring_free(struct ring *r)
{
	big_free(r->mem, 1, r->size);
	*r = (struct ring){ 0 };
}

static struct block *
block_at(const struct ring *r, uint64_t at)
{
	return (struct block *)(void *)(r->mem + at % r->size);
}

bool
ring_put(struct ring *r, struct str bytes, uint64_t *at)
{
	uint64_t unit = sizeof(struct block);
	uint64_t room = (unit + bytes.len + unit - 1) / unit * unit;
	uint64_t edge = r->size - r->head % r->size;
	uint64_t skip = edge < room ? edge : 0;
	if (room > r->size || r->head + skip + room - r->tail > r->size)
		return false;
	if (skip) {
		/* What is left before the edge is a dead block. */
		*block_at(r, r->head) =
		    (struct block){ .room = (uint32_t)skip, .dead = 1 };
		if (r->tail == r->head)
			r->tail += skip;
		r->head += skip;
	}
	struct block *b = block_at(r, r->head);
	*b = (struct block){ (uint32_t)room, (uint32_t)bytes.len, 0 };
	memcpy(b + 1, bytes.p, bytes.len);
	*at = r->head;
	r->head += room;
	return true;
}

struct str
ring_get(const struct ring *r, uint64_t at)
{
	const struct block *b = block_at(r, at);
	return (struct str){ (const char *)(b + 1), b->len };
}

void
ring_drop(struct ring *r, uint64_t at)
{
	block_at(r, at)->dead = 1;
	while (r->tail < r->head && block_at(r, r->tail)->dead)
		r->tail += block_at(r, r->tail)->room;
}
