/*
 * Finding the target's objects, asking pmucount which of their sleds are
 * wanted, and turning those into jumps.
 */
#include "rt.h"

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
enum {
	THUNK = 32, /* bytes of one */
	TRAP_SIZE = 1,
	JUMP_SIZE = 5,
};
/* A jump reaches 2 GiB; what is searched leaves room for the object. */
static const uint64_t reach = UINT64_C(0x70000000);
#else
enum { THUNK = 32, TRAP_SIZE = 4, JUMP_SIZE = 4 };
static const uint64_t reach = UINT64_C(0x7000000); /* b: 128 MiB */
#endif

enum { STEP = 1 << 20 }; /* between addresses tried for the thunks */

/* Objects by their base address: which have been asked about. */
static struct {
	uint64_t base[PMU_OBJECTS];
	unsigned n;
	unsigned long long adds; /* dlpi_adds when we last looked */
	volatile int lock;
} objects;

/* Functions with compiler hooks, by address. Open addressing. */
static struct hook {
	uint64_t addr;
	uint32_t func; /* number + 1 */
} * hooks;
static uint64_t nhooks;

uint32_t
pmu_hook_find(uint64_t addr)
{
	if (!hooks)
		return 0;
	uint64_t h = addr * UINT64_C(0x9e3779b97f4a7c15) >> 40;
	for (;; h++) {
		const struct hook *k = &hooks[h & (nhooks - 1)];
		if (k->addr == addr)
			return k->func;
		if (!k->addr)
			return 0;
	}
}

static void
hook_add(uint64_t addr, uint32_t func)
{
	if (!hooks) {
		nhooks = 2 * PMU_FUNCS;
		void *p =
		    mmap(NULL, nhooks * sizeof *hooks, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED)
			return;
		hooks = p;
	}
	uint64_t h = addr * UINT64_C(0x9e3779b97f4a7c15) >> 40;
	while (hooks[h & (nhooks - 1)].addr)
		h++;
	hooks[h & (nhooks - 1)] = (struct hook){ addr, func + 1 };
}

/* ---- thunks ---------------------------------------------------------------
 */

/* Memory within a jump's reach of the code at `near`. */
static void *
map_near(uint64_t near, size_t size)
{
	for (uint64_t d = 0; d < reach; d += STEP)
		for (int up = 1; up >= 0; up--) {
			uint64_t at =
			    (up ? near + d : near - d) & ~(uint64_t)(STEP - 1);
			if (up ? at < near : d > near)
				continue;
			void *p = mmap((void *)(uintptr_t)at, size,
			    PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			    -1, 0);
			if (p == (void *)(uintptr_t)at)
				return p;
			if (p != MAP_FAILED)
				munmap(p, size); /* kernels before 4.17 */
		}
	return NULL;
}

static void
thunk_write(unsigned char *p, const struct spot *s)
{
	uint64_t site = (uint64_t)(uintptr_t)s;
	uint64_t common = (uint64_t)(uintptr_t)pmu_common;
#ifdef __x86_64__
	/* push %r11; movabs $site, %r11; jmp *0(%rip); .quad common */
	static const unsigned char code[] = { 0x41, 0x53, 0x49, 0xbb, 0, 0, 0,
		0, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0 };
	memcpy(p, code, sizeof code);
	memcpy(p + 4, &site, 8);
	memcpy(p + 18, &common, 8);
#else
	/* ldr x16, [pc, #16]; ldr x17, [pc, #20]; br x17; nop; two words */
	static const uint32_t code[] = { 0x58000090, 0x580000b1, 0xd61f0220,
		0xd503201f };
	memcpy(p, code, sizeof code);
	memcpy(p + 16, &site, 8);
	memcpy(p + 24, &common, 8);
#endif
}

/* ---- sites ----------------------------------------------------------------
 */

