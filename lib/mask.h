/*
 * Mask and map files: which differences a user knows about, and which names
 * of one run are which of the other. straightedge-mask(5) describes them.
 *
 *	mask	name=PATTERN [phase= io= rank= step= PATTERN] [reason=TEXT]
 *	unstable	name=PATTERN [phase= io=] flips= runs= bound=
 *	map	a=NAME b=PATTERN
 *
 * A pattern is a POSIX extended regular expression for the whole text; one
 * made of letters, digits and `_ - . / :` alone is the text itself. In a=, $1
 * to $9 stand for what the groups of b= matched.
 */
#ifndef MASK_H
#define MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "buf.h"
#include "err.h"
#include "fp.h"
#include "src.h"

#define MASK_RULES_MAX 1000000u /* more is not a mask but a data set */

enum mask_kind {
	MASK_HAND = 1,     /* known to differ, means nothing */
	MASK_UNSTABLE = 2, /* flips between good runs; taints what follows */
	MASK_MAP = 4,
};

struct mask_rule {
	int kind;
	struct str where;              /* "FILE:LINE" */
	struct str reason;             /* may be empty */
	struct str flips, runs, bound; /* unstable */
	uint64_t uses;
};

struct mask;

int mask_new(struct mask **out, struct err *e);
void mask_free(struct mask *m);
/*
 * Adds the rules of a file; borrows src. `kinds` says which records may stand
 * in it. SE_EFORMAT says "LINE: reason".
 */
int mask_read(struct mask *m, struct src *src, const char *name, unsigned kinds,
    struct err *e);
/* The first rule that matches, its use counted; NULL: none. */
const struct mask_rule *mask_find(struct mask *m, const struct fp *f);
/*
 * The name as a map has it, in `to`; false: no rule matches. SE_ENOMEM shows in
 * to->failed.
 */
bool mask_map(struct mask *m, struct str name, struct buf *to);

size_t mask_count(const struct mask *m);
const struct mask_rule *mask_rule(const struct mask *m, size_t i);

/* Appends a pattern that matches the text and nothing else. */
void mask_put_literal(struct buf *b, struct str text);

#endif
