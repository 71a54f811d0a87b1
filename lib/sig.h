/*
 * Where a program's fingerprints are wanted: what the environment variable
 * STRAIGHTEDGE_SIG says. "fd:N" is an open descriptor; anything else is the
 * path of a file, to which each writer appends whole streams.
 */
#ifndef SIG_H
#define SIG_H

#include "err.h"

#define SIG_VARIABLE "STRAIGHTEDGE_SIG"

/* A descriptor of the caller's own, to be closed. */
int sig_open(const char *where, int *fd, struct err *e);

#endif
