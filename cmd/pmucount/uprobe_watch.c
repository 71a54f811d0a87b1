/* Kernel probes, their rings, and calls: see uprobe.h. */
#define _GNU_SOURCE
#include "uprobe.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "num.h"

#define PMU_DIR "/sys/bus/event_source/devices/uprobe/"

enum {
	DEPTH_MAX = 64,   /* MAX_URETPROBE_DEPTH of the kernel */
	SAMPLE_MAX = 512, /* bytes of a record of ours */
};

/* ---- the kernel's side -----------------------------------------------------
 */

static bool
read_number(const char *name, uint64_t *out)
{
	char text[64];
	FILE *f = fopen(name, "r");
	if (!f)
		return false;
	char *line = fgets(text, sizeof text, f);
	fclose(f);
	if (!line)
		return false;
	size_t at = strcspn(text, ":");
	const char *p = text[at] ? text + at + 1 : text;
	size_t n = strspn(p, "0123456789");
	return n && !num_u64((struct str){ p, n }, 0, UINT32_MAX, out, NULL);
}

bool
uprobe_pmu(uint32_t *type, uint32_t *bit)
{
	uint64_t t, b;
	if (!read_number(PMU_DIR "type", &t) ||
	    !read_number(PMU_DIR "format/retprobe", &b) || b > 63)
		return false;
	*type = (uint32_t)t;
	*bit = (uint32_t)b;
	return true;
}

static int
perf_open(struct perf_event_attr *a, pid_t tid, int group)
{
	a->size = sizeof *a;
	return (int)syscall(
	    SYS_perf_event_open, a, tid, -1, group, PERF_FLAG_FD_CLOEXEC);
}

bool
uprobe_allowed(void)
{
	struct perf_event_attr a = { .type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY };
	uint32_t bit;
	char self[] = "/proc/self/exe";
	if (!uprobe_pmu(&a.type, &bit))
		return false;
	a.config = 0;
	a.config1 = (uint64_t)(uintptr_t)self;
	a.config2 = 0;
	/* Offset 0 is no code, but permission is asked first. */
	a.disabled = 1;
	int fd = perf_open(&a, 0, -1);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || (errno != EACCES && errno != EPERM);
}

static int
open_counter(const struct event *ev, pid_t tid, int group)
{
	struct perf_event_attr a = {
		.type = ev->type,
		.config = ev->config,
		.disabled = group < 0,
		.pinned = group < 0 && event_is_hardware(ev),
		.exclude_kernel = event_is_hardware(ev),
		.exclude_hv = event_is_hardware(ev),
		.read_format = PERF_FORMAT_GROUP,
	};
	return perf_open(&a, tid, group);
}

static int
open_probe(const struct uprobe *u, const struct probe *p, bool ret, pid_t tid,
    int group)
{
	struct perf_event_attr a = {
		.type = u->type,
		.config = ret ? UINT64_C(1) << u->retprobe : 0,
		.config1 = (uint64_t)(uintptr_t)p->path,
		.config2 = ret ? p->exit : p->off,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
			       PERF_SAMPLE_READ,
		.read_format = PERF_FORMAT_GROUP,
		.watermark = 1,
		.wakeup_watermark = RING_PAGES / 2 * 4096u,
	};
	return perf_open(&a, tid, group);
}

void
watch_close(struct watch *w)
{
	if (w->ring)
		munmap(w->ring, (RING_PAGES + 1) * (size_t)getpagesize());
	for (unsigned i = 0; i < w->n; i++)
		close(w->fd[i]);
	w->ring = NULL;
	w->n = 0;
}

int
watch_open(struct uprobe *u, struct watch *w, pid_t tid)
{
	const struct event_set *ev = &u->s.events;
	int leader = -1;
	*w = (struct watch){ .tid = tid };
	unsigned all = ev->n + 2 * u->nprobes;
	for (unsigned i = 0; i < all; i++) {
		unsigned k = i - ev->n;
		int fd = i < ev->n ? open_counter(&ev->event[i], tid, leader)
				   : open_probe(u, &u->probe[k / 2], k % 2, tid,
					 leader);
		if (fd < 0) {
			int why = errno;
			watch_close(w);
			return why;
		}
		w->fd[w->n++] = fd;
		leader = leader < 0 ? fd : leader;
		ioctl(fd, PERF_EVENT_IOC_ID, &w->id[i]);
	}
	w->ring_fd = w->fd[ev->n];
	void *p = mmap(NULL, (RING_PAGES + 1) * (size_t)getpagesize(),
	    PROT_READ | PROT_WRITE, MAP_SHARED, w->ring_fd, 0);
	if (p == MAP_FAILED) {
		int why = errno;
		watch_close(w);
		return why;
	}
	w->ring = p;
	for (unsigned i = ev->n + 1; i < all; i++)
		ioctl(w->fd[i], PERF_EVENT_IOC_SET_OUTPUT, w->ring_fd);
	ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	return 0;
}

struct watch *
watch_add(struct uprobe *u, pid_t tid)
{
	for (unsigned i = 0; i < u->nwatch; i++)
		if (u->watch[i].tid == tid && !u->watch[i].dead)
			return &u->watch[i];
	struct watch *w = u->nwatch < THREADS_MAX ? &u->watch[u->nwatch] : NULL;
	int why = w ? watch_open(u, w, tid) : EMFILE;
	if (why) {
		u->failed++;
		u->open_error = why;
		return NULL;
	}
	if (session_block(&u->s, u->nblocks, &w->view)) {
		watch_close(w);
		u->s.head->no_block++;
		return NULL;
	}
	u->s.head->nblocks = ++u->nblocks;
	const struct pmu_calib *k = &u->s.head->calib;
	for (unsigned c = 0; c < PMU_COUNTERS; c++) {
		w->view.self_cost[c] = k->self[c];
		w->view.child_cost[c] = k->child[c];
	}
	pmu_view_begin(&w->view);
	u->nwatch++;
	return w;
}

