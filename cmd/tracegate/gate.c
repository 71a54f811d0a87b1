/* What filter, control and baseline share: see gate.h. */
#include "gate.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "glob.h"
#include "hash.h"
#include "num.h"
#include "reasons.h"
#include "watch.h"

enum {
	WINDOWS_SHOWN = 8, /* without -v: a screen */
	COUNTS_WIDTH = 64,
	PROGRESS_EVERY = 4096, /* events */
	SHIFT_HALF = 2048,     /* slices compared with as many before */
};

/* ---- while reading ------------------------------------------------------ */

void
gate_new_key(struct gate *g, uint32_t id)
{
	struct key *k = &g->keys.key[id];
	struct str name = key_name(k);
	for (size_t i = 0; i < g->set->nslo; i++)
		if (glob_match(str_c(g->set->slo[i].glob), name))
			k->slo = g->set->slo[i].ns;
	for (size_t i = 0; i < g->set->nbeat; i++)
		if (glob_match(str_c(g->set->beat[i]), name) && !k->gap)
			k->gap = cli_alloc(1, sizeof *k->gap);
	watch_key(g, id);
}

uint8_t
gate_class(const struct gate *g, const struct event *ev, uint32_t key)
{
	if (ev->ph == 'M' || (ev->ph == 'i' && str_is(ev->cat, "tracegate")))
		return CLASS_META;
	return g->keys.key[key].cls;
}

void
gate_progress(struct gate *g)
{
	if (g->n.events % PROGRESS_EVERY)
		return;
	progress_items(g->progress, PROGRESS_EVERY);
	progress_bytes(g->progress, g->reader.feed.off - g->told);
	g->told = g->reader.feed.off;
}

uint8_t
gate_cost(const struct gate *g, const struct event *ev)
{
	double cost;
	if (!g->set->cost || !ev->args.len)
		return 0;
	struct str text = scan_get(ev->args, g->set->cost);
	if (num_f64(text, &cost, NULL) || !(cost >= 0 && cost < 1e18))
		return 0;
	return cost_bin((int64_t)cost);
}

int
gate_judge(struct gate *g, const struct key *k, const struct quantiles *q,
    uint8_t cost, struct opening *o)
{
	const struct detect *d = &g->set->detect;
	if (!cost || !k->cost || k->fixed) {
		g->n.tested++;
		return detect_slice(d, k, q, o->dur, &o->threshold);
	}
	if (k->cost->fitted && k->cost->limit[cost])
		g->n.tested++;
	else
		g->n.uncosted++;
	return detect_cost(d, k, cost, o->dur, &o->threshold);
}

/* The same choice for the same seed, whatever happened before. */
bool
gate_audits(const struct gate *g, uint64_t nth)
{
	if (!g->set->audit_ppm)
		return false;
	uint64_t h = hash_table(&nth, sizeof nth, g->set->seed);
	return h % 1000000 < g->set->audit_ppm;
}

static int64_t
absolute(const struct gate *g, int64_t ns)
{
	int64_t v;
	return __builtin_add_overflow(ns, g->reader.info.base_ns, &v) ? ns : v;
}

static void
put_name(struct rec_out *o, const char *key, struct str content)
{
	struct buf b = { 0 };
	scan_plain(&b, content);
	rec_str(o, key, buf_view(&b));
	buf_free(&b);
}

static void
put_ratio(struct rec_out *o, const struct opening *w)
{
	if (w->threshold > 0)
		rec_fmt(o, "ratio", "%.3g",
		    (double)w->value / (double)w->threshold);
}

static void
say_opening(struct gate *g, const struct opening *o)
{
	const struct key *k = &g->keys.key[o->key];
	const struct lane *l = &g->lanes.lane[o->lane];
	rec_begin(g->rec, "open");
	rec_time(g->rec, "at", absolute(g, o->ts));
	rec_time(g->rec, "dur", o->dur);
	rec_put(g->rec, "reason", why_name[o->why]);
	put_name(g->rec, "name", key_name(k));
	if (k->cat_len)
		put_name(g->rec, "kind", key_cat(k));
	if (l->pid.len)
		put_name(g->rec, "proc", l->pid);
	if (l->tid.len)
		put_name(g->rec, "thread", l->tid);
	rec_time(g->rec, "threshold", o->threshold);
	put_ratio(g->rec, o);
	rec_end(g->rec);
}

