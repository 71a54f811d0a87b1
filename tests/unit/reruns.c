/*
 * The table of reruns: for every row, cases that are made to belong to it, and
 * worlds with a known truth in which nothing innocent may be blamed.
 */
#include "reruns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { DEVICES = 32, RUNS = 24, CASES = 40, WORLD_RUNS = 10000 };

static uint64_t seed = 1;

static unsigned
rnd(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 33) % n;
}

static bool
chance(double p)
{
	return rnd(1000000) < p * 1e6;
}

/* ---- a table under construction ---------------------------------------- */

struct table {
	struct rerun ref[4], run[RUNS];
	size_t nrefs, n;
	size_t list[(4 + RUNS) * 3][DEVICES];
	size_t lists;
	size_t ndevices;
	bool agree;
};

static void
table_new(struct table *t)
{
	t->nrefs = t->n = t->lists = t->ndevices = 0;
	t->agree = true;
}

static struct rerun_devices
devices(struct table *t, size_t from, size_t n)
{
	size_t *l = t->list[t->lists++];
	for (size_t i = 0; i < n; i++)
		l[i] = from + i;
	if (from + n > t->ndevices)
		t->ndevices = from + n;
	return (struct rerun_devices){ l, n };
}

static void
add_ref(struct table *t, size_t from, size_t n)
{
	t->ref[t->nrefs++] = (struct rerun){ .used = devices(t, from, n) };
}

static struct rerun *
add_clean(struct table *t, size_t from, size_t n)
{
	struct rerun *r = &t->run[t->n++];
	*r = (struct rerun){ .used = devices(t, from, n) };
	return r;
}

static struct u128
id(uint64_t v)
{
	return (struct u128){ v, v * 77 };
}

/* A run on from..from+n-1 whose root is on `dev`, which holds `rank`. */
static struct rerun *
add_bad(struct table *t, size_t from, size_t n, size_t dev, uint64_t rank,
    uint64_t boundary, uint64_t step, uint64_t hash)
{
	struct rerun *r = add_clean(t, from, n);
	r->diverged = true;
	r->ran = r->used;
	r->roots = devices(t, dev, 1);
	r->rank = rank;
	r->boundary = id(boundary);
	r->step = id(step);
	r->hash = id(hash);
	return r;
}

static struct rerun_verdict
judge(const struct table *t)
{
	size_t set[DEVICES];
	struct rerun_verdict v;
	struct reruns r = { t->ref, t->run, t->nrefs, t->n, t->agree,
		t->ndevices, RERUNS_ALPHA };
	CHECK(!reruns_judge(&r, set, &v, NULL));
	return v;
}

/* ---- a case for every row ---------------------------------------------- */

/* References on two sets of 4: 0-3 and 4-7. */
static void
two_sets(struct table *t)
{
	add_ref(t, 0, 4);
	add_ref(t, 4, 4);
}

static void
make_unstable(struct table *t)
{
	two_sets(t);
	t->agree = false;
	unsigned n = 1 + rnd(6);
	for (unsigned i = 0; i < n; i++)
		if (rnd(2))
			add_clean(t, rnd(2) * 4, 4);
		else
			add_bad(t, 0, 4, rnd(4), 0, rnd(3), rnd(9), rnd(9));
}

static void
make_same(struct table *t)
{
	add_ref(t, 0, 4);
	unsigned n = 1 + rnd(20);
	for (unsigned i = 0; i < n; i++)
		add_clean(t, rnd(2) * 4, rnd(2) ? 4 : 0);
}

static void
make_no_devices(struct table *t)
{
	two_sets(t);
	unsigned n = rnd(6);
	for (unsigned i = 0; i < n; i++)
		add_bad(t, 0, 4, rnd(4), 0, 1, rnd(9), rnd(9));
	add_bad(t, 0, 4, rnd(4), 0, 1, 2, 3)->used.n = 0;
}

static void
make_suspect(struct table *t)
{
	/* Bits from one set, and another that never agrees with it. */
	add_ref(t, 0, 4);
	if (rnd(2))
		add_ref(t, 0, 4);
	unsigned n = 1 + rnd(8);
	for (unsigned i = 0; i < n; i++)
		add_bad(t, 4, 4, 4 + rnd(4), 0, 1, 7, rnd(2));
	if (rnd(2))
		add_clean(t, 0, 4);
}

