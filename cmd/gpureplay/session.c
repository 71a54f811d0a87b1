/*
 * Rounds: each device runs the command once in every round, in an order that
 * turns, until the rule has its answer.
 */
#define _GNU_SOURCE
#include "gpureplay.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sig.h"
#include "switches.h"

enum { FRUITLESS = 3 }; /* rounds without any result: it will not get better */

static int64_t
now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static char *
text_dup(struct buf *b)
{
	const char *p = buf_cstr(b);
	char *own = b->failed ? NULL : strdup(p);
	if (!own)
		cli_die("out of memory");
	buf_free(b);
	return own;
}

/* ---- what a process is started with ------------------------------------- */

static void
set(struct launch *l, const char *name, const char *value)
{
	struct buf b = { 0 };
	buf_printf(&b, "%s=%s", name, value);
	l->env = cli_realloc(l->env, l->n + 2, sizeof *l->env);
	l->env[l->n++] = text_dup(&b);
	l->env[l->n] = NULL;
}

/* VAR={device} with the name put in. */
static void
set_pin(struct launch *l, const char *pin, const char *name)
{
	struct buf b = { 0 };
	for (const char *p = pin; *p;) {
		if (!strncmp(p, "{device}", 8)) {
			buf_puts(&b, name);
			p += 8;
		} else {
			buf_putc(&b, *p++);
		}
	}
	char *text = text_dup(&b), *value = strchr(text, '=');
	*value++ = '\0';
	set(l, text, value);
	free(text);
}

void
launch_make(struct launch *l, const struct session *ss, const struct device *d)
{
	const struct settings *s = ss->s;
	*l = (struct launch){ 0 };
	set(l, SIG_VARIABLE, ss->sig ? ss->sig : "FILE");
	if (s->vendor_pin)
		set(l, s->vendor_pin, d->name);
	for (size_t i = 0; i < s->npins; i++)
		set_pin(l, s->pin[i], d->name);
	for (const struct known_switch *k = known_switches;
	     s->deterministic && k->name; k++)
		if (switch_state(k, getenv(k->name)) == SWITCH_SET)
			set(l, k->name, k->value);
}

void
launch_free(struct launch *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->env[i]);
	free(l->env);
}

/* ---- one process -------------------------------------------------------- */

/* The state of the files of --sig before the process. */
struct before {
	struct stat st[PARTS_MAX];
	bool there[PARTS_MAX];
};

static bool
is_stdout(const char *part)
{
	return !strcmp(part, "stdout");
}

static void
look_before(const struct settings *s, struct before *b)
{
	for (size_t i = 0; i < s->nparts; i++)
		b->there[i] =
		    !is_stdout(s->part[i]) && !stat(s->part[i], &b->st[i]);
}

static bool
same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* What an earlier process left there says nothing about this one. */
static bool
is_stale(const struct before *b, size_t i, const struct stat *st)
{
	const struct stat *old = &b->st[i];
	return b->there[i] && old->st_dev == st->st_dev &&
	       old->st_ino == st->st_ino &&
	       same_time(old->st_mtim, st->st_mtim) &&
	       same_time(old->st_ctim, st->st_ctim);
}

/* 0, or an outcome, with the reason in sig->why. */
static int
take_parts(const struct settings *s, const struct before *b,
    const struct child_result *r, struct signature *sig, struct u128 *part)
{
	struct err e = { 0 };
	*sig = (struct signature){ .whole = true };
	for (size_t i = 0; i < s->nparts; i++) {
		const char *name = s->part[i];
		struct stat st;
		uint64_t len;
		if (is_stdout(name)) {
			part[i] = r->out;
			signature_add(sig, name, part[i]);
			continue;
		}
		if (stat(name, &st) || is_stale(b, i, &st)) {
			snprintf(sig->why, sizeof sig->why,
			    "--sig %.60s: was not written", name);
			return OUTCOME_NOSIG;
		}
		if (signature_file(name, &part[i], &len, &e)) {
			snprintf(sig->why, sizeof sig->why,
			    "--sig %.40s: %.60s", name, e.msg);
			return OUTCOME_DAMAGED;
		}
		signature_add(sig, name, part[i]);
	}
	return 0;
}

static int
take_records(const struct session *ss, struct signature *sig)
{
	struct err e = { 0 };
	if (signature_read(ss->sig, sig, &e))
		cli_die("%s: %s", ss->sig, e.msg);
	if (!sig->whole)
		return OUTCOME_DAMAGED;
	if (sig->records)
		return 0;
	snprintf(sig->why, sizeof sig->why,
	    "no fp records where " SIG_VARIABLE " says");
	return OUTCOME_NOSIG;
}

