/* One process of the command: see child.h. */
#define _GNU_SOURCE
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pin.h"

extern char **environ;

// clang-format off
const char *const outcome_name[] = {
	[OUTCOME_OK] = "ok",
	[OUTCOME_EXIT] = "exit",
	[OUTCOME_SIGNAL] = "signal",
	[OUTCOME_TIMEOUT] = "timeout",
	[OUTCOME_FLOOD] = "flood",
	[OUTCOME_NOSIG] = "nosig",
	[OUTCOME_DAMAGED] = "damaged",
};
// clang-format on

enum {
	LOOK_FIRST_MS = 2,  /* looks at the pin: soon, then less often */
	LOOK_LAST_MS = 500, /* each costs a walk through /proc */
	DRAIN_MS = 2000,    /* for what is in the pipes after the end */
	DIE_S = 10,         /* a killed process that is still there is stuck */
};

static volatile sig_atomic_t stopped;
static sigset_t while_waiting; /* the mask that lets our signals in */

static void
on_signal(int sig)
{
	if (sig != SIGCHLD)
		stopped = 1;
}

int
child_prepare(struct err *e)
{
	static const int ours[] = { SIGCHLD, SIGINT, SIGTERM, SIGHUP };
	struct sigaction a = { .sa_handler = on_signal };
	sigset_t block;
	sigemptyset(&block);
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
		struct sigaction old;
		sigaction(ours[i], NULL, &old);
		/* nohup(1): what is ignored stays so */
		if (ours[i] != SIGCHLD && old.sa_handler == SIG_IGN)
			continue;
		if (sigaction(ours[i], &a, NULL))
			return err_sys(e, "cannot take signals");
		sigaddset(&block, ours[i]);
	}
	if (sigprocmask(SIG_BLOCK, &block, &while_waiting))
		return err_sys(e, "cannot block signals");
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		sigdelset(&while_waiting, ours[i]);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		return err_sys(e, "cannot adopt what a child leaves behind");
	return 0;
}

bool
child_stopped(void)
{
	return stopped;
}

static int64_t
now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- in the child ------------------------------------------------------- */

struct pipes {
	int out[2], err[2], exec[2];
};

static int
settle_in(const struct child_how *how, const struct pipes *p)
{
	int in = open("/dev/null", O_RDONLY);
	if (in < 0 || dup2(in, 0) < 0 || dup2(p->out[1], 1) < 0 ||
	    dup2(p->err[1], 2) < 0)
		return errno;
	if (in > 2)
		close(in);
	if (how->cpu >= 0) {
		cpu_set_t set;
		CPU_ZERO(&set);
		CPU_SET((size_t)how->cpu, &set);
		if (sched_setaffinity(0, sizeof set, &set))
			return errno;
	}
	for (char **v = how->env; v && *v; v++)
		putenv(*v);
	return 0;
}

_Noreturn static void
child(const struct child_how *how, const struct pipes *p, pid_t parent)
{
	sigset_t none;
	setpgid(0, 0);
	/* If we are killed the rest must not go on on somebody's board. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(126);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	int why = settle_in(how, p);
	if (!why) {
		execvp(how->argv[0], how->argv);
		why = errno;
	}
	ssize_t n = write(p->exec[1], &why, sizeof why);
	_exit(n > 0 ? 126 : 127);
}

/* ---- watching it -------------------------------------------------------- */

struct watch {
	const struct child_how *how;
	struct child_result *r;
	pid_t pid;
	int out, err, tee;
	struct hash *hash;
	int64_t start, next_look, pause; /* nanoseconds */
	int killed;                      /* outcome that we caused, or 0 */
	int64_t killed_at;
	char line[CHILD_SAID];
	size_t len;
};

static int
make_pipes(struct pipes *p, struct err *e)
{
	int *const all[] = { p->out, p->err, p->exec };
	for (size_t i = 0; i < 3; i++)
		all[i][0] = all[i][1] = -1;
	for (size_t i = 0; i < 3; i++)
		if (pipe2(all[i], O_CLOEXEC))
			return err_sys(e, "cannot make a pipe");
	return 0;
}

static void
shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void
close_pipes(struct pipes *p)
{
	for (int i = 0; i < 2; i++) {
		shut(&p->out[i]);
		shut(&p->err[i]);
		shut(&p->exec[i]);
	}
}

static void
take_line(struct watch *w, const char *p, ssize_t n)
{
	for (ssize_t i = 0; i < n; i++) {
		if (p[i] == '\n' && w->len) {
			memcpy(w->r->said, w->line, w->len);
			w->r->said[w->len] = '\0';
			w->len = 0;
		} else if (p[i] != '\n' && w->len < sizeof w->line - 1) {
			w->line[w->len++] = p[i] ? p[i] : ' ';
		}
	}
}

static void
take_output(struct watch *w, const char *p, size_t n)
{
	w->r->out_len += n;
	if (w->hash)
		hash_add(w->hash, p, n);
	while (w->tee >= 0 && n) {
		ssize_t done = write(w->tee, p, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0) {
			/* No room: the signature will be seen to be cut. */
			shut(&w->tee);
			return;
		}
		p += done;
		n -= (size_t)done;
	}
}

/* Reads what is there once; closes at the end. */
static void
take(struct watch *w, int *fd)
{
	char block[65536];
	ssize_t n = read(*fd, block, sizeof block);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0)
		shut(fd);
	else if (fd == &w->err)
		take_line(w, block, n);
	else
		take_output(w, block, (size_t)n);
}

static void
end_it(struct watch *w, int outcome)
{
	if (!w->killed) {
		w->killed = outcome;
		w->killed_at = now();
	}
	kill(-w->pid, SIGKILL);
	kill(w->pid, SIGKILL);
}