static bool
bytes_are_sled(const struct spot *s)
{
	const unsigned char *p = (const unsigned char *)(uintptr_t)s->addr;
	switch (s->kind) {
	case PMU_NOPS:
		return !memcmp(p, "\x90\x90\x90\x90\x90", 5);
	case PMU_NOP5:
		return !memcmp(p, "\x0f\x1f\x44\x00", 4);
	case PMU_XRAY:
		return !memcmp(p, "\xeb\x09", 2);
	case PMU_A64:
		return !memcmp(p, "\x1f\x20\x03\xd5", 4);
	}
	return false;
}

static void
sync_cores(void)
{
	enum { SYNC_CORE = 1 << 5, REGISTER_SYNC_CORE = 1 << 6 };
	syscall(SYS_membarrier, REGISTER_SYNC_CORE, 0, 0);
	syscall(SYS_membarrier, SYNC_CORE, 0, 0);
}

/*
 * Other threads may run through the site: the kernel's own protocol. First a
 * trap in the first byte, then the tail, then the first byte. Whoever hits the
 * trap meanwhile goes on behind the sled: that call is not counted.
 */
static struct sigaction trap_was;

#ifdef __x86_64__

static const struct spot *trapped;

static void
on_trap(int sig, siginfo_t *si, void *context)
{
	ucontext_t *u = context;
	greg_t *pc = &u->uc_mcontext.gregs[REG_RIP];
	const struct spot *s = trapped;
	if (s && (uint64_t)*pc == s->addr + TRAP_SIZE) {
		*pc = (greg_t)s->body;
		__atomic_fetch_add(&pmu_rt.head->traps, 1, __ATOMIC_RELAXED);
		return;
	}
	if (trap_was.sa_flags & SA_SIGINFO && trap_was.sa_sigaction)
		trap_was.sa_sigaction(sig, si, context);
	else if (trap_was.sa_handler == SIG_DFL)
		signal(SIGTRAP, SIG_DFL); /* and dies as it would have */
	else if (trap_was.sa_handler != SIG_IGN)
		trap_was.sa_handler(sig);
}

static void
site_write(const struct spot *s, const unsigned char *jump, bool alone)
{
	volatile unsigned char *p =
	    (volatile unsigned char *)(uintptr_t)s->addr;
	if (alone) {
		for (int i = 0; i < JUMP_SIZE; i++)
			p[i] = jump[i];
		return;
	}
	trapped = s;
	p[0] = 0xcc;
	sync_cores();
	for (int i = 1; i < JUMP_SIZE; i++)
		p[i] = jump[i];
	sync_cores();
	p[0] = jump[0];
	sync_cores();
	trapped = NULL;
}

static void
jump_to(unsigned char *to, uint64_t from, const unsigned char *target)
{
	int32_t rel =
	    (int32_t)((int64_t)(uintptr_t)target - (int64_t)(from + JUMP_SIZE));
	to[0] = 0xe9;
	memcpy(to + 1, &rel, 4);
}

#else

/* A NOP and a branch may replace each other while others execute them. */
static void
site_write(const struct spot *s, const unsigned char *jump, bool alone)
{
	uint32_t word;
	memcpy(&word, jump, 4);
	__atomic_store_n(
	    (uint32_t *)(uintptr_t)s->addr, word, __ATOMIC_RELEASE);
	__builtin___clear_cache(
	    (char *)(uintptr_t)s->addr, (char *)(uintptr_t)s->addr + 4);
	if (!alone)
		sync_cores();
}

static void
on_trap(int sig, siginfo_t *si, void *context)
{
}

static void
jump_to(unsigned char *to, uint64_t from, const unsigned char *target)
{
	int64_t rel = (int64_t)(uintptr_t)target - (int64_t)from;
	uint32_t word = 0x14000000u | ((uint32_t)(rel >> 2) & 0x3ffffffu);
	memcpy(to, &word, 4);
}

#endif

static int
code_protect(uint64_t from, uint64_t to, int prot)
{
	uint64_t page = (uint64_t)getpagesize();
	from &= ~(page - 1);
	to = (to + page - 1) & ~(page - 1);
	return mprotect((void *)(uintptr_t)from, to - from, prot);
}

