/*
 * The verdict rule of gpureplay: hand-computed cases, then its operating
 * characteristic in simulated worlds. Every world is seeded; a wrong "faulty"
 * may come up in at most alpha of the cases, with its Clopper-Pearson limit.
 */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../cmd/gpureplay/rule.h"

enum { DEVICES_MAX = 64, ROUNDS_MAX = 400 };

static uint64_t state = 1;

/* SplitMix64 */
static uint64_t
bits(void)
{
	uint64_t x = state += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static bool
happens(double p)
{
	return (double)(bits() >> 11) * 0x1p-53 < p;
}

static const struct rule_setup usual = {
	.alpha = 1e-3, .rate = 1e-2, .ratio = 10
};

/* Judges a table with every pin verified. */
static struct rule_verdict
judge(const uint32_t *table, size_t rounds, size_t n, int named,
    const struct rule_setup *s)
{
	static struct rule_device d[DEVICES_MAX];
	struct rule_verdict v;
	memset(d, 0, sizeof d);
	int majority = rule_tally(table, rounds, n, d);
	for (size_t i = 0; i < n; i++) {
		d[i].pinned = true;
		d[i].repetitions = d[i].processes;
		d[i].named = (int)i == named;
	}
	rule_judge(s, d, n, majority, &v);
	return v;
}

/* ---- by hand ------------------------------------------------------------- */

static void
test_tally(void)
{
	/* Three devices; the second leaves once; one round is incomplete. */
	static const uint32_t t[] = { 7, 7, 7, 7, 8, 7, 7, 0, 9, 7, 7, 7 };
	struct rule_device d[3];
	memset(d, 0, sizeof d);
	CHECK(rule_tally(t, 4, 3, d) == 0);
	CHECK(d[0].processes == 3 && d[0].k == 0);
	CHECK(d[1].k == 1 && d[2].k == 0);
	/* Two against two is no majority; two devices never are one. */
	static const uint32_t even[] = { 1, 1, 2, 2 };
	struct rule_device e[4];
	memset(e, 0, sizeof e);
	CHECK(rule_tally(even, 1, 4, e) == -1);
	CHECK(rule_tally(even, 2, 2, e) == -1);
	/* A majority that wavers is none. */
	static const uint32_t waver[] = { 1, 1, 1, 1, 2, 2 };
	CHECK(rule_tally(waver, 2, 3, e) == -1);
}

static void
test_needed(void)
{
	struct rule_setup s = usual;
	/* Equal rates, the table of the field: f = 1/D, one named suspect. */
	s.ratio = 1;
	CHECK(rule_needed(&s, 4, 1) == 5);
	CHECK(rule_needed(&s, 8, 1) == 4);
	CHECK(rule_needed(&s, 10, 1) == 3);
	CHECK(rule_needed(&s, 32, 1) == 2);
	CHECK(rule_needed(&s, 100, 1) == 2);
	/* Nobody named: 4 f^k <= 1e-3 at f = 1/4 needs k = 6. */
	CHECK(rule_needed(&s, 4, 0) == 6);
	CHECK(rule_needed(&s, 2, 0) == 0);
	/* Ten times likelier: 4 (10/13)^k <= 1e-3, k = ln 4000 / ln 1.3. */
	s.ratio = 10;
	CHECK(rule_needed(&s, 4, 0) == 32);
}

static void
test_rows(void)
{
	uint32_t t[ROUNDS_MAX * 4];
	struct rule_verdict v;
	struct rule_setup s = usual;
	s.ratio = 1;
	for (size_t i = 0; i < ROUNDS_MAX * 4; i++)
		t[i] = 1;
	/* ln(4 / 0.05) / 400 = 0.01096: just too few for 1e-2. */
	v = judge(t, ROUNDS_MAX, 4, -1, &s);
	CHECK(v.result == RULE_UNKNOWN && v.reason == RULE_FEW);
	CHECK(fabs(v.bound - 0.010955) < 1e-6 && v.clean == 39);
	s.rate = 0.011;
	CHECK(judge(t, ROUNDS_MAX, 4, -1, &s).result == RULE_HEALTHY);
	v = judge(t, ROUNDS_MAX, 1, -1, &s);
	CHECK(v.result == RULE_UNKNOWN && v.reason == RULE_NO_REFERENCE);
	v = judge(t, 0, 4, -1, &s);
	CHECK(v.reason == RULE_NOTHING);

	for (int k = 1; k <= 6; k++) {
		t[(size_t)k * 40 * 4 + 2] = 2;
		v = judge(t, ROUNDS_MAX, 4, -1, &s);
		CHECK(v.suspect == 2 && v.more == (uint64_t)(6 - k));
		CHECK(v.result == (k < 6 ? RULE_UNKNOWN : RULE_FAULTY));
		CHECK(k == 6 || v.reason == RULE_THIN);
		CHECK(fabs(v.p - fmin(1, 4 * pow(0.25, k))) < 1e-12);
	}
	/* Named before the run: five are enough. Another one named: not. */
	t[6 * 40 * 4 + 2] = 1;
	CHECK(judge(t, ROUNDS_MAX, 4, 2, &s).result == RULE_FAULTY);
	CHECK(judge(t, ROUNDS_MAX, 4, 1, &s).reason == RULE_THIN);
	/* A second one deviates. */
	t[4 * 3 + 1] = 2;
	v = judge(t, ROUNDS_MAX, 4, 2, &s);
	CHECK(v.reason == RULE_NONDETERMINISTIC && v.suspect == -1);
	/* The same with a majority that stands. */
	static const uint32_t five[] = { 1, 1, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1, 1,
		1, 2, 1, 1, 1, 1, 2, 1, 1, 1, 1, 2, 1, 1, 1, 1, 2, 1, 1, 1, 1,
		2 };
	v = judge(five, 7, 5, -1, &s);
	CHECK(v.reason == RULE_NONDETERMINISTIC && v.majority == 0);
	/* Two devices: whoever differs. */
	static const uint32_t two[] = { 1, 2, 1, 1 };
	CHECK(judge(two, 2, 2, 0, &s).reason == RULE_TWO_DEVICES);
	/* Every time. */
	for (size_t r = 0; r < 40; r++) {
		t[r * 4] = t[r * 4 + 1] = t[r * 4 + 3] = 1;
		t[r * 4 + 2] = 2;
	}
	CHECK(judge(t, 40, 4, 2, &s).reason == RULE_CONSISTENT);
	/* The pin. */
	struct rule_device d[3] = { { 20, 20, 0, 0, false, true },
		{ 20, 20, 19, 0, false, false },
		{ 20, 20, 0, 0, false, true } };
	rule_judge(&s, d, 3, 0, &v);
	CHECK(v.reason == RULE_PIN_UNVERIFIED);
	d[1].pinned = true;
	rule_judge(&s, d, 3, 0, &v);
	CHECK(v.result == RULE_FAULTY && v.suspect == 1);
	/* A process without a result somewhere: no acquittal. */
	d[1].k = 0;
	s.rate = 0.3;
	rule_judge(&s, d, 3, 0, &v);
	CHECK(v.result == RULE_HEALTHY && rule_clean(&s, 3) == 14);
	/* Nor if it may have run elsewhere. */
	d[1].pinned = false;
	rule_judge(&s, d, 3, 0, &v);
	CHECK(v.result == RULE_UNKNOWN && v.reason == RULE_PIN_UNVERIFIED);
	d[2].failed = 1;
	rule_judge(&s, d, 3, 0, &v);
	CHECK(v.result == RULE_UNKNOWN && v.reason == RULE_FAILURES);
	/* Two that agree acquit each other, one of them nobody. */
	uint32_t ones[2 * 20];
	for (size_t i = 0; i < 2 * 20; i++)
		ones[i] = 1;
	CHECK(judge(ones, 20, 2, -1, &s).result == RULE_HEALTHY);
	CHECK(judge(ones, 12, 2, -1, &s).reason == RULE_FEW);
}

/* ---- simulated worlds ---------------------------------------------------- */

struct world {
	const char *name;
	double race;   /* per process, on every device */
	double factor; /* on device 0 the race is that much likelier */
	bool burst;    /* races come in bursts over rounds */
	bool differs;  /* device 0 always gives another result */
	double fault;  /* device 0 is broken at this rate */
};

static const struct world nulls[] = {
	{ "race 0.5", 0.5, 1, false, false, 0 },
	{ "race 0.1", 0.1, 1, false, false, 0 },
	{ "race 0.01", 0.01, 1, false, false, 0 },
	{ "race 0.001", 0.001, 1, false, false, 0 },
	{ "burst 0.01", 0.01, 1, true, false, 0 },
	{ "tenfold 0.1", 0.02, 10, false, false, 0 },
	{ "tenfold 0.01", 0.002, 10, false, false, 0 },
	{ "tenfold 0.001", 0.0005, 10, false, false, 0 },
	{ "differs", 0, 1, false, true, 0 },
	{ "differs, race", 0.01, 1, false, true, 0 },
};

static struct rule_verdict
live(const struct world *w, size_t n, size_t rounds, int named)
{
	static uint32_t t[ROUNDS_MAX * DEVICES_MAX];
	bool storm[DEVICES_MAX] = { false };
	for (size_t r = 0; r < rounds; r++)
		for (size_t i = 0; i < n; i++) {
			double p = w->race * (i ? 1 : w->factor);
			/* In a burst a process drags its next ones along. */
			bool hit = happens(p) ||
				   (w->burst && storm[i] && happens(0.8));
			storm[i] = hit;
			hit |= i == 0 && happens(w->fault);
			uint32_t base = w->differs && i == 0 ? 2 : 1;
			t[r * n + i] =
			    hit ? 10 + (uint32_t)(bits() % 1000) : base;
		}
	return judge(t, rounds, n, named, &usual);
}

/* Upper 95 % limit of k of n by bisection on the binomial (Clopper-Pearson). */
static double
upper(unsigned k, unsigned n)
{
	double lo = 0, hi = 1;
	for (int step = 0; step < 60; step++) {
		double p = (lo + hi) / 2, sum = 0;
		for (unsigned i = 0; i <= k; i++)
			sum += exp(lgamma(n + 1.0) - lgamma(i + 1.0) -
				   lgamma(n - i + 1.0) + i * log(p) +
				   (n - i) * log1p(-p));
		if (sum > 0.05)
			lo = p;
		else
			hi = p;
	}
	return hi;
}

static void
test_nulls(void)
{
	static const size_t devices[] = { 2, 3, 4, 8, 64 };
	unsigned cases = 0, wrong = 0;
	for (size_t w = 0; w < sizeof nulls / sizeof *nulls; w++) {
		unsigned n = 0, bad = 0;
		for (size_t d = 0; d < 5; d++)
			for (int named = -1; named < 1; named++)
				for (int i = 0; i < (d == 4 ? 40 : 400); i++) {
					n++;
					bad += live(&nulls[w], devices[d],
						   d == 4 ? 50 : 200, named)
						   .result == RULE_FAULTY;
				}
		if (bad > 3 + n / 500)
			fprintf(
			    stderr, "%s: %u of %u\n", nulls[w].name, bad, n);
		CHECK(bad <= 3 + n / 500);
		cases += n;
		wrong += bad;
	}
	printf("null worlds: %u wrong of %u, 95%% upper limit %.2g\n", wrong,
	    cases, upper(wrong, cases));
	CHECK(upper(wrong, cases) < 1e-3);
}

/* A real fault is found where the rule has enough to go by, never another. */
static void
test_faults(void)
{
	static const double rates[] = { 0.9, 0.5, 0.2, 0.01, 1e-4 };
	for (size_t f = 0; f < sizeof rates / sizeof *rates; f++) {
		struct world w = { "fault", 0, 1, false, false, rates[f] };
		unsigned found = 0, thin = 0, healthy = 0, n = 200;
		for (unsigned i = 0; i < n; i++) {
			struct rule_verdict v = live(&w, 8, 200, -1);
			found += v.result == RULE_FAULTY && v.suspect == 0;
			CHECK(v.result != RULE_FAULTY || v.suspect == 0);
			thin += v.reason == RULE_THIN || v.reason == RULE_FEW;
			healthy += v.result == RULE_HEALTHY;
		}
		CHECK(found + thin + healthy == n);
		if (rates[f] >= 0.2)
			CHECK(found == n);
		if (rates[f] <= 0.01)
			CHECK(found == 0);
	}
	/* At 100 % it cannot be told from a consistent difference. */
	struct world always = { "always", 0, 1, false, false, 1 };
	CHECK(live(&always, 8, 200, -1).reason == RULE_CONSISTENT);
}

/* ---- the ledger ---------------------------------------------------------- */

/* Two divergences in each of `sessions` sessions of four devices. */
static struct rule_standing
standing(size_t sessions, double ratio, bool voids, uint64_t of_reference)
{
	struct rule_row row[40];
	struct rule_standing out[4];
	struct rule_setup s = usual;
	struct err e;
	size_t n = 0;
	s.ratio = ratio;
	for (size_t i = 0; i < sessions; i++)
		for (size_t d = 0; d < 4; d++)
			row[n++] = (struct rule_row){ d, 0, 100, d == 2 ? 2 : 0,
				0.25, voids && d == 0 };
	row[0].k = of_reference;
	CHECK(!rule_ledger(&s, row, n, 4, 1, out, &e));
	CHECK(of_reference || (!out[0].faulty && !out[1].faulty));
	CHECK(!out[3].faulty);
	return out[2];
}

static void
test_ledger_rows(void)
{
	/* 4^-k <= 1e-3 / 4 at k = 6; expected 300 * 1/900 = 1/3 at ratio 1. */
	struct rule_standing s = standing(3, 1, false, 0);
	CHECK(s.k == 6 && s.processes == 300 && s.faulty);
	CHECK(fabs(s.product - pow(0.25, 6)) < 1e-15);
	CHECK(fabs(s.expected - 1.0 / 3) < 1e-12);
	/* 1 - the first six terms of Poisson(1/3), by Python's math. */
	CHECK(fabs(s.p - 1.4329523e-6) < 1e-12);
	CHECK(!standing(2, 1, false, 0).faulty);
	/* The others do it as often: the product is small, the rate is not. */
	CHECK(!standing(3, 1, false, 99).faulty);
	CHECK(standing(3, 1, false, 99).expected > 30);
	CHECK(!standing(3, 10, false, 0).faulty);
	/* A reference diverged once on the workload: nothing of it counts. */
	s = standing(3, 1, true, 0);
	CHECK(!s.k && s.voided == 3 && !s.faulty);
	/* Five are enough for one device, not for one of four. */
	struct rule_setup even = usual;
	even.ratio = 1;
	struct rule_row five[4] = { { 0, 0, 900, 5, 0.25, false },
		{ 1, 0, 900, 0, 0.25, false }, { 2, 0, 900, 0, 0.25, false },
		{ 3, 0, 900, 0, 0.25, false } };
	struct rule_standing four[4];
	CHECK(!rule_ledger(&even, five, 4, 4, 1, four, NULL));
	CHECK(!four[0].faulty && four[0].p < 1e-3);
	/* Never agreed: another build, not evidence. */
	struct rule_row always[2] = { { 0, 0, 50, 50, 0.1, false },
		{ 1, 0, 50, 0, 0.1, false } };
	struct rule_standing out[2];
	CHECK(!rule_ledger(&usual, always, 2, 2, 1, out, NULL));
	CHECK(!out[0].faulty && out[0].voided == 1 && !out[0].k);
}

enum { FLEET = 10000, SESSIONS = 20, WORKLOADS = 40, PROCESSES = 50 };

struct fleet {
	const char *name;
	double race; /* per process, of every device */
	size_t hot;  /* each so-manyth device: ten times */
	bool differs;
};

static const struct fleet fleets[] = {
	{ "clean", 0, 0, false },
	{ "rare race", 1e-5, 0, false },
	{ "race", 1e-3, 0, false },
	{ "wild race", 0.1, 0, false },
	{ "rare, a quarter hot", 2e-4, 4, false },
	{ "rare, few hot", 2e-4, 2000, false },
	{ "each differs somewhere", 1e-4, 0, true },
};

static struct rule_row *
fleet_rows(const struct fleet *f, double fault, size_t *n)
{
	struct rule_row *row = calloc(FLEET * SESSIONS, sizeof *row);
	*n = 0;
	for (size_t group = 0; row && group < FLEET / 4; group++)
		for (size_t i = 0; i < SESSIONS; i++) {
			struct rule_row *r = row + *n;
			size_t workload = bits() % WORKLOADS, deviating = 0;
			for (size_t d = 0; d < 4; d++) {
				size_t device = group * 4 + d;
				bool hot = f->hot && device % f->hot == 1;
				double p = f->race * (hot ? 10 : 1);
				/* three devices are broken */
				if (device % 4000 == 7)
					p += fault;
				r[d] = (struct rule_row){ device, workload,
					PROCESSES, 0, 10.0 / 13, false };
				for (int k = 0; p > 0 && k < PROCESSES; k++)
					r[d].k += happens(p);
				if (f->differs && d == 0 && i % 5 == 0)
					r[d].k = PROCESSES;
				deviating += r[d].k > 0;
			}
			r->voids = deviating > 1;
			*n += 4;
		}
	return row;
}

static void
test_fleet(const struct fleet *f, double fault)
{
	struct rule_standing *s = calloc(FLEET, sizeof *s);
	size_t n, good = 0, found = 0;
	struct rule_row *row = fleet_rows(f, fault, &n);
	CHECK(row && s);
	CHECK(!rule_ledger(&usual, row, n, FLEET, WORKLOADS, s, NULL));
	for (size_t d = 0; d < FLEET; d++) {
		bool broken = fault > 0 && d % 4000 == 7;
		found += broken && s[d].faulty;
		good += !broken && s[d].faulty;
	}
	if (good)
		fprintf(stderr, "%s: %zu good ones\n", f->name, good);
	CHECK(good == 0);
	/* Where the program is sound, the three are found in 1000 processes. */
	CHECK(fault <= 0 || f->race > 0 || found == 3);
	free(row);
	free(s);
}

int
main(void)
{
	test_tally();
	test_needed();
	test_rows();
	test_nulls();
	test_faults();
	test_ledger_rows();
	for (size_t i = 0; i < sizeof fleets / sizeof *fleets; i++) {
		test_fleet(&fleets[i], 0);
		test_fleet(&fleets[i], 0.2);
	}
	return test_done("unit gpureplay rule");
}
