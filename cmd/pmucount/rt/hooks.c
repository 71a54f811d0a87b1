/*
 * What runs at the first instruction of a function and at its return. Built
 * without floating point and vector registers: those hold the function's
 * arguments and results.
 */
#include "rt.h"

struct runtime pmu_rt;
struct thread *pmu_threads;
__thread struct thread *pmu_self;

/*
 * A restartable sequence that is nowhere: the kernel clears the pointer to it
 * whenever the thread was preempted, moved or got a signal. So a pointer that
 * is still there says: not interrupted since it was set. The kernel looks for
 * the signature, which glibc registered, ahead of the abort address.
 */
#ifdef __x86_64__
enum { RSEQ_SIGNATURE = 0x53053053 };
#else
#define RSEQ_SIGNATURE 0xd428bc00u
#endif
static const uint32_t signature[2] = { RSEQ_SIGNATURE, 0 };
static const struct {
	uint32_t version, flags;
	const void *start;
	uint64_t len; /* no instruction at all */
	const void *abort;
} __attribute__((aligned(32))) nowhere = { 0, 0, signature, 0, signature + 1 };

/* Where a thread without an area of the kernel's looks instead. */
static struct rseq_area none = { 0, 0, 0 };

void
pmu_rseq_use(struct thread *t, void *area)
{
	none.cs = (uint64_t)(uintptr_t)&nowhere;
	t->rseq = area ? area : &none;
	t->cpu = t->rseq->cpu;
}

PMU_INLINE bool
was_interrupted(const struct thread *t)
{
	return t->rseq->cs != (uint64_t)(uintptr_t)&nowhere;
}

static void
note_interruption(struct thread *t)
{
	uint32_t cpu = t->rseq->cpu;
	t->block->state += UINT64_C(1) << 32;
	if (cpu != t->cpu)
		t->block->state += 1; /* 2^32 moves would be years */
	t->cpu = cpu;
	t->rseq->cs = (uint64_t)(uintptr_t)&nowhere;
}

/* Frames that ended without a return: longjmp, exception, pthread_exit. */
static void
drop_dead(struct thread *t, uint32_t n)
{
	uint64_t now[PMU_COUNTERS];
	if (!n)
		return;
	pmu_counters_read(t, now);
	while (n--) {
		pmu_drop(&t->view, now);
		t->block->unwound++;
	}
}

/* ---- entry -----------------------------------------------------------------
 */

/* With everything that can be in the way. */
static bool
open_call(struct thread *t, uint32_t func, uint64_t slot, uint64_t ret)
{
	uint64_t first[PMU_COUNTERS];
	struct pmu_view *v = &t->view;
	if (v->spans)
		pmu_counters_read(t, first);
	bool tail = ret == (uint64_t)(uintptr_t)pmu_return;
	drop_dead(t, pmu_dead(v, slot, true, tail));
	if (was_interrupted(t))
		note_interruption(t);
	struct pmu_frame *f = pmu_push(v, func, slot, ret);
	if (!f)
		return false;
	f->flags = tail ? PMU_F_TAIL : 0;
	for (unsigned c = 0; v->spans && c < v->ncounters; c++)
		f->first[c] = first[c];
	pmu_counters_read(t, f->start);
	return true;
}

/*
 * --gate: N calls of a function in each period and thread, from an instant on
 * that differs from period to period, so that what happens at its start is
 * not all that is ever seen. A call that was let in is counted to its end.
 */
static bool
gate_closed(struct thread *t, uint32_t func)
{
	const struct pmu_head *h = pmu_rt.head;
	struct pmu_tally *k = &t->view.tally[func];
	uint64_t now = pmu_tsc(), period = now / h->gate_ticks;
	uint64_t mix = (period ^ func) * UINT64_C(0x9e3779b97f4a7c15);
	if (k->period != (uint32_t)period) {
		k->period = (uint32_t)period;
		k->gate = 0;
	}
	/* Somewhere in the first three quarters. */
	uint64_t from = (mix >> 32) * (h->gate_ticks / 4 * 3) >> 32;
	if (now % h->gate_ticks >= from && k->gate < h->gate_n) {
		k->gate++;
		return false;
	}
	k->gated++;
	/* Its value is in the caller's self from now on. */
	t->view.node[t->view.top->node].flags |= PMU_F_HOLES;
	return true;
}

/* 1 if the call is counted: the stub calls the body instead of jumping. */
static uint64_t __attribute__((noinline))
enter(uint32_t func, uint64_t slot, uint64_t ret)
{
	struct thread *t = pmu_self;
	if (!t || slot - t->lo >= t->hi - t->lo) {
		if (pmu_rt.on && !(t && t->exiting))
			__atomic_fetch_add(
			    &pmu_rt.head->foreign, 1, __ATOMIC_RELAXED);
		return 0;
	}
	if (!t->room) {
		t->block->lost_signal++;
		return 0;
	}
	if (pmu_rt.gated && gate_closed(t, func))
		return 0;
	t->room = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	bool counted = open_call(t, func, slot, ret);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->room = t->hi - t->lo;
	return counted;
}

