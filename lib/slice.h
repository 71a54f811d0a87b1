/*
 * NAME[a:b,c:d]: the part of a tensor that counts, when the rest is padding.
 * What is left out is counted, never silent.
 */
#ifndef SLICE_H
#define SLICE_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "buf.h"
#include "err.h"
#include "str.h"
#include "tensor.h"

struct slice_range {
	uint64_t from, to; /* to: SRC_UNKNOWN for the end */
	bool all;          /* a bare `:` */
};

struct slice {
	struct str name; /* GLOB */
	unsigned n;
	struct slice_range range[TENSOR_NDIM_MAX]; /* of the first n dims */
};

/* Borrows the text. */
int slice_parse(struct slice *s, struct str text, struct err *e);
bool slice_matches(const struct slice *s, struct str name);

/*
 * Makes *view the wanted part of t: a strided tensor over the same bytes, with
 * shape and strides in the arena. *left gets the elements left out, `text` the
 * resolved ranges, "0:10,:". SE_EINVAL if a range does not fit the shape,
 * SE_EUNSUP for blocks of several elements and data whose size is not known.
 */
int
slice_view(const struct slice *s, const struct tensor *t, struct tensor *view,
    struct arena *a, uint64_t *left, struct buf *text, struct err *e);

#endif
