/*
 * Two sets of names: all differences, no prefix and no first one.
 *
 * The two sides are read in turn; a record waits until its partner comes. Of
 * two sorted streams almost nothing waits: the memory is that of the records
 * without a partner, and that of a whole side only where the orders disagree.
 */
#include "fpdiff.h"

#include <assert.h>
#include <stdlib.h>

#include "chart.h"
#include "map.h"
#include "sort.h"

enum {
	SHOWN = 8,       /* differences printed without -v */
	ROOM_LEAST = 64, /* buckets */
};

/* Records of one match key: of several files, or repeated. */
struct group {
	struct u128 key;
	struct entry **e;
	size_t n, cap;
	struct group *next;  /* in a chain of the room */
	struct group *after; /* the next of the open ones */
};

/* Records that wait for a partner, by match key, first come first. */
struct room {
	struct group **bucket;
	size_t n, size; /* a power of two, or 0 */
};

/* The groups of the name that is being read, and in which order they came. */
struct opened {
	struct room room;
	struct group *first, **last;
};

struct rank_count {
	uint64_t n[2];
	bool given;
	struct rank_count *next;
};

struct set {
	struct report *report;
	struct side *side[2];
	struct room room[2];
	bool ended[2];
	struct opened open[2];
	uint64_t name[2];
	struct arena arena;
	struct map ranks;            /* rank -> struct rank_count */
	struct rank_count *counted;  /* all of them */
	struct entry *one_a, *one_b; /* the difference, if there is just one */
	struct rec rec;
	struct buf undone;
};

/* ---- groups ---------------------------------------------------------- */

static void
group_add(struct group *g, struct entry *e)
{
	if (g->n == g->cap) {
		g->cap = g->cap ? g->cap * 2 : 1;
		g->e = cli_realloc(g->e, g->cap, sizeof *g->e);
	}
	g->e[g->n++] = e;
}

static void
group_free(struct group *g)
{
	for (size_t i = 0; i < g->n; i++)
		free(g->e[i]);
	free(g->e);
	free(g);
}

/* In a list; or the end of the list. */
static struct group **
group_find(struct group **at, struct u128 key)
{
	while (*at && !u128_same((*at)->key, key))
		at = &(*at)->next;
	return at;
}

/* ---- waiting groups ---------------------------------------------------- */

static struct group **
room_chain(const struct room *m, struct u128 key)
{
	return &m->bucket[(size_t)key.lo & (m->size - 1)];
}

static void
room_grow(struct room *m)
{
	struct room next = { .n = m->n,
		.size = m->size ? m->size * 2 : ROOM_LEAST };
	next.bucket = cli_alloc(next.size, sizeof *next.bucket);
	for (size_t i = 0; i < m->size; i++)
		for (struct group *g = m->bucket[i], *after; g; g = after) {
			struct group **at = room_chain(&next, g->key);
			after = g->next;
			g->next = *at;
			*at = g;
		}
	free(m->bucket);
	*m = next;
}

/* Takes the group over; one of the same key that waits already gets all. */
static void
room_add(struct room *m, struct group *g)
{
	if (m->n >= m->size)
		room_grow(m);
	struct group **at = group_find(room_chain(m, g->key), g->key);
	if (!*at) {
		*at = g;
		m->n++;
		return;
	}
	for (size_t i = 0; i < g->n; i++)
		group_add(*at, g->e[i]);
	g->n = 0;
	group_free(g);
}

static struct group *
room_take(struct room *m, struct u128 key)
{
	struct group **at =
	    m->size ? group_find(room_chain(m, key), key) : NULL;
	if (!at || !*at)
		return NULL;
	struct group *g = *at;
	*at = g->next;
	m->n--;
	return g;
}

