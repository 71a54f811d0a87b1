/* What the parts of fpdiff share. */
#ifndef FPDIFF_H
#define FPDIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "align.h"
#include "cli.h"
#include "fp.h"
#include "mask.h"
#include "rec.h"
#include "select.h"
#include "verdict.h"

#define REASON_CONDITIONS_DIFFER "conditions-differ"
#define REASON_INCOMPARABLE "incomparable"

struct settings {
	struct cli_common common;
	struct select select;
	struct mask *mask; /* NULL: none */
	struct mask *map;
	uint64_t window;
	bool first;           /* stop at the first divergence */
	bool tensors;         /* compare the data itself */
	bool plot;            /* print the map of ranks and steps */
	const char *html;     /* write a page there, or NULL */
	bool follow;          /* the operands are still written */
	struct rec_out *live; /* --follow: written out before each wait */
	const char *step;     /* tables: the column that is the step */
	const char *operand[2];
	/* --reruns */
	bool reruns, learn, combine;
	int across; /* a place, or -1 */
	double alpha;
	const char **ref, **run;
	size_t nrefs, nruns;
};

/* ---- operand.c: what the user named ------------------------------------ */

enum operand_kind {
	OPERAND_RECORDS = 0,
	OPERAND_TENSORS = 1,
	OPERAND_TABLE = 2, /* scalars by step */
	OPERAND_BYTES = 3, /* one file of no known format */
};

struct operand;
struct operand *operand_open(const struct settings *s, const char *name);
void operand_close(struct operand *o);
/* Streams that are one run, in the order of their ranks. */
size_t operand_parts(const struct operand *o);
/* Is it a directory of them? Then all ranks should be there. */
bool operand_is_run(const struct operand *o);
const char *operand_part_name(const struct operand *o, size_t i);
bool operand_part_rank(const struct operand *o, size_t i, uint64_t *rank);
struct src *operand_part_open(struct operand *o, size_t i);
uint64_t operand_skipped(const struct operand *o);
/*
 * Once parts of both are open: dies unless they can have something in common.
 * Plain bytes are what is left when nothing else fits, such as records whose
 * beginning is damaged; beside anything else that is no answer.
 */
void operand_check_pair(const struct operand *a, const struct operand *b);

/* ---- entry.c: one record --------------------------------------------------
 */

/* One record, by what is compared. */
struct entry {
	struct u128 key;   /* match key */
	uint64_t boundary; /* the same without io */
	uint64_t name;     /* hash of the name alone */
	uint64_t form;     /* dtype, shape ...: unequal is incomparable */
	struct u128 value;
	bool input;       /* io=in or io=param */
	bool is_volatile; /* a scalar that changes by nature */
	struct fp_u64 seq;
	struct str step, rank, file;
	struct str raw;
	uint64_t line;
};

/* Of a record that was parsed; the texts are borrowed. No key, no value. */
void entry_place(struct entry *e, const struct fp *f, struct str line);
/* Key, name, form and value too; false: out of memory. */
bool entry_value(struct entry *e, const struct fp *f, struct buf *scratch);
/* Only for lines that were parsed before. `undone` has room for the line. */
void entry_parse(struct str raw, struct fp *f, struct rec *rec, char *undone);
/* The step, if it is a number. */
bool entry_step(const struct entry *e, uint64_t *step);
/* A copy of an entry with its line; free() it. */
struct entry *entry_dup(const struct entry *e);

/* ---- condition.c: what the heads say it was made with ------------------ */

enum {
	CONDITIONS = 2,
	CONDITIONS_MAX = 64, /* different values of one condition */
};

struct conditions {
	struct str value[CONDITIONS][CONDITIONS_MAX];
	size_t n[CONDITIONS];
};

void conditions_take(struct conditions *c, const struct rec *head);
/*
 * One that both know and that is not the same, or NULL. What one side does
 * not say is not known to differ.
 */
const char *
conditions_differ(const struct conditions *a, const struct conditions *b);
void conditions_free(struct conditions *c);

/* ---- sorted.c: streams that were sorted -------------------------------- */

/*
 * The source, or one of its text put back in order, which lies in `to`. *lost
 * becomes true if there is no seq by which to do it.
 */
