/* What gpureplay run prints. */
#define _GNU_SOURCE
#include "gpureplay.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "num.h"
#include "stats.h"

static const char *const pin_name[] = {
	[PIN_UNSEEN] = "unverified",
	[PIN_VERIFIED] = "verified",
	[PIN_ELSEWHERE] = "elsewhere",
};

/* ---- words -------------------------------------------------------------- */

static bool
is_plain_word(const char *w)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_@%+=:,./-";
	return *w && strspn(w, plain) == strlen(w);
}

void
put_words(struct buf *b, char *const *word, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *w = word[i];
		buf_puts(b, i ? " " : "");
		if (is_plain_word(w)) {
			buf_puts(b, w);
			continue;
		}
		buf_putc(b, '\'');
		for (; *w; w++)
			if (*w == '\'')
				buf_puts(b, "'\\''");
			else
				buf_putc(b, *w);
		buf_putc(b, '\'');
	}
}

static size_t
count_words(char *const *word)
{
	size_t n = 0;
	while (word[n])
		n++;
	return n;
}

/* A long command line need not be printed whole. */
static void
put_command(struct rec_out *o, const char *key, char *const *word)
{
	struct buf b = { 0 };
	put_words(&b, word, count_words(word));
	struct str s = buf_view(&b);
	if (s.len > REC_LINE_MAX / 16)
		s.len = REC_LINE_MAX / 16;
	rec_str(o, key, s);
	buf_free(&b);
}

/* ---- before ------------------------------------------------------------- */

void
report_head(const struct session *ss, struct rec_out *o)
{
	struct utsname u = { 0 };
	uname(&u);
	rec_begin(o, "head");
	rec_put(o, "of", "replay");
	rec_u64(o, "version", SCHEMA_VERSION);
	rec_put(o, "tool", "gpureplay " VERSION);
	put_command(o, "run", ss->s->command);
	rec_time(o, "time", cli_now(&ss->s->common));
	rec_put(o, "host", u.nodename);
	rec_end(o);
}

static size_t
named_of(const struct session *ss, const struct group *g)
{
	size_t named = 0;
	for (size_t i = 0; i < g->n; i++)
		named += ss->s->devices.list[g->member[i]].named;
	return named;
}

void
report_plan(const struct session *ss, struct rec_out *o)
{
	const struct settings *s = ss->s;
	for (size_t i = 0; i < ss->ngroups; i++) {
		const struct group *g = &ss->group[i];
		uint64_t rounds = rule_clean(&s->rule, g->n);
		uint64_t need = rule_needed(&s->rule, g->n, named_of(ss, g));
		if (s->rounds && s->rounds < rounds)
			rounds = s->rounds;
		rec_begin(o, "plan");
		rec_u64(o, "group", i + 1);
		rec_u64(o, "devices", g->n);
		rec_u64(o, "rounds", rounds);
		if (need)
			rec_u64(o, "divergent", need);
		rec_time(o, "max_time", s->max_time);
		rec_time(o, "timeout", s->timeout);
		rec_f64(o, "rate", s->rule.rate);
		rec_f64(o, "alpha", s->rule.alpha);
		rec_f64(o, "ratio", s->rule.ratio);
		const char *model = s->devices.list[g->member[0]].model;
		if (model)
			rec_put(o, "model", model);
		rec_end(o);
	}
}

void
report_dry(const struct session *ss, struct rec_out *o)
{
	const struct devices *d = &ss->s->devices;
	for (size_t i = 0; i < d->n; i++) {
		struct launch l;
		launch_make(&l, ss, &d->list[i]);
		rec_begin(o, "process");
		rec_put(o, "entity", d->list[i].entity);
		if (d->list[i].cpu >= 0)
			rec_u64(o, "cpu", (uint64_t)d->list[i].cpu);
		if (l.env)
			put_command(o, "env", l.env);
		put_command(o, "argv", l.argv);
		rec_end(o);
		launch_free(&l);
	}
}

/* ---- while it runs ------------------------------------------------------ */

/* What the other side cannot know. */
static void
put_far(struct rec_out *o, const struct device *d)
{
	struct utsname u = { 0 };
	uname(&u);
	rec_put(o, "host", u.nodename);
	rec_put(o, "build", d->alike);
}

