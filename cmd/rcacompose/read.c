/*
 * rcacompose read FORMAT [FILE...]: telemetry text in, evidence out. The
 * formats are the table in ev.c.
 */
#include <errno.h>

#include "cli.h"
#include "num.h"
#include "rules.h"
#include "verbs.h"

enum {
	OPT_AT = OPT_OWN,
	OPT_PREVIOUS,
	OPT_PREVIOUS_AT,
	OPT_ENTITY,
	OPT_RULE,
	OPT_SET,
	OPT_AGENT,
	OPT_HEADER,
	OPT_TIME,
	OPT_ZONE,
	OPT_BOOT,
	OPT_SINCE,
	OPT_MIN_N,
	OPT_ALIVE
};

// clang-format off
static const struct opt options[] = {
	{ OPT_AT, "at", "TIME", "when the text was taken" },
	{ OPT_PREVIOUS, "previous", "FILE", "an earlier sample of the same" },
	{ OPT_PREVIOUS_AT, "previous-at", "TIME", "when that was taken" },
	{ OPT_ENTITY, "entity", "TEMPLATE", "port:{host}/{ifname}" },
	{ OPT_RULE, "rule", "RULE", "'COUNTER [gauge] faulty>X healthy<=Y'" },
	{ OPT_SET, "set", "KEY=VALUE", "a label that the text does not have" },
	{ OPT_AGENT, "agent", "NAME", "agent= of the evidence (the format)" },
	{ OPT_HEADER, "header", "LIST", "csv: names of columns, by commas" },
	{ OPT_TIME, "time", "COLUMN", "csv: when a row was taken" },
	{ OPT_ZONE, "zone", "+HH:MM", "of times that name none" },
	{ OPT_BOOT, "boot", "TIME", "kernel log: when uptime was 0" },
	{ OPT_SINCE, "since", "TIME", "when a measurement of loss began" },
	{ OPT_MIN_N, "min-n", "N", "loss: packets that are enough (100)" },
	{ OPT_ALIVE, "alive", NULL, "also say that the agent lives (--since)" },
	OPT_COMMON,
	OPT_LAST,
};
// clang-format on

static const char *const usage[] = {
	"rcacompose read FORMAT [--rule RULE]... [FILE...]",
	NULL,
};
static const char summary[] =
    "Turns telemetry text into evidence. FORMAT is one of csv dcgm edac\n"
    "ethtool fping ip-link lldp mce mtr nvidia-smi probes prom prom-api\n"
    "records route smart snmp sonic xid.";

struct settings {
	struct cli_common common;
	const struct ev_format *format;
	const char *previous;
	int64_t previous_at;
	bool at_given, alive;
	struct ev ev;
	struct rules *rules;
	const char *template;
	char **operand;
	int noperands;
};

/* ---- options --------------------------------------------------------- */

static int64_t
time_arg(const struct opt_state *o)
{
	struct err e;
	int64_t t;
	if (num_time(str_c(o->arg), &t, &e))
		cli_usage("option %s: %s", o->name, e.msg);
	return t;
}

/* "+02:00", "-08:00", "Z" */
static int64_t
zone_arg(const struct opt_state *o)
{
	struct str s = str_c(o->arg);
	uint64_t h, m;
	if (str_is(s, "Z"))
		return 0;
	if (s.len != 6 || (s.p[0] != '+' && s.p[0] != '-') || s.p[3] != ':' ||
	    num_u64((struct str){ s.p + 1, 2 }, 0, 23, &h, NULL) ||
	    num_u64((struct str){ s.p + 4, 2 }, 0, 59, &m, NULL))
		cli_usage("option %s: expected +HH:MM, -HH:MM or Z, found "
			  "\"%s\"",
		    o->name, o->arg);
	int64_t ns = (int64_t)(h * 3600 + m * 60) * 1000000000;
	return s.p[0] == '-' ? -ns : ns;
}

static void
set_arg(struct settings *s, const struct opt_state *o)
{
	struct str value = str_c(o->arg), key;
	str_cut(&value, '=', &key);
	if (!value.p || !key.len)
		cli_usage("option %s: expected KEY=VALUE, found \"%s\"",
		    o->name, o->arg);
	if (s->ev.nset == EV_LABELS_MAX / 2)
		cli_usage("more than %d --set", EV_LABELS_MAX / 2);
	s->ev.set[s->ev.nset++] = (struct label){ key, value };
}