struct src *
sorted_undo(struct src *src, const char *name, struct buf *to, bool *lost);

/* ---- side.c: an operand, record by record ------------------------------ */

struct side;

struct side *side_open(const struct settings *s, int which);
/* Begins again with records made of what was read; borrows the text. */
void side_over(struct side *side, struct str text);
void side_close(struct side *side);
const char *side_name(const struct side *side);
/* Dies unless the two can be compared: see operand_check_pair. */
void side_check_pair(const struct side *a, const struct side *b);
/*
 * The next line that is an fp or scalar record; false at the end. Bad lines
 * are reported and counted on the way. Valid until the next call.
 */
bool side_line(struct side *side, struct str *line);
/*
 * Reads the current line: 1, 0 if it is not selected, -1 if it is bad. The
 * texts of *f and e->raw are valid until the next side_line.
 */
int
side_entry(struct side *side, struct str line, struct fp *f, struct entry *e);
/* Takes the next line if it is the current one of the other side. */
bool side_twin(struct side *side, const struct side *other, struct str line);
/* The current line, which both sides have: key, form and value are not set. */
int side_twin_entry(struct side *side, struct str line, struct entry *e);
/* Counts a line as bad that was read, and yet cannot be used. */
void
side_bad(struct side *side, uint64_t line, const char *what, struct str name);
/* The other side had the same bad line, and it was not looked at here. */
void side_same_bad(struct side *side);
/* Records in the order of execution, or a set of names? */
bool side_is_exec(const struct side *side);
/* It was sorted, and has no seq by which to put it back. */
bool side_order_lost(const struct side *side);
/* Adds what is wrong with the input; call at the end. */
void side_damage(const struct side *side, struct damage *d);
bool side_is_whole(const struct side *side);
/*
 * Ranks that the heads promise (world=) and that have none, where the input
 * holds several. side_damage counts them among what was skipped.
 */
uint64_t side_absent_ranks(const struct side *side);
bool side_is_filtered(const struct side *side);
/* Heads that were seen: do they say other conditions? NULL: no. */
const char *side_conditions_differ(const struct side *a, const struct side *b);
/* Time of the last head, or false. */
bool side_time(const struct side *side, int64_t *ns);
/* The last head said that all replicas see the same inputs. */
bool side_inputs_replicated(const struct side *side);
/* Where the records of the current head were made, or empty. */
struct str side_host(const struct side *side);
/* Counts heads and files, so that a sequence may begin again. */
uint64_t side_part(const struct side *side);
/* Streams come in the order of ranks, and this rank's turn is over. */
bool side_passed(const struct side *side, struct str rank);

/* ---- twin.c: lines that both sides have ------------------------------- */

struct twin;
struct twin *twin_new(void);
void twin_free(struct twin *t);
/* Lines like this one, which was parsed without complaint, will be known. */
void twin_learn(struct twin *t, const struct rec *rec);
/*
 * True: the line is like one that was learned, and *f has its name, place and
 * seq, nothing else. False: it has to be parsed.
 */
bool twin_fits(struct twin *t, struct str line, struct fp *f);

/* Two lines equal but for the value of seq: *seq becomes that of b. */
bool twin_but_seq(struct str a, struct str b, struct fp_u64 *seq);

/* ---- report.c: what is printed ----------------------------------------- */

enum diff_class {
	DIFF_DIFFERENT, /* set order */
	DIFF_FIRST,
	DIFF_CONSEQUENCE,
	DIFF_ISOLATED,
	DIFF_UNMATCHED,
	DIFF_CONTAINER, /* metadata that the other side's format has not */
	DIFF_INCOMPARABLE,
	DIFF_MASKED,
	DIFF_UNSTABLE,
	DIFF_TAINTED,
	DIFF_SEEN, /* --follow: came, and is not aligned yet; not counted */
	DIFF_CLASSES,
};

extern const char *const diff_class_name[DIFF_CLASSES];

struct tally {
	uint64_t n[DIFF_CLASSES];
	uint64_t equal;
	uint64_t alone[2]; /* unmatched, by side */
	/* metadata of containers (kv:KEY), by side: all, without partner */
	uint64_t meta[2], meta_alone[2];
	uint64_t missing; /* ranks that one side lacks */
	uint64_t missing_records;
};

