/* Counters of a thread, and what reading them costs. */
#include "rt.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "page.h"

#ifdef __x86_64__

/* ECX = index - 1; bit 30 for fixed counters is in the page's index. */
static uint64_t
hw_read(uint32_t index)
{
	uint32_t lo, hi;
	__asm__ volatile("rdpmc" : "=a"(lo), "=d"(hi) : "c"(index - 1));
	return (uint64_t)hi << 32 | lo;
}

#else

/* PMEVCNTR<n>_EL0 is S3_3_C14_C(8 + n / 8)_(n % 8); 31 is the cycle counter. */
#define READ(n, crm, op2)                                           \
	case n:                                                     \
		__asm__ volatile("mrs %0, S3_3_C14_C" #crm "_" #op2 \
				 : "=r"(v));                        \
		break;
#define READ8(base, crm)       \
	READ(base + 0, crm, 0) \
	READ(base + 1, crm, 1) \
	READ(base + 2, crm, 2) \
	READ(base + 3, crm, 3) \
	READ(base + 4, crm, 4) \
	READ(base + 5, crm, 5) READ(base + 6, crm, 6)

static uint64_t
hw_read(uint32_t index)
{
	uint64_t v = 0;
	switch (index - 1) {
		READ8(0, 8)
		READ(7, 8, 7)
		READ8(8, 9)
		READ(15, 9, 7)
		READ8(16, 10)
		READ(23, 10, 7)
		READ8(24, 11)
	case 31:
		__asm__ volatile("mrs %0, pmccntr_el0" : "=r"(v));
		break;
	}
	return v;
}

#endif

