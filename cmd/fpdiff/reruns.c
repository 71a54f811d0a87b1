/*
 * --reruns: references and reruns of one job. Every run is compared with the
 * first reference, then read once more for the devices it used; lib/reruns
 * judges the table that comes of it.
 */
#include "fpdiff.h"

#include <stdlib.h>

#include "map.h"
#include "num.h"
#include "reruns.h"

/* The codes of the manual page. */
#define REASON_REFERENCE_UNSTABLE "reference-unstable"
#define REASON_NO_DEVICES "no-devices"
#define REASON_REFERENCE_SUSPECT "reference-suspect"
#define REASON_THIN "thin"
#define REASON_RACE_OR_DEVICE "race-or-device"
#define REASON_NONDETERMINISTIC "nondeterministic"
#define REASON_ROLE_CONFOUNDED "role-confounded"
#define REASON_CONSISTENT_DIFFERENCE "consistent-difference"
#define REASON_INTERMITTENT "intermittent"

enum { SHOWN = 6 }; /* divergent runs printed without -v */

struct words {
	const char *result, *cause, *reason, *need;
};

// clang-format off
#define UNKNOWN(reason, need) { "unknown", NULL, reason, need }
#define CAUSE(cause) { "different", cause, NULL, NULL }
static const struct words words[RERUN_ROWS] = {
	[RERUN_REFERENCE_UNSTABLE] = UNKNOWN(REASON_REFERENCE_UNSTABLE,
	    "references that agree"),
	[RERUN_SAME] = { "same", NULL, NULL, NULL },
	[RERUN_NO_DEVICES] = UNKNOWN(REASON_NO_DEVICES,
	    "runs that record dev="),
	[RERUN_REFERENCE_SUSPECT] = UNKNOWN(REASON_REFERENCE_SUSPECT,
	    "a clean run on another set"),
	[RERUN_THIN_ONE] = UNKNOWN(REASON_THIN, "more runs"),
	[RERUN_CODE] = CAUSE("code-or-data"),
	[RERUN_RACE] = CAUSE("race"),
	[RERUN_RACE_OR_DEVICE] = UNKNOWN(REASON_RACE_OR_DEVICE,
	    "more runs on every set"),
	[RERUN_NONDETERMINISTIC] = UNKNOWN(REASON_NONDETERMINISTIC,
	    "deterministic switches, or a learned mask"),
	[RERUN_DEVICE] = CAUSE("device"),
	[RERUN_SET] = CAUSE("set"),
	[RERUN_THIN_SETS] = UNKNOWN(REASON_THIN, "more runs on every set"),
	[RERUN_ROLE_CONFOUNDED] = UNKNOWN(REASON_ROLE_CONFOUNDED,
	    "runs with the ranks rotated over at least three devices"),
	[RERUN_THIN_DEVICE] = UNKNOWN(REASON_THIN, "more runs"),
	[RERUN_CONSISTENT] = UNKNOWN(REASON_CONSISTENT_DIFFERENCE,
	    "runs on another set"),
	[RERUN_INTERMITTENT] = UNKNOWN(REASON_INTERMITTENT,
	    "runs on another set"),
	[RERUN_ONE_SET_RACE_OR_DEVICE] = UNKNOWN(REASON_RACE_OR_DEVICE,
	    "runs on another set"),
	[RERUN_ONE_SET_NONDETERMINISTIC] = UNKNOWN(REASON_NONDETERMINISTIC,
	    "deterministic switches, or a learned mask"),
};
// clang-format on

/* Numbers in the order they came, without repeats. */
struct ids {
	size_t *id, n, cap;
	bool *has;
	size_t has_cap;
};

/* One run while its row is made. */
struct run {
	const char *name;
	struct rerun row;
	struct ids used, roots, ran;
	struct entry *a, *b; /* the root */
	const char *role;
	bool step_given, certain;
	uint64_t step;
	uint64_t boundary;
	bool dropped;
};

struct job {
	struct report *report;
	struct settings s; /* of one comparison */
	struct run *run;   /* references first */
	size_t nrefs, n;
	bool agree, conditions;
	struct damage damage;
	struct map names; /* device -> number + 1 */
	struct arena arena;
	struct str *device;
	size_t ndevices;
	struct rec rec;
	struct buf text;
};

/* ---- small things ------------------------------------------------------ */

static void
ids_add(struct ids *l, size_t id)
{
	if (id >= l->has_cap) {
		size_t cap = id < 8 ? 16 : 2 * id;
		l->has = cli_realloc(l->has, cap, sizeof *l->has);
		memset(l->has + l->has_cap, 0, cap - l->has_cap);
		l->has_cap = cap;
	}
	if (l->has[id])
		return;
	l->has[id] = true;
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 8;
		l->id = cli_realloc(l->id, l->cap, sizeof *l->id);
	}
	l->id[l->n++] = id;
}

