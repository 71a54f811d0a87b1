/*
 * Which records a user wants: --steps and --select, the same in every command
 * that has them.
 */
#ifndef SELECT_H
#define SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "str.h"

struct select {
	bool steps;
	uint64_t from, to; /* both included */
	const char **glob; /* over names; none: all */
	size_t nglobs;
};

/* "A:B", "A:", ":B" or "A". */
int select_steps(struct select *s, struct str range, struct err *e);
/* Does the name match one of the patterns? */
bool select_name(const struct select *s, struct str name);
/* With --steps a record without a step, or with one that is no number, is not
 * wanted. */
bool select_step(const struct select *s, struct str step);

#endif
