/*
 * From a thread's block to a result: sums, corrections, and blocks into which
 * a target wrote whatever it liked.
 */
#define _GNU_SOURCE
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../cmd/pmucount/session.h"

int session_alpha(int x);
int session_beta(int x);

/* Functions of this program, by symbol. */
__attribute__((noinline)) int
session_alpha(int x)
{
	return x + 1;
}

__attribute__((noinline)) int
session_beta(int x)
{
	return x * 3;
}

static struct session s;
static struct result r;
static uint32_t alpha, beta;

static uint32_t
add(uint32_t object, const char *name, unsigned before)
{
	struct err e;
	const struct object *o = s.object[object];
	for (size_t i = 0; i < o->nfuncs; i++) {
		struct site k = { .vaddr = o->func[i].vaddr,
			.before = (uint16_t)before };
		if (!strcmp(o->func[i].name, name))
			return (uint32_t)session_func(
			    &s, object, (uint32_t)i, &k, &e);
	}
	CHECK(!"the symbol is there");
	return 0;
}

static void
start(const char *event, unsigned before)
{
	struct event_set ev = { 0 };
	struct object *o;
	struct err e;
	r = (struct result){ 0 };
	CHECK(!event_add(&ev, event, &e));
	CHECK(!session_open(&s, &ev, &e));
	CHECK(!object_open(&o, "/proc/self/exe", &e));
	CHECK(session_object(&s, o, 0, &e) == 0);
	alpha = add(0, "session_alpha", before);
	beta = add(0, "session_beta", before);
	s.head->calib.trusted[0] = 1;
	s.head->calib.how[0] = PMU_GIVEN;
}

static struct pmu_view
block(uint32_t i)
{
	struct pmu_view v = { 0 };
	CHECK(!session_block(&s, i, &v));
	pmu_view_begin(&v);
	s.head->nblocks = i + 1;
	return v;
}

static void
call(struct pmu_view *v, uint32_t func, uint64_t slot, uint64_t at)
{
	struct pmu_frame *f = pmu_push(v, func, slot, 0);
	f->start[0] = at;
}

static void
ret(struct pmu_view *v, uint64_t at)
{
	pmu_pop(v, &at);
}

static const struct entry *
entry(const char *name)
{
	for (size_t i = 0; i < r.nentries; i++)
		if (str_is(r.entry[i].func, name))
			return &r.entry[i];
	return NULL;
}

static const struct caveat *
caveat(const char *what)
{
	for (size_t i = 0; i < r.ncaveats; i++)
		if (!strcmp(r.caveat[i].what, what))
			return &r.caveat[i];
	return NULL;
}

static void
finish(void)
{
	result_free(&r);
	session_close(&s);
}

/* Two threads; in each alpha calls beta twice. */
static void
test_sum(void)
{
	struct err e;
	start("instructions", 0);
	for (uint32_t i = 0; i < 2; i++) {
		struct pmu_view v = block(i);
		call(&v, alpha, 1000, 0);
		call(&v, beta, 900, 10);
		ret(&v, 20 + i);
		call(&v, beta, 900, 30);
		ret(&v, 50);
		ret(&v, 100);
	}
	CHECK(!session_result(&s, &r, &e));
	const struct entry *a = entry("session_alpha");
	const struct entry *b = entry("session_beta");
	if (CHECK(a && b)) {
		CHECK(a->calls == 2 && a->v[0].incl == 200);
		CHECK(b->calls == 4 && b->v[0].self == 10 + 11 + 20 + 20);
		CHECK(a->v[0].self == 200 - 61);
		CHECK(b->v[0].min == 10 && b->v[0].max == 20);
		CHECK(a->v[0].known && a->v[0].incl_known && !a->flags);
		CHECK(!a->v[0].err);
	}
	CHECK(r.npaths == 2 && r.path[1].parent == 0 && r.path[1].calls == 4);
	CHECK(!caveat("overwritten"));
	finish();
}

/* Own parts are taken off: 5 of a call's window, 12 of its caller's. */
static void
test_correction(void)
{
	struct err e;
	start("instructions", 0);
	s.head->calib.self[0] = 5;
	s.head->calib.child[0] = 12;
	struct pmu_view v = block(0);
	call(&v, alpha, 1000, 0);
	call(&v, beta, 900, 50);
	ret(&v, 50 + 20 + 5);
	ret(&v, 100 + 20 + 12 + 5); /* 100 of its own */
	CHECK(!session_result(&s, &r, &e));
	const struct entry *a = entry("session_alpha");
	const struct entry *b = entry("session_beta");
	if (CHECK(a && b)) {
		CHECK(b->v[0].self == 20 && b->v[0].incl == 20);
		CHECK(a->v[0].self == 100 && a->v[0].incl == 120);
	}
	finish();
}

/* A landing pad of two instructions ran in the caller's window. */
static void
test_pads(void)
{
	struct err e;
	start("instructions", 2);
	struct pmu_view v = block(0);
	call(&v, alpha, 1000, 0);
	call(&v, beta, 900, 50);
	ret(&v, 70);
	ret(&v, 100);
	CHECK(!session_result(&s, &r, &e));
	const struct entry *a = entry("session_alpha");
	const struct entry *b = entry("session_beta");
	if (CHECK(a && b)) {
		CHECK(b->v[0].self == 22 && b->v[0].min == 22);
		CHECK(a->v[0].self == 80 + 2 - 2 && a->v[0].incl == 102);
	}
	finish();
}

