/*
 * Backend uprobe: any unmodified program. The kernel's probe at a function's
 * entry and its return probe are members of one counter group per thread, so
 * both sample the same counters in one snapshot, inside the trap.
 *
 * One group per thread and never inherited: with inherit the kernel reads the
 * path again from the memory of the thread that clones, and the clone fails.
 */
#define _GNU_SOURCE
#include "pmucount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "insn.h"
#include "launch.h"
#include "maps.h"
#include "num.h"

#ifdef __clang__
#define NOCLONE /* has no such attribute, and makes no clones */
#else
#define NOCLONE , noclone
#endif

#define PMU_DIR "/sys/bus/event_source/devices/uprobe/"

enum {
	FUNCS_MAX = 16,    /* each sibling adds 23 ns a hit */
	DEPTH_MAX = 64,    /* MAX_URETPROBE_DEPTH of the kernel */
	RING_PAGES = 1024, /* 4 MiB a thread */
	THREADS_MAX = 256,
	POLL_MS = 5,
	SAMPLE_MAX = 512, /* bytes of a record of ours */
	MEMBERS_MAX = PMU_COUNTERS + 2 * FUNCS_MAX,
	SCAN_MS = 10, /* attach: looks for new threads */
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

static bool
has_pmu(uint32_t *type, uint32_t *bit)
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

static void
watch_close(struct watch *w)
{
	if (w->ring)
		munmap(w->ring, (RING_PAGES + 1) * (size_t)getpagesize());
	for (unsigned i = 0; i < w->n; i++)
		close(w->fd[i]);
	w->ring = NULL;
	w->n = 0;
}

/* Counters first, then entry and return of each function; 0 or an errno. */
static int
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

static struct watch *
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

static void
drain(struct uprobe *u, struct watch *w)
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

/* The thread is gone: what is left in its ring, and its own totals. */
static void
finish(struct uprobe *u, struct watch *w)
{
	uint64_t v[1 + MEMBERS_MAX];
	if (w->dead)
		return;
	drain(u, w);
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

/* ---- calibration ------------------------------------------------------------
 */

/* Functions of our own that the probes are tried on. */
__attribute__((noinline NOCLONE)) static void
cal_leaf(void)
{
	__asm__ volatile("nop"); /* what the kernel emulates */
}

__attribute__((noinline NOCLONE)) static void
cal_calls(void)
{
	__asm__ volatile("nop");
	for (int i = 0; i < 50; i++) {
		__asm__ volatile("");
		cal_leaf();
	}
}

static uint64_t
file_offset(const struct maps *m, uint64_t addr)
{
	/* Mappings of a file keep the distance of address and offset within
	 * a segment; the executable one is found by its own line. */
	char name[64], *line = NULL;
	size_t cap = 0;
	uint64_t off = 0;
	snprintf(name, sizeof name, "/proc/self/maps");
	FILE *f = fopen(name, "r");
	while (f && getline(&line, &cap, f) > 0) {
		unsigned long long a, b, o;
		char perm[8];
		if (sscanf(line, "%llx-%llx %7s %llx", &a, &b, perm, &o) == 4 &&
		    addr >= a && addr < b)
			off = addr - a + o;
	}
	free(line);
	if (f)
		fclose(f);
	(void)m;
	return off;
}

/*
 * Our own functions, probed in our own thread: what a call's window holds for
 * a function that does nothing (self, as median), and what a probed callee
 * adds to its caller (child).
 */
static void
calibrate(struct uprobe *u, struct session *tmp)
{
	struct uprobe *c = cli_alloc(1, sizeof *c);
	struct watch *w = &c->watch[0];
	void (*fn[2])(void) = { cal_leaf, cal_calls };
	char self[] = "/proc/self/exe";
	*c = (struct uprobe){ .set = u->set,
		.type = u->type,
		.retprobe = u->retprobe,
		.nprobes = 2 };
	c->s.events = u->s.events;
	c->s.head = tmp->head;
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t addr = 0;
		memcpy(&addr, &fn[i], sizeof fn[i]);
		uint64_t off = file_offset(NULL, addr);
		struct str code = { (const char *)(uintptr_t)addr, 64 };
		struct insn_place at =
		    insn_probe_place(u->s.object[0]->elf.machine, code);
		c->probe[i] = (struct probe){ off + at.skip, off + at.skip, i,
			at.insns, self };
	}
	void *block = mmap(NULL, PMU_BLOCK, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (block == MAP_FAILED || watch_open(c, w, 0)) {
		free(c);
		return;
	}
	w->view = pmu_view_of(block, u->s.events.n);
	pmu_view_begin(&w->view);
	for (int i = 0; i < 20; i++)
		cal_leaf();
	cal_calls();
	ioctl(w->fd[0], PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
	drain(c, w);
	struct pmu_calib *k = &u->s.head->calib;
	const struct pmu_node *leaf = &w->view.node[PMU_FIRST_NODE];
	const struct pmu_node *calls = leaf + 1;
	for (unsigned i = 0; i < u->s.events.n; i++) {
		if (leaf->calls < 20 || !calls->calls)
			break;
		bool exact = u->s.events.event[i].exact;
		k->self[i] = leaf->min[i];
		k->child[i] = ((int64_t)calls->incl[i]) / 50;
		k->spread[i] =
		    (int64_t)(leaf->self[i] / leaf->calls) - leaf->min[i];
		/* Exact ones, as the emulated machine shows them: the trap at
		 * the return adds an instruction to the call's own window and
		 * another one to its caller's. */
		if (exact) {
			k->self[i] = 1;
			k->child[i] = 2;
			k->spread[i] = 0;
		}
	}
	watch_close(w);
	munmap(block, PMU_BLOCK);
	free(c);
}

/* ---- functions
 * --------------------------------------------------------------- */

static int
add_probe(struct uprobe *u, uint32_t object, uint32_t func, struct err *e)
{
	struct object *o = u->s.object[object];
	const struct func *f = &o->func[func];
	if (u->nprobes == FUNCS_MAX)
		return err_set(e, SE_ELIMIT,
		    "more than %d functions match: each probe slows all "
		    "others; choose fewer with -f",
		    FUNCS_MAX);
	size_t len = f->size && f->size < 4096 ? (size_t)f->size : 64;
	struct insn_place at =
	    insn_probe_place(o->elf.machine, object_code(o, f->vaddr, len));
	struct site k = { .vaddr = f->vaddr, .before = (uint16_t)at.insns };
	int id = session_func(&u->s, object, func, &k, e);
	if (id < 0)
		return id;
	u->s.func[id].state = PMU_ON;
	bool x86 = o->elf.machine == ELF_X86_64;
	u->probe[u->nprobes++] = (struct probe){ .off = f->off + at.skip,
		.exit = f->off + (x86 ? at.skip : 0),
		.func = (uint32_t)id,
		.skipped = at.insns,
		.path = o->path };
	u->stepped += at.cost == INSN_STEPPED && x86;
	return 0;
}

static int
add_object(struct uprobe *u, const char *path, bool main, struct err *e)
{
	struct object *o;
	int r = object_open(&o, path, main ? e : NULL);
	if (r)
		return main ? r : 0;
	object_demangle(o);
	int n = session_object(&u->s, o, 0, e);
	if (n < 0)
		return n;
	if (o->contexts)
		result_caveat(u->r, "contexts", 1,
		    "%s switches stacks: returns may be paired wrongly",
		    o->path);
	for (size_t i = 0; i < o->nfuncs && r >= 0; i++) {
		const struct func *f = &o->func[i];
		bool entry = f->vaddr == o->elf.entry;
		if (f->alias_of || f->ifunc || entry || !f->size ||
		    !is_wanted(u->set, f) || (!main && !u->set->npatterns))
			continue;
		r = add_probe(u, (uint32_t)n, (uint32_t)i, e);
	}
	return r;
}

/* ---- running
 * ------------------------------------------------------------------ */

static void
drain_all(struct uprobe *u)
{
	for (unsigned i = 0; i < u->nwatch; i++)
		if (!u->watch[i].dead)
			drain(u, &u->watch[i]);
}

static void
finish_all(struct uprobe *u)
{
	for (unsigned i = 0; i < u->nwatch; i++)
		finish(u, &u->watch[i]);
}

static void
nap(struct uprobe *u)
{
	struct pollfd p[THREADS_MAX];
	nfds_t n = 0;
	for (unsigned i = 0; i < u->nwatch; i++)
		if (!u->watch[i].dead)
			p[n++] = (struct pollfd){ .fd = u->watch[i].ring_fd,
				.events = POLLIN };
	poll(p, n, POLL_MS);
	drain_all(u);
}

static void
on_stop(struct uprobe *u, pid_t tid, int st)
{
	int sig = WSTOPSIG(st), event = st >> 16;
	unsigned long msg = 0;
	if (event == PTRACE_EVENT_EXEC) {
		for (unsigned i = 0; i < u->nwatch; i++)
			finish(u, &u->watch[i]);
		watch_add(u, tid);
	} else if (event == PTRACE_EVENT_CLONE) {
		/* The new thread has not run yet: it starts counted. */
		ptrace(PTRACE_GETEVENTMSG, tid, NULL, &msg);
		watch_add(u, (pid_t)msg);
	}
	bool group = event == PTRACE_EVENT_STOP && sig != SIGTRAP;
	if (group)
		ptrace(PTRACE_LISTEN, tid, NULL, NULL);
	else
		ptrace(PTRACE_CONT, tid, NULL, (void *)(long)(event ? 0 : sig));
}

static void
nothing(int sig)
{
}

static void
follow(struct uprobe *u)
{
	/* A child's news ends the nap. */
	struct sigaction a = { .sa_handler = nothing }, was;
	sigaction(SIGCHLD, &a, &was);
	for (bool over = false; !over;) {
		int st;
		pid_t tid = waitpid(-1, &st, WNOHANG | __WALL);
		if (tid < 0 && errno == ECHILD)
			break;
		if (tid <= 0) {
			nap(u);
			continue;
		}
		if (WIFSTOPPED(st)) {
			on_stop(u, tid, st);
			continue;
		}
		for (unsigned i = 0; i < u->nwatch; i++)
			if (u->watch[i].tid == tid)
				finish(u, &u->watch[i]);
		over = tid == u->leader;
		if (over)
			u->status = st;
	}
	sigaction(SIGCHLD, &was, NULL);
	finish_all(u);
}

static int
run(struct uprobe *u, struct err *e)
{
	struct launch l = { .command = u->set->command,
		.program = u->program,
		.as_root = u->set->as_root,
		.quiet = u->set->quiet_command,
		.wait = true };
	int r = launch_start(&l, e), why = 0;
	if (r)
		return r;
	u->leader = l.pid;
	launch_ignore_keys();
	if (ptrace(PTRACE_SEIZE, l.pid, NULL,
		(void *)(long)(PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE |
			       PTRACE_O_EXITKILL))) {
		r = err_sys(e, "cannot follow the command");
		kill(l.pid, SIGKILL);
	}
	close(l.go);
	follow(u);
	if (read(l.failed, &why, sizeof why) == (ssize_t)sizeof why && why) {
		errno = why;
		r = err_sys(e, "cannot execute");
	}
	close(l.failed);
	return r;
}

/* Threads that came since the last look; calls before it are missed. */
static void
look_for_threads(struct uprobe *u, pid_t pid, bool first)
{
	char name[64];
	snprintf(name, sizeof name, "/proc/%ld/task", (long)pid);
	DIR *d = opendir(name);
	if (!d)
		return;
	for (struct dirent *t; (t = readdir(d));) {
		uint64_t tid;
		if (num_u64(str_c(t->d_name), 1, INT32_MAX, &tid, NULL))
			continue;
		unsigned before = u->nwatch;
		watch_add(u, (pid_t)tid);
		if (!first && u->nwatch > before)
			result_caveat(u->r, "late-thread", tid,
			    "a thread that began meanwhile: its first calls "
			    "are missed");
	}
	closedir(d);
}

static int
attach(struct uprobe *u, struct err *e)
{
	struct timespec a, b;
	pid_t pid = u->set->attach;
	look_for_threads(u, pid, true);
	if (!u->nwatch)
		return err_set(e, SE_EIO, "cannot count process %ld: %s",
		    (long)pid, strerror(u->open_error));
	clock_gettime(CLOCK_MONOTONIC, &a);
	int64_t gone = 0;
	while (gone < u->set->for_ns && !kill(pid, 0)) {
		nap(u);
		look_for_threads(u, pid, false);
		clock_gettime(CLOCK_MONOTONIC, &b);
		gone = (b.tv_sec - a.tv_sec) * INT64_C(1000000000) + b.tv_nsec -
		       a.tv_nsec;
	}
	for (unsigned i = 0; i < u->nwatch; i++)
		ioctl(u->watch[i].fd[0], PERF_EVENT_IOC_DISABLE,
		    PERF_IOC_FLAG_GROUP);
	finish_all(u);
	return 0;
}

/* ---- the backend
 * ---------------------------------------------------------------- */

static void
describe(struct uprobe *u)
{
	struct result *r = u->r;
	for (uint32_t i = 0; i < u->s.nobjects; i++) {
		struct coverage *c =
		    u->s.asked[i] || !i ? result_coverage(r) : NULL;
		if (!c)
			continue;
		c->object = arena_str(&r->arena, str_c(u->s.object[i]->path));
		c->functions = u->s.object[i]->nfuncs;
		c->asked = c->on = u->s.asked[i];
	}
	static const struct {
		size_t at;
		const char *what, *note;
	} lines[] = {
		{ offsetof(struct uprobe, lost), "lost-samples",
		    "samples that found the ring full: calls open then are "
		    "given up" },
		{ offsetof(struct uprobe, late), "lost-hits",
		    "hits that were counted and have no sample" },
		{ offsetof(struct uprobe, failed), "thread-refused",
		    "threads that could not be counted" },
		{ offsetof(struct uprobe, unmatched), "orphans",
		    "returns of calls that began before us" },
		{ offsetof(struct uprobe, stepped), "stepped-probe",
		    "functions whose first instructions the kernel can only "
		    "single-step: some 15 microseconds a call in a virtual "
		    "machine" },
	};
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		uint64_t n;
		memcpy(&n, (const char *)u + lines[i].at, sizeof n);
		if (n)
			result_caveat(r, lines[i].what, n, "%s", lines[i].note);
	}
	result_caveat(r, "trap", 1,
	    "each call traps into the kernel twice: task-clock holds that "
	    "time, caches and predictors see it");
}

static struct event_set
choose_events(const struct settings *s)
{
	struct event_set set = s->events;
	struct event hw;
	if (set.n)
		return set;
	if (!event_find(&hw, STR_LIT("instructions"), NULL) &&
	    !event_try(&hw, NULL))
		event_add(&set, "instructions", NULL);
	event_add(&set, "task-clock", NULL);
	return set;
}

/*
 * Closing a probe takes the kernel some 87 ms, one after the other: a child
 * keeps the descriptors and dies after us, so nobody waits.
 */
static void
leave_to_child(struct uprobe *u)
{
	int hold[2];
	if (pipe2(hold, O_CLOEXEC))
		return;
	pid_t pid = fork();
	if (!pid) {
		char c;
		/* Not even the streams: somebody may wait for their end. */
		for (int i = 0; i < 3; i++)
			close(i);
		close(hold[1]);
		setsid();
		while (read(hold[0], &c, 1) < 0 && errno == EINTR)
			;
		_exit(0);
	}
	close(hold[0]); /* the other end closes when we exit */
	for (unsigned i = 0; i < u->nwatch; i++)
		watch_close(&u->watch[i]);
}

static int
prepare(struct uprobe *u, struct err *e)
{
	int x = add_object(u, u->program, true, e);
	if (x < 0)
		return x;
	if (u->set->attach) {
		struct maps m;
		x = maps_read(&m, u->set->attach, e);
		for (unsigned i = 0; i < m.n && !x; i++)
			if (strcmp(m.file[i].path, u->program))
				x = add_object(u, m.file[i].path, false, e);
		maps_free(&m);
	}
	if (!x && !u->nprobes)
		return err_set(e, SE_ENOENT,
		    "no function to probe: none matches, it was inlined "
		    "everywhere, or the program has no symbols");
	return x;
}

static int
uprobe_count(const struct settings *s, const char *program, struct result *r,
    struct err *e)
{
	struct event_set events = choose_events(s);
	struct uprobe *u = cli_alloc(1, sizeof *u);
	u->set = s;
	u->r = r;
	u->program = program;
	int x = session_open(&u->s, &events, e);
	if (!x && !has_pmu(&u->type, &u->retprobe))
		x = err_set(e, SE_EUNSUP, "no uprobe PMU");
	if (!x)
		x = prepare(u, e);
	if (!x) {
		struct pmu_calib *k = &u->s.head->calib;
		for (unsigned c = 0; c < events.n; c++)
			k->how[c] = PMU_GIVEN;
		calibrate(u, &u->s);
		x = s->attach ? attach(u, e) : run(u, e);
	}
	if (!x && !u->nblocks)
		x = err_set(e, SE_EIO, "no thread could be counted: %s",
		    strerror(u->open_error));
	if (!x)
		x = session_result(&u->s, r, e);
	if (!x)
		describe(u);
	r->status = u->status;
	r->has_status = !x;
	leave_to_child(u);
	session_close(&u->s);
	free(u);
	return x;
}

static bool
may_probe(void)
{
	struct perf_event_attr a = { .type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY };
	uint32_t bit;
	char self[] = "/proc/self/exe";
	if (!has_pmu(&a.type, &bit))
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
uprobe_usable(const struct settings *s, const char *program, struct object *o,
    struct err *e)
{
	uint32_t type, bit;
	if (!has_pmu(&type, &bit))
		return err_set(e, SE_EUNSUP,
		    "the kernel has no uprobe PMU (CONFIG_UPROBE_EVENTS), or "
		    "/sys is not there");
	if (!may_probe())
		return err_set(e, SE_EUNSUP,
		    "needs CAP_SYS_ADMIN in the first user namespace: run it "
		    "with sudo (the command still runs as you)");
	if (s->gate_n)
		return err_set(e, SE_EUNSUP, "has no --gate");
	if (s->skip_callees)
		return err_set(e, SE_EUNSUP, "--skip-callees is for step");
	for (unsigned i = 0; i < s->events.n; i++) {
		const struct event *ev = &s->events.event[i];
		if (ev->source == PMU_TSC)
			return err_set(e, SE_EUNSUP,
			    "tsc is not a kernel counter: use task-clock");
		int why = event_try(ev, NULL);
		if (why)
			return err_set(e, SE_EUNSUP, "%s: %s", ev->name,
			    event_why(ev, why));
	}
	if (!program)
		return 0;
	if (!o)
		return err_set(e, SE_EUNSUP, "not a program but a script");
	if (o->go)
		return err_set(e, SE_EUNSUP,
		    "built by Go: a return probe would crash it when a stack "
		    "is moved");
	if (!s->npatterns && o->nfuncs > FUNCS_MAX && !s->backend)
		return err_set(e, SE_EUNSUP,
		    "at most %d functions: choose with -f", FUNCS_MAX);
	return 0;
}

const struct backend backend_uprobe = {
	.name = "uprobe",
	.what = "kernel probes in an unmodified program",
	.usable = uprobe_usable,
	.count = uprobe_count,
};
