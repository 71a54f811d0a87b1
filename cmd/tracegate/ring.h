/*
 * Bytes of events that wait: one block of memory, given out in order of
 * arrival and given back in nearly the same order. Never grows.
 */
#ifndef RING_H
#define RING_H

#include <stdbool.h>
#include <stdint.h>

#include "str.h"

struct ring {
	char *mem;
	uint64_t size;
	uint64_t head, tail; /* running offsets; head - tail is in use */
};

void ring_init(struct ring *r, uint64_t size);
void ring_free(struct ring *r);
/* Copies the bytes in; false if there is no room now. *at names them. */
bool ring_put(struct ring *r, struct str bytes, uint64_t *at);
struct str ring_get(const struct ring *r, uint64_t at);
void ring_drop(struct ring *r, uint64_t at);

#endif
