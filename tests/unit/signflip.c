/*
 * Sign flips against counts by hand and against an enumeration written the
 * plain way; Holm against the example of his paper; the rate of false alarms
 * on pairs without a difference.
 */
#include "test.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "signflip.h"

static int
near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

static void
test_by_hand(void)
{
	/* Four positive values: only ++++ and ---- reach the sum. */
	const double up[] = { 1, 2, 3, 4 };
	CHECK(near(signflip_two_sided(up, 4), 2.0 / 16));
	CHECK(near(signflip_below(up, 4), 1));
	const double down[] = { -1, -2, -3, -4 };
	CHECK(near(signflip_below(down, 4), 1.0 / 16));
	/* 1, -1: sums 0 2 -2 0; all are at least as far as 0. */
	const double none[] = { 1, -1 };
	CHECK(near(signflip_two_sided(none, 2), 1));
	/* 1, 2, -3: sum 0. 3, 1, -1: |sum| 3; sums of +-3 +-1 +-1:
	 * 5 3 3 1 -1 -3 -3 -5: six of eight. */
	const double some[] = { 3, 1, -1 };
	CHECK(near(signflip_two_sided(some, 3), 6.0 / 8));
	CHECK(near(signflip_two_sided(some, 0), 1));
	const double zero[10] = { 0 };
	CHECK(near(signflip_two_sided(zero, 10), 1));
	/* What is not there counts as 0: sums of +-1 +-2, half of them 3. */
	const double gap[] = { 1, NAN, 2 };
	CHECK(near(signflip_two_sided(gap, 3), 4.0 / 8));
	CHECK(near(signflip_below(gap, 3), 1));
	/* n = 10, all one way: 2 of 1024. */
	double ten[10];
	for (int i = 0; i < 10; i++)
		ten[i] = 0.1 + i;
	CHECK(near(signflip_two_sided(ten, 10), 2.0 / 1024));
}

static double
plain(const double *d, size_t n)
{
	double seen = 0;
	unsigned hit = 0;
	for (size_t i = 0; i < n; i++)
		seen += d[i];
	for (unsigned m = 0; m < 1u << n; m++) {
		double s = 0;
		for (size_t i = 0; i < n; i++)
			s += m >> i & 1 ? -d[i] : d[i];
		hit += fabs(s) >= fabs(seen) - 1e-9;
	}
	return hit / (double)(1u << n);
}

static double
uniform(uint32_t *x)
{
	*x = *x * 1664525u + 1013904223u;
	return (*x >> 8) / 16777216.0;
}

static void
test_random(void)
{
	uint32_t x = 7;
	for (int round = 0; round < 50; round++) {
		double d[12];
		size_t n = 1 + (size_t)round % 12;
		for (size_t i = 0; i < n; i++)
			d[i] = uniform(&x) - 0.4;
		CHECK(near(signflip_two_sided(d, n), plain(d, n)));
	}
	/* Drawn patterns stay close to all of them. */
	double d[25];
	for (int i = 0; i < 25; i++)
		d[i] = uniform(&x) - 0.3;
	double drawn = signflip_two_sided(d, 25);
	double exact = signflip_two_sided(d, 18);
	CHECK(drawn > 0 && drawn < 0.2 && exact > 0);
	CHECK(near(drawn, signflip_two_sided(d, 25)));
}

static void
test_holm(void)
{
	/* 0.01, 0.04, 0.03, 0.005: sorted times 4 3 2 1, made to rise. */
	double p[] = { 0.01, 0.04, 0.03, 0.005 };
	signflip_holm(p, 4);
	CHECK(near(p[0], 0.03) && near(p[1], 0.06) && near(p[2], 0.06) &&
	      near(p[3], 0.02));
	double one[] = { 0.5, 0.9 };
	signflip_holm(one, 2);
	CHECK(near(one[0], 1) && near(one[1], 1));
	double zero[] = { 0, 0.2 };
	signflip_holm(zero, 2);
	CHECK(near(zero[0], 0) && near(zero[1], 0.2));
}

static void
test_within(void)
{
	double d[10];
	for (int i = 0; i < 10; i++)
		d[i] = i % 2 ? 0.001 : -0.001;
	CHECK(signflip_within(d, 10, 0.01) < 0.01);
	CHECK(signflip_within(d, 10, 0.0001) > 0.05);
	for (int i = 0; i < 10; i++)
		d[i] += 0.05;
	CHECK(signflip_within(d, 10, 0.01) > 0.9);
	CHECK(signflip_within(d, 0, 0.01) > 0.9);
}

/* No difference, heavy tails: at most alpha of the answers may be "changed". */
static void
test_false_alarms(void)
{
	uint32_t x = 99;
	int alarms = 0;
	const int rounds = 4000;
	for (int r = 0; r < rounds; r++) {
		double d[10];
		for (int i = 0; i < 10; i++) {
			double u = uniform(&x) - 0.5;
			d[i] = u * u * u + (uniform(&x) < 0.1 ? u * 5 : 0);
		}
		alarms += signflip_two_sided(d, 10) < 0.01;
	}
	/* 8 of 1024 patterns are below 0.01: 31 expected of 4000. */
	CHECK(alarms < 60);
	CHECK(alarms > 10);
}

static void
test_need(void)
{
	CHECK(near(signflip_need(0, 1), 8));
	/* (3.41745 * 0.05 / 0.01)^2 = 291.97 */
	CHECK(near(signflip_need(0.05, 0.01), 292));
	const double d[] = { 2, 4, 4, 4, 5, 5, 7, 9 };
	CHECK(near(signflip_mean(d, 8), 5));
	CHECK(fabs(signflip_sd(d, 8) - 2.13808993529939) < 1e-9);
}

int
main(void)
{
	test_by_hand();
	test_random();
	test_holm();
	test_within();
	test_false_alarms();
	test_need();
	return test_done("signflip");
}
