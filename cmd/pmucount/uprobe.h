/*
 * The kernel probes of backend uprobe: one counter group a thread, its ring of
 * samples, and the calls they tell of.
 */
#ifndef UPROBE_H
#define UPROBE_H

#include <linux/perf_event.h>

#include "pmucount.h"

enum {
	FUNCS_MAX = 16,    /* each sibling adds 23 ns a hit */
	RING_PAGES = 1024, /* 4 MiB a thread */
	THREADS_MAX = 256,
	MEMBERS_MAX = PMU_COUNTERS + 2 * FUNCS_MAX,
};

struct probe {
	uint64_t off;     /* of the entry probe in the file */
	uint64_t exit;    /* of the return probe */
	uint32_t func;    /* number in the session */
	unsigned skipped; /* instructions ahead of the probe */
	char *path;
};

struct watch {
	pid_t tid;
	int fd[MEMBERS_MAX];
	uint64_t id[MEMBERS_MAX]; /* of uprobe members: which one sampled */
	unsigned n;               /* members open */
	struct perf_event_mmap_page *ring;
	int ring_fd;
	struct pmu_view view;
	uint64_t sampled[2 * FUNCS_MAX];
	bool dead, broken;
};

struct uprobe {
	const struct settings *set;
	struct session s;
	struct result *r;
	const char *program;
	uint32_t type;
	uint32_t retprobe; /* bit of attr.config */
	struct probe probe[FUNCS_MAX];
	unsigned nprobes;
	struct watch watch[THREADS_MAX];
	unsigned nwatch, nblocks;
	pid_t leader;
	int status;
	uint64_t lost, late, failed, unmatched, stepped, refused;
	int open_error;
};

/* The dynamic PMU's type and the bit that asks for a return probe. */
bool uprobe_pmu(uint32_t *type, uint32_t *bit);
/* Does the kernel let us? */
bool uprobe_allowed(void);

/* Counters first, then entry and return of each function; 0 or an errno. */
int watch_open(struct uprobe *u, struct watch *w, pid_t tid);
void watch_close(struct watch *w);
/* A thread from now on; NULL if it cannot be counted (u says why). */
struct watch *watch_add(struct uprobe *u, pid_t tid);
/* Takes in the samples that are there. */
void watch_drain(struct uprobe *u, struct watch *w);
/* The thread is gone: what is left in its ring, and its own totals. */
void watch_finish(struct uprobe *u, struct watch *w);

#endif