struct verdict {
	uint64_t body, counted;
};

struct verdict
pmu_enter(const struct spot *s, uint64_t slot, uint64_t ret) PMU_HIDDEN;
uint64_t pmu_exit(uint64_t slot) PMU_HIDDEN;

/*
 * The way of nearly all calls with one time stamp: same stack, next frame,
 * known path, nothing happened. Everything else is enter()'s.
 */
struct verdict
pmu_enter(const struct spot *s, uint64_t slot, uint64_t ret)
{
	struct thread *t = pmu_self;
	struct verdict r = { s->body, 1 };
	if (__builtin_expect(!t || !t->only_tsc, 0))
		goto slow;
	uint64_t room = t->room;
	struct pmu_view *v = &t->view;
	if (__builtin_expect(slot - t->lo >= room || v->top->slot <= slot ||
				 v->top >= v->full || was_interrupted(t),
		0))
		goto slow;
	uint32_t node = pmu_node_again(v, v->top->node, s->func);
	if (__builtin_expect(!node, 0))
		goto slow;
	t->room = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	struct pmu_frame *f = pmu_push_node(v, node, slot, ret, 1, false);
	f->start[0] = pmu_tsc();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->room = room;
	return r;
slow:
	r.counted = enter(s->func, slot, ret);
	return r;
}

/* ---- return ----------------------------------------------------------------
 */

/* Closes the top call: what happened meanwhile, the sums, our own part. */
static void
close_call(struct thread *t, const uint64_t *now)
{
	if (was_interrupted(t))
		note_interruption(t);
	if (t->unreadable) {
		/* Every open call has this gap in it. */
		for (struct pmu_frame *f = t->view.top; f > t->frames; f--)
			f->flags |= PMU_F_MULTIPLEXED;
		t->unreadable = 0;
	}
	pmu_pop(&t->view, now);
	if (t->view.spans) {
		uint64_t end[PMU_COUNTERS];
		pmu_counters_read(t, end);
		pmu_span(&t->view, end);
	}
}

static uint64_t __attribute__((noinline)) leave(uint64_t slot)
{
	uint64_t now[PMU_COUNTERS];
	struct thread *t = pmu_self;
	t->room = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	pmu_counters_read(t, now);
	for (uint32_t n = pmu_dead(&t->view, slot, false, false); n; n--) {
		pmu_drop(&t->view, now);
		t->block->unwound++;
	}
	/* Without its frame the call cannot return anywhere. */
	if (t->view.top->slot != slot)
		__builtin_trap();
	uint64_t ret = t->view.top->ret;
	close_call(t, now);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->room = t->hi - t->lo;
	return ret;
}

/* The return address that the call began with. */
uint64_t
pmu_exit(uint64_t slot)
{
	struct thread *t = pmu_self;
	struct pmu_view *v = &t->view;
	if (__builtin_expect(!t->only_tsc, 0))
		return leave(slot);
	uint64_t room = t->room;
	t->room = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	uint64_t now = pmu_tsc();
	struct pmu_frame *f = v->top;
	if (__builtin_expect(f->slot != slot || f->flags ||
				 f->state != v->block->state ||
				 was_interrupted(t),
		0))
		return leave(slot);
	pmu_late(v);
	struct pmu_node *n = &v->node[f->node];
	pmu_count(v, f, n, &now, 1, false);
	pmu_down(v, f, n);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->room = room;
	return f->ret;
}

/* ---- -finstrument-functions ---------------------------------------------- */

/*
 * The compiler calls these; nothing is patched and nothing can be switched
 * off. The frame's place on the stack stands for the slot.
 */
PMU_PUBLIC void __cyg_profile_func_enter(void *fn, void *from);
PMU_PUBLIC void __cyg_profile_func_exit(void *fn, void *from);

PMU_PUBLIC void
__cyg_profile_func_enter(void *fn, void *from)
{
	uint32_t func = pmu_rt.on ? pmu_hook_find((uint64_t)(uintptr_t)fn) : 0;
	if (func)
		enter(func - 1, (uint64_t)(uintptr_t)__builtin_dwarf_cfa(), 0);
}

PMU_PUBLIC void
__cyg_profile_func_exit(void *fn, void *from)
{
	uint64_t now[PMU_COUNTERS];
	struct thread *t = pmu_self;
	uint32_t func = pmu_rt.on ? pmu_hook_find((uint64_t)(uintptr_t)fn) : 0;
	if (!func || !t || !t->room)
		return;
	t->room = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	pmu_counters_read(t, now);
	/* The newest open call of this function; what is above is dead. */
	const struct pmu_frame *f = t->view.top;
	while (f > t->frames && t->view.node[f->node].func != func - 1)
		f--;
	if (f > t->frames) {
		while (t->view.top > f) {
			pmu_drop(&t->view, now);
			t->block->unwound++;
		}
		close_call(t, now);
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->room = t->hi - t->lo;
}