/* Matched pairs whose values differ and no mask covers. */
uint64_t tally_different(const struct tally *t);

struct chart;
struct page;

struct report {
	struct rec_out *out;
	struct chart *chart; /* --plot, --html; or NULL */
	struct page *page;   /* --html, or NULL */
	const struct settings *s;
	struct tally tally;
	uint64_t shown;              /* differences printed so far without -v */
	const char *result, *reason; /* of the verdict, for `end` and metrics */
	uint64_t skipped;            /* the same */
	/* scratch: two records side by side */
	struct rec rec[2];
	struct fp fp[2];
	struct buf undone[2], text;
};

struct diff {
	enum diff_class class;
	const struct entry *a, *b; /* one may be NULL */
	bool at_b;                 /* the place is that of b */
	const char *role;          /* or NULL */
	const struct mask_rule *rule;
	const char *note;
};

void report_head(struct report *r, bool exec);
void report_free(struct report *r);
void report_diff(struct report *r, const struct diff *d);
/* The same for the page, as far as there is room. */
void report_keep(struct report *r, const struct diff *d);
/* A record near a divergence: at = -1 is the one before. */
void report_near(struct report *r, int at, struct str raw, const char *result);
/* What is certified of one rank. */
struct prefix {
	struct str rank; /* p NULL: none */
	uint64_t records, unmatched;
	struct str last; /* lines: the last one certified */
	struct str next; /* and the first that differs, or empty */
};
void report_prefix(struct report *r, const struct prefix *p, bool print);
/* --plot: the map, as comments. */
void report_map(struct report *r);
void report_counts(struct report *r);

/* ---- the comparisons ---------------------------------------------------- */

struct outcome {
	struct verdict v;
	/* the divergence that the verdict names */
	const struct entry *a, *b;
	bool at_b;       /* its place is that of b */
	struct str name; /* or only this, of the one tensor that differs */
	bool prefix_given;
	uint64_t prefix;
	bool time_given; /* B says when it was made */
	int64_t time;
	/* who it was, where that is known */
	const char *cause;
	struct str entity;
	char bound[32]; /* of a clean result */
};

/*
 * Everything but `end`, the page included. With -E what rcacompose wants to
 * know comes first. Returns the status: STATUS_NONE also where the page could
 * not be written.
 */
int report_verdict(struct report *r, const struct outcome *o);

/* Execution order: exec.c; sets of names: set.c. They print and judge. */
int exec_compare(struct report *r, struct side *a, struct side *b);
/* The same without a word: the first divergence of every rank. */
struct root {
	const struct entry *a, *b;
	const char *role;
	bool certain; /* its inputs were recorded, and agree */
	bool tainted;
	bool step_given;
	uint64_t step;
};
typedef void exec_root(void *user, const struct root *root);
int exec_roots(struct report *r, struct side *a, struct side *b,
    exec_root *found, void *user, struct outcome *o);
int set_compare(struct report *r, struct side *a, struct side *b);
/* Runs against references: reruns.c. */
int reruns_compare(struct report *r);
/* once.c: dies if --reruns or --learn got one run twice, or a copy of it. */
void once_check(const struct settings *s);
/* Good runs among themselves: learn.c. */
int learn_compare(struct report *r);
/* Shards added up, then as sets: combine.c. */
int combine_compare(struct report *r);
/* Replicas inside one run: across.c. */
int across_compare(struct report *r);
/* Data against data: tensors.c. */
int tensors_compare(struct report *r);

/* judge.c: counts and damage to a verdict. */
struct judged {
	bool order_broken;  /* not in execution order */
	bool sequence_fell; /* that is sure: not only the steps fall */
	bool window_broken; /* ranks too far apart */
	bool tainted;       /* every difference follows an unstable one */
};
/*
 * Of tensors, whose damage is in the verdict already. Unmatched: a whole file
 * lacks some.
 */
void judge_tensors(struct report *r, struct outcome *o, bool unmatched);
void judge(struct report *r, const struct side *a, const struct side *b,
    const struct judged *j, struct outcome *o);

#endif
