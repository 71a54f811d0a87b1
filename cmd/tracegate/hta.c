/*
 * The graph as HTA builds it: see graph.h. Where the two could differ the
 * rule is HTA's, also where tracegate would know better: a check has to
 * compute the same thing.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "cli.h"
#include "graph.h"
#include "num.h"
#include "sort.h"
#include "text.h"

enum {
	IS_LOCKING = 1,  /* takes the lock of the CUDA runtime */
	IS_BLOCKING = 2, /* its time is that of what it waits for */
	IS_LAUNCH = 4,   /* puts work on a stream */
	IS_RECORD = 8,   /* of an event */
	IS_WAIT = 16,    /* record: a stream waits for an event */
	IS_EVENT = 32,   /* record: a thread waits for an event */
	IS_STREAM = 64,  /* record: a thread waits for a stream */
	IS_CONTEXT = 128 /* record: a thread waits for all streams */
};

struct named {
	const char *name;
	uint8_t is;
};

/* us: "beyond that an unrecognised dependency" */
#define GAP_MAX 1500

// clang-format off
static const struct named names[] = {
	{ "cudaHostAlloc", IS_LOCKING },
	{ "cudaLaunchKernel", IS_LOCKING | IS_LAUNCH },
	{ "cudaMemcpyAsync", IS_LOCKING | IS_LAUNCH | IS_BLOCKING },
	{ "cudaDeviceSynchronize", IS_BLOCKING },
	{ "cudaStreamSynchronize", IS_BLOCKING },
	{ "cudaEventQuery", IS_BLOCKING },
	{ "cudaEventSynchronize", IS_BLOCKING },
	{ "cudaMemcpy", IS_BLOCKING },
	{ "cudaLaunchKernelExC", IS_LAUNCH },
	{ "cuLaunchKernel", IS_LAUNCH }, { "cuLaunchKernelEx", IS_LAUNCH },
	{ "cudaMemsetAsync", IS_LAUNCH },
	{ "hipLaunchKernel", IS_LAUNCH },
	{ "hipExtModuleLaunchKernel", IS_LAUNCH },
	{ "hipMemcpyAsync", IS_LAUNCH }, { "hipMemsetAsync", IS_LAUNCH },
	{ "hipMemcpyWithStream", IS_LAUNCH },
	{ "cudaEventRecord", IS_RECORD },
	{ "Stream Wait Event", IS_WAIT }, { "Event Sync", IS_EVENT },
	{ "Stream Sync", IS_STREAM }, { "Context Sync", IS_CONTEXT },
};
// clang-format on

/* What the passes share. By slice, unless it says otherwise. */
struct making {
	struct graph *g;
	const struct model *m;
	struct err *e;
	uint8_t *is;          /* by name: IS_ */
	int64_t *ts, *end;    /* us, rounded */
	int32_t *queue;       /* length of the stream's queue then, or -1 */
	int32_t *released_by; /* kernel: one on another stream, or -1 */
	uint32_t *stream, *waiter; /* numbers: see number_streams() */
	uint32_t nstreams;
	uint32_t *last; /* by stream: end of the last kernel, + 1 */
	struct launch *launch;
	uint32_t nlaunches;
};

/* A call and a kernel of it. */
struct launch {
	uint32_t stream, lane, call, kernel;
	int64_t ts;
};

/* ---- time --------------------------------------------------------------- */

/*
 * HTA holds microseconds in a double and rounds a start up and an end down.
 * On stamps since 1970 the double is a quarter of one off before that.
 */
static double
in_us(int64_t ns)
{
	return (double)(ns / 1000) + (double)(ns % 1000) / 1000;
}

static void
round_times(struct making *k)
{
	for (uint32_t i = 0; i < k->m->n; i++) {
		const struct slice *s = &k->m->slice[i];
		double ts = in_us(s->ts), dur = in_us(s->end - s->ts);
		k->ts[i] = (int64_t)ceil(ts);
		k->end[i] = (int64_t)floor(ts + dur);
	}
}

/* ---- nodes ----------------------------------------------------------- */

static bool
on_cpu(const struct slice *s)
{
	return s->kind != SLICE_DEVICE && s->kind != SLICE_SYNC;
}

