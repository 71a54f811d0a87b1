/* Rules applied to facts: see judge.h. */
#include "judge.h"

#include <stdio.h>
#include <string.h>

#include "reasons.h"

/* What a rule says once the trace's own limits are taken into account. */
struct opinion {
	enum truth truth;
	const char *reason; /* of TRUTH_UNKNOWN */
};

static double
coverage_of(const struct facts *f)
{
	return (double)f->now->covered / (double)f->now->dur;
}

/* A rule that asks for coverage or drops by itself is trusted with them. */
static struct opinion
ask(const struct judge *j, struct facts *f, const struct rule *rule)
{
	enum truth t = rule_test(rule, facts_get, f);
	if (t == TRUTH_UNKNOWN)
		return (struct opinion){ t, REASON_MISSING };
	if (t == TRUTH_NO)
		return (struct opinion){ t, NULL };
	if (f->t->drops && !rule_names(rule, FACT_DROPS))
		return (struct opinion){ TRUTH_UNKNOWN, REASON_DROPS };
	if (j->truncated && !rule_names(rule, FACT_UNFINISHED))
		return (struct opinion){ TRUTH_UNKNOWN, REASON_TRUNCATED };
	if (coverage_of(f) < j->coverage && !rule_names(rule, FACT_COVERAGE))
		return (struct opinion){ TRUTH_UNKNOWN, REASON_LOW_COVERAGE };
	return (struct opinion){ t, NULL };
}

/* The facts that a rule waits for, the first one with what makes it known. */
static void
say_missing(struct answer *a, struct facts *f)
{
	for (uint32_t i = 0; i < a->rule->n; i++) {
		const struct node *n = &a->rule->node[i];
		if (n->op != NODE_TEST || facts_get(f, n->fact, n->set).known)
			continue;
		a->need_kept = fact_kinds[n->fact].need;
		const struct str set =
		    n->set == NO_SET ? STR_LIT("")
				     : f->t->s->kinds->rules->set[n->set].name;
		snprintf(a->need, sizeof a->need, "%s%s%.*s: %s",
		    fact_kinds[n->fact].name, set.len ? "." : "", STR_ARG(set),
		    a->need_kept);
		return;
	}
}

static void
unknown(struct answer *a, const char *reason, const struct rule *rule,
    struct facts *f)
{
	a->reason = reason;
	a->rule = rule;
	a->need_kept = NULL;
	if (!strcmp(reason, REASON_MISSING))
		say_missing(a, f);
	else if (!strcmp(reason, REASON_LOW_COVERAGE))
		a->need_kept = "more of the period in the trace";
	else if (!strcmp(reason, REASON_DROPS))
		a->need_kept = "a trace that lost nothing";
	else if (!strcmp(reason, REASON_TRUNCATED))
		a->need_kept = "the end of the trace";
	else if (!strcmp(reason, REASON_TIE))
		a->need_kept = "rules that tell the two apart";
	if (a->need_kept && !a->need[0])
		snprintf(a->need, sizeof a->need, "%s", a->need_kept);
}

/* What the rules of one tier say together. */
struct tier {
	const struct rule *yes, *tie, *maybe;
	const char *why; /* maybe */
};

static void
ask_tier(const struct judge *j, struct facts *f, uint32_t first, uint32_t n,
    struct tier *t)
{
	struct opinion o[RULES_MAX];
	*t = (struct tier){ 0 };
	for (uint32_t i = 0; i < n; i++) {
		const struct rule *rule = &j->rules->rule[first + i];
		o[i] = ask(j, f, rule);
		if (o[i].truth != TRUTH_YES)
			continue;
		if (!t->yes)
			t->yes = rule;
		else if (!str_same(t->yes->cause, rule->cause))
			t->tie = rule;
	}
	for (uint32_t i = 0; i < n && !t->maybe; i++) {
		const struct rule *rule = &j->rules->rule[first + i];
		/* What would name the same cause again decides nothing. */
		if (o[i].truth != TRUTH_UNKNOWN ||
		    (t->yes && str_same(t->yes->cause, rule->cause)))
			continue;
		t->maybe = rule;
		t->why = o[i].reason;
	}
}

static void
none_holds(const struct judge *j, struct facts *f, struct answer *a)
{
	const char *why = f->t->drops                    ? REASON_DROPS
			  : j->truncated                 ? REASON_TRUNCATED
			  : coverage_of(f) < j->coverage ? REASON_LOW_COVERAGE
							 : REASON_NO_MATCH;
	unknown(a, why, NULL, f);
}

void
judge_period(const struct judge *j, struct facts *f, struct answer *a)
{
	const struct rules *r = j->rules;
	*a = (struct answer){ 0 };
	for (uint32_t i = 0, n; i < r->n; i += n) {
		struct tier t;
		for (n = 1; i + n < r->n; n++)
			if (r->rule[i + n].tier != r->rule[i].tier)
				break;
		ask_tier(j, f, i, n, &t);
		if (t.tie) {
			unknown(a, REASON_TIE, t.tie, f);
			return;
		}
		if (t.maybe) {
			unknown(a, t.why, t.maybe, f);
			return;
		}
		if (t.yes) {
			a->cause = t.yes->cause.p;
			a->rule = t.yes;
			return;
		}
	}
	none_holds(j, f, a);
}
