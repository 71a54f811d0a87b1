/*
 * perf trace and perf script, as perf 6.1 prints them:
 *
 *	   0.549 ( 0.023 ms): comm/tid call(args)  = result
 *	comm  pid/tid [cpu] sec.usec:  period event: ...
 *		frame
 */
#include <inttypes.h>
#include <stdlib.h>

#include "num.h"
#include "text.h"

static int
bad_line(struct reader *r, const char *what)
{
	reader_bad(
	    r, SE_EFORMAT, "%" PRIu64 ": expected %s", r->feed.line, what);
	return 0;
}

/* LOST 3 events! */
static bool
lost_line(struct reader *r, struct str line)
{
	long at = text_find(line, "LOST ");
	if (at < 0)
		return false;
	struct str rest = text_from(line, (size_t)at + 5);
	uint64_t n = 1;
	num_u64(text_word(&rest), 0, UINT32_MAX, &n, NULL);
	r->info.lost += n;
	return true;
}

/* Lines through `take`, which gives READ_EVENT or 0. */
static int
lines(struct reader *r, struct event *ev,
    int (*take)(struct reader *, struct event *, struct str), struct err *e)
{
	for (;;) {
		struct str line;
		bool whole;
		int n = feed_line(&r->feed, TEXT_LINE_MAX, &line, &whole, e);
		if (n == SE_ELIMIT) {
			reader_bad(r, n, "%s", e->msg);
			continue;
		}
		if (n != FEED_MORE)
			return n;
		if (!whole && line.len) {
			r->info.truncated = true;
			r->info.torn = "the last line is cut";
		}
		if (text_trim(line).len && take(r, ev, line) == READ_EVENT)
			return READ_EVENT;
	}
}

static int
text_open(struct reader *r, struct err *e)
{
	(void)e;
	r->info.form = FORM_TEXT;
	return 0;
}

/* ---- perf trace --------------------------------------------------------- */

/* "TIME ( DUR ms): " or "? (         ): "; false if it is not one. */
static bool
trace_head(struct str *line, int64_t *ts, int64_t *dur, bool *timed)
{
	struct str s = text_trim(*line);
	long open = text_find(s, "("), shut = text_find(s, "):");
	if (open <= 0 || shut < open)
		return false;
	struct str when = text_trim(text_upto(s, (size_t)open));
	struct str took = text_trim(
	    (struct str){ s.p + open + 1, (size_t)(shut - open) - 1 });
	bool known = text_time(when, 1000000, ts);
	if (!known && !str_is(when, "?"))
		return false;
	*timed =
	    str_ends(took, "ms") &&
	    text_time(text_trim(text_upto(took, took.len - 2)), 1000000, dur);
	*line = text_trim(text_from(s, (size_t)shut + 2));
	if (!known)
		*ts = -1;
	return true;
}

static int
trace_line(struct reader *r, struct event *ev, struct str line)
{
	int64_t ts = 0, dur = 0;
	bool timed;
	if (lost_line(r, line))
		return 0;
	if (!trace_head(&line, &ts, &dur, &timed))
		return bad_line(r, "TIME ( DURATION ms): of perf trace");
	struct str rest = line, who = text_word(&rest);
	long slash = text_rfind(who, "/");
	if (slash < 0)
		return bad_line(r, "comm/tid");
	struct str pid = text_upto(who, (size_t)slash);
	struct str tid = text_from(who, (size_t)slash + 1);
	rest = text_trim(rest);
	long more = text_find(rest, "[continued]: ");
	if (more >= 0)
		rest = text_from(rest, (size_t)more + 13);
	long open = text_find(rest, "(");
	struct str name =
	    open > 0 ? text_upto(rest, (size_t)open) : text_trim(rest);
	/* What was under way when perf began has no time of its own. */
	if (!timed || ts < 0)
		text_instant(r, ev, ts < 0 ? 0 : ts, name, "syscall", pid, tid);
	else
		text_slice(r, ev, ts, dur, name, "syscall", pid, tid);
	if (open > 0)
		render_arg(r, "args", text_from(rest, (size_t)open));
	render_end(r, ev);
	return READ_EVENT;
}

static int
trace_next(struct reader *r, struct event *ev, struct err *e)
{
	return lines(r, ev, trace_line, e);
}

static int
trace_probe(const char *p, size_t len)
{
	struct str line;
	int64_t ts, dur;
	bool timed;
	return text_first_line(p, len, &line) &&
		       trace_head(&line, &ts, &dur, &timed)
		   ? 85
		   : 0;
}

const struct format perf_trace_format = { "perf-trace", "perf trace",
	trace_probe, text_open, trace_next, NULL };

/* ---- perf script -------------------------------------------------------- */

/* The word that is a stamp, "SEC.USEC:", and what is around it. */
static bool
script_head(struct str line, struct str *who, int64_t *ts, struct str *rest)
{
	if (!line.len || line.p[0] == '\t' || line.p[0] == '#')
		return false;
	*rest = line;
	for (;;) {
		struct str word = text_word(rest);
		if (!word.len)
			return false;
		if (word.p[word.len - 1] != ':' || word.p == line.p ||
		    text_find(word, ".") < 0)
			continue;
		*who = (struct str){ line.p, (size_t)(word.p - line.p) };
		return text_time(text_upto(word, word.len - 1), 1000000000, ts);
	}
}

static int
script_line(struct reader *r, struct event *ev, struct str line)
{
	struct str who, rest;
	int64_t ts;
	if (line.p[0] == '\t' || line.p[0] == '#' || line.p[0] == ' ')
		if (!script_head(line, &who, &ts, &rest))
			return 0; /* a frame */
	if (lost_line(r, line))
		return 0;
	if (!script_head(line, &who, &ts, &rest))
		return bad_line(r, "comm pid time: event: of perf script");
	struct str name = STR_LIT("sample"), word;
	while ((word = text_word(&rest)).len)
		if (word.p[word.len - 1] == ':') {
			name = text_upto(word, word.len - 1);
			break;
		}
	struct str comm = text_word(&who), tid = text_word(&who);
	long slash = text_rfind(tid, "/");
	if (slash >= 0)
		tid = text_from(tid, (size_t)slash + 1);
	text_instant(r, ev, ts, name, "perf", comm, tid);
	if (text_trim(rest).len)
		render_arg(r, "args", text_trim(rest));
	render_end(r, ev);
	return READ_EVENT;
}

static int
script_next(struct reader *r, struct event *ev, struct err *e)
{
	return lines(r, ev, script_line, e);
}

static int
script_probe(const char *p, size_t len)
{
	struct str line, who, rest;
	int64_t ts;
	while (text_first_line(p, len, &line) && line.p[0] == '#') {
		p += line.len + 1;
		len -= line.len < len ? line.len + 1 : len;
	}
	return line.len && script_head(line, &who, &ts, &rest) ? 60 : 0;
}

const struct format perf_script_format = { "perf-script", "perf script",
	script_probe, text_open, script_next, NULL };
