/* What was counted, in memory: see result.h. */
#define _GNU_SOURCE
#include "result.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "num.h"
#include "sort.h"

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

/* ---- names -------------------------------------------------------------- */

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
	{ FLAG_HOLES, 'H' },
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

unsigned
result_flags_of(struct str text)
{
	unsigned flags = 0;
	for (size_t k = 0; k < text.len; k++)
		for (size_t i = 0; i < NLETTERS; i++)
			if (text.p[k] == letters[i].letter)
				flags |= letters[i].flag;
	return flags;
}

const char *
result_key(char *text, const char *what, const struct counter *c)
{
	snprintf(text, RESULT_KEY, "%s.%.*s", what, STR_ARG(c->name));
	return text;
}
