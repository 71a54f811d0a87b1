/*
 * Backend sled: programs built with places for instrumentation. A preloaded
 * runtime (rt/) turns the wanted ones into jumps and counts; this side answers
 * its questions and adds up.
 */
#define _GNU_SOURCE
#include "pmucount.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"
#include "rt/rt.h"

enum {
	PATH_BYTES = 4096,
	HZ_NS = 5000000, /* shortest time to measure the clock's rate in */
	TICK_MS = 20,    /* between looks at the child without pidfd */
};

/* ---- the runtime's file ----------------------------------------------------
 */

/* Beside the binary (not installed) or in the private directory. */
static char *
runtime_find_dup(void)
{
	static const char *const places[] = { "libpmucount.so",
		"../lib/straightedge/libpmucount.so",
		"../libexec/straightedge/libpmucount.so" };
	char self[PATH_BYTES];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (n <= 0)
		return NULL;
	self[n] = 0;
	char *slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
		slash[1] = 0;
		size_t size = strlen(self) + strlen(places[i]) + 1;
		char *p = cli_alloc(size, 1);
		snprintf(p, size, "%s%s", self, places[i]);
		if (!access(p, R_OK))
			return p;
		free(p);
	}
	return NULL;
}

/* ---- questions of the runtime ----------------------------------------------
 */

