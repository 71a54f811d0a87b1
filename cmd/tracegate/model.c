/* A whole trace in memory: see model.h. */
#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "glob.h"
#include "hash.h"
#include "num.h"
#include "sort.h"

/* ---- what things are ---------------------------------------------------- */

struct kind_of {
	const char *cat;
	uint8_t kind;
};

// clang-format off
/* libkineto ActivityType.h, and the names before 2022 */
static const struct kind_of kinds[] = {
	{ "kernel", SLICE_DEVICE }, { "Kernel", SLICE_DEVICE },
	{ "gpu_memcpy", SLICE_DEVICE }, { "Memcpy", SLICE_DEVICE },
	{ "gpu_memset", SLICE_DEVICE }, { "Memset", SLICE_DEVICE },
	{ "cuda_runtime", SLICE_CALL }, { "Runtime", SLICE_CALL },
	{ "cuda_driver", SLICE_CALL }, { "xpu_runtime", SLICE_CALL },
	{ "cuda_sync", SLICE_SYNC }, { "xpu_sync", SLICE_SYNC },
	{ "user_annotation", SLICE_NOTE },
	{ "gpu_user_annotation", SLICE_NOTE },
	{ "Trace", SLICE_NOTE }, { "overhead", SLICE_NOTE },
	{ "wait", SLICE_WAIT }, { "wake", SLICE_WAKE },
};

struct blocking {
	const char *name;
	uint8_t blocks;
};

/* Calls that may hold their thread (HTA has the same list, and hip*). */
static const struct blocking blocking[] = {
	{ "cudaDeviceSynchronize", BLOCKS_DEVICE },
	{ "hipDeviceSynchronize", BLOCKS_DEVICE },
	{ "cudaStreamSynchronize", BLOCKS_STREAM },
	{ "hipStreamSynchronize", BLOCKS_STREAM },
	{ "cudaEventSynchronize", BLOCKS_STREAM },
	{ "hipEventSynchronize", BLOCKS_STREAM },
	{ "cudaMemcpy", BLOCKS_STREAM },
	{ "hipMemcpy", BLOCKS_STREAM },
	{ "hipMemcpyWithStream", BLOCKS_STREAM },
	{ "cudaMemcpyAsync", BLOCKS_STREAM },
	{ "hipMemcpyAsync", BLOCKS_STREAM },
	{ "cudaFree", BLOCKS_DEVICE },
	{ "hipFree", BLOCKS_DEVICE },
};
// clang-format on

static uint8_t
kind_of(struct str cat)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (str_is(cat, kinds[i].cat))
			return kinds[i].kind;
	return SLICE_CPU;
}

static uint8_t
blocks_of(struct str name)
{
	for (size_t i = 0; i < sizeof blocking / sizeof *blocking; i++)
		if (str_is(name, blocking[i].name))
			return blocking[i].blocks;
	return BLOCKS_NOT;
}

/* libkineto's name, and the one before 2022. */
static bool
is_op(struct str cat)
{
	return str_is(cat, "cpu_op") || str_is(cat, "Operator");
}

static int64_t
int_arg(const struct event *ev, const char *key, int64_t otherwise)
{
	int64_t v = otherwise;
	if (ev->args.len)
		num_i64(
		    scan_get(ev->args, key), INT64_MIN, INT64_MAX, &v, NULL);
	return v;
}

/* ---- loading --------------------------------------------------------- */

static uint32_t
name_index(struct model *m, struct str name)
{
	bool fresh;
	uint64_t *at = map_get(&m->names, name);
	if (at)
		return (uint32_t)*at;
	struct str copy = arena_str(&m->arena, name);
	at = copy.p ? map_at(&m->names, copy, &fresh) : NULL;
	if (!at)
		cli_die("out of memory");
	if (m->nnames == m->names_cap) {
		m->names_cap = m->names_cap ? m->names_cap * 2 : 256;
		m->name = cli_realloc(m->name, m->names_cap, sizeof *m->name);
	}
	*at = m->nnames;
	m->name[m->nnames] = copy;
	return m->nnames++;
}

static struct slice *
new_slice(struct model *m)
{
	if (m->n == m->cap) {
		m->cap = m->cap ? m->cap * 2 : 1024;
		m->slice = cli_realloc(m->slice, m->cap, sizeof *m->slice);
	}
	struct slice *s = &m->slice[m->n];
	*s = (struct slice){ .nth = m->n++, .parent = -1 };
	return s;
}

