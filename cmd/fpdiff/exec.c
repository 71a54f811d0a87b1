/*
 * Two runs in the order of execution: the certified prefix and the first
 * divergence of every rank, the root candidate, and what became of the rest.
 */
#include "exec.h"

#include <stdlib.h>

#include "chart.h"
#include "follow.h"
#include "num.h"
#include "page.h"
#include "sort.h"

enum { PREFIXES = 4 }; /* prefix records printed without -v */

/* ---- lanes ----------------------------------------------------------- */

static void
add_lane(struct exec *x, struct str rank)
{
	if (x->nlanes == x->cap) {
		x->cap = x->cap ? x->cap * 2 : 8;
		x->lane = cli_realloc(x->lane, x->cap, sizeof(void *));
	}
	x->lane[x->nlanes++] = lane_new(rank);
}

size_t
exec_lane(struct exec *x, struct str rank)
{
	if (x->nlanes && str_same(x->lane[x->last_lane]->rank, rank) &&
	    !x->lane[x->last_lane]->rank.p == !rank.p)
		return x->last_lane;
	bool fresh;
	uint64_t *at = map_get(&x->ranks, rank);
	if (!at) {
		add_lane(x, rank);
		struct lane *l = x->lane[x->nlanes - 1];
		at = map_at(&x->ranks, l->rank, &fresh);
		if (!at)
			cli_die("out of memory");
		*at = x->nlanes;
		struct err e;
		for (int side = 0; side < 2; side++)
			if (x->ended[side] &&
			    align_close(x->align, x->nlanes - 1, side, &e))
				cli_die("%s", e.msg);
	}
	x->last_lane = (size_t)*at - 1;
	return x->last_lane;
}
/* ---- differences ------------------------------------------------------- */

static void
print_diff(struct exec *x, const struct diff *d)
{
	x->report->tally.n[d->class]++;
	if (x->report->s->common.verbose)
		report_diff(x->report, d);
	report_keep(x->report, d);
}

/* The right neighbour is known: is the difference an island? */
static void
release(struct exec *x, struct lane *l, enum relation next)
{
	struct waiting *w = &l->waiting;
	if (!w->held)
		return;
	bool island = w->before == REL_SAME && next == REL_SAME;
	if (island && w->class == DIFF_CONSEQUENCE)
		w->class = DIFF_ISOLATED;
	struct diff d = {
		.class = w->class, .a = w->a, .b = w->b, .role = w->role
	};
	if (island && w->class == DIFF_FIRST)
		d.note = "neighbours match again";
	if (x->judged.order_broken && d.class != DIFF_TAINTED)
		d = (struct diff){
			.class = DIFF_DIFFERENT, .a = w->a, .b = w->b
		};
	print_diff(x, &d);
	free(w->a);
	free(w->b);
	*w = (struct waiting){ 0 };
}

static void
first_divergence(struct exec *x, struct lane *l, const struct entry *a,
    const struct entry *b, const char *role)
{
	lane_end_prefix(l);
	l->a = entry_dup(a);
	l->b = entry_dup(b);
	l->role = role ? role : "root-among-recorded";
	l->first_tainted = l->tainted;
	l->step_given = entry_step(a, &l->step);
	if (x->report->s->first)
		x->stop = true;
}

static void
differ(struct exec *x, struct lane *l, const struct entry *a,
    const struct entry *b, const char *role)
{
	struct waiting *w = &l->waiting;
	w->held = true;
	w->before = l->last;
	w->class = l->a ? DIFF_CONSEQUENCE : DIFF_FIRST;
	if (!l->a)
		first_divergence(x, l, a, b, role);
	w->role = w->class == DIFF_FIRST ? l->role : role;
	if (l->tainted)
		w->class = DIFF_TAINTED;
	if (x->report->s->common.verbose || x->report->page) {
		w->a = entry_dup(a);
		w->b = entry_dup(b);
	}
}

