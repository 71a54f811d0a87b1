/*
 * gpureplay run: replays a command on every device, round after round, and
 * says whether one of them, the program, or neither is at fault.
 */
#include "gpureplay.h"

#include <stdlib.h>
#include <string.h>

#include "hosts.h"
#include "num.h"

enum {
	OPT_CPUS = OPT_OWN,
	OPT_DEVICES,
	OPT_PIN,
	OPT_TRUST_PIN,
	OPT_SUSPECT,
	OPT_SIG,
	OPT_RATE,
	OPT_ALPHA,
	OPT_RATIO,
	OPT_MAX_TIME,
	OPT_TIMEOUT,
	OPT_DETERMINISTIC,
	OPT_DRY_RUN,
	OPT_LEDGER,
	OPT_HOSTS,
	OPT_LAUNCH,
};

// clang-format off
static const struct opt options[] = {
	{ OPT_CPUS, "cpus", "LIST", "run on these cores: 3,7-9" },
	{ OPT_DEVICES, "devices", "LIST", "run on these, which are alike" },
	{ OPT_PIN, "pin", "VAR={device}", "what puts the command on one" },
	{ OPT_HOSTS, "hosts", "LIST", "run on these hosts: n[1-4],m" },
	{ OPT_LAUNCH, "launch", "WORDS",
	    "what runs a command on {host}: 'srun -w {host}'" },
	{ OPT_TRUST_PIN, "trust-pin", NULL, "take it that the pin works" },
	{ OPT_SUSPECT, "suspect", "LIST", "devices suspected before the run" },
	{ OPT_SIG, "sig", "WHAT", "compare stdout or a FILE, not fp records" },
	{ OPT_DETERMINISTIC, "deterministic", NULL,
	    "set known switches that are unset" },
	{ 'n', "rounds", "N", "at most N rounds" },
	{ OPT_RATE, "rate", "R", "healthy excludes this rate (0.01)" },
	{ OPT_ALPHA, "alpha", "A", "chance of a wrong faulty (0.001)" },
	{ OPT_RATIO, "ratio", "R",
	    "a race may be R times likelier on one (10)" },
	{ OPT_MAX_TIME, "max-time", "TIME", "no new round after this (10m)" },
	{ OPT_TIMEOUT, "timeout", "TIME", "kill a process after this (10m)" },
	{ OPT_LEDGER, "ledger", "DIR", "add to, and go on from, a ledger" },
	{ OPT_DRY_RUN, "dry-run", NULL, "print what would be run" },
	{ 'E', "evidence", NULL, "print evidence records for rcacompose" },
	{ OPT_PROM, "prom", "FILE", "write metrics for node-exporter" },
	OPT_COMMON, OPT_LAST
};
// clang-format on

static const char *const usage[] = {
	"gpureplay run --cpus=LIST [options] -- CMD [ARG]...",
	"gpureplay run --devices=LIST --pin='VAR={device}' [options] -- CMD "
	"...",
	"gpureplay run --hosts=LIST --launch='srun -w {host}' [options] -- "
	"CMD ...",
	NULL,
};

double
option_number(
    const struct opt_state *o, double low, double high, const char *range)
{
	struct err e;
	double v = 0;
	/* Written so that NaN fails too. */
	if (num_f64(str_c(o->arg), &v, &e) || !(v > low && v <= high))
		cli_usage("option %s: expected a number %s, found \"%s\"",
		    o->name, range, o->arg);
	return v;
}

int64_t
option_duration(const struct opt_state *o)
{
	int64_t ns = cli_duration(o);
	if (ns <= 0)
		cli_usage("option %s: expected a time above zero", o->name);
	return ns;
}

static void
add_pin(struct settings *s, const struct opt_state *o)
{
	const char *equal = strchr(o->arg, '=');
	if (!equal || equal == o->arg || !strstr(equal, "{device}"))
		cli_usage("option %s: expected VAR={device}, found \"%s\"",
		    o->name, o->arg);
	if (s->npins == PINS_MAX)
		cli_usage("option %s: at most %d", o->name, PINS_MAX);
	s->pin[s->npins++] = o->arg;
}

void
add_part(struct settings *s, const struct opt_state *o)
{
	for (size_t i = 0; i < s->nparts; i++)
		if (!strcmp(s->part[i], o->arg))
			cli_usage(
			    "option %s: %s is there twice", o->name, o->arg);
	if (!*o->arg || s->nparts == PARTS_MAX)
		cli_usage("option %s: expected stdout or a file, at most %d",
		    o->name, PARTS_MAX);
	s->part[s->nparts++] = o->arg;
}

struct lists {
	const char *cpus, *devices, *suspect, *hosts, *launch;
};