static bool
in_window(const struct making *k, uint32_t i)
{
	return k->ts[i] >= k->g->from && k->ts[i] <= k->g->until &&
	       k->end[i] > k->ts[i];
}

static bool
has_node(const struct making *k, uint32_t i)
{
	const struct slice *s = &k->m->slice[i];
	if (s->op || s->kind == SLICE_CALL)
		return in_window(k, i);
	if (s->kind != SLICE_DEVICE || s->corr <= 0)
		return false;
	int32_t call = model_call(k->m, s->corr);
	return call >= 0 && in_window(k, (uint32_t)call);
}

static int
by_moment(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;
	if (x->us != y->us)
		return x->us < y->us ? -1 : 1;
	if (x->slice != y->slice)
		return x->slice < y->slice ? -1 : 1;
	return y->begins - x->begins;
}

static void
make_nodes(struct making *k)
{
	struct graph *g = k->g;
	g->node = cli_alloc(2 * (size_t)k->m->n, sizeof *g->node);
	g->begin = cli_alloc(k->m->n, sizeof *g->begin);
	g->end = cli_alloc(k->m->n, sizeof *g->end);
	for (uint32_t i = 0; i < k->m->n; i++) {
		if (!has_node(k, i))
			continue;
		g->node[g->n++] = (struct moment){ k->ts[i], i, true };
		g->node[g->n++] = (struct moment){ k->end[i], i, false };
	}
	sort_array(g->node, g->n, sizeof *g->node, by_moment);
	for (uint32_t v = 0; v < g->n; v++) {
		struct moment *at = &g->node[v];
		(at->begins ? g->begin : g->end)[at->slice] = v + 1;
		if (at->us > g->last)
			g->last = at->us;
	}
	g->into = cli_alloc((size_t)g->n + 1, sizeof *g->into);
}

static uint8_t
is(const struct making *k, uint32_t slice)
{
	return k->is[k->m->slice[slice].name];
}

static int
edge(struct making *k, uint32_t from, uint32_t to, int kind, int32_t slice)
{
	return graph_edge(k->g, from, to, kind, slice, false, k->e);
}

/* ---- the lock of the runtime -------------------------------------------- */

/* Calls that overlap got the lock in the order they ended. */
static int
chain_locks(struct making *k)
{
	const struct graph *g = k->g;
	struct stack begun = { 0 };
	int64_t before = -1;
	int r = 0;
	for (uint32_t v = 0; v < g->n && !r; v++) {
		const struct moment *at = &g->node[v];
		if (!(is(k, at->slice) & IS_LOCKING))
			continue;
		if (at->begins)
			stack_push(&begun, v);
		while (!at->begins && begun.n && !r) {
			uint32_t u = (uint32_t)begun.v[--begun.n];
			bool own = g->node[u].slice == at->slice;
			r = edge(k, u, v, own ? EDGE_WORK : EDGE_NEXT,
			    own ? (int32_t)at->slice : -1);
		}
		if (!at->begins && before >= 0 && !g->node[before].begins && !r)
			r = edge(k, (uint32_t)before, v, EDGE_NEXT, -1);
		before = v;
	}
	stack_free(&begun);
	return r;
}

/* The lock has the edge between these two already. */
static bool
share_lock(const struct making *k, uint32_t u, uint32_t v)
{
	const struct moment *a = &k->g->node[u], *b = &k->g->node[v];
	return is(k, a->slice) & is(k, b->slice) & IS_LOCKING &&
	       (a->begins || !b->begins);
}

/* ---- threads ------------------------------------------------------------ */

/* An end of a slice on a thread. */
struct bound {
	int64_t us, dur;
	uint32_t slice;
	bool begins;
};

/* Ends first; of begins the longer first, of ends the shorter. */
static int
by_bound(const void *a, const void *b)
{
	const struct bound *x = a, *y = b;
	if (x->us != y->us)
		return x->us < y->us ? -1 : 1;
	if (x->begins != y->begins)
		return x->begins ? 1 : -1;
	bool first = x->dur != y->dur ? x->dur > y->dur : x->slice < y->slice;
	return first == x->begins ? -1 : 1;
}

/* Along one thread: where the last edge ended. */
struct along {
	int64_t node; /* or -1 */
	int32_t around;
	uint32_t depth;
};

