/*
 * tracegate filter: reads a trace or a stream of events, keeps what is always
 * needed and everything around anomalies, prints what it decided. See
 * tracegate(1).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate.h"
#include "gate_options.h"
#include "num.h"
#include "verbs.h"

// clang-format off
static const struct opt table[] = {
	{ 't', "type-in", "FORMAT", "force the input format" },
	{ OPT_F_FIELDS, "fields", "MAP", "columns: ts=,dur=,name=,cost=,unit=" },
	{ OPT_F_LIVE, "live", NULL, "judge as it comes (default for pipes)" },
	{ OPT_F_FILE, "file", NULL, "read all of it first (default for files)" },
	{ OPT_F_PRESET, "preset", "LIST", "kineto,train,vllm,sglang,strace,otel,ev" },
	{ OPT_F_SYNC, "sync", "GLOB", "names that are synchronisation points" },
	{ OPT_F_STEP, "step", "GLOB", "names that are steps" },
	{ OPT_F_SLO, "slo", "TIME", "longer is an anomaly; or GLOB=TIME" },
	{ OPT_F_BASELINE, "baseline", "FILE", "thresholds of an earlier run" },
	{ OPT_F_FLOOR, "floor", "TIME", "a stall adds this to the median (1ms)" },
	{ OPT_F_SENSITIVE, "sensitive", NULL, "2 x Q0.99 for all names" },
	{ OPT_F_FAST, "fast", NULL, "also what is far too fast" },
	{ OPT_F_COST, "cost", "KEY", "their argument (tokens) explains durations" },
	{ OPT_F_SYNC_ONLY, "sync-only", NULL, "test only steps and sync points" },
	{ OPT_F_BEAT, "heartbeat", "GLOB", "names that must come regularly" },
	{ OPT_F_STEADY, "steady", "GLOB", "how often they come; or GLOB=TIME (1s)" },
	{ OPT_F_PEERS, "peers", "GLOB", "all lanes do these at the same time" },
	{ OPT_F_BEFORE, "before", "TIME", "kept before an anomaly (1s)" },
	{ OPT_F_AFTER, "after", "TIME", "kept after it (1s)" },
	{ OPT_F_LONGEST, "max-window", "TIME", "no longer than this (10s live)" },
	{ OPT_F_COOLDOWN, "cooldown", "TIME", "none so soon after another (0)" },
	{ OPT_F_RATE, "rate", "N", "windows a minute (6 live)" },
	{ OPT_F_MAX_BYTES, "max-bytes", "SIZE", "of detail, in all" },
	{ OPT_F_AUDIT, "audit", "PPM", "normal steps kept, per million (1000)" },
	{ OPT_F_SEED, "seed", "N", "of that choice (0)" },
	{ OPT_F_MEMORY, "memory", "SIZE", "for the index of a file (512M)" },
	{ OPT_F_RING, "ring", "SIZE", "for the history of a stream (64M)" },
	{ OPT_F_HISTORY, "history", "TIME", "and its length (30s)" },
	{ OPT_F_LATENESS, "lateness", "TIME", "how late events may come (100ms)" },
	{ OPT_F_ALL, "all", NULL, "keep everything" },
	{ OPT_F_SPLIT, "split", "DIR", "a file a window there" },
	{ OPT_F_TO, "to", "FORM", "the trace as json or ev lines" },
	{ OPT_PROGRESS, "progress", "[=always]", "progress on stderr" },
	OPT_JUDGE,
	OPT_COMMON,
	OPT_LAST,
};
// clang-format on

static const char *const usage[] = {
	"tracegate [filter] [options] [TRACE]",
	NULL,
};

static const char *const usage_verb[] = {
	"tracegate filter [options] [TRACE]",
	NULL,
};

static const char summary[] =
    "Keeps a trace (-o) shallow, and deep around an anomaly; prints records";

void
gate_defaults(struct gate_settings *s)
{
	*s = (struct gate_settings){ 0 };
	s->detect = (struct detect){ .floor = 1000000, .plain = true };
	s->rules.before = s->rules.after = -1;
	s->rules.longest = s->rules.per_minute = s->rules.burst = UINT32_MAX;
	s->audit_ppm = 1000;
	s->memory = UINT64_C(512) << 20;
	s->ring = UINT64_C(64) << 20;
	s->history = INT64_C(30000000000);
	s->lateness = 100000000;
	s->fields.unit = 1000;
}

/* GLOB=TIME, or what stands alone: false. */
static bool
take_timed(struct slo **list, size_t *n, const struct opt_state *o)
{
	const char *eq = strrchr(o->arg, '=');
	struct err e;
	int64_t ns;
	if (!eq)
		return false;
	if (num_duration(str_c(eq + 1), &ns, &e))
		cli_usage("option %s: %s", o->name, e.msg);
	size_t len = (size_t)(eq - o->arg);
	char *glob = cli_alloc(len + 1, 1);
	memcpy(glob, o->arg, len);
	*list = cli_realloc(*list, *n + 1, sizeof **list);
	(*list)[(*n)++] = (struct slo){ glob, ns };
	return true;
}

