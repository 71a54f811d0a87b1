/* What was counted, as records and back: see result.h. */
#define _GNU_SOURCE
#include "result.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "num.h"
#include "sort.h"

enum {
	ENTRIES_MAX = 1 << 20, /* functions in a file that is read */
	PATHS_MAX = 1 << 22,
	KEY_MAX = 64,     /* "incl." and a counter's name */
	LISTS_MAX = 4096, /* coverage lines and caveats */
};

/* One more element at the end of an array that the arena keeps. */
static void *
grow(struct arena *a, void *old, size_t n, size_t *cap, size_t size)
{
	if (n < *cap)
		return old;
	size_t more = *cap ? *cap * 2 : 64;
	void *p = arena_array(a, more, size);
	if (p && n)
		memcpy(p, old, n * size);
	if (p)
		*cap = more;
	return p;
}

struct entry *
result_entry(struct result *r, struct str func, struct str obj)
{
	struct entry *p =
	    grow(&r->arena, r->entry, r->nentries, &r->entries_cap, sizeof *p);
	if (!p)
		return NULL;
	r->entry = p;
	p += r->nentries;
	*p = (struct entry){ .func = arena_str(&r->arena, func),
		.object = arena_str(&r->arena, obj) };
	if (!p->func.p || !p->object.p)
		return NULL;
	r->nentries++;
	return p;
}

struct path *
result_path(struct result *r)
{
	struct path *p =
	    grow(&r->arena, r->path, r->npaths, &r->paths_cap, sizeof *p);
	if (!p)
		return NULL;
	r->path = p;
	p += r->npaths++;
	*p = (struct path){ .parent = UINT32_MAX };
	return p;
}

struct coverage *
result_coverage(struct result *r)
{
	struct coverage *p = grow(
	    &r->arena, r->coverage, r->ncoverage, &r->coverage_cap, sizeof *p);
	if (!p)
		return NULL;
	r->coverage = p;
	p += r->ncoverage++;
	*p = (struct coverage){ 0 };
	return p;
}

void
result_caveat(
    struct result *r, const char *what, uint64_t n, const char *fmt, ...)
{
	char text[400];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	struct caveat *p =
	    grow(&r->arena, r->caveat, r->ncaveats, &r->caveats_cap, sizeof *p);
	if (!p)
		return;
	r->caveat = p;
	p[r->ncaveats++] =
	    (struct caveat){ what, n, arena_str(&r->arena, str_c(text)) };
}

void
result_free(struct result *r)
{
	arena_free(&r->arena);
	map_free(&r->entry_by_name);
	*r = (struct result){ 0 };
}

/* ---- order -------------------------------------------------------------- */

static int64_t
weight(const struct entry *e)
{
	for (unsigned c = 0; c < PMU_COUNTERS; c++)
		if (e->v[c].known)
			return e->v[c].self;
	return INT64_MIN;
}

static int
by_weight(const void *a, const void *b)
{
	const struct entry *x = *(struct entry *const *)a;
	const struct entry *y = *(struct entry *const *)b;
	int64_t v = weight(x), w = weight(y);
	if (v != w)
		return v > w ? -1 : 1;
	int c = str_order(x->func, y->func);
	return c ? c : str_order(x->object, y->object);
}

void
result_sort(struct result *r)
{
	if (!r->nentries)
		return;
	struct entry **order =
	    arena_array(&r->arena, r->nentries, sizeof *order);
	struct entry *sorted =
	    arena_array(&r->arena, r->nentries, sizeof *sorted);
	uint32_t *at = arena_array(&r->arena, r->nentries, sizeof *at);
	if (!order || !sorted || !at)
		return;
	for (size_t i = 0; i < r->nentries; i++)
		order[i] = &r->entry[i];
	sort_array(order, r->nentries, sizeof *order, by_weight);
	for (size_t i = 0; i < r->nentries; i++) {
		sorted[i] = *order[i];
		at[order[i] - r->entry] = (uint32_t)i;
	}
	for (size_t i = 0; i < r->npaths; i++)
		r->path[i].entry = at[r->path[i].entry];
	r->entry = sorted;
	r->entries_cap = r->nentries;
}

/* ---- writing ------------------------------------------------------------ */

static const struct {
	unsigned flag;
	char letter;
} letters[] = {
	{ FLAG_MULTIPLEXED, 'M' },
	{ FLAG_LOST, 'L' },
	{ FLAG_UNFINISHED, 'U' },
	{ FLAG_DOMINATED, 'D' },
	{ FLAG_MIGRATED, 'X' },
	{ FLAG_INTERRUPTED, 'I' },
	{ FLAG_COLLAPSED, 'C' },
	{ FLAG_TAIL, 'T' },
	{ FLAG_ORPHAN, 'O' },
	{ FLAG_GATED, 'G' },
	{ FLAG_CUT, 'E' },
};
enum { NLETTERS = sizeof letters / sizeof *letters };

