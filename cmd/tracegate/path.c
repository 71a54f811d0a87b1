/*
 * tracegate path: the critical path of an interval, across threads, streams
 * and ranks. See tracegate(1).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blame.h"
#include "cli.h"
#include "glob.h"
#include "graph.h"
#include "model.h"
#include "num.h"
#include "ranks.h"
#include "reasons.h"
#include "sort.h"
#include "verbs.h"
#include "walk.h"

enum {
	OPT_P_INSIDE = OPT_OWN,
	OPT_P_NTH,
	OPT_P_LATE,
	OPT_P_COVERAGE,
	OPT_P_LONGEST,
	BLAME_SHOWN = 8,
	FINDINGS_SHOWN = 12,
};

// clang-format off
static const struct opt table[] = {
	{ 't', "type-in", "FORMAT", "force the input format" },
	{ OPT_P_INSIDE, "inside", "GLOB", "only within a slice of that name" },
	{ OPT_P_NTH, "nth", "N", "which of them, from 0 (the longest)" },
	{ OPT_P_LATE, "late", "TIME", "a rank is late beyond this (1ms)" },
	{ OPT_P_LONGEST, "longest", NULL, "the longest path, as HTA defines it" },
	{ OPT_P_COVERAGE, "coverage", "PERCENT", "below it, unknown (80)" },
	OPT_JUDGE,
	OPT_COMMON,
	OPT_LAST,
};
// clang-format on

static const char *const usage[] = {
	"tracegate path [options] TRACE...",
	NULL,
};

static const char summary[] =
    "Walks back from the end of an interval along what it waited for. One\n"
    "trace a rank: finds the rank that every collective waited for.";

struct settings {
	struct cli_common common;
	const char *type, *inside;
	char **path;
	uint32_t npaths;
	int64_t nth; /* -1: the longest */
	int64_t late;
	uint64_t coverage;
	bool longest;
};

/* ---- the interval ------------------------------------------------------- */

static bool
interval(const struct settings *s, const struct model *m, int64_t *from,
    int64_t *until)
{
	int64_t seen = 0, best = -1;
	*from = m->first;
	*until = m->last;
	if (!s->inside)
		return true;
	for (uint32_t i = 0; i < m->n; i++) {
		uint32_t k = m->order[i];
		const struct slice *it = &m->slice[k];
		if (!glob_match(str_c(s->inside), m->name[it->name]))
			continue;
		if (s->nth >= 0 ? seen == s->nth : it->end - it->ts > best) {
			best = it->end - it->ts;
			*from = it->ts;
			*until = it->end;
		}
		seen++;
	}
	return best >= 0;
}

/* ---- blame ----------------------------------------------------------- */

static struct blame *
add_up(const struct walk *w, const struct model *m, uint32_t *n)
{
	struct blame *b = cli_alloc(w->n, sizeof *b);
	for (uint32_t i = 0; i < w->n; i++) {
		const struct step *st = &w->step[i];
		b[i] = blame_of(m, st->slice, st->until - st->from);
		b[i].class = st->slice < 0 ? "between" : "slice";
	}
	*n = blame_add_up(b, w->n);
	return b;
}

static void
put_stop(struct rec_out *o, const struct model *m, const struct walk *w)
{
	int64_t wall = w->until - w->from, seen = 0;
	for (uint32_t i = 0; i < w->n; i++)
		seen += w->step[i].until - w->step[i].from;
	if (wall <= seen)
		return;
	rec_begin(o, "blame");
	rec_put(o, "class", "unknown");
	if (m->rank >= 0)
		rec_i64(o, "rank", m->rank);
	if (w->stop_slice >= 0)
		blame_text(o, "name", m->name[m->slice[w->stop_slice].name]);
	rec_time(o, "dur", wall - seen);
	rec_fmt(o, "share", "%.4f", (double)(wall - seen) / (double)wall);
	rec_u64(o, "n", 1);
	rec_put(
	    o, "note", w->stop ? walk_reason[w->stop] : "nothing runs there");
	rec_end(o);
}

/* ---- one rank ----------------------------------------------------------- */

struct outcome {
	double coverage; /* the lowest of all traces */
	const char *reason;
	uint32_t walked;
	bool blind; /* waits are missing from a longest path */
};