static int
enter_slice(struct making *k, struct along *a, uint32_t i, int32_t around)
{
	int r = 0;
	if (!k->g->begin[i])
		return 0;
	uint32_t v = k->g->begin[i] - 1;
	if (a->node >= 0 && !share_lock(k, (uint32_t)a->node, v)) {
		const struct moment *u = &k->g->node[a->node];
		r = edge(k, (uint32_t)a->node, v,
		    a->depth ? EDGE_WORK : EDGE_NEXT,
		    u->begins ? (int32_t)u->slice : a->around);
	}
	*a = (struct along){ v, around, a->depth + 1 };
	return r;
}

static int
leave_slice(struct making *k, struct along *a, uint32_t i, int32_t around)
{
	int r = 0;
	if (!k->g->end[i])
		return 0;
	uint32_t v = k->g->end[i] - 1;
	if (a->node >= 0 && !share_lock(k, (uint32_t)a->node, v)) {
		const struct moment *u = &k->g->node[a->node];
		r = graph_edge(k->g, (uint32_t)a->node, v, EDGE_WORK,
		    (int32_t)(u->begins ? u->slice : i), is(k, i) & IS_BLOCKING,
		    k->e);
	}
	*a = (struct along){ v, around, a->depth - 1 };
	return r;
}

/* `b` in order; whatever ends is taken for the one that began last. */
static int
follow_thread(struct making *k, const struct bound *b, uint32_t n)
{
	struct stack open = { 0 };
	struct along a = { -1, -1, 0 };
	int r = 0;
	for (uint32_t i = 0; i < n && !r; i++) {
		uint32_t it = b[i].slice;
		if (!b[i].begins)
			it = (uint32_t)open.v[--open.n];
		int32_t around =
		    open.n ? (int32_t)open.v[open.n - 1] : INT32_C(-1);
		if (!b[i].begins) {
			r = leave_slice(k, &a, it, around);
			continue;
		}
		r = enter_slice(k, &a, it, around);
		stack_push(&open, it);
	}
	stack_free(&open);
	return r;
}

static uint32_t
add_bounds(const struct making *k, uint32_t lane, struct bound *b)
{
	const struct run_of *run = &k->m->run[lane];
	uint32_t n = 0;
	for (uint32_t i = 0; i < run->n; i++) {
		uint32_t s = k->m->order[run->first + i];
		int64_t dur = k->end[s] - k->ts[s];
		if (!on_cpu(&k->m->slice[s]) || !in_window(k, s))
			continue;
		b[n++] = (struct bound){ k->ts[s], dur, s, true };
		b[n++] = (struct bound){ k->end[s], dur, s, false };
	}
	return n;
}

/* The one thread that runs what has `word` in its name, or -1. */
static int64_t
thread_of(const struct making *k, const char *word)
{
	int64_t lane = -1;
	for (uint32_t i = 0; i < k->m->n; i++) {
		const struct slice *s = &k->m->slice[i];
		struct str name = k->m->name[s->name];
		if (!s->op && !s->annotation)
			continue;
		if (!in_window(k, i) || text_find(name, word) < 0)
			continue;
		if (lane >= 0 && s->lane != (uint32_t)lane)
			return -1;
		lane = s->lane;
	}
	return lane;
}

/* For qsort. Set before and cleared after. */
static const struct lanes *sorting;

static int
by_thread(const void *a, const void *b)
{
	const struct lane *x = &sorting->lane[*(const uint32_t *)a];
	const struct lane *y = &sorting->lane[*(const uint32_t *)b];
	struct str text[2][2] = { { x->pid, y->pid }, { x->tid, y->tid } };
	for (int i = 0; i < 2; i++) {
		int64_t v[2] = { INT64_MAX, INT64_MAX };
		num_i64(text[i][0], 0, INT64_MAX, &v[0], NULL);
		num_i64(text[i][1], 0, INT64_MAX, &v[1], NULL);
		if (v[0] != v[1])
			return v[0] < v[1] ? -1 : 1;
		int order = str_order(text[i][0], text[i][1]);
		if (order)
			return order;
	}
	return 0;
}

