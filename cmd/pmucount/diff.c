/*
 * pmucount diff: did a function change? Two recorded runs, or two commands run
 * in turn, A B B A, each time with another environment size. Call counts
 * first; then exact counters by their bounds, others by sign-flip tests.
 */
#define _GNU_SOURCE
#include "pmucount.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"
#include "num.h"
#include "signflip.h"
#include "sort.h"

enum { OPT_A = OPT_VERB, OPT_B, OPT_MARGIN };

// clang-format off
static const struct opt options[] = {
	{ 'n', "rounds", "N", "runs of each command (default 10)" },
	{ OPT_A, "a", "CMD", "the first command, split at blanks" },
	{ OPT_B, "b", "CMD", "the second command" },
	{ OPT_MARGIN, "margin", "PERCENT",
	    "the same within this (default 1)" },
	OPT_COUNT,
	OPT_JUDGE,
	OPT_COMMON, OPT_LAST
};
// clang-format on

static const char *const usage[] = {
	"pmucount diff [options] A.pmu B.pmu",
	"pmucount diff -n N --a CMD --b CMD [-f FUNC]... [options]",
	NULL,
};

enum {
	ROUNDS = 10,
	ROUNDS_MAX = SIGNFLIP_PAIRS,
	WORDS_MAX = 256, /* of a command */
	PAD_MAX = 4096,  /* bytes the environment is varied by */
};

/* Changed needs this, corrected for the family; same this on each side. */
static const double alpha = 0.01, alpha_same = 0.05;

/* Of a delta. */
#define REASON_EXACT "exact"
#define REASON_ABSENT "absent"
#define REASON_NO_VALUE "no-value"
#define REASON_NOT_POSITIVE "not-positive"
#define REASON_ONE_RUN "one-run"
#define REASON_NOISE "noise"
#define REASON_LAYOUT "layout"
#define REASON_DOMINATED "dominated"
#define REASON_CALLS_DIFFER "calls-differ"
/* Of the verdict. */
#define REASON_UNDECIDED "undecided"
#define REASON_NOTHING_COUNTED "nothing-counted"

struct diff {
	struct settings s;
	const char *cmd[2];
	const char *file[2];
	size_t rounds;
	double margin;
	struct damage damage;
};

/* One question: a function and a counter, or "total". */
struct item {
	struct str func, object, counter;
	bool exact, calls; /* `calls` counts calls, nothing else */
	bool dominated;    /* in some run our own part was the larger */
	double *v[2];      /* per call, one a run; NaN: unknown */
	double *n[2];      /* calls, one a run */
	double err[2];     /* bound of a value, per call */
	/* the answer */
	const char *result, *reason;
	double change, p, p_same, layout, need;
};

struct family {
	struct item *item;
	size_t n, cap, runs;
};

/* ---- options ---------------------------------------------------------------
 */

static void
parse(struct diff *d, int argc, char **argv)
{
	struct opt_state o;
	size_t files = 0;
	double percent;
	struct err e;
	int id;
	opt_start(&o, options, argc, argv);
	while ((id = opt_next(&o)) != OPT_END) {
		switch (id) {
		case OPT_OPERAND:
			if (files == 2)
				cli_usage("two files, not more");
			d->file[files++] = o.arg;
			break;
		case 'n':
			d->rounds = cli_u64(&o, 1, ROUNDS_MAX);
			break;
		case OPT_A:
		case OPT_B:
			d->cmd[id - OPT_A] = o.arg;
			break;
		case OPT_MARGIN:
			if (num_f64(str_c(o.arg), &percent, &e) ||
			    !(percent > 0 && percent < 100))
				cli_usage("option %s: expected a percentage "
					  "between 0 and 100, found \"%s\"",
				    o.name, o.arg);
			d->margin = log1p(percent / 100);
			break;
		default:
			if (!settings_option(&d->s, id, &o) &&
			    !cli_common(&d->s.common, id, &o, usage,
				"Says same, changed or unknown, function by "
				"function."))
				cli_usage("unexpected option %s", o.name);
		}
	}
	cli_common_done(&d->s.common, "delta");
	bool commands = d->cmd[0] && d->cmd[1];
	if (files == 2 ? d->cmd[0] || d->cmd[1] : files || !commands)
		cli_usage("expected two files, or --a CMD and --b CMD");
	if (files == 2)
		d->rounds = 1;
}

