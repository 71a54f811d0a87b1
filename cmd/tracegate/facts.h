/*
 * Facts of a slow period, by number: what the conditions of a rules file are
 * about. A fact is known or it is not; nothing is guessed.
 */
#ifndef FACTS_H
#define FACTS_H

#include "marks.h"
#include "measure.h"
#include "periods.h"
#include "ranks.h"
#include "rules.h"

/* In the order of fact_kinds. */
enum {
	FACT_DUR,
	FACT_EXCESS,
	FACT_GAP_BEFORE,
	FACT_HOLE,
	FACT_IDLE,
	FACT_LATE,
	FACT_SILENT,
	FACT_PERIOD,
	FACT_COVERAGE,
	FACT_GAP_SHARE,
	FACT_HOLE_SHARE,
	FACT_LOCK_SHARE,
	FACT_LATE_SHARE,
	FACT_LATE_STABLE,
	FACT_GPU_BUSY,
	FACT_GAP_BUSY,
	FACT_STARVED,
	FACT_RATIO,
	FACT_NTH,
	FACT_STEP_PERIOD,
	FACT_LANES,
	FACT_LANES_LATE,
	FACT_KERNELS_X,
	FACT_KERNEL_X,
	FACT_KERNEL_SPREAD,
	FACT_COLL_X,
	FACT_UNFINISHED,
	FACT_SILENT_X,
	FACT_DROPS,
	FACT_ON_PATH,
	FACT_EXPLAINS,
	FACT_EXTRA,
	FACT_TIME,
	FACT_COUNT,
	FACT_COUNT_X,
	FACT_MEAN_X,
	FACT_VALUE,
	FACT_VALUE_X,
	FACT_SEEN,
	FACTS,
};

enum {
	NORMALS_MAX = 15, /* periods that a slow one is compared with */
	NORMALS_MIN = 3,
	REGULAR_MIN = 4, /* slow periods before their spacing means anything */
};

/* What the ranks waited for in a slow period: its worst collective. */
struct lateness {
	bool met;        /* the ranks met, all of them, with known clocks */
	bool certain;    /* who was last is beyond the clocks */
	uint32_t latest; /* index of its trace */
	uint32_t nlate;  /* ranks that were late */
	int64_t late;    /* ns after the first */
};

/* All traces, once they are read. */
struct traces {
	struct model *m;
	struct marks *s;
	uint32_t n;
	struct ranks ranks;
	struct periods periods;
	uint64_t drops;
	int64_t late; /* a rank is late beyond this, ns */
	/* by traces_compare(): */
	struct lateness *lateness; /* by slow period */
	int32_t *slow_of;          /* by meeting: a slow period, or -1 */
};

/* Ranks and slow periods are there: what do they say of each other? */
void traces_compare(struct traces *t);

/* One slow period, with what it is compared with. */
struct facts {
	struct traces *t;
	const struct slow *slow;
	struct period *subject;
	const struct measure *now;
	const struct measure *normal[NORMALS_MAX];
	uint32_t nnormal;
	const struct lateness *ranks;
	/* of the kernels: */
	double kernel_x, kernel_spread;
	bool kernels_known;
};

void facts_make(struct facts *f, struct traces *t, const struct slow *slow);
/* A fact_get. */
struct fact facts_get(void *facts, int fact, int set);
/* The rank that is judged, or -1. */
int64_t facts_rank(const struct facts *f);

#endif
