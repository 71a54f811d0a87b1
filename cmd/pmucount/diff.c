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

#include "family.h"
#include "launch.h"
#include "num.h"

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
	WORDS_MAX = 256, /* of a command */
	PAD_MAX = 4096,  /* bytes the environment is varied by */
};

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

/* ---- running ---------------------------------------------------------------
 */

/* Of two files all functions, else those of -f. */
static bool
is_asked(void *user, struct str func)
{
	const struct diff *d = user;
	if (!d->s.npatterns)
		return d->file[0];
	char *name = strndup(func.p, func.len);
	if (!name)
		cli_die("out of memory");
	struct func fn = { .name = name, .shown = name };
	bool named = is_named(&d->s, &fn);
	free(name);
	return named;
}

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
		family_put(f, &r[i], side, done[side]++, is_asked, d);
	}
}

/* Can lines be missing, as far as the user lets us ask? */
static bool
is_torn(const struct rec_totals *t, const struct policy *p)
{
	struct damage d = { 0 };
	damage_add(&d, t);
	return d.bad > p->allow_bad || d.lost || d.skipped || d.altered ||
	       (d.filtered && !p->partial);
}

static void
read_all(struct diff *d, struct family *f, struct result *r)
{
	for (int side = 0; side < 2; side++) {
		const char *path = d->file[side];
		struct src *src;
		struct err e = { 0 };
		if (cli_src_open(&src, path, 0, &e) ||
		    result_read(&r[side], src, &e))
			cli_die_err(cli_src_name(path), &e);
		if (e.code)
			cli_warn_err(cli_src_name(path), &e);
		damage_add(&d->damage, &r[side].totals);
		f->torn[side] = is_torn(&r[side].totals, &d->s.common.policy);
		family_put(f, &r[side], side, 0, is_asked, d);
	}
}

/* ---- output ----------------------------------------------------------------
 */

static void
put_number(struct rec_out *o, const char *key, const double *v, size_t n)
{
	if (family_known(v, n))
		rec_fmt(o, key, "%.6g", family_median(v, n));
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
	if (k->object.len)
		rec_str(o, "object", k->object);
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
	    expm1(d->margin) * 100, FAMILY_ALPHA);
	if (v->status != STATUS_NONE) {
		verdict_begin(o, v, STR_NULL, bound);
		rec_u64(o, "compared", f->n);
		rec_u64(o, "equal", f->n - count[0] - count[1]);
		rec_u64(o, "different", count[0]);
		rec_u64(o, "incomparable", count[1]);
		verdict_end(o, v);
	}
	return cli_out_end(&out, o, v->result, v->status, 0);
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
	family_judge(&f, d.margin);
	struct verdict v = verdict_of(&f, &d);
	int status = write_all(&d, &f, &v);
	cli_prom(&d.s.common, NULL, v.result, v.reason, status, 0);
	for (size_t i = 0; i < 2 * d.rounds; i++)
		result_free(&r[i]);
	family_free(&f);
	free(r);
	return status;
}
