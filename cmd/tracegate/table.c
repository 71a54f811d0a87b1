/*
 * Tables of events: CSV, TSV, and JSON Lines with keys of the user's. Which
 * column holds what is said by --fields; without it they are called ts, dur,
 * name, thread, proc, and ts is in microseconds.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "csv.h"
#include "text.h"

enum { COLUMNS_MAX = 256 };

enum { C_TS, C_DUR, C_NAME, C_COST, C_THREAD, C_PROC, C_KINDS };

static const char *const usual[C_KINDS] = { "ts", "dur", "name", "cost",
	"thread", "proc" };

struct table {
	struct csv *csv;
	int column[C_KINDS]; /* of the row, or -1 */
	bool titled;
};

static const char *
wanted(const struct reader *r, int which)
{
	const struct fields *f = r->fields;
	const char *given = NULL;
	if (f) {
		const char *const all[C_KINDS] = { f->ts, f->dur, f->name,
			f->cost, f->thread, f->proc };
		given = all[which];
	}
	return given ? given : usual[which];
}

static int
give_row(struct reader *r, struct event *ev, const struct str cell[C_KINDS],
    uint64_t line)
{
	int64_t unit = r->fields ? r->fields->unit : 1000, ts, dur = 0;
	if (!text_time(text_trim(cell[C_TS]), unit, &ts)) {
		reader_bad(r, SE_EFORMAT, "%" PRIu64 ": expected a time in %s",
		    line, wanted(r, C_TS));
		return 0;
	}
	bool timed = cell[C_DUR].len > 0;
	if (timed &&
	    (!text_time(text_trim(cell[C_DUR]), unit, &dur) || dur < 0)) {
		reader_bad(r, SE_EFORMAT,
		    "%" PRIu64 ": expected a duration in %s", line,
		    wanted(r, C_DUR));
		return 0;
	}
	struct str name = cell[C_NAME].len ? cell[C_NAME] : STR_LIT("row");
	struct str proc = cell[C_PROC].len ? cell[C_PROC] : STR_LIT("table");
	struct str thread = cell[C_THREAD].len ? cell[C_THREAD] : proc;
	if (timed)
		text_slice(r, ev, ts, dur, name, "step", proc, thread);
	else
		text_instant(r, ev, ts, name, "step", proc, thread);
	if (cell[C_COST].len)
		render_arg(r, wanted(r, C_COST), cell[C_COST]);
	render_end(r, ev);
	return READ_EVENT;
}

/* ---- CSV and TSV -------------------------------------------------------- */

static int
take_titles(struct reader *r, const struct csv_row *row, struct err *e)
{
	struct table *t = r->state;
	for (int k = 0; k < C_KINDS; k++) {
		t->column[k] = -1;
		for (size_t i = 0; i < row->n; i++)
			if (str_is(text_trim(row->cell[i]), wanted(r, k)))
				t->column[k] = (int)i;
	}
	t->titled = true;
	if (t->column[C_TS] >= 0)
		return 0;
	return err_set(e, SE_EFORMAT,
	    "no column \"%s\" in the first row: --fields names them",
	    wanted(r, C_TS));
}

static int
table_next(struct reader *r, struct event *ev, struct err *e)
{
	struct table *t = r->state;
	struct csv_row row;
	int n;
	while ((n = csv_next(t->csv, &row, e)) == 1) {
		struct str cell[C_KINDS] = { { 0, 0 } };
		if (!t->titled) {
			n = take_titles(r, &row, e);
			if (n)
				return n;
			continue;
		}
		for (int k = 0; k < C_KINDS; k++)
			if (t->column[k] >= 0 && (size_t)t->column[k] < row.n)
				cell[k] = row.cell[t->column[k]];
		if (give_row(r, ev, cell, row.line) == READ_EVENT)
			return READ_EVENT;
	}
	return n;
}

static int
open_as(struct reader *r, enum csv_form form, struct err *e)
{
	struct table *t = calloc(1, sizeof *t);
	if (!t)
		return err_mem(e);
	r->info.form = FORM_TEXT;
	r->state = t;
	return csv_open(&t->csv, r->feed.src, form, e);
}

static int
open_csv(struct reader *r, struct err *e)
{
	return open_as(r, CSV_COMMAS, e);
}

static int
open_tsv(struct reader *r, struct err *e)
{
	return open_as(r, CSV_TABS, e);
}

static void
table_close(struct reader *r)
{
	struct table *t = r->state;
	if (t && t->csv)
		csv_close(t->csv);
	free(t);
}

/* A first row that names a column ts. */
static int
probe_with(const char *p, size_t len, char sep)
{
	struct str line, rest, word;
	if (!text_first_line(p, len, &line))
		return 0;
	rest = line;
	size_t n = 0;
	bool ts = false;
	while (n < COLUMNS_MAX && str_cut(&rest, sep, &word)) {
		n++;
		ts = ts || str_is(text_trim(word), "ts");
	}
	return ts && n > 1 ? 70 : 0;
}

static int
csv_probe(const char *p, size_t len)
{
	return probe_with(p, len, ',');
}

static int
tsv_probe(const char *p, size_t len)
{
	return probe_with(p, len, '\t');
}

const struct format csv_format = { "csv", "rows; --fields names the columns",
	csv_probe, open_csv, table_next, table_close };
const struct format tsv_format = { "tsv", "the same with tabs", tsv_probe,
	open_tsv, table_next, table_close };

/* ---- JSON Lines --------------------------------------------------------- */

static int
jsonl_line(struct reader *r, struct event *ev, struct str line)
{
	struct str cell[C_KINDS] = { { 0, 0 } }, key, value;
	struct buf plain[C_KINDS] = { { 0 } };
	bool string;
	int n = 0;
	line = text_trim(line);
	if (line.len < 2 || line.p[0] != '{' || !scan_valid(line)) {
		reader_bad(r, SE_EFORMAT, "%" PRIu64 ": expected one object",
		    r->feed.line);
		return 0;
	}
	const char *at = line.p + 1;
	while (scan_member(line, &at, &key, &value, &string))
		for (int k = 0; k < C_KINDS; k++)
			if (str_is(key, wanted(r, k)))
				cell[k] = value;
	for (int k = 0; k < C_KINDS; k++) {
		scan_plain(&plain[k], cell[k]);
		cell[k] = buf_view(&plain[k]);
	}
	n = give_row(r, ev, cell, r->feed.line);
	for (int k = 0; k < C_KINDS; k++)
		buf_free(&plain[k]);
	return n;
}

static int
jsonl_next(struct reader *r, struct event *ev, struct err *e)
{
	for (;;) {
		struct str line;
		bool whole;
		int n = feed_line(&r->feed, TEXT_LINE_MAX, &line, &whole, e);
		if (n == SE_ELIMIT) {
			reader_bad(r, n, "%s", e->msg);
			continue;
		}
		if (n != FEED_MORE)
			return n;
		if (text_trim(line).len &&
		    jsonl_line(r, ev, line) == READ_EVENT)
			return READ_EVENT;
	}
}

static int
jsonl_open(struct reader *r, struct err *e)
{
	(void)e;
	r->info.form = FORM_TEXT;
	return 0;
}

/* Only when asked for, or with --fields: else it is Chrome's. */
static int
jsonl_probe(const char *p, size_t len)
{
	(void)p;
	(void)len;
	return 0;
}

const struct format jsonl_format = { "jsonl",
	"objects; --fields names the keys", jsonl_probe, jsonl_open, jsonl_next,
	NULL };