static void
put_blames(const struct settings *s, struct rec_out *o, const struct model *m,
    const struct blame *b, uint32_t n, int64_t wall)
{
	for (uint32_t i = 0; i < n; i++)
		if (i < BLAME_SHOWN || s->common.verbose)
			blame_put(o, m, &b[i], wall);
}

static void
count_walked(struct outcome *out, double coverage, const char *reason)
{
	if (!out->walked || coverage < out->coverage) {
		out->coverage = coverage;
		out->reason = reason;
	}
	out->walked++;
}

static void
walk_back(const struct settings *s, struct rec_out *o, const struct model *m,
    int64_t from, int64_t until, struct outcome *out)
{
	struct walk w;
	uint32_t n;
	walk_run(&w, m, from, until);
	struct blame *b = add_up(&w, m, &n);
	put_blames(s, o, m, b, n, until - from);
	put_stop(o, m, &w);
	count_walked(out, (double)w.covered / (double)(until - from),
	    w.stop ? walk_reason[w.stop] : NULL);
	free(b);
	walk_free(&w);
}

/* ---- the longest path --------------------------------------------------- */

static int64_t
in_ns(int64_t us)
{
	int64_t ns;
	if (__builtin_mul_overflow(us, 1000, &ns))
		return us < 0 ? INT64_MIN : INT64_MAX;
	return ns;
}

static int64_t
since_base(const struct graph *g, int64_t us)
{
	int64_t ns;
	return __builtin_add_overflow(in_ns(us), g->m->info.base_ns, &ns)
		   ? in_ns(us)
		   : ns;
}

static void
put_graph(struct rec_out *o, const struct graph *g, const struct longest *l)
{
	rec_begin(o, "graph");
	if (g->m->rank >= 0)
		rec_i64(o, "rank", g->m->rank);
	rec_time(o, "from", since_base(g, g->from));
	rec_time(o, "until", since_base(g, g->last));
	rec_u64(o, "nodes", l->linked);
	rec_u64(o, "edges", g->nedges);
	if (!l->circle) {
		rec_u64(o, "critical", l->n ? l->n + UINT64_C(1) : 0);
		rec_time(o, "dur", in_ns(l->us));
	} else {
		rec_put(o, "reason", REASON_CYCLE);
	}
	rec_end(o);
}

static void
put_longest(const struct settings *s, struct rec_out *o, const struct graph *g,
    const struct longest *l)
{
	struct blame *b = cli_alloc(l->n, sizeof *b);
	for (uint32_t i = 0; i < l->n; i++) {
		const struct edge *d = &g->edge[l->edge[i]];
		b[i] = blame_of(g->m, d->slice, in_ns(d->us));
		b[i].class = edge_name[d->kind];
	}
	put_blames(
	    s, o, g->m, b, blame_add_up(b, l->n), (g->last - g->from) * 1000);
	free(b);
}

/* Coverage is of all there is, not of the interval: kernels outlive it. */
static bool
longest_path(const struct settings *s, struct rec_out *o, const struct model *m,
    int64_t from, int64_t until, struct outcome *out)
{
	struct graph g;
	struct longest l;
	struct err e = { 0 };
	if (graph_make(&g, m, from, until, &e)) {
		cli_warn_err(m->path, &e);
		graph_free(&g);
		return false;
	}
	graph_longest(&g, &l);
	put_graph(o, &g, &l);
	put_longest(s, o, &g, &l);
	double wall = (double)(g.last - g.from);
	double vanished = (double)g.vanished * 100;
	out->blind |= vanished > wall * (double)(100 - s->coverage);
	count_walked(out, wall > 0 ? (double)l.us / wall : 0,
	    l.circle                          ? REASON_CYCLE
	    : m->sync_records || !m->nby_corr ? NULL
					      : REASON_NO_SYNC_EVENTS);
	longest_free(&l);
	graph_free(&g);
	return true;
}

/* False: the trace is of no use. */
static bool
walk_one(const struct settings *s, struct rec_out *o, const struct model *m,
    struct outcome *out)
{
	int64_t from, until;
	if (!interval(s, m, &from, &until) || until <= from) {
		cli_warn("%s: no slice matches --inside", m->path);
		return true;
	}
	if (s->longest)
		return longest_path(s, o, m, from, until, out);
	walk_back(s, o, m, from, until, out);
	return true;
}