/* Words at blanks; quotes as in sh, and nothing is expanded. */
static char **
split(const char *text)
{
	char **word = cli_alloc(WORDS_MAX + 1, sizeof *word);
	char *to = cli_alloc(strlen(text) + 1, 1);
	size_t n = 0;
	bool in = false;
	char quote = 0;
	for (const char *p = text; *p; p++) {
		bool blank = *p == ' ' || *p == '\t' || *p == '\n';
		if (!quote && blank) {
			if (in)
				*to++ = 0;
			in = false;
			continue;
		}
		if (!in) {
			if (n == WORDS_MAX)
				cli_die("more than %d words in a command",
				    WORDS_MAX);
			word[n++] = to;
			in = true;
		}
		if (quote ? *p == quote : *p == '\'' || *p == '"')
			quote = quote ? 0 : *p;
		else if (*p == '\\' && quote != '\'' && p[1])
			*to++ = *++p;
		else
			*to++ = *p;
	}
	if (quote)
		cli_die("unclosed %c in \"%s\"", quote, text);
	if (!n)
		cli_usage("an empty command");
	*to = 0;
	return word;
}

/* ---- values ----------------------------------------------------------------
 */

static struct item *
item_of(struct family *f, struct str func, struct str object,
    const struct counter *c)
{
	struct str counter = c ? c->name : STR_LIT("calls");
	for (size_t i = 0; i < f->n; i++) {
		struct item *k = &f->item[i];
		if (str_same(k->func, func) && str_same(k->counter, counter) &&
		    str_same(k->object, object))
			return k;
	}
	if (f->n == f->cap) {
		f->cap = f->cap ? f->cap * 2 : 64;
		f->item = cli_realloc(f->item, f->cap, sizeof *f->item);
	}
	struct item *k = &f->item[f->n++];
	*k = (struct item){ .func = func,
		.object = object,
		.counter = counter,
		.exact = c ? c->exact : true,
		.calls = !c };
	for (int side = 0; side < 2; side++) {
		k->v[side] = cli_alloc(f->runs, sizeof(double));
		k->n[side] = cli_alloc(f->runs, sizeof(double));
		for (size_t i = 0; i < f->runs; i++)
			k->v[side][i] = k->n[side][i] = NAN;
	}
	return k;
}

/* The last part of a path: two builds lie in different places. */
static struct str
base_of(struct str path)
{
	for (size_t i = path.len; i > 0; i--)
		if (path.p[i - 1] == '/')
			return (struct str){ path.p + i, path.len - i };
	return path;
}

static void
put_total(struct family *f, const struct result *r, int side, size_t run)
{
	for (unsigned c = 0; c < r->ncounters; c++) {
		const struct counter *k = &r->counter[c];
		struct item *t = item_of(f, STR_LIT("total"), STR_LIT(""), k);
		double sum = 0, err = 0;
		bool known = !k->unknown;
		for (size_t i = 0; i < r->nentries; i++) {
			const struct entry *e = &r->entry[i];
			known &= e->v[c].known && !e->lost;
			sum += (double)e->v[c].self;
			err += (double)e->v[c].err;
		}
		t->v[side][run] = known ? sum : NAN;
		t->n[side][run] = 1;
		t->err[side] = err > t->err[side] ? err : t->err[side];
	}
}

static void
put_entry(struct family *f, const struct result *r, const struct entry *e,
    int side, size_t run, bool same_object)
{
	struct str object = same_object ? base_of(e->object) : STR_LIT("");
	struct item *n = item_of(f, e->func, object, NULL);
	bool gated = e->flags & FLAG_GATED;
	n->v[side][run] =
	    e->lost || gated ? NAN : (double)(e->calls + e->unfinished);
	n->n[side][run] = 1;
	for (unsigned c = 0; c < r->ncounters; c++) {
		struct item *k = item_of(f, e->func, object, &r->counter[c]);
		double calls = gated ? 1 : (double)e->calls;
		double err = (double)e->v[c].err / calls;
		bool usable = e->v[c].known && e->calls && !e->lost &&
			      !(e->flags & (FLAG_ORPHAN | FLAG_CUT));
		k->n[side][run] = gated ? 1 : calls;
		k->v[side][run] = usable ? (double)e->v[c].self / calls : NAN;
		k->dominated |= !k->exact && e->flags & FLAG_DOMINATED;
		if (usable)
			k->err[side] = err > k->err[side] ? err : k->err[side];
	}
}

/* Names stay with the first result that has them: none is freed before. */
static void
put_result(const struct diff *d, struct family *f, const struct result *r,
    int side, size_t run)
{
	put_total(f, r, side, run);
	bool all = d->file[0] && !d->s.npatterns;
	for (size_t i = 0; i < r->nentries; i++) {
		const struct entry *e = &r->entry[i];
		char *name = strndup(e->func.p, e->func.len);
		struct func fn = { .name = name, .shown = name };
		if (!name)
			cli_die("out of memory");
		if (all || (d->s.npatterns && is_named(&d->s, &fn)))
			put_entry(f, r, e, side, run, false);
		free(name);
	}
}

