/* Runs sorted into questions: see family.h. */
#define _GNU_SOURCE
#include "family.h"

#include <math.h>
#include <stdlib.h>

#include "buf.h"
#include "cli.h"

/* The last part of a path: two builds lie in different places. */
static struct str
base_of(struct str path)
{
	for (size_t i = path.len; i > 0; i--)
		if (path.p[i - 1] == '/')
			return (struct str){ path.p + i, path.len - i };
	return path;
}

/*
 * Which object a function is of, as far as the two sides share names: nothing
 * for the program itself, two builds of which may be called anything; the
 * file's name for libraries.
 */
static struct str
object_of(const struct result *r, const struct entry *e)
{
	bool program =
	    !r->ncoverage || str_same(e->object, r->coverage[0].object);
	/* "total" alone is the sum over all. */
	if (program && !str_is(e->func, "total"))
		return STR_LIT("");
	return base_of(e->object);
}

static struct item *
item_new(struct family *f)
{
	if (f->n == f->cap) {
		f->cap = f->cap ? f->cap * 2 : 64;
		f->item = cli_realloc(f->item, f->cap, sizeof *f->item);
	}
	struct item *k = &f->item[f->n];
	*k = (struct item){ .calls_of = f->n++ };
	for (int side = 0; side < 2; side++) {
		k->v[side] = cli_alloc(f->runs, sizeof(double));
		k->n[side] = cli_alloc(f->runs, sizeof(double));
		for (size_t i = 0; i < f->runs; i++)
			k->v[side][i] = k->n[side][i] = NAN;
	}
	return k;
}

/* The item of these names; a counter of NULL: the calls. */
static struct item *
item_of(struct family *f, struct str func, struct str object,
    const struct counter *c)
{
	struct str counter = c ? c->name : STR_LIT("calls");
	struct buf b = { 0 };
	bool fresh;
	buf_str(&b, func);
	buf_putc(&b, 0);
	buf_str(&b, object);
	buf_putc(&b, c ? 0 : 1); /* a counter may be called calls */
	buf_str(&b, counter);
	struct str key = arena_str(&f->arena, buf_view(&b));
	buf_free(&b);
	uint64_t *at = key.p ? map_at(&f->at, key, &fresh) : NULL;
	if (!at)
		cli_die("out of memory");
	if (!fresh)
		return &f->item[*at];
	*at = f->n;
	struct item *k = item_new(f);
	k->func = func;
	k->object = object;
	k->counter = counter;
	k->exact = c ? c->exact : true;
	k->calls = !c;
	return k;
}

/* A name that stands for two functions of one run has no value. */
static void
put_value(struct item *k, int side, size_t run, double calls, double v)
{
	bool twice = !isnan(k->n[side][run]);
	k->n[side][run] = calls;
	k->v[side][run] = twice ? NAN : v;
}

static void
raise(double *to, double v)
{
	*to = v > *to ? v : *to;
}

static void
put_totals(struct family *f, const struct result *r, int side, size_t run)
{
	for (unsigned c = 0; c < r->ncounters; c++) {
		const struct counter *k = &r->counter[c];
		struct item *t = item_of(f, STR_LIT("total"), STR_LIT(""), k);
		double sum = 0, err = 0;
		bool known = !k->unknown && !f->torn[side];
		for (size_t i = 0; i < r->nentries; i++) {
			const struct entry *e = &r->entry[i];
			known &= e->v[c].known && !e->lost &&
				 !(e->flags & FLAG_GATED);
			sum += (double)e->v[c].self;
			err += (double)e->v[c].err;
		}
		put_value(t, side, run, 1, known ? sum : NAN);
		raise(&t->err[side], err);
	}
}

/*
 * An exact counter of the hardware counts interrupts too. One run does not
 * show that; several that agree do not have it.
 */
static bool
is_exact(const struct family *f, const struct result *r, const struct entry *e,
    const struct counter *c)
{
	bool step = str_is(r->backend, "step");
	bool uprobe = str_is(r->backend, "uprobe"); /* does not see them */
	return c->exact &&
	       (f->runs > 1 || step || (!uprobe && !e->interrupted));
}

static void
put_entry(struct family *f, const struct result *r, const struct entry *e,
    int side, size_t run)
{
	struct str object = object_of(r, e);
	struct item *n = item_of(f, e->func, object, NULL);
	bool gated = e->flags & FLAG_GATED;
	size_t calls_of = n->calls_of;
	put_value(n, side, run, 1,
	    e->lost || gated ? NAN : (double)e->calls + (double)e->unfinished);
	for (unsigned c = 0; c < r->ncounters; c++) {
		struct item *k = item_of(f, e->func, object, &r->counter[c]);
		double calls = gated ? 1 : (double)e->calls;
		double err = (double)e->v[c].err / calls;
		bool usable = e->v[c].known && e->calls && !e->lost &&
			      !(e->flags & (FLAG_ORPHAN | FLAG_CUT));
		k->calls_of = calls_of;
		k->exact &= is_exact(f, r, e, &r->counter[c]);
		put_value(k, side, run, calls,
		    usable ? (double)e->v[c].self / calls : NAN);
		k->dominated |=
		    !r->counter[c].exact && e->flags & FLAG_DOMINATED;
		if (usable)
			raise(&k->err[side], err);
	}
}

void
family_put(struct family *f, const struct result *r, int side, size_t run,
    family_named *named, void *user)
{
	put_totals(f, r, side, run);
	for (size_t i = 0; i < r->nentries; i++)
		if (named(user, r->entry[i].func))
			put_entry(f, r, &r->entry[i], side, run);
}

void
family_free(struct family *f)
{
	for (size_t i = 0; i < f->n; i++)
		for (int side = 0; side < 2; side++) {
			free(f->item[i].v[side]);
			free(f->item[i].n[side]);
		}
	free(f->item);
	map_free(&f->at);
	arena_free(&f->arena);
}
