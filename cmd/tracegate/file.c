/*
 * A finished file: index it, put the index in order, learn what is usual from
 * all of it, then judge every slice against the others and copy what is kept.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate.h"
#include "sorter.h"
#include "spool.h"
#include "watch.h"

enum {
	KEPT_SHARE = 4, /* of --memory goes to the list of kept events */
	COPY_BLOCK = 256 << 10,
};

struct file {
	struct gate *g;
	struct sorter *sorter;
	struct spool spool;
	bool spooled;
	struct item *item;
	size_t n;
	uint64_t *ordinal; /* of the next slice, by key */
};

/* ---- index ----------------------------------------------------------- */

static int
add_event(struct file *f, const struct event *ev, struct err *e)
{
	struct gate *g = f->g;
	uint32_t known = g->keys.n;
	struct item it = { .ts = ev->ts,
		.dur = ev->dur,
		.off = ev->off,
		.len = (uint32_t)ev->raw.len,
		.ph = ev->ph };
	it.key = keys_of(&g->keys, ev);
	if (g->keys.n != known)
		gate_new_key(g, it.key);
	it.lane = lanes_of(&g->lanes, ev);
	it.cost = gate_cost(g, ev);
	it.cls = gate_class(g, ev, it.key);
	if (ev->name.len && phase_pair(ev->ph) == 'e')
		it.flags |= ITEM_NAMED;
	g->n.events++;
	g->n.bytes += ev->raw.len;
	gate_progress(g);
	if (ev->ph != 'M') {
		int64_t back = g->n.last - ev->ts;
		if (g->n.events > 1 && back > g->n.disorder)
			g->n.disorder = back;
		if (g->n.first > ev->ts || !g->n.last)
			g->n.first = ev->ts;
		if (event_end(ev) > g->n.last)
			g->n.last = event_end(ev);
	}
	if (f->spooled) {
		int r = spool_add(&f->spool, ev->raw, &it.off, e);
		if (r)
			return r;
	}
	return sorter_add(f->sorter, &it, e);
}

static int
read_all(struct file *f, struct err *e)
{
	struct gate *g = f->g;
	struct event ev = { 0 };
	for (;;) {
		int r = reader_next(&g->reader, &ev, e);
		if (r == READ_IDLE)
			continue;
		if (r == READ_END)
			return 0;
		if (r == SE_ETRUNC || r == SE_EFORMAT) {
			if (!g->n.events)
				return r;
			/* What came before the tear still counts. */
			g->reader.info.truncated = true;
			g->reader.info.torn = "the input is torn";
			cli_warn_err(g->set->input, e);
			return 0;
		}
		if (r != READ_EVENT)
			return r;
		r = add_event(f, &ev, e);
		if (r)
			return r;
	}
}

/* ---- pairs and histograms ----------------------------------------------- */

static void
learn(struct gate *g, const struct item *it)
{
	struct key *k = &g->keys.key[it->key];
	uint64_t nth = k->slices++;
	if (it->key == KEY_OVERFLOW)
		return;
	gate_shift(g, k, it->dur, it->ts);
	if (it->cost && keys_cost(&g->keys, it->key))
		cost_add(k->cost, it->cost, it->dur, 0);
	if (nth < KEY_WARM) {
		k->warm[nth] = it->dur;
		return;
	}
	if (!k->hist)
		k->hist = cli_alloc(1, sizeof *k->hist);
	hist_add(k->hist, it->dur, 0);
}

/* Starts of a run are not its rule, unless there is nothing else. */
static void
settle_keys(struct gate *g)
{
	for (uint32_t i = 1; i < g->keys.n; i++) {
		struct key *k = &g->keys.key[i];
		bool few = k->slices < KEY_WARM + DETECT_COLD;
		if (!k->slices)
			continue;
		if (!k->hist)
			k->hist = cli_alloc(1, sizeof *k->hist);
		for (uint64_t s = 0; few && s < k->slices && s < KEY_WARM; s++)
			hist_add(k->hist, k->warm[s], 0);
		hist_rest_make(k->hist, &k->rest);
		hist_quantiles(k->hist, &k->q);
		if (k->cost)
			cost_fit(k->cost, g->set->detect.floor);
	}
}

static void
nest(struct gate *g, struct lane *l, int64_t ts, int64_t end)
{
	int64_t over = lane_nest(l, ts, end);
	/* Stamps of whole microseconds may overlap by one unit. */
	if (over > 1000)
		g->n.nest++;
	else if (over)
		g->n.nest_unit++;
}

