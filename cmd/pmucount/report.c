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

/* Leaves out what was not asked for; call paths keep their entries. */
static void
flat(const struct view *v, struct result *r, struct rec_out *o)
{
	struct result shown = *r;
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
put_i64(struct rec_out *o, const char *what, struct str counter, int64_t v)
{
	char key[128];
	snprintf(key, sizeof key, "%s.%.*s", what, STR_ARG(counter));
	rec_i64(o, key, v);
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
	rec_u64(o, "calls", k->calls);
	rec_str(o, "object", e->object);
	rec_put(o, "flags", result_flags(k->flags, flags));
	put_i64(o, "self", t->r->counter[t->c].name, k->self[t->c]);
	put_i64(o, "incl", t->r->counter[t->c].name, k->incl[t->c]);
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

static const struct entry *
other(const struct result *r, const struct entry *e)
{
	struct buf b = { 0 };
	buf_str(&b, e->func);
	buf_putc(&b, 0);
	buf_str(&b, e->object);
	const uint64_t *at = map_get(&r->entry_by_name, buf_view(&b));
	const struct entry *found = at ? &r->entry[*at] : NULL;
	/* Another build lies elsewhere: then by the function's name. */
	for (size_t i = 0; !found && i < r->nentries; i++)
		if (str_same(r->entry[i].func, e->func))
			found = &r->entry[i];
	buf_free(&b);
	return found;
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
versus(const struct view *v, const struct result *a, const struct result *b,
    struct rec_out *o)
{
	unsigned c = counter_of(v, a), d = counter_of(v, b);
	if (!str_same(a->counter[c].name, b->counter[d].name))
		cli_die("%s and %s count different events", v->file, v->vs);
	for (size_t i = 0; i < a->nentries; i++) {
		const struct entry *x = &a->entry[i];
		const struct entry *y = other(b, x);
		if (!is_shown(v, x) || i >= v->top)
			continue;
		rec_begin(o, "versus");
		rec_str(o, "func", x->func);
		rec_str(o, "counter", a->counter[c].name);
		rec_u64(o, "calls_a", x->calls);
		rec_u64(o, "calls_b", y ? y->calls : 0);
		put_side(o, "a", x, c);
		put_side(o, "b", y, d);
		if (y && x->calls && y->calls && x->v[c].known && y->v[d].known)
			rec_fmt(o, "per_call", "%.2f",
			    (double)y->v[d].self / (double)y->calls -
				(double)x->v[c].self / (double)x->calls);
		rec_end(o);
	}
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

/* Folded stacks and one value, or two as difffolded.pl writes them. */
static void
flame(const struct view *v, const struct result *a, const struct result *b,
    struct buf *out)
{
	unsigned c = counter_of(v, a), d = b ? counter_of(v, b) : 0;
	struct map at = { 0 };
	struct buf key = { 0 };
	struct arena arena = { 0 };
	for (size_t i = 0; b && i < b->npaths; i++) {
		bool fresh;
		key.len = 0;
		fold(&key, b, (uint32_t)i);
		struct str k = arena_str(&arena, buf_view(&key));
		uint64_t *value = k.p ? map_at(&at, k, &fresh) : NULL;
		if (!value)
			cli_die("out of memory");
		*value += (uint64_t)positive(b->path[i].self[d]);
	}
	for (size_t i = 0; i < a->npaths; i++) {
		key.len = 0;
		fold(&key, a, (uint32_t)i);
		buf_str(out, buf_view(&key));
		buf_putc(out, ' ');
		num_put_u64(out, (uint64_t)positive(a->path[i].self[c]));
		if (b) {
			uint64_t *value = map_get(&at, buf_view(&key));
			buf_putc(out, ' ');
			num_put_u64(out, value ? *value : 0);
			if (value)
				*value = UINT64_MAX; /* printed */
		}
		buf_putc(out, '\n');
	}
	for (size_t i = 0; b && i < b->npaths; i++) {
		key.len = 0;
		fold(&key, b, (uint32_t)i);
		uint64_t *value = map_get(&at, buf_view(&key));
		if (!value || *value == UINT64_MAX)
			continue;
		buf_str(out, buf_view(&key));
		buf_puts(out, " 0 ");
		num_put_u64(out, *value);
		buf_putc(out, '\n');
		*value = UINT64_MAX;
	}
	buf_free(&key);
	map_free(&at);
	arena_free(&arena);
}

/* ---- the verb --------------------------------------------------------------
 */

/* Reads a file; true if nothing was missing or bad. */
static bool
load(struct result *r, const char *path)
{
	struct err e = { 0 };
	if (result_read(r, path, cli_tmpdir(), &e))
		cli_die_err(path, &e);
	if (e.code)
		cli_warn_err(path, &e);
	bool whole =
	    rec_totals_state(&r->totals) == REC_COMPLETE && !r->totals.bad;
	if (!whole)
		cli_warn("%s: incomplete: %llu bad lines", path,
		    (unsigned long long)r->totals.bad);
	return whole;
}

static int
write_text(const struct buf *b, int fd)
{
	size_t at = 0;
	while (at < b->len) {
		ssize_t n = write(fd, b->p + at, b->len - at);
		if (n < 0)
			return -1;
		at += (size_t)n;
	}
	return b->failed ? -1 : 0;
}

static int
write_records(const struct view *v, struct result *a, struct result *b, int fd,
    int status)
{
	struct rec_out *o;
	struct err e;
	char *columns = NULL;
	struct rec_how how = v->s.common.how;
	if (!how.columns && v->form == FORM_FLAT && !b)
		how.columns = columns = result_columns_dup(a);
	if (how.form == REC_LINES || how.form == REC_JSON)
		how.columns = NULL;
	if (rec_out_open(&o, fd, &how, &e))
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
	int x = rec_out_finish(o, NULL, status, 0, &e);
	if (x)
		cli_warn("%s", e.msg);
	rec_out_close(o);
	free(columns);
	return x;
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
	int status = whole ? STATUS_CLEAN : STATUS_UNKNOWN, x;
	cli_out_open(&out, v.s.common.output, false);
	if (v.form == FORM_FLAME) {
		struct buf text = { 0 };
		flame(&v, &a, v.vs ? &b : NULL, &text);
		x = write_text(&text, out.fd);
		if (x)
			cli_warn("cannot write");
		buf_free(&text);
	} else {
		x = write_records(&v, &a, v.vs ? &b : NULL, out.fd, status);
	}
	x = cli_out_close(&out, !x) || x;
	result_free(&a);
	result_free(&b);
	return x ? STATUS_NONE : status;
}
