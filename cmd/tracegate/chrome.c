/*
 * The Chrome trace event format: see chrome.h.
 *
 * Sources: "Trace Event Format" (Google, public document); what Perfetto's
 * importer and catapult's accept; libkineto's output_json.cpp for the members
 * around the events and for the line that counts lost records.
 */
#include "chrome.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "num.h"

enum {
	HEAD_MAX = 4 << 20, /* bytes of members kept around the events */
	GARBAGE_SHOWN = 24,
};

enum chrome_at { AT_START, AT_HEAD, AT_EVENTS, AT_TAIL, AT_DONE };

struct chrome {
	int at;
	bool lines;  /* events stand alone, no array around them */
	bool resync; /* behind something broken: look for an event */
	bool shut;   /* the array was closed */
	bool events; /* an array of events was seen */
	struct scan_span span;
};

/* ---- one event ---------------------------------------------------------- */

/* Where the walk over the members of an event stands. */
struct walk {
	const struct scan_span *s;
	const char *p, *end; /* of the event, end is its closing brace */
	uint32_t quote;      /* index of the next quote */
	uint32_t child;      /* index of the next inner object */
};

static const char *
space(const char *p)
{
	while (scan_space(*p))
		p++;
	return p;
}

/* Arrays are rare in events: bytes one by one, then the indexes catch up. */
static const char *
pass_array(struct walk *w, const char *v)
{
	struct str text;
	const char *q = scan_value(v, w->end, &text);
	if (!q)
		return NULL;
	uint32_t off = (uint32_t)(q - w->p);
	while (w->quote < w->s->nquote && w->s->quote[w->quote] < off)
		w->quote++;
	while (w->child < w->s->nchild && w->s->child[w->child].open < off)
		w->child++;
	return q;
}

/* The value at v; what is behind it, or NULL. */
static const char *
pass_value(struct walk *w, const char *v, struct str *value)
{
	const struct scan_span *s = w->s;
	const char *q = v;
	switch (*v) {
	case '"':
		if (w->quote + 2 > s->nquote)
			return NULL;
		q = w->p + s->quote[w->quote + 1];
		*value = (struct str){ v + 1, (size_t)(q - v) - 1 };
		w->quote += 2;
		return q + 1;
	case '{':
		if (w->child == s->nchild ||
		    w->p + s->child[w->child].open != v)
			return NULL;
		q = w->p + s->child[w->child].close + 1;
		w->quote = s->child[w->child++].quote;
		break;
	case '[':
		q = pass_array(w, v);
		if (!q)
			return NULL;
		break;
	default:
		while (!scan_space(*q) && *q != ',' && q < w->end)
			q++;
		if (q == v)
			return NULL;
	}
	*value = (struct str){ v, (size_t)(q - v) };
	return q;
}

static int
take_time(struct str v, int64_t *to, struct event *ev, int flag, struct err *e)
{
	bool cut = false;
	if (!scan_time(v, 1000, to, &cut))
		return err_set(e, SE_EFORMAT,
		    "%s: expected microseconds that fit 64 bits of "
		    "nanoseconds, found \"%.*s\"",
		    flag == EVENT_HAS_TS ? "ts" : "dur",
		    (int)(v.len < GARBAGE_SHOWN ? v.len : GARBAGE_SHOWN), v.p);
	ev->flags |= (unsigned char)(flag | (cut ? EVENT_CUT_NS : 0));
	return 0;
}

#define KEY(text) !memcmp(key.p, text, sizeof text - 1)

static int
take_member(struct event *ev, struct str key, struct str value, struct err *e)
{
	switch (key.len) {
	case 2:
		if (KEY("ph"))
			ev->ph = value.len ? value.p[0] : 0;
		else if (KEY("ts"))
			return take_time(value, &ev->ts, ev, EVENT_HAS_TS, e);
		else if (KEY("id"))
			ev->id = value;
		break;
	case 3:
		if (KEY("dur"))
			return take_time(value, &ev->dur, ev, EVENT_HAS_DUR, e);
		if (KEY("cat"))
			ev->cat = value;
		else if (KEY("pid"))
			ev->pid = value;
		else if (KEY("tid"))
			ev->tid = value;
		else if (KEY("id2"))
			ev->id = value;
		break;
	case 4:
		if (KEY("name"))
			ev->name = value;
		else if (KEY("args"))
			ev->args = value;
		break;
	}
	return 0;
}

