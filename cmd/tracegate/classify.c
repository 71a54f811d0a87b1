/*
 * tracegate classify: why each slow period was slow, by the rules of a file,
 * or unknown. See tracegate(1) and tracegate-rules(5).
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "facts.h"
#include "judge.h"
#include "keys.h"
#include "num.h"
#include "reasons.h"
#include "stats.h"
#include "verbs.h"

enum {
	OPT_C_PRESET = OPT_OWN,
	OPT_C_STEP,
	OPT_C_SLOW,
	OPT_C_FLOOR,
	OPT_C_SLO,
	OPT_C_BASELINE,
	OPT_C_LATE,
	OPT_C_COVERAGE,
	SLOW_MAX = 1000, /* periods that are judged */
};

// clang-format off
static const struct opt table[] = {
	{ 't', "type-in", "FORMAT", "force the input format" },
	{ 'r', "rules", "FILE", "causes and their conditions (shipped)" },
	{ OPT_C_PRESET, "preset", "LIST", "names of steps, as in filter" },
	{ OPT_C_STEP, "step", "GLOB", "these names are steps" },
	{ OPT_C_SLOW, "slow", "RATIO", "slow is that many medians (2)" },
	{ OPT_C_FLOOR, "floor", "TIME", "and longer by this (1ms)" },
	{ OPT_C_SLO, "slo", "TIME", "steps that take longer are slow" },
	{ OPT_C_BASELINE, "baseline", "FILE", "medians of an earlier run" },
	{ OPT_C_LATE, "late", "TIME", "a rank is late beyond this (1ms)" },
	{ OPT_C_COVERAGE, "coverage", "PERCENT", "below it, unknown (80)" },
	OPT_JUDGE,
	OPT_COMMON,
	OPT_LAST,
};
// clang-format on

static const char *const usage[] = {
	"tracegate classify [options] [-r RULES] TRACE...",
	NULL,
};

static const char summary[] =
    "Says why each slow period was slow, by rules over what the trace holds,\n"
    "or unknown. One trace a rank.";

struct settings {
	struct cli_common common;
	const char *type, *rules, *baseline, *preset;
	char **path;
	uint32_t npaths;
	struct sync_rule *sync;
	size_t nsync;
	struct slow_rule slow;
	int64_t late;
	uint64_t coverage;
};

/* ---- rules -------------------------------------------------------------- */

static void
read_rules(struct rules *r, const char *file)
{
	char shipped[4096];
	struct src *src;
	struct err e = { 0 };
	if (!file) {
		if (!cli_shipped("tracegate", "rules", "causes", shipped,
			sizeof shipped))
			cli_die("cannot find the shipped rules; -r names some");
		file = shipped;
	}
	if (src_open(&src, file, cli_tmpdir(), 0, &e) || rules_read(r, src, &e))
		cli_die_err(file, &e);
}

/* ---- one slow period ---------------------------------------------------- */

/* How often each answer was given. */
struct tally {
	const char *answer;
	const char *need;
	uint64_t n;
};

struct summary {
	struct tally cause[RULES_MAX], reason[8];
	uint64_t named, unknown;
	int64_t rank; /* that all named ones have in common; -1: none */
	double coverage;
};

static void
count(struct tally *t, size_t room, const char *answer, const char *need)
{
	size_t i = 0;
	while (i < room - 1 && t[i].answer && strcmp(t[i].answer, answer) != 0)
		i++;
	if (!t[i].answer)
		t[i] = (struct tally){ answer, need, 0 };
	t[i].n++;
}

static const struct tally *
most(const struct tally *t, size_t room)
{
	const struct tally *best = t;
	for (size_t i = 1; i < room && t[i].answer; i++)
		if (t[i].n > best->n)
			best = &t[i];
	return best;
}

static void
put_json(struct rec_out *o, const char *key, struct str content)
{
	struct buf b = { 0 };
	scan_plain(&b, content);
	rec_str(o, key, buf_view(&b));
	buf_free(&b);
}

