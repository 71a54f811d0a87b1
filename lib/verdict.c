/* What a command concludes: see verdict.h. */
#include "verdict.h"

void
damage_add(struct damage *d, const struct rec_totals *t)
{
	d->bad += t->bad;
	d->skipped += t->skipped;
	d->lost += t->lost;
	switch (rec_totals_state(t)) {
	case REC_FILTERED:
		d->filtered = true;
		break;
	case REC_ALTERED:
		d->altered++;
		break;
	case REC_TYPED:
		d->typed = true;
		break;
	case REC_COMPLETE:
		break;
	}
}

static bool
is_damaged(const struct damage *d, const struct policy *p)
{
	uint64_t n = d->bad + d->lost + d->skipped;
	return d->altered || n > p->allow_bad;
}

static void
to_unknown(struct verdict *v, const char *reason, const char *need)
{
	v->result = "unknown";
	v->status = STATUS_UNKNOWN;
	v->reason = reason;
	v->need = need;
}

void
verdict_settle(struct verdict *v, const struct policy *p)
{
	const struct damage *d = &v->damage;
	if (d->typed)
		v->scope = "typed";
	bool damaged = is_damaged(d, p);
	if (v->status == STATUS_CLEAN && damaged)
		to_unknown(v, REASON_DAMAGED,
		    d->altered ? "the streams as they were written"
			       : "undamaged input, or --allow-bad N");
	else if (v->status == STATUS_CLEAN && d->filtered && !p->partial)
		to_unknown(v, REASON_FILTERED,
		    "whole streams with their end "
		    "records, or --partial");
	else if (v->status == STATUS_CLEAN && d->filtered)
		v->scope = "partial";
	if (v->status == STATUS_UNKNOWN && damaged && p->strict)
		v->status = STATUS_NONE;
}

void
verdict_begin(struct rec_out *o, const struct verdict *v, struct str entity,
    const char *bound)
{
	rec_begin(o, "verdict");
	rec_put(o, "result", v->result);
	rec_u64(o, "status", (uint64_t)v->status);
	if (entity.len)
		rec_str(o, "entity", entity);
	if (v->reason)
		rec_put(o, "reason", v->reason);
	if (bound)
		rec_put(o, "bound", bound);
	if (v->need)
		rec_put(o, "need", v->need);
	if (v->scope)
		rec_put(o, "scope", v->scope);
}

void
verdict_end(struct rec_out *o, const struct verdict *v)
{
	if (v->damage.bad)
		rec_u64(o, "bad", v->damage.bad);
	if (v->damage.lost)
		rec_u64(o, "lost", v->damage.lost);
	if (v->damage.skipped)
		rec_u64(o, "skipped", v->damage.skipped);
	if (v->damage.altered)
		rec_u64(o, "altered", v->damage.altered);
	rec_end(o);
}

int
status_worse(int a, int b)
{
	static const int rank[] = {
		[STATUS_NONE] = 0,
		[STATUS_CLEAN] = 1,
		[STATUS_UNKNOWN] = 2,
		[STATUS_FOUND] = 3,
	};
	return rank[a] >= rank[b] ? a : b;
}
