/* One incident, judged: see judge.h and rcacompose(1). */
#include "judge.h"

#include "family.h"
#include "reasons.h"
#include "scope.h"
#include "sort.h"

#include <stdlib.h>

static struct entity *
at(const struct judgement *j, int32_t e)
{
	return &j->facts->entity[e];
}

struct finding *
judge_finding(const struct judgement *j, int32_t e)
{
	const struct entity *n = at(j, facts_root(j->facts, e));
	return n->candidate && n->finding != NONE ? &j->finding[n->finding]
						  : NULL;
}

/* ---- findings -------------------------------------------------------- */

static void
weigh_background(struct finding *x)
{
	bool all = true;
	for (size_t i = 0; i < x->n; i++) {
		if (x->item[i]->role == ROLE_OPTIONAL)
			continue;
		x->background |= x->reply[i].background;
		all &= x->reply[i].answer != ANSWER_U || x->reply[i].background;
	}
	x->excused = x->background && all;
}

void
judge_opinion(struct finding *x)
{
	for (size_t i = 0; i < x->n; i++)
		x->vote[i] = (struct vote){ (unsigned char)x->item[i]->role,
			(unsigned char)x->reply[i].answer, x->reply[i].root };
	struct tally t = tally_of(x->vote, x->n);
	x->opinion = compose(&t, x->section->quorum);
}

static bool
find(struct judgement *j, struct finding *x, int32_t e)
{
	const struct stack *s = j->facts->stack;
	struct str kind = at(j, e)->kind;
	*x = (struct finding){ .entity = e, .twin = NONE };
	x->section = stack_section(s, kind);
	size_t n = x->section->n;
	x->item = arena_array(j->arena, n, sizeof *x->item);
	x->reply = arena_array(j->arena, n, sizeof *x->reply);
	x->vote = arena_array(j->arena, n, sizeof *x->vote);
	if (!x->item || !x->reply || !x->vote)
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct item *item = &x->section->item[i];
		if (!agent_covers(&s->agent[item->agent], kind))
			continue;
		x->item[x->n] = item;
		x->reply[x->n++] = weigh(j->weigher, item->agent, e);
	}
	weigh_background(x);
	judge_opinion(x);
	return true;
}

/* ---- the scene ------------------------------------------------------- */

static void
count_finding(struct scene *s, const struct finding *x)
{
	const struct opinion *o = &x->opinion;
	bool accused = o->result == RESULT_UNKNOWN && o->accused && !x->folded;
	s->candidates++;
	s->faulty += x->counted;
	s->accused += accused;
	s->rivals += accused && !o->alibi;
	s->healthy += o->result == RESULT_HEALTHY;
	s->unobserved += o->result == RESULT_UNKNOWN && !o->observed;
	s->background |= x->background;
}

void
judge_again(struct judgement *j)
{
	struct scene old = j->scene;
	j->scene = (struct scene){ .pathless = old.pathless,
		.incident = old.incident,
		.damaged = old.damaged,
		.filtered = old.filtered,
		.symptom = old.symptom,
		.rivals_allowed = old.rivals_allowed,
		.coverage = old.coverage };
	for (size_t i = 0; i < j->n; i++) {
		struct finding *x = &j->finding[i];
		x->folded = x->silent = false;
		x->twin = NONE;
	}
	family_fold(j);
	for (size_t i = 0; i < j->n; i++)
		j->finding[i].counted =
		    j->finding[i].opinion.result == RESULT_FAULTY &&
		    !j->finding[i].folded;
	for (size_t i = 0; i < j->n; i++)
		if (j->finding[i].counted)
			family_silence(j, &j->finding[i]);
	for (size_t i = 0; i < j->n; i++)
		if (j->finding[i].counted)
			family_twins(j, &j->finding[i]);
	j->scene.nested = family_nested(j);
	for (size_t i = 0; i < j->n; i++)
		count_finding(&j->scene, &j->finding[i]);
	j->row = table_row(&j->scene);
	j->culprit = NONE;
	for (size_t i = 0; i < j->n && j->row == ROW_CULPRIT; i++)
		if (j->finding[i].counted)
			j->culprit = (int32_t)i;
}

/* Who complains without a path may complain of anything. */
static size_t
count_pathless(const struct judgement *j)
{
	size_t n = 0;
	if (j->facts->nlisted)
		return 0;
	for (size_t i = 0; i < j->facts->nflows; i++)
		n += !at(j, j->facts->flow[i].entity)->has_path;
	return n;
}

/* ---- the symptom ----------------------------------------------------- */

static struct reply
worse(struct reply a, struct reply b)
{
	static const int rank[ANSWERS] = {
		[ANSWER_H] = 0, [ANSWER_U] = 1, [ANSWER_F] = 2
	};
	return rank[b.answer] > rank[a.answer] ? b : a;
}

static bool
speaks(const struct facts *f, int32_t e, size_t agent)
{
	int32_t i = f->entity[e].first;
	while (i != NONE && f->line[i].agent != agent)
		i = f->line[i].next;
	return i != NONE;
}