static void
say_shift(struct gate *g, const struct key *k, int64_t at,
    const struct quantiles *old, const struct quantiles *now, bool tail)
{
	rec_begin(g->rec, "shift");
	rec_str(g->rec, "name", key_name(k));
	if (k->cat_len)
		rec_str(g->rec, "kind", key_cat(k));
	rec_time(g->rec, "at", at + g->reader.info.base_ns);
	rec_time(g->rec, "from", tail ? old->q999 : old->q50);
	rec_time(g->rec, "until", tail ? now->q999 : now->q50);
	rec_put(g->rec, "reason", tail ? REASON_TAIL : REASON_MEDIAN);
	rec_end(g->rec);
}

void
gate_shift(struct gate *g, struct key *k, int64_t dur, int64_t at)
{
	if (k->cls != CLASS_STEP && k->cls != CLASS_SYNC)
		return;
	if (!k->roll)
		k->roll = cli_alloc(1, sizeof *k->roll);
	struct hist *h = k->roll;
	if (h->ncur + 1 == SHIFT_HALF && h->nprev) {
		struct quantiles old, now;
		struct hist *half = cli_alloc(1, sizeof *half);
		memcpy(half->cur, h->prev, sizeof half->cur);
		half->ncur = h->nprev;
		hist_quantiles(half, &old);
		memcpy(half->cur, h->cur, sizeof half->cur);
		half->ncur = h->ncur;
		hist_quantiles(half, &now);
		free(half);
		bool median =
		    now.q50 > old.q50 * 3 / 2 || old.q50 > now.q50 * 3 / 2;
		bool tail = now.q999 > old.q999 * 2 || old.q999 > now.q999 * 2;
		if (median || tail) {
			g->n.shifts++;
			say_shift(g, k, at, &old, &now, !median);
		}
	}
	hist_add(h, dur, SHIFT_HALF);
}

static bool
worse(const struct opening *a, const struct opening *b)
{
	return opening_percent(a) > opening_percent(b);
}

/* Whether a duration is too far for its kind is known at the end. */
static void
note_far(struct gate *g, const struct opening *o)
{
	struct key *k = &g->keys.key[o->key];
	if (o->why == WHY_RATE)
		return;
	if (o->why == WHY_GAP || o->why == WHY_COST)
		g->n.huge++;
	else if (o->value > k->far)
		k->far = o->value;
}

struct window *
gate_open(struct gate *g, const struct opening *o)
{
	if (o->why == WHY_AUDIT)
		return windows_open(&g->windows, o);
	g->n.openings++;
	g->keys.key[o->key].opened++;
	/* Slices around each other are slow together: one episode. */
	if (g->n.openings == 1 || o->ts >= g->episode_end)
		g->n.episodes++;
	if (o->ts + o->dur > g->episode_end || g->n.openings == 1)
		g->episode_end = o->ts + o->dur;
	if (opening_percent(o) >= DETECT_HUGE * 100)
		note_far(g, o);
	if (o->why == WHY_SLO || o->why == WHY_BASELINE)
		g->n.certain++;
	if (g->n.openings == 1 || worse(o, &g->worst))
		g->worst = *o;
	if (g->set->common.verbose)
		say_opening(g, o);
	struct window *w = windows_open(&g->windows, o);
	if (w && g->limited && w->from < g->have)
		w->history_short = true;
	if (w && g->on_open)
		g->on_open(g->user, o);
	return w;
}

void
gate_marks(struct gate *g)
{
	if (g->out.fd < 0)
		return;
	out_head(&g->out, &g->reader.info);
	for (size_t i = 0; i < g->windows.n; i++) {
		const struct window *w = &g->windows.w[i];
		char args[COUNTS_WIDTH];
		snprintf(args, sizeof args, "\"window\":%zu,\"reason\":\"%s\"",
		    i + 1, why_name[w->worst.why]);
		out_mark(&g->out, w->from, "window opens", args);
		out_mark(&g->out, w->worst.ts, "trigger", args);
		out_mark(&g->out, w->until, "window closes", args);
	}
}

/* ---- records --------------------------------------------------------- */

static void
put_count(struct gate *g, const char *class, uint64_t n, const char *note)
{
	if (!n)
		return;
	rec_begin(g->rec, "count");
	rec_put(g->rec, "class", class);
	rec_u64(g->rec, "n", n);
	if (note)
		rec_put(g->rec, "note", note);
	rec_end(g->rec);
}

