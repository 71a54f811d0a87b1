/* Records from anywhere: read, passed on, and read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rec.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);

static int
collect(void *user, const char *p, size_t len, struct err *e)
{
	(void)e;
	buf_add(user, p, len);
	return 0;
}

/* Reads everything; good records go to `o`, if any. Returns their number. */
static uint64_t
read_all(const void *p, size_t len, struct rec_out *o)
{
	static struct rec r;
	struct src *src;
	struct rec_in *in;
	struct err e;
	uint64_t good = 0;
	if (src_open_mem(&src, p, len, &e) || rec_in_open(&in, src, &e))
		return 0;
	for (int got; (got = rec_in_next(in, &r, &e));) {
		if (got != 1)
			continue;
		good++;
		if (o)
			rec_copy(o, &r);
	}
	rec_in_close(in);
	return good;
}

/* What was passed on is clean and reads back, record for record. */
static void
check_copy(const uint8_t *p, size_t len)
{
	struct buf b = { 0 };
	struct rec_how how = { .sink = collect, .user = &b };
	struct rec_out *o;
	struct err e;
	if (rec_out_open(&o, -1, &how, &e))
		return;
	uint64_t n = read_all(p, len, o);
	if (!rec_out_flush(o, &e)) {
		if (read_all(b.p, b.len, NULL) != n)
			abort();
		for (size_t i = 0; i < b.len; i++)
			if ((unsigned char)b.p[i] < 0x20 && b.p[i] != '\n' &&
			    b.p[i] != '\t')
				abort();
	}
	rec_out_close(o);
	buf_free(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	static const int forms[] = { REC_JSON, REC_TABLE, REC_TSV, REC_CSV };
	rec_probe(p, len);
	check_copy(p, len);
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		struct buf b = { 0 };
		struct rec_how how = { .form = forms[i],
			.type = "fp",
			.sink = collect,
			.user = &b };
		struct rec_out *o;
		struct err e;
		if (rec_out_open(&o, -1, &how, &e))
			continue;
		read_all(p, len, o);
		rec_out_finish(o, NULL, 0, 0, &e);
		rec_out_close(o);
		buf_free(&b);
	}
	return 0;
}
