/*
 * Element types and their canonical names. One table; every reader maps its
 * own names onto it, so that the same tensor has the same dtype out of every
 * format. Types that only one format knows (a numpy record, a GGUF quant
 * block) are made with dtype_opaque and compare by name.
 */
#ifndef DTYPE_H
#define DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "str.h"

enum dtype_kind {
	DTYPE_FLOAT = 1,
	DTYPE_INT = 2,
	DTYPE_UINT = 3,
	DTYPE_COMPLEX = 4,
	DTYPE_BOOL = 5,
	DTYPE_OPAQUE = 6, /* bytes we do not look into */
};

struct dtype {
	const char *name; /* canonical: f32 bf16 e4m3 i64 bool c64 ... */
	unsigned kind;
	uint32_t block; /* elements in one block, 1 for most */
	uint32_t size;  /* bytes in one block */
	uint32_t word;  /* unit of byte order: c64 has 4, opaque 1 */
};

/* By canonical name, or a usual alias (float32, fp32, half ...); or NULL. */
const struct dtype *dtype_find(struct str name);
/*
 * A type of `size` bytes an element (or `block` elements) under a name of its
 * own; lives in the arena. NULL: out of memory.
 */
const struct dtype *dtype_opaque(struct arena *a, struct str name,
    uint32_t block, uint32_t size, uint32_t word);

/* Bytes of n elements; false on overflow or if n is no whole blocks. */
bool dtype_bytes(const struct dtype *t, uint64_t n, uint64_t *bytes);

/*
 * The i-th element of little-endian data as a double, for statistics and
 * display: float, integer and bool kinds of block 1, and the real (part 0) or
 * imaginary (part 1) part of complex ones. Integers beyond 2^53 are rounded.
 * False if the type has no such reading.
 */
bool dtype_value(
    const struct dtype *t, const void *data, size_t i, int part, double *out);

#endif
