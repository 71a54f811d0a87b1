/*
 * --across KEY: replicas inside one run. KEY and rank leave the match key;
 * boundaries that are the same in every replica are compared, and a majority
 * of three or more names the one that is not like the others.
 */
#include "fpdiff.h"

#include <stdlib.h>

#include "map.h"
#include "num.h"

/* The codes of the manual page. */
#define REASON_NO_MAJORITY "no-majority"
#define REASON_MISSING_REPLICAS "missing-replicas"

/* A word of the set of replicas is 64; so many words. */
enum { WORDS = 16, REPLICAS_MAX = WORDS * 64, SHOWN = 6 };

/* One outcome of a boundary and the replicas that had it. */
struct value {
	uint64_t form;
	struct u128 value;
	struct entry *e; /* the first record */
	uint64_t who[WORDS];
	size_t n;
	struct value *next;
};

/* One boundary: match key without KEY and rank, and which occurrence. */
struct group {
	struct u128 key;
	struct value *value;
	size_t nvalues, n;
	uint64_t number;    /* in the order of appearance */
	struct group *next; /* the next occurrence of the same key */
};

struct across {
	struct report *report;
	struct side *side;
	int place; /* KEY */
	struct arena arena;
	struct map groups;   /* key -> struct group */
	struct map replicas; /* text -> number + 1 */
	struct str *replica;
	size_t nreplicas;
	uint64_t ngroups, unmarked;
	struct group **list;
	size_t cap;
	bool all; /* the head says inputs=replicated */
	struct rec rec;
	struct buf text, undone;
};

static void *
take(struct across *x, size_t n)
{
	void *p = arena_alloc(&x->arena, n);
	if (!p)
		cli_die("out of memory");
	return p;
}

static uint64_t *
slot(struct across *x, struct map *m, struct str key)
{
	bool fresh;
	uint64_t *at = map_get(m, key);
	if (at)
		return at;
	struct str copy = arena_str(&x->arena, key);
	at = copy.p ? map_at(m, copy, &fresh) : NULL;
	if (!at)
		cli_die("out of memory");
	return at;
}

static size_t
replica_number(struct across *x, struct str text)
{
	uint64_t *at = slot(x, &x->replicas, text);
	if (*at)
		return (size_t)*at - 1;
	if (x->nreplicas == REPLICAS_MAX)
		cli_die("more than %d replicas", REPLICAS_MAX);
	x->replica =
	    cli_realloc(x->replica, x->nreplicas + 1, sizeof *x->replica);
	x->replica[x->nreplicas] = arena_str(&x->arena, text);
	*at = ++x->nreplicas;
	return x->nreplicas - 1;
}

static bool
has_replica(const struct group *g, size_t id)
{
	for (const struct value *v = g->value; v; v = v->next)
		if (v->who[id / 64] >> (id % 64) & 1)
			return true;
	return false;
}

/* The first occurrence of the key that this replica has not had yet. */
static struct group *
group_of(struct across *x, struct u128 key, size_t id)
{
	uint64_t *at =
	    slot(x, &x->groups, (struct str){ (const char *)&key, sizeof key });
	struct group *g = (struct group *)(uintptr_t)*at, *last = NULL;
	while (g && has_replica(g, id)) {
		last = g;
		g = g->next;
	}
	if (g)
		return g;
	g = take(x, sizeof *g);
	g->key = key;
	g->number = x->ngroups;
	if (last)
		last->next = g;
	else
		*at = (uint64_t)(uintptr_t)g;
	if (x->ngroups == x->cap) {
		x->cap = x->cap ? x->cap * 2 : 256;
		x->list = cli_realloc(x->list, x->cap, sizeof(void *));
	}
	x->list[x->ngroups++] = g;
	return g;
}

