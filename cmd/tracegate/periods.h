/*
 * Periods: from the end of one step of a lane to the end of the next, so that
 * what happens between steps counts too; and which of them are slow.
 */
#ifndef PERIODS_H
#define PERIODS_H

#include <stdbool.h>
#include <stdint.h>

#include "marks.h"
#include "model.h"

enum {
	PERIODS_MIN = 8, /* of a kind, before its median means anything */
};

struct period {
	uint32_t model, slice, key;
	uint64_t ordinal;        /* the same on all ranks */
	uint32_t nth;            /* of its kind and trace, from 0 */
	int64_t from, ts, until; /* ts: the step begins */
	int64_t usual;           /* median of its kind, ns; 0: not known */
	bool slow, unfinished;
	struct measure *measure; /* once it was asked for */
};

/* A slow period, met by one or more ranks. */
struct slow {
	uint32_t first, n; /* in period: one a trace */
	uint32_t subject;  /* the one that is judged */
	int64_t at;        /* begin, ns since the epoch */
};

struct periods {
	struct period *period; /* by kind, ordinal, trace */
	uint32_t n;
	struct slow *slow; /* in order of time */
	uint32_t nslow;
	uint64_t kinds, cold; /* kinds with steps, and with too few */
};

struct slow_rule {
	double factor; /* of the median */
	int64_t floor; /* and beyond it, ns */
	int64_t slo;   /* of a step; 0: none */
};

/* Steps of all traces; thresholds of a baseline are in kinds->keys. */
void periods_make(struct periods *p, const struct model *m,
    const struct marks *s, uint32_t n, const struct slow_rule *rule);
void periods_free(struct periods *p);

static inline int64_t
period_dur(const struct period *p)
{
	return p->until - p->from;
}

#endif
