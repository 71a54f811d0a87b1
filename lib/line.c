/* Lines of text: see line.h. */
#include "line.h"

#include <inttypes.h>
#include <stdlib.h>

#include "buf.h"

enum { READ_SIZE = 64 << 10 };

struct line_in {
	struct src *src;
	size_t max;
	struct buf block; /* read and not yet used: from `at` on */
	size_t at;
	uint64_t off, number;
	bool lf, eof;
};

int
line_open(struct line_in **out, struct src *src, size_t max, struct err *e)
{
	struct line_in *in = calloc(1, sizeof *in);
	if (!in)
		return err_mem(e);
	in->src = src;
	in->max = max;
	if (!buf_room(&in->block, READ_SIZE)) {
		free(in);
		return err_mem(e);
	}
	*out = in;
	return 0;
}

void
line_close(struct line_in *in)
{
	if (!in)
		return;
	buf_free(&in->block);
	free(in);
}

uint64_t
line_number(const struct line_in *in)
{
	return in->number;
}

bool
line_has_lf(const struct line_in *in)
{
	return in->lf;
}

static int
read_more(struct line_in *in, struct err *e)
{
	struct buf *b = &in->block;
	if (in->at) {
		memmove(b->p, b->p + in->at, b->len - in->at);
		b->len -= in->at;
		in->at = 0;
	}
	char *to = buf_room(b, READ_SIZE);
	size_t n;
	if (!to)
		return err_mem(e);
	int r = src_read_next(in->src, in->off, to, READ_SIZE, &n, e);
	if (r)
		return r;
	b->len += n;
	in->off += n;
	in->eof = n == 0;
	return 0;
}

static int
too_long(const struct line_in *in, struct err *e)
{
	return err_set(e, SE_ELIMIT, "line %" PRIu64 ": more than %zu bytes",
	    in->number + 1, in->max);
}

static int
give(struct line_in *in, struct str *line, size_t len, bool lf)
{
	*line = (struct str){ in->block.p + in->at, len };
	in->at += len + lf;
	in->lf = lf;
	in->number++;
	return 1;
}

int
line_next(struct line_in *in, struct str *line, struct err *e)
{
	size_t looked = 0;
	for (;;) {
		size_t have = in->block.len - in->at;
		char *p = in->block.p + in->at;
		char *lf = have > looked
			       ? memchr(p + looked, '\n', have - looked)
			       : NULL;
		size_t len = lf ? (size_t)(lf - p) : have;
		if (len > in->max)
			return too_long(in, e);
		if (lf)
			return give(in, line, len, true);
		if (in->eof)
			return have ? give(in, line, have, false) : 0;
		looked = have;
		int r = read_more(in, e);
		if (r)
			return r;
	}
}
