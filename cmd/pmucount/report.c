/*
 * pmucount report: what a run recorded, as a flat list, a call tree, a
 * distribution, or lines for flame graphs; one run or two side by side.
 */
#define _GNU_SOURCE
#include "pmucount.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "num.h"
#include "sort.h"

enum { OPT_TREE = OPT_VERB, OPT_DIST, OPT_FLAME, OPT_VS, OPT_TOP, OPT_BY };

enum form { FORM_FLAT, FORM_TREE, FORM_DIST, FORM_FLAME };

// clang-format off
static const struct opt options[] = {
	{ 'f', "function", "GLOB", "only these functions (repeatable)" },
	{ OPT_TREE, "tree", NULL, "the call tree, callers first" },
	{ OPT_DIST, "dist", NULL, "calls by size, one line a bucket" },
	{ OPT_FLAME, "flame", NULL, "folded stacks for flame graphs" },
	{ OPT_VS, "vs", "FILE", "beside another run" },
	{ OPT_BY, "by", "EVENT", "the counter to sort and fold by" },
	{ OPT_TOP, "top", "N", "only the first N functions" },
	OPT_COMMON, OPT_LAST
};
// clang-format on

static const char *const usage[] = {
	"pmucount report [--tree|--dist|--flame] [--vs FILE2] [options] FILE",
	NULL,
};

struct view {
	struct settings s;
	enum form form;
	const char *file, *vs, *by;
	uint64_t top;
};

static void
parse(struct view *v, int argc, char **argv)
{
	struct opt_state o;
	int id;
	opt_start(&o, options, argc, argv);
	while ((id = opt_next(&o)) != OPT_END) {
		switch (id) {
		case OPT_OPERAND:
			if (v->file)
				cli_usage("one file at a time; a second one "
					  "goes with --vs");
			v->file = o.arg;
			break;
		case OPT_TREE:
		case OPT_DIST:
		case OPT_FLAME:
			v->form = (enum form)(id - OPT_TREE + FORM_TREE);
			break;
		case OPT_VS:
			v->vs = o.arg;
			break;
		case OPT_BY:
			v->by = o.arg;
			break;
		case OPT_TOP:
			v->top = cli_u64(&o, 1, UINT64_MAX);
			break;
		default:
			if (!settings_option(&v->s, id, &o) &&
			    !cli_common(&v->s.common, id, &o, usage,
				"Shows what pmucount run recorded."))
				cli_usage("unexpected option %s", o.name);
		}
	}
	if (!v->file)
		cli_usage("no file to report");
	if (v->vs && (v->form == FORM_TREE || v->form == FORM_DIST))
		cli_usage("--vs goes with the flat list and with --flame");
	cli_common_done(&v->s.common, v->form == FORM_TREE   ? "callpath"
				      : v->form == FORM_DIST ? "bucket"
				      : v->vs                ? "versus"
							     : "pmu");
}

/* The counter of --by, else the first whose values are known. */
static unsigned
counter_of(const struct view *v, const struct result *r)
{
	for (unsigned c = 0; c < r->ncounters; c++)
		if (v->by ? str_is(r->counter[c].name, v->by)
			  : !r->counter[c].unknown)
			return c;
	if (v->by)
		cli_die("%s: no counter %s in it", v->file, v->by);
	return 0;
}

static bool
is_shown(const struct view *v, const struct entry *e)
{
	char name[512];
	size_t n =
	    e->func.len < sizeof name - 1 ? e->func.len : sizeof name - 1;
	memcpy(name, e->func.p, n);
	name[n] = 0;
	struct func f = { .name = name, .shown = name };
	return is_wanted(&v->s, &f);
}

/* ---- flat ------------------------------------------------------------------
 */

static unsigned flat_by; /* qsort has no argument for it */

