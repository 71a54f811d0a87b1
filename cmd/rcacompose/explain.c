/* What was found, as records: see explain.h. */
#include "explain.h"
#include "reasons.h"
#include "why.h"

#include <inttypes.h>

enum {
	TABLE_FINDINGS = 12, /* shown to a person who did not ask for more */
	MEMBERS_MAX =
	    1 << 16, /* bytes of names in a verdict; findings have all */
};

static void
put_place(struct buf *b, struct place at)
{
	const char *slash = strrchr(at.file, '/');
	buf_printf(b, "%s:%u", slash ? slash + 1 : at.file, at.line);
}

/* "sufficient counter (clos:12)": the lines that decided. */
static void
put_deciding(struct rec_out *o, struct judgement *j, const struct finding *x)
{
	struct buf b = { 0 };
	for (size_t i = 0; i < x->n; i++) {
		const struct item *item = x->item[i];
		if (!rule_decides(
			x->opinion.rule, item->role, x->reply[i].answer))
			continue;
		buf_printf(&b, "%s%s %.*s (", b.len ? ", " : "",
		    role_name(item->role),
		    STR_ARG(j->facts->stack->agent[item->agent].name));
		put_place(&b, item->at);
		buf_puts(&b, ")");
	}
	if (b.len)
		rec_str(o, "by", buf_view(&b));
	buf_free(&b);
}

/* "counter=F(file:3) probe=U:stale(file:9)" */
static void
put_reply(struct buf *b, const struct judgement *j, struct str agent,
    const struct reply *r, const struct inputs *in)
{
	buf_printf(b, "%s%.*s=%s", b->len ? " " : "", STR_ARG(agent),
	    answer_name(r->answer));
	if (r->reason)
		buf_printf(b, ":%s", r->reason);
	if (r->line == NONE)
		return;
	const struct line *l = &j->facts->line[r->line];
	buf_printf(
	    b, "(%s:%" PRIu64 ")", inputs_name(in, l->source), l->number);
}

static void
put_evidence(struct rec_out *o, struct judgement *j, const struct finding *x,
    const struct inputs *in)
{
	struct buf b = { 0 };
	for (size_t i = 0; i < x->n; i++)
		put_reply(&b, j, j->facts->stack->agent[x->item[i]->agent].name,
		    &x->reply[i], in);
	if (b.len)
		rec_str(o, "evidence", buf_view(&b));
	buf_free(&b);
}

/* The fewest unknown agents that could change this finding. */
static void
put_finding_need(
    struct rec_out *o, struct judgement *j, const struct finding *x)
{
	size_t set[VOTES_MAX];
	struct buf b = { 0 };
	size_t n = compose_need(x->vote, x->n, x->section->quorum, set);
	for (size_t i = 0; i < n; i++) {
		size_t a = x->item[set[i]]->agent;
		buf_printf(&b, "%s%.*s", i ? " and " : "",
		    STR_ARG(j->facts->stack->agent[a].name));
	}
	if (b.len)
		rec_str(o, "need", buf_view(&b));
	buf_free(&b);
}

static const char *
note_of(const struct finding *x)
{
	if (x->folded)
		return "answered for by its parent";
	if (x->twin != NONE)
		return "both directions of the link";
	if (x->silent)
		return "silent parent of a faulty one";
	if (x->opinion.result == RESULT_UNKNOWN && !x->opinion.observed)
		return "unobserved";
	return NULL;
}

static void
put_finding(struct judgement *j, struct rec_out *o, const struct finding *x,
    const struct telling *t)
{
	rec_begin(o, "finding");
	rec_str(o, "entity", facts_name(j->facts, x->entity));
	rec_put(o, "result", result_name(x->opinion.result));
	rec_put(o, "reason", rule_name(x->opinion.rule));
	put_deciding(o, j, x);
	put_evidence(o, j, x, t->inputs);
	put_finding_need(o, j, x);
	if (note_of(x))
		rec_put(o, "note", note_of(x));
	if (j->facts->id.len)
		rec_str(o, "incident", j->facts->id);
	rec_end(o);
}

static void
put_symptoms(struct judgement *j, struct rec_out *o, const struct telling *t)
{
	static const enum result word[ANSWERS] = { [ANSWER_U] = RESULT_UNKNOWN,
		[ANSWER_F] = RESULT_FAULTY,
		[ANSWER_H] = RESULT_HEALTHY };
	const struct stack *s = j->facts->stack;
	for (size_t i = 0; i < s->nsymptoms; i++) {
		struct buf b = { 0 };
		put_reply(&b, j, s->agent[s->symptom[i]].name, &j->symptom[i],
		    t->inputs);
		rec_begin(o, "finding");
		rec_put(o, "entity", "flow:*");
		rec_put(o, "result", result_name(word[j->symptom[i].answer]));
		rec_str(o, "evidence", buf_view(&b));
		rec_put(o, "note", "symptom");
		if (j->facts->id.len)
			rec_str(o, "incident", j->facts->id);
		rec_end(o);
		buf_free(&b);
	}
}

