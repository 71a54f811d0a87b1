/* What lies within a period: see measure.h. */
#include "measure.h"

#include <stdlib.h>

#include "cli.h"
#include "sort.h"

/* Beside the sets of the rules: */
enum {
	SPAN_DEVICE = SETS_MAX, /* streams */
	SPAN_WORK,              /* everything that is no frame and no wait */
	SPAN_LANE,              /* the same on the lane of the step */
	SPANS,
	BACK_MAX = 64, /* slices of a stream that may reach into a period */
};

struct span {
	uint32_t of;
	int64_t from, until;
};

struct work {
	const struct model *m;
	const struct marks *s;
	const struct period *p;
	struct measure *x;
	struct span *span;
	uint32_t n, cap;
};

bool
measure_collective(struct str name)
{
	return str_starts(name, "nccl") || str_starts(name, "rccl");
}

/* A step that holds others, an annotation: what is in it does the work. */
static bool
frame(const struct work *w, uint32_t slice)
{
	const struct kinds *k = w->s->kinds;
	uint32_t key = w->s->key[slice];
	return w->m->slice[slice].kind == SLICE_NOTE ||
	       (k->keys.key[key].cls == CLASS_STEP && k->holds[key]);
}

/* ---- spans --------------------------------------------------------------- */

static void
add_span(struct work *w, uint32_t of, const struct slice *it)
{
	int64_t from = it->ts > w->p->from ? it->ts : w->p->from;
	int64_t until = it->end < w->p->until ? it->end : w->p->until;
	if (until <= from)
		return;
	if (w->n == w->cap) {
		w->cap = w->cap ? w->cap * 2 : 256;
		w->span = cli_realloc(w->span, w->cap, sizeof *w->span);
	}
	w->span[w->n++] = (struct span){ of, from, until };
}

static int
by_span(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	if (x->of != y->of)
		return x->of < y->of ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->until > y->until) - (x->until < y->until);
}

/* Covered time within [from, until] of sorted spans, and the longest hole. */
static int64_t
cover(const struct span *v, uint32_t n, int64_t from, int64_t until,
    int64_t *hole)
{
	int64_t sum = 0, at = from;
	*hole = 0;
	for (uint32_t i = 0; i < n && v[i].from < until; i++) {
		int64_t a = v[i].from > at ? v[i].from : at;
		int64_t b = v[i].until < until ? v[i].until : until;
		if (b <= at)
			continue;
		if (a - at > *hole)
			*hole = a - at;
		sum += b - a;
		at = b;
	}
	if (until - at > *hole)
		*hole = until - at;
	return sum;
}

static void
add_up(struct work *w)
{
	struct measure *x = w->x;
	const struct period *p = w->p;
	int64_t none;
	sort_array(w->span, w->n, sizeof *w->span, by_span);
	uint32_t first[SPANS + 1], at = 0;
	for (uint32_t of = 0; of <= SPANS; of++) {
		while (at < w->n && w->span[at].of < of)
			at++;
		first[of] = at;
	}
	for (uint32_t of = 0; of < SETS_MAX; of++)
		x->time[of] = cover(&w->span[first[of]],
		    first[of + 1] - first[of], p->from, p->until, &none);
	const struct span *v = &w->span[first[SPAN_DEVICE]];
	uint32_t n = first[SPAN_DEVICE + 1] - first[SPAN_DEVICE];
	x->busy = cover(v, n, p->from, p->until, &none);
	x->gap_busy = cover(v, n, p->from, p->ts, &none);
	v = &w->span[first[SPAN_WORK]];
	n = first[SPAN_WORK + 1] - first[SPAN_WORK];
	cover(v, n, p->from, p->until, &x->idle);
	v = &w->span[first[SPAN_LANE]];
	n = first[SPAN_LANE + 1] - first[SPAN_LANE];
	cover(v, n, p->ts, p->until, &x->hole);
}

/* ---- slices ------------------------------------------------------------- */

/* Was the stream empty when it was launched? */
static bool
without_queue(
    const struct model *m, const struct slice *it, uint32_t lane, uint32_t i)
{
	int32_t call = model_call(m, it->corr);
	if (call < 0)
		return false;
	return !i || lane_slice(m, lane, i - 1)->end <= m->slice[call].ts;
}

static void
take_slice(struct work *w, uint32_t lane, uint32_t i)
{
	const struct model *m = w->m;
	struct measure *x = w->x;
	uint32_t k = m->order[m->run[lane].first + i];
	const struct slice *it = &m->slice[k];
	bool begins = it->ts >= w->p->from && it->ts < w->p->until;
	for (uint64_t b = kinds_sets(w->s->kinds, w->s->key[k]); b;
	     b &= b - 1) {
		uint32_t set = (uint32_t)__builtin_ctzll(b);
		add_span(w, set, it);
		x->count[set] += begins;
		x->slices[set] += begins;
		x->sum[set] += begins ? it->end - it->ts : 0;
	}
	if (it->kind == SLICE_DEVICE) {
		add_span(w, SPAN_DEVICE, it);
		x->kernels += begins;
		x->starved += begins && without_queue(m, it, lane, i);
		if (begins && !measure_collective(m->name[it->name]))
			x->kernel[x->nkernel++] =
			    (struct kernel){ it->name, it->end - it->ts };
	}
	if (it->kind == SLICE_SYNC || frame(w, k))
		return;
	bool own = lane == m->slice[w->p->slice].lane;
	if (own)
		add_span(w, SPAN_LANE, it);
	if (it->kind != SLICE_WAIT)
		add_span(w, SPAN_WORK, it);
	else if (own && begins && marks_woken(w->s, m, it))
		x->lock += it->end - it->ts;
}