static int
by_self(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	const struct values *v = &x->v[flat_by], *w = &y->v[flat_by];
	if (v->known != w->known)
		return v->known ? -1 : 1;
	if (v->self != w->self)
		return v->self > w->self ? -1 : 1;
	int c = str_order(x->func, y->func);
	return c ? c : str_order(x->object, y->object);
}

/* Leaves out what was not asked for; call paths keep their entries. */
static void
flat(const struct view *v, struct result *r, struct rec_out *o)
{
	struct result shown = *r;
	if (v->by && r->nentries) {
		flat_by = counter_of(v, r);
		sort_array(r->entry, r->nentries, sizeof *r->entry, by_self);
	}
	shown.nentries = 0;
	shown.npaths = 0;
	shown.entry = cli_alloc(r->nentries, sizeof *shown.entry);
	for (size_t i = 0; i < r->nentries; i++)
		if (shown.nentries < v->top && is_shown(v, &r->entry[i]))
			shown.entry[shown.nentries++] = r->entry[i];
	result_write(&shown, o, false);
	free(shown.entry);
}

/* ---- tree ------------------------------------------------------------------
 */

struct tree {
	const struct result *r;
	unsigned c;
	uint32_t *first, *next; /* children lists, by falling incl */
	uint32_t *order;
};

static const struct tree *sorted; /* qsort has no argument for it */

static int
by_incl(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int64_t v = sorted->r->path[x].incl[sorted->c];
	int64_t w = sorted->r->path[y].incl[sorted->c];
	return v != w ? (v < w ? 1 : -1) : (x > y) - (x < y);
}

static void
tree_make(struct tree *t, const struct result *r, unsigned c)
{
	size_t n = r->npaths + 1; /* the last one is the root of all */
	*t = (struct tree){ .r = r,
		.c = c,
		.first = cli_alloc(n, sizeof *t->first),
		.next = cli_alloc(n, sizeof *t->next),
		.order = cli_alloc(n, sizeof *t->order) };
	for (size_t i = 0; i < r->npaths; i++)
		t->order[i] = (uint32_t)i;
	sorted = t;
	if (r->npaths)
		sort_array(t->order, r->npaths, sizeof *t->order, by_incl);
	for (size_t i = 0; i < n; i++)
		t->first[i] = t->next[i] = UINT32_MAX;
	/* Smallest first, each put in front of its list. */
	for (size_t i = r->npaths; i-- > 0;) {
		uint32_t p = t->order[i], up = r->path[p].parent;
		size_t at = up == UINT32_MAX ? r->npaths : up;
		t->next[p] = t->first[at];
		t->first[at] = p;
	}
}

static void
tree_free(struct tree *t)
{
	free(t->first);
	free(t->next);
	free(t->order);
}

static void
put_i64(struct rec_out *o, const char *what, const struct counter *c,
    bool known, int64_t v)
{
	char key[RESULT_KEY];
	result_key(key, what, c);
	if (known)
		rec_i64(o, key, v);
	else
		rec_put(o, key, "unknown");
}

static void
tree_line(const struct tree *t, uint32_t p, unsigned depth, struct rec_out *o)
{
	const struct path *k = &t->r->path[p];
	const struct entry *e = &t->r->entry[k->entry];
	char flags[16];
	rec_begin(o, "callpath");
	rec_u64(o, "id", p);
	if (k->parent != UINT32_MAX)
		rec_u64(o, "parent", k->parent);
	rec_u64(o, "depth", depth);
	rec_str(o, "func", e->func);
	rec_u64(o, k->flags & FLAG_GATED ? "samples" : "calls", k->calls);
	rec_str(o, "object", e->object);
	rec_put(o, "flags", result_flags(k->flags, flags));
	const struct values *v = &e->v[t->c];
	const struct counter *c = &t->r->counter[t->c];
	put_i64(o, "self", c, v->known, k->self[t->c]);
	put_i64(o, "incl", c, v->incl_known, k->incl[t->c]);
	rec_end(o);
}

