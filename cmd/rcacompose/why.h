/* Why a verdict is unknown, and what would change it. */
#ifndef WHY_H
#define WHY_H

#include "judge.h"

/* Agents whose unknown or contradictory answers led to an unknown verdict. */
void why_causes(const struct judgement *j, bool agents[STACK_AGENTS_MAX]);
/* What those answers are, for people, into `b`; empty: nothing to name. */
void why_need(const struct judgement *j, struct buf *b);
/*
 * The fewest unknown answers that together could change the verdict, found by
 * judging again; empty when none was found.
 */
void why_change(struct judgement *j, struct buf *b);
/*
 * Adds, where evidence is stale, of when the newest is: the judged data may lie
 * in the past, and --now would say so.
 */
void why_late(const struct judgement *j, struct buf *b);

#endif
