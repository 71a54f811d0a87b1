/*
 * tracegate control: watches a stream and turns a deep tracer on at an
 * anomaly, and off again, for certain. See tracegate(1).
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gate_options.h"
#include "num.h"
#include "reasons.h"
#include "tracer.h"
#include "verbs.h"

enum {
	OPT_C_PERF = OPT_F_LAST,
	OPT_C_FIFO,
	OPT_C_SIGNAL,
	OPT_C_ON,
	OPT_C_OFF,
	OPT_C_HOLD,
	OPT_C_SETTLE,
	OPT_C_TIMEOUT,
};

// clang-format off
static const struct opt table[] = {
	{ OPT_C_PERF, "perf", "CTL,ACK", "FIFOs of perf --control fifo:CTL,ACK" },
	{ OPT_C_FIFO, "fifo", "FILE", "write on and off there" },
	{ OPT_C_SIGNAL, "signal", "ON[,OFF]", "send these signals to -p" },
	{ 'p', "pid", "PID", "the process that gets them" },
	{ OPT_C_ON, "on", "COMMAND", "run it, without a shell" },
	{ OPT_C_OFF, "off", "COMMAND", "run it to turn the tracer off" },
	{ OPT_C_HOLD, "hold", "TIME", "how long it stays on (5s)" },
	{ OPT_C_SETTLE, "settle", "TIME", "then ignore its own stall (1s)" },
	{ OPT_C_TIMEOUT, "timeout", "TIME", "for an answer (10s)" },
	{ 't', "type-in", "FORMAT", "force the input format" },
	{ OPT_F_FIELDS, "fields", "MAP", "columns, as in filter" },
	{ OPT_F_PRESET, "preset", "LIST", "as in filter" },
	{ OPT_F_SYNC, "sync", "GLOB", "names that are synchronisation points" },
	{ OPT_F_STEP, "step", "GLOB", "names that are steps" },
	{ OPT_F_SLO, "slo", "TIME", "longer is an anomaly; or GLOB=TIME" },
	{ OPT_F_BASELINE, "baseline", "FILE", "thresholds of an earlier run" },
	{ OPT_F_FLOOR, "floor", "TIME", "a stall adds this to the median (1ms)" },
	{ OPT_F_SENSITIVE, "sensitive", NULL, "2 x Q0.99 for all names" },
	{ OPT_F_SYNC_ONLY, "sync-only", NULL, "test only steps and sync points" },
	{ OPT_F_BEAT, "heartbeat", "GLOB", "names that must come regularly" },
	{ OPT_F_LATENESS, "lateness", "TIME", "how late events may come (100ms)" },
	OPT_JUDGE,
	OPT_COMMON,
	OPT_LAST,
};
// clang-format on

static const char *const usage[] = {
	"tracegate control [options] [STREAM]",
	NULL,
};

static const char summary[] =
    "Turns a tracer in another process on when a stream shows an anomaly.";

struct control {
	struct gate_settings set;
	struct gate gate;
	struct tracer tracer;
	char *text[2]; /* of the commands */
	int64_t hold, settle;
	bool on;
	int64_t off_at, deaf_until; /* monotonic */
	int64_t asked, acked;       /* wall clock */
	uint64_t turned, failed, ignored;
};

/* For atexit: the tracer is turned off however the program ends. */
static struct control *running;

