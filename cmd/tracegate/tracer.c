/* A deep tracer in another process: see tracer.h. */
#include "tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "num.h"
#include "str.h"

extern char **environ;

static int64_t
now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int
left_ms(int64_t until)
{
	int64_t ms = (until - now_ns()) / 1000000;
	return ms < 0 ? 0 : ms > 1000000 ? 1000000 : (int)ms;
}

/* ---- FIFOs ----------------------------------------------------------- */

/* Without a reader an open for writing fails at once: nobody listens. */
static int
open_ctl(struct tracer *t, struct err *e)
{
	t->ctl_fd = open(t->ctl, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (t->ctl_fd >= 0)
		return 0;
	if (errno == ENXIO)
		return err_set(e, SE_ENOENT, "nobody reads %s", t->ctl);
	return err_sys(e, "cannot open %s", t->ctl);
}

static int
say(struct tracer *t, const char *text, struct err *e)
{
	size_t len = strlen(text);
	ssize_t n = write(t->ctl_fd, text, len);
	if (n == (ssize_t)len)
		return 0;
	if (n < 0 && errno == EPIPE)
		return err_set(e, SE_ENOENT, "the tracer is gone");
	return n < 0 ? err_sys(e, "cannot write %s", t->ctl)
		     : err_set(e, SE_EIO, "%s is full", t->ctl);
}

static int
set_fifo(struct tracer *t, bool on, struct err *e)
{
	return say(t, on ? "on\n" : "off\n", e);
}

/* ---- perf --control fifo:CTL,ACK ---------------------------------------- */

static int
open_perf(struct tracer *t, struct err *e)
{
	int r = open_ctl(t, e);
	if (r)
		return r;
	/* For both: the end of file of a writer that comes and goes is none. */
	t->ack_fd = open(t->ack, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	return t->ack_fd < 0 ? err_sys(e, "cannot open %s", t->ack) : 0;
}

/* perf answers "ack\n" and a NUL once recording has really changed. */
static int
wait_ack(struct tracer *t, int64_t until, struct err *e)
{
	char got[64];
	size_t n = 0;
	for (;;) {
		struct pollfd p = { .fd = t->ack_fd, .events = POLLIN };
		int r = poll(&p, 1, left_ms(until));
		if (r < 0 && errno != EINTR)
			return err_sys(e, "poll");
		if (r == 0)
			return err_set(e, SE_EIO, "no acknowledgement");
		ssize_t k = read(t->ack_fd, got + n, sizeof got - n);
		if (k < 0 && errno != EAGAIN && errno != EINTR)
			return err_sys(e, "cannot read %s", t->ack);
		n += k > 0 ? (size_t)k : 0;
		if (n >= 4 && !memcmp(got, "ack\n", 4))
			return 0;
		if (n == sizeof got)
			return err_set(e, SE_EFORMAT,
			    "expected ack from perf, found something else");
	}
}

static int
set_perf(struct tracer *t, bool on, struct err *e)
{
	char old[64];
	while (read(t->ack_fd, old, sizeof old) > 0)
		; /* answers to an earlier question that came too late */
	int r = say(t, on ? "enable\n" : "disable\n", e);
	return r ? r : wait_ack(t, now_ns() + t->timeout, e);
}

/* ---- signals --------------------------------------------------------- */

/* The mask of signals that the process catches: SigCgt, hexadecimal. */
static int
caught(pid_t pid, uint64_t *mask, struct err *e)
{
	char path[64], line[256];
	snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
	FILE *f = fopen(path, "r");
	if (!f)
		return err_sys(e, "cannot open %s", path);
	*mask = 0;
	bool found = false;
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, "SigCgt:", 7)) {
			*mask = strtoull(line + 7, NULL, 16);
			found = true;
		}
	fclose(f);
	return found ? 0 : err_set(e, SE_EFORMAT, "no SigCgt in %s", path);
}

static int
open_signal(struct tracer *t, struct err *e)
{
	t->pid_fd = pidfd_open(t->pid, 0);
	if (t->pid_fd < 0)
		return err_sys(e, "process %ld", (long)t->pid);
	return 0;
}

/* A signal that nobody catches would end the process: it is not sent. */
static int
set_signal(struct tracer *t, bool on, struct err *e)
{
	uint64_t mask;
	int sig = on ? t->on_signal : t->off_signal;
	int r = caught(t->pid, &mask, e);
	if (r)
		return r;
	if (!(mask >> (sig - 1) & 1))
		return err_set(e, SE_EUNSUP,
		    "process %ld does not catch signal %d", (long)t->pid, sig);
	if (pidfd_send_signal(t->pid_fd, sig, NULL, 0))
		return err_sys(e, "process %ld", (long)t->pid);
	return 0;
}

/* ---- commands ----------------------------------------------------------- */

bool
tracer_words(char **words, char *text)
{
	int n = 0;
	char *p = text;
	for (;;) {
		p += strspn(p, " \t");
		if (!*p)
			break;
		if (n == TRACER_WORDS)
			return false;
		words[n++] = p;
		p += strcspn(p, " \t");
		if (*p)
			*p++ = 0;
	}
	words[n] = NULL;
	return n > 0;
}

static int
open_command(struct tracer *t, struct err *e)
{
	(void)t;
	(void)e;
	return 0;
}

static int
start(char **words, pid_t *pid, struct err *e)
{
	posix_spawn_file_actions_t fa;
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(
	    &fa, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	/* Standard output is ours: records. */
	posix_spawn_file_actions_adddup2(&fa, STDERR_FILENO, STDOUT_FILENO);
	int r = posix_spawnp(pid, words[0], &fa, NULL, words, environ);
	posix_spawn_file_actions_destroy(&fa);
	if (!r)
		return 0;
	errno = r;
	return err_sys(e, "cannot run %s", words[0]);
}

static int
set_command(struct tracer *t, bool on, struct err *e)
{
	char **words = on ? t->on_words : t->off_words;
	int64_t until = now_ns() + t->timeout;
	pid_t pid;
	int status, r;
	if (!words[0])
		return 0;
	r = start(words, &pid, e);
	if (r)
		return r;
	for (;;) {
		pid_t got = waitpid(pid, &status, WNOHANG);
		if (got == pid)
			break;
		if (got < 0 && errno != EINTR)
			return err_sys(e, "waitpid");
		if (now_ns() > until) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return err_set(
			    e, SE_EIO, "%s did not end in time", words[0]);
		}
		struct timespec nap = { .tv_nsec = 2000000 };
		nanosleep(&nap, NULL);
	}
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	return err_set(e, SE_EIO, "%s ended with status %d", words[0],
	    WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* ---- all of them -------------------------------------------------------- */

const struct tracer_kind tracer_perf = { "perf", open_perf, set_perf };
const struct tracer_kind tracer_fifo = { "fifo", open_ctl, set_fifo };
const struct tracer_kind tracer_signal = { "signal", open_signal, set_signal };
const struct tracer_kind tracer_command = { "command", open_command,
	set_command };

int
tracer_open(struct tracer *t, struct err *e)
{
	t->ctl_fd = t->ack_fd = t->pid_fd = -1;
	return t->kind->open(t, e);
}

int
tracer_set(struct tracer *t, bool on, struct err *e)
{
	return t->kind->set(t, on, e);
}

void
tracer_close(struct tracer *t)
{
	const int fds[] = { t->ctl_fd, t->ack_fd, t->pid_fd };
	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}
