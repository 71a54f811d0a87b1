/*
 * Whose time a path is: by kind of stretch, lane and name.
 */
#ifndef BLAME_H
#define BLAME_H

#include <stdbool.h>
#include <stdint.h>

#include "model.h"
#include "rec.h"

struct blame {
	const char *class; /* of a table: compared by address and content */
	uint32_t lane, name;
	int64_t dur; /* ns */
	uint64_t n;
	bool nowhere; /* of no slice */
};

/* Once `dur` on a slice, or on none (-1). */
struct blame blame_of(const struct model *m, int32_t slice, int64_t dur);
/* Adds up what is of one kind, the largest first. The new number. */
uint32_t blame_add_up(struct blame *b, uint32_t n);
void blame_put(struct rec_out *o, const struct model *m, const struct blame *b,
    int64_t wall);
/* A field of the text that JSON text stands for. */
void blame_text(struct rec_out *o, const char *key, struct str content);

#endif
