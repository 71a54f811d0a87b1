/*
 * strace -f -ttt -T, also -tt and -r, with and without -f: one call a line,
 * or cut in two by another thread's line. See strace(1).
 */
#include <inttypes.h>
#include <stdlib.h>

#include "cli.h"
#include "num.h"
#include "text.h"

enum {
	PENDING_MAX = 4096, /* threads inside a call */
	ARGS_SHOWN = 256,   /* bytes of a call's arguments that are kept */
};

#define DAY (INT64_C(86400) * 1000000000)

/* A call whose end has not come yet. */
struct pending {
	char pid[24];
	char name[64];
	char args[ARGS_SHOWN];
	int64_t ts;
	bool used;
};

struct strace {
	struct pending pending[PENDING_MAX];
	uint32_t n;
	int64_t now, day; /* of -r and -tt */
	int64_t last;
	bool relative, decided;
};

/* ---- one line ----------------------------------------------------------- */

/* Digits of a clock: 08:33:04.923229. */
static bool
clock_time(struct str s, int64_t *ns)
{
	uint64_t h, m;
	if (s.len < 9 || s.p[2] != ':' || s.p[5] != ':' ||
	    num_u64(text_upto(s, 2), 0, 23, &h, NULL) ||
	    num_u64(text_upto(text_from(s, 3), 2), 0, 59, &m, NULL) ||
	    !text_time(
		text_from(
		    s, s.p[6] == '0' && s.p[7] >= '0' && s.p[7] <= '9' ? 7 : 6),
		1000000000, ns))
		return false;
	*ns += (int64_t)(h * 3600 + m * 60) * 1000000000;
	return true;
}

static bool
line_time(struct strace *t, struct str word, int64_t *ns)
{
	if (clock_time(word, ns)) {
		/* A clock without a date: behind midnight a day is added. */
		if (*ns + t->day < t->last - DAY / 2)
			t->day += DAY;
		*ns += t->day;
	} else if (!text_time(word, 1000000000, ns)) {
		return false;
	} else if (!t->decided) {
		/* -r begins at zero; the epoch does not. */
		t->relative = *ns < INT64_C(1000000) * 1000000000;
		t->decided = true;
	}
	if (t->relative)
		*ns += t->last;
	t->last = *ns;
	return true;
}

static bool
all_digits(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
	return s.len > 0;
}

/* "30139 " or "[pid 30139] " before the stamp. */
static struct str
take_pid(struct str *line)
{
	struct str rest = *line, word = text_word(&rest);
	if (str_is(word, "[pid")) {
		word = text_word(&rest);
		if (word.len && word.p[word.len - 1] == ']')
			word.len--;
		*line = rest;
		return word;
	}
	if (!all_digits(word))
		return STR_LIT("0");
	*line = rest;
	return word;
}

static struct pending *
find_pending(struct strace *t, struct str pid, bool make)
{
	struct pending *spare = NULL;
	for (uint32_t i = 0; i < t->n; i++) {
		struct pending *p = &t->pending[i];
		if (p->used && str_is(pid, p->pid))
			return p;
		if (!p->used)
			spare = p;
	}
	if (!make || pid.len >= sizeof spare->pid)
		return NULL;
	if (!spare && t->n < PENDING_MAX)
		spare = &t->pending[t->n++];
	return spare;
}

static void
keep(char *to, size_t room, struct str s)
{
	size_t n = s.len < room ? s.len : room - 1;
	memcpy(to, s.p, n);
	to[n] = 0;
}

/* ---- events ---------------------------------------------------------- */

/* A futex says on what it waits, and whom it wakes. */
static const char *
category(struct str name, struct str args)
{
	if (!str_is(name, "futex"))
		return "syscall";
	return text_find(args, "FUTEX_WAKE") >= 0 ||
		       text_find(args, "REQUEUE") >= 0 ||
		       text_find(args, "UNLOCK") >= 0
		   ? "wake"
		   : "wait";
}

static void
give_call(struct reader *r, struct event *ev, int64_t ts, int64_t dur,
    struct str name, struct str args, struct str ret, struct str pid)
{
	long comma = text_find(args, ",");
	const char *cat = category(name, args);
	text_slice(r, ev, ts, dur, name, cat, STR_LIT("strace"), pid);
	render_arg(r, "args",
	    args.len > ARGS_SHOWN ? text_upto(args, ARGS_SHOWN) : args);
	if (comma > 0 && *cat == 'w')
		render_arg(r, "on", text_upto(args, (size_t)comma));
	render_arg(r, "ret", ret);
	render_end(r, ev);
}

/* " = RET <DUR>" at the end: what is before it, and the parts. */
static bool
cut_result(struct str *s, struct str *ret, int64_t *dur, bool *timed)
{
	*timed = false;
	if (s->len && s->p[s->len - 1] == '>') {
		long open = text_rfind(*s, "<");
		struct str d = text_from(*s, (size_t)open + 1);
		if (open > 0 &&
		    text_time(text_upto(d, d.len - 1), 1000000000, dur)) {
			*timed = true;
			*s = text_trim(text_upto(*s, (size_t)open));
		}
	}
	long eq = text_rfind(*s, " = ");
	if (eq < 0)
		return false;
	*ret = text_trim(text_from(*s, (size_t)eq + 3));
	*s = text_trim(text_upto(*s, (size_t)eq));
	return true;
}

