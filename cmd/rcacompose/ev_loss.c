/*
 * fping and mtr: loss on the way to a target, counters `loss` (a share) and
 * `sent`.
 *
 * fping -q -c N prints on stderr:
 *   10.0.0.3 : xmt/rcv/%loss = 20/20/0%, min/avg/max = 0.006/0.022/0.171
 * mtr --csv prints one line a hop:
 *   MTR.0.95,1796028880,OK,10.0.0.3,2,10.0.1.1,0.00,5,0,0.01,...
 * Only the last hop of mtr speaks of the target: a router on the way may
 * answer when it likes, and its silence is no loss.
 */
#include "ev.h"
#include "num.h"
#include "reasons.h"

static void
send(struct ev *ev, const struct sample *base, const char *counter, double v)
{
	struct sample s = *base;
	s.counter = str_c(counter);
	s.value = v;
	ev->take(ev, &s);
}

static void
send_loss(struct ev *ev, struct sample *s, uint64_t sent, double lost)
{
	if (!sent || sent < ev->min_n) {
		struct sample u = *s;
		u.counter = STR_LIT("loss");
		u.unknown = REASON_NODATA;
		ev->take(ev, &u);
		return;
	}
	send(ev, s, "loss", lost);
	send(ev, s, "sent", (double)sent);
}

static bool
fping_line(struct ev *ev, struct str line)
{
	struct str stats = ev_after(line, "xmt/rcv/%loss = "), word;
	struct str target = line;
	uint64_t sent, got;
	if (!stats.p)
		return false;
	str_cut(&target, ' ', &word);
	struct sample s;
	ev_begin(ev, &s);
	ev_label(&s, "target", word);
	struct str part;
	if (!str_cut(&stats, '/', &part) ||
	    num_u64(part, 0, UINT32_MAX, &sent, NULL) || !stats.p ||
	    !str_cut(&stats, '/', &part) ||
	    num_u64(part, 0, UINT32_MAX, &got, NULL))
		return false;
	/* More answers than questions: duplicates, not less loss. */
	if (got > sent)
		got = sent;
	send_loss(
	    ev, &s, sent, sent ? (double)(sent - got) / (double)sent : NAN);
	return true;
}

int
ev_fping(struct ev *ev, struct str text, struct err *e)
{
	struct str line;
	(void)e;
	while (text.p && str_cut(&text, '\n', &line)) {
		line = ev_trim(line);
		if (!line.len)
			continue;
		if (fping_line(ev, line))
			continue;
		if (ev_has(line, "xmt/rcv"))
			ev->bad++;
		else
			ev->left++; /* ICMP complaints and the like */
	}
	return 0;
}

enum { MTR_TIME = 1, MTR_TARGET = 3, MTR_HOP = 4, MTR_LOSS = 6, MTR_SENT = 7 };

struct mtr_row {
	struct str target;
	int64_t time;
	uint64_t hop, sent;
	double loss;
};

static bool
mtr_line(struct str line, struct mtr_row *r)
{
	struct str f[9], rest = line;
	uint64_t t;
	for (int i = 0; i < 9; i++)
		if (!rest.p || !str_cut(&rest, ',', &f[i]))
			return false;
	if (num_u64(f[MTR_TIME], 0, UINT32_MAX, &t, NULL) ||
	    num_u64(f[MTR_HOP], 1, 255, &r->hop, NULL) ||
	    num_f64(f[MTR_LOSS], &r->loss, NULL) ||
	    num_u64(f[MTR_SENT], 0, UINT32_MAX, &r->sent, NULL) ||
	    !(r->loss >= 0 && r->loss <= 100))
		return false;
	r->target = f[MTR_TARGET];
	r->time = (int64_t)t * 1000000000;
	return true;
}

static void
mtr_send(struct ev *ev, const struct mtr_row *r)
{
	struct sample s;
	ev_begin(ev, &s);
	ev_label(&s, "target", r->target);
	s.time = r->time;
	send_loss(ev, &s, r->sent, r->loss / 100);
}

int
ev_mtr(struct ev *ev, struct str text, struct err *e)
{
	struct mtr_row last = { .hop = 0 }, r;
	struct str line;
	(void)e;
	while (text.p && str_cut(&text, '\n', &line)) {
		line = ev_trim(line);
		if (!line.len || str_starts(line, "Mtr_Version"))
			continue;
		if (!mtr_line(line, &r)) {
			ev->bad++;
			continue;
		}
		/* A hop that does not count up begins the next trace. */
		if (last.hop &&
		    (r.hop <= last.hop || !str_same(r.target, last.target)))
			mtr_send(ev, &last);
		else
			ev->left += last.hop > 0;
		last = r;
	}
	if (last.hop)
		mtr_send(ev, &last);
	return 0;
}
