/*
 * The parts of `rcacompose score`: incidents with labels are read (corpus.c),
 * judged and counted (card.c), and two stacks compared (gate.c).
 */
#ifndef SCORE_H
#define SCORE_H

#include "explain.h"
#include "judge.h"
#include "map.h"

enum {
	REASONS_MAX = 256,      /* different reasons that are counted */
	ALLOWED_MAX = 1024,     /* --allow-fp */
	NAMES_MAX = 1 << 20,    /* files of one directory */
	CLUSTERS_MAX = 1 << 22, /* of --cluster */
};

struct score_settings {
	struct cli_common common;
	const char *stack, *vs, *cluster;
	bool unlabelled;
	double max_drop;
	const char *allowed[ALLOWED_MAX];
	size_t nallowed;
	char **operand;
	int noperands;
};

/* How often something was why. */
struct tally_row {
	const char *name;
	uint64_t n;
};

/* Incidents that share a cause are one observation, and its worst counts. */
struct clusters {
	struct map names; /* value of the key -> bits */
	struct arena arena;
	uint64_t alone; /* incidents without the key: each its own */
	uint64_t n, wrong, guilty, missed;
};

/* One stack and its score. */
struct side {
	struct stack *stack;
	struct facts facts;
	struct weigher weigher;
	uint64_t culprits, innocents; /* labelled so */
	uint64_t wrong;               /* incidents with a false culprit */
	uint64_t wrong_clean; /* of them, those where nobody was guilty */
	uint64_t named, named_wrong;
	uint64_t hits, parts; /* all culprits named; some of several */
	uint64_t cleared;     /* innocent said, and right */
	uint64_t wrong_clear; /* innocent said of the guilty */
	uint64_t unknown_guilty, unknown_clean;
	struct tally_row reason[REASONS_MAX];
	size_t nreasons;
	uint64_t by_agent[STACK_AGENTS_MAX];
	struct clusters clusters;
	/* The incident at hand. */
	bool correct, false_culprit, answered;
	struct buf said;
};

struct score {
	const struct score_settings *s;
	struct side side[2]; /* 0: -s, 1: --vs */
	size_t nsides;
	struct inputs inputs;
	struct damage general, all;
	struct rec_out *out;
	uint64_t unlabelled, undecided, bad_incidents;
	/* --vs: of the incidents that only one stack got right, and so on. */
	uint64_t b, c, new_false, new_false_allowed;
	uint64_t fp_b, fp_c, un_b, un_c;
};

/* Reads what an operand holds, a stream or a directory; false: nothing. */
bool corpus_read(struct score *sc, const char *path);

/* Counts one judged incident. */
void card_count(struct side *s, struct judgement *j);
/* One rate with its interval; `key` may be NULL. */
void card_rate(struct rec_out *o, const char *name, uint64_t k, uint64_t n,
    const char *key, const char *value);
/* Descending by count; for qsort of tally rows. */
int card_by_count(const void *x, const void *y);
void card_print(struct score *sc);
void card_free(struct side *s);

/* Both stacks judged one incident: what changed? */
void gate_compare(struct score *sc);
/* Pass or fail; returns the status. */
int gate_print(struct score *sc, const char **result, const char **reason);

/* --unlabelled: the verdicts of logs. Returns the status. */
int unlabelled_score(struct score *sc);

#endif
