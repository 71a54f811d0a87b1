/* Starting the command as it would have been started without us. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "err.h"

/* The file that execvp would run: malloced, or NULL with errno set. */
char *launch_find_dup(const char *command);

/*
 * SE_EUNSUP if the program gains rights by being run (setuid, setgid, file
 * capabilities): the kernel would drop our runtime or our tracing.
 */
int launch_check(const char *program, struct err *e);

struct launch {
	char **command;
	const char *program;
	bool as_root;
	bool quiet; /* standard input and output are /dev/null */
	bool trace; /* PTRACE_TRACEME in the child */
	bool wait;  /* hold the child until launch_go() */
	char **env; /* NAME=VALUE to add, or NULL */
	int close;  /* descriptor the command must not have, 0: none */
	/* set by launch_start */
	pid_t pid;
	int go, failed; /* pipes */
};

/* Forks. The child waits if asked to, then executes the program. */
int launch_start(struct launch *l, struct err *e);
/* Lets a waiting child go on. 0, or the errno of its exec. */
int launch_go(struct launch *l);

/* Exit status for a wait status: 128 + signal for a killed command. */
int launch_status(int status);

/* While the command runs, keyboard signals are its affair. */
void launch_ignore_keys(void);

#endif
