/* One incident, judged: see judge.h and rcacompose(1). */
#include "judge.h"
#include "reasons.h"
#include "sort.h"

#include <stdlib.h>

static const char *const row_symptom_name = "flow:*";

/* ---- candidates ------------------------------------------------------------
 */

static struct entity *
at(const struct judgement *j, int32_t e)
{
	return &j->facts->entity[e];
}

static bool
is_flow(const struct judgement *j, int32_t e)
{
	return str_is(at(j, e)->kind, "flow");
}

enum { SPELLINGS = 4 };

/*
 * A link may be named with and without direction: the entities, other than e,
 * that are the same link or a part of it.
 */
static size_t
other_spellings(const struct judgement *j, int32_t e, int32_t out[SPELLINGS])
{
	struct str a, b;
	bool directed;
	size_t n = 0;
	if (!j->facts->undirected ||
	    !link_ends(facts_name(j->facts, e), &a, &b, &directed))
		return 0;
	for (int k = directed ? 1 : 0; k < 4; k++) {
		/* a>b, a--b, b--a and, from a cable, b>a */
		char name[1024];
		bool swap = k >= 2;
		if (directed && k == 3)
			break;
		int len = snprintf(name, sizeof name, "link:%.*s%s%.*s",
		    STR_ARG(swap ? b : a), k == 1 || k == 2 ? "--" : ">",
		    STR_ARG(swap ? a : b));
		if (len < 0 || (size_t)len >= sizeof name)
			continue;
		int32_t x =
		    facts_find(j->facts, (struct str){ name, (size_t)len });
		if (x != NONE && facts_root(j->facts, x) != e)
			out[n++] = facts_root(j->facts, x);
	}
	return n;
}

/* Work list of entities, each once. */
struct list {
	int32_t *e;
	size_t n, cap;
};

static bool
list_add(struct list *l, int32_t e)
{
	if (l->n == l->cap) {
		size_t want = l->cap ? 2 * l->cap : 64;
		int32_t *p = realloc(l->e, want * sizeof *p);
		if (!p)
			return false;
		l->e = p;
		l->cap = want;
	}
	l->e[l->n++] = e;
	return true;
}

/* Makes the root of e a candidate; true if it was none. */
static bool
nominate(struct judgement *j, struct list *l, int32_t e)
{
	int32_t r = facts_root(j->facts, e);
	if (at(j, r)->candidate || is_flow(j, r))
		return false;
	facts_touch(j->facts, r);
	at(j, r)->candidate = true;
	return list_add(l, r);
}

static void
nominate_above(struct judgement *j, struct list *l, int32_t root)
{
	const struct facts *f = j->facts;
	int32_t m = root;
	do {
		for (int32_t k = at(j, m)->ties.up; k != NONE;
		     k = f->edge[k].next_up)
			nominate(j, l, f->edge[k].parent);
		m = at(j, m)->ties.ring;
	} while (m != root);
}

/* All parents of what is on the list, and theirs. */
static void
nominate_parents(struct judgement *j, struct list *l)
{
	int32_t other[SPELLINGS];
	for (size_t i = 0; i < l->n && j->facts->nedges; i++) {
		int32_t e = l->e[i];
		nominate_above(j, l, e);
		size_t n = other_spellings(j, e, other);
		for (size_t k = 0; k < n; k++)
			nominate_above(j, l, other[k]);
	}
}

/*
 * What is part of something on the path: a device of a host. Not links: a
 * link carries the flows whose paths name it and no others.
 */
static void
nominate_parts(struct judgement *j, struct list *l)
{
	const struct facts *f = j->facts;
	for (size_t i = 0; i < l->n; i++) {
		int32_t m = l->e[i];
		do {
			for (int32_t k = at(j, m)->ties.down; k != NONE;
			     k = f->edge[k].next_down) {
				int32_t c = f->edge[k].child;
				if (!str_is(at(j, c)->kind, "link"))
					nominate(j, l, c);
			}
			m = at(j, m)->ties.ring;
		} while (m != l->e[i]);
	}
}

