/* What was counted, read back from records: see result.h. */
#define _GNU_SOURCE
#include "result.h"

#include <stdlib.h>
#include <string.h>

#include "num.h"

enum {
	ENTRIES_MAX = 1 << 20, /* functions in a file that is read */
	PATHS_MAX = 1 << 22,
	LISTS_MAX = 4096, /* coverage lines and caveats */
};

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

/* It becomes a part of keys. */
static int
check_name(struct str name, struct err *e)
{
	if (!name.len || name.len > RESULT_KEY - 8)
		return err_set(
		    e, SE_EFORMAT, "counter name of %zu bytes", name.len);
	for (size_t i = 0; i < name.len; i++) {
		char c = name.p[i];
		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
		    !(c >= '0' && c <= '9') && c != '-' && c != '_')
			return err_set(e, SE_EFORMAT,
			    "byte 0x%02x in a counter name", (unsigned char)c);
	}
	return 0;
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
	int x = check_name(c->name, e);
	if (x)
		return x;
	for (unsigned i = 0; i < r->ncounters; i++)
		if (str_same(r->counter[i].name, c->name))
			return err_set(e, SE_EFORMAT, "counter a second time");
	x = read_i64(rec, "self", &c->self, e);
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
	char k[RESULT_KEY];
	const struct str *v = rec_get(rec, result_key(k, what, c));
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
		if (!x && v->err < 0)
			x = err_set(e, SE_EFORMAT, "err below zero");
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

/* The same; SE_ELIMIT before there are too many. */
static int
named_by(struct result *r, const struct rec *rec, struct entry **out,
    bool *fresh, struct err *e)
{
	if (r->nentries == ENTRIES_MAX)
		return err_set(
		    e, SE_ELIMIT, "more than %d functions", ENTRIES_MAX);
	*out = named(
	    r, rec_text_of(rec, "func"), rec_text_of(rec, "object"), fresh);
	return *out ? 0 : err_mem(e);
}

static int
read_numbers(const struct rec *rec, struct entry *n, struct err *e)
{
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
	return 0;
}

/* A whole function or none: half of one would be a wrong count. */
static int
read_entry(struct result *r, const struct rec *rec, struct err *e)
{
	struct entry got = { 0 }, *n;
	bool fresh;
	got.flags = result_flags_of(rec_text_of(rec, "flags"));
	int x = read_numbers(rec, &got, e);
	if (!x)
		x = read_values(r, rec, &got, e);
	if (!x)
		x = named_by(r, rec, &n, &fresh, e);
	if (x)
		return x;
	if (!fresh)
		return err_set(e, SE_EFORMAT, "function a second time");
	got.func = n->func;
	got.object = n->object;
	*n = got;
	return 0;
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
	struct path got = { .parent = (uint32_t)parent }, *p;
	struct entry *n;
	got.flags = result_flags_of(rec_text_of(rec, "flags"));
	x = rec_u64_of(rec, "calls", &got.calls, e);
	if (!x)
		x = rec_u64_of(rec, "samples", &got.calls, e);
	if (!x)
		x = rec_u64_of(rec, "unfinished", &got.unfinished, e);
	for (unsigned c = 0; c < r->ncounters && !x; c++) {
		const struct counter *k = &r->counter[c];
		x = read_value(rec, "self", k, &got.self[c], &known, e);
		if (!x)
			x = read_value(rec, "incl", k, &got.incl[c], &known, e);
	}
	if (!x)
		x = named_by(r, rec, &n, &fresh, e);
	if (x)
		return x;
	p = result_path(r);
	if (!p)
		return err_mem(e);
	got.entry = (uint32_t)(n - r->entry);
	*p = got;
	return 0;
}

static int
read_dist(struct result *r, const struct rec *rec, struct err *e)
{
	bool fresh;
	struct entry *n;
	struct str counter = rec_text_of(rec, "counter");
	if (!r->ncounters || !str_same(counter, r->counter[0].name))
		return err_set(
		    e, SE_EFORMAT, "distribution of another counter");
	int x = named_by(r, rec, &n, &fresh, e);
	if (x)
		return x;
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
result_read(struct result *r, struct src *src, struct err *e)
{
	struct rec_in *in;
	struct err first = { 0 };
	int x = rec_in_open(&in, src, e);
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