void
report_process(const struct session *ss, struct rec_out *o, size_t device,
    const struct child_result *r, const struct signature *sig, uint32_t result)
{
	const struct settings *s = ss->s;
	rec_begin(o, "process");
	rec_put(o, "entity", s->devices.list[device].entity);
	rec_u64(o, "round", ss->rounds + 1);
	rec_put(o, "outcome", outcome_name[r->outcome]);
	if (r->outcome == OUTCOME_EXIT)
		rec_i64(o, "exit", r->status);
	if (r->outcome == OUTCOME_SIGNAL)
		rec_i64(o, "signal", r->status);
	if (result)
		rec_u64(o, "result", result);
	if (sig->records)
		rec_u64(o, "records", sig->records);
	rec_put(o, "pin", s->trust_pin ? "trusted" : pin_name[r->pin]);
	rec_time(o, "dur", r->ns);
	if (r->strays)
		rec_u64(o, "strays", r->strays);
	if (s->far)
		put_far(o, &s->devices.list[device]);
	if (*sig->why || (r->outcome != OUTCOME_OK && *r->said))
		rec_put(o, "note", *sig->why ? sig->why : r->said);
	rec_end(o);
	rec_out_flush(o, NULL);
}

/* ---- devices ------------------------------------------------------------ */

static const char *
pin_of(const struct session *ss, const struct device_count *c)
{
	if (c->pin[PIN_ELSEWHERE])
		return pin_name[PIN_ELSEWHERE];
	if (ss->s->trust_pin)
		return "trusted";
	bool all = c->pin[PIN_VERIFIED] && !c->pin[PIN_UNSEEN];
	return pin_name[all ? PIN_VERIFIED : PIN_UNSEEN];
}

static void
put_device(const struct session *ss, struct rec_out *o, size_t number,
    const struct group *g, size_t i)
{
	const struct device *d = &ss->s->devices.list[g->member[i]];
	const struct device_count *c = &ss->count[g->member[i]];
	const struct rule_device *x = &g->device[i];
	bool suspect = g->v.suspect == (int)i;
	rec_begin(o, "device");
	rec_put(o, "entity", d->entity);
	rec_u64(o, "group", number);
	rec_put(o, "role",
	    suspect    ? "suspect"
	    : d->named ? "named"
	    : x->k     ? "deviating"
		       : "reference");
	rec_u64(o, "processes", x->processes);
	rec_u64(o, "k", x->k);
	struct interval rate = stats_clopper_pearson(x->k, x->processes, 0.05);
	rec_f64(o, "low", rate.low);
	rec_f64(o, "high", rate.high);
	rec_put(o, "pin", pin_of(ss, c));
	for (int k = OUTCOME_OK + 1; k < OUTCOMES; k++)
		if (c->outcome[k])
			rec_u64(o, outcome_name[k], c->outcome[k]);
	if (c->strays)
		rec_u64(o, "strays", c->strays);
	if (suspect) {
		rec_f64(o, "p", g->v.p);
		rec_f64(o, "ratio", g->v.ratio);
	}
	if (d->model)
		rec_put(o, "model", d->model);
	rec_end(o);
}

/* ---- the first divergence ----------------------------------------------- */

/* Its result in the first round where that is not `usual`; 0: never. */
static uint32_t
other_result(const struct session *ss, size_t device, uint32_t usual)
{
	for (size_t r = 0; r < ss->rounds; r++) {
		uint32_t x = ss->table[r * ss->s->devices.n + device];
		if (x && x != usual)
			return x;
	}
	return 0;
}

static void
put_hash(struct buf *b, struct u128 v)
{
	buf_puts(b, "xxh3-128:");
	u128_put(b, v);
}

static void
put_part(const struct session *ss, struct rec_out *o, const struct result *a,
    const struct result *b, const char *dev)
{
	for (size_t i = 0; i < ss->s->nparts; i++) {
		struct buf x = { 0 }, y = { 0 };
		if (u128_same(a->part[i], b->part[i]))
			continue;
		put_hash(&x, a->part[i]);
		put_hash(&y, b->part[i]);
		rec_begin(o, "diff");
		rec_put(o, "class", "different");
		rec_put(o, "name", ss->s->part[i]);
		rec_str(o, "a", buf_view(&x));
		rec_str(o, "b", buf_view(&y));
		rec_put(o, "dev", dev);
		rec_end(o);
		buf_free(&x);
		buf_free(&y);
		return;
	}
}

/* io=in, in.0 ...: what the step was fed. */
static bool
is_input(const struct fp *f)
{
	struct str io = f->place[FP_IO];
	return str_is(io, "in") || str_starts(io, "in.");
}