static void
take_steady(struct gate_settings *s, const struct opt_state *o)
{
	size_t len = strlen(o->arg);
	if (!take_timed(&s->steady, &s->nsteady, o)) {
		char *glob = cli_alloc(len + 1, 1);
		memcpy(glob, o->arg, len);
		s->steady =
		    cli_realloc(s->steady, s->nsteady + 1, sizeof *s->steady);
		s->steady[s->nsteady++] = (struct slo){ glob, 1000000000 };
	}
	if (s->steady[s->nsteady - 1].ns < 1000)
		cli_usage("option %s: at least 1us", o->name);
}

static void
take_form(struct gate_settings *s, const struct opt_state *o)
{
	if (!strcmp(o->arg, "ev"))
		s->form = OUT_EV;
	else if (strcmp(o->arg, "json"))
		cli_usage("option %s: expected json or ev, found \"%s\"",
		    o->name, o->arg);
}

static bool
window_option(struct gate_settings *s, int id, const struct opt_state *o)
{
	switch (id) {
	case OPT_F_BEFORE:
		s->rules.before = cli_duration(o);
		return true;
	case OPT_F_AFTER:
		s->rules.after = cli_duration(o);
		return true;
	case OPT_F_LONGEST:
		s->rules.longest = cli_duration(o);
		return true;
	case OPT_F_COOLDOWN:
		s->rules.cooldown = cli_duration(o);
		return true;
	case OPT_F_RATE:
		s->rules.per_minute = (uint32_t)cli_u64(o, 0, 1000000);
		return true;
	case OPT_F_MAX_BYTES:
		s->max_bytes = cli_size(o, 1, UINT64_MAX / 4);
		return true;
	case OPT_F_AUDIT:
		s->audit_ppm = (uint32_t)cli_u64(o, 0, 1000000);
		return true;
	case OPT_F_SEED:
		s->seed = cli_u64(o, 0, UINT64_MAX);
		return true;
	}
	return false;
}

static bool
detector_option(struct gate_settings *s, int id, const struct opt_state *o)
{
	switch (id) {
	case OPT_F_SLO:
		if (!take_timed(&s->slo, &s->nslo, o))
			s->detect.slo = cli_duration(o);
		return true;
	case OPT_F_BASELINE:
		s->baseline = o->arg;
		return true;
	case OPT_F_FLOOR:
		s->detect.floor = cli_duration(o);
		return true;
	case OPT_F_SENSITIVE:
		s->detect.sensitive = true;
		return true;
	case OPT_F_FAST:
		s->detect.fast = true;
		return true;
	case OPT_F_COST:
		s->cost = o->arg;
		return true;
	case OPT_F_SYNC_ONLY:
		s->detect.plain = false;
		return true;
	case OPT_F_BEAT:
		s->beat = cli_realloc(s->beat, s->nbeat + 1, sizeof *s->beat);
		s->beat[s->nbeat++] = o->arg;
		return true;
	case OPT_F_STEADY:
		take_steady(s, o);
		return true;
	case OPT_F_PEERS:
		s->peers =
		    cli_realloc(s->peers, s->npeers + 1, sizeof *s->peers);
		s->peers[s->npeers++] = o->arg;
		return true;
	case OPT_F_SYNC:
	case OPT_F_STEP:
		sync_add(&s->sync, &s->nsync,
		    (struct sync_rule){ "*", o->arg,
			id == OPT_F_STEP ? CLASS_STEP : CLASS_SYNC });
		return true;
	}
	return false;
}