const char *
result_flags(unsigned flags, char *text)
{
	size_t n = 0;
	for (size_t i = 0; i < NLETTERS; i++)
		if (flags & letters[i].flag)
			text[n++] = letters[i].letter;
	if (!n)
		text[n++] = '-';
	text[n] = 0;
	return text;
}

static unsigned
flags_of(struct str text)
{
	unsigned flags = 0;
	for (size_t k = 0; k < text.len; k++)
		for (size_t i = 0; i < NLETTERS; i++)
			if (text.p[k] == letters[i].letter)
				flags |= letters[i].flag;
	return flags;
}

static const char *
key(char *text, const char *what, const struct counter *c)
{
	snprintf(text, KEY_MAX, "%s.%.*s", what, STR_ARG(c->name));
	return text;
}

static void
put_value(struct rec_out *o, const char *what, const struct counter *c,
    bool known, int64_t v)
{
	char k[KEY_MAX];
	if (known)
		rec_i64(o, key(k, what, c), v);
	else
		rec_put(o, key(k, what, c), "unknown");
}

static void
write_counter(const struct counter *c, struct rec_out *o)
{
	rec_begin(o, "counter");
	rec_str(o, "name", c->name);
	rec_str(o, "unit", c->unit);
	rec_str(o, "source", c->source);
	rec_put(o, "exact", c->exact ? "yes" : "no");
	rec_str(o, "check", c->check);
	rec_i64(o, "self", c->self);
	rec_i64(o, "child", c->child);
	rec_i64(o, "spread", c->spread);
	if (c->hz)
		rec_u64(o, "hz", c->hz);
	rec_end(o);
}

static void
put_some(struct rec_out *o, const char *k, uint64_t n)
{
	if (n)
		rec_u64(o, k, n);
}

static void
write_entry(const struct result *r, const struct entry *e, struct rec_out *o)
{
	char text[16];
	rec_begin(o, "pmu");
	rec_str(o, "func", e->func);
	if (e->flags & FLAG_GATED)
		rec_u64(o, "samples", e->calls);
	else
		rec_u64(o, "calls", e->calls);
	rec_str(o, "object", e->object);
	rec_put(o, "flags", result_flags(e->flags, text));
	put_some(o, "lost", e->lost);
	put_some(o, "unfinished", e->unfinished);
	put_some(o, "interrupted", e->interrupted);
	put_some(o, "migrated", e->migrated);
	for (unsigned c = 0; c < r->ncounters; c++) {
		const struct values *v = &e->v[c];
		const struct counter *k = &r->counter[c];
		bool calls = v->known && e->calls;
		/* Gated: of a call, for there is no telling of how many. */
		int64_t per =
		    e->flags & FLAG_GATED && e->calls ? (int64_t)e->calls : 1;
		put_value(o, "self", k, v->known, v->self / per);
		put_value(
		    o, "incl", k, v->known && v->incl_known, v->incl / per);
		put_value(o, "err", k, v->known, v->err / per);
		if (!calls && v->known)
			continue;
		put_value(o, "min", k, calls, v->min);
		put_value(o, "max", k, calls, v->max);
	}
	rec_end(o);
}

static void
write_path(const struct result *r, size_t i, struct rec_out *o)
{
	const struct path *p = &r->path[i];
	char text[16];
	rec_begin(o, "callpath");
	rec_u64(o, "id", i);
	if (p->parent != UINT32_MAX)
		rec_u64(o, "parent", p->parent);
	rec_str(o, "func", r->entry[p->entry].func);
	rec_u64(o, "calls", p->calls);
	rec_str(o, "object", r->entry[p->entry].object);
	rec_put(o, "flags", result_flags(p->flags, text));
	put_some(o, "unfinished", p->unfinished);
	for (unsigned c = 0; c < r->ncounters; c++) {
		bool known = r->entry[p->entry].v[c].known;
		put_value(o, "self", &r->counter[c], known, p->self[c]);
		put_value(o, "incl", &r->counter[c], known, p->incl[c]);
	}
	rec_end(o);
}

