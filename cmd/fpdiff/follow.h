/* --follow: streams that are still written. */
#ifndef FOLLOW_H
#define FOLLOW_H

#include "fpdiff.h"

struct follow;

/* From now on SIGINT and SIGTERM ask for the verdict; a second one ends. */
void follow_start(void);
bool follow_stopped(void);

/*
 * Dies if it cannot. *closed says whether the stream has its end; `out` is
 * written out before each wait. All of it outlives the source.
 */
struct src *follow_open(struct follow **follow, const char *path,
    const bool *closed, struct rec_out *out);
/* It shrank, or another file took its place. */
bool follow_changed(const struct follow *f);
void follow_close(struct follow *f);

/* ---- seen.c: differences as they come ---------------------------------- */

/*
 * Alignment has to see what lies behind a difference before it can say what
 * it is. Until then a pair that came and differs is printed as seen.
 */
struct seen;
struct seen *seen_new(struct report *r);
void seen_free(struct seen *s);
/* Nothing is done if `s` is NULL. */
void seen_add(struct seen *s, int side, const struct entry *e);

#endif