static void
put_diff(
    struct rec_out *o, const struct first *f, bool missing, const char *dev)
{
	static const char *const class[] = {
		[FIRST_DIFFERENT] = "different",
		[FIRST_INCOMPARABLE] = "incomparable",
		[FIRST_UNMATCHED] = "unmatched",
	};
	const struct buf *a = missing ? &f->b : &f->a;
	const struct buf *b = missing ? &f->a : &f->b;
	rec_begin(o, "diff");
	rec_put(o, "class", class[f->class]);
	rec_str(o, "name", f->fp.name);
	for (int i = 0; i < FP_PLACES; i++)
		if (f->fp.place[i].p)
			rec_str(o, fp_place_name[i], f->fp.place[i]);
	if (a->len)
		rec_str(o, "a", buf_view(a));
	if (b->len)
		rec_str(o, "b", buf_view(b));
	if (f->fp.kernel.p)
		rec_str(o, "kernel", f->fp.kernel);
	rec_put(o, "dev", dev);
	if (f->class == FIRST_DIFFERENT && is_input(&f->fp))
		rec_put(o, "first", "transfer");
	rec_fmt(o, "note", "%llu records before it are equal",
	    (unsigned long long)f->index);
	rec_end(o);
}

static void
put_first_of(struct rec_out *o, const struct result *a, const struct result *b,
    const char *dev)
{
	struct first f;
	struct err e = { 0 };
	bool missing = false;
	int x = first_find(a->file, b->file, &f, &e);
	if (!x && f.class == FIRST_NONE) {
		/* B is what A begins with. */
		first_free(&f);
		missing = true;
		x = first_find(b->file, a->file, &f, &e);
	}
	if (x)
		cli_warn("the first divergence cannot be named: %s", e.msg);
	else if (f.class != FIRST_NONE)
		put_diff(o, &f, missing, dev);
	first_free(&f);
}

/* Between what most gave and what the suspect, or whoever deviated, gave. */
static void
put_first(const struct session *ss, struct rec_out *o, const struct group *g)
{
	size_t base = g->v.majority < 0 ? 0 : (size_t)g->v.majority;
	uint32_t usual = other_result(ss, g->member[base], 0);
	for (size_t i = 0; usual && i < g->n; i++) {
		uint32_t other = other_result(ss, g->member[i], usual);
		const char *dev = ss->s->devices.list[g->member[i]].entity;
		if (!other || (g->v.suspect >= 0 && g->v.suspect != (int)i))
			continue;
		const struct result *a = &ss->result[usual - 1];
		const struct result *b = &ss->result[other - 1];
		if (ss->s->nparts && !ss->s->launcher)
			put_part(ss, o, a, b, dev);
		else if (a->file && b->file)
			put_first_of(o, a, b, dev);
		return;
	}
}

/* ---- the verdict -------------------------------------------------------- */

static void
put_duration(struct buf *b, double s)
{
	if (s < 120)
		buf_printf(b, "%.3g s", s);
	else if (s < 7200)
		buf_printf(b, "%.3g min", s / 60);
	else if (s < 172800)
		buf_printf(b, "%.3g h", s / 3600);
	else
		buf_printf(b, "%.3g days", s / 86400);
}

/* ", est. 120 rounds, 3.3 h" */
static void
put_estimate(const struct session *ss, struct buf *b, double rounds)
{
	buf_printf(b, ", est. %.3g rounds", rounds);
	if (!ss->rounds)
		return;
	buf_puts(b, ", ");
	put_duration(b, rounds * (double)ss->spent / 1e9 / (double)ss->rounds);
}

static void
put_need_thin(const struct session *ss, struct buf *b, const struct group *g)
{
	const struct rule_device *x = &g->device[g->v.suspect];
	unsigned long long more = (unsigned long long)g->v.more;
	buf_printf(
	    b, "%llu more divergent process%s", more, more == 1 ? "" : "es");
	put_estimate(
	    ss, b, (double)g->v.more * (double)x->processes / (double)x->k);
}