static void
flip(struct exec *x, struct lane *l, const struct entry *a)
{
	uint64_t step;
	bool given = entry_step(a, &step);
	l->tainted = true;
	if (!x->flipped || !given ||
	    (x->flip_step_given && step < x->flip_step))
		x->flip_step = given ? step : 0;
	x->flip_step_given = given && (x->flip_step_given || !x->flipped);
	x->flipped = true;
}

static void
excuse(struct exec *x, const struct diff *d, enum chart_mark mark)
{
	print_diff(x, d);
	chart_add(x->report->chart, d->a, mark);
}

/* True: somebody knows of this difference. */
static bool
is_excused(struct exec *x, struct lane *l, const struct entry *a,
    const struct entry *b)
{
	struct diff d = { .class = DIFF_MASKED, .a = a, .b = b };
	if (a->is_volatile || b->is_volatile) {
		d.note = "volatile";
		excuse(x, &d, CHART_MASKED);
		return true;
	}
	if (!x->report->s->mask)
		return false;
	struct fp f;
	entry_parse(a->raw, &f, &x->rec, buf_room(&x->undone, a->raw.len + 1));
	d.rule = mask_find(x->report->s->mask, &f);
	if (!d.rule)
		return false;
	if (d.rule->kind == MASK_UNSTABLE) {
		d.class = DIFF_UNSTABLE;
		flip(x, l, a);
	}
	excuse(x, &d, d.class == DIFF_UNSTABLE ? CHART_UNSTABLE : CHART_MASKED);
	return true;
}

/* ---- pairs and singles ------------------------------------------------- */

static enum chart_mark
mark_of(const struct lane *l, enum relation relation, bool first)
{
	if (relation == REL_SAME)
		return CHART_SAME;
	if (relation == REL_OTHER)
		return CHART_INCOMPARABLE;
	if (l->tainted)
		return CHART_UNSTABLE;
	return first ? CHART_FIRST : CHART_DIFFERENT;
}

void
exec_pair(struct exec *x, struct lane *l, const struct entry *a,
    const struct entry *b)
{
	enum relation relation = REL_SAME;
	if (x->stop)
		return;
	x->tail[0] = x->tail[1] = 0;
	if (a->form != b->form)
		relation = REL_OTHER;
	else if (!u128_same(a->value, b->value))
		relation = REL_DIFFERENT;
	bool excused = relation == REL_DIFFERENT && is_excused(x, l, a, b);
	const char *role = lane_boundary(l, a, excused ? REL_OTHER : relation);
	if (excused)
		return;
	bool first = relation == REL_DIFFERENT && !l->a;
	chart_add(x->report->chart, a, mark_of(l, relation, first));
	if (l->waiting.held)
		release(x, l, relation);
	if (relation == REL_SAME) {
		x->report->tally.equal++;
		l->prefix += !l->broken;
	} else if (relation == REL_OTHER) {
		lane_end_prefix(l);
		print_diff(x, &(struct diff){
				  .class = DIFF_INCOMPARABLE, .a = a, .b = b });
	}
	if (relation == REL_DIFFERENT)
		differ(x, l, a, b, role);
	if (!first)
		lane_remember(l, a->raw, relation);
	l->last = relation;
}

static void
single(struct exec *x, struct lane *l, const struct entry *a,
    const struct entry *b)
{
	chart_add(x->report->chart, a ? a : b, CHART_UNMATCHED);
	x->report->tally.alone[b != NULL]++;
	l->alone[b != NULL]++;
	x->tail[b != NULL]++;
	if (!x->alone[b != NULL])
		x->alone[b != NULL] = entry_dup(a ? a : b);
	/* A boundary whose input has no partner is not known to agree. */
	if ((a ? a : b)->input)
		lane_boundary(l, a ? a : b, REL_OTHER);
	print_diff(
	    x, &(struct diff){ .class = DIFF_UNMATCHED, .a = a, .b = b });
}

