/* Alignment of two streams, lane by lane: see align.h. */
#include "align.h"

#include <stdlib.h>
#include <string.h>

/*
 * A short look ahead is enough where one item was inserted; it doubles until
 * the window. RUN equal pairs in a row say that the streams are in step again.
 */
enum { LOOK = 64, RUN = 8 };

/* A queue: item[at..at + n). */
struct side {
	struct align_item *item;
	size_t at, n, cap;
	bool closed;  /* nothing more will come */
	bool gave_up; /* the other side's items were let go */
};

struct lane {
	struct side side[2];
	size_t want; /* items on both sides before the next alignment */
};

struct align {
	size_t window;
	align_event *event;
	void *user;
	struct lane *lane;
	size_t nlanes, lanes_cap;
	size_t pending[2];
	size_t blocked[2]; /* lanes full on this side, empty on the other */
	uint64_t late, exhausted;
	struct align_work work;
	size_t *pair;
	size_t pair_cap;
};

int
align_new(struct align **out, size_t window, align_event *event, void *user,
    struct err *e)
{
	struct align *al = calloc(1, sizeof *al);
	if (!al)
		return err_mem(e);
	al->window = window < ALIGN_WINDOW_MIN   ? ALIGN_WINDOW_MIN
		     : window > ALIGN_WINDOW_MAX ? ALIGN_WINDOW_MAX
						 : window;
	al->event = event;
	al->user = user;
	*out = al;
	return 0;
}

void
align_free(struct align *al)
{
	if (!al)
		return;
	for (size_t i = 0; i < al->nlanes; i++) {
		free(al->lane[i].side[0].item);
		free(al->lane[i].side[1].item);
	}
	free(al->lane);
	free(al->pair);
	align_work_free(&al->work);
	free(al);
}

size_t
align_pending(const struct align *al, int side)
{
	return al->pending[side];
}

bool
align_blocked(const struct align *al, int side)
{
	return al->blocked[side] > 0;
}

uint64_t
align_late(const struct align *al)
{
	return al->late;
}

uint64_t
align_exhausted(const struct align *al)
{
	return al->exhausted;
}

/* Half a window on the other side is enough to go on. */
static bool
is_blocked(const struct align *al, const struct lane *l, int side)
{
	return l->side[side].n >= al->window &&
	       l->side[!side].n < al->window / 2 && !l->side[!side].closed;
}

bool
align_lane_blocked(const struct align *al, size_t lane, int side)
{
	return lane < al->nlanes && is_blocked(al, &al->lane[lane], side);
}

/* ---- queues ---------------------------------------------------------- */

static int
enqueue(struct side *s, const struct align_item *item, struct err *e)
{
	if (s->at + s->n == s->cap && s->at >= s->n) {
		if (s->n)
			memcpy(
			    s->item, s->item + s->at, s->n * sizeof *s->item);
		s->at = 0;
	}
	if (s->at + s->n == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 16;
		struct align_item *p = realloc(s->item, cap * sizeof *s->item);
		if (!p)
			return err_mem(e);
		s->item = p;
		s->cap = cap;
	}
	s->item[s->at + s->n++] = *item;
	return 0;
}

static struct align_item *
front(struct side *s)
{
	return s->item + s->at;
}

static void
drop(struct align *al, struct lane *l, int side, size_t n)
{
	l->side[side].at += n;
	l->side[side].n -= n;
	al->pending[side] -= n;
	if (!l->side[side].n)
		l->side[side].at = 0;
}

/* ---- letting go -------------------------------------------------------- */

/* The first n items of one side go unpaired. */
static int
alone(struct align *al, struct lane *l, int side, size_t n, struct err *e)
{
	size_t id = (size_t)(l - al->lane);
	struct align_item *p = front(&l->side[side]);
	int r = 0;
	for (size_t i = 0; i < n && !r; i++)
		r = side == ALIGN_A ? al->event(al->user, id, &p[i], NULL, e)
				    : al->event(al->user, id, NULL, &p[i], e);
	drop(al, l, side, n);
	return r;
}