/* The number of a result, new or known; its records are kept for a while. */
static uint32_t
result_number(
    struct session *ss, const struct signature *sig, const struct u128 *part)
{
	for (size_t i = 0; i < ss->nresults; i++)
		if (u128_same(ss->result[i].digest, sig->digest))
			return (uint32_t)i + 1;
	ss->result =
	    cli_realloc(ss->result, ss->nresults + 1, sizeof *ss->result);
	struct result *new = &ss->result[ss->nresults++];
	*new = (struct result){ .digest = sig->digest };
	memcpy(new->part, part, sizeof new->part);
	if (ss->s->nparts || ss->nresults > KEPT_MAX)
		return (uint32_t)ss->nresults;
	struct buf b = { 0 };
	buf_printf(&b, "%s.%zu", ss->sig, ss->nresults);
	new->file = text_dup(&b);
	if (rename(ss->sig, new->file)) {
		free(new->file);
		new->file = NULL;
	}
	return (uint32_t)ss->nresults;
}

static void
say_why(struct session *ss, const struct device *d,
    const struct child_result *r, const struct signature *sig)
{
	const char *more = *sig->why ? sig->why : r->said;
	char what[40];
	if (*ss->why)
		return;
	snprintf(what, sizeof what,
	    r->outcome == OUTCOME_EXIT     ? "exit status %d"
	    : r->outcome == OUTCOME_SIGNAL ? "killed by signal %d"
					   : "%.0d%s",
	    r->outcome == OUTCOME_EXIT || r->outcome == OUTCOME_SIGNAL
		? r->status
		: 0,
	    outcome_name[r->outcome]);
	snprintf(ss->why, sizeof ss->why, "%.20s: %.40s%s%.90s", d->name, what,
	    *more ? ": " : "", more);
}

/* The number of its result, or 0. False: there is no sense in going on. */
static bool
run_one(struct session *ss, struct rec_out *o, size_t i, uint32_t *number)
{
	const struct settings *s = ss->s;
	const struct device *d = &s->devices.list[i];
	struct device_count *count = &ss->count[i];
	struct u128 part[PARTS_MAX] = { { 0, 0 } };
	struct signature sig = { 0 };
	struct before before;
	struct child_result r;
	struct launch l;
	struct err e;
	launch_make(&l, ss, d);
	struct child_how how = { .argv = s->command,
		.env = l.env,
		.cpu = d->cpu,
		.nvidia = d->nvidia,
		.timeout = s->timeout,
		.sig = ss->sig,
		.hash_stdout = s->nparts > 0 };
	unlink(ss->sig);
	look_before(s, &before);
	if (child_run(&how, &r, &e))
		cli_die("%s", e.msg);
	launch_free(&l);
	if (r.outcome == OUTCOME_NOEXEC)
		cli_die("%s: cannot execute: %s", s->command[0],
		    strerror(r.status));
	*number = 0;
	if (r.outcome == OUTCOME_STUCK)
		ss->stuck = true;
	if (r.outcome > OUTCOMES)
		return false;
	if (r.outcome == OUTCOME_OK) {
		int x = s->nparts ? take_parts(s, &before, &r, &sig, part)
				  : take_records(ss, &sig);
		r.outcome = x ? x : OUTCOME_OK;
	}
	count->outcome[r.outcome]++;
	count->strays += r.strays;
	if (r.outcome == OUTCOME_OK) {
		count->pin[r.pin]++;
		*number = result_number(ss, &sig, part);
	} else {
		say_why(ss, d, &r, &sig);
	}
	if (s->common.verbose)
		report_process(ss, o, i, &r, &sig, *number);
	return true;
}

/* ---- rounds ------------------------------------------------------------- */

/* Forward in even rounds, backward in odd ones, starting further each time. */
static size_t
turn(size_t round, size_t i, size_t n)
{
	size_t at = round % 2 ? n - 1 - i : i;
	return (at + round / 2) % n;
}

static bool
run_round(struct session *ss, struct rec_out *o, int64_t end)
{
	size_t n = ss->s->devices.n;
	if (ss->rounds == ss->cap) {
		ss->cap = ss->cap ? ss->cap * 2 : 64;
		ss->table =
		    cli_realloc(ss->table, ss->cap, n * sizeof *ss->table);
	}
	uint32_t *row = ss->table + ss->rounds * n;
	memset(row, 0, n * sizeof *row);
	for (size_t i = 0; i < n; i++) {
		size_t at = turn(ss->rounds, i, n);
		bool late = i && now() > end;
		if (late || child_stopped() || !run_one(ss, o, at, &row[at])) {
			ss->dropped += i > 0;
			return false;
		}
	}
	ss->rounds++;
	return true;
}

static void
judge_group(struct session *ss, struct group *g)
{
	size_t columns = ss->s->devices.n;
	uint32_t *table = cli_alloc(ss->rounds * g->n + 1, sizeof *table);
	for (size_t r = 0; r < ss->rounds; r++)
		for (size_t i = 0; i < g->n; i++)
			table[r * g->n + i] =
			    ss->table[r * columns + g->member[i]];
	for (size_t i = 0; i < g->n; i++) {
		const struct device_count *c = &ss->count[g->member[i]];
		uint64_t failed = 0;
		for (int k = OUTCOME_OK + 1; k < OUTCOMES; k++)
			failed += c->outcome[k];
		g->device[i] = (struct rule_device){ .failed = failed,
			.named = ss->s->devices.list[g->member[i]].named,
			.pinned =
			    ss->s->trust_pin ||
			    (c->pin[PIN_VERIFIED] && !c->pin[PIN_UNSEEN] &&
				!c->pin[PIN_ELSEWHERE]) };
	}
	int majority = rule_tally(table, ss->rounds, g->n, g->device);
	for (size_t i = 0; i < g->n; i++)
		g->device[i].repetitions = g->device[i].processes;
	rule_judge(&ss->s->rule, g->device, g->n, majority, &g->v);
	free(table);
}

