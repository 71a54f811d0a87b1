/* What one line of evidence is worth, and of which time it speaks. */
#include "weigh_parts.h"

#include <math.h>

#include "reasons.h"

int64_t
time_plus(int64_t t, int64_t d)
{
	int64_t r;
	if (__builtin_add_overflow(t, d, &r))
		return d < 0 ? INT64_MIN + 1 : INT64_MAX - 1;
	return r;
}

struct window
weigh_window(const struct weigher *w)
{
	const struct facts *f = w->facts;
	struct window v = { .start = f->start, .end = f->end };
	if (v.end == NO_TIME)
		v.end = w->now > v.start ? w->now : v.start;
	v.first = time_plus(v.start, -f->stack->lead);
	v.last = time_plus(v.end, f->stack->lag);
	v.fresh = time_plus(v.start, f->stack->lag);
	return v;
}

static bool
in_future(const struct weigher *w, const struct line *l)
{
	int64_t limit = time_plus(w->now, w->facts->stack->skew);
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
	return a->ttl && l->time != NO_TIME &&
	       l->time < time_plus(ref, -a->ttl);
}

const char *
line_disqualified(const struct weigher *w, const struct agent *a,
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

bool
line_speaks(const struct weigher *w, const struct line *l, size_t agent)
{
	return l->agent == agent &&
	       (!l->direction || l->direction == w->direction);
}

bool
line_says_healthy(const struct weigher *w, const struct line *l, size_t agent,
    const struct window *v)
{
	return line_speaks(w, l, agent) && l->status == SAYS_HEALTHY &&
	       !line_disqualified(w, &w->facts->stack->agent[agent], l, v);
}

struct span
line_health(const struct line *l)
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
