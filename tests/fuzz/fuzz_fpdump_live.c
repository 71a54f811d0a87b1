/* Frames and images from anywhere: what comes out is a whole stream. */
#include <stdint.h>
#include <stdlib.h>

#include "../../cmd/fpdump/fpdump.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);

static int
collect(void *user, const char *p, size_t len, struct err *e)
{
	(void)e;
	buf_add(user, p, len);
	return 0;
}

/* The records written must be readable, all of them. */
static void
read_back(const struct buf *b, uint64_t records)
{
	static struct rec r;
	struct rec_in *in;
	struct src *src;
	struct err e;
	uint64_t n = 0;
	if (src_open_mem(&src, b->p, b->len, &e) || rec_in_open(&in, src, &e))
		return;
	for (int got; (got = rec_in_next(in, &r, &e));) {
		struct fp f;
		if (got != 1)
			abort();
		if (fp_is(&r) && (++n, fp_parse(&f, &r, NULL, &e)))
			abort();
	}
	if (n != records || rec_totals_state(rec_in_totals(in)) != REC_COMPLETE)
		abort();
	rec_in_close(in);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	struct settings s = { .dump.jobs = 1, .dump.exec = true };
	struct outcome out = { 0 };
	struct buf b = { 0 };
	struct rec_how how = { .sink = collect, .user = &b };
	struct rec_out *o;
	struct src *src;
	struct err e;
	s.dump.print.digest = (struct digest_how){ .canon = true,
		.rows = true,
		.stats = true,
		.unit = 3,
		.tiles = 4 };
	if (src_open_mem(&src, p, len, &e))
		return 0;
	if (!rec_out_open(&o, -1, &how, &e)) {
		rec_begin(o, "head");
		rec_put(o, "of", "fp");
		rec_u64(o, "version", SCHEMA_VERSION);
		rec_put(o, "tool", "fuzz");
		rec_end(o);
		live_dump(o, &s, src, &out);
		if (!rec_out_finish(o, NULL, 0, 0, &e))
			read_back(&b, out.count.records);
		rec_out_close(o);
	}
	buf_free(&b);
	src_close(src);
	return 0;
}
