/* Asking the agents of a stack: see agents.h. */
#include "agents.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "reasons.h"

extern char **environ;

enum {
	READ_SIZE = 64 << 10,
	NAP_MS = 20,     /* between looks at programs without output */
	GRACE_MS = 1000, /* from SIGTERM to SIGKILL */
};

static const int64_t MS = 1000000;

struct run {
	struct asked *q;
	const struct agent *a;
	pid_t pid;        /* 0: no program */
	int out;          /* read end, -1 once closed */
	int64_t deadline; /* of reading, then of the grace */
	bool started, ended, termed;
};

static int64_t
clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

bool
agent_has_source(const struct agent *a)
{
	return a->exec.n || a->file || a->fd >= 0;
}

/* ---- starting -------------------------------------------------------- */

/* Who could have written the program is who decides what runs. */
static bool
trust_program(const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == EACCES)
		return true; /* execute-only: exec will tell */
	if (fd < 0) {
		err_sys(e, "%s: cannot open", path);
		return false;
	}
	int r = stack_trust(fd, "a program of the stack", e);
	close(fd);
	if (r)
		err_prefix(e, "%s", path);
	return !r;
}

/* The file that execvp would find, so that it can be looked at first. */
static bool
find_program(const char *name, char *path, size_t room)
{
	if (strchr(name, '/'))
		return (size_t)snprintf(path, room, "%s", name) < room;
	const char *dirs = getenv("PATH");
	struct str rest = str_c(dirs ? dirs : "/usr/bin:/bin"), dir;
	while (str_cut(&rest, ':', &dir)) {
		if (!dir.len || dir.p[0] != '/')
			continue; /* the current directory is not searched */
		int n = snprintf(path, room, "%.*s/%s", STR_ARG(dir), name);
		if (n > 0 && (size_t)n < room && !access(path, X_OK))
			return true;
	}
	return false;
}

static void
close_on_exec(int fd)
{
	fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* Candidates as a file: a program that does not read them blocks nobody. */
static int
input_file(struct str text)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/rcacompose.XXXXXX", cli_tmpdir());
	int fd = mkstemp(path);
	if (fd < 0)
		cli_die("%s: cannot create: %s", path, strerror(errno));
	unlink(path);
	close_on_exec(fd);
	while (text.len) {
		ssize_t n = write(fd, text.p, text.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			cli_die("temporary file: cannot write: %s",
			    strerror(errno));
		text.p += n;
		text.len -= (size_t)n;
	}
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static char **
make_env(const struct incident_env *env, char text[3][1100])
{
	size_t n = 0, k = 0;
	while (environ[n])
		n++;
	char **e = cli_alloc(n + 4, sizeof *e);
	snprintf(text[0], 1100, "RCA_INCIDENT=%.1000s", env->id);
	snprintf(text[1], 1100, "RCA_T0=%s", env->start);
	snprintf(text[2], 1100, "RCA_T1=%s", env->end);
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], "RCA_", 4) != 0)
			e[k++] = environ[i];
	for (int i = 0; i < 3; i++)
		e[k++] = text[i];
	return e;
}

static int
spawn(pid_t *pid, const char *path, const struct words *argv, int in, int out,
    char **envp)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, pipes;
	sigemptyset(&none);
	sigemptyset(&pipes);
	sigaddset(&pipes, SIGPIPE);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in, 0);
	posix_spawn_file_actions_adddup2(&files, out, 1);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP |
					    POSIX_SPAWN_SETSIGMASK |
					    POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &pipes);
	int r = posix_spawn(
	    pid, path, &files, &attr, (char *const *)argv->word, envp);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return r;
}

static void
start_program(struct run *r, struct str candidates, char **envp)
{
	char path[4096];
	struct err e;
	int ends[2];
	if (!find_program(r->a->exec.word[0], path, sizeof path))
		cli_die("%s:%u: program \"%s\" not found", r->a->at.file,
		    r->a->at.line, r->a->exec.word[0]);
	if (!trust_program(path, &e))
		cli_die("%s:%u: %s", r->a->at.file, r->a->at.line, e.msg);
	if (pipe(ends))
		cli_die("cannot make a pipe: %s", strerror(errno));
	close_on_exec(ends[0]);
	close_on_exec(ends[1]);
	int in = input_file(candidates);
	int err = spawn(&r->pid, path, &r->a->exec, in, ends[1], envp);
	close(in);
	close(ends[1]);
	if (err) {
		cli_warn("agent %s: cannot run %s: %s", r->a->name.p, path,
		    strerror(err));
		close(ends[0]);
		r->pid = 0;
		r->ended = true;
		r->q->silence = REASON_ERROR;
		return;
	}
	r->out = ends[0];
}

