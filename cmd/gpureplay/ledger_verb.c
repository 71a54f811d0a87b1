/*
 * gpureplay ledger DIR: what many sessions say about each device; and what
 * gpureplay run adds to a ledger and takes from it.
 */
#include "gpureplay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ledger.h"

enum { OPT_RESET = OPT_OWN, OPT_ALPHA, OPT_RATIO, OPT_RATE };

// clang-format off
static const struct opt options[] = {
	{ OPT_RESET, "reset", "DEVICE", "forget a device: it was serviced" },
	{ OPT_RATE, "rate", "R", "healthy excludes this rate (0.01)" },
	{ OPT_ALPHA, "alpha", "A", "chance of a wrong faulty (0.001)" },
	{ OPT_RATIO, "ratio", "R",
	    "a race may be R times likelier on one (10)" },
	OPT_JUDGE, OPT_COMMON, OPT_LAST
};
// clang-format on

static const char *const usage[] = {
	"gpureplay ledger [options] DIR",
	"gpureplay ledger --reset=DEVICE DIR",
	NULL,
};

struct reading {
	struct cli_common common;
	struct rule_setup rule;
	const char *dir, *reset;
	struct ledger l;
	size_t *order; /* devices by id */
};

/* ---- one device --------------------------------------------------------- */

/* For all devices of the ledger at once, at 95 %. */
static double
bound_of(const struct ledger *l, const struct rule_standing *s)
{
	double n = (double)s->processes;
	return s->processes ? fmin(1, log((double)l->ndevices / 0.05) / n) : 1;
}

static const char *
result_of(const struct ledger *l, size_t i, double rate)
{
	const struct rule_standing *s = &l->standing[i];
	if (s->faulty)
		return "faulty";
	bool clean = !s->k && !s->voided && bound_of(l, s) <= rate;
	return clean ? "healthy" : "unknown";
}

static void
put_standing(struct rec_out *o, const struct ledger *l, size_t i, double rate)
{
	const struct ledger_device *d = &l->device[i];
	const struct rule_standing *s = &l->standing[i];
	rec_begin(o, "standing");
	rec_put(o, "entity", d->entity);
	rec_put(o, "id", d->id);
	rec_put(o, "result", result_of(l, i, rate));
	rec_u64(o, "sessions", d->sessions);
	rec_u64(o, "processes", s->processes);
	rec_u64(o, "k", s->k);
	if (s->voided)
		rec_u64(o, "voided", s->voided);
	if (s->k) {
		rec_f64(o, "product", s->product);
		rec_f64(o, "expected", s->expected);
		rec_f64(o, "p", s->p);
	} else {
		rec_f64(o, "bound", bound_of(l, s));
	}
	if (d->seen != INT64_MIN)
		rec_time(o, "seen", d->seen);
	if (d->reset != INT64_MIN)
		rec_time(o, "reset", d->reset);
	rec_end(o);
}

/* ---- from a run --------------------------------------------------------- */

/* The command line and what was compared: not where, when and how often. */
static void
put_workload(struct buf *b, const struct settings *s)
{
	struct buf t = { 0 };
	for (char **w = s->command; *w; w++)
		buf_add(&t, *w, strlen(*w) + 1);
	for (size_t i = 0; i < s->nparts; i++)
		buf_add(&t, s->part[i], strlen(s->part[i]) + 1);
	buf_puts(b, "xxh3-128:");
	u128_put(b, hash_xxh3(t.p ? t.p : "", t.len));
	buf_free(&t);
}

static bool
is_said(const struct group *g)
{
	/* Two that differ: nobody knows whose divergence it is. */
	return g->v.reason != RULE_TWO_DEVICES && g->v.reason != RULE_NOTHING;
}

static void
put_rows(const struct session *ss, const struct group *g, const char *workload,
    struct rec_out *o)
{
	bool voids = g->v.reason == RULE_NONDETERMINISTIC;
	for (size_t i = 0; i < g->n; i++) {
		const struct device *d = &ss->s->devices.list[g->member[i]];
		const struct rule_device *x = &g->device[i];
		rec_begin(o, "row");
		rec_put(o, "entity", d->entity);
		rec_put(o, "id", d->id);
		rec_put(o, "workload", workload);
		rec_put(o, "build", d->alike);
		rec_u64(o, "processes", x->processes);
		rec_u64(o, "k", x->k);
		rec_u64(o, "failed", x->failed);
		rec_f64(o, "f", 1 / (double)g->n);
		if (voids)
			rec_put(o, "voids", "yes");
		rec_put(o, "pin",
		    !x->pinned         ? "unverified"
		    : ss->s->trust_pin ? "trusted"
				       : "verified");
		rec_end(o);
	}
}

