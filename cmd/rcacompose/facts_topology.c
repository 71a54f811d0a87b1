/* What is part of what, and what else it is called: see facts.h. */
#include "facts_parts.h"

enum { WALK_MAX = 256 }; /* parents looked at for a circle */

/* Is `what` above or equal to `from`? Gives up, with true, on hostile depth. */
static bool
is_above(const struct facts *f, int32_t from, int32_t what, int *steps)
{
	int32_t m = from;
	if (facts_root(f, from) == facts_root(f, what))
		return true;
	do {
		for (int32_t k = f->entity[m].ties.up; k != NONE;
		     k = f->edge[k].next_up)
			if (++*steps > WALK_MAX ||
			    is_above(f, f->edge[k].parent, what, steps))
				return true;
		m = f->entity[m].ties.ring;
	} while (m != from);
	return false;
}

int
facts_attach(struct facts *f, const struct rec *r, struct err *e)
{
	int32_t child, parent;
	int steps = 0;
	int err = facts_entity_of(f, r, "child", &child, e);
	if (!err)
		err = facts_entity_of(f, r, "parent", &parent, e);
	if (err)
		return err;
	if (is_above(f, parent, child, &steps))
		return err_set(e, SE_EFORMAT,
		    steps > WALK_MAX ? "attach: more than 256 parents above"
				     : "attach closes a circle");
	if (!GROW(f, edge, nedges, edges_cap))
		return err_mem(e);
	struct ties *c = &f->entity[child].ties, *p = &f->entity[parent].ties;
	int32_t at = (int32_t)f->nedges++;
	f->edge[at] = (struct edge){ child, parent, c->up, p->down };
	c->up = at;
	p->down = at;
	return 0;
}

int
facts_alias(struct facts *f, const struct rec *r, struct err *e)
{
	int32_t a, b;
	int err = facts_entity_of(f, r, "entity", &a, e);
	if (!err)
		err = facts_entity_of(f, r, "same", &b, e);
	if (err)
		return err;
	int32_t x = facts_root(f, a), y = facts_root(f, b);
	if (x == y)
		return 0;
	if (!facts_touch(f, x) || !facts_touch(f, y))
		return err_mem(e);
	int32_t label = f->entity[x].ties.label;
	if (f->entity[x].ties.size < f->entity[y].ties.size) {
		int32_t t = x;
		x = y;
		y = t;
	}
	struct ties *to = &f->entity[x].ties, *from = &f->entity[y].ties;
	int32_t t = to->ring;
	from->same = x;
	to->size += from->size;
	to->label = label;
	to->ring = from->ring;
	from->ring = t;
	return 0;
}