static void
end_pair(struct file *f, size_t i)
{
	struct gate *g = f->g;
	struct item *end = &f->item[i];
	struct stack *open = &g->lanes.lane[end->lane].open;
	uint32_t at = open->n;
	if (!open->n) {
		end->flags |= ITEM_ORPHAN;
		g->n.orphan++;
		return;
	}
	/* The innermost of the same name; else whatever is innermost. */
	while (at > 0 && (end->flags & ITEM_NAMED) &&
	       f->item[open->v[at - 1]].key != end->key)
		at--;
	g->n.mismatched += at != open->n && (end->flags & ITEM_NAMED);
	at = at ? at - 1 : open->n - 1;
	struct item *begin = &f->item[open->v[at]];
	stack_remove(open, at);
	begin->dur = end->dur = end->ts - begin->ts;
	begin->flags |= ITEM_PAIRED;
	end->flags |= ITEM_PAIRED;
	end->key = begin->key;
	end->cls = begin->cls;
	learn(g, begin);
}

static void
close_open(struct file *f)
{
	struct gate *g = f->g;
	for (uint32_t l = 0; l < g->lanes.n; l++) {
		struct stack *open = &g->lanes.lane[l].open;
		for (uint32_t k = 0; k < open->n; k++) {
			struct item *it = &f->item[open->v[k]];
			it->flags |= ITEM_OPEN;
			it->dur = g->n.last - it->ts;
			g->n.open++;
		}
		open->n = 0;
	}
}

static void
pair_all(struct file *f)
{
	struct gate *g = f->g;
	for (size_t i = 0; i < f->n; i++) {
		struct item *it = &f->item[i];
		if (it->ph == 'X') {
			struct lane *l = &g->lanes.lane[it->lane];
			nest(g, l, it->ts, it->ts + it->dur);
			learn(g, it);
			continue;
		}
		char half = phase_pair(it->ph);
		if (half == 'b')
			stack_push(&g->lanes.lane[it->lane].open, (int64_t)i);
		else if (half == 'e')
			end_pair(f, i);
	}
	close_open(f);
}

/* ---- judging --------------------------------------------------------- */

/* A slice of the sorted index: complete, or a begin whose end was found. */
static bool
is_slice(const struct item *it)
{
	return it->ph == 'X' ||
	       (phase_pair(it->ph) == 'b' && (it->flags & ITEM_PAIRED));
}

static void
judge(struct file *f, const struct item *it)
{
	struct gate *g = f->g;
	const struct key *k = &g->keys.key[it->key];
	uint64_t nth = f->ordinal[it->key]++;
	if (it->key == KEY_OVERFLOW) {
		g->n.untested++;
		return;
	}
	bool outside = k->slices >= KEY_WARM + DETECT_COLD && nth < KEY_WARM;
	struct quantiles q = k->q;
	if (!outside)
		hist_rest_without(&k->rest, hist_bucket(it->dur), &q);
	struct opening o = { .ts = it->ts,
		.dur = it->dur,
		.value = it->dur,
		.key = it->key,
		.lane = it->lane };
	o.why = (uint8_t)gate_judge(g, k, &q, it->cost, &o);
	if (o.why) {
		gate_open(g, &o);
	} else if (k->cls == CLASS_STEP && gate_audits(g, g->n.tested)) {
		o.why = WHY_AUDIT;
		g->n.audited++;
		gate_open(g, &o);
	}
}

/* A beat that is missing between two, or before the end of the trace. */
static void
beats(struct file *f, const struct item *it, bool learn_gaps)
{
	struct gate *g = f->g;
	struct key *k = &g->keys.key[it->key];
	if (!k->gap)
		return;
	int64_t from = k->last_end, gap = it->ts - from;
	bool first = k->ngap == 0;
	k->ngap++;
	k->last_end = it->ts + it->dur;
	if (first)
		return;
	if (learn_gaps) {
		hist_add(k->gap, gap, 0);
		return;
	}
	struct hist_rest rest;
	struct quantiles q;
	hist_rest_make(k->gap, &rest);
	hist_rest_without(&rest, hist_bucket(gap), &q);
	int64_t t = 3 * q.q999;
	if (t < q.q50 + g->set->detect.floor)
		t = q.q50 + g->set->detect.floor;
	if (q.n < 8 || gap <= t)
		return;
	struct opening o = { .ts = from,
		.dur = gap,
		.value = gap,
		.threshold = t,
		.key = it->key,
		.lane = it->lane,
		.why = WHY_GAP };
	g->n.gaps++;
	gate_open(g, &o);
}

