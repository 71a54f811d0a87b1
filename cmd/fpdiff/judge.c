/* From counts and damage to a verdict. */
#include "fpdiff.h"

/* The codes of the manual page. */
#define REASON_ORDER "order"
#define REASON_WINDOW "window"
#define REASON_UNSTABLE "unstable"
#define REASON_UNMATCHED "unmatched"
#define REASON_UNMATCHED_PARTIAL "unmatched-partial"
#define REASON_MISSING_RANKS "missing-ranks"
#define REASON_MASKED "masked"
#define REASON_NOTHING_COMPARED "nothing-compared"

uint64_t
tally_different(const struct tally *t)
{
	return t->n[DIFF_DIFFERENT] + t->n[DIFF_FIRST] +
	       t->n[DIFF_CONSEQUENCE] + t->n[DIFF_ISOLATED] +
	       t->n[DIFF_TAINTED];
}

static void
unknown(struct verdict *v, const char *reason, const char *need)
{
	v->result = "unknown";
	v->status = STATUS_UNKNOWN;
	v->reason = reason;
	v->need = need;
}

static void
different(struct verdict *v, const char *reason)
{
	v->result = "different";
	v->status = STATUS_FOUND;
	v->reason = reason;
}

/* Pairs that differ. */
static void
judge_values(struct verdict *v, const char *conditions, const struct judged *j)
{
	if (j->order_broken)
		unknown(
		    v, REASON_ORDER, "the stream in the order it was written");
	else if (j->window_broken)
		unknown(v, REASON_WINDOW,
		    "the ranks in the same order on both sides, or a larger "
		    "--window");
	else if (conditions)
		unknown(v, REASON_CONDITIONS_DIFFER,
		    "two runs with the same switches and build");
	else if (j->tainted)
		unknown(v, REASON_UNSTABLE,
		    "runs in which the unstable boundaries agree");
	else
		different(v, NULL);
}

/* No pair differs; some records have no partner. */
static void
judge_unmatched(struct verdict *v, const char *conditions, bool whole,
    const struct judged *j)
{
	if (j->order_broken || j->window_broken || conditions)
		judge_values(v, conditions, j);
	else if (whole)
		different(v, REASON_UNMATCHED);
	/* Otherwise the damage is the reason, and verdict_settle says so. */
}

/*
 * --partial: may the records without a partner have lost it to the filter?
 * Not if both sides have some: then a record was moved, renamed or replaced.
 * Nor if the side that lacks them is all there.
 */
static bool
part_explains(const struct tally *t, const bool *filtered)
{
	if (t->alone[0] && t->alone[1])
		return false;
	return (!t->alone[0] || filtered[1]) && (!t->alone[1] || filtered[0]);
}

/* What is left to say when no pair differs and none is missing. */
static void
settle(struct report *r, struct verdict *v)
{
	const struct tally *t = &r->tally;
	if (!t->equal && !tally_different(t) && !t->n[DIFF_UNMATCHED] &&
	    !t->n[DIFF_INCOMPARABLE] && !t->n[DIFF_MASKED] &&
	    !t->n[DIFF_UNSTABLE]) {
		cli_warn("nothing to compare: no records on either side");
		v->status = STATUS_NONE;
		return;
	}
	if (v->status == STATUS_CLEAN && t->n[DIFF_INCOMPARABLE])
		unknown(v, REASON_INCOMPARABLE,
		    "records of equal dtype, shape and hash algorithm");
	verdict_settle(v, &r->s->common.policy);
	if (v->status == STATUS_CLEAN && !t->equal)
		unknown(v,
		    t->n[DIFF_MASKED] ? REASON_MASKED : REASON_NOTHING_COMPARED,
		    "records that both sides have");
}

void
judge_tensors(struct report *r, struct outcome *o, bool unmatched)
{
	struct verdict *v = &o->v;
	v->result = "same";
	v->status = STATUS_CLEAN;
	if (tally_different(&r->tally))
		different(v, NULL);
	else if (unmatched)
		different(v, REASON_UNMATCHED);
	settle(r, v);
}

/* Has any record a partner? Else nothing was compared. */
static bool
tally_paired(const struct tally *t)
{
	return t->equal || tally_different(t) || t->n[DIFF_INCOMPARABLE] ||
	       t->n[DIFF_MASKED] || t->n[DIFF_UNSTABLE];
}

void
judge(struct report *r, const struct side *a, const struct side *b,
    const struct judged *j, struct outcome *o)
{
	const struct tally *t = &r->tally;
	struct verdict *v = &o->v;
	const char *conditions = side_conditions_differ(a, b);
	*v = (struct verdict){ .result = "same", .status = STATUS_CLEAN };
	o->time_given = side_time(b, &o->time);
	side_damage(a, &v->damage);
	side_damage(b, &v->damage);
	v->damage.skipped += t->missing;
	bool filtered[] = { side_is_filtered(a), side_is_filtered(b) };
	bool whole = side_is_whole(a) && side_is_whole(b) && !t->missing;
	uint64_t unmatched = t->n[DIFF_UNMATCHED] - t->missing_records;
	if (tally_different(t))
		judge_values(v, conditions, j);
	else if (unmatched && tally_paired(t))
		judge_unmatched(v, conditions, whole, j);
	bool absent = side_absent_ranks(a) || side_absent_ranks(b);
	if (v->status == STATUS_CLEAN && (t->missing || absent))
		unknown(v, REASON_MISSING_RANKS, "the streams of all ranks");
	else if (v->status == STATUS_CLEAN &&
		 (j->sequence_fell || j->window_broken))
		judge_values(v, NULL, j);
	else if (v->status == STATUS_CLEAN && t->n[DIFF_UNSTABLE])
		judge_values(v, NULL, &(struct judged){ .tainted = true });
	else if (v->status == STATUS_CLEAN && r->s->common.policy.partial &&
		 !part_explains(t, filtered))
		unknown(v, REASON_UNMATCHED_PARTIAL,
		    "whole streams in the order they were written");
	settle(r, v);
}
