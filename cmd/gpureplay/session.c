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

#include "line.h"
#include "sig.h"
#include "switches.h"

/* For a launcher to start, and to clean up after a time-out. */
#define LAUNCH_NS INT64_C(60000000000)

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

/* A template with the name put in wherever `hole` is. */
static char *
filled_dup(const char *template, const char *hole, const char *name)
{
	struct buf b = { 0 };
	size_t len = strlen(hole);
	for (const char *p = template; *p;) {
		if (!strncmp(p, hole, len)) {
			buf_puts(&b, name);
			p += len;
		} else {
			buf_putc(&b, *p++);
		}
	}
	return text_dup(&b);
}

static void
set_pin(struct launch *l, const char *pin, const char *name)
{
	char *text = filled_dup(pin, "{device}", name),
	     *value = strchr(text, '=');
	*value++ = '\0';
	set(l, text, value);
	free(text);
}

/* Takes over the word. */
static void
add_word(struct launch *l, char *word)
{
	if (!word)
		cli_die("out of memory");
	l->argv = cli_realloc(l->argv, l->nargv + 2, sizeof *l->argv);
	l->argv[l->nargv++] = word;
	l->argv[l->nargv] = NULL;
}

static void
add_option(struct launch *l, const char *name, const char *value)
{
	struct buf b = { 0 };
	buf_printf(&b, "%s=%s", name, value);
	add_word(l, text_dup(&b));
}

/* The launcher, then gpureplay exec, which does there what we do here. */
static void
add_launcher(struct launch *l, const struct settings *s, const struct device *d)
{
	char number[32];
	for (size_t i = 0; i < s->nlauncher; i++)
		add_word(l, filled_dup(s->launcher[i], "{host}", d->host));
	add_word(l, strdup("gpureplay"));
	add_word(l, strdup("exec"));
	snprintf(number, sizeof number, "%lldns", (long long)s->timeout);
	add_option(l, "--timeout", number);
	snprintf(number, sizeof number, "%d", d->cpu);
	if (d->cpu >= 0)
		add_option(l, "--cpu", number);
	for (size_t i = 0; i < s->nparts; i++)
		add_option(l, "--sig", s->part[i]);
	if (s->deterministic)
		add_word(l, strdup("--deterministic"));
	add_word(l, strdup("--"));
}