/* ---- answers ---------------------------------------------------------------
 */

static bool
all_known(const double *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (isnan(v[i]))
			return false;
	return true;
}

static double
widest(const double *v, size_t n)
{
	double lo = v[0], hi = v[0];
	for (size_t i = 1; i < n; i++) {
		lo = v[i] < lo ? v[i] : lo;
		hi = v[i] > hi ? v[i] : hi;
	}
	return hi - lo;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double
median_of(const double *v, size_t n)
{
	double *s = cli_alloc(n, sizeof *s);
	memcpy(s, v, n * sizeof *s);
	sort_array(s, n, sizeof *s, by_value);
	double m = n % 2 ? s[n / 2] : (s[n / 2 - 1] + s[n / 2]) / 2;
	free(s);
	return m;
}

/* Median absolute deviation of the logarithms: what layout and noise do to one
 * and the same program. */
static double
layout_of(const double *v, size_t n)
{
	double *s = cli_alloc(n, sizeof *s), m = log(median_of(v, n));
	for (size_t i = 0; i < n; i++)
		s[i] = fabs(log(v[i]) - m);
	double r = median_of(s, n);
	free(s);
	return r;
}

static void
answer(struct item *k, const char *result, const char *reason)
{
	k->result = result;
	k->reason = reason;
}

/* A deterministic count: equal in all runs of a side, up to its bound. */
static bool
by_bound(struct item *k, size_t n)
{
	double bound[2];
	for (int side = 0; side < 2; side++) {
		bound[side] = k->err[side];
		if (widest(k->v[side], n) > 2 * bound[side] + 1e-9)
			return false;
	}
	double a = median_of(k->v[0], n), b = median_of(k->v[1], n);
	bool apart = fabs(a - b) > bound[0] + bound[1] + 1e-9;
	answer(k, apart ? "changed" : "same", REASON_EXACT);
	k->p = apart ? 0 : 1;
	return true;
}

/* Log ratios of the pairs; false where they cannot be formed. */
static bool
ratios(const struct item *k, size_t n, double *d)
{
	for (size_t i = 0; i < n; i++) {
		if (!(k->v[0][i] > 0) || !(k->v[1][i] > 0))
			return false;
		d[i] = log(k->v[1][i] / k->v[0][i]);
	}
	return true;
}

/* First pass: all that does not need the family. */
static void
examine(struct item *k, size_t n, double margin)
{
	k->p = 2; /* not tested */
	if (!all_known(k->v[0], n) || !all_known(k->v[1], n)) {
		bool none[2] = { true, true };
		for (size_t i = 0; i < n; i++)
			for (int side = 0; side < 2; side++)
				none[side] &= isnan(k->n[side][i]);
		if (none[0] != none[1])
			answer(k, "changed", REASON_ABSENT);
		else
			answer(k, "unknown", REASON_NO_VALUE);
		return;
	}
	double a = median_of(k->v[0], n), b = median_of(k->v[1], n);
	k->change = a != 0 ? b / a - 1 : NAN;
	if (k->exact && by_bound(k, n))
		return;
	if (k->dominated) {
		answer(k, "unknown", REASON_DOMINATED);
		return;
	}
	double d[ROUNDS_MAX];
	if (!ratios(k, n, d)) {
		answer(k, "unknown", REASON_NOT_POSITIVE);
		return;
	}
	double sd = signflip_sd(d, n), mean = fabs(signflip_mean(d, n));
	k->need = signflip_need(sd, mean > margin ? mean : margin);
	if (n < 2) {
		answer(k, "unknown", REASON_ONE_RUN);
		k->need = ROUNDS;
		return;
	}
	double la = layout_of(k->v[0], n), lb = layout_of(k->v[1], n);
	k->layout = la > lb ? la : lb;
	k->change = expm1(signflip_mean(d, n));
	k->p = signflip_two_sided(d, n);
	k->p_same = signflip_within(d, n, margin);
}

/* Do the calls of this function compare? */
static bool
calls_differ(const struct family *f, const struct item *k)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct item *c = &f->item[i];
		if (c->calls && str_same(c->func, k->func) &&
		    str_same(c->object, k->object))
			return !c->result || strcmp(c->result, "same");
	}
	return false;
}