/* What was open at a crash did not finish. */
static void
test_open(void)
{
	struct err e;
	start("instructions", 0);
	struct pmu_view v = block(0);
	call(&v, alpha, 1000, 0);
	call(&v, beta, 900, 50);
	ret(&v, 70);
	call(&v, beta, 900, 80);
	CHECK(!session_result(&s, &r, &e));
	const struct entry *a = entry("session_alpha");
	const struct entry *b = entry("session_beta");
	if (CHECK(a && b)) {
		CHECK(!a->calls && a->unfinished == 1);
		CHECK(b->calls == 1 && b->unfinished == 1);
		CHECK(a->flags & FLAG_UNFINISHED && b->flags & FLAG_UNFINISHED);
	}
	finish();
}

static void
test_unknown(void)
{
	struct err e;
	start("instructions", 0);
	s.head->calib.trusted[0] = 2;
	s.head->calib.loop[0] = 0;
	struct pmu_view v = block(0);
	call(&v, alpha, 1000, 0);
	ret(&v, 70);
	CHECK(!session_result(&s, &r, &e));
	CHECK(r.counter[0].unknown && caveat("counter-untrusted"));
	CHECK(entry("session_alpha") && !entry("session_alpha")->v[0].known);
	finish();
	/* One counter was off the PMU in one call. */
	start("instructions", 0);
	v = block(0);
	call(&v, alpha, 1000, 0);
	v.top->flags |= PMU_F_MULTIPLEXED;
	ret(&v, 70);
	call(&v, beta, 1000, 0);
	ret(&v, 70);
	CHECK(!session_result(&s, &r, &e));
	const struct entry *a = entry("session_alpha");
	const struct entry *b = entry("session_beta");
	if (CHECK(a && b)) {
		CHECK(!a->v[0].known && !a->v[0].incl_known && a->calls == 1);
		CHECK(a->flags & FLAG_MULTIPLEXED);
		CHECK(b->v[0].known && b->v[0].self == 70);
	}
	finish();
}

static void
test_gate(void)
{
	struct err e;
	start("tsc", 0);
	s.head->gate_n = 5;
	struct pmu_view v = block(0);
	call(&v, alpha, 1000, 0);
	v.node[v.top->node].flags |= PMU_F_HOLES; /* one was passed over */
	call(&v, beta, 900, 10);
	ret(&v, 30);
	call(&v, beta, 900, 40);
	ret(&v, 80);
	ret(&v, 100);
	CHECK(!session_result(&s, &r, &e));
	const struct entry *a = entry("session_alpha");
	const struct entry *b = entry("session_beta");
	if (CHECK(a && b)) {
		CHECK(!a->v[0].known && a->v[0].incl_known);
		CHECK(a->v[0].incl == 100 && a->flags & FLAG_HOLES);
		CHECK(b->calls == 2 && b->v[0].self == 30);
		CHECK(b->flags & FLAG_GATED);
	}
	finish();
}

/* Each field of the block that is an index, and everything at random. */
static void
test_hostile(void)
{
	struct err e;
	for (int k = 0; k < 10; k++) {
		start("instructions", 0);
		struct pmu_view v = block(0);
		call(&v, alpha, 1000, 0);
		call(&v, beta, 900, 10);
		ret(&v, 20);
		struct pmu_node *n = &v.node[PMU_FIRST_NODE + 1];
		switch (k) {
		case 0:
			n->func = UINT32_MAX;
			break;
		case 1:
			n->func = s.nknown;
			break;
		case 2:
			n->parent = PMU_FIRST_NODE + 1;
			break;
		case 3:
			n->parent = UINT32_MAX;
			break;
		case 4:
			v.block->nnodes = UINT32_MAX;
			break;
		case 5:
			v.block->depth = UINT32_MAX;
			break;
		case 6:
			v.frame[1].node = UINT32_MAX;
			break;
		case 7:
			v.block->late_func = UINT64_MAX;
			break;
		case 8:
			s.head->nblocks = UINT32_MAX;
			break;
		case 9:
			v.block->late_value = UINT64_MAX;
			break;
		}
		CHECK(!session_result(&s, &r, &e));
		CHECK(k > 3 ||
		      (caveat("overwritten") && caveat("overwritten")->n == 1));
		CHECK(k > 3 || entry("session_alpha"));
		finish();
	}
	uint64_t x = 1;
	for (int k = 0; k < 8; k++) {
		start("instructions", 0);
		struct pmu_view v = block(0);
		unsigned char *p = (unsigned char *)v.block;
		for (size_t i = 0; i < PMU_AT_NODES + 100 * PMU_NODE_SIZE;
		     i++) {
			x = x * UINT64_C(6364136223846793005) + 1;
			p[i] = (unsigned char)(x >> (k < 4 ? 60 : 56));
		}
		int got = session_result(&s, &r, &e);
		CHECK(!got || got == SE_ELIMIT);
		finish();
	}
}

int
main(void)
{
	test_sum();
	test_correction();
	test_pads();
	test_open();
	test_unknown();
	test_gate();
	test_hostile();
	return test_done("pmucount_session");
}