static void
add_session(
    const struct session *ss, const struct group *g, const char *workload)
{
	struct ledger_file f;
	struct err e;
	const char *dir = ss->s->ledger;
	int x = ledger_begin(&f, dir, cli_now(&ss->s->common), &e);
	if (!x)
		put_rows(ss, g, workload, f.o);
	int y = ledger_commit(&f, x ? NULL : &e);
	if (x || y)
		cli_die("%s: %s", dir, e.msg);
}

/* A suspect that is convicted by all sessions together. */
static bool
convict(struct group *g, const struct session *ss, const struct ledger *l)
{
	const char *id = ss->s->devices.list[g->member[g->v.suspect]].id;
	size_t i = ledger_find(l, id);
	if (i == SIZE_MAX || !l->standing[i].faulty)
		return false;
	g->v.result = RULE_FAULTY;
	g->v.reason = RULE_NONE;
	return true;
}

/* Enough clean processes of every device, all sessions together. */
static bool
acquit(struct group *g, const struct session *ss, const struct ledger *l,
    const char *workload)
{
	uint64_t least = UINT64_MAX;
	for (size_t i = 0; i < g->n; i++) {
		const struct device *d = &ss->s->devices.list[g->member[i]];
		size_t k = ledger_find(l, d->id);
		uint64_t n =
		    k == SIZE_MAX ? 0 : ledger_clean(l, k, workload, d->alike);
		least = n < least ? n : least;
		if (!g->device[i].pinned)
			return false;
	}
	if (g->n < 2 || least < rule_clean(&ss->s->rule, g->n))
		return false;
	g->v.result = RULE_HEALTHY;
	g->v.reason = RULE_NONE;
	g->v.bound = log((double)g->n / 0.05) / (double)least;
	return true;
}

bool
ledger_settle(const struct session *ss, struct group *g, struct rec_out *o)
{
	struct ledger l;
	struct buf workload = { 0 };
	struct err e;
	bool decided = false;
	if (!is_said(g))
		return false;
	put_workload(&workload, ss->s);
	add_session(ss, g, buf_cstr(&workload));
	if (ledger_read(&l, ss->s->ledger, &e) ||
	    ledger_judge(&l, &ss->s->rule, &e))
		cli_die("%s: %s", ss->s->ledger, e.msg);
	for (size_t i = 0; i < g->n; i++) {
		size_t k =
		    ledger_find(&l, ss->s->devices.list[g->member[i]].id);
		if (k != SIZE_MAX && (l.standing[k].k || ss->s->common.verbose))
			put_standing(o, &l, k, ss->s->rule.rate);
	}
	if (g->v.reason == RULE_THIN)
		decided = convict(g, ss, &l);
	/* A session that cannot be read might hold a divergence. */
	else if (g->v.reason == RULE_FEW && !l.bad)
		decided = acquit(g, ss, &l, buf_cstr(&workload));
	ledger_free(&l);
	buf_free(&workload);
	return decided;
}

/* ---- the verb ----------------------------------------------------------- */

static bool
take(struct reading *r, int id, const struct opt_state *o)
{
	switch (id) {
	case OPT_RESET:
		r->reset = o->arg;
		return true;
	case OPT_RATE:
		r->rule.rate = option_number(o, 0, 1, "in (0,1]");
		return true;
	case OPT_ALPHA:
		r->rule.alpha = option_number(o, 0, 0.05, "in (0,0.05]");
		return true;
	case OPT_RATIO:
		r->rule.ratio =
		    option_number(o, 0.999999, 1e6, "from 1 to 1e6");
		return true;
	case OPT_OPERAND:
		if (r->dir)
			cli_usage("one ledger at a time");
		r->dir = o->arg;
		return true;
	}
	return cli_common(&r->common, id, o, usage,
	    "Says what many sessions of gpureplay run say about each device.");
}

static void
parse(struct reading *r, int argc, char **argv)
{
	struct opt_state o;
	int id;
	opt_start(&o, options, argc, argv);
	while ((id = opt_next(&o)) != OPT_END)
		if (!take(r, id, &o))
			cli_usage("unexpected option %s", o.name);
	cli_common_done(&r->common, "standing");
	if (!r->dir)
		cli_usage("expected the directory of a ledger");
}

static int
reset(const struct reading *r)
{
	struct ledger_file f;
	struct err e;
	const struct ledger *l = &r->l;
	const char *id = NULL;
	for (size_t i = 0; i < l->ndevices; i++)
		if (!strcmp(l->device[i].id, r->reset) ||
		    !strcmp(l->device[i].entity, r->reset))
			id = l->device[i].id;
	if (!id)
		cli_die("%s: has no device \"%s\"", r->dir, r->reset);
	int x = ledger_begin(&f, r->dir, cli_now(&r->common), &e);
	if (!x) {
		rec_begin(f.o, "reset");
		rec_put(f.o, "id", id);
		rec_end(f.o);
	}
	int y = ledger_commit(&f, x ? NULL : &e);
	if (x || y)
		cli_die("%s: %s", r->dir, e.msg);
	return STATUS_CLEAN;
}