static void
put_window(struct gate *g, size_t i)
{
	const struct window *w = &g->windows.w[i];
	const struct opening *o = &w->worst;
	const char *note = w->history_short ? "history-short"
			   : w->cut         ? "cut by --max-bytes"
					    : NULL;
	rec_begin(g->rec, "window");
	rec_fmt(g->rec, "entity", "window:%zu", i + 1);
	rec_time(g->rec, "from", absolute(g, w->from));
	rec_time(g->rec, "until", absolute(g, w->until));
	rec_put(g->rec, "reason", why_name[o->why]);
	put_name(g->rec, "name", key_name(&g->keys.key[o->key]));
	rec_time(g->rec, "at", absolute(g, o->ts));
	rec_time(g->rec, "dur", o->dur);
	if (o->why != WHY_AUDIT) {
		rec_time(g->rec, "threshold", o->threshold);
		put_ratio(g->rec, o);
	}
	rec_u64(g->rec, "openings", w->openings);
	rec_u64(g->rec, "events", w->events);
	rec_u64(g->rec, "bytes", w->bytes);
	char file[32];
	if (g->split.dir)
		rec_str(g->rec, "file", split_file(&g->split, w->id, file));
	if (note)
		rec_put(g->rec, "note", note);
	rec_end(g->rec);
}

/* The worst ones, or all of them; in order of time. */
static void
put_windows(struct gate *g)
{
	const struct windows *ws = &g->windows;
	uint64_t hidden = 0;
	for (size_t i = 0; i < ws->n; i++) {
		size_t rank = 0;
		if (ws->w[i].audit && !g->set->common.verbose)
			continue;
		for (size_t k = 0; k < ws->n && !g->set->common.verbose &&
				   rank < WINDOWS_SHOWN;
		     k++)
			rank += !ws->w[k].audit &&
				(worse(&ws->w[k].worst, &ws->w[i].worst) ||
				    (k < i && !worse(&ws->w[i].worst,
						  &ws->w[k].worst)));
		if (rank < WINDOWS_SHOWN)
			put_window(g, i);
		else
			hidden++;
	}
	put_count(g, "windows-not-shown", hidden, "-v shows all");
}

static double
kept_share(const struct gate *g)
{
	const struct counts *n = &g->n;
	return n->bytes ? (double)(n->shallow_bytes + n->detail_bytes) /
			      (double)n->bytes
			: 0;
}

static void
put_counts(struct gate *g)
{
	const struct counts *n = &g->n;
	const struct trace_info *t = &g->reader.info;
	struct rec_out *o = g->rec;
	rec_begin(o, "count");
	rec_put(o, "class", "shallow");
	rec_u64(o, "n", n->shallow);
	rec_fmt(o, "note", "%" PRIu64 " bytes", n->shallow_bytes);
	rec_end(o);
	rec_begin(o, "count");
	rec_put(o, "class", "detail");
	rec_u64(o, "n", n->detail);
	rec_fmt(o, "note", "%" PRIu64 " bytes", n->detail_bytes);
	rec_end(o);
	put_count(g, "tested", n->tested, NULL);
	put_count(g, "suppressed", g->windows.suppressed,
	    "openings without a window: cool-down or rate");
	put_count(g, "over-budget", n->over, "events: --max-bytes");
	put_count(g, "over-split", g->split.over + g->split.nameless,
	    "events that had no room in the files of --split");
	put_count(g, "split-pairs", n->unsplit,
	    "halves of pairs in a stream: not in the files of --split");
	put_count(g, "audit", n->audited, "normal steps kept at random");
	put_count(
	    g, "untested", n->untested, "slices of names beyond the table");
	put_count(
	    g, "uncosted", n->uncosted, "slices of a cost that few others had");
	put_count(g, "late", n->late, "older than --lateness allows");
	put_count(g, "reordered", n->reordered, NULL);
	put_count(g, "forced", n->forced, "released early: --ring is full");
	put_count(g, "lost", t->lost, "the producer says so");
	put_count(g, "bad", t->bad + t->control, t->first_bad.msg);
	put_count(g, "truncated", t->truncated, t->torn);
	put_count(g, "open-slice", n->open + t->open, "begun and never ended");
	put_count(g, "orphan-end", n->orphan, "left out: nothing to end");
	put_count(g, "mismatched-end", n->mismatched,
	    "names of begin and end differ");
	put_count(
	    g, "nest", n->nest, "slices that outlive the one around them");
	put_count(g, "nest-unit", n->nest_unit,
	    "that do so by a microsecond or less");
	put_count(g, "repaired", g->out.repaired,
	    "not JSON as they were: written again");
	put_count(g, "below-ns", t->cut_ns, "stamps cut to nanoseconds");
	put_count(g, "interrupted", n->interrupted, NULL);
	put_count(g, "tracer-failed", n->control_failed, NULL);
	put_count(g, "tracer-busy", n->control_ignored,
	    "openings while it was on or settling");
}