static bool
input_option(struct gate_settings *s, int id, const struct opt_state *o)
{
	switch (id) {
	case 't':
		s->type = o->arg;
		return true;
	case OPT_F_FIELDS:
		fields_parse(&s->fields, o);
		return true;
	case OPT_F_LIVE:
	case OPT_F_FILE:
		s->mode = id == OPT_F_LIVE ? 1 : -1;
		return true;
	case OPT_F_MEMORY:
		s->memory = cli_size(o, 1 << 20, UINT64_MAX / 4);
		return true;
	case OPT_F_RING:
		s->ring = cli_size(o, 64 << 10, UINT64_C(1) << 40);
		return true;
	case OPT_F_HISTORY:
		s->history = cli_duration(o);
		return true;
	case OPT_F_LATENESS:
		s->lateness = cli_duration(o);
		return true;
	case OPT_F_SPLIT:
		s->split = o->arg;
		return true;
	case OPT_F_ALL:
		s->all = true;
		return true;
	case OPT_F_TO:
		take_form(s, o);
		return true;
	}
	return false;
}

bool
gate_option(struct gate_settings *s, int id, const struct opt_state *o)
{
	return input_option(s, id, o) || detector_option(s, id, o) ||
	       window_option(s, id, o);
}

static void
parse(struct gate_settings *s, int argc, char **argv)
{
	struct opt_state o;
	const char *preset = "all";
	int id;
	gate_defaults(s);
	opt_start(&o, table, argc, argv);
	while ((id = opt_next(&o)) != OPT_END) {
		if (id == OPT_OPERAND) {
			if (s->input)
				cli_usage("one trace at a time");
			s->input = o.arg;
		} else if (id == OPT_F_PRESET) {
			preset = o.arg;
		} else if (!gate_option(s, id, &o)) {
			cli_common(&s->common, id, &o,
			    strchr(cli_name(), ' ') ? usage_verb : usage,
			    summary);
		}
	}
	cli_common_done(&s->common, "window");
	/* After --sync and --step: what the user says comes first. */
	sync_preset(preset, &s->sync, &s->nsync);
	if (s->split && s->form != OUT_JSON)
		cli_usage("--split writes json: without --to");
	if (s->split && s->common.quiet)
		cli_usage("-q and --split: -q writes no trace");
	if (!s->cost)
		s->cost = s->fields.cost;
	if (!s->input) {
		cli_need_input();
		s->input = "-";
	}
}

/* ---- signals --------------------------------------------------------- */

/* The end of an endless stream: what was read is finished properly. */
volatile sig_atomic_t gate_stop;

static void
on_signal(int sig)
{
	(void)sig;
	gate_stop = 1;
}

void
catch_signals(void)
{
	struct sigaction a = { .sa_handler = on_signal };
	sigemptyset(&a.sa_mask);
	/* The second one ends the program as usual. */
	a.sa_flags = (int)SA_RESETHAND;
	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
}

/* ---- running --------------------------------------------------------- */

/* Pipes are streams, unless what is in them is a finished object. */
static bool
is_live(const struct gate *g)
{
	struct stat st;
	if (g->set->mode)
		return g->set->mode > 0;
	bool in = !strcmp(g->set->input, "-");
	if (in ? fstat(STDIN_FILENO, &st) : stat(g->set->input, &st))
		return false;
	if (S_ISREG(st.st_mode))
		return false;
	return !reader_is_object(&g->reader);
}

static void
live_defaults(struct gate *g, struct gate_settings *s, bool live)
{
	if (s->rules.longest == UINT32_MAX)
		s->rules.longest = live ? INT64_C(10000000000) : 0;
	if (s->rules.per_minute == UINT32_MAX)
		s->rules.per_minute = live ? 6 : 0;
	s->rules.burst = 3;
	/* A file of seconds has windows of less: see narrow() in file.c. */
	g->narrow = !live && s->rules.before < 0 && s->rules.after < 0;
	if (s->rules.before < 0)
		s->rules.before = WINDOW_SIDE;
	if (s->rules.after < 0)
		s->rules.after = WINDOW_SIDE;
}

/*
 * Where things go: the trace to -o and the records to standard output; without
 * -o the trace to standard output and the records to standard error; with -q
 * no trace.
 */
struct outputs {
	struct cli_out trace;
	int rec_fd;
	bool wanted, direct;
};