/* "FROM:CALLS" for each bucket in use. */
static void
write_dist(const struct result *r, const struct entry *e, struct rec_out *o)
{
	struct buf b = { 0 };
	for (unsigned i = 0; i < PMU_BUCKETS; i++) {
		if (!e->bucket[i])
			continue;
		if (b.len)
			buf_putc(&b, ',');
		num_put_u64(&b, pmu_bucket_from(i));
		buf_putc(&b, ':');
		num_put_u64(&b, e->bucket[i]);
	}
	if (b.len && !b.failed) {
		rec_begin(o, "dist");
		rec_str(o, "func", e->func);
		rec_str(o, "object", e->object);
		rec_str(o, "counter", r->counter[0].name);
		rec_str(o, "buckets", buf_view(&b));
		rec_end(o);
	}
	buf_free(&b);
}

static void
write_coverage(const struct coverage *c, struct rec_out *o)
{
	rec_begin(o, "coverage");
	rec_str(o, "object", c->object);
	rec_u64(o, "functions", c->functions);
	rec_u64(o, "asked", c->asked);
	rec_u64(o, "on", c->on);
	put_some(o, "section", c->section);
	put_some(o, "scan", c->scan);
	put_some(o, "refused", c->refused);
	if (c->note.len)
		rec_str(o, "note", c->note);
	rec_end(o);
}

void
result_write(const struct result *r, struct rec_out *o, bool all)
{
	for (unsigned c = 0; c < r->ncounters; c++)
		write_counter(&r->counter[c], o);
	for (size_t i = 0; i < r->nentries; i++)
		write_entry(r, &r->entry[i], o);
	for (size_t i = 0; all && i < r->npaths; i++)
		write_path(r, i, o);
	for (size_t i = 0; all && r->ncounters && i < r->nentries; i++)
		write_dist(r, &r->entry[i], o);
	for (size_t i = 0; i < r->ncoverage; i++)
		write_coverage(&r->coverage[i], o);
	for (size_t i = 0; i < r->ncaveats; i++) {
		rec_begin(o, "caveat");
		rec_put(o, "what", r->caveat[i].what);
		rec_u64(o, "n", r->caveat[i].n);
		rec_str(o, "note", r->caveat[i].note);
		rec_end(o);
	}
}

char *
result_columns_dup(const struct result *r)
{
	struct buf b = { 0 };
	buf_puts(&b, "func,calls,samples");
	for (unsigned c = 0; c < r->ncounters; c++) {
		struct str n = r->counter[c].name;
		buf_printf(&b, ",self.%.*s,incl.%.*s,err.%.*s", STR_ARG(n),
		    STR_ARG(n), STR_ARG(n));
	}
	buf_puts(&b, ",flags");
	buf_putc(&b, 0);
	return b.failed ? NULL : b.p;
}

/* ---- reading ------------------------------------------------------------ */

static struct str
keep(struct result *r, const struct rec *rec, const char *k)
{
	struct str s = arena_str(&r->arena, rec_text_of(rec, k));
	return s.p ? s : STR_LIT("");
}

static int
read_i64(const struct rec *rec, const char *k, int64_t *out, struct err *e)
{
	const struct str *v = rec_get(rec, k);
	if (!v)
		return 0;
	int r = num_i64(*v, INT64_MIN, INT64_MAX, out, e);
	return r ? (err_prefix(e, "%s", k), SE_EFORMAT) : 0;
}

static int
read_counter(struct result *r, const struct rec *rec, struct err *e)
{
	if (r->ncounters == PMU_COUNTERS)
		return err_set(
		    e, SE_ELIMIT, "more than %d counters", PMU_COUNTERS);
	struct counter *c = &r->counter[r->ncounters];
	*c = (struct counter){
		.name = keep(r, rec, "name"),
		.unit = keep(r, rec, "unit"),
		.source = keep(r, rec, "source"),
		.check = keep(r, rec, "check"),
		.exact = str_is(rec_text_of(rec, "exact"), "yes"),
	};
	if (c->name.len > KEY_MAX - 8)
		return err_set(
		    e, SE_ELIMIT, "counter name of %zu bytes", c->name.len);
	int x = read_i64(rec, "self", &c->self, e);
	if (!x)
		x = read_i64(rec, "child", &c->child, e);
	if (!x)
		x = read_i64(rec, "spread", &c->spread, e);
	if (!x)
		x = rec_u64_of(rec, "hz", &c->hz, e);
	if (!x)
		r->ncounters++;
	return x;
}

/* A value that may be "unknown": known tells. */
static int
read_value(const struct rec *rec, const char *what, const struct counter *c,
    int64_t *out, bool *known, struct err *e)
{
	char k[KEY_MAX];
	const struct str *v = rec_get(rec, key(k, what, c));
	*known = v && !str_is(*v, "unknown");
	return *known ? read_i64(rec, k, out, e) : 0;
}