/* qsort has no room for the ledger: ids are sorted with their numbers. */
struct name {
	const char *id;
	size_t i;
};

static int
by_id(const void *a, const void *b)
{
	return strcmp(
	    ((const struct name *)a)->id, ((const struct name *)b)->id);
}

static void
sort_devices(struct reading *r)
{
	size_t n = r->l.ndevices;
	struct name *name = cli_alloc(n, sizeof *name);
	r->order = cli_alloc(n, sizeof *r->order);
	for (size_t i = 0; i < n; i++)
		name[i] = (struct name){ r->l.device[i].id, i };
	sort_array(name, n, sizeof *name, by_id);
	for (size_t i = 0; i < n; i++)
		r->order[i] = name[i].i;
	free(name);
}

static void
judge(const struct reading *r, struct verdict *v, struct buf *faulty)
{
	const struct ledger *l = &r->l;
	size_t healthy = 0, nfaulty = 0, diverged = 0;
	for (size_t k = 0; k < l->ndevices; k++) {
		size_t i = r->order[k];
		healthy += !strcmp(result_of(l, i, r->rule.rate), "healthy");
		diverged += l->standing[i].k > 0;
		if (!l->standing[i].faulty)
			continue;
		buf_puts(faulty, nfaulty++ ? "," : "");
		buf_puts(faulty, l->device[i].entity);
	}
	v->damage.bad = l->bad;
	v->result = nfaulty ? "faulty" : "unknown";
	v->status = nfaulty ? STATUS_FOUND : STATUS_UNKNOWN;
	if (nfaulty)
		return;
	v->reason = diverged ? REASON_THIN : REASON_FEW;
	v->need = diverged ? "more sessions with the devices that diverged"
			   : "more sessions";
	if (healthy == l->ndevices) {
		v->result = "healthy";
		v->status = STATUS_CLEAN;
		v->reason = v->need = NULL;
	}
}

static void
put_evidence(const struct reading *r, struct rec_out *o)
{
	for (size_t k = 0; k < r->l.ndevices; k++) {
		size_t i = r->order[k];
		rec_begin(o, "evidence");
		rec_time(o, "time", cli_now(&r->common));
		rec_put(o, "entity", r->l.device[i].entity);
		rec_put(o, "agent", "gpureplay");
		rec_put(o, "status", result_of(&r->l, i, r->rule.rate));
		rec_put(o, "source", r->dir);
		rec_end(o);
	}
}

static void
put_verdict(const struct reading *r, struct rec_out *o, struct verdict *v)
{
	struct buf faulty = { 0 };
	judge(r, v, &faulty);
	verdict_settle(v, &r->common.policy);
	struct str first = STR_NULL, rest = buf_view(&faulty);
	if (rest.len)
		str_cut(&rest, ',', &first);
	if (v->status != STATUS_NONE) {
		verdict_begin(o, v, first, NULL);
		if (rest.p)
			rec_str(o, "members", buf_view(&faulty));
		verdict_end(o, v);
	}
	buf_free(&faulty);
}

static int
tell(struct reading *r)
{
	struct verdict v = { 0 };
	struct cli_out out;
	struct rec_out *o;
	struct err e;
	cli_out_open(&out, r->common.output, false);
	if (rec_out_open(&o, out.fd, &r->common.how, &e))
		cli_die_err("output", &e);
	rec_begin(o, "head");
	rec_put(o, "of", "standing");
	rec_u64(o, "version", SCHEMA_VERSION);
	rec_put(o, "tool", "gpureplay " VERSION);
	rec_end(o);
	sort_devices(r);
	for (size_t k = 0; k < r->l.ndevices; k++)
		put_standing(o, &r->l, r->order[k], r->rule.rate);
	if (r->common.evidence)
		put_evidence(r, o);
	put_verdict(r, o, &v);
	v.status = cli_out_end(&out, o, v.result, v.status, 0);
	cli_prom(&r->common, NULL, v.result, v.reason, v.status, 0);
	free(r->order);
	return v.status;
}

int
verb_ledger(int argc, char **argv)
{
	struct reading r = { .rule = { 1e-3, 1e-2, 10 } };
	struct err e;
	parse(&r, argc, argv);
	if (ledger_read(&r.l, r.dir, &e) || ledger_judge(&r.l, &r.rule, &e))
		cli_die("%s: %s", r.dir, e.msg);
	if (!r.l.sessions)
		cli_die("%s: holds no session", r.dir);
	int status = r.reset ? reset(&r) : tell(&r);
	ledger_free(&r.l);
	return status;
}