/*
 * Five NOPs become one. Not while others run: a thread may stand between the
 * five.
 */
static void
site_idle(const struct spot *s, bool alone)
{
	static const unsigned char nop5[] = { 0x0f, 0x1f, 0x44, 0, 0 };
	if (alone && s->kind == PMU_NOPS && bytes_are_sled(s))
		site_write(s, nop5, true);
}

/* Bytes of the function behind the whole sled. */
static uint64_t
sled_size(uint32_t kind)
{
	return kind == PMU_XRAY ? 11 : kind == PMU_A64 ? 4 : 5;
}

/* The functions first .. first + n of one object, which lies at base. */
static void
patch_all(uint64_t base, uint32_t first, uint32_t n, bool alone)
{
	size_t thunks = (size_t)n * THUNK;
	size_t size = thunks + (size_t)n * sizeof(struct spot);
	uint64_t lo = UINT64_MAX, hi = 0;
	for (uint32_t i = first; i < first + n; i++) {
		uint64_t at = base + pmu_rt.func[i].vaddr;
		lo = at < lo ? at : lo;
		hi = at > hi ? at : hi;
	}
	unsigned char *mem = map_near(hi, size);
	struct spot *site = (struct spot *)(mem + thunks);
	bool open = mem && !code_protect(
			       lo, hi + 16, PROT_READ | PROT_WRITE | PROT_EXEC);
	if (!open)
		pmu_rt.head->denied = mem ? (uint64_t)errno : ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		struct pmu_func *f = &pmu_rt.func[first + i];
		if (!open) {
			if (f->state != PMU_IDLE)
				f->state = mem ? PMU_DENIED : PMU_FAR;
			continue;
		}
		site[i] = (struct spot){ .addr = base + f->vaddr,
			.func = first + i,
			.kind = f->kind };
		site[i].body = site[i].addr + sled_size(f->kind);
		if (f->state == PMU_IDLE)
			continue;
		if (!bytes_are_sled(&site[i])) {
			f->state = PMU_REFUSED;
			continue;
		}
		thunk_write(mem + (size_t)i * THUNK, &site[i]);
		f->state = PMU_ON;
	}
	if (!open)
		return;
	__builtin___clear_cache((char *)mem, (char *)mem + thunks);
	/* Sites follow the thunks on the same pages: readable is enough. */
	mprotect(mem, size, PROT_READ | PROT_EXEC);
	for (uint32_t i = 0; i < n; i++) {
		unsigned char jump[JUMP_SIZE];
		if (pmu_rt.func[first + i].state == PMU_IDLE)
			site_idle(&site[i], alone);
		if (pmu_rt.func[first + i].state != PMU_ON)
			continue;
		jump_to(jump, site[i].addr, mem + (size_t)i * THUNK);
		site_write(&site[i], jump, alone);
	}
	code_protect(lo, hi + 16, PROT_READ | PROT_EXEC);
	if (alone)
		__builtin___clear_cache(
		    (char *)(uintptr_t)lo, (char *)(uintptr_t)hi + 16);
}

/* ---- objects --------------------------------------------------------------
 */

/* Our question, with one end of a pair for the answer. */
static bool
send_ask(const struct pmu_ask *ask, int end)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	memset(&control, 0, sizeof control);
	struct iovec v = { (void *)(uintptr_t)ask, sizeof *ask };
	struct msghdr m = { .msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control.space };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &end, sizeof end);
	return sendmsg(pmu_rt.sock, &m, MSG_NOSIGNAL) == (ssize_t)sizeof *ask;
}