static void
option(struct settings *s, int id, const struct opt_state *o)
{
	struct err e;
	switch (id) {
	case OPT_AT:
		s->ev.at = time_arg(o);
		s->at_given = true;
		break;
	case OPT_PREVIOUS:
		s->previous = o->arg;
		break;
	case OPT_PREVIOUS_AT:
		s->previous_at = time_arg(o);
		break;
	case OPT_ENTITY:
		s->template = o->arg;
		break;
	case OPT_RULE:
		if (rules_add(s->rules, str_c(o->arg), &e))
			cli_usage("option %s: %s", o->name, e.msg);
		break;
	case OPT_SET:
		set_arg(s, o);
		break;
	case OPT_AGENT:
		s->ev.agent = o->arg;
		break;
	case OPT_HEADER:
		s->ev.header = o->arg;
		break;
	case OPT_TIME:
		s->ev.time_column = o->arg;
		break;
	case OPT_ZONE:
		s->ev.zone = zone_arg(o);
		s->ev.zoned = true;
		break;
	case OPT_BOOT:
		s->ev.boot = time_arg(o);
		break;
	case OPT_SINCE:
		s->ev.since = time_arg(o);
		break;
	case OPT_MIN_N:
		s->ev.min_n = cli_u64(o, 1, UINT32_MAX);
		break;
	case OPT_ALIVE:
		s->alive = true;
		break;
	default:
		cli_common(&s->common, id, o, usage, summary);
	}
}

/* Readers that judge by themselves take one rule, for loss, or none. */
static void
check_rules(struct settings *s)
{
	bool probes = s->format->stream == ev_probes;
	if (!s->format->direct || !rules_count(s->rules))
		return;
	if (!probes)
		cli_usage("--rule has no meaning for %s: it judges by itself",
		    s->format->name);
	if (!rules_loss(s->rules, &s->ev))
		cli_usage("probes take one --rule: 'loss faulty>X healthy<=Y'");
}

static void
check(struct settings *s)
{
	const struct ev_format *f = s->format;
	if (!f)
		cli_usage("which format? rcacompose read FORMAT");
	check_rules(s);
	if (!s->template)
		s->template = f->entity;
	if (!f->direct && !s->template)
		cli_usage("%s needs --entity TEMPLATE", f->name);
	if (f->direct && s->previous)
		cli_usage("--previous has no meaning for %s", f->name);
	if (s->previous && !f->stamped &&
	    (!s->at_given || s->previous_at == NO_TIME))
		cli_usage("%s has no time of its own: --at and --previous-at",
		    f->name);
	if (s->previous_at != NO_TIME && !s->previous)
		cli_usage("--previous-at goes with --previous");
	if (s->alive && s->ev.since == NO_TIME)
		cli_usage("--alive needs --since: from when on");
	if (!s->ev.agent)
		s->ev.agent = f->agent;
	if (s->template)
		rules_entity(s->rules, s->template);
}

static void
parse(struct settings *s, int argc, char **argv)
{
	struct opt_state o;
	int id;
	s->ev.at = s->ev.boot = s->ev.since = s->previous_at = NO_TIME;
	s->ev.min_n = 100;
	s->ev.loss_faulty = 0.005;
	s->ev.loss_healthy = 0.001;
	s->rules = rules_new();
	s->operand = cli_alloc((size_t)argc, sizeof *s->operand);
	opt_start(&o, options, argc, argv);
	while ((id = opt_next(&o)) != OPT_END) {
		if (id != OPT_OPERAND) {
			option(s, id, &o);
		} else if (!s->format) {
			s->format = ev_find(o.arg);
			if (!s->format)
				cli_usage("unknown format \"%s\"", o.arg);
		} else {
			s->operand[s->noperands++] = (char *)o.arg;
		}
	}
	cli_common_done(&s->common, "evidence");
	check(s);
	if (!s->at_given)
		s->ev.at = cli_now(&s->common);
}

/* ---- reading --------------------------------------------------------- */

static void
take(struct ev *ev, const struct sample *sample)
{
	ev->samples += !ev->previous;
	rules_sample(ev->user, ev, sample);
}

static int
slurp(struct ev *ev, struct src *src, struct str *out, struct err *e)
{
	struct buf b = { 0 };
	size_t n;
	int r;
	do {
		char *room = buf_room(&b, 1 << 16);
		if (!room)
			return err_mem(e);
		r = src_read_some(src, b.len, room, 1 << 16, &n, e);
		b.len += n;
	} while (!r && n && b.len <= EV_TEXT_MAX);
	if (!r && b.len > EV_TEXT_MAX)
		r = err_set(
		    e, SE_ELIMIT, "more than %d bytes of text", EV_TEXT_MAX);
	*out = arena_str(ev->arena, buf_view(&b));
	if (!out->p)
		r = err_mem(e);
	buf_free(&b);
	return r;
}