static int
on_event(void *user, size_t lane, const struct align_item *a,
    const struct align_item *b, struct err *e)
{
	struct exec *x = user;
	struct lane *l = x->lane[lane];
	struct entry *ea = a ? a->ref : NULL, *eb = b ? b->ref : NULL;
	if (x->stop) {
		/* nothing to say any more */
	} else if (ea && eb && u128_same(ea->key, eb->key)) {
		exec_pair(x, l, ea, eb);
	} else {
		if (ea)
			single(x, l, ea, NULL);
		if (eb)
			single(x, l, NULL, eb);
	}
	free(ea);
	free(eb);
	return 0;
}
/* ---- results ----------------------------------------------------------- */

/* Lowest step first, then rank by number, then as text. */
static int
by_step(const void *pa, const void *pb)
{
	const struct lane *a = *(struct lane *const *)pa;
	const struct lane *b = *(struct lane *const *)pb;
	if (!a->a != !b->a)
		return a->a ? -1 : 1;
	if (a->a && a->step_given != b->step_given)
		return a->step_given ? -1 : 1;
	if (a->a && a->step != b->step)
		return a->step < b->step ? -1 : 1;
	uint64_t x = UINT64_MAX, y = UINT64_MAX;
	num_u64(a->rank, 0, UINT64_MAX, &x, NULL);
	num_u64(b->rank, 0, UINT64_MAX, &y, NULL);
	if (x != y)
		return x < y ? -1 : 1;
	return str_order(a->rank, b->rank);
}

static void
print_lanes(struct exec *x, struct lane **lane)
{
	bool all = x->report->s->common.verbose;
	size_t n = all || x->nlanes < PREFIXES ? x->nlanes : PREFIXES;
	for (size_t i = 0; i < x->nlanes; i++)
		lane_report_prefix(lane[i], x->report, i < n);
	if (n < x->nlanes)
		rec_comment(x->report->out, "%zu more ranks, printed with -v",
		    x->nlanes - n);
	const struct lane *l = x->nlanes ? lane[0] : NULL;
	if (!l || !l->a)
		return;
	if (!all)
		report_diff(x->report,
		    &(struct diff){
			.class = l->first_tainted ? DIFF_TAINTED : DIFF_FIRST,
			.a = l->a,
			.b = l->b,
			.role = l->role });
	lane_report_near(l, x->report);
}

/* Could every difference have come from an unstable boundary? */
static bool
all_tainted(const struct exec *x)
{
	if (!x->flipped)
		return false;
	for (size_t i = 0; i < x->nlanes; i++) {
		const struct lane *l = x->lane[i];
		if (!l->a || l->first_tainted)
			continue;
		/* In another rank: only what came in an earlier step is free
		 * of it. In the same rank it came before the flip. */
		if (l->tainted || !x->flip_step_given || !l->step_given ||
		    l->step < x->flip_step)
			return false;
	}
	return true;
}

static void
finish(struct exec *x)
{
	struct err e;
	if (align_finish(x->align, &e))
		cli_die("%s", e.msg);
	for (size_t i = 0; i < x->nlanes; i++) {
		struct lane *l = x->lane[i];
		release(x, l, REL_OTHER);
		if (x->stop || !l->rank.p || (l->n[0] && l->n[1]))
			continue;
		x->report->tally.missing++;
		x->report->tally.missing_records += l->n[0] + l->n[1];
	}
	x->judged.window_broken = align_late(x->align) > 0;
	x->judged.tainted = all_tainted(x);
}

/* Out of order nothing is the first, nor does anything follow from it. */
static void
forget_order(struct exec *x)
{
	static const enum diff_class class[] = { DIFF_FIRST, DIFF_CONSEQUENCE,
		DIFF_ISOLATED };
	uint64_t *n = x->report->tally.n;
	for (size_t i = 0; i < sizeof class / sizeof *class; i++) {
		n[DIFF_DIFFERENT] += n[class[i]];
		n[class[i]] = 0;
	}
	chart_forget_order(x->report->chart);
	page_forget_order(x->report->page);
	rec_comment(x->report->out,
	    "not in the order of execution: no prefix, and no difference is "
	    "the first");
}

