/* What was counted, as records: see result.h. */
#define _GNU_SOURCE
#include "result.h"

#include <stdio.h>

#include "num.h"

static void
put_value(struct rec_out *o, const char *what, const struct counter *c,
    bool known, int64_t v)
{
	char k[RESULT_KEY];
	if (known)
		rec_i64(o, result_key(k, what, c), v);
	else
		rec_put(o, result_key(k, what, c), "unknown");
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
	rec_u64(o, e->flags & FLAG_GATED ? "samples" : "calls", e->calls);
	rec_str(o, "object", e->object);
	rec_put(o, "flags", result_flags(e->flags, text));
	put_some(o, "lost", e->lost);
	put_some(o, "unfinished", e->unfinished);
	put_some(o, "interrupted", e->interrupted);
	put_some(o, "migrated", e->migrated);
	for (unsigned c = 0; c < r->ncounters; c++) {
		const struct values *v = &e->v[c];
		const struct counter *k = &r->counter[c];
		bool any = v->known || v->incl_known;
		put_value(o, "self", k, v->known, v->self);
		put_value(o, "incl", k, v->incl_known, v->incl);
		put_value(o, "err", k, any, v->err);
		if (any && !e->calls) /* no call returned */
			continue;
		put_value(o, "min", k, any, v->min);
		put_value(o, "max", k, any, v->max);
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
	rec_u64(o, p->flags & FLAG_GATED ? "samples" : "calls", p->calls);
	rec_str(o, "object", r->entry[p->entry].object);
	rec_put(o, "flags", result_flags(p->flags, text));
	put_some(o, "unfinished", p->unfinished);
	for (unsigned c = 0; c < r->ncounters; c++) {
		const struct values *v = &r->entry[p->entry].v[c];
		put_value(o, "self", &r->counter[c], v->known, p->self[c]);
		put_value(o, "incl", &r->counter[c], v->incl_known, p->incl[c]);
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