static void
decide(struct item *k)
{
	bool far = fabs(log1p(k->change)) > k->layout;
	if (k->p < alpha && far)
		answer(k, "changed", NULL);
	else if (k->p_same < alpha_same)
		answer(k, "same", NULL);
	else
		answer(
		    k, "unknown", k->p < alpha ? REASON_LAYOUT : REASON_NOISE);
}

/* Holm's correction over all questions that a test has to answer. */
static void
judge(struct family *f, double margin)
{
	size_t n = 0;
	double *p = cli_alloc(f->n, sizeof *p);
	for (size_t i = 0; i < f->n; i++) {
		examine(&f->item[i], f->runs, margin);
		if (!f->item[i].result)
			p[n++] = f->item[i].p;
	}
	signflip_holm(p, n);
	n = 0;
	for (size_t i = 0; i < f->n; i++) {
		struct item *k = &f->item[i];
		if (k->result)
			continue;
		k->p = p[n++];
		decide(k);
	}
	for (size_t i = 0; i < f->n; i++) {
		struct item *k = &f->item[i];
		bool total = !k->object.len && str_is(k->func, "total");
		if (!k->calls && !total && calls_differ(f, k) &&
		    (!k->reason || strcmp(k->reason, REASON_ABSENT)))
			answer(k, "unknown", REASON_CALLS_DIFFER);
	}
	free(p);
}

/* ---- running ---------------------------------------------------------------
 */

static void
pad_environment(size_t run)
{
	/* Another size each time: 0 to 4095 bytes, spread by a prime. */
	size_t n = run * 1741 % PAD_MAX;
	char *pad = cli_alloc(n + 1, 1);
	memset(pad, 'x', n);
	setenv("PMUCOUNT_PAD", pad, 1);
	free(pad);
}

static void
run_one(struct diff *d, int side, size_t number, struct result *r)
{
	struct settings s = d->s;
	struct err e = { 0 };
	s.quiet_command = true;
	s.command = split(d->cmd[side]);
	pad_environment(number);
	int status = count_command(&s, r, &e);
	if (status)
		cli_die("--%c: %s", 'a' + side, e.msg);
	if (!d->s.events.n) /* all runs ask for what the first one chose */
		for (unsigned c = 0; c < r->ncounters; c++) {
			char *name = strndup(
			    r->counter[c].name.p, r->counter[c].name.len);
			event_add(&d->s.events, name, NULL);
		}
	if (launch_status(r->status))
		cli_warn(
		    "--%c: status %d", 'a' + side, launch_status(r->status));
	free(s.command[0]);
	free(s.command);
}

/* A B B A A B B A ...: drift hits both sides alike. */
static void
run_all(struct diff *d, struct family *f, struct result *r)
{
	size_t done[2] = { 0, 0 };
	for (size_t i = 0; i < 2 * d->rounds; i++) {
		int side = (i % 4 == 1 || i % 4 == 2);
		run_one(d, side, i, &r[i]);
		put_result(d, f, &r[i], side, done[side]++);
	}
}

static void
read_all(struct diff *d, struct family *f, struct result *r)
{
	for (int side = 0; side < 2; side++) {
		struct err e = { 0 };
		if (result_read(&r[side], d->file[side], cli_tmpdir(), &e))
			cli_die_err(d->file[side], &e);
		if (e.code)
			cli_warn_err(d->file[side], &e);
		damage_add(&d->damage, &r[side].totals);
		put_result(d, f, &r[side], side, 0);
	}
}

/* ---- output ----------------------------------------------------------------
 */

static void
put_number(struct rec_out *o, const char *key, const double *v, size_t n)
{
	if (all_known(v, n))
		rec_fmt(o, key, "%.6g", median_of(v, n));
	else
		rec_put(o, key, "unknown");
}

static void
write_item(const struct item *k, size_t n, struct rec_out *o)
{
	rec_begin(o, "delta");
	rec_str(o, "func", k->func);
	rec_str(o, "counter", k->counter);
	rec_put(o, "result", k->result);
	if (k->reason)
		rec_put(o, "reason", k->reason);
	put_number(o, "a", k->v[0], n);
	put_number(o, "b", k->v[1], n);
	if (!isnan(k->change))
		rec_fmt(o, "change", "%.6f", k->change);
	if (k->p <= 1)
		rec_fmt(o, "p", "%.6f", k->p);
	if (k->layout > 0)
		rec_fmt(o, REASON_LAYOUT, "%.6f", k->layout);
	rec_u64(o, "n", n);
	if (k->exact && (k->err[0] > 0 || k->err[1] > 0))
		rec_fmt(o, "bound", "%.6g", k->err[0] + k->err[1]);
	if (!strcmp(k->result, "unknown") && k->need > 0)
		rec_fmt(o, "need", "%.0f pairs", k->need);
	rec_end(o);
}

