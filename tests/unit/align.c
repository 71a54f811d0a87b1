/* Alignment against brute force, and the cases that must come out right. */
#include "align.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { MAX = 4096 };

static uint64_t rng = 88172645463325252u;

static unsigned
rnd(unsigned n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (unsigned)(rng >> 33) % n;
}

static uint64_t
worth(const struct align_item *x, const struct align_item *y)
{
	if (x->key != y->key)
		return 0;
	if (x->form != y->form)
		return UINT64_C(1) << 40;
	return (UINT64_C(1) << 40) + (1 << 20) + (x->value == y->value);
}

/* The best score there is, by the plain programme. */
static uint64_t
best(const struct align_item *a, size_t na, const struct align_item *b,
    size_t nb)
{
	static uint64_t s[128][128];
	for (size_t i = 0; i <= na; i++)
		for (size_t j = 0; j <= nb; j++) {
			uint64_t v = 0;
			if (i && s[i - 1][j] > v)
				v = s[i - 1][j];
			if (j && s[i][j - 1] > v)
				v = s[i][j - 1];
			if (i && j) {
				uint64_t d = s[i - 1][j - 1] +
					     worth(&a[i - 1], &b[j - 1]);
				v = d > v ? d : v;
			}
			s[i][j] = i && j ? v : 0;
		}
	return s[na][nb];
}

static uint64_t
score(const struct align_item *a, size_t na, const struct align_item *b,
    const size_t *pair)
{
	uint64_t s = 0;
	for (size_t i = 0; i < na; i++)
		if (pair[i] != ALIGN_NONE)
			s += worth(&a[i], &b[pair[i]]);
	return s;
}

static int
is_valid(const struct align_item *a, size_t na, const struct align_item *b,
    size_t nb, const size_t *pair)
{
	size_t next = 0;
	for (size_t i = 0; i < na; i++) {
		if (pair[i] == ALIGN_NONE)
			continue;
		if (pair[i] < next || pair[i] >= nb ||
		    a[i].key != b[pair[i]].key)
			return 0;
		next = pair[i] + 1;
	}
	return 1;
}

/* Few keys, few values: everything repeats, everything is ambiguous. */
static void
test_random(void)
{
	struct align_work w = { 0 };
	int short_of = 0, wrong = 0, fewer = 0;
	for (int round = 0; round < 4000; round++) {
		struct align_item a[100], b[100];
		size_t pair[100], na = rnd(60), nb = rnd(60);
		unsigned keys = 1 + rnd(30), values = 1 + rnd(4);
		for (size_t i = 0; i < na; i++)
			a[i] = (struct align_item){ rnd(keys), rnd(2),
				rnd(values), NULL };
		for (size_t i = 0; i < nb; i++)
			b[i] = (struct align_item){ rnd(keys), rnd(2),
				rnd(values), NULL };
		CHECK(!align_window(&w, a, na, b, nb, pair, NULL));
		wrong += !is_valid(a, na, b, nb, pair);
		uint64_t got = score(a, na, b, pair), max = best(a, na, b, nb);
		short_of += got < max;
		fewer += got >> 40 < max >> 40;
	}
	CHECK(wrong == 0);
	CHECK(fewer == 0);
	CHECK(short_of == 0);
	align_work_free(&w);
}

/* Mutations of one sequence, as two runs of one program are. */
static void
test_edits(void)
{
	struct align_work w = { 0 };
	int fewer = 0, wrong = 0;
	for (int round = 0; round < 2000; round++) {
		struct align_item a[120], b[120];
		size_t pair[120], na = 40 + rnd(60), nb = 0;
		unsigned keys = 3 + rnd(40);
		for (size_t i = 0; i < na; i++)
			a[i] = (struct align_item){ i % keys, 0, i, NULL };
		for (size_t i = 0; i < na; i++) {
			unsigned what = rnd(20);
			if (what == 0)
				continue;
			if (what == 1 && nb < 110)
				b[nb++] = (struct align_item){ rnd(keys), 0,
					1000 + i, NULL };
			b[nb] = a[i];
			if (what == 2)
				b[nb].value = 2000 + i;
			nb++;
		}
		CHECK(!align_window(&w, a, na, b, nb, pair, NULL));
		wrong += !is_valid(a, na, b, nb, pair);
		fewer += score(a, na, b, pair) < best(a, na, b, nb);
	}
	CHECK(wrong == 0);
	CHECK(fewer == 0);
	align_work_free(&w);
}

/* One insertion among repeated keys costs one item, wherever it stands. */
static void
test_insertion(void)
{
	static struct align_item a[2000], b[2001];
	static size_t pair[2000];
	struct align_work w = { 0 };
	for (size_t at = 0; at <= 2000; at += 250) {
		size_t nb = 0, lost = 0, equal = 0;
		for (size_t i = 0; i < 2000; i++) {
			a[i] = (struct align_item){ i % 40, 0, i + 7, NULL };
			if (i == at)
				b[nb++] = (struct align_item){ 3, 0, 1, NULL };
			b[nb++] = a[i];
		}
		CHECK(!align_window(&w, a, 2000, b, nb, pair, NULL));
		for (size_t i = 0; i < 2000; i++) {
			lost += pair[i] == ALIGN_NONE;
			equal += pair[i] != ALIGN_NONE &&
				 b[pair[i]].value == a[i].value;
		}
		CHECK(lost == 0 && equal == 2000);
	}
	align_work_free(&w);
}

