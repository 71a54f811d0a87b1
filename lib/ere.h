/*
 * POSIX extended regular expressions from outside, before regcomp(3) sees
 * them. A compiler copies what is repeated: x+ is two x, x{9} nine, and
 * repetitions of repetitions multiply, until a line of text takes all memory.
 */
#ifndef ERE_H
#define ERE_H

#include "err.h"
#include "str.h"

#define ERE_SIZE_MAX 5000u /* characters once repetitions are written out */
#define ERE_DEPTH_MAX 32   /* parentheses in parentheses */

/*
 * SE_ELIMIT if it becomes larger than that, SE_EFORMAT if its parentheses do
 * not pair. What else may be wrong with it regcomp says.
 */
int ere_check(struct str pattern, struct err *e);

#endif
