/* The runtime inside the target: what its files share. */
#ifndef PMU_RT_H
#define PMU_RT_H

#include <linux/perf_event.h>

#include "engine.h"

#define PMU_HIDDEN __attribute__((visibility("hidden")))
#define PMU_PUBLIC __attribute__((visibility("default")))

/*
 * A site as its thunk hands it over. stub_*.S knows nothing of it but passes
 * its address.
 */
struct spot {
	uint64_t body; /* where the function goes on behind its sled */
	uint64_t addr; /* the sled */
	uint32_t func;
	uint32_t kind;
};

/* As the kernel lays it out (struct rseq of linux/rseq.h). */
struct rseq_area {
	uint32_t cpu_start, cpu;
	volatile uint64_t cs;
};

struct pmc {
	int fd;
	uint64_t id; /* what the kernel calls it: is fd still ours? */
	struct perf_event_mmap_page *page;
};

/*
 * One thread. The unwind rules in stub_*.S find a frame's return address
 * through next, lo, hi, frames and block: keep these five first, in order.
 * Threads are never freed, only used again.
 */
struct thread {
	struct thread *next;
	uint64_t lo, hi; /* its stack */
	struct pmu_frame *frames;
	struct pmu_block *block;
	struct pmu_view view;
	/* Size of the stack; 0 while we are inside a hook or not ready. */
	volatile uint64_t room;
	struct rseq_area *rseq; /* the kernel's area of this thread */
	bool only_tsc;          /* one counter, read without more ado */
	uint32_t cpu;
	uint32_t unreadable; /* a counter was not on the PMU */
	uint32_t in_use;
	uint32_t exiting;
	struct pmc pmc[PMU_COUNTERS];
};

struct runtime {
	struct pmu_head *head;
	struct pmu_func *func;
	int fd, sock;
	bool on; /* hooks may count */
	bool only_tsc;
	bool serialize;
	bool gated;
};

extern struct runtime pmu_rt PMU_HIDDEN;
extern struct thread *pmu_threads PMU_HIDDEN;
extern __thread struct thread *pmu_self
    __attribute__((tls_model("initial-exec"))) PMU_HIDDEN;

/* counters.c */
void pmu_counters_open(struct thread *t) PMU_HIDDEN;
void pmu_counters_close(struct thread *t) PMU_HIDDEN;
void pmu_counters_slow(struct thread *t, uint64_t *now) PMU_HIDDEN;
void pmu_calibrate(void) PMU_HIDDEN;

/* patch.c */
void pmu_objects_look(void) PMU_HIDDEN;
void pmu_objects_unseen(void) PMU_HIDDEN;

/* hooks.c and stub_*.S */
extern const char pmu_common[] PMU_HIDDEN, pmu_return[] PMU_HIDDEN;
void pmu_thread_begin(struct thread *t) PMU_HIDDEN;
uint32_t pmu_hook_find(uint64_t addr) PMU_HIDDEN;
void pmu_rseq_use(struct thread *t, void *area) PMU_HIDDEN;

static inline uint64_t
pmu_tsc(void)
{
#ifdef __x86_64__
	uint32_t lo, hi;
	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
#else
	uint64_t v;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#endif
}

/* Older instructions are done before what follows is read. */
static inline void
pmu_fence(void)
{
#ifdef __x86_64__
	__asm__ volatile("lfence" ::: "memory");
#else
	__asm__ volatile("isb" ::: "memory");
#endif
}

static inline void
pmu_counters_read(struct thread *t, uint64_t *now)
{
	if (pmu_rt.serialize)
		pmu_fence();
	if (pmu_rt.only_tsc)
		now[0] = pmu_tsc();
	else
		pmu_counters_slow(t, now);
}

#endif
