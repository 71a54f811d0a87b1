/*
 * A rules file: one cause a line, with a condition over facts of a slow
 * period; see tracegate-rules(5). Reading it evaluates nothing.
 */
#ifndef RULES_H
#define RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "err.h"
#include "src.h"
#include "str.h"

enum {
	RULES_MAX = 256,
	RULE_NODES_MAX = 128,  /* conditions and operators of a rule */
	RULE_DEPTH_MAX = 32,   /* operators that wait for one another */
	RULE_LINE_MAX = 16384, /* bytes */
	SETS_MAX = 56,         /* of names: a bit of a word each */
	PATTERNS_MAX = 512,    /* in all sets together */
	WORD_MAX = 64,         /* bytes of a cause, a set, a fact */
};

/* What a fact is measured in, which decides how its values are written. */
enum unit {
	UNIT_TIME,   /* 50ms; ns here */
	UNIT_SHARE,  /* 10%; 0 to 1 here */
	UNIT_NUMBER, /* 2.5 */
};

struct fact_kind {
	const char *name;
	enum unit unit;
	bool of_set;      /* written NAME.SET */
	const char *need; /* what would make it known */
};

/* Ended by a NULL name. The index is the number of the fact. */
extern const struct fact_kind fact_kinds[];

enum { NO_SET = -1 };

enum node_op { NODE_AND, NODE_OR, NODE_NOT, NODE_TEST };

/* An expression in postfix order; AND and OR take two operands. */
struct node {
	uint8_t op;
	int8_t set; /* of the fact, or NO_SET */
	uint8_t fact;
	bool with_low, with_high; /* the bounds themselves are inside */
	bool outside;             /* != : what is not between them */
	double low, high;
};

struct rule {
	struct str cause;
	struct node *node;
	uint32_t n, line;
	uint32_t tier; /* rules of one tier have equal rank */
};

struct name_set {
	struct str name;
	uint32_t first, n; /* in pattern */
};

struct pattern {
	struct str glob;
	bool category; /* of the event's category, not of its name */
};

struct rules {
	struct rule *rule;
	uint32_t n;
	struct name_set set[SETS_MAX];
	uint32_t nsets;
	struct pattern pattern[PATTERNS_MAX];
	uint32_t npatterns;
	struct arena arena;
};

/* Takes `src`. SE_EFORMAT begins with the line: "7: expected ...". */
int rules_read(struct rules *r, struct src *src, struct err *e);
void rules_free(struct rules *r);

/* The sets that a category and a name belong to, a bit each. */
uint64_t rules_sets(const struct rules *r, struct str cat, struct str name);
/* The number of a set, or NO_SET. */
int rules_set(const struct rules *r, const char *name);
bool rule_names(const struct rule *rule, int fact);

/* Three values: what is not known decides nothing. */
enum truth { TRUTH_NO, TRUTH_YES, TRUTH_UNKNOWN };

struct fact {
	bool known;
	double v;
};

/* Facts by number and set. */
typedef struct fact fact_get(void *user, int fact, int set);

enum truth rule_test(const struct rule *rule, fact_get *get, void *user);

#endif
