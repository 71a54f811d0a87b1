/*
 * rcacompose -s STACK [EVIDENCE...]: reads records about one incident or
 * many, asks the agents of the stack, prints findings and verdicts.
 */
#include <errno.h>
#include <time.h>

#include "agents.h"
#include "ask.h"
#include "explain.h"
#include "num.h"
#include "reasons.h"
#include "verbs.h"

enum {
	OPT_PATH = OPT_OWN,
	OPT_START,
	OPT_END_TIME,
	OPT_LAZY,
	OPT_EVERY,
	OPT_FOR,
	OPT_LOG
};

// clang-format off
static const struct opt options[] = {
	{ 's', "stack", "STACK", "clos, gpu-node, serving or a file" },
	{ 'i', "incident", "FILE", "what the incident is: incident, flow, path" },
	{ OPT_PATH, "path", "A,B,C", "path of a complaining flow, repeatable" },
	{ OPT_START, "start", "TIME", "when it started (with --path)" },
	{ OPT_END_TIME, "end", "TIME", "when it ended" },
	{ 'j', "jobs", "N", "programs run at once (all)" },
	{ OPT_LAZY, "lazy", NULL, "ask no agent whose answer cannot matter" },
	{ OPT_EVERY, "every", "TIME", "judge again as evidence arrives" },
	{ OPT_FOR, "for", "TIME", "for how long (16m)" },
	{ OPT_LOG, "log", "FILE", "append every verdict to this file" },
	OPT_JUDGE,
	OPT_COMMON,
	OPT_LAST,
};
// clang-format on

static const char *const usage[] = {
	"rcacompose -s STACK [-i INCIDENT] [EVIDENCE...]",
	"rcacompose read|lint|score ...   (each has its own --help)",
	NULL,
};
static const char summary[] =
    "Composes evidence into findings and one verdict, which may be unknown.";

struct settings {
	struct cli_common common;
	const char *stack, *incident, *log;
	const char **path;
	size_t npaths;
	int64_t start, end, every, span;
	unsigned jobs;
	bool lazy;
	char **operand;
	int noperands;
};

struct run {
	const struct settings *s;
	struct stack *stack;
	struct facts facts;
	struct weigher weigher;
	struct inputs inputs;
	size_t fixed_inputs; /* files; the rest are agents of one incident */
	struct rec_out *out, *log;
	struct damage general;     /* of what belongs to every incident */
	struct buf answer, before; /* as text, for supersedes= */
	int status;
	const char *result, *reason;
	uint64_t judged;
	bool first_round, final;
};

/* ---- options --------------------------------------------------------- */

static int64_t
option_time(const struct opt_state *o)
{
	struct err e;
	int64_t t;
	if (num_time(str_c(o->arg), &t, &e))
		cli_usage("option %s: %s", o->name, e.msg);
	return t;
}

static void
check(struct settings *s)
{
	if (!s->stack)
		cli_usage("which stack? -s STACK");
	if (s->incident && s->npaths)
		cli_usage("-i and --path exclude each other");
	if (s->npaths && s->start == NO_TIME)
		cli_usage("--path needs --start");
	if (!s->npaths && (s->start != NO_TIME || s->end != NO_TIME))
		cli_usage("--start and --end go with --path");
	if (s->start != NO_TIME && s->end != NO_TIME && s->end < s->start)
		cli_usage("--end lies before --start");
	if (s->span && !s->every)
		cli_usage("--for goes with --every");
	if (s->every && s->common.now_given)
		cli_usage("--every judges by the clock, --now stops it");
	if (!s->span)
		s->span = INT64_C(16) * 60 * 1000000000;
	for (int i = 0; i < s->noperands && s->every; i++)
		if (!strcmp(s->operand[i], "-"))
			cli_usage("--every reads again: not standard input");
}

