/*
 * The record types: their keys, in the order writers keep, with the kind of
 * each value. The section 5 pages describe the same list and a test compares
 * the two. Keys are added, never renamed.
 */
#ifndef SCHEMA_H
#define SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

#include "str.h"

/* Version of the line format that we write; readers take this and one less. */
#define SCHEMA_VERSION 1

enum schema_kind {
	KEY_TEXT = 0,
	KEY_INT = 1,   /* decimal integer */
	KEY_FLOAT = 2, /* round-trip decimal, nan, inf, -inf */
	KEY_TIME = 3,  /* seconds since the epoch, up to 9 decimals */
	KEY_HASH = 4,  /* algorithm:hex */
};

struct schema_key {
	const char *name;
	unsigned char len;
	unsigned char kind;
	unsigned char required; /* a record without it is a bad line */
};

struct schema_type {
	const char *name;
	const struct schema_key *key; /* ended by a NULL name */
};

/* Ended by a NULL name. */
extern const struct schema_type schema_types[];

const struct schema_type *schema_find(struct str type);
/* Can a person type it? Such records need no head and no end. */
bool schema_is_typed(struct str type);
/* Position of the key, or -1. `from` is where to look first. */
int schema_key(const struct schema_type *t, struct str key, int from);

#endif
