/* Which entities an incident is about: see scope.h and rcacompose(1). */
#include "scope.h"

#include "cli.h"

enum { NAME_ROOM = ENTITY_NAME_MAX + 1 };

/* ---- candidates ------------------------------------------------------ */

static struct entity *
at(const struct facts *f, int32_t e)
{
	return &f->entity[e];
}

bool
scope_is_flow(const struct facts *f, int32_t e)
{
	return str_is(at(f, e)->kind, "flow");
}

size_t
scope_spellings(const struct facts *f, int32_t e, int32_t out[SPELLINGS])
{
	struct str a, b;
	bool directed;
	size_t n = 0;
	if (!f->undirected || !link_ends(facts_name(f, e), &a, &b, &directed))
		return 0;
	for (int k = directed ? 1 : 0; k < 4; k++) {
		/* a>b, a--b, b--a and, from a cable, b>a */
		char name[NAME_ROOM];
		bool swap = k >= 2;
		if (directed && k == 3)
			break;
		int len = snprintf(name, sizeof name, "link:%.*s%s%.*s",
		    STR_ARG(swap ? b : a), k == 1 || k == 2 ? "--" : ">",
		    STR_ARG(swap ? a : b));
		if (len < 0 || (size_t)len >= sizeof name)
			continue;
		int32_t x = facts_find(f, (struct str){ name, (size_t)len });
		if (x != NONE && facts_root(f, x) != e)
			out[n++] = facts_root(f, x);
	}
	return n;
}

static void
list_add(struct list *l, int32_t e)
{
	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 64;
		l->e = cli_realloc(l->e, l->cap, sizeof *l->e);
	}
	l->e[l->n++] = e;
}

/* Remembered, so that the next incident does not find it changed. */
static void
touch(struct facts *f, int32_t e)
{
	if (!facts_touch(f, e))
		cli_die("out of memory");
}

/* Makes the root of e a candidate. */
static void
nominate(struct facts *f, struct list *l, int32_t e)
{
	int32_t r = facts_root(f, e);
	if (at(f, r)->candidate || scope_is_flow(f, r))
		return;
	touch(f, r);
	at(f, r)->candidate = true;
	list_add(l, r);
}

static void
nominate_above(struct facts *f, struct list *l, int32_t root)
{
	int32_t m = root;
	do {
		for (int32_t k = at(f, m)->ties.up; k != NONE;
		     k = f->edge[k].next_up)
			nominate(f, l, f->edge[k].parent);
		m = at(f, m)->ties.ring;
	} while (m != root);
}

/* All parents of what is on the list, and theirs. */
static void
nominate_parents(struct facts *f, struct list *l)
{
	int32_t other[SPELLINGS];
	for (size_t i = 0; i < l->n && f->nedges; i++) {
		int32_t e = l->e[i];
		nominate_above(f, l, e);
		size_t n = scope_spellings(f, e, other);
		for (size_t k = 0; k < n; k++)
			nominate_above(f, l, other[k]);
	}
}

/*
 * What is part of something on the path: a device of a host. Not links: a
 * link carries the flows whose paths name it and no others.
 */
static void
nominate_parts(struct facts *f, struct list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		int32_t m = l->e[i];
		do {
			for (int32_t k = at(f, m)->ties.down; k != NONE;
			     k = f->edge[k].next_down) {
				int32_t c = f->edge[k].child;
				if (!str_is(at(f, c)->kind, "link"))
					nominate(f, l, c);
			}
			m = at(f, m)->ties.ring;
		} while (m != l->e[i]);
	}
}

static void
nominate_all(struct facts *f, struct list *l)
{
	const struct stack *s = f->stack;
	for (size_t i = 0; i < f->nonpath; i++)
		if (at(f, f->onpath[i])->flows >= s->min_flows)
			nominate(f, l, f->onpath[i]);
	if (s->scope == SCOPE_ATTACHED)
		nominate_parts(f, l);
	for (size_t i = 0; i < f->nlisted; i++)
		nominate(f, l, f->listed[i]);
	if (!f->incident || s->scope == SCOPE_ALL)
		for (size_t i = 0; i < f->nlines; i++)
			nominate(f, l, f->line[i].entity);
	nominate_parents(f, l);
}

