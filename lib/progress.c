/* Progress on stderr: see progress.h. */
#include "progress.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 250, FIRST_MS = 1000, LINE = 200 };

struct progress {
	_Atomic uint64_t bytes, items, total;
	atomic_bool stop;
	bool shown; /* keep a line up to date */
	bool wipe;  /* it is a terminal: rewrite the line */
	bool dirty;
	struct timespec start;
	pthread_t thread;
};

static double
seconds_since(const struct timespec *start)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - start->tv_sec) +
	       (double)(now.tv_nsec - start->tv_nsec) / 1e9;
}

/* "1.25 GiB": for people only. */
static void
put_size(char *to, size_t size, double n)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	unsigned i = 0;
	while (n >= 1024 && i + 1 < sizeof unit / sizeof *unit) {
		n /= 1024;
		i++;
	}
	snprintf(to, size, i ? "%.2f %s" : "%.0f %s", n, unit[i]);
}

static void
line(struct progress *p, bool asked)
{
	char text[LINE], done[32], all[32], rate[32];
	uint64_t bytes = atomic_load(&p->bytes), items = atomic_load(&p->items);
	uint64_t total = atomic_load(&p->total);
	double t = seconds_since(&p->start);
	put_size(done, sizeof done, (double)bytes);
	put_size(all, sizeof all, (double)total);
	put_size(rate, sizeof rate, t > 0 ? (double)bytes / t : 0);
	char records[40] = "";
	if (items)
		snprintf(records, sizeof records, ", %llu records",
		    (unsigned long long)items);
	int n = snprintf(text, sizeof text, "%s%s: %s%s%s%s, %s/s, %.0f s%s",
	    p->wipe && !asked ? "\r" : "", cli_name(), done,
	    total ? " of " : "", total ? all : "", records, rate, t,
	    p->wipe && !asked ? "\033[K" : "\n");
	/* One write; if stderr is gone there is nobody to tell. */
	if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0)
		return;
	p->dirty = p->wipe && !asked;
}

static void *
report(void *user)
{
	struct progress *p = user;
	const struct timespec tick = { 0, TICK_MS * 1000000L };
	unsigned ticks = 0;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	while (!atomic_load(&p->stop)) {
		int sig = sigtimedwait(&set, NULL, &tick);
		if (atomic_load(&p->stop))
			break;
		if (sig == SIGUSR1) {
			line(p, true);
			continue;
		}
		ticks++;
		/* On a terminal four times a second, else every ten. */
		unsigned every = p->wipe ? 1 : 10000 / TICK_MS;
		if (p->shown && ticks >= FIRST_MS / TICK_MS &&
		    (ticks - FIRST_MS / TICK_MS) % every == 0)
			line(p, false);
	}
	return NULL;
}

struct progress *
progress_start(const struct cli_common *c)
{
	struct progress *p = calloc(1, sizeof *p);
	sigset_t set;
	if (!p)
		return NULL;
	p->wipe = isatty(STDERR_FILENO);
	p->shown = !c->quiet && (p->wipe || c->progress_always);
	clock_gettime(CLOCK_MONOTONIC, &p->start);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (pthread_create(&p->thread, NULL, report, p)) {
		free(p);
		return NULL;
	}
	return p;
}

void
progress_total(struct progress *p, uint64_t bytes)
{
	if (p)
		atomic_store(&p->total, bytes);
}

void
progress_bytes(struct progress *p, uint64_t n)
{
	if (p)
		atomic_fetch_add_explicit(&p->bytes, n, memory_order_relaxed);
}

void
progress_items(struct progress *p, uint64_t n)
{
	if (p)
		atomic_fetch_add_explicit(&p->items, n, memory_order_relaxed);
}

void
progress_stop(struct progress *p)
{
	if (!p)
		return;
	atomic_store(&p->stop, true);
	/* Wakes it; it is that thread's own signal. */
	pthread_kill(p->thread, SIGUSR1);
	pthread_join(p->thread, NULL);
	if (p->dirty && write(STDERR_FILENO, "\r\033[K", 4) < 0)
		p->dirty = false;
	/* SIGUSR1 stays blocked: one that comes late must not end us. */
	free(p);
}