static void
make_thin_one(struct table *t)
{
	two_sets(t);
	unsigned n = rnd(10);
	for (unsigned i = 0; i < n; i++)
		add_clean(t, rnd(2) * 4, 4);
	add_bad(t, rnd(2) * 4, 4, 0, 0, 1, 2, 3)->roots.n = 1;
}

static void
make_code(struct table *t)
{
	two_sets(t);
	uint64_t boundary = rnd(9), step = rnd(99), hash = rnd(999);
	unsigned n = 2 + rnd(8);
	for (unsigned i = 0; i < n; i++) {
		size_t from = i ? rnd(2) * 4 : 0;
		from = i == 1 ? 4 : from;
		add_bad(
		    t, from, 4, from + rnd(4), rnd(4), boundary, step, hash);
	}
}

static void
make_race(struct table *t)
{
	two_sets(t);
	for (size_t d = 0; d < 3; d++)
		add_bad(t, d / 2 * 4, 4, d / 2 * 4 + d % 2, 0, 5, rnd(99),
		    d + 10 * rnd(9));
	add_clean(t, 0, 4);
	add_clean(t, 4, 4);
	unsigned n = rnd(8);
	for (unsigned i = 0; i < n; i++)
		if (rnd(2))
			add_clean(t, rnd(2) * 4, 4);
		else
			add_bad(t, 0, 4, rnd(4), 0, 5, rnd(99), rnd(9));
}

static void
make_race_or_device(struct table *t)
{
	/* Two devices that diverge, one in each set; or nothing clean. */
	two_sets(t);
	bool clean = rnd(2);
	add_bad(t, 0, 4, 0, 0, 5, 1, 1);
	add_bad(t, 4, 4, 4, 0, 5, 2, 2);
	unsigned n = rnd(8);
	for (unsigned i = 0; i < n; i++)
		if (clean)
			add_clean(t, rnd(2) * 4, 4);
		else
			add_bad(t, 0, 4, rnd(4), 0, 5, rnd(99), rnd(9));
}

static void
make_nondeterministic(struct table *t)
{
	two_sets(t);
	add_bad(t, 0, 4, 0, 0, 5, 1, 1);
	add_bad(t, 4, 4, 4, 0, 6, 2, 2);
	unsigned n = rnd(8);
	for (unsigned i = 0; i < n; i++)
		add_bad(t, 0, 4, rnd(4), 0, rnd(4), rnd(99), rnd(9));
}

static void
make_device(struct table *t)
{
	bool second = rnd(2);
	if (second)
		two_sets(t);
	else {
		add_ref(t, 0, 4);
		add_ref(t, 0, 4);
	}
	size_t dev = rnd(4);
	unsigned k = 6 + rnd(4); /* 4^-5 < 1e-3 */
	for (unsigned i = 0; i < k; i++)
		add_bad(t, 0, 4, dev, i % 4, rnd(3), i, i);
	unsigned clean = rnd(4);
	for (unsigned i = 0; i < clean; i++)
		add_clean(t, second ? rnd(2) * 4 : 0, 4);
}

static void
make_set(struct table *t)
{
	two_sets(t);
	/* 2 * (1/2)^k <= 1e-3: k = 11. */
	for (unsigned i = 0; i < 11; i++) {
		add_bad(t, 0, 4, rnd(4), 0, rnd(2), rnd(99), rnd(9));
		add_clean(t, 4, 4);
	}
	t->run[0].roots.id = t->list[t->lists++];
	((size_t *)t->run[0].roots.id)[0] = 0;
	((size_t *)t->run[0].roots.id)[1] = 1;
	t->run[0].roots.n = 2;
}

static void
make_thin_sets(struct table *t)
{
	two_sets(t);
	unsigned k = 2 + rnd(4);
	for (unsigned i = 0; i < k; i++)
		add_bad(t, 0, 4, rnd(4), 0, 1, 1, 1);
	unsigned clean = 1 + rnd(6);
	add_clean(t, 4, 4);
	for (unsigned i = 1; i < clean; i++)
		add_clean(t, 4, 4);
}

