/*
 * One tensor to one fp record: what is hashed of it, and how that is said.
 */
#ifndef FINGERPRINT_H
#define FINGERPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "buf.h"
#include "digest.h"
#include "err.h"
#include "fp.h"
#include "slice.h"
#include "tensor.h"

struct fingerprint_how {
	struct digest_how digest;
	const struct slice *slice; /* the first that matches a name counts */
	size_t nslices;
	bool *slice_met; /* which of them matched; may be NULL */
	/* Hears of bytes as they go by; from several threads. May be NULL. */
	void (*tick)(void *user, uint64_t bytes);
	void *user;
};

/* What only some tensors or options need. */
struct fingerprint_more {
	struct digest_result digest; /* tile is not valid any more */
	struct str tiles;            /* text */
	const struct slice *slice;   /* that was applied, or NULL */
	struct str kept;             /* its ranges */
	uint64_t left;
	const uint64_t *shape; /* of what was kept */
	uint64_t bytes;
};

/* Small: there may be millions. */
struct fingerprint {
	struct u128 hash;
	const struct fingerprint_more *more;
};

/* What one thread needs to hash tensor after tensor. */
struct printer;

int printer_new(
    struct printer **out, const struct fingerprint_how *how, struct err *e);
void printer_free(struct printer *p);
/* Before a source is closed: what was read ahead of it is dropped. */
void printer_forget(struct printer *p);

/*
 * Reads t once. *out points into the arena, which only this thread uses. Fails
 * without a result if the data is short or damaged.
 */
int printer_take(struct printer *p, struct tensor *t, struct arena *a,
    struct fingerprint *out, struct err *e);

/* Notes that there is a tensor of this name, for slice_met: one thread. */
void fingerprint_meet(const struct fingerprint_how *how, struct str name);

/* Texts of one record, made anew for each. */
struct fingerprint_text {
	struct buf shape, global, offset, note;
};

/*
 * Fills *f for a tensor and its fingerprint, or for a scalar entry (then
 * `print` may be NULL). Labels, file and numbers are the caller's.
 */
void fingerprint_fill(struct fp *f, const struct fingerprint_how *how,
    const struct tensor *t, const struct fingerprint *print,
    struct fingerprint_text *text);
void fingerprint_text_free(struct fingerprint_text *text);

#endif
