/*
 * CSV and TSV. The only file that knows libcsv is csv.c.
 *
 * CSV is RFC 4180, strictly: a quote inside a plain field, or text behind a
 * closing quote, is an error. Blanks are kept, empty lines skipped. TSV has
 * no quotes: what is between two TABs is the cell.
 */
#ifndef CSV_H
#define CSV_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"
#include "src.h"
#include "str.h"

#define CSV_ROW_MAX (1u << 20) /* bytes in one row, as in a record */
#define CSV_CELLS_MAX 65536u   /* cells in one row */

enum csv_form { CSV_COMMAS = 1, CSV_TABS = 2 };

struct csv;

struct csv_row {
	const struct str *cell; /* valid until the next row */
	size_t n;
	uint64_t line; /* where the row ends, from 1 */
};

/* Borrows `src` until csv_close. A byte order mark in front is dropped. */
int
csv_open(struct csv **out, struct src *src, enum csv_form form, struct err *e);
/* 1: a row; 0: no more. Messages begin with "line N". */
int csv_next(struct csv *c, struct csv_row *row, struct err *e);
void csv_close(struct csv *c);

/* Appends one quoted field (RFC 4180 section 2), no separator. */
void csv_put(struct buf *b, struct str field);

#endif
