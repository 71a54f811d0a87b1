/*
 * rcacompose lint STACK: what looks like a mistake, the truth table of each
 * kind, and what the stack can never say. It runs no agent.
 */
#include "cli.h"
#include "verbs.h"

enum { TABLE_LINES = 4 }; /* binding lines whose table is printed: 81 rows */

// clang-format off
static const struct opt options[] = {
	{ 's', "stack", "STACK", "clos, gpu-node, serving or a file" },
	OPT_COMMON,
	OPT_LAST,
};
// clang-format on

static const char *const usage[] = { "rcacompose lint STACK", NULL };
static const char summary[] =
    "Warns of mistakes in a stack and prints what it can and cannot say.";

struct linter {
	const struct stack *s;
	struct rec_out *out;
	unsigned warnings;
};

static void
warn(struct linter *l, const char *class, struct str kind, struct str agent,
    struct place at, const char *note)
{
	rec_begin(l->out, "warning");
	rec_put(l->out, "class", class);
	if (kind.len)
		rec_str(l->out, "kind", kind);
	if (agent.len)
		rec_str(l->out, "agent", agent);
	if (at.file)
		rec_fmt(l->out, "at", "%s:%u", at.file, at.line);
	rec_put(l->out, "note", note);
	rec_end(l->out);
	l->warnings++;
}

/* ---- agents ---------------------------------------------------------- */

static void
check_agents(struct linter *l)
{
	for (size_t i = 0; i < l->s->nagents; i++) {
		const struct agent *a = &l->s->agent[i];
		if (!a->used)
			warn(l, "unused-agent", STR_NULL, a->name, a->at,
			    "declared, but no line asks it");
		if (a->absent_healthy && !a->heartbeat)
			warn(l, "no-heartbeat", STR_NULL, a->name, a->at,
			    "absent=healthy without heartbeat=: only alive "
			    "records with since= can carry it");
		if (!a->ttl)
			warn(l, "no-ttl", STR_NULL, a->name, a->at,
			    "its evidence never gets stale");
	}
}

/* ---- sections -------------------------------------------------------- */

/* Lines of the section that apply to the kind. */
static size_t
lines_of(const struct linter *l, const struct section *c, struct str kind,
    const struct item *out[VOTES_MAX])
{
	size_t n = 0;
	for (size_t i = 0; i < c->n; i++)
		if (!kind.len ||
		    agent_covers(&l->s->agent[c->item[i].agent], kind))
			out[n++] = &c->item[i];
	return n;
}

static void
check_lines(struct linter *l, const struct section *c, struct str kind)
{
	unsigned count[ROLES] = { 0 };
	for (size_t i = 0; i < c->n; i++) {
		const struct item *item = &c->item[i];
		const struct agent *a = &l->s->agent[item->agent];
		if (kind.len && !agent_covers(a, kind))
			warn(l, "never-applies", kind, a->name, item->at,
			    "kinds= of the agent leaves this kind out");
		else
			count[item->role]++;
	}
	if (!count[ROLE_REQUIRED] && !count[ROLE_SUFFICIENT])
		warn(l, "no-accuser", kind, STR_NULL, c->at,
		    "neither required nor sufficient: never faulty");
	if (c->quorum && c->quorum > count[ROLE_REQUIRED])
		warn(l, "quorum", kind, STR_NULL, c->at,
		    "more witnesses than there are required lines");
}

/* What some answers of n lines would give. */
static struct opinion
opinion_of(const struct item *const *item, size_t n, const unsigned *answer,
    unsigned quorum)
{
	struct vote v[VOTES_MAX];
	for (size_t i = 0; i < n; i++)
		v[i] = (struct vote){ (unsigned char)item[i]->role,
			(unsigned char)answer[i], (uint32_t)i };
	struct tally t = tally_of(v, n);
	return compose(&t, quorum);
}

static bool
next_answers(unsigned *answer, size_t n)
{
	for (size_t i = n; i--;) {
		if (++answer[i] < ANSWERS)
			return true;
		answer[i] = 0;
	}
	return false;
}

