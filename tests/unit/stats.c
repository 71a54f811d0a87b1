/* Intervals and tests against values from 30-digit arithmetic. */
#include "test.h"

#include <math.h>
#include <string.h>

#include "stats.h"

static int
close_to(double a, double b, double rel)
{
	return fabs(a - b) <= rel * fabs(b) + 1e-15;
}

/* k n wilson_lo wilson_hi cp_lo cp_hi, 95 %, eight digits */
static void
check_interval(const double v[6])
{
	uint64_t k = (uint64_t)v[0], n = (uint64_t)v[1];
	struct interval w = stats_wilson(k, n, STATS_Z95);
	struct interval c = stats_clopper_pearson(k, n, 0.05);
	CHECK(k ? close_to(w.low, v[2], 2e-7) : w.low == 0);
	CHECK(close_to(w.high, v[3], 2e-7));
	if (isnan(v[4]))
		return;
	CHECK(close_to(c.low, v[4], 2e-7));
	CHECK(close_to(c.high, v[5], 2e-7));
}

/* b c exact mid one-sided */
static void
check_mcnemar(const double v[5])
{
	struct mcnemar m = stats_mcnemar((uint64_t)v[0], (uint64_t)v[1]);
	CHECK(close_to(m.exact, v[2], 2e-7));
	CHECK(close_to(m.mid, v[3], 2e-7));
	CHECK(close_to(m.worse, v[4], 2e-7));
}

static void
test_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[256];
	int rows = 0;
	if (!f) {
		printf("# not run: no %s\n", path);
		return;
	}
	while (fgets(line, sizeof line, f)) {
		double v[6];
		int n = sscanf(line, "%lf %lf %lf %lf %lf %lf", &v[0], &v[1],
		    &v[2], &v[3], &v[4], &v[5]);
		if (n == 6)
			check_interval(v);
		else if (n == 5)
			check_mcnemar(v);
		rows += n == 6 || n == 5;
	}
	fclose(f);
	CHECK(rows == 24);
}

static void
test_median(void)
{
	double odd[] = { 5, 1, 3 }, even[] = { 4, 1, 3, 2 }, one[] = { 7 };
	CHECK(stats_median(odd, 3) == 3 && odd[0] == 1);
	CHECK(stats_median(even, 4) == 2.5);
	CHECK(stats_median(one, 1) == 7);
	CHECK(isnan(stats_median(one, 0)));
}

int
main(void)
{
	/* The same without the file: a few of its rows. */
	static const double some[][6] = {
		{ 0, 10, 0, 0.2775328, 0, 0.30849711 },
		{ 5, 50, 0.043475765, 0.21360231, 0.033275094, 0.21813537 },
		{ 10, 10, 0.7224672, 1, 0.69150289, 1 },
	};
	for (size_t i = 0; i < sizeof some / sizeof *some; i++)
		check_interval(some[i]);
	check_mcnemar(
	    (double[]){ 25, 10, 0.016673848, 0.011330984, 0.0083369239 });
	CHECK(stats_trials(0.01, 0.05) == 299);
	CHECK(stats_trials(0.015, 0.05) == 199);
	CHECK(stats_trials(0.02, 0.05) == 149);
	CHECK(stats_trials(0.05, 0.05) == 59);
	/* 1 - 0.05^(1/n): 0.95 of one trial; 4 trials by hand; 3/n of many. */
	CHECK(close_to(stats_clean(1, 0.05), 0.95, 1e-15));
	CHECK(close_to(stats_clean(4, 0.05), 0.527129195498413, 1e-14));
	CHECK(close_to(stats_clean(1000000000, 0.05), 2.995732269e-9, 1e-17));
	CHECK(close_to(stats_clean(50, 0.05), stats_upper(0, 50, 0.05), 1e-13));
	CHECK(stats_clean(0, 0.05) == 1);
	/* P[X <= 3] of 10 fair coins is 176/1024. */
	CHECK(close_to(stats_binomial_cdf(3, 10, 0.5), 176.0 / 1024, 1e-13));
	CHECK(close_to(stats_binomial_pmf(3, 10, 0.5), 120.0 / 1024, 1e-13));
	/* I_x(1, b) = 1 - (1 - x)^b */
	CHECK(close_to(stats_beta(0.3, 1, 4), 1 - pow(0.7, 4), 1e-14));
	test_file("../shared/data/rca/stat-vectors.txt");
	test_median();
	return test_done("stats");
}