/* ---- samples ---------------------------------------------------------------
 */

struct sample {
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, res;
	uint64_t nr;
	uint64_t value[MEMBERS_MAX];
};

static void
drop_open(struct watch *w, const uint64_t *now)
{
	while (pmu_is_open(&w->view)) {
		pmu_drop(&w->view, now);
		w->view.block->unwound++;
	}
}

static void
on_entry(struct watch *w, uint32_t func, const uint64_t *now)
{
	uint32_t depth = w->view.block->depth; /* with the first frame */
	/* The kernel makes no return probe below this many: never pair it. */
	if (depth > DEPTH_MAX) {
		w->view.tally[func].lost++;
		return;
	}
	/* There is no stack pointer in a sample: nesting stands for it. */
	struct pmu_frame *f = pmu_push(&w->view, func, UINT64_MAX - depth, 0);
	if (f)
		memcpy(f->start, now, sizeof f->start);
}

static void
on_return(struct uprobe *u, struct watch *w, uint32_t func, const uint64_t *now)
{
	const struct pmu_frame *f = w->view.top;
	while (f > w->view.frame && w->view.node[f->node].func != func)
		f--;
	if (f == w->view.frame) { /* it began before us */
		u->unmatched++;
		return;
	}
	while (w->view.top > f) {
		pmu_drop(&w->view, now);
		w->view.block->unwound++;
	}
	pmu_pop(&w->view, now);
	if (w->view.block->late_func < PMU_FUNCS) {
		pmu_late(&w->view);
		w->view.block->late_func = PMU_FUNCS;
	}
}

static void
on_sample(struct uprobe *u, struct watch *w, const struct sample *s)
{
	unsigned n = u->s.events.n;
	uint64_t now[PMU_COUNTERS] = { 0 };
	if (s->nr < n || s->nr > MEMBERS_MAX)
		return;
	memcpy(now, s->value, n * sizeof *now);
	for (unsigned i = n; i < w->n; i++) {
		if (w->id[i] != s->id)
			continue;
		unsigned k = i - n;
		w->sampled[k]++;
		if (k % 2)
			on_return(u, w, u->probe[k / 2].func, now);
		else
			on_entry(w, u->probe[k / 2].func, now);
		return;
	}
}

static void
on_lost(struct uprobe *u, struct watch *w, uint64_t n)
{
	uint64_t now[PMU_COUNTERS] = { 0 };
	u->lost += n;
	/* Entries or returns are missing: nothing open can be believed. */
	for (struct pmu_frame *f = w->view.top; f > w->view.frame; f--) {
		f->flags |= PMU_F_CUT;
		memcpy(now, f->start, sizeof now);
	}
	drop_open(w, now);
}

/* Copies out of the ring, which may wrap inside a record. */
static void
ring_copy(const struct watch *w, uint64_t at, void *to, size_t n)
{
	const char *data = (const char *)w->ring + (size_t)w->ring->data_offset;
	uint64_t size = w->ring->data_size;
	for (size_t i = 0; i < n;) {
		uint64_t off = (at + i) % size;
		size_t part = (size_t)(size - off);
		part = part < n - i ? part : n - i;
		memcpy((char *)to + i, data + off, part);
		i += part;
	}
}

void
watch_drain(struct uprobe *u, struct watch *w)
{
	if (!w->ring)
		return;
	uint64_t head = __atomic_load_n(&w->ring->data_head, __ATOMIC_ACQUIRE);
	uint64_t at = w->ring->data_tail;
	while (at < head) {
		struct perf_event_header h;
		union {
			struct sample s;
			uint64_t lost[2]; /* id, number */
			char bytes[SAMPLE_MAX];
		} body;
		ring_copy(w, at, &h, sizeof h);
		if (h.size < sizeof h)
			break;
		size_t n = h.size - sizeof h;
		memset(&body, 0, sizeof body);
		ring_copy(
		    w, at + sizeof h, &body, n < sizeof body ? n : sizeof body);
		if (h.type == PERF_RECORD_SAMPLE)
			on_sample(u, w, &body.s);
		else if (h.type == PERF_RECORD_LOST)
			on_lost(u, w, body.lost[1]);
		at += h.size;
	}
	__atomic_store_n(&w->ring->data_tail, at, __ATOMIC_RELEASE);
}

void
watch_finish(struct uprobe *u, struct watch *w)
{
	uint64_t v[1 + MEMBERS_MAX];
	if (w->dead)
		return;
	watch_drain(u, w);
	w->dead = true;
	ssize_t n = read(w->fd[0], v, sizeof v);
	/* A pinned group that lost its place reads as the end of a file. */
	w->broken = n < (ssize_t)sizeof v[0] || v[0] != w->n;
	if (!w->broken)
		for (unsigned k = 0; k < 2 * u->nprobes; k++) {
			uint64_t hits = v[1 + u->s.events.n + k];
			if (hits > w->sampled[k])
				u->late += hits - w->sampled[k];
		}
	for (uint32_t i = PMU_FIRST_NODE;
	     w->broken && i < w->view.block->nnodes; i++)
		w->view.node[i].flags |= PMU_F_MULTIPLEXED;
}