static void
describe(struct model *m, struct slice *s, const struct event *ev)
{
	s->kind = kind_of(ev->cat);
	s->name = name_index(m, ev->name);
	if (s->kind == SLICE_CALL || s->kind == SLICE_DEVICE ||
	    s->kind == SLICE_SYNC)
		s->corr = int_arg(ev, "correlation", 0);
	if (s->kind == SLICE_CALL)
		s->blocks = blocks_of(ev->name);
	s->op = s->kind == SLICE_CPU && (!ev->cat.len || is_op(ev->cat));
	s->annotation = str_is(ev->cat, "user_annotation");
	s->stream = s->waiter = -1;
	if (s->kind == SLICE_DEVICE)
		s->stream = int_arg(ev, "stream", -1);
	if (s->kind == SLICE_SYNC) {
		m->sync_records = true;
		s->waiter = int_arg(ev, "stream", -1);
		s->stream = int_arg(ev, "wait_on_stream", s->waiter);
		s->record_corr =
		    int_arg(ev, "wait_on_cuda_event_record_corr_id", -1);
	}
	if (s->kind == SLICE_WAIT || s->kind == SLICE_WAKE) {
		struct str on = scan_get(ev->args, "on");
		s->relation = on.len ? hash_table(on.p, on.len, 3) : 0;
	}
}

static void
tell(const struct model_watch *w, const struct event *ev, int64_t slice)
{
	if (w)
		w->see(w->user, ev, slice);
}

static int
take_event(struct model *m, const struct event *ev,
    const struct model_watch *watch, struct err *e)
{
	char half = phase_pair(ev->ph);
	if (ev->ph != 'X' && (!half || phase_async(ev->ph))) {
		tell(watch, ev, -1);
		return 0;
	}
	uint32_t lane = lanes_of(&m->lanes, ev);
	struct stack *open = &m->lanes.lane[lane].open;
	if (half == 'e') {
		if (open->n)
			m->slice[open->v[--open->n]].end = ev->ts;
		return 0;
	}
	if (m->n == MODEL_MAX)
		return err_set(e, SE_ELIMIT,
		    "more than %d slices: cut it with filter first", MODEL_MAX);
	if (half == 'b')
		stack_push(open, m->n);
	struct slice *s = new_slice(m);
	s->ts = ev->ts;
	s->end = event_end(ev);
	s->lane = lane;
	describe(m, s, ev);
	tell(watch, ev, s->nth);
	return 0;
}

static int
read_events(struct model *m, struct reader *r, const struct model_watch *watch,
    struct err *e)
{
	struct event ev = { 0 };
	for (;;) {
		int n = reader_next(r, &ev, e);
		if (n == READ_EVENT) {
			n = take_event(m, &ev, watch, e);
			if (n)
				return n;
			continue;
		}
		if (n == READ_IDLE)
			continue;
		if ((n == SE_ETRUNC || n == SE_EFORMAT) && m->n) {
			r->info.truncated = true;
			return 0;
		}
		return n;
	}
}

/* ---- order ----------------------------------------------------------- */

/* For qsort, which passes nothing along. Set before and cleared after. */
static const struct slice *sorting;

static int
by_lane(const void *a, const void *b)
{
	const struct slice *x = &sorting[*(const uint32_t *)a];
	const struct slice *y = &sorting[*(const uint32_t *)b];
	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return x->nth < y->nth ? -1 : 1;
}

static int
by_correlation(const void *a, const void *b)
{
	const struct slice *x = &sorting[*(const uint32_t *)a];
	const struct slice *y = &sorting[*(const uint32_t *)b];
	if (x->corr != y->corr)
		return x->corr < y->corr ? -1 : 1;
	return x->nth < y->nth ? -1 : 1;
}

static void
sort_slices(struct model *m, uint32_t *v, uint32_t n,
    int (*order)(const void *, const void *))
{
	sorting = m->slice;
	if (n)
		sort_array(v, n, sizeof *v, order);
	sorting = NULL;
}