/* ---- all of them -------------------------------------------------------- */

static void
put_clocks(
    struct rec_out *o, const struct ranks *r, const struct model *m, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		rec_begin(o, "clock");
		rec_i64(o, "rank", m[i].rank);
		if (r->clock[i].n >= OCC_MIN) {
			rec_time(o, "offset", r->clock[i].offset);
			rec_time(o, "uncertainty", r->clock[i].uncertainty);
		}
		rec_u64(o, "n", r->clock[i].n);
		if (r->clock[i].n < OCC_MIN)
			rec_put(o, "reason", REASON_SKEW);
		rec_end(o);
	}
}

static void
put_meeting(struct rec_out *o, const struct meeting *g, const struct model *m,
    int64_t late)
{
	const struct model *who = &m[g->latest];
	bool found = g->certain && g->late > late;
	rec_begin(o, "finding");
	rec_fmt(o, "entity", "rank:%" PRId64, who->rank);
	rec_put(o, "result",
	    found        ? "anomaly"
	    : g->certain ? "normal"
			 : "unknown");
	rec_put(o, "reason", g->certain ? REASON_LATE : REASON_TIE);
	blame_text(o, "name", g->name);
	rec_u64(o, "occ", g->occ);
	rec_time(o, "late", g->late);
	rec_end(o);
}

/* The rank behind the longest waits in all, with what it cost. */
static uint32_t
worst_rank(const struct ranks *r, uint32_t n, int64_t late, int64_t *sum)
{
	int64_t *by = cli_alloc(n, sizeof *by);
	uint32_t best = 0;
	for (uint32_t i = 0; i < r->nmeetings; i++)
		if (r->meeting[i].certain && r->meeting[i].late > late)
			by[r->meeting[i].latest] += r->meeting[i].late;
	for (uint32_t i = 1; i < n; i++)
		if (by[i] > by[best])
			best = i;
	*sum = by[best];
	free(by);
	return best;
}

static void
decide(const struct settings *s, struct verdict *v, const struct outcome *out,
    bool late, const struct ranks *r)
{
	v->result = "normal";
	v->status = STATUS_CLEAN;
	if (late) {
		v->result = "anomaly";
		v->status = STATUS_FOUND;
		v->reason = REASON_LATE_RANK;
		return;
	}
	if (out->coverage * 100 < (double)s->coverage || out->blind) {
		v->result = "unknown";
		v->status = STATUS_UNKNOWN;
		v->reason = out->reason ? out->reason : REASON_LOW_COVERAGE;
		v->need = "sync records (cuda_sync), or all ranks";
	} else if (s->npaths > 1 && !r->nmeetings) {
		v->result = "unknown";
		v->status = STATUS_UNKNOWN;
		v->reason = REASON_SKEW;
		v->need = "collectives that the ranks have in common";
	}
}

static void
add_damage(struct verdict *v, const struct model *m)
{
	v->damage.bad += m->info.bad + m->info.control;
	v->damage.lost += m->info.lost;
	v->damage.filtered = v->damage.filtered || m->info.truncated;
}

static void
specific(struct verdict *v)
{
	if (v->status != STATUS_UNKNOWN || !v->reason)
		return;
	if (!strcmp(v->reason, REASON_DAMAGED) && v->damage.lost)
		v->reason = REASON_DROPS;
	else if (!strcmp(v->reason, REASON_FILTERED))
		v->reason = REASON_TRUNCATED;
}

