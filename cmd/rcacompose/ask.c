/* What the agents of a stack say, taken into the facts: see ask.h. */
#include "ask.h"

#include "agents.h"
#include "cli.h"
#include "num.h"
#include "reasons.h"

static void
put_epoch(char to[40], int64_t ns)
{
	struct buf b = { 0 };
	if (ns != NO_TIME)
		num_put_time(&b, ns);
	snprintf(to, 40, "%s", buf_cstr(&b));
	buf_free(&b);
}

static struct incident_env
environment(const struct facts *f)
{
	struct incident_env env = { .id = f->id.p ? f->id.p : "" };
	put_epoch(env.start, f->start);
	put_epoch(env.end, f->end);
	return env;
}

/* One entity a line, in the order of their names. */
static void
put_candidates(struct judgement *j, struct buf *b)
{
	const struct finding **x = arena_array(j->arena, j->n, sizeof *x);
	if (!x)
		cli_die("out of memory");
	judge_sort(j, x);
	for (size_t i = 0; i < j->n; i++) {
		struct str name = facts_name(j->facts, x[i]->entity);
		if (memchr(name.p, '\n', name.len))
			continue; /* could not be told from two */
		buf_str(b, name);
		buf_putc(b, '\n');
	}
}

static void
take_answers(
    const struct asking *k, struct asked *q, size_t n, struct damage *d)
{
	for (size_t i = 0; i < n; i++) {
		const struct agent *a = &k->stack->agent[q[i].agent];
		char name[80];
		snprintf(name, sizeof name, "agent:%s", a->name.p);
		bool whole = input_text(k->facts, k->inputs, name,
		    buf_view(&q[i].text), (int)q[i].agent, d);
		/* What could not be read may have been about anybody. */
		if (!whole && !q[i].silence)
			q[i].silence = REASON_GARBLED;
		k->weigher->silence[q[i].agent] = q[i].silence;
		k->weigher->waiting[q[i].agent] = false;
		buf_free(&q[i].text);
	}
}

void
ask_judge(const struct asking *k, struct judgement *j, const struct damage *d)
{
	struct err e;
	if (judge(j, k->facts, k->weigher, d, k->policy, &e))
		cli_die("%s", e.msg);
}

/* Could what the waiting agents say change a finding or an accusation? */
static bool
is_open(const struct judgement *j)
{
	const bool *waiting = j->weigher->waiting;
	for (size_t i = 0; i < j->n; i++) {
		const struct finding *x = &j->finding[i];
		struct vote heard[VOTES_MAX];
		unsigned left[ROLES] = { 0 };
		size_t n = 0;
		for (size_t k = 0; k < x->n; k++)
			if (waiting[x->item[k]->agent])
				left[x->item[k]->role]++;
			else
				heard[n++] = x->vote[k];
		struct tally t = tally_of(heard, n);
		if (compose_open(&t, left, x->section->quorum))
			return true;
	}
	return false;
}

static bool
is_symptom(const struct stack *s, size_t agent)
{
	for (size_t i = 0; i < s->nsymptoms; i++)
		if (s->symptom[i] == agent)
			return true;
	return false;
}

void
ask_agents(const struct asking *k, struct damage *d)
{
	const struct stack *s = k->stack;
	struct asked q[STACK_AGENTS_MAX];
	struct judgement j;
	struct buf list = { 0 };
	size_t n = 0;
	memset(q, 0, sizeof q);
	for (size_t i = 0; i < s->nagents; i++) {
		bool ask = s->agent[i].used && agent_has_source(&s->agent[i]);
		k->weigher->waiting[i] = ask;
		if (ask)
			q[n++].agent = i;
	}
	if (!n)
		return;
	struct incident_env env = environment(k->facts);
	ask_judge(k, &j, d);
	put_candidates(&j, &list);
	size_t step = k->lazy ? 1 : n;
	for (size_t i = 0; i < n; i += step) {
		if (k->lazy && !is_symptom(s, q[i].agent) && !is_open(&j))
			continue;
		judge_undo(&j);
		agents_ask(s, &q[i], step, k->jobs, buf_view(&list), &env);
		take_answers(k, &q[i], step, d);
		ask_judge(k, &j, d);
	}
	judge_undo(&j);
	buf_free(&list);
}
