/* What is asked for by name: see watch.h. */
#include "watch.h"

#include "glob.h"

void
watch_key(struct gate *g, uint32_t id)
{
	const struct gate_settings *s = g->set;
	struct key *k = &g->keys.key[id];
	for (size_t i = 0; i < s->nsteady; i++) {
		if (!glob_match(str_c(s->steady[i].glob), key_name(k)))
			continue;
		if (!k->pace)
			k->pace = cli_alloc(1, sizeof *k->pace);
		k->pace->period = s->steady[i].ns;
	}
	for (size_t i = 0; i < s->npeers; i++)
		if (!k->peers && g->keys.npeers < KEYS_PEERS &&
		    glob_match(str_c(s->peers[i]), key_name(k))) {
			k->peers = peers_new();
			g->keys.npeers++;
		}
}

void
watch_event(struct gate *g, uint32_t id, uint32_t lane, int64_t ts)
{
	struct pace *p = g->keys.key[id].pace;
	struct odd_pace odd;
	if (!p)
		return;
	while (pace_before(p, ts, &odd)) {
		struct opening o = { .ts = odd.from,
			.dur = p->period,
			.key = id,
			.lane = lane,
			.why = WHY_RATE };
		/* As the time from one to the next, which is a time. */
		o.value = p->period / (int64_t)(odd.n ? odd.n : 1);
		o.threshold =
		    p->period / (int64_t)(odd.expected ? odd.expected : 1);
		g->n.odd_paces++;
		gate_open(g, &o);
	}
	pace_count(p, ts);
}

static void
judge_turn(struct gate *g, uint32_t id, const struct turn *t)
{
	struct key *k = &g->keys.key[id];
	int64_t limit = peers_limit(k->peers, t, g->set->detect.floor);
	for (uint32_t i = 0; limit && i < t->n; i++) {
		const struct peer *one = &t->peer[i];
		k->compared++;
		g->n.tested++;
		if (one->dur <= limit)
			continue;
		gate_open(g, &(struct opening){ .ts = one->ts,
				 .dur = one->dur,
				 .value = one->dur,
				 .threshold = limit,
				 .key = id,
				 .lane = one->lane,
				 .why = WHY_PEER });
	}
}

void
watch_slice(struct gate *g, uint32_t id, uint32_t lane, int64_t ts, int64_t dur)
{
	struct peers *p = g->keys.key[id].peers;
	if (!p)
		return;
	const struct turn *t = peers_add(p, &(struct peer){ ts, dur, lane });
	for (; t; t = peers_ready(p))
		judge_turn(g, id, t);
}

void
watch_end(struct gate *g)
{
	const struct turn *t;
	for (uint32_t i = 1; i < g->keys.n; i++) {
		struct peers *p = g->keys.key[i].peers;
		while (p && (t = peers_rest(p)))
			judge_turn(g, i, t);
	}
}
