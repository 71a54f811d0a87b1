/* --split DIR: see split.h. */
#include "split.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

void
split_open(struct split *s, const char *dir, bool gzip, uint64_t max,
    const struct trace_info *info)
{
	*s = (struct split){ .dir = dir,
		.gzip = gzip,
		.max = max ? max : SPLIT_MAX,
		.info = info };
	if (mkdir(dir, 0777) && errno != EEXIST)
		cli_die("%s: cannot make: %s", dir, strerror(errno));
	s->part = cli_alloc(SPLIT_FILES, sizeof *s->part);
}

static const char *
name_of(const struct split *s, const struct part *p, char to[32])
{
	snprintf(to, 32, "window-%04" PRIu32 ".json%s", p->window,
	    s->gzip ? ".gz" : "");
	return to;
}

/*
 * A file is open only while it is written, so that their number is no limit.
 * The first time it must not be there: files of two runs are not mixed.
 */
static void
with_file(struct split *s, struct part *p, bool last)
{
	char name[32];
	struct buf path = { 0 };
	if (s->failure.code)
		return;
	buf_printf(&path, "%s/%s", s->dir, name_of(s, p, name));
	p->out.fd = open(buf_cstr(&path),
	    O_WRONLY | O_APPEND | O_CLOEXEC | (p->made ? 0 : O_CREAT | O_EXCL),
	    0666);
	if (p->out.fd < 0) {
		err_sys(&s->failure, "%s: cannot open", name);
		buf_free(&path);
		return;
	}
	p->made = true;
	struct err e = { 0 };
	if (last)
		out_close(&p->out, s->info, &e);
	else
		out_flush(&p->out);
	e.code = p->out.failure.code;
	if (close(p->out.fd) && !e.code)
		e.code = err_sys(&e, "cannot close");
	/* Half a trace is none. */
	if (e.code && !unlink(buf_cstr(&path)))
		err_set(&s->failure, e.code, "%s: cannot write it", name);
	p->out.fd = INT32_MAX;
	buf_free(&path);
}

static void
flush_all(struct split *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->part[i].out.b.len)
			with_file(s, &s->part[i], false);
	s->held = 0;
}

static struct part *
part_of(struct split *s, uint32_t window)
{
	for (size_t i = s->n; i > 0; i--)
		if (s->part[i - 1].window == window)
			return &s->part[i - 1];
	if (s->n == SPLIT_FILES)
		return NULL;
	struct part *p = &s->part[s->n++];
	p->window = window;
	/* Any number that is not -1: see with_file(). */
	out_open(&p->out, INT32_MAX, OUT_JSON, s->gzip);
	p->out.holds = true;
	out_head(&p->out, s->info);
	return p;
}

void
split_name(struct split *s, struct str raw)
{
	if (s->names.len + raw.len > SPLIT_NAMES) {
		s->nameless++;
		return;
	}
	buf_add(&s->names, &raw.len, sizeof raw.len);
	buf_str(&s->names, raw);
}

void
split_event(struct split *s, const struct windows *ws, int64_t ts, int64_t end,
    struct str raw)
{
	const struct window *w = windows_hit(ws, ts, end);
	for (; w && w < ws->w + ws->n && w->from <= end; w++) {
		struct part *p = part_of(s, w->id);
		if (!p || s->bytes + raw.len > s->max) {
			s->over++;
			continue;
		}
		out_event(&p->out, raw);
		s->bytes += raw.len;
		s->held += raw.len;
	}
	if (s->held > SPLIT_HELD)
		flush_all(s);
}

static void
add_names(struct split *s, struct out *o)
{
	for (size_t at = 0; at < s->names.len;) {
		struct str raw;
		memcpy(&raw.len, s->names.p + at, sizeof raw.len);
		raw.p = s->names.p + at + sizeof raw.len;
		out_event(o, raw);
		at += sizeof raw.len + raw.len;
	}
}

int
split_close(struct split *s, struct err *e)
{
	for (size_t i = 0; i < s->n; i++) {
		struct part *p = &s->part[i];
		add_names(s, &p->out);
		with_file(s, p, true);
		buf_free(&p->out.b);
	}
	buf_free(&s->names);
	if (!s->failure.code)
		return 0;
	return err_set(e, s->failure.code, "%s", s->failure.msg);
}

void
split_free(struct split *s)
{
	free(s->part);
}

struct str
split_file(const struct split *s, uint32_t window, char to[32])
{
	struct part p = { .window = window };
	for (size_t i = 0; i < s->n; i++)
		if (s->part[i].window == window)
			return str_c(name_of(s, &p, to));
	return STR_NULL;
}