static void
put_head(struct gate *g)
{
	rec_begin(g->rec, "head");
	rec_put(g->rec, "of", "tracegate");
	rec_u64(g->rec, "version", SCHEMA_VERSION);
	rec_put(g->rec, "tool", "tracegate " VERSION);
	rec_put(g->rec, "source", g->reader.format->name);
	rec_str(g->rec, "inputs", str_c(g->set->input));
	if (g->reader.info.rank >= 0)
		rec_i64(g->rec, "rank", g->reader.info.rank);
	rec_end(g->rec);
}

/* ---- the verdict -------------------------------------------------------- */

/* Keys with enough samples, or with a threshold from elsewhere. */
static bool
any_warm(const struct gate *g)
{
	for (uint32_t i = 1; i < g->keys.n; i++) {
		const struct key *k = &g->keys.key[i];
		if (k->slices &&
		    (k->slices >= DETECT_COLD || k->fixed || k->slo))
			return true;
	}
	return false;
}

static void
decide(const struct gate *g, struct verdict *v)
{
	const struct counts *n = &g->n;
	*v = (struct verdict){ .result = "anomaly", .status = STATUS_FOUND };
	if (n->certain) {
		v->reason =
		    g->worst.why == WHY_SLO ? REASON_SLO : REASON_BASELINE;
	} else if (n->huge || detect_far(&g->keys)) {
		v->reason = REASON_FAR;
	} else if (n->gaps) {
		v->reason = REASON_GAP;
	} else if (n->odd_paces) {
		v->reason = REASON_RATE;
	} else if (detect_many(&g->set->detect, &g->keys)) {
		v->reason = REASON_MANY;
	} else if (!any_warm(g)) {
		v->result = "unknown";
		v->status = STATUS_UNKNOWN;
		v->reason = REASON_COLD;
		v->need = "64 slices of one kind, --slo, or --baseline";
	} else {
		v->result = "normal";
		v->status = STATUS_CLEAN;
	}
}

/* Over one in a hundred sync points without a key: nothing is known. */
static void
check_untested(const struct gate *g, struct verdict *v)
{
	uint64_t sync = g->keys.overflow_sync;
	bool names = sync * 100 > g->n.shallow + sync + 1;
	bool costs = g->n.uncosted * 4 > g->n.tested + g->n.uncosted;
	if (v->status != STATUS_CLEAN || (!names && !costs))
		return;
	v->result = "unknown";
	v->status = STATUS_UNKNOWN;
	v->reason = REASON_UNTESTED;
	v->need = names ? "fewer kinds of sync points: --sync"
			: "more slices of each cost, or no --cost";
}

static void
weigh_damage(const struct gate *g, struct verdict *v)
{
	const struct trace_info *t = &g->reader.info;
	v->damage.bad = t->bad + t->control;
	v->damage.lost = t->lost + g->n.late;
	v->damage.filtered = t->truncated || g->n.interrupted;
	verdict_settle(v, &g->set->common.policy);
	if (!v->reason || v->result[0] != 'u')
		return;
	/* The words of this command for what settle found. */
	if (!strcmp(v->reason, REASON_DAMAGED) && g->n.late) {
		v->reason = REASON_LATE;
		v->need = "a larger --lateness, or the finished file";
	} else if (!strcmp(v->reason, REASON_DAMAGED) && t->lost) {
		v->reason = REASON_DROPS;
		v->need = "a trace without lost records, or --allow-bad N";
	} else if (!strcmp(v->reason, REASON_FILTERED)) {
		v->reason =
		    g->n.interrupted ? REASON_INTERRUPTED : REASON_TRUNCATED;
		v->need = "the whole trace, or --partial";
	}
}

static void
put_evidence(struct gate *g, const struct verdict *v)
{
	static const char *const status[] = { "healthy", "faulty", "unknown",
		"unknown" };
	if (!g->set->common.evidence)
		return;
	rec_begin(g->rec, "evidence");
	rec_time(g->rec, "time",
	    g->set->common.now_given ? g->set->common.now
				     : absolute(g, g->n.last));
	if (g->reader.info.rank >= 0)
		rec_fmt(g->rec, "entity", "rank:%" PRId64, g->reader.info.rank);
	else
		rec_put(g->rec, "entity", "window:all");
	rec_put(g->rec, "agent", "tracegate");
	rec_put(g->rec, "status", status[v->status]);
	if (v->status == STATUS_FOUND) {
		rec_time(g->rec, "onset", absolute(g, g->worst.ts));
		rec_time(
		    g->rec, "until", absolute(g, g->worst.ts + g->worst.dur));
	}
	if (v->reason)
		rec_put(g->rec, "reason", v->reason);
	rec_str(g->rec, "source", str_c(g->set->input));
	rec_end(g->rec);
}

