/*
 * Any bytes as a run of pmucount: what is read can be written, and reads back
 * as the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../cmd/pmucount/result.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);

static int
collect(void *user, const char *p, size_t len, struct err *e)
{
	(void)e;
	buf_add(user, p, len);
	return 0;
}

static bool
read_result(struct result *r, const void *p, size_t len)
{
	struct src *src;
	struct err e = { 0 };
	*r = (struct result){ 0 };
	return !src_open_mem(&src, p, len, &e) && !result_read(r, src, &e);
}

static void
write_result_to(const struct result *r, struct buf *b)
{
	struct rec_how how = { .sink = collect, .user = b };
	struct rec_out *o;
	struct err e;
	if (rec_out_open(&o, -1, &how, &e))
		abort();
	result_write(r, o, true);
	rec_out_flush(o, &e);
	rec_out_close(o);
}

/* Indexes that everybody follows without asking. */
static void
check(const struct result *r)
{
	for (size_t i = 0; i < r->npaths; i++) {
		const struct path *p = &r->path[i];
		if (p->entry >= r->nentries)
			abort();
		if (p->parent != UINT32_MAX && p->parent >= i)
			abort();
	}
	for (size_t i = 0; i < r->nentries; i++)
		for (unsigned c = 0; c < r->ncounters; c++)
			if (r->entry[i].v[c].err < 0)
				abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	struct result a, b;
	struct buf first = { 0 }, second = { 0 };
	char *columns = NULL;
	if (read_result(&a, p, len)) {
		check(&a);
		columns = result_columns_dup(&a);
		write_result_to(&a, &first);
		if (!read_result(&b, first.p, first.len) || b.totals.bad)
			abort();
		write_result_to(&b, &second);
		if (first.len != second.len ||
		    memcmp(first.p, second.p, first.len))
			abort();
		result_free(&b);
		result_sort(&a);
		check(&a);
	}
	result_free(&a);
	buf_free(&first);
	buf_free(&second);
	free(columns);
	return 0;
}
