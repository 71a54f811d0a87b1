/*
 * What a command concludes, and what damaged or filtered input does to it:
 * the rules of straightedge-records(5), in one place for all commands.
 *
 *   - damage never hides a finding: status 1 stands, with the counts
 *   - damage forbids a clean answer: 0 becomes 3, unknown(damaged)
 *   - filtered input can show a difference, never its absence: 0 becomes 3,
 *     unknown(filtered), or stays with scope=partial if the user says so
 *   - typed input is whole by decree: scope=typed
 */
#ifndef VERDICT_H
#define VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "rec.h"
#include "str.h"

/* Exit statuses, the same in all commands. */
enum {
	STATUS_CLEAN = 0,   /* nothing wrong found, the input could show it */
	STATUS_FOUND = 1,   /* different, faulty, changed, culprit, anomaly */
	STATUS_NONE = 2,    /* no verdict could be formed */
	STATUS_UNKNOWN = 3, /* cannot tell */
};

/* Reason codes that every verdict can have: what the input did to it. */
#define REASON_DAMAGED "damaged"
#define REASON_FILTERED "filtered"

/* What was wrong with the input, all operands together. */
struct damage {
	uint64_t bad;     /* lines or entries that could not be used */
	uint64_t lost;    /* records that a producer says it dropped */
	uint64_t skipped; /* files, ranks, members left out */
	uint64_t altered; /* streams changed or added to after writing */
	bool filtered;    /* fewer records than their ends say, or no end */
	bool typed;       /* written by hand: no head, no end */
};

struct policy {
	bool strict;        /* --strict: damage means no verdict */
	uint64_t allow_bad; /* --allow-bad N */
	bool partial;       /* --partial */
};

struct verdict {
	const char *result; /* a word of the command's list */
	int status;
	const char *reason; /* a code listed in the man page, or NULL */
	const char *need;   /* what would settle an unknown, or NULL */
	const char *scope;  /* typed, partial, or NULL; set by settle */
	struct damage damage;
};

/* Adds what one record stream says about itself. */
void damage_add(struct damage *d, const struct rec_totals *t);

/*
 * Applies the rules to a verdict that was reached as if the input were whole.
 * With --strict and damage an unknown gets STATUS_NONE (and no record is to be
 * printed).
 */
void verdict_settle(struct verdict *v, const struct policy *p);

/*
 * The parts of a verdict record that all commands share, in schema order:
 * first `result status` (the command may add entity), then `reason bound need
 * scope` (the command adds what it found), then the counts.
 */
void verdict_begin(struct rec_out *o, const struct verdict *v,
    struct str entity, const char *bound);
void verdict_end(struct rec_out *o, const struct verdict *v);

/* 1 outranks 3, both outrank 0; 2 only when nothing else was reached. */
int status_worse(int a, int b);

#endif
