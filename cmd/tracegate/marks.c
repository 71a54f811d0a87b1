/* What classify keeps beside slices: see marks.h. */
#include "marks.h"

#include <stdlib.h>

#include "cli.h"
#include "facts.h"
#include "measure.h"
#include "num.h"
#include "sort.h"

static void
note_use(struct kinds *k, const struct node *n)
{
	if (n->op != NODE_TEST || n->set == NO_SET)
		return;
	if (n->fact == FACT_VALUE || n->fact == FACT_VALUE_X)
		k->valued |= UINT64_C(1) << n->set;
	if (n->fact == FACT_ON_PATH || n->fact == FACT_EXPLAINS)
		k->pathed |= UINT64_C(1) << n->set;
}

void
kinds_init(struct kinds *k, const struct rules *rules,
    const struct sync_rule *sync, size_t nsync)
{
	*k = (struct kinds){ .rules = rules };
	keys_init(&k->keys, false, sync, nsync);
	k->sets = cli_alloc(k->keys.cap, sizeof *k->sets);
	k->holds = cli_alloc(k->keys.cap, sizeof *k->holds);
	k->nsets = 1; /* what has no key is in no set */
	for (uint32_t i = 0; i < rules->n; i++)
		for (uint32_t n = 0; n < rules->rule[i].n; n++)
			note_use(k, &rules->rule[i].node[n]);
}

void
kinds_free(struct kinds *k)
{
	keys_free(&k->keys);
	free(k->sets);
	free(k->holds);
	map_free(&k->arg);
	arena_free(&k->arena);
}

static uint32_t
key_of(struct kinds *k, const struct event *ev)
{
	uint32_t id = keys_of(&k->keys, ev);
	for (; k->nsets <= id; k->nsets++) {
		const struct key *key = &k->keys.key[k->nsets];
		k->sets[k->nsets] =
		    rules_sets(k->rules, key_cat(key), key_name(key));
	}
	return id;
}

/* The same name comes with most events: its sets are looked up once. */
static uint64_t
arg_sets(struct kinds *k, struct str name)
{
	bool fresh;
	uint64_t *at = map_get(&k->arg, name);
	if (at)
		return *at;
	uint64_t sets = rules_sets(k->rules, STR_NULL, name) & k->valued;
	if (k->arg.n == ARG_NAMES_MAX)
		return sets;
	struct str copy = arena_str(&k->arena, name);
	at = copy.p ? map_at(&k->arg, copy, &fresh) : NULL;
	if (!at)
		cli_die("out of memory");
	return *at = sets;
}

static void
add_marks(struct marks *s, uint64_t sets, struct mark mark)
{
	for (; sets; sets &= sets - 1) {
		if (s->nmarks == MARKS_MAX) {
			s->dropped++;
			return;
		}
		if (s->nmarks == s->marks_cap) {
			s->marks_cap = s->marks_cap ? s->marks_cap * 2 : 256;
			s->mark =
			    cli_realloc(s->mark, s->marks_cap, sizeof *s->mark);
		}
		mark.set = (uint8_t)__builtin_ctzll(sets);
		s->mark[s->nmarks++] = mark;
	}
}

static void
see_args(struct marks *s, const struct event *ev, uint64_t own)
{
	struct str key, text;
	bool string, counter = ev->ph == 'C';
	const char *at = ev->args.p + 1;
	double v;
	while (scan_member(ev->args, &at, &key, &text, &string)) {
		uint64_t sets = arg_sets(s->kinds, key);
		if (counter)
			sets |= own & s->kinds->valued;
		bool group = str_is(key, "Group size");
		if ((!sets && !group) || num_f64(text, &v, NULL))
			continue;
		if (group && v > (double)s->group && v < 1e9)
			s->group = (int64_t)v;
		add_marks(
		    s, sets, (struct mark){ ev->ts, v, 0, counter, false });
	}
}

void
marks_see(void *user, const struct event *ev, int64_t slice)
{
	struct marks *s = user;
	uint32_t key = key_of(s->kinds, ev);
	uint64_t sets = kinds_sets(s->kinds, key);
	if (slice >= 0) {
		if (s->n == s->cap) {
			s->cap = s->cap ? s->cap * 2 : 1024;
			s->key = cli_realloc(s->key, s->cap, sizeof *s->key);
		}
		s->key[s->n++] = key;
	}
	if (ev->ph != 'M' && (!s->any || event_end(ev) > s->last))
		s->last = event_end(ev);
	s->any |= ev->ph != 'M';
	bool instant = slice < 0 && (ev->ph == 'i' || ev->ph == 'I' ||
					ev->ph == 'R' || ev->ph == 'n');
	if (instant)
		add_marks(s, sets, (struct mark){ ev->ts, 0, 0, false, true });
	for (; (instant || slice >= 0) && sets; sets &= sets - 1)
		s->seen[__builtin_ctzll(sets)]++;
	if (ev->args.len > 2 && ev->ph != 'M')
		see_args(s, ev, kinds_sets(s->kinds, key));
}

static int
by_set(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;
	if (x->set != y->set)
		return x->set < y->set ? -1 : 1;
	return (x->ts > y->ts) - (x->ts < y->ts);
}

/* For qsort, which passes nothing along. Set before and cleared after. */
static const struct slice *sorting;

static int
by_relation(const void *a, const void *b)
{
	const struct slice *x = &sorting[*(const uint32_t *)a];
	const struct slice *y = &sorting[*(const uint32_t *)b];
	if (x->relation != y->relation)
		return x->relation < y->relation ? -1 : 1;
	return (x->ts > y->ts) - (x->ts < y->ts);
}

static void
sort_wakes(struct marks *s, const struct model *m)
{
	s->wake = cli_alloc(m->n, sizeof *s->wake);
	for (uint32_t i = 0; i < m->n; i++)
		if (m->slice[i].kind == SLICE_WAKE && m->slice[i].relation)
			s->wake[s->nwakes++] = i;
	sorting = m->slice;
	sort_array(s->wake, s->nwakes, sizeof *s->wake, by_relation);
	sorting = NULL;
}

bool
marks_woken(
    const struct marks *s, const struct model *m, const struct slice *wait)
{
	uint32_t lo = 0, hi = wait->relation ? s->nwakes : 0;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct slice *k = &m->slice[s->wake[mid]];
		if (k->relation < wait->relation ||
		    (k->relation == wait->relation && k->ts < wait->ts))
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; wait->relation && lo < s->nwakes; lo++) {
		const struct slice *k = &m->slice[s->wake[lo]];
		if (k->relation != wait->relation || k->ts > wait->end)
			return false;
		if (k->lane != wait->lane)
			return true;
	}
	return false;
}

void
marks_sort(struct marks *s, const struct model *m)
{
	sort_array(s->mark, s->nmarks, sizeof *s->mark, by_set);
	for (uint32_t i = 0, set = 0; set <= SETS_MAX; set++) {
		while (i < s->nmarks && s->mark[i].set < set)
			i++;
		s->first[set] = i;
	}
	sort_wakes(s, m);
	for (uint32_t i = 0; i < m->n; i++)
		if (m->slice[i].kind == SLICE_DEVICE) {
			s->devices++;
			s->collectives +=
			    measure_collective(m->name[m->slice[i].name]);
		}
	for (uint32_t i = 0; i < m->n; i++)
		if (m->slice[i].parent >= 0)
			s->kinds->holds[s->key[m->slice[i].parent]] = true;
}

void
marks_free(struct marks *s)
{
	free(s->key);
	free(s->mark);
	free(s->wake);
}
