/*
 * --learn: which boundaries differ between runs that are known to be good.
 * Only roots are learned, keyed without step: what follows a root in the same
 * run differs because of it. One odd run whose roots lie on one device is a
 * suspect, not an instability.
 */
#include "fpdiff.h"

#include <stdlib.h>

#include "sort.h"
#include "stats.h"

/* The code of the manual page. */
#define REASON_SUSPECT "suspect"

enum { LEAST = 2 };

/* A boundary that was a root: name, phase and io, and in which runs. */
struct unstable {
	struct u128 key;
	struct entry *e; /* one record of it */
	size_t flips;    /* runs that differ from the first */
	size_t last_run;
	struct u128 value; /* of the first of them */
	uint64_t step;
	bool same_value, same_step; /* in all of them */
	struct entry *where;        /* rank and device of the odd run */
	bool one_place;             /* all roots of that run on one */
};

struct learn {
	struct report *report;
	struct settings s;
	struct unstable *list;
	size_t n, cap;
	size_t run, used;  /* number of the run; runs that could be used */
	struct root *root; /* of this run */
	size_t nroots, roots_cap;
	struct damage damage;
	struct rec rec;
	struct buf text, undone;
};

static void
fill(struct learn *l, const struct entry *e, struct fp *f)
{
	l->undone.len = 0;
	entry_parse(e->raw, f, &l->rec, buf_room(&l->undone, e->raw.len + 1));
}

static struct u128
key_of(struct learn *l, const struct entry *e)
{
	struct fp f;
	unsigned without = 0;
	fill(l, e, &f);
	for (unsigned i = 0; i < FP_PLACES; i++)
		if (i != FP_IO && i != FP_PHASE)
			without |= 1u << i;
	return fp_key(&f, without, &l->text);
}

static void
keep_root(void *user, const struct root *root)
{
	struct learn *l = user;
	if (l->nroots == l->roots_cap) {
		l->roots_cap = l->roots_cap ? l->roots_cap * 2 : 8;
		l->root = cli_realloc(l->root, l->roots_cap, sizeof *l->root);
	}
	struct root *r = &l->root[l->nroots++];
	*r = *root;
	r->a = entry_dup(root->a);
	r->b = entry_dup(root->b);
}

/* Of the lowest step, and made here: the others may be downstream of these. */
static bool
is_learnable(const struct learn *l, const struct root *root)
{
	if (root->b->input)
		return false;
	for (size_t i = 0; i < l->nroots; i++) {
		const struct root *o = &l->root[i];
		if (o->step_given &&
		    (!root->step_given || o->step < root->step))
			return false;
	}
	return true;
}

static struct unstable *
at_key(struct learn *l, struct u128 key)
{
	for (size_t i = 0; i < l->n; i++)
		if (u128_same(l->list[i].key, key))
			return &l->list[i];
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 8;
		l->list = cli_realloc(l->list, l->cap, sizeof *l->list);
	}
	struct unstable *u = &l->list[l->n++];
	*u = (struct unstable){ .key = key,
		.same_value = true,
		.same_step = true,
		.one_place = true,
		.last_run = SIZE_MAX };
	return u;
}

static bool
same_place(struct learn *l, const struct entry *a, const struct entry *b)
{
	struct fp f;
	fill(l, a, &f);
	l->text.len = 0;
	buf_str(&l->text, f.dev);
	fill(l, b, &f);
	return str_same(a->rank, b->rank) &&
	       str_same(buf_view(&l->text), f.dev);
}

static void
learn_root(struct learn *l, const struct root *root)
{
	struct unstable *u = at_key(l, key_of(l, root->b));
	if (!u->e) {
		u->e = entry_dup(root->b);
		u->where = entry_dup(root->b);
		u->value = root->b->value;
		u->step = root->step;
	}
	u->same_value &= u128_same(u->value, root->b->value);
	u->same_step &= u->step == root->step;
	u->one_place &= same_place(l, u->where, root->b);
	u->flips += u->last_run != l->run;
	u->last_run = l->run;
}

static void
take_run(struct learn *l, const char *first, const char *name)
{
	struct report silent = { .s = &l->s };
	struct outcome o = { 0 };
	l->s = *l->report->s;
	l->s.common.verbose = 0;
	l->s.common.policy = (struct policy){ 0 };
	l->s.operand[ALIGN_A] = first;
	l->s.operand[ALIGN_B] = name;
	l->nroots = 0;
	struct side *a = side_open(&l->s, ALIGN_A);
	struct side *b = side_open(&l->s, ALIGN_B);
	side_check_pair(a, b);
	if (!side_is_exec(a) || !side_is_exec(b))
		cli_die("%s: only the order of execution shows roots",
		    side_is_exec(a) ? name : first);
	int status = exec_roots(&silent, a, b, keep_root, l, &o);
	bool usable = status == STATUS_CLEAN || tally_different(&silent.tally);
	if (o.v.reason && !strcmp(o.v.reason, REASON_CONDITIONS_DIFFER))
		usable = false;
	if (!usable) {
		cli_warn("%s: not used: %s", name,
		    o.v.reason ? o.v.reason : "unknown");
		l->damage.skipped++;
	}
	l->used += usable;
	for (size_t i = 0; usable && i < l->nroots; i++)
		if (is_learnable(l, &l->root[i]))
			learn_root(l, &l->root[i]);
	for (size_t i = 0; i < l->nroots; i++) {
		free((void *)l->root[i].a);
		free((void *)l->root[i].b);
	}
	side_close(a);
	side_close(b);
	report_free(&silent);
	l->run++;
}