static void
open_outputs(struct outputs *o, const struct gate_settings *s, bool live)
{
	*o = (struct outputs){ .rec_fd = STDOUT_FILENO };
	/* With --split the windows are the trace, unless -o asks for one. */
	o->wanted = !s->common.quiet && (s->common.output || !s->split);
	o->trace.fd = -1;
	if (!o->wanted)
		return;
	if (!s->common.output) {
		o->rec_fd = STDERR_FILENO;
		o->trace.fd = STDOUT_FILENO;
		return;
	}
	/* A stream can be followed while it is written. */
	o->direct = live;
	if (!live) {
		cli_out_open(&o->trace, s->common.output, false);
		return;
	}
	o->trace.fd = open(
	    s->common.output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (o->trace.fd < 0)
		cli_die(
		    "%s: cannot open: %s", s->common.output, strerror(errno));
}

static int
close_outputs(struct outputs *o, const struct gate_settings *s, bool keep)
{
	int r = 0;
	if (o->wanted && s->common.output && !o->direct)
		r = cli_out_close(&o->trace, keep);
	else if (o->wanted && o->trace.fd >= 0)
		r = close(o->trace.fd);
	if (o->wanted && r && (o->direct || !s->common.output))
		cli_warn("%s: cannot close: %s",
		    s->common.output ? s->common.output : "standard output",
		    strerror(errno));
	if (o->rec_fd == STDOUT_FILENO && close(STDOUT_FILENO)) {
		cli_warn("standard output: cannot close: %s", strerror(errno));
		r = -1;
	}
	return r;
}

static int
run(struct gate *g, const struct gate_settings *s, bool live)
{
	struct outputs to;
	struct err e = { 0 };
	struct rec_how how = s->common.how;
	open_outputs(&to, s, live);
	how.gzip = false;
	if (rec_out_open(&g->rec, to.rec_fd, &how, &e))
		cli_die("%s", e.msg);
	out_open(&g->out, to.trace.fd, s->form, s->common.how.gzip);
	if (s->split)
		split_open(&g->split, s->split, s->common.how.gzip,
		    s->max_bytes, &g->reader.info);
	int r = live ? gate_live(g, &e) : gate_file(g, &e);
	struct err closing;
	bool written = !out_close(&g->out, &g->reader.info, &closing);
	bool parted = !s->split || !split_close(&g->split, &closing);
	if (!parted)
		cli_warn("%s: %s", s->split, closing.msg);
	if (r && g->out.failure.code == r)
		written = false;
	else if (r)
		cli_warn_err(s->input, &e);
	if (!written)
		cli_warn("%s: %s",
		    s->common.output ? s->common.output : "standard output",
		    g->out.failure.msg);
	int status = STATUS_NONE;
	if (r || !written || !parted) {
		rec_out_finish(g->rec, NULL, STATUS_NONE, 0, &e);
	} else {
		status = gate_report(g);
	}
	rec_out_close(g->rec);
	if (close_outputs(&to, s, !r && written))
		status = STATUS_NONE;
	return status;
}

void
gate_settings_free(struct gate_settings *s)
{
	for (size_t i = 0; i < s->nslo; i++)
		free((char *)(uintptr_t)s->slo[i].glob);
	for (size_t i = 0; i < s->nsteady; i++)
		free((char *)(uintptr_t)s->steady[i].glob);
	free(s->slo);
	free(s->steady);
	free(s->peers);
	free(s->beat);
	free(s->sync);
	fields_free(&s->fields);
}

/* Where the bytes that are read are those of the file. */
static void
tell_total(struct gate *g, bool live)
{
	struct stat st;
	const struct src *src = g->reader.feed.src;
	if (!live && src && !src_is_gzip(src) && !stat(g->set->input, &st) &&
	    S_ISREG(st.st_mode))
		progress_total(g->progress, (uint64_t)st.st_size);
}

int
verb_filter(int argc, char **argv)
{
	struct gate_settings s;
	struct gate g = { .set = &s };
	struct err e = { 0 };
	parse(&s, argc, argv);
	if (reader_open(
		&g.reader, s.input, s.type, &s.fields, cli_tmpdir(), &e)) {
		cli_warn_err(s.input, &e);
		cli_prom(&s.common, NULL, NULL, NULL, STATUS_NONE, 1);
		reader_close(&g.reader);
		gate_settings_free(&s);
		return STATUS_NONE;
	}
	bool live = is_live(&g);
	g.progress = progress_start(&s.common);
	tell_total(&g, live);
	g.stop = &gate_stop;
	if (live) {
		catch_signals();
		reader_watch(&g.reader);
	}
	live_defaults(&g, &s, live);
	keys_init(&g.keys, live, s.sync, s.nsync);
	lanes_init(&g.lanes);
	g.windows.rules = s.rules;
	if (s.baseline)
		baseline_load(&g.keys, s.baseline);
	int status = run(&g, &s, live);
	progress_stop(g.progress);
	gate_free(&g);
	gate_settings_free(&s);
	return status;
}
