/*
 * A small serving loop: schedule, prefill, decode, sample, with a device that
 * runs behind it. It emits ev lines through libstraightedge, and stalls of
 * known causes by seed; what it did goes to a second file.
 *
 *	serve [-r] SEED STEPS TRUTH >TRACE
 *
 * Time passes as the program says; with -r it is spent, and the stamps are the
 * clock's. TRUTH gets a line a stall: STEP CAUSE.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "straightedge.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)

struct loop {
	struct se_writer *w;
	bool real;
	uint64_t seed;
	int64_t now;    /* of the host */
	int64_t stream; /* when the device is through */
	uint64_t corr;
	int failed;
};

/* ---- chance and time ---------------------------------------------------- */

/* splitmix64, Steele, Lea and Flood, OOPSLA 2014 */
static uint64_t
draw(struct loop *l)
{
	uint64_t z = l->seed += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static int64_t
between(struct loop *l, int64_t low, int64_t high)
{
	return low + (int64_t)(draw(l) % (uint64_t)(high - low + 1));
}

static int64_t
clock_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 * MS + t.tv_nsec;
}

static void
until(struct loop *l, int64_t t)
{
	if (!l->real) {
		l->now = t > l->now ? t : l->now;
		return;
	}
	while (l->now < t) {
		struct timespec left = { 0, t - l->now > MS ? 500 * US : 0 };
		if (left.tv_nsec)
			nanosleep(&left, NULL);
		l->now = clock_now();
	}
}

/* ---- events ------------------------------------------------------------- */

static void
emit(struct loop *l, const struct se_event *ev)
{
	if (se_writer_event(l->w, ev))
		l->failed = 1;
}

static void
host(struct loop *l, const char *name, const char *kind, int64_t from,
    const char *corr)
{
	emit(l, &(struct se_event){ .size = sizeof(struct se_event),
		    .name = name,
		    .ts = from,
		    .dur = l->now - from,
		    .kind = kind,
		    .proc = "engine",
		    .thread = "main",
		    .corr = corr });
}

/* On the main thread. */
static void
busy(struct loop *l, const char *name, int64_t dur)
{
	int64_t from = l->now;
	until(l, from + dur);
	host(l, name, NULL, from, NULL);
}

static void
counter(struct loop *l, const char *name, const char *value)
{
	const char *const args[] = { "value", value };
	emit(l, &(struct se_event){ .size = sizeof(struct se_event),
		    .name = name,
		    .ts = l->now,
		    .dur = -1,
		    .proc = "engine",
		    .ph = "C",
		    .args = args,
		    .nargs = 1 });
}

static void
kernels(struct loop *l, const char *call, unsigned n, int64_t each)
{
	char corr[24], name[24];
	int64_t from = l->now;
	snprintf(corr, sizeof corr, "%" PRIu64, ++l->corr);
	until(l, from + 8 * US);
	host(l, call, "cuda_runtime", from, corr);
	for (unsigned i = 0; i < n; i++) {
		int64_t ts = l->now + 4 * US;
		ts = ts > l->stream ? ts : l->stream + US;
		l->stream = ts + each + between(l, 0, each / 20);
		snprintf(name, sizeof name, "layer_%c", 'a' + (char)(i % 8));
		emit(l, &(struct se_event){ .size = sizeof(struct se_event),
			    .name = name,
			    .ts = ts,
			    .dur = l->stream - ts,
			    .kind = "kernel",
			    .proc = "gpu",
			    .thread = "7",
			    .corr = corr });
	}
}

static void
synchronize(struct loop *l)
{
	static const char *const args[] = { "stream", "7" };
	char corr[24];
	int64_t from = l->now;
	snprintf(corr, sizeof corr, "%" PRIu64, ++l->corr);
	until(l, (l->stream > from ? l->stream : from) + 3 * US);
	host(l, "cudaStreamSynchronize", "cuda_runtime", from, corr);
	emit(l, &(struct se_event){ .size = sizeof(struct se_event),
		    .name = "Stream Sync",
		    .ts = from,
		    .dur = l->now - from,
		    .kind = "cuda_sync",
		    .proc = "gpu",
		    .thread = "1000007",
		    .corr = corr,
		    .args = args,
		    .nargs = 1 });
}

/* ---- stalls ------------------------------------------------------------- */

/* The main thread waits for a lock that another one holds. */
static void
lock(struct loop *l, int64_t dur)
{
	static const char *const on[] = { "on", "0x7f3a10" };
	int64_t from = l->now;
	until(l, from + dur);
	struct se_event ev = { .size = sizeof ev,
		.name = "futex",
		.ts = from,
		.dur = l->now - from,
		.kind = "wait",
		.proc = "engine",
		.thread = "main",
		.args = on,
		.nargs = 1 };
	emit(l, &ev);
	ev.thread = "logger";
	ev.kind = "wake";
	ev.ts = l->now - 30 * US;
	ev.dur = 25 * US;
	emit(l, &ev);
	ev.name = "flush";
	ev.kind = NULL;
	ev.nargs = 0;
	ev.ts = from - 20 * US;
	ev.dur = dur - 20 * US;
	emit(l, &ev);
}

struct step {
	const char *cause; /* NULL: an ordinary one */
	int64_t dur;       /* of the stall */
	int64_t tokens;
};

