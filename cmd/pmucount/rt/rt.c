/*
 * libpmucount.so, preloaded into the target: beginning and end of the process,
 * threads, forks, and the library calls that must pass through us.
 */
#include "rt.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;
void pmu_cal_leaf_body(void) PMU_HIDDEN;
void pmu_cal_calls_body(void) PMU_HIDDEN;
struct spot pmu_cal_site[2];
_Static_assert(sizeof(struct spot) == 24, "see thunk in stub_*.S");

static pthread_key_t at_end; /* its destructor ends a thread's counting */
static volatile int thread_lock;

/* The C library's, found once. */
static struct {
	int (*create)(
	    pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
} libc;

/* ---- threads --------------------------------------------------------------
 */

static void
lock(void)
{
	while (__atomic_exchange_n(&thread_lock, 1, __ATOMIC_ACQUIRE))
		syscall(SYS_sched_yield);
}

static void
unlock(void)
{
	__atomic_store_n(&thread_lock, 0, __ATOMIC_RELEASE);
}

/* A block of the shared memory that nobody uses, mapped. */
static struct pmu_block *
block_take(void)
{
	uint32_t i =
	    __atomic_fetch_add(&pmu_rt.head->nblocks, 1, __ATOMIC_ACQ_REL);
	if (i >= PMU_THREADS)
		return NULL;
	void *p = mmap(NULL, PMU_BLOCK, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_NORESERVE, pmu_rt.fd,
	    (off_t)(PMU_AT_BLOCKS + (uint64_t)i * PMU_BLOCK));
	return p == MAP_FAILED ? NULL : p;
}

/* An ended thread's place, else a new one; NULL if there is none. */
static struct thread *
thread_take(void)
{
	struct thread *t;
	lock();
	for (t = pmu_threads; t; t = t->next)
		if (!t->in_use)
			break;
	if (t)
		t->in_use = 1;
	unlock();
	if (t)
		return t;
	struct pmu_block *b = block_take();
	t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!b || t == MAP_FAILED)
		return NULL;
	t->in_use = 1;
	t->view = pmu_view_of(b, pmu_rt.head->ncounters);
	t->view.spans = pmu_rt.head->spans;
	t->only_tsc =
	    pmu_rt.only_tsc && !pmu_rt.serialize && !pmu_rt.head->gate_n;
	t->block = b;
	t->frames = t->view.frame;
	lock();
	t->next = pmu_threads;
	__atomic_store_n(&pmu_threads, t, __ATOMIC_RELEASE);
	unlock();
	return t;
}

static void *
rseq_area(void)
{
	/* glibc 2.35 and later registers it for each thread. */
	const ptrdiff_t *off = dlsym(RTLD_DEFAULT, "__rseq_offset");
	const unsigned *size = dlsym(RTLD_DEFAULT, "__rseq_size");
	if (!off || !size || !*size)
		return NULL;
	return (char *)__builtin_thread_pointer() + *off;
}

static bool
stack_bounds(struct thread *t)
{
	pthread_attr_t a;
	void *low;
	size_t size;
	if (pthread_getattr_np(pthread_self(), &a))
		return false;
	int r = pthread_attr_getstack(&a, &low, &size);
	pthread_attr_destroy(&a);
	t->lo = (uint64_t)(uintptr_t)low;
	t->hi = t->lo + size;
	return !r;
}

/* This thread counts from now on. */
static void
thread_start(void)
{
	struct thread *t = thread_take();
	if (!t || !stack_bounds(t)) {
		__atomic_fetch_add(&pmu_rt.head->no_block, 1, __ATOMIC_RELAXED);
		return;
	}
	t->room = 0; /* nothing is counted until all is there */
	t->exiting = 0;
	pmu_rseq_use(t, rseq_area());
	t->block->pid = (uint64_t)getpid();
	t->block->tid = (uint64_t)syscall(SYS_gettid);
	const struct pmu_calib *k = &pmu_rt.head->calib;
	for (unsigned c = 0; c < PMU_COUNTERS; c++) {
		t->view.self_cost[c] = k->self[c];
		t->view.child_cost[c] = k->child[c];
	}
	pmu_counters_open(t);
	pmu_view_begin(&t->view);
	pmu_self = t;
	pthread_setspecific(at_end, t);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->room = t->hi - t->lo;
}

static void
drop_open(struct thread *t)
{
	uint64_t now[PMU_COUNTERS];
	pmu_counters_read(t, now);
	while (pmu_is_open(&t->view)) {
		pmu_drop(&t->view, now);
		t->block->unwound++;
	}
}

