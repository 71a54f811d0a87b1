/* What fpdiff prints. */
#include "fpdiff.h"

#include <inttypes.h>
#include <math.h>

#include "num.h"
#include "page.h"

enum { SHAPE_MAX = 64 };

const char *const diff_class_name[DIFF_CLASSES] = {
	[DIFF_DIFFERENT] = "different",
	[DIFF_FIRST] = "first",
	[DIFF_CONSEQUENCE] = "consequence",
	[DIFF_ISOLATED] = "isolated",
	[DIFF_UNMATCHED] = "unmatched",
	[DIFF_CONTAINER] = "container",
	[DIFF_INCOMPARABLE] = "incomparable",
	[DIFF_MASKED] = "masked",
	[DIFF_UNSTABLE] = "unstable",
	[DIFF_TAINTED] = "tainted",
	[DIFF_SEEN] = "seen",
};

/* Words that may be read as harmless. */
static const char *const class_note[DIFF_CLASSES] = {
	[DIFF_ISOLATED] = "different like the others, between two that match",
	[DIFF_SEEN] = "as it came; the verdict may align it otherwise",
};

static const struct fp *
open_entry(struct report *r, int which, const struct entry *e)
{
	if (!e)
		return NULL;
	r->undone[which].len = 0;
	entry_parse(e->raw, &r->fp[which], &r->rec[which],
	    buf_room(&r->undone[which], e->raw.len + 1));
	return &r->fp[which];
}

void
report_free(struct report *r)
{
	buf_free(&r->undone[0]);
	buf_free(&r->undone[1]);
	buf_free(&r->text);
}

static void
put_head(struct report *r, struct rec_out *o, bool exec)
{
	rec_begin(o, "head");
	rec_put(o, "of", "diff");
	rec_u64(o, "version", SCHEMA_VERSION);
	rec_put(o, "tool", "fpdiff");
	rec_put(o, "order", exec ? "exec" : "set");
	rec_put(o, "a", r->s->operand[0]);
	rec_put(o, "b", r->s->operand[1]);
	if (exec)
		rec_u64(o, "window", r->s->window);
	rec_end(o);
}

void
report_head(struct report *r, bool exec)
{
	put_head(r, r->out, exec);
	if (r->page)
		put_head(r, page_records(r->page), exec);
}

/* ---- the place of a record --------------------------------------------- */

static void
put_place(struct rec_out *o, const struct fp *f)
{
	for (int i = 0; i < FP_PLACES; i++)
		if (f->place[i].p)
			rec_str(o, fp_place_name[i], f->place[i]);
}

static void
put_near(struct rec_out *o, const struct fp *f, int at, const char *result)
{
	rec_begin(o, "near");
	rec_i64(o, "at", at);
	rec_str(o, "name", f->name);
	put_place(o, f);
	rec_put(o, "result", result);
	rec_end(o);
}

void
report_near(struct report *r, int at, struct str raw, const char *result)
{
	struct entry e = { .raw = raw };
	const struct fp *f = open_entry(r, 0, &e);
	put_near(r->out, f, at, result);
	if (r->page)
		put_near(page_records(r->page), f, at, result);
}

static void
put_prefix(struct report *r, struct rec_out *o, const struct prefix *p)
{
	struct entry e = { .raw = p->last };
	const struct fp *f = p->records ? open_entry(r, 0, &e) : NULL;
	rec_begin(o, "prefix");
	if (p->rank.p)
		rec_str(o, "rank", p->rank);
	rec_u64(o, "records", p->records);
	if (f && f->place[FP_STEP].p)
		rec_str(o, "step", f->place[FP_STEP]);
	if (f)
		rec_str(o, "name", f->name);
	if (f && f->place[FP_IO].p)
		rec_str(o, "io", f->place[FP_IO]);
	if (p->next.p) {
		e.raw = p->next;
		rec_str(o, "next", open_entry(r, 1, &e)->name);
	}
	if (p->unmatched)
		rec_u64(o, "unmatched", p->unmatched);
	rec_end(o);
}

void
report_prefix(struct report *r, const struct prefix *p, bool print)
{
	if (print)
		put_prefix(r, r->out, p);
	if (page_has_prefix_room(r->page))
		put_prefix(r, page_records(r->page), p);
}

/* ---- what changed ------------------------------------------------------ */