static bool
take(struct settings *s, struct lists *l, int id, const struct opt_state *o)
{
	switch (id) {
	case OPT_CPUS:
		l->cpus = o->arg;
		return true;
	case OPT_DEVICES:
		l->devices = o->arg;
		return true;
	case OPT_SUSPECT:
		l->suspect = o->arg;
		return true;
	case OPT_PIN:
		add_pin(s, o);
		return true;
	case OPT_SIG:
		add_part(s, o);
		return true;
	case OPT_TRUST_PIN:
		s->trust_pin = true;
		return true;
	case OPT_DETERMINISTIC:
		s->deterministic = true;
		return true;
	case OPT_HOSTS:
		l->hosts = o->arg;
		return true;
	case OPT_LAUNCH:
		l->launch = o->arg;
		return true;
	case OPT_LEDGER:
		s->ledger = o->arg;
		return true;
	case OPT_DRY_RUN:
		s->dry_run = true;
		return true;
	case OPT_RATE:
		s->rule.rate = option_number(o, 0, 1, "in (0,1]");
		return true;
	case OPT_ALPHA:
		s->rule.alpha = option_number(o, 0, 0.05, "in (0,0.05]");
		return true;
	case OPT_RATIO:
		s->rule.ratio =
		    option_number(o, 0.999999, 1e6, "from 1 to 1e6");
		return true;
	case OPT_MAX_TIME:
		s->max_time = option_duration(o);
		return true;
	case OPT_TIMEOUT:
		s->timeout = option_duration(o);
		return true;
	case 'n':
		s->rounds = cli_u64(o, 1, UINT32_MAX);
		return true;
	}
	return false;
}

static void
choose_hosts(struct settings *s, const struct lists *l)
{
	struct err e;
	bool names_host = false;
	if (!l->hosts || !l->launch)
		cli_usage("--hosts and --launch go together");
	if (l->devices || s->npins)
		cli_usage("--devices and --pin do not go with --hosts");
	s->launcher = cli_alloc(WORDS_MAX, sizeof *s->launcher);
	if (words_split(
		l->launch, &s->devices.arena, s->launcher, &s->nlauncher, &e))
		cli_usage("option --launch: %s", e.msg);
	for (size_t i = 0; i < s->nlauncher; i++)
		names_host |= strstr(s->launcher[i], "{host}") != NULL;
	if (!names_host)
		cli_usage("option --launch: expected {host} in it");
	devices_add_hosts(&s->devices, "--hosts", l->hosts, l->cpus);
}

static void
choose_here(struct settings *s, const struct lists *l)
{
	const char *pin = NULL;
	if (l->cpus && l->devices)
		cli_usage("--cpus and --devices do not go together");
	if (l->cpus)
		devices_add_cpus(&s->devices, "--cpus", l->cpus);
	else if (l->devices && s->npins)
		devices_add_names(&s->devices, "--devices", l->devices);
	else if (l->devices)
		pin =
		    devices_known_boards(&s->devices, "--devices", l->devices);
	else
		pin = devices_add_boards(&s->devices, &s->skipped);
	if (!l->cpus && !s->npins && !pin)
		cli_usage(
		    l->devices
			? "--devices needs --pin='VAR={device}', or UUIDs of "
			  "boards that are here"
			: "there is no free board: give --cpus or --devices");
	s->vendor_pin = pin;
}

static void
choose_devices(struct settings *s, const struct lists *l)
{
	if (l->hosts || l->launch)
		choose_hosts(s, l);
	else
		choose_here(s, l);
	if (l->suspect)
		devices_suspect(&s->devices, "--suspect", l->suspect);
}

static void
parse(struct settings *s, int argc, char **argv)
{
	struct opt_state o;
	struct lists l = { 0 };
	int id;
	opt_start(&o, options, argc, argv);
	o.command = true;
	while ((id = opt_next(&o)) != OPT_END)
		if (!take(s, &l, id, &o) &&
		    !cli_common(&s->common, id, &o, usage,
			"Replays a command on like devices and finds the one "
			"that computes wrong."))
			cli_usage("unexpected option %s", o.name);
	cli_common_done(&s->common, "device");
	if (o.at >= argc)
		cli_usage("no command to run");
	s->command = argv + o.at;
	choose_devices(s, &l);
}

static int
replay(struct session *ss, struct rec_out *o, struct verdict *v)
{
	struct err e;
	if (ss->s->dry_run) {
		report_dry(ss, o);
		return STATUS_CLEAN;
	}
	if (child_prepare(&e))
		cli_die("%s", e.msg);
	session_run(ss, o);
	return report_end(ss, o, v);
}

int
verb_run(int argc, char **argv)
{
	struct settings s = { .rule = { 1e-3, 1e-2, 10 },
		.max_time = INT64_C(600000000000),
		.timeout = INT64_C(600000000000) };
	struct verdict v = { 0 };
	struct session ss;
	struct cli_out out;
	struct rec_out *o;
	struct err e;
	parse(&s, argc, argv);
	cli_out_open(&out, s.common.output, false);
	if (rec_out_open(&o, out.fd, &s.common.how, &e))
		cli_die_err("output", &e);
	session_open(&ss, &s);
	report_head(&ss, o);
	report_plan(&ss, o);
	/* Told before it begins; a failure shows at the end. */
	rec_out_flush(o, NULL);
	int status = replay(&ss, o, &v);
	status = cli_out_end(&out, o, v.result, status, 0);
	session_close(&ss);
	cli_prom(&s.common, NULL, v.result, v.reason, status, 0);
	devices_free(&s.devices);
	free(s.launcher);
	return status;
}
