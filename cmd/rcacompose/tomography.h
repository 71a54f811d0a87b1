/*
 * Which of the things on lossy paths is to blame.
 *
 * Found greedily: the one on which most of the lost packets passed, if more
 * than `faulty` of what passed it was lost. Where another thing shares nine
 * tenths of those losses the paths cannot tell them apart: both are ambiguous,
 * unless the other one's further paths are clean where they should have lost at
 * least twenty packets. Nobody is blamed for what others explain who lose
 * packets on other paths: two bad links behind a good one make it look worse
 * than either. Nor if most of its losses are on paths with another one, that
 * does no better elsewhere, and it does well without. Then the paths through it
 * are set aside, and the rest is looked at again.
 *
 * A path clears nobody but at the times of the losses: one that was looked at
 * before a flap says nothing of it.
 */
#ifndef TOMOGRAPHY_H
#define TOMOGRAPHY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "str.h"

/* When packets were sent, both ends included. */
struct span {
	int64_t from, to;
};

struct probe {
	uint64_t sent, lost;
	struct span when;
	size_t first, n; /* its hops */
	bool aside;      /* explained */
};

struct thing {
	struct str name;
	uint64_t sent, lost; /* over the paths that are left */
	/* On paths in common with the one looked at: sent and lost. */
	uint64_t common, shared;
	/* On paths that avoid the one looked at: left, and set aside. */
	uint64_t apart_sent, apart_lost, aside_sent, aside_lost;
	struct span seen;   /* when packets passed it, over all paths */
	struct span failed; /* of a blamed one: from first to last loss */
	enum { OPEN, FAULTY, AMBIGUOUS } state;
};

struct tomography {
	double faulty, healthy; /* shares of loss */
	struct thing *t;
	struct probe *p;
	uint32_t *hop;     /* things on the paths, one probe after the other */
	struct span *loss; /* room for np; times of losses on one thing */
	size_t nt, np, nh, nl;
};

/* Puts everybody in a state, given the probes; what was seen is the caller's.
 */
void tomography_blame(struct tomography *g);

/* The share of loss over the paths that are left. */
double thing_rate(const struct thing *t);
void span_widen(struct span *s, const struct span *by);

#endif
