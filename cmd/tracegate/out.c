/* The trace that comes out: see out.h. */
#include "out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chrome.h"
#include "gzip.h"

enum { OUT_BLOCK = 128 << 10 };

void
out_open(struct out *o, int fd, int form, bool gzip)
{
	*o = (struct out){ .fd = fd, .form = form, .gzip = gzip };
	if (fd < 0 || form != OUT_EV)
		return;
	struct rec_how how = { .form = REC_LINES, .gzip = gzip };
	rec_out_open(&o->ev, fd, &how, &o->failure);
}

static void
write_all(struct out *o, const char *p, size_t len)
{
	while (len && !o->failure.code) {
		ssize_t w = write(o->fd, p, len);
		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0) {
			err_sys(&o->failure, "cannot write the trace");
			return;
		}
		p += w;
		len -= (size_t)w;
	}
}

static void
drain(struct out *o)
{
	struct buf z = { 0 };
	if (o->b.failed && !o->failure.code)
		err_mem(&o->failure);
	if (!o->b.len || o->failure.code) {
		o->b.len = 0;
		return;
	}
	if (!o->gzip)
		write_all(o, o->b.p, o->b.len);
	else if (!gzip_member(&z, o->b.p, o->b.len, &o->failure))
		write_all(o, z.p, z.len);
	buf_free(&z);
	o->b.len = 0;
}

void
out_flush(struct out *o)
{
	if (o->fd < 0)
		return;
	if (o->ev)
		rec_out_flush(o->ev, &o->failure);
	else
		drain(o);
}

void
out_head(struct out *o, const struct trace_info *info)
{
	if (o->fd < 0 || o->begun)
		return;
	o->begun = true;
	o->base_ns = info->base_ns;
	if (o->ev) {
		rec_begin(o->ev, "head");
		rec_put(o->ev, "of", "trace");
		rec_u64(o->ev, "version", SCHEMA_VERSION);
		rec_put(o->ev, "tool", "tracegate " VERSION);
		rec_end(o->ev);
		return;
	}
	o->object = info->form == FORM_OBJECT || info->form == FORM_TEXT;
	if (!o->object) {
		buf_puts(&o->b, "[\n");
		return;
	}
	buf_puts(&o->b, "{\n");
	if (info->form == FORM_TEXT)
		buf_puts(&o->b, "\"displayTimeUnit\":\"ns\",\n");
	buf_str(&o->b, buf_view(&info->head));
	buf_puts(&o->b, "\"traceEvents\": [\n");
}

static bool
begin_event(struct out *o)
{
	if (o->fd < 0 || o->failure.code)
		return false;
	if (o->events)
		buf_puts(&o->b, ",\n");
	o->events++;
	return true;
}

/* What was understood of an event that is not JSON. */
static void
put_again(struct buf *b, const struct event *ev)
{
	struct buf plain = { 0 };
	static const char *const keys[] = { "name", "cat", "pid", "tid", "id" };
	const struct str *values[] = { &ev->name, &ev->cat, &ev->pid, &ev->tid,
		&ev->id };
	buf_puts(b, "{\"ph\":\"");
	scan_quote(b, (struct str){ &ev->ph, 1 });
	buf_putc(b, '"');
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		if (!values[i]->p || (values[i]->len && *values[i]->p == '{'))
			continue;
		plain.len = 0;
		scan_plain(&plain, *values[i]);
		buf_printf(b, ",\"%s\":\"", keys[i]);
		scan_quote(b, buf_view(&plain));
		buf_putc(b, '"');
	}
	buf_free(&plain);
	if (ev->flags & EVENT_HAS_TS) {
		buf_puts(b, ",\"ts\":");
		put_us(b, ev->ts);
	}
	if (ev->flags & EVENT_HAS_DUR) {
		buf_puts(b, ",\"dur\":");
		put_us(b, ev->dur);
	}
	buf_puts(b, ",\"args\":{\"tracegate\":\"repaired\"}}");
}

