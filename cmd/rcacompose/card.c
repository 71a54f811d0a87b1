/* What is right, what is wrong, and how often: see score.h. */
#include "score.h"

#include "sort.h"
#include "stats.h"
#include "verbs.h"
#include "why.h"

/* ---- right or wrong -------------------------------------------------- */

/* A cable and each of its directions are the same place. */
static bool
same_place(struct str x, struct str y)
{
	struct str a, b, c, d;
	bool p, q;
	if (str_same(x, y))
		return true;
	if (!link_ends(x, &a, &b, &p) || !link_ends(y, &c, &d, &q) || (p && q))
		return false;
	return (str_same(a, c) && str_same(b, d)) ||
	       (str_same(a, d) && str_same(b, c));
}

static bool
is_true(struct judgement *j, const struct finding *x)
{
	const struct facts *f = j->facts;
	struct str name = judge_name(j, x);
	for (size_t i = 0; i < f->ntruths; i++)
		if (same_place(name, facts_name(f, f->truth[i])))
			return true;
	return false;
}

static bool
is_named(struct judgement *j, int32_t truth)
{
	struct str name = facts_name(j->facts, truth);
	for (size_t i = 0; i < j->n; i++)
		if (j->finding[i].counted &&
		    same_place(judge_name(j, &j->finding[i]), name))
			return true;
	return false;
}

static void
add_reason(struct side *s, const char *name)
{
	size_t i = 0;
	while (i < s->nreasons && strcmp(s->reason[i].name, name) != 0)
		i++;
	if (i == REASONS_MAX)
		return;
	if (i == s->nreasons)
		s->reason[s->nreasons++].name = name;
	s->reason[i].n++;
}

static void
count_unknown(struct side *s, struct judgement *j, bool guilty)
{
	bool agents[STACK_AGENTS_MAX];
	add_reason(s, row_reason(j->row));
	why_causes(j, agents);
	for (size_t i = 0; i < s->stack->nagents; i++)
		s->by_agent[i] += agents[i];
	if (guilty)
		s->unknown_guilty++;
	else
		s->unknown_clean++;
}

static void
count_named(struct side *s, struct judgement *j, bool guilty)
{
	const struct facts *f = j->facts;
	size_t wrong = 0, found = 0;
	for (size_t i = 0; i < j->n; i++)
		if (j->finding[i].counted) {
			s->named++;
			wrong += !guilty || !is_true(j, &j->finding[i]);
		}
	for (size_t i = 0; i < f->ntruths; i++)
		found += is_named(j, f->truth[i]);
	s->named_wrong += wrong;
	s->false_culprit = wrong > 0;
	s->wrong += wrong > 0;
	s->wrong_clean += !guilty;
	bool all = guilty && found == f->ntruths;
	s->hits += all;
	s->parts += guilty && found && !all;
	s->correct = all && !wrong;
}

/* ---- clusters -------------------------------------------------------- */

enum { CLUSTER_WRONG = 1, CLUSTER_GUILTY = 2, CLUSTER_MISSED = 4 };

static void
count_bits(struct clusters *c, unsigned old, unsigned new)
{
	unsigned fresh = new & ~old;
	c->wrong += (fresh & CLUSTER_WRONG) != 0;
	c->guilty += (fresh & CLUSTER_GUILTY) != 0;
	c->missed += (fresh & CLUSTER_MISSED) != 0;
}

static void
add_to_cluster(struct side *s, bool guilty, bool missed)
{
	struct clusters *c = &s->clusters;
	struct str name = s->facts.group;
	uint64_t alone = 0, *bits = &alone;
	bool fresh = true;
	if (!s->facts.group_by)
		return;
	if (name.len) {
		if (c->n == CLUSTERS_MAX)
			cli_die("more than %d clusters", CLUSTERS_MAX);
		if (!map_get(&c->names, name))
			name = arena_str(&c->arena, name);
		bits = name.p ? map_at(&c->names, name, &fresh) : NULL;
		if (!bits)
			cli_die("out of memory");
	}
	if (fresh)
		*bits = 0;
	unsigned old = (unsigned)*bits;
	*bits |= (s->false_culprit ? CLUSTER_WRONG : 0) |
		 (guilty ? CLUSTER_GUILTY : 0) | (missed ? CLUSTER_MISSED : 0);
	c->n += fresh;
	c->alone += !name.len;
	count_bits(c, old, (unsigned)*bits);
}

void
card_count(struct side *s, struct judgement *j)
{
	bool guilty = j->facts->ntruths > 0;
	int status = row_status(j->row);
	uint64_t missed = s->culprits - s->hits - s->parts;
	s->correct = s->false_culprit = false;
	s->answered = status == STATUS_FOUND || status == STATUS_CLEAN;
	s->culprits += guilty;
	s->innocents += !guilty;
	if (status == STATUS_FOUND) {
		count_named(s, j, guilty);
	} else if (status == STATUS_CLEAN) {
		s->cleared += !guilty;
		s->wrong_clear += guilty;
		s->correct = !guilty;
	} else {
		count_unknown(s, j, guilty);
	}
	add_to_cluster(s, guilty, s->culprits - s->hits - s->parts > missed);
}

