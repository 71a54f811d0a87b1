/*
 * What an fp or scalar record says: a fingerprint, or a value that is not a
 * tensor, at a place. One struct is written to a record stream and parsed
 * from one; straightedge-fingerprints(5) describes the keys.
 */
#ifndef FP_H
#define FP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"
#include "hash.h"
#include "rec.h"
#include "str.h"

/*
 * The parts of the match key besides the name, in the order writers keep.
 * An absent part equals only an absent one.
 */
enum fp_place {
	FP_STEP,
	FP_MB,
	FP_PHASE,
	FP_RANK,
	FP_DP,
	FP_PP,
	FP_TP,
	FP_EP,
	FP_IO,
	FP_PLACES,
};

/* The key of a place in records: "step", "mb" ... */
extern const char *const fp_place_name[FP_PLACES];

enum fp_algorithm {
	FP_ABSENT = 0,
	FP_XXH3,  /* xxh3-128:HEX32 */
	FP_MIX64, /* mix64:HEX16, in value.lo */
	FP_OTHER, /* somebody else's: value is the XXH3-128 of the text */
};

struct fp_hash {
	int algorithm;
	struct u128 value;
	struct str text; /* as parsed; not needed for writing, but FP_OTHER */
};

struct fp_u64 {
	bool given;
	uint64_t v;
};

struct fp_f64 {
	bool given;
	double v;
};

/* A key that no member holds: labels of a user, x.* of a producer. */
struct fp_label {
	struct str key, value;
};

/* Texts are borrowed; a NULL pointer means absent. */
struct fp {
	bool scalar;
	struct str name;
	struct str place[FP_PLACES];
	struct fp_u64 seq, occ;
	struct str file, note;
	/* fp */
	struct str dtype, shape; /* shape: "2,3", "" for no dimension */
	uint64_t bytes;
	struct fp_hash hash, canon, shardsum, rows;
	struct fp_u64 unit; /* elements of one unit of shardsum */
	struct str kernel, dev, storage, tiles, global, offset, replicated;
	struct str slice;   /* "0:10,:": what was kept */
	struct fp_u64 left; /* elements that slice left out */
	struct fp_f64 min, max, mean;
	struct fp_u64 nan, inf, zero;
	/* scalar */
	struct str vtype, value, class;
	/* other keys, last in the record */
	const struct fp_label *label;
	size_t nlabels;
};

/* Is it fp or scalar? Others are none of fp_parse's business. */
bool fp_is(const struct rec *r);

/*
 * Fills *f from such a record; texts borrow it. Other keys go into `label`,
 * an array of REC_FIELDS_MAX, or are ignored if that is NULL. SE_EFORMAT names
 * the key whose value is wrong: the caller counts a bad line.
 */
int fp_parse(
    struct fp *f, const struct rec *r, struct fp_label *label, struct err *e);

/* One record. Asserts nothing about the values. */
void fp_write(struct rec_out *o, const struct fp *f);

/*
 * Sets the member that a key names to a text, as fp_parse does, or 0: no
 * member has that name. A text of a record's own making (name, dtype, shape,
 * bytes, hash ...) can be set too.
 */
int fp_set(
    struct fp *f, struct str key, struct str value, bool *known, struct err *e);

/*
 * Digest of the match key without the parts in `without` (bits 1 << FP_STEP
 * and so on, and FP_NAME), so that equal keys have equal digests: XXH3-128
 * over, for each part in the order above and then the name, one byte 0
 * (absent) or 1, le64 length, the bytes. `scratch` is reused from call to
 * call; SE_ENOMEM shows in scratch->failed.
 */
#define FP_NAME (1u << FP_PLACES)
struct u128 fp_key(const struct fp *f, unsigned without, struct buf *scratch);

enum fp_relation {
	FP_SAME = 0,
	FP_DIFFERENT = 1,
	FP_INCOMPARABLE = 2, /* dtype, shape, algorithm, slice ... differ */
};

enum fp_relation
fp_hash_compare(const struct fp_hash *a, const struct fp_hash *b);

/*
 * Two records of one match key. Tensors: by the primary hash, bit for bit.
 * Scalars: by their text. *why gets the key that makes them incomparable
 * ("dtype", "shape", "hash" ...), may be NULL.
 */
enum fp_relation
fp_compare(const struct fp *a, const struct fp *b, const char **why);

/* "2,3" to numbers; the count in *n, at most max. */
int fp_shape(struct str s, uint64_t *dim, size_t max, size_t *n, struct err *e);
/* And back. */
void fp_put_shape(struct buf *b, const uint64_t *dim, size_t n);

#endif
