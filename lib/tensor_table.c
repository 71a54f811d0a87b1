/*
 * Tables: CSV, TSV and JSON Lines, such as loss logs. One scalar a cell:
 * its name is the column's, its step the text in the step column. Without
 * such a column rows count, from 0.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "csv.h"
#include "esc.h"
#include "json.h"
#include "line.h"
#include "map.h"
#include "num.h"
#include "sort.h"
#include "tensor_formats.h"

enum {
	ROWS = 64,
	JSON_LINE_MAX = 1 << 20,
	/* In messages: columns, and bytes of the name of one. */
	COLUMNS_SHOWN = 8,
	COLUMN_SHOWN = 24,
};

struct table {
	struct csv *csv;    /* either this */
	struct line_in *in; /* or this: JSON Lines */
	struct str step;    /* column asked for, or "" */
	uint64_t row;       /* rows so far */
	size_t ncol;
	struct str *col;
	size_t step_col; /* ncol: none; JSON Lines: 1 has one, 2 has none */
};

/* ---- both ------------------------------------------------------------ */

static int
row_number(struct tensor_set *set, const struct table *tb, struct str *step,
    struct err *e)
{
	char text[24];
	int n = snprintf(text, sizeof text, "%" PRIu64, tb->row);
	*step = arena_str(&set->batch, (struct str){ text, (size_t)n });
	return step->p ? 0 : err_mem(e);
}

/* "num" if it reads as a number, so that CSV and JSON agree. */
static struct str
cell_type(struct str s)
{
	double d;
	return num_f64(s, &d, NULL) ? STR_LIT("str") : STR_LIT("num");
}

static int
table_new(struct tensor_set *set, const struct tensor_hints *hints,
    struct table **out, struct err *e)
{
	struct table *tb = arena_alloc(&set->arena, sizeof *tb);
	if (!tb)
		return err_mem(e);
	tb->step = arena_str(&set->arena, hints->step);
	if (!tb->step.p)
		return err_mem(e);
	set->priv = *out = tb;
	return 0;
}

static void
table_close(struct tensor_set *set)
{
	struct table *tb = set->priv;
	if (!tb)
		return;
	csv_close(tb->csv);
	line_close(tb->in);
}

/* Takes the place of a line that could not be used: reading goes on. */
static int
leave_out(struct tensor_set *set, size_t before, struct err *e)
{
	struct err why = *e;
	set->n = before; /* half a row is none */
	int r = tensor_add_scalar(set, TENSOR_LEFT_OUT, STR_LIT("line"),
	    STR_LIT("str"), str_c(why.msg), e);
	return r ? r : 1;
}

/*
 * Cells are told apart by their names: the order of columns says nothing, and
 * two tables with the same columns in another order are the same.
 */
static int
by_name(const void *pa, const void *pb)
{
	const struct tensor *a = pa, *b = pb;
	int c = str_order(a->name, b->name);
	return c ? c : str_order(a->value, b->value);
}

/* Two cells of one name: only JSON can have them, see step_into. */
static int
end_row(struct tensor_set *set, size_t first, struct str step, struct err *e)
{
	for (size_t i = first; i < set->n; i++)
		set->t[i].step = step;
	if (first < set->n)
		sort_array(
		    set->t + first, set->n - first, sizeof *set->t, by_name);
	for (size_t i = first + 1; i < set->n; i++)
		if (str_same(set->t[i - 1].name, set->t[i].name)) {
			err_set(e, SE_EFORMAT,
			    "two values, one under a key with a dot, one in "
			    "a nested object or array");
			return esc_prefix(e, "name", set->t[i].name);
		}
	return 0;
}

/* Calls `row` for a few rows; what came before a failure is kept. */
static int
rows(struct tensor_set *set, struct err *e,
    int (*row)(struct tensor_set *set, struct table *tb, struct err *e))
{
	struct table *tb = set->priv;
	int r = 1;
	for (int i = 0; i < ROWS && r == 1; i++) {
		size_t before = set->n;
		r = row(set, tb, e);
		if (r < 0)
			set->n = before;
		tb->row += r == 1;
	}
	return tensor_late(set, r, e);
}

/* ---- CSV and TSV ------------------------------------------------------- */

/* For messages: names cut short, separated by commas. */
static void
add_column(struct buf *b, struct str name)
{
	bool cut = name.len > COLUMN_SHOWN;
	name.len = cut ? COLUMN_SHOWN : name.len;
	if (b->len)
		buf_puts(b, ", ");
	esc_put(b, name);
	if (cut)
		buf_puts(b, "...");
}

