/*
 * ftrace and systrace text:
 *
 *	comm-pid [cpu] flags sec.usec: event: key=value ...
 *
 * Two sched_switch make a slice: the time a thread was off its processor, with
 * the state it left in. sched_wakeup says who ended it.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "cli.h"
#include "arena.h"
#include "map.h"
#include "num.h"
#include "text.h"

enum { THREADS_MAX = 1 << 16 };

/* When a thread left its processor. */
struct off {
	int64_t ts;
	char state;
	bool off;
};

struct ftrace {
	struct map by_pid;
	struct off *off;
	uint32_t n, cap;
	struct arena arena;
};

static struct off *
thread(struct ftrace *t, struct str pid)
{
	uint64_t *at = map_get(&t->by_pid, pid);
	if (at)
		return &t->off[*at];
	if (t->n == THREADS_MAX)
		return NULL;
	bool fresh;
	struct str copy = arena_str(&t->arena, pid);
	at = copy.p ? map_at(&t->by_pid, copy, &fresh) : NULL;
	if (!at)
		cli_die("out of memory");
	if (t->n == t->cap) {
		t->cap = t->cap ? t->cap * 2 : 64;
		t->off = cli_realloc(t->off, t->cap, sizeof *t->off);
	}
	*at = t->n;
	t->off[t->n] = (struct off){ 0 };
	return &t->off[t->n++];
}

/* key=VALUE up to the next blank. */
static struct str
value_of(struct str s, const char *key)
{
	long at = text_find(s, key);
	if (at < 0)
		return STR_NULL;
	struct str rest = text_from(s, (size_t)at + strlen(key));
	return text_word(&rest);
}

/* "comm-pid [cpu] flags TIME:", as far as the event. */
static bool
head(struct str line, struct str *comm, struct str *pid, int64_t *ts,
    struct str *rest)
{
	long cpu = text_find(line, " [");
	if (cpu <= 0 || line.p[0] == '#')
		return false;
	struct str who = text_trim(text_upto(line, (size_t)cpu));
	long group = text_find(who, " (");
	if (group > 0)
		who = text_trim(text_upto(who, (size_t)group));
	long dash = text_rfind(who, "-");
	if (dash < 0)
		return false;
	*comm = text_upto(who, (size_t)dash);
	*pid = text_from(who, (size_t)dash + 1);
	*rest = text_from(line, (size_t)cpu + 1);
	for (int i = 0; i < 4; i++) {
		struct str word = text_word(rest);
		if (word.len > 1 && word.p[word.len - 1] == ':' &&
		    text_time(text_upto(word, word.len - 1), 1000000000, ts))
			return true;
	}
	return false;
}

static int
give_switch(struct reader *r, struct event *ev, int64_t ts, struct str args)
{
	struct ftrace *t = r->state;
	struct str prev = value_of(args, "prev_pid=");
	struct str next = value_of(args, "next_pid=");
	struct str state = value_of(args, "prev_state=");
	struct off *p = thread(t, prev);
	if (p && !str_is(prev, "0"))
		*p = (struct off){ ts, state.len ? state.p[0] : '?', true };
	p = thread(t, next);
	if (!p || !p->off || ts < p->ts || str_is(next, "0"))
		return 0;
	char name[] = "off-cpu ?";
	name[8] = p->state;
	p->off = false;
	/* Runnable all the time: preempted, nobody had to wake it. */
	text_slice(r, ev, p->ts, ts - p->ts, str_c(name),
	    p->state == 'R' ? "sched" : "wait", STR_LIT("ftrace"), next);
	render_arg(r, "on", next);
	render_end(r, ev);
	return READ_EVENT;
}

static bool
lost(struct reader *r, struct str line)
{
	long at = text_find(line, "[LOST ");
	uint64_t n;
	if (at < 0)
		return false;
	struct str rest = text_from(line, (size_t)at + 6);
	if (num_u64(text_word(&rest), 0, UINT32_MAX, &n, NULL))
		n = 1;
	r->info.lost += n;
	return true;
}

static int
take_line(struct reader *r, struct event *ev, struct str line)
{
	struct str comm, pid, rest;
	int64_t ts;
	/* Copies inside JSON strings end in a literal \n\. */
	if (str_ends(line, "\\n\\"))
		line.len -= 3;
	line = text_trim(line);
	if (!line.len || line.p[0] == '#' || lost(r, line))
		return 0;
	if (!head(line, &comm, &pid, &ts, &rest)) {
		reader_bad(r, SE_EFORMAT,
		    "%" PRIu64 ": expected comm-pid [cpu] time: event:",
		    r->feed.line);
		return 0;
	}
	struct str name = text_word(&rest);
	if (name.len && name.p[name.len - 1] == ':')
		name.len--;
	if (str_is(name, "sched_switch"))
		return give_switch(r, ev, ts, rest);
	bool wakes = str_starts(name, "sched_wak");
	if (wakes)
		text_slice(r, ev, ts, 0, name, "wake", STR_LIT("ftrace"), pid);
	else
		text_instant(r, ev, ts, name, "ftrace", STR_LIT("ftrace"), pid);
	if (wakes) {
		struct str who = value_of(rest, " pid=");
		render_arg(r, "on", who);
	}
	render_arg(r, "args", text_trim(rest));
	render_end(r, ev);
	return READ_EVENT;
}

static int
ftrace_next(struct reader *r, struct event *ev, struct err *e)
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
		if (take_line(r, ev, line) == READ_EVENT)
			return READ_EVENT;
	}
}

static int
ftrace_probe(const char *p, size_t len)
{
	struct str line, comm, pid, rest;
	int64_t ts;
	while (len && text_first_line(p, len, &line)) {
		if (str_starts(line, "# tracer:"))
			return 90;
		if (line.p[0] != '#')
			return head(text_trim(line), &comm, &pid, &ts, &rest)
				   ? 70
				   : 0;
		size_t n = line.len + 1;
		p += n < len ? n : len;
		len -= n < len ? n : len;
	}
	return 0;
}

static int
ftrace_open(struct reader *r, struct err *e)
{
	r->info.form = FORM_TEXT;
	r->state = calloc(1, sizeof(struct ftrace));
	return r->state ? 0 : err_mem(e);
}

static void
ftrace_close(struct reader *r)
{
	struct ftrace *t = r->state;
	if (!t)
		return;
	map_free(&t->by_pid);
	arena_free(&t->arena);
	free(t->off);
	free(t);
}

const struct format ftrace_format = { "ftrace", "ftrace, systrace, atrace",
	ftrace_probe, ftrace_open, ftrace_next, ftrace_close };