static void
look(struct watch *w)
{
	struct stat st;
	pin_look(w->pid, w->how->cpu, w->how->nvidia, &w->r->pin);
	uint64_t size = w->r->out_len;
	if (w->how->sig && !stat(w->how->sig, &st))
		size += (uint64_t)st.st_size;
	if (!w->how->tee)
		size -= w->r->out_len;
	if (size > CHILD_FLOOD)
		end_it(w, OUTCOME_FLOOD);
}

/* Is it over? It stays a zombie, so that its group is still its own. */
static bool
is_over(pid_t pid)
{
	siginfo_t info = { 0 };
	return !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) &&
	       info.si_pid == pid;
}

static void
wait_a_little(struct watch *w, int64_t until)
{
	struct pollfd p[2] = { { w->out, POLLIN, 0 }, { w->err, POLLIN, 0 } };
	int64_t left = until - now();
	left = left < 0 ? 0 : left;
	struct timespec t = { left / 1000000000, left % 1000000000 };
	if (ppoll(p, 2, &t, &while_waiting) <= 0)
		return;
	if (p[0].revents)
		take(w, &w->out);
	if (p[1].revents)
		take(w, &w->err);
}

static int64_t
earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void
watch_it(struct watch *w)
{
	int64_t end = w->start + w->how->timeout;
	if (end < w->start)
		end = INT64_MAX;
	while (!is_over(w->pid)) {
		int64_t t = now();
		if (stopped)
			end_it(w, OUTCOME_STOPPED);
		if (t >= end && !w->killed)
			end_it(w, OUTCOME_TIMEOUT);
		if (w->killed &&
		    t - w->killed_at > (int64_t)DIE_S * 1000000000) {
			w->r->outcome = OUTCOME_STUCK;
			return;
		}
		if (t >= w->next_look) {
			look(w);
			w->pause = earlier(
			    w->pause * 2, (int64_t)LOOK_LAST_MS * 1000000);
			w->next_look = t + w->pause;
		}
		wait_a_little(
		    w, w->killed ? w->next_look : earlier(end, w->next_look));
	}
	w->r->ns = now() - w->start;
	look(w);
}

/* What is in the pipes; nobody writes any more who was not told to die. */
static void
drain(struct watch *w)
{
	int64_t end = now() + (int64_t)DRAIN_MS * 1000000;
	while ((w->out >= 0 || w->err >= 0) && now() < end)
		wait_a_little(w, end);
	if (w->len)
		take_line(w, "\n", 1);
}

static void
judge_end(struct watch *w, int status)
{
	struct child_result *r = w->r;
	if (w->killed)
		r->outcome = w->killed;
	else if (WIFSIGNALED(status))
		r->outcome = OUTCOME_SIGNAL;
	else
		r->outcome = WEXITSTATUS(status) ? OUTCOME_EXIT : OUTCOME_OK;
	r->status =
	    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

/* Its group, and what left its group and became ours. */
static void
clean_up(struct watch *w)
{
	int status = 0;
	kill(-w->pid, SIGKILL);
	while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
		;
	judge_end(w, status);
	for (int64_t end = now() + (int64_t)DRAIN_MS * 1000000; now() < end;) {
		pin_kill_children();
		pid_t p = waitpid(-1, &status, WNOHANG);
		if (p > 0)
			w->r->strays++;
		else if (p < 0 && errno != EINTR)
			return;
		else if (!p)
			wait_a_little(w, now() + 1000000);
	}
}

/* 0: it runs. Otherwise the errno of the exec that failed. */
static int
exec_failure(int fd)
{
	int why = 0;
	ssize_t n;
	do
		n = read(fd, &why, sizeof why);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof why ? why : 0;
}

static int
open_outputs(struct watch *w, struct err *e)
{
	const struct child_how *how = w->how;
	w->tee = -1;
	if (how->hash_stdout && !(w->hash = hash_new()))
		return err_mem(e);
	if (!how->tee)
		return 0;
	w->tee = open(how->tee, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return w->tee < 0 ? err_sys(e, "%s: cannot create", how->tee) : 0;
}

static void
follow(struct watch *w, struct pipes *p)
{
	shut(&p->out[1]);
	shut(&p->err[1]);
	shut(&p->exec[1]);
	setpgid(w->pid, w->pid);
	int why = exec_failure(p->exec[0]);
	w->out = p->out[0];
	w->err = p->err[0];
	p->out[0] = p->err[0] = -1;
	w->start = now();
	w->pause = (int64_t)LOOK_FIRST_MS * 1000000;
	w->next_look = w->start;
	watch_it(w);
	if (w->r->outcome != OUTCOME_STUCK) {
		clean_up(w);
		drain(w);
	}
	if (why) {
		w->r->outcome = OUTCOME_NOEXEC;
		w->r->status = why;
	}
	if (w->hash)
		w->r->out = hash_value(w->hash);
	shut(&w->out);
	shut(&w->err);
}

int
child_run(const struct child_how *how, struct child_result *out, struct err *e)
{
	struct watch w = { .how = how, .r = out, .tee = -1 };
	struct pipes p;
	*out = (struct child_result){ .outcome = OUTCOME_OK };
	int r = make_pipes(&p, e);
	if (!r)
		r = open_outputs(&w, e);
	if (!r) {
		pid_t us = getpid();
		fflush(NULL);
		w.pid = fork();
		if (!w.pid)
			child(how, &p, us);
		if (w.pid < 0)
			r = err_sys(e, "cannot fork");
	}
	if (!r)
		follow(&w, &p);
	close_pipes(&p);
	shut(&w.tee);
	hash_free(w.hash);
	return r;
}
