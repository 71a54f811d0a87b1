/*
 * Backend step: exact instruction counts with no PMU at all. Counted
 * functions begin with a breakpoint; while one is open its thread is
 * single-stepped and every instruction belongs to an open call.
 *
 * One stop per instruction, except that a string instruction with REP stops
 * once per round: those rounds count once, as on hardware.
 */
#define _GNU_SOURCE
#include "pmucount.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "insn.h"
#include "launch.h"
#include "maps.h"

#ifdef __x86_64__

enum {
	TASKS_MAX = PMU_THREADS,
	BREAKS = 1 << 18, /* slots for breakpoints; functions and returns */
	INT3 = 0xcc,
	OPTIONS = PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE |
		  PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
		  PTRACE_O_TRACEVFORKDONE | PTRACE_O_EXITKILL,
};

struct brk {
	uint64_t addr;    /* 0: free */
	uint32_t func;    /* number + 1, 0: only a return address */
	uint32_t returns; /* calls that wait for it (--skip-callees) */
	unsigned char was;
	bool in; /* the breakpoint is in memory now */
};

/* Where a counted call runs a callee at full speed. */
struct skip {
	uint64_t addr, sp; /* 0: it does not */
};

struct task {
	pid_t tid;
	struct pmu_view view;
	struct skip *skip; /* one per frame */
	uint64_t steps;    /* instructions counted in this thread */
	uint64_t pc;       /* before the current step */
	bool stepping, stopped, delivered, was_call, was_rep;
	bool has_pending;
	int pending; /* wait status that came while we stopped all */
};

struct step {
	const struct settings *set;
	struct session s;
	struct result *r;
	const char *program;
	struct brk *brk;
	uint32_t *lifted; /* breakpoints taken out while stepping */
	size_t nlifted;
	struct task task[TASKS_MAX];
	unsigned ntasks, nblocks;
	pid_t leader;
	int mem;        /* /proc/PID/mem */
	uint64_t entry; /* breakpoint at the program's first instruction */
	uint64_t total;
	struct timespec begun;
	double seconds; /* spent stepping */
	bool over;      /* --max-steps reached */
	int status;
	uint64_t forks, missed;
};

/* ---- breakpoints --------------------------------------------------------- */

static struct brk *
brk_at(struct step *t, uint64_t addr)
{
	uint64_t h = addr * UINT64_C(0x9e3779b97f4a7c15) >> 40;
	for (;; h++) {
		struct brk *b = &t->brk[h % BREAKS];
		if (!b->addr || b->addr == addr)
			return b;
	}
}

static bool
peek(const struct step *t, uint64_t addr, void *to, size_t n)
{
	return pread(t->mem, to, n, (off_t)addr) == (ssize_t)n;
}

static bool
poke(const struct step *t, uint64_t addr, unsigned char c)
{
	return pwrite(t->mem, &c, 1, (off_t)addr) == 1;
}

static struct brk *
brk_put(struct step *t, uint64_t addr)
{
	struct brk *b = brk_at(t, addr);
	if (b->addr && b->in)
		return b;
	if (!b->addr && !peek(t, addr, &b->was, 1))
		return NULL;
	b->addr = addr;
	b->in = poke(t, addr, INT3);
	return b;
}

static void
brk_lift(struct step *t, struct brk *b)
{
	if (b->in)
		poke(t, b->addr, b->was);
	b->in = false;
}

static void
brk_all(struct step *t, bool in)
{
	for (size_t i = 0; i < BREAKS; i++) {
		struct brk *b = &t->brk[i];
		if (!b->addr || b->in == in)
			continue;
		poke(t, b->addr, in ? INT3 : b->was);
		b->in = in;
	}
}

/* Bytes of the target with our breakpoints undone. */
static struct str
code_at(struct step *t, uint64_t addr, char *to, size_t n)
{
	while (n && !peek(t, addr, to, n))
		n /= 2;
	if (n && (unsigned char)to[0] == INT3) {
		const struct brk *b = brk_at(t, addr);
		if (b->addr)
			to[0] = (char)b->was;
	}
	return (struct str){ to, n };
}

/* ---- functions ----------------------------------------------------------- */