/* ---- links of one and of two directions ------------------------------ */

int32_t
scope_link(const struct facts *f, struct str a, const char *sep, struct str b)
{
	char name[NAME_ROOM];
	int n = snprintf(
	    name, sizeof name, "link:%.*s%s%.*s", STR_ARG(a), sep, STR_ARG(b));
	if (n < 0 || (size_t)n >= sizeof name)
		return NONE;
	int32_t e = facts_find(f, (struct str){ name, (size_t)n });
	if (e == NONE)
		return NONE;
	e = facts_root(f, e);
	return at(f, e)->candidate ? e : NONE;
}

/* The cable that a directed link is part of, if that is a candidate. */
static int32_t
cable_of(const struct facts *f, int32_t e, unsigned char *direction)
{
	struct str a, b;
	bool directed;
	if (!link_ends(facts_name(f, e), &a, &b, &directed) || !directed)
		return NONE;
	int32_t c = scope_link(f, a, "--", b);
	*direction = 1;
	if (c != NONE)
		return c;
	*direction = 2;
	return scope_link(f, b, "--", a);
}

/* Where a cable is a candidate, its directions are only part of it. */
static void
merge_directions(struct facts *f, struct list *l)
{
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++) {
		unsigned char d;
		if (cable_of(f, l->e[i], &d) != NONE)
			at(f, l->e[i])->candidate = false;
		else
			l->e[n++] = l->e[i];
	}
	l->n = n;
}

/* ---- lines to entities ----------------------------------------------- */

static void
put_line(struct facts *f, int32_t e, int32_t i, unsigned char direction)
{
	f->line[i].direction = direction;
	f->line[i].next = at(f, e)->first;
	at(f, e)->first = i;
}

/* A line about a cable speaks of both directions. */
static bool
put_twice(struct facts *f, struct str a, struct str b, int32_t i)
{
	int32_t x = scope_link(f, a, ">", b);
	int32_t y = scope_link(f, b, ">", a);
	if (x == NONE && y == NONE)
		return false;
	if (x != NONE)
		put_line(f, x, i, 0);
	if (y == NONE)
		return true;
	if (x == NONE) {
		put_line(f, y, i, 0);
		return true;
	}
	if (f->nlines == f->lines_cap) {
		f->lines_cap *= 2;
		f->line = cli_realloc(f->line, f->lines_cap, sizeof *f->line);
	}
	f->line[f->nlines] = f->line[i];
	put_line(f, y, (int32_t)f->nlines++, 0);
	return true;
}

/* True: its entity has evidence, the first, and is no candidate. */
static bool
place_line(struct facts *f, int32_t i)
{
	int32_t e = facts_root(f, f->line[i].entity);
	struct str a, b;
	bool directed;
	unsigned char d = 0;
	if (!at(f, e)->candidate && f->undirected &&
	    link_ends(facts_name(f, e), &a, &b, &directed)) {
		int32_t cable = directed ? cable_of(f, e, &d) : NONE;
		if (cable != NONE) {
			put_line(f, cable, i, d);
			return false;
		}
		if (!directed && put_twice(f, a, b, i))
			return false;
	}
	bool outside = !at(f, e)->candidate && !scope_is_flow(f, e) &&
		       at(f, e)->first == NONE;
	put_line(f, e, i, 0);
	return outside;
}

/* Lists keep the order of the input: they are filled from the end. */
size_t
scope_lines(struct facts *f, const struct list *candidates)
{
	size_t n = f->nlines, outside = 0;
	for (size_t i = 0; i < candidates->n; i++)
		at(f, candidates->e[i])->first = NONE;
	for (size_t i = 0; i < n; i++) {
		int32_t e = facts_root(f, f->line[i].entity);
		touch(f, e);
		at(f, e)->first = NONE;
	}
	for (size_t i = n; i--;)
		outside += place_line(f, (int32_t)i);
	return outside;
}

void
scope_candidates(struct facts *f, struct list *l)
{
	nominate_all(f, l);
	if (f->undirected)
		merge_directions(f, l);
}
