/* What it means that an agent said nothing about an entity. */
#include "weigh_parts.h"

#include "reasons.h"
#include "sort.h"

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
		    h->since != NO_TIME ? h->since : time_plus(h->until, -beat);
		if (h->until <= time_plus(w->now, f->stack->skew))
			span_push(w, n++, (struct span){ a, h->until, 0, 0 });
	}
	sort_array(w->span, n, sizeof *w->span, span_order);
	int64_t covered = v->start;
	for (size_t i = 0; i < n && w->span[i].a <= covered; i++)
		if (w->span[i].b > covered)
			covered = w->span[i].b;
	return n && w->span[0].a <= v->start && covered >= end;
}

struct reply
weigh_silence(
    struct weigher *w, size_t agent, int32_t root, const struct window *v)
{
	const struct agent *a = &w->facts->stack->agent[agent];
	if (w->waiting[agent])
		return reply_unknown(REASON_NOT_CONSULTED, NONE);
	if (w->silence[agent])
		return reply_unknown(w->silence[agent], NONE);
	if (a->absent_healthy && !w->gaps && w->facts->incident &&
	    was_alive(w, agent, root, v))
		return (struct reply){ .answer = ANSWER_H,
			.reason = REASON_ABSENT,
			.line = NONE };
	return reply_unknown(REASON_MISSING, NONE);
}