static int
check_event(struct event *ev, struct err *e)
{
	if (!ev->ph)
		return err_set(e, SE_EFORMAT, "event without ph");
	if (!(ev->flags & EVENT_HAS_TS) && ev->ph != 'M')
		return err_set(e, SE_EFORMAT, "event without ts");
	if (ev->ph == 'X' && !(ev->flags & EVENT_HAS_DUR))
		return err_set(e, SE_EFORMAT, "complete event without dur");
	if (ev->dur < 0)
		return err_set(
		    e, SE_EFORMAT, "negative dur %" PRId64 " ns", ev->dur);
	int64_t end;
	if (__builtin_add_overflow(ev->ts, ev->dur, &end))
		return err_set(
		    e, SE_EFORMAT, "ts + dur beyond 64 bits of nanoseconds");
	if (ev->args.len && ev->args.p[0] != '{')
		ev->args = STR_NULL;
	return 0;
}

int
chrome_event(const struct scan_span *s, const char *p, size_t len,
    struct event *ev, struct err *e)
{
	struct walk w = { s, p, p + len - 1, 0, 0 };
	*ev = (struct event){ .raw = { p, len } };
	if (s->control)
		ev->flags |= EVENT_CONTROL;
	const char *at = space(p + 1);
	while (*at == '"' && w.quote + 2 <= s->nquote &&
	       p + s->quote[w.quote] == at) {
		const char *q = p + s->quote[w.quote + 1];
		struct str key = { at + 1, (size_t)(q - at) - 1 }, value;
		w.quote += 2;
		at = space(q + 1);
		if (*at != ':')
			break;
		at = pass_value(&w, space(at + 1), &value);
		if (!at)
			return err_set(
			    e, SE_EFORMAT, "no value behind a key of an event");
		int r = take_member(ev, key, value, e);
		if (r)
			return r;
		at = space(at);
		if (*at != ',')
			break;
		at = space(at + 1);
	}
	if (at != w.end)
		return err_set(e, SE_EFORMAT,
		    "expected a member or the end of an event at its byte "
		    "%zu",
		    (size_t)(at - p));
	return check_event(ev, e);
}

/* ---- members around the events ------------------------------------------ */

/* The number behind `word` in text, 0 if there is none. */
static uint64_t
number_behind(struct str text, const char *word)
{
	size_t n = strlen(word);
	for (size_t i = 0; i + n <= text.len; i++) {
		if (memcmp(text.p + i, word, n))
			continue;
		uint64_t v = 0;
		i += n;
		for (; i < text.len && text.p[i] >= '0' && text.p[i] <= '9';
		     i++)
			if (!num_mul(v, 10, &v) ||
			    !num_add(v, (uint64_t)(text.p[i] - '0'), &v))
				return UINT64_MAX;
		return v;
	}
	return 0;
}

/* libkineto's log lines that count what it could not record. */
static void
take_log(struct trace_info *info, struct str lines)
{
	static const char *const losses[] = {
		"Out-of-range = ", "CUPTI stopped early? = ", "Dropped "
	};
	const char *at = lines.p + 1;
	struct str line;
	bool string;
	while (scan_element(lines, &at, &line, &string))
		for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
			if (!num_add(info->lost, number_behind(line, losses[i]),
				&info->lost))
				info->lost = UINT64_MAX;
}

void
chrome_member(struct trace_info *info, struct str key, struct str value)
{
	if (str_is(key, "baseTimeNanoseconds")) {
		num_i64(value, 0, INT64_MAX, &info->base_ns, NULL);
	} else if (str_is(key, "distributedInfo") && str_starts(value, "{")) {
		struct str rank = scan_get(value, "rank");
		num_i64(rank, 0, INT32_MAX, &info->rank, NULL);
	} else if (str_is(key, "deviceProperties") ||
		   str_is(key, "schemaVersion")) {
		info->kineto = true;
	} else if ((str_is(key, "INFO") || str_is(key, "WARNING") ||
		       str_is(key, "ERROR")) &&
		   str_starts(value, "[")) {
		take_log(info, value);
	}
}

static void
keep_member(struct reader *r, struct str text)
{
	struct chrome *c = r->state;
	struct buf *to = c->at == AT_HEAD ? &r->info.head : &r->info.tail;
	if (to->len + text.len > HEAD_MAX || !scan_valid(text)) {
		/* Without its key: the output must stay a valid trace. */
		return;
	}
	buf_str(to, text);
}

/* ---- finding the events ------------------------------------------------- */

static int
broken(struct reader *r, const char *what, const char *p)
{
	struct chrome *c = r->state;
	unsigned char b = (unsigned char)*p;
	reader_bad(r, SE_EFORMAT, "offset %" PRIu64 ": %s, found byte 0x%02x",
	    r->feed.off, what, b);
	c->resync = true;
	return 0;
}

