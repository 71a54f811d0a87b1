/* The statement `agent NAME key=value ...`: see straightedge-stack(5). */
#include "stack_parse.h"

#include <math.h>

#include "num.h"

static const int64_t SECOND = 1000000000;

static int
set_exec(struct stack *s, struct agent *a, struct str v, struct err *e)
{
	int r = words_split(s, v, ' ', &a->exec, e);
	if (!r && !a->exec.n)
		return err_set(e, SE_EFORMAT, "expected a program");
	s->executes = true;
	return r;
}

static int
set_file(struct stack *s, struct agent *a, struct str v, struct err *e)
{
	(void)s;
	a->file = v.p;
	return v.len ? 0 : err_set(e, SE_EFORMAT, "expected a file");
}

static int
set_fd(struct stack *s, struct agent *a, struct str v, struct err *e)
{
	uint64_t n;
	(void)s;
	int r = num_u64(v, 0, 1023, &n, e);
	if (!r)
		a->fd = (int)n;
	return r;
}

static int
set_duration(struct str v, int64_t *out, struct err *e)
{
	int r = num_duration(v, out, e);
	if (!r && *out <= 0)
		return err_set(e, SE_EFORMAT, "expected more than nothing");
	return r;
}

static int
set_timeout(struct stack *s, struct agent *a, struct str v, struct err *e)
{
	(void)s;
	return set_duration(v, &a->timeout, e);
}

static int
set_ttl(struct stack *s, struct agent *a, struct str v, struct err *e)
{
	(void)s;
	return set_duration(v, &a->ttl, e);
}

static int
set_heartbeat(struct stack *s, struct agent *a, struct str v, struct err *e)
{
	(void)s;
	return set_duration(v, &a->heartbeat, e);
}

static int
set_absent(struct stack *s, struct agent *a, struct str v, struct err *e)
{
	(void)s;
	a->absent_healthy = str_is(v, "healthy");
	if (a->absent_healthy || str_is(v, "unknown"))
		return 0;
	return err_set(e, SE_EFORMAT, "expected healthy or unknown");
}

static int
set_kinds(struct stack *s, struct agent *a, struct str v, struct err *e)
{
	return words_split(s, v, ',', &a->kinds, e);
}

static int
set_max_bound(struct stack *s, struct agent *a, struct str v, struct err *e)
{
	(void)s;
	int r = num_f64(v, &a->max_bound, e);
	if (!r && !(a->max_bound > 0 && a->max_bound <= 1))
		return err_set(
		    e, SE_EFORMAT, "expected a rate above 0 up to 1");
	return r;
}

static const struct {
	const char *name;
	int (*set)(struct stack *, struct agent *, struct str, struct err *);
} agent_keys[] = {
	{ "exec", set_exec },
	{ "file", set_file },
	{ "fd", set_fd },
	{ "timeout", set_timeout },
	{ "ttl", set_ttl },
	{ "absent", set_absent },
	{ "heartbeat", set_heartbeat },
	{ "kinds", set_kinds },
	{ "max-bound", set_max_bound },
};

enum { AGENT_KEYS = sizeof agent_keys / sizeof *agent_keys };

static int
agent_key(struct parser *p, struct agent *a, struct str word, unsigned *seen,
    struct err *e)
{
	struct str v = word, key;
	str_cut(&v, '=', &key);
	for (size_t i = 0; i < AGENT_KEYS; i++) {
		if (!v.p || !str_is(key, agent_keys[i].name))
			continue;
		if (*seen & 1u << i)
			return err_set(
			    e, SE_EFORMAT, "%s= twice", agent_keys[i].name);
		*seen |= 1u << i;
		if (!agent_keys[i].set(p->s, a, v, e))
			return 0;
		err_prefix(e, "%s=", agent_keys[i].name);
		return SE_EFORMAT;
	}
	return err_set(e, SE_EFORMAT, "unknown word \"%.*s\" for an agent",
	    word.len > 60 ? 60 : (int)word.len, word.p);
}

static int
check_agent(const struct agent *a, struct err *e)
{
	int ways = (a->exec.n > 0) + (a->file != NULL) + (a->fd >= 0);
	if (ways > 1)
		return err_set(e, SE_EFORMAT,
		    "agent %.*s: exec=, file= and fd= exclude each other",
		    STR_ARG(a->name));
	if (a->heartbeat && !a->absent_healthy)
		return err_set(e, SE_EFORMAT,
		    "agent %.*s: heartbeat= goes with absent=healthy",
		    STR_ARG(a->name));
	return 0;
}

int
stack_agent_line(struct parser *p, struct err *e)
{
	struct stack *s = p->s;
	if (p->n < 2)
		return err_set(e, SE_EFORMAT, "expected agent NAME key=value");
	int r = words_name("agent", p->word[1], e);
	if (r)
		return r;
	if (str_is(p->word[1], "rcacompose"))
		return err_set(e, SE_EFORMAT,
		    "agent rcacompose: own verdicts are no evidence");
	if (stack_agent(s, p->word[1]) >= 0)
		return err_set(
		    e, SE_EFORMAT, "agent %.*s twice", STR_ARG(p->word[1]));
	if (s->nagents == STACK_AGENTS_MAX)
		return err_set(
		    e, SE_ELIMIT, "more than %d agents", STACK_AGENTS_MAX);
	struct agent *a = &s->agent[s->nagents++];
	*a = (struct agent){ .name = p->word[1],
		.fd = -1,
		.timeout = 10 * SECOND,
		.max_bound = NAN,
		.at = parser_here(p) };
	unsigned seen = 0;
	for (size_t i = 2; i < p->n && !r; i++)
		r = agent_key(p, a, p->word[i], &seen, e);
	return r ? r : check_agent(a, e);
}