static int
add_object(struct step *t, const struct mapped *f, bool main, struct err *e)
{
	struct object *o;
	if (object_open(&o, f->path, NULL))
		return 0; /* not ELF: a data file that is mapped executable */
	object_demangle(o);
	uint64_t base = maps_base(f, o);
	int n = session_object(&t->s, o, base, e);
	if (n < 0)
		return n;
	if (o->contexts)
		result_caveat(t->r, "contexts", 1,
		    "the program switches stacks: calls on one stack may be "
		    "taken for the end of calls on another");
	for (size_t i = 0; i < o->nfuncs; i++) {
		const struct func *fn = &o->func[i];
		bool wanted = t->set->npatterns ? is_wanted(t->set, fn) : main;
		/* The program's first instruction is no function: nothing
		 * called it, and it never returns. */
		bool entry = main && fn->vaddr == o->elf.entry;
		if (!wanted || fn->ifunc || entry)
			continue;
		struct brk *b = brk_put(t, base + fn->vaddr);
		if (!b || !b->in || b->func) {
			t->missed += !b || !b->in;
			continue;
		}
		int id = session_func(&t->s, (uint32_t)n, (uint32_t)i, NULL, e);
		if (id < 0)
			return id;
		b->func = (uint32_t)id + 1;
		t->s.func[id].state = PMU_ON;
	}
	return 0;
}

/* All libraries are there once the program's own code begins. */
static int
add_objects(struct step *t, pid_t pid, struct err *e)
{
	struct maps m;
	int r = maps_read(&m, pid, e);
	for (unsigned i = 0; i < m.n && !r; i++)
		r = add_object(t, &m.file[i], i == 0, e);
	maps_free(&m);
	return r;
}

/* ---- threads ------------------------------------------------------------- */

static struct task *
task_of(struct step *t, pid_t tid)
{
	for (unsigned i = 0; i < t->ntasks; i++)
		if (t->task[i].tid == tid)
			return &t->task[i];
	return NULL;
}

static struct task *
task_add(struct step *t, pid_t tid)
{
	struct task *k = task_of(t, tid);
	if (k || t->ntasks == TASKS_MAX)
		return k;
	k = &t->task[t->ntasks++];
	*k = (struct task){ .tid = tid };
	k->skip = calloc(PMU_FRAMES, sizeof *k->skip);
	if (!k->skip || session_block(&t->s, t->nblocks, &k->view)) {
		t->s.head->no_block++;
		free(k->skip);
		k->skip = NULL; /* runs on, without being counted */
		return k;
	}
	pmu_view_begin(&k->view);
	t->s.head->nblocks = ++t->nblocks;
	return k;
}

static void
task_remove(struct step *t, struct task *k)
{
	free(k->skip);
	*k = t->task[--t->ntasks];
}

static void
resume(struct step *t, struct task *k, int sig)
{
	enum __ptrace_request how =
	    k->stepping && !t->over ? PTRACE_SINGLESTEP : PTRACE_CONT;
	k->stopped = false;
	k->delivered = sig && k->stepping;
	ptrace(how, k->tid, NULL, (void *)(long)sig);
}

static bool
is_interruption(int st)
{
	return WIFSTOPPED(st) && st >> 16 == PTRACE_EVENT_STOP &&
	       WSTOPSIG(st) == SIGTRAP;
}

/* Stops the other threads; what they report meanwhile is kept for later. */
static void
stop_others(struct step *t, const struct task *me)
{
	for (unsigned i = 0; i < t->ntasks; i++) {
		struct task *k = &t->task[i];
		if (k == me || k->stopped)
			continue;
		if (ptrace(PTRACE_INTERRUPT, k->tid, NULL, NULL))
			continue;
		int st;
		if (waitpid(k->tid, &st, __WALL) != k->tid)
			continue;
		k->stopped = true;
		k->has_pending = !is_interruption(st);
		k->pending = st;
	}
}

static void
resume_others(struct step *t, const struct task *me)
{
	for (unsigned i = 0; i < t->ntasks; i++) {
		struct task *k = &t->task[i];
		if (k != me && k->stopped && !k->has_pending)
			resume(t, k, 0);
	}
}

/*
 * The thread stands on a breakpoint: take it out of the way. With one thread
 * it stays out while we step and see every instruction anyway.
 */
