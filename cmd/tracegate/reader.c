/* Readers of traces: see reader.h. */
#include "reader.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chrome.h"
#include "text.h"

enum { PROBE_MAX = 4096 };

/* The first of equal probes wins. */
const struct format *const reader_formats[] = {
	&jaeger_format,
	&otlp_format,
	&ev_format,
	&jsonl_format,
	&strace_format,
	&perf_trace_format,
	&ftrace_format,
	&perf_script_format,
	&tsv_format,
	&csv_format,
	&chrome_format,
	NULL,
};

static const struct format *
by_name(const char *type, struct err *e)
{
	for (int i = 0; reader_formats[i]; i++)
		if (!strcmp(reader_formats[i]->name, type))
			return reader_formats[i];
	struct buf list = { 0 };
	for (int i = 0; reader_formats[i]; i++)
		buf_printf(&list, " %s", reader_formats[i]->name);
	err_set(e, SE_EINVAL, "no trace format \"%s\"; there are:%s", type,
	    buf_cstr(&list));
	buf_free(&list);
	return NULL;
}

/* With --fields it is a table: which, its first line tells. */
static const struct format *
table_format(const struct reader *r)
{
	struct str line;
	const struct feed *f = &r->feed;
	if (!text_first_line(f->buf + f->at, f->end - f->at, &line))
		return &csv_format;
	if (str_starts(text_trim(line), "{"))
		return &jsonl_format;
	return text_find(line, "\t") >= 0 ? &tsv_format : &csv_format;
}

static const struct format *
surest(const struct feed *f)
{
	const struct format *best = NULL;
	size_t len = feed_left(f);
	int sure = 0;
	for (int i = 0; reader_formats[i]; i++) {
		int s = reader_formats[i]->probe(
		    f->buf + f->at, len < PROBE_MAX ? len : PROBE_MAX);
		if (s > sure) {
			sure = s;
			best = reader_formats[i];
		}
	}
	return best;
}

/*
 * Do these bytes say enough? A whole line does, or what begins an array of
 * events; one that begins an object and does not end it is of a document.
 */
static bool
enough(const struct feed *f)
{
	struct str line, text = { f->buf + f->at, f->end - f->at };
	bool array = str_starts(text_trim(text), "[");
	if (array || !str_cut(&text, '\n', &line))
		return array;
	bool whole = text.p != NULL;
	line = text_trim(line);
	if (str_starts(line, "{"))
		return str_ends(line, "}") || str_ends(line, "},");
	return whole;
}

/*
 * Live input may give a line first, or half of one, as strace does for a call
 * that lasts: more is waited for while nobody knows it for certain.
 */
static const struct format *
by_content(struct reader *r, struct err *e)
{
	const struct format *best;
	int n;
	do {
		n = feed_more(&r->feed, e);
		if (n < 0)
			return NULL;
		if (r->fields && r->fields->ts && feed_left(&r->feed))
			return table_format(r);
		best = surest(&r->feed);
	} while ((!best || !enough(&r->feed)) && n != FEED_END &&
		 feed_left(&r->feed) < PROBE_MAX);
	if (!feed_left(&r->feed))
		err_set(e, SE_ETRUNC, "no trace: the input is empty");
	else if (!best)
		err_set(e, SE_EUNSUP,
		    "no trace format that we know; -t forces one");
	return best;
}

static int
open_source(struct reader *r, struct src **s, const char *tmpdir, struct err *e)
{
	bool in = !strcmp(r->name, "-");
	r->fd = in ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
		   : open(r->name, O_RDONLY | O_CLOEXEC);
	if (r->fd < 0)
		return err_sys(e, "cannot open");
	int n = src_open_fd(s, r->fd, tmpdir, 0, e);
	if (n)
		close(r->fd);
	return n;
}

/* Over an open source, which the feed takes. */
static int
open_on(struct reader *r, struct src *src, const char *type, struct err *e)
{
	int n = feed_open(&r->feed, src, e);
	if (n) {
		src_close(src);
		return n;
	}
	r->format = type ? by_name(type, e) : by_content(r, e);
	if (!r->format)
		return e->code ? e->code : SE_EFORMAT;
	return r->format->open ? r->format->open(r, e) : 0;
}

int
reader_open(struct reader *r, const char *path, const char *type,
    const struct fields *fields, const char *tmpdir, struct err *e)
{
	*r = (struct reader){ .name = path, .fields = fields };
	r->info.rank = -1;
	struct src *src;
	int n = open_source(r, &src, tmpdir, e);
	return n ? n : open_on(r, src, type, e);
}

int
reader_open_mem(struct reader *r, const void *p, size_t len, const char *type,
    const struct fields *fields, struct err *e)
{
	*r = (struct reader){ .name = "memory", .fields = fields };
	r->info.rank = -1;
	struct src *src;
	int n = src_open_mem(&src, p, len, e);
	return n ? n : open_on(r, src, type, e);
}

