/* Stack files: see stack.h and straightedge-stack(5). */
#include "stack_parse.h"

#include "num.h"

static const int64_t SECOND = 1000000000;

/* Statements that may stand only once in a stack. */
enum { ONCE_WINDOW, ONCE_SCOPE, ONCE_RIVALS, ONCE_COVERAGE };

void
stack_init(struct stack *s)
{
	*s = (struct stack){
		.nsections = 1,
		.lead = 60 * SECOND,
		.lag = 60 * SECOND,
		.skew = 10 * SECOND,
		.coverage = 1,
		.min_flows = 1,
	};
	s->now = &s->section[0];
}

void
stack_free(struct stack *s)
{
	arena_free(&s->arena);
}
/* ---- sections ----------------------------------------------------------- */

static int
do_kind(struct parser *p, struct err *e)
{
	struct stack *s = p->s;
	if (p->n < 2)
		return err_set(e, SE_EFORMAT, "expected kind NAME ...");
	if (s->nsections == STACK_SECTIONS_MAX)
		return err_set(e, SE_ELIMIT, "more than %d kind lines",
		    STACK_SECTIONS_MAX - 1);
	struct section *new = &s->section[s->nsections];
	new->at = parser_here(p);
	new->kinds.word = arena_array(&s->arena, p->n, sizeof *new->kinds.word);
	if (!new->kinds.word)
		return err_mem(e);
	for (size_t i = 1; i < p->n; i++) {
		int r = words_name("kind", p->word[i], e);
		if (r)
			return r;
		for (size_t k = 1; k <= s->nsections; k++)
			if (words_have(&s->section[k].kinds, p->word[i]))
				return err_set(e, SE_EFORMAT, "kind %.*s twice",
				    STR_ARG(p->word[i]));
		new->kinds.word[new->kinds.n++] = p->word[i].p;
	}
	s->nsections++;
	s->now = new;
	return 0;
}

static int
find_agent(struct parser *p, size_t *at, struct err *e)
{
	if (p->n != 2)
		return err_set(e, SE_EFORMAT,
		    "expected %.*s and one agent, found %zu words",
		    STR_ARG(p->word[0]), p->n);
	int i = stack_agent(p->s, p->word[1]);
	if (i < 0)
		return err_set(e, SE_EFORMAT,
		    "agent \"%.*s\" is not declared above",
		    p->word[1].len > 64 ? 64 : (int)p->word[1].len,
		    p->word[1].p);
	p->s->agent[i].used = true;
	*at = (size_t)i;
	return 0;
}

static int
add_item(struct parser *p, enum role role, struct err *e)
{
	struct section *now = p->s->now;
	size_t agent;
	int r = find_agent(p, &agent, e);
	if (r)
		return r;
	for (size_t i = 0; i < now->n; i++)
		if (now->item[i].agent == agent)
			return err_set(e, SE_EFORMAT,
			    "agent %.*s twice for one kind, first in line %u",
			    STR_ARG(p->word[1]), now->item[i].at.line);
	if (now->n == VOTES_MAX)
		return err_set(
		    e, SE_ELIMIT, "more than %d lines for one kind", VOTES_MAX);
	now->item[now->n++] = (struct item){ role, agent, parser_here(p) };
	return 0;
}

static int
do_requisite(struct parser *p, struct err *e)
{
	return add_item(p, ROLE_REQUISITE, e);
}

static int
do_required(struct parser *p, struct err *e)
{
	return add_item(p, ROLE_REQUIRED, e);
}

static int
do_sufficient(struct parser *p, struct err *e)
{
	return add_item(p, ROLE_SUFFICIENT, e);
}

static int
do_optional(struct parser *p, struct err *e)
{
	return add_item(p, ROLE_OPTIONAL, e);
}

static int
do_quorum(struct parser *p, struct err *e)
{
	uint64_t k;
	if (p->n != 2)
		return err_set(e, SE_EFORMAT, "expected quorum K");
	if (p->s->now->quorum)
		return err_set(e, SE_EFORMAT, "quorum twice for one kind");
	int r = num_u64(p->word[1], 1, VOTES_MAX, &k, e);
	if (!r)
		p->s->now->quorum = (unsigned)k;
	return r;
}

static int
do_symptom(struct parser *p, struct err *e)
{
	size_t agent;
	int r = find_agent(p, &agent, e);
	if (r)
		return r;
	for (size_t i = 0; i < p->s->nsymptoms; i++)
		if (p->s->symptom[i] == agent)
			return err_set(e, SE_EFORMAT, "symptom %.*s twice",
			    STR_ARG(p->word[1]));
	p->s->symptom[p->s->nsymptoms++] = agent;
	return 0;
}
/* ---- settings ----------------------------------------------------------- */