static int
read_values(const struct result *r, const struct rec *rec, struct entry *n,
    struct err *e)
{
	for (unsigned c = 0; c < r->ncounters; c++) {
		struct values *v = &n->v[c];
		const struct counter *k = &r->counter[c];
		bool known;
		int x = read_value(rec, "self", k, &v->self, &v->known, e);
		if (!x)
			x = read_value(
			    rec, "incl", k, &v->incl, &v->incl_known, e);
		if (!x)
			x = read_value(rec, "err", k, &v->err, &known, e);
		if (!x)
			x = read_value(rec, "min", k, &v->min, &known, e);
		if (!x)
			x = read_value(rec, "max", k, &v->max, &known, e);
		if (x)
			return x;
	}
	return 0;
}

/* The entry of a function in an object, by name; *fresh if it is new. */
static struct entry *
named(struct result *r, struct str func, struct str object, bool *fresh)
{
	struct buf b = { 0 };
	buf_str(&b, func);
	buf_putc(&b, 0);
	buf_str(&b, object);
	struct str k = arena_str(&r->arena, buf_view(&b));
	buf_free(&b);
	if (!k.p)
		return NULL;
	uint64_t *at = map_at(&r->entry_by_name, k, fresh);
	if (!at)
		return NULL;
	if (!*fresh)
		return &r->entry[*at];
	*at = r->nentries;
	return result_entry(r, func, object);
}

static int
read_entry(struct result *r, const struct rec *rec, struct err *e)
{
	bool fresh;
	if (r->nentries == ENTRIES_MAX)
		return err_set(
		    e, SE_ELIMIT, "more than %d functions", ENTRIES_MAX);
	struct entry *n = named(
	    r, rec_text_of(rec, "func"), rec_text_of(rec, "object"), &fresh);
	if (!n)
		return err_mem(e);
	if (!fresh)
		return err_set(e, SE_EFORMAT, "function a second time");
	n->flags = flags_of(rec_text_of(rec, "flags"));
	static const struct {
		const char *key;
		size_t at;
	} numbers[] = {
		{ "calls", offsetof(struct entry, calls) },
		{ "samples", offsetof(struct entry, calls) },
		{ "lost", offsetof(struct entry, lost) },
		{ "unfinished", offsetof(struct entry, unfinished) },
		{ "interrupted", offsetof(struct entry, interrupted) },
		{ "migrated", offsetof(struct entry, migrated) },
	};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		uint64_t v = 0;
		int x = rec_u64_of(rec, numbers[i].key, &v, e);
		if (x)
			return x;
		if (rec_get(rec, numbers[i].key))
			memcpy((char *)n + numbers[i].at, &v, sizeof v);
	}
	return read_values(r, rec, n, e);
}

static int
read_path(struct result *r, const struct rec *rec, struct err *e)
{
	uint64_t id = 0, parent = UINT32_MAX;
	bool fresh, known;
	int x = rec_u64_of(rec, "id", &id, e);
	if (!x)
		x = rec_u64_of(rec, "parent", &parent, e);
	if (x)
		return x;
	if (id != r->npaths || r->npaths == PATHS_MAX)
		return err_set(e, SE_EFORMAT, "expected path %zu, found %llu",
		    r->npaths, (unsigned long long)id);
	if (parent != UINT32_MAX && parent >= id)
		return err_set(e, SE_EFORMAT, "path below a later one");
	struct entry *n = named(
	    r, rec_text_of(rec, "func"), rec_text_of(rec, "object"), &fresh);
	struct path *p = n ? result_path(r) : NULL;
	if (!p)
		return err_mem(e);
	p->parent = (uint32_t)parent;
	p->entry = (uint32_t)(n - r->entry);
	p->flags = flags_of(rec_text_of(rec, "flags"));
	x = rec_u64_of(rec, "calls", &p->calls, e);
	if (!x)
		x = rec_u64_of(rec, "unfinished", &p->unfinished, e);
	for (unsigned c = 0; c < r->ncounters && !x; c++) {
		const struct counter *k = &r->counter[c];
		x = read_value(rec, "self", k, &p->self[c], &known, e);
		if (!x)
			x = read_value(rec, "incl", k, &p->incl[c], &known, e);
	}
	return x;
}

