/*
 * A weighted graph of moments, and its longest path: what HTA calls the
 * critical path (hta/analyzers/critical_path_analysis.py). Its rules are kept
 * to the letter, so that the two can be compared: see tracegate(1).
 */
#ifndef GRAPH_H
#define GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "model.h"

enum {
	/* Edges a node: a wait for all streams has one from each. */
	GRAPH_EDGES_EACH = 16,
};

enum edge_kind {
	EDGE_WORK,   /* along an operator, call or kernel */
	EDGE_NEXT,   /* from one operator to the next */
	EDGE_LAUNCH, /* from a call to the start of its kernel */
	EDGE_GAP,    /* from one kernel to the next */
	EDGE_SYNC,   /* from what released to what waited */
	EDGE_KINDS
};

extern const char *const edge_name[EDGE_KINDS];

/* A slice begins or ends. */
struct moment {
	int64_t us;
	uint32_t slice;
	bool begins;
};

struct edge {
	uint32_t from, to;
	int64_t us;
	int32_t slice;  /* whose time it is, or -1 */
	uint32_t older; /* the one into `to` before it, + 1; or 0 */
	uint8_t kind;
};

struct graph {
	const struct model *m;
	struct moment *node; /* in order of time, then place in the file */
	uint32_t n;
	uint32_t *begin, *end; /* of slices: node + 1, or 0 */
	struct edge *edge;
	uint32_t nedges, cap;
	uint32_t *into;      /* of nodes: the youngest edge into it, + 1 */
	int64_t from, until; /* us: slices that begin in it */
	int64_t last;        /* us: the end of what they led to */
	int64_t vanished;    /* us of waits that nothing here released */
};

struct longest {
	uint32_t *edge; /* of the path, last one first */
	uint32_t n;
	int64_t us;
	uint32_t linked; /* nodes with an edge */
	bool circle;     /* what waits for what: there is no longest path */
};

/* Of the slices that begin in [from, until] ns, and the kernels they launch. */
int graph_make(struct graph *g, const struct model *m, int64_t from,
    int64_t until, struct err *e);
/* An edge of no kind twice between two nodes: the second takes its place. */
int graph_edge(struct graph *g, uint32_t from, uint32_t to, int kind,
    int32_t slice, bool free, struct err *e);
void graph_longest(const struct graph *g, struct longest *l);
void graph_free(struct graph *g);
void longest_free(struct longest *l);

#endif
