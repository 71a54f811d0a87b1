/* From lines to answers: see weigh.h and rcacompose(1), RELEVANCE. */
#include "weigh.h"

#include <math.h>
#include <stdlib.h>

#include "cli.h"
#include "reasons.h"
#include "sort.h"

/* The time that one line speaks of. `b` is INT64_MAX while it goes on. */
struct span {
	int64_t a, b;
	int64_t seen; /* known to be so until then, for contradictions */
	int32_t line;
};

void
weigher_free(struct weigher *w)
{
	free(w->span);
	free(w->health);
	free(w->healed);
}

/* The window of the incident, its slack added. */
struct window {
	int64_t start, end;  /* as the incident has them; end may be now */
	int64_t first, last; /* start - lead, end + lag */
	int64_t fresh;       /* start + lag: a later onset is a consequence */
};

static int64_t
plus(int64_t t, int64_t d)
{
	int64_t r;
	if (__builtin_add_overflow(t, d, &r))
		return d < 0 ? INT64_MIN + 1 : INT64_MAX - 1;
	return r;
}

static struct window
window_of(const struct weigher *w)
{
	const struct facts *f = w->facts;
	struct window v = { .start = f->start, .end = f->end };
	if (v.end == NO_TIME)
		v.end = w->now > v.start ? w->now : v.start;
	v.first = plus(v.start, -f->stack->lead);
	v.last = plus(v.end, f->stack->lag);
	v.fresh = plus(v.start, f->stack->lag);
	return v;
}

/* ---- one line -------------------------------------------------------- */

static bool
in_future(const struct weigher *w, const struct line *l)
{
	int64_t limit = plus(w->now, w->facts->stack->skew);
	/* NO_TIME lies before every limit. */
	return l->time > limit || l->onset > limit || l->until > limit;
}

static bool
is_stale(const struct weigher *w, const struct agent *a, const struct line *l,
    const struct window *v)
{
	int64_t ref = w->now;
	if (w->facts->incident && v->last < ref)
		ref = v->last;
	return a->ttl && l->time != NO_TIME && l->time < plus(ref, -a->ttl);
}

/* Why the line is an unknown, whatever it says; NULL: it may speak. */
static const char *
disqualified(const struct weigher *w, const struct agent *a,
    const struct line *l, const struct window *v)
{
	if (l->hard)
		return l->reason;
	if (in_future(w, l))
		return REASON_SKEW;
	if (is_stale(w, a, l, v))
		return REASON_STALE;
	if (l->status == SAYS_HEALTHY && !isnan(a->max_bound) &&
	    !(l->bound <= a->max_bound))
		return REASON_THIN;
	return NULL;
}

/* Is the line this agent's, about the direction that is looked at? */
static bool
speaks(const struct weigher *w, const struct line *l, size_t agent)
{
	return l->agent == agent &&
	       (!l->direction || l->direction == w->direction);
}

static bool
says_healthy(const struct weigher *w, const struct line *l, size_t agent,
    const struct window *v)
{
	return speaks(w, l, agent) && l->status == SAYS_HEALTHY &&
	       !disqualified(w, &w->facts->stack->agent[agent], l, v);
}

/* The earliest H of the agent after `t`: where an open fault ended. */
static int64_t
healed_after(const struct weigher *w, int64_t t)
{
	size_t low = 0, high = w->nhealed;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (w->healed[mid] > t)
			high = mid;
		else
			low = mid + 1;
	}
	return low < w->nhealed ? w->healed[low] : INT64_MAX;
}

static struct span
span_of_fault(const struct weigher *w, const struct line *l)
{
	int64_t seen = l->time != NO_TIME ? l->time : l->onset;
	struct span s = { .a = l->onset, .b = l->until, .seen = l->until };
	if (l->until == NO_TIME) {
		s.b = healed_after(w, seen);
		s.seen = seen;
	}
	if (s.seen < s.a)
		s.seen = s.a;
	return s;
}

