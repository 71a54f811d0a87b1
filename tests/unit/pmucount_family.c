/*
 * The answers of diff. The p values are those of an enumeration of all sign
 * patterns with numpy (differences of logarithms of the ten pairs below), then
 * times two for Holm's smallest of two.
 */
#define _GNU_SOURCE
#include "test.h"

#include <math.h>
#include <string.h>

#include "../../cmd/pmucount/family.h"

enum { RUNS = 10 };

static struct family f;
static struct result r[2][RUNS];

static bool
everything(void *user, struct str func)
{
	return true;
}

static bool
near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

/* A run with one counter. */
static struct result *
run(int side, size_t i, const char *backend, bool exact)
{
	struct result *x = &r[side][i];
	*x = (struct result){
		.backend = str_c(backend), .ncounters = 1, .has_status = true
	};
	x->counter[0] =
	    (struct counter){ .name = STR_LIT("count"), .exact = exact };
	struct coverage *c = result_coverage(x);
	c->object = side ? STR_LIT("/new/after") : STR_LIT("/old/before");
	return x;
}

static struct entry *
add(struct result *x, const char *func, const char *object, uint64_t calls,
    int64_t self)
{
	struct entry *e = result_entry(
	    x, str_c(func), object ? str_c(object) : x->coverage[0].object);
	e->calls = calls;
	e->v[0].self = e->v[0].incl = self;
	e->v[0].known = e->v[0].incl_known = true;
	return e;
}

static bool torn_a, torn_b;

static void
judge(size_t runs)
{
	f = (struct family){ .runs = runs, .torn = { torn_a, torn_b } };
	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < runs; i++)
			family_put(&f, &r[side][i], side, i, everything, NULL);
	family_judge(&f, log1p(0.01));
}

static const struct item none = { .result = "" };

static const struct item *
item(const char *func, const char *counter, const char *object)
{
	for (size_t i = 0; i < f.n; i++)
		if (str_is(f.item[i].func, func) &&
		    str_is(f.item[i].counter, counter) &&
		    str_is(f.item[i].object, object))
			return &f.item[i];
	return &none;
}

static bool
says(const struct item *k, const char *result, const char *reason)
{
	if (!strcmp(k->result, result) &&
	    (reason ? k->reason && !strcmp(k->reason, reason) : !k->reason))
		return true;
	fprintf(stderr, "%s %s\n", k->result, k->reason ? k->reason : "-");
	return false;
}

static void
done(void)
{
	family_free(&f);
	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < RUNS; i++)
			result_free(&r[side][i]);
}

/* Ten pairs of an inexact counter, a call a run, times 1000. */
static void
pairs(const double *a, const double *b)
{
	for (size_t i = 0; i < RUNS; i++) {
		add(run(0, i, "sled", false), "f", NULL, 1,
		    (int64_t)lround(a[i] * 1000));
		add(run(1, i, "sled", false), "f", NULL, 1,
		    (int64_t)lround(b[i] * 1000));
	}
	judge(RUNS);
}

static const double base[RUNS] = { 100, 101, 99, 102, 98, 100, 101, 99, 100,
	103 };

static void
test_pairs(void)
{
	static const double more[] = { 103, 103, 102, 104, 101, 104, 102, 103,
		101, 106 };
	static const double like[] = { 100.2, 100.9, 99.3, 101.7, 98.4, 100.1,
		100.8, 99.2, 100.3, 102.7 };
	static const double wild[] = { 104, 97, 103, 96, 105, 95, 107, 99, 102,
		98 };
	pairs(base, more);
	const struct item *k = item("f", "count", "");
	CHECK(says(k, "changed", NULL));
	CHECK(near(k->p, 2 * 0.001953125));
	CHECK(near(k->p_same, 0.998046875));
	CHECK(near(k->change, 0.025923717452925054));
	CHECK(near(k->layout, 0.010000333353334945));
	CHECK(says(item("total", "count", ""), "changed", NULL));
	CHECK(says(item("f", "calls", ""), "same", REASON_EXACT));
	done();
	pairs(base, like);
	k = item("f", "count", "");
	CHECK(says(k, "same", NULL));
	CHECK(near(k->p, 2 * 0.40234375) && near(k->p_same, 0.0009765625));
	done();
	pairs(base, wild);
	k = item("f", "count", "");
	CHECK(says(k, "unknown", REASON_NOISE));
	CHECK(k->p == 1 && near(k->p_same, 0.3046875) && k->need == 288);
	done();
	/* Two per cent in each pair, but five from run to run. */
	double a[RUNS], b[RUNS];
	for (size_t i = 0; i < RUNS; i++) {
		a[i] = i % 2 ? 100 : 105;
		b[i] = 1.02 * a[i];
	}
	pairs(a, b);
	CHECK(says(item("f", "count", ""), "unknown", REASON_LAYOUT));
	done();
	for (size_t i = 0; i < RUNS; i++)
		b[i] = i ? 1.02 * a[i] : 0;
	pairs(a, b);
	CHECK(says(item("f", "count", ""), "unknown", REASON_NOT_POSITIVE));
	done();
}

/* One run of each, an exact counter: `a` and `b` of four calls. */
static void
exact(const char *backend, int64_t a, int64_t b, int64_t err)
{
	add(run(0, 0, backend, true), "f", NULL, 4, a)->v[0].err = err;
	add(run(1, 0, backend, true), "f", NULL, 4, b)->v[0].err = err;
}

