/*
 * The accounting of calls: a shadow stack and a table of call paths in one
 * thread's block. The runtime calls it from the hooks, the other backends
 * from their event loops; the rules for tail calls, longjmp, recursion and
 * full tables are here and only here.
 *
 * No allocation, no floating point, no calls out: it runs at the first
 * instruction of somebody else's function.
 */
#ifndef PMU_ENGINE_H
#define PMU_ENGINE_H

#include "shared.h"

/* Compiled anew for each constant number of counters. */
#define PMU_INLINE static inline __attribute__((always_inline))

struct pmu_view {
	struct pmu_block *block;
	struct pmu_frame *frame; /* the first one is nobody's */
	struct pmu_frame *top;   /* frame[block->depth - 1] */
	struct pmu_frame *full;  /* the last one there is room for */
	struct pmu_node *node;
	uint32_t *hash;
	struct pmu_tally *tally;
	unsigned ncounters;
	bool spans; /* pmu_span() is called after every pmu_pop() */
	/* Our own part of a call, for the values that are kept per call. */
	int64_t self_cost[PMU_COUNTERS], child_cost[PMU_COUNTERS];
};

static inline struct pmu_view
pmu_view_of(void *block, unsigned ncounters)
{
	char *p = block;
	struct pmu_frame *frame = (struct pmu_frame *)(p + PMU_AT_FRAMES);
	return (struct pmu_view){
		.block = block,
		.frame = frame,
		.top = frame,
		.full = frame + (PMU_FRAMES - 1),
		.node = (struct pmu_node *)(p + PMU_AT_NODES),
		.hash = (uint32_t *)(p + PMU_AT_HASH),
		.tally = (struct pmu_tally *)(p + PMU_AT_TALLY),
		.ncounters = ncounters,
	};
}

/* A block that a thread takes over; what an earlier thread counted stays. */
static inline void
pmu_view_begin(struct pmu_view *v)
{
	struct pmu_block *b = v->block;
	v->top = v->frame;
	v->frame->slot = UINT64_MAX;
	v->frame->node = PMU_ROOT;
	b->depth = 1;
	b->threads++;
	if (b->nnodes)
		return;
	v->node[PMU_ROOT].func = UINT32_MAX;
	v->node[PMU_COLLAPSED].func = UINT32_MAX;
	b->nnodes = PMU_FIRST_NODE;
	b->late_func = PMU_FUNCS; /* a tally that nobody reads */
}

/* Is a counted call open? */
static inline bool
pmu_is_open(const struct pmu_view *v)
{
	return v->top != v->frame;
}

/* ---- call paths ---------------------------------------------------------- */

static inline uint32_t
pmu_node_new(struct pmu_view *v, uint32_t parent, uint32_t func, uint32_t *at)
{
	struct pmu_block *b = v->block;
	/* The last eighth is for collapsed paths. */
	uint32_t cap =
	    parent == PMU_COLLAPSED ? PMU_NODES : PMU_NODES - PMU_NODES / 8;
	if (b->nnodes >= cap)
		return 0;
	uint32_t i = b->nnodes++;
	struct pmu_node *n = &v->node[i];
	n->func = func;
	n->parent = parent;
	for (unsigned c = 0; c < PMU_COUNTERS; c++) {
		n->min[c] = INT64_MAX;
		n->max[c] = INT64_MIN;
	}
	if (parent == PMU_COLLAPSED)
		n->flags |= PMU_F_COLLAPSED;
	*at = i;
	return i;
}

static inline uint32_t
pmu_node_find(struct pmu_view *v, uint32_t parent, uint32_t func)
{
	uint32_t h = (parent * 0x9e3779b1u ^ func * 0x85ebca6bu) >> 8;
	for (;; h++) {
		uint32_t *at = &v->hash[h % PMU_HASH];
		if (!*at)
			return pmu_node_new(v, parent, func, at);
		struct pmu_node *n = &v->node[*at];
		if (n->func == func && n->parent == parent)
			return *at;
	}
}

/* The path if it is the caller's own or the one it used last; else 0. */
PMU_INLINE uint32_t
pmu_node_again(const struct pmu_view *v, uint32_t parent, uint32_t func)
{
	const struct pmu_node *p = &v->node[parent];
	/* Direct recursion is one node: fib below fib below fib is fib. */
	if (p->func == func)
		return parent;
	return v->node[p->last].func == func ? p->last : 0;
}

/* The path "func called from node `parent`"; 0 if there is no room at all. */
static inline uint32_t
pmu_node_of(struct pmu_view *v, uint32_t parent, uint32_t func)
{
	uint32_t i = pmu_node_again(v, parent, func);
	if (i)
		return i;
	i = pmu_node_find(v, parent, func);
	if (!i)
		i = pmu_node_find(v, PMU_COLLAPSED, func);
	return v->node[parent].last = i;
}

/* ---- calls -----------------------------------------------------------------
 */