static void
step_past(struct step *t, struct task *k, struct brk *b)
{
	if (t->ntasks == 1) {
		brk_lift(t, b);
		t->lifted[t->nlifted++ % BREAKS] = (uint32_t)(b - t->brk);
		return;
	}
	int st;
	stop_others(t, k);
	brk_lift(t, b);
	/* An interruption from an earlier stop_others() may come first. */
	do {
		ptrace(PTRACE_SINGLESTEP, k->tid, NULL, NULL);
		if (waitpid(k->tid, &st, __WALL) != k->tid)
			break;
		k->has_pending = true;
		k->pending = st;
	} while (is_interruption(st));
	brk_put(t, b->addr);
	resume_others(t, k);
}

static void
put_back(struct step *t)
{
	size_t n = t->nlifted < BREAKS ? t->nlifted : BREAKS;
	for (size_t i = 0; i < n; i++) {
		struct brk *b = &t->brk[t->lifted[i]];
		if (b->func || b->returns)
			brk_put(t, b->addr);
	}
	t->nlifted = 0;
}

/* ---- calls --------------------------------------------------------------- */

static double
since(const struct timespec *a)
{
	struct timespec b;
	clock_gettime(CLOCK_MONOTONIC, &b);
	return (double)(b.tv_sec - a->tv_sec) +
	       (double)(b.tv_nsec - a->tv_nsec) / 1e9;
}

static void
set_stepping(struct step *t, struct task *k, bool on)
{
	if (k->stepping == on)
		return;
	k->stepping = on;
	if (on)
		clock_gettime(CLOCK_MONOTONIC, &t->begun);
	else
		t->seconds += since(&t->begun);
	if (!on && t->ntasks == 1)
		put_back(t);
}

static struct pmu_frame *
top(const struct task *k)
{
	return k->skip && pmu_is_open(&k->view) ? k->view.top : NULL;
}

/* A counted function begins: its return address lies at sp. */
static void
enter(struct step *t, struct task *k, uint32_t func, uint64_t sp)
{
	uint64_t ret = 0;
	if (!k->skip || !peek(t, sp, &ret, sizeof ret))
		return;
	struct pmu_frame *up = top(k);
	bool tail = up && up->slot == sp && up->ret == ret;
	for (uint32_t n = pmu_dead(&k->view, sp, true, tail); n; n--) {
		pmu_drop(&k->view, &k->steps);
		k->view.block->unwound++;
	}
	struct pmu_frame *f = pmu_push(&k->view, func, sp, ret);
	if (!f)
		return;
	f->flags |= tail ? PMU_F_TAIL : 0;
	k->skip[k->view.top - k->view.frame] = (struct skip){ 0, 0 };
	f->start[0] = k->steps;
}

/* Calls that ended with the instruction just executed. */
static void
leave(struct task *k, uint64_t pc, uint64_t sp)
{
	struct pmu_frame *f;
	while ((f = top(k)) && sp > f->slot) {
		/* ret, or ret n: just behind the slot, at the address. */
		if (pc == f->ret && sp - f->slot < 4096) {
			pmu_pop(&k->view, &k->steps);
			continue;
		}
		pmu_drop(&k->view, &k->steps);
		k->view.block->unwound++;
	}
}

/* --skip-callees: the thread has just entered an uncounted callee. */
static bool
skip_callee(struct step *t, struct task *k, uint64_t sp)
{
	uint64_t ret;
	struct pmu_frame *f = top(k);
	if (!f || !peek(t, sp, &ret, sizeof ret))
		return false;
	struct brk *b = brk_put(t, ret);
	if (!b || !b->in)
		return false;
	b->returns++;
	k->skip[k->view.top - k->view.frame] = (struct skip){ ret, sp + 8 };
	return true;
}

/* A breakpoint or a step has brought the thread to pc. */
static void
arrive(struct step *t, struct task *k, uint64_t pc, uint64_t sp)
{
	struct brk *b = brk_at(t, pc);
	struct pmu_frame *f = top(k);
	if (b->addr && b->returns && f) {
		struct skip *s = &k->skip[k->view.top - k->view.frame];
		if (s->addr == pc && s->sp == sp) {
			*s = (struct skip){ 0, 0 };
			b->returns--;
		}
	}
	bool counted = b->addr && b->func;
	if (counted)
		enter(t, k, b->func - 1, sp);
	else if (t->set->skip_callees && k->was_call)
		skip_callee(t, k, sp);
	k->was_call = false;
	f = top(k);
	set_stepping(t, k, f && !k->skip[k->view.top - k->view.frame].addr);
	if (k->stepping) {
		char bytes[16];
		struct str code = code_at(t, pc, bytes, sizeof bytes);
		k->pc = pc;
		k->was_call = insn_is_call(code);
		k->was_rep = insn_is_rep(code);
	}
	if (b->addr && b->in)
		step_past(t, k, b);
}