/* The step column, asked for or called "step". */
static int
find_step(struct table *tb, struct err *e)
{
	struct str wanted = tb->step.len ? tb->step : STR_LIT("step");
	for (tb->step_col = 0; tb->step_col < tb->ncol; tb->step_col++)
		if (str_same(tb->col[tb->step_col], wanted))
			return 0;
	if (!tb->step.len)
		return 0;
	struct buf b = { 0 };
	for (size_t i = 0; i < tb->ncol && i < COLUMNS_SHOWN; i++)
		add_column(&b, tb->col[i]);
	int r = err_set(e, SE_ENOENT, "no such column in line 1, it has %s%s",
	    buf_cstr(&b), tb->ncol > COLUMNS_SHOWN ? ", ..." : "");
	buf_free(&b);
	esc_prefix(e, "step column", wanted);
	return r;
}

static int
check_columns(const struct table *tb, struct err *e)
{
	struct map seen = { 0 };
	bool fresh;
	int r = 0;
	for (size_t i = 0; !r && i < tb->ncol; i++) {
		if (!map_at(&seen, tb->col[i], &fresh))
			r = err_mem(e);
		else if (!fresh) {
			r = err_set(e, SE_EFORMAT, "appears twice in line 1");
			esc_prefix(e, "column", tb->col[i]);
		}
	}
	map_free(&seen);
	return r;
}

static int
read_header(struct tensor_set *set, struct table *tb, struct err *e)
{
	struct csv_row row;
	int r = csv_next(tb->csv, &row, e);
	if (r < 0)
		return r;
	if (r == 0)
		return err_set(e, SE_ETRUNC,
		    "expected a line with the names "
		    "of columns, found the end");
	tb->ncol = row.n;
	tb->col = arena_array(&set->arena, row.n, sizeof *tb->col);
	if (!tb->col)
		return err_mem(e);
	for (size_t i = 0; i < row.n; i++) {
		tb->col[i] = arena_str(&set->arena, row.cell[i]);
		if (!tb->col[i].p)
			return err_mem(e);
	}
	r = check_columns(tb, e);
	return r ? r : find_step(tb, e);
}

static int
open_cells(struct tensor_set *set, struct src *src, enum csv_form form,
    const struct tensor_hints *hints, struct err *e)
{
	struct table *tb = NULL;
	int r = table_new(set, hints, &tb, e);
	if (!r)
		r = csv_open(&tb->csv, src, form, e);
	return r ? r : read_header(set, tb, e);
}

static int
open_csv(struct tensor_set *set, struct src *src,
    const struct tensor_hints *hints, struct err *e)
{
	return open_cells(set, src, CSV_COMMAS, hints, e);
}

static int
open_tsv(struct tensor_set *set, struct src *src,
    const struct tensor_hints *hints, struct err *e)
{
	return open_cells(set, src, CSV_TABS, hints, e);
}

static int
cells_row(struct tensor_set *set, struct table *tb, struct err *e)
{
	struct csv_row row;
	int r = csv_next(tb->csv, &row, e);
	if (r != 1)
		return r;
	size_t first = set->n;
	if (row.n != tb->ncol) {
		err_set(e, SE_EFORMAT,
		    "line %" PRIu64 ": expected %zu cells, found %zu", row.line,
		    tb->ncol, row.n);
		return leave_out(set, first, e);
	}
	struct str step;
	if (tb->step_col == tb->ncol)
		r = row_number(set, tb, &step, e);
	else
		step = arena_str(&set->batch, row.cell[tb->step_col]);
	if (r < 0 || !step.p)
		return r < 0 ? r : err_mem(e);
	for (size_t i = 0; i < row.n; i++) {
		if (i == tb->step_col)
			continue;
		r = tensor_add_scalar(
		    set, 0, tb->col[i], cell_type(row.cell[i]), row.cell[i], e);
		if (r)
			return r;
	}
	r = end_row(set, first, step, e);
	return r ? r : 1;
}

static int
cells_next(struct tensor_set *set, struct err *e)
{
	return rows(set, e, cells_row);
}

/* ---- JSON Lines -------------------------------------------------------- */

static int
open_jsonl(struct tensor_set *set, struct src *src,
    const struct tensor_hints *hints, struct err *e)
{
	struct table *tb = NULL;
	int r = table_new(set, hints, &tb, e);
	return r ? r : line_open(&tb->in, src, JSON_LINE_MAX, e);
}

struct line_json {
	struct tensor_set *set;
	struct json j;
	struct buf path; /* a.b.0 */
	struct str wanted, step;
	bool counts; /* no line has a step */
};

static bool flatten(struct line_json *l);

