/*
 * The gate: what `tracegate filter` does to a trace, in two ways that share
 * everything but the order of things.
 *
 *	file.c   a finished file: indexed, sorted, judged as a whole
 *	live.c   a stream: bounded history, judged as it comes
 */
#ifndef GATE_H
#define GATE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli.h"
#include "detect.h"
#include "keys.h"
#include "lanes.h"
#include "out.h"
#include "progress.h"
#include "reader.h"
#include "split.h"
#include "window.h"

/* Kept before and after an anomaly, ns. */
#define WINDOW_SIDE INT64_C(1000000000)

struct gate_settings {
	struct cli_common common;
	const char *input, *type, *baseline;
	const char *split; /* the directory */
	struct fields fields;
	int mode; /* 0: by the input, 1: live, -1: file */
	struct detect detect;
	struct window_rules rules;
	struct sync_rule *sync;
	size_t nsync;
	struct slo *slo; /* --slo GLOB=DUR */
	size_t nslo;
	const char **beat; /* --heartbeat GLOB */
	size_t nbeat;
	struct slo *steady; /* --steady GLOB=TIME */
	size_t nsteady;
	const char **peers; /* --peers GLOB */
	size_t npeers;
	const char *cost;   /* --cost: the argument that says it */
	bool all;           /* keep everything */
	int form;           /* of the trace that comes out */
	uint64_t max_bytes; /* of detail; 0: no limit */
	uint64_t memory, ring;
	int64_t history, lateness;
	uint32_t audit_ppm;
	uint64_t seed;
};

struct slo {
	const char *glob;
	int64_t ns;
};

struct counts {
	uint64_t events, bytes;          /* read */
	uint64_t shallow, shallow_bytes; /* kept always */
	uint64_t detail, detail_bytes;   /* kept for a window */
	uint64_t tested;                 /* slices that were judged */
	uint64_t episodes;               /* openings that do not overlap */
	uint64_t openings;
	uint64_t huge;            /* beyond DETECT_HUGE thresholds */
	uint64_t certain;         /* slo or baseline */
	uint64_t nest, nest_unit; /* children that outlive parents */
	uint64_t open, orphan, mismatched;
	uint64_t over;                    /* events that --max-bytes kept out */
	uint64_t late, reordered, forced; /* live */
	uint64_t gaps;                    /* missing heartbeats */
	uint64_t odd_paces;               /* --steady: stretches */
	uint64_t audited;
	uint64_t shifts;
	uint64_t untested; /* slices without a key */
	uint64_t unsplit;  /* --split: halves of pairs, in a stream */
	uint64_t uncosted; /* whose cost has no line yet, or is beyond it */
	uint64_t control_failed, control_ignored;
	bool interrupted;
	int64_t first, last; /* stamps */
	int64_t disorder;    /* largest step back, ns */
};

struct gate {
	const struct gate_settings *set;
	struct reader reader;
	struct keys keys;
	struct lanes lanes;
	struct windows windows;
	struct out out;
	struct split split; /* --split: its dir is set */
	struct progress *progress;
	uint64_t told; /* of progress: bytes of the input */
	struct rec_out *rec;
	struct counts n;
	int64_t episode_end;
	struct opening worst;
	const volatile sig_atomic_t *stop;
	bool limited; /* what is before `have` is gone already */
	int64_t have;
	bool narrow; /* windows may be narrower than WINDOW_SIDE */
	/* Told of every window that opens, for control; may be NULL. */
	void (*on_open)(void *user, const struct opening *o);
	void (*on_tick)(void *user);
	void *user;
};

/* Both read all of the input and fill n, windows and the output. */
int gate_file(struct gate *g, struct err *e);
int gate_live(struct gate *g, struct err *e);

/* One slice was slower than it may be: counts, opens a window, says so. */
struct window *gate_open(struct gate *g, const struct opening *o);
/* The class of an event, with what is no question of names. */
uint8_t gate_class(const struct gate *g, const struct event *ev, uint32_t key);
/* Now and then: how far the input was read. */
void gate_progress(struct gate *g);
/* What it cost, as a bin; 0: it does not say. */
uint8_t gate_cost(const struct gate *g, const struct event *ev);
/* Why a slice opens, and its threshold; q: what is usual for its key. */
int gate_judge(struct gate *g, const struct key *k, const struct quantiles *q,
    uint8_t cost, struct opening *o);
/* Is this normal step one of the random sample? `nth` counts them. */
bool gate_audits(const struct gate *g, uint64_t nth);
/* A baseline and --slo for a key that was just made. */
void gate_new_key(struct gate *g, uint32_t key);
/* A slice of a step or sync point: has its kind become another? */
void gate_shift(struct gate *g, struct key *k, int64_t dur, int64_t at);
/* Marks at the edges of the windows. */
void gate_marks(struct gate *g);

/* Records and the verdict; the exit status. */
int gate_report(struct gate *g);
void gate_free(struct gate *g);

#endif