/* Takes `raw` apart again: only kept events come here. */
static bool
understand(struct str raw, struct event *ev)
{
	uint32_t quote[4096];
	struct scan_span span = { .quote = quote };
	/* Every quote takes a byte: what is short enough surely fits. */
	if (raw.len + SCAN_SLACK > sizeof quote / sizeof *quote)
		return false;
	struct buf b = { 0 };
	buf_str(&b, raw);
	if (!buf_room(&b, SCAN_SLACK)) {
		buf_free(&b);
		return false;
	}
	memset(b.p + b.len, 0, SCAN_SLACK);
	bool ok = scan_object(&span, b.p, b.len) == (long)b.len &&
		  !chrome_event(&span, b.p, b.len, ev, NULL);
	/* The slices point into b: move them to where raw lives. */
	struct str *all[] = { &ev->name, &ev->cat, &ev->pid, &ev->tid, &ev->id,
		&ev->args, &ev->raw };
	for (size_t i = 0; ok && i < sizeof all / sizeof *all; i++)
		if (all[i]->p)
			all[i]->p = raw.p + (all[i]->p - b.p);
	buf_free(&b);
	return ok;
}

static void
put_plain(struct rec_out *o, const char *key, struct str content)
{
	struct buf b = { 0 };
	if (!content.p)
		return;
	scan_plain(&b, content);
	rec_str(o, key, buf_view(&b));
	buf_free(&b);
}

static void
ev_line(struct out *o, struct str raw)
{
	struct event ev;
	if (!understand(raw, &ev)) {
		o->repaired++;
		return;
	}
	char ph[2] = { ev.ph, 0 };
	rec_begin(o->ev, "ev");
	rec_time(o->ev, "ts", o->base_ns + ev.ts);
	if (ev.flags & EVENT_HAS_DUR)
		rec_time(o->ev, "dur", ev.dur);
	put_plain(o->ev, "proc", ev.pid);
	put_plain(o->ev, "thread", ev.tid);
	put_plain(o->ev, "kind", ev.cat);
	put_plain(o->ev, "name", ev.name.p ? ev.name : STR_LIT(""));
	struct str corr = scan_get(ev.args, "correlation");
	put_plain(o->ev, "corr", corr.len ? corr : ev.id);
	if (ev.ph != 'X')
		rec_put(o->ev, "ph", ph);
	rec_end(o->ev);
	o->events++;
}

void
out_event(struct out *o, struct str raw)
{
	if (o->fd < 0)
		return;
	o->bytes += raw.len;
	if (o->ev) {
		ev_line(o, raw);
		return;
	}
	if (scan_valid(raw)) {
		if (begin_event(o))
			buf_str(&o->b, raw);
	} else {
		struct event ev;
		o->repaired++;
		if (understand(raw, &ev) && begin_event(o))
			put_again(&o->b, &ev);
	}
	if (o->b.len >= OUT_BLOCK && !o->holds)
		drain(o);
}

void
out_mark(struct out *o, int64_t ts, const char *name, const char *args)
{
	if (o->ev || !begin_event(o))
		return;
	struct buf *b = &o->b;
	buf_printf(b,
	    "{\"ph\":\"i\",\"s\":\"g\",\"cat\":\"tracegate\",\"name\":\"%s\","
	    "\"pid\":\"tracegate\",\"tid\":\"\",\"ts\":",
	    name);
	put_us(b, ts);
	buf_printf(b, ",\"args\":{%s}}", args);
}

/* Members end in a comma; the last one must not. */
static void
put_tail(struct buf *b, struct str tail)
{
	if (!tail.len)
		return;
	buf_puts(b, ",\n");
	buf_str(b, (struct str){ tail.p, tail.len - 1 });
}

int
out_close(struct out *o, const struct trace_info *info, struct err *e)
{
	if (o->fd < 0 || o->closed)
		return 0;
	out_head(o, info);
	o->closed = true;
	if (o->ev) {
		rec_out_finish(o->ev, NULL, 0, 0, &o->failure);
		rec_out_close(o->ev);
	} else {
		buf_puts(&o->b, "\n]");
		if (o->object) {
			put_tail(&o->b, buf_view(&info->tail));
			buf_puts(&o->b, "\n}");
		}
		buf_putc(&o->b, '\n');
		drain(o);
	}
	buf_free(&o->b);
	if (!o->failure.code)
		return 0;
	return err_set(e, o->failure.code, "%s", o->failure.msg);
}