static void
nominate_all(struct judgement *j, struct list *l)
{
	const struct facts *f = j->facts;
	const struct stack *s = f->stack;
	for (size_t i = 0; i < f->nonpath; i++)
		if (at(j, f->onpath[i])->flows >= s->min_flows)
			nominate(j, l, f->onpath[i]);
	if (s->scope == SCOPE_ATTACHED)
		nominate_parts(j, l);
	for (size_t i = 0; i < f->nlisted; i++)
		nominate(j, l, f->listed[i]);
	if (!f->incident || s->scope == SCOPE_ALL)
		for (size_t i = 0; i < f->nlines; i++)
			nominate(j, l, f->line[i].entity);
	nominate_parents(j, l);
}

/* ---- links of one and of two directions ------------------------------ */

/* The candidate of that name, or NONE. */
static int32_t
link_candidate(
    const struct judgement *j, struct str a, const char *sep, struct str b)
{
	char name[1024];
	int n = snprintf(
	    name, sizeof name, "link:%.*s%s%.*s", STR_ARG(a), sep, STR_ARG(b));
	if (n < 0 || (size_t)n >= sizeof name)
		return NONE;
	int32_t e = facts_find(j->facts, (struct str){ name, (size_t)n });
	if (e == NONE)
		return NONE;
	e = facts_root(j->facts, e);
	return at(j, e)->candidate ? e : NONE;
}

/* The cable that a directed link is part of, if that is a candidate. */
static int32_t
cable_of(const struct judgement *j, int32_t e, unsigned char *direction)
{
	struct str a, b;
	bool directed;
	if (!link_ends(facts_name(j->facts, e), &a, &b, &directed) || !directed)
		return NONE;
	int32_t c = link_candidate(j, a, "--", b);
	*direction = 1;
	if (c != NONE)
		return c;
	*direction = 2;
	return link_candidate(j, b, "--", a);
}

/* Where a cable is a candidate, its directions are only part of it. */
static void
merge_directions(struct judgement *j, struct list *l)
{
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++) {
		unsigned char d;
		if (cable_of(j, l->e[i], &d) != NONE)
			at(j, l->e[i])->candidate = false;
		else
			l->e[n++] = l->e[i];
	}
	l->n = n;
}

/* ---- lines to entities ----------------------------------------------- */

static void
put_line(struct judgement *j, int32_t e, int32_t i, unsigned char direction)
{
	j->facts->line[i].direction = direction;
	j->facts->line[i].next = at(j, e)->first;
	at(j, e)->first = i;
}

/* A line about a cable speaks of both directions. */
static bool
put_twice(struct judgement *j, struct str a, struct str b, int32_t i)
{
	struct facts *f = j->facts;
	int32_t x = link_candidate(j, a, ">", b);
	int32_t y = link_candidate(j, b, ">", a);
	if (x == NONE && y == NONE)
		return false;
	if (x != NONE)
		put_line(j, x, i, 0);
	if (y == NONE)
		return true;
	if (x == NONE) {
		put_line(j, y, i, 0);
		return true;
	}
	if (f->nlines == f->lines_cap) {
		size_t want = 2 * f->lines_cap;
		struct line *p = realloc(f->line, want * sizeof *p);
		if (!p)
			return true;
		f->line = p;
		f->lines_cap = want;
	}
	f->line[f->nlines] = f->line[i];
	put_line(j, y, (int32_t)f->nlines++, 0);
	return true;
}

static void
place_line(struct judgement *j, int32_t i)
{
	struct facts *f = j->facts;
	int32_t e = facts_root(f, f->line[i].entity);
	struct str a, b;
	bool directed;
	unsigned char d = 0;
	if (!at(j, e)->candidate && f->undirected &&
	    link_ends(facts_name(f, e), &a, &b, &directed)) {
		int32_t cable = directed ? cable_of(j, e, &d) : NONE;
		if (cable != NONE) {
			put_line(j, cable, i, d);
			return;
		}
		if (!directed && put_twice(j, a, b, i))
			return;
	}
	if (!at(j, e)->candidate && !is_flow(j, e) && at(j, e)->first == NONE)
		j->outside++;
	put_line(j, e, i, 0);
}