/* ---- what is printed ------------------------------------------------- */

void
card_rate(struct rec_out *o, const char *name, uint64_t k, uint64_t n,
    const char *key, const char *value)
{
	struct interval i = stats_wilson(k, n, STATS_Z95);
	rec_begin(o, "rate");
	rec_put(o, "name", name);
	rec_u64(o, "k", k);
	rec_u64(o, "n", n);
	if (n) {
		rec_f64(o, "share", (double)k / (double)n);
		rec_f64(o, "low", i.low);
		rec_f64(o, "high", i.high);
		rec_put(o, "interval", "wilson95");
	}
	if (key)
		rec_put(o, key, value);
	rec_end(o);
}

/* "Less than 1 %" is a claim: the exact one-sided bound carries it or not. */
static void
put_claim(struct rec_out *o, uint64_t k, uint64_t n)
{
	double high = stats_upper(k, n, 0.05);
	rec_begin(o, "rate");
	rec_put(o, "name", "false-culprit-claim");
	rec_u64(o, "k", k);
	rec_u64(o, "n", n);
	rec_f64(o, "high", high);
	rec_put(o, "interval", "clopper-pearson-one-sided95");
	if (high < 0.01)
		rec_put(o, "note", "false culprits are below 1 %");
	else if (!k)
		rec_fmt(o, "note",
		    "cannot claim below 1 %%: needs %llu incidents without one",
		    (unsigned long long)stats_trials(0.01, 0.05));
	else
		rec_put(o, "note", "cannot claim below 1 %");
	rec_end(o);
}

int
card_by_count(const void *x, const void *y)
{
	const struct tally_row *a = x, *b = y;
	if (a->n != b->n)
		return a->n > b->n ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Repeated incidents are no independent trials: the claim rests on clusters. */
static void
put_clusters(struct rec_out *o, const struct clusters *c)
{
	char alone[64];
	snprintf(alone, sizeof alone, "%llu incidents without the key",
	    (unsigned long long)c->alone);
	card_rate(o, "false-culprit-cluster", c->wrong, c->n,
	    c->alone ? "note" : NULL, alone);
	card_rate(o, "miss-cluster", c->missed, c->guilty, NULL, NULL);
	put_claim(o, c->wrong, c->n);
}

static void
put_side(struct rec_out *o, struct side *s)
{
	uint64_t n = s->culprits + s->innocents;
	uint64_t unknown = s->unknown_guilty + s->unknown_clean;
	uint64_t wrong = s->wrong + s->wrong_clear;
	uint64_t misses = s->culprits - s->hits - s->parts;
	card_rate(o, "false-culprit", s->wrong, n, NULL, NULL);
	if (s->facts.group_by)
		put_clusters(o, &s->clusters);
	else
		put_claim(o, s->wrong, n);
	card_rate(o, "false-culprit-innocent", s->wrong_clean, s->innocents,
	    NULL, NULL);
	card_rate(o, "false-blame", s->named_wrong, s->named, NULL, NULL);
	card_rate(o, "miss", misses, s->culprits, NULL, NULL);
	card_rate(o, "partial", s->parts, s->culprits, NULL, NULL);
	card_rate(o, "false-innocent", s->wrong_clear, s->culprits, NULL, NULL);
	card_rate(o, "missed-exoneration", s->unknown_clean, s->innocents, NULL,
	    NULL);
	card_rate(o, "coverage", n - unknown, n, NULL, NULL);
	card_rate(o, "selective-risk", wrong, n - unknown, NULL, NULL);
	card_rate(o, "generalised-risk", wrong, n, NULL, NULL);
	card_rate(o, "unknown", unknown, n, NULL, NULL);
	sort_array(s->reason, s->nreasons, sizeof *s->reason, card_by_count);
	for (size_t i = 0; i < s->nreasons; i++)
		card_rate(o, "unknown-reason", s->reason[i].n, n, "reason",
		    s->reason[i].name);
	for (size_t i = 0; i < s->stack->nagents; i++)
		if (s->by_agent[i])
			card_rate(o, "unknown-agent", s->by_agent[i], n,
			    "agent", s->stack->agent[i].name.p);
}

static void
put_excluded(const struct score *sc)
{
	const struct {
		const char *class;
		uint64_t n;
		const char *note;
	} rows[] = {
		{ "unlabelled", sc->unlabelled, "incidents without truth" },
		{ "undecided", sc->undecided, "incidents with truth unknown" },
		{ "damaged", sc->bad_incidents, "incidents with bad lines" },
	};
	for (size_t i = 0; i < 3; i++) {
		if (!rows[i].n)
			continue;
		rec_begin(sc->out, "count");
		rec_put(sc->out, "class", rows[i].class);
		rec_u64(sc->out, "n", rows[i].n);
		rec_put(sc->out, "note", rows[i].note);
		rec_end(sc->out);
	}
}

void
card_print(struct score *sc)
{
	put_side(sc->out, &sc->side[0]);
	put_excluded(sc);
}

void
card_free(struct side *s)
{
	stack_close(s->stack);
	weigher_free(&s->weigher);
	buf_free(&s->said);
	map_free(&s->clusters.names);
	arena_free(&s->clusters.arena);
}