static void
parse(struct settings *s, int argc, char **argv)
{
	struct opt_state o;
	int id;
	s->start = s->end = NO_TIME;
	s->jobs = STACK_AGENTS_MAX;
	s->operand = cli_alloc((size_t)argc, sizeof *s->operand);
	s->path = cli_alloc((size_t)argc, sizeof *s->path);
	opt_start(&o, options, argc, argv);
	while ((id = opt_next(&o)) != OPT_END)
		switch (id) {
		case OPT_OPERAND:
			s->operand[s->noperands++] = (char *)o.arg;
			break;
		case 's':
			s->stack = o.arg;
			break;
		case 'i':
			s->incident = o.arg;
			break;
		case OPT_PATH:
			s->path[s->npaths++] = o.arg;
			break;
		case OPT_START:
			s->start = option_time(&o);
			break;
		case OPT_END_TIME:
			s->end = option_time(&o);
			break;
		case 'j':
			s->jobs = (unsigned)cli_u64(&o, 1, STACK_AGENTS_MAX);
			break;
		case OPT_LAZY:
			s->lazy = true;
			break;
		case OPT_EVERY:
			s->every = cli_duration(&o);
			if (s->every <= 0)
				cli_usage("option %s: expected more than "
					  "nothing",
				    o.name);
			break;
		case OPT_FOR:
			s->span = cli_duration(&o);
			break;
		case OPT_LOG:
			s->log = o.arg;
			break;
		default:
			cli_common(&s->common, id, &o, usage, summary);
		}
	cli_common_done(&s->common, "finding");
	check(s);
}

/* ---- one incident ---------------------------------------------------- */

static void
put_log(struct run *r, struct judgement *j, const struct damage *d)
{
	struct telling t = { .common = &r->s->common, .inputs = &r->inputs };
	if (r->log)
		explain_verdict(j, r->log, &t, d);
}

static void
put_own_evidence(struct run *r, struct judgement *j)
{
	for (size_t i = 0; i < j->n; i++) {
		const struct finding *x = &j->finding[i];
		if (!x->counted)
			continue;
		rec_begin(r->out, "evidence");
		rec_time(r->out, "time",
		    r->facts.end != NO_TIME ? r->facts.end : r->weigher.now);
		rec_str(r->out, "entity", judge_name(j, x));
		rec_put(r->out, "agent", "rcacompose");
		rec_put(r->out, "status", "faulty");
		if (r->facts.start != NO_TIME)
			rec_time(r->out, "onset", r->facts.start);
		rec_put(r->out, "chain", "rcacompose");
		if (r->facts.id.len)
			rec_str(r->out, "incident", r->facts.id);
		rec_end(r->out);
	}
}

static void
remember(struct run *r, struct judgement *j, int status)
{
	r->result = row_result(j->row);
	r->reason = row_reason(j->row);
	r->status = r->judged++ ? status_worse(r->status, status) : status;
}

/* Judges what the facts hold now. */
static void
evaluate(struct run *r, const struct damage *own)
{
	struct judgement j;
	struct damage d = *own;
	const struct cli_common *c = &r->s->common;
	const struct asking asking = { r->stack, &r->facts, &r->weigher,
		&r->inputs, &c->policy, r->s->jobs, r->s->lazy };
	r->weigher.facts = &r->facts;
	r->weigher.now = r->facts.now != NO_TIME ? r->facts.now : cli_now(c);
	r->weigher.gaps = d.filtered || d.altered || d.lost || d.skipped ||
			  d.bad > c->policy.allow_bad;
	memset(r->weigher.silence, 0, sizeof r->weigher.silence);
	ask_agents(&asking, &d);
	ask_judge(&asking, &j, &d);
	explain_answer(&j, &r->answer);
	bool again = r->s->every && !r->first_round;
	bool same =
	    again && str_same(buf_view(&r->answer), buf_view(&r->before));
	r->final = same && (row_status(j.row) != STATUS_UNKNOWN || r->final);
	struct telling t = { .inputs = &r->inputs,
		.common = c,
		.changes = !c->quiet && !r->judged,
		.supersedes = again && !same ? buf_cstr(&r->before) : NULL,
		.final = r->final };
	int status = explain(&j, r->out, &t, &d);
	if (c->evidence && !c->quiet)
		put_own_evidence(r, &j);
	put_log(r, &j, &d);
	if (status == STATUS_NONE)
		cli_warn("%.*s%snothing tested: %s", STR_ARG(r->facts.id),
		    r->facts.id.len ? ": " : "",
		    j.row == ROW_NO_CANDIDATES ? "no candidates"
					       : "the input is damaged");
	remember(r, &j, status);
}

/* ---- streams of incidents -------------------------------------------- */

/* An incident begins: what stood before it ends. */
static void
on_incident(void *user, const struct rec *rec, const struct damage *d)
{
	struct run *r = user;
	struct damage all = r->general;
	damage_merge(&all, d);
	if (!r->facts.incident) {
		if (rec) {
			facts_mark(&r->facts);
			r->general = all;
			r->fixed_inputs = r->inputs.n;
		}
		return;
	}
	evaluate(r, &all);
	facts_rewind(&r->facts);
	while (r->inputs.n > r->fixed_inputs)
		free(r->inputs.name[--r->inputs.n]);
	r->answer.len = 0;
}