static void
count_step(struct step *t, struct task *k, const struct user_regs_struct *r)
{
	bool again = k->was_rep && r->rip == k->pc;
	bool handler = k->delivered;
	if (!again && !handler) {
		k->steps++;
		t->total++;
	}
	leave(k, r->rip, r->rsp);
}

static void
give_up(struct step *t)
{
	t->over = true;
	for (unsigned i = 0; i < t->ntasks; i++) {
		struct task *k = &t->task[i];
		while (top(k)) {
			top(k)->flags |= PMU_F_CUT;
			pmu_drop(&k->view, &k->steps);
		}
		set_stepping(t, k, false);
	}
	brk_all(t, false);
	memset(t->brk, 0, BREAKS * sizeof *t->brk);
}

/* ---- events -------------------------------------------------------------- */

static void
on_entry(
    struct step *t, struct task *k, struct user_regs_struct *r, struct err *e)
{
	struct brk *b = brk_at(t, t->entry);
	brk_lift(t, b);
	b->addr = 0;
	t->entry = 0;
	r->rip--;
	ptrace(PTRACE_SETREGS, k->tid, NULL, r);
	add_objects(t, k->tid, e);
}

/* SIGTRAP: a step done, a breakpoint, or the target's own business. */
static void
on_trap(struct step *t, struct task *k, struct err *e)
{
	struct user_regs_struct r;
	siginfo_t si = { 0 };
	ptrace(PTRACE_GETREGS, k->tid, NULL, &r);
	ptrace(PTRACE_GETSIGINFO, k->tid, NULL, &si);
	struct brk *b = brk_at(t, r.rip - 1);
	bool hit = si.si_code == SI_KERNEL && b->addr;
	if (hit && t->entry && r.rip - 1 == t->entry) {
		on_entry(t, k, &r, e);
		resume(t, k, 0);
		return;
	}
	if (!hit && si.si_code != TRAP_TRACE && si.si_code != TRAP_BRKPT) {
		resume(t, k, si.si_code == SI_KERNEL && t->over ? 0 : SIGTRAP);
		return;
	}
	if (hit) {
		r.rip--;
		ptrace(PTRACE_SETREGS, k->tid, NULL, &r);
	} else if (k->stepping) {
		count_step(t, k, &r);
	}
	if (t->total >= t->set->max_steps && !t->over)
		give_up(t);
	if (!t->over && (hit || k->stepping))
		arrive(t, k, r.rip, r.rsp);
	if (!k->has_pending)
		resume(t, k, 0);
}

static void
on_exec(struct step *t, struct task *k, struct err *e)
{
	memset(t->brk, 0, BREAKS * sizeof *t->brk);
	t->nlifted = 0;
	pid_t tid = k->tid;
	while (t->ntasks > 1)
		task_remove(t, t->task[0].tid == tid ? &t->task[1] : t->task);
	k = t->task;
	while (top(k)) {
		pmu_drop(&k->view, &k->steps);
		k->view.block->unwound++;
	}
	k->stepping = false;
	char name[64];
	snprintf(name, sizeof name, "/proc/%ld/mem", (long)tid);
	if (t->mem >= 0)
		close(t->mem);
	t->mem = open(name, O_RDWR | O_CLOEXEC);
	t->entry = t->over ? 0 : maps_entry(tid);
	if (t->mem < 0 || (t->entry && !brk_put(t, t->entry)))
		err_sys(e, "cannot write to the process");
	if (t->entry)
		brk_at(t, t->entry)->returns = 1;
	resume(t, k, 0);
}