static struct span
span_of_health(const struct line *l)
{
	int64_t a = l->onset != NO_TIME ? l->onset : l->time;
	int64_t b = l->until != NO_TIME ? l->until : l->time;
	if (a == NO_TIME || (b != NO_TIME && b < a))
		a = b;
	if (b == NO_TIME)
		b = a;
	/* Nobody knows that it will be well after he has said so. */
	if (l->time != NO_TIME && b > l->time)
		b = l->time;
	if (a > b)
		a = b;
	return (struct span){ .a = a, .b = b, .seen = b };
}

/* ---- what an agent calls healthy ------------------------------------- */

static int
by_start(const void *x, const void *y)
{
	const struct span *a = x, *b = y;
	if (a->a != b->a)
		return a->a < b->a ? -1 : 1;
	return (a->b > b->b) - (a->b < b->b);
}

static int
by_time(const void *x, const void *y)
{
	const int64_t *a = x, *b = y;
	return (*a > *b) - (*a < *b);
}

static void
note_health(struct weigher *w, const struct line *l)
{
	struct span h = span_of_health(l);
	if (w->nhealth == w->health_cap) {
		w->health_cap = w->health_cap ? 2 * w->health_cap : 64;
		w->health =
		    cli_realloc(w->health, w->health_cap, sizeof *w->health);
		w->healed =
		    cli_realloc(w->healed, w->health_cap, sizeof *w->healed);
	}
	if (h.a != NO_TIME)
		w->health[w->nhealth++] = h;
	if (l->time != NO_TIME)
		w->healed[w->nhealed++] = l->time;
}

/* Sorted; `seen` becomes the latest end of this and all earlier ones. */
static void
gather_health(
    struct weigher *w, size_t agent, int32_t first, const struct window *v)
{
	const struct line *line = w->facts->line;
	w->nhealth = w->nhealed = 0;
	for (int32_t i = first; i != NONE; i = line[i].next)
		if (says_healthy(w, &line[i], agent, v))
			note_health(w, &line[i]);
	sort_array(w->healed, w->nhealed, sizeof *w->healed, by_time);
	sort_array(w->health, w->nhealth, sizeof *w->health, by_start);
	for (size_t i = 0; i < w->nhealth; i++) {
		struct span *h = &w->health[i];
		h->seen = i && h[-1].seen > h->b ? h[-1].seen : h->b;
	}
}

