/*
 * tracegate baseline: what is usual in good runs, frozen for later ones. The
 * thresholds do not follow a slow drift, as those of a detector do that learns
 * from what it watches. See tracegate(1).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gate.h"
#include "num.h"
#include "rec.h"
#include "sort.h"
#include "verbs.h"

enum {
	OPT_B_FLOOR = OPT_OWN,
	OPT_B_PRESET,
	OPT_B_MEMORY,
};

// clang-format off
static const struct opt table[] = {
	{ 't', "type-in", "FORMAT", "force the input format" },
	{ OPT_B_PRESET, "preset", "LIST", "as in filter" },
	{ OPT_B_FLOOR, "floor", "TIME", "a stall adds this to the median (1ms)" },
	{ OPT_B_MEMORY, "memory", "SIZE", "for the index of a file (512M)" },
	OPT_COMMON,
	OPT_LAST,
};
// clang-format on

static const char *const usage[] = {
	"tracegate baseline [options] TRACE...",
	NULL,
};

static const char summary[] =
    "Freezes what is usual in these traces: a base record for every kind of\n"
    "step and slice, for tracegate filter --baseline.";

/* ---- reading one -------------------------------------------------------- */

static void
use_record(struct keys *k, const struct rec *r, struct err *e)
{
	int64_t ns;
	struct str text = rec_text_of(r, "threshold");
	if (num_time(text, &ns, e) || ns <= 0) {
		err_set(e, SE_EFORMAT, "%" PRIu64 ": expected a threshold",
		    r->line);
		return;
	}
	uint32_t id =
	    keys_named(k, rec_text_of(r, "kind"), rec_text_of(r, "name"));
	if (id == KEY_OVERFLOW)
		return;
	k->key[id].fixed = true;
	k->key[id].fixed_t = ns;
	text = rec_text_of(r, "median");
	if (text.len && !num_time(text, &ns, NULL))
		k->key[id].fixed_median = ns;
}

void
baseline_load(struct keys *k, const char *path)
{
	struct src *src;
	struct rec_in *in;
	struct err e = { 0 };
	struct rec *r = cli_alloc(1, sizeof *r);
	uint64_t n = 0;
	int got;
	if (src_open(&src, path, cli_tmpdir(), 0, &e) ||
	    rec_in_open(&in, src, &e))
		cli_die_err(path, &e);
	while ((got = rec_in_next(in, r, &e)) == 1) {
		if (!str_is(r->type, "base"))
			continue;
		n++;
		e.code = 0;
		use_record(k, r, &e);
		if (e.code)
			cli_die_err(path, &e);
	}
	/* Half a baseline would let half of the stalls through. */
	if (got < 0)
		cli_die_err(path, &e);
	if (rec_totals_state(rec_in_totals(in)) != REC_COMPLETE)
		cli_die("%s: the baseline is not whole", path);
	if (!n)
		cli_die("%s: no base record", path);
	rec_in_close(in);
	free(r);
}

/* ---- making one --------------------------------------------------------- */

static void
add_key(struct keys *all, const struct key *k)
{
	uint32_t id = keys_named(all, key_cat(k), key_name(k));
	if (id == KEY_OVERFLOW || !k->hist)
		return;
	struct key *to = &all->key[id];
	if (!to->hist)
		to->hist = cli_alloc(1, sizeof *to->hist);
	for (uint32_t b = 0; b < HIST_BUCKETS; b++)
		to->hist->cur[b] += k->hist->cur[b];
	to->hist->ncur += k->hist->ncur;
}

static bool
read_trace(struct keys *all, const struct gate_settings *s)
{
	struct gate g = { .set = s };
	struct err e = { 0 };
	int r = reader_open(
	    &g.reader, s->input, s->type, &s->fields, cli_tmpdir(), &e);
	keys_init(&g.keys, false, s->sync, s->nsync);
	lanes_init(&g.lanes);
	out_open(&g.out, -1, OUT_JSON, false);
	if (!r)
		r = gate_file(&g, &e);
	const struct trace_info *t = &g.reader.info;
	bool whole = !r && !t->bad && !t->lost && !t->truncated;
	if (r)
		cli_warn_err(s->input, &e);
	else if (!whole)
		cli_warn("%s: not whole: bad %" PRIu64 ", lost %" PRIu64 "%s",
		    s->input, t->bad, t->lost,
		    t->truncated ? ", truncated" : "");
	for (uint32_t i = 1; !r && i < g.keys.n; i++)
		add_key(all, &g.keys.key[i]);
	gate_free(&g);
	return whole;
}