/* Forgets the groups, which belong to somebody else. */
static void
room_clear(struct room *m)
{
	if (m->size > ROOM_LEAST) {
		free(m->bucket);
		*m = (struct room){ 0 };
	} else if (m->n) {
		memset(m->bucket, 0, m->size * sizeof *m->bucket);
		m->n = 0;
	}
}

static void
room_free(struct room *m)
{
	for (size_t i = 0; i < m->size; i++)
		for (struct group *g = m->bucket[i], *after; g; g = after) {
			after = g->next;
			group_free(g);
		}
	free(m->bucket);
}

/* ---- differences ------------------------------------------------------- */

static void
print_diff(struct set *x, const struct diff *d)
{
	struct report *r = x->report;
	bool excused = d->class == DIFF_MASKED || d->class == DIFF_UNSTABLE;
	r->tally.n[d->class]++;
	if (r->s->common.verbose || (!excused && r->shown < SHOWN))
		report_diff(r, d);
	report_keep(r, d);
	r->shown += !excused;
}

static bool
is_excused(struct set *x, struct diff *d)
{
	d->class = DIFF_MASKED;
	if (d->a->is_volatile || d->b->is_volatile) {
		d->note = "volatile";
		return true;
	}
	if (!x->report->s->mask)
		return false;
	struct fp f;
	x->undone.len = 0;
	entry_parse(
	    d->a->raw, &f, &x->rec, buf_room(&x->undone, d->a->raw.len + 1));
	d->rule = mask_find(x->report->s->mask, &f);
	if (d->rule && d->rule->kind == MASK_UNSTABLE)
		d->class = DIFF_UNSTABLE;
	return d->rule != NULL;
}

static void
keep_single(struct set *x, const struct entry *a, const struct entry *b)
{
	free(x->one_a);
	free(x->one_b);
	x->one_a = x->one_b = NULL;
	if (tally_different(&x->report->tally) == 1) {
		x->one_a = entry_dup(a);
		x->one_b = entry_dup(b);
	}
}

/* What a container says about itself: fpdump calls it kv:KEY. */
static bool
is_meta(const struct entry *e)
{
	return str_starts(e->raw, "scalar\tname=kv:");
}

static enum chart_mark mark_of(enum diff_class class)
{
	if (class == DIFF_MASKED)
		return CHART_MASKED;
	if (class == DIFF_UNSTABLE)
		return CHART_UNSTABLE;
	return class == DIFF_INCOMPARABLE ? CHART_INCOMPARABLE
					  : CHART_DIFFERENT;
}

static void
pair(struct set *x, const struct entry *a, const struct entry *b)
{
	struct diff d = { .a = a, .b = b };
	x->report->tally.meta[0] += is_meta(a);
	x->report->tally.meta[1] += is_meta(b);
	if (a->form != b->form) {
		d.class = DIFF_INCOMPARABLE;
	} else if (u128_same(a->value, b->value)) {
		x->report->tally.equal++;
		chart_add(x->report->chart, a, CHART_SAME);
		return;
	} else if (!is_excused(x, &d)) {
		d.class = DIFF_DIFFERENT;
	}
	print_diff(x, &d);
	chart_add(x->report->chart, a, mark_of(d.class));
	if (d.class == DIFF_DIFFERENT)
		keep_single(x, a, b);
}

/* ---- reading ----------------------------------------------------------- */

static void
count_rank(struct set *x, int side, struct str rank)
{
	bool fresh;
	uint64_t *at = map_get(&x->ranks, rank);
	if (!at) {
		struct str copy = arena_str(&x->arena, rank);
		struct rank_count *c = arena_alloc(&x->arena, sizeof *c);
		at = copy.p && c ? map_at(&x->ranks, copy, &fresh) : NULL;
		if (!at)
			cli_die("out of memory");
		c->given = rank.p != NULL;
		c->next = x->counted;
		x->counted = c;
		*at = (uint64_t)(uintptr_t)c;
	}
	((struct rank_count *)(uintptr_t)*at)->n[side]++;
}

