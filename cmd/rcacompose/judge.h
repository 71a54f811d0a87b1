/*
 * One incident, judged: candidates by scope, a finding about each, what folds
 * into what, and the row of the table that applies.
 */
#ifndef JUDGE_H
#define JUDGE_H

#include "buf.h"
#include "facts.h"
#include "table.h"
#include "verdict.h"
#include "weigh.h"

struct finding {
	int32_t entity; /* the root of its aliases */
	const struct section *section;
	size_t n; /* lines of the section that apply to its kind */
	const struct item **item;
	struct reply *reply;
	struct vote *vote;
	struct opinion opinion;
	bool background; /* some binding unknown is an older fault */
	bool excused;    /* all binding unknowns are */
	bool folded;     /* its parent answers for it */
	bool counted;    /* faulty, not folded, not the twin of another */
	bool silent;     /* an unknown parent of a faulty one */
	int32_t twin;    /* finding of the other direction, also faulty */
	uint64_t stamp;  /* scratch: the walk that met it last */
};

struct judgement {
	struct facts *facts;
	struct weigher *weigher;
	struct arena *arena;
	struct finding *finding;
	size_t n, outside; /* outside: entities with evidence, out of scope */
	size_t lines;      /* of evidence, before some were doubled */
	struct reply *symptom; /* of stack->symptom[i], all flows together */
	struct scene scene;
	enum row row;
	int32_t culprit; /* the finding, for ROW_CULPRIT */
	uint64_t walks;  /* over the children of some parent */
};

/*
 * Judges what the facts hold. `damage` and `policy` say whether the input can
 * show an absence. 0, or SE_ENOMEM.
 */
int judge(struct judgement *j, struct facts *f, struct weigher *w,
    const struct damage *damage, const struct policy *policy, struct err *e);

/* Takes it back, so that the same facts and more can be judged again. */
void judge_undo(struct judgement *j);

/* Name of what a counted finding convicts: a cable for both directions. */
struct str judge_name(const struct judgement *j, const struct finding *x);
/* Orders findings for output: worst first, then by name. */
void judge_sort(struct judgement *j, const struct finding **out);

/* The finding about an entity, or NULL. */
struct finding *judge_finding(const struct judgement *j, int32_t e);
/* What the rules make of the answers as they now are. */
void judge_opinion(struct finding *x);
/* The verdict from the opinions as they now are. */
void judge_again(struct judgement *j);

#endif