static void
put_base(struct rec_out *o, const struct key *k, int64_t floor)
{
	struct quantiles q;
	struct buf name = { 0 }, cat = { 0 };
	hist_quantiles(k->hist, &q);
	int64_t t = q.q999 * 3 / 2;
	t = t > 2 * q.q50 ? t : 2 * q.q50;
	t = t > q.q50 + floor ? t : q.q50 + floor;
	buf_str(&name, key_name(k));
	buf_str(&cat, key_cat(k));
	rec_begin(o, "base");
	rec_str(o, "name", buf_view(&name));
	if (cat.len)
		rec_str(o, "kind", buf_view(&cat));
	rec_u64(o, "n", q.n);
	rec_time(o, "median", q.q50);
	rec_time(o, "p99", q.q99);
	rec_time(o, "p999", q.q999);
	rec_time(o, "threshold", t);
	rec_end(o);
	buf_free(&name);
	buf_free(&cat);
}

/* For qsort: the order of the output must not depend on that of the input. */
static int
by_text(const void *a, const void *b)
{
	const struct key *x = *(const struct key *const *)a;
	const struct key *y = *(const struct key *const *)b;
	int c = str_order(key_cat(x), key_cat(y));
	return c ? c : str_order(key_name(x), key_name(y));
}

static uint64_t
put_all(struct rec_out *o, struct keys *all, int64_t floor)
{
	const struct key **v = cli_alloc(all->n, sizeof *v);
	uint64_t n = 0;
	for (uint32_t i = 1; i < all->n; i++)
		if (all->key[i].hist && all->key[i].hist->ncur >= DETECT_COLD)
			v[n++] = &all->key[i];
	sort_array(v, n, sizeof(const struct key *), by_text);
	for (uint64_t i = 0; i < n; i++)
		put_base(o, v[i], floor);
	free(v);
	return n;
}

static int
run(struct gate_settings *s, char **path, int n)
{
	struct cli_out to;
	struct rec_out *o;
	struct err e;
	struct keys all;
	int skipped = 0, status = STATUS_CLEAN;
	keys_init(&all, false, s->sync, s->nsync);
	cli_out_open(&to, s->common.output, false);
	if (rec_out_open(&o, to.fd, &s->common.how, &e))
		cli_die("%s", e.msg);
	rec_begin(o, "head");
	rec_put(o, "of", "baseline");
	rec_u64(o, "version", SCHEMA_VERSION);
	rec_put(o, "tool", "tracegate " VERSION);
	rec_end(o);
	for (int i = 0; i < n; i++) {
		s->input = path[i];
		skipped += !read_trace(&all, s);
	}
	if (!put_all(o, &all, s->detect.floor)) {
		cli_warn("no kind of slice has %d samples", DETECT_COLD);
		status = STATUS_NONE;
	} else if (skipped) {
		status = STATUS_UNKNOWN;
	}
	status = cli_out_end(&to, o, NULL, status, (uint64_t)skipped);
	keys_free(&all);
	return status;
}

int
verb_baseline(int argc, char **argv)
{
	struct gate_settings s = { .detect.floor = 1000000,
		.memory = UINT64_C(512) << 20 };
	struct opt_state o;
	const char *preset = "all";
	char **path = cli_alloc((size_t)argc, sizeof *path);
	int id, n = 0;
	s.fields.unit = 1000;
	s.rules.before = s.rules.after = WINDOW_SIDE;
	opt_start(&o, table, argc, argv);
	while ((id = opt_next(&o)) != OPT_END) {
		if (id == OPT_OPERAND)
			path[n++] = (char *)(uintptr_t)o.arg;
		else if (id == 't')
			s.type = o.arg;
		else if (id == OPT_B_PRESET)
			preset = o.arg;
		else if (id == OPT_B_FLOOR)
			s.detect.floor = cli_duration(&o);
		else if (id == OPT_B_MEMORY)
			s.memory = cli_size(&o, 1 << 20, UINT64_MAX / 4);
		else
			cli_common(&s.common, id, &o, usage, summary);
	}
	cli_common_done(&s.common, "base");
	sync_preset(preset, &s.sync, &s.nsync);
	static char in[] = "-";
	if (!n) {
		cli_need_input();
		path[n++] = in;
	}
	int status = run(&s, path, n);
	free(path);
	free(s.sync);
	return status;
}