/* a[0..na) and b[0..nb) as al->pair says; the unpaired of a come first. */
static int
settle(struct align *al, struct lane *l, size_t na, size_t nb, struct err *e)
{
	size_t id = (size_t)(l - al->lane), j = 0;
	struct align_item *a = front(&l->side[ALIGN_A]);
	struct align_item *b = front(&l->side[ALIGN_B]);
	int r = 0;
	for (size_t i = 0; i < na && !r; i++) {
		size_t to = al->pair[i];
		if (to == ALIGN_NONE || to >= nb) {
			r = al->event(al->user, id, &a[i], NULL, e);
			continue;
		}
		for (; j < to && !r; j++)
			r = al->event(al->user, id, NULL, &b[j], e);
		if (!r)
			r = al->event(al->user, id, &a[i], &b[j++], e);
	}
	for (; j < nb && !r; j++)
		r = al->event(al->user, id, NULL, &b[j], e);
	drop(al, l, ALIGN_A, na);
	drop(al, l, ALIGN_B, nb);
	return r;
}

/* ---- how much of a window can be settled ------------------------------- */

static bool
same(const struct align_item *x, const struct align_item *y)
{
	return x->key == y->key && x->form == y->form && x->value == y->value;
}

/* Behind the last run of RUN equal pairs; 0: there is none. */
static size_t
in_step(const struct align_item *a, size_t na, const struct align_item *b,
    const size_t *pair)
{
	size_t run = 0, end = 0;
	for (size_t i = 0; i < na; i++) {
		bool next = pair[i] != ALIGN_NONE && same(&a[i], &b[pair[i]]);
		bool joined = run && next && pair[i] == pair[i - 1] + 1;
		run = joined ? run + 1 : next;
		if (run >= RUN)
			end = i + 1;
	}
	return end;
}

/*
 * Of a full window the last quarter is kept back: what follows may change it.
 * Behind the last pair within three quarters of both sides, or 0.
 */
static size_t
safe(size_t na, size_t nb, const size_t *pair)
{
	size_t end = 0;
	for (size_t i = 0; i < na - na / 4; i++)
		if (pair[i] != ALIGN_NONE && pair[i] < nb - nb / 4)
			end = i + 1;
	return end;
}

static int
room_for_pairs(struct align *al, size_t n, struct err *e)
{
	if (n <= al->pair_cap)
		return 0;
	free(al->pair);
	al->pair_cap = 0;
	al->pair = malloc(n * sizeof *al->pair);
	if (!al->pair)
		return err_mem(e);
	al->pair_cap = n;
	return 0;
}

/*
 * Aligns the first na and nb items. With `all` every one of them is settled,
 * else as many as the rules above allow.
 */
static int
align_some(struct align *al, struct lane *l, size_t na, size_t nb, bool all,
    bool full, struct err *e)
{
	struct align_item *a = front(&l->side[ALIGN_A]);
	struct align_item *b = front(&l->side[ALIGN_B]);
	int r = room_for_pairs(al, na, e);
	if (!r)
		r = align_window(&al->work, a, na, b, nb, al->pair, e);
	if (r)
		return r;
	if (all)
		return settle(al, l, na, nb, e);
	size_t end = in_step(a, na, b, al->pair);
	if (end) {
		l->want = LOOK;
		return settle(al, l, end, al->pair[end - 1] + 1, e);
	}
	if (!full) {
		l->want *= 2;
		return 0;
	}
	end = safe(na, nb, al->pair);
	if (end)
		return settle(al, l, end, al->pair[end - 1] + 1, e);
	al->exhausted++;
	for (size_t i = 0; i < na; i++)
		al->pair[i] = ALIGN_NONE;
	return settle(al, l, (na + 1) / 2, (nb + 1) / 2, e);
}

/* Equal items at both fronts are a pair in some best alignment. */
static int
in_lockstep(struct align *al, struct lane *l, struct err *e)
{
	struct side *sa = &l->side[ALIGN_A], *sb = &l->side[ALIGN_B];
	size_t id = (size_t)(l - al->lane);
	int r = 0;
	while (!r && sa->n && sb->n && same(front(sa), front(sb))) {
		r = al->event(al->user, id, front(sa), front(sb), e);
		drop(al, l, ALIGN_A, 1);
		drop(al, l, ALIGN_B, 1);
	}
	return r;
}

