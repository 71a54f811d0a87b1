/*
 * CSV and TSV. The only file that knows libcsv is csv.c.
 */
#ifndef CSV_H
#define CSV_H

#include "buf.h"
#include "str.h"

/* Appends one quoted field (RFC 4180 section 2), no separator. */
void csv_put(struct buf *b, struct str field);

#endif
