/* CSV and TSV through libcsv: see csv.h. */
#include "csv.h"

#include <csv.h>
#include <inttypes.h>
#include <stdlib.h>

#include "line.h"

struct csv {
	struct line_in *in;
	enum csv_form form;
	struct csv_parser parser;
	struct str rest; /* of the line that is being read */
	bool complete;   /* the parser has finished a row */
	bool ended;
	size_t fed; /* bytes of this row so far */
	/* The row: its text, where each cell ends, and the cells. */
	struct buf text, ends, cells;
	size_t n;
};

static int
is_no_space(unsigned char c)
{
	return 0;
}

int
csv_open(struct csv **out, struct src *src, enum csv_form form, struct err *e)
{
	struct csv *c = calloc(1, sizeof *c);
	if (!c)
		return err_mem(e);
	int r = line_open(&c->in, src, CSV_ROW_MAX, e);
	if (!r && csv_init(&c->parser, CSV_STRICT | CSV_STRICT_FINI))
		r = err_mem(e);
	if (r) {
		line_close(c->in);
		free(c);
		return r;
	}
	c->form = form;
	/* Without this, blanks around a plain field are cut off. */
	csv_set_space_func(&c->parser, is_no_space);
	*out = c;
	return 0;
}

void
csv_close(struct csv *c)
{
	if (!c)
		return;
	csv_free(&c->parser);
	line_close(c->in);
	buf_free(&c->text);
	buf_free(&c->ends);
	buf_free(&c->cells);
	free(c);
}

/* Cells are kept by where they end: the text moves while it grows. */
static void
add_cell(void *p, size_t len, void *user)
{
	struct csv *c = user;
	if (c->n == CSV_CELLS_MAX) {
		c->text.failed = true;
		return;
	}
	buf_add(&c->text, p, len);
	buf_add(&c->ends, &c->text.len, sizeof c->text.len);
	c->n++;
}

static void
end_row(int terminator, void *user)
{
	struct csv *c = user;
	c->complete = true;
}

static int
bad(const struct csv *c, int code, const char *what, struct err *e)
{
	return err_set(
	    e, code, "line %" PRIu64 ": %s", line_number(c->in), what);
}

static int
parse_error(struct csv *c, struct err *e)
{
	if (csv_error(&c->parser) == CSV_ENOMEM)
		return err_mem(e);
	return bad(c, SE_EFORMAT,
	    "expected a comma or the end of the line after a quoted field, "
	    "and quotes only around a whole field",
	    e);
}

/*
 * Gives the parser the rest of the line up to a CR, so that no call ends more
 * than one row.
 */
static int
feed(struct csv *c, struct err *e)
{
	const char *cr =
	    c->rest.len ? memchr(c->rest.p, '\r', c->rest.len) : NULL;
	size_t len = cr ? (size_t)(cr - c->rest.p) + 1 : c->rest.len;
	c->fed += len;
	if (c->fed > CSV_ROW_MAX)
		return bad(c, SE_ELIMIT, "row of more than 1 MiB", e);
	if (csv_parse(&c->parser, c->rest.p, len, add_cell, end_row, c) != len)
		return parse_error(c, e);
	c->rest.p += len;
	c->rest.len -= len;
	if (c->rest.len || c->complete)
		return 0;
	if (line_has_lf(c->in) &&
	    csv_parse(&c->parser, "\n", 1, add_cell, end_row, c) != 1)
		return parse_error(c, e);
	c->rest.p = NULL;
	return 0;
}

/* The next line into `rest`. */
static int
refill(struct csv *c, struct err *e)
{
	int r = line_next(c->in, &c->rest, e);
	if (r == 1 && line_number(c->in) == 1 &&
	    str_starts(c->rest, "\xef\xbb\xbf")) {
		c->rest.p += 3;
		c->rest.len -= 3;
	}
	return r;
}

static int
next_commas(struct csv *c, struct err *e)
{
	while (!c->complete) {
		if (!c->rest.p) {
			int r = refill(c, e);
			if (r < 0)
				return r;
			if (r == 0)
				break;
		}
		int r = feed(c, e);
		if (r)
			return r;
	}
	if (c->complete || c->ended)
		return c->complete;
	c->ended = true;
	if (csv_fini(&c->parser, add_cell, end_row, c))
		return csv_error(&c->parser) == CSV_ENOMEM
			   ? err_mem(e)
			   : bad(c, SE_ETRUNC, "quoted field without an end",
				 e);
	return c->complete;
}

static int
next_tabs(struct csv *c, struct err *e)
{
	struct str cell;
	do {
		int r = refill(c, e);
		if (r != 1)
			return r;
		if (str_ends(c->rest, "\r"))
			c->rest.len--;
	} while (!c->rest.len);
	while (str_cut(&c->rest, '\t', &cell))
		add_cell((void *)cell.p, cell.len, c);
	return 1;
}

int
csv_next(struct csv *c, struct csv_row *row, struct err *e)
{
	c->text.len = c->ends.len = c->cells.len = 0;
	c->n = c->fed = 0;
	c->complete = false;
	int r = c->form == CSV_TABS ? next_tabs(c, e) : next_commas(c, e);
	if (r != 1)
		return r;
	if (c->n >= CSV_CELLS_MAX)
		return bad(c, SE_ELIMIT, "more than 65535 cells", e);
	size_t from = 0;
	for (size_t i = 0; i < c->n; i++) {
		size_t to;
		memcpy(&to, c->ends.p + i * sizeof to, sizeof to);
		struct str cell = { c->text.p + from, to - from };
		buf_add(&c->cells, &cell, sizeof cell);
		from = to;
	}
	if (c->text.failed || c->ends.failed || c->cells.failed)
		return err_mem(e);
	*row = (struct csv_row){ (const struct str *)(void *)c->cells.p, c->n,
		line_number(c->in) };
	return 1;
}

void
csv_put(struct buf *b, struct str field)
{
	size_t room = csv_write2(NULL, 0, field.p, field.len, CSV_QUOTE);
	char *to = buf_room(b, room);
	if (to)
		b->len += csv_write2(to, room, field.p, field.len, CSV_QUOTE);
}