static void
test_exact(void)
{
	exact("step", 40, 40, 0);
	judge(1);
	CHECK(says(item("f", "count", ""), "same", REASON_EXACT));
	CHECK(item("f", "count", "")->p == 1);
	done();
	exact("step", 40, 44, 0);
	judge(1);
	CHECK(says(item("f", "count", ""), "changed", REASON_EXACT));
	CHECK(near(item("f", "count", "")->change, 0.1));
	done();
	exact("step", 40, 44, 2); /* the bounds meet */
	judge(1);
	CHECK(says(item("f", "count", ""), "same", REASON_EXACT));
	done();
	/* A kernel probe does not know how many interrupts there were. */
	exact("uprobe", 40, 44, 0);
	judge(1);
	CHECK(says(item("f", "count", ""), "unknown", REASON_ONE_RUN));
	done();
	exact("sled", 40, 44, 0);
	judge(1);
	CHECK(says(item("f", "count", ""), "changed", REASON_EXACT));
	done();
	exact("sled", 40, 44, 0);
	r[1][0].entry[0].interrupted = 1;
	judge(1);
	CHECK(says(item("f", "count", ""), "unknown", REASON_ONE_RUN));
	done();
}

static void
test_calls(void)
{
	add(run(0, 0, "step", true), "f", NULL, 4, 40);
	add(run(1, 0, "step", true), "f", NULL, 5, 60);
	judge(1);
	CHECK(says(item("f", "calls", ""), "changed", REASON_EXACT));
	CHECK(says(item("f", "count", ""), "unknown", REASON_CALLS_DIFFER));
	CHECK(says(item("total", "count", ""), "changed", REASON_EXACT));
	done();
	add(run(0, 0, "step", true), "f", NULL, 4, 40)->lost = 1;
	add(run(1, 0, "step", true), "f", NULL, 4, 40);
	judge(1);
	CHECK(says(item("f", "calls", ""), "unknown", REASON_NO_VALUE));
	CHECK(says(item("f", "count", ""), "unknown", REASON_CALLS_DIFFER));
	CHECK(says(item("total", "count", ""), "unknown", REASON_NO_VALUE));
	done();
}

static void
test_absent(void)
{
	for (int torn = 0; torn < 3; torn++) {
		add(run(0, 0, "step", true), "f", NULL, 4, 40);
		add(&r[0][0], "g", NULL, 4, 40);
		add(run(1, 0, "step", true), "f", NULL, 4, 40);
		torn_a = torn == 1; /* a file without its end */
		torn_b = torn == 2;
		judge(1);
		/* g may have been in the lines that the second one lacks. */
		bool may = torn == 2;
		CHECK(says(item("g", "calls", ""), may ? "unknown" : "changed",
		    may ? REASON_NO_VALUE : REASON_ABSENT));
		CHECK(torn != 2 || says(item("total", "count", ""), "unknown",
				       REASON_NO_VALUE));
		CHECK(says(item("f", "count", ""), "same", REASON_EXACT));
		done();
	}
	torn_b = false;
}

/* A library's function is not the program's of the same name. */
static void
test_objects(void)
{
	add(run(0, 0, "step", true), "init", NULL, 1, 10);
	add(&r[0][0], "init", "/old/lib/libx.so", 1, 20);
	add(run(1, 0, "step", true), "init", NULL, 1, 10);
	add(&r[1][0], "init", "/new/lib/libx.so", 1, 25);
	judge(1);
	CHECK(says(item("init", "count", ""), "same", REASON_EXACT));
	CHECK(says(item("init", "count", "libx.so"), "changed", REASON_EXACT));
	done();
	/* Two of one name and one file name: nobody can tell which. */
	add(run(0, 0, "step", true), "init", "/a/libx.so", 1, 10);
	add(&r[0][0], "init", "/b/libx.so", 1, 20);
	add(run(1, 0, "step", true), "init", "/a/libx.so", 1, 20);
	add(&r[1][0], "init", "/b/libx.so", 1, 10);
	judge(1);
	CHECK(
	    says(item("init", "calls", "libx.so"), "unknown", REASON_NO_VALUE));
	done();
	/* A function called total is not the sum. */
	add(run(0, 0, "step", true), "total", NULL, 1, 10);
	add(&r[0][0], "f", NULL, 1, 10);
	add(run(1, 0, "step", true), "total", NULL, 1, 12);
	add(&r[1][0], "f", NULL, 1, 8);
	judge(1);
	CHECK(says(item("total", "count", ""), "same", REASON_EXACT));
	CHECK(item("total", "calls", "") == &none);
	done();
}

static void
test_gated(void)
{
	for (int side = 0; side < 2; side++) {
		struct entry *e =
		    add(run(side, 0, "sled", true), "f", NULL, 4 + side, 40);
		e->flags |= FLAG_GATED;
	}
	judge(1);
	/* Samples are not calls; values are of a call; there is no total. */
	CHECK(says(item("f", "calls", ""), "unknown", REASON_NO_VALUE));
	CHECK(item("f", "count", "")->v[0][0] == 40);
	CHECK(says(item("total", "count", ""), "unknown", REASON_NO_VALUE));
	done();
}

int
main(void)
{
	test_pairs();
	test_exact();
	test_calls();
	test_absent();
	test_objects();
	test_gated();
	return test_done("pmucount_family");
}
