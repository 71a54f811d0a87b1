/*
 * Backend uprobe: any unmodified program. The kernel's probe at a function's
 * entry and its return probe are members of one counter group per thread, so
 * both sample the same counters in one snapshot, inside the trap.
 *
 * One group per thread and never inherited: with inherit the kernel reads the
 * path again from the memory of the thread that clones, and the clone fails.
 */
#define _GNU_SOURCE
#include "uprobe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
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

enum { POLL_MS = 5 };

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
	watch_drain(c, w);
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
			watch_drain(u, &u->watch[i]);
}

static void
finish_all(struct uprobe *u)
{
	for (unsigned i = 0; i < u->nwatch; i++)
		watch_finish(u, &u->watch[i]);
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
			watch_finish(u, &u->watch[i]);
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
				watch_finish(u, &u->watch[i]);
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
	if (!x && !uprobe_pmu(&u->type, &u->retprobe))
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

static int
uprobe_usable(const struct settings *s, const char *program, struct object *o,
    struct err *e)
{
	uint32_t type, bit;
	if (!uprobe_pmu(&type, &bit))
		return err_set(e, SE_EUNSUP,
		    "the kernel has no uprobe PMU (CONFIG_UPROBE_EVENTS), or "
		    "/sys is not there");
	if (!uprobe_allowed())
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