static int
read_src(struct settings *s, struct src *src, struct err *e)
{
	struct str text;
	if (s->format->stream)
		return s->format->stream(&s->ev, src, e);
	int r = slurp(&s->ev, src, &text, e);
	return r ? r : s->format->text(&s->ev, text, e);
}

/* False: it could not be read, and why was said. */
static bool
read_file(struct settings *s, const char *path)
{
	struct err e;
	struct src *src;
	const char *name = cli_src_name(path);
	int r = cli_src_open(&src, path, 0, &e);
	if (r) {
		cli_warn_err(name, &e);
		return false;
	}
	uint64_t bad = s->ev.bad;
	struct arena arena = { 0 };
	s->ev.arena = &arena;
	r = read_src(s, src, &e);
	src_close(src);
	arena_free(&arena);
	if (r)
		cli_warn_err(name, &e);
	if (s->ev.bad > bad)
		cli_warn("%s: %llu lines not understood", name,
		    (unsigned long long)(s->ev.bad - bad));
	return !r;
}

static void
read_previous(struct settings *s)
{
	int64_t at = s->ev.at;
	if (s->previous_at != NO_TIME)
		s->ev.at = s->previous_at;
	s->ev.previous = true;
	rules_previous(s->rules, true);
	rules_time(s->rules, s->ev.at);
	if (!read_file(s, s->previous))
		exit(STATUS_NONE);
	rules_previous(s->rules, false);
	s->ev.previous = false;
	s->ev.at = at;
}

static void
put_alive(struct settings *s)
{
	rec_begin(s->ev.out, "alive");
	rec_put(s->ev.out, "agent", s->ev.agent);
	rec_put(s->ev.out, "entity", "*");
	rec_time(s->ev.out, "since", s->ev.since);
	rec_time(s->ev.out, "until", s->ev.at);
	rec_end(s->ev.out);
}

static uint64_t
read_all(struct settings *s)
{
	static char dash[] = "-";
	static char *only[] = { dash };
	uint64_t failed = 0;
	char **name = s->operand;
	int n = s->noperands;
	if (!n) {
		cli_need_input();
		name = only;
		n = 1;
	}
	if (s->previous)
		read_previous(s);
	rules_time(s->rules, s->ev.at);
	for (int i = 0; i < n; i++)
		failed += !read_file(s, name[i]);
	rules_finish(s->rules, &s->ev);
	if (failed == (uint64_t)n)
		exit(STATUS_NONE);
	return failed;
}

static void
begin(struct settings *s, struct cli_out *out)
{
	cli_out_open(out, s->common.output, false);
	s->ev.out =
	    records_open(out->fd, &s->common.how, "evidence", s->format->name);
	s->ev.take = take;
	s->ev.user = s->rules;
}

/*
 * Samples that no status was made of, and rules that met none: a name was
 * mistyped, or is not there. How many of these there are.
 */
static uint64_t
left_out(struct settings *s)
{
	uint64_t nameless = rules_nameless(s->rules), n = nameless;
	struct str counter;
	if (nameless)
		cli_warn("%llu samples without what %s asks for: --set",
		    (unsigned long long)nameless, s->template);
	if (s->ev.samples && !rules_count(s->rules)) {
		cli_warn("%llu samples and no --rule: no status is invented",
		    (unsigned long long)s->ev.samples);
		n += s->ev.samples;
	}
	for (size_t i = 0; !s->format->direct && i < rules_count(s->rules); i++)
		if (!rules_met(s->rules, i, &counter)) {
			cli_warn(
			    "rule \"%.*s\" met no counter", STR_ARG(counter));
			n++;
		}
	return n;
}

static int
finish(struct settings *s, struct cli_out *out, uint64_t failed)
{
	uint64_t n = s->ev.bad + failed + left_out(s);
	return cli_out_end(
	    out, s->ev.out, NULL, n ? STATUS_UNKNOWN : STATUS_CLEAN, n);
}

int
read_main(int argc, char **argv)
{
	struct settings *s = cli_alloc(1, sizeof *s);
	struct cli_out out;
	parse(s, argc, argv);
	begin(s, &out);
	uint64_t failed = read_all(s);
	if (s->alive)
		put_alive(s);
	int status = finish(s, &out, failed);
	rules_free(s->rules);
	free(s->operand);
	free(s);
	return status;
}
