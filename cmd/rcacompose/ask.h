/*
 * Asking the agents of a stack about an incident: who has a source is asked,
 * with --lazy only while the answer could matter. How programs are run is
 * agents.h.
 */
#ifndef ASK_H
#define ASK_H

#include "input.h"
#include "judge.h"

struct asking {
	const struct stack *stack;
	struct facts *facts;
	struct weigher *weigher;
	struct inputs *inputs;
	const struct policy *policy;
	unsigned jobs;
	bool lazy;
};

/*
 * All at once, or with .lazy one after the other in the order of the stack,
 * each with the full list of candidates. Symptom witnesses are always asked.
 */
void ask_agents(const struct asking *k, struct damage *d);
/* Judges what is known by now, or dies. */
void
ask_judge(const struct asking *k, struct judgement *j, const struct damage *d);

#endif