void
launch_make(struct launch *l, const struct session *ss, const struct device *d)
{
	const struct settings *s = ss->s;
	*l = (struct launch){ 0 };
	if (d->host)
		add_launcher(l, s, d);
	for (char **w = s->command; *w; w++)
		add_word(l, strdup(*w));
	if (d->host)
		return;
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
	for (size_t i = 0; i < l->nargv; i++)
		free(l->argv[i]);
	free(l->env);
	free(l->argv);
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
		bool there = !stat(name, &st) && S_ISREG(st.st_mode);
		if (!there || is_stale(b, i, &st)) {
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
	if (signature_read(ss->sig, ss->s->launcher != NULL, sig, &e))
		cli_die("%s: %s", ss->sig, e.msg);
	if (!sig->whole)
		return OUTCOME_DAMAGED;
	if (sig->records)
		return 0;
	snprintf(sig->why, sizeof sig->why,
	    "no fp records where " SIG_VARIABLE " says");
	return OUTCOME_NOSIG;
}

/* ---- a process on another host ------------------------------------------ */

static int
outcome_of(struct str name)
{
	for (int i = 0; i < OUTCOMES; i++)
		if (str_is(name, outcome_name[i]))
			return i;
	return -1;
}

/* "n1" and "n1.example.org" are the same host. */
static bool
is_host(const char *asked, struct str told)
{
	struct str a = str_c(asked);
	struct str short_a = STR_NULL, short_b = STR_NULL;
	if (str_same(a, told))
		return true;
	str_cut(&a, '.', &short_a);
	str_cut(&told, '.', &short_b);
	return (!a.p || !told.p) && short_a.len && str_same(short_a, short_b);
}

/* What makes the far device alike others: known from its first process on. */
static void
note_alike(struct session *ss, size_t i, struct str build)
{
	if (ss->alike[i] || !build.len)
		return;
	struct buf b = { 0 };
	buf_str(&b, build);
	ss->alike[i] = text_dup(&b);
}

static void
take_process(
    struct session *ss, size_t i, const struct rec *r, struct child_result *out)
{
	const struct device *d = &ss->s->devices.list[i];
	struct str pin = rec_text_of(r, "pin"), said = rec_text_of(r, "note");
	uint64_t status = 0, strays = 0;
	int outcome = outcome_of(rec_text_of(r, "outcome"));
	if (outcome < 0)
		return;
	rec_u64_of(r, "exit", &status, NULL);
	rec_u64_of(r, "signal", &status, NULL);
	rec_u64_of(r, "strays", &strays, NULL);
	rec_time_of(r, "dur", &out->ns, NULL);
	out->outcome = outcome;
	out->status = (int)(status & 0xffff);
	out->strays = (unsigned)(strays & 0xffff);
	out->pin = PIN_UNSEEN;
	if (str_is(pin, "elsewhere"))
		out->pin = PIN_ELSEWHERE;
	else if (is_host(d->host, rec_text_of(r, "host")) &&
		 (d->cpu < 0 || str_is(pin, "verified")))
		out->pin = PIN_VERIFIED;
	if (said.len && said.len < sizeof out->said)
		snprintf(out->said, sizeof out->said, "%.*s", STR_ARG(said));
	note_alike(ss, i, rec_text_of(r, "build"));
}

/* What a launcher says before the head and after the end is left out. */
static void
trim(const char *path)
{
	struct buf temp = { 0 };
	struct src *src;
	struct line_in *in;
	struct str line;
	bool inside = false;
	buf_printf(&temp, "%s.new", path);
	if (src_open(&src, path, NULL, SRC_PLAIN, NULL))
		cli_die("%s: cannot be read", path);
	FILE *f = fopen(buf_cstr(&temp), "w");
	bool ok = f && !line_open(&in, src, REC_LINE_MAX, NULL);
	while (ok && line_next(in, &line, NULL) > 0) {
		inside |= str_starts(line, "head\t");
		if (inside && (fwrite(line.p, 1, line.len, f) != line.len ||
				  putc('\n', f) == EOF))
			cli_die("%s: cannot write", buf_cstr(&temp));
		if (str_starts(line, "end\t"))
			break;
	}
	if (ok)
		line_close(in);
	src_close(src);
	if (!f || fclose(f) || rename(buf_cstr(&temp), path))
		cli_die("%s: cannot write", buf_cstr(&temp));
	buf_free(&temp);
}

/* Without such a record the launcher itself is what went wrong. */
static void
take_relayed(struct session *ss, size_t i, struct child_result *out)
{
	struct src *src;
	struct rec_in *in;
	struct rec *r = cli_alloc(1, sizeof *r);
	bool found = false;
	trim(ss->sig);
	int x = src_open(&src, ss->sig, NULL, SRC_PLAIN, NULL);
	x = x ? x : rec_in_open(&in, src, NULL);
	if (!x) {
		while (!found && (x = rec_in_next(in, r, NULL))) {
			if (x == SE_EFORMAT)
				continue;
			if (x < 0)
				break;
			found = str_is(r->type, "process");
			if (found)
				take_process(ss, i, r, out);
		}
		rec_in_close(in);
	}
	free(r);
}

/* ---- and what came of it ------------------------------------------------ */

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
	bool parts = ss->s->nparts && !ss->s->launcher;
	if (parts || ss->nresults > KEPT_MAX)
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
	struct child_how how = { .argv = l.argv,
		.env = l.env,
		.cpu = d->host ? -1 : d->cpu,
		.nvidia = d->nvidia,
		.timeout = s->timeout,
		.sig = d->host ? NULL : ss->sig,
		.tee = d->host ? ss->sig : NULL,
		.hash_stdout = s->nparts > 0 };
	if (d->host && s->timeout < INT64_MAX - LAUNCH_NS)
		how.timeout += LAUNCH_NS;
	unlink(ss->sig);
	look_before(s, &before);
	if (child_run(&how, &r, &e))
		cli_die("%s", e.msg);
	if (r.outcome == OUTCOME_NOEXEC)
		cli_die(
		    "%s: cannot execute: %s", l.argv[0], strerror(r.status));
	launch_free(&l);
	if (d->host && r.outcome == OUTCOME_OK)
		take_relayed(ss, i, &r);
	*number = 0;
	if (r.outcome == OUTCOME_STUCK)
		ss->stuck = true;
	if (r.outcome >= OUTCOMES)
		return false;
	if (r.outcome == OUTCOME_OK) {
		bool parts = s->nparts && !d->host;
		int x = parts ? take_parts(s, &before, &r, &sig, part)
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
	if (s->common.verbose || s->far)
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

/* What was seen elsewhere is not vouched for either. */
static bool
is_pinned(const struct session *ss, const struct device_count *c)
{
	if (c->pin[PIN_ELSEWHERE])
		return false;
	return ss->s->trust_pin ||
	       (c->pin[PIN_VERIFIED] && !c->pin[PIN_UNSEEN]);
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
			.pinned = is_pinned(ss, c) };
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

/* A host that has told nothing yet is taken to be like the first that has. */
static const char *
alike_of(const struct session *ss, size_t device)
{
	if (!ss->s->launcher)
		return ss->s->devices.list[device].alike;
	for (size_t i = 0; i < ss->s->devices.n && !ss->alike[device]; i++)
		if (ss->alike[i])
			return ss->alike[i];
	return ss->alike[device] ? ss->alike[device] : "";
}

static void
add_to_group(struct session *ss, size_t device)
{
	struct group *g = NULL;
	for (size_t i = 0; i < ss->ngroups && !g; i++)
		if (!strcmp(alike_of(ss, ss->group[i].member[0]),
			alike_of(ss, device)))
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

static void
free_groups(struct session *ss)
{
	for (size_t i = 0; i < ss->ngroups; i++) {
		free(ss->group[i].member);
		free(ss->group[i].device);
	}
	free(ss->group);
	ss->group = NULL;
	ss->ngroups = 0;
}

static void
make_groups(struct session *ss)
{
	free_groups(ss);
	for (size_t i = 0; i < ss->s->devices.n; i++)
		add_to_group(ss, i);
	for (size_t i = 0; i < ss->ngroups; i++)
		ss->group[i].device =
		    cli_alloc(ss->group[i].n, sizeof *ss->group[i].device);
}

static bool
judge(struct session *ss)
{
	bool settled = true;
	if (ss->s->launcher)
		make_groups(ss);
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

bool
session_once(struct session *ss, struct rec_out *o)
{
	uint32_t number;
	return run_one(ss, o, 0, &number);
}

/* ---- opening and closing ------------------------------------------------ */

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
	b.len = 0;
	buf_printf(&b, "%s/sig.new", to_remove);
	unlink(buf_cstr(&b));
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
	ss->alike = cli_alloc(s->devices.n, sizeof *ss->alike);
	make_groups(ss);
	if (!s->dry_run)
		make_dir(ss);
}

void
session_close(struct session *ss)
{
	for (size_t i = 0; i < ss->nresults; i++)
		free(ss->result[i].file);
	for (size_t i = 0; i < ss->s->devices.n; i++)
		free(ss->alike[i]);
	free_groups(ss);
	remove_dir();
	free(ss->result);
	free(ss->alike);
	free(ss->count);
	free(ss->table);
	free(ss->dir);
	free(ss->sig);
}
