/*
 * gpureplay switches: what the environment says of each switch that makes
 * results reproducible, and what all of them together cost a command.
 */
#define _GNU_SOURCE
#include "switches.h"

#include <stdlib.h>
#include <string.h>

#include "gpureplay.h"
#include "stats.h"

enum { OPT_COST = OPT_OWN, OPT_TIMEOUT };
enum { PAIRS_MIN = 6, PAIRS_MAX = 100000 }; /* fewer have no interval */

// clang-format off
static const struct opt options[] = {
	{ OPT_COST, "cost", "N", "time the command N times with and without" },
	{ OPT_TIMEOUT, "timeout", "TIME", "kill a process after this (10m)" },
	OPT_COMMON, OPT_LAST
};
// clang-format on

static const char *const usage[] = {
	"gpureplay switches [options]",
	"gpureplay switches --cost=N [options] -- CMD [ARG]...",
	NULL,
};

struct asked {
	struct cli_common common;
	uint64_t pairs;
	int64_t timeout;
	char **command;
	bool env; /* -F env */
};

static const char *const state_name[] = { "unset", "kept", "conflict" };

static enum switch_state
state_of(const struct known_switch *k)
{
	return switch_state(k, getenv(k->name));
}

static bool
any_conflict(void)
{
	for (const struct known_switch *k = known_switches; k->name; k++)
		if (state_of(k) == SWITCH_CONFLICT)
			return true;
	return false;
}

/* ---- records ----------------------------------------------------------- */

static void
put_switches(struct rec_out *o)
{
	rec_begin(o, "head");
	rec_put(o, "of", "switches");
	rec_u64(o, "version", SCHEMA_VERSION);
	rec_put(o, "tool", "gpureplay " VERSION);
	rec_end(o);
	for (const struct known_switch *k = known_switches; k->name; k++) {
		const char *now = getenv(k->name);
		rec_begin(o, "switch");
		rec_put(o, "name", k->name);
		rec_put(o, "state", state_name[state_of(k)]);
		rec_put(o, "value", k->value);
		if (now)
			rec_put(o, "now", now);
		rec_put(o, "note", k->for_what);
		rec_end(o);
	}
}

/* ---- what they cost ------------------------------------------------------ */

static double
seconds_of(const struct asked *a, char **env)
{
	struct child_how how = { .argv = a->command,
		.env = env,
		.cpu = -1,
		.nvidia = -1,
		.timeout = a->timeout,
		.hash_stdout = true };
	struct child_result r;
	struct err e;
	if (child_run(&how, &r, &e))
		cli_die("%s", e.msg);
	if (r.outcome == OUTCOME_NOEXEC)
		cli_die("%s: cannot execute: %s", a->command[0],
		    strerror(r.status));
	if (r.outcome >= OUTCOMES)
		cli_die("stopped: no cost");
	if (r.outcome != OUTCOME_OK)
		cli_die("%s: %s%s%s: no cost", a->command[0],
		    outcome_name[r.outcome], *r.said ? ": " : "", r.said);
	return (double)r.ns / 1e9;
}

static char **
reproducible(void)
{
	char **env = cli_alloc(1, sizeof *env);
	size_t n = 0;
	for (const struct known_switch *k = known_switches; k->name; k++) {
		if (state_of(k) != SWITCH_SET)
			continue;
		env = cli_realloc(env, n + 2, sizeof *env);
		if (asprintf(&env[n++], "%s=%s", k->name, k->value) < 0)
			cli_die("out of memory");
		env[n] = NULL;
	}
	return env;
}

/* The interval of the median that no distribution is assumed for. */
static void
put_interval(struct rec_out *o, const double *sorted, uint64_t n)
{
	uint64_t k = 0;
	while (2 * stats_binomial_cdf(k, n, 0.5) <= 0.05)
		k++;
	if (!k)
		return;
	rec_f64(o, "low", sorted[k - 1]);
	rec_f64(o, "high", sorted[n - k]);
}

