/* Why a verdict is unknown: see why.h. */
#include "why.h"
#include "num.h"
#include "reasons.h"

static const char *const symptom_name = "flow:*";

/* Is this finding one that the row rests on? */
static bool
matters(enum row row, const struct finding *x)
{
	const struct opinion *o = &x->opinion;
	bool accused = o->result == RESULT_UNKNOWN && o->accused && !x->folded;
	switch (row) {
	case ROW_RIVAL:
		return accused && !o->alibi;
	case ROW_PARENT_SILENT:
		return x->silent;
	case ROW_ACCUSED:
		return accused;
	case ROW_BACKGROUND:
		return x->background;
	case ROW_COVERAGE:
		return o->result != RESULT_HEALTHY;
	default:
		return false;
	}
}

/* Does answer i stand in the way of a finding? */
static bool
blocks(enum row row, const struct finding *x, size_t i)
{
	const struct reply *r = &x->reply[i];
	if (x->item[i]->role == ROLE_OPTIONAL)
		return false;
	if (row == ROW_BACKGROUND)
		return r->background;
	if (x->opinion.result != RESULT_UNKNOWN)
		return false;
	if (x->opinion.rule == RULE_UNPROVEN ||
	    x->opinion.rule == RULE_NO_BINDING)
		return r->answer == ANSWER_U;
	return rule_decides(x->opinion.rule, x->item[i]->role, r->answer);
}

typedef void block_fn(const struct judgement *, struct str entity, size_t agent,
    const struct reply *, void *user);

static void
each_block(const struct judgement *j, block_fn *fn, void *user)
{
	const struct stack *s = j->facts->stack;
	bool symptom =
	    j->row == ROW_SYMPTOM_ABSENT || j->row == ROW_UNEXPLAINED;
	for (size_t i = 0; i < s->nsymptoms && symptom; i++)
		fn(j, str_c(symptom_name), s->symptom[i], &j->symptom[i], user);
	for (size_t i = 0; i < j->n; i++) {
		const struct finding *x = &j->finding[i];
		if (!matters(j->row, x))
			continue;
		for (size_t k = 0; k < x->n; k++)
			if (blocks(j->row, x, k))
				fn(j, facts_name(j->facts, x->entity),
				    x->item[k]->agent, &x->reply[k], user);
	}
}

static void
mark_agent(const struct judgement *j, struct str entity, size_t agent,
    const struct reply *r, void *user)
{
	bool *agents = user;
	(void)j, (void)entity, (void)r;
	agents[agent] = true;
}

void
why_causes(const struct judgement *j, bool agents[STACK_AGENTS_MAX])
{
	memset(agents, 0, STACK_AGENTS_MAX);
	if (row_status(j->row) == STATUS_UNKNOWN)
		each_block(j, mark_agent, agents);
}

enum { NEED_SHOWN = 3 };

struct needs {
	struct buf *b;
	size_t n;
};

static void
put_need(const struct judgement *j, struct str entity, size_t agent,
    const struct reply *r, void *user)
{
	struct needs *n = user;
	if (n->n++ >= NEED_SHOWN)
		return;
	if (n->n > 1)
		buf_puts(n->b, ", ");
	buf_printf(
	    n->b, "%.*s on ", STR_ARG(j->facts->stack->agent[agent].name));
	buf_str(n->b, entity);
	if (r->answer == ANSWER_U)
		buf_printf(
		    n->b, " (%s)", r->reason ? r->reason : REASON_MISSING);
	else
		buf_printf(n->b, " (says %s)", answer_name(r->answer));
}

static void
other_need(const struct judgement *j, struct buf *b)
{
	switch (j->row) {
	case ROW_NESTED:
		buf_puts(b, "evidence that tells the parent from its children");
		break;
	case ROW_NO_SYMPTOM:
		buf_puts(
		    b, "a symptom line in the stack: does the flow suffer");
		break;
	case ROW_NO_INCIDENT:
		buf_puts(
		    b, "an incident (-i, or --path with --start and --end)");
		break;
	case ROW_DAMAGED:
		buf_puts(b, "undamaged input, or --allow-bad N");
		break;
	case ROW_FILTERED:
		buf_puts(
		    b, "whole streams with their end records, or --partial");
		break;
	case ROW_COVERAGE:
		if (j->scene.pathless)
			buf_printf(
			    b, "the paths of %zu flows", j->scene.pathless);
		else
			buf_puts(b, "a stack for the kinds of the candidates");
		break;
	default:
		break;
	}
}

void
why_need(const struct judgement *j, struct buf *b)
{
	struct needs n = { .b = b };
	if (row_status(j->row) != STATUS_UNKNOWN)
		return;
	each_block(j, put_need, &n);
	if (n.n > NEED_SHOWN)
		buf_printf(b, " and %zu more", n.n - NEED_SHOWN);
	if (!n.n)
		other_need(j, b);
}

/* ---- judged too late ------------------------------------------------- */

static void
note_stale(const struct judgement *j, struct str entity, size_t agent,
    const struct reply *r, void *user)
{
	bool *stale = user;
	(void)j, (void)entity, (void)agent;
	*stale |= r->reason && !strcmp(r->reason, REASON_STALE);
}

/*
 * Evidence that is stale because everything is: it was judged by a clock that
 * has long gone on.
 */
void
why_late(const struct judgement *j, struct buf *b)
{
	const struct facts *f = j->facts;
	int64_t newest = NO_TIME;
	bool stale = false;
	if (row_status(j->row) != STATUS_UNKNOWN)
		return;
	each_block(j, note_stale, &stale);
	for (size_t i = 0; i < f->nlines && stale; i++)
		if (f->line[i].time > newest)
			newest = f->line[i].time;
	if (newest == NO_TIME || newest >= j->weigher->now)
		return;
	buf_puts(b, b->len ? "; " : "");
	buf_puts(b, "the newest evidence is of ");
	num_put_time(b, newest);
	if (f->incident)
		buf_puts(b, ": now= and end= of the incident, or --now, say "
			    "when it is to be judged");
	else
		buf_puts(b, ": --now says when it is to be judged");
}
