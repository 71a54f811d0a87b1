/*
 * Two runs in the order of execution: the certified prefix and the first
 * divergence of every rank, the root candidate, and what became of the rest.
 */
#include "fpdiff.h"

#include <stdlib.h>

#include "map.h"
#include "num.h"

enum {
	BEFORE = 2,        /* records shown before a divergence */
	AFTER = 3,         /* and behind it */
	BOUNDARIES = 1024, /* open boundaries remembered in a rank */
	PREFIXES = 4,      /* prefix records printed without -v */
};

enum relation { REL_SAME, REL_DIFFERENT, REL_OTHER };

static const char *const relation_name[] = { "same", "different", "other" };

/* What was recorded of a boundary's inputs since its last output. */
struct boundary {
	uint64_t key;
	bool seen, differs, done;
};

struct near {
	char *raw;
	size_t len;
	enum relation relation;
};

/* A difference waits for its right neighbour. */
struct waiting {
	bool held;
	enum relation before;
	enum diff_class class;
	const char *role;
	struct entry *a, *b;
};

struct lane {
	struct str rank;
	uint64_t n[2];   /* records by side */
	uint64_t prefix; /* certified */
	bool broken;     /* the prefix is over */
	bool tainted;    /* an unstable boundary flipped */
	enum relation last;
	struct near before[BEFORE], after[AFTER], certified;
	size_t nbefore, nafter;
	/* first divergence */
	struct entry *a, *b;
	const char *role;
	bool first_tainted;
	bool step_given;
	uint64_t step;
	struct waiting waiting;
	struct boundary *boundary;
	/* by side */
	uint64_t seq[2], seq_part[2], last_part[2];
	uint64_t at_step[2], step_part[2];
};

struct exec {
	struct report *report;
	struct side *side[2];
	struct align *align;
	struct lane **lane; /* by number, in order of appearance */
	size_t nlanes, cap;
	struct map ranks; /* rank -> number + 1 */
	size_t last_lane; /* where the last record belonged */
	bool ended[2];
	struct entry *alone[2]; /* the first without a partner, by side */
	uint64_t tail[2];       /* of those, since the last pair */
	bool stop; /* --first: enough was seen, what is held is only freed */
	bool no_sequence; /* some records have none: only the end is proof */
	struct judged judged;
	bool flipped, flip_step_given;
	uint64_t flip_step; /* lowest step of an unstable flip */
	struct rec rec;
	struct buf undone;
};

/* ---- lanes ----------------------------------------------------------- */

static struct lane *
new_lane(struct exec *x, struct str rank)
{
	if (x->nlanes == x->cap) {
		x->cap = x->cap ? x->cap * 2 : 8;
		x->lane = cli_realloc(x->lane, x->cap, sizeof(void *));
	}
	struct lane *l = cli_alloc(1, sizeof *l);
	l->boundary = cli_alloc(BOUNDARIES, sizeof *l->boundary);
	if (rank.p) {
		char *copy = cli_alloc(rank.len + 1, 1);
		memcpy(copy, rank.p, rank.len);
		l->rank = (struct str){ copy, rank.len };
	}
	x->lane[x->nlanes++] = l;
	return l;
}

