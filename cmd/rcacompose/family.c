/* Parents and children, faulty both: see family.h. */
#include "family.h"

#include "scope.h"

static struct entity *
at(const struct judgement *j, int32_t e)
{
	return &j->facts->entity[e];
}

typedef void child_fn(struct judgement *, struct finding *parent,
    struct finding *child, void *user);

static void
each_child(struct judgement *j, struct finding *p, child_fn *fn, void *user)
{
	const struct facts *f = j->facts;
	int32_t m = p->entity;
	uint64_t self = ++j->walks;
	do {
		for (int32_t k = at(j, m)->ties.down; k != NONE;
		     k = f->edge[k].next_down) {
			int32_t e = facts_root(f, f->edge[k].child);
			int32_t same[SPELLINGS + 1] = { e };
			size_t n = 1;
			/* The child may be a candidate by another spelling. */
			if (!judge_finding(j, e))
				n += scope_spellings(j->facts, e, same + 1);
			for (size_t i = 0; i < n; i++) {
				struct finding *c = judge_finding(j, same[i]);
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
void
family_fold(struct judgement *j)
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

bool
family_nested(struct judgement *j)
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
	struct finding *p = judge_finding(j, parent);
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

void
family_silence(struct judgement *j, const struct finding *x)
{
	int32_t other[SPELLINGS];
	size_t n = scope_spellings(j->facts, x->entity, other);
	look_above(j, x, x->entity);
	for (size_t i = 0; i < n; i++)
		look_above(j, x, other[i]);
}

void
family_twins(struct judgement *j, struct finding *x)
{
	struct str a, b;
	bool directed;
	if (!link_ends(facts_name(j->facts, x->entity), &a, &b, &directed) ||
	    !directed || x->twin != NONE)
		return;
	int32_t e = scope_link(j->facts, b, ">", a);
	struct finding *y = e == NONE ? NULL : judge_finding(j, e);
	if (!y || y == x || !y->counted)
		return;
	y->counted = false;
	x->twin = (int32_t)(y - j->finding);
	y->twin = (int32_t)(x - j->finding);
}
