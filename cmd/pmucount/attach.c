/* pmucount attach: counts functions of a running process for a while. */
#define _GNU_SOURCE
#include "pmucount.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };
#define FOR_DEFAULT (INT64_C(10) * 1000000000)

// clang-format off
static const struct opt options[] = {
	{ 'p', "pid", "PID", "the process" },
	{ OPT_FOR, "for", "TIME", "how long (default 10s)" },
	OPT_COUNT,
	OPT_COMMON, OPT_LAST
};
// clang-format on

static const char *const usage[] = {
	"pmucount attach -p PID -f FUNC [--for TIME] [options]",
	NULL,
};

static void
parse(struct settings *s, int argc, char **argv)
{
	struct opt_state o;
	int id;
	opt_start(&o, options, argc, argv);
	while ((id = opt_next(&o)) != OPT_END) {
		if (id == OPT_OPERAND)
			cli_usage("unexpected operand \"%s\"", o.arg);
		if (id == 'p')
			s->attach = (pid_t)cli_u64(&o, 1, INT32_MAX);
		else if (id == OPT_FOR)
			s->for_ns = cli_duration(&o);
		else if (!settings_option(s, id, &o) &&
			 !cli_common(&s->common, id, &o, usage,
			     "Counts functions of a running process."))
			cli_usage("unexpected option %s", o.name);
	}
	cli_common_done(&s->common, "pmu");
	if (!s->attach)
		cli_usage("no process: -p PID");
	if (s->for_ns <= 0)
		cli_usage("option --for: expected a time above 0");
}

int
verb_attach(int argc, char **argv)
{
	struct settings s = { .max_steps = UINT64_MAX, .for_ns = FOR_DEFAULT };
	struct result r = { 0 };
	struct err e = { 0 };
	struct cli_out out;
	char link[64], program[PATH_BYTES];
	parse(&s, argc, argv);
	snprintf(link, sizeof link, "/proc/%ld/exe", (long)s.attach);
	ssize_t n = readlink(link, program, sizeof program - 1);
	if (n <= 0)
		cli_die("process %ld: %s", (long)s.attach, strerror(errno));
	program[n] = 0;
	const struct backend *b = backend_choose(&s, program, &r, &e);
	if (!b)
		cli_die("%s: %s", program, e.msg);
	r.backend = str_c(b->name);
	if (b->count(&s, program, &r, &e))
		cli_die("%s: %s", program, e.msg);
	result_sort(&r);
	cli_out_open(&out, s.common.output, false);
	bool all = s.common.output || s.common.verbose;
	int x = write_result(&s, &r, all, out.fd);
	x = cli_out_close(&out, !x) || x;
	result_free(&r);
	return x ? STATUS_NONE : STATUS_CLEAN;
}
