/* Intervals and exact tests: see stats.h. */
#include "stats.h"

#include <math.h>

#include "sort.h"

enum { FRACTION_STEPS = 100000, BISECTIONS = 200 };

struct interval
stats_wilson(uint64_t k, uint64_t n, double z)
{
	struct interval r = { 0, 1 };
	if (!n)
		return r;
	double m = (double)n, p = (double)k / m, z2 = z * z;
	double mid = (p + z2 / (2 * m)) / (1 + z2 / m);
	double half =
	    z * sqrt(p * (1 - p) / m + z2 / (4 * m * m)) / (1 + z2 / m);
	/* The ends are exact where nothing or everything was seen. */
	r.low = k ? fmax(mid - half, 0) : 0;
	r.high = k < n ? fmin(mid + half, 1) : 1;
	return r;
}

/* ln of Gamma(a + b) / (Gamma(a) Gamma(b)) x^a (1 - x)^b */
static double
beta_front(double x, double a, double b)
{
	return lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) +
	       b * log1p(-x);
}

/* Continued fraction, modified Lentz (Numerical Recipes 6.4, DLMF 8.17.22). */
static double
beta_fraction(double x, double a, double b)
{
	static const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1);
	if (fabs(d) < tiny)
		d = tiny;
	d = 1 / d;
	double h = d;
	for (int i = 1; i < FRACTION_STEPS; i++) {
		double m = i;
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x /
			     ((a + 2 * m) * (a + 2 * m + 1));
		for (int k = 0; k < 2; k++) {
			double t = k ? odd : even;
			d = 1 + t * d;
			c = 1 + t / c;
			if (fabs(d) < tiny)
				d = tiny;
			if (fabs(c) < tiny)
				c = tiny;
			d = 1 / d;
			h *= d * c;
		}
		if (fabs(d * c - 1) < 1e-16)
			break;
	}
	return h;
}

double
stats_beta(double x, double a, double b)
{
	if (!(x > 0))
		return 0;
	if (!(x < 1))
		return 1;
	double front = exp(beta_front(x, a, b));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(x, a, b) / a;
	return 1 - front * beta_fraction(1 - x, b, a) / b;
}

double
stats_binomial_cdf(uint64_t k, uint64_t n, double p)
{
	if (k >= n)
		return 1;
	return stats_beta(1 - p, (double)(n - k), (double)k + 1);
}

double
stats_binomial_pmf(uint64_t k, uint64_t n, double p)
{
	if (k > n)
		return 0;
	if (p <= 0 || p >= 1)
		return k == (p >= 1 ? n : 0);
	double m = (double)n, i = (double)k;
	return exp(lgamma(m + 1) - lgamma(i + 1) - lgamma(m - i + 1) +
		   i * log(p) + (m - i) * log1p(-p));
}

double
stats_upper(uint64_t k, uint64_t n, double alpha)
{
	double low = 0, high = 1;
	if (k >= n)
		return 1;
	for (int i = 0; i < BISECTIONS && high - low > 1e-15 * high; i++) {
		double mid = (low + high) / 2;
		if (stats_binomial_cdf(k, n, mid) > alpha)
			low = mid;
		else
			high = mid;
	}
	return (low + high) / 2;
}

struct interval
stats_clopper_pearson(uint64_t k, uint64_t n, double alpha)
{
	struct interval r = { 0, 1 };
	if (!n || k > n)
		return r;
	r.high = stats_upper(k, n, alpha / 2);
	/* The lower end mirrors the upper one of what did not happen. */
	r.low = 1 - stats_upper(n - k, n, alpha / 2);
	return r;
}

struct mcnemar
stats_mcnemar(uint64_t b, uint64_t c)
{
	uint64_t n = b + c, least = b < c ? b : c;
	struct mcnemar m = { 1, 1, 1 };
	if (!n)
		return m;
	double tail = stats_binomial_cdf(least, n, 0.5);
	m.exact = fmin(1, 2 * tail);
	m.mid = m.exact - stats_binomial_pmf(least, n, 0.5);
	m.worse = b ? 1 - stats_binomial_cdf(b - 1, n, 0.5) : 1;
	return m;
}

double
stats_clean(uint64_t n, double alpha)
{
	return n ? -expm1(log(alpha) / (double)n) : 1;
}

uint64_t
stats_trials(double p, double alpha)
{
	if (!(p > 0 && p < 1 && alpha > 0 && alpha < 1))
		return 0;
	return (uint64_t)ceil(log(alpha) / log1p(-p));
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double
stats_median(double *v, size_t n)
{
	if (!n)
		return NAN;
	sort_array(v, n, sizeof *v, by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}