/* ---- results ----------------------------------------------------------- */

/* All others against the first, with the same bits: the first is the odd one.
 */
static size_t
flips_of(const struct learn *l, const struct unstable *u)
{
	size_t others = l->used - 1;
	bool first =
	    others > 1 && u->flips == others && u->same_value && u->same_step;
	return first ? 1 : u->flips;
}

static bool
is_suspect(const struct learn *l, const struct unstable *u)
{
	return flips_of(l, u) == 1 && u->one_place;
}

static void
put_unstable(struct learn *l, const struct unstable *u, double bound)
{
	struct rec_out *o = l->report->out;
	struct fp f;
	fill(l, u->e, &f);
	rec_begin(o, "unstable");
	l->text.len = 0;
	mask_put_literal(&l->text, f.name);
	rec_str(o, "name", buf_view(&l->text));
	static const int part[] = { FP_PHASE, FP_IO };
	for (int i = 0; i < 2; i++) {
		l->text.len = 0;
		mask_put_literal(&l->text, f.place[part[i]]);
		rec_str(o, fp_place_name[part[i]],
		    l->text.len ? buf_view(&l->text) : STR_LIT(""));
	}
	rec_u64(o, "flips", flips_of(l, u));
	rec_u64(o, "runs", l->used);
	rec_f64(o, "bound", bound);
	rec_end(o);
}

/* It may be a race, or a device: a person should look. */
static void
put_finding(struct learn *l, const struct unstable *u)
{
	struct rec_out *o = l->report->out;
	struct fp f;
	bool suspect = is_suspect(l, u);
	fill(l, u->e, &f);
	l->text.len = 0;
	if (suspect && f.dev.len) {
		buf_puts(&l->text, "device:");
		buf_str(&l->text, f.dev);
	} else {
		buf_puts(&l->text, "boundary:");
		buf_str(&l->text, f.name);
	}
	rec_begin(o, "finding");
	rec_str(o, "entity", buf_view(&l->text));
	rec_put(o, "result", "unknown");
	rec_put(o, "reason", suspect ? REASON_SUSPECT : "unstable");
	rec_put(o, "need",
	    suspect ? "more good runs, some without that device"
		    : "a look at the boundary: it may be a race");
	rec_fmt(o, "note", "%zu of %zu runs", flips_of(l, u), l->used);
	rec_end(o);
}

static int
by_name(const void *pa, const void *pb)
{
	const struct unstable *a = pa, *b = pb;
	int c = str_order(a->e->raw, b->e->raw);
	return c ? c : (a->key.lo > b->key.lo) - (a->key.lo < b->key.lo);
}

static int
conclude(struct learn *l)
{
	struct report *r = l->report;
	double bound = stats_clean(l->used, 0.05);
	size_t suspects = 0;
	struct outcome o = { .v = { .result = "same",
				 .status = STATUS_CLEAN,
				 .damage = l->damage } };
	sort_array(l->list, l->n, sizeof *l->list, by_name);
	for (size_t i = 0; i < l->n; i++) {
		suspects += is_suspect(l, &l->list[i]);
		if (!is_suspect(l, &l->list[i]))
			put_unstable(l, &l->list[i], bound);
	}
	for (size_t i = 0; i < l->n; i++)
		put_finding(l, &l->list[i]);
	if (suspects)
		o.v = (struct verdict){ .result = "unknown",
			.status = STATUS_UNKNOWN,
			.reason = REASON_SUSPECT,
			.need = "more good runs, some without that device",
			.damage = l->damage };
	else if (l->n)
		o.v = (struct verdict){ .result = "different",
			.status = STATUS_FOUND,
			.damage = l->damage };
	verdict_settle(&o.v, &r->s->common.policy);
	if (o.v.status == STATUS_CLEAN)
		snprintf(o.bound, sizeof o.bound, "%.6g", bound);
	r->tally.n[DIFF_UNSTABLE] = l->n;
	r->tally.equal = l->used;
	return report_verdict(r, &o);
}

int
learn_compare(struct report *r)
{
	struct learn *l = cli_alloc(1, sizeof *l);
	const struct settings *s = r->s;
	l->report = r;
	l->used = 1;
	report_head(r, true);
	for (size_t i = 1; i < s->nrefs; i++)
		take_run(l, s->ref[0], s->ref[i]);
	int status = STATUS_NONE;
	if (l->used < LEAST)
		cli_warn("fewer than %d runs could be used", LEAST);
	else
		status = conclude(l);
	for (size_t i = 0; i < l->n; i++) {
		free(l->list[i].e);
		free(l->list[i].where);
	}
	free(l->list);
	free(l->root);
	buf_free(&l->text);
	buf_free(&l->undone);
	free(l);
	return status;
}
