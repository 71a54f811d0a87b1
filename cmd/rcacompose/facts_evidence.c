/* Lines of evidence, and who was there to say something: see facts.h. */
#include "facts_parts.h"

#include <math.h>

#include "hash.h"
#include "num.h"
#include "reasons.h"

static const char OWN[] = "rcacompose";

static int
agent_of(struct facts *f, const struct rec *r)
{
	return stack_agent(f->stack, rec_text_of(r, "agent"));
}

int
facts_alive(struct facts *f, const struct rec *r, struct err *e)
{
	int agent = agent_of(f, r);
	struct alive a = { .agent = (uint16_t)agent, .since = NO_TIME };
	int err = rec_time_of(r, "since", &a.since, e);
	if (!err)
		err = rec_time_of(r, "until", &a.until, e);
	if (err)
		return err;
	if (agent < 0 || !f->trusted) {
		f->other_agents += agent < 0;
		return 0;
	}
	if (!GROW(f, alive, nalive, alive_cap))
		return err_mem(e);
	a.entity = arena_str(facts_arena(f), rec_text_of(r, "entity"));
	f->alive[f->nalive++] = a;
	return a.entity.p ? 0 : err_mem(e);
}

/* "a,b,c": c is where it all came from. Own verdicts are no evidence. */
static uint32_t
chain_root(struct str chain, int agent, bool *own)
{
	struct str word = STR_NULL, last = STR_NULL, head;
	while (chain.p && str_cut(&chain, ',', &word)) {
		if (!word.len)
			continue;
		last = word;
		str_cut(&word, ':', &head);
		*own |= str_is(head, OWN);
	}
	if (!last.len)
		return (uint32_t)agent;
	/* Two roots that collide count once: fewer witnesses, never more. */
	return (uint32_t)hash_table(last.p, last.len, 0) | UINT32_C(1) << 31;
}

/* A rate, perhaps with < or <= before it. */
static double
bound_of(struct str s)
{
	double v;
	if (s.len && s.p[0] == '<') {
		s.p++;
		s.len--;
		if (s.len && s.p[0] == '=') {
			s.p++;
			s.len--;
		}
	}
	return num_f64(s, &v, NULL) ? NAN : v;
}

static int
status_of(struct str s, struct err *e)
{
	static const char *const word[] = { "unknown", "faulty", "healthy" };
	for (int i = 0; i < 3; i++)
		if (str_is(s, word[i]))
			return i;
	return err_set(e, SE_EFORMAT,
	    "status: expected faulty, healthy or unknown, found \"%.*s\"",
	    s.len > 40 ? 40 : (int)s.len, s.p ? s.p : "");
}

static int
line_times(const struct rec *r, struct line *l, struct err *e)
{
	int err = rec_time_of(r, "time", &l->time, e);
	if (!err)
		err = rec_time_of(r, "onset", &l->onset, e);
	if (!err)
		err = rec_time_of(r, "until", &l->until, e);
	if (!err && l->onset != NO_TIME && l->until != NO_TIME &&
	    l->until < l->onset)
		return err_set(e, SE_EFORMAT, "until lies before onset");
	return err;
}

static int
add_line(struct facts *f, const struct line *l, struct err *e)
{
	if (f->nlines == LINES_MAX)
		return err_set(
		    e, SE_ELIMIT, "more than %d lines of evidence", LINES_MAX);
	if (!GROW(f, line, nlines, lines_cap))
		return err_mem(e);
	f->line[f->nlines++] = *l;
	return 0;
}

/* What could not be read counts against the agent's silence there. */
static int
add_hard(struct facts *f, struct line *l, const char *reason, struct err *e)
{
	l->status = SAYS_UNKNOWN;
	l->hard = true;
	l->reason = reason;
	l->time = l->onset = l->until = NO_TIME;
	return add_line(f, l, e);
}

int
facts_evidence(
    struct facts *f, const struct rec *r, unsigned source, struct err *e)
{
	struct str about = rec_text_of(r, "incident");
	if (about.len && f->incident && !str_same(about, f->id))
		return err_set(e, SE_EFORMAT,
		    "evidence of incident \"%.*s\" among that of another",
		    about.len > 60 ? 60 : (int)about.len, about.p);
	struct str name = rec_text_of(r, "agent");
	int agent = stack_agent(f->stack, name);
	bool own = str_is(name, OWN);
	if (agent < 0) {
		f->other_agents += !own;
		f->refused += own;
		return 0;
	}
	struct line l = { .agent = (uint16_t)agent,
		.source = (uint16_t)source,
		.number = r->line,
		.time = NO_TIME,
		.onset = NO_TIME,
		.until = NO_TIME };
	int err = facts_entity_of(f, r, "entity", &l.entity, e);
	if (err)
		return err;
	l.root = chain_root(rec_text_of(r, "chain"), agent, &own);
	if (own) {
		f->refused++;
		return add_hard(f, &l, REASON_CIRCULAR, e);
	}
	int status = status_of(rec_text_of(r, "status"), e);
	err = status < 0 ? status : line_times(r, &l, e);
	if (err) {
		int more = add_hard(f, &l, REASON_GARBLED, NULL);
		return more ? more : err;
	}
	l.status = (unsigned char)status;
	l.bound = bound_of(rec_text_of(r, "bound"));
	struct str reason = rec_text_of(r, "reason");
	l.reason = REASON_UNSTATED;
	if (status == SAYS_UNKNOWN && reason.len) {
		l.reason = arena_str(facts_arena(f), reason).p;
		if (!l.reason)
			return err_mem(e);
	}
	return add_line(f, &l, e);
}

void
facts_garbled(
    struct facts *f, struct str line, unsigned source, uint64_t number)
{
	struct str word, entity = STR_NULL, agent = STR_NULL;
	struct line l = { .source = (uint16_t)source, .number = number };
	if (!str_starts(line, "evidence\t"))
		return;
	while (str_cut(&line, '\t', &word)) {
		if (str_starts(word, "entity="))
			entity = (struct str){ word.p + 7, word.len - 7 };
		else if (str_starts(word, "agent="))
			agent = (struct str){ word.p + 6, word.len - 6 };
	}
	int a = stack_agent(f->stack, agent);
	if (a < 0 || facts_need(f, entity, &l.entity, NULL))
		return;
	l.agent = (uint16_t)a;
	add_hard(f, &l, REASON_GARBLED, NULL);
}
