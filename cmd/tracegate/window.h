/*
 * Windows: the stretches of time whose events are kept in full. Disjoint and
 * in order of time; they merge and extend.
 */
#ifndef WINDOW_H
#define WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detect.h"

struct window {
	int64_t from, until; /* both within */
	uint32_t id;         /* from 1, in the order they opened */
	struct opening worst;
	uint32_t openings;
	uint64_t events, bytes; /* kept in it beyond the shallow ones */
	bool audit;             /* only a sample of normal steps */
	bool history_short;     /* what came before was gone already */
	bool cut;               /* the byte budget ended in it */
};

struct window_rules {
	int64_t before, after;
	int64_t longest;  /* a window is not extended beyond; 0: no limit */
	int64_t cooldown; /* no new one for this long after the last */
	uint32_t per_minute, burst; /* token bucket; 0: no limit */
};

struct windows {
	struct window *w;
	size_t n, cap;
	struct window_rules rules;
	uint32_t opened;
	bool filled; /* the bucket was */
	double tokens;
	int64_t tokens_at;   /* when they were counted last */
	uint64_t suppressed; /* openings that got no window */
};

void windows_free(struct windows *ws);
/* The window that the opening belongs to now, NULL if suppressed. */
struct window *windows_open(struct windows *ws, const struct opening *o);
/* The first window that [ts, end] touches, or NULL. */
struct window *windows_hit(const struct windows *ws, int64_t ts, int64_t end);

#endif