static void
ids_free(struct ids *l)
{
	free(l->id);
	free(l->has);
}

/* `dev` alone is a device of the host in the head. */
static size_t
device_number(struct job *j, const struct side *side, struct str dev)
{
	bool fresh;
	struct str host = side_host(side);
	j->text.len = 0;
	if (host.len && !memchr(dev.p, '/', dev.len)) {
		buf_str(&j->text, host);
		buf_putc(&j->text, '/');
	}
	buf_str(&j->text, dev);
	uint64_t *at = map_get(&j->names, buf_view(&j->text));
	if (at)
		return (size_t)*at - 1;
	struct str copy = arena_str(&j->arena, buf_view(&j->text));
	at = copy.p ? map_at(&j->names, copy, &fresh) : NULL;
	if (!at)
		cli_die("out of memory");
	j->device = cli_realloc(j->device, j->ndevices + 1, sizeof *j->device);
	j->device[j->ndevices] = copy;
	*at = ++j->ndevices;
	return j->ndevices - 1;
}

/* Name, io and phase: no rank, step or coordinates. */
static struct u128
boundary_of(struct job *j, const struct fp *f)
{
	unsigned without = 0;
	for (unsigned i = 0; i < FP_PLACES; i++)
		if (i != FP_IO && i != FP_PHASE)
			without |= 1u << i;
	return fp_key(f, without, &j->text);
}

/* ---- the first root of a run ------------------------------------------- */

/*
 * Of the lowest step. An input that differs was made elsewhere: it stands back
 * for outputs of the same step.
 */
static bool
is_earlier(const struct run *run, const struct root *root)
{
	if (!run->a)
		return true;
	if (run->step_given != root->step_given)
		return root->step_given;
	if (run->step != root->step)
		return root->step < run->step;
	return run->b->input && !root->b->input;
}

static void
take_root(void *user, const struct root *root)
{
	struct run *run = user;
	if (!is_earlier(run, root))
		return;
	free(run->a);
	free(run->b);
	run->a = entry_dup(root->a);
	run->b = entry_dup(root->b);
	run->role = root->role;
	run->step_given = root->step_given;
	run->step = root->step;
}

/* All roots of that step: they may lie on several devices. */
struct at_step {
	struct job *job;
	struct run *run;
	struct str *rank;
	size_t n;
};

static void
take_rank(void *user, const struct root *root)
{
	struct at_step *at = user;
	const struct run *run = at->run;
	bool same = root->step_given == run->step_given &&
		    (!run->step_given || root->step == run->step);
	if (!same || (root->b->input && !run->b->input))
		return;
	at->rank = cli_realloc(at->rank, at->n + 1, sizeof *at->rank);
	at->rank[at->n] = arena_str(&at->job->arena, root->b->rank);
	at->n++;
}

struct both_roots {
	struct run *run;
	struct root *list;
	size_t n;
};

static void
keep_root(void *user, const struct root *root)
{
	struct both_roots *k = user;
	take_root(k->run, root);
	k->list = cli_realloc(k->list, k->n + 1, sizeof *k->list);
	k->list[k->n] = *root;
	k->list[k->n].a = entry_dup(root->a);
	k->list[k->n].b = entry_dup(root->b);
	k->n++;
}

/* ---- the second reading: devices --------------------------------------- */

static bool
is_one_of(struct str rank, const struct at_step *at)
{
	for (size_t i = 0; i < at->n; i++)
		if (str_same(rank, at->rank[i]))
			return true;
	return false;
}

static void
read_devices(struct job *j, struct run *run, const struct at_step *at)
{
	struct str line;
	struct fp f;
	struct entry e;
	j->s.operand[ALIGN_B] = run->name;
	j->s.map = j->report->s->map;
	struct side *side = side_open(&j->s, ALIGN_B);
	while (side_line(side, &line)) {
		if (side_entry(side, line, &f, &e) != 1 || !f.dev.len)
			continue;
		size_t d = device_number(j, side, f.dev);
		ids_add(&run->used, d);
		if (!run->row.diverged)
			continue;
		if (u128_same(boundary_of(j, &f), run->row.boundary))
			ids_add(&run->ran, d);
		if (is_one_of(f.place[FP_RANK], at))
			ids_add(&run->roots, d);
	}
	side_close(side);
	run->row.used = (struct rerun_devices){ run->used.id, run->used.n };
	run->row.ran = (struct rerun_devices){ run->ran.id, run->ran.n };
	run->row.roots = (struct rerun_devices){ run->roots.id, run->roots.n };
}

/* ---- one run ----------------------------------------------------------- */

