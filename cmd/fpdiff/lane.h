/*
 * The records of one rank, in the order of execution: how far they are
 * certified, what was recorded of the inputs of each boundary, and what lies
 * next to the first divergence.
 */
#ifndef LANE_H
#define LANE_H

#include "fpdiff.h"

enum {
	BEFORE = 2, /* records shown before a divergence */
	AFTER = 3,  /* and behind it */
};

enum relation { REL_SAME, REL_DIFFERENT, REL_OTHER };

struct near {
	char *raw;
	size_t len;
	enum relation relation;
};

/* A difference waits for its right neighbour. */
struct waiting {
	bool held;
	enum relation before;
	enum diff_class class;
	const char *role;
	struct entry *a, *b;
};

struct lane {
	struct str rank;
	uint64_t n[2];   /* records by side */
	uint64_t prefix; /* certified */
	bool broken;     /* the prefix is over */
	bool tainted;    /* an unstable boundary flipped */
	enum relation last;
	struct near before[BEFORE], after[AFTER], certified;
	size_t nbefore, nafter;
	/* first divergence */
	struct entry *a, *b;
	const char *role;
	bool first_tainted;
	bool step_given;
	uint64_t step;
	struct waiting waiting;
	struct boundary *boundary;
	/* by side */
	uint64_t seq[2], seq_part[2], last_part[2];
	uint64_t at_step[2], step_part[2];
	uint64_t alone[2]; /* records without a partner */
};

/* `rank` is copied. */
struct lane *lane_new(struct str rank);
void lane_free(struct lane *l);

/* What the sequence of a rank says about the order of its stream. */
enum lane_order {
	LANE_RISES,
	LANE_FALLS,      /* its seq fell: surely out of order */
	LANE_STEP_RISES, /* records without seq: only their steps tell */
	LANE_STEP_FALLS,
};
/* Counts a record of a side; `part` is that of its input. */
enum lane_order
lane_sequence(struct lane *l, int side, uint64_t part, const struct entry *e);
/* The role of an output that differs: "root", or NULL. */
const char *
lane_boundary(struct lane *l, const struct entry *e, enum relation relation);
/* Keeps a record that may be shown beside the first divergence. */
void lane_remember(struct lane *l, struct str raw, enum relation relation);
/* The last certified record is the one before, if nothing ended it yet. */
void lane_end_prefix(struct lane *l);
/* What lies around the first divergence. */
void lane_report_near(const struct lane *l, struct report *r);
void lane_report_prefix(struct lane *l, struct report *r, bool print);

#endif