void
reader_watch(struct reader *r)
{
	if (!src_is_gzip(r->feed.src) && !src_is_seekable(r->feed.src))
		r->feed.fd = r->fd;
}

int
reader_next(struct reader *r, struct event *ev, struct err *e)
{
	return r->format->next(r, ev, e);
}

bool
reader_is_object(const struct reader *r)
{
	const struct feed *f = &r->feed;
	struct str key;
	size_t i = f->at;
	if (r->format != &chrome_format)
		return false;
	while (i < f->end && scan_space(f->buf[i]))
		i++;
	if (i == f->end || f->buf[i] != '{')
		return false;
	return !scan_value(f->buf + i + 1, f->buf + f->end, &key) ||
	       !chrome_event_key(key);
}

void
reader_close(struct reader *r)
{
	if (r->format && r->format->close)
		r->format->close(r);
	feed_close(&r->feed);
	buf_free(&r->info.head);
	buf_free(&r->info.tail);
	buf_free(&r->raw);
	*r = (struct reader){ 0 };
}

void
reader_bad(struct reader *r, int code, const char *fmt, ...)
{
	if (r->info.bad++)
		return;
	char text[sizeof r->info.first_bad.msg];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	err_set(&r->info.first_bad, code, "%s", text);
}

/* ---- rendering ---------------------------------------------------------- */

void
put_us(struct buf *b, int64_t ns)
{
	const char *sign = ns < 0 ? "-" : "";
	uint64_t v = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	if (v % 1000)
		buf_printf(b, "%s%" PRIu64 ".%03u", sign, v / 1000,
		    (unsigned)(v % 1000));
	else
		buf_printf(b, "%s%" PRIu64, sign, v / 1000);
}

/* The slices of an event point into r->raw, which may move: offsets first. */
static struct str
put_string(struct buf *b, const char *key, struct str text)
{
	buf_printf(b, ",\"%s\":\"", key);
	size_t from = b->len;
	scan_quote(b, text);
	struct str at = { (const char *)(uintptr_t)from, b->len - from };
	buf_putc(b, '"');
	return at;
}

static struct str
at_last(const struct buf *b, struct str offset)
{
	size_t off = (size_t)(uintptr_t)offset.p;
	return (struct str){ offset.len ? b->p + off : "", offset.len };
}

void
render_begin(struct reader *r, struct event *ev, char ph, struct str name,
    struct str cat)
{
	struct buf *b = &r->raw;
	b->len = 0;
	ev->ph = ph;
	buf_printf(b, "{\"ph\":\"%c\"", ph);
	ev->name = put_string(b, "name", name);
	ev->cat = cat.len ? put_string(b, "cat", cat) : STR_NULL;
	ev->args = ev->id = STR_NULL;
	ev->flags = EVENT_HAS_TS;
	buf_puts(b, ",\"ts\":");
	put_us(b, ev->ts);
	if (ph == 'X') {
		ev->flags |= EVENT_HAS_DUR;
		buf_puts(b, ",\"dur\":");
		put_us(b, ev->dur);
	}
}

void
render_lane(struct reader *r, struct event *ev, struct str pid, struct str tid)
{
	ev->pid = put_string(&r->raw, "pid", pid);
	ev->tid = put_string(&r->raw, "tid", tid);
}

static void
arg_key(struct reader *r, const char *key)
{
	struct buf *b = &r->raw;
	bool first = b->len && b->p[b->len - 1] == '"' && !r->in_args;
	buf_puts(b, first ? ",\"args\":{\"" : ",\"");
	if (first)
		r->args_at = b->len - 2;
	r->in_args = true;
	scan_quote(b, str_c(key));
	buf_puts(b, "\":");
}

void
render_arg(struct reader *r, const char *key, struct str text)
{
	arg_key(r, key);
	buf_putc(&r->raw, '"');
	scan_quote(&r->raw, text);
	buf_putc(&r->raw, '"');
}

void
render_number(struct reader *r, const char *key, struct str number)
{
	arg_key(r, key);
	buf_str(&r->raw, number);
}

void
render_end(struct reader *r, struct event *ev)
{
	struct buf *b = &r->raw;
	size_t args_end = 0;
	if (r->in_args) {
		buf_putc(b, '}');
		args_end = b->len;
	}
	buf_putc(b, '}');
	buf_cstr(b);
	if (b->failed)
		return;
	ev->raw = buf_view(b);
	ev->name = at_last(b, ev->name);
	ev->cat = at_last(b, ev->cat);
	ev->pid = at_last(b, ev->pid);
	ev->tid = at_last(b, ev->tid);
	if (r->in_args)
		ev->args =
		    (struct str){ b->p + r->args_at, args_end - r->args_at };
	r->in_args = false;
}
