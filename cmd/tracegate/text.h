/* Helpers of the readers of text formats. */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "reader.h"
#include "str.h"

enum { TEXT_LINE_MAX = 1 << 20 };

extern const struct format strace_format, perf_trace_format, perf_script_format,
    ftrace_format;
extern const struct format csv_format, tsv_format, jsonl_format, ev_format;
extern const struct format jaeger_format, otlp_format;

struct str text_trim(struct str s);
/* Cuts the first word (up to white space) off *rest; empty at the end. */
struct str text_word(struct str *rest);
/* Offset of `needle` in s, or -1. The last one for text_rfind. */
long text_find(struct str s, const char *needle);
long text_rfind(struct str s, const char *needle);
static inline struct str
text_from(struct str s, size_t at)
{
	return (struct str){ s.p + at, s.len - at };
}
static inline struct str
text_upto(struct str s, size_t len)
{
	return (struct str){ s.p, len };
}

/* A number of `unit` nanoseconds that takes the whole of s. */
bool text_time(struct str s, int64_t unit, int64_t *ns);
/* The first line of a probe: without its LF; false if there is none. */
bool text_first_line(const char *p, size_t len, struct str *line);

/* An instant or a complete slice with one call; args may follow. */
void text_slice(struct reader *r, struct event *ev, int64_t ts, int64_t dur,
    struct str name, const char *cat, struct str pid, struct str tid);
void text_instant(struct reader *r, struct event *ev, int64_t ts,
    struct str name, const char *cat, struct str pid, struct str tid);

#endif