static void
put_count(struct rec_out *o, const char *class, uint64_t n, const char *note)
{
	if (!n)
		return;
	rec_begin(o, "count");
	rec_put(o, "class", class);
	rec_u64(o, "n", n);
	rec_put(o, "note", note);
	rec_end(o);
}

static void
put_findings(struct judgement *j, struct rec_out *o, const struct telling *t)
{
	const struct finding **x = arena_array(j->arena, j->n, sizeof *x);
	if (!x)
		cli_die("out of memory");
	judge_sort(j, x);
	bool brief = t->common->how.form == REC_TABLE && !t->common->verbose;
	size_t show = brief && j->n > TABLE_FINDINGS ? TABLE_FINDINGS : j->n;
	for (size_t i = 0; i < show; i++)
		put_finding(j, o, x[i], t);
	put_symptoms(j, o, t);
	put_count(o, "not-shown", j->n - show, "more findings: -v");
	put_count(o, "out-of-scope", j->outside,
	    "entities with evidence that the incident does not touch");
	put_count(o, "unused", j->facts->other_agents,
	    "lines of agents that the stack does not name");
	put_count(o, REASON_CIRCULAR, j->facts->refused,
	    "lines that rest on own verdicts");
}

/* ---- the verdict ----------------------------------------------------- */

static void
put_members(struct judgement *j, struct rec_out *o)
{
	const struct finding **x = arena_array(j->arena, j->n, sizeof *x);
	struct buf b = { 0 };
	if (!x)
		cli_die("out of memory");
	judge_sort(j, x);
	for (size_t i = 0; i < j->n; i++) {
		if (!x[i]->counted)
			continue;
		if (b.len)
			buf_putc(&b, ',');
		if (b.len > MEMBERS_MAX) {
			buf_puts(&b, "...");
			break;
		}
		buf_str(&b, judge_name(j, x[i]));
	}
	rec_str(o, "members", buf_view(&b));
	buf_free(&b);
}

static void
put_causes(struct judgement *j, struct rec_out *o)
{
	bool agents[STACK_AGENTS_MAX];
	struct buf b = { 0 };
	why_causes(j, agents);
	for (size_t i = 0; i < j->facts->stack->nagents; i++)
		if (agents[i]) {
			if (b.len)
				buf_putc(&b, ',');
			buf_str(&b, j->facts->stack->agent[i].name);
		}
	if (b.len)
		rec_str(o, "cause", buf_view(&b));
	buf_free(&b);
}

static struct str
culprit_name(struct judgement *j)
{
	if (j->row != ROW_CULPRIT)
		return STR_NULL;
	return judge_name(j, &j->finding[j->culprit]);
}

void
explain_answer(struct judgement *j, struct buf *b)
{
	const char *result = row_result(j->row), *reason = row_reason(j->row);
	struct str name = culprit_name(j);
	buf_puts(b, result ? result : "none");
	if (reason)
		buf_printf(b, "(%s)", reason);
	if (name.len) {
		buf_putc(b, ' ');
		buf_str(b, name);
	}
}

int
explain_verdict(struct judgement *j, struct rec_out *o, const struct telling *t,
    const struct damage *damage)
{
	struct verdict v = { .result = row_result(j->row),
		.status = row_status(j->row),
		.reason = row_reason(j->row),
		.damage = *damage };
	struct buf need = { 0 };
	if (v.status == STATUS_NONE)
		return v.status;
	if (t->changes)
		why_change(j, &need);
	if (!need.len)
		why_need(j, &need);
	why_late(j, &need);
	v.need = need.len ? buf_cstr(&need) : NULL;
	verdict_settle(&v, &t->common->policy);
	if (v.status == STATUS_NONE) {
		buf_free(&need);
		return v.status;
	}
	verdict_begin(o, &v, culprit_name(j), NULL);
	put_causes(j, o);
	if (j->facts->id.len)
		rec_str(o, "incident", j->facts->id);
	if (j->row == ROW_MULTIPLE)
		put_members(j, o);
	rec_u64(o, "candidates", j->scene.candidates);
	if (j->scene.unobserved)
		rec_u64(o, "unobserved", j->scene.unobserved);
	if (t->supersedes)
		rec_put(o, "supersedes", t->supersedes);
	if (t->final)
		rec_put(o, "final", "yes");
	verdict_end(o, &v);
	buf_free(&need);
	return v.status;
}

int
explain(struct judgement *j, struct rec_out *o, const struct telling *t,
    const struct damage *damage)
{
	if (!t->common->quiet)
		put_findings(j, o, t);
	return explain_verdict(j, o, t, damage);
}
