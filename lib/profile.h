/*
 * How two tensors of one type and shape differ, element by element: how many,
 * where, by how much, and which bits. What differs is decided by the bits.
 */
#ifndef PROFILE_H
#define PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "dtype.h"
#include "err.h"
#include "hash.h"
#include "tensor.h"

#define PROFILE_BITS 128  /* of the widest element, c128 */
#define PROFILE_RANGES 64 /* ranges of rows that are remembered */

struct profile_range {
	uint64_t from, to; /* rows from..to-1 */
};

struct profile {
	const struct dtype *dtype;
	unsigned ndim;
	uint64_t shape[TENSOR_NDIM_MAX];
	uint64_t count; /* elements (blocks) seen */

	uint64_t differing;
	uint64_t first;                                       /* flat index */
	uint64_t low[TENSOR_NDIM_MAX], high[TENSOR_NDIM_MAX]; /* the box */
	uint64_t nrows; /* rows (first index) with a difference */
	struct profile_range range[PROFILE_RANGES];
	size_t nranges;
	bool ranges_cut; /* there were more */
	uint64_t bit[PROFILE_BITS];
	unsigned width; /* bits of an element, 0: no histogram */
	bool ulp_given; /* floats; NaNs have no distance */
	uint64_t ulp;
	bool abs_given; /* finite values */
	double abs, rel;
	uint64_t stride; /* constant distance between differences, or 0 */
	bool rows_permuted;

	/* what the differing elements are */
	uint64_t nullified, nonfinite, single_bit, zero_sign;

	/* private */
	uint64_t last, last_row, row_len, in_row;
	bool irregular;
	struct hash *row[2];
	struct u128 sum[2];
};

int profile_start(struct profile *p, const struct dtype *dtype, unsigned ndim,
    const uint64_t *shape, struct err *e);
/* Consecutive canonical bytes of both, whole elements. */
void profile_add(struct profile *p, const void *a, const void *b, size_t len);
/* No more bytes: the rest of *p can be read. */
void profile_end(struct profile *p);

/*
 * rows-permuted, zero-sign, nullified, nan-inf, single-bit or multi-bit: the
 * first that all differing elements have in common; "different" for types
 * whose elements are not looked into. NULL: nothing differs.
 */
const char *profile_class(const struct profile *p);

/* Texts for records: "3,17", "0-3,17", "5,8-9", "20x1,31x7". */
void profile_put_first(struct buf *b, const struct profile *p);
void profile_put_box(struct buf *b, const struct profile *p);
void profile_put_rows(struct buf *b, const struct profile *p);
void profile_put_bits(struct buf *b, const struct profile *p);

#endif