/* Where records begin to have no partner; -v has printed all of them. */
static void
print_alone(struct exec *x)
{
	static const char *const ends[] = { "B ends before this",
		"A ends before this" };
	const uint64_t *n = x->report->tally.alone;
	for (int i = 0; i < 2 && !x->report->s->common.verbose; i++) {
		struct diff d = { .class = DIFF_UNMATCHED };
		if (!x->alone[i])
			continue;
		*(i ? &d.b : &d.a) = x->alone[i];
		if (!x->judged.order_broken)
			d.note = n[i] == x->tail[i] && !n[!i] ? ends[i]
							      : "the first";
		report_diff(x->report, &d);
	}
}

static int
conclude(struct exec *x)
{
	struct lane **sorted = cli_alloc(x->nlanes + 1, sizeof *sorted);
	bool ordered = !x->judged.order_broken;
	for (size_t i = 0; i < x->nlanes; i++)
		sorted[i] = x->lane[i];
	sort_array(sorted, x->nlanes, sizeof *sorted, by_step);
	if (ordered)
		print_lanes(x, sorted);
	else
		forget_order(x);
	print_alone(x);
	report_map(x->report);
	report_counts(x->report);
	struct outcome o = { .prefix_given = ordered };
	for (size_t i = 0; i < x->nlanes; i++)
		o.prefix += sorted[i]->prefix;
	if (ordered && x->nlanes && sorted[0]->a) {
		o.a = sorted[0]->a;
		o.b = sorted[0]->b;
		o.prefix = sorted[0]->prefix;
	}
	judge(x->report, x->side[ALIGN_A], x->side[ALIGN_B], &x->judged, &o);
	int status = report_verdict(x->report, &o);
	free(sorted);
	return status;
}

static struct exec *
run(struct report *r, struct side *a, struct side *b)
{
	struct exec *x = cli_alloc(1, sizeof *x);
	struct err e;
	x->report = r;
	x->side[ALIGN_A] = a;
	x->side[ALIGN_B] = b;
	x->judged.order_broken = side_order_lost(a) || side_order_lost(b);
	if (align_new(&x->align, (size_t)r->s->window, on_event, x, &e))
		cli_die("%s", e.msg);
	if (r->s->follow)
		x->seen = seen_new(r);
	while (!(x->stop && !x->no_sequence) &&
	       !(x->ended[ALIGN_A] && x->ended[ALIGN_B]))
		lockstep_read(x);
	finish(x);
	return x;
}

static void
exec_free(struct exec *x)
{
	for (size_t i = 0; i < x->nlanes; i++)
		lane_free(x->lane[i]);
	free(x->lane);
	free(x->alone[0]);
	free(x->alone[1]);
	map_free(&x->ranks);
	align_free(x->align);
	seen_free(x->seen);
	buf_free(&x->undone);
	free(x);
}

int
exec_compare(struct report *r, struct side *a, struct side *b)
{
	struct exec *x = run(r, a, b);
	int status = conclude(x);
	exec_free(x);
	return status;
}

int
exec_roots(struct report *r, struct side *a, struct side *b, exec_root *found,
    void *user, struct outcome *o)
{
	struct exec *x = run(r, a, b);
	judge(r, a, b, &x->judged, o);
	for (size_t i = 0; i < x->nlanes && !x->judged.order_broken; i++) {
		const struct lane *l = x->lane[i];
		if (!l->a)
			continue;
		struct root root = {
			.a = l->a,
			.b = l->b,
			.role = l->role,
			.certain = !strcmp(l->role, "root"),
			.tainted = l->first_tainted,
			.step_given = l->step_given,
			.step = l->step,
		};
		found(user, &root);
	}
	exec_free(x);
	return o->v.status;
}
