/*
 * One process of the command: in a process group of its own, with a time
 * limit, watched for where it really runs, and nothing of it left behind.
 */
#ifndef CHILD_H
#define CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "err.h"
#include "hash.h"

#define CHILD_FLOOD (UINT64_C(4) << 30) /* bytes of signature it may write */
#define CHILD_SAID 200                  /* bytes kept of its last line */

enum outcome {
	OUTCOME_OK,      /* exit status 0 */
	OUTCOME_EXIT,    /* another exit status */
	OUTCOME_SIGNAL,  /* killed by a signal that we did not send */
	OUTCOME_TIMEOUT, /* killed by us after the time limit */
	OUTCOME_FLOOD,   /* killed by us: too much signature */
	OUTCOME_NOSIG,   /* ended well, but left no signature */
	OUTCOME_DAMAGED, /* ended well, but its signature is not whole */
	OUTCOMES,
	OUTCOME_NOEXEC,  /* could not be started: no use to go on */
	OUTCOME_STOPPED, /* the user has had enough */
	OUTCOME_STUCK,   /* could not be killed */
};
/* The words for records, up to OUTCOMES. */
extern const char *const outcome_name[];

enum pin {
	PIN_UNSEEN,   /* nothing that would tell was ever seen */
	PIN_VERIFIED, /* at every look it was where it should be */
	PIN_ELSEWHERE,
};

struct child_how {
	char **argv;
	char **env;      /* NAME=VALUE to set, ended by NULL; may be NULL */
	int cpu;         /* the core it must stay on, or -1 */
	int nvidia;      /* minor number of the board it must use, or -1 */
	int64_t timeout; /* nanoseconds */
	const char *sig; /* file of its signature, watched for size */
	const char *tee; /* file for its standard output, or NULL */
	bool hash_stdout;
};

struct child_result {
	int outcome;
	int status; /* exit status or number of the signal; errno of exec */
	int64_t ns; /* how long it took */
	enum pin pin;
	unsigned strays; /* processes it left behind, now killed */
	struct u128 out; /* of standard output */
	uint64_t out_len;
	char said[CHILD_SAID]; /* the last line on standard error */
};

/*
 * Must be called once, before child_run: takes SIGCHLD, SIGINT, SIGTERM and
 * SIGHUP, and makes us the parent of what a child leaves behind.
 */
int child_prepare(struct err *e);
/* A signal that ends the run has come. */
bool child_stopped(void);
/* Runs it to its end. An error is ours (no memory, no fork), not the child's.
 */
int
child_run(const struct child_how *how, struct child_result *out, struct err *e);

#endif
