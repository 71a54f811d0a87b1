/* Durations that depend on a cost: see cost.h. */
#include "cost.h"

#include <math.h>
#include <stdlib.h>

#include "cli.h"
#include "sort.h"

uint8_t
cost_bin(int64_t cost)
{
	if (cost < 0)
		return 0;
	if (cost < 4)
		return (uint8_t)(1 + cost);
	int e = 63 - __builtin_clzll((uint64_t)cost);
	return (uint8_t)(1 + 4 * (e - 1) + (cost >> (e - 2) & 3));
}

/* The middle of what falls into a bin. */
static double
cost_of(int bin)
{
	if (bin < 5)
		return bin - 1;
	int e = (bin - 1) / 4 + 1;
	return ldexp(4.5 + (bin - 1) % 4, e - 2);
}

void
cost_add(struct cost *c, uint8_t bin, int64_t ns, uint32_t half)
{
	if (!c->bin[bin])
		c->bin[bin] = cli_alloc(1, sizeof *c->bin[bin]);
	hist_add(c->bin[bin], ns, half);
	c->n++;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double
median(double *v, size_t n)
{
	sort_array(v, n, sizeof *v, by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

struct point {
	double cost, ns;
	int bin;
};

static size_t
points(const struct cost *c, uint64_t least, struct point *p)
{
	size_t n = 0;
	for (int b = 1; b < COST_BINS; b++) {
		struct quantiles q;
		if (!c->bin[b])
			continue;
		hist_quantiles(c->bin[b], &q);
		if (q.n >= least)
			p[n++] = (struct point){ cost_of(b), (double)q.q99, b };
	}
	return n;
}

static void
line_through(const struct point *p, size_t n, double *slope, double *at0)
{
	double *v = cli_alloc(n * n / 2 + n, sizeof *v);
	size_t k = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			v[k++] = (p[i].ns - p[j].ns) / (p[i].cost - p[j].cost);
	*slope = k ? fmax(median(v, k), 0) : 0;
	for (size_t i = 0; i < n; i++)
		v[i] = p[i].ns - *slope * p[i].cost;
	*at0 = median(v, n);
	free(v);
}

void
cost_fit(struct cost *c, int64_t floor)
{
	struct point p[COST_BINS];
	double slope, at0;
	size_t n = points(c, COST_MIN, p);
	if (n < 3)
		n = points(c, COST_ALONE, p);
	c->fitted = n > 0;
	if (!n)
		return;
	line_through(p, n, &slope, &at0);
	for (int b = 1; b < COST_BINS; b++) {
		double ns = fmax(at0 + slope * cost_of(b), 0);
		double limit = fmax(1.5 * ns, ns + (double)floor);
		/* Beyond what was seen the line is a guess. */
		bool seen = b >= p[0].bin && b <= p[n - 1].bin;
		c->limit[b] = seen && limit < 1e18 ? (int64_t)limit : 0;
	}
}

void
cost_free(struct cost *c)
{
	for (int b = 0; c && b < COST_BINS; b++)
		free(c->bin[b]);
	free(c);
}
