/*
 * Parents and children that are faulty together: which children a parent
 * answers for, and which parents should have spoken.
 */
#ifndef FAMILY_H
#define FAMILY_H

#include "judge.h"

/*
 * Where a parent is faulty by its own stack and at least three and two thirds
 * of its observed children are, they are folded into it.
 */
void family_fold(struct judgement *j);
/* Has a faulty parent faulty children that are not folded? */
bool family_nested(struct judgement *j);
/* Marks the parents of x that should have said something. */
void family_silence(struct judgement *j, const struct finding *x);
/* Both directions of one cable, both faulty: one culprit. */
void family_twins(struct judgement *j, struct finding *x);

#endif