/* The first slice of a lane that does not begin before t. */
static uint32_t
first_from(const struct model *m, uint32_t lane, int64_t t)
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

/* What began before and reaches in: the slices around, or before, the last. */
static void
take_earlier(struct work *w, uint32_t lane, uint32_t first)
{
	const struct model *m = w->m;
	uint32_t begin = m->run[lane].first;
	uint32_t reach = first > BACK_MAX ? first - BACK_MAX : 0;
	for (uint32_t i = first; i > reach; i--)
		if (lane_slice(m, lane, i - 1)->end > w->p->from)
			take_slice(w, lane, i - 1);
	/* Farther back only what the earliest of these lies in. */
	int32_t up = reach ? m->slice[m->order[begin + reach]].parent : -1;
	for (; up >= 0; up = m->slice[up].parent) {
		uint32_t i = first_from(m, lane, m->slice[up].ts);
		while (m->order[begin + i] != (uint32_t)up)
			i++;
		if (i < reach && m->slice[up].end > w->p->from)
			take_slice(w, lane, i);
	}
}

static void
take_lanes(struct work *w)
{
	const struct model *m = w->m;
	uint32_t room = 0;
	for (uint32_t l = 0; l < m->lanes.n; l++)
		room += first_from(m, l, w->p->until) -
			first_from(m, l, w->p->from);
	w->x->kernel = cli_alloc(room, sizeof *w->x->kernel);
	for (uint32_t l = 0; l < m->lanes.n; l++) {
		uint32_t first = first_from(m, l, w->p->from);
		take_earlier(w, l, first);
		for (uint32_t i = first;
		     i < m->run[l].n && lane_slice(m, l, i)->ts < w->p->until;
		     i++)
			take_slice(w, l, i);
	}
}

/* ---- the path, and numbers ---------------------------------------------- */

/* A slice is in the sets of everything around it. */
static uint64_t
sets_around(const struct work *w, int32_t slice)
{
	uint64_t sets = 0;
	for (; slice >= 0; slice = w->m->slice[slice].parent)
		sets |= kinds_sets(w->s->kinds, w->s->key[slice]);
	return sets;
}

/* Work, or a frame with a name that some rule asks the path for. */
static bool
says_something(const struct work *w, int32_t slice)
{
	const struct kinds *k = w->s->kinds;
	return !frame(w, (uint32_t)slice) ||
	       (kinds_sets(k, w->s->key[slice]) & k->pathed);
}

static void
take_path(struct work *w)
{
	struct walk walk;
	struct measure *x = w->x;
	walk_run(&walk, w->m, w->p->from, w->p->until);
	for (uint32_t i = 0; i < walk.n; i++) {
		const struct step *st = &walk.step[i];
		int64_t dur = st->until - st->from;
		if (st->around >= 0 && says_something(w, st->around))
			x->covered += dur;
		for (uint64_t b = sets_around(w, st->around); b; b &= b - 1)
			x->on_path[__builtin_ctzll(b)] += dur;
	}
	x->stop = walk.stop;
	walk_free(&walk);
}

static void
take_value(struct measure *x, uint32_t set, double v)
{
	uint64_t bit = UINT64_C(1) << set;
	if (!(x->has_value & bit) || v > x->value[set])
		x->value[set] = v;
	x->has_value |= bit;
}

static void
take_marks(struct work *w, uint32_t set)
{
	const struct mark *held = NULL;
	for (uint32_t i = w->s->first[set]; i < w->s->first[set + 1]; i++) {
		const struct mark *k = &w->s->mark[i];
		if (k->ts >= w->p->until)
			break;
		if (k->ts < w->p->from) {
			held = k->holds ? k : held;
			continue;
		}
		if (k->instant)
			w->x->count[set]++;
		else
			take_value(w->x, set, k->v);
	}
	if (held)
		take_value(w->x, set, held->v);
}

static int
by_name(const void *a, const void *b)
{
	const struct kernel *x = a, *y = b;
	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return (x->dur > y->dur) - (x->dur < y->dur);
}

struct measure *
measure_make(
    const struct model *m, const struct marks *s, const struct period *p)
{
	struct measure *x = cli_alloc(1, sizeof *x);
	struct work w = { .m = m, .s = s, .p = p, .x = x };
	x->dur = period_dur(p);
	x->gap = p->ts - p->from;
	take_lanes(&w);
	add_up(&w);
	free(w.span);
	sort_array(x->kernel, x->nkernel, sizeof *x->kernel, by_name);
	take_path(&w);
	for (uint32_t i = 0; i < SETS_MAX; i++)
		take_marks(&w, i);
	return x;
}

void
measure_free(struct measure *x)
{
	if (!x)
		return;
	free(x->kernel);
	free(x);
}