/* Lists keep the order of the input: they are filled from the end. */
static void
place_lines(struct judgement *j, const struct list *candidates)
{
	struct facts *f = j->facts;
	size_t n = f->nlines;
	for (size_t i = 0; i < candidates->n; i++)
		at(j, candidates->e[i])->first = NONE;
	for (size_t i = 0; i < n; i++) {
		int32_t e = facts_root(f, f->line[i].entity);
		facts_touch(f, e);
		at(j, e)->first = NONE;
	}
	for (size_t i = n; i--;)
		place_line(j, (int32_t)i);
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

static void
form_opinion(struct finding *x)
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
	*x = (struct finding){ .entity = e, .twin = NONE, .stamp = NONE };
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
	form_opinion(x);
	return true;
}

/* ---- parents and children -------------------------------------------- */

static struct finding *
finding_of(const struct judgement *j, int32_t e)
{
	const struct entity *n = at(j, facts_root(j->facts, e));
	return n->candidate && n->finding != NONE ? &j->finding[n->finding]
						  : NULL;
}

typedef void child_fn(struct judgement *, struct finding *parent,
    struct finding *child, void *user);

static void
each_child(struct judgement *j, struct finding *p, child_fn *fn, void *user)
{
	const struct facts *f = j->facts;
	int32_t m = p->entity, self = (int32_t)(p - j->finding);
	for (size_t i = 0; i < j->n; i++)
		j->finding[i].stamp =
		    j->finding[i].stamp == self ? NONE : j->finding[i].stamp;
	do {
		for (int32_t k = at(j, m)->ties.down; k != NONE;
		     k = f->edge[k].next_down) {
			int32_t e = facts_root(f, f->edge[k].child);
			int32_t same[SPELLINGS + 1] = { e };
			size_t n = 1;
			/* The child may be a candidate by another spelling. */
			if (!finding_of(j, e))
				n += other_spellings(j, e, same + 1);
			for (size_t i = 0; i < n; i++) {
				struct finding *c = finding_of(j, same[i]);
				if (!c || c == p || c->stamp == self)
					continue;
				c->stamp = self;
				fn(j, p, c, user);
			}
		}
		m = at(j, m)->ties.ring;
	} while (m != p->entity);
}

struct brood {
	size_t observed, faulty;
	bool loose; /* a faulty child that is not folded */
};

static void
count_child(
    struct judgement *j, struct finding *p, struct finding *c, void *user)
{
	struct brood *b = user;
	(void)j, (void)p;
	b->observed += c->opinion.observed;
	b->faulty += c->opinion.result == RESULT_FAULTY;
	b->loose |= c->opinion.result == RESULT_FAULTY && !c->folded;
}

static void
fold_child(
    struct judgement *j, struct finding *p, struct finding *c, void *user)
{
	(void)j, (void)p, (void)user;
	c->folded |= c->opinion.result == RESULT_FAULTY || c->opinion.accused;
}

/* Two thirds, and three: the fan-out that was published (papers, 5.4). */
static void
fold(struct judgement *j)
{
	for (size_t i = 0; i < j->n; i++) {
		struct finding *p = &j->finding[i];
		struct brood b = { 0 };
		if (p->opinion.result != RESULT_FAULTY)
			continue;
		each_child(j, p, count_child, &b);
		if (b.faulty >= 3 && 3 * b.faulty >= 2 * b.observed)
			each_child(j, p, fold_child, NULL);
	}
}

static bool
is_nested(struct judgement *j)
{
	for (size_t i = 0; i < j->n; i++) {
		struct finding *p = &j->finding[i];
		struct brood b = { 0 };
		if (p->opinion.result == RESULT_FAULTY)
			each_child(j, p, count_child, &b);
		if (b.loose)
			return true;
	}
	return false;
}

static void
mark_silent(struct judgement *j, const struct finding *x, int32_t parent)
{
	struct finding *p = finding_of(j, parent);
	if (p && p != x && p->opinion.result == RESULT_UNKNOWN &&
	    !p->opinion.alibi && !p->excused)
		p->silent = j->scene.parent_silent = true;
}