static void
put_value(struct buf *b, enum unit unit, double v)
{
	if (unit == UNIT_SHARE)
		buf_printf(b, "%.1f%%", v * 100);
	else if (unit == UNIT_TIME && isfinite(v))
		num_put_time(b, (int64_t)v);
	else
		num_put_f64(b, v);
}

static void
fact_name(struct buf *b, const struct rules *r, int fact, int set)
{
	buf_puts(b, fact_kinds[fact].name);
	if (set != NO_SET) {
		buf_putc(b, '.');
		buf_str(b, r->set[set].name);
	}
}

/* The facts that the rule asked for, with what they are. */
static void
put_evidence(struct rec_out *o, struct facts *f, const struct rules *r,
    const struct rule *rule)
{
	struct buf b = { 0 };
	for (uint32_t i = 0; i < rule->n; i++) {
		const struct node *n = &rule->node[i];
		if (n->op != NODE_TEST)
			continue;
		struct fact v = facts_get(f, n->fact, n->set);
		buf_puts(&b, b.len ? " " : "");
		fact_name(&b, r, n->fact, n->set);
		buf_putc(&b, ' ');
		if (v.known)
			put_value(&b, fact_kinds[n->fact].unit, v.v);
		else
			buf_puts(&b, "unknown");
	}
	rec_str(o, "evidence", buf_view(&b));
	buf_free(&b);
}

static void
put_fact(struct rec_out *o, const char *entity, struct facts *f,
    const struct rules *r, int fact, int set)
{
	struct buf b = { 0 };
	struct fact v = facts_get(f, fact, set);
	rec_begin(o, "fact");
	rec_put(o, "entity", entity);
	fact_name(&b, r, fact, set);
	rec_str(o, "name", buf_view(&b));
	b.len = 0;
	if (v.known) {
		put_value(&b, fact_kinds[fact].unit, v.v);
		rec_str(o, "value", buf_view(&b));
	} else {
		rec_put(o, "need", fact_kinds[fact].need);
	}
	rec_end(o);
	buf_free(&b);
}

static void
put_facts(struct rec_out *o, const char *entity, struct facts *f,
    const struct rules *r)
{
	for (int fact = 0; fact < FACTS; fact++)
		if (!fact_kinds[fact].of_set)
			put_fact(o, entity, f, r, fact, NO_SET);
		else
			for (uint32_t i = 0; i < r->nsets; i++)
				put_fact(o, entity, f, r, fact, (int)i);
}

static void
put_finding(struct rec_out *o, const char *entity, struct facts *f,
    const struct rules *r, const struct answer *a)
{
	const struct period *p = f->subject;
	const struct model *m = &f->t->m[p->model];
	rec_begin(o, "finding");
	rec_put(o, "entity", entity);
	rec_put(o, "result", a->cause ? "anomaly" : "unknown");
	if (a->cause)
		rec_put(o, "cause", a->cause);
	else
		rec_put(o, "reason", a->reason);
	if (a->rule) {
		rec_fmt(o, "by", "%.*s:%" PRIu32, STR_ARG(a->rule->cause),
		    a->rule->line);
		put_evidence(o, f, r, a->rule);
	}
	if (a->need[0])
		rec_put(o, "need", a->need);
	if (m->rank >= 0)
		rec_i64(o, "rank", m->rank);
	put_json(o, "name", m->name[m->slice[p->slice].name]);
	if (f->ranks->met && f->t->n > 1)
		rec_time(o, "late", f->ranks->late);
	rec_time(o, "from", p->from + m->info.base_ns);
	rec_time(o, "until", p->until + m->info.base_ns);
	if (p->usual)
		rec_fmt(o, "ratio", "%.2f",
		    (double)period_dur(p) / (double)p->usual);
	rec_fmt(o, "coverage", "%.4f",
	    (double)f->now->covered / (double)f->now->dur);
	rec_end(o);
}