/* A shift by whole periods, beyond the first band. */
static void
test_block(void)
{
	static struct align_item a[1000], b[1400];
	static size_t pair[1000];
	struct align_work w = { 0 };
	size_t nb = 0, equal = 0;
	for (size_t i = 0; i < 1000; i++) {
		a[i] = (struct align_item){ i % 40, 0, i + 7, NULL };
		if (i == 300)
			for (size_t k = 0; k < 400; k++)
				b[nb++] = (struct align_item){ k % 40, 0,
					5000 + k, NULL };
		b[nb++] = a[i];
	}
	CHECK(!align_window(&w, a, 1000, b, nb, pair, NULL));
	for (size_t i = 0; i < 1000; i++)
		equal +=
		    pair[i] != ALIGN_NONE && b[pair[i]].value == a[i].value;
	CHECK(equal == 1000);
	align_work_free(&w);
}

/* A unique key that moved across a run of repeated ones is not an anchor. */
static void
test_moved(void)
{
	struct align_item a[9], b[9];
	size_t pair[9], pairs = 0;
	struct align_work w = { 0 };
	for (size_t i = 0; i < 9; i++) {
		a[i] = (struct align_item){ i ? 1 : 99, 0, i, NULL };
		b[i] = (struct align_item){ i < 8 ? 1 : 99, 0, i + 1, NULL };
	}
	CHECK(!align_window(&w, a, 9, b, 9, pair, NULL));
	for (size_t i = 0; i < 9; i++)
		pairs += pair[i] != ALIGN_NONE;
	CHECK(pairs == 8);
	align_work_free(&w);
}

/* ---- streams ----------------------------------------------------------- */

struct seen {
	size_t pairs, equal, alone[2], wrong;
	size_t next[4][2];
};

static int
count(void *user, size_t lane, const struct align_item *a,
    const struct align_item *b, struct err *e)
{
	struct seen *s = user;
	const struct align_item *item[2] = { a, b };
	s->pairs += a && b;
	s->equal += a && b && a->value == b->value;
	s->alone[0] += !b;
	s->alone[1] += !a;
	s->wrong += a && b && a->key != b->key;
	for (int i = 0; i < 2; i++) {
		if (!item[i])
			continue;
		/* In order, each exactly once. */
		size_t id = (size_t)(uintptr_t)item[i]->ref;
		s->wrong += id != s->next[lane][i]++;
	}
	return 0;
}

static int
push(struct align *al, size_t lane, int side, size_t n, uint64_t key,
    uint64_t value)
{
	struct align_item it = { key, 0, value, (void *)(uintptr_t)n };
	return align_push(al, lane, side, &it, NULL);
}

/* 20,000 items, every hundredth missing on one side, in two lanes. */
static void
test_stream(unsigned period)
{
	struct seen s = { 0 };
	struct align *al;
	size_t n[2][2] = { { 0 } }, missing[2] = { 0 };
	CHECK(!align_new(&al, 256, count, &s, NULL));
	size_t most = 0;
	for (size_t i = 0; i < 20000; i++) {
		size_t lane = i & 1;
		unsigned what = rnd(200);
		for (int side = 0; side < 2; side++) {
			if (what == (unsigned)side) {
				missing[side]++;
				continue;
			}
			CHECK(!push(al, lane, side, n[lane][side]++,
			    period ? i % period : i, i));
		}
		if (align_pending(al, 0) > most)
			most = align_pending(al, 0);
	}
	CHECK(!align_finish(al, NULL));
	CHECK(s.wrong == 0);
	CHECK(s.alone[1] == missing[0] && s.alone[0] == missing[1]);
	CHECK(s.equal == s.pairs);
	CHECK(s.pairs == 20000 - missing[0] - missing[1]);
	CHECK(most <= 2 * 256);
	CHECK(align_pending(al, 0) == 0 && align_pending(al, 1) == 0);
	CHECK(align_late(al) == 0 && align_exhausted(al) == 0);
	align_free(al);
}

/* A lane that one side never has blocks until it is given up. */
static void
test_one_sided(void)
{
	struct seen s = { 0 };
	struct align *al;
	CHECK(!align_new(&al, 64, count, &s, NULL));
	for (size_t i = 0; i < 64; i++) {
		CHECK(!align_blocked(al, ALIGN_A));
		CHECK(!push(al, 0, ALIGN_A, i, i, i));
	}
	CHECK(align_blocked(al, ALIGN_A) && !align_blocked(al, ALIGN_B));
	CHECK(align_lane_blocked(al, 0, ALIGN_A));
	CHECK(!align_lane_blocked(al, 1, ALIGN_A));
	CHECK(!align_give_up(al, 0, ALIGN_A, NULL));
	CHECK(!align_blocked(al, ALIGN_A) && s.alone[0] == 64);
	CHECK(align_late(al) == 0);
	CHECK(!push(al, 0, ALIGN_B, 0, 5, 5));
	CHECK(align_late(al) == 1);
	CHECK(!align_finish(al, NULL));
	CHECK(s.alone[1] == 1 && s.wrong == 0);
	align_free(al);
}

/* Every value differs and keys are unique: pairs all the same. */
static void
test_all_different(void)
{
	struct seen s = { 0 };
	struct align *al;
	CHECK(!align_new(&al, 256, count, &s, NULL));
	for (size_t i = 0; i < 5000; i++)
		for (int side = 0; side < 2; side++)
			CHECK(!push(al, 0, side, i, i, i + (side ? 1 : 0)));
	CHECK(!align_finish(al, NULL));
	CHECK(s.pairs == 5000 && s.equal == 0 && s.wrong == 0);
	align_free(al);
}

int
main(void)
{
	test_random();
	test_edits();
	test_insertion();
	test_block();
	test_moved();
	test_stream(0);
	test_stream(40);
	test_one_sided();
	test_all_different();
	return test_done("align");
}