static int
add_functions(
    const struct settings *set, struct session *s, int object, struct err *e)
{
	const struct object *o = s->object[object];
	bool any = false;
	for (size_t i = 0; i < o->nsites; i++) {
		const struct site *k = &o->site[i];
		if (!is_wanted(set, &o->func[k->func]))
			continue;
		int r = session_func(s, (uint32_t)object, k->func, k, e);
		if (r < 0)
			return r;
		any = true;
	}
	for (size_t i = 0; i < o->nsites && any; i++)
		if (!is_wanted(set, &o->func[o->site[i].func]))
			session_idle(
			    s, (uint32_t)object, o->site[i].func, &o->site[i]);
	if (o->nsites || !o->hooks)
		return 0;
	for (size_t i = 0; i < o->nfuncs; i++) {
		const struct func *f = &o->func[i];
		struct site k = { .vaddr = f->vaddr, .kind = PMU_HOOK };
		if (f->alias_of || !is_wanted(set, f))
			continue;
		int r = session_func(s, (uint32_t)object, (uint32_t)i, &k, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static struct pmu_answer
answer_to(const struct settings *set, struct session *s,
    const struct pmu_ask *ask, struct err *e)
{
	struct pmu_answer a = { .first = s->nknown };
	char path[PMU_NAME];
	struct object *o;
	memcpy(path, ask->path, sizeof path);
	path[sizeof path - 1] = 0;
	if (object_open(&o, path, NULL))
		return a;
	object_demangle(o);
	int n = session_object(s, o, ask->base, e);
	if (n < 0)
		return a;
	add_functions(set, s, n, e);
	a.object = (uint32_t)n;
	a.n = s->nknown - a.first;
	return a;
}

/*
 * One question; its answer goes to the descriptor that came with it. False at
 * the end: nobody has the other side any more.
 */
static bool
serve(const struct settings *set, struct session *s, int sock, struct err *e)
{
	struct pmu_ask ask;
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec v = { &ask, sizeof ask };
	struct msghdr m = { .msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control.space };
	ssize_t n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (!c || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(int)))
		return n != 0;
	int fd;
	memcpy(&fd, CMSG_DATA(c), sizeof fd);
	if (n == (ssize_t)sizeof ask) {
		struct pmu_answer a = answer_to(set, s, &ask, e);
		send(fd, &a, sizeof a, MSG_NOSIGNAL);
	}
	close(fd);
	return true;
}

/* Serves until the command has ended; its wait status. */
static int
wait_for(const struct settings *set, struct session *s, int sock, pid_t pid,
    struct err *e)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int status;
	for (;;) {
		struct pollfd p[2] = { { .fd = sock, .events = POLLIN },
			{ .fd = pidfd, .events = POLLIN } };
		poll(p, 2, pidfd < 0 ? TICK_MS : -1);
		if (p[0].revents & POLLIN && !serve(set, s, sock, e))
			sock = -1;
		if (waitpid(pid, &status, WNOHANG) == pid)
			break;
	}
	if (pidfd >= 0)
		close(pidfd);
	return status;
}

/* ---- the clock -------------------------------------------------------------
 */

struct clock_start {
	uint64_t ticks;
	struct timespec at;
};

static uint64_t
ns_since(const struct clock_start *c)
{
	struct timespec b;
	clock_gettime(CLOCK_MONOTONIC_RAW, &b);
	return (uint64_t)(b.tv_sec - c->at.tv_sec) * 1000000000u +
	       (uint64_t)b.tv_nsec - (uint64_t)c->at.tv_nsec;
}

static uint64_t
rate_of(const struct clock_start *c)
{
	uint64_t ns, ticks;
	do {
		ticks = pmu_tsc() - c->ticks;
		ns = ns_since(c);
	} while (ns < HZ_NS);
	return (uint64_t)((double)ticks * 1e9 / (double)ns);
}

/* ---- what there is to say ---------------------------------------------------
 */

static void
cover(struct session *s, struct result *r, uint32_t i)
{
	const struct object *o = s->object[i];
	struct coverage *c = result_coverage(r);
	if (!c)
		return;
	c->object = arena_str(&r->arena, str_c(o->path));
	c->functions = o->nfuncs;
	c->asked = s->asked[i];
	c->section = o->by_section;
	c->scan = o->by_scan;
	c->refused = o->odd;
	for (uint32_t k = 0; k < s->nknown; k++) {
		if (s->known[k].object != i)
			continue;
		uint32_t state = s->func[k].state;
		c->on += state == PMU_ON;
		c->refused += state > PMU_ON && state != PMU_IDLE;
	}
	if (o->from_dynsym)
		c->note = STR_LIT("stripped: exported functions only");
	else if (o->nsites && o->nsites < o->nfuncs)
		c->note = STR_LIT("functions without a sled are part of "
				  "their callers' self");
}

static void
describe(struct session *s, struct result *r)
{
	bool hooks = false, tsc = false;
	for (uint32_t i = 0; i < s->nobjects; i++) {
		const struct object *o = s->object[i];
		bool any = !i || o->nsites || o->hooks || s->asked[i];
		hooks |= o->hooks && s->asked[i];
		if (any)
			cover(s, r, i);
		if (any && o->contexts)
			result_caveat(r, "contexts", 1,
			    "%s switches stacks: calls on its own stacks are "
			    "not counted",
			    o->path);
	}
	for (unsigned i = 0; i < s->events.n; i++)
		tsc |= s->events.event[i].source == PMU_TSC;
	if (s->head->denied)
		result_caveat(r, "code-locked", s->head->denied,
		    "code could not be changed: %s",
		    strerror((int)s->head->denied));
	if (s->head->traps)
		result_caveat(r, "passed-while-patched", s->head->traps,
		    "calls that met a site being changed: not counted");
	if (s->head->forks)
		result_caveat(r, "fork", s->head->forks,
		    "child processes are part of the totals");
	if (hooks)
		result_caveat(r, "hooks", 1,
		    "the compiler's hooks cannot be switched off and also "
		    "fire for inlined copies");
	if (tsc)
		result_caveat(r, "stolen-time", 1,
		    "tsc runs on while the thread waits and while the host "
		    "runs others; calls with a switch inside are flagged I, "
		    "time stolen by a host is not seen");
	result_caveat(r, "perturbation", 1,
	    "caches, branch predictors and alignment differ from a run "
	    "without us; not measured");
}

/* ---- the backend -----------------------------------------------------------
 */

static struct event_set
choose_events(const struct settings *s)
{
	struct event_set set = s->events;
	if (set.n)
		return set;
	struct event hw;
	if (!event_find(&hw, STR_LIT("instructions"), NULL) &&
	    !event_try(&hw, NULL))
		event_add(&set, "instructions", NULL);
	event_add(&set, "tsc", NULL);
	return set;
}

static char *
env_dup(const char *name, const char *value, const char *more)
{
	size_t n = strlen(name) + strlen(value) + strlen(more) + 3;
	char *p = cli_alloc(n, 1);
	snprintf(p, n, "%s=%s%s%s", name, value, *more ? ":" : "", more);
	return p;
}

static int
run(const struct settings *set, struct session *s, const char *program,
    const char *runtime, struct result *r, struct err *e)
{
	int pair[2];
	char fds[40];
	const char *preload = getenv("LD_PRELOAD");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		return err_sys(e, "cannot make a socket");
	snprintf(fds, sizeof fds, "%d,%d", s->fd, pair[1]);
	char *env[] = { env_dup("LD_PRELOAD", runtime, preload ? preload : ""),
		env_dup("PMUCOUNT_FDS", fds, ""), NULL };
	struct launch l = { .command = set->command,
		.program = program,
		.as_root = set->as_root,
		.quiet = set->quiet_command,
		.env = env,
		.close = pair[0] };
	struct err inner = { 0 };
	int x = launch_start(&l, e);
	close(pair[1]);
	if (!x) {
		launch_ignore_keys();
		int why = launch_go(&l);
		r->status = wait_for(set, s, pair[0], l.pid, &inner);
		r->has_status = true;
		errno = why;
		if (why)
			x = err_sys(e, "cannot execute");
		else if (inner.code)
			x = err_set(e, inner.code, "%s", inner.msg);
	}
	close(pair[0]);
	free(env[0]);
	free(env[1]);
	return x;
}

static int
check_reported(const struct session *s, struct err *e)
{
	if (!s->head->reported)
		return err_set(e, SE_EUNSUP,
		    "the command ran, but the runtime did not report in: a "
		    "static program, or one that drops LD_PRELOAD");
	if (s->nknown == s->nidle)
		return err_set(e, SE_EUNSUP,
		    "the command ran, but no function with a sled matched%s; "
		    "a program it executes is not counted: name that one",
		    s->head->execs ? " before it executed another program"
				   : "");
	return 0;
}

static int
sled_count(const struct settings *set, const char *program, struct result *r,
    struct err *e)
{
	struct session s;
	struct event_set events = choose_events(set);
	struct clock_start c = { .ticks = pmu_tsc() };
	clock_gettime(CLOCK_MONOTONIC_RAW, &c.at);
	char *runtime = runtime_find_dup();
	if (!runtime)
		return err_set(
		    e, SE_ENOENT, "libpmucount.so is not beside the binary");
	int x = session_open(&s, &events, e);
	if (!x) {
		for (unsigned i = 0; i < events.n; i++)
			s.head->spans |= events.event[i].exact;
		s.head->serialize = set->serialize;
		s.head->gate_n = (uint32_t)set->gate_n;
		if (set->gate_n)
			s.head->gate_ticks =
			    (uint64_t)((double)rate_of(&c) *
				       (double)set->gate_ns / 1e9);
		x = run(set, &s, program, runtime, r, e);
		s.head->hz = rate_of(&c);
	}
	if (!x)
		x = check_reported(&s, e);
	if (!x)
		x = session_result(&s, r, e);
	if (!x)
		describe(&s, r);
	session_close(&s);
	free(runtime);
	return x;
}

static int
sled_usable(const struct settings *s, const char *program, struct object *o,
    struct err *e)
{
	char *runtime = runtime_find_dup();
	bool found = runtime != NULL;
	free(runtime);
	if (!found)
		return err_set(
		    e, SE_ENOENT, "libpmucount.so is not beside the binary");
	if (s->attach)
		return err_set(
		    e, SE_EUNSUP, "cannot be brought into a running process");
	if (s->skip_callees)
		return err_set(e, SE_EUNSUP, "--skip-callees is for step");
	for (unsigned i = 0; i < s->events.n; i++) {
		int why = event_try(&s->events.event[i], NULL);
		if (why)
			return err_set(e, SE_EUNSUP, "%s: %s",
			    s->events.event[i].name,
			    event_why(&s->events.event[i], why));
	}
	if (!program)
		return 0;
	if (!o) /* a script: whether its interpreter has sleds shows later */
		return s->backend ? 0
				  : err_set(e, SE_EUNSUP,
					"not a program but a script");
	if (o->go)
		return err_set(e, SE_EUNSUP, "built by Go");
	if (!o->dynamic)
		return err_set(e, SE_EUNSUP,
		    "statically linked: nothing can be preloaded");
	if (!o->nsites && !o->hooks && !s->backend)
		return err_set(e, SE_EUNSUP,
		    "no sleds (build with -fpatchable-function-entry=5)");
	return 0;
}

const struct backend backend_sled = {
	.name = "sled",
	.what = "sleds of the compiler, patched while the program runs",
	.usable = sled_usable,
	.count = sled_count,
};