static struct reply
ask_symptom(struct judgement *j, size_t agent)
{
	const struct facts *f = j->facts;
	struct reply r = { .answer = ANSWER_H, .line = NONE };
	bool any = false;
	for (size_t i = 0; i < f->nflows; i++) {
		int32_t e = facts_root(f, f->flow[i].entity);
		r = worse(r, weigh_symptom(j->weigher, agent, e));
		any = true;
	}
	for (size_t i = 0; i < f->nlines && !f->incident; i++) {
		int32_t e = facts_root(f, f->line[i].entity);
		if (at(j, e)->first != (int32_t)i || !scope_is_flow(f, e) ||
		    !speaks(f, e, agent))
			continue;
		r = worse(r, weigh_symptom(j->weigher, agent, e));
		any = true;
	}
	if (!any)
		r = (struct reply){ .answer = ANSWER_U,
			.reason = REASON_NO_FLOW,
			.line = NONE };
	return r;
}

/* Any witness that sees it; none only if all say so. */
static int
ask_symptoms(struct judgement *j, struct err *e)
{
	static const enum symptom of[ANSWERS] = { [ANSWER_U] = SYMPTOM_U,
		[ANSWER_F] = SYMPTOM_F,
		[ANSWER_H] = SYMPTOM_H };
	const struct stack *s = j->facts->stack;
	struct reply all = { .answer = ANSWER_H, .line = NONE };
	j->symptom = arena_array(j->arena, s->nsymptoms, sizeof *j->symptom);
	if (!j->symptom)
		return err_mem(e);
	for (size_t i = 0; i < s->nsymptoms; i++) {
		j->symptom[i] = ask_symptom(j, s->symptom[i]);
		all = worse(all, j->symptom[i]);
	}
	j->scene.symptom = s->nsymptoms ? of[all.answer] : SYMPTOM_NONE;
	return 0;
}

/* ---- judging --------------------------------------------------------- */

static void
set_conditions(struct judgement *j, const struct damage *damage,
    const struct policy *policy)
{
	struct verdict clean = { .result = "innocent", .damage = *damage };
	const struct stack *s = j->facts->stack;
	verdict_settle(&clean, policy);
	if (clean.status != STATUS_CLEAN) {
		bool filtered =
		    clean.reason && !strcmp(clean.reason, REASON_FILTERED);
		j->scene.filtered = filtered;
		j->scene.damaged = !filtered;
	}
	j->scene.incident = j->facts->incident;
	j->scene.rivals_allowed = s->rivals_allowed;
	j->scene.coverage = s->coverage;
	j->scene.pathless = count_pathless(j);
}

void
judge_undo(struct judgement *j)
{
	for (size_t i = 0; i < j->n; i++) {
		at(j, j->finding[i].entity)->candidate = false;
		at(j, j->finding[i].entity)->finding = NONE;
	}
	j->facts->nlines = j->lines;
	j->n = 0;
}

int
judge(struct judgement *j, struct facts *f, struct weigher *w,
    const struct damage *damage, const struct policy *policy, struct err *e)
{
	struct list l = { 0 };
	*j = (struct judgement){ .facts = f,
		.weigher = w,
		.arena = &f->temp,
		.lines = f->nlines,
		.culprit = NONE };
	w->facts = f;
	scope_candidates(f, &l);
	j->outside = scope_lines(f, &l);
	set_conditions(j, damage, policy);
	j->finding = arena_array(j->arena, l.n, sizeof *j->finding);
	int r = j->finding ? ask_symptoms(j, e) : err_mem(e);
	for (size_t i = 0; i < l.n && !r; i++) {
		if (!find(j, &j->finding[i], l.e[i]))
			r = err_mem(e);
		at(j, l.e[i])->finding = (int32_t)i;
		j->n++;
	}
	free(l.e);
	if (!r)
		judge_again(j);
	return r;
}

/* ---- names and order ------------------------------------------------- */

struct str
judge_name(const struct judgement *j, const struct finding *x)
{
	struct str name = facts_name(j->facts, x->entity), a, b;
	bool directed;
	if (x->twin == NONE || !link_ends(name, &a, &b, &directed))
		return name;
	bool swap = str_order(a, b) > 0;
	size_t room = name.len + 2;
	char *p = arena_alloc(j->arena, room);
	if (!p)
		return name;
	int n = snprintf(p, room, "link:%.*s--%.*s", STR_ARG(swap ? b : a),
	    STR_ARG(swap ? a : b));
	return (struct str){ p, (size_t)n };
}

/* qsort has no user pointer: the names go along. */
struct named {
	const struct finding *x;
	struct str name;
	int rank;
};

static int
by_rank(const void *x, const void *y)
{
	const struct named *a = x, *b = y;
	return a->rank != b->rank ? a->rank - b->rank
				  : str_order(a->name, b->name);
}

static int
rank_of(const struct finding *x)
{
	if (x->opinion.result == RESULT_FAULTY)
		return x->folded;
	if (x->opinion.result == RESULT_HEALTHY)
		return 6;
	return x->opinion.accused ? 2 : x->silent ? 3 : x->background ? 4 : 5;
}

void
judge_sort(struct judgement *j, const struct finding **out)
{
	struct named *n = arena_array(j->arena, j->n, sizeof *n);
	for (size_t i = 0; i < j->n; i++) {
		out[i] = &j->finding[i];
		if (n)
			n[i] = (struct named){ &j->finding[i],
				facts_name(j->facts, j->finding[i].entity),
				rank_of(&j->finding[i]) };
	}
	if (!n)
		return;
	sort_array(n, j->n, sizeof *n, by_rank);
	for (size_t i = 0; i < j->n; i++)
		out[i] = n[i].x;
}
