/*
 * What reruns of one job say: is it the code, a device, a set of devices, or
 * is it not known? A pure function over a table of runs; fpdiff --reruns makes
 * the table. The rows are those of fpdiff(1), and the first that matches
 * counts. "The failure point moved, hence the hardware" is not among them:
 * races move, and real faults have kept their place.
 */
#ifndef RERUNS_H
#define RERUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "hash.h"

#define RERUNS_ALPHA 1e-3

/* Devices are numbers below `ndevices`; lists have no repeats. */
struct rerun_devices {
	const size_t *id;
	size_t n; /* 0: not recorded */
};

struct rerun {
	struct rerun_devices used; /* all that took part */
	bool diverged;
	/* the first root, of those that diverged */
	struct u128 boundary;       /* name, io and phase */
	struct u128 step;           /* digest of its text */
	struct u128 hash;           /* the bits that came out */
	struct rerun_devices roots; /* of that step */
	struct rerun_devices ran;   /* ran the boundary */
	uint64_t rank; /* that the (first) root's device held: a number of
			  the caller */
};

struct reruns {
	const struct rerun *ref, *run;
	size_t nrefs, n;
	bool agree; /* the references have the same bits */
	size_t ndevices;
	double alpha;
};

enum rerun_row {
	RERUN_REFERENCE_UNSTABLE,
	RERUN_SAME,
	RERUN_NO_DEVICES,
	RERUN_REFERENCE_SUSPECT,
	RERUN_THIN_ONE, /* one run diverged */
	RERUN_CODE,
	RERUN_RACE,
	RERUN_RACE_OR_DEVICE,
	RERUN_NONDETERMINISTIC,
	RERUN_DEVICE,
	RERUN_SET,
	RERUN_THIN_SETS,
	RERUN_ROLE_CONFOUNDED,
	RERUN_THIN_DEVICE,
	RERUN_CONSISTENT,
	RERUN_INTERMITTENT,
	RERUN_ONE_SET_RACE_OR_DEVICE,
	RERUN_ONE_SET_NONDETERMINISTIC,
	RERUN_ROWS,
};

struct rerun_verdict {
	enum rerun_row row;
	size_t device; /* RERUN_DEVICE */
	size_t set;    /* RERUN_SET: number of the set */
	double bound;  /* RERUN_SAME: rate that is excluded at 95 % */
	/* how the table was read */
	size_t k, nsets, sets_diverged, common; /* D */
};

/*
 * set[d] becomes the number of the set device d belongs to, from 0 in the
 * order in which references and runs used them: devices that ran together,
 * directly or through others, are one set. SE_ENOMEM is the only failure.
 */
int reruns_judge(const struct reruns *r, size_t *set, struct rerun_verdict *v,
    struct err *e);

#endif