/*
 * Behind something broken: the next place that looks like the start of an
 * event. False if the window has none.
 */
static bool
find_event(struct feed *f)
{
	const char *from = f->buf + f->at, *end = f->buf + f->end;
	const char *p = from;
	while ((p = memchr(p, '{', (size_t)(end - p)))) {
		const char *q = p + 1, *before = p;
		while (q < end && scan_space(*q))
			q++;
		while (before > from && scan_space(before[-1]))
			before--;
		/* Behind a comma, a bracket, or first on its line. */
		bool first = before == from || before[-1] == ',' ||
			     before[-1] == '[' || before[-1] == '}' ||
			     memchr(before, '\n', (size_t)(p - before));
		if (q == end) {
			feed_skip(f, (size_t)(p - from));
			return false;
		}
		if (first && *q == '"') {
			feed_skip(f, (size_t)(p - from));
			return true;
		}
		p++;
	}
	feed_skip(f, feed_left(f));
	return false;
}

/* An event that is not whole yet. READ_EVENT: try again. */
static int
need_more(struct reader *r, struct err *e)
{
	struct feed *f = &r->feed;
	struct chrome *c = r->state;
	if (feed_left(f) >= SCAN_OBJECT_MAX) {
		reader_bad(r, SE_ELIMIT,
		    "offset %" PRIu64 ": event of more than %d bytes", f->off,
		    SCAN_OBJECT_MAX);
		feed_skip(f, 1);
		c->resync = true;
		return READ_EVENT;
	}
	int n = feed_more(f, e);
	if (n != FEED_END)
		return n == FEED_MORE ? READ_EVENT : n;
	r->info.truncated = true;
	r->info.torn = "it ends inside an event";
	/* What is behind the torn event's start could be whole events. */
	feed_skip(f, 1);
	c->resync = true;
	return READ_EVENT;
}

static bool
is_empty(struct str object)
{
	const char *p = object.p + 1;
	while (scan_space(*p))
		p++;
	return *p == '}';
}

/* The event at the front of the window. READ_EVENT with ev->ph 0: go on. */
static int
front_event(struct reader *r, struct event *ev, struct err *e)
{
	struct feed *f = &r->feed;
	struct chrome *c = r->state;
	const char *p = f->buf + f->at;
	size_t left = feed_left(f);
	long n = scan_object(
	    &c->span, p, left < SCAN_OBJECT_MAX ? left : SCAN_OBJECT_MAX);
	ev->ph = 0;
	if (n == 0)
		return need_more(r, e);
	if (n < 0) {
		broken(r, "expected a string to end on its line", p);
		feed_skip(f, 1);
		return READ_EVENT;
	}
	struct err why;
	uint64_t off = f->off;
	feed_skip(f, (size_t)n);
	int bad = chrome_event(&c->span, p, (size_t)n, ev, &why);
	if (!bad) {
		ev->off = off;
		return READ_EVENT;
	}
	if (!is_empty(ev->raw))
		reader_bad(r, bad, "offset %" PRIu64 ": %s", off, why.msg);
	ev->ph = 0;
	return READ_EVENT;
}

static void
close_array(struct reader *r)
{
	struct chrome *c = r->state;
	c->shut = true;
	feed_skip(&r->feed, 1);
	c->at = r->info.form == FORM_OBJECT ? AT_TAIL : AT_DONE;
}

/* Between events. READ_EVENT: state or window changed. */
static int
between(struct reader *r, struct event *ev, struct err *e)
{
	struct feed *f = &r->feed;
	struct chrome *c = r->state;
	for (;;) {
		const char *p = f->buf + f->at, *end = f->buf + f->end;
		const char *q = p;
		while (q < end && (scan_space(*q) || *q == ','))
			q++;
		feed_skip(f, (size_t)(q - p));
		if (q == end) {
			int n = feed_more(f, e);
			if (n == FEED_MORE)
				continue;
			return n;
		}
		if (c->resync && !find_event(f)) {
			int n = feed_more(f, e);
			if (n == FEED_MORE)
				continue;
			return n;
		}
		q = f->buf + f->at;
		c->resync = false;
		if (*q == '{')
			return front_event(r, ev, e);
		if (*q == ']' && !c->lines) {
			close_array(r);
			return READ_EVENT;
		}
		broken(r, "expected an event", q);
		feed_skip(f, 1);
	}
}

/* ---- the object around them --------------------------------------------- */