static bool
scalar(struct line_json *l, const char *type, struct str value)
{
	struct json *j = &l->j;
	struct str path = buf_view(&l->path);
	if (!l->counts && str_same(path, l->wanted)) {
		if (l->step.p)
			return json_fail(
			    j, SE_EFORMAT, "a second key for the step");
		l->step = arena_str(&l->set->batch, value);
		return l->step.p || json_fail(j, SE_ENOMEM, "out of memory");
	}
	return !tensor_add_scalar(l->set, 0, path, str_c(type), value, &j->err);
}

/*
 * One member or element: its name behind the path while it is read. Dots in
 * keys stay, names like val.loss are common; end_row finds what collides.
 */
static bool
step_into(struct line_json *l, struct str name)
{
	size_t len = l->path.len;
	if (len)
		buf_putc(&l->path, '.');
	buf_str(&l->path, name);
	if (l->path.failed)
		return json_fail(&l->j, SE_ENOMEM, "out of memory");
	bool ok = flatten(l);
	l->path.len = len;
	return ok;
}

static bool
members(struct line_json *l)
{
	struct str key;
	size_t n = 0;
	for (; json_member(&l->j, &key); n++)
		if (!step_into(l, key))
			return false;
	if (l->j.err.code)
		return false;
	return n || !l->path.len || scalar(l, "object", STR_LIT("{}"));
}

static bool
elements(struct line_json *l)
{
	size_t n = 0;
	for (; json_element(&l->j); n++) {
		char index[24];
		int len = snprintf(index, sizeof index, "%zu", n);
		if (!step_into(l, (struct str){ index, (size_t)len }))
			return false;
	}
	if (l->j.err.code)
		return false;
	return n || scalar(l, "array", STR_LIT("[]"));
}

/* The depth limit of json bounds the recursion. */
static bool
flatten(struct line_json *l)
{
	struct str v;
	switch (json_value(&l->j, &v)) {
	case JSON_OBJECT:
		return members(l);
	case JSON_ARRAY:
		return elements(l);
	case JSON_STRING:
		return scalar(l, "str", v);
	case JSON_NUMBER:
		return scalar(l, "num", v);
	case JSON_TRUE:
		return scalar(l, "bool", STR_LIT("true"));
	case JSON_FALSE:
		return scalar(l, "bool", STR_LIT("false"));
	case JSON_NULL:
		return scalar(l, "null", STR_LIT("null"));
	default:
		return false;
	}
}

static int
read_object(struct line_json *l, struct str text, struct err *e)
{
	json_init(&l->j, text, &l->set->batch, JSON_NONFINITE);
	if (json_expect(&l->j, JSON_OBJECT, NULL))
		members(l);
	return json_end(&l->j, e);
}

static int
jsonl_row(struct tensor_set *set, struct table *tb, struct err *e)
{
	struct str text;
	int r;
	do {
		r = line_next(tb->in, &text, e);
		if (r == 1 && str_ends(text, "\r"))
			text.len--;
	} while (r == 1 && !text.len);
	if (r != 1)
		return r;
	/* Strings without escapes point into the line, which goes away. */
	text = arena_str(&set->batch, text);
	if (!text.p)
		return err_mem(e);
	struct line_json l = { .set = set, .counts = tb->step_col == 2 };
	l.wanted = tb->step.len ? tb->step : STR_LIT("step");
	size_t first = set->n;
	r = read_object(&l, text, e);
	buf_free(&l.path);
	/* What the first line has, all have. */
	if (!r && !tb->step_col)
		tb->step_col = l.step.p || tb->step.len ? 1 : 2;
	if (!r && !l.step.p && tb->step_col == 1) {
		r = err_set(e, SE_EFORMAT, "is missing");
		esc_prefix(e, "key", l.wanted);
	}
	if (!r && !l.step.p)
		r = row_number(set, tb, &l.step, e);
	if (!r)
		r = end_row(set, first, l.step, e);
	if (r) {
		err_prefix(e, "line %" PRIu64, line_number(tb->in));
		return r == SE_ENOMEM ? r : leave_out(set, first, e);
	}
	return 1;
}

static int
jsonl_next(struct tensor_set *set, struct err *e)
{
	return rows(set, e, jsonl_row);
}

/* ---- which of them ----------------------------------------------------- */

/* By the first line; asked only when the user named a step column. */
const char *
tensor_table_sniff(const unsigned char *head, size_t len)
{
	size_t i = 0;
	while (
	    i < len && (head[i] == ' ' || head[i] == '\n' || head[i] == '\r'))
		i++;
	if (i < len && head[i] == '{')
		return "jsonl";
	const unsigned char *end = memchr(head, '\n', len);
	size_t line = end ? (size_t)(end - head) : len;
	return memchr(head, '\t', line) && !memchr(head, ',', line) ? "tsv"
								    : "csv";
}

static bool
is_text(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.p[i] < ' ' && s.p[i] != '\t')
			return false;
	return true;
}