/* The backward pass is followed as if it ran on the thread of the forward. */
static int
chain_threads(struct making *k)
{
	const struct model *m = k->m;
	int64_t forward = thread_of(k, "forward");
	int64_t backward = thread_of(k, "autograd");
	bool merge = forward >= 0 && backward >= 0 && forward != backward;
	uint32_t *lane = cli_alloc(m->lanes.n, sizeof *lane);
	struct bound *b = cli_alloc(2 * (size_t)m->n, sizeof *b);
	int r = 0;
	for (uint32_t i = 0; i < m->lanes.n; i++)
		lane[i] = i;
	sorting = &m->lanes;
	sort_array(lane, m->lanes.n, sizeof *lane, by_thread);
	sorting = NULL;
	for (uint32_t i = 0; i < m->lanes.n && !r; i++) {
		if (merge && lane[i] == (uint32_t)backward)
			continue;
		uint32_t n = add_bounds(k, lane[i], b);
		if (merge && lane[i] == (uint32_t)forward)
			n += add_bounds(k, (uint32_t)backward, b + n);
		sort_array(b, n, sizeof *b, by_bound);
		r = follow_thread(k, b, n);
	}
	free(lane);
	free(b);
	return r;
}

/* ---- streams ------------------------------------------------------------ */

/* Streams are numbered as they come; a device has its own. */
struct numbering {
	struct map map;
	struct arena arena;
	uint32_t n;
};

static uint32_t
number_of(struct numbering *by, struct str device, int64_t stream)
{
	struct buf b = { 0 };
	bool fresh;
	buf_str(&b, device);
	buf_printf(&b, " %" PRId64, stream);
	uint64_t *at = map_get(&by->map, buf_view(&b));
	if (!at) {
		struct str copy = arena_str(&by->arena, buf_view(&b));
		at = copy.p ? map_at(&by->map, copy, &fresh) : NULL;
		if (!at)
			cli_die("out of memory");
		*at = by->n++;
	}
	buf_free(&b);
	return (uint32_t)*at;
}

static void
number_streams(struct making *k)
{
	struct numbering by = { 0 };
	for (uint32_t i = 0; i < k->m->n; i++) {
		const struct slice *s = &k->m->slice[i];
		struct str device = k->m->lanes.lane[s->lane].pid;
		if (s->kind != SLICE_DEVICE && s->kind != SLICE_SYNC)
			continue;
		k->stream[i] = number_of(&by, device, s->stream);
		if (s->kind == SLICE_SYNC)
			k->waiter[i] = number_of(&by, device, s->waiter);
	}
	k->nstreams = by.n;
	k->last = cli_alloc((size_t)by.n + 1, sizeof *k->last);
	map_free(&by.map);
	arena_free(&by.arena);
}

/* By stream, then time, then place. */
static int
by_launch(const void *a, const void *b)
{
	const struct launch *x = a, *y = b;
	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	if (x->call != y->call)
		return x->call < y->call ? -1 : 1;
	return x->kernel < y->kernel ? -1 : x->kernel > y->kernel;
}

static void
list_launches(struct making *k)
{
	k->launch = cli_alloc(k->m->nby_corr, sizeof *k->launch);
	for (uint32_t i = 0; i < k->m->nby_corr; i++) {
		uint32_t kernel = k->m->by_corr[i];
		int32_t call = model_call(k->m, k->m->slice[kernel].corr);
		if (call < 0 || !(is(k, (uint32_t)call) & IS_LAUNCH))
			continue;
		k->launch[k->nlaunches++] =
		    (struct launch){ k->stream[kernel], k->m->slice[call].lane,
			    (uint32_t)call, kernel, k->ts[call] };
	}
	sort_array(k->launch, k->nlaunches, sizeof *k->launch, by_launch);
}

/* A change of a queue's length: a call adds one, a kernel's start takes it. */
struct change {
	uint32_t stream, slice;
	int64_t ts;
	bool adds;
};

static int
by_change(const void *a, const void *b)
{
	const struct change *x = a, *y = b;
	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	if (x->adds != y->adds)
		return x->adds ? -1 : 1;
	return x->slice < y->slice ? -1 : x->slice > y->slice;
}

