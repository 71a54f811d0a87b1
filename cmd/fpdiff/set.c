/*
 * Two sets of names: all differences, no prefix and no first one.
 *
 * The two sides are read in turn; a record waits until its partner comes. Of
 * two sorted streams almost nothing waits: the memory is that of the records
 * without a partner, and that of a whole side only where the orders disagree.
 */
#include "fpdiff.h"

#include <stdlib.h>

#include "map.h"

enum { SHOWN = 8 }; /* differences printed without -v */

struct held {
	struct entry *e;
	struct held *next;
};

/* Records that wait for a partner, by match key, first come first. */
struct room {
	struct held **bucket;
	size_t n, size; /* a power of two, or 0 */
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
	struct u128 last[2]; /* key of the record before */
	bool last_given[2];
	struct arena arena;
	struct map ranks;            /* rank -> struct rank_count */
	struct rank_count *counted;  /* all of them */
	struct entry *one_a, *one_b; /* the difference, if there is just one */
	struct rec rec;
	struct buf undone;
};

/* ---- waiting records --------------------------------------------------- */

static struct held **
room_chain(const struct room *m, struct u128 key)
{
	return &m->bucket[(size_t)key.lo & (m->size - 1)];
}

/* The first of the key, or the end of its chain. */
static struct held **
room_find(const struct room *m, struct u128 key)
{
	struct held **at = room_chain(m, key);
	while (*at && !u128_same((*at)->e->key, key))
		at = &(*at)->next;
	return at;
}

static void
room_grow(struct room *m)
{
	struct room next = { .n = m->n, .size = m->size ? m->size * 2 : 64 };
	next.bucket = cli_alloc(next.size, sizeof *next.bucket);
	for (size_t i = 0; i < m->size; i++)
		for (struct held *h = m->bucket[i], *after; h; h = after) {
			struct held **at = room_chain(&next, h->e->key);
			while (*at)
				at = &(*at)->next;
			after = h->next;
			h->next = NULL;
			*at = h;
		}
	free(m->bucket);
	*m = next;
}

static void
room_add(struct room *m, const struct entry *e)
{
	if (m->n >= m->size)
		room_grow(m);
	struct held **at = room_chain(m, e->key);
	while (*at)
		at = &(*at)->next;
	*at = cli_alloc(1, sizeof **at);
	(*at)->e = entry_dup(e);
	m->n++;
}

static struct entry *
room_take(struct room *m, struct u128 key)
{
	struct held **at = m->size ? room_find(m, key) : NULL;
	if (!at || !*at)
		return NULL;
	struct held *h = *at;
	struct entry *e = h->e;
	*at = h->next;
	free(h);
	m->n--;
	return e;
}

static void
room_free(struct room *m)
{
	for (size_t i = 0; i < m->size; i++)
		for (struct held *h = m->bucket[i], *after; h; h = after) {
			after = h->next;
			free(h->e);
			free(h);
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

static void
pair(struct set *x, const struct entry *a, const struct entry *b)
{
	struct diff d = { .a = a, .b = b };
	if (a->form != b->form) {
		d.class = DIFF_INCOMPARABLE;
	} else if (u128_same(a->value, b->value)) {
		x->report->tally.equal++;
		return;
	} else if (!is_excused(x, &d)) {
		d.class = DIFF_DIFFERENT;
	}
	print_diff(x, &d);
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

/* In a set a match key stands for one tensor. */
static bool
is_duplicate(struct set *x, int side, const struct entry *e)
{
	bool again = x->last_given[side] && u128_same(x->last[side], e->key);
	const struct room *m = &x->room[side];
	x->last[side] = e->key;
	x->last_given[side] = true;
	return !side_is_exec(x->side[side]) &&
	       (again || (m->size && *room_find(m, e->key)));
}

static void
read_one(struct set *x, int side)
{
	struct str line;
	struct fp f;
	struct entry e;
	if (!side_line(x->side[side], &line)) {
		x->ended[side] = true;
		return;
	}
	if (side_entry(x->side[side], line, &f, &e) != 1)
		return;
	count_rank(x, side, e.rank);
	if (is_duplicate(x, side, &e)) {
		side_bad(x->side[side], "duplicate identity", f.name);
		return;
	}
	struct entry *other = room_take(&x->room[!side], e.key);
	if (!other)
		room_add(&x->room[side], &e);
	else if (side == ALIGN_A)
		pair(x, &e, other);
	else
		pair(x, other, &e);
	free(other);
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
	struct entry **e = cli_alloc(m->n + 1, sizeof *e);
	size_t n = 0;
	for (size_t i = 0; i < m->size; i++)
		for (struct held *h = m->bucket[i]; h; h = h->next)
			e[n++] = h->e;
	qsort(e, n, sizeof *e, by_line);
	for (size_t i = 0; i < n; i++) {
		struct diff d = { .class = DIFF_UNMATCHED };
		if (side == ALIGN_A)
			d.a = e[i];
		else
			d.b = e[i];
		x->report->tally.alone[side]++;
		print_diff(x, &d);
	}
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

static int
conclude(struct set *x)
{
	struct report *r = x->report;
	print_rest(x, ALIGN_A);
	print_rest(x, ALIGN_B);
	count_missing(x, &r->tally);
	if (r->shown > SHOWN && !r->s->common.verbose)
		rec_comment(r->out, "%llu more differences, printed with -v",
		    (unsigned long long)(r->shown - SHOWN));
	report_counts(r);
	struct judged j = {
		.tainted = r->tally.n[DIFF_UNSTABLE] > 0,
	};
	struct outcome o = { .a = x->one_a, .b = x->one_b };
	int status = judge(r, x->side[0], x->side[1], &j, &o);
	report_verdict(r, &o);
	return status;
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
	int status = conclude(x);
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
