/* Lines of text from a source, in constant memory. */
#ifndef LINE_H
#define LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "src.h"
#include "str.h"

struct line_in;

/* Borrows `src` until line_close. Lines of more than `max` bytes are refused.
 */
int line_open(struct line_in **out, struct src *src, size_t max, struct err *e);
/*
 * 1: the next line without its LF (a CR before it stays), valid until the
 * next call; 0: there are no more. A failure of the source comes behind the
 * whole lines before it.
 */
int line_next(struct line_in *in, struct str *line, struct err *e);
/* Of the line that came last: its number from 1, whether it had an LF. */
uint64_t line_number(const struct line_in *in);
bool line_has_lf(const struct line_in *in);
void line_close(struct line_in *in);

#endif