static void
put_own_evidence(const struct settings *s, struct rec_out *o,
    const struct facts *f, const struct answer *a)
{
	const struct model *m = &f->t->m[f->subject->model];
	if (!s->common.evidence || !a->cause || m->rank < 0)
		return;
	rec_begin(o, "evidence");
	rec_time(o, "time",
	    s->common.now_given ? s->common.now
				: f->subject->until + m->info.base_ns);
	rec_fmt(o, "entity", "rank:%" PRId64, m->rank);
	rec_put(o, "agent", "tracegate");
	rec_put(o, "status", "faulty");
	rec_put(o, "reason", a->cause);
	rec_end(o);
}

static void
judge_one(const struct settings *s, struct rec_out *o, struct traces *t,
    const struct rules *r, uint32_t i, const struct judge *j,
    struct summary *sum)
{
	struct facts f;
	struct answer a;
	char entity[32];
	facts_make(&f, t, &t->periods.slow[i]);
	judge_period(j, &f, &a);
	snprintf(entity, sizeof entity, "window:%" PRIu32, i);
	put_finding(o, entity, &f, r, &a);
	if (s->common.verbose)
		put_facts(o, entity, &f, r);
	put_own_evidence(s, o, &f, &a);
	double c = (double)f.now->covered / (double)f.now->dur;
	if (!i || c < sum->coverage)
		sum->coverage = c;
	if (!a.cause) {
		sum->unknown++;
		count(sum->reason, 8, a.reason, a.need_kept);
		return;
	}
	int64_t rank = t->n > 1 ? facts_rank(&f) : -1;
	sum->rank = !sum->named || sum->rank == rank ? rank : -1;
	sum->named++;
	count(sum->cause, RULES_MAX, a.cause, NULL);
}

/* ---- all of them -------------------------------------------------------- */

static void
put_counts(struct rec_out *o, const struct summary *sum, uint64_t left_out)
{
	for (size_t i = 0; i < RULES_MAX && sum->cause[i].answer; i++) {
		rec_begin(o, "count");
		rec_fmt(o, "class", "cause:%s", sum->cause[i].answer);
		rec_u64(o, "n", sum->cause[i].n);
		rec_end(o);
	}
	if (left_out) {
		rec_begin(o, "count");
		rec_put(o, "class", "suppressed");
		rec_u64(o, "n", left_out);
		rec_end(o);
	}
	uint64_t n = sum->named + sum->unknown;
	if (!n)
		return;
	struct interval w = stats_wilson(sum->unknown, n, STATS_Z95);
	rec_begin(o, "rate");
	rec_put(o, "name", "unknown");
	rec_u64(o, "k", sum->unknown);
	rec_u64(o, "n", n);
	rec_fmt(o, "share", "%.4f", (double)sum->unknown / (double)n);
	rec_fmt(o, "low", "%.4f", w.low);
	rec_fmt(o, "high", "%.4f", w.high);
	rec_put(o, "interval", "wilson");
	rec_end(o);
}

static void
decide(struct verdict *v, const struct traces *t, const struct summary *sum)
{
	v->result = "normal";
	v->status = STATUS_CLEAN;
	if (sum->named) {
		v->result = "anomaly";
		v->status = STATUS_FOUND;
	} else if (sum->unknown) {
		const struct tally *why = most(sum->reason, 8);
		v->result = "unknown";
		v->status = STATUS_UNKNOWN;
		v->reason = why->answer;
		v->need = why->need;
	} else if (t->periods.cold == t->periods.kinds) {
		v->result = "unknown";
		v->status = STATUS_UNKNOWN;
		v->reason = REASON_COLD;
		v->need = "at least 8 steps of a kind, or --baseline";
	}
}

/* What the shared rules call damage has a name of its own here. */
static void
specific(struct verdict *v)
{
	if (v->status != STATUS_UNKNOWN || !v->reason)
		return;
	if (!strcmp(v->reason, REASON_DAMAGED) && v->damage.lost)
		v->reason = REASON_DROPS;
	else if (!strcmp(v->reason, REASON_FILTERED))
		v->reason = REASON_TRUNCATED;
}

