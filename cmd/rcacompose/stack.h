/*
 * A stack file: which agents there are, what each is worth for each kind of
 * entity, and how relevance is judged. Described in straightedge-stack(5).
 */
#ifndef STACK_H
#define STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "compose.h"
#include "err.h"
#include "str.h"

enum {
	STACK_AGENTS_MAX = 256,  /* names in one stack */
	STACK_SECTIONS_MAX = 64, /* kinds of entities with lines of their own */
	STACK_DEPTH_MAX = 16,    /* includes in includes */
	STACK_WORDS_MAX = 64,    /* words on a line, arguments of an agent */
	STACK_SIZE_MAX = 1 << 20, /* bytes of one file: written by people */
};

/* Where something stands, for messages and explanations. */
struct place {
	const char *file;
	unsigned line;
};

struct words {
	size_t n;
	const char **word; /* NULL behind the last */
};

struct agent {
	struct str name;
	struct words exec; /* n 0: not a program */
	const char *file;  /* NULL: not a file */
	int fd;            /* -1: not a descriptor */
	int64_t timeout;   /* ns */
	int64_t ttl;       /* ns, 0: evidence does not age */
	int64_t heartbeat; /* ns that one alive record covers, 0: its instant */
	bool absent_healthy;
	struct words kinds; /* n 0: every kind */
	double max_bound;   /* NAN: none */
	struct place at;
	bool used; /* some section or symptom names it */
};

struct item {
	enum role role;
	size_t agent;
	struct place at;
};

struct section {
	struct words kinds; /* n 0: the kinds no other section names */
	size_t n;
	struct item item[VOTES_MAX];
	unsigned quorum; /* 0: all witnesses */
	struct place at;
};

enum scope_rule {
	SCOPE_ATTACHED, /* on a path, attached to one that is, or listed */
	SCOPE_PATHS,    /* on a path or listed */
	SCOPE_ALL,      /* whatever has evidence */
};

struct stack {
	struct arena arena;
	struct agent agent[STACK_AGENTS_MAX];
	size_t nagents;
	struct section section[STACK_SECTIONS_MAX]; /* [0]: without kind */
	size_t nsections;
	size_t symptom[STACK_AGENTS_MAX], nsymptoms;
	int64_t lead, lag, skew; /* ns */
	enum scope_rule scope;
	unsigned min_flows;
	bool rivals_allowed;
	double coverage; /* share of candidates, 1: all */
	bool executes;   /* some agent has exec= */
	/* Private to the parser. */
	struct section *now;
	unsigned seen;
	struct place once[8];
};

/*
 * Parses one text; `name` is what it is called. Messages begin with "LINE: ",
 * and name a file only where it was included. The stack is released with
 * stack_free, also after a failure.
 */
int
stack_parse(struct stack *s, const char *name, struct str text, struct err *e);

/* Reads a file and what it includes, and checks who could have written it. */
int stack_read(struct stack *s, const char *path, struct err *e);
void stack_init(struct stack *s);
void stack_free(struct stack *s);

/* The lines for an entity of this kind. */
const struct section *stack_section(const struct stack *s, struct str kind);
/* Does the agent speak of this kind? */
bool agent_covers(const struct agent *a, struct str kind);
/* Index of the agent, or -1. */
int stack_agent(const struct stack *s, struct str name);

/*
 * SE_EINVAL unless the file belongs to us or root and nobody else may write
 * it: what can run programs may not come from others.
 */
int stack_trust(int fd, const char *what, struct err *e);

#endif
