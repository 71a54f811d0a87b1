/*
 * tracegate path: the critical path of an interval, across threads, streams
 * and ranks. See tracegate(1).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "glob.h"
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
	BLAME_SHOWN = 8,
	FINDINGS_SHOWN = 12,
};

// clang-format off
static const struct opt table[] = {
	{ 't', "type-in", "FORMAT", "force the input format" },
	{ OPT_P_INSIDE, "inside", "GLOB", "only within a slice of that name" },
	{ OPT_P_NTH, "nth", "N", "which of them, from 0 (the longest)" },
	{ OPT_P_LATE, "late", "TIME", "a rank is late beyond this (1ms)" },
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

struct blame {
	uint32_t lane, name;
	int64_t dur;
	uint64_t n;
	bool between; /* no slice: time that the trace does not explain */
};

static int
by_place(const void *a, const void *b)
{
	const struct blame *x = a, *y = b;
	if (x->between != y->between)
		return x->between ? 1 : -1;
	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static int
by_share(const void *a, const void *b)
{
	const struct blame *x = a, *y = b;
	if (x->dur != y->dur)
		return x->dur > y->dur ? -1 : 1;
	return by_place(a, b);
}

static struct blame *
add_up(const struct walk *w, const struct model *m, uint32_t *n)
{
	struct blame *b = cli_alloc(w->n, sizeof *b);
	for (uint32_t i = 0; i < w->n; i++) {
		const struct step *st = &w->step[i];
		bool none = st->slice < 0;
		b[i] = (struct blame){ .between = none,
			.lane = none ? 0 : m->slice[st->slice].lane,
			.name = none ? 0 : m->slice[st->slice].name,
			.dur = st->until - st->from,
			.n = 1 };
	}
	*n = 0;
	if (!w->n)
		return b;
	sort_array(b, w->n, sizeof *b, by_place);
	for (uint32_t i = 1; i < w->n; i++) {
		if (by_place(&b[*n], &b[i])) {
			b[++*n] = b[i];
			continue;
		}
		b[*n].dur += b[i].dur;
		b[*n].n++;
	}
	++*n;
	sort_array(b, *n, sizeof *b, by_share);
	return b;
}

static void
put_json(struct rec_out *o, const char *key, struct str content)
{
	struct buf b = { 0 };
	scan_plain(&b, content);
	rec_str(o, key, buf_view(&b));
	buf_free(&b);
}

static void
put_rank(struct rec_out *o, const char *key, const struct model *m)
{
	rec_fmt(
	    o, key, "%s%" PRId64, strcmp(key, "rank") ? "rank:" : "", m->rank);
}

static void
put_blame(struct rec_out *o, const struct model *m, const struct blame *b,
    int64_t wall)
{
	rec_begin(o, "blame");
	rec_put(o, "class", b->between ? "between" : "slice");
	if (m->rank >= 0)
		put_rank(o, "rank", m);
	if (!b->between) {
		put_json(o, "proc", m->lanes.lane[b->lane].pid);
		put_json(o, "thread", m->lanes.lane[b->lane].tid);
		put_json(o, "name", m->name[b->name]);
	}
	rec_time(o, "dur", b->dur);
	rec_fmt(o, "share", "%.4f", (double)b->dur / (double)wall);
	rec_u64(o, "n", b->n);
	rec_end(o);
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
		put_rank(o, "rank", m);
	if (w->stop_slice >= 0)
		put_json(o, "name", m->name[m->slice[w->stop_slice].name]);
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
};

static void
walk_one(const struct settings *s, struct rec_out *o, const struct model *m,
    struct outcome *out)
{
	int64_t from, until;
	struct walk w;
	uint32_t n;
	if (!interval(s, m, &from, &until) || until <= from) {
		cli_warn("%s: no slice matches --inside", m->path);
		return;
	}
	walk_run(&w, m, from, until);
	struct blame *b = add_up(&w, m, &n);
	double coverage = (double)w.covered / (double)(until - from);
	uint32_t shown = s->common.verbose || n < BLAME_SHOWN ? n : BLAME_SHOWN;
	for (uint32_t i = 0; i < shown; i++)
		put_blame(o, m, &b[i], until - from);
	put_stop(o, m, &w);
	if (!out->walked || coverage < out->coverage) {
		out->coverage = coverage;
		out->reason = w.stop ? walk_reason[w.stop] : NULL;
	}
	out->walked++;
	free(b);
	walk_free(&w);
}

/* ---- all of them -------------------------------------------------------- */

static void
put_clocks(
    struct rec_out *o, const struct ranks *r, const struct model *m, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		rec_begin(o, "clock");
		put_rank(o, "rank", &m[i]);
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
	put_rank(o, "entity", who);
	rec_put(o, "result",
	    found        ? "anomaly"
	    : g->certain ? "normal"
			 : "unknown");
	rec_put(o, "reason", g->certain ? REASON_LATE : REASON_TIE);
	put_json(o, "name", g->name);
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
	if (out->coverage * 100 < (double)s->coverage) {
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
		walk_one(s, o, &m[n], &out);
		n++;
	}
	v.damage.skipped = skipped;
	if (out.walked)
		report(s, o, m, n, &out, &v);
	bool none = v.status == STATUS_NONE;
	cli_prom(&s->common, NULL, none ? NULL : v.result, v.reason, v.status,
	    skipped);
	if (rec_out_finish(o, none ? NULL : v.result, v.status, skipped, &e)) {
		cli_warn("%s", e.msg);
		v.status = STATUS_NONE;
	}
	rec_out_close(o);
	if (cli_out_close(&to, v.status != STATUS_NONE))
		v.status = STATUS_NONE;
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