/* Pairs, each the other way round than the one before. */
static void
put_cost(const struct asked *a, struct rec_out *o)
{
	uint64_t n = a->pairs;
	double *without = cli_alloc(n, sizeof *without);
	double *with = cli_alloc(n, sizeof *with);
	double *ratio = cli_alloc(n, sizeof *ratio);
	char **env = reproducible();
	struct err e;
	if (child_prepare(&e))
		cli_die("%s", e.msg);
	for (uint64_t i = 0; i < n; i++)
		for (int half = 0; half < 2; half++) {
			if ((i + (uint64_t)half) % 2)
				with[i] = seconds_of(a, env);
			else
				without[i] = seconds_of(a, NULL);
		}
	for (uint64_t i = 0; i < n; i++)
		ratio[i] = with[i] / without[i];
	rec_begin(o, "cost");
	rec_u64(o, "n", n);
	rec_f64(o, "without", stats_median(without, n));
	rec_f64(o, "with", stats_median(with, n));
	rec_f64(o, "ratio", stats_median(ratio, n)); /* and sorts them */
	put_interval(o, ratio, n);
	rec_end(o);
	for (char **p = env; *p; p++)
		free(*p);
	free(env);
	free(without);
	free(with);
	free(ratio);
}

/* ---- -F env -------------------------------------------------------------- */

/* Those that are unset, as env(1) and a shell read them. */
static int
write_env(const struct asked *a)
{
	struct cli_out out;
	char **env = reproducible();
	struct buf text = { 0 };
	for (char **p = env; *p; p++) {
		buf_puts(&text, *p);
		buf_putc(&text, '\n');
		free(*p);
	}
	free(env);
	for (const struct known_switch *k = known_switches; k->name; k++)
		if (state_of(k) == SWITCH_CONFLICT)
			cli_warn("%s=%s is left alone: %s wants %s", k->name,
			    getenv(k->name), k->for_what, k->value);
	if (text.failed)
		cli_die("out of memory");
	cli_out_open(&out, a->common.output, false);
	bool failed = cli_out_write(&out, text.p, text.len);
	buf_free(&text);
	if (cli_out_close(&out, !failed) || failed)
		return STATUS_NONE;
	return any_conflict() ? STATUS_FOUND : STATUS_CLEAN;
}

/* ---- the verb ------------------------------------------------------------ */

static void
check(const struct asked *a)
{
	if (a->pairs && !a->command)
		cli_usage("--cost needs a command to time");
	if (!a->pairs && a->command)
		cli_usage("a command goes with --cost");
	if (!a->pairs && a->timeout)
		cli_usage("--timeout goes with --cost");
	if (a->env && (a->pairs || a->common.how.gzip))
		cli_usage("-F env is for a shell: not with --cost or -z");
}

static void
parse(struct asked *a, int argc, char **argv)
{
	struct opt_state o;
	int id;
	opt_start(&o, options, argc, argv);
	o.command = true;
	while ((id = opt_next(&o)) != OPT_END) {
		if (id == OPT_COST)
			a->pairs = cli_u64(&o, PAIRS_MIN, PAIRS_MAX);
		else if (id == OPT_TIMEOUT)
			a->timeout = option_duration(&o);
		else if (id == 'F' && !strcmp(o.arg, "env"))
			a->env = true;
		else if (!cli_common(&a->common, id, &o, usage,
			     "Says which switches make results reproducible."))
			cli_usage("unexpected option %s", o.name);
		else if (id == 'F')
			a->env = false;
	}
	cli_common_done(&a->common, "switch");
	if (o.at < argc)
		a->command = argv + o.at;
	check(a);
	if (!a->timeout)
		a->timeout = INT64_C(600000000000);
}

int
verb_switches(int argc, char **argv)
{
	struct asked a = { .pairs = 0 };
	struct cli_out out;
	struct rec_out *o;
	struct err e;
	parse(&a, argc, argv);
	if (a.env)
		return write_env(&a);
	cli_out_open(&out, a.common.output, false);
	if (rec_out_open(&o, out.fd, &a.common.how, &e))
		cli_die_err(cli_out_name(&out), &e);
	put_switches(o);
	if (a.pairs)
		put_cost(&a, o);
	return cli_out_end(
	    &out, o, NULL, any_conflict() ? STATUS_FOUND : STATUS_CLEAN, 0);
}