/* Callers before callees, without recursion: paths can be deep. */
static void
tree(const struct view *v, const struct result *r, struct rec_out *o)
{
	struct tree t;
	tree_make(&t, r, counter_of(v, r));
	uint32_t p = t.first[r->npaths];
	unsigned depth = 0;
	while (p != UINT32_MAX) {
		tree_line(&t, p, depth, o);
		if (t.first[p] != UINT32_MAX) {
			p = t.first[p];
			depth++;
			continue;
		}
		while (p != UINT32_MAX && t.next[p] == UINT32_MAX) {
			p = r->path[p].parent;
			depth -= p != UINT32_MAX;
		}
		p = p == UINT32_MAX ? p : t.next[p];
	}
	tree_free(&t);
}

/* ---- distribution ----------------------------------------------------------
 */

static void
dist(const struct view *v, const struct result *r, struct rec_out *o)
{
	uint64_t shown = 0;
	for (size_t i = 0; i < r->nentries && shown < v->top; i++) {
		const struct entry *e = &r->entry[i];
		if (!e->has_dist || !is_shown(v, e))
			continue;
		shown++;
		uint64_t all = 0, sum = 0;
		for (unsigned b = 0; b < PMU_BUCKETS; b++)
			all += e->bucket[b];
		for (unsigned b = 2; b < PMU_BUCKETS; b++) {
			if (!e->bucket[b])
				continue;
			sum += e->bucket[b];
			rec_begin(o, "bucket");
			rec_str(o, "func", e->func);
			rec_str(o, "counter", r->counter[0].name);
			rec_u64(o, "from", pmu_bucket_from(b));
			rec_u64(o, "to",
			    b + 1 < PMU_BUCKETS ? pmu_bucket_from(b + 1) - 1
						: UINT64_MAX);
			rec_u64(o, "calls", e->bucket[b]);
			rec_fmt(o, "share", "%.4f", (double)sum / (double)all);
			rec_end(o);
		}
	}
}

/* ---- two runs --------------------------------------------------------------
 */

/* Functions by name alone: UINT64_MAX where several objects have one. */
static void
index_names(struct map *m, const struct result *r)
{
	for (size_t i = 0; i < r->nentries; i++) {
		bool fresh;
		uint64_t *at = map_at(m, r->entry[i].func, &fresh);
		if (!at)
			cli_die("out of memory");
		*at = fresh ? i : UINT64_MAX;
	}
}

static const struct entry *
other(const struct result *r, const struct map *names, const struct entry *e)
{
	struct buf b = { 0 };
	buf_str(&b, e->func);
	buf_putc(&b, 0);
	buf_str(&b, e->object);
	const uint64_t *at = map_get(&r->entry_by_name, buf_view(&b));
	buf_free(&b);
	/* Another build lies elsewhere: then by the function's name. */
	if (!at)
		at = map_get(names, e->func);
	return at && *at != UINT64_MAX ? &r->entry[*at] : NULL;
}

/* Of a call; gated values are that already. */
static double
per_call(const struct entry *e, unsigned c)
{
	double calls = e->flags & FLAG_GATED ? 1 : (double)e->calls;
	return (double)e->v[c].self / calls;
}

static void
put_side(struct rec_out *o, const char *key, const struct entry *e, unsigned c)
{
	if (!e)
		rec_put(o, key, "absent");
	else if (!e->v[c].known)
		rec_put(o, key, "unknown");
	else
		rec_i64(o, key, e->v[c].self);
}

static void
versus_line(const struct counter *k, const struct entry *x,
    const struct entry *y, unsigned c, unsigned d, struct rec_out *o)
{
	rec_begin(o, "versus");
	rec_str(o, "func", x ? x->func : y->func);
	rec_str(o, "counter", k->name);
	rec_u64(o, "calls_a", x ? x->calls : 0);
	rec_u64(o, "calls_b", y ? y->calls : 0);
	put_side(o, "a", x, c);
	put_side(o, "b", y, d);
	if (x && y && x->calls && y->calls && x->v[c].known && y->v[d].known)
		rec_fmt(o, "per_call", "%.2f", per_call(y, d) - per_call(x, c));
	rec_end(o);
}

