/*
 * What pmucount and the runtime inside the target share: one file in memory
 * (memfd) that both map. The target writes, pmucount reads after its death or
 * while it runs, so a crash loses nothing. pmucount believes no index in it.
 *
 *	struct pmu_head | struct pmu_func[func_cap] | block 0 | block 1 | ...
 *
 * A block belongs to one thread at a time. Its parts lie at fixed offsets
 * (struct pmu_sizes); untouched pages cost nothing.
 */
#ifndef PMU_SHARED_H
#define PMU_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PMU_MAGIC UINT64_C(0x31746e756f63756d) /* "mucount1" */

enum {
	PMU_COUNTERS = 4,      /* counters in one run */
	PMU_FUNCS = 1 << 16,   /* functions, all objects together */
	PMU_NODES = 1 << 15,   /* call paths of a thread */
	PMU_FRAMES = 1 << 15,  /* open calls of a thread */
	PMU_THREADS = 1 << 10, /* threads alive at one time */
	PMU_BUCKETS = 128,     /* of the distribution, see pmu_bucket() */
	PMU_OBJECTS = 256,
	PMU_NAME = 256, /* bytes of an object's path */
};

/* Where a counter's value comes from. */
enum pmu_source {
	PMU_TSC = 1,   /* the time stamp or virtual counter, user space */
	PMU_PAGE = 2,  /* perf event read through its page, else read(2) */
	PMU_READ = 3,  /* perf event by read(2): software events */
	PMU_GIVEN = 4, /* the backend hands values in (step, uprobe) */
};

struct pmu_event {
	uint32_t source;
	uint32_t type; /* perf_event_attr.type */
	uint64_t config;
};

/* What a run measured about itself; see pmucount(1), CALIBRATION. */
struct pmu_calib {
	uint32_t done;
	uint32_t trusted[PMU_COUNTERS]; /* 1 yes, 2 no, 0 not tested */
	int64_t self[PMU_COUNTERS];     /* own part of a call's value */
	int64_t child[PMU_COUNTERS];    /* per counted call below */
	int64_t spread[PMU_COUNTERS];   /* median absolute deviation of self */
	uint64_t loop[PMU_COUNTERS];    /* 10^6 minus 10^3 iterations, read */
	uint32_t how[PMU_COUNTERS];     /* enum pmu_source actually used */
	uint32_t error[PMU_COUNTERS];   /* errno of the opening */
	uint32_t width[PMU_COUNTERS];   /* bits, of page reads */
};

/* One function with at least one site. */
struct pmu_func {
	uint64_t vaddr; /* of the site, in the object's own view */
	uint32_t object;
	uint16_t kind;   /* enum pmu_site */
	uint16_t before; /* instructions of the function ahead of the site */
	uint32_t state;  /* enum pmu_state, written by the runtime */
	uint32_t hooks;  /* of the compiler: index + 1 of the function below */
};

enum pmu_site {
	PMU_NOPS = 1, /* five one-byte NOPs (gcc) */
	PMU_NOP5 = 2, /* one NOP of five bytes (clang, -mnop-mcount, fentry) */
	PMU_XRAY = 3, /* jump over nine bytes */
	PMU_HOOK = 4, /* __cyg_profile_func_enter */
	PMU_A64 = 5,  /* at least one 4-byte NOP */
};

enum pmu_state {
	PMU_FOUND = 0,
	PMU_ON = 1,
	PMU_REFUSED = 2, /* bytes were not what the object file says */
	PMU_FAR = 3,     /* no room for a jump within reach */
	PMU_DENIED = 4,  /* the system refused to change the code */
	PMU_IDLE = 5,    /* not wanted: five NOPs become one */
};

struct pmu_object {
	char path[PMU_NAME];
	uint64_t base;
	uint32_t first, n; /* functions */
};

struct pmu_head {
	uint64_t magic;
	uint64_t size; /* of the whole file */
	uint32_t ncounters;
	uint32_t serialize;
	uint32_t spans; /* hooks measure themselves: pmu_span() */
	uint32_t pad;
	struct pmu_event event[PMU_COUNTERS];
	uint32_t nfuncs, nobjects;
	uint32_t nblocks;  /* blocks ever used */
	uint32_t reported; /* the runtime is alive */
	uint32_t finished; /* it saw a normal end */
	uint32_t execs, forks, threads;
	uint32_t gate_n; /* --gate: calls per function, thread and period */
	uint32_t stop;   /* pmucount: no more new calls, please */
	uint64_t gate_ticks;
	uint64_t no_block; /* threads without a block: calls not counted */
	uint64_t foreign;  /* calls on stacks that are no thread's */
	uint64_t unseen;   /* objects loaded and never looked at */
	uint64_t denied;   /* why: errno of the last refusal */
	uint64_t traps;    /* hits while a site was being changed */
	uint64_t hz;       /* of PMU_TSC, 0 unknown */
	struct pmu_calib calib;
	struct pmu_object object[PMU_OBJECTS];
};

/*
 * An open call. The unwind rules in stub_*.S know slot, ret and the size. The
 * first frame of a block is nobody's: its slot is above all stacks, its node
 * PMU_ROOT, so that every call has one above it.
 */
