/* What the files of gpureplay run share. */
#ifndef GPUREPLAY_H
#define GPUREPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "child.h"
#include "cli.h"
#include "device.h"
#include "rule.h"
#include "signature.h"

enum {
	PINS_MAX = 8,   /* --pin */
	PARTS_MAX = 16, /* --sig */
	KEPT_MAX = 8,   /* different signatures whose records are kept */
};

struct settings {
	struct cli_common common;
	struct devices devices;
	struct rule_setup rule;
	char **command;
	const char *pin[PINS_MAX];
	size_t npins;
	const char *vendor_pin;      /* variable for known boards, or NULL */
	size_t skipped;              /* boards that were busy */
	const char *part[PARTS_MAX]; /* "stdout" or a file; none: fp records */
	size_t nparts;
	bool trust_pin, deterministic, dry_run;
	int64_t max_time, timeout; /* nanoseconds */
	const char *ledger;        /* directory, or NULL */
	const char **launcher;     /* words of --launch, or NULL */
	size_t nlauncher;
	bool far;        /* we are what a launcher started */
	uint64_t rounds; /* -n; 0: as many as are needed */
};

/* What a device did, complete rounds or not. */
struct device_count {
	uint64_t outcome[OUTCOMES];
	uint64_t pin[3]; /* processes that ended well, by enum pin */
	uint64_t strays;
};

/* A result that came up. */
struct result {
	struct u128 digest;
	struct u128 part[PARTS_MAX];
	char *file; /* its records, or NULL */
};

/* Devices that may be compared: columns of the table. */
struct group {
	size_t *member, n;
	struct rule_verdict v;
	struct rule_device *device; /* as member */
};

struct session {
	const struct settings *s;
	char *dir;       /* ours, removed at the end */
	char *sig;       /* file of the current process's signature */
	uint32_t *table; /* rounds rows: number of the result, 0 none */
	size_t rounds, cap;
	struct device_count *count;
	struct result *result;
	size_t nresults;
	struct group *group;
	size_t ngroups;
	int64_t spent;    /* nanoseconds in the rounds of the table */
	uint64_t dropped; /* rounds cut short */
	char why[160];    /* of the first process without a result */
	bool stuck;
	bool by_ledger; /* the verdict is that of many sessions */
	/* Of each device what makes it alike others; hosts tell it later. */
	char **alike;
};

/* What a process is started with; free with launch_free. */
struct launch {
	char **env;
	size_t n;
	char **argv; /* the command, or the launcher and what it starts */
	size_t nargv;
};
void
launch_make(struct launch *l, const struct session *ss, const struct device *d);
void launch_free(struct launch *l);
/* Words as a shell would take them. */
void put_words(struct buf *b, char *const *word, size_t n);

void session_open(struct session *ss, const struct settings *s);
/*
 * Runs round after round until the rule has its answer, the time is over, or
 * the user has had enough. `o` gets a record for each process if -v.
 */
void session_run(struct session *ss, struct rec_out *o);
/* One process on the only device, and its record. False: it had no end. */
bool session_once(struct session *ss, struct rec_out *o);
void session_close(struct session *ss);

void report_head(const struct session *ss, struct rec_out *o);
void report_plan(const struct session *ss, struct rec_out *o);
/* argv and environment of each device, for --dry-run. */
void report_dry(const struct session *ss, struct rec_out *o);
void report_process(const struct session *ss, struct rec_out *o, size_t device,
    const struct child_result *r, const struct signature *sig, uint32_t result);
/* Devices, first divergence, evidence and verdict; the exit status. */
int report_end(struct session *ss, struct rec_out *o, struct verdict *verdict);

/*
 * Adds the session to the ledger and lets all sessions together decide what
 * this one left open: g->v is changed. Dies if it cannot. True: it decided.
 */
bool
ledger_settle(const struct session *ss, struct group *g, struct rec_out *o);

/* An argument in (low, high], or a usage error that says the range. */
double option_number(
    const struct opt_state *o, double low, double high, const char *range);

int64_t option_duration(const struct opt_state *o);
/* --sig */
void add_part(struct settings *s, const struct opt_state *o);

int verb_exec(int argc, char **argv);
int verb_ledger(int argc, char **argv);
int verb_run(int argc, char **argv);
int verb_devices(int argc, char **argv);
int verb_switches(int argc, char **argv);

#endif
