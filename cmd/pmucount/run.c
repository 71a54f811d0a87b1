/*
 * pmucount run: counts functions of a command. The command keeps its streams
 * and its exit status; records go to -o FILE, or to standard error at the end.
 */
#define _GNU_SOURCE
#include "pmucount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "launch.h"
#include "num.h"

// clang-format off
static const struct opt options[] = {
	OPT_COUNT,
	{ OPT_GATE, "gate", "N/TIME", "N calls a function, thread and TIME" },
	OPT_COMMON, OPT_LAST
};
// clang-format on

/* Without the verb, and with it. */
static const char *const usage_plain[] = {
	"pmucount [run] [-f FUNC]... [options] -- CMD [ARG]...",
	"pmucount attach|report|diff|list ... (each has its own --help)",
	NULL,
};
static const char *const usage_run[] = {
	"pmucount run [-f FUNC]... [options] -- CMD [ARG]...",
	NULL,
};

static void
parse_gate(struct settings *s, const struct opt_state *o)
{
	struct str rest = str_c(o->arg), n;
	struct err e = { 0 };
	int64_t ns = 0;
	if (!str_cut(&rest, '/', &n) || !rest.p ||
	    num_u64(n, 1, 1000000, &s->gate_n, &e) ||
	    num_duration(rest, &ns, &e) || ns < 1000000)
		cli_usage("option %s: expected N/TIME as in 30/400ms, "
			  "found \"%s\"",
		    o->name, o->arg);
	s->gate_ns = (uint64_t)ns;
}

static void
parse(struct settings *s, int argc, char **argv)
{
	struct opt_state o;
	bool plain = strcmp(argv[0], "run");
	const char *const *usage = plain ? usage_plain : usage_run;
	int id;
	opt_start(&o, options, argc, argv);
	o.command = true;
	while ((id = opt_next(&o)) != OPT_END) {
		if (settings_option(s, id, &o))
			continue;
		if (id == OPT_GATE)
			parse_gate(s, &o);
		else if (!cli_common(&s->common, id, &o, usage,
			     "Counts functions at their entry and return."))
			cli_usage("unexpected option %s", o.name);
	}
	cli_common_done(&s->common, "pmu");
	if (o.at >= argc)
		cli_usage("no command to count");
	s->command = argv + o.at;
	if (s->skip_callees && s->backend && strcmp(s->backend, "step"))
		cli_usage("--skip-callees goes with -b step");
}

/* Can the file of -o be written? Asked before the command runs. */
static bool
can_write(const char *path)
{
	struct stat st;
	if (!path || !strcmp(path, "-"))
		return true;
	bool there = !stat(path, &st);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
	if (fd < 0) {
		if (errno == ENXIO) /* a FIFO that nobody reads yet */
			return true;
		cli_warn("%s: cannot open: %s", path, strerror(errno));
		return false;
	}
	close(fd);
	if (!there)
		unlink(path);
	return true;
}

static void
write_head(const struct settings *s, const struct result *r, struct rec_out *o)
{
	struct buf words = { 0 };
	struct utsname u = { 0 };
	for (char **w = s->command; w && *w; w++) {
		buf_puts(&words, w == s->command ? "" : " ");
		buf_puts(&words, *w);
	}
	uname(&u);
	rec_begin(o, "head");
	rec_put(o, "of", "pmu");
	rec_u64(o, "version", SCHEMA_VERSION);
	rec_put(o, "tool", "pmucount " VERSION);
	rec_str(o, "source", r->backend);
	rec_fmt(o, "build", "%s %s", u.machine, u.release);
	if (!words.failed && words.len)
		rec_str(o, "run", buf_view(&words));
	rec_time(o, "time", cli_now(&s->common));
	rec_put(o, "host", u.nodename);
	rec_end(o);
	buf_free(&words);
}

int
write_result(const struct settings *s, const struct result *r, bool all, int fd)
{
	struct rec_how how = s->common.how;
	struct rec_out *o;
	struct err e;
	char *columns = NULL;
	bool pmu = how.type && !strcmp(how.type, "pmu");
	if (how.form != REC_LINES && how.form != REC_JSON && !how.columns &&
	    pmu)
		how.columns = columns = result_columns_dup(r);
	int x = rec_out_open(&o, fd, &how, &e);
	if (x) {
		free(columns);
		cli_warn("%s", e.msg);
		return x;
	}
	write_head(s, r, o);
	result_write(r, o, all);
	x = rec_out_finish(o, NULL, 0, 0, &e);
	if (x)
		cli_warn("%s", e.msg);
	rec_out_close(o);
	free(columns);
	return x;
}

static int
report_it(const struct settings *s, struct result *r)
{
	struct cli_out out = { .fd = STDERR_FILENO };
	bool all = s->common.verbose > 0;
	result_sort(r);
	if (!s->common.output)
		return write_result(s, r, all, out.fd);
	cli_out_open(&out, s->common.output, false);
	int x = write_result(s, r, true, out.fd);
	return cli_out_close(&out, !x) ? -1 : x;
}

int
count_command(const struct settings *s, struct result *r, struct err *e)
{
	char *program = launch_find_dup(s->command[0]);
	if (!program) {
		bool missing = errno == ENOENT || errno == ENOTDIR;
		err_sys(e, "%s: cannot execute", s->command[0]);
		return missing ? STATUS_NOTFOUND : STATUS_NOEXEC;
	}
	int status = STATUS_OWN;
	const struct backend *b = NULL;
	if (access(program, X_OK)) {
		err_sys(e, "%s: cannot execute", program);
		status = STATUS_NOEXEC;
	} else if (!launch_check(program, e)) {
		b = backend_choose(s, program, r, e);
	}
	if (b) {
		r->backend = str_c(b->name);
		status = b->count(s, program, r, e) ? STATUS_OWN : 0;
	}
	if (status && status != STATUS_NOEXEC)
		err_prefix(e, "%s", program);
	free(program);
	return status;
}

int
verb_run(int argc, char **argv)
{
	struct settings s = { .max_steps = UINT64_MAX };
	struct result r = { 0 };
	struct err e = { 0 };
	parse(&s, argc, argv);
	if (!can_write(s.common.output))
		return STATUS_OWN;
	int status = count_command(&s, &r, &e);
	if (status)
		cli_warn("%s", e.msg);
	else if (report_it(&s, &r))
		status = STATUS_OWN;
	else
		status = launch_status(r.status);
	result_free(&r);
	return status;
}
