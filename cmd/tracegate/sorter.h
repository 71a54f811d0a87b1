/*
 * Puts the events of a file in order of time. Runs that do not fit the memory
 * given go to a temporary file and are merged into another one, which is
 * mapped: the caller sees one array either way.
 */
#ifndef SORTER_H
#define SORTER_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"

/* What is kept of an event: 40 bytes. */
struct item {
	int64_t ts, dur;
	uint64_t off; /* of its bytes */
	uint32_t len;
	uint32_t lane, key;
	char ph;
	uint8_t cls, flags, cost; /* cost: of cost_bin() */
};

enum {
	ITEM_PAIRED = 1, /* the other half was found; dur is the slice's */
	ITEM_ORPHAN = 2, /* an end without a begin */
	ITEM_OPEN = 4,   /* a begin without an end */
	ITEM_KEEP = 8,
	ITEM_NAMED = 16, /* an end with a name of its own */
};

struct sorter;

/* `memory` bytes in all; at least a few MiB. */
struct sorter *sorter_new(uint64_t memory, const char *tmpdir);
/* Stable: equal ts stay in the order they were added. */
int sorter_add(struct sorter *s, const struct item *it, struct err *e);
/* All items in order; valid until sorter_free. */
int
sorter_finish(struct sorter *s, struct item **items, size_t *n, struct err *e);
uint64_t sorter_runs(const struct sorter *s);
void sorter_free(struct sorter *s);

#endif
