/*
 * What a process computed, as one number: equal numbers, equal results, in
 * the same order. Records of different ranks may be interleaved in any way.
 */
#ifndef SIGNATURE_H
#define SIGNATURE_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"
#include "fp.h"
#include "hash.h"

enum {
	SIGNATURE_RANKS = 1 << 16, /* of one job */
	SIGNATURE_NAMED = 1 << 22, /* records of a reference kept to name */
};

struct signature {
	struct u128 digest;
	uint64_t records; /* fp and scalar records; 0: no signature */
	bool whole;       /* nothing is missing, nothing was unreadable */
	char why[120];    /* else */
};

/*
 * Reads the fp and scalar records of a file. Scalars of class volatile are
 * left out. A file that is not there is one without records. Records without
 * any head and end are taken as whole: the process that wrote them ended well.
 * What came through a launcher (`relayed`) has to have its end.
 */
int signature_read(
    const char *path, bool relayed, struct signature *out, struct err *e);

/* The same of a file's bytes, and of nothing but bytes. */
int signature_file(
    const char *path, struct u128 *out, uint64_t *len, struct err *e);
void signature_add(struct signature *s, const char *name, struct u128 digest);

enum first_class {
	FIRST_NONE,         /* none was found */
	FIRST_DIFFERENT,    /* same place, other bits */
	FIRST_INCOMPARABLE, /* same place, another dtype or shape */
	FIRST_UNMATCHED,    /* another place: one is missing or out of order */
};

/* The first record of B, in B's order, that is not what A has there. */
struct first {
	enum first_class class;
	uint64_t index;  /* records of B before it */
	struct fp fp;    /* borrows text */
	struct buf text; /* the line; freed by first_free */
	struct buf a, b; /* hash or value; a may be empty */
};
int first_find(const char *a, const char *b, struct first *out, struct err *e);
void first_free(struct first *f);

#endif
