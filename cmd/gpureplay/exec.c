/*
 * gpureplay exec: the far side of --launch. Runs the command once, pins and
 * watches it, and prints how it ended and its signature.
 */
#define _GNU_SOURCE
#include "gpureplay.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { OPT_CPU = OPT_OWN, OPT_SIG, OPT_DETERMINISTIC, OPT_TIMEOUT };

// clang-format off
static const struct opt options[] = {
	{ OPT_CPU, "cpu", "N", "run on this core" },
	{ OPT_SIG, "sig", "WHAT", "send a hash of stdout or a FILE" },
	{ OPT_DETERMINISTIC, "deterministic", NULL,
	    "set known switches that are unset" },
	{ OPT_TIMEOUT, "timeout", "TIME", "kill the process after this (10m)" },
	OPT_COMMON, OPT_LAST
};
// clang-format on

static const char *const usage[] = {
	"gpureplay exec [options] -- CMD [ARG]...",
	NULL,
};

static void
parse(struct settings *s, int argc, char **argv)
{
	struct opt_state o;
	const char *cpu = NULL;
	int id;
	opt_start(&o, options, argc, argv);
	o.command = true;
	while ((id = opt_next(&o)) != OPT_END) {
		if (id == OPT_CPU) {
			cli_u64(&o, 0, INT_MAX);
			cpu = o.arg;
		} else if (id == OPT_SIG) {
			add_part(s, &o);
		} else if (id == OPT_DETERMINISTIC) {
			s->deterministic = true;
		} else if (id == OPT_TIMEOUT) {
			s->timeout = option_duration(&o);
		} else if (!cli_common(&s->common, id, &o, usage,
			       "Runs a command for gpureplay run on another "
			       "host.")) {
			cli_usage("unexpected option %s", o.name);
		}
	}
	cli_common_done(&s->common, "process");
	if (o.at >= argc)
		cli_usage("no command to run");
	s->command = argv + o.at;
	if (cpu)
		devices_add_cpus(&s->devices, "--cpu", cpu);
	else
		devices_add_host(&s->devices);
}

static void
put_parts(const struct session *ss, struct rec_out *o)
{
	for (size_t i = 0; i < ss->s->nparts; i++) {
		struct buf b = { 0 };
		u128_put(&b, ss->result[0].part[i]);
		rec_begin(o, "scalar");
		rec_put(o, "name", ss->s->part[i]);
		rec_put(o, "vtype", "xxh3-128");
		rec_str(o, "value", buf_view(&b));
		rec_end(o);
		buf_free(&b);
	}
}

/* The process whose records these are ended well and left them whole. */
static int
put_records(const struct session *ss, struct rec_out *o, struct err *e)
{
	struct src *src;
	struct rec_in *in;
	struct rec *r = cli_alloc(1, sizeof *r);
	int x = src_open(&src, ss->result[0].file, NULL, 0, e);
	x = x ? x : rec_in_open(&in, src, e);
	if (x) {
		free(r);
		return x;
	}
	while ((x = rec_in_next(in, r, e)) > 0)
		if (fp_is(r))
			rec_copy(o, r);
	rec_in_close(in);
	free(r);
	return x;
}

int
verb_exec(int argc, char **argv)
{
	struct settings s = { .rule = { 1e-3, 1e-2, 10 },
		.max_time = INT64_MAX,
		.timeout = INT64_C(600000000000),
		.far = true };
	struct session ss;
	struct cli_out out;
	struct rec_out *o;
	struct err e;
	parse(&s, argc, argv);
	cli_out_open(&out, s.common.output, false);
	if (rec_out_open(&o, out.fd, &s.common.how, &e))
		cli_die_err("output", &e);
	session_open(&ss, &s);
	if (child_prepare(&e))
		cli_die("%s", e.msg);
	report_head(&ss, o);
	bool ended = session_once(&ss, o);
	int x = 0;
	if (ended && ss.nresults && s.nparts)
		put_parts(&ss, o);
	else if (ended && ss.nresults)
		x = put_records(&ss, o, &e);
	if (x)
		cli_die_err("signature", &e);
	int status = ended ? STATUS_CLEAN : STATUS_NONE;
	status = cli_out_end(&out, o, NULL, status, 0);
	session_close(&ss);
	devices_free(&s.devices);
	return status;
}
