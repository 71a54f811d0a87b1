/*
 * Asking the agents of a stack: programs, files and descriptors. Programs run
 * without a shell, each in its own process group, all at once, with a time
 * limit and a limit on what they may print.
 */
#ifndef AGENTS_H
#define AGENTS_H

#include "buf.h"
#include "stack.h"

/* What an agent may print: evidence about 60,000 entities. */
#define AGENT_OUTPUT_MAX (16u << 20)

struct asked {
	size_t agent;
	struct buf text;     /* whole lines only */
	const char *silence; /* why what it did not say is unknown; NULL: it
				ended well */
	int status;          /* as from waitpid, of a program */
};

struct incident_env {
	const char *id;
	char start[40], end[40]; /* seconds since the epoch; may be empty */
};

/* Has the agent a source of its own? */
bool agent_has_source(const struct agent *a);

/*
 * Asks the n agents in `q` (their .agent is set) at the same time; at most
 * `jobs` programs run at once. `candidates` is what programs get on standard
 * input, one entity a line.
 */
void agents_ask(const struct stack *s, struct asked *q, size_t n, unsigned jobs,
    struct str candidates, const struct incident_env *env);

#endif
