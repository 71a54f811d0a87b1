/*
 * Progress on stderr for anything over a second, and a status line whenever
 * SIGUSR1 comes. A thread of its own does both, so that it also works while
 * the command waits for input.
 */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli.h"

struct progress;

/*
 * Starts reporting: at a terminal, or always with --progress=always; with -q
 * only on SIGUSR1, which is blocked from here on. Call before other threads
 * are started: they inherit the signal mask. NULL (fine for all calls) if
 * there is no thread to be had.
 */
struct progress *progress_start(const struct cli_common *c);
/* How many bytes there will be, once somebody knows. */
void progress_total(struct progress *p, uint64_t bytes);
void progress_bytes(struct progress *p, uint64_t n);
void progress_items(struct progress *p, uint64_t n);
/* Wipes the line and ends the thread. */
void progress_stop(struct progress *p);

#endif
