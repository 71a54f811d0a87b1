/*
 * Evidence of many runs: a directory with a file for each session, which is a
 * small record stream, renamed into place and never changed.
 */
#ifndef LEDGER_H
#define LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "err.h"
#include "map.h"
#include "rule.h"

enum {
	LEDGER_SESSIONS_MAX = 1 << 20,
	LEDGER_ROWS_MAX = 1 << 24,
	LEDGER_BYTES_MAX = 4 << 20, /* of one file: 1024 devices take 300 KiB */
};

struct ledger_device {
	const char *id;     /* vendor and UUID: what the board is */
	const char *entity; /* where it was last */
	int64_t seen;       /* time of that session */
	int64_t reset;      /* what is older does not count */
	uint64_t sessions;
};

/* A row as it was read. */
struct ledger_row {
	struct rule_row rule;
	int64_t time;
	bool pinned;
	uint64_t failed;
	size_t build; /* number of its text */
};

struct ledger {
	struct ledger_device *device;
	size_t ndevices;
	struct ledger_row *row;
	size_t nrows, cap;
	size_t nworkloads;
	uint64_t sessions, duplicates;
	uint64_t bad;                   /* files that are no whole session */
	struct rule_standing *standing; /* by device, from ledger_judge */
	struct map ids, workloads, builds, seen;
	struct arena arena;
};

/* Reads every session. Bad ones are said and counted. */
int ledger_read(struct ledger *l, const char *dir, struct err *e);
int
ledger_judge(struct ledger *l, const struct rule_setup *setup, struct err *e);
/* The number of the device with this id, or SIZE_MAX. */
size_t ledger_find(const struct ledger *l, const char *id);
/*
 * Clean processes of a device on one workload and build; 0 if one diverged or
 * failed there, or a session of the workload is void.
 */
uint64_t ledger_clean(const struct ledger *l, size_t device,
    const char *workload, const char *build);
void ledger_free(struct ledger *l);

struct rec_out;
/*
 * Starts a new session file, whose head is written; records go to *o. Creates
 * the directory. ledger_commit puts it in place.
 */
struct ledger_file {
	char *temp, *path;
	int fd;
	struct rec_out *o;
};
int ledger_begin(
    struct ledger_file *f, const char *dir, int64_t time, struct err *e);
int ledger_commit(struct ledger_file *f, struct err *e);

#endif