static bool
same_hash(const struct fp_hash *a, const struct fp_hash *b)
{
	return a->algorithm && b->algorithm && fp_hash_compare(a, b) == FP_SAME;
}

static bool
elements(struct str shape, uint64_t *out)
{
	uint64_t dim[SHAPE_MAX];
	size_t n;
	*out = 1;
	if (fp_shape(shape, dim, SHAPE_MAX, &n, NULL))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!num_mul(*out, dim[i], out))
			return false;
	return true;
}

/* What the second hashes tell about a difference of the first, or NULL. */
static const char *
change_of(const struct fp *a, const struct fp *b)
{
	if (a->scalar || b->scalar)
		return NULL;
	if (same_hash(&a->canon, &b->canon)) {
		bool no_nan =
		    a->nan.given && !a->nan.v && b->nan.given && !b->nan.v;
		return no_nan ? "zero-sign" : "zero-sign-or-nan";
	}
	if (same_hash(&a->rows, &b->rows) && str_same(a->shape, b->shape))
		return "rows-permuted";
	if (a->nan.given && b->nan.given && a->nan.v != b->nan.v)
		return "nan";
	if (a->inf.given && b->inf.given && a->inf.v != b->inf.v)
		return "inf";
	uint64_t n;
	if (a->zero.given && b->zero.given && elements(b->shape, &n) &&
	    b->zero.v == n && a->zero.v < n)
		return "nullified";
	return NULL;
}

/* ---- rows ------------------------------------------------------------ */

static bool
first_dimension(struct str shape, uint64_t *rows)
{
	uint64_t dim[SHAPE_MAX];
	size_t n;
	if (fp_shape(shape, dim, SHAPE_MAX, &n, NULL) || !n)
		return false;
	*rows = dim[0];
	return true;
}

static size_t
count_tiles(struct str tiles)
{
	size_t n = 1;
	for (size_t i = 0; i < tiles.len; i++)
		n += tiles.p[i] == ',';
	return n;
}

/* Tile i of n holds rows from i * rows / n on: as fpdump cuts them. */
static uint64_t
tile_edge(uint64_t rows, uint64_t i, uint64_t n)
{
	return rows / n * i + rows % n * i / n;
}

static void
put_range(struct buf *b, uint64_t from, uint64_t to)
{
	if (b->len)
		buf_putc(b, ',');
	num_put_u64(b, from);
	if (to - from > 1) {
		buf_putc(b, '-');
		num_put_u64(b, to - 1);
	}
}

/* The rows of the tiles that differ, as ranges; their number, 0: unknown. */
static uint64_t
tile_rows(struct buf *b, const struct fp *fa, const struct fp *fb)
{
	uint64_t rows, n, i = 0, sum = 0, from = 0, to = 0;
	struct str a = fa->tiles, c = fb->tiles, wa, wc;
	b->len = 0;
	if (!a.p || !c.p || !first_dimension(fa->shape, &rows) || !rows)
		return 0;
	n = count_tiles(a);
	if (n != count_tiles(c) || n > rows)
		return 0;
	while (str_cut(&a, ',', &wa) && str_cut(&c, ',', &wc)) {
		uint64_t lo = tile_edge(rows, i, n);
		uint64_t hi = tile_edge(rows, ++i, n);
		if (str_same(wa, wc))
			continue;
		sum += hi - lo;
		if (to == lo && to) {
			to = hi;
			continue;
		}
		if (to > from)
			put_range(b, from, to);
		from = lo;
		to = hi;
	}
	if (to > from)
		put_range(b, from, to);
	return sum;
}

/* ---- differences ------------------------------------------------------- */

static struct str
shown_value(const struct fp *f, const char *why)
{
	if (!why || !strcmp(why, "hash"))
		return f->scalar ? f->value : f->hash.text;
	if (!strcmp(why, "record"))
		return f->scalar ? STR_LIT("scalar") : STR_LIT("fp");
	if (!strcmp(why, "dtype"))
		return f->dtype;
	if (!strcmp(why, "shape"))
		return f->shape;
	if (!strcmp(why, "slice"))
		return f->slice;
	if (!strcmp(why, "global"))
		return f->global;
	if (!strcmp(why, "offset"))
		return f->offset;
	return STR_NULL;
}

