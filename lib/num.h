/*
 * Numbers: checked arithmetic on sizes from input, and reading and writing
 * them without the locale.
 */
#ifndef NUM_H
#define NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"
#include "str.h"

/* False, and *out untouched, on overflow. */
static inline bool
num_add(uint64_t a, uint64_t b, uint64_t *out)
{
	return !__builtin_add_overflow(a, b, out);
}

static inline bool
num_mul(uint64_t a, uint64_t b, uint64_t *out)
{
	return !__builtin_mul_overflow(a, b, out);
}

/*
 * Each reads the whole of s and nothing else: no white space, no plus sign.
 * The message says what was expected and what was found.
 */
int
num_u64(struct str s, uint64_t min, uint64_t max, uint64_t *out, struct err *e);
int
num_i64(struct str s, int64_t min, int64_t max, int64_t *out, struct err *e);
/* Decimal or exponent form, nan, inf, -inf. */
int num_f64(struct str s, double *out, struct err *e);
/* A count of bytes: digits with an optional K, M, G or T (powers of 1024). */
int num_size(
    struct str s, uint64_t min, uint64_t max, uint64_t *out, struct err *e);
/* A duration in nanoseconds: digits, optional decimals, ns us ms s m h d. */
int num_duration(struct str s, int64_t *ns, struct err *e);
/*
 * A point in time, nanoseconds since the epoch: seconds with up to nine
 * decimals (more are cut), or RFC 3339 with zone.
 */
int num_time(struct str s, int64_t *ns, struct err *e);

/* Shortest of 15 to 17 digits that reads back to the same double. */
void num_put_f64(struct buf *b, double v);
/* The same for float: 6 to 9 digits. */
void num_put_f32(struct buf *b, float v);
void num_put_u64(struct buf *b, uint64_t v);
/* Seconds with nine decimals, trailing zeros cut. */
void num_put_time(struct buf *b, int64_t ns);

#endif
