/*
 * Order-preserving alignment of two sequences whose keys repeat.
 *
 * A pair joins two items of equal key, and pairs do not cross. Among all such
 * matchings the best has the most pairs, then the most pairs of equal form,
 * then the most of equal value: one item inserted among repeated keys costs
 * one unpaired item, not a shift of all that follow.
 *
 * Method (after OpGuard, OSDI'26, section 4.5): keys that occur once in both
 * windows are anchors, as far as they keep the order; between anchors a banded
 * dynamic programme whose band grows while the result is below what the counts
 * of keys and values allow; then what lies unpaired between two pairs is tried
 * once more. Where anchors themselves cost pairs they are dropped.
 */
#ifndef ALIGN_H
#define ALIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct align_item {
	uint64_t key;   /* hash of what must be equal to be a pair */
	uint64_t form;  /* hash of what should be equal */
	uint64_t value; /* hash of what is compared */
	void *ref;      /* the caller's */
};

#define ALIGN_NONE SIZE_MAX
#define ALIGN_WINDOW 4096u      /* items of a lane and side, by default */
#define ALIGN_WINDOW_MIN 64u    /* the look-ahead is not shorter */
#define ALIGN_WINDOW_MAX 65536u /* memory of the programme grows with it */

/* ---- two windows ------------------------------------------------------- */

/* Scratch memory, reused from call to call; zeroed is ready. */
struct align_work {
	unsigned char *arrow;
	uint64_t *score[2];
	size_t *number;
	struct align_slot *slot;
	size_t arrow_cap, score_cap, number_cap, slot_cap;
};

/*
 * pair[i] becomes the index in b of the partner of a[i], or ALIGN_NONE.
 * SE_ENOMEM is the only failure.
 */
int align_window(struct align_work *w, const struct align_item *a, size_t na,
    const struct align_item *b, size_t nb, size_t *pair, struct err *e);
void align_work_free(struct align_work *w);

/* ---- two streams ------------------------------------------------------- */

/*
 * Lanes (ranks) are aligned each for itself; items of different lanes may
 * arrive in any interleaving. A lane holds at most `window` items a side.
 *
 * The caller pushes items and obeys align_blocked: while a side is blocked, a
 * lane of it is full and the other side of that lane (almost) empty, and only
 * the other side should be read. When both are blocked, align_give_up lets go
 * of such a lane; at the end of both streams align_finish does the rest.
 */
struct align;

enum { ALIGN_A = 0, ALIGN_B = 1 };

/*
 * Called in order within a lane: a pair, or one item alone (the other NULL).
 * `ref` of the items is then no longer used here.
 */
typedef int align_event(void *user, size_t lane, const struct align_item *a,
    const struct align_item *b, struct err *e);

int align_new(struct align **out, size_t window, align_event *event, void *user,
    struct err *e);
int align_push(struct align *al, size_t lane, int side,
    const struct align_item *item, struct err *e);
/* Nothing more will come on this side of the lane. */
int align_close(struct align *al, size_t lane, int side, struct err *e);
/* Everything that is left, as if all lanes were closed. */
int align_finish(struct align *al, struct err *e);
void align_free(struct align *al);

/* Items held on this side, all lanes together. */
size_t align_pending(const struct align *al, int side);
bool align_blocked(const struct align *al, int side);
bool align_lane_blocked(const struct align *al, size_t lane, int side);
/*
 * Lets the full side of the lane go unpaired. If its other side gets items
 * later, align_late counts them: the result is then not to be trusted.
 */
int align_give_up(struct align *al, size_t lane, int side, struct err *e);
uint64_t align_late(const struct align *al);
/* Windows that were full and held nothing that pairs. */
uint64_t align_exhausted(const struct align *al);

#endif
