/* A weighted graph of moments, and its longest path: see graph.h. */
#include "graph.h"

#include <stdlib.h>

#include "cli.h"

const char *const edge_name[EDGE_KINDS] = {
	[EDGE_WORK] = "slice",
	[EDGE_NEXT] = "next",
	[EDGE_LAUNCH] = "launch",
	[EDGE_GAP] = "gap",
	[EDGE_SYNC] = "sync",
};

enum {
	PARALLEL_SEEN = 256, /* edges into a node that are looked through */
};

/* The edge that is already there, or NULL. */
static struct edge *
same_edge(const struct graph *g, uint32_t from, uint32_t to)
{
	uint32_t i = g->into[to];
	for (int seen = 0; i && seen < PARALLEL_SEEN; seen++) {
		struct edge *old = &g->edge[i - 1];
		if (old->from == from)
			return old;
		i = old->older;
	}
	return NULL;
}

int
graph_edge(struct graph *g, uint32_t from, uint32_t to, int kind, int32_t slice,
    bool free, struct err *e)
{
	int64_t us = g->node[to].us - g->node[from].us;
	/* A child that outlives its parent by a rounding: HTA takes 0 too. */
	if (free || kind == EDGE_NEXT || kind == EDGE_SYNC || us < 0)
		us = 0;
	struct edge *at = same_edge(g, from, to);
	if (at) {
		at->us = us;
		at->kind = (uint8_t)kind;
		at->slice = slice;
		return 0;
	}
	if (g->nedges / GRAPH_EDGES_EACH > g->n)
		return err_set(e, SE_ELIMIT,
		    "more than %d dependencies a slice", 2 * GRAPH_EDGES_EACH);
	if (g->nedges == g->cap) {
		g->cap = g->cap ? g->cap * 2 : 1024;
		g->edge = cli_realloc(g->edge, g->cap, sizeof *g->edge);
	}
	g->edge[g->nedges] =
	    (struct edge){ from, to, us, slice, g->into[to], (uint8_t)kind };
	g->into[to] = ++g->nedges;
	return 0;
}

/* ---- the longest path --------------------------------------------------- */

/* Edges by the node they leave, in the order they were added. */
struct leaving {
	uint32_t *first, *edge; /* edge[first[v] .. first[v + 1]) leave v */
};

static void
sort_leaving(const struct graph *g, struct leaving *l)
{
	l->first = cli_alloc((size_t)g->n + 2, sizeof *l->first);
	l->edge = cli_alloc((size_t)g->nedges + 1, sizeof *l->edge);
	for (uint32_t i = 0; i < g->nedges; i++)
		l->first[g->edge[i].from + 2]++;
	for (uint32_t v = 2; v <= g->n; v++)
		l->first[v] += l->first[v - 1];
	for (uint32_t i = 0; i < g->nedges; i++)
		l->edge[l->first[g->edge[i].from + 1]++] = i;
}

/* How far each node is from a start, and by which edge. */
struct reach {
	int64_t us;
	uint32_t by;   /* edge + 1, or 0 */
	uint32_t open; /* edges into it that are not settled yet */
	bool seen;
};

/*
 * Kahn's order, first come first served. Of paths of one length the edge that
 * was added first wins, as in networkx, or the count of nodes on the path
 * would differ.
 */
static void
best_into(const struct graph *g, struct reach *r, uint32_t v)
{
	for (uint32_t i = g->into[v]; i; i = g->edge[i - 1].older) {
		const struct edge *d = &g->edge[i - 1];
		int64_t us = r[d->from].us + d->us;
		/* From the youngest to the oldest: the last one counts. */
		if (!r[v].by || us >= r[v].us) {
			r[v].us = us;
			r[v].by = i;
		}
	}
}

static uint32_t
first_in_line(const struct graph *g, struct reach *r, uint32_t *line)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < g->nedges; i++)
		r[g->edge[i].to].open++;
	for (uint32_t i = 0; i < g->nedges; i++) {
		uint32_t ends[2] = { g->edge[i].from, g->edge[i].to };
		for (int k = 0; k < 2; k++) {
			if (r[ends[k]].seen)
				continue;
			r[ends[k]].seen = true;
			if (!r[ends[k]].open)
				line[n++] = ends[k];
		}
	}
	return n;
}

static void
settle(const struct graph *g, struct reach *r, uint32_t *line, uint32_t *n)
{
	struct leaving l;
	sort_leaving(g, &l);
	*n = first_in_line(g, r, line);
	for (uint32_t at = 0; at < *n; at++) {
		uint32_t v = line[at];
		best_into(g, r, v);
		for (uint32_t i = l.first[v]; i < l.first[v + 1]; i++) {
			uint32_t to = g->edge[l.edge[i]].to;
			if (!--r[to].open)
				line[(*n)++] = to;
		}
	}
	free(l.first);
	free(l.edge);
}

void
graph_longest(const struct graph *g, struct longest *l)
{
	*l = (struct longest){ 0 };
	struct reach *r = cli_alloc((size_t)g->n + 1, sizeof *r);
	uint32_t *line = cli_alloc((size_t)g->n + 1, sizeof *line);
	uint32_t n, last = 0;
	settle(g, r, line, &n);
	for (uint32_t v = 0; v < g->n; v++)
		l->linked += r[v].seen;
	for (uint32_t i = 1; i < n; i++)
		if (r[line[i]].us > r[line[last]].us)
			last = i;
	l->circle = n < l->linked;
	if (n && !l->circle) {
		l->us = r[line[last]].us;
		l->edge = cli_alloc(n, sizeof *l->edge);
		for (uint32_t v = line[last]; r[v].by;) {
			l->edge[l->n++] = r[v].by - 1;
			v = g->edge[r[v].by - 1].from;
		}
	}
	free(r);
	free(line);
}

void
graph_free(struct graph *g)
{
	free(g->node);
	free(g->begin);
	free(g->end);
	free(g->edge);
	free(g->into);
}

void
longest_free(struct longest *l)
{
	free(l->edge);
}
