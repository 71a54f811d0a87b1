/* The last-finisher walk: see walk.h. */
#include "walk.h"

#include <stdlib.h>

#include "cli.h"
#include "num.h"
#include "reasons.h"

const char *const walk_reason[WALK_COUNT] = {
	[WALK_DONE] = "",
	[WALK_NO_SYNC] = REASON_NO_SYNC_EVENTS,
	[WALK_NO_RELEASER] = REASON_NO_RELEASER,
	[WALK_TIE] = REASON_TIE,
	[WALK_BAD_REF] = REASON_BAD_EVENT_REF,
	[WALK_ORPHAN] = REASON_ORPHAN_GPU,
};

/* A wait shorter than this is the cost of the call, ns. */
#define WAIT_MIN INT64_C(20000)

/* Where the walk is: on a lane, at a time. */
struct at {
	uint32_t lane;
	int64_t t;
	bool jumped;
};

static void
add_step(struct walk *w, int64_t from, int64_t until, int32_t slice, bool jump)
{
	if (from < w->from)
		from = w->from;
	if (until <= from)
		return;
	if (w->n == w->cap) {
		w->cap = w->cap ? w->cap * 2 : 256;
		w->step = cli_realloc(w->step, w->cap, sizeof *w->step);
	}
	w->step[w->n++] = (struct step){ from, until, slice, slice, jump };
	if (slice >= 0)
		w->covered += until - from;
}

static void
stop(struct walk *w, int why, int64_t at, int32_t slice)
{
	w->stop = why;
	w->stop_at = at;
	w->stop_slice = slice;
}

