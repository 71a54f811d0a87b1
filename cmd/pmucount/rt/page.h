/*
 * Reading a counter from user space through its perf page, as described in
 * include/uapi/linux/perf_event.h. The hardware read is a parameter, so that
 * every path can be tested with a made-up page.
 */
#ifndef PMU_PAGE_H
#define PMU_PAGE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

enum pmu_page_state {
	PMU_PAGE_OK = 0,   /* *value is the count */
	PMU_PAGE_SLOW = 1, /* not readable here: ask by read(2) */
};

enum { PMU_PAGE_ROUNDS = 1000 };

/* The counter's low bits as a signed number: the kernel's offset makes up. */
static inline int64_t
pmu_page_extend(uint64_t v, unsigned width)
{
	if (!width || width >= 64)
		return (int64_t)v;
	return (int64_t)(v << (64 - width)) >> (64 - width);
}

/*
 * `hw(index)` reads hardware counter index - 1. The page changes under us
 * when the thread is moved or the counter is: read again then.
 */
static inline int
pmu_page_read(const volatile struct perf_event_mmap_page *p,
    uint64_t (*hw)(uint32_t index), uint64_t *value)
{
	for (int i = 0; i < PMU_PAGE_ROUNDS; i++) {
		uint32_t seq = p->lock;
		__asm__ volatile("" ::: "memory");
		/* Bit 0 was something else before Linux 3.12. */
		bool may = p->cap_user_rdpmc && p->cap_bit0_is_deprecated;
		/* Off the PMU for a while: a part of the truth. */
		may &= p->time_enabled == p->time_running;
		uint32_t index = p->index;
		int64_t count = p->offset;
		bool on = may && index;
		if (on)
			count += pmu_page_extend(hw(index), p->pmc_width);
		__asm__ volatile("" ::: "memory");
		if (seq & 1 || p->lock != seq)
			continue;
		/* Index 0: not on the PMU now; the offset alone is stale. */
		if (!on)
			return PMU_PAGE_SLOW;
		*value = (uint64_t)count;
		return PMU_PAGE_OK;
	}
	return PMU_PAGE_SLOW;
}

#endif
