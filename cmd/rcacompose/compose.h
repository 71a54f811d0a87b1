/*
 * From the answers of agents to a finding about one entity: a pure function
 * of which answers there are, so that the order of lines cannot matter.
 */
#ifndef COMPOSE_H
#define COMPOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum role { ROLE_REQUISITE, ROLE_REQUIRED, ROLE_SUFFICIENT, ROLE_OPTIONAL };
enum { ROLES = 4 };
enum answer { ANSWER_U, ANSWER_F, ANSWER_H };
enum { ANSWERS = 3 };
enum result { RESULT_UNKNOWN, RESULT_FAULTY, RESULT_HEALTHY };

/* The rules of straightedge-stack(5), in their order. */
enum rule {
	RULE_CONFLICT = 1,
	RULE_REQUISITE_CLEARS,
	RULE_MISSING_REQUISITE,
	RULE_SUFFICIENT,
	RULE_MISSING_REQUIRED,
	RULE_REQUIRED_FAULTY,
	RULE_MISSING_SUFFICIENT,
	RULE_REQUIRED_HEALTHY,
	RULE_UNPROVEN,
	RULE_NONE_FIRED,
	RULE_NO_BINDING,
};

/*
 * One answer. F answers of witnesses that go back to the same source share a
 * root and count once for the quorum.
 */
struct vote {
	unsigned char role, answer;
	uint32_t root;
};

/* What a finding depends on: nothing else, and no order. */
struct tally {
	bool has[ROLES][ANSWERS];
	unsigned witnesses; /* different roots among the required F */
};

struct opinion {
	enum result result;
	enum rule rule;
	bool accused;  /* some F from a required or sufficient line */
	bool alibi;    /* some H from a requisite line */
	bool observed; /* some binding line answered F or H */
};

/* The most votes about one entity: lines of one section of a stack. */
enum { VOTES_MAX = 64 };

struct tally tally_of(const struct vote *v, size_t n);
/* quorum 0: every witness must answer. */
struct opinion compose(const struct tally *t, unsigned quorum);

const char *result_name(enum result r);
const char *answer_name(enum answer a);
const char *role_name(enum role r);
const char *rule_name(enum rule r);

/* Does a vote of this role and answer decide under the rule that matched? */
bool rule_decides(enum rule r, enum role role, enum answer answer);

/*
 * Could the lines not yet heard, `left[role]` of each role, change the
 * entity's (result, accused) pair, whatever they answer?
 */
bool compose_open(
    const struct tally *known, const unsigned left[ROLES], unsigned quorum);

/*
 * The fewest unknown votes that together could change the result: their
 * indices in `set`, their number returned; 0: nothing could.
 */
size_t compose_need(
    const struct vote *v, size_t n, unsigned quorum, size_t set[VOTES_MAX]);

#endif