/*
 * The end of a thread, as a destructor of its data. Other destructors may run
 * counted functions after us; those calls are not counted. (We come as late
 * as we can: in the last round.)
 */
static void
thread_end(void *arg)
{
	struct thread *t = arg;
	if (t->exiting < PTHREAD_DESTRUCTOR_ITERATIONS - 1) {
		t->exiting++;
		pthread_setspecific(at_end, t);
		if (t->exiting < PTHREAD_DESTRUCTOR_ITERATIONS - 1)
			return;
	}
	t->room = 0;
	drop_open(t);
	pmu_counters_close(t);
	pmu_self = NULL;
	t->lo = t->hi = 0;
	__atomic_store_n(&t->in_use, 0, __ATOMIC_RELEASE);
}

struct start {
	void *(*fn)(void *);
	void *arg;
};

static void *
thread_main(void *p)
{
	struct start s = *(struct start *)p;
	free(p);
	thread_start();
	return s.fn(s.arg);
}

PMU_PUBLIC int
pthread_create(
    pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	if (!libc.create) {
		void *p = dlsym(RTLD_NEXT, "pthread_create");
		memcpy(&libc.create, &p, sizeof p);
	}
	struct start *s = pmu_rt.on ? malloc(sizeof *s) : NULL;
	if (!s)
		return libc.create(id, attr, fn, arg);
	*s = (struct start){ fn, arg };
	__atomic_fetch_add(&pmu_rt.head->threads, 1, __ATOMIC_RELAXED);
	int r = libc.create(id, attr, thread_main, s);
	if (r) {
		__atomic_fetch_sub(&pmu_rt.head->threads, 1, __ATOMIC_RELAXED);
		free(s);
	}
	return r;
}

/* ---- fork -----------------------------------------------------------------
 */

/*
 * The child goes on in a block of its own. What was open at the fork returns
 * in both processes; it is the parent's call.
 */
static void
forked(void)
{
	struct thread *t = pmu_self;
	if (!t)
		return;
	t->room = 0;
	struct pmu_block *old = t->block, *b = block_take();
	struct pmu_view v = pmu_view_of(b, pmu_rt.head->ncounters);
	__atomic_fetch_add(&pmu_rt.head->forks, 1, __ATOMIC_RELAXED);
	thread_lock = 0;
	for (struct thread *o = pmu_threads; o; o = o->next)
		o->in_use = o == t; /* the other threads are not here */
	if (!b) {
		/* Return addresses must still be found: keep the parent's
		 * frames, privately, and count nothing more. */
		void *p = mmap(NULL, PMU_BLOCK, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED)
			_exit(125);
		v = pmu_view_of(p, pmu_rt.head->ncounters);
		pmu_rt.head->no_block++;
	}
	v.spans = t->view.spans;
	memcpy(v.self_cost, t->view.self_cost, sizeof v.self_cost);
	memcpy(v.child_cost, t->view.child_cost, sizeof v.child_cost);
	pmu_view_begin(&v);
	uint32_t depth = old->depth;
	for (uint32_t i = 1; i < depth; i++) {
		const struct pmu_frame *f = &t->frames[i];
		uint32_t func = t->view.node[f->node].func;
		struct pmu_frame *g = pmu_push(&v, func, f->slot, f->ret);
		if (g)
			g->flags |= PMU_F_INHERITED;
	}
	t->view = v;
	t->block = v.block;
	t->frames = v.frame;
	t->block->pid = (uint64_t)getpid();
	t->block->tid = (uint64_t)syscall(SYS_gettid);
	/* Counters are of the parent's thread: pages and values are its. */
	for (unsigned c = 0; c < pmu_rt.head->ncounters; c++)
		if (t->pmc[c].page)
			munmap(t->pmc[c].page, (size_t)getpagesize());
	pmu_counters_open(t);
	uint64_t now[PMU_COUNTERS];
	pmu_counters_read(t, now);
	for (uint32_t i = 0; i < t->block->depth; i++)
		for (unsigned c = 0; c < pmu_rt.head->ncounters; c++)
			t->frames[i].start[c] = t->frames[i].first[c] = now[c];
	t->room = t->hi - t->lo;
}

/* ---- libraries loaded later ------------------------------------------------
 */

/*
 * dlopen itself is left alone: it looks at its caller for RUNPATH. Whoever
 * loads a library asks for a symbol next, and that call comes through here
 * (stub below; the caller stays the caller).
 */
void *pmu_real_dlsym PMU_HIDDEN;
void pmu_before_dlsym(void) PMU_HIDDEN;

