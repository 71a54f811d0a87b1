/*
 * The longest path through the graph of a trace, by the rules of
 * HolisticTraceAnalysis, to check against it. It explains as much as its edges
 * do: the walk says what it cannot explain, this does not.
 */
#ifndef LONGEST_H
#define LONGEST_H

#include <stdint.h>

#include "model.h"

enum longest_edge {
	EDGE_OPERATOR,
	EDGE_DEPENDENCY,
	EDGE_LAUNCH,
	EDGE_KERNEL,
	EDGE_SYNC,
	LONGEST_KINDS
};

extern const char *const longest_kind[LONGEST_KINDS];

struct longest {
	uint64_t nodes, edges, critical;
	int64_t total;
	struct {
		uint64_t n;
		int64_t ns;
	} kind[LONGEST_KINDS]; /* of the path */
};

void longest_make(
    struct longest *l, const struct model *m, int64_t from, int64_t until);

#endif
