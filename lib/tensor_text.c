/* Text: one scalar a line, named by its number. */
#include <inttypes.h>
#include <stdio.h>

#include "line.h"
#include "tensor_formats.h"

enum {
	/* Four bytes for one when escaped, and still a record of 1 MiB. */
	TEXT_LINE_MAX = 250 << 10,
	BATCH = 64,
};

static int
open_set(struct tensor_set *set, struct src *src,
    const struct tensor_hints *hints, struct err *e)
{
	struct line_in *in;
	int r = line_open(&in, src, TEXT_LINE_MAX, e);
	if (!r)
		set->priv = in;
	return r;
}

static int
next_batch(struct tensor_set *set, struct err *e)
{
	struct line_in *in = set->priv;
	struct str line;
	int r = 0;
	while (!r && set->n < BATCH && (r = line_next(in, &line, e)) > 0) {
		char name[24];
		int n =
		    snprintf(name, sizeof name, "%" PRIu64, line_number(in));
		r = tensor_add_scalar(set, 0, (struct str){ name, (size_t)n },
		    STR_LIT("text"), line, e);
	}
	return tensor_late(set, r, e);
}

static void
close_set(struct tensor_set *set)
{
	line_close(set->priv);
}

const struct tensor_format tensor_lines = {
	.name = "lines",
	.what = "text, one value a line",
	.open = open_set,
	.next = next_batch,
	.close = close_set,
};