static void
reset_gaps(struct gate *g)
{
	for (uint32_t i = 0; i < g->keys.n; i++)
		g->keys.key[i].ngap = 0;
}

/* Windows of a second would be all of a trace of a second: 1/50 of it. */
static void
narrow(struct gate *g)
{
	int64_t side = (g->n.last - g->n.first) / 50;
	if (g->narrow && side < WINDOW_SIDE)
		g->windows.rules.before = g->windows.rules.after = side;
}

static void
judge_all(struct file *f)
{
	struct gate *g = f->g;
	narrow(g);
	bool beating = g->set->nbeat > 0;
	for (size_t i = 0; beating && i < f->n; i++)
		if (phase_pair(f->item[i].ph) != 'e')
			beats(f, &f->item[i], true);
	reset_gaps(g);
	for (size_t i = 0; i < f->n; i++) {
		const struct item *it = &f->item[i];
		if (beating && phase_pair(it->ph) != 'e')
			beats(f, it, false);
		if (phase_pair(it->ph) != 'e')
			watch_event(g, it->key, it->lane, it->ts);
		if (!is_slice(it))
			continue;
		judge(f, it);
		watch_slice(g, it->key, it->lane, it->ts, it->dur);
	}
	watch_end(g);
}

/* ---- keeping --------------------------------------------------------- */

/* The stretch an item stands for: both halves of a pair mean the slice. */
static void
stretch(const struct item *it, int64_t *from, int64_t *end)
{
	bool ends = phase_pair(it->ph) == 'e';
	*from = ends ? it->ts - it->dur : it->ts;
	*end = ends ? it->ts : it->ts + it->dur;
}

/* A window has room for the event, and for the end of its slice. */
static bool
within_budget(struct gate *g, struct window *w, const struct item *it)
{
	uint64_t max = g->set->max_bytes;
	if (!max || phase_pair(it->ph) == 'e')
		return true;
	uint64_t need =
	    phase_pair(it->ph) == 'b' ? 2 * (uint64_t)it->len : it->len;
	if (g->n.detail_bytes + need <= max)
		return true;
	w->cut = true;
	return false;
}

static bool
keeps(struct file *f, struct item *it)
{
	struct gate *g = f->g;
	int64_t from, end;
	if (it->flags & ITEM_ORPHAN)
		return false;
	if (it->cls || g->set->all) {
		g->n.shallow++;
		g->n.shallow_bytes += it->len;
		return true;
	}
	stretch(it, &from, &end);
	struct window *w = windows_hit(&g->windows, from, end);
	if (!w)
		return false;
	if (!within_budget(g, w, it)) {
		g->n.over++;
		return false;
	}
	w->events++;
	w->bytes += it->len;
	g->n.detail++;
	g->n.detail_bytes += it->len;
	return true;
}

/*
 * An end is kept exactly when its begin is. Where the budget ends between the
 * two, the begin decides: its lane remembers.
 */
static bool
keeps_half(struct file *f, struct item *it)
{
	struct stack *open = &f->g->lanes.lane[it->lane].open;
	char half = phase_pair(it->ph);
	if (half == 'b') {
		bool keep = keeps(f, it);
		/* By the end of the slice, which the end itself knows too. */
		if ((it->flags & ITEM_PAIRED) && !keep)
			stack_push(open, it->ts);
		return keep;
	}
	for (uint32_t i = open->n; i > 0; i--)
		if (open->v[i - 1] == it->ts - it->dur &&
		    (it->flags & ITEM_PAIRED)) {
			stack_remove(open, i - 1);
			return false;
		}
	return keeps(f, it);
}

static bool
wants_trace(const struct gate *g)
{
	return g->out.fd >= 0 || g->split.dir;
}

static int
choose(struct file *f, struct sorter *kept, struct err *e)
{
	for (size_t i = 0; i < f->n; i++) {
		struct item *it = &f->item[i];
		bool keep =
		    phase_pair(it->ph) ? keeps_half(f, it) : keeps(f, it);
		if (!keep || !wants_trace(f->g))
			continue;
		/* In order of where it is; when it was goes elsewhere. */
		struct item k = *it;
		k.off = (uint64_t)it->ts;
		k.ts = (int64_t)it->off;
		int r = sorter_add(kept, &k, e);
		if (r)
			return r;
	}
	return 0;
}