/* The first run's functions in its order, then what only the second has. */
static void
versus(const struct view *v, const struct result *a, const struct result *b,
    struct rec_out *o)
{
	unsigned c = counter_of(v, a), d = counter_of(v, b);
	const struct counter *k = &a->counter[c];
	struct map names[2] = { { 0 }, { 0 } };
	uint64_t left = v->top;
	if (!str_same(k->name, b->counter[d].name))
		cli_die("%s and %s count different events", v->file, v->vs);
	index_names(&names[0], a);
	index_names(&names[1], b);
	for (size_t i = 0; i < a->nentries && left; i++) {
		const struct entry *x = &a->entry[i];
		if (!is_shown(v, x))
			continue;
		versus_line(k, x, other(b, &names[1], x), c, d, o);
		left--;
	}
	for (size_t i = 0; i < b->nentries && left; i++) {
		const struct entry *y = &b->entry[i];
		if (!is_shown(v, y) || other(a, &names[0], y))
			continue;
		versus_line(k, NULL, y, c, d, o);
		left--;
	}
	map_free(&names[0]);
	map_free(&names[1]);
}

/* ---- flame graphs ----------------------------------------------------------
 */

/* "main;f;g": outermost first. Names with ; or blanks have them replaced. */
static void
fold(struct buf *b, const struct result *r, uint32_t p)
{
	uint32_t stack[256];
	size_t n = 0;
	for (; p != UINT32_MAX && n < 256; p = r->path[p].parent)
		stack[n++] = p;
	if (p != UINT32_MAX)
		buf_puts(b, "...;");
	while (n-- > 0) {
		struct str s = r->entry[r->path[stack[n]].entry].func;
		for (size_t i = 0; i < s.len; i++) {
			unsigned char k = (unsigned char)s.p[i];
			buf_putc(b,
			    k == ';' || k <= ' ' || k == 0x7f ? '_' : (char)k);
		}
		if (n)
			buf_putc(b, ';');
	}
}

static int64_t
positive(int64_t v)
{
	return v > 0 ? v : 0;
}

struct folded {
	struct str stack;
	uint64_t v[2];
};

struct flames {
	struct arena arena;
	struct map at; /* stack -> line */
	struct folded *line;
	size_t n, cap;
	uint64_t unknown; /* paths left out */
};

/* Stacks that read the same are one line. */
static void
flames_add(struct flames *f, const struct result *r, unsigned c, int side)
{
	struct buf key = { 0 };
	for (size_t i = 0; i < r->npaths; i++) {
		bool fresh;
		if (!r->entry[r->path[i].entry].v[c].known) {
			f->unknown++;
			continue;
		}
		key.len = 0;
		fold(&key, r, (uint32_t)i);
		const uint64_t *seen = map_get(&f->at, buf_view(&key));
		struct str k = seen ? f->line[*seen].stack
				    : arena_str(&f->arena, buf_view(&key));
		uint64_t *at = k.p ? map_at(&f->at, k, &fresh) : NULL;
		if (!at || key.failed)
			cli_die("out of memory");
		if (fresh) {
			if (f->n == f->cap) {
				f->cap = f->cap ? 2 * f->cap : 256;
				f->line = cli_realloc(
				    f->line, f->cap, sizeof *f->line);
			}
			*at = f->n;
			f->line[f->n++] = (struct folded){ .stack = k };
		}
		f->line[*at].v[side] += (uint64_t)positive(r->path[i].self[c]);
	}
	buf_free(&key);
}

static void
not_gated(const char *file, const struct result *r)
{
	for (size_t i = 0; i < r->nentries; i++)
		if (r->entry[i].flags & FLAG_GATED)
			cli_die("%s: --gate counts no totals: nothing to fold",
			    file);
}