static int
report(const struct settings *s, struct rec_out *o, struct model *m, uint32_t n,
    const struct outcome *out, struct verdict *v)
{
	struct ranks r = { 0 };
	int64_t sum = 0;
	uint32_t who = 0;
	if (n > 1) {
		ranks_make(&r, m, n);
		put_clocks(o, &r, m, n);
		for (uint32_t i = 0; i < r.nmeetings &&
				     (s->common.verbose || i < FINDINGS_SHOWN);
		     i++)
			put_meeting(o, &r.meeting[i], m, s->late);
		who = worst_rank(&r, n, s->late, &sum);
	}
	decide(s, v, out, sum > 0, &r);
	for (uint32_t i = 0; i < n; i++)
		add_damage(v, &m[i]);
	verdict_settle(v, &s->common.policy);
	specific(v);
	if (v->status != STATUS_NONE) {
		char entity[32] = "";
		if (sum > 0)
			snprintf(entity, sizeof entity, "rank:%" PRId64,
			    m[who].rank);
		if (s->common.evidence && sum > 0) {
			rec_begin(o, "evidence");
			rec_time(o, "time",
			    s->common.now_given
				? s->common.now
				: m[who].last + m[who].info.base_ns);
			rec_put(o, "entity", entity);
			rec_put(o, "agent", "tracegate");
			rec_put(o, "status", "faulty");
			rec_put(o, "reason", REASON_LATE_RANK);
			rec_end(o);
		}
		verdict_begin(o, v, str_c(entity), NULL);
		rec_fmt(o, "coverage", "%.4f", out->coverage);
		verdict_end(o, v);
	}
	ranks_free(&r);
	return v->status;
}

static void
put_head(struct rec_out *o, const struct settings *s)
{
	rec_begin(o, "head");
	rec_put(o, "of", "tracegate");
	rec_u64(o, "version", SCHEMA_VERSION);
	rec_put(o, "tool", "tracegate " VERSION);
	rec_fmt(o, "inputs", "%" PRIu32, s->npaths);
	rec_end(o);
}

static int
run(const struct settings *s)
{
	struct cli_out to;
	struct rec_out *o;
	struct err e = { 0 };
	struct outcome out = { 0 };
	struct verdict v = { .status = STATUS_NONE };
	struct model *m = cli_alloc(s->npaths, sizeof *m);
	uint32_t n = 0;
	uint64_t skipped = 0;
	cli_out_open(&to, s->common.output, false);
	if (rec_out_open(&o, to.fd, &s->common.how, &e))
		cli_die("%s", e.msg);
	put_head(o, s);
	for (uint32_t i = 0; i < s->npaths; i++) {
		if (model_load(&m[n], s->path[i], s->type, NULL, &e)) {
			cli_warn_err(s->path[i], &e);
			model_free(&m[n]);
			skipped++;
			continue;
		}
		if (m[n].rank < 0 && s->npaths > 1)
			m[n].rank = i;
		skipped += !walk_one(s, o, &m[n], &out);
		n++;
	}
	v.damage.skipped = skipped;
	if (out.walked)
		report(s, o, m, n, &out, &v);
	v.status = cli_out_end(&to, o, v.result, v.status, skipped);
	bool none = v.status == STATUS_NONE;
	cli_prom(&s->common, NULL, none ? NULL : v.result, v.reason, v.status,
	    skipped);
	for (uint32_t i = 0; i < n; i++)
		model_free(&m[i]);
	free(m);
	return v.status;
}

static void
parse(struct settings *s, int argc, char **argv)
{
	struct opt_state o;
	int id;
	*s = (struct settings){ .nth = -1, .late = 1000000, .coverage = 80 };
	s->path = cli_alloc((size_t)argc, sizeof *s->path);
	opt_start(&o, table, argc, argv);
	while ((id = opt_next(&o)) != OPT_END) {
		switch (id) {
		case OPT_OPERAND:
			if (s->npaths == RANKS_MAX)
				cli_usage("more than %d traces", RANKS_MAX);
			s->path[s->npaths++] = (char *)(uintptr_t)o.arg;
			break;
		case 't':
			s->type = o.arg;
			break;
		case OPT_P_INSIDE:
			s->inside = o.arg;
			break;
		case OPT_P_NTH:
			s->nth = (int64_t)cli_u64(&o, 0, UINT32_MAX);
			break;
		case OPT_P_LATE:
			s->late = cli_duration(&o);
			break;
		case OPT_P_LONGEST:
			s->longest = true;
			break;
		case OPT_P_COVERAGE:
			s->coverage = cli_u64(&o, 0, 100);
			break;
		default:
			cli_common(&s->common, id, &o, usage, summary);
		}
	}
	cli_common_done(&s->common, "blame");
	if (!s->npaths) {
		cli_need_input();
		static char in[] = "-";
		s->path[s->npaths++] = in;
	}
}

int
verb_path(int argc, char **argv)
{
	struct settings s;
	parse(&s, argc, argv);
	int status = run(&s);
	free(s.path);
	return status;
}