/* At a member's key: 1 with key and value in the window, FEED_* or error. */
static int
whole_member(struct feed *f, struct str *key, size_t *len, struct str *value,
    bool *events, struct err *e)
{
	for (;;) {
		const char *p = f->buf + f->at, *end = f->buf + f->end;
		const char *q = scan_value(p, end, key);
		const char *v = q;
		while (v && v < end && scan_space(*v))
			v++;
		if (v && v < end && *v++ == ':') {
			while (v < end && scan_space(*v))
				v++;
			*events = v < end && *v == '[' &&
				  str_is(*key, "\"traceEvents\"");
			*len = (size_t)(v - p);
			if (*events)
				return FEED_MORE;
			q = scan_value(v, end, value);
			/* A literal may go on behind the window. */
			if (q && (q < end || f->eof)) {
				*len = (size_t)(q - p);
				return FEED_MORE;
			}
		} else if (v && v < end) {
			return err_set(e, SE_EFORMAT,
			    "offset %" PRIu64 ": expected \"key\": value",
			    f->off);
		}
		if (feed_left(f) > HEAD_MAX)
			return err_set(e, SE_ELIMIT,
			    "offset %" PRIu64 ": member of more than %d bytes",
			    f->off, HEAD_MAX);
		int n = feed_more(f, e);
		if (n != FEED_MORE)
			return n;
	}
}

static void
use_member(struct reader *r, struct str key, struct str value, size_t len)
{
	struct chrome *c = r->state;
	struct str name = { key.p + 1, key.len > 2 ? key.len - 2 : 0 };
	struct buf *to = c->at == AT_HEAD ? &r->info.head : &r->info.tail;
	chrome_member(&r->info, name, value);
	size_t before = to->len;
	keep_member(r, key);
	if (to->len > before) {
		size_t key_end = to->len;
		buf_putc(to, ':');
		keep_member(r, value);
		if (to->len == key_end + 1)
			to->len = before;
		else
			buf_putc(to, ',');
	}
	feed_skip(&r->feed, len);
}

static int
torn_object(struct reader *r, int n)
{
	struct chrome *c = r->state;
	if (n != FEED_END)
		return n;
	c->at = AT_DONE;
	r->info.truncated = true;
	r->info.torn = "the object around the events has no end";
	return READ_EVENT;
}

/* One step through the members of the object. */
static int
members(struct reader *r, struct err *e)
{
	struct feed *f = &r->feed;
	struct chrome *c = r->state;
	int n = feed_need(f, 1, e);
	if (n != FEED_MORE)
		return torn_object(r, n);
	char first = f->buf[f->at];
	if (scan_space(first) || first == ',') {
		feed_skip(f, 1);
		return READ_EVENT;
	}
	if (first == '}') {
		feed_skip(f, 1);
		c->at = AT_DONE;
		return READ_EVENT;
	}
	struct str key, value;
	size_t len = 0;
	bool events;
	n = whole_member(f, &key, &len, &value, &events, e);
	if (n < 0 && c->shut) {
		/* The events are whole; the rest is not. */
		reader_bad(r, n, "%s", e->msg);
		c->at = AT_DONE;
		feed_skip(f, feed_left(f));
		return READ_EVENT;
	}
	if (n != FEED_MORE)
		return torn_object(r, n);
	if (events) {
		c->events = true;
		feed_skip(f, len + 1);
		c->at = AT_EVENTS;
		return READ_EVENT;
	}
	use_member(r, key, value, len);
	return READ_EVENT;
}

bool
chrome_event_key(struct str key)
{
	static const char *const keys[] = { "\"ph\"", "\"ts\"", "\"name\"",
		"\"pid\"", "\"tid\"", "\"cat\"", "\"dur\"", "\"args\"",
		"\"id\"", NULL };
	for (int i = 0; keys[i]; i++)
		if (str_is(key, keys[i]))
			return true;
	return false;
}

/*
 * Does an event stand alone here, no object around it? Its first key tells.
 * 1, 0, or FEED_IDLE and errors.
 */
static int
stands_alone(struct feed *f, bool *alone, struct err *e)
{
	for (size_t want = 2;; want = feed_left(f) + 1) {
		int n = feed_need(f, want, e);
		const char *p = f->buf + f->at + 1, *end = f->buf + f->end;
		struct str key;
		const char *q = scan_value(p, end, &key);
		if (q || n != FEED_MORE || feed_left(f) > HEAD_MAX) {
			*alone = q && chrome_event_key(key);
			return n == FEED_END ? FEED_MORE : n;
		}
	}
}