/* A stall that is a slice of the host. */
struct named {
	const char *cause, *slice;
	bool between; /* steps, not in one */
};

// clang-format off
static const struct named named[] = {
	{ "gc-pause", "gc.collect gen2", true },
	{ "profiler", "stop_profile", true },
	{ "tokenizer", "detokenize", false },
	{ "jit-compile", "triton_compile", false },
	{ "allocator", "cudaMalloc", false },
	{ "kv-transfer", "decode_bootstrap", false },
};
static const char *const special[] = {
	"long-prefill", "preemption", "lock", "graph-fallback", "unknown",
};
// clang-format on
enum {
	NAMED = sizeof named / sizeof *named,
	SPECIAL = sizeof special / sizeof *special,
	STALL_EVERY = 25, /* steps, on average */
};

static void
choose(struct loop *l, struct step *s)
{
	*s = (struct step){ .tokens = between(l, 64, 512) };
	uint64_t which = draw(l) % (NAMED + SPECIAL);
	int64_t dur = between(l, 10 * MS, 60 * MS);
	if (draw(l) % STALL_EVERY)
		return;
	s->cause = which < NAMED ? named[which].cause : special[which - NAMED];
	s->dur = dur;
}

static bool
is(const struct step *s, const char *cause)
{
	return s->cause && !strcmp(s->cause, cause);
}

static void
stall(struct loop *l, const struct step *s, bool in_gap)
{
	for (size_t i = 0; i < NAMED; i++)
		if (is(s, named[i].cause) && named[i].between == in_gap)
			busy(l, named[i].slice, s->dur);
	if (is(s, "lock") && !in_gap)
		lock(l, s->dur);
	/* Nothing is recorded of it. */
	if (is(s, "unknown") && in_gap)
		until(l, l->now + s->dur);
}

/* ---- the loop ----------------------------------------------------------- */

static void
prefill(struct loop *l, struct step *s)
{
	if (is(s, "preemption")) {
		emit(l, &(struct se_event){ .size = sizeof(struct se_event),
			    .name = "PREEMPTED",
			    .ts = l->now,
			    .dur = -1,
			    .proc = "engine",
			    .thread = "main" });
		counter(l, "kv_cache_usage", "0.98");
	}
	if (is(s, "preemption") || is(s, "long-prefill"))
		s->tokens = s->dur / (2 * US);
	busy(l, "prefill", s->tokens * 2 * US);
}

static void
decode(struct loop *l, const struct step *s)
{
	if (!is(s, "graph-fallback")) {
		kernels(l, "cudaGraphLaunch", 16, 120 * US);
	} else {
		for (unsigned i = 0; i < 16; i++) {
			busy(l, "aten::linear", s->dur / 16);
			kernels(l, "cudaLaunchKernel", 1, 120 * US);
		}
	}
	synchronize(l);
}

static void
one_step(struct loop *l, uint64_t nth, FILE *truth)
{
	struct step s;
	char name[40], number[24], tokens[24];
	const char *const args[] = { "new_tokens", tokens };
	choose(l, &s);
	until(l, l->now + between(l, 20 * US, 60 * US));
	stall(l, &s, true);
	int64_t from = l->now;
	busy(l, "schedule", between(l, 60 * US, 90 * US));
	counter(l, "kv_cache_usage", "0.61");
	counter(l, "num_requests_waiting", "0");
	stall(l, &s, false);
	prefill(l, &s);
	decode(l, &s);
	busy(l, "sample", between(l, 80 * US, 120 * US));
	busy(l, "detokenize", between(l, 30 * US, 60 * US));
	snprintf(name, sizeof name, "engine_step#%" PRIu64, nth);
	snprintf(number, sizeof number, "%" PRIu64, nth);
	snprintf(tokens, sizeof tokens, "%" PRId64, s.tokens);
	emit(l, &(struct se_event){ .size = sizeof(struct se_event),
		    .name = name,
		    .ts = from,
		    .dur = l->now - from,
		    .kind = "step",
		    .proc = "engine",
		    .thread = "main",
		    .step = number,
		    .args = args,
		    .nargs = 1 });
	if (s.cause)
		fprintf(truth, "%" PRIu64 " %s\n", nth, s.cause);
}

static void
head(struct loop *l)
{
	se_writer_begin(l->w, "head");
	se_writer_text(l->w, "of", "serve", 5);
	se_writer_integer(l->w, "version", 1);
	se_writer_text(l->w, "tool", "serve", 5);
	se_writer_end(l->w);
}

int
main(int argc, char **argv)
{
	struct loop l = { .now = INT64_C(1700000000) * 1000 * MS };
	if (argc == 5 && !strcmp(argv[1], "-r")) {
		l.real = true;
		l.now = clock_now();
		argv++;
		argc--;
	}
	FILE *truth = argc == 4 ? fopen(argv[3], "w") : NULL;
	if (!truth || se_writer_open(&l.w, STDOUT_FILENO, NULL))
		return 2;
	l.seed = strtoull(argv[1], NULL, 10);
	uint64_t steps = strtoull(argv[2], NULL, 10);
	head(&l);
	for (uint64_t i = 0; i < steps; i++)
		one_step(&l, i, truth);
	l.failed |= fclose(truth) != 0;
	return se_writer_close(l.w, NULL, 0) || l.failed;
}