static int
read_dist(struct result *r, const struct rec *rec, struct err *e)
{
	bool fresh;
	struct entry *n = named(
	    r, rec_text_of(rec, "func"), rec_text_of(rec, "object"), &fresh);
	if (!n)
		return err_mem(e);
	struct str rest = rec_text_of(rec, "buckets"), word, from;
	while (str_cut(&rest, ',', &word)) {
		uint64_t lo, calls;
		if (!str_cut(&word, ':', &from) || !word.p ||
		    num_u64(from, 0, UINT64_MAX, &lo, e) ||
		    num_u64(word, 0, UINT64_MAX, &calls, e))
			return err_set(
			    e, SE_EFORMAT, "buckets: expected FROM:CALLS");
		n->bucket[pmu_bucket(lo)] = calls;
		n->has_dist = true;
	}
	return 0;
}

static int
read_coverage(struct result *r, const struct rec *rec, struct err *e)
{
	struct coverage *c =
	    r->ncoverage < LISTS_MAX ? result_coverage(r) : NULL;
	if (!c)
		return err_set(e, SE_ELIMIT, "too many coverage records");
	c->object = keep(r, rec, "object");
	c->note = keep(r, rec, "note");
	int x = rec_u64_of(rec, "functions", &c->functions, e);
	if (!x)
		x = rec_u64_of(rec, "asked", &c->asked, e);
	if (!x)
		x = rec_u64_of(rec, "on", &c->on, e);
	if (!x)
		x = rec_u64_of(rec, "section", &c->section, e);
	if (!x)
		x = rec_u64_of(rec, "scan", &c->scan, e);
	if (!x)
		x = rec_u64_of(rec, "refused", &c->refused, e);
	return x;
}

static int
read_caveat(struct result *r, const struct rec *rec, struct err *e)
{
	uint64_t n = 0;
	int x = rec_u64_of(rec, "n", &n, e);
	if (x)
		return x;
	if (r->ncaveats == LISTS_MAX)
		return err_set(e, SE_ELIMIT, "too many caveats");
	struct str what = keep(r, rec, "what");
	struct str note = rec_text_of(rec, "note");
	result_caveat(r, what.p, n, "%.*s", STR_ARG(note));
	return 0;
}

static int
read_head(struct result *r, const struct rec *rec, struct err *e)
{
	if (!str_is(rec_text_of(rec, "of"), "pmu"))
		return err_set(e, SE_EFORMAT,
		    "expected the output of pmucount run (of=pmu)");
	r->backend = keep(r, rec, "source");
	r->command = keep(r, rec, "run");
	return 0;
}

static const struct {
	const char *type;
	int (*read)(struct result *, const struct rec *, struct err *);
} readers[] = {
	{ "head", read_head },
	{ "counter", read_counter },
	{ "pmu", read_entry },
	{ "callpath", read_path },
	{ "dist", read_dist },
	{ "coverage", read_coverage },
	{ "caveat", read_caveat },
};

static int
read_one(struct result *r, const struct rec *rec, struct err *e)
{
	for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
		if (str_is(rec->type, readers[i].type))
			return readers[i].read(r, rec, e);
	return 0;
}

/* Reads all of it; bad lines are counted, the first is kept in `first`. */
static int
read_all(struct result *r, struct rec_in *in, struct err *first)
{
	struct rec *rec = arena_alloc(&r->arena, sizeof *rec);
	struct err e;
	if (!rec)
		return err_mem(first);
	first->code = 0;
	for (;;) {
		int x = rec_in_next(in, rec, &e);
		if (!x)
			return 0;
		bool whole = x > 0;
		if (whole) {
			x = read_one(r, rec, &e);
			if (x == SE_ENOMEM)
				return err_set(first, x, "%s", e.msg);
			if (x)
				rec_in_bad(in);
		}
		if (x < 0 && !first->code) {
			if (whole)
				err_prefix(
				    &e, "%llu", (unsigned long long)rec->line);
			*first = e;
		}
	}
}

int
result_read(
    struct result *r, const char *path, const char *tmpdir, struct err *e)
{
	struct src *src;
	struct rec_in *in;
	struct err first = { 0 };
	int x = !strcmp(path, "-") ? src_open_fd(&src, 0, tmpdir, 0, e)
				   : src_open(&src, path, tmpdir, 0, e);
	if (!x)
		x = rec_in_open(&in, src, e);
	if (x)
		return x;
	x = read_all(r, in, &first);
	r->totals = *rec_in_totals(in);
	rec_in_close(in);
	if (x || (!r->nentries && first.code))
		return err_set(e, first.code, "%s", first.msg);
	if (!r->ncounters)
		return err_set(e, SE_EFORMAT,
		    "no counter record: not the output of pmucount run");
	if (first.code) /* for a message; the counts are in totals */
		*e = first;
	return 0;
}