/* Without the sample of normal steps. */
static uint64_t
real_windows(const struct windows *ws)
{
	uint64_t n = 0;
	for (size_t i = 0; i < ws->n; i++)
		n += !ws->w[i].audit;
	return n;
}

static void
put_verdict(struct gate *g, const struct verdict *v, double expected)
{
	char bound[COUNTS_WIDTH];
	const struct counts *n = &g->n;
	/* Upper 95 % limit of a Poisson count, rounded up; 3/n for none. */
	double k = (double)n->episodes;
	snprintf(bound, sizeof bound, "stalls<%.2g",
	    n->tested ? (k + 3 + 2 * sqrt(k)) / (double)n->tested : 1.0);
	bool clean = v->status == STATUS_CLEAN;
	verdict_begin(g->rec, v, STR_NULL, clean ? bound : NULL);
	uint32_t key = g->worst.key;
	if (v->reason && !strcmp(v->reason, REASON_MANY))
		key = detect_many(&g->set->detect, &g->keys);
	else if (v->reason && !strcmp(v->reason, REASON_FAR) &&
		 !g->keys.key[key].far && !n->huge)
		key = detect_far(&g->keys);
	if (v->status == STATUS_FOUND)
		put_name(g->rec, "name", key_name(&g->keys.key[key]));
	rec_u64(g->rec, "openings", n->episodes);
	rec_fmt(g->rec, "expected", "%.2g", expected);
	rec_u64(g->rec, "windows", real_windows(&g->windows));
	rec_u64(g->rec, "events", n->events);
	rec_u64(g->rec, "bytes", n->bytes);
	rec_fmt(g->rec, "kept", "%.4g", kept_share(g));
	verdict_end(g->rec, v);
}

static const char *
nothing(const struct gate *g)
{
	if (!g->n.events)
		return "no events";
	if (!g->n.tested && !g->n.openings && !g->n.untested && !g->n.uncosted)
		return "no slice with a duration: nothing to test";
	return NULL;
}

/* What is slow all the time is seen against the baseline only. */
static void
compare_baseline(struct gate *g)
{
	for (uint32_t i = 1; i < g->keys.n; i++) {
		struct key *k = &g->keys.key[i];
		if (!k->fixed_median || k->slices < DETECT_COLD ||
		    k->q.q50 <= k->fixed_median / 2 * 3)
			continue;
		struct quantiles old = { .q50 = k->fixed_median };
		say_shift(g, k, g->n.first, &old, &k->q, false);
		struct opening o = { .ts = g->n.first,
			.value = k->q.q50,
			.threshold = k->fixed_median / 2 * 3,
			.key = i,
			.why = WHY_BASELINE };
		if (!g->n.certain++)
			g->worst = o;
	}
}

int
gate_report(struct gate *g)
{
	struct verdict v;
	double expected = detect_expected(&g->set->detect, &g->keys);
	const char *none = nothing(g);
	put_head(g);
	compare_baseline(g);
	if (!none || g->n.events) {
		put_windows(g);
		put_counts(g);
	}
	decide(g, &v);
	check_untested(g, &v);
	weigh_damage(g, &v);
	if (none) {
		v = (struct verdict){ .status = STATUS_NONE };
		cli_warn("%s: %s", g->set->input, none);
	}
	if (v.status != STATUS_NONE) {
		put_evidence(g, &v);
		put_verdict(g, &v, expected);
	}
	const struct cli_common *c = &g->set->common;
	cli_prom(c, NULL, v.status == STATUS_NONE ? NULL : v.result, v.reason,
	    v.status, v.damage.bad);
	struct err e;
	if (rec_out_finish(g->rec, v.status == STATUS_NONE ? NULL : v.result,
		v.status, v.damage.bad, &e)) {
		cli_warn("records: %s", e.msg);
		return STATUS_NONE;
	}
	return v.status;
}

void
gate_free(struct gate *g)
{
	reader_close(&g->reader);
	keys_free(&g->keys);
	lanes_free(&g->lanes);
	windows_free(&g->windows);
	split_free(&g->split);
}