/* ---- all of it ------------------------------------------------------- */

static void
set_paths(struct run *r)
{
	struct facts *f = &r->facts;
	struct err e;
	f->start = r->s->start;
	f->end = r->s->end;
	f->incident = true;
	for (size_t i = 0; i < r->s->npaths; i++)
		if (facts_path(f, (unsigned)i + 1, str_c(r->s->path[i]), &e))
			cli_usage("option --path: %s", e.msg);
}

static bool
read_incident(struct run *r, struct damage *d)
{
	if (!input_read(&r->facts, &r->inputs, r->s->incident, d, NULL, NULL))
		return false;
	if (!r->facts.incident)
		cli_warn("%s: expected an incident record", r->s->incident);
	return r->facts.incident;
}

static bool
has_source(const struct stack *s)
{
	for (size_t i = 0; i < s->nagents; i++)
		if (agent_has_source(&s->agent[i]))
			return true;
	return false;
}

/* False: there were some, and none could be read. */
static bool
read_operands(struct run *r, struct damage *d)
{
	static char dash[] = "-";
	static char *stdin_only[] = { dash };
	const struct settings *s = r->s;
	bool one = s->incident || s->npaths;
	char **name = s->operand;
	int n = s->noperands;
	size_t opened = 0;
	if (!n && !has_source(r->stack)) {
		if (s->every)
			cli_usage("--every reads again: name the files");
		cli_need_input();
		name = stdin_only;
		n = 1;
	}
	for (int i = 0; i < n; i++) {
		bool ok = input_read(&r->facts, &r->inputs, name[i], d,
		    one ? NULL : on_incident, r);
		opened += ok;
		d->skipped += !ok;
	}
	return !n || opened;
}

/* One evaluation from scratch. */
static void
go(struct run *r)
{
	struct damage d = { 0 };
	facts_init(&r->facts, r->stack);
	if (r->s->npaths)
		set_paths(r);
	uint64_t before = r->judged;
	bool ok =
	    (!r->s->incident || read_incident(r, &d)) && read_operands(r, &d);
	/* Without incidents in the operands there is one: all of it. */
	if (ok && r->judged == before)
		evaluate(r, &d);
	facts_free(&r->facts);
	inputs_free(&r->inputs);
	r->general = (struct damage){ 0 };
	r->fixed_inputs = 0;
}

static void
nap(int64_t ns)
{
	struct timespec t = { ns / 1000000000, ns % 1000000000 };
	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

/* Again and again, until two evaluations agree or the time is over. */
static void
go_on(struct run *r)
{
	int64_t left = r->s->span;
	r->first_round = true;
	go(r);
	while (r->s->every && left >= r->s->every && !r->final) {
		struct err e;
		struct buf t = r->before;
		if (rec_out_flush(r->out, &e))
			break;
		nap(r->s->every);
		left -= r->s->every;
		r->before = r->answer;
		r->answer = t;
		r->answer.len = 0;
		r->first_round = false;
		r->judged = 0;
		go(r);
	}
}

int
run_main(int argc, char **argv)
{
	struct settings s = { 0 };
	struct run r = { .s = &s, .status = STATUS_NONE };
	struct cli_out out, log = { .fd = -1 };
	parse(&s, argc, argv);
	r.stack = stack_open(s.stack);
	cli_out_open(&out, s.common.output, false);
	r.out = records_open(out.fd, &s.common.how, "verdict", NULL);
	if (s.log) {
		cli_out_open(&log, s.log, true);
		r.log = records_open(
		    log.fd, &(struct rec_how){ 0 }, "verdict", NULL);
	}
	go_on(&r);
	const char *result = r.judged == 1 ? r.result : NULL;
	if (r.log &&
	    cli_out_end(&log, r.log, result, r.status, 0) == STATUS_NONE)
		r.status = STATUS_NONE;
	int status = cli_out_end(&out, r.out, result, r.status, 0);
	cli_prom(&s.common, NULL, r.result, r.reason, status, 0);
	weigher_free(&r.weigher);
	stack_close(r.stack);
	buf_free(&r.answer);
	buf_free(&r.before);
	free(s.operand);
	free(s.path);
	return status;
}