/* A frame on top for a path that has been found; start[] is the caller's. */
PMU_INLINE struct pmu_frame *
pmu_push_node(struct pmu_view *v, uint32_t node, uint64_t slot, uint64_t ret,
    unsigned n, bool spans)
{
	struct pmu_frame *f = v->top + 1;
	v->node[node].active++;
	f->slot = slot;
	f->ret = ret;
	f->node = node;
	f->flags = 0;
	f->state = v->block->state;
	f->nested = 0;
	for (unsigned c = 0; c < n; c++) {
		f->child[c] = 0;
		if (spans)
			f->over[c] = 0;
	}
	/* The frame is whole before it is counted: a crash may come now. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	v->top = f;
	v->block->depth++;
	return f;
}

/*
 * Opens a call. NULL: no room, the call is not counted (tally.lost is). The
 * caller fills start[] as the very last thing.
 */
static inline struct pmu_frame *
pmu_push(struct pmu_view *v, uint32_t func, uint64_t slot, uint64_t ret)
{
	bool room = v->top < v->full;
	uint32_t node = room ? pmu_node_of(v, v->top->node, func) : 0;
	if (!node) {
		v->tally[func].lost++;
		return NULL;
	}
	return pmu_push_node(v, node, slot, ret, v->ncounters, v->spans);
}

/* A call's own value: without our hooks, here and in what it called. */
PMU_INLINE int64_t
pmu_net(const struct pmu_view *v, const struct pmu_frame *f, unsigned c,
    uint64_t gross)
{
	return (int64_t)gross - v->self_cost[c] -
	       v->child_cost[c] * (int64_t)f->nested;
}

PMU_INLINE void
pmu_count(struct pmu_view *v, struct pmu_frame *f, struct pmu_node *n,
    const uint64_t *now, unsigned counters, bool spans)
{
	bool outer = n->active == 1;
	int64_t first = 0;
	for (unsigned c = 0; c < counters; c++) {
		uint64_t d = now[c] - f->start[c];
		uint64_t incl = spans ? d - f->over[c] : d;
		int64_t net = pmu_net(v, f, c, incl);
		n->self[c] += d - f->child[c];
		if (outer)
			n->incl[c] += incl;
		if (net < n->min[c])
			n->min[c] = net;
		if (net > n->max[c])
			n->max[c] = net;
		if (spans)
			f->end[c] = now[c];
		else
			f[-1].child[c] += d;
		if (!c)
			first = net > 0 ? net : 0;
	}
	n->calls++;
	if (outer) {
		n->outer++;
		n->nested += f->nested;
	}
	v->block->late_func = n->func;
	v->block->late_value = (uint64_t)first;
}

/*
 * Puts the last call into its function's distribution. Not when it ends: the
 * chain from the counter's value to an address to a store would then sit
 * between two reads of the counter (8 ns a call where those wait for it).
 */
PMU_INLINE void
pmu_late(struct pmu_view *v)
{
	const struct pmu_block *b = v->block;
	v->tally[b->late_func].bucket[pmu_bucket(b->late_value)]++;
}

PMU_INLINE void
pmu_down(struct pmu_view *v, struct pmu_frame *f, struct pmu_node *n)
{
	f[-1].nested += f->nested + 1;
	n->active--;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	v->top = f - 1;
	v->block->depth--;
}

/* Closes the top call with the counters' values at its end. */
static inline void
pmu_pop(struct pmu_view *v, const uint64_t *now)
{
	struct pmu_frame *f = v->top;
	struct pmu_node *n = &v->node[f->node];
	uint64_t was = f->state, is = v->block->state;
	if (!(f->flags & PMU_F_INHERITED)) {
		pmu_late(v);
		pmu_count(v, f, n, now, v->ncounters, v->spans);
		n->interrupted += was >> 32 != is >> 32;
		n->migrated += (uint32_t)was != (uint32_t)is;
	}
	n->flags |= f->flags;
	pmu_down(v, f, n);
}

/*
 * For counters that can be exact: what the hooks of the call just closed
 * used, measured instead of assumed, is taken out of its callers' windows.
 * `now` is read as the very last thing of the exit hook. What is left is the
 * same for every call, and calibration finds it.
 */
static inline void
pmu_span(struct pmu_view *v, const uint64_t *now)
{
	struct pmu_frame *up = v->top, *f = up + 1;
	for (unsigned c = 0; c < v->ncounters; c++) {
		uint64_t all = now[c] - f->first[c];
		up->child[c] += all;
		up->over[c] += all - (f->end[c] - f->start[c]) + f->over[c];
	}
}

/*
 * Drops the top call, which did not return. What it used belongs to it and
 * not to its caller, as far as `now` can tell.
 */
static inline void
pmu_drop(struct pmu_view *v, const uint64_t *now)
{
	struct pmu_frame *f = v->top, *up = f - 1;
	struct pmu_node *n = &v->node[f->node];
	for (unsigned c = 0; c < v->ncounters; c++)
		up->child[c] += now[c] - (v->spans ? f->first[c] : f->start[c]);
	up->flags |= PMU_F_ORPHAN;
	if (!(f->flags & PMU_F_INHERITED))
		n->unfinished++;
	n->flags |= f->flags;
	pmu_down(v, f, n);
}

/*
 * How many frames on top are dead when a call begins at `slot` (`entering`)
 * or returns through it. Stacks grow down, so frames below `slot` are gone;
 * at an entry the frame *at* slot is gone too, unless the callee was entered
 * by a jump (`tail`).
 */
static inline uint32_t
pmu_dead(const struct pmu_view *v, uint64_t slot, bool entering, bool tail)
{
	const struct pmu_frame *f = v->top;
	bool equal = entering && !tail;
	while (f->slot < slot || (f->slot == slot && equal))
		f--; /* the first frame's slot is above everything */
	return (uint32_t)(v->top - f);
}

#endif
