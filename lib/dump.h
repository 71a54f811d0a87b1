/*
 * Files to fp and scalar records, with several threads. The records of all
 * files together are sorted by name (then file, then place in it), so that
 * the output does not depend on threads, and two sets can be merged; only
 * formats that may be endless (tables, chunks) are written as they come.
 */
#ifndef DUMP_H
#define DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "fingerprint.h"
#include "fp.h"
#include "rec.h"
#include "select.h"
#include "tensor.h"
#include "walk.h"

struct dump_how {
	struct fingerprint_how print;
	struct tensor_hints hints; /* dirfd and dir are filled in here */
	struct select select;
	const struct fp_label *label; /* set in every record */
	size_t nlabels;
	unsigned jobs;     /* threads, at least 1 */
	const char *alone; /* name of an unnamed tensor of a file operand;
			      NULL: the file's */
	bool exec;         /* number the records: seq */
	/* Gets the records instead of the output, if not NULL. */
	int (*take)(void *user, const struct fp *f, struct err *e);
	/* Hears of a file or tensor left out. Never from two threads at once.
	 */
	void (*left_out)(void *user, const char *file, const struct err *e);
	void *user;
};

struct dump_count {
	uint64_t records;
	uint64_t scalars; /* of the records */
	uint64_t skipped; /* files and tensors left out */
	uint64_t plain;   /* files of no format that is known, as bytes */
	uint64_t seq;
};

/*
 * Fingerprints the files and writes their records: no head and no end.
 * SE_ENOMEM and the like if the whole cannot go on; what is wrong with a file
 * goes to `left_out`.
 */
int dump_files(struct rec_out *o, const struct walk_file *file, size_t n,
    const struct dump_how *how, struct dump_count *count, struct err *e);

/*
 * The same for one source that is open, borrowed: standard input. `name` is
 * for messages and for unnamed tensors.
 */
int dump_src(struct rec_out *o, struct src *src, const char *name,
    const struct dump_how *how, struct dump_count *count, struct err *e);

/*
 * Labels, selection and numbers of one record that is otherwise filled, then
 * the record. Counts it, unless it is not wanted.
 */
int dump_record(struct rec_out *o, struct fp *f, const struct dump_how *how,
    struct dump_count *count, struct err *e);

/* Will these hints give a series (a table, lines), whose order counts? */
bool dump_is_series(const struct tensor_hints *h);

/*
 * Tables that say themselves that they are one. If what is to be read is a
 * single table with a column `step` and the user said nothing else, that
 * becomes hints->step. True: *note says what to give, for a table that will
 * be read as plain bytes.
 */
bool dump_find_step(struct tensor_hints *hints, const struct walk_file *file,
    size_t n, struct err *note);
/* The same for an open source; what is read stays readable. */
bool dump_find_step_src(
    struct tensor_hints *hints, struct src *src, struct err *note);

#endif
