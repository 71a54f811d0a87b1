/*
 * A deep tracer in another process: ways to turn it on and off, behind one
 * table. Each waits no longer than a timeout and says what came of it.
 */
#ifndef TRACER_H
#define TRACER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "err.h"

enum { TRACER_WORDS = 64 }; /* of a command */

struct tracer {
	const struct tracer_kind *kind;
	const char *ctl, *ack; /* perf, fifo */
	pid_t pid;
	int on_signal, off_signal;
	char *on_words[TRACER_WORDS + 1], *off_words[TRACER_WORDS + 1];
	int ctl_fd, ack_fd, pid_fd; /* -1: not open */
	int64_t timeout;            /* ns */
};

struct tracer_kind {
	const char *name;
	/* Finds the tracer. */
	int (*open)(struct tracer *t, struct err *e);
	/* 0 once it is known to be on (or off), as far as it can be known. */
	int (*set)(struct tracer *t, bool on, struct err *e);
};

extern const struct tracer_kind tracer_perf, tracer_fifo, tracer_signal,
    tracer_command;

int tracer_open(struct tracer *t, struct err *e);
int tracer_set(struct tracer *t, bool on, struct err *e);
void tracer_close(struct tracer *t);

/* Splits at blanks; false if there are too many words. Keeps `text`. */
bool tracer_words(char **words, char *text);

#endif
