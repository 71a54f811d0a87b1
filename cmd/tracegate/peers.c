/* What all of a group do at the same time: see peers.h. */
#include "peers.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "sort.h"

struct peers *
peers_new(void)
{
	struct peers *p = cli_alloc(1, sizeof *p);
	p->turn = cli_alloc(PEERS_TURNS, sizeof *p->turn);
	return p;
}

void
peers_free(struct peers *p)
{
	if (p)
		free(p->turn);
	free(p);
}

static uint32_t
lane_of(struct peers *p, uint32_t lane)
{
	uint32_t i = 0;
	while (i < p->nlanes && p->lane[i] != lane)
		i++;
	if (i == p->nlanes && i < PEERS_LANES) {
		/* One that joins late takes part from now on. */
		p->next[i] = p->first;
		p->lane[p->nlanes++] = lane;
	}
	return i;
}

static struct turn *
turn_at(struct peers *p, uint64_t nth)
{
	return &p->turn[nth % PEERS_TURNS];
}

/* Its place is for the next one. */
static const struct turn *
close_first(struct peers *p)
{
	struct turn *t = turn_at(p, p->first);
	if (t->nth != p->first)
		t->n = 0;
	p->over.nth = p->first++;
	p->over.n = t->n;
	memcpy(p->over.peer, t->peer, t->n * sizeof *t->peer);
	return &p->over;
}

const struct turn *
peers_add(struct peers *p, const struct peer *one)
{
	uint32_t i = lane_of(p, one->lane);
	if (i == PEERS_LANES)
		return NULL;
	if (p->next[i] < p->first)
		p->next[i] = p->first;
	uint64_t nth = p->next[i];
	const struct turn *done = NULL;
	if (nth >= p->first + PEERS_TURNS)
		done = close_first(p);
	p->next[i]++;
	struct turn *t = turn_at(p, nth);
	if (t->nth != nth)
		t->n = 0;
	t->nth = nth;
	t->peer[t->n++] = *one;
	return done ? done : peers_ready(p);
}

/* Who is in the group is only known after the first turn. */
const struct turn *
peers_ready(struct peers *p)
{
	const struct turn *t = turn_at(p, p->first);
	bool whole = t->nth == p->first && t->n == p->nlanes;
	bool known = p->first > 0 || turn_at(p, 1)->n == p->nlanes;
	return whole && known && t->n >= PEERS_LEAST ? close_first(p) : NULL;
}

const struct turn *
peers_rest(struct peers *p)
{
	uint64_t last = p->first;
	for (uint32_t i = 0; i < p->nlanes; i++)
		if (p->next[i] > last)
			last = p->next[i];
	return p->first < last ? close_first(p) : NULL;
}

static int
by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

int64_t
peers_limit(struct peers *p, const struct turn *t, int64_t floor)
{
	int64_t v[PEERS_LANES];
	struct quantiles q;
	if (t->n < PEERS_LEAST)
		return 0;
	for (uint32_t i = 0; i < t->n; i++)
		v[i] = t->peer[i].dur;
	sort_array(v, t->n, sizeof *v, by_value);
	int64_t median = v[(t->n - 1) / 2], second = v[t->n - 2];
	hist_quantiles(&p->spread, &q);
	/* Cold: as if the second longest took a third more. */
	double usual = q.n < PEERS_WARM ? 4.0 / 3 : (double)q.q99 / 1000;
	double limit = 1.5 * (double)median * (usual < 1 ? 1 : usual);
	if (median > 0)
		hist_add(&p->spread,
		    (int64_t)(1000.0 * (double)second / (double)median),
		    HIST_HALF);
	if (limit < (double)median + (double)floor)
		limit = (double)median + (double)floor;
	return limit < 9e18 ? (int64_t)limit : 0;
}