/* The number of spans that begin before t, or then. */
static size_t
begun(const struct weigher *w, int64_t t, bool then)
{
	size_t low = 0, high = w->nhealth;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (w->health[mid].a < t || (then && w->health[mid].a == t))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Is there a healthy moment, without extent, at t? */
static bool
healthy_at(const struct weigher *w, int64_t t)
{
	size_t i = begun(w, t, false); /* the shortest of those from t on */
	return i < w->nhealth && w->health[i].a == t && w->health[i].b == t;
}

/* The latest end of a span that begins before t (or then). */
static int64_t
healthy_until(const struct weigher *w, int64_t t, bool then)
{
	size_t n = begun(w, t, then);
	return n ? w->health[n - 1].seen : INT64_MIN;
}

/*
 * "Faulty" with both ends says that somewhere in between it was; open, that
 * it is at the time of the line. "Healthy" says that all of its span was. Two
 * samples in a row share an end, which contradicts nothing.
 */
static bool
contradicted(const struct weigher *w, const struct span *f)
{
	bool open = f->b != f->seen;
	if (f->a == f->seen)
		return healthy_at(w, f->a) ||
		       healthy_until(w, f->a, false) > f->a;
	if (open && (healthy_at(w, f->seen) ||
			healthy_until(w, f->seen, false) >= f->seen))
		return true;
	return healthy_until(w, f->a, true) >= f->seen;
}

/* ---- the lines of one agent ------------------------------------------ */

/* What has been seen of the agent so far; first in the order of use. */
struct pile {
	size_t nfaults;       /* spans with an onset, in w->span */
	struct reply unknown; /* answer U with a reason, or none */
	int64_t unknown_time; /* NO_TIME: hard */
	int32_t onsetless, health, late;
	bool accuses;
};

static bool
push_span(struct weigher *w, size_t n, struct span s)
{
	if (n == w->cap) {
		w->cap = w->cap ? 2 * w->cap : 64;
		w->span = cli_realloc(w->span, w->cap, sizeof *w->span);
	}
	w->span[n] = s;
	return true;
}

/* Is line a to be shown before line b? Any order of input gives the same. */
static bool
shown_before(const struct facts *f, int32_t a, int32_t b)
{
	const struct line *x = &f->line[a], *y = &f->line[b];
	if (b == NONE)
		return true;
	if (x->source != y->source)
		return x->source < y->source;
	return x->number < y->number;
}

static void
note_unknown(const struct facts *f, struct pile *p, const char *reason,
    int32_t line, int64_t time)
{
	bool first = !p->unknown.reason;
	bool hard = time == NO_TIME, was = p->unknown_time == NO_TIME;
	bool better =
	    first || (hard && !was) ||
	    (hard == was && (time > p->unknown_time ||
				(time == p->unknown_time &&
				    shown_before(f, line, p->unknown.line))));
	if (!better)
		return;
	p->unknown.reason = reason;
	p->unknown.line = line;
	p->unknown_time = time;
}

static void
note_line(int32_t *slot, const struct facts *f, int32_t line)
{
	if (*slot == NONE || shown_before(f, line, *slot))
		*slot = line;
}

static void
take_line(struct weigher *w, struct pile *p, const struct agent *a, int32_t i,
    const struct window *v)
{
	const struct facts *f = w->facts;
	const struct line *l = &f->line[i];
	const char *why = disqualified(w, a, l, v);
	p->accuses |= l->status == SAYS_FAULTY;
	if (why) {
		note_unknown(f, p, why, i,
		    !strcmp(why, REASON_STALE) || !strcmp(why, REASON_THIN)
			? l->time
			: NO_TIME);
		return;
	}
	if (l->status == SAYS_UNKNOWN) {
		note_unknown(f, p, l->reason, i, l->time);
		return;
	}
	if (l->status == SAYS_FAULTY) {
		if (l->onset == NO_TIME) {
			note_line(&p->onsetless, f, i);
			return;
		}
		struct span s = span_of_fault(w, l);
		s.line = i;
		push_span(w, p->nfaults++, s);
		return;
	}
	struct span h = span_of_health(l);
	if (h.a == NO_TIME || h.b < v->start || h.a > v->last)
		note_line(&p->late, f, i);
	else
		note_line(&p->health, f, i);
}

/* ---- faults ---------------------------------------------------------- */

static int
by_onset(const void *x, const void *y)
{
	const struct span *a = x, *b = y;
	if (a->a != b->a)
		return a->a < b->a ? -1 : 1;
	return (a->b > b->b) - (a->b < b->b);
}

enum age { AGE_PAST, AGE_CONSEQUENCE, AGE_BACKGROUND, AGE_FRESH };

static enum age
age_of(int64_t a, int64_t b, const struct window *v)
{
	if (a > v->fresh)
		return AGE_CONSEQUENCE;
	if (a >= v->first)
		return AGE_FRESH;
	return b >= v->first ? AGE_BACKGROUND : AGE_PAST;
}

/*
 * Spans that touch, or lie less than `lead` apart, are one fault: a sampler
 * that reports minute after minute tells of one onset, the first.
 */
static enum age
worst_fault(struct weigher *w, size_t n, const struct window *v, size_t *which)
{
	enum age best = AGE_PAST;
	int64_t lead = w->facts->stack->lead;
	sort_array(w->span, n, sizeof *w->span, by_onset);
	*which = 0;
	for (size_t i = 0; i < n;) {
		int64_t a = w->span[i].a, b = w->span[i].b;
		size_t k = i;
		while (++k < n && w->span[k].a <= plus(b, lead))
			if (w->span[k].b > b)
				b = w->span[k].b;
		enum age age = age_of(a, b, v);
		if (age > best) {
			best = age;
			*which = i;
		}
		i = k;
	}
	return best;
}

static struct reply
unknown(const char *reason, int32_t line)
{
	return (
	    struct reply){ .answer = ANSWER_U, .reason = reason, .line = line };
}

static struct reply
known(const struct weigher *w, enum answer answer, int32_t line)
{
	return (struct reply){ .answer = answer,
		.line = line,
		.root = w->facts->line[line].root };
}

static struct reply
reply_to_faults(struct weigher *w, const struct pile *p, const struct window *v)
{
	size_t which;
	enum age age = worst_fault(w, p->nfaults, v, &which);
	struct span s = w->span[which];
	if (age == AGE_FRESH) {
		if (contradicted(w, &s))
			return unknown("conflict", s.line);
		return known(w, ANSWER_F, s.line);
	}
	if (age == AGE_BACKGROUND) {
		struct reply r = unknown(REASON_BACKGROUND, s.line);
		r.background = true;
		return r;
	}
	if (age == AGE_CONSEQUENCE)
		return unknown(REASON_CONSEQUENCE, s.line);
	return unknown(NULL, s.line);
}

/* ---- silence --------------------------------------------------------- */

static bool
alive_for(const struct facts *f, const struct alive *h, int32_t root)
{
	struct str n = h->entity;
	if (n.len && n.p[n.len - 1] == '*') {
		n.len--;
		struct str name = facts_name(f, root);
		return name.len >= n.len && !memcmp(name.p, n.p, n.len);
	}
	int32_t e = facts_find(f, n);
	return e != NONE && facts_root(f, e) == root;
}

/* Heartbeats cover the incident without a gap. */
static bool
was_alive(struct weigher *w, size_t agent, int32_t root, const struct window *v)
{
	const struct facts *f = w->facts;
	int64_t beat = f->stack->agent[agent].heartbeat;
	int64_t end = v->end < w->now ? v->end : w->now;
	size_t n = 0;
	for (size_t i = 0; i < f->nalive; i++) {
		const struct alive *h = &f->alive[i];
		if (h->agent != agent || !alive_for(f, h, root))
			continue;
		int64_t a =
		    h->since != NO_TIME ? h->since : plus(h->until, -beat);
		if (h->until <= plus(w->now, f->stack->skew))
			push_span(w, n++, (struct span){ a, h->until, 0, 0 });
	}
	sort_array(w->span, n, sizeof *w->span, by_onset);
	int64_t covered = v->start;
	for (size_t i = 0; i < n && w->span[i].a <= covered; i++)
		if (w->span[i].b > covered)
			covered = w->span[i].b;
	return n && w->span[0].a <= v->start && covered >= end;
}

static struct reply
reply_to_silence(
    struct weigher *w, size_t agent, int32_t root, const struct window *v)
{
	const struct agent *a = &w->facts->stack->agent[agent];
	if (w->waiting[agent])
		return unknown(REASON_NOT_CONSULTED, NONE);
	if (w->silence[agent])
		return unknown(w->silence[agent], NONE);
	if (a->absent_healthy && !w->gaps && w->facts->incident &&
	    was_alive(w, agent, root, v))
		return (struct reply){ .answer = ANSWER_H,
			.reason = REASON_ABSENT,
			.line = NONE };
	return unknown(REASON_MISSING, NONE);
}

/* ---- together -------------------------------------------------------- */

/* An H that spans the time of an unknown knows better. */
static bool
outdone(const struct weigher *w, int64_t time)
{
	for (size_t i = 0; i < w->nhealth && time != NO_TIME; i++) {
		const struct span *h = &w->health[i];
		if (h->a < h->b && h->a <= time && time <= h->b)
			return true;
	}
	return false;
}

/* An unknown of another time says nothing about this one. */
static bool
in_window(int64_t time, const struct window *v)
{
	return time == NO_TIME || (time >= v->start && time <= v->last);
}

static struct reply
settle(struct weigher *w, struct pile *p, const struct window *v)
{
	struct reply r = { .line = NONE };
	if (p->nfaults) {
		r = reply_to_faults(w, p, v);
		if (r.answer == ANSWER_F || r.reason)
			return r;
	}
	bool heard = p->unknown.reason &&
		     !(p->health != NONE && (!in_window(p->unknown_time, v) ||
						outdone(w, p->unknown_time)));
	if (heard && p->unknown_time == NO_TIME)
		return unknown(p->unknown.reason, p->unknown.line);
	if (p->onsetless != NONE)
		return unknown(REASON_NO_ONSET, p->onsetless);
	if (heard)
		return unknown(p->unknown.reason, p->unknown.line);
	if (p->health != NONE)
		return known(w, ANSWER_H, p->health);
	return unknown(REASON_STALE, p->late != NONE ? p->late : r.line);
}

/* Without an incident there is no window: what is said is said. */
static struct reply
settle_timeless(struct weigher *w, const struct pile *p)
{
	int32_t fault = p->onsetless;
	for (size_t i = 0; i < p->nfaults; i++) {
		note_line(&fault, w->facts, w->span[i].line);
		if (contradicted(w, &w->span[i]))
			return unknown("conflict", w->span[i].line);
	}
	int32_t health = p->health != NONE ? p->health : p->late;
	if (fault != NONE && health != NONE && p->onsetless != NONE)
		return unknown("conflict", fault);
	if (fault != NONE)
		return known(w, ANSWER_F, fault);
	if (p->unknown.reason)
		return unknown(p->unknown.reason, p->unknown.line);
	return known(w, ANSWER_H, health);
}

/* Lines of direction d (0: all that have none) and of both. */
static struct reply
weigh_direction(struct weigher *w, size_t a, int32_t root, int d)
{
	const struct facts *f = w->facts;
	const struct agent *agent = &f->stack->agent[a];
	struct window v = window_of(w);
	struct pile p = { .onsetless = NONE, .health = NONE, .late = NONE };
	int32_t first = f->entity[root].first;
	bool any = false;
	w->direction = (unsigned char)d;
	gather_health(w, a, first, &v);
	for (int32_t i = first; i != NONE; i = f->line[i].next) {
		if (!speaks(w, &f->line[i], a))
			continue;
		any = true;
		take_line(w, &p, agent, i, &v);
	}
	if (!any)
		return reply_to_silence(w, a, root, &v);
	struct reply r =
	    f->incident ? settle(w, &p, &v) : settle_timeless(w, &p);
	r.accuses = p.accuses;
	return r;
}

/* A cable is bad if one direction is, and good if both are. */
static struct reply
both_directions(struct reply x, struct reply y)
{
	if (x.answer == ANSWER_F || y.answer == ANSWER_F) {
		struct reply r = x.answer == ANSWER_F ? x : y;
		return r;
	}
	if (x.answer == ANSWER_U && (x.background || y.answer != ANSWER_U))
		return x;
	return y;
}

struct reply
weigh(struct weigher *w, size_t a, int32_t root)
{
	const struct facts *f = w->facts;
	bool directed = false;
	for (int32_t i = f->entity[root].first; i != NONE; i = f->line[i].next)
		directed |= f->line[i].direction && f->line[i].agent == a;
	if (!directed)
		return weigh_direction(w, a, root, 0);
	return both_directions(
	    weigh_direction(w, a, root, 1), weigh_direction(w, a, root, 2));
}

/* A symptom needs no onset: it is there in the window or it is not. */
struct reply
weigh_symptom(struct weigher *w, size_t a, int32_t flow)
{
	const struct facts *f = w->facts;
	const struct agent *agent = &f->stack->agent[a];
	struct window v = window_of(w);
	struct reply healthy = unknown(REASON_MISSING, NONE);
	struct reply r = unknown(NULL, NONE);
	if (w->silence[a])
		healthy.reason = w->silence[a];
	for (int32_t i = f->entity[flow].first; i != NONE;
	     i = f->line[i].next) {
		const struct line *l = &f->line[i];
		if (l->agent != a)
			continue;
		const char *why = disqualified(w, agent, l, &v);
		struct span s = span_of_health(l);
		bool meets =
		    !f->incident ||
		    (s.a != NO_TIME && s.b >= v.start && s.a <= v.last);
		if (why || l->status == SAYS_UNKNOWN)
			r = unknown(why ? why : l->reason, i);
		else if (!meets && healthy.answer == ANSWER_U)
			healthy = unknown(REASON_STALE, i);
		else if (meets && l->status == SAYS_FAULTY)
			return known(w, ANSWER_F, i);
		else if (meets)
			healthy = known(w, ANSWER_H, i);
	}
	return r.reason ? r : healthy;
}
