/*
 * Lanes: the (pid, tid) that slices nest in, and the ids that pair
 * asynchronous begins and ends.
 */
#ifndef LANES_H
#define LANES_H

#include <stdint.h>

#include "arena.h"
#include "event.h"
#include "map.h"

enum {
	LANES_MAX = 1 << 16, /* threads and ids told apart */
	LANE_CACHE = 256,
	LANE_NONE = 0, /* of events beyond LANES_MAX */
};

/* A growing stack of 64-bit values. */
struct stack {
	int64_t *v;
	uint32_t n, cap;
};

void stack_push(struct stack *s, int64_t v);
void stack_remove(struct stack *s, uint32_t at);
void stack_free(struct stack *s);

struct lane {
	struct str pid, tid; /* tid is "" for asynchronous ids */
	struct stack open;   /* begun and not ended: the caller's numbers */
	struct stack ends;   /* of the complete slices around the last one */
	int64_t began;       /* the last one, */
	uint32_t first;      /* and from where on others in `ends` did so too */
};

struct lanes {
	struct lane *lane;
	uint32_t n, cap;
	uint64_t overflow;
	struct arena arena;
	struct map map;
	struct {
		uint64_t hash;
		uint32_t id;
	} cache[LANE_CACHE];
};

void lanes_init(struct lanes *l);
void lanes_free(struct lanes *l);
/* The thread of an event, or the pair it belongs to if it is asynchronous. */
uint32_t lanes_of(struct lanes *l, const struct event *ev);

/* Does ph begin or end a pair? 'b' and 'e' stand for all kinds. */
char phase_pair(char ph);
/* Is the phase one of asynchronous events? */
bool phase_async(char ph);

/*
 * A slice [ts, end] begins on a lane, in order of begin. How far it reaches
 * beyond the one around it, in ns: 0 when it nests. Of two that begin together
 * the longer is around the other, whichever comes first.
 */
int64_t lane_nest(struct lane *l, int64_t ts, int64_t end);

#endif