static int
only_once(struct parser *p, unsigned which, struct err *e)
{
	struct place *first = &p->s->once[which];
	if (p->s->seen & 1u << which)
		return err_set(e, SE_EFORMAT, "%.*s again, first in %s:%u",
		    STR_ARG(p->word[0]), first->file, first->line);
	p->s->seen |= 1u << which;
	*first = parser_here(p);
	return 0;
}

static int
do_window(struct parser *p, struct err *e)
{
	int r = only_once(p, ONCE_WINDOW, e);
	for (size_t i = 1; i < p->n && !r; i++) {
		struct str v = p->word[i], key;
		str_cut(&v, '=', &key);
		int64_t *to = !v.p                  ? NULL
			      : str_is(key, "lead") ? &p->s->lead
			      : str_is(key, "lag")  ? &p->s->lag
			      : str_is(key, "skew") ? &p->s->skew
						    : NULL;
		if (!to)
			return err_set(e, SE_EFORMAT,
			    "expected lead=, lag= or skew=, found \"%.*s\"",
			    STR_ARG(p->word[i]));
		r = num_duration(v, to, e);
	}
	return r || p->n > 1
		   ? r
		   : err_set(e, SE_EFORMAT, "expected lead=, lag= or skew=");
}

static int
do_scope(struct parser *p, struct err *e)
{
	static const char *const word[] = { "attached", "paths", "all" };
	int r = only_once(p, ONCE_SCOPE, e);
	if (r)
		return r;
	size_t i = 0;
	while (p->n > 1 && i < 3 && !str_is(p->word[1], word[i]))
		i++;
	if (p->n < 2 || i == 3)
		return err_set(
		    e, SE_EFORMAT, "expected scope attached, paths or all");
	p->s->scope = (enum scope_rule)i;
	if (p->n == 2)
		return 0;
	struct str v = p->word[2], key;
	uint64_t n;
	str_cut(&v, '=', &key);
	if (p->n != 3 || !v.p || !str_is(key, "min-flows"))
		return err_set(e, SE_EFORMAT, "expected min-flows=N");
	r = num_u64(v, 1, 1000000, &n, e);
	if (!r)
		p->s->min_flows = (unsigned)n;
	return r;
}

static int
do_rivals(struct parser *p, struct err *e)
{
	int r = only_once(p, ONCE_RIVALS, e);
	if (r)
		return r;
	p->s->rivals_allowed = p->n == 2 && str_is(p->word[1], "allow");
	if (p->s->rivals_allowed || (p->n == 2 && str_is(p->word[1], "refuse")))
		return 0;
	return err_set(e, SE_EFORMAT, "expected rivals allow or rivals refuse");
}

static int
do_coverage(struct parser *p, struct err *e)
{
	int r = only_once(p, ONCE_COVERAGE, e);
	if (r)
		return r;
	if (p->n != 2)
		return err_set(e, SE_EFORMAT, "expected innocent-coverage C");
	r = num_f64(p->word[1], &p->s->coverage, e);
	if (!r && !(p->s->coverage > 0 && p->s->coverage <= 1))
		return err_set(e, SE_EFORMAT,
		    "innocent-coverage: expected a share above 0 up to 1");
	return r;
}
/* ---- one line -------------------------------------------------------- */

static const struct {
	const char *word;
	int (*parse)(struct parser *, struct err *);
} statements[] = {
	{ "agent", stack_agent_line },
	{ "kind", do_kind },
	{ "requisite", do_requisite },
	{ "required", do_required },
	{ "sufficient", do_sufficient },
	{ "optional", do_optional },
	{ "quorum", do_quorum },
	{ "symptom", do_symptom },
	{ "window", do_window },
	{ "scope", do_scope },
	{ "rivals", do_rivals },
	{ "innocent-coverage", do_coverage },
	{ "include", stack_include },
};

int
stack_statement(struct parser *p, struct err *e)
{
	for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
		if (str_is(p->word[0], statements[i].word))
			return statements[i].parse(p, e);
	return err_set(e, SE_EFORMAT, "unknown statement \"%.*s\"",
	    p->word[0].len > 60 ? 60 : (int)p->word[0].len, p->word[0].p);
}

/* ---- questions ----------------------------------------------------------- */

int
stack_agent(const struct stack *s, struct str name)
{
	for (size_t i = 0; i < s->nagents; i++)
		if (str_same(s->agent[i].name, name))
			return (int)i;
	return -1;
}

const struct section *
stack_section(const struct stack *s, struct str kind)
{
	for (size_t i = 1; i < s->nsections; i++)
		if (words_have(&s->section[i].kinds, kind))
			return &s->section[i];
	return &s->section[0];
}

bool
agent_covers(const struct agent *a, struct str kind)
{
	return !a->kinds.n || words_have(&a->kinds, kind);
}
