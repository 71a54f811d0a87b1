/* May a stack replace another? See score.h. */
#include "score.h"

#include "reasons.h"
#include "stats.h"

/* ---- one incident ---------------------------------------------------- */

static bool
is_allowed(const struct score_settings *s, struct str id)
{
	for (size_t i = 0; i < s->nallowed; i++)
		if (str_is(id, s->allowed[i]))
			return true;
	return false;
}

static void
put_truth(const struct score *sc)
{
	const struct facts *f = &sc->side[0].facts;
	struct buf b = { 0 };
	for (size_t i = 0; i < f->ntruths; i++) {
		if (i)
			buf_putc(&b, ',');
		buf_str(&b, facts_name(f, f->truth[i]));
	}
	rec_str(sc->out, "truth", f->ntruths ? buf_view(&b) : STR_LIT("none"));
	buf_free(&b);
}

void
gate_compare(struct score *sc)
{
	struct side *new = &sc->side[0], *old = &sc->side[1];
	const char *class = "changed";
	struct str id = new->facts.id;
	bool worse = new->false_culprit && !old->false_culprit;
	bool allowed = worse && is_allowed(sc->s, id);
	sc->b += old->correct && !new->correct;
	sc->c += !old->correct && new->correct;
	sc->new_false += worse && !allowed;
	sc->new_false_allowed += allowed;
	sc->fp_b += worse;
	sc->fp_c += !new->false_culprit && old->false_culprit;
	sc->un_b += old->answered && !new->answered;
	sc->un_c += !old->answered && new->answered;
	if (str_same(buf_view(&new->said), buf_view(&old->said)) &&
	    new->correct == old->correct && !worse)
		return;
	if (worse)
		class = allowed ? "false-culprit-allowed" : "false-culprit";
	else if (old->correct != new->correct)
		class = new->correct ? "better" : "worse";
	rec_begin(sc->out, "flip");
	rec_str(sc->out, "incident", id);
	rec_put(sc->out, "class", class);
	put_truth(sc);
	rec_str(sc->out, "a", buf_view(&old->said));
	rec_str(sc->out, "b", buf_view(&new->said));
	rec_end(sc->out);
}

/* ---- the gate -------------------------------------------------------- */

static double
coverage(const struct side *s)
{
	uint64_t n = s->culprits + s->innocents;
	uint64_t unknown = s->unknown_guilty + s->unknown_clean;
	return n ? 100 * (double)(n - unknown) / (double)n : 0;
}

static void
put_mcnemar(struct rec_out *o, const char *name, uint64_t b, uint64_t c)
{
	struct mcnemar m = stats_mcnemar(b, c);
	rec_begin(o, "rate");
	rec_put(o, "name", name);
	rec_u64(o, "k", b);
	rec_u64(o, "n", b + c);
	rec_fmt(o, "note",
	    "McNemar: exact p %.6g, mid-p %.6g, one-sided for worse %.6g",
	    m.exact, m.mid, m.worse);
	rec_end(o);
}

static struct verdict
gate(const struct score *sc)
{
	struct verdict v = { .result = "pass", .status = STATUS_CLEAN };
	const struct side *new = &sc->side[0], *old = &sc->side[1];
	double drop = coverage(old) - coverage(new);
	const char *why = NULL;
	if (sc->new_false)
		why = REASON_FALSE_CULPRIT;
	else if (drop > sc->s->max_drop + 1e-9)
		why = REASON_COVERAGE;
	else if (stats_mcnemar(sc->b, sc->c).worse < 0.05)
		why = REASON_MCNEMAR;
	if (why) {
		v.result = "fail";
		v.status = STATUS_FOUND;
		v.reason = why;
	}
	v.damage = sc->all;
	v.damage.typed = false;
	return v;
}

int
gate_print(struct score *sc, const char **result, const char **reason)
{
	struct verdict v = gate(sc);
	put_mcnemar(sc->out, "worse", sc->b, sc->c);
	put_mcnemar(sc->out, "worse-false-culprit", sc->fp_b, sc->fp_c);
	put_mcnemar(sc->out, "worse-unknown", sc->un_b, sc->un_c);
	verdict_settle(&v, &sc->s->common.policy);
	*result = v.result;
	*reason = v.reason;
	if (v.status == STATUS_NONE)
		return v.status;
	verdict_begin(sc->out, &v, STR_NULL, NULL);
	rec_u64(
	    sc->out, "compared", sc->side[0].culprits + sc->side[0].innocents);
	rec_u64(sc->out, "different", sc->b + sc->c);
	verdict_end(sc->out, &v);
	return v.status;
}