static int
start(struct reader *r, struct err *e)
{
	struct feed *f = &r->feed;
	struct chrome *c = r->state;
	int n = feed_need(f, 3, e);
	if (n != FEED_MORE && n != FEED_END)
		return n;
	/* A byte order mark, as some exporters on Windows write. */
	if (feed_left(f) >= 3 && !memcmp(f->buf + f->at, "\xef\xbb\xbf", 3))
		feed_skip(f, 3);
	for (;;) {
		n = feed_need(f, 1, e);
		if (n == FEED_END)
			return err_set(
			    e, SE_ETRUNC, "no trace: nothing but white space");
		if (n != FEED_MORE)
			return n;
		if (!scan_space(f->buf[f->at]))
			break;
		feed_skip(f, 1);
	}
	char first = f->buf[f->at];
	if (first != '[' && first != '{')
		return err_set(e, SE_EFORMAT,
		    "offset %" PRIu64 ": expected [ or {, found byte 0x%02x",
		    f->off, (unsigned char)first);
	if (first == '{') {
		n = stands_alone(f, &c->lines, e);
		if (n != FEED_MORE)
			return n;
	}
	if (!c->lines)
		feed_skip(f, 1);
	c->events = first == '[';
	c->at = c->events || c->lines ? AT_EVENTS : AT_HEAD;
	r->info.form = c->events  ? FORM_ARRAY
		       : c->lines ? FORM_LINES
				  : FORM_OBJECT;
	return READ_EVENT;
}

/* Behind the end: only white space may follow. */
static int
finish(struct reader *r, struct err *e)
{
	struct feed *f = &r->feed;
	struct chrome *c = r->state;
	for (;;) {
		while (feed_left(f) && scan_space(f->buf[f->at]))
			feed_skip(f, 1);
		if (feed_left(f)) {
			reader_bad(r, SE_EFORMAT,
			    "offset %" PRIu64
			    ": data behind the end of the trace",
			    f->off);
			return READ_END;
		}
		int n = feed_more(f, e);
		if (n != FEED_MORE)
			break;
	}
	if (!c->lines && !c->events)
		return err_set(
		    e, SE_EFORMAT, "no trace: the object has no traceEvents");
	if (!c->lines && !c->shut && !r->info.truncated) {
		r->info.truncated = true;
		r->info.torn = "the array of events has no end";
	}
	if (r->info.kineto && !r->info.window_end && !r->info.truncated) {
		r->info.truncated = true;
		r->info.torn = "no \"Record Window End\" event";
	}
	return READ_END;
}

/* ---- the reader --------------------------------------------------------- */

static int
chrome_probe(const char *p, size_t len)
{
	size_t i = len >= 3 && !memcmp(p, "\xef\xbb\xbf", 3) ? 3 : 0;
	while (i < len && scan_space(p[i]))
		i++;
	if (i == len)
		return 1;
	return p[i] == '[' || p[i] == '{' ? 50 : 0;
}

static int
chrome_open(struct reader *r, struct err *e)
{
	struct chrome *c = calloc(1, sizeof *c);
	if (!c)
		return err_mem(e);
	r->state = c;
	c->span.quote =
	    malloc(sizeof *c->span.quote * (SCAN_OBJECT_MAX + SCAN_SLACK));
	return c->span.quote ? 0 : err_mem(e);
}

static void
chrome_close(struct reader *r)
{
	struct chrome *c = r->state;
	if (c)
		free(c->span.quote);
	free(c);
}

static void
note_event(struct trace_info *info, const struct event *ev)
{
	if (ev->flags & EVENT_CONTROL)
		info->control++;
	if (ev->flags & EVENT_CUT_NS)
		info->cut_ns++;
	if (ev->ph == 'i' && str_is(ev->name, "Record Window End"))
		info->window_end = true;
}

static int
chrome_next(struct reader *r, struct event *ev, struct err *e)
{
	struct chrome *c = r->state;
	for (;;) {
		int n = READ_EVENT;
		switch (c->at) {
		case AT_START:
			n = start(r, e);
			break;
		case AT_HEAD:
		case AT_TAIL:
			n = members(r, e);
			break;
		case AT_EVENTS:
			n = between(r, ev, e);
			if (n == READ_EVENT && c->at == AT_EVENTS && ev->ph) {
				if (ev->flags || ev->ph == 'i')
					note_event(&r->info, ev);
				return READ_EVENT;
			}
			if (n == READ_END)
				c->at = AT_DONE;
			break;
		case AT_DONE:
			return finish(r, e);
		}
		if (n != READ_EVENT && c->at != AT_DONE)
			return n;
	}
}

const struct format chrome_format = {
	"chrome",
	"Chrome trace JSON, Kineto",
	chrome_probe,
	chrome_open,
	chrome_next,
	chrome_close,
};
