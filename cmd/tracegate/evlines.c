/* ev lines: trace events in the line format, see straightedge-records(5). */
#include <inttypes.h>
#include <stdlib.h>

#include "cli.h"
#include "num.h"
#include "rec.h"
#include "text.h"

struct evlines {
	struct rec_in *in;
	struct rec rec;
};

static int
give_line(struct reader *r, struct event *ev, const struct rec *rec)
{
	struct err e;
	int64_t ts = 0, dur = 0;
	const struct str *d = rec_get(rec, "dur");
	struct str ph = rec_text_of(rec, "ph");
	if (rec_time_of(rec, "ts", &ts, &e) ||
	    (d && !text_time(*d, 1000000000, &dur)) || dur < 0) {
		reader_bad(
		    r, SE_EFORMAT, "%" PRIu64 ": expected seconds", rec->line);
		return 0;
	}
	struct str kind = rec_text_of(rec, "kind");
	struct str proc = rec_text_of(rec, "proc");
	struct str thread = rec_text_of(rec, "thread");
	struct str rank = rec_text_of(rec, "rank");
	if (!proc.len)
		proc = rank.len ? rank : STR_LIT("ev");
	ev->ts = ts;
	ev->dur = dur;
	char phase = d ? 'X' : ph.len == 1 ? ph.p[0] : 'i';
	render_begin(r, ev, phase, rec_text_of(rec, "name"), kind);
	render_lane(r, ev, proc, thread.len ? thread : proc);
	for (size_t i = 0; i < rec->n; i++) {
		struct str k = rec->field[i].key;
		if (str_is(k, "corr"))
			render_arg(r, "correlation", rec->field[i].value);
		else if (str_is(k, "step"))
			render_arg(r, "step", rec->field[i].value);
		else if (str_starts(k, "x.") && k.len < 64) {
			char name[64];
			memcpy(name, k.p + 2, k.len - 2);
			name[k.len - 2] = 0;
			render_arg(r, name, rec->field[i].value);
		}
	}
	render_end(r, ev);
	return READ_EVENT;
}

static int
at_end(struct reader *r)
{
	struct evlines *l = r->state;
	const struct rec_totals *t = rec_in_totals(l->in);
	r->info.lost += t->lost;
	if (rec_totals_state(t) == REC_FILTERED) {
		r->info.truncated = true;
		r->info.torn = "no end record, or fewer records than it says";
	}
	return READ_END;
}

static int
ev_next(struct reader *r, struct event *ev, struct err *e)
{
	struct evlines *l = r->state;
	for (;;) {
		int n = rec_in_next(l->in, &l->rec, e);
		if (n == 0)
			return at_end(r);
		if (n == SE_EFORMAT) {
			reader_bad(r, n, "%s", e->msg);
			continue;
		}
		if (n < 0)
			return n;
		if (str_is(l->rec.type, "ev") &&
		    give_line(r, ev, &l->rec) == READ_EVENT)
			return READ_EVENT;
	}
}

static int
ev_open(struct reader *r, struct err *e)
{
	struct evlines *l = calloc(1, sizeof *l);
	if (!l)
		return err_mem(e);
	r->info.form = FORM_TEXT;
	r->state = l;
	/* The record reader takes the source over. */
	struct src *s = r->feed.src;
	r->feed.src = NULL;
	return rec_in_open(&l->in, s, e);
}

static void
ev_close(struct reader *r)
{
	struct evlines *l = r->state;
	if (l && l->in)
		rec_in_close(l->in);
	free(l);
}

static int
ev_probe(const char *p, size_t len)
{
	struct str line;
	if (!text_first_line(p, len, &line))
		return 0;
	return str_starts(line, "ev\t") || str_starts(line, "head\t") ? 95 : 0;
}

const struct format ev_format = { "ev", "ev lines", ev_probe, ev_open, ev_next,
	ev_close };
