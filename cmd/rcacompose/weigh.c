/* From lines to answers: see weigh.h and rcacompose(1), RELEVANCE. */
#include "weigh_parts.h"

#include <stdlib.h>

#include "cli.h"
#include "reasons.h"
#include "sort.h"

void
weigher_free(struct weigher *w)
{
	free(w->span);
	free(w->health);
	free(w->healed);
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

void
span_push(struct weigher *w, size_t n, struct span s)
{
	if (n == w->cap) {
		w->cap = w->cap ? 2 * w->cap : 64;
		w->span = cli_realloc(w->span, w->cap, sizeof *w->span);
	}
	w->span[n] = s;
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

static struct span
span_of_fault(const struct weigher *w, const struct line *l)
{
	int64_t seen = l->time != NO_TIME ? l->time : l->onset;
	struct span s = { .a = l->onset, .b = l->until, .seen = l->until };
	if (l->until == NO_TIME) {
		s.b = health_after(w, seen);
		s.seen = seen;
	}
	if (s.seen < s.a)
		s.seen = s.a;
	return s;
}

static void
take_line(struct weigher *w, struct pile *p, const struct agent *a, int32_t i,
    const struct window *v)
{
	const struct facts *f = w->facts;
	const struct line *l = &f->line[i];
	const char *why = line_disqualified(w, a, l, v);
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
		span_push(w, p->nfaults++, s);
		return;
	}
	struct span h = line_health(l);
	if (h.a == NO_TIME || h.b < v->start || h.a > v->last)
		note_line(&p->late, f, i);
	else
		note_line(&p->health, f, i);
}

/* ---- faults ---------------------------------------------------------- */

int
span_order(const void *x, const void *y)
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
	sort_array(w->span, n, sizeof *w->span, span_order);
	*which = 0;
	for (size_t i = 0; i < n;) {
		int64_t a = w->span[i].a, b = w->span[i].b;
		size_t k = i;
		while (++k < n && w->span[k].a <= time_plus(b, lead))
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

struct reply
reply_unknown(const char *reason, int32_t line)
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
		if (health_contradicts(w, &s))
			return reply_unknown(REASON_CONFLICT, s.line);
		return known(w, ANSWER_F, s.line);
	}
	if (age == AGE_BACKGROUND) {
		struct reply r = reply_unknown(REASON_BACKGROUND, s.line);
		r.background = true;
		return r;
	}
	if (age == AGE_CONSEQUENCE)
		return reply_unknown(REASON_CONSEQUENCE, s.line);
	return reply_unknown(NULL, s.line);
}

/* ---- together -------------------------------------------------------- */

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
	bool heard =
	    p->unknown.reason &&
	    !(p->health != NONE && (!in_window(p->unknown_time, v) ||
				       health_spans(w, p->unknown_time)));
	if (heard && p->unknown_time == NO_TIME)
		return reply_unknown(p->unknown.reason, p->unknown.line);
	if (p->onsetless != NONE)
		return reply_unknown(REASON_NO_ONSET, p->onsetless);
	if (heard)
		return reply_unknown(p->unknown.reason, p->unknown.line);
	if (p->health != NONE)
		return known(w, ANSWER_H, p->health);
	return reply_unknown(REASON_STALE, p->late != NONE ? p->late : r.line);
}

/* Without an incident there is no window: what is said is said. */
static struct reply
settle_timeless(struct weigher *w, const struct pile *p)
{
	int32_t fault = p->onsetless;
	for (size_t i = 0; i < p->nfaults; i++) {
		note_line(&fault, w->facts, w->span[i].line);
		if (health_contradicts(w, &w->span[i]))
			return reply_unknown(REASON_CONFLICT, w->span[i].line);
	}
	int32_t health = p->health != NONE ? p->health : p->late;
	if (fault != NONE && health != NONE && p->onsetless != NONE)
		return reply_unknown(REASON_CONFLICT, fault);
	if (fault != NONE)
		return known(w, ANSWER_F, fault);
	if (p->unknown.reason)
		return reply_unknown(p->unknown.reason, p->unknown.line);
	return known(w, ANSWER_H, health);
}

/* Lines of direction d (0: all that have none) and of both. */
static struct reply
weigh_direction(struct weigher *w, size_t a, int32_t root, int d)
{
	const struct facts *f = w->facts;
	const struct agent *agent = &f->stack->agent[a];
	struct window v = weigh_window(w);
	struct pile p = { .onsetless = NONE, .health = NONE, .late = NONE };
	int32_t first = f->entity[root].first;
	bool any = false;
	w->direction = (unsigned char)d;
	health_gather(w, a, first, &v);
	for (int32_t i = first; i != NONE; i = f->line[i].next) {
		if (!line_speaks(w, &f->line[i], a))
			continue;
		any = true;
		take_line(w, &p, agent, i, &v);
	}
	if (!any)
		return weigh_silence(w, a, root, &v);
	struct reply r =
	    f->incident ? settle(w, &p, &v) : settle_timeless(w, &p);
	r.accuses = p.accuses;
	return r;
}

/* A cable is bad if one direction is, and good if both are. */
static struct reply
both_directions(struct reply x, struct reply y)
{
	if (x.answer == ANSWER_F || y.answer == ANSWER_F)
		return x.answer == ANSWER_F ? x : y;
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
	struct window v = weigh_window(w);
	struct reply healthy = reply_unknown(REASON_MISSING, NONE);
	struct reply r = reply_unknown(NULL, NONE);
	if (w->silence[a])
		healthy.reason = w->silence[a];
	for (int32_t i = f->entity[flow].first; i != NONE;
	     i = f->line[i].next) {
		const struct line *l = &f->line[i];
		if (l->agent != a)
			continue;
		const char *why = line_disqualified(w, agent, l, &v);
		struct span s = line_health(l);
		bool meets =
		    !f->incident ||
		    (s.a != NO_TIME && s.b >= v.start && s.a <= v.last);
		if (why || l->status == SAYS_UNKNOWN)
			r = reply_unknown(why ? why : l->reason, i);
		else if (!meets && healthy.answer == ANSWER_U)
			healthy = reply_unknown(REASON_STALE, i);
		else if (meets && l->status == SAYS_FAULTY)
			return known(w, ANSWER_F, i);
		else if (meets)
			healthy = known(w, ANSWER_H, i);
	}
	return r.reason ? r : healthy;
}