static void
measure_queues(struct making *k)
{
	uint32_t n = 0;
	int32_t length = 0;
	struct change *c = cli_alloc(2 * (size_t)k->nlaunches, sizeof *c);
	for (uint32_t i = 0; i < k->nlaunches; i++) {
		const struct launch *l = &k->launch[i];
		c[n++] = (struct change){ l->stream, l->call, l->ts, true };
		c[n++] = (struct change){ l->stream, l->kernel,
			k->ts[l->kernel], false };
	}
	sort_array(c, n, sizeof *c, by_change);
	for (uint32_t i = 0; i < k->m->n; i++)
		k->queue[i] = -1;
	for (uint32_t i = 0; i < n; i++) {
		if (!i || c[i].stream != c[i - 1].stream)
			length = 0;
		length += c[i].adds ? 1 : -1;
		k->queue[c[i].slice] = length;
	}
	free(c);
}

/* The first launch on a stream at or after ts, or nlaunches. */
static uint32_t
launch_after(const struct making *k, uint32_t stream, int64_t ts)
{
	uint32_t lo = 0, hi = k->nlaunches;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct launch *l = &k->launch[mid];
		if (l->stream < stream || (l->stream == stream && l->ts < ts))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* What an event stood for: the kernel launched last before its record. */
static int32_t
recorded(const struct making *k, uint32_t sync)
{
	const struct slice *s = &k->m->slice[sync];
	int32_t call =
	    s->record_corr > 0 ? model_call(k->m, s->record_corr) : INT32_C(-1);
	if (call < 0 || s->stream < 0 || !(is(k, (uint32_t)call) & IS_RECORD))
		return -1;
	uint32_t i = launch_after(k, k->stream[sync], k->ts[call] + 1);
	if (!i || k->launch[i - 1].stream != k->stream[sync])
		return -1;
	return (int32_t)k->launch[i - 1].kernel;
}

/* A stream waits: the next kernel this thread launches there waits. */
static void
hold_stream(struct making *k, uint32_t sync)
{
	int32_t from = recorded(k, sync);
	int32_t call = model_call(k->m, k->m->slice[sync].corr);
	if (from < 0 || call < 0)
		return;
	uint32_t lane = k->m->slice[call].lane;
	uint32_t stream = k->waiter[sync];
	for (uint32_t i = launch_after(k, stream, k->ts[call]);
	     i < k->nlaunches && k->launch[i].stream == stream; i++)
		if (k->launch[i].lane == lane) {
			k->released_by[k->launch[i].kernel] = from;
			return;
		}
}

/* A record of a wait that ended: from what released it to the call's end. */
static int
release(struct making *k, uint32_t sync)
{
	const struct graph *g = k->g;
	int32_t call = model_call(k->m, k->m->slice[sync].corr);
	uint8_t what = is(k, sync);
	int r = 0;
	if (what & IS_WAIT)
		hold_stream(k, sync);
	if (call < 0 || !g->end[call])
		return 0;
	uint32_t to = g->end[call] - 1;
	if (what & IS_EVENT) {
		int32_t from = recorded(k, sync);
		return from >= 0 && g->end[from]
			   ? edge(k, g->end[from] - 1, to, EDGE_SYNC, -1)
			   : 0;
	}
	uint32_t waiter = k->waiter[sync];
	if (what & IS_STREAM && k->last[waiter])
		return edge(k, k->last[waiter] - 1, to, EDGE_SYNC, -1);
	for (uint32_t i = 0; what & IS_CONTEXT && i < k->nstreams && !r; i++)
		if (k->last[i])
			r = edge(k, k->last[i] - 1, to, EDGE_SYNC, -1);
	return r;
}

/*
 * What a kernel had to wait for: its launch if its queue was empty and the
 * kernel before it through, else the one before it on its stream.
 */
static int
place_kernel(struct making *k, uint32_t i)
{
	const struct graph *g = k->g;
	uint32_t *last = &k->last[k->stream[i]];
	uint32_t begin = g->begin[i] - 1, end = g->end[i] - 1;
	uint32_t call = (uint32_t)model_call(k->m, k->m->slice[i].corr);
	int32_t held = k->released_by[i];
	int64_t held_us = INT64_MIN;
	int r = edge(k, begin, end, EDGE_WORK, (int32_t)i);
	if (held >= 0 && g->end[held] && !r) {
		held_us = g->node[g->end[held] - 1].us;
		r = edge(k, g->end[held] - 1, begin, EDGE_SYNC, -1);
	}
	int64_t last_us = *last ? g->node[*last - 1].us : INT64_MIN;
	if (k->queue[call] == 1 && k->queue[i] == 0 && last_us < k->ts[call] &&
	    held_us < k->ts[call]) {
		if (!r && g->begin[call])
			r = edge(k, g->begin[call] - 1, begin, EDGE_LAUNCH, -1);
	} else if (*last && held_us < last_us &&
		   g->node[begin].us - last_us < GAP_MAX && !r) {
		r = edge(k, *last - 1, begin, EDGE_GAP, -1);
	}
	*last = end + 1;
	return r;
}

/* Kernels by their start, records of waits by their end. */
static int
by_turn(const void *a, const void *b)
{
	const struct bound *x = a, *y = b;
	if (x->us != y->us)
		return x->us < y->us ? -1 : 1;
	return x->slice < y->slice ? -1 : x->slice > y->slice;
}

static int
chain_streams(struct making *k)
{
	struct bound *b = cli_alloc(k->m->n, sizeof *b);
	uint32_t n = 0;
	int r = 0;
	for (uint32_t i = 0; i < k->m->n; i++) {
		bool wait = k->m->slice[i].kind == SLICE_SYNC;
		bool kernel =
		    k->m->slice[i].kind == SLICE_DEVICE && k->g->begin[i];
		if (wait || kernel)
			b[n++] = (struct bound){ wait ? k->end[i] : k->ts[i], 0,
				i, kernel };
	}
	sort_array(b, n, sizeof *b, by_turn);
	for (uint32_t i = 0; i < n && !r; i++)
		r = b[i].begins ? place_kernel(k, b[i].slice)
				: release(k, b[i].slice);
	free(b);
	return r;
}

/* A wait weighs nothing: without an edge into its end its time is lost. */
static void
count_vanished(struct making *k)
{
	struct graph *g = k->g;
	for (uint32_t v = 0; v < g->n; v++) {
		uint32_t i = g->node[v].slice;
		uint8_t what = is(k, i) & (IS_BLOCKING | IS_LOCKING);
		bool released = false;
		if (g->node[v].begins || what != IS_BLOCKING)
			continue;
		for (uint32_t d = g->into[v]; d; d = g->edge[d - 1].older)
			released |= g->edge[d - 1].kind == EDGE_SYNC;
		if (!released)
			g->vanished += k->end[i] - k->ts[i];
	}
}

/* ---- all of it ---------------------------------------------------------- */

static void
name_all(struct making *k)
{
	k->is = cli_alloc(k->m->nnames, sizeof *k->is);
	for (uint32_t i = 0; i < k->m->nnames; i++)
		for (size_t j = 0; j < sizeof names / sizeof *names; j++)
			if (str_is(k->m->name[i], names[j].name))
				k->is[i] = names[j].is;
}

static void
making_free(struct making *k)
{
	free(k->is);
	free(k->ts);
	free(k->end);
	free(k->queue);
	free(k->released_by);
	free(k->stream);
	free(k->waiter);
	free(k->last);
	free(k->launch);
}

int
graph_make(struct graph *g, const struct model *m, int64_t from, int64_t until,
    struct err *e)
{
	*g = (struct graph){ .m = m };
	g->from = (int64_t)ceil(in_us(from));
	g->until = g->last = (int64_t)floor(in_us(until));
	struct making k = { .g = g, .m = m, .e = e };
	k.ts = cli_alloc(m->n, sizeof *k.ts);
	k.end = cli_alloc(m->n, sizeof *k.end);
	k.queue = cli_alloc(m->n, sizeof *k.queue);
	k.released_by = cli_alloc(m->n, sizeof *k.released_by);
	k.stream = cli_alloc(m->n, sizeof *k.stream);
	k.waiter = cli_alloc(m->n, sizeof *k.waiter);
	for (uint32_t i = 0; i < m->n; i++)
		k.released_by[i] = -1;
	name_all(&k);
	round_times(&k);
	make_nodes(&k);
	int r = chain_locks(&k);
	if (!r)
		r = chain_threads(&k);
	number_streams(&k);
	list_launches(&k);
	measure_queues(&k);
	if (!r)
		r = chain_streams(&k);
	count_vanished(&k);
	making_free(&k);
	return r;
}