static bool
ask_for(const char *path, uint64_t base, struct pmu_answer *a)
{
	struct pmu_ask ask = { .base = base };
	int pair[2];
	size_t n = strlen(path);
	if (n >= PMU_NAME ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return false;
	memcpy(ask.path, path, n + 1);
	bool ok = send_ask(&ask, pair[1]);
	close(pair[1]); /* so that pmucount's death ends the wait */
	ssize_t got = 0;
	if (ok)
		do
			got = recv(pair[0], a, sizeof *a, 0);
		while (got < 0 && errno == EINTR);
	close(pair[0]);
	return got == (ssize_t)sizeof *a && a->first <= PMU_FUNCS &&
	       a->n <= PMU_FUNCS - a->first;
}

static bool
is_new(uint64_t base)
{
	for (unsigned i = 0; i < objects.n; i++)
		if (objects.base[i] == base)
			return false;
	if (objects.n == PMU_OBJECTS) {
		pmu_rt.head->unseen++;
		return false;
	}
	objects.base[objects.n++] = base;
	return true;
}

static void
take_in(const char *path, uint64_t base, bool alone)
{
	struct pmu_answer a;
	if (!ask_for(path, base, &a)) {
		pmu_rt.head->unseen++;
		return;
	}
	uint32_t hooked = 0;
	for (uint32_t i = a.first; i < a.first + a.n; i++)
		if (pmu_rt.func[i].kind == PMU_HOOK) {
			hook_add(base + pmu_rt.func[i].vaddr, i);
			pmu_rt.func[i].state = PMU_ON;
			hooked++;
		}
	/* An object has hooks or sleds, not both. */
	if (a.n && !hooked)
		patch_all(base, a.first, a.n, alone);
}

struct found {
	struct {
		char path[PMU_NAME];
		uint64_t base;
	} list[PMU_OBJECTS];
	unsigned n;
};

static int
collect(struct dl_phdr_info *info, size_t size, void *user)
{
	struct found *f = user;
	const char *path = info->dlpi_name;
	char self[PMU_NAME];
	objects.adds = info->dlpi_adds;
	if (!*path && !objects.n && !f->n) {
		ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
		self[n > 0 ? n : 0] = 0;
		path = self;
	}
	/* No path: the vDSO. Ours: no. */
	bool ours = strstr(path, "libpmucount.so") != NULL;
	if (!strchr(path, '/') || ours || f->n == PMU_OBJECTS ||
	    !is_new(info->dlpi_addr))
		return 0;
	if (strlen(path) >= PMU_NAME) {
		pmu_rt.head->unseen++;
		return 0;
	}
	memcpy(f->list[f->n].path, path, strlen(path) + 1);
	f->list[f->n++].base = info->dlpi_addr;
	return 0;
}

static int
count_adds(struct dl_phdr_info *info, size_t size, void *user)
{
	*(unsigned long long *)user = info->dlpi_adds;
	return 1;
}

/* Looks for objects that came since the last time. */
void
pmu_objects_look(void)
{
	unsigned long long adds = 0;
	dl_iterate_phdr(count_adds, &adds);
	if (adds == objects.adds ||
	    __atomic_exchange_n(&objects.lock, 1, __ATOMIC_ACQUIRE))
		return;
	struct found *f = mmap(NULL, sizeof *f, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (f != MAP_FAILED) {
		bool alone = pmu_rt.head->threads <= 1;
		struct sigaction a = { .sa_sigaction = on_trap,
			.sa_flags = SA_SIGINFO };
		sigfillset(&a.sa_mask);
		dl_iterate_phdr(collect, f);
		if (!alone)
			sigaction(SIGTRAP, &a, &trap_was);
		for (unsigned i = 0; i < f->n; i++)
			take_in(f->list[i].path, f->list[i].base, alone);
		if (!alone)
			sigaction(SIGTRAP, &trap_was, NULL);
		munmap(f, sizeof *f);
	}
	__atomic_store_n(&objects.lock, 0, __ATOMIC_RELEASE);
}

/* At the end: what came and nobody asked about. */
void
pmu_objects_unseen(void)
{
	unsigned long long adds = 0;
	dl_iterate_phdr(count_adds, &adds);
	if (adds > objects.adds)
		pmu_rt.head->unseen += adds - objects.adds;
}