/* Can more rounds change what is said of the group? */
static bool
is_settled(const struct session *ss, const struct group *g)
{
	const struct rule_setup *rule = &ss->s->rule;
	const struct rule_verdict *v = &g->v;
	size_t named = 0;
	for (size_t i = 0; i < g->n; i++)
		named += g->device[i].named;
	switch (v->reason) {
	case RULE_THIN:
	case RULE_FEW:
		return false;
	case RULE_NOTHING:
		return ss->rounds >= FRUITLESS;
	case RULE_NO_REFERENCE:
		return g->device[0].processes >= rule_clean(rule, 1);
	case RULE_CONSISTENT:
		/* A bad device may still agree once in a while. */
		return g->device[v->suspect].k >=
		       2 * rule_needed(rule, g->n, named);
	}
	return true;
}

static bool
judge(struct session *ss)
{
	bool settled = true;
	for (size_t i = 0; i < ss->ngroups; i++) {
		judge_group(ss, &ss->group[i]);
		settled &= is_settled(ss, &ss->group[i]);
	}
	return settled;
}

void
session_run(struct session *ss, struct rec_out *o)
{
	const struct settings *s = ss->s;
	int64_t start = now(), end = start + s->max_time;
	if (end < start)
		end = INT64_MAX;
	judge(ss);
	while (!child_stopped()) {
		int64_t mean = ss->rounds ? ss->spent / (int64_t)ss->rounds : 0;
		if (ss->rounds && now() + mean > end)
			break;
		if (s->rounds && ss->rounds >= s->rounds)
			break;
		if (!run_round(ss, o, end))
			break;
		ss->spent = now() - start;
		if (judge(ss))
			break;
	}
}

/* ---- opening and closing ------------------------------------------------ */

static void
add_to_group(struct session *ss, size_t device)
{
	const struct device *list = ss->s->devices.list;
	struct group *g = NULL;
	for (size_t i = 0; i < ss->ngroups && !g; i++)
		if (!strcmp(
			list[ss->group[i].member[0]].alike, list[device].alike))
			g = &ss->group[i];
	if (!g) {
		ss->group =
		    cli_realloc(ss->group, ss->ngroups + 1, sizeof *ss->group);
		g = &ss->group[ss->ngroups++];
		*g = (struct group){ 0 };
	}
	g->member = cli_realloc(g->member, g->n + 1, sizeof *g->member);
	g->member[g->n++] = device;
}

/* A process that ends by cli_die leaves no files behind either. */
static char *to_remove;

static void
remove_dir(void)
{
	struct buf b = { 0 };
	if (!to_remove)
		return;
	for (size_t i = 0; i <= KEPT_MAX; i++) {
		b.len = 0;
		buf_printf(&b, i ? "%s/sig.%zu" : "%s/sig", to_remove, i);
		unlink(buf_cstr(&b));
	}
	buf_free(&b);
	rmdir(to_remove);
	free(to_remove);
	to_remove = NULL;
}

static void
make_dir(struct session *ss)
{
	struct buf b = { 0 };
	char *base = realpath(cli_tmpdir(), NULL);
	buf_printf(&b, "%s/gpureplay.XXXXXX", base ? base : cli_tmpdir());
	free(base);
	ss->dir = text_dup(&b);
	if (!mkdtemp(ss->dir))
		cli_die("%s: cannot create: %s", ss->dir, strerror(errno));
	to_remove = strdup(ss->dir);
	atexit(remove_dir);
	buf_printf(&b, "%s/sig", ss->dir);
	ss->sig = text_dup(&b);
}

void
session_open(struct session *ss, const struct settings *s)
{
	*ss = (struct session){ .s = s };
	ss->count = cli_alloc(s->devices.n, sizeof *ss->count);
	for (size_t i = 0; i < s->devices.n; i++)
		add_to_group(ss, i);
	for (size_t i = 0; i < ss->ngroups; i++)
		ss->group[i].device =
		    cli_alloc(ss->group[i].n, sizeof *ss->group[i].device);
	if (!s->dry_run)
		make_dir(ss);
}

void
session_close(struct session *ss)
{
	for (size_t i = 0; i < ss->nresults; i++)
		free(ss->result[i].file);
	for (size_t i = 0; i < ss->ngroups; i++) {
		free(ss->group[i].member);
		free(ss->group[i].device);
	}
	remove_dir();
	free(ss->result);
	free(ss->group);
	free(ss->count);
	free(ss->table);
	free(ss->dir);
	free(ss->sig);
}
