/*
 * Records of the other commands: evidence goes on as it is, a finding of an
 * entity becomes evidence of the tool that its head names. The chain says
 * where it came from, so that own verdicts cannot come back as evidence.
 */
#include "ev.h"

static void
put_finding(struct ev *ev, const struct rec *r, struct str tool, int64_t time)
{
	struct str result = rec_text_of(r, "result");
	struct str head = tool;
	str_cut(&tool, '/', &head);
	if (!str_is(result, "faulty") && !str_is(result, "healthy") &&
	    !str_is(result, "unknown")) {
		ev->left++;
		return;
	}
	rec_begin(ev->out, "evidence");
	if (time != NO_TIME)
		rec_time(ev->out, "time", time);
	rec_str(ev->out, "entity", rec_text_of(r, "entity"));
	if (ev->agent)
		rec_put(ev->out, "agent", ev->agent);
	else
		rec_str(ev->out, "agent", head);
	rec_str(ev->out, "status", result);
	if (str_is(result, "faulty") && ev->since != NO_TIME)
		rec_time(ev->out, "onset", ev->since);
	struct str reason = rec_text_of(r, "reason");
	if (reason.len)
		rec_str(ev->out, "reason", reason);
	rec_str(ev->out, "chain", head);
	rec_end(ev->out);
	ev->records++;
}

int
ev_records(struct ev *ev, struct src *src, struct err *e)
{
	struct src *slice;
	struct rec_in *in;
	struct rec r;
	struct str tool = STR_LIT("unknown");
	int64_t time = ev->at;
	int got = src_open_slice(&slice, src, 0, SRC_UNKNOWN, e);
	if (!got)
		got = rec_in_open(&in, slice, e);
	if (got)
		return got;
	while ((got = rec_in_next(in, &r, e)) != 0) {
		if (got != 1) {
			ev->bad++;
			continue;
		}
		if (str_is(r.type, "head")) {
			tool = arena_str(ev->arena, rec_text_of(&r, "tool"));
			rec_time_of(&r, "time", &time, NULL);
		} else if (str_is(r.type, "evidence")) {
			if (!ev->previous)
				rec_copy(ev->out, &r);
			ev->records++;
		} else if (str_is(r.type, "finding") && !ev->previous) {
			put_finding(ev, &r, tool, time);
		} else if (!str_is(r.type, "end")) {
			ev->left++;
		}
	}
	if (rec_totals_state(rec_in_totals(in)) == REC_FILTERED)
		ev->bad++;
	rec_in_close(in);
	return 0;
}
