/* Starting the command: see launch.h. */
#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "num.h"

extern char **environ;

static char *
joined_dup(const char *dir, size_t len, const char *name)
{
	size_t n = len + strlen(name) + 3;
	char *p = malloc(n);
	if (p)
		snprintf(
		    p, n, "%.*s/%s", len ? (int)len : 1, len ? dir : ".", name);
	return p;
}

char *
launch_find_dup(const char *command)
{
	struct stat st;
	if (strchr(command, '/'))
		return access(command, F_OK) ? NULL : strdup(command);
	const char *path = getenv("PATH");
	struct str rest = str_c(path ? path : "/bin:/usr/bin"), dir;
	int why = ENOENT;
	while (str_cut(&rest, ':', &dir)) {
		char *p = joined_dup(dir.p, dir.len, command);
		if (p && !stat(p, &st) && S_ISREG(st.st_mode)) {
			if (!access(p, X_OK))
				return p;
			why = EACCES;
		}
		free(p);
	}
	errno = why;
	return NULL;
}

int
launch_check(const char *program, struct err *e)
{
	struct stat st;
	if (stat(program, &st))
		return err_sys(e, "cannot look at it");
	if (st.st_mode & (S_ISUID | S_ISGID) && S_ISREG(st.st_mode))
		return err_set(e, SE_EUNSUP,
		    "is setuid or setgid: run under us it would lose its "
		    "rights; count a copy without the bit");
	if (getxattr(program, "security.capability", NULL, 0) > 0)
		return err_set(e, SE_EUNSUP,
		    "has file capabilities: run under us it would lose them; "
		    "count a copy without");
	return 0;
}

/* Under sudo the command belongs to who called sudo. */
static int
step_down(void)
{
	const char *u = getenv("SUDO_UID"), *g = getenv("SUDO_GID");
	const char *name = getenv("SUDO_USER");
	uint64_t uid, gid;
	if (geteuid() != 0 || !u || !g)
		return 0;
	if (num_u64(str_c(u), 0, UINT32_MAX - 1, &uid, NULL) ||
	    num_u64(str_c(g), 0, UINT32_MAX - 1, &gid, NULL))
		return 0;
	int r = name ? initgroups(name, (gid_t)gid) : setgroups(0, NULL);
	if (r || setgid((gid_t)gid) || setuid((uid_t)uid))
		return errno;
	return 0;
}

static void
child(struct launch *l, int go, int failed)
{
	char c;
	if (l->close)
		close(l->close);
	if (l->quiet) {
		int null = open("/dev/null", O_RDWR);
		dup2(null, 0);
		dup2(null, 1);
	}
	for (char **v = l->env; v && *v; v++)
		putenv(*v);
	int why = l->as_root ? 0 : step_down();
	if (l->trace)
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	while (!why && l->wait && read(go, &c, 1) < 0 && errno == EINTR)
		;
	if (!why) {
		execve(l->program, l->command, environ);
		why = errno;
		/* A script without #! is run by sh, as execvp would. */
		if (why == ENOEXEC) {
			execvp(l->command[0], l->command);
			why = errno;
		}
	}
	ssize_t n = write(failed, &why, sizeof why);
	_exit(n > 0 && why == ENOENT ? 127 : 126);
}

int
launch_start(struct launch *l, struct err *e)
{
	int go[2], failed[2];
	if (pipe2(go, O_CLOEXEC) || pipe2(failed, O_CLOEXEC))
		return err_sys(e, "cannot make a pipe");
	fflush(NULL);
	l->pid = fork();
	if (l->pid < 0)
		return err_sys(e, "cannot fork");
	if (!l->pid) {
		close(go[1]);
		close(failed[0]);
		child(l, go[0], failed[1]);
	}
	close(go[0]);
	close(failed[1]);
	l->go = go[1];
	l->failed = failed[0];
	return 0;
}

int
launch_go(struct launch *l)
{
	int why = 0;
	close(l->go);
	ssize_t n;
	do
		n = read(l->failed, &why, sizeof why);
	while (n < 0 && errno == EINTR);
	close(l->failed);
	return n == (ssize_t)sizeof why ? why : 0;
}

int
launch_status(int status)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : 125;
}

static void
nothing(int sig)
{
}

void
launch_ignore_keys(void)
{
	/* A handler, not SIG_IGN: that would be inherited by an exec. */
	struct sigaction a = { .sa_handler = nothing, .sa_flags = SA_RESTART };
	sigaction(SIGINT, &a, NULL);
	sigaction(SIGQUIT, &a, NULL);
}
