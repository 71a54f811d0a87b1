/*
 * Everything fpdump says about the bytes of a tensor, in one pass over them.
 * The definitions, with byte layouts, are in straightedge-fingerprints(5).
 */
#ifndef DIGEST_H
#define DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "hash.h"
#include "tensor.h"

#define DIGEST_TILES_MAX 4096u

/* What is asked for; zeroed: the xxh3-128 of the raw bytes. */
struct digest_how {
	bool mix64;     /* hash and canon by mix64 instead of xxh3-128 */
	bool canon;     /* a second hash, -0 as +0 and NaNs equal */
	bool rows;      /* sum over what lies behind each first index */
	bool stats;     /* min, max, mean, nan, inf, zero */
	uint64_t unit;  /* shardsum: elements in a unit; 0: none */
	unsigned tiles; /* hashes along the first dimension; 0: none */
};

struct digest_stats {
	uint64_t nan, inf, zero;
	bool range; /* min and max: some element is not NaN */
	double min, max;
	bool average; /* mean: of the finite elements */
	double mean;
};

struct digest_result {
	struct u128 hash; /* mix64: in lo */
	bool canon_given, shardsum_given, rows_given, stats_given;
	struct u128 canon, shardsum, rows;
	struct digest_stats stats;
	const struct u128 *tile; /* valid until the next digest_start */
	unsigned ntiles;
	const char *note; /* why something asked for is not there, or NULL */
};

struct digest;

/* Buffers and states that one thread uses for tensor after tensor. */
int
digest_new(struct digest **out, const struct digest_how *how, struct err *e);
void digest_free(struct digest *d);

/* Borrows t until digest_end. */
void digest_start(struct digest *d, const struct tensor *t);
/* The next canonical bytes, whole elements: a tensor_block. */
int digest_add(void *digest, const void *p, size_t len, struct err *e);
void digest_end(struct digest *d, struct digest_result *out);

#endif