void
pmu_before_dlsym(void)
{
	if (!pmu_real_dlsym)
		pmu_real_dlsym = dlvsym(RTLD_NEXT, "dlsym",
#ifdef __x86_64__
		    "GLIBC_2.2.5"
#else
		    "GLIBC_2.17"
#endif
		);
	struct thread *t = pmu_self;
	if (!pmu_rt.on || !t || !t->room)
		return;
	int keep = errno;
	t->room = 0;
	pmu_objects_look();
	t->room = t->hi - t->lo;
	errno = keep;
}

#ifdef __x86_64__
__asm__(".globl dlsym\n"
	".type dlsym, @function\n"
	"dlsym:\n"
	"	push %rdi\n"
	"	push %rsi\n"
	"	sub $8, %rsp\n"
	"	call pmu_before_dlsym\n"
	"	add $8, %rsp\n"
	"	pop %rsi\n"
	"	pop %rdi\n"
	"	jmp *pmu_real_dlsym(%rip)\n"
	".size dlsym, .-dlsym\n");
#else
__asm__(".globl dlsym\n"
	".type dlsym, %function\n"
	"dlsym:\n"
	"	stp x29, x30, [sp, #-32]!\n"
	"	stp x0, x1, [sp, #16]\n"
	"	bl pmu_before_dlsym\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	adrp x16, pmu_real_dlsym\n"
	"	ldr x16, [x16, :lo12:pmu_real_dlsym]\n"
	"	br x16\n"
	".size dlsym, .-dlsym\n");
#endif

/* ---- the process -----------------------------------------------------------
 */

/* Takes our first entry off LD_PRELOAD and our variable away. */
static void
hide(void)
{
	const char *p = getenv("LD_PRELOAD");
	const char *rest = p ? strchr(p, ':') : NULL;
	if (rest && rest[1])
		setenv("LD_PRELOAD", rest + 1, 1);
	else
		unsetenv("LD_PRELOAD");
	unsetenv("PMUCOUNT_FDS");
}

static bool
map_shared(const char *fds)
{
	int fd, sock;
	if (sscanf(fds, "%d,%d", &fd, &sock) != 2)
		return false;
	struct pmu_head *h = mmap(
	    NULL, PMU_AT_BLOCKS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (h == MAP_FAILED || h->magic != PMU_MAGIC)
		return false;
	pmu_rt.head = h;
	pmu_rt.func = (struct pmu_func *)((char *)h + PMU_AT_FUNCS);
	/* Out of the way of the target's own numbers. */
	pmu_rt.fd = fcntl(fd, F_DUPFD_CLOEXEC, 700);
	pmu_rt.sock = fcntl(sock, F_DUPFD_CLOEXEC, 700);
	if (pmu_rt.fd < 0)
		pmu_rt.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (pmu_rt.sock < 0)
		pmu_rt.sock = fcntl(sock, F_DUPFD_CLOEXEC, 3);
	close(fd);
	close(sock);
	return pmu_rt.fd >= 0 && pmu_rt.sock >= 0;
}

static void
choose_reading(void)
{
	const struct pmu_head *h = pmu_rt.head;
	pmu_rt.serialize = h->serialize;
	pmu_rt.only_tsc = h->ncounters == 1 && h->event[0].source == PMU_TSC;
}

static void __attribute__((constructor(101))) begin(void)
{
	const char *fds = getenv("PMUCOUNT_FDS");
	int keep = errno;
	pmu_before_dlsym(); /* finds the real one */
	if (!fds || !map_shared(fds)) {
		hide();
		return;
	}
	hide();
	choose_reading();
	pmu_cal_site[0] =
	    (struct spot){ .body = (uint64_t)(uintptr_t)pmu_cal_leaf_body,
		    .func = 0 };
	pmu_cal_site[1] =
	    (struct spot){ .body = (uint64_t)(uintptr_t)pmu_cal_calls_body,
		    .func = 1 };
	__atomic_fetch_add(&pmu_rt.head->reported, 1, __ATOMIC_RELAXED);
	if (pthread_key_create(&at_end, thread_end))
		return;
	pthread_atfork(NULL, NULL, forked);
	pmu_rt.head->threads = 1;
	thread_start();
	if (!pmu_self)
		return;
	pmu_calibrate();
	pmu_rt.gated = pmu_rt.head->gate_n && pmu_rt.head->gate_ticks;
	pmu_rt.on = true;
	pmu_self->room = 0;
	pmu_objects_look();
	pmu_self->room = pmu_self->hi - pmu_self->lo;
	errno = keep;
}

static void __attribute__((destructor)) end(void)
{
	if (!pmu_rt.on)
		return;
	pmu_objects_unseen();
	pmu_rt.head->finished++;
}
