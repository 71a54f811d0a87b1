/*
 * Rules applied to the facts of a slow period. The first tier in which a rule
 * holds, or might, decides: one cause, or unknown and why.
 */
#ifndef JUDGE_H
#define JUDGE_H

#include <stdbool.h>

#include "facts.h"
#include "rules.h"

struct judge {
	const struct rules *rules;
	double coverage; /* of the path, below which a rule must not be used */
	bool truncated;  /* the end of a trace is missing */
};

struct answer {
	const char *cause;       /* or NULL: unknown */
	const char *reason;      /* of an unknown: REASON_... */
	const struct rule *rule; /* that decided, or might have */
	char need[160];          /* what would settle it, or "" */
	const char *need_kept;   /* the same for summaries: outlives this */
};

void judge_period(const struct judge *j, struct facts *f, struct answer *a);

#endif