/* ---- pairing groups ---------------------------------------------------- */

/* In a set, one identity is one tensor; files tell equal names apart. */
static void
drop_duplicates(struct set *x, int side, struct group *g)
{
	size_t n = 0;
	if (side_is_exec(x->side[side]))
		return;
	for (size_t i = 0; i < g->n; i++) {
		bool again = false;
		for (size_t k = 0; k < n && !again; k++)
			again = str_same(g->e[k]->file, g->e[i]->file);
		if (!again) {
			g->e[n++] = g->e[i];
			continue;
		}
		struct fp f;
		x->undone.len = 0;
		entry_parse(g->e[i]->raw, &f, &x->rec,
		    buf_room(&x->undone, g->e[i]->raw.len + 1));
		side_bad(
		    x->side[side], g->e[i]->line, "duplicate identity", f.name);
		free(g->e[i]);
	}
	g->n = n;
}

/* Removes the first entry of a file. */
static struct entry *
take_file(struct group *g, struct str file)
{
	for (size_t i = 0; i < g->n; i++) {
		if (!str_same(g->e[i]->file, file))
			continue;
		struct entry *e = g->e[i];
		memmove(g->e + i, g->e + i + 1, (g->n - i - 1) * sizeof *g->e);
		g->n--;
		return e;
	}
	return NULL;
}

static void
alone(struct set *x, const struct entry *a, const struct entry *b)
{
	struct tally *t = &x->report->tally;
	bool meta = is_meta(a ? a : b);
	t->meta[b != NULL] += meta;
	if (meta)
		t->meta_alone[b != NULL]++;
	else
		t->alone[b != NULL]++;
	if (!meta)
		chart_add(x->report->chart, a ? a : b, CHART_UNMATCHED);
	print_diff(
	    x, &(struct diff){ .class = meta ? DIFF_CONTAINER : DIFF_UNMATCHED,
		   .a = a,
		   .b = b });
}

/* One and one are a pair wherever they were stored. */
static void
pair_groups(struct set *x, struct group *a, struct group *b)
{
	if (a->n == 1 && b->n == 1) {
		pair(x, a->e[0], b->e[0]);
		return;
	}
	for (size_t i = 0; i < a->n; i++) {
		struct entry *e = take_file(b, a->e[i]->file);
		if (e)
			pair(x, a->e[i], e);
		else
			alone(x, a->e[i], NULL);
		free(e);
	}
	for (size_t i = 0; i < b->n; i++)
		alone(x, NULL, b->e[i]);
}

static void
join(struct set *x, int side, struct group *g)
{
	drop_duplicates(x, side, g);
	struct group *other = room_take(&x->room[!side], g->key);
	if (!other) {
		room_add(&x->room[side], g);
		return;
	}
	if (side == ALIGN_A)
		pair_groups(x, g, other);
	else
		pair_groups(x, other, g);
	group_free(g);
	group_free(other);
}

/* The open group of a key, new or not. */
static struct group *
open_group(struct opened *o, struct u128 key)
{
	if (o->room.n >= o->room.size)
		room_grow(&o->room);
	struct group **at = group_find(room_chain(&o->room, key), key);
	if (*at)
		return *at;
	*at = cli_alloc(1, sizeof **at);
	(*at)->key = key;
	o->room.n++;
	if (!o->first)
		o->last = &o->first;
	*o->last = *at;
	o->last = &(*at)->after;
	return *at;
}

/* Another name begins: those of the last one are together. */
static void
close_groups(struct set *x, int side)
{
	struct opened *o = &x->open[side];
	struct group *g = o->first;
	o->first = NULL;
	room_clear(&o->room);
	for (struct group *after; g; g = after) {
		after = g->after;
		g->next = g->after = NULL;
		join(x, side, g);
	}
}

