/* The records of one rank: see lane.h. */
#include "lane.h"

#include <stdlib.h>

#include "num.h"

enum { BOUNDARIES = 1024 }; /* open boundaries remembered in a rank */

static const char *const relation_name[] = { "same", "different", "other" };

/* What was recorded of a boundary's inputs since its last output. */
struct boundary {
	uint64_t key;
	bool seen, differs, done;
};

struct lane *
lane_new(struct str rank)
{
	struct lane *l = cli_alloc(1, sizeof *l);
	l->boundary = cli_alloc(BOUNDARIES, sizeof *l->boundary);
	if (rank.p) {
		char *copy = cli_alloc(rank.len + 1, 1);
		memcpy(copy, rank.p, rank.len);
		l->rank = (struct str){ copy, rank.len };
	}
	return l;
}

void
lane_free(struct lane *l)
{
	for (int i = 0; i < BEFORE; i++)
		free(l->before[i].raw);
	for (int i = 0; i < AFTER; i++)
		free(l->after[i].raw);
	free(l->certified.raw);
	free(l->waiting.a);
	free(l->waiting.b);
	free(l->a);
	free(l->b);
	free(l->boundary);
	free((char *)l->rank.p);
	free(l);
}

/* ---- sequence -------------------------------------------------------- */

/* Without a sequence the steps of a rank have to do: they do not fall. */
static enum lane_order
step_order(struct lane *l, int side, uint64_t part, struct str text)
{
	uint64_t step;
	if (!text.p || num_u64(text, 0, UINT64_MAX, &step, NULL))
		return LANE_STEP_RISES;
	bool falls = l->step_part[side] == part + 1 && step < l->at_step[side];
	l->at_step[side] = step;
	l->step_part[side] = part + 1;
	return falls ? LANE_STEP_FALLS : LANE_STEP_RISES;
}

/* Within a part of the stream the sequence of a rank rises. */
enum lane_order
lane_sequence(struct lane *l, int side, uint64_t part, const struct entry *e)
{
	l->n[side]++;
	l->last_part[side] = part;
	if (!e->seq.given)
		return step_order(l, side, part, e->step);
	bool falls = l->seq_part[side] == part + 1 && e->seq.v < l->seq[side];
	l->seq[side] = e->seq.v;
	l->seq_part[side] = part + 1;
	return falls ? LANE_FALLS : LANE_RISES;
}

/* ---- roots ----------------------------------------------------------- */

/*
 * An output that differs although every recorded input and parameter of its
 * boundary agrees is where the difference was made. What was not recorded may
 * have differed all the same: then it is the root among recorded.
 */
const char *
lane_boundary(struct lane *l, const struct entry *e, enum relation relation)
{
	struct boundary *b = &l->boundary[e->boundary % BOUNDARIES];
	if (e->input) {
		if (b->key != e->boundary || b->done)
			*b = (struct boundary){ .key = e->boundary };
		b->seen = true;
		b->differs |= relation != REL_SAME;
		return NULL;
	}
	bool known = b->key == e->boundary && b->seen;
	const char *role = NULL;
	if (relation == REL_DIFFERENT && known && !b->differs)
		role = "root";
	if (known)
		b->done = true;
	return role;
}

/* ---- neighbours -------------------------------------------------------- */

static void
keep_near(struct near *n, struct str raw, enum relation relation)
{
	if (n->len < raw.len || !n->raw)
		n->raw = cli_realloc(n->raw, raw.len + 1, 1);
	memcpy(n->raw, raw.p, raw.len);
	n->len = raw.len;
	n->relation = relation;
}

void
lane_remember(struct lane *l, struct str raw, enum relation relation)
{
	if (!l->a)
		keep_near(&l->before[l->nbefore++ % BEFORE], raw, relation);
	else if (l->nafter < AFTER)
		keep_near(&l->after[l->nafter++], raw, relation);
}

/* The last certified record, as long as it is the one before. */
void
lane_end_prefix(struct lane *l)
{
	if (l->broken)
		return;
	l->broken = true;
	const struct near *n = &l->before[(l->nbefore - 1) % BEFORE];
	if (l->nbefore)
		keep_near(
		    &l->certified, (struct str){ n->raw, n->len }, REL_SAME);
}

/* ---- results ----------------------------------------------------------- */

void
lane_report_near(const struct lane *l, struct report *r)
{
	size_t n = l->nbefore < BEFORE ? l->nbefore : BEFORE;
	for (size_t i = 0; i < n; i++) {
		const struct near *k =
		    &l->before[(l->nbefore - n + i) % BEFORE];
		report_near(r, (int)i - (int)n, (struct str){ k->raw, k->len },
		    relation_name[k->relation]);
	}
	for (size_t i = 0; i < l->nafter; i++)
		report_near(r, (int)i + 1,
		    (struct str){ l->after[i].raw, l->after[i].len },
		    relation_name[l->after[i].relation]);
}
void
lane_report_prefix(struct lane *l, struct report *r, bool print)
{
	lane_end_prefix(l);
	report_prefix(r,
	    &(struct prefix){ .rank = l->rank,
		.records = l->prefix,
		.last = { l->certified.raw, l->certified.len },
		.next = l->a ? l->a->raw : STR_NULL,
		.unmatched = l->alone[0] + l->alone[1] },
	    print);
}