/* Parents, by the nesting of each lane. Device lanes do not nest. */
static void
find_parents(struct model *m)
{
	struct stack s = { 0 };
	for (uint32_t l = 0; l < m->lanes.n; l++) {
		s.n = 0;
		for (uint32_t i = 0; i < m->run[l].n; i++) {
			uint32_t k = m->order[m->run[l].first + i];
			struct slice *it = &m->slice[k];
			while (s.n && m->slice[s.v[s.n - 1]].end <= it->ts)
				s.n--;
			if (s.n) {
				it->parent = (int32_t)s.v[s.n - 1];
				int64_t over =
				    it->end - m->slice[it->parent].end;
				m->nest += over > 1000;
			}
			stack_push(&s, k);
		}
	}
	stack_free(&s);
}

static void
sort_lanes(struct model *m)
{
	m->order = cli_alloc(m->n, sizeof *m->order);
	m->run = cli_alloc(m->lanes.n, sizeof *m->run);
	for (uint32_t i = 0; i < m->n; i++)
		m->order[i] = i;
	sort_slices(m, m->order, m->n, by_lane);
	for (uint32_t i = 0; i < m->n; i++) {
		struct run_of *r = &m->run[m->slice[m->order[i]].lane];
		if (!r->n)
			r->first = i;
		r->n++;
	}
}

static uint32_t *
with_correlation(struct model *m, uint8_t kind, uint32_t *n)
{
	uint32_t *v = cli_alloc(m->n, sizeof *v);
	*n = 0;
	for (uint32_t i = 0; i < m->n; i++)
		if (m->slice[i].kind == kind && m->slice[i].corr > 0)
			v[(*n)++] = i;
	sort_slices(m, v, *n, by_correlation);
	return v;
}

void
model_device(const struct model *m, int64_t corr, uint32_t *first, uint32_t *n)
{
	uint32_t lo = 0, hi = m->nby_corr;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (m->slice[m->by_corr[mid]].corr < corr)
			lo = mid + 1;
		else
			hi = mid;
	}
	*first = lo;
	while (lo < m->nby_corr && m->slice[m->by_corr[lo]].corr == corr)
		lo++;
	*n = lo - *first;
}

int32_t
model_call(const struct model *m, int64_t corr)
{
	uint32_t lo = 0, hi = m->ncalls;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (m->slice[m->call_of[mid]].corr < corr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == m->ncalls || m->slice[m->call_of[lo]].corr != corr)
		return -1;
	return (int32_t)m->call_of[lo];
}

static void
finish(struct model *m)
{
	/* What never ended lasts to the end of the trace. */
	for (uint32_t i = 0; i < m->n; i++)
		if (m->slice[i].end > m->last || !i)
			m->last = m->slice[i].end;
	for (uint32_t l = 0; l < m->lanes.n; l++)
		for (uint32_t i = 0; i < m->lanes.lane[l].open.n; i++)
			m->slice[m->lanes.lane[l].open.v[i]].end = m->last;
	for (uint32_t i = 0; i < m->n; i++)
		if (m->slice[i].ts < m->first || !i)
			m->first = m->slice[i].ts;
	sort_lanes(m);
	find_parents(m);
	m->by_corr = with_correlation(m, SLICE_DEVICE, &m->nby_corr);
	m->call_of = with_correlation(m, SLICE_CALL, &m->ncalls);
	for (uint32_t i = 0; i < m->n; i++)
		m->orphans += m->slice[i].kind == SLICE_DEVICE &&
			      model_call(m, m->slice[i].corr) < 0;
}

int
model_load_watched(struct model *m, const char *path, const char *type,
    const struct fields *fields, const struct model_watch *watch, struct err *e)
{
	struct reader r;
	*m = (struct model){ .path = path, .rank = -1 };
	lanes_init(&m->lanes);
	int n = reader_open(&r, path, type, fields, cli_tmpdir(), e);
	if (!n)
		n = read_events(m, &r, watch, e);
	if (!n && !m->n)
		n = err_set(e, SE_EFORMAT, "no slice with a duration");
	m->info = r.info;
	m->info.head = m->info.tail = (struct buf){ 0 };
	m->rank = r.info.rank;
	reader_close(&r);
	if (!n)
		finish(m);
	return n;
}

int
model_load(struct model *m, const char *path, const char *type,
    const struct fields *fields, struct err *e)
{
	return model_load_watched(m, path, type, fields, NULL, e);
}

void
model_free(struct model *m)
{
	lanes_free(&m->lanes);
	map_free(&m->names);
	arena_free(&m->arena);
	free(m->slice);
	free(m->name);
	free(m->order);
	free(m->run);
	free(m->by_corr);
	free(m->call_of);
}