static void
put_verdict(struct rec_out *o, const struct verdict *v, const struct traces *t,
    const struct summary *sum)
{
	char entity[32] = "";
	if (sum->named && sum->rank >= 0)
		snprintf(entity, sizeof entity, "rank:%" PRId64, sum->rank);
	verdict_begin(o, v, str_c(entity), NULL);
	if (sum->named)
		rec_put(o, "cause", most(sum->cause, RULES_MAX)->answer);
	rec_u64(o, "compared", t->periods.n);
	if (sum->named + sum->unknown)
		rec_fmt(o, "coverage", "%.4f", sum->coverage);
	rec_u64(o, "windows", t->periods.nslow);
	verdict_end(o, v);
}

static void
add_damage(struct damage *d, const struct traces *t)
{
	for (uint32_t i = 0; i < t->n; i++) {
		const struct trace_info *info = &t->m[i].info;
		d->bad += info->bad + info->control;
		d->lost += info->lost + t->s[i].dropped;
		d->filtered = d->filtered || info->truncated;
	}
}

static void
report(const struct settings *s, struct rec_out *o, struct traces *t,
    const struct rules *r, struct verdict *v)
{
	struct summary *sum = cli_alloc(1, sizeof *sum);
	uint32_t n = t->periods.nslow < SLOW_MAX ? t->periods.nslow : SLOW_MAX;
	add_damage(&v->damage, t);
	uint64_t lost = v->damage.bad + v->damage.lost + v->damage.skipped;
	t->drops = lost > s->common.policy.allow_bad ? lost : 0;
	struct judge j = { .rules = r,
		.coverage = (double)s->coverage / 100,
		.truncated = v->damage.filtered && !s->common.policy.partial };
	for (uint32_t i = 0; i < n; i++)
		judge_one(s, o, t, r, i, &j, sum);
	put_counts(o, sum, t->periods.nslow - n);
	decide(v, t, sum);
	verdict_settle(v, &s->common.policy);
	specific(v);
	if (v->status != STATUS_NONE)
		put_verdict(o, v, t, sum);
	free(sum);
}

/* ---- traces ------------------------------------------------------------- */

static void
put_head(struct rec_out *o, const struct settings *s)
{
	rec_begin(o, "head");
	rec_put(o, "of", "tracegate");
	rec_u64(o, "version", SCHEMA_VERSION);
	rec_put(o, "tool", "tracegate " VERSION);
	rec_fmt(o, "inputs", "%" PRIu32, s->npaths);
	rec_end(o);
}

/* The number that could not be read. */
static uint64_t
read_traces(const struct settings *s, struct traces *t, struct kinds *kinds)
{
	uint64_t skipped = 0;
	for (uint32_t i = 0; i < s->npaths; i++) {
		struct err e = { 0 };
		struct model *m = &t->m[t->n];
		struct marks *marks = &t->s[t->n];
		struct model_watch watch = { marks_see, marks };
		*marks = (struct marks){ .kinds = kinds };
		if (model_load_watched(
			m, s->path[i], s->type, NULL, &watch, &e)) {
			cli_warn_err(s->path[i], &e);
			model_free(m);
			marks_free(marks);
			skipped++;
			continue;
		}
		if (m->rank < 0 && s->npaths > 1)
			m->rank = i;
		marks_sort(marks, m);
		t->n++;
	}
	return skipped;
}

static void
traces_free(struct traces *t)
{
	periods_free(&t->periods);
	ranks_free(&t->ranks);
	for (uint32_t i = 0; i < t->n; i++) {
		model_free(&t->m[i]);
		marks_free(&t->s[i]);
	}
	free(t->m);
	free(t->s);
	free(t->lateness);
	free(t->slow_of);
}