static long
perf_open(struct perf_event_attr *a, int group)
{
	return syscall(
	    SYS_perf_event_open, a, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
}

static int
open_one(const struct pmu_event *ev, int group, struct pmu_calib *k, unsigned c)
{
	struct perf_event_attr a = {
		.size = sizeof a,
		.type = ev->type,
		.config = ev->config,
		.disabled = group < 0,
		/* On the PMU always or in error: never multiplexed in silence.
		 */
		.pinned = group < 0 && ev->source == PMU_PAGE,
		.exclude_kernel = ev->source == PMU_PAGE,
		.exclude_hv = ev->source == PMU_PAGE,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	long fd = -1;
#ifdef __aarch64__
	/* Bit 1 of config1 asks for user access, bit 0 for 64 bits. */
	static const uint64_t wishes[] = { 3, 2, 0 };
	for (int i = 0; i < 3 && fd < 0; i++) {
		a.config1 = ev->source == PMU_PAGE ? wishes[i] : 0;
		fd = perf_open(&a, group);
	}
#else
	fd = perf_open(&a, group);
#endif
	if (fd < 0)
		k->error[c] = (uint32_t)errno;
	return (int)fd;
}

void
pmu_counters_open(struct thread *t)
{
	struct pmu_head *h = pmu_rt.head;
	int leader = -1;
	for (unsigned c = 0; c < h->ncounters; c++) {
		struct pmc *p = &t->pmc[c];
		*p = (struct pmc){ .fd = -1 };
		const struct pmu_event *ev = &h->event[c];
		h->calib.how[c] = ev->source;
		if (ev->source == PMU_TSC)
			continue;
		p->fd = open_one(ev, leader, &h->calib, c);
		if (p->fd < 0)
			continue;
		if (leader < 0)
			leader = p->fd;
		ioctl(p->fd, PERF_EVENT_IOC_ID, &p->id);
		if (ev->source != PMU_PAGE)
			continue;
		void *page = mmap(NULL, (size_t)getpagesize(), PROT_READ,
		    MAP_SHARED, p->fd, 0);
		p->page = page == MAP_FAILED ? NULL : page;
	}
	if (leader >= 0)
		ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	for (unsigned c = 0; c < h->ncounters; c++) {
		const struct perf_event_mmap_page *p = t->pmc[c].page;
		if (h->event[c].source != PMU_PAGE)
			continue;
		if (!p || !p->cap_user_rdpmc || !p->index)
			h->calib.how[c] = PMU_READ;
		else
			h->calib.width[c] = p->pmc_width;
	}
}

void
pmu_counters_close(struct thread *t)
{
	for (unsigned c = 0; c < pmu_rt.head->ncounters; c++) {
		uint64_t id = 0;
		struct pmc *p = &t->pmc[c];
		if (p->page)
			munmap(p->page, (size_t)getpagesize());
		/* The target may have closed it and have its own there now. */
		if (p->fd >= 0 && !ioctl(p->fd, PERF_EVENT_IOC_ID, &id) &&
		    id == p->id)
			close(p->fd);
		*p = (struct pmc){ .fd = -1 };
	}
}

/* By system call; false if the counter was not on the PMU all the time. */
static bool
read_file(const struct pmc *p, uint64_t *value)
{
	uint64_t v[3], id = 0;
	if (p->fd < 0 || ioctl(p->fd, PERF_EVENT_IOC_ID, &id) || id != p->id)
		return false;
	if (read(p->fd, v, sizeof v) != (ssize_t)sizeof v || v[1] != v[2])
		return false;
	*value = v[0];
	return true;
}

void
pmu_counters_slow(struct thread *t, uint64_t *now)
{
	const struct pmu_head *h = pmu_rt.head;
	int keep = errno;
	for (unsigned c = 0; c < h->ncounters; c++) {
		const struct pmc *p = &t->pmc[c];
		now[c] = 0;
		if (h->event[c].source == PMU_TSC) {
			now[c] = pmu_tsc();
			continue;
		}
		if (p->page &&
		    pmu_page_read(p->page, hw_read, &now[c]) == PMU_PAGE_OK)
			continue;
		if (!read_file(p, &now[c]))
			t->unreadable = 1;
	}
	errno = keep;
}

/* ---- calibration ----------------------------------------------------------
 */

/* stub_*.S: functions with a sled that is a jump to the stub already. */
void pmu_cal_leaf(void) PMU_HIDDEN;
void pmu_cal_calls(void) PMU_HIDDEN;      /* counted, calls it 1000 times */
void pmu_cal_bare_calls(void) PMU_HIDDEN; /* the same without our sleds */
void pmu_cal_loop(uint64_t n) PMU_HIDDEN; /* 2n instructions */
extern struct spot pmu_cal_site[2] PMU_HIDDEN;

enum {
	ROUNDS = 201,   /* calls for the median of `self` */
	OUTER = 15,     /* runs for the median of `child` */
	OUTER_READ = 3, /* the same where each read is a system call */
	CALLS = 1000,   /* in pmu_cal_calls */
	TRUE_LEAF = 2,  /* instructions of pmu_cal_leaf: nop, ret */
	TRUE_CALLS = 3005 + CALLS * TRUE_LEAF, /* counted in stub_*.S */
	SHORT_LOOP = 1000,
	LONG_LOOP = 1000000,
	LOOP_SLACK = 200, /* interrupts add a few */
};

static int64_t
median(int64_t *v, unsigned n)
{
	for (unsigned i = 1; i < n; i++) {
		int64_t x = v[i];
		unsigned k = i;
		for (; k && v[k - 1] > x; k--)
			v[k] = v[k - 1];
		v[k] = x;
	}
	return v[n / 2];
}

static int64_t
spread(int64_t *v, unsigned n, int64_t middle)
{
	for (unsigned i = 0; i < n; i++)
		v[i] = v[i] > middle ? v[i] - middle : middle - v[i];
	return median(v, n);
}

static void
check_loops(struct thread *t, struct pmu_calib *k)
{
	uint64_t a[PMU_COUNTERS], b[PMU_COUNTERS], c[PMU_COUNTERS];
	pmu_counters_read(t, a);
	pmu_cal_loop(SHORT_LOOP);
	pmu_counters_read(t, b);
	pmu_cal_loop(LONG_LOOP);
	pmu_counters_read(t, c);
	for (unsigned i = 0; i < pmu_rt.head->ncounters; i++) {
		const struct pmu_event *ev = &pmu_rt.head->event[i];
		const uint64_t want = 2 * (LONG_LOOP - SHORT_LOOP);
		uint64_t got = (c[i] - b[i]) - (b[i] - a[i]);
		bool counts =
		    ev->source == PMU_PAGE && ev->type == PERF_TYPE_HARDWARE;
		k->loop[i] = got;
		if (counts && ev->config == PERF_COUNT_HW_INSTRUCTIONS)
			k->trusted[i] =
			    got >= want && got - want <= LOOP_SLACK ? 1 : 2;
		else if (counts && ev->config == PERF_COUNT_HW_CPU_CYCLES)
			k->trusted[i] = got > want / 64 ? 0 : 2;
	}
}

/* Values of single empty calls: what a window of ours adds to itself. */
static void
measure_self(struct thread *t, struct pmu_calib *k)
{
	static int64_t v[PMU_COUNTERS][ROUNDS];
	struct pmu_node *n = &t->view.node[PMU_FIRST_NODE];
	pmu_cal_leaf();
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t before[PMU_COUNTERS];
		for (unsigned c = 0; c < PMU_COUNTERS; c++)
			before[c] = n->self[c];
		pmu_cal_leaf();
		for (unsigned c = 0; c < pmu_rt.head->ncounters; c++)
			v[c][i] = (int64_t)(n->self[c] - before[c]);
	}
	for (unsigned c = 0; c < pmu_rt.head->ncounters; c++) {
		k->self[c] = median(v[c], ROUNDS);
		k->spread[c] = spread(v[c], ROUNDS, k->self[c]);
		if (k->trusted[c] == 1)
			k->self[c] -= TRUE_LEAF;
	}
}

/* What a counted call adds to its caller's window. */
static void
measure_child(struct thread *t, struct pmu_calib *k)
{
	static int64_t with[PMU_COUNTERS][OUTER], bare[PMU_COUNTERS][OUTER];
	struct pmu_node *n = &t->view.node[PMU_FIRST_NODE + 1];
	unsigned counters = pmu_rt.head->ncounters, outer = OUTER;
	for (unsigned c = 0; c < counters; c++)
		if (k->how[c] == PMU_READ)
			outer = OUTER_READ;
	pmu_cal_calls();
	for (unsigned i = 0; i < outer; i++) {
		uint64_t a[PMU_COUNTERS], b[PMU_COUNTERS], was[PMU_COUNTERS];
		for (unsigned c = 0; c < counters; c++)
			was[c] = n->incl[c];
		pmu_counters_read(t, a);
		pmu_cal_bare_calls();
		pmu_counters_read(t, b);
		pmu_cal_calls();
		for (unsigned c = 0; c < counters; c++) {
			bare[c][i] = (int64_t)(b[c] - a[c]);
			with[c][i] = (int64_t)(n->incl[c] - was[c]);
		}
	}
	for (unsigned c = 0; c < counters; c++) {
		int64_t base = k->trusted[c] == 1 ? TRUE_CALLS + k->self[c]
						  : median(bare[c], outer);
		int64_t extra = median(with[c], outer) - base;
		k->child[c] = (extra + CALLS / 2) / CALLS;
	}
}

/*
 * All of it in a block of our own, so that nothing of it shows in the totals.
 */
void
pmu_calibrate(void)
{
	struct thread *t = pmu_self;
	struct pmu_calib *k = &pmu_rt.head->calib;
	void *block = mmap(NULL, PMU_BLOCK, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (block == MAP_FAILED)
		return;
	struct thread was = *t;
	t->view = pmu_view_of(block, pmu_rt.head->ncounters);
	t->block = t->view.block;
	t->frames = t->view.frame;
	t->view.spans = was.view.spans;
	pmu_view_begin(&t->view);
	check_loops(t, k);
	measure_self(t, k);
	measure_child(t, k);
	t->view = was.view;
	t->block = was.block;
	t->frames = was.frames;
	t->unreadable = 0;
	for (unsigned c = 0; c < PMU_COUNTERS; c++) {
		t->view.self_cost[c] = k->self[c];
		t->view.child_cost[c] = k->child[c];
	}
	munmap(block, PMU_BLOCK);
	k->done = 1;
}
