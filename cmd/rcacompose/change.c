/* What would change a verdict: see why.h. */
#include "why.h"
#include "reasons.h"

#include <stdlib.h>

/* Findings looked at again in the whole search: some tens of milliseconds. */
enum { CHANGE_WORK = 1 << 20, CHANGE_OPEN = 256 };

/* An unknown answer that could become another. */
struct open {
	struct finding *x;
	size_t i;
};

struct search {
	struct judgement *j;
	struct open open[CHANGE_OPEN];
	size_t n, work;
	enum row row;
	int32_t culprit;
};

static void
answer_again(struct search *s, size_t k, enum answer a)
{
	struct open *o = &s->open[k];
	o->x->reply[o->i].answer = a;
	judge_opinion(o->x);
}

/* Judges again; true if the verdict is another. */
static bool
differs(struct search *s)
{
	s->work += s->j->n;
	judge_again(s->j);
	return s->j->row != s->row || s->j->culprit != s->culprit;
}

static void
put_change(struct search *s, struct buf *b, const size_t *k,
    const enum answer *a, size_t n)
{
	static const char *const word[] = { "unknown", "faulty", "healthy" };
	const struct stack *st = s->j->facts->stack;
	for (size_t i = 0; i < n; i++) {
		const struct open *o = &s->open[k[i]];
		if (i)
			buf_puts(b, " and ");
		buf_printf(b, "%.*s on ",
		    STR_ARG(st->agent[o->x->item[o->i]->agent].name));
		buf_str(b, facts_name(s->j->facts, o->x->entity));
		const char *why = o->x->reply[o->i].reason;
		buf_printf(
		    b, " (%s): %s", why ? why : REASON_MISSING, word[a[i]]);
	}
	buf_printf(b, " would make it %s",
	    row_result(s->j->row) ? row_result(s->j->row) : "untested");
	if (row_reason(s->j->row))
		buf_printf(b, "(%s)", row_reason(s->j->row));
}

/* One answer, then two: an answer other than unknown is wanted. */
static bool
try_set(struct search *s, struct buf *b, const size_t *k, size_t n)
{
	static const enum answer say[] = { ANSWER_F, ANSWER_H };
	for (unsigned m = 0; m < 1u << n && s->work < CHANGE_WORK; m++) {
		enum answer a[2];
		for (size_t i = 0; i < n; i++)
			answer_again(s, k[i], a[i] = say[m >> i & 1]);
		bool found =
		    differs(s) && row_status(s->j->row) != STATUS_UNKNOWN;
		if (found)
			put_change(s, b, k, a, n);
		for (size_t i = 0; i < n; i++)
			answer_again(s, k[i], ANSWER_U);
		if (found)
			return true;
	}
	return false;
}

/* Every unknown answer of one agent healthy: the gap that one agent leaves. */
static bool
try_agent(struct search *s, struct buf *b, size_t agent)
{
	size_t n = 0;
	for (size_t k = 0; k < s->n; k++)
		if (s->open[k].x->item[s->open[k].i]->agent == agent) {
			answer_again(s, k, ANSWER_H);
			n++;
		}
	bool found = n && s->work < CHANGE_WORK && differs(s) &&
		     row_status(s->j->row) != STATUS_UNKNOWN;
	if (found)
		buf_printf(b,
		    "%.*s on %zu entities, all healthy, would make it %s",
		    STR_ARG(s->j->facts->stack->agent[agent].name), n,
		    row_result(s->j->row));
	for (size_t k = 0; k < s->n; k++)
		if (s->open[k].x->item[s->open[k].i]->agent == agent)
			answer_again(s, k, ANSWER_U);
	return found;
}

/* What the agent said is clear; it is about another time. */
static bool
is_told(const struct reply *r)
{
	return r->background ||
	       (r->reason && !strcmp(r->reason, REASON_CONSEQUENCE));
}

static void
collect_open(struct search *s)
{
	for (size_t i = 0; i < s->j->n; i++) {
		struct finding *x = &s->j->finding[i];
		for (size_t k = 0; k < x->n && s->n < CHANGE_OPEN; k++)
			if (x->reply[k].answer == ANSWER_U &&
			    x->item[k]->role != ROLE_OPTIONAL &&
			    !is_told(&x->reply[k]))
				s->open[s->n++] = (struct open){ x, k };
	}
}

void
why_change(struct judgement *j, struct buf *b)
{
	struct search *s = calloc(1, sizeof *s);
	bool found = false;
	if (!s)
		return;
	s->j = j;
	s->row = j->row;
	s->culprit = j->culprit;
	collect_open(s);
	for (size_t k = 0; k < s->n && !found; k++)
		found = try_set(s, b, &k, 1);
	for (size_t k = 0; k < s->n && !found; k++)
		for (size_t m = k + 1; m < s->n && !found; m++)
			found = try_set(s, b, (size_t[]){ k, m }, 2);
	for (size_t a = 0; a < j->facts->stack->nagents && !found; a++)
		found = try_agent(s, b, a);
	free(s);
	judge_again(j);
}
