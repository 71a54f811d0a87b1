/*
 * Reading two streams in step: as long as both have the same lines nothing is
 * held back, and a line that both have is read once. Behind a difference the
 * side that holds less is read, until alignment lets the records go.
 */
#include "exec.h"

#include "follow.h"

static void
check_sequence(struct exec *x, struct lane *l, int side, const struct entry *e)
{
	uint64_t part = side_part(x->side[side]);
	enum lane_order order = lane_sequence(l, side, part, e);
	x->no_sequence |= order == LANE_STEP_RISES || order == LANE_STEP_FALLS;
	x->judged.sequence_fell |= order == LANE_FALLS;
	x->judged.order_broken |=
	    order == LANE_FALLS || order == LANE_STEP_FALLS;
}

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
	seen_add(x->seen, side, e);
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
	size_t lane = exec_lane(x, e.rank);
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
	size_t lane = exec_lane(x, e.rank);
	struct lane *l = x->lane[lane];
	check_sequence(x, l, ALIGN_A, &e);
	check_sequence(x, l, ALIGN_B, &e);
	exec_pair(x, l, &e, &e);
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
		lane[i] = exec_lane(x, e[i].rank);
		check_sequence(x, x->lane[lane[i]], i, &e[i]);
	}
	if (r[0] == 1 && r[1] == 1 && u128_same(e[0].key, e[1].key) &&
	    e[0].form == e[1].form && u128_same(e[0].value, e[1].value)) {
		exec_pair(x, x->lane[lane[0]], &e[0], &e[1]);
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
	size_t lane = exec_lane(x, a.rank);
	b = a;
	b.seq = seq;
	check_sequence(x, x->lane[lane], ALIGN_A, &a);
	check_sequence(x, x->lane[lane], ALIGN_B, &b);
	exec_pair(x, x->lane[lane], &a, &b);
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
		size_t lane = exec_lane(x, e.rank);
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

void
lockstep_read(struct exec *x)
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