/* Slices of a lane that begin before t. */
static uint32_t
begun_before(const struct model *m, uint32_t lane, int64_t t)
{
	uint32_t lo = 0, hi = m->run[lane].n;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (lane_slice(m, lane, mid)->ts < t)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/*
 * The innermost slice that runs just before t, or -1; *from is where it begins
 * to be the innermost: its own start, or the end of the last one inside it.
 */
static int32_t
running(const struct model *m, uint32_t lane, int64_t t, int64_t *from)
{
	uint32_t i = begun_before(m, lane, t);
	*from = INT64_MIN;
	if (!i)
		return -1;
	int32_t k = (int32_t)m->order[m->run[lane].first + i - 1];
	int64_t inner = INT64_MIN;
	while (k >= 0 && m->slice[k].end < t) {
		if (m->slice[k].end > inner)
			inner = m->slice[k].end;
		k = m->slice[k].parent;
	}
	*from = inner;
	if (k < 0)
		return -1;
	if (m->slice[k].ts > inner)
		*from = m->slice[k].ts;
	return k;
}

/* The device slice that ends last in (after, until], on any lane or one. */
static int32_t
last_device_end(const struct model *m, int64_t stream, int64_t after,
    int64_t until, bool *tie)
{
	int32_t best = -1;
	*tie = false;
	for (uint32_t i = 0; i < m->nby_corr; i++) {
		int32_t k = (int32_t)m->by_corr[i];
		const struct slice *s = &m->slice[k];
		if (s->end > until || s->end <= after)
			continue;
		if (stream >= 0) {
			int64_t own = -1;
			struct str tid = m->lanes.lane[s->lane].tid;
			num_i64(tid, 0, INT64_MAX, &own, NULL);
			if (own != stream)
				continue;
		}
		if (best < 0 || s->end > m->slice[best].end) {
			best = k;
			*tie = false;
		} else if (s->end == m->slice[best].end &&
			   s->lane != m->slice[best].lane) {
			*tie = true;
		}
	}
	return best;
}

/* The sync record of a call: by correlation. */
static const struct slice *
sync_record(const struct model *m, const struct slice *call)
{
	for (uint32_t i = 0; call->corr > 0 && i < m->n; i++)
		if (m->slice[i].kind == SLICE_SYNC &&
		    m->slice[i].corr == call->corr)
			return &m->slice[i];
	return NULL;
}

/* A call that may wait for the device. True: the walk goes on from *at. */
static bool
leave_call(struct walk *w, const struct model *m, int32_t k, struct at *at)
{
	const struct slice *call = &m->slice[k];
	bool tie;
	int64_t stream = -1;
	if (call->end - call->ts < WAIT_MIN)
		return false;
	const struct slice *record = sync_record(m, call);
	if (record) {
		stream = record->stream;
		if (stream < 0 && record->record_corr < 0 &&
		    call->blocks != BLOCKS_DEVICE) {
			stop(w, WALK_BAD_REF, at->t, k);
			return true;
		}
	} else if (call->blocks != BLOCKS_DEVICE) {
		/* Nothing says what it waited for. */
		if (last_device_end(m, -1, call->ts, call->end, &tie) < 0)
			return false;
		stop(w, WALK_NO_SYNC, at->t, k);
		return true;
	}
	int64_t until = at->t < call->end ? at->t : call->end;
	int32_t r = last_device_end(m, stream, call->ts, until, &tie);
	if (r < 0)
		return false; /* nothing was running: the call itself is slow */
	if (tie) {
		stop(w, WALK_TIE, at->t, k);
		return true;
	}
	add_step(w, m->slice[r].end, at->t, k, at->jumped);
	*at = (struct at){ m->slice[r].lane, m->slice[r].end, true };
	return true;
}

/* A thread that waits for another one: the last wake on the same object. */
static bool
leave_wait(struct walk *w, const struct model *m, int32_t k, struct at *at)
{
	const struct slice *wait = &m->slice[k];
	int32_t best = -1;
	bool tie = false;
	if (wait->end - wait->ts < WAIT_MIN)
		return false;
	for (uint32_t i = 0; wait->relation && i < m->n; i++) {
		const struct slice *s = &m->slice[i];
		if (s->kind != SLICE_WAKE || s->relation != wait->relation ||
		    s->lane == wait->lane || s->ts > at->t ||
		    s->end <= wait->ts)
			continue;
		if (best < 0 || s->ts > m->slice[best].ts) {
			best = (int32_t)i;
			tie = false;
		} else if (s->ts == m->slice[best].ts) {
			tie = true;
		}
	}
	if (best < 0 || tie) {
		stop(w, tie ? WALK_TIE : WALK_NO_RELEASER, at->t, k);
		return true;
	}
	int64_t t = m->slice[best].end < at->t ? m->slice[best].end : at->t;
	if (t <= m->slice[best].ts)
		t = m->slice[best].ts + 1;
	if (t >= at->t)
		t = at->t - 1;
	add_step(w, t, at->t, k, at->jumped);
	*at = (struct at){ m->slice[best].lane, t, true };
	return true;
}

/* The slice before this one on its stream, or -1. */
static int32_t
before_on_lane(const struct model *m, const struct slice *s)
{
	int32_t best = -1;
	uint32_t i = begun_before(m, s->lane, s->ts);
	/* Device lanes hardly overlap: a few steps back are enough. */
	for (uint32_t k = 0; k < 8 && i > k; k++) {
		int32_t j =
		    (int32_t)m->order[m->run[s->lane].first + i - 1 - k];
		const struct slice *b = &m->slice[j];
		if (b->kind == SLICE_DEVICE && b->end <= s->ts &&
		    (best < 0 || b->end > m->slice[best].end))
			best = j;
	}
	return best;
}

/* Device work: released by what ran before it, or by its launch. */
static void
leave_device(struct walk *w, const struct model *m, int32_t k, struct at *at)
{
	const struct slice *s = &m->slice[k];
	add_step(w, s->ts, at->t, k, at->jumped);
	int32_t prev = before_on_lane(m, s);
	int32_t call = model_call(m, s->corr);
	int64_t launched = call >= 0 ? m->slice[call].ts : INT64_MIN;
	int64_t freed = prev >= 0 ? m->slice[prev].end : INT64_MIN;
	if (call < 0 && prev < 0) {
		stop(w, WALK_ORPHAN, s->ts, k);
		return;
	}
	if (freed >= launched) {
		*at = (struct at){ s->lane, freed, false };
		return;
	}
	int64_t t = m->slice[call].end < s->ts ? m->slice[call].end : s->ts;
	*at = (struct at){ m->slice[call].lane, t, true };
}

static bool
on_device(const struct model *m, uint32_t lane, int64_t t, int32_t *k)
{
	uint32_t i = begun_before(m, lane, t);
	for (uint32_t back = 0; back < 8 && i > back; back++) {
		*k = (int32_t)m->order[m->run[lane].first + i - 1 - back];
		if (m->slice[*k].kind == SLICE_DEVICE && m->slice[*k].end >= t)
			return true;
	}
	return false;
}

/* One move back in time. False when the walk is over. */
static bool
move(struct walk *w, const struct model *m, struct at *at)
{
	int64_t from;
	int32_t k;
	int64_t before = at->t;
	if (on_device(m, at->lane, at->t, &k)) {
		leave_device(w, m, k, at);
		return w->stop == WALK_DONE && at->t < before;
	}
	k = running(m, at->lane, at->t, &from);
	if (k >= 0) {
		const struct slice *s = &m->slice[k];
		bool left = false;
		if (s->kind == SLICE_CALL && s->blocks)
			left = leave_call(w, m, k, at);
		else if (s->kind == SLICE_WAIT)
			left = leave_wait(w, m, k, at);
		if (left)
			return w->stop == WALK_DONE && at->t < before;
	}
	if (from == INT64_MIN) {
		/* The first on its lane: what made it start is not known. */
		add_step(w, w->from, at->t, -1, at->jumped);
		at->t = w->from;
		return false;
	}
	bool inside = k >= 0 && m->slice[k].kind != SLICE_NOTE;
	uint32_t n = w->n;
	add_step(w, from, at->t, inside ? k : -1, at->jumped);
	if (w->n > n)
		w->step[n].around = k;
	*at = (struct at){ at->lane, from, false };
	return at->t < before;
}

static int32_t
last_finisher(const struct model *m, int64_t from, int64_t until)
{
	int32_t best = -1;
	for (uint32_t i = 0; i < m->n; i++) {
		const struct slice *s = &m->slice[i];
		if (s->kind == SLICE_NOTE || s->kind == SLICE_SYNC ||
		    s->end > until || s->end <= from)
			continue;
		if (best < 0 || s->end > m->slice[best].end)
			best = (int32_t)i;
	}
	return best;
}

void
walk_run(struct walk *w, const struct model *m, int64_t from, int64_t until)
{
	*w = (struct walk){ .from = from, .until = until, .stop_slice = -1 };
	int32_t last = last_finisher(m, from, until);
	if (last < 0) {
		stop(w, WALK_NO_RELEASER, until, -1);
		return;
	}
	struct at at = { m->slice[last].lane, m->slice[last].end, false };
	while (at.t > from && move(w, m, &at))
		;
}

void
walk_free(struct walk *w)
{
	free(w->step);
}
