/*
 * The questions of a diff and their answers: for each function and counter,
 * and the total of each counter, one value a run on either side.
 */
#ifndef FAMILY_H
#define FAMILY_H

#include "arena.h"
#include "map.h"
#include "result.h"
#include "signflip.h"

enum { ROUNDS_MAX = SIGNFLIP_PAIRS };

/* Changed needs this, corrected for the family; same this on each side. */
#define FAMILY_ALPHA 0.01
#define FAMILY_ALPHA_SAME 0.05

/* Of a delta. */
#define REASON_EXACT "exact"
#define REASON_ABSENT "absent"
#define REASON_NO_VALUE "no-value"
#define REASON_NOT_POSITIVE "not-positive"
#define REASON_ONE_RUN "one-run"
#define REASON_NOISE "noise"
#define REASON_LAYOUT "layout"
#define REASON_DOMINATED "dominated"
#define REASON_CALLS_DIFFER "calls-differ"

/* One question. */
struct item {
	struct str func, object, counter;
	bool exact, calls; /* `calls` counts calls, nothing else */
	bool dominated;    /* in some run our own part was the larger */
	size_t calls_of;   /* index of the function's calls; itself: none */
	double *v[2];      /* per call, one a run; NaN: unknown */
	double *n[2];      /* calls, one a run; NaN: not there */
	double err[2];     /* bound of a value, per call */
	/* the answer */
	const char *result, *reason;
	double change, p, p_same, layout, need;
};

struct family {
	struct item *item;
	size_t n, cap;
	size_t runs; /* of each side; set before anything is put in */
	bool
	    torn[2]; /* a file of this side lacks lines: absence says nothing */
	struct map at; /* of items, by name */
	struct arena arena;
};

/*
 * Takes in run number `run` of a side. Texts stay the result's: it outlives
 * the family. `named` says which functions are asked about.
 */
typedef bool family_named(void *user, struct str func);
void family_put(struct family *f, const struct result *r, int side, size_t run,
    family_named *named, void *user);
void family_free(struct family *f);

/* Gives every item its answer; margin is a difference of logarithms. */
void family_judge(struct family *f, double margin);

/* Are all n values there? Their median, if so. */
bool family_known(const double *v, size_t n);
double family_median(const double *v, size_t n);

#endif