static void
put_case(struct linter *l, struct str kind, const struct item *const *item,
    size_t n, const unsigned *answer, struct opinion o)
{
	struct buf b = { 0 };
	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "%s%.*s=%s", i ? " " : "",
		    STR_ARG(l->s->agent[item[i]->agent].name),
		    answer_name((enum answer)answer[i]));
	rec_begin(l->out, "case");
	rec_str(l->out, "kind", kind.len ? kind : STR_LIT("*"));
	rec_str(l->out, "answers", buf_view(&b));
	rec_put(l->out, "result", result_name(o.result));
	rec_put(l->out, "reason", rule_name(o.rule));
	rec_end(l->out);
	buf_free(&b);
}

/*
 * What any answers could give: the rules look only at which answers each role
 * has, so one line of each role per answer stands for all of them.
 */
static void
reach(
    const struct item *const *item, size_t n, unsigned quorum, bool results[3])
{
	const struct item *few[9];
	unsigned answer[9] = { 0 }, of[ROLES] = { 0 };
	size_t k = 0;
	for (size_t i = 0; i < n; i++)
		if (item[i]->role != ROLE_OPTIONAL && of[item[i]->role]++ < 3)
			few[k++] = item[i];
	do
		results[opinion_of(few, k, answer, quorum).result] = true;
	while (next_answers(answer, k));
}

static void
put_table(struct linter *l, struct str kind, const struct item *const *all,
    size_t n, unsigned quorum)
{
	const struct item *item[VOTES_MAX];
	unsigned answer[VOTES_MAX] = { 0 };
	size_t k = 0;
	for (size_t i = 0; i < n; i++)
		if (all[i]->role != ROLE_OPTIONAL)
			item[k++] = all[i];
	if (k > TABLE_LINES) {
		rec_comment(l->out, "kind %.*s: %zu binding lines, no table",
		    kind.len ? (int)kind.len : 1, kind.len ? kind.p : "*", k);
		return;
	}
	do
		put_case(l, kind, item, k, answer,
		    opinion_of(item, k, answer, quorum));
	while (next_answers(answer, k));
}

static void
check_kind(struct linter *l, const struct section *c, struct str kind)
{
	const struct item *item[VOTES_MAX];
	bool results[3] = { false };
	size_t n = lines_of(l, c, kind, item);
	check_lines(l, c, kind);
	reach(item, n, c->quorum, results);
	if (!results[RESULT_FAULTY])
		warn(l, "never-faulty", kind, STR_NULL, c->at,
		    "no answers make it faulty");
	if (!results[RESULT_HEALTHY])
		warn(l, "never-healthy", kind, STR_NULL, c->at,
		    "no answers make it healthy, hence nothing innocent");
	put_table(l, kind, item, n, c->quorum);
}

static void
check_stack(struct linter *l)
{
	const struct stack *s = l->s;
	struct place none = { 0 };
	check_agents(l);
	for (size_t i = 1; i < s->nsections; i++)
		for (size_t k = 0; k < s->section[i].kinds.n; k++)
			check_kind(l, &s->section[i],
			    str_c(s->section[i].kinds.word[k]));
	if (s->section[0].n)
		check_kind(l, &s->section[0], STR_NULL);
	else
		rec_comment(l->out,
		    "kinds without a section stay unknown: nothing below such a"
		    " parent can be the culprit, nothing beside it innocent");
	if (!s->nsymptoms)
		warn(l, "never-innocent", STR_NULL, STR_NULL, none,
		    "no symptom line: the verdict innocent cannot be reached");
}

int
lint_main(int argc, char **argv)
{
	struct cli_common common = { 0 };
	struct opt_state o;
	struct cli_out out;
	const char *name = NULL;
	int id;
	opt_start(&o, options, argc, argv);
	while ((id = opt_next(&o)) != OPT_END) {
		if (id != OPT_OPERAND && id != 's') {
			cli_common(&common, id, &o, usage, summary);
			continue;
		}
		if (name)
			cli_usage("one stack at a time");
		name = o.arg;
	}
	cli_common_done(&common, "warning");
	if (!name)
		cli_usage("which stack?");
	struct stack *s = stack_open(name);
	struct linter l = { .s = s };
	cli_out_open(&out, common.output, false);
	l.out = records_open(out.fd, &common.how, "warning", NULL);
	check_stack(&l);
	int status = l.warnings ? STATUS_FOUND : STATUS_CLEAN;
	status = cli_out_end(&out, l.out, NULL, status, 0);
	stack_close(s);
	return status;
}
