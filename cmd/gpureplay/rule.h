/*
 * What a table of replays says about devices. No device, no file, no clock:
 * outcomes in, a verdict and its reason out.
 *
 * Devices of one group (same model, driver, build) each run once in every
 * round. A *process* is one such run; it may hold many repetitions, but counts
 * once, because what goes wrong inside one process may go wrong in a burst.
 *
 * The nulls that must be beaten:
 *   - a race in the program: each divergence falls on a device with a
 *     probability that does not depend on how the device is made. The chance
 *     that the first k all fall on one given device is f^k, at any stopping
 *     time. With rates up to `ratio` times higher on one device (another
 *     temperature, another neighbour) f = ratio / (ratio + D - 1).
 *   - a one-off transient: two processes at least.
 *   - a difference that is there every time: that is how another compiler or
 *     another table of constants looks; not judged here.
 */
#ifndef RULE_H
#define RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

enum rule_result {
	RULE_HEALTHY = 0,
	RULE_FAULTY = 1,
	RULE_UNKNOWN = 3,
};

/* Why. The words for records are in rule_reasons. */
enum rule_reason {
	RULE_NONE,
	RULE_NONDETERMINISTIC, /* two or more left the majority, or none is */
	RULE_TWO_DEVICES,      /* two differ: no majority of three */
	RULE_NO_REFERENCE,     /* a lone device agreed with itself */
	RULE_THIN,             /* too few divergent processes */
	RULE_CONSISTENT,       /* the suspect differed every time */
	RULE_FEW,              /* no divergence, but too few for the rate */
	RULE_PIN_UNVERIFIED,   /* the program may have run elsewhere */
	RULE_FAILURES,         /* no divergence, but processes that failed */
	RULE_NOTHING,          /* no complete round */
};

#define REASON_NONDETERMINISTIC "nondeterministic"
#define REASON_TWO_DEVICES "two-devices"
#define REASON_NO_REFERENCE "no-reference"
#define REASON_THIN "thin"
#define REASON_CONSISTENT "consistent-difference"
#define REASON_FEW "few"
#define REASON_PIN_UNVERIFIED "pin-unverified"
#define REASON_FAILURES "failures"
#define REASON_NOTHING "nothing-tested"

extern const char *const rule_reasons[];

struct rule_setup {
	double alpha; /* chance of a wrong "faulty" under a race */
	double rate;  /* a clean result must exclude this rate */
	double ratio; /* highest ratio of rates that a race may have, >= 1 */
};

/* What one device did in the complete rounds. */
struct rule_device {
	uint64_t processes;
	uint64_t repetitions; /* in all of them together */
	uint64_t k;           /* processes that left the majority's result */
	uint64_t failed;      /* processes without a result, in any round */
	bool named;           /* suspected before the run */
	bool pinned;          /* it is certain that this device did the work */
};

struct rule_verdict {
	int result, reason;
	int suspect;      /* index of the device, or -1 */
	int majority;     /* a device of the majority, or -1 */
	double f;         /* chance per divergence under the null */
	double p;         /* what was compared with alpha */
	uint64_t more;    /* divergent processes still needed, 0: unknown */
	double bound;     /* 95 % upper limit of the rate a clean run allows */
	double bound_rep; /* the same per repetition */
	double ratio;     /* ratio of rates the data exclude at alpha */
	uint64_t clean;   /* further clean processes that RULE_FEW needs */
};

/*
 * Counts outcomes. `signature` has rounds rows of n columns: equal numbers are
 * equal results, 0 is "no result" and makes its round incomplete. Fills
 * processes and k of each device (other members are the caller's) and returns
 * the index of a device of the majority, or -1: the majority are more than
 * half of at least three devices that never gave anything but one and the same
 * result. Without one, k counts what left the most frequent result.
 */
int rule_tally(const uint32_t *signature, size_t rounds, size_t n,
    struct rule_device *device);

/* `majority` is what rule_tally returned; d->processes is the same for all. */
void
rule_judge(const struct rule_setup *setup, const struct rule_device *device,
    size_t n, int majority, struct rule_verdict *v);

/*
 * Divergent processes that convict one of n devices, of which `named` are
 * named before the run; 0: n devices cannot convict.
 */
uint64_t rule_needed(const struct rule_setup *setup, size_t n, size_t named);
/* Clean processes a device that acquit n devices. */
uint64_t rule_clean(const struct rule_setup *setup, size_t n);

/* ---- many sessions ------------------------------------------------------- */

/* What one session says about one device. */
struct rule_row {
	size_t device, workload; /* numbers of the caller, from 0 */
	uint64_t processes, k;
	double f;   /* its share under the null, in that session */
	bool voids; /* the session saw a reference diverge */
};

/* What all sessions say about one device. */
struct rule_standing {
	uint64_t processes, k; /* without rows that are void */
	uint64_t voided;       /* rows left out */
	double product;        /* of f over all divergences */
	double expected;       /* divergences if it were like the others */
	double p;              /* of at least k at that rate */
	bool faulty;
};

/*
 * A workload on which a reference once diverged is nondeterministic: all its
 * rows are void. So is a row whose device never agreed. Faulty: the product of
 * f is at most alpha / devices, and so many divergences would come up with at
 * most alpha if the device diverged `ratio` times as often as all others do on
 * the same workloads. SE_ENOMEM is the only failure.
 */
int rule_ledger(const struct rule_setup *setup, const struct rule_row *row,
    size_t nrows, size_t ndevices, size_t nworkloads,
    struct rule_standing *standing, struct err *e);

#endif