/*
 * Folded stacks and one value, or two as difffolded.pl writes them. False if
 * something had to be left out.
 */
static bool
flame(const struct view *v, const struct result *a, const struct result *b,
    struct buf *out)
{
	struct flames f = { 0 };
	not_gated(v->file, a);
	flames_add(&f, a, counter_of(v, a), 0);
	if (b) {
		not_gated(v->vs, b);
		flames_add(&f, b, counter_of(v, b), 1);
	}
	for (size_t i = 0; i < f.n; i++) {
		buf_str(out, f.line[i].stack);
		for (int side = 0; side <= (b ? 1 : 0); side++) {
			buf_putc(out, ' ');
			num_put_u64(out, f.line[i].v[side]);
		}
		buf_putc(out, '\n');
	}
	if (f.unknown)
		cli_warn("%llu call paths of unknown value are left out",
		    (unsigned long long)f.unknown);
	arena_free(&f.arena);
	map_free(&f.at);
	free(f.line);
	return !f.unknown;
}

/* ---- the verb --------------------------------------------------------------
 */

/* Reads a file; true if nothing was missing or bad. */
static bool
load(struct result *r, const char *path)
{
	struct src *src;
	struct err e = { 0 };
	if (cli_src_open(&src, path, 0, &e) || result_read(r, src, &e))
		cli_die_err(cli_src_name(path), &e);
	if (e.code)
		cli_warn_err(cli_src_name(path), &e);
	bool whole =
	    rec_totals_state(&r->totals) == REC_COMPLETE && !r->totals.bad;
	if (!whole)
		cli_warn("%s: incomplete: %llu bad lines", path,
		    (unsigned long long)r->totals.bad);
	return whole;
}

static int
write_records(const struct view *v, struct result *a, struct result *b,
    struct cli_out *out, int status)
{
	struct rec_out *o;
	struct err e;
	char *columns = NULL;
	struct rec_how how = v->s.common.how;
	if (!how.columns && v->form == FORM_FLAT && !b)
		how.columns = columns = result_columns_dup(a);
	if (how.form == REC_LINES || how.form == REC_JSON)
		how.columns = NULL;
	if (rec_out_open(&o, out->fd, &how, &e))
		cli_die("%s", e.msg);
	rec_begin(o, "head");
	rec_put(o, "of", v->form == FORM_FLAT && !b ? "pmu" : "pmureport");
	rec_u64(o, "version", SCHEMA_VERSION);
	rec_put(o, "tool", "pmucount " VERSION);
	rec_str(o, "source", a->backend);
	rec_end(o);
	if (v->form == FORM_TREE)
		tree(v, a, o);
	else if (v->form == FORM_DIST)
		dist(v, a, o);
	else if (b)
		versus(v, a, b, o);
	else
		flat(v, a, o);
	status = cli_out_end(out, o, NULL, status, 0);
	free(columns);
	return status;
}

int
verb_report(int argc, char **argv)
{
	struct view v = { .top = UINT64_MAX };
	struct result a = { 0 }, b = { 0 };
	struct cli_out out;
	parse(&v, argc, argv);
	bool whole = load(&a, v.file);
	if (v.vs)
		whole = load(&b, v.vs) && whole;
	int status = whole ? STATUS_CLEAN : STATUS_UNKNOWN;
	cli_out_open(&out, v.s.common.output, false);
	if (v.form == FORM_FLAME) {
		struct buf text = { 0 };
		if (!flame(&v, &a, v.vs ? &b : NULL, &text))
			status = STATUS_UNKNOWN;
		if (text.failed)
			cli_die("out of memory");
		bool failed = cli_out_write(&out, text.p, text.len);
		if (cli_out_close(&out, !failed) || failed)
			status = STATUS_NONE;
		buf_free(&text);
	} else {
		status = write_records(&v, &a, v.vs ? &b : NULL, &out, status);
	}
	result_free(&a);
	result_free(&b);
	return status;
}