/* Numbers as text are compared as text; how far apart they are is told. */
static void
put_distance(struct rec_out *o, const struct fp *a, const struct fp *b)
{
	double x, y;
	if (!a->scalar || !b->scalar || num_f64(a->value, &x, NULL) ||
	    num_f64(b->value, &y, NULL))
		return;
	rec_f64(o, "abs", fabs(x - y));
	if (x != 0 && isfinite(x) && isfinite(y))
		rec_f64(o, "rel", fabs(x - y) / fabs(x));
}

static void
put_learned(
    struct report *r, struct rec_out *o, const struct fp *a, const struct fp *b)
{
	uint64_t rows = a->scalar ? 0 : tile_rows(&r->text, a, b);
	if (rows) {
		rec_str(o, "rows", buf_view(&r->text));
		rec_u64(o, "nrows", rows);
	}
	put_distance(o, a, b);
}

static void
put_diff(struct report *r, struct rec_out *o, const struct diff *d)
{
	const struct fp *a = open_entry(r, 0, d->a);
	const struct fp *b = open_entry(r, 1, d->b);
	const struct fp *f = a && !d->at_b ? a : b;
	const char *why = NULL;
	if (d->class == DIFF_INCOMPARABLE)
		fp_compare(a, b, &why);
	rec_begin(o, "diff");
	rec_put(o, "class", diff_class_name[d->class]);
	rec_str(o, "name", f->name);
	put_place(o, f);
	struct str va = a ? shown_value(a, why) : STR_NULL;
	struct str vb = b ? shown_value(b, why) : STR_NULL;
	if (va.p)
		rec_str(o, "a", va);
	if (vb.p)
		rec_str(o, "b", vb);
	const char *change = a && b && !why ? change_of(a, b) : NULL;
	if (change)
		rec_put(o, "change", change);
	if (d->role)
		rec_put(o, "role", d->role);
	if (d->rule)
		rec_str(o, "rule", d->rule->where);
	if (f->kernel.p)
		rec_str(o, "kernel", f->kernel);
	if (f->dev.p)
		rec_str(o, "dev", f->dev);
	if (a && b && !why)
		put_learned(r, o, a, b);
	if (f->file.p)
		rec_str(o, "file", f->file);
	const char *note = d->note ? d->note : class_note[d->class];
	if (note || why)
		rec_put(o, "note", note ? note : why);
	rec_end(o);
}

void
report_diff(struct report *r, const struct diff *d)
{
	put_diff(r, r->out, d);
}

void
report_keep(struct report *r, const struct diff *d)
{
	if (page_has_room(r->page, d->class))
		put_diff(r, page_records(r->page), d);
}

/* ---- counts ---------------------------------------------------------- */

static void
put_count(struct rec_out *o, const char *class, uint64_t n, const char *note)
{
	if (!n)
		return;
	rec_begin(o, "count");
	rec_put(o, "class", class);
	rec_u64(o, "n", n);
	if (note)
		rec_put(o, "note", note);
	rec_end(o);
}

static void
count_unmatched(struct report *r, struct rec_out *o)
{
	const struct tally *t = &r->tally;
	r->text.len = 0;
	buf_printf(&r->text, "%" PRIu64 " in A alone, %" PRIu64 " in B alone",
	    t->alone[0], t->alone[1]);
	put_count(o, "unmatched", t->n[DIFF_UNMATCHED], buf_cstr(&r->text));
}

static void
count_rules(struct report *r, struct rec_out *o)
{
	struct mask *m = r->s->mask;
	for (size_t i = 0; m && i < mask_count(m); i++) {
		const struct mask_rule *rule = mask_rule(m, i);
		if (!rule->uses && !r->s->common.verbose)
			continue;
		rec_begin(o, "count");
		rec_put(o, "class",
		    rule->kind == MASK_UNSTABLE ? "unstable" : "masked");
		rec_u64(o, "n", rule->uses);
		rec_str(o, "rule", rule->where);
		if (rule->reason.len)
			rec_str(o, "note", rule->reason);
		rec_end(o);
	}
}

static void
put_counts(struct report *r, struct rec_out *o)
{
	const struct tally *t = &r->tally;
	put_count(o, "equal", t->equal, NULL);
	for (int i = 0; i < DIFF_CLASSES; i++) {
		if (i == DIFF_UNMATCHED)
			count_unmatched(r, o);
		else
			put_count(
			    o, diff_class_name[i], t->n[i], class_note[i]);
	}
	put_count(
	    o, "missing-rank", t->missing, "ranks that one side does not have");
	count_rules(r, o);
}