/* A fork: the child is let go, without our breakpoints. */
static void
on_fork(struct step *t, struct task *k, bool vfork)
{
	unsigned long child = 0;
	int st;
	ptrace(PTRACE_GETEVENTMSG, k->tid, NULL, &child);
	t->forks++;
	if (waitpid((pid_t)child, &st, __WALL) == (pid_t)child) {
		int mem = t->mem;
		char name[64];
		snprintf(name, sizeof name, "/proc/%lu/mem", child);
		if (!vfork)
			t->mem = open(name, O_RDWR | O_CLOEXEC);
		/* Out of the child's copy; or, for vfork, out of the memory
		 * that both use until the child executes something. */
		for (size_t i = 0; i < BREAKS && t->mem >= 0; i++)
			if (t->brk[i].addr && t->brk[i].in)
				poke(t, t->brk[i].addr, t->brk[i].was);
		if (!vfork && t->mem >= 0)
			close(t->mem);
		t->mem = mem;
		ptrace(PTRACE_DETACH, (pid_t)child, NULL, NULL);
	}
	resume(t, k, 0);
}

static void
on_vfork_done(struct step *t, struct task *k)
{
	for (size_t i = 0; i < BREAKS; i++)
		if (t->brk[i].addr && t->brk[i].in)
			poke(t, t->brk[i].addr, INT3);
	resume(t, k, 0);
}

static void
on_stop(struct step *t, struct task *k, int st, struct err *e)
{
	int sig = WSTOPSIG(st), event = st >> 16;
	k->stopped = true;
	switch (event) {
	case PTRACE_EVENT_EXEC:
		on_exec(t, k, e);
		return;
	case PTRACE_EVENT_CLONE: {
		unsigned long tid = 0;
		ptrace(PTRACE_GETEVENTMSG, k->tid, NULL, &tid);
		pid_t parent = k->tid;
		task_add(t, (pid_t)tid);
		k = task_of(t, parent);
		resume(t, k, 0);
		return;
	}
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
		on_fork(t, k, event == PTRACE_EVENT_VFORK);
		return;
	case PTRACE_EVENT_VFORK_DONE:
		on_vfork_done(t, k);
		return;
	case PTRACE_EVENT_STOP:
		if (sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN ||
		    sig == SIGTTOU) {
			k->stopped = false;
			ptrace(PTRACE_LISTEN, k->tid, NULL, NULL);
			return;
		}
		resume(t, k, 0);
		return;
	}
	if (sig == SIGTRAP)
		on_trap(t, k, e);
	else
		resume(t, k, sig);
}

/* The next thing that happened: a thread and its wait status. */
static pid_t
next(struct step *t, int *st)
{
	for (unsigned i = 0; i < t->ntasks; i++)
		if (t->task[i].has_pending) {
			t->task[i].has_pending = false;
			*st = t->task[i].pending;
			return t->task[i].tid;
		}
	pid_t tid;
	do
		tid = waitpid(-1, st, __WALL);
	while (tid < 0 && errno == EINTR);
	return tid;
}

static void
loop(struct step *t, struct err *e)
{
	int st;
	pid_t tid;
	while ((tid = next(t, &st)) > 0) {
		struct task *k = task_of(t, tid);
		if (WIFSTOPPED(st)) {
			k = k ? k : task_add(t, tid);
			if (k)
				on_stop(t, k, st, e);
			else
				ptrace(PTRACE_DETACH, tid, NULL, NULL);
			continue;
		}
		if (k) {
			set_stepping(t, k, false);
			task_remove(t, k);
		}
		if (tid == t->leader) {
			t->status = st;
			return;
		}
	}
}

/* ---- the backend --------------------------------------------------------- */

static void
describe(struct step *t)
{
	struct result *r = t->r;
	for (uint32_t i = 0; i < t->s.nobjects; i++) {
		if (i && !t->s.asked[i])
			continue;
		struct coverage *c = result_coverage(r);
		if (!c)
			return;
		c->object = arena_str(&r->arena, str_c(t->s.object[i]->path));
		c->functions = t->s.object[i]->nfuncs;
		c->asked = c->on = t->s.asked[i];
		if (t->s.object[i]->from_dynsym)
			c->note = STR_LIT("stripped: exported functions only");
	}
	if (t->seconds > 0)
		result_caveat(r, "step-rate",
		    (uint64_t)((double)t->total / t->seconds),
		    "instructions stepped a second; %llu in all",
		    (unsigned long long)t->total);
	if (t->over)
		result_caveat(r, "max-steps", t->total,
		    "the limit of --max-steps was reached: later calls are "
		    "not counted");
	if (t->forks)
		result_caveat(r, "fork", t->forks,
		    "child processes ran at full speed, uncounted");
	if (t->missed)
		result_caveat(r, "refused", t->missed,
		    "functions whose code could not be written to");
	for (size_t i = 0; t->set->skip_callees && i < r->nentries; i++)
		r->entry[i].v[0].incl_known = false;
}