static void
put_need(const struct session *ss, struct buf *b, const struct group *g)
{
	static const char *const need[] = {
		[RULE_NONDETERMINISTIC] =
		    "a deterministic program: --deterministic, or find the "
		    "race with fpdiff --reruns",
		[RULE_TWO_DEVICES] = "a third device like these",
		[RULE_NO_REFERENCE] = "two more devices like it",
		[RULE_CONSISTENT] =
		    "the same program, driver and settings on all; then swap "
		    "the board",
		[RULE_PIN_UNVERIFIED] =
		    "--trust-pin, if it is certain where the program ran",
		[RULE_FAILURES] = "the reason of the processes that failed: -v",
	};
	if (g->v.reason == RULE_THIN) {
		put_need_thin(ss, b, g);
	} else if (g->v.reason == RULE_FEW) {
		unsigned long long n = (unsigned long long)g->v.clean;
		buf_printf(b, "%llu more clean round%s", n, n == 1 ? "" : "s");
		put_estimate(ss, b, (double)g->v.clean);
	} else if (g->v.reason != RULE_NONE && g->v.reason != RULE_NOTHING) {
		buf_puts(b, need[g->v.reason]);
	} else if (g->v.result == RULE_FAULTY &&
		   ss->s->devices.list[g->member[g->v.suspect]].cpu < 0) {
		buf_puts(b, "swap: the board in another slot and another board "
			    "in its slot, before it is pulled");
	}
}

static int
status_of(const struct group *g)
{
	return g->v.reason == RULE_NOTHING ? STATUS_NONE : g->v.result;
}

static void
put_evidence(const struct session *ss, struct rec_out *o, const struct group *g)
{
	const struct rule_verdict *v = &g->v;
	bool healthy = v->result == RULE_HEALTHY;
	for (size_t i = 0; i < g->n; i++) {
		if (v->result == RULE_FAULTY && v->suspect != (int)i)
			continue;
		rec_begin(o, "evidence");
		rec_time(o, "time", cli_now(&ss->s->common));
		rec_put(o, "entity", ss->s->devices.list[g->member[i]].entity);
		rec_put(o, "agent", "gpureplay");
		rec_put(o, "status",
		    healthy                    ? "healthy"
		    : v->result == RULE_FAULTY ? "faulty"
					       : "unknown");
		if (rule_reasons[v->reason])
			rec_put(o, "reason", rule_reasons[v->reason]);
		if (healthy)
			rec_fmt(o, "bound", "%.6g", v->bound);
		put_command(o, "source", ss->s->command);
		rec_end(o);
	}
}

/* The group whose answer is the answer. */
static const struct group *
deciding(const struct session *ss)
{
	const struct group *best = &ss->group[0];
	for (size_t i = 1; i < ss->ngroups; i++)
		if (status_worse(status_of(best), status_of(&ss->group[i])) !=
		    status_of(best))
			best = &ss->group[i];
	return best;
}

static const char *
result_word(int result)
{
	return result == RULE_HEALTHY  ? "healthy"
	       : result == RULE_FAULTY ? "faulty"
				       : "unknown";
}

static void
put_verdict(const struct session *ss, struct rec_out *o, const struct group *g,
    struct verdict *v)
{
	struct str entity = STR_NULL;
	struct buf need = { 0 };
	char bound[64] = "";
	put_need(ss, &need, g);
	v->result = result_word(g->v.result);
	v->damage.skipped = ss->s->skipped;
	v->reason = rule_reasons[g->v.reason];
	v->need = need.len ? buf_cstr(&need) : NULL;
	if (g->v.suspect >= 0)
		entity =
		    str_c(ss->s->devices.list[g->member[g->v.suspect]].entity);
	if (g->v.bound > 0)
		snprintf(bound, sizeof bound, "rate<=%.3g of processes at 95%%",
		    g->v.bound);
	verdict_begin(o, v, entity, *bound ? bound : NULL);
	if (ss->by_ledger)
		rec_put(o, "cause", "ledger");
	verdict_end(o, v);
	v->need = NULL;
	buf_free(&need);
}

int
report_end(struct session *ss, struct rec_out *o, struct verdict *v)
{
	if (*ss->why)
		cli_warn("%s", ss->why);
	if (ss->stuck)
		cli_warn("a process cannot be killed: its device is stuck");
	for (size_t i = 0; i < ss->ngroups; i++) {
		const struct group *x = &ss->group[i];
		for (size_t k = 0; k < x->n; k++)
			put_device(ss, o, i + 1, x, k);
		put_first(ss, o, x);
	}
	if (ss->s->ledger)
		for (size_t i = 0; i < ss->ngroups; i++)
			ss->by_ledger |= ledger_settle(ss, &ss->group[i], o);
	for (size_t i = 0; i < ss->ngroups; i++)
		if (ss->s->common.evidence &&
		    status_of(&ss->group[i]) != STATUS_NONE)
			put_evidence(ss, o, &ss->group[i]);
	const struct group *g = deciding(ss);
	v->status = status_of(g);
	if (v->status == STATUS_NONE) {
		cli_warn("nothing was tested: no round in which every device "
			 "left a result");
		return v->status;
	}
	put_verdict(ss, o, g, v);
	return v->status;
}