static int
bad_line(struct reader *r, const char *what)
{
	reader_bad(
	    r, SE_EFORMAT, "%" PRIu64 ": expected %s", r->feed.line, what);
	return 0;
}

/* NAME(ARGS) = RET <DUR> */
static int
whole_call(struct reader *r, struct event *ev, int64_t ts, struct str pid,
    struct str text)
{
	struct str ret;
	int64_t dur = 0;
	bool timed;
	long open = text_find(text, "(");
	if (open <= 0)
		return bad_line(r, "a call with its arguments");
	struct str name = text_upto(text, (size_t)open);
	struct str args = text_from(text, (size_t)open + 1);
	if (!cut_result(&args, &ret, &dur, &timed))
		return bad_line(r, "= and a result behind a call");
	if (args.len && args.p[args.len - 1] == ')')
		args.len--;
	if (!timed) {
		text_instant(
		    r, ev, ts, name, "syscall", STR_LIT("strace"), pid);
		render_end(r, ev);
		return READ_EVENT;
	}
	give_call(r, ev, ts, dur, name, args, ret, pid);
	return READ_EVENT;
}

static int
begin_call(struct reader *r, struct strace *t, int64_t ts, struct str pid,
    struct str text)
{
	long open = text_find(text, "(");
	struct pending *p = find_pending(t, pid, true);
	if (open <= 0 || !p)
		return bad_line(r, "a call with its arguments");
	*p = (struct pending){ .ts = ts, .used = true };
	keep(p->pid, sizeof p->pid, pid);
	keep(p->name, sizeof p->name, text_upto(text, (size_t)open));
	struct str args = text_from(text, (size_t)open + 1);
	long cut = text_rfind(args, "<unfinished ...>");
	keep(p->args, sizeof p->args,
	    text_trim(text_upto(args, cut < 0 ? args.len : (size_t)cut)));
	return 0;
}

/* <... NAME resumed>REST) = RET <DUR>: the stamp is that of the end. */
static int
end_call(struct reader *r, struct event *ev, struct strace *t, int64_t ts,
    struct str pid, struct str text)
{
	struct str ret;
	int64_t dur = 0;
	bool timed;
	struct pending *p = find_pending(t, pid, false);
	struct str rest = text;
	if (!cut_result(&rest, &ret, &dur, &timed))
		return bad_line(r, "= and a result behind a call");
	if (!p)
		return bad_line(r, "the beginning of a resumed call");
	p->used = false;
	if (!timed)
		dur = ts > p->ts ? ts - p->ts : 0;
	give_call(r, ev, p->ts, dur, str_c(p->name), str_c(p->args), ret, pid);
	return READ_EVENT;
}

static int
take_line(struct reader *r, struct event *ev, struct str line)
{
	struct strace *t = r->state;
	int64_t ts;
	struct str pid = take_pid(&line), text;
	struct str word = text_word(&line);
	if (!line_time(t, word, &ts))
		return bad_line(r, "a time stamp (strace -ttt -T)");
	text = text_trim(line);
	if (str_starts(text, "+++") || str_starts(text, "---")) {
		text_instant(r, ev, ts, text, "signal", STR_LIT("strace"), pid);
		render_end(r, ev);
		return READ_EVENT;
	}
	if (str_ends(text, "<unfinished ...>"))
		return begin_call(r, t, ts, pid, text);
	if (str_starts(text, "<... "))
		return end_call(r, ev, t, ts, pid, text);
	return whole_call(r, ev, ts, pid, text);
}

static int
strace_next(struct reader *r, struct event *ev, struct err *e)
{
	struct strace *t = r->state;
	for (;;) {
		struct str line;
		bool whole;
		int n = feed_line(&r->feed, TEXT_LINE_MAX, &line, &whole, e);
		if (n == SE_ELIMIT) {
			reader_bad(r, n, "%s", e->msg);
			continue;
		}
		if (n == FEED_END) {
			/* Calls that never came back: still waiting. */
			for (uint32_t i = 0; i < t->n; i++)
				r->info.open += t->pending[i].used;
			t->n = 0;
			return READ_END;
		}
		if (n != FEED_MORE)
			return n;
		if (!whole && line.len) {
			r->info.truncated = true;
			r->info.torn = "the last line is cut";
		}
		if (!text_trim(line).len)
			continue;
		n = take_line(r, ev, line);
		if (n == READ_EVENT)
			return n;
	}
}

static int
strace_probe(const char *p, size_t len)
{
	struct str line;
	int64_t ns;
	if (!text_first_line(p, len, &line))
		return 0;
	take_pid(&line);
	struct str word = text_word(&line);

	if (!clock_time(word, &ns) && !text_time(word, 1000000000, &ns))
		return 0;
	line = text_trim(line);
	return str_starts(line, "<... ") || str_starts(line, "+++") ||
		       text_find(line, ") = ") > 0 ||
		       (text_find(line, "(") > 0 &&
			   (text_find(line, " = ") > 0 ||
			       str_ends(line, "<unfinished ...>")))
		   ? 80
		   : 0;
}

static int
strace_open(struct reader *r, struct err *e)
{
	r->info.form = FORM_TEXT;
	r->state = calloc(1, sizeof(struct strace));
	return r->state ? 0 : err_mem(e);
}

static void
strace_close(struct reader *r)
{
	free(r->state);
}

const struct format strace_format = {
	"strace",
	"strace -f -ttt -T",
	strace_probe,
	strace_open,
	strace_next,
	strace_close,
};