/* A whole line of text off the front of *rest. */
static bool
text_line(struct str *rest, struct str *line)
{
	if (!str_cut(rest, '\n', line) || !rest->p)
		return false;
	if (str_ends(*line, "\r"))
		line->len--;
	return line->len && is_text(*line);
}

enum { OBJECTS_SEEN = 8 }; /* lines that may be bad before a good one */

/* What a look at the first lines finds. */
struct look {
	size_t n; /* columns */
	bool step, numbers;
	struct buf *columns;
};

static void
look_at_cell(struct look *l, struct str cell)
{
	double d;
	if (cell.len > 1 && cell.p[0] == '"')
		cell = (struct str){ cell.p + 1, cell.len - 2 };
	l->step |= str_is(cell, "step");
	l->numbers |= !num_f64(cell, &d, NULL);
	if (l->columns && l->n < COLUMNS_SHOWN)
		add_column(l->columns, cell);
	if (l->columns && l->n == COLUMNS_SHOWN)
		buf_puts(l->columns, ", ...");
	l->n++;
}

static struct look
look_at_cells(struct str line, char sep, struct buf *columns)
{
	struct look l = { .columns = columns };
	struct str cell;
	while (str_cut(&line, sep, &cell))
		look_at_cell(&l, cell);
	return l;
}

/* An object in one line; false: it is none. */
static bool
look_at_object(struct str line, struct look *l)
{
	struct arena a = { 0 };
	struct json j;
	struct str key;
	json_init(&j, line, &a, JSON_NONFINITE);
	if (json_expect(&j, JSON_OBJECT, NULL))
		while (json_member(&j, &key)) {
			look_at_cell(l, key);
			json_skip(&j);
		}
	bool ok = !json_end(&j, NULL);
	arena_free(&a);
	return ok;
}

/* A header without numbers, and as many cells below, of which some are. */
static enum tensor_look
look_at_lines(struct str first, struct str second, struct buf *columns)
{
	char sep = memchr(first.p, ',', first.len) ? ',' : '\t';
	struct look head = look_at_cells(first, sep, columns);
	if (head.n < 2)
		return TENSOR_NO_TABLE;
	if (head.step)
		return TENSOR_SERIES;
	if (head.numbers || !second.len)
		return TENSOR_NO_TABLE;
	struct look row = look_at_cells(second, sep, NULL);
	return row.n == head.n && row.numbers ? TENSOR_NO_STEP
					      : TENSOR_NO_TABLE;
}

/*
 * Lines that are objects, as the reader sees them: one that is none is a bad
 * line of a table, not the end of it. A document in one line is no table.
 */
static enum tensor_look
look_at_objects(struct str rest, struct buf *columns)
{
	size_t n = 0;
	struct str line;
	for (unsigned k = 0; k < OBJECTS_SEEN && text_line(&rest, &line); k++) {
		struct look l = { .columns = n ? NULL : columns };
		if (!look_at_object(line, &l)) {
			if (columns && !n)
				columns->len = 0;
			continue;
		}
		if (l.step)
			return TENSOR_SERIES;
		n += l.n > 0;
	}
	return n > 1 ? TENSOR_NO_STEP : TENSOR_NO_TABLE;
}

enum tensor_look
tensor_look(const char *text, size_t len, struct buf *columns)
{
	struct str rest = { text, len }, first, second = STR_NULL;
	if (str_starts(rest, "\xef\xbb\xbf")) {
		rest.p += 3;
		rest.len -= 3;
	}
	while (rest.len && (*rest.p == '\n' || *rest.p == '\r')) {
		rest.p++;
		rest.len--;
	}
	if (str_starts(rest, "{"))
		return look_at_objects(rest, columns);
	/* A header longer than what is seen of it is still one. */
	bool cut = len >= TENSOR_LOOK && !memchr(rest.p, '\n', rest.len);
	if (cut && is_text(rest))
		return look_at_lines(rest, STR_NULL, columns);
	if (!text_line(&rest, &first))
		return TENSOR_NO_TABLE;
	if (!text_line(&rest, &second))
		second = STR_NULL;
	return look_at_lines(first, second, columns);
}

const struct tensor_format tensor_csv = {
	.name = "csv",
	.what = "table with commas, one value a cell",
	.open = open_csv,
	.next = cells_next,
	.close = table_close,
};

const struct tensor_format tensor_tsv = {
	.name = "tsv",
	.what = "table with TABs, one value a cell",
	.open = open_tsv,
	.next = cells_next,
	.close = table_close,
};

const struct tensor_format tensor_jsonl = {
	.name = "jsonl",
	.what = "JSON Lines, one value a member",
	.open = open_jsonl,
	.next = jsonl_next,
	.close = table_close,
};