/* "DIR of the stack/file", as an include would be found. */
static int
open_beside(const struct agent *a)
{
	char path[4096];
	const char *slash = strrchr(a->at.file, '/');
	if (a->file[0] == '/' || !slash)
		return open(a->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	snprintf(path, sizeof path, "%.*s/%s", (int)(slash - a->at.file),
	    a->at.file, a->file);
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static void
start(struct run *r, struct str candidates, char **envp)
{
	r->started = true;
	r->deadline = clock_ns() + r->a->timeout;
	if (r->a->exec.n) {
		start_program(r, candidates, envp);
		return;
	}
	r->out = r->a->file ? open_beside(r->a)
			    : fcntl(r->a->fd, F_DUPFD_CLOEXEC, 3);
	if (r->out >= 0)
		return;
	cli_warn("agent %s: cannot open its evidence: %s", r->a->name.p,
	    strerror(errno));
	r->ended = true;
	r->q->silence = REASON_ERROR;
}

/* ---- reading --------------------------------------------------------- */

static void
stop_reading(struct run *r)
{
	if (r->out >= 0)
		close(r->out);
	r->out = -1;
}

/* Asks the whole group to end; it gets a moment for that. */
static void
terminate(struct run *r, const char *why)
{
	stop_reading(r);
	r->q->silence = why;
	if (!r->pid) {
		r->ended = true;
		return;
	}
	kill(-r->pid, SIGTERM);
	r->termed = true;
	r->deadline = clock_ns() + GRACE_MS * MS;
}

static void
read_some(struct run *r)
{
	char *room = buf_room(&r->q->text, READ_SIZE);
	if (!room)
		cli_die("out of memory");
	ssize_t n = read(r->out, room, READ_SIZE);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0)
		r->q->silence = REASON_ERROR;
	if (n <= 0) {
		stop_reading(r);
		r->ended = !r->pid;
		return;
	}
	r->q->text.len += (size_t)n;
	if (r->q->text.len > AGENT_OUTPUT_MAX)
		terminate(r, REASON_FLOOD);
}

/*
 * Has the program ended? It stays a zombie until its whole group was killed,
 * so that its number cannot have become somebody else's.
 */
static void
look_after(struct run *r)
{
	siginfo_t info = { 0 };
	if (!r->pid ||
	    waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
	    !info.si_pid) {
		if (r->pid && r->termed && clock_ns() >= r->deadline)
			kill(-r->pid, SIGKILL);
		return;
	}
	if (r->out >= 0)
		return; /* somebody else still holds the pipe */
	kill(-r->pid, SIGKILL);
	while (waitpid(r->pid, &r->q->status, 0) < 0 && errno == EINTR)
		;
	r->ended = true;
	bool well = WIFEXITED(r->q->status) && !WEXITSTATUS(r->q->status);
	if (!well && !r->q->silence)
		r->q->silence = REASON_ERROR;
}

/* The part behind the last newline may be half a line. */
static void
drop_tail(struct buf *b)
{
	while (b->len && b->p[b->len - 1] != '\n')
		b->len--;
}

static int
wait_ms(const struct run *runs, size_t n)
{
	int64_t now = clock_ns(), best = INT64_MAX;
	for (size_t i = 0; i < n; i++) {
		const struct run *r = &runs[i];
		if (!r->started || r->ended)
			continue;
		int64_t left = (r->deadline - now) / MS + 1;
		if (r->out < 0 && left > NAP_MS)
			left = NAP_MS;
		if (left < best)
			best = left;
	}
	if (best < 0)
		return 0;
	return best > 60000 ? 60000 : (int)best;
}

static void
poll_all(struct run *runs, size_t n)
{
	struct pollfd p[STACK_AGENTS_MAX];
	struct run *of[STACK_AGENTS_MAX];
	nfds_t k = 0;
	for (size_t i = 0; i < n; i++)
		if (runs[i].started && !runs[i].ended && runs[i].out >= 0) {
			of[k] = &runs[i];
			p[k++] = (struct pollfd){ runs[i].out, POLLIN, 0 };
		}
	if (poll(p, k, wait_ms(runs, n)) < 0)
		return;
	for (nfds_t i = 0; i < k; i++)
		if (p[i].revents)
			read_some(of[i]);
}

static size_t
start_more(struct run *runs, size_t n, unsigned jobs, struct str candidates,
    char **envp)
{
	size_t open = 0;
	for (size_t i = 0; i < n; i++)
		open += runs[i].started && !runs[i].ended;
	for (size_t i = 0; i < n && open < jobs; i++)
		if (!runs[i].started) {
			start(&runs[i], candidates, envp);
			open += !runs[i].ended;
		}
	return open;
}

void
agents_ask(const struct stack *s, struct asked *q, size_t n, unsigned jobs,
    struct str candidates, const struct incident_env *env)
{
	struct run *runs = cli_alloc(n, sizeof *runs);
	char text[3][1100];
	char **envp = make_env(env, text);
	for (size_t i = 0; i < n; i++)
		runs[i] = (struct run){
			.q = &q[i], .a = &s->agent[q[i].agent], .out = -1
		};
	while (start_more(runs, n, jobs, candidates, envp)) {
		poll_all(runs, n);
		for (size_t i = 0; i < n; i++) {
			struct run *r = &runs[i];
			if (!r->started || r->ended)
				continue;
			look_after(r);
			if (!r->ended && !r->termed &&
			    clock_ns() >= r->deadline)
				terminate(r, REASON_TIMEOUT);
		}
	}
	for (size_t i = 0; i < n; i++)
		drop_tail(&q[i].text);
	free(envp);
	free(runs);
}
