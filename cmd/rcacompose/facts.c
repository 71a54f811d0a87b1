/* Records about an incident: see facts.h and straightedge-incident(5). */
#include "facts_parts.h"

#include <stdlib.h>

void
facts_init(struct facts *f, const struct stack *s)
{
	*f = (struct facts){
		.stack = s, .start = NO_TIME, .end = NO_TIME, .now = NO_TIME
	};
}

void
facts_free(struct facts *f)
{
	arena_free(&f->keep);
	arena_free(&f->temp);
	map_free(&f->old);
	map_free(&f->fresh);
	free(f->entity);
	free(f->edge);
	free(f->line);
	free(f->alive);
	free(f->flow);
	free(f->listed);
	free(f->onpath);
	free(f->truth);
	free(f->touched);
}

bool
facts_grow(void *array, size_t n, size_t *cap, size_t size)
{
	void **p = array;
	if (n < *cap)
		return true;
	size_t want = *cap ? *cap * 2 : 64;
	void *q = realloc(*p, want * size);
	if (!q)
		return false;
	*p = q;
	*cap = want;
	return true;
}

struct arena *
facts_arena(struct facts *f)
{
	return f->marked ? &f->temp : &f->keep;
}

/* ---- names ----------------------------------------------------------- */

bool
link_ends(struct str name, struct str *a, struct str *b, bool *directed)
{
	if (!str_starts(name, "link:"))
		return false;
	name.p += 5;
	name.len -= 5;
	const char *gt = name.len ? memchr(name.p, '>', name.len) : NULL;
	size_t at, gap = gt ? 1 : 2;
	if (gt)
		at = (size_t)(gt - name.p);
	else
		for (at = 0; at + 1 < name.len; at++)
			if (name.p[at] == '-' && name.p[at + 1] == '-')
				break;
	if (at + gap >= name.len || !at)
		return false;
	*a = (struct str){ name.p, at };
	*b = (struct str){ name.p + at + gap, name.len - at - gap };
	*directed = gt != NULL;
	return true;
}

int32_t
facts_find(const struct facts *f, struct str name)
{
	const uint64_t *v = map_get(&f->fresh, name);
	if (!v)
		v = map_get(&f->old, name);
	return v ? (int32_t)*v : NONE;
}

/* Remembers that e must be put back by facts_rewind. */
bool
facts_touch(struct facts *f, int32_t e)
{
	if (f->entity[e].touched || !f->marked)
		return true;
	if (!GROW(f, touched, ntouched, touched_cap))
		return false;
	f->touched[f->ntouched++] = e;
	return f->entity[e].touched = true;
}

static void
set_kind(struct facts *f, struct entity *n)
{
	struct str rest = n->name, a, b;
	bool directed;
	str_cut(&rest, ':', &n->kind);
	if (!rest.p)
		n->kind = (struct str){ n->name.p, 0 };
	if (link_ends(n->name, &a, &b, &directed) && !directed)
		f->undirected = true;
}

int32_t
facts_entity(struct facts *f, struct str name)
{
	int32_t at = facts_find(f, name);
	if (at != NONE)
		return facts_touch(f, at) ? at : NONE;
	if (f->nentities == ENTITIES_MAX ||
	    !GROW(f, entity, nentities, entities_cap))
		return NONE;
	bool fresh;
	struct str kept = arena_str(facts_arena(f), name);
	uint64_t *slot =
	    kept.p ? map_at(f->marked ? &f->fresh : &f->old, kept, &fresh)
		   : NULL;
	if (!slot)
		return NONE;
	at = (int32_t)f->nentities++;
	*slot = (uint64_t)at;
	struct entity *n = &f->entity[at];
	*n = (struct entity){ .name = kept,
		.ties = { at, at, at, 1, NONE, NONE },
		.first = NONE,
		.last_flow = NONE,
		.complaint = NONE,
		.finding = NONE };
	n->kept = n->ties;
	set_kind(f, n);
	return at;
}

int
facts_need(struct facts *f, struct str name, int32_t *out, struct err *e)
{
	if (!name.len || name.len > ENTITY_NAME_MAX)
		return err_set(e, SE_EFORMAT,
		    "expected the name of an entity, 1 to %d bytes",
		    ENTITY_NAME_MAX);
	*out = facts_entity(f, name);
	if (*out != NONE)
		return 0;
	return err_set(e, SE_ELIMIT, "more than %d entities", ENTITIES_MAX);
}

int
facts_entity_of(struct facts *f, const struct rec *r, const char *key,
    int32_t *out, struct err *e)
{
	int err = facts_need(f, rec_text_of(r, key), out, e);
	if (err == SE_EFORMAT)
		err_prefix(e, "%s", key);
	return err;
}

/* ---- records --------------------------------------------------------- */

// clang-format off
static const struct {
	const char *type;
	int (*take)(struct facts *, const struct rec *, struct err *);
	bool of_incident; /* may not stand before it */
} takers[] = {
	{ "flow", facts_flow, true },
	{ "path", facts_path_of, true },
	{ "candidate", facts_candidate, true },
	{ "attach", facts_attach, false },
	{ "alias", facts_alias, false },
	{ "alive", facts_alive, false },
	{ "truth", facts_truth, true },
};
// clang-format on

int
facts_add(struct facts *f, const struct rec *r, unsigned source, struct err *e)
{
	if (str_is(r->type, "evidence"))
		return facts_evidence(f, r, source, e);
	for (size_t i = 0; i < sizeof takers / sizeof *takers; i++)
		if (str_is(r->type, takers[i].type)) {
			if (takers[i].of_incident && !f->incident)
				return err_set(e, SE_EFORMAT,
				    "%s before the incident it belongs to",
				    takers[i].type);
			return takers[i].take(f, r, e);
		}
	return 0;
}

/* ---- one incident after the other ---------------------------------------- */

void
facts_mark(struct facts *f)
{
	if (f->marked)
		return;
	for (size_t i = 0; i < f->nentities; i++)
		f->entity[i].kept = f->entity[i].ties;
	f->entities_kept = f->nentities;
	f->edges_kept = f->nedges;
	f->lines_kept = f->nlines;
	f->alive_kept = f->nalive;
	f->marked = true;
}

/* Names and edges from before the mark, as they were then. */
static void
restore(struct facts *f, int32_t e)
{
	struct entity *n = &f->entity[e];
	if ((size_t)e >= f->entities_kept)
		return;
	n->ties = n->kept;
	n->first = n->finding = n->last_flow = n->complaint = NONE;
	n->flows = 0;
	n->candidate = n->touched = n->has_path = false;
}

void
facts_rewind(struct facts *f)
{
	for (size_t i = 0; i < f->ntouched; i++)
		restore(f, f->touched[i]);
	f->ntouched = 0;
	f->nentities = f->entities_kept;
	f->nedges = f->edges_kept;
	f->nlines = f->lines_kept;
	f->nalive = f->alive_kept;
	f->nflows = f->nlisted = f->nonpath = 0;
	f->ntruths = 0;
	f->truth_none = f->truth_unknown = false;
	f->incident = false;
	f->id = f->group = STR_NULL;
	f->start = f->end = f->now = NO_TIME;
	f->other_agents = f->refused = 0;
	arena_free(&f->temp);
	map_free(&f->fresh);
}