static void
fill_row(struct job *j, struct run *run)
{
	struct fp f;
	j->text.len = 0;
	char *undone = cli_alloc(run->b->raw.len + 1, 1);
	entry_parse(run->b->raw, &f, &j->rec, undone);
	struct str step = f.place[FP_STEP], rank = f.place[FP_RANK];
	run->row.diverged = true;
	run->row.boundary = boundary_of(j, &f);
	run->row.step = hash_xxh3(step.p, step.len);
	run->row.hash = run->b->value;
	run->row.rank = hash_table(rank.p, rank.len, 1);
	free(undone);
}

static void
drop(struct job *j, struct run *run, const char *why)
{
	cli_warn("%s: not used: %s", run->name, why ? why : "unknown");
	j->damage.skipped++;
	run->dropped = true;
}

/* Compares with the first reference and fills the row. */
static void
take_run(struct job *j, struct run *run)
{
	struct report silent = { .s = &j->s };
	struct outcome o = { 0 };
	struct both_roots kept = { .run = run };
	j->s = *j->report->s;
	j->s.common.verbose = 0;
	j->s.common.policy = (struct policy){ 0 };
	j->s.operand[ALIGN_A] = j->run[0].name;
	j->s.operand[ALIGN_B] = run->name;
	struct side *a = side_open(&j->s, ALIGN_A);
	struct side *b = side_open(&j->s, ALIGN_B);
	side_check_pair(a, b);
	if (!side_is_exec(a) || !side_is_exec(b))
		cli_die("%s: reruns need records in the order of execution",
		    side_is_exec(a) ? run->name : j->run[0].name);
	int status = exec_roots(&silent, a, b, keep_root, &kept, &o);
	struct at_step at = { .job = j, .run = run };
	for (size_t i = 0; run->a && i < kept.n; i++)
		take_rank(&at, &kept.list[i]);
	bool values = tally_different(&silent.tally) > 0;
	if (o.v.reason && !strcmp(o.v.reason, REASON_CONDITIONS_DIFFER))
		j->conditions = true;
	else if (status == STATUS_FOUND && values)
		fill_row(j, run);
	else if (status != STATUS_CLEAN)
		drop(j, run, o.v.reason);
	side_close(a);
	side_close(b);
	if (!run->dropped)
		read_devices(j, run, &at);
	for (size_t i = 0; i < kept.n; i++) {
		free((void *)kept.list[i].a);
		free((void *)kept.list[i].b);
	}
	free(kept.list);
	free(at.rank);
	report_free(&silent);
}

static void
take_all(struct job *j)
{
	for (size_t i = 0; i < j->nrefs + j->n; i++) {
		struct run *run = &j->run[i];
		if (!i) {
			j->s = *j->report->s;
			read_devices(j, run, &(struct at_step){ .job = j });
			continue;
		}
		take_run(j, run);
		if (i < j->nrefs)
			j->agree &= !run->row.diverged;
	}
}

/* Moves the usable rows of a part of the list together. */
static size_t
rows_of(const struct run *run, size_t n, struct rerun *row)
{
	size_t k = 0;
	for (size_t i = 0; i < n; i++)
		if (!run[i].dropped)
			row[k++] = run[i].row;
	return k;
}

/* ---- results ----------------------------------------------------------- */

static void
put_members(struct job *j, const size_t *set, size_t number)
{
	j->text.len = 0;
	for (size_t d = 0; d < j->ndevices; d++) {
		if (set[d] != number)
			continue;
		if (j->text.len)
			buf_putc(&j->text, ',');
		buf_str(&j->text, j->device[d]);
	}
	rec_str(j->report->out, "members", buf_view(&j->text));
}

static void
put_sets(struct job *j, const struct reruns *t, const size_t *set,
    const struct rerun_verdict *v)
{
	struct rec_out *o = j->report->out;
	size_t last = 0;
	for (size_t d = 0; d < j->ndevices; d++)
		last = set[d] != SIZE_MAX && set[d] >= last ? set[d] + 1 : last;
	for (size_t s = 0; s < last; s++) {
		size_t n = 0, k = 0;
		for (size_t i = 0; i < t->n; i++) {
			const struct rerun *run = &t->run[i];
			if (!run->used.n || set[run->used.id[0]] != s)
				continue;
			n++;
			k += run->diverged;
		}
		bool guilty = v->row == RERUN_SET && v->set == s;
		rec_begin(o, "finding");
		rec_fmt(o, "entity", "set:%zu", s);
		rec_put(o, "result", guilty ? "faulty" : "unknown");
		put_members(j, set, s);
		rec_fmt(o, "note", "%zu of %zu runs diverged", k, n);
		rec_end(o);
	}
}

