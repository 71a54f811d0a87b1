/*
 * A stream: events wait --lateness for older ones, are judged in order of
 * their ends, and then wait in the history until it is sure which windows
 * they are in. What leaves the history is written or forgotten.
 *
 *	accept -> [reorder: queue + heap] -> judge -> [history] -> leave
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "big.h"
#include "gate.h"
#include "ring.h"
#include "sort.h"
#include "watch.h"

enum {
	TICK_MS = 200,       /* how often silence is looked at */
	TICK_EVENTS = 64,    /* and the clock while there is none */
	BEGUN_MAX = 1 << 16, /* slices open at a time */
	STUB_MAX = 4096,     /* bytes of a begin kept for later */
	WARM_MIN = 8,        /* samples before anything is judged */
	BEAT_MIN = 8,        /* gaps before a missing beat is one */
	QUIET_MS = 1000,     /* output is held back no longer */
};

enum {
	HELD_PAIRED = 1,
	HELD_BEGUN_WRITTEN = 2, /* an end whose begin is out */
	HELD_BEGUN_GONE = 4,    /* an end whose begin was forgotten */
	HELD_ORPHAN = 8,
};

#define NONE UINT64_MAX

/* An event that waits. */
struct held {
	int64_t ts, end;
	int64_t start; /* of the slice, for its end */
	uint64_t at;   /* of its bytes in the ring */
	uint64_t mate; /* a begin's end in the history, or NONE */
	uint64_t nth;  /* of the input: equal ends stay in its order */
	char *stub;    /* an end's forgotten begin */
	uint32_t stub_len, lane, key, begun;
	char ph;
	uint8_t cls, flags, cost;
};

/* A slice that has begun and not ended. */
struct begun {
	int64_t ts;
	uint64_t seq; /* in the history */
	char *stub;
	uint32_t stub_len, key, next_free;
	uint8_t cls, flags, cost;
	bool in_history;
};

/* A queue of held events that grows; front at `first`. */
struct queue {
	struct held *v;
	uint64_t first, n, cap; /* cap: a power of two */
};

struct live {
	struct gate *g;
	struct ring ring;
	struct queue wait, history;
	struct held *heap;
	size_t nheap, heap_cap;
	struct begun *begun;
	uint32_t nbegun, free_begun; /* free_begun: index + 1 */
	int64_t newest, released;
	bool any, left;
	uint64_t flushed_at;
	uint64_t beats_checked;
};

/* ---- queues ---------------------------------------------------------- */

static struct held *
queue_at(struct queue *q, uint64_t i)
{
	return &q->v[(q->first + i) & (q->cap - 1)];
}

static struct held *
queue_push(struct queue *q, const struct held *h)
{
	if (q->n == q->cap) {
		uint64_t cap = q->cap ? q->cap * 2 : 1024;
		struct held *v = big_alloc(cap, sizeof *v);
		for (uint64_t i = 0; i < q->n; i++)
			v[(q->first + i) & (cap - 1)] = *queue_at(q, i);
		big_free(q->v, q->cap, sizeof *v);
		q->v = v;
		q->cap = cap;
	}
	struct held *to = queue_at(q, q->n++);
	*to = *h;
	return to;
}

static struct held
queue_pop(struct queue *q)
{
	struct held h = *queue_at(q, 0);
	q->first++;
	q->n--;
	return h;
}

static bool
before(const struct held *a, const struct held *b)
{
	return a->end != b->end ? a->end < b->end : a->nth < b->nth;
}