static void
one_set(struct table *t, size_t n)
{
	add_ref(t, 0, n);
	add_ref(t, 0, n);
}

static void
make_role(struct table *t)
{
	bool small = rnd(2);
	one_set(t, small ? 2 : 4);
	unsigned k = 2 + rnd(10);
	bool moves = !small || rnd(2);
	for (unsigned i = 0; i < k; i++)
		add_bad(t, 0, small ? 2 : 4, 1, small ? rnd(2) : 1, 1,
		    moves ? i : 1, 1);
}

static void
make_thin_device(struct table *t)
{
	one_set(t, 4);
	unsigned k = 2 + rnd(4); /* at most 5: 4^-4 > 1e-3 */
	for (unsigned i = 0; i < k; i++)
		add_bad(t, 0, 4, 2, i % 4, 1, i, i);
	if (rnd(2))
		add_clean(t, 0, 4);
}

static void
make_consistent(struct table *t)
{
	one_set(t, 3 + rnd(4));
	unsigned k = 2 + rnd(10);
	for (unsigned i = 0; i < k; i++)
		add_bad(t, 0, t->ref[0].used.n, 2, rnd(3), 1, 2, 3);
}

static void
make_intermittent(struct table *t)
{
	make_consistent(t);
	unsigned n = 1 + rnd(4);
	for (unsigned i = 0; i < n; i++)
		add_clean(t, 0, t->ref[0].used.n);
}

static void
make_one_set(struct table *t, bool moves)
{
	one_set(t, 4);
	add_bad(t, 0, 4, 0, 0, 1, 1, 1);
	add_bad(t, 0, 4, 1, 1, moves ? 2 : 1, rnd(9), rnd(9));
	unsigned n = rnd(8);
	for (unsigned i = 0; i < n; i++)
		if (rnd(3))
			add_bad(t, 0, 4, rnd(4), 0, moves ? rnd(4) : 1, rnd(9),
			    rnd(9));
		else
			add_clean(t, 0, 4);
}

static void
make_one_set_same(struct table *t)
{
	make_one_set(t, false);
}

static void
make_one_set_moves(struct table *t)
{
	make_one_set(t, true);
}

static const struct {
	enum rerun_row row;
	void (*make)(struct table *t);
} rows[] = {
	{ RERUN_REFERENCE_UNSTABLE, make_unstable },
	{ RERUN_SAME, make_same },
	{ RERUN_NO_DEVICES, make_no_devices },
	{ RERUN_REFERENCE_SUSPECT, make_suspect },
	{ RERUN_THIN_ONE, make_thin_one },
	{ RERUN_CODE, make_code },
	{ RERUN_RACE, make_race },
	{ RERUN_RACE_OR_DEVICE, make_race_or_device },
	{ RERUN_NONDETERMINISTIC, make_nondeterministic },
	{ RERUN_DEVICE, make_device },
	{ RERUN_SET, make_set },
	{ RERUN_THIN_SETS, make_thin_sets },
	{ RERUN_ROLE_CONFOUNDED, make_role },
	{ RERUN_THIN_DEVICE, make_thin_device },
	{ RERUN_CONSISTENT, make_consistent },
	{ RERUN_INTERMITTENT, make_intermittent },
	{ RERUN_ONE_SET_RACE_OR_DEVICE, make_one_set_same },
	{ RERUN_ONE_SET_NONDETERMINISTIC, make_one_set_moves },
};

static void
test_rows(void)
{
	static struct table t;
	CHECK(sizeof rows / sizeof *rows == RERUN_ROWS);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int wrong = 0;
		CHECK(rows[i].row == (enum rerun_row)i);
		for (unsigned k = 0; k < CASES; k++) {
			seed = 1000 * i + k + 1;
			rnd(7);
			table_new(&t);
			rows[i].make(&t);
			enum rerun_row row = judge(&t).row;
			if (row != rows[i].row && !wrong++)
				fprintf(stderr, "row %zu case %u: row %d\n", i,
				    k, (int)row);
		}
		CHECK(wrong == 0);
	}
}