static void
put_runs(struct job *j)
{
	struct report *r = j->report;
	size_t shown = 0, all = 0;
	for (size_t i = j->nrefs; i < j->nrefs + j->n; i++) {
		struct run *run = &j->run[i];
		if (!run->row.diverged)
			continue;
		all++;
		if (shown == SHOWN && !r->s->common.verbose)
			continue;
		shown++;
		report_diff(r, &(struct diff){ .class = DIFF_FIRST,
				   .a = run->a,
				   .b = run->b,
				   .role = run->role,
				   .note = run->name });
	}
	if (shown < all)
		rec_comment(
		    r->out, "%zu more runs, printed with -v", all - shown);
}

static void
put_entity(
    struct job *j, const struct rerun_verdict *v, const struct run *first)
{
	struct fp f;
	struct buf *b = &j->text;
	b->len = 0;
	switch (v->row) {
	case RERUN_DEVICE:
		buf_puts(b, "device:");
		buf_str(b, j->device[v->device]);
		return;
	case RERUN_SET:
		buf_printf(b, "set:%zu", v->set);
		return;
	case RERUN_CODE:
	case RERUN_RACE: {
		char *undone = cli_alloc(first->b->raw.len + 1, 1);
		entry_parse(first->b->raw, &f, &j->rec, undone);
		buf_puts(b, "code:");
		buf_str(b, f.name);
		free(undone);
		return;
	}
	default:
		return;
	}
}

static const struct run *
first_diverged(const struct job *j)
{
	for (size_t i = j->nrefs; i < j->nrefs + j->n; i++)
		if (j->run[i].row.diverged)
			return &j->run[i];
	return NULL;
}

static int
conclude(struct job *j)
{
	struct report *r = j->report;
	struct err e;
	struct rerun *ref = cli_alloc(j->nrefs + 1, sizeof *ref);
	struct rerun *row = cli_alloc(j->n + 1, sizeof *row);
	size_t *set = cli_alloc(j->ndevices + 1, sizeof *set);
	struct reruns t = { .ref = ref,
		.run = row,
		.agree = j->agree,
		.ndevices = j->ndevices,
		.alpha = r->s->alpha };
	struct rerun_verdict v;
	t.nrefs = rows_of(j->run, j->nrefs, ref);
	t.n = rows_of(j->run + j->nrefs, j->n, row);
	if (reruns_judge(&t, set, &v, &e))
		cli_die("%s", e.msg);
	const struct words *w = &words[v.row];
	const struct run *first = first_diverged(j);
	struct outcome o = { .a = first ? first->a : NULL,
		.b = first ? first->b : NULL,
		.cause = w->cause };
	o.v = (struct verdict){ .result = w->result,
		.reason = w->reason,
		.need = w->need,
		.damage = j->damage };
	o.v.status = w->cause              ? STATUS_FOUND
		     : v.row == RERUN_SAME ? STATUS_CLEAN
					   : STATUS_UNKNOWN;
	if (j->conditions)
		o.v = (struct verdict){ .result = "unknown",
			.status = STATUS_UNKNOWN,
			.reason = REASON_CONDITIONS_DIFFER,
			.need = "runs with the same switches and build",
			.damage = j->damage };
	put_runs(j);
	put_sets(j, &t, set, &v);
	verdict_settle(&o.v, &r->s->common.policy);
	if (!t.n) {
		cli_warn("no run could be used");
		o.v.status = STATUS_NONE;
	}
	put_entity(j, &v, first);
	o.entity = buf_view(&j->text);
	if (v.row == RERUN_SAME)
		snprintf(o.bound, sizeof o.bound, "%.6g", v.bound);
	r->tally.equal = t.n - v.k;
	r->tally.n[DIFF_FIRST] = v.k;
	int status = report_verdict(r, &o);
	free(ref);
	free(row);
	free(set);
	return status;
}

int
reruns_compare(struct report *r)
{
	struct job *j = cli_alloc(1, sizeof *j);
	const struct settings *s = r->s;
	j->report = r;
	j->agree = true;
	j->nrefs = s->nrefs;
	j->n = s->nruns;
	j->run = cli_alloc(j->nrefs + j->n, sizeof *j->run);
	for (size_t i = 0; i < j->nrefs + j->n; i++)
		j->run[i].name =
		    i < j->nrefs ? s->ref[i] : s->run[i - j->nrefs];
	report_head(r, true);
	take_all(j);
	int status = conclude(j);
	for (size_t i = 0; i < j->nrefs + j->n; i++) {
		struct run *run = &j->run[i];
		free(run->a);
		free(run->b);
		ids_free(&run->used);
		ids_free(&run->roots);
		ids_free(&run->ran);
	}
	free(j->run);
	free(j->device);
	map_free(&j->names);
	arena_free(&j->arena);
	buf_free(&j->text);
	free(j);
	return status;
}