static void
look_above(struct judgement *j, const struct finding *x, int32_t root)
{
	const struct facts *f = j->facts;
	int32_t m = root;
	do {
		for (int32_t k = at(j, m)->ties.up; k != NONE;
		     k = f->edge[k].next_up)
			mark_silent(j, x, f->edge[k].parent);
		m = at(j, m)->ties.ring;
	} while (m != root);
}

static void
look_up(struct judgement *j, const struct finding *x)
{
	int32_t other[SPELLINGS];
	size_t n = other_spellings(j, x->entity, other);
	look_above(j, x, x->entity);
	for (size_t i = 0; i < n; i++)
		look_above(j, x, other[i]);
}

/* Both directions of one cable, both faulty: one culprit. */
static void
pair_up(struct judgement *j, struct finding *x)
{
	struct str a, b;
	bool directed;
	if (!link_ends(facts_name(j->facts, x->entity), &a, &b, &directed) ||
	    !directed || x->twin != NONE)
		return;
	int32_t e = link_candidate(j, b, ">", a);
	struct finding *y = e == NONE ? NULL : finding_of(j, e);
	if (!y || y == x || !y->counted)
		return;
	y->counted = false;
	x->twin = (int32_t)(y - j->finding);
	y->twin = (int32_t)(x - j->finding);
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

/* Everything that follows from the opinions. */
static void
set_scene(struct judgement *j)
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
	fold(j);
	for (size_t i = 0; i < j->n; i++)
		j->finding[i].counted =
		    j->finding[i].opinion.result == RESULT_FAULTY &&
		    !j->finding[i].folded;
	for (size_t i = 0; i < j->n; i++)
		if (j->finding[i].counted)
			look_up(j, &j->finding[i]);
	for (size_t i = 0; i < j->n; i++)
		if (j->finding[i].counted)
			pair_up(j, &j->finding[i]);
	j->scene.nested = is_nested(j);
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
		n += !at(j, j->facts->flow[i])->has_path;
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

static struct reply
ask_symptom(struct judgement *j, size_t agent)
{
	const struct facts *f = j->facts;
	struct reply r = { .answer = ANSWER_H, .line = NONE };
	bool any = false;
	for (size_t i = 0; i < f->nflows; i++) {
		int32_t e = facts_root(f, f->flow[i]);
		r = worse(r, weigh_symptom(j->weigher, agent, e));
		any = true;
	}
	for (size_t i = 0; i < f->nlines && !f->incident; i++) {
		int32_t e = facts_root(f, f->line[i].entity);
		if (f->line[i].agent != agent || !is_flow(j, e))
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
	nominate_all(j, &l);
	if (f->undirected)
		merge_directions(j, &l);
	place_lines(j, &l);
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
		set_scene(j);
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

/* ---- why, and what would change it ----------------------------------- */

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
		fn(j, str_c(row_symptom_name), s->symptom[i], &j->symptom[i],
		    user);
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
judge_causes(const struct judgement *j, bool agents[STACK_AGENTS_MAX])
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
judge_need(const struct judgement *j, struct buf *b)
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

/* ---- judging again with other answers -------------------------------- */

/* Most evaluations spent on the search: some tens of milliseconds. */
enum { CHANGE_TRIES = 4000, CHANGE_OPEN = 256 };

/* An unknown answer that could become another. */
struct open {
	struct finding *x;
	size_t i;
};

struct search {
	struct judgement *j;
	struct open open[CHANGE_OPEN];
	size_t n, tries;
	enum row row;
	int32_t culprit;
};

static void
answer_again(struct search *s, size_t k, enum answer a)
{
	struct open *o = &s->open[k];
	o->x->reply[o->i].answer = a;
	form_opinion(o->x);
}

/* Judges again; true if the verdict is another. */
static bool
differs(struct search *s)
{
	s->tries++;
	set_scene(s->j);
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
		buf_printf(b, " %s", word[a[i]]);
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
	for (unsigned m = 0; m < 1u << n && s->tries < CHANGE_TRIES; m++) {
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
	bool found = n && differs(s) && row_status(s->j->row) != STATUS_UNKNOWN;
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
judge_change(struct judgement *j, struct buf *b)
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
	set_scene(j);
}