static int
advance(struct align *al, struct lane *l, struct err *e)
{
	struct side *sa = &l->side[ALIGN_A], *sb = &l->side[ALIGN_B];
	int r = in_lockstep(al, l, e);
	while (!r && sa->n && sb->n) {
		size_t least = sa->n < sb->n ? sa->n : sb->n;
		size_t most = sa->n < sb->n ? sb->n : sa->n;
		size_t before = sa->n + sb->n;
		bool full = most >= al->window && !is_blocked(al, l, ALIGN_A) &&
			    !is_blocked(al, l, ALIGN_B);
		bool ended = sa->closed && sb->closed;
		if (ended && most <= al->window)
			r = align_some(al, l, sa->n, sb->n, true, true, e);
		else if (full || ended)
			r = align_some(al, l, sa->n, sb->n, false, true, e);
		else if (least >= l->want)
			r = align_some(
			    al, l, l->want, l->want, false, false, e);
		if (!r && sa->n + sb->n < before) {
			r = in_lockstep(al, l, e);
			continue;
		}
		if (least < l->want || full)
			break;
	}
	for (int side = 0; side < 2 && !r; side++)
		if (l->side[!side].closed && !l->side[!side].n)
			r = alone(al, l, side, l->side[side].n, e);
	return r;
}

/* ---- the interface ----------------------------------------------------- */

static int
lane_of(struct align *al, size_t id, struct lane **out, struct err *e)
{
	if (id >= al->lanes_cap) {
		size_t cap = al->lanes_cap ? al->lanes_cap : 4;
		while (cap <= id)
			cap *= 2;
		struct lane *p = realloc(al->lane, cap * sizeof *p);
		if (!p)
			return err_mem(e);
		memset(p + al->lanes_cap, 0, (cap - al->lanes_cap) * sizeof *p);
		for (size_t i = al->lanes_cap; i < cap; i++)
			p[i].want = LOOK;
		al->lane = p;
		al->lanes_cap = cap;
	}
	if (id >= al->nlanes)
		al->nlanes = id + 1;
	*out = &al->lane[id];
	return 0;
}

static int
work_on(struct align *al, struct lane *l, struct err *e)
{
	int r = 0;
	if (l->side[ALIGN_A].n || l->side[ALIGN_B].n)
		r = advance(al, l, e);
	return r;
}

/* Blocked lanes are counted around every change of a lane. */
static void
count_blocked(struct align *al, const struct lane *l, int by)
{
	for (int side = 0; side < 2; side++)
		if (is_blocked(al, l, side))
			al->blocked[side] += (size_t)by;
}

int
align_push(struct align *al, size_t id, int side, const struct align_item *item,
    struct err *e)
{
	struct lane *l;
	int r = lane_of(al, id, &l, e);
	if (r)
		return r;
	if (l->side[side].gave_up)
		al->late++;
	count_blocked(al, l, -1);
	r = enqueue(&l->side[side], item, e);
	if (!r) {
		al->pending[side]++;
		r = work_on(al, l, e);
	}
	count_blocked(al, l, 1);
	return r;
}

int
align_close(struct align *al, size_t id, int side, struct err *e)
{
	struct lane *l;
	int r = lane_of(al, id, &l, e);
	if (r)
		return r;
	count_blocked(al, l, -1);
	l->side[side].closed = true;
	r = work_on(al, l, e);
	count_blocked(al, l, 1);
	return r;
}

int
align_finish(struct align *al, struct err *e)
{
	int r = 0;
	for (size_t i = 0; i < al->nlanes && !r; i++) {
		r = align_close(al, i, ALIGN_A, e);
		if (!r)
			r = align_close(al, i, ALIGN_B, e);
	}
	return r;
}

int
align_give_up(struct align *al, size_t id, int side, struct err *e)
{
	struct lane *l;
	int r = lane_of(al, id, &l, e);
	if (r)
		return r;
	count_blocked(al, l, -1);
	if (!l->side[!side].n) {
		l->side[!side].gave_up = true;
		r = alone(al, l, side, l->side[side].n, e);
	} else {
		r = align_some(al, l, l->side[ALIGN_A].n, l->side[ALIGN_B].n,
		    false, true, e);
		if (!r)
			r = advance(al, l, e);
	}
	count_blocked(al, l, 1);
	return r;
}
