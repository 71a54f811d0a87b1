/* Lanes: see lanes.h. */
#include "lanes.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "hash.h"

enum { ID_MAX = 128 }; /* bytes of a pid, tid or id that count */

void
stack_push(struct stack *s, int64_t v)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 16;
		s->v = cli_realloc(s->v, s->cap, sizeof *s->v);
	}
	s->v[s->n++] = v;
}

void
stack_remove(struct stack *s, uint32_t at)
{
	s->n--;
	memmove(s->v + at, s->v + at + 1, (s->n - at) * sizeof *s->v);
}

void
stack_free(struct stack *s)
{
	free(s->v);
	*s = (struct stack){ 0 };
}

void
lanes_init(struct lanes *l)
{
	*l = (struct lanes){ .n = 1, .cap = 64 };
	l->lane = cli_alloc(l->cap, sizeof *l->lane);
}

void
lanes_free(struct lanes *l)
{
	for (uint32_t i = 0; i < l->n; i++) {
		stack_free(&l->lane[i].open);
		stack_free(&l->lane[i].ends);
	}
	free(l->lane);
	map_free(&l->map);
	arena_free(&l->arena);
}

char
phase_pair(char ph)
{
	switch (ph) {
	case 'B':
	case 'b':
	case 'S':
		return 'b';
	case 'E':
	case 'e':
	case 'F':
		return 'e';
	}
	return 0;
}

bool
phase_async(char ph)
{
	return ph == 'b' || ph == 'e' || ph == 'n' || ph == 'S' || ph == 'F' ||
	       ph == 'T' || ph == 'p';
}

static uint32_t
new_lane(struct lanes *l, struct str pid, struct str tid)
{
	if (l->n == LANES_MAX) {
		l->overflow++;
		return LANE_NONE;
	}
	if (l->n == l->cap) {
		l->cap *= 2;
		l->lane = cli_realloc(l->lane, l->cap, sizeof *l->lane);
	}
	l->lane[l->n] = (struct lane){ .pid = arena_str(&l->arena, pid),
		.tid = arena_str(&l->arena, tid) };
	return l->n++;
}

static struct str
clip(struct str s)
{
	return (struct str){ s.p, s.len < ID_MAX ? s.len : ID_MAX };
}

static uint32_t
find_lane(struct lanes *l, char kind, struct str pid, struct str tid)
{
	char text[2 * ID_MAX + 2] = { kind };
	pid = clip(pid);
	tid = clip(tid);
	if (pid.len)
		memcpy(text + 1, pid.p, pid.len);
	text[1 + pid.len] = 0;
	if (tid.len)
		memcpy(text + 2 + pid.len, tid.p, tid.len);
	struct str key = { text, pid.len + tid.len + 2 };
	uint64_t *at = map_get(&l->map, key);
	if (at)
		return (uint32_t)*at;
	uint32_t id = new_lane(l, pid, kind ? STR_LIT("") : tid);
	if (id == LANE_NONE)
		return id;
	key = arena_str(&l->arena, key);
	bool fresh;
	at = key.p ? map_at(&l->map, key, &fresh) : NULL;
	if (!at)
		cli_die("out of memory");
	*at = id;
	return id;
}

uint32_t
lanes_of(struct lanes *l, const struct event *ev)
{
	bool async = phase_async(ev->ph);
	/* Without a tid, the process stands for its thread. */
	struct str a = async ? ev->cat : ev->pid;
	struct str b = async ? ev->id : ev->tid.p ? ev->tid : ev->pid;
	char kind = !async ? 0 : ev->ph == 'S' || ev->ph == 'F' ? 'S' : 'b';
	uint64_t h = hash_table(a.p, a.len, (uint64_t)kind) * 31 +
		     hash_table(b.p, b.len, 7);
	size_t slot = h % LANE_CACHE;
	if (l->cache[slot].hash == h && l->cache[slot].id)
		return l->cache[slot].id;
	uint32_t id = find_lane(l, kind, a, b);
	l->cache[slot].hash = h;
	l->cache[slot].id = id;
	return id;
}

int64_t
lane_nest(struct lane *l, int64_t ts, int64_t end)
{
	struct stack *s = &l->ends;
	while (s->n && s->v[s->n - 1] <= ts)
		s->n--;
	if (l->began != ts || l->first > s->n)
		l->first = s->n;
	l->began = ts;
	/* It is around the shorter ones that began with it. */
	uint32_t at = s->n;
	while (at > l->first && s->v[at - 1] < end)
		at--;
	int64_t over = at && end > s->v[at - 1] ? end - s->v[at - 1] : 0;
	stack_push(s, end);
	for (uint32_t i = s->n - 1; i > at; i--)
		s->v[i] = s->v[i - 1];
	s->v[at] = end;
	return over;
}