static void
add_value(struct across *x, struct group *g, size_t id, const struct entry *e)
{
	struct value **v = &g->value;
	while (
	    *v && ((*v)->form != e->form || !u128_same((*v)->value, e->value)))
		v = &(*v)->next;
	if (!*v) {
		*v = take(x, sizeof **v);
		(*v)->form = e->form;
		(*v)->value = e->value;
		(*v)->e = entry_dup(e);
		g->nvalues++;
	}
	(*v)->who[id / 64] |= UINT64_C(1) << (id % 64);
	(*v)->n++;
	g->n++;
}

/* `replicated` is a list of keys, or says yes. */
static bool
is_marked(const struct across *x, const struct fp *f)
{
	struct str rest = f->replicated, word;
	while (rest.len && str_cut(&rest, ',', &word))
		if (str_is(word, fp_place_name[x->place]) ||
		    str_is(word, "1") || str_is(word, "yes") ||
		    str_is(word, "all"))
			return true;
	return x->all;
}

static void
read_run(struct across *x)
{
	struct str line;
	struct fp f;
	struct entry e;
	while (side_line(x->side, &line)) {
		if (side_entry(x->side, line, &f, &e) != 1)
			continue;
		x->all = side_inputs_replicated(x->side);
		struct str replica = f.place[x->place];
		if (!replica.p || !is_marked(x, &f)) {
			x->unmarked++;
			continue;
		}
		unsigned without = 1u << x->place | 1u << FP_RANK;
		size_t id = replica_number(x, replica);
		struct u128 key = fp_key(&f, without, &x->text);
		add_value(x, group_of(x, key, id), id, &e);
	}
}

/* ---- results ----------------------------------------------------------- */

static const struct value *
majority(const struct group *g)
{
	for (const struct value *v = g->value; v; v = v->next)
		if (2 * v->n > g->n)
			return v;
	return NULL;
}

/* Three are needed: of two nobody knows which is right. */
static bool
is_decided(const struct group *g)
{
	return g->n >= 3 && majority(g);
}

static void
put_replicas(struct across *x, const struct value *v)
{
	x->text.len = 0;
	for (size_t i = 0; i < x->nreplicas; i++) {
		if (!(v->who[i / 64] >> (i % 64) & 1))
			continue;
		if (x->text.len)
			buf_putc(&x->text, ',');
		buf_str(&x->text, x->replica[i]);
	}
}

/*
 * What a value is compared with: what most have, else the first of its dtype
 * and shape, else the first.
 */
static const struct value *
partner(const struct group *g, const struct value *v)
{
	const struct value *most = majority(g), *o = g->value;
	if (most)
		return most;
	while (o != v && o->form != v->form)
		o = o->next;
	return o == v ? g->value : o;
}

/* The first value that differs and can be compared, or NULL. */
static const struct value *
odd_of(const struct group *g)
{
	for (const struct value *v = g->value; v; v = v->next) {
		const struct value *o = partner(g, v);
		if (o != v && o->form == v->form)
			return v;
	}
	return NULL;
}

static void
print_group(struct across *x, const struct group *g)
{
	for (const struct value *v = g->value; v; v = v->next) {
		const struct value *o = partner(g, v);
		if (v == o)
			continue;
		put_replicas(x, v);
		struct buf note = { 0 };
		buf_printf(&note, "%s ", fp_place_name[x->place]);
		buf_str(&note, buf_view(&x->text));
		struct diff d = { .class = DIFF_DIFFERENT,
			.a = o->e,
			.b = v->e,
			.at_b = true,
			.note = buf_cstr(&note) };
		if (o->form != v->form)
			d.class = DIFF_INCOMPARABLE;
		report_diff(x->report, &d);
		buf_free(&note);
	}
}

static bool
step_of(struct across *x, const struct group *g, uint64_t *step)
{
	struct fp f;
	x->undone.len = 0;
	entry_parse(g->value->e->raw, &f, &x->rec,
	    buf_room(&x->undone, g->value->e->raw.len + 1));
	struct str s = f.place[FP_STEP];
	return s.p && !num_u64(s, 0, UINT64_MAX, step, NULL);
}

