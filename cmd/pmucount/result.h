/*
 * What was counted: made from a run's shared memory by session.c or read back
 * from records by `report` and `diff`. Values are corrected for our own part;
 * what could be wrong is in err[], flags and caveats.
 */
#ifndef RESULT_H
#define RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "err.h"
#include "map.h"
#include "rec.h"
#include "rt/shared.h"
#include "str.h"

struct counter {
	struct str name, unit, source, check;
	bool exact;   /* the same program gives the same count */
	bool unknown; /* no value of it can be given */
	int64_t self, child, spread;
	uint64_t hz; /* ticks a second, 0 if not a clock */
};

/* Values of a function or call path: totals, or with FLAG_GATED of a call. */
struct values {
	int64_t self, incl, min, max, err;
	bool known, incl_known; /* self; incl, and with it min and max */
};

enum {
	FLAG_MULTIPLEXED = 1 << 0,
	FLAG_LOST = 1 << 1,
	FLAG_UNFINISHED = 1 << 2,
	FLAG_DOMINATED = 1 << 3,
	FLAG_MIGRATED = 1 << 4,
	FLAG_INTERRUPTED = 1 << 5,
	FLAG_COLLAPSED = 1 << 6,
	FLAG_TAIL = 1 << 7,
	FLAG_ORPHAN = 1 << 8,
	FLAG_GATED = 1 << 9,
	FLAG_CUT = 1 << 10,
	FLAG_HOLES = 1 << 11,
};

struct entry {
	struct str func, object;
	uint64_t calls, lost, unfinished, interrupted, migrated, gated;
	unsigned flags;
	struct values v[PMU_COUNTERS];
	uint64_t bucket[PMU_BUCKETS];
	bool has_dist;
	int64_t own[PMU_COUNTERS]; /* taken off; of inexact counters */
};

struct path {
	uint32_t parent; /* index of the path above, UINT32_MAX: none */
	uint32_t entry;
	uint64_t calls, unfinished;
	unsigned flags;
	int64_t self[PMU_COUNTERS], incl[PMU_COUNTERS];
};

struct coverage {
	struct str object, note;
	uint64_t functions, asked, on, section, scan, refused;
};

struct caveat {
	const char *what; /* a code of the man page */
	uint64_t n;
	struct str note;
};

struct result {
	struct arena arena;
	struct str backend, command;
	unsigned ncounters;
	struct counter counter[PMU_COUNTERS];
	struct entry *entry;
	size_t nentries, entries_cap;
	struct path *path;
	size_t npaths, paths_cap;
	struct coverage *coverage;
	size_t ncoverage, coverage_cap;
	struct caveat *caveat;
	size_t ncaveats, caveats_cap;
	struct map entry_by_name; /* func NUL object, for reading */
	struct rec_totals totals; /* of the file it was read from */
	int status;               /* wait status of the command */
	bool has_status;
};

/* Each grows its array; NULL: out of memory. */
struct entry *result_entry(struct result *r, struct str func, struct str obj);
struct path *result_path(struct result *r);
struct coverage *result_coverage(struct result *r);
void result_caveat(struct result *r, const char *what, uint64_t n,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void result_free(struct result *r);

/* Entries by falling self of the first counter that is known, then name. */
void result_sort(struct result *r);

/* The letters of flags, "-" for none; `text` has room for 16. */
const char *result_flags(unsigned flags, char *text);

unsigned result_flags_of(struct str letters);

/* "WHAT.COUNTER", the key of a value; `text` has room for RESULT_KEY. */
enum { RESULT_KEY = 64 };
const char *result_key(char *text, const char *what, const struct counter *c);

/* Columns of a table of functions: calls, self, incl, err, flags. */
char *result_columns_dup(const struct result *r);
/* Records of a result; `all`: also call paths and distributions. */
void result_write(const struct result *r, struct rec_out *o, bool all);
/* Reads records back; takes over `src`. Damage is in r->totals. */
int result_read(struct result *r, struct src *src, struct err *e);

#endif