static void
heap_push(struct live *l, const struct held *h)
{
	if (l->nheap == l->heap_cap) {
		l->heap_cap = l->heap_cap ? l->heap_cap * 2 : 256;
		l->heap = cli_realloc(l->heap, l->heap_cap, sizeof *l->heap);
	}
	size_t i = l->nheap++;
	while (i && before(h, &l->heap[(i - 1) / 2])) {
		l->heap[i] = l->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	l->heap[i] = *h;
}

static struct held
heap_pop(struct live *l)
{
	struct held top = l->heap[0], last = l->heap[--l->nheap];
	size_t i = 0;
	for (;;) {
		size_t c = 2 * i + 1;
		if (c >= l->nheap)
			break;
		if (c + 1 < l->nheap && before(&l->heap[c + 1], &l->heap[c]))
			c++;
		if (!before(&l->heap[c], &last))
			break;
		l->heap[i] = l->heap[c];
		i = c;
	}
	l->heap[i] = last;
	return top;
}

/* ---- leaving --------------------------------------------------------- */

static char *
copy_stub(struct str raw)
{
	if (raw.len > STUB_MAX)
		return NULL;
	char *p = cli_alloc(raw.len, 1);
	memcpy(p, raw.p, raw.len);
	return p;
}

static void
write_raw(struct live *l, struct window *w, struct str raw)
{
	struct gate *g = l->g;
	if (w) {
		w->events++;
		w->bytes += raw.len;
		g->n.detail++;
		g->n.detail_bytes += raw.len;
	} else {
		g->n.shallow++;
		g->n.shallow_bytes += raw.len;
	}
	out_head(&g->out, &g->reader.info);
	out_event(&g->out, raw);
}

/* Is it kept, and for which window; NULL for what is always kept. */
static bool
wanted(struct live *l, const struct held *h, size_t len, struct window **w)
{
	struct gate *g = l->g;
	*w = NULL;
	if (h->cls || g->set->all)
		return true;
	char half = phase_pair(h->ph);
	int64_t from = half == 'e' ? h->start : h->ts;
	int64_t end =
	    half == 'b' && !(h->flags & HELD_PAIRED) ? INT64_MAX : h->end;
	*w = windows_hit(&g->windows, from, end);
	if (!*w)
		return false;
	uint64_t need = half == 'b' ? 2 * len : len;
	if (g->set->max_bytes && g->n.detail_bytes + need > g->set->max_bytes) {
		(*w)->cut = true;
		g->n.over++;
		return false;
	}
	return true;
}

/* What became of a begin is told to its end, wherever that is. */
static void
tell_mate(struct live *l, const struct held *h, bool written, struct str raw)
{
	char *stub = written ? NULL : copy_stub(raw);
	uint8_t flag = written ? HELD_BEGUN_WRITTEN : HELD_BEGUN_GONE;
	if (h->mate != NONE) {
		struct held *end =
		    queue_at(&l->history, h->mate - l->history.first);
		end->flags |= flag;
		end->stub = stub;
		end->stub_len = (uint32_t)raw.len;
	} else if (h->begun) {
		struct begun *b = &l->begun[h->begun - 1];
		b->in_history = false;
		b->flags |= flag;
		b->stub = stub;
		b->stub_len = (uint32_t)raw.len;
	} else {
		free(stub);
	}
}

static void
leave_end(struct live *l, const struct held *h, struct str raw)
{
	struct window *w;
	if (h->flags & HELD_ORPHAN)
		return;
	bool want = wanted(l, h, raw.len + h->stub_len, &w);
	if (h->flags & HELD_BEGUN_WRITTEN) {
		write_raw(l, w, raw);
	} else if (want && h->stub) {
		write_raw(l, w, (struct str){ h->stub, h->stub_len });
		write_raw(l, w, raw);
	}
}

/* The oldest of the history goes. */
static void
leave(struct live *l)
{
	struct held h = queue_pop(&l->history);
	struct str raw = ring_get(&l->ring, h.at);
	char half = phase_pair(h.ph);
	struct window *w;
	/* Its other half may be in a window that is not there yet. */
	l->g->n.unsplit += half && l->g->split.dir;
	if (half == 'e') {
		leave_end(l, &h, raw);
	} else {
		bool keep = wanted(l, &h, raw.len, &w);
		if (keep)
			write_raw(l, w, raw);
		if (keep && l->g->split.dir && !half)
			split_event(
			    &l->g->split, &l->g->windows, h.ts, h.end, raw);
		if (half == 'b')
			tell_mate(l, &h, keep, raw);
	}
	free(h.stub);
	if (!l->left || h.end > l->g->have)
		l->g->have = h.end;
	l->left = true;
	ring_drop(&l->ring, h.at);
}

/* ---- judging --------------------------------------------------------- */

static int
by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Before the histogram says anything: the median of the first samples. */
static void
warm_quantiles(struct key *k, uint64_t n)
{
	int64_t v[KEY_WARM];
	if (n > KEY_WARM)
		n = KEY_WARM;
	k->q = (struct quantiles){ 0 };
	if (n < WARM_MIN)
		return;
	memcpy(v, k->warm, n * sizeof *v);
	sort_array(v, n, sizeof *v, by_value);
	k->q = (struct quantiles){ n, v[n / 2], v[n - 1], v[n - 1] };
}

static void
learn(struct gate *g, struct key *k, uint8_t cost, int64_t dur, int64_t at)
{
	uint64_t nth = k->slices++;
	gate_shift(g, k, dur, at);
	if (cost && keys_cost(&g->keys, (uint32_t)(k - g->keys.key))) {
		cost_add(k->cost, cost, dur, HIST_HALF);
		if (k->cost->n % COST_EVERY == 0)
			cost_fit(k->cost, g->set->detect.floor);
	}
	if (nth < KEY_WARM) {
		k->warm[nth] = dur;
		warm_quantiles(k, nth + 1);
		return;
	}
	if (!k->hist)
		k->hist = cli_alloc(1, sizeof *k->hist);
	hist_add(k->hist, dur, HIST_HALF);
	uint64_t n = nth + 1 - KEY_WARM;
	if (n % DETECT_EVERY == 0 || (n == KEY_WARM))
		hist_quantiles(k->hist, &k->q);
}

static void
judge_slice(struct live *l, const struct held *h)
{
	struct gate *g = l->g;
	struct key *k = &g->keys.key[h->key];
	if (h->key == KEY_OVERFLOW) {
		g->n.untested++;
		return;
	}
	struct opening o = { .ts = h->start,
		.dur = h->end - h->start,
		.value = h->end - h->start,
		.key = h->key,
		.lane = h->lane };
	o.why = (uint8_t)gate_judge(g, k, &k->q, h->cost, &o);
	if (o.why) {
		gate_open(g, &o);
	} else if (k->cls == CLASS_STEP && gate_audits(g, g->n.tested)) {
		o.why = WHY_AUDIT;
		g->n.audited++;
		gate_open(g, &o);
	}
	learn(g, k, h->cost, o.dur, h->start);
	watch_slice(g, h->key, h->lane, h->start, o.dur);
}

static int64_t
wall_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* How long a beat may be missing; 0: not known yet. */
static int64_t
beat_limit(const struct gate *g, const struct key *k)
{
	struct quantiles q;
	hist_quantiles(k->gap, &q);
	int64_t t = 3 * q.q999;
	if (q.n < BEAT_MIN)
		return 0;
	return t > q.q50 + g->set->detect.floor ? t
						: q.q50 + g->set->detect.floor;
}

static void
miss_beat(struct live *l, uint32_t id, int64_t gap, int64_t limit)
{
	struct key *k = &l->g->keys.key[id];
	struct opening o = { .ts = k->last_end,
		.dur = gap,
		.value = gap,
		.threshold = limit,
		.key = id,
		.why = WHY_GAP };
	l->g->n.gaps++;
	k->beat_missed = true;
	gate_open(l->g, &o);
}

static void
beat(struct live *l, const struct held *h)
{
	struct key *k = &l->g->keys.key[h->key];
	int64_t gap = h->ts - k->last_end;
	if (k->ngap++) {
		int64_t limit = beat_limit(l->g, k);
		if (limit && gap > limit && !k->beat_missed)
			miss_beat(l, h->key, gap, limit);
		hist_add(k->gap, gap, HIST_HALF);
	}
	k->beat_missed = false;
	k->last_end = h->end;
	k->last_wall = wall_ns();
}

/* Silence is looked at by the clock: the next event may never come. */
static void
missing_beats(struct live *l, bool at_end)
{
	struct gate *g = l->g;
	int64_t now = wall_ns();
	for (uint32_t i = 1; g->set->nbeat && i < g->keys.n; i++) {
		struct key *k = &g->keys.key[i];
		if (!k->gap || !k->ngap || k->beat_missed)
			continue;
		int64_t limit = beat_limit(g, k);
		int64_t gap =
		    at_end ? l->newest - k->last_end : now - k->last_wall;
		if (limit && gap > limit)
			miss_beat(l, i, gap, limit);
	}
}

static struct begun *
begin(struct live *l, struct held *h)
{
	uint32_t i;
	if (l->free_begun) {
		i = l->free_begun - 1;
		l->free_begun = l->begun[i].next_free;
	} else if (l->nbegun < BEGUN_MAX) {
		i = l->nbegun++;
	} else {
		l->g->n.open++;
		return NULL;
	}
	l->begun[i] = (struct begun){ .ts = h->ts,
		.key = h->key,
		.cls = h->cls,
		.cost = h->cost,
		.in_history = true };
	h->begun = i + 1;
	stack_push(&l->g->lanes.lane[h->lane].open, i);
	return &l->begun[i];
}

static bool
names(const struct gate *g, const struct held *h, uint32_t key)
{
	return !key_name(&g->keys.key[h->key]).len || h->key == key;
}

/* The end of a slice finds its begin. `seq`: where the end will be. */
static void
finish(struct live *l, struct held *h, uint64_t seq)
{
	struct gate *g = l->g;
	struct stack *open = &g->lanes.lane[h->lane].open;
	if (!open->n) {
		h->flags |= HELD_ORPHAN;
		g->n.orphan++;
		return;
	}
	uint32_t at = open->n;
	while (at && !names(g, h, l->begun[open->v[at - 1]].key))
		at--;
	g->n.mismatched += at != open->n;
	at = at ? at - 1 : open->n - 1;
	uint32_t i = (uint32_t)open->v[at];
	struct begun *b = &l->begun[i];
	stack_remove(open, at);
	h->start = b->ts;
	h->key = b->key;
	h->cls = b->cls;
	if (b->cost)
		h->cost = b->cost;
	h->flags |= HELD_PAIRED | b->flags;
	h->stub = b->stub;
	h->stub_len = b->stub_len;
	if (b->in_history) {
		struct held *begins =
		    queue_at(&l->history, b->seq - l->history.first);
		begins->mate = seq;
		begins->end = h->end;
		begins->flags |= HELD_PAIRED;
		begins->begun = 0;
	}
	b->next_free = l->free_begun;
	l->free_begun = i + 1;
	judge_slice(l, h);
}

/* ---- released in order -------------------------------------------------- */

static void
trim(struct live *l)
{
	int64_t keep = l->g->set->history;
	while (
	    l->history.n && queue_at(&l->history, 0)->ts < l->released - keep)
		leave(l);
}

static void
release(struct live *l, struct held *h)
{
	struct gate *g = l->g;
	char half = phase_pair(h->ph);
	uint64_t seq = l->history.first + l->history.n;
	struct begun *b = NULL;
	if (h->end > l->released || !l->any)
		l->released = h->end;
	l->any = true;
	if (g->keys.key[h->key].gap && half != 'e')
		beat(l, h);
	if (half != 'e')
		watch_event(g, h->key, h->lane, h->end);
	if (h->ph == 'X')
		judge_slice(l, h);
	else if (half == 'b')
		b = begin(l, h);
	else if (half == 'e')
		finish(l, h, seq);
	queue_push(&l->history, h);
	if (b)
		b->seq = seq;
	trim(l);
}

static bool
release_one(struct live *l, int64_t until)
{
	bool queued = l->wait.n > 0, heaped = l->nheap > 0;
	if (!queued && !heaped)
		return false;
	bool heap =
	    heaped && (!queued || before(&l->heap[0], queue_at(&l->wait, 0)));
	int64_t end = heap ? l->heap[0].end : queue_at(&l->wait, 0)->end;
	if (end > until)
		return false;
	struct held h = heap ? heap_pop(l) : queue_pop(&l->wait);
	release(l, &h);
	return true;
}

/* Room for the bytes: first the oldest history, then who waits. */
static bool
hold(struct live *l, struct str raw, uint64_t *at)
{
	while (!ring_put(&l->ring, raw, at)) {
		if (l->history.n) {
			leave(l);
		} else if (release_one(l, INT64_MAX)) {
			l->g->n.forced++;
		} else {
			return false;
		}
	}
	return true;
}

static void
accept(struct live *l, const struct event *ev)
{
	struct gate *g = l->g;
	uint32_t known = g->keys.n;
	struct held h = { .ts = ev->ts,
		.end = event_end(ev),
		.mate = NONE,
		.start = ev->ts,
		.ph = ev->ph,
		.nth = g->n.events };
	g->n.events++;
	g->n.bytes += ev->raw.len;
	gate_progress(g);
	h.key = keys_of(&g->keys, ev);
	if (g->keys.n != known)
		gate_new_key(g, h.key);
	h.lane = lanes_of(&g->lanes, ev);
	h.cost = gate_cost(g, ev);
	h.cls = gate_class(g, ev, h.key);
	if (ev->ph == 'M') {
		/* No place in time: on its way at once. */
		write_raw(l, NULL, ev->raw);
		if (g->split.dir)
			split_name(&g->split, ev->raw);
		return;
	}
	if (!hold(l, ev->raw, &h.at)) {
		g->n.forced++;
		return;
	}
	if (g->n.first > h.ts || !l->newest)
		g->n.first = h.ts;
	if (!l->left)
		g->have = g->n.first;
	if (h.end > l->newest)
		l->newest = h.end;
	g->n.last = l->newest;
	if (l->any && h.end < l->released) {
		g->n.late++;
		/* Half a slice out of order would break others. */
		if (phase_pair(h.ph))
			ring_drop(&l->ring, h.at);
		else
			release(l, &h);
		return;
	}
	if (!l->wait.n || h.end >= queue_at(&l->wait, l->wait.n - 1)->end) {
		queue_push(&l->wait, &h);
	} else {
		g->n.reordered++;
		heap_push(l, &h);
	}
	while (release_one(l, l->newest - g->set->lateness))
		;
}

static void
finish_all(struct live *l)
{
	struct gate *g = l->g;
	while (release_one(l, INT64_MAX))
		;
	missing_beats(l, true);
	watch_end(g);
	while (l->history.n)
		leave(l);
	for (uint32_t i = 0; i < g->lanes.n; i++)
		g->n.open += g->lanes.lane[i].open.n;
	for (uint32_t i = 0; i < l->nbegun; i++)
		if (!l->begun[i].in_history)
			free(l->begun[i].stub);
}

static void
idle(struct live *l)
{
	struct gate *g = l->g;
	struct err e;
	missing_beats(l, false);
	out_flush(&g->out);
	rec_out_flush(g->rec, &e);
	if (g->on_tick)
		g->on_tick(g->user);
}

static int
stream(struct live *l, struct err *e)
{
	struct gate *g = l->g;
	struct event ev = { 0 };
	for (;;) {
		int r = reader_next(&g->reader, &ev, e);
		if (r == READ_EVENT) {
			accept(l, &ev);
			/* A busy stream is never idle. */
			if (g->on_tick && g->n.events % TICK_EVENTS == 0)
				g->on_tick(g->user);
			if (g->out.failure.code)
				return err_set(e, g->out.failure.code, "%s",
				    g->out.failure.msg);
			continue;
		}
		if (r == READ_IDLE) {
			idle(l);
			continue;
		}
		if ((r == SE_ETRUNC || r == SE_EFORMAT) && g->n.events) {
			g->reader.info.truncated = true;
			g->reader.info.torn = "the input is torn";
			cli_warn_err(g->set->input, e);
			return 0;
		}
		return r;
	}
}

int
gate_live(struct gate *g, struct err *e)
{
	struct live l = { .g = g };
	ring_init(&l.ring, g->set->ring);
	l.begun = cli_alloc(BEGUN_MAX, sizeof *l.begun);
	g->limited = true;
	g->reader.feed.idle_ms = TICK_MS;
	g->reader.feed.stop = g->stop;
	int r = stream(&l, e);
	g->n.interrupted = g->stop && *g->stop;
	finish_all(&l);
	if (!r)
		gate_marks(g);
	ring_free(&l.ring);
	big_free(l.wait.v, l.wait.cap, sizeof *l.wait.v);
	big_free(l.history.v, l.history.cap, sizeof *l.history.v);
	free(l.heap);
	free(l.begun);
	return r;
}
