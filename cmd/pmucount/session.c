/* The shared memory of a run: see session.h. */
#define _GNU_SOURCE
#include "session.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PATHS_MAX = 1 << 20 }; /* call paths of all threads together */

int
session_open(struct session *s, const struct event_set *ev, struct err *e)
{
	*s = (struct session){ .fd = -1, .events = *ev };
	uint64_t size = PMU_AT_BLOCKS + (uint64_t)PMU_THREADS * PMU_BLOCK;
	s->fd = memfd_create("pmucount", 0);
	if (s->fd < 0 || ftruncate(s->fd, (off_t)size)) {
		err_sys(e, "cannot make the shared memory");
		session_close(s);
		return SE_EIO;
	}
	s->mapped = PMU_AT_BLOCKS;
	void *p =
	    mmap(NULL, s->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	s->known = calloc(PMU_FUNCS, sizeof *s->known);
	if (p == MAP_FAILED || !s->known) {
		err_sys(e, "cannot map the shared memory");
		session_close(s);
		return SE_EIO;
	}
	s->head = p;
	s->func = (struct pmu_func *)((char *)p + PMU_AT_FUNCS);
	s->head->magic = PMU_MAGIC;
	s->head->size = size;
	s->head->ncounters = ev->n;
	for (unsigned i = 0; i < ev->n; i++)
		s->head->event[i] = (struct pmu_event){ ev->event[i].source,
			ev->event[i].type, ev->event[i].config };
	return 0;
}

void
session_close(struct session *s)
{
	for (uint32_t i = 0; i < s->nobjects; i++)
		object_close(s->object[i]);
	if (s->head)
		munmap(s->head, s->mapped);
	if (s->fd >= 0)
		close(s->fd);
	free(s->known);
	*s = (struct session){ .fd = -1 };
}

int
session_object(
    struct session *s, struct object *o, uint64_t base, struct err *e)
{
	if (s->nobjects == PMU_OBJECTS) {
		object_close(o);
		return err_set(
		    e, SE_ELIMIT, "more than %d objects", PMU_OBJECTS);
	}
	uint32_t i = s->nobjects++;
	s->object[i] = o;
	struct pmu_object *p = &s->head->object[i];
	size_t n = strlen(o->path);
	memcpy(p->path, o->path, n < PMU_NAME ? n : PMU_NAME - 1);
	p->base = base;
	p->first = s->nknown;
	p->n = 0;
	s->head->nobjects = s->nobjects;
	return (int)i;
}

int
session_func(struct session *s, uint32_t object, uint32_t func,
    const struct site *site, struct err *e)
{
	if (s->nknown == PMU_FUNCS)
		return err_set(
		    e, SE_ELIMIT, "more than %d functions", PMU_FUNCS);
	uint32_t i = s->nknown++;
	s->known[i].object = object;
	s->known[i].func = func;
	s->known[i].before = site ? site->before : 0;
	s->func[i] = (struct pmu_func){
		.object = object,
		.vaddr =
		    site ? site->vaddr : s->object[object]->func[func].vaddr,
		.kind = site ? site->kind : 0,
		.before = site ? site->before : 0,
	};
	s->head->object[object].n++;
	s->asked[object]++;
	s->head->nfuncs = s->nknown;
	return (int)i;
}

void
session_idle(
    struct session *s, uint32_t object, uint32_t func, const struct site *site)
{
	/* Most of the table is for what is counted. */
	if (site->kind != PMU_NOPS || s->nidle >= PMU_FUNCS / 4 ||
	    s->nknown == PMU_FUNCS)
		return;
	int id = session_func(s, object, func, site, NULL);
	s->func[id].state = PMU_IDLE;
	s->asked[object]--;
	s->nidle++;
}

int
session_block(struct session *s, uint32_t i, struct pmu_view *v)
{
	if (i >= PMU_THREADS)
		return SE_ELIMIT;
	void *p = mmap(NULL, PMU_BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED,
	    s->fd, (off_t)(PMU_AT_BLOCKS + (uint64_t)i * PMU_BLOCK));
	if (p == MAP_FAILED)
		return SE_ENOMEM;
	*v = pmu_view_of(p, s->events.n);
	return 0;
}

/* ---- the sum over threads ------------------------------------------------ */

/*
 * The target could have written anything into its block: every index is
 * checked here, once, and nothing below believes another.
 */
struct sum {
	struct session *s;
	struct result *r;
	uint32_t *entry_of; /* function -> index + 1 in r->entry */
	struct map path_of; /* parent path and function -> path */
	uint64_t unwound, lost_signal, threads, odd, most_bytes;
};

static struct entry *
entry_for(struct sum *m, uint32_t func)
{
	if (m->entry_of[func])
		return &m->r->entry[m->entry_of[func] - 1];
	uint32_t o = m->s->known[func].object;
	const struct object *obj = m->s->object[o];
	const struct func *f = &obj->func[m->s->known[func].func];
	struct entry *n = result_entry(m->r, str_c(f->shown), str_c(obj->path));
	if (!n)
		return NULL;
	m->entry_of[func] = (uint32_t)m->r->nentries;
	for (unsigned c = 0; c < PMU_COUNTERS; c++) {
		n->v[c].known = n->v[c].incl_known = true;
		n->v[c].min = INT64_MAX;
		n->v[c].max = INT64_MIN;
	}
	return n;
}

static struct path *
path_for(struct sum *m, uint32_t parent, uint32_t func)
{
	uint64_t *k = arena_alloc(&m->r->arena, sizeof *k);
	bool fresh;
	if (!k || m->r->npaths == PATHS_MAX)
		return NULL;
	*k = (uint64_t)parent << 32 | func;
	uint64_t *at = map_at(
	    &m->path_of, (struct str){ (const char *)k, sizeof *k }, &fresh);
	if (!at)
		return NULL;
	if (!fresh)
		return &m->r->path[*at];
	*at = m->r->npaths;
	struct path *p = result_path(m->r);
	if (!p)
		return NULL;
	p->parent = parent;
	p->entry = m->entry_of[func] - 1;
	return p;
}

static unsigned
flags_of_node(uint32_t f)
{
	static const struct {
		uint32_t from;
		unsigned to;
	} map[] = {
		{ PMU_F_MULTIPLEXED, FLAG_MULTIPLEXED },
		{ PMU_F_COLLAPSED, FLAG_COLLAPSED },
		{ PMU_F_TAIL, FLAG_TAIL },
		{ PMU_F_ORPHAN, FLAG_ORPHAN },
		{ PMU_F_CUT, FLAG_CUT },
		{ PMU_F_HOLES, FLAG_HOLES },
	};
	unsigned flags = 0;
	for (size_t i = 0; i < sizeof map / sizeof *map; i++)
		if (f & map[i].from)
			flags |= map[i].to;
	return flags;
}

/*
 * Corrections: see pmucount(1), CALIBRATION. Instructions ahead of the site
 * (a landing pad) run in the caller's window and belong to the callee.
 */
static void
add_values(struct sum *m, struct entry *en, struct path *p,
    const struct pmu_node *n, uint64_t kids, unsigned before)
{
	const struct pmu_calib *k = &m->s->head->calib;
	for (unsigned c = 0; c < m->s->events.n; c++) {
		bool exact = m->s->events.event[c].exact;
		/* A callee's own part is in its value, or out of our window
		 * with its hooks: only the rest is ours to take off. */
		int64_t kid = k->child[c] - k->self[c];
		int64_t own =
		    k->self[c] * (int64_t)n->calls + kid * (int64_t)kids;
		int64_t pads = exact ? (int64_t)before : 0;
		int64_t self =
		    (int64_t)n->self[c] - own + pads * (int64_t)n->calls;
		int64_t incl =
		    (int64_t)n->incl[c] - k->self[c] * (int64_t)n->outer -
		    k->child[c] * (int64_t)n->nested + pads * (int64_t)n->outer;
		struct values *v = &en->v[c];
		p->self[c] += self;
		p->incl[c] += incl;
		v->self += self;
		v->err += k->spread[c] * (int64_t)(n->calls + kids);
		if (n->calls && n->min[c] + pads < v->min)
			v->min = n->min[c] + pads;
		if (n->calls && n->max[c] + pads > v->max)
			v->max = n->max[c] + pads;
		en->own[c] += exact ? 0 : own;
	}
}

/* A callee's landing pad was counted in its caller. */
static void
take_pads(
    struct sum *m, struct path *up, const struct pmu_node *n, unsigned before)
{
	for (unsigned c = 0; c < m->s->events.n; c++) {
		if (!m->s->events.event[c].exact)
			continue;
		int64_t pads =
		    (int64_t)before * (int64_t)(n->calls + n->unfinished);
		up->self[c] -= pads;
		m->r->entry[up->entry].v[c].self -= pads;
	}
}

static int
add_node(struct sum *m, const struct pmu_node *n, uint64_t kids,
    uint32_t parent, uint32_t *path, struct err *e)
{
	if (!entry_for(m, n->func))
		return err_mem(e);
	struct path *p = path_for(m, parent, n->func);
	if (!p)
		return err_set(e, SE_ELIMIT,
		    "more than %d different call paths", PATHS_MAX);
	*path = (uint32_t)(p - m->r->path);
	struct entry *en = &m->r->entry[p->entry];
	unsigned before = m->s->known[n->func].before;
	p->calls += n->calls;
	p->unfinished += n->unfinished;
	en->calls += n->calls;
	en->unfinished += n->unfinished;
	en->interrupted += n->interrupted;
	en->migrated += n->migrated;
	p->flags |= flags_of_node(n->flags);
	en->flags |= flags_of_node(n->flags);
	add_values(m, en, p, n, kids, before);
	if (before && parent != UINT32_MAX)
		take_pads(m, &m->r->path[parent], n, before);
	if (before && n->calls > n->outer) {
		struct pmu_node again = { .calls = n->calls - n->outer };
		take_pads(m, p, &again, before);
	}
	return 0;
}

static void
add_tallies(struct sum *m, const struct pmu_view *v)
{
	for (uint32_t f = 0; f < m->s->nknown; f++) {
		const struct pmu_tally *t = &v->tally[f];
		if (!m->entry_of[f] && !t->lost)
			continue;
		struct entry *en = entry_for(m, f);
		if (!en)
			return;
		en->lost += t->lost;
		en->gated += t->gated;
		for (unsigned i = 0; i < PMU_BUCKETS; i++) {
			en->bucket[i] += t->bucket[i];
			en->has_dist |= t->bucket[i] > 0;
		}
	}
}

/* Calls that were open at the end: their function never returned. */
static void
close_open(struct pmu_view *v)
{
	uint32_t d = v->block->depth;
	/* The first frame is nobody's. */
	for (uint32_t i = d < PMU_FRAMES ? d : PMU_FRAMES; i-- > 1;) {
		const volatile struct pmu_frame *f = &v->frame[i];
		uint32_t node = f->node; /* once: it may change under us */
		if (node >= PMU_NODES || f->flags & PMU_F_INHERITED)
			continue;
		v->node[node].unfinished++;
	}
	v->block->depth = 0;
}

/* Counted calls directly below each path; direct recursion is its own. */
static void
count_kids(const struct pmu_view *v, uint32_t n, uint64_t *kids)
{
	for (uint32_t i = PMU_FIRST_NODE; i < n; i++) {
		const volatile struct pmu_node *k = &v->node[i];
		uint32_t parent = k->parent;
		if (parent < i)
			kids[parent] += k->outer + k->unfinished;
		kids[i] += k->calls - k->outer;
	}
}

static int
add_block(struct sum *m, struct pmu_view *v, struct err *e)
{
	uint32_t n = v->block->nnodes, r = 0;
	n = n < PMU_NODES ? n : PMU_NODES;
	uint32_t *path = calloc(PMU_NODES, sizeof *path);
	uint64_t *kids = calloc(PMU_NODES, sizeof *kids);
	if (!path || !kids) {
		free(path);
		free(kids);
		return err_mem(e);
	}
	close_open(v);
	const volatile struct pmu_block *block = v->block;
	uint64_t late = block->late_func;
	if (late < m->s->nknown)
		v->tally[late].bucket[pmu_bucket(block->late_value)]++;
	count_kids(v, n, kids);
	for (uint32_t i = 0; i < PMU_FIRST_NODE; i++)
		path[i] = UINT32_MAX;
	for (uint32_t i = PMU_FIRST_NODE; i < n && !r; i++) {
		struct pmu_node node = v->node[i];
		path[i] = UINT32_MAX;
		if (node.func >= m->s->nknown || node.parent >= i) {
			m->odd++;
			continue;
		}
		r = (uint32_t)add_node(
		    m, &node, kids[i], path[node.parent], &path[i], e);
	}
	free(kids);
	free(path);
	if (r)
		return (int)r;
	add_tallies(m, v);
	m->unwound += v->block->unwound;
	m->lost_signal += v->block->lost_signal;
	m->threads += v->block->threads;
	uint64_t bytes =
	    n * sizeof(struct pmu_node) +
	    (m->s->nknown - m->s->nidle) * sizeof(struct pmu_tally);
	m->most_bytes = bytes > m->most_bytes ? bytes : m->most_bytes;
	return 0;
}

/* Inclusive values: paths that have no caller of the same function. */
static bool
below_itself(const struct result *r, size_t i)
{
	uint32_t entry = r->path[i].entry;
	for (uint32_t p = r->path[i].parent; p != UINT32_MAX;
	     p = r->path[p].parent)
		if (r->path[p].entry == entry)
			return true;
	return false;
}

/* With --gate values are of a call: there is no telling of how many. */
static void
of_a_call(struct result *r)
{
	for (size_t i = 0; i < r->nentries; i++) {
		struct entry *en = &r->entry[i];
		for (unsigned c = 0; en->calls && c < r->ncounters; c++) {
			en->v[c].self /= (int64_t)en->calls;
			en->v[c].incl /= (int64_t)en->calls;
			en->v[c].err /= (int64_t)en->calls;
		}
	}
	for (size_t i = 0; i < r->npaths; i++) {
		struct path *p = &r->path[i];
		p->flags |= FLAG_GATED;
		for (unsigned c = 0; p->calls && c < r->ncounters; c++) {
			p->self[c] /= (int64_t)p->calls;
			p->incl[c] /= (int64_t)p->calls;
		}
	}
}

static void
finish_entries(struct sum *m)
{
	struct result *r = m->r;
	for (size_t i = 0; i < r->npaths; i++) {
		if (below_itself(r, i))
			continue;
		struct entry *en = &r->entry[r->path[i].entry];
		for (unsigned c = 0; c < r->ncounters; c++)
			en->v[c].incl += r->path[i].incl[c];
	}
	for (size_t i = 0; i < r->nentries; i++) {
		struct entry *en = &r->entry[i];
		en->flags |= en->lost ? FLAG_LOST : 0;
		en->flags |= m->s->head->gate_n ? FLAG_GATED : 0;
		en->flags |= en->unfinished ? FLAG_UNFINISHED : 0;
		en->flags |= en->interrupted ? FLAG_INTERRUPTED : 0;
		en->flags |= en->migrated ? FLAG_MIGRATED : 0;
		for (unsigned c = 0; c < r->ncounters; c++) {
			struct values *v = &en->v[c];
			bool hw = m->s->events.event[c].source == PMU_PAGE;
			bool any = !r->counter[c].unknown &&
				   !(hw && en->flags & FLAG_MULTIPLEXED);
			v->known = any && !(en->flags & FLAG_HOLES);
			v->incl_known = any && !(en->flags & FLAG_COLLAPSED);
			/* What was taken off is as large as what is left: the
			 * number is about us, and that uncertain. */
			int64_t size = v->self < 0 ? -v->self : v->self;
			if (size >= 3 * en->own[c])
				continue;
			en->flags |= FLAG_DOMINATED;
			v->err = v->err > en->own[c] ? v->err : en->own[c];
		}
	}
}

static const char *
source_name(uint32_t how)
{
	switch (how) {
	case PMU_TSC:
		return "tsc";
	case PMU_PAGE:
		return "page";
	case PMU_READ:
		return "read";
	case PMU_GIVEN:
		return "backend";
	}
	return "none";
}

static void
describe_counters(struct session *s, struct result *r)
{
	static const char *const checks[] = { "untested", "trusted",
		"untrusted" };
	const struct pmu_calib *k = &s->head->calib;
	r->ncounters = s->events.n;
	for (unsigned c = 0; c < r->ncounters; c++) {
		const struct event *ev = &s->events.event[c];
		uint32_t trust = k->trusted[c] < 3 ? k->trusted[c] : 2;
		r->counter[c] = (struct counter){
			.name = str_c(ev->name),
			.unit = str_c(ev->unit),
			.source = str_c(source_name(k->how[c])),
			.check = str_c(checks[trust]),
			.exact = ev->exact,
			.unknown = trust == 2 || k->error[c],
			.self = k->self[c],
			.child = k->child[c],
			.spread = k->spread[c],
			.hz = ev->source == PMU_TSC ? s->head->hz : 0,
		};
		if (k->error[c])
			result_caveat(r, "counter-refused", k->error[c],
			    "%s: %s", ev->name,
			    event_why(ev, (int)k->error[c]));
		else if (trust == 2)
			result_caveat(r, "counter-untrusted", 1,
			    "%s: a loop of 999000 more rounds read %llu",
			    ev->name, (unsigned long long)k->loop[c]);
	}
}

static void
describe_losses(const struct sum *m)
{
	const struct pmu_head *h = m->s->head;
	struct result *r = m->r;
	static const struct {
		const char *what, *note;
		size_t at;
	} lines[] = {
		{ "foreign-stack",
		    "calls on a stack that is not their "
		    "thread's (coroutine, sigaltstack): not "
		    "counted",
		    offsetof(struct pmu_head, foreign) },
		{ "no-block",
		    "threads beyond the limit: their calls are not "
		    "counted",
		    offsetof(struct pmu_head, no_block) },
		{ "unseen-object", "objects loaded and never looked at",
		    offsetof(struct pmu_head, unseen) },
	};
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		uint64_t n;
		memcpy(&n, (const char *)h + lines[i].at, sizeof n);
		if (n)
			result_caveat(r, lines[i].what, n, "%s", lines[i].note);
	}
	if (m->unwound)
		result_caveat(r, "unwound", m->unwound,
		    "calls left by longjmp, an exception or the end of "
		    "their thread");
	if (m->lost_signal)
		result_caveat(r, "lost-signal", m->lost_signal,
		    "calls from a signal handler inside our own code: not "
		    "counted");
	if (h->execs)
		result_caveat(r, "exec", h->execs,
		    "the process became another program; that one is not "
		    "counted");
	if (m->odd)
		result_caveat(r, "overwritten", m->odd,
		    "call paths that make no sense: the target wrote into "
		    "our memory");
}

int
session_result(struct session *s, struct result *r, struct err *e)
{
	struct sum m = { .s = s, .r = r };
	int x = 0;
	describe_counters(s, r);
	m.entry_of = calloc(PMU_FUNCS, sizeof *m.entry_of);
	if (!m.entry_of)
		return err_mem(e);
	uint32_t n = __atomic_load_n(&s->head->nblocks, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < n && i < PMU_THREADS && !x; i++) {
		struct pmu_view v;
		x = session_block(s, i, &v);
		if (x)
			err_set(e, x, "cannot map a thread's block");
		else
			x = add_block(&m, &v, e);
		if (!x)
			munmap(v.block, PMU_BLOCK);
	}
	if (!x) {
		finish_entries(&m);
		if (s->head->gate_n)
			of_a_call(r);
		describe_losses(&m);
		if (m.threads)
			result_caveat(r, "memory", m.most_bytes,
			    "bytes that the busiest of %llu threads used, of "
			    "at most %zu",
			    (unsigned long long)m.threads, (size_t)PMU_BLOCK);
	}
	map_free(&m.path_of);
	free(m.entry_of);
	return x;
}