static void
write_evidence(const struct diff *d, const struct item *k, struct rec_out *o)
{
	const char *result = k->result;
	bool same = !strcmp(result, "same"),
	     changed = !strcmp(result, "changed");
	rec_begin(o, "evidence");
	rec_time(o, "time", cli_now(&d->s.common));
	rec_fmt(o, "entity", "function:%.*s", STR_ARG(k->func));
	rec_put(o, "agent", "pmucount");
	rec_put(o, "status", same ? "healthy" : changed ? "faulty" : "unknown");
	rec_fmt(
	    o, "bound", "counter=%.*s,result=%s", STR_ARG(k->counter), result);
	rec_end(o);
}

static struct verdict
verdict_of(const struct family *f, const struct diff *d)
{
	size_t changed = 0, unknown = 0;
	double need = 0;
	for (size_t i = 0; i < f->n; i++) {
		changed += !strcmp(f->item[i].result, "changed");
		bool u = !strcmp(f->item[i].result, "unknown");
		unknown += u;
		need = u && f->item[i].need > need ? f->item[i].need : need;
	}
	struct verdict v = { .result = "same", .damage = d->damage };
	if (changed) {
		v.result = "changed";
		v.status = STATUS_FOUND;
	} else if (unknown || !f->n) {
		v.result = "unknown";
		v.status = STATUS_UNKNOWN;
		v.reason = f->n ? REASON_UNDECIDED : REASON_NOTHING_COUNTED;
		v.need = need > 0 ? "more rounds: see need of the deltas"
				  : "functions that both runs counted";
	}
	return v;
}

static int
write_all(const struct diff *d, const struct family *f, struct verdict *v)
{
	struct rec_out *o;
	struct cli_out out;
	struct err e;
	char bound[64];
	size_t count[2] = { 0, 0 };
	cli_out_open(&out, d->s.common.output, false);
	if (rec_out_open(&o, out.fd, &d->s.common.how, &e))
		cli_die("%s", e.msg);
	rec_begin(o, "head");
	rec_put(o, "of", "pmudiff");
	rec_u64(o, "version", SCHEMA_VERSION);
	rec_put(o, "tool", "pmucount " VERSION);
	rec_end(o);
	for (size_t i = 0; i < f->n; i++) {
		write_item(&f->item[i], f->runs, o);
		if (d->s.common.evidence)
			write_evidence(d, &f->item[i], o);
		count[0] += !strcmp(f->item[i].result, "changed");
		count[1] += !strcmp(f->item[i].result, "unknown");
	}
	verdict_settle(v, &d->s.common.policy);
	snprintf(bound, sizeof bound, "margin=%.4g%%,alpha=%g",
	    expm1(d->margin) * 100, alpha);
	if (v->status != STATUS_NONE) {
		verdict_begin(o, v, STR_NULL, bound);
		rec_u64(o, "compared", f->n);
		rec_u64(o, "equal", f->n - count[0] - count[1]);
		rec_u64(o, "different", count[0]);
		rec_u64(o, "incomparable", count[1]);
		verdict_end(o, v);
	}
	const char *result = v->status == STATUS_NONE ? NULL : v->result;
	int x = rec_out_finish(o, result, v->status, 0, &e);
	if (x)
		cli_warn("%s", e.msg);
	rec_out_close(o);
	return cli_out_close(&out, !x) || x;
}

static void
family_free(struct family *f)
{
	for (size_t i = 0; i < f->n; i++)
		for (int side = 0; side < 2; side++) {
			free(f->item[i].v[side]);
			free(f->item[i].n[side]);
		}
	free(f->item);
}

int
verb_diff(int argc, char **argv)
{
	struct diff d = { .s = { .max_steps = UINT64_MAX },
		.rounds = ROUNDS,
		.margin = log1p(0.01) };
	parse(&d, argc, argv);
	struct family f = { .runs = d.rounds };
	struct result *r = cli_alloc(2 * d.rounds, sizeof *r);
	if (d.file[0])
		read_all(&d, &f, r);
	else
		run_all(&d, &f, r);
	judge(&f, d.margin);
	struct verdict v = verdict_of(&f, &d);
	int status = write_all(&d, &f, &v) ? STATUS_NONE : v.status;
	cli_prom(&d.s.common, NULL, v.result, v.reason, status, 0);
	for (size_t i = 0; i < 2 * d.rounds; i++)
		result_free(&r[i]);
	family_free(&f);
	free(r);
	return status;
}
