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

int
tensor_lines_open(struct tensor_set *set, struct src *src,
    const struct tensor_hints *hints, struct err *e)
{
	struct line_in *in;
	int r = line_open(&in, src, TEXT_LINE_MAX, e);
	if (!r)
		set->priv = in;
	return r;
}

int
tensor_lines_next(struct tensor_set *set, struct err *e)
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

void
tensor_lines_close(struct tensor_set *set)
{
	line_close(set->priv);
}