/*
 * The first that differs: of the lowest step, then as they came. One that is
 * incomparable does not.
 */
static const struct group *
tally_groups(struct across *x, uint64_t *missing)
{
	struct tally *t = &x->report->tally;
	const struct group *first = NULL;
	uint64_t lowest = UINT64_MAX;
	for (uint64_t i = 0; i < x->ngroups; i++) {
		const struct group *g = x->list[i];
		uint64_t step = UINT64_MAX;
		*missing += g->n < x->nreplicas;
		if (g->nvalues == 1) {
			t->equal += g->n > 1;
			continue;
		}
		bool comparable = odd_of(g) != NULL;
		t->n[comparable ? DIFF_DIFFERENT : DIFF_INCOMPARABLE]++;
		if (x->report->s->common.verbose || x->report->shown < SHOWN)
			print_group(x, g);
		x->report->shown++;
		if (!comparable)
			continue;
		step_of(x, g, &step);
		if (first && step >= lowest)
			continue;
		first = g;
		lowest = step;
	}
	return first;
}

static void
name_culprit(struct across *x, const struct group *g, struct outcome *o)
{
	const struct value *odd = odd_of(g);
	o->a = partner(g, odd)->e;
	o->b = odd->e;
	o->at_b = true;
	x->text.len = 0;
	if (g->nvalues != 2 || odd->n != 1 || !odd->e->rank.p)
		return;
	buf_puts(&x->text, "rank:");
	buf_str(&x->text, odd->e->rank);
	o->entity = buf_view(&x->text);
	o->cause = "replica";
}

static int
conclude(struct across *x)
{
	struct report *r = x->report;
	struct outcome o = { 0 };
	struct verdict *v = &o.v;
	uint64_t missing = 0;
	const struct group *first = tally_groups(x, &missing);
	*v = (struct verdict){ .result = "same", .status = STATUS_CLEAN };
	side_damage(x->side, &v->damage);
	v->damage.skipped += missing;
	report_counts(r);
	if (first && is_decided(first)) {
		v->result = "different";
		v->status = STATUS_FOUND;
		name_culprit(x, first, &o);
	} else if (first || missing || side_absent_ranks(x->side)) {
		v->result = "unknown";
		v->status = STATUS_UNKNOWN;
		v->reason =
		    first ? REASON_NO_MAJORITY : REASON_MISSING_REPLICAS;
		v->need =
		    first ? "a third replica" : "the records of all replicas";
		if (first) {
			o.a = partner(first, odd_of(first))->e;
			o.b = odd_of(first)->e;
		}
	} else if (r->tally.n[DIFF_INCOMPARABLE]) {
		v->result = "unknown";
		v->status = STATUS_UNKNOWN;
		v->reason = REASON_INCOMPARABLE;
		v->need = "replicas of equal dtype and shape";
	}
	verdict_settle(v, &r->s->common.policy);
	if (!x->ngroups || x->nreplicas < 2) {
		cli_warn("%s: no replicas to compare: %llu records without "
			 "%s= or replicated=",
		    r->s->operand[0], (unsigned long long)x->unmarked,
		    fp_place_name[x->place]);
		v->status = STATUS_NONE;
	}
	return report_verdict(r, &o);
}

int
across_compare(struct report *r)
{
	struct across *x = cli_alloc(1, sizeof *x);
	x->report = r;
	x->place = r->s->across;
	x->side = side_open(r->s, ALIGN_A);
	report_head(r, false);
	read_run(x);
	int status = conclude(x);
	for (uint64_t i = 0; i < x->ngroups; i++)
		for (struct value *v = x->list[i]->value; v; v = v->next)
			free(v->e);
	side_close(x->side);
	free(x->list);
	free(x->replica);
	map_free(&x->groups);
	map_free(&x->replicas);
	arena_free(&x->arena);
	buf_free(&x->text);
	buf_free(&x->undone);
	free(x);
	return status;
}