static size_t
lane_of(struct exec *x, struct str rank)
{
	if (x->nlanes && str_same(x->lane[x->last_lane]->rank, rank) &&
	    !x->lane[x->last_lane]->rank.p == !rank.p)
		return x->last_lane;
	bool fresh;
	uint64_t *at = map_get(&x->ranks, rank);
	if (!at) {
		struct lane *l = new_lane(x, rank);
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

static void
free_lane(struct lane *l)
{
	for (int i = 0; i < BEFORE; i++)
		free(l->before[i].raw);
	for (int i = 0; i < AFTER; i++)
		free(l->after[i].raw);
	free(l->certified.raw);
	free(l->waiting.a);
	free(l->waiting.b);
	free(l->a);
	free(l->b);
	free(l->boundary);
	free((char *)l->rank.p);
	free(l);
}

/* Without a sequence the steps of a rank have to do: they do not fall. */
static void
check_step(struct exec *x, struct lane *l, int side, struct str text)
{
	uint64_t part = side_part(x->side[side]), step;
	x->no_sequence = true;
	if (!text.p || num_u64(text, 0, UINT64_MAX, &step, NULL))
		return;
	if (l->step_part[side] == part + 1 && step < l->at_step[side])
		x->judged.order_broken = true;
	l->at_step[side] = step;
	l->step_part[side] = part + 1;
}

/* Within a part of the stream the sequence of a rank rises. */
static void
check_sequence(struct exec *x, struct lane *l, int side, const struct entry *e)
{
	uint64_t part = side_part(x->side[side]);
	l->n[side]++;
	l->last_part[side] = part;
	if (!e->seq.given) {
		check_step(x, l, side, e->step);
		return;
	}
	if (l->seq_part[side] == part + 1 && e->seq.v < l->seq[side])
		x->judged.order_broken = x->judged.sequence_fell = true;
	l->seq[side] = e->seq.v;
	l->seq_part[side] = part + 1;
}

/* ---- roots ----------------------------------------------------------- */

/*
 * An output that differs although every recorded input and parameter of its
 * boundary agrees is where the difference was made. What was not recorded may
 * have differed all the same: then it is the root among recorded.
 */
static const char *
track_boundary(struct lane *l, const struct entry *e, enum relation relation)
{
	struct boundary *b = &l->boundary[e->boundary % BOUNDARIES];
	if (e->input) {
		if (b->key != e->boundary || b->done)
			*b = (struct boundary){ .key = e->boundary };
		b->seen = true;
		b->differs |= relation != REL_SAME;
		return NULL;
	}
	bool known = b->key == e->boundary && b->seen;
	const char *role = NULL;
	if (relation == REL_DIFFERENT && known && !b->differs)
		role = "root";
	if (known)
		b->done = true;
	return role;
}

/* ---- neighbours -------------------------------------------------------- */

static void
keep_near(struct near *n, struct str raw, enum relation relation)
{
	if (n->len < raw.len || !n->raw)
		n->raw = cli_realloc(n->raw, raw.len + 1, 1);
	memcpy(n->raw, raw.p, raw.len);
	n->len = raw.len;
	n->relation = relation;
}

static void
remember(struct lane *l, struct str raw, enum relation relation)
{
	if (!l->a)
		keep_near(&l->before[l->nbefore++ % BEFORE], raw, relation);
	else if (l->nafter < AFTER)
		keep_near(&l->after[l->nafter++], raw, relation);
}

/* The last certified record, as long as it is the one before. */
static void
end_prefix(struct lane *l)
{
	if (l->broken)
		return;
	l->broken = true;
	const struct near *n = &l->before[(l->nbefore - 1) % BEFORE];
	if (l->nbefore)
		keep_near(
		    &l->certified, (struct str){ n->raw, n->len }, REL_SAME);
}

/* ---- differences ------------------------------------------------------- */

static void
print_diff(struct exec *x, const struct diff *d)
{
	x->report->tally.n[d->class]++;
	if (x->report->s->common.verbose)
		report_diff(x->report, d);
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

static bool
step_of(struct exec *x, const struct entry *e, uint64_t *step)
{
	struct fp f;
	entry_parse(e->raw, &f, &x->rec, buf_room(&x->undone, e->raw.len + 1));
	struct str s = f.place[FP_STEP];
	return s.p && !num_u64(s, 0, UINT64_MAX, step, NULL);
}

static void
first_divergence(struct exec *x, struct lane *l, const struct entry *a,
    const struct entry *b, const char *role)
{
	end_prefix(l);
	l->a = entry_dup(a);
	l->b = entry_dup(b);
	l->role = role ? role : "root-among-recorded";
	l->first_tainted = l->tainted;
	l->step_given = step_of(x, a, &l->step);
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
	if (x->report->s->common.verbose) {
		w->a = entry_dup(a);
		w->b = entry_dup(b);
	}
}

static void
flip(struct exec *x, struct lane *l, const struct entry *a)
{
	uint64_t step;
	bool given = step_of(x, a, &step);
	l->tainted = true;
	if (!x->flipped || !given ||
	    (x->flip_step_given && step < x->flip_step))
		x->flip_step = given ? step : 0;
	x->flip_step_given = given && (x->flip_step_given || !x->flipped);
	x->flipped = true;
}

/* True: somebody knows of this difference. */
static bool
is_excused(struct exec *x, struct lane *l, const struct entry *a,
    const struct entry *b)
{
	struct diff d = { .class = DIFF_MASKED, .a = a, .b = b };
	if (a->is_volatile || b->is_volatile) {
		d.note = "volatile";
		print_diff(x, &d);
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
	print_diff(x, &d);
	return true;
}

/* ---- pairs and singles ------------------------------------------------- */

static void
pair(struct exec *x, struct lane *l, const struct entry *a,
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
	const char *role = track_boundary(l, a, excused ? REL_OTHER : relation);
	if (excused)
		return;
	if (l->waiting.held)
		release(x, l, relation);
	if (relation == REL_SAME) {
		x->report->tally.equal++;
		l->prefix += !l->broken;
	} else if (relation == REL_OTHER) {
		end_prefix(l);
		print_diff(x, &(struct diff){
				  .class = DIFF_INCOMPARABLE, .a = a, .b = b });
	}
	bool first = relation == REL_DIFFERENT && !l->a;
	if (relation == REL_DIFFERENT)
		differ(x, l, a, b, role);
	if (!first)
		remember(l, a->raw, relation);
	l->last = relation;
}

static void
single(struct exec *x, struct lane *l, const struct entry *a,
    const struct entry *b)
{
	x->report->tally.alone[b != NULL]++;
	x->tail[b != NULL]++;
	if (!x->alone[b != NULL])
		x->alone[b != NULL] = entry_dup(a ? a : b);
	/* A boundary whose input has no partner is not known to agree. */
	if ((a ? a : b)->input)
		track_boundary(l, a ? a : b, REL_OTHER);
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
		pair(x, l, ea, eb);
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

/* ---- reading ----------------------------------------------------------- */

static void
push(struct exec *x, size_t lane, int side, const struct entry *e)
{
	struct err err;
	struct align_item item = {
		.key = e->key.lo,
		.form = e->form,
		.value = e->value.lo ^ e->value.hi,
		.ref = entry_dup(e),
	};
	if (align_push(x->align, lane, side, &item, &err))
		cli_die("%s", err.msg);
}

static void
close_side(struct exec *x, int side)
{
	struct err e;
	x->ended[side] = true;
	for (size_t i = 0; i < x->nlanes; i++)
		if (align_close(x->align, i, side, &e))
			cli_die("%s", e.msg);
}

static void
read_one(struct exec *x, int side)
{
	struct str line;
	struct fp f;
	struct entry e;
	if (!side_line(x->side[side], &line)) {
		close_side(x, side);
		return;
	}
	if (side_entry(x->side[side], line, &f, &e) != 1)
		return;
	size_t lane = lane_of(x, e.rank);
	check_sequence(x, x->lane[lane], side, &e);
	push(x, lane, side, &e);
}

/* The same line on both sides, read once. */
static void
read_twins(struct exec *x, struct str line)
{
	struct entry e;
	int r = side_twin_entry(x->side[ALIGN_A], line, &e);
	if (r < 0)
		side_same_bad(x->side[ALIGN_B]);
	if (r != 1)
		return;
	size_t lane = lane_of(x, e.rank);
	struct lane *l = x->lane[lane];
	check_sequence(x, l, ALIGN_A, &e);
	check_sequence(x, l, ALIGN_B, &e);
	pair(x, l, &e, &e);
}

static void
read_two(struct exec *x, struct str la, struct str lb)
{
	struct fp f;
	struct entry e[2];
	int r[2] = { side_entry(x->side[ALIGN_A], la, &f, &e[0]),
		side_entry(x->side[ALIGN_B], lb, &f, &e[1]) };
	size_t lane[2] = { 0 };
	for (int i = 0; i < 2; i++) {
		if (r[i] != 1)
			continue;
		lane[i] = lane_of(x, e[i].rank);
		check_sequence(x, x->lane[lane[i]], i, &e[i]);
	}
	if (r[0] == 1 && r[1] == 1 && u128_same(e[0].key, e[1].key) &&
	    e[0].form == e[1].form && u128_same(e[0].value, e[1].value)) {
		pair(x, x->lane[lane[0]], &e[0], &e[1]);
		return;
	}
	for (int i = 0; i < 2; i++)
		if (r[i] == 1)
			push(x, lane[i], i, &e[i]);
}

/*
 * Behind an insertion every seq is another; the rest of the line is the same.
 * False: it is not, or has to be looked at more closely.
 */
static bool
read_shifted(struct exec *x, struct str la, struct str lb)
{
	struct entry a, b;
	struct fp_u64 seq;
	if (x->report->s->map || !twin_but_seq(la, lb, &seq))
		return false;
	int r = side_twin_entry(x->side[ALIGN_A], la, &a);
	if (r < 0)
		side_same_bad(x->side[ALIGN_B]);
	if (r != 1)
		return true;
	size_t lane = lane_of(x, a.rank);
	b = a;
	b.seq = seq;
	check_sequence(x, x->lane[lane], ALIGN_A, &a);
	check_sequence(x, x->lane[lane], ALIGN_B, &b);
	pair(x, x->lane[lane], &a, &b);
	return true;
}

/* Both sides are in step: nothing is held back. */
static void
read_both(struct exec *x)
{
	struct str la, lb;
	bool ga = side_line(x->side[ALIGN_A], &la);
	if (ga && !x->report->s->map &&
	    side_twin(x->side[ALIGN_B], x->side[ALIGN_A], la)) {
		read_twins(x, la);
		return;
	}
	bool gb = side_line(x->side[ALIGN_B], &lb);
	if (!ga)
		close_side(x, ALIGN_A);
	if (!gb)
		close_side(x, ALIGN_B);
	if (ga && gb && !x->report->s->map && str_same(la, lb)) {
		read_twins(x, la);
	} else if (ga && gb) {
		if (!read_shifted(x, la, lb))
			read_two(x, la, lb);
	} else if (ga || gb) {
		struct fp f;
		struct entry e;
		int side = ga ? ALIGN_A : ALIGN_B;
		if (side_entry(x->side[side], ga ? la : lb, &f, &e) != 1)
			return;
		size_t lane = lane_of(x, e.rank);
		check_sequence(x, x->lane[lane], side, &e);
		push(x, lane, side, &e);
	}
}

/*
 * Both sides are stuck at a full window. Lets go of a lane whose other side
 * went on to another part of its input, if there is one.
 */
static void
give_up(struct exec *x)
{
	size_t lane = SIZE_MAX;
	int which = ALIGN_A;
	for (size_t i = 0; i < x->nlanes; i++)
		for (int side = 0; side < 2; side++) {
			if (!align_lane_blocked(x->align, i, side))
				continue;
			const struct lane *l = x->lane[i];
			bool over =
			    l->last_part[!side] &&
			    l->last_part[!side] < side_part(x->side[!side]);
			if (lane != SIZE_MAX && !over)
				continue;
			lane = i;
			which = side;
			if (over)
				break;
		}
	struct err e;
	if (align_give_up(x->align, lane, which, &e))
		cli_die("%s", e.msg);
}

static void
read_some(struct exec *x)
{
	size_t pa = align_pending(x->align, ALIGN_A);
	size_t pb = align_pending(x->align, ALIGN_B);
	bool ba = align_blocked(x->align, ALIGN_A);
	bool bb = align_blocked(x->align, ALIGN_B);
	if (!pa && !pb && !x->ended[ALIGN_A] && !x->ended[ALIGN_B])
		read_both(x);
	else if (ba && bb)
		give_up(x);
	else if (x->ended[ALIGN_A] || ba)
		read_one(x, ALIGN_B);
	else if (x->ended[ALIGN_B] || bb)
		read_one(x, ALIGN_A);
	else
		read_one(x, pa <= pb ? ALIGN_A : ALIGN_B);
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
print_prefix(struct exec *x, struct lane *l)
{
	end_prefix(l);
	struct rec_out *o = x->report->out;
	rec_begin(o, "prefix");
	if (l->rank.p)
		rec_str(o, "rank", l->rank);
	rec_u64(o, "records", l->prefix);
	struct fp f;
	if (l->prefix) {
		struct str raw = { l->certified.raw, l->certified.len };
		entry_parse(
		    raw, &f, &x->rec, buf_room(&x->undone, raw.len + 1));
		if (f.place[FP_STEP].p)
			rec_str(o, "step", f.place[FP_STEP]);
		rec_str(o, "name", f.name);
		if (f.place[FP_IO].p)
			rec_str(o, "io", f.place[FP_IO]);
	}
	if (l->a) {
		entry_parse(l->a->raw, &f, &x->rec,
		    buf_room(&x->undone, l->a->raw.len + 1));
		rec_str(o, "next", f.name);
	}
	rec_end(o);
}

static void
print_near(struct exec *x, const struct lane *l)
{
	size_t n = l->nbefore < BEFORE ? l->nbefore : BEFORE;
	for (size_t i = 0; i < n; i++) {
		const struct near *k =
		    &l->before[(l->nbefore - n + i) % BEFORE];
		report_near(x->report, (int)i - (int)n,
		    (struct str){ k->raw, k->len }, relation_name[k->relation]);
	}
	for (size_t i = 0; i < l->nafter; i++)
		report_near(x->report, (int)i + 1,
		    (struct str){ l->after[i].raw, l->after[i].len },
		    relation_name[l->after[i].relation]);
}

static void
print_lanes(struct exec *x, struct lane **lane)
{
	bool all = x->report->s->common.verbose;
	size_t n = all || x->nlanes < PREFIXES ? x->nlanes : PREFIXES;
	for (size_t i = 0; i < n; i++)
		print_prefix(x, lane[i]);
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
	print_near(x, l);
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
	memcpy(sorted, x->lane, x->nlanes * sizeof *sorted);
	qsort(sorted, x->nlanes, sizeof *sorted, by_step);
	if (ordered)
		print_lanes(x, sorted);
	else
		forget_order(x);
	print_alone(x);
	report_counts(x->report);
	struct outcome o = { .prefix_given = ordered };
	for (size_t i = 0; i < x->nlanes; i++)
		o.prefix += sorted[i]->prefix;
	if (ordered && x->nlanes && sorted[0]->a) {
		o.a = sorted[0]->a;
		o.b = sorted[0]->b;
		o.prefix = sorted[0]->prefix;
	}
	int status = judge(
	    x->report, x->side[ALIGN_A], x->side[ALIGN_B], &x->judged, &o);
	report_verdict(x->report, &o);
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
	while (!(x->stop && !x->no_sequence) &&
	       !(x->ended[ALIGN_A] && x->ended[ALIGN_B]))
		read_some(x);
	finish(x);
	return x;
}

static void
exec_free(struct exec *x)
{
	for (size_t i = 0; i < x->nlanes; i++)
		free_lane(x->lane[i]);
	free(x->lane);
	free(x->alone[0]);
	free(x->alone[1]);
	map_free(&x->ranks);
	align_free(x->align);
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
	int status = judge(r, a, b, &x->judged, o);
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
	return status;
}