static int
start(struct step *t, struct launch *l, struct err *e)
{
	int r = launch_start(l, e);
	if (r)
		return r;
	t->leader = l->pid;
	launch_ignore_keys();
	if (ptrace(PTRACE_SEIZE, l->pid, NULL, (void *)(long)OPTIONS)) {
		err_sys(e, "cannot trace the command (CAP_SYS_PTRACE, or a "
			   "seccomp filter in a container)");
		close(l->go);
		kill(l->pid, SIGKILL);
		waitpid(l->pid, NULL, 0);
		return SE_EIO;
	}
	task_add(t, l->pid);
	/* The exec stops the child before the pipe can tell of a failure. */
	close(l->go);
	return 0;
}

static int
run(struct step *t, struct err *e)
{
	struct launch l = { .command = t->set->command,
		.program = t->program,
		.as_root = t->set->as_root,
		.quiet = t->set->quiet_command,
		.wait = true };
	struct err inner = { 0 };
	int r = start(t, &l, e);
	if (r)
		return r;
	loop(t, &inner);
	int why = 0;
	if (read(l.failed, &why, sizeof why) == (ssize_t)sizeof why && why) {
		errno = why;
		r = err_sys(e, "cannot execute");
	}
	close(l.failed);
	if (!r && inner.code)
		r = err_set(e, inner.code, "%s", inner.msg);
	return r;
}

static int
step_count(const struct settings *s, const char *program, struct result *r,
    struct err *e)
{
	static const struct event_set only = { .event = { { "instructions",
						   PMU_GIVEN, 0, 0, true,
						   "events" } },
		.n = 1 };
	struct step *t = cli_alloc(1, sizeof *t);
	*t = (struct step){ .set = s, .r = r, .program = program, .mem = -1 };
	t->brk = cli_alloc(BREAKS, sizeof *t->brk);
	t->lifted = cli_alloc(BREAKS, sizeof *t->lifted);
	int x = session_open(&t->s, &only, e);
	if (!x) {
		t->s.head->calib.how[0] = PMU_GIVEN;
		t->s.head->calib.trusted[0] = 1;
		x = run(t, e);
	}
	if (!x)
		x = session_result(&t->s, r, e);
	if (!x)
		describe(t);
	r->status = t->status;
	r->has_status = !x;
	for (unsigned i = 0; i < t->ntasks; i++)
		free(t->task[i].skip);
	session_close(&t->s);
	if (t->mem >= 0)
		close(t->mem);
	free(t->brk);
	free(t->lifted);
	free(t);
	return x;
}

static int
step_usable(const struct settings *s, const char *program, struct object *o,
    struct err *e)
{
	for (unsigned i = 0; i < s->events.n; i++)
		if (strcmp(s->events.event[i].name, "instructions"))
			return err_set(e, SE_EUNSUP,
			    "counts instructions only, not %s",
			    s->events.event[i].name);
	if (s->gate_n)
		return err_set(e, SE_EUNSUP, "has no --gate");
	if (s->attach)
		return err_set(e, SE_EUNSUP, "does not attach");
	if (!o)
		return 0;
	if (o->go)
		return err_set(e, SE_EUNSUP,
		    "built by Go: its stacks move while functions run");
	if (!o->nfuncs && !s->npatterns)
		return err_set(e, SE_EUNSUP, "no symbols: nothing to name");
	return 0;
}

#else

static int
step_usable(const struct settings *s, const char *program, struct object *o,
    struct err *e)
{
	return err_set(e, SE_EUNSUP, "only on x86-64");
}

static int
step_count(const struct settings *s, const char *program, struct result *r,
    struct err *e)
{
	return err_set(e, SE_EUNSUP, "only on x86-64");
}

#endif

const struct backend backend_step = {
	.name = "step",
	.what = "exact instruction counts by single-stepping; slow",
	.usable = step_usable,
	.count = step_count,
};