/* ---- copying --------------------------------------------------------- */

/* A moving block over the input or the spool; offsets go up. */
struct copy {
	struct file *f;
	char *block;
	uint64_t off;
	size_t len;
};

static int
read_at(struct file *f, uint64_t off, void *to, size_t len, size_t *got,
    struct err *e)
{
	if (!f->spooled)
		return src_read_some(
		    f->g->reader.feed.src, off, to, len, got, e);
	*got = 0;
	while (*got < len) {
		ssize_t n = pread(f->spool.fd, (char *)to + *got, len - *got,
		    (off_t)(off + *got));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "cannot read a temporary file");
		if (n == 0)
			break;
		*got += (size_t)n;
	}
	return 0;
}

static void
split_item(struct gate *g, const struct item *it, struct str raw)
{
	struct item at = *it;
	int64_t from, end;
	if (it->ph == 'M') {
		split_name(&g->split, raw);
		return;
	}
	at.ts = (int64_t)it->off;
	stretch(&at, &from, &end);
	split_event(&g->split, &g->windows, from, end, raw);
}

/* Of an item of choose(): its ts is where it is. */
static int
copy_one(struct copy *c, const struct item *it, struct err *e)
{
	struct gate *g = c->f->g;
	uint64_t off = (uint64_t)it->ts;
	if (off < c->off || off + it->len > c->off + c->len) {
		int r = read_at(c->f, off, c->block,
		    COPY_BLOCK + SCAN_OBJECT_MAX, &c->len, e);
		if (r)
			return r;
		c->off = off;
		if (c->len < it->len)
			return err_set(
			    e, SE_ETRUNC, "the input shrank while it was read");
	}
	struct str raw = { c->block + (off - c->off), it->len };
	out_event(&g->out, raw);
	if (g->split.dir)
		split_item(g, it, raw);
	return g->out.failure.code;
}

static int
copy_all(struct file *f, struct sorter *kept, struct err *e)
{
	struct item *it;
	size_t n;
	struct gate *g = f->g;
	int r = sorter_finish(kept, &it, &n, e);
	if (r)
		return r;
	struct copy c = { .f = f };
	c.block = cli_alloc(COPY_BLOCK + SCAN_OBJECT_MAX, 1);
	out_head(&g->out, &g->reader.info);
	for (size_t i = 0; i < n && !r; i++)
		r = copy_one(&c, &it[i], e);
	free(c.block);
	if (r && g->out.failure.code)
		return err_set(e, r, "%s", g->out.failure.msg);
	return r;
}

static int
keep_all(struct file *f, struct err *e)
{
	struct gate *g = f->g;
	struct sorter *kept =
	    sorter_new(g->set->memory / KEPT_SHARE, cli_tmpdir());
	int r = choose(f, kept, e);
	if (!r && wants_trace(g))
		r = copy_all(f, kept, e);
	sorter_free(kept);
	if (!r)
		gate_marks(g);
	return r;
}

static int
run(struct file *f, struct err *e)
{
	struct gate *g = f->g;
	int r = read_all(f, e);
	if (!r && f->spooled)
		r = spool_flush(&f->spool, e);
	if (!r)
		r = sorter_finish(f->sorter, &f->item, &f->n, e);
	if (r)
		return r;
	pair_all(f);
	settle_keys(g);
	f->ordinal = cli_alloc(g->keys.cap, sizeof *f->ordinal);
	judge_all(f);
	free(f->ordinal);
	return keep_all(f, e);
}

int
gate_file(struct gate *g, struct err *e)
{
	struct file f = { .g = g, .spool.fd = -1 };
	f.sorter = sorter_new(
	    g->set->memory - g->set->memory / KEPT_SHARE, cli_tmpdir());
	f.spooled = wants_trace(g) && (reader_renders(&g->reader) ||
					  !src_is_seekable(g->reader.feed.src));
	int r = f.spooled ? spool_open(&f.spool, cli_tmpdir(), e) : 0;
	if (!r)
		r = run(&f, e);
	sorter_free(f.sorter);
	spool_close(&f.spool);
	return r;
}