static int64_t
clock_ns(clockid_t which)
{
	struct timespec t;
	clock_gettime(which, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void
put_control(
    struct control *c, const char *result, int64_t at, const struct err *e)
{
	struct rec_out *o = c->gate.rec;
	struct err flush;
	rec_begin(o, "control");
	rec_put(o, "action", c->tracer.kind->name);
	rec_time(o, "at", at);
	rec_time(o, "asked", c->asked);
	if (!e)
		rec_time(o, c->on ? "acked" : "off", c->acked);
	rec_put(o, "result", result);
	if (e) {
		rec_put(o, "reason",
		    e->code == SE_ENOENT ? REASON_TRACER_ABSENT
					 : REASON_TRACER_FAILED);
		rec_put(o, "note", e->msg);
	}
	rec_end(o);
	rec_out_flush(o, &flush);
}

static void
turn_off(struct control *c)
{
	struct err e;
	if (!c->on)
		return;
	c->on = false;
	c->asked = clock_ns(CLOCK_REALTIME);
	int r = tracer_set(&c->tracer, false, &e);
	c->acked = clock_ns(CLOCK_REALTIME);
	c->deaf_until = clock_ns(CLOCK_MONOTONIC) + c->settle;
	c->failed += r != 0;
	if (c->gate.rec)
		put_control(
		    c, r ? "failed" : "off", c->gate.n.last, r ? &e : NULL);
}

static void
at_exit(void)
{
	if (running)
		turn_off(running);
}

static void
on_tick(void *user)
{
	struct control *c = user;
	if (c->on && clock_ns(CLOCK_MONOTONIC) >= c->off_at)
		turn_off(c);
}

/* One at a time; what comes while it is on only keeps it on. */
static void
on_open(void *user, const struct opening *o)
{
	struct control *c = user;
	struct err e;
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	on_tick(c);
	if (c->on || now < c->deaf_until) {
		c->ignored++;
		return;
	}
	c->asked = clock_ns(CLOCK_REALTIME);
	c->on = true;
	int r = tracer_set(&c->tracer, true, &e);
	c->acked = clock_ns(CLOCK_REALTIME);
	now = clock_ns(CLOCK_MONOTONIC);
	c->off_at = now + c->hold;
	if (r) {
		/* Perhaps it is on all the same: off is asked in any case. */
		c->failed++;
		put_control(c, "failed", o->ts, &e);
		c->off_at = now;
		return;
	}
	c->turned++;
	put_control(c, "on", o->ts, NULL);
}

/* ---- options --------------------------------------------------------- */

struct signal_name {
	const char *name;
	int number;
};

static const struct signal_name signals[] = {
	{ "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "HUP", SIGHUP },
	{ "WINCH", 28 }, /* not in POSIX.1-2008; the number on Linux */
};

static int
signal_number(struct str s)
{
	uint64_t n;
	if (str_starts(s, "SIG"))
		s = (struct str){ s.p + 3, s.len - 3 };
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		if (str_is(s, signals[i].name))
			return signals[i].number;
	return num_u64(s, 1, 64, &n, NULL) ? 0 : (int)n;
}

static void
only_one(struct control *c, const struct tracer_kind *kind)
{
	if (c->tracer.kind && c->tracer.kind != kind)
		cli_usage("--perf, --fifo, --signal and --on exclude each "
			  "other");
	c->tracer.kind = kind;
}

static char *
copy(const char *text)
{
	size_t n = strlen(text) + 1;
	return memcpy(cli_alloc(n, 1), text, n);
}

static void
take_perf(struct control *c, const struct opt_state *o)
{
	char *text = copy(o->arg), *comma = strchr(text, ',');
	only_one(c, &tracer_perf);
	if (!comma)
		cli_usage(
		    "option --perf: expected CTL,ACK, found \"%s\"", o->arg);
	*comma = 0;
	free(c->text[0]);
	c->text[0] = text;
	c->tracer.ctl = text;
	c->tracer.ack = comma + 1;
}

static void
take_signal(struct control *c, const struct opt_state *o)
{
	struct str rest = str_c(o->arg), on, off;
	only_one(c, &tracer_signal);
	str_cut(&rest, ',', &on);
	off = rest.p ? rest : on;
	c->tracer.on_signal = signal_number(on);
	c->tracer.off_signal = signal_number(off);
	if (!c->tracer.on_signal || !c->tracer.off_signal)
		cli_usage(
		    "option --signal: expected signals, found \"%s\"", o->arg);
}

static void
take_command(struct control *c, const struct opt_state *o, bool on)
{
	only_one(c, &tracer_command);
	free(c->text[!on]);
	c->text[!on] = copy(o->arg);
	if (!tracer_words(
		on ? c->tracer.on_words : c->tracer.off_words, c->text[!on]))
		cli_usage("option %s: expected a command of at most %d words",
		    o->name, TRACER_WORDS);
}

static bool
own_option(struct control *c, int id, const struct opt_state *o)
{
	switch (id) {
	case OPT_C_PERF:
		take_perf(c, o);
		return true;
	case OPT_C_FIFO:
		only_one(c, &tracer_fifo);
		c->tracer.ctl = o->arg;
		return true;
	case OPT_C_SIGNAL:
		take_signal(c, o);
		return true;
	case 'p':
		c->tracer.pid = (pid_t)cli_u64(o, 2, INT32_MAX);
		return true;
	case OPT_C_ON:
	case OPT_C_OFF:
		take_command(c, o, id == OPT_C_ON);
		return true;
	case OPT_C_HOLD:
		c->hold = cli_duration(o);
		return true;
	case OPT_C_SETTLE:
		c->settle = cli_duration(o);
		return true;
	case OPT_C_TIMEOUT:
		c->tracer.timeout = cli_duration(o);
		return true;
	}
	return false;
}

static void
check_options(struct control *c)
{
	if (!c->tracer.kind)
		cli_usage("expected --perf, --fifo, --signal or --on");
	if (c->tracer.kind == &tracer_signal && !c->tracer.pid)
		cli_usage("--signal goes with -p PID");
	if (c->tracer.kind == &tracer_command && !c->tracer.on_words[0])
		cli_usage("--off goes with --on");
	if (!c->set.input) {
		cli_need_input();
		c->set.input = "-";
	}
}

static void
parse(struct control *c, int argc, char **argv)
{
	struct opt_state o;
	struct gate_settings *s = &c->set;
	const char *preset = "all";
	int id;
	gate_defaults(s);
	opt_start(&o, table, argc, argv);
	while ((id = opt_next(&o)) != OPT_END) {
		if (id == OPT_OPERAND) {
			if (s->input)
				cli_usage("one stream at a time");
			s->input = o.arg;
		} else if (id == OPT_F_PRESET) {
			preset = o.arg;
		} else if (!own_option(c, id, &o) && !gate_option(s, id, &o)) {
			cli_common(&s->common, id, &o, usage, summary);
		}
	}
	cli_common_done(&s->common, "control");
	check_options(c);
	sync_preset(preset, &s->sync, &s->nsync);
	/* Every opening is a reason; the tracer itself is the limit. */
	s->rules = (struct window_rules){ 0 };
	s->audit_ppm = 0;
}

/* ---- running --------------------------------------------------------- */

static int
watch(struct control *c, struct err *e)
{
	struct gate *g = &c->gate;
	struct cli_out to;
	cli_out_open(&to, c->set.common.output, true);
	if (rec_out_open(&g->rec, to.fd, &c->set.common.how, e))
		cli_die("%s", e->msg);
	out_open(&g->out, -1, OUT_JSON, false);
	running = c;
	atexit(at_exit);
	int r = gate_live(g, e);
	turn_off(c);
	running = NULL;
	int status = STATUS_NONE;
	if (r) {
		cli_warn_err(c->set.input, e);
		rec_out_finish(g->rec, NULL, STATUS_NONE, 0, e);
	} else {
		g->n.control_failed = c->failed;
		g->n.control_ignored = c->ignored;
		status = gate_report(g);
	}
	rec_out_close(g->rec);
	g->rec = NULL;
	if (cli_out_close(&to, true))
		status = STATUS_NONE;
	return status;
}

int
verb_control(int argc, char **argv)
{
	struct control c = { .hold = INT64_C(5000000000),
		.settle = 1000000000,
		.tracer.timeout = INT64_C(10000000000) };
	struct err e = { 0 };
	struct gate *g = &c.gate;
	parse(&c, argc, argv);
	/* A tracer that dies must not take us with it. */
	signal(SIGPIPE, SIG_IGN);
	if (tracer_open(&c.tracer, &e))
		cli_die("%s", e.msg);
	if (reader_open(&g->reader, c.set.input, c.set.type, &c.set.fields,
		cli_tmpdir(), &e))
		cli_die_err(c.set.input, &e);
	catch_signals();
	reader_watch(&g->reader);
	g->set = &c.set;
	g->stop = &gate_stop;
	g->on_open = on_open;
	g->on_tick = on_tick;
	g->user = &c;
	keys_init(&g->keys, true, c.set.sync, c.set.nsync);
	lanes_init(&g->lanes);
	if (c.set.baseline)
		baseline_load(&g->keys, c.set.baseline);
	int status = watch(&c, &e);
	tracer_close(&c.tracer);
	gate_free(g);
	gate_settings_free(&c.set);
	free(c.text[0]);
	free(c.text[1]);
	return status;
}