struct pmu_frame {
	uint64_t slot; /* where its return address lies */
	uint64_t ret;  /* what lay there */
	uint32_t node;
	uint32_t flags;  /* enum pmu_flag */
	uint64_t state;  /* the thread's interruptions and moves at entry */
	uint64_t nested; /* counted calls below */
	uint64_t start[PMU_COUNTERS];
	uint64_t child[PMU_COUNTERS]; /* in counted callees */
	/* Exact counters only, see pmu_span(): */
	uint64_t first[PMU_COUNTERS]; /* when its entry hook began */
	uint64_t end[PMU_COUNTERS];
	uint64_t over[PMU_COUNTERS]; /* spent in hooks below */
	uint64_t pad[7];
};

enum pmu_flag {
	PMU_F_MULTIPLEXED = 1 << 0, /* a counter was not on the PMU */
	PMU_F_COLLAPSED = 1 << 1,   /* the table of paths was full */
	PMU_F_TAIL = 1 << 2,        /* entered by a jump */
	PMU_F_INHERITED = 1 << 3,   /* entered before a fork: parent's call */
	PMU_F_ORPHAN = 1 << 4,      /* a callee's frame ended by a jump */
	PMU_F_CUT = 1 << 5,         /* counting stopped inside it */
	PMU_F_HOLES = 1 << 6,       /* --gate passed over callees */
};

/* A power of two: an index becomes a shift. stub_*.S has the size, too. */
enum { PMU_FRAME_SIZE = 256, PMU_NODE_SIZE = 256 };
_Static_assert(sizeof(struct pmu_frame) == PMU_FRAME_SIZE, "see stub_*.S");

/* A call path of a thread: this function called through this parent. */
struct pmu_node {
	uint32_t func, parent;
	uint32_t last;   /* child used last */
	uint32_t active; /* open calls */
	uint32_t flags, pad;
	uint64_t calls, unfinished;
	uint64_t interrupted, migrated;
	uint64_t nested; /* counted calls below outermost calls */
	uint64_t outer;  /* outermost calls */
	uint64_t self[PMU_COUNTERS], incl[PMU_COUNTERS];
	int64_t min[PMU_COUNTERS], max[PMU_COUNTERS]; /* of one call, net */
	uint64_t spare[7];
};
_Static_assert(sizeof(struct pmu_node) == PMU_NODE_SIZE, "a power of two");

/* What a thread keeps of a function whatever the path. */
struct pmu_tally {
	uint64_t lost;  /* calls that found no room */
	uint64_t gated; /* calls passed over by --gate */
	uint32_t gate, period;
	uint64_t bucket[PMU_BUCKETS]; /* of the first counter, per call */
};

struct pmu_block {
	uint32_t used;  /* a thread has it now */
	uint32_t depth; /* open frames */
	uint32_t nnodes;
	uint32_t pad;
	/* Interruptions seen (high half) and moves to another CPU (low). */
	uint64_t state;
	uint64_t pid, tid;
	uint64_t lost_signal; /* calls from handlers inside our own code */
	uint64_t unwound;     /* frames ended by longjmp or an exception */
	uint64_t threads;     /* that used the block */
	/* The last call, not yet in its distribution: pmu_late(). */
	uint64_t late_func, late_value;
};

enum {
	PMU_ROOT = 0,      /* node: no caller */
	PMU_COLLAPSED = 1, /* node: parent of what found no room */
	PMU_FIRST_NODE = 2,
	PMU_HASH = PMU_NODES * 2,
};

/* Offsets inside a block. */
#define PMU_AT_FRAMES ((size_t)4096)
#define PMU_AT_NODES (PMU_AT_FRAMES + PMU_FRAMES * sizeof(struct pmu_frame))
#define PMU_AT_HASH (PMU_AT_NODES + PMU_NODES * sizeof(struct pmu_node))
#define PMU_AT_TALLY (PMU_AT_HASH + PMU_HASH * sizeof(uint32_t))
#define PMU_ROUND(n) (((n) + 4095) & ~(size_t)4095)
#define PMU_BLOCK \
	PMU_ROUND(PMU_AT_TALLY + (PMU_FUNCS + 1) * sizeof(struct pmu_tally))
#define PMU_AT_FUNCS PMU_ROUND(sizeof(struct pmu_head))
#define PMU_AT_BLOCKS \
	PMU_ROUND(PMU_AT_FUNCS + PMU_FUNCS * sizeof(struct pmu_func))

/*
 * Messages on the socket: the runtime sends an object with one end of a
 * socket pair, pmucount answers on it with the functions it put into the
 * table.
 */
struct pmu_ask {
	char path[PMU_NAME];
	uint64_t base;
};

struct pmu_answer {
	uint32_t object, first, n;
};

/*
 * Buckets of the distribution: 0, 1, 2-3, 4-5, 6-9, 10-13, 14-21, ... two for
 * each power of two of v + 2, found without a branch.
 */
static inline unsigned
pmu_bucket(uint64_t v)
{
	uint64_t w = (v >> 62 ? v >> 2 : v) + 2;
	unsigned top = 63u - (unsigned)__builtin_clzll(w);
	return 2 * top + (unsigned)(w >> (top - 1) & 1);
}

/* The smallest value of a bucket from 2 on; 0 and 1 are never used. */
static inline uint64_t
pmu_bucket_from(unsigned b)
{
	return b < 2 ? 0 : ((uint64_t)(2 + (b & 1)) << (b / 2 - 1)) - 2;
}

#endif