void
report_counts(struct report *r)
{
	put_counts(r, r->out);
	if (r->page)
		put_counts(r, page_records(r->page));
}

/* ---- the map --------------------------------------------------------- */

static void
comment(void *user, const char *text)
{
	rec_comment(user, "%s", text);
}

void
report_map(struct report *r)
{
	enum { ROWS = 8, ROWS_VERBOSE = 64, COMMENT = 2 };
	if (!r->s->plot)
		return;
	if (!chart_has_steps(r->chart)) {
		cli_warn("no map: no record has a step that is a number");
		return;
	}
	chart_print(r->chart, cli_width() - COMMENT,
	    r->s->common.verbose ? ROWS_VERBOSE : ROWS, comment, r->out);
}

/* ---- the verdict ------------------------------------------------------- */

/* One statement for rcacompose, at the time of the judged data, else now. */
static void
put_evidence(struct report *r, const struct outcome *o, const struct fp *f)
{
	static const char *const status[] = {
		[STATUS_CLEAN] = "healthy",
		[STATUS_FOUND] = "faulty",
		[STATUS_UNKNOWN] = "unknown",
	};
	const struct verdict *v = &o->v;
	struct rec_out *out = r->out;
	r->text.len = 0;
	if (o->entity.len) {
		buf_str(&r->text, o->entity);
	} else {
		buf_puts(&r->text, "boundary:");
		buf_str(&r->text, f ? f->name : STR_LIT("*"));
	}
	rec_begin(out, "evidence");
	rec_time(out, "time", o->time_given ? o->time : cli_now(&r->s->common));
	rec_str(out, "entity", buf_view(&r->text));
	rec_put(out, "agent", "fpdiff");
	rec_put(out, "status", status[v->status]);
	if (v->reason)
		rec_put(out, "reason", v->reason);
	rec_put(out, "source", r->s->operand[1]);
	rec_end(out);
}

static void
put_verdict(struct report *r, struct rec_out *out, const struct outcome *o,
    const struct fp *a, const struct fp *b)
{
	const struct tally *t = &r->tally;
	const struct verdict *v = &o->v;
	bool known = o->cause && v->status == STATUS_FOUND;
	verdict_begin(out, v, known ? o->entity : STR_NULL,
	    o->bound[0] ? o->bound : NULL);
	if (known)
		rec_put(out, "cause", o->cause);
	if (a) {
		put_place(out, b && o->at_b ? b : a);
		rec_str(out, "name", a->name);
	} else if (o->name.len) {
		rec_str(out, "name", o->name);
	}
	if (o->prefix_given)
		rec_u64(out, "prefix", o->prefix);
	if (a)
		rec_str(out, "a", shown_value(a, NULL));
	if (b)
		rec_str(out, "b", shown_value(b, NULL));
	uint64_t different = tally_different(t);
	uint64_t excused = t->n[DIFF_MASKED] + t->n[DIFF_UNSTABLE];
	rec_u64(out, "compared", t->equal + different + excused);
	rec_u64(out, "equal", t->equal);
	rec_u64(out, "different", different);
	rec_u64(out, "unmatched", t->n[DIFF_UNMATCHED]);
	if (t->n[DIFF_INCOMPARABLE])
		rec_u64(out, "incomparable", t->n[DIFF_INCOMPARABLE]);
	if (excused)
		rec_u64(out, "masked", excused);
	verdict_end(out, v);
}

int
report_verdict(struct report *r, const struct outcome *o)
{
	r->result = o->v.result;
	r->reason = o->v.reason;
	r->skipped = o->v.damage.skipped;
	if (o->v.status == STATUS_NONE)
		return STATUS_NONE;
	const struct fp *a = open_entry(r, 0, o->a);
	const struct fp *b = open_entry(r, 1, o->b);
	/* First the page: without it there is no verdict. */
	if (r->page)
		put_verdict(r, page_records(r->page), o, a, b);
	if (page_write(r->page, r))
		return STATUS_NONE;
	if (r->s->common.evidence)
		put_evidence(r, o, a ? a : b);
	put_verdict(r, r->out, o, a, b);
	return o->v.status;
}
