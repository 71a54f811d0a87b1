/*
 * The Chrome trace event format and Kineto's dialect of it: object form, array
 * form, unterminated, one event a line.
 */
#ifndef CHROME_H
#define CHROME_H

#include "reader.h"

extern const struct format chrome_format;

/*
 * Takes one event apart: `p` is an object of `len` bytes whose span is `s`.
 * 0, or SE_EFORMAT with a message.
 */
int chrome_event(const struct scan_span *s, const char *p, size_t len,
    struct event *ev, struct err *e);

/* Is it (with quotes) the key of an event, not of an object around them? */
bool chrome_event_key(struct str key);

/* What a member beside traceEvents says: base time, rank, losses. */
void chrome_member(struct trace_info *info, struct str key, struct str value);

#endif
