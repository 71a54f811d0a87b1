/* Durations as integer log histograms: see hist.h. */
#include "hist.h"

#include <math.h>
#include <string.h>

static const uint32_t permille[3] = { 500, 990, 999 };

int64_t
hist_top(uint32_t b)
{
	if (b < HIST_SUB)
		return b;
	int e = (int)(b / HIST_SUB) + 3;
	return (
	    int64_t)(((uint64_t)(HIST_SUB + b % HIST_SUB + 1) << (e - 4)) - 1);
}

void
hist_add(struct hist *h, int64_t ns, uint32_t half)
{
	h->cur[hist_bucket(ns)]++;
	if (++h->ncur < half || !half)
		return;
	memcpy(h->prev, h->cur, sizeof h->prev);
	h->nprev = h->ncur;
	memset(h->cur, 0, sizeof h->cur);
	h->ncur = 0;
}

/* Rank of a quantile among n samples, from 0. */
static uint64_t
rank_of(uint64_t n, int which)
{
	uint64_t r = n * permille[which] / 1000;
	return r < n ? r : n - 1;
}

/* The buckets of up to `n` rising ranks. */
static void
find(const struct hist *h, const uint64_t *rank, uint32_t *bucket, int n)
{
	uint64_t seen = 0;
	int k = 0;
	for (uint32_t b = 0; b < HIST_BUCKETS && k < n; b++) {
		seen += (uint64_t)h->cur[b] + h->prev[b];
		while (k < n && rank[k] < seen)
			bucket[k++] = b;
	}
	while (k < n)
		bucket[k++] = HIST_BUCKETS - 1;
}

void
hist_quantiles(const struct hist *h, struct quantiles *q)
{
	uint64_t n = (uint64_t)h->ncur + h->nprev, rank[3];
	uint32_t b[3];
	*q = (struct quantiles){ .n = n };
	if (!n)
		return;
	for (int i = 0; i < 3; i++)
		rank[i] = rank_of(n, i);
	find(h, rank, b, 3);
	q->q50 = hist_top(b[0]);
	q->q99 = hist_top(b[1]);
	q->q999 = hist_top(b[2]);
}

/* Buckets are 1/16 wide: a ratio within one says "very fast". */
static double
falls(uint32_t from, uint32_t to, double share)
{
	double ratio = (double)hist_top(to) / (double)hist_top(from);
	return ratio < 1.0 + 1.0 / HIST_SUB ? 64 : share / log(ratio);
}

double
hist_tail(const struct hist *h)
{
	uint64_t n = (uint64_t)h->ncur + h->nprev;
	uint64_t rank[3] = { n * 90 / 100, n * 97 / 100, n * 99 / 100 };
	uint32_t b[3];
	if (n < HIST_TAIL)
		return 0;
	find(h, rank, b, 3);
	if (!hist_top(b[0]))
		return 0;
	return fmax(falls(b[0], b[2], log(10)), falls(b[1], b[2], log(3)));
}

void
hist_rest_make(const struct hist *h, struct hist_rest *r)
{
	uint64_t n = (uint64_t)h->ncur + h->nprev;
	*r = (struct hist_rest){ .n = n ? n - 1 : 0 };
	if (r->n == 0)
		return;
	for (int i = 0; i < 3; i++) {
		uint64_t rank[2] = { rank_of(r->n, i), rank_of(r->n, i) + 1 };
		uint32_t b[2];
		find(h, rank, b, 2);
		r->at[i] = b[0];
		r->next[i] = b[1];
	}
}

/* Taking out a sample at or below a rank moves the rank up by one. */
static int64_t
without(const struct hist_rest *r, int i, uint32_t bucket)
{
	return hist_top(bucket <= r->at[i] ? r->next[i] : r->at[i]);
}

void
hist_rest_without(
    const struct hist_rest *r, uint32_t bucket, struct quantiles *q)
{
	*q = (struct quantiles){ .n = r->n };
	if (!r->n)
		return;
	q->q50 = without(r, 0, bucket);
	q->q99 = without(r, 1, bucket);
	q->q999 = without(r, 2, bucket);
}