static void
classify(const struct settings *s, struct rec_out *o, const struct rules *r,
    struct verdict *v)
{
	struct traces t = { .late = s->late };
	struct kinds kinds;
	kinds_init(&kinds, r, s->sync, s->nsync);
	if (s->baseline)
		baseline_load(&kinds.keys, s->baseline);
	t.m = cli_alloc(s->npaths, sizeof *t.m);
	t.s = cli_alloc(s->npaths, sizeof *t.s);
	v->damage.skipped = read_traces(s, &t, &kinds);
	if (t.n)
		periods_make(&t.periods, t.m, t.s, t.n, &s->slow);
	if (t.n > 1)
		ranks_make(&t.ranks, t.m, t.n);
	if (t.periods.n) {
		traces_compare(&t);
		report(s, o, &t, r, v);
	} else if (t.n) {
		cli_warn("no steps in the input: --step names them");
	}
	traces_free(&t);
	kinds_free(&kinds);
}

static int
run(const struct settings *s)
{
	struct cli_out to;
	struct rec_out *o;
	struct rules rules;
	struct err e = { 0 };
	struct verdict v = { .status = STATUS_NONE };
	read_rules(&rules, s->rules);
	cli_out_open(&to, s->common.output, false);
	if (rec_out_open(&o, to.fd, &s->common.how, &e))
		cli_die("%s", e.msg);
	put_head(o, s);
	classify(s, o, &rules, &v);
	uint64_t skipped = v.damage.skipped;
	v.status = cli_out_end(&to, o, v.result, v.status, skipped);
	const char *result = v.status == STATUS_NONE ? NULL : v.result;
	cli_prom(&s->common, NULL, result, v.reason, v.status, skipped);
	rules_free(&rules);
	return v.status;
}

/* ---- options ------------------------------------------------------------ */

static double
ratio_arg(const struct opt_state *o)
{
	double v;
	struct err e;
	if (num_f64(str_c(o->arg), &v, &e) || !(v > 1 && v <= 1e6))
		cli_usage("option %s: expected a number above 1, found \"%s\"",
		    o->name, o->arg);
	return v;
}

static bool
own_option(struct settings *s, int id, const struct opt_state *o)
{
	switch (id) {
	case 't':
		s->type = o->arg;
		return true;
	case 'r':
		s->rules = o->arg;
		return true;
	case OPT_C_PRESET:
		s->preset = o->arg;
		return true;
	case OPT_C_STEP:
		sync_add(&s->sync, &s->nsync,
		    (struct sync_rule){ "*", o->arg, CLASS_STEP });
		return true;
	case OPT_C_SLOW:
		s->slow.factor = ratio_arg(o);
		return true;
	case OPT_C_FLOOR:
		s->slow.floor = cli_duration(o);
		return true;
	case OPT_C_SLO:
		s->slow.slo = cli_duration(o);
		return true;
	case OPT_C_BASELINE:
		s->baseline = o->arg;
		return true;
	case OPT_C_LATE:
		s->late = cli_duration(o);
		return true;
	case OPT_C_COVERAGE:
		s->coverage = cli_u64(o, 0, 100);
		return true;
	default:
		return false;
	}
}

static void
parse(struct settings *s, int argc, char **argv)
{
	struct opt_state o;
	int id;
	*s = (struct settings){ .late = 1000000,
		.coverage = 80,
		.preset = "all",
		.slow = { .factor = 2, .floor = 1000000 } };
	s->path = cli_alloc((size_t)argc + 1, sizeof *s->path);
	opt_start(&o, table, argc, argv);
	while ((id = opt_next(&o)) != OPT_END) {
		if (id == OPT_OPERAND) {
			if (s->npaths == RANKS_MAX)
				cli_usage("more than %d traces", RANKS_MAX);
			s->path[s->npaths++] = (char *)(uintptr_t)o.arg;
		} else if (!own_option(s, id, &o)) {
			cli_common(&s->common, id, &o, usage, summary);
		}
	}
	cli_common_done(&s->common, "finding");
	sync_preset(s->preset, &s->sync, &s->nsync);
	if (!s->npaths) {
		cli_need_input();
		static char in[] = "-";
		s->path[s->npaths++] = in;
	}
}

int
verb_classify(int argc, char **argv)
{
	struct settings s;
	parse(&s, argc, argv);
	int status = run(&s);
	free(s.path);
	free(s.sync);
	return status;
}
