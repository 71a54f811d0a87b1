/*
 * The accounting of calls on a block of memory: what each sequence of entries
 * and returns must leave there, worked out by hand.
 */
#define _GNU_SOURCE
#include "test.h"

#include <string.h>
#include <sys/mman.h>

#include "../../cmd/pmucount/rt/engine.h"

static struct pmu_view v;

/* Stacks grow down: a call below another has the smaller slot. */
enum { STACK = 1 << 20 };

static bool
begin(void)
{
	void *p = mmap(NULL, PMU_BLOCK, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return false;
	v = pmu_view_of(p, 1);
	pmu_view_begin(&v);
	return true;
}

static void
end(void)
{
	munmap(v.block, PMU_BLOCK);
}

static struct pmu_frame *
enter(uint32_t func, uint64_t slot, uint64_t at)
{
	struct pmu_frame *f = pmu_push(&v, func, slot, 0);
	if (f)
		f->start[0] = at;
	return f;
}

static void
leave(uint64_t at)
{
	pmu_pop(&v, &at);
}

static struct pmu_node *
node(uint32_t parent, uint32_t func)
{
	return &v.node[pmu_node_find(&v, parent, func)];
}

static void
test_nesting(void)
{
	/* f 10..100; in it g 20..30 and 40..90, in that h 50..60. */
	if (!CHECK(begin()))
		return;
	enter(1, STACK, 10);
	enter(2, STACK - 16, 20);
	leave(30);
	enter(2, STACK - 16, 40);
	enter(3, STACK - 32, 50);
	leave(60);
	leave(90);
	leave(100);
	const struct pmu_node *f = node(PMU_ROOT, 1);
	const struct pmu_node *g = node((uint32_t)(f - v.node), 2);
	const struct pmu_node *h = node((uint32_t)(g - v.node), 3);
	CHECK(!pmu_is_open(&v) && v.block->depth == 1);
	CHECK(f->calls == 1 && f->incl[0] == 90 && f->self[0] == 30);
	CHECK(g->calls == 2 && g->incl[0] == 60 && g->self[0] == 50);
	CHECK(g->min[0] == 10 && g->max[0] == 50);
	CHECK(h->calls == 1 && h->incl[0] == 10 && h->self[0] == 10);
	CHECK(f->nested == 3 && g->nested == 1 && !h->nested);
	CHECK(f->outer == 1 && g->outer == 2);
	end();
}

static void
test_own_part(void)
{
	/* A call costs 3 of its own window and 7 of its caller's. */
	if (!CHECK(begin()))
		return;
	v.self_cost[0] = 3;
	v.child_cost[0] = 7;
	enter(1, STACK, 0);
	for (int i = 0; i < 4; i++) {
		enter(2, STACK - 16, 100);
		leave(113);
	}
	leave(1000);
	const struct pmu_node *f = node(PMU_ROOT, 1);
	const struct pmu_node *g = node((uint32_t)(f - v.node), 2);
	CHECK(g->min[0] == 10 && g->max[0] == 10);
	CHECK(f->min[0] == 1000 - 3 - 4 * 7);
	end();
}

static void
test_recursion(void)
{
	/* f f f: one node, three calls, the outermost is inclusive. */
	if (!CHECK(begin()))
		return;
	enter(1, STACK, 0);
	enter(1, STACK - 16, 10);
	enter(1, STACK - 32, 20);
	leave(30);
	leave(40);
	leave(50);
	const struct pmu_node *f = node(PMU_ROOT, 1);
	CHECK(f->calls == 3 && f->outer == 1);
	CHECK(f->incl[0] == 50 && f->self[0] == 50);
	CHECK(f->min[0] == 10 && f->max[0] == 50);
	CHECK(v.block->nnodes == PMU_FIRST_NODE + 1);
	end();
}

static void
test_dead(void)
{
	if (!CHECK(begin()))
		return;
	enter(1, STACK, 0);
	enter(2, STACK - 16, 10);
	enter(3, STACK - 32, 20);
	/* A call at a slot above two open ones: both are gone. */
	CHECK(pmu_dead(&v, STACK - 8, true, false) == 2);
	/* At the very slot: a new call there, unless it came by a jump. */
	CHECK(pmu_dead(&v, STACK - 32, true, false) == 1);
	CHECK(pmu_dead(&v, STACK - 32, true, true) == 0);
	CHECK(pmu_dead(&v, STACK - 48, true, false) == 0);
	/* A return through the slot: what lies below is gone. */
	CHECK(pmu_dead(&v, STACK - 16, false, false) == 1);
	CHECK(pmu_dead(&v, STACK - 32, false, false) == 0);
	CHECK(pmu_dead(&v, UINT64_MAX - 1, true, false) == 3);
	/* A longjmp from 3 back into 1, at 25. */
	uint64_t now = 25;
	pmu_drop(&v, &now);
	pmu_drop(&v, &now);
	leave(40);
	const struct pmu_node *f = node(PMU_ROOT, 1);
	const struct pmu_node *g = node((uint32_t)(f - v.node), 2);
	const struct pmu_node *h = node((uint32_t)(g - v.node), 3);
	CHECK(g->unfinished == 1 && h->unfinished == 1);
	CHECK(!g->calls && !h->calls);
	/* 10 to 25 was below f; f knows that a callee did not return. */
	CHECK(f->calls == 1 && f->self[0] == 25 && f->incl[0] == 40);
	CHECK(f->flags & PMU_F_ORPHAN);
	end();
}

static void
test_tail(void)
{
	/* f jumps to g: same slot, g is below f until both return. */
	if (!CHECK(begin()))
		return;
	enter(1, STACK, 0);
	struct pmu_frame *g = enter(2, STACK, 10);
	g->flags |= PMU_F_TAIL;
	leave(30);
	leave(30);
	const struct pmu_node *f = node(PMU_ROOT, 1);
	const struct pmu_node *n = node((uint32_t)(f - v.node), 2);
	CHECK(f->self[0] == 10 && f->incl[0] == 30);
	CHECK(n->self[0] == 20 && n->flags & PMU_F_TAIL);
	CHECK(!(f->flags & PMU_F_TAIL));
	end();
}

static void
test_inherited(void)
{
	/* A forked child: what was open is the parent's call. */
	if (!CHECK(begin()))
		return;
	enter(1, STACK, 0)->flags |= PMU_F_INHERITED;
	enter(2, STACK - 16, 10);
	leave(15);
	leave(20);
	const struct pmu_node *f = node(PMU_ROOT, 1);
	CHECK(!f->calls && !f->incl[0]);
	CHECK(node((uint32_t)(f - v.node), 2)->calls == 1);
	end();
}

static void
test_full(void)
{
	if (!CHECK(begin()))
		return;
	/* Frames: 32767 open calls, then lost. */
	uint32_t open = 0;
	for (uint32_t i = 0; i < PMU_FRAMES + 10; i++)
		open += enter(1, UINT64_C(1) << 40, 0) != NULL;
	CHECK(open == PMU_FRAMES - 1);
	CHECK(v.tally[1].lost == PMU_FRAMES + 10 - open);
	for (uint32_t i = 0; i < open; i++)
		leave(1);
	CHECK(!pmu_is_open(&v) && node(PMU_ROOT, 1)->calls == open);
	end();
	/* Paths: beyond 7/8 all are collapsed, and still all calls count. */
	if (!CHECK(begin()))
		return;
	uint64_t calls = 0, collapsed = 0;
	for (uint32_t f = 0; f < PMU_NODES + 100; f++) {
		if (!enter(f, STACK, 0))
			continue;
		leave(1);
	}
	for (uint32_t i = PMU_FIRST_NODE; i < v.block->nnodes; i++) {
		calls += v.node[i].calls;
		collapsed += v.node[i].flags & PMU_F_COLLAPSED ? 1 : 0;
		CHECK(!(v.node[i].flags & PMU_F_COLLAPSED) ==
		      (v.node[i].parent == PMU_ROOT));
	}
	uint64_t lost = 0;
	for (uint32_t f = 0; f < PMU_NODES + 100; f++)
		lost += v.tally[f].lost;
	CHECK(v.block->nnodes == PMU_NODES && collapsed == PMU_NODES / 8);
	CHECK(calls + lost == PMU_NODES + 100 && lost == 102);
	end();
}

/* 64-bit counters may wrap, 32-bit ones were widened before. */
static void
test_wrap(void)
{
	if (!CHECK(begin()))
		return;
	enter(1, STACK, UINT64_MAX - 9);
	leave(10);
	CHECK(node(PMU_ROOT, 1)->self[0] == 20);
	end();
}

static void
test_interrupted(void)
{
	if (!CHECK(begin()))
		return;
	enter(1, STACK, 0);
	v.block->state += (UINT64_C(1) << 32) + 1; /* interrupted and moved */
	enter(2, STACK - 16, 0);
	leave(1);
	leave(2);
	enter(1, STACK, 0);
	v.block->state += UINT64_C(1) << 32;
	leave(2);
	const struct pmu_node *f = node(PMU_ROOT, 1);
	CHECK(f->interrupted == 2 && f->migrated == 1);
	CHECK(!node((uint32_t)(f - v.node), 2)->interrupted);
	end();
}

/* Exact counters: the hooks' own part, measured, is taken out. */
static void
test_span(void)
{
	if (!CHECK(begin()))
		return;
	v.spans = true;
	struct pmu_frame *f = enter(1, STACK, 104);
	f->first[0] = 100; /* its entry hook began */
	struct pmu_frame *g = enter(2, STACK - 16, 125);
	g->first[0] = 120;
	uint64_t now = 135, done = 142;
	pmu_pop(&v, &now);
	pmu_span(&v, &done);
	now = 150;
	done = 157;
	pmu_pop(&v, &now);
	pmu_span(&v, &done);
	const struct pmu_node *n = node(PMU_ROOT, 1);
	const struct pmu_node *m = node((uint32_t)(n - v.node), 2);
	CHECK(m->self[0] == 10 && m->incl[0] == 10);
	/* 104 to 150 is 46; 22 of them g with its hooks, 10 of these g's. */
	CHECK(n->self[0] == 46 - 22 && n->incl[0] == 46 - 12);
	end();
}

static void
test_buckets(void)
{
	static const uint64_t from[] = { 0, 1, 2, 4, 6, 10, 14, 22, 30, 46 };
	for (unsigned i = 0; i < sizeof from / sizeof *from; i++) {
		CHECK(pmu_bucket_from(i + 2) == from[i]);
		CHECK(pmu_bucket(from[i]) == i + 2);
		CHECK(!i || pmu_bucket(from[i] - 1) == i + 1);
	}
	for (unsigned b = 2; b < 124; b++)
		CHECK(pmu_bucket(pmu_bucket_from(b)) == b &&
		      pmu_bucket(pmu_bucket_from(b + 1) - 1) == b);
	CHECK(pmu_bucket(UINT64_MAX) < PMU_BUCKETS);
	CHECK(pmu_bucket(UINT64_C(1) << 62) < PMU_BUCKETS);
}

int
main(void)
{
	test_nesting();
	test_own_part();
	test_recursion();
	test_dead();
	test_tail();
	test_inherited();
	test_full();
	test_wrap();
	test_interrupted();
	test_span();
	test_buckets();
	return test_done("pmucount_engine");
}
