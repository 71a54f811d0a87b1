/* What was found, as records. */
#ifndef EXPLAIN_H
#define EXPLAIN_H

#include "input.h"
#include "judge.h"

struct telling {
	const struct inputs *inputs;
	const struct cli_common *common;
	bool changes;           /* search for what would change the verdict */
	const char *supersedes; /* the answer it replaces, or NULL */
	bool final;
};

/* One verdict as text: "culprit link:a>b", "unknown(rival)". */
void explain_answer(struct judgement *j, struct buf *b);

/*
 * Findings, counts and the verdict. Returns the exit status; with
 * STATUS_NONE there is no verdict record.
 */
int explain(struct judgement *j, struct rec_out *o, const struct telling *t,
    const struct damage *damage);
/* The verdict alone. */
int explain_verdict(struct judgement *j, struct rec_out *o,
    const struct telling *t, const struct damage *damage);

#endif
