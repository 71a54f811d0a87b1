/* What the files of weigh.h share among themselves. */
#ifndef WEIGH_PARTS_H
#define WEIGH_PARTS_H

#include "weigh.h"

/* The time that one line speaks of. `b` is INT64_MAX while it goes on. */
struct span {
	int64_t a, b;
	int64_t seen; /* known to be so until then, for contradictions */
	int32_t line;
};

/* The window of the incident, its slack added. */
struct window {
	int64_t start, end;  /* as the incident has them; end may be now */
	int64_t first, last; /* start - lead, end + lag */
	int64_t fresh;       /* start + lag: a later onset is a consequence */
};

/* t + d, held within what there is. */
int64_t time_plus(int64_t t, int64_t d);
struct window weigh_window(const struct weigher *w);

/* Why the line is an unknown, whatever it says; NULL: it may speak. */
const char *line_disqualified(const struct weigher *w, const struct agent *a,
    const struct line *l, const struct window *v);
/* Is the line this agent's, about the direction that is looked at? */
bool line_speaks(const struct weigher *w, const struct line *l, size_t agent);
bool line_says_healthy(const struct weigher *w, const struct line *l,
    size_t agent, const struct window *v);
/* Of when a healthy line speaks. */
struct span line_health(const struct line *l);

/* By their begin, then by their end. */
int span_order(const void *x, const void *y);
/* Puts s to place n of w->span. */
void span_push(struct weigher *w, size_t n, struct span s);

/* When the agent called the entity healthy, for what follows. */
void health_gather(
    struct weigher *w, size_t agent, int32_t first, const struct window *v);
/* The earliest H of the agent after t: where an open fault ended. */
int64_t health_after(const struct weigher *w, int64_t t);
/* Does an H deny the fault f? */
bool health_contradicts(const struct weigher *w, const struct span *f);
/* An H that spans the time of an unknown knows better. */
bool health_spans(const struct weigher *w, int64_t time);

struct reply reply_unknown(const char *reason, int32_t line);
struct reply weigh_silence(
    struct weigher *w, size_t agent, int32_t root, const struct window *v);

#endif
