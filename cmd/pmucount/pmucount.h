/* What the verbs of pmucount share. */
#ifndef PMUCOUNT_H
#define PMUCOUNT_H

#include <sys/types.h>

#include "cli.h"
#include "event.h"
#include "result.h"
#include "session.h"

enum { PATTERNS_MAX = 64 };

/* What is asked of a run. */
struct settings {
	struct cli_common common;
	const char *pattern[PATTERNS_MAX]; /* -f */
	size_t npatterns;
	struct event_set events; /* empty: the backend's own choice */
	const char *backend;     /* NULL: auto */
	uint64_t max_steps;
	bool skip_callees, as_root, serialize;
	bool quiet_command; /* its input and output are /dev/null */
	uint64_t gate_n, gate_ns;
	char **command; /* ends with NULL */
	pid_t attach;   /* 0: run `command` */
	int64_t for_ns; /* attach: how long */
};

/* Exit statuses of trouble of our own, as in env(1). */
enum {
	STATUS_OWN = 125,
	STATUS_NOEXEC = 126,
	STATUS_NOTFOUND = 127,
};

/*
 * One way to count. `usable` says in one line why not (SE_EUNSUP and the
 * like), for this program or, with NULL, at all. `count` runs the command to
 * its end and fills the result; its wait status goes to r->status.
 */
struct backend {
	const char *name, *what;
	int (*usable)(const struct settings *s, const char *program,
	    struct object *o, struct err *e);
	int (*count)(const struct settings *s, const char *program,
	    struct result *r, struct err *e);
};

extern const struct backend backend_sled, backend_uprobe, backend_step;
/* In order of preference, ended by NULL. */
extern const struct backend *const backends[];

/* The first usable backend, or the one named; refusals become caveats. */
const struct backend *backend_choose(const struct settings *s,
    const char *program, struct result *r, struct err *e);

/* Is the function asked for? Without -f all are. */
bool is_wanted(const struct settings *s, const struct func *f);

/* The same, but without -f none is. */
bool is_named(const struct settings *s, const struct func *f);

/* Runs the command under the settings; records are the caller's. */
int count_command(const struct settings *s, struct result *r, struct err *e);

/* Options of run, attach and diff that say what to count. */
// clang-format off
enum {
	OPT_EVENT = OPT_OWN, OPT_MAX_STEPS, OPT_SKIP_CALLEES, OPT_AS_ROOT,
	OPT_SERIALIZE, OPT_GATE, OPT_FOR,
	OPT_VERB, /* verbs number theirs from here */
};
#define OPT_COUNT \
	{ 'f', "function", "GLOB", "count these (repeatable; default all)" }, \
	{ OPT_EVENT, "event", "LIST", "counters, comma separated" }, \
	{ 'b', "backend", "NAME", "auto, sled, uprobe or step" }, \
	{ OPT_MAX_STEPS, "max-steps", "N", "step: stop stepping after N" }, \
	{ OPT_SKIP_CALLEES, "skip-callees", NULL, \
	    "step: only the functions' own instructions" }, \
	{ OPT_SERIALIZE, "serialize", NULL, \
	    "wait for older instructions before a read" }, \
	{ OPT_AS_ROOT, "as-root", NULL, "under sudo: do not step down" }
// clang-format on

/* Takes an option of OPT_COUNT; false if it is none. */
bool settings_option(struct settings *s, int id, const struct opt_state *o);

/* The records of a result to a descriptor; 0, or it has said why not. */
int write_result(
    const struct settings *s, const struct result *r, bool all, int fd);

int verb_run(int argc, char **argv);
int verb_attach(int argc, char **argv);
int verb_report(int argc, char **argv);
int verb_diff(int argc, char **argv);
int verb_list(int argc, char **argv);

#endif