static void
test_bound(void)
{
	static struct table t;
	table_new(&t);
	add_ref(&t, 0, 4);
	for (int i = 0; i < 20; i++)
		add_clean(&t, 0, 4);
	/* 1 - 0.05^(1/20) = 0.13911 */
	CHECK(fabs(judge(&t).bound - 0.1391083) < 1e-6);
}

/* Sets that share a device are one set. */
static void
test_sets(void)
{
	static struct table t;
	table_new(&t);
	add_ref(&t, 0, 4);
	add_ref(&t, 3, 4);
	add_bad(&t, 0, 4, 1, 0, 1, 1, 1);
	add_bad(&t, 4, 3, 5, 0, 1, 1, 1);
	struct rerun_verdict v = judge(&t);
	CHECK(v.nsets == 1 && v.row == RERUN_ONE_SET_RACE_OR_DEVICE);
}

/* ---- worlds ---------------------------------------------------------- */

/* A world fills runs on sets of `size` devices and says who is to blame. */
struct world {
	const char *what;
	bool race, code; /* true cause; neither: devices */
	int faulty[2];   /* device numbers, or -1 */
	void (*run)(struct table *t, size_t from, size_t size, bool rotate);
	unsigned sets;
	bool rotate;
};

static void
run_race(struct table *t, size_t from, size_t size, bool rotate)
{
	(void)rotate;
	if (chance(0.5))
		add_bad(t, from, size, from + rnd((unsigned)size),
		    rnd((unsigned)size), 1, rnd(5000), rnd(1u << 30));
	else
		add_clean(t, from, size);
}

static void
run_race_always(struct table *t, size_t from, size_t size, bool rotate)
{
	(void)rotate;
	add_bad(t, from, size, from + rnd((unsigned)size), rnd((unsigned)size),
	    1, rnd(3), rnd(1u << 30));
}

static void
run_races(struct table *t, size_t from, size_t size, bool rotate)
{
	(void)rotate;
	if (chance(0.7))
		add_bad(t, from, size, from + rnd((unsigned)size),
		    rnd((unsigned)size), rnd(4), rnd(5000), rnd(1u << 30));
	else
		add_clean(t, from, size);
}

/* A race in what only rank 0 does. */
static void
run_race_of_rank(struct table *t, size_t from, size_t size, bool rotate)
{
	size_t dev = from + (rotate ? rnd((unsigned)size) : 0);
	if (chance(0.5))
		add_bad(t, from, size, dev, 0, 1, rnd(5000), rnd(1u << 30));
	else
		add_clean(t, from, size);
}

static void
run_bug(struct table *t, size_t from, size_t size, bool rotate)
{
	(void)rotate;
	add_bad(t, from, size, from, 0, 1, 37, 99);
}

/* Device 1 is bad: now and then, anywhere. */
static void
run_fault(struct table *t, size_t from, size_t size, bool rotate)
{
	bool there = from <= 1 && 1 < from + size;
	if (there && chance(0.6))
		add_bad(t, from, size, 1, rotate ? rnd((unsigned)size) : 1,
		    rnd(3), rnd(5000), rnd(1u << 30));
	else
		add_clean(t, from, size);
}

/* Device 1 is bad in one kernel, always with the same bits. */
static void
run_fault_fixed(struct table *t, size_t from, size_t size, bool rotate)
{
	bool there = from <= 1 && 1 < from + size;
	if (there)
		add_bad(t, from, size, 1, rotate ? rnd((unsigned)size) : 1, 1,
		    37, 99);
	else
		add_clean(t, from, size);
}

/* One bad device in each of two sets. */
static void
run_two_faults(struct table *t, size_t from, size_t size, bool rotate)
{
	size_t dev = from + 1;
	if (chance(0.5))
		add_bad(t, from, size, dev, rotate ? rnd((unsigned)size) : 1, 1,
		    rnd(5000), rnd(1u << 30));
	else
		add_clean(t, from, size);
}