static void
read_one(struct set *x, int side)
{
	struct str line;
	struct fp f;
	struct entry e;
	if (!side_line(x->side[side], &line)) {
		x->ended[side] = true;
		close_groups(x, side);
		return;
	}
	if (side_entry(x->side[side], line, &f, &e) != 1)
		return;
	count_rank(x, side, e.rank);
	if (e.name != x->name[side])
		close_groups(x, side);
	x->name[side] = e.name;
	group_add(open_group(&x->open[side], e.key), entry_dup(&e));
}

/* ---- results ----------------------------------------------------------- */

static int
by_line(const void *pa, const void *pb)
{
	const struct entry *a = *(struct entry *const *)pa;
	const struct entry *b = *(struct entry *const *)pb;
	int c = str_order(a->raw, b->raw);
	return c ? c : (a->line > b->line) - (a->line < b->line);
}

/* Records without a partner, by name. */
static void
print_rest(struct set *x, int side)
{
	struct room *m = &x->room[side];
	size_t n = 0, i = 0;
	for (size_t k = 0; k < m->size; k++)
		for (struct group *g = m->bucket[k]; g; g = g->next)
			n += g->n;
	struct entry **e = cli_alloc(n + 1, sizeof *e);
	for (size_t k = 0; k < m->size; k++)
		for (struct group *g = m->bucket[k]; g; g = g->next) {
			memcpy(e + i, g->e, g->n * sizeof *e);
			i += g->n;
		}
	sort_array(e, n, sizeof *e, by_line);
	for (i = 0; i < n; i++)
		alone(x, side == ALIGN_A ? e[i] : NULL,
		    side == ALIGN_B ? e[i] : NULL);
	free(e);
}

static void
count_missing(const struct set *x, struct tally *t)
{
	for (const struct rank_count *c = x->counted; c; c = c->next) {
		if (!c->given || (c->n[0] && c->n[1]))
			continue;
		t->missing++;
		t->missing_records += c->n[0] + c->n[1];
	}
}

/*
 * A format without metadata cannot have a partner for it: then it says nothing
 * about the tensors. Where both sides have some, each record counts.
 */
static void
count_meta(struct tally *t)
{
	if (!t->meta[0] || !t->meta[1])
		return;
	t->n[DIFF_UNMATCHED] += t->n[DIFF_CONTAINER];
	t->n[DIFF_CONTAINER] = 0;
	for (int side = 0; side < 2; side++)
		t->alone[side] += t->meta_alone[side];
}

static int
conclude(struct set *x)
{
	struct report *r = x->report;
	print_rest(x, ALIGN_A);
	print_rest(x, ALIGN_B);
	count_meta(&r->tally);
	count_missing(x, &r->tally);
	if (r->shown > SHOWN && !r->s->common.verbose)
		rec_comment(r->out, "%llu more differences, printed with -v",
		    (unsigned long long)(r->shown - SHOWN));
	report_map(r);
	report_counts(r);
	struct judged j = {
		.tainted = r->tally.n[DIFF_UNSTABLE] > 0,
	};
	struct outcome o = { .a = x->one_a, .b = x->one_b };
	judge(r, x->side[0], x->side[1], &j, &o);
	return report_verdict(r, &o);
}

int
set_compare(struct report *r, struct side *a, struct side *b)
{
	struct set *x = cli_alloc(1, sizeof *x);
	x->report = r;
	x->side[0] = a;
	x->side[1] = b;
	for (int side = 0; !x->ended[0] || !x->ended[1]; side = !side)
		if (!x->ended[side])
			read_one(x, side);
	assert(!x->open[0].first && !x->open[1].first);
	int status = conclude(x);
	free(x->open[0].room.bucket);
	free(x->open[1].room.bucket);
	room_free(&x->room[0]);
	room_free(&x->room[1]);
	map_free(&x->ranks);
	arena_free(&x->arena);
	buf_free(&x->undone);
	free(x->one_a);
	free(x->one_b);
	free(x);
	return status;
}