static const struct world worlds[] = {
	{ "a race, two sets", true, false, { -1, -1 }, run_race, 2, true },
	{ "a race, one set", true, false, { -1, -1 }, run_race, 1, true },
	{ "a race in every run", true, false, { -1, -1 }, run_race_always, 2,
	    true },
	{ "several races", true, false, { -1, -1 }, run_races, 2, true },
	{ "a race of rank 0", true, false, { -1, -1 }, run_race_of_rank, 2,
	    false },
	{ "a race of rank 0, rotated", true, false, { -1, -1 },
	    run_race_of_rank, 1, true },
	{ "a bug", false, true, { -1, -1 }, run_bug, 2, true },
	{ "a fault, rotated", false, false, { 1, -1 }, run_fault, 2, true },
	{ "a fault, not rotated", false, false, { 1, -1 }, run_fault, 1,
	    false },
	{ "a fixed fault", false, false, { 1, -1 }, run_fault_fixed, 2, true },
	{ "two faults", false, false, { 1, 9 }, run_two_faults, 2, true },
};

static bool
is_wrong(const struct world *w, const struct rerun_verdict *v, size_t size)
{
	bool at_fault = false;
	switch (v->row) {
	case RERUN_CODE:
		return !w->code && !w->race;
	case RERUN_RACE:
		return !w->race;
	case RERUN_DEVICE:
		return (int)v->device != w->faulty[0] &&
		       (int)v->device != w->faulty[1];
	case RERUN_SET:
		for (int i = 0; i < 2; i++)
			at_fault |= w->faulty[i] >= 0 &&
				    (size_t)w->faulty[i] / size == v->set;
		return !at_fault;
	default:
		return false;
	}
}

static void
test_worlds(void)
{
	static struct table t;
	enum { SIZE = 8 };
	for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
		const struct world *w = &worlds[i];
		int wrong = 0, known = 0;
		seed = 4711 + i;
		for (int k = 0; k < WORLD_RUNS; k++) {
			table_new(&t);
			for (unsigned s = 0; s < 2; s++)
				add_ref(&t, w->sets > 1 ? s * SIZE : 0, SIZE);
			unsigned n = 3 + rnd(RUNS - 3);
			for (unsigned j = 0; j < n; j++)
				w->run(
				    &t, rnd(w->sets) * SIZE, SIZE, w->rotate);
			struct rerun_verdict v = judge(&t);
			wrong += is_wrong(w, &v, SIZE);
			known += v.row == RERUN_CODE || v.row == RERUN_RACE ||
				 v.row == RERUN_DEVICE || v.row == RERUN_SET;
		}
		printf("reruns: %-28s %5d of %d named, %d wrong\n", w->what,
		    known, WORLD_RUNS, wrong);
		/* The rate that none in 10,000 excludes is 3e-4. */
		CHECK(wrong == 0);
	}
}

/* The reference itself comes from the bad device: everybody else differs. */
static void
test_bad_reference(void)
{
	static struct table t;
	table_new(&t);
	add_ref(&t, 0, 4);
	add_ref(&t, 0, 4);
	for (int i = 0; i < 12; i++)
		add_bad(&t, 4 + 4 * (i % 3), 4, 4, 0, 1, 37, 99);
	CHECK(judge(&t).row == RERUN_REFERENCE_SUSPECT);
}

/* References without devices: with one clean run, nothing is confirmed. */
static void
test_homeless_reference(void)
{
	static struct table t;
	for (unsigned clean = 0; clean < 3; clean++) {
		table_new(&t);
		add_ref(&t, 0, 0);
		add_ref(&t, 0, 0);
		for (unsigned i = 0; i < 8; i++)
			add_bad(&t, 0, 4, 2, i % 4, i % 3, i, i);
		for (unsigned i = 0; i < clean; i++)
			add_clean(&t, 0, 4);
		CHECK(judge(&t).row ==
		      (clean < 2 ? RERUN_REFERENCE_SUSPECT : RERUN_DEVICE));
	}
}

int
main(void)
{
	test_rows();
	test_bound();
	test_sets();
	test_worlds();
	test_bad_reference();
	test_homeless_reference();
	return test_done("reruns");
}
