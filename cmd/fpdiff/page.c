/* What was found as a page: see page.h. */
#include "page.h"

#include <inttypes.h>
#include <stdlib.h>

struct page {
	struct cli_out file;
	struct rec_out *out;
	struct buf records; /* lines */
	uint64_t shown[DIFF_CLASSES], prefixes;
	bool unordered;
	struct buf html;
};

static const char style[] =
    ":root{color-scheme:light dark}"
    "body{font:16px/1.45 system-ui,sans-serif;max-width:72rem;"
    "margin:0 auto;padding:0 1rem 3rem}"
    "h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}"
    "code,pre,td{font-family:ui-monospace,monospace}"
    "td,dd{overflow-wrap:anywhere}"
    "pre{overflow-x:auto;line-height:1.25;font-size:clamp(9px,2.2vw,15px)}"
    "pre b{outline:1px solid}pre .bad{background:#c334;font-weight:bold}"
    "pre .odd{background:#c903}"
    "table{border-collapse:collapse;width:100%;font-size:.85rem}"
    "th,td{text-align:left;vertical-align:top;padding:.2rem .6rem .2rem 0;"
    "border-bottom:1px solid #8884}"
    "caption{text-align:left;padding:.3rem 0}"
    "tr.here td{font-weight:bold}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;"
    "margin:0}dt{opacity:.75}dd{margin:0;font-family:ui-monospace,monospace}"
    "@media(max-width:44rem){thead{display:none}"
    "tr{display:block;padding:.4rem 0;border-bottom:2px solid #8886}"
    "td{display:flex;gap:.6rem;border:0;padding:.05rem 0}"
    "td:empty{display:none}"
    "td::before{content:attr(data-k);flex:0 0 5rem;opacity:.75;"
    "font-family:system-ui,sans-serif;font-weight:normal}}";

/* ---- collecting -------------------------------------------------------- */

static int
take(void *user, const char *p, size_t len, struct err *e)
{
	struct page *page = user;
	buf_add(&page->records, p, len);
	return page->records.failed ? err_mem(e) : 0;
}

struct page *
page_open(const char *path)
{
	struct err e;
	struct page *p = cli_alloc(1, sizeof *p);
	struct rec_how how = { .form = REC_LINES, .sink = take, .user = p };
	cli_out_open(&p->file, path, false);
	if (rec_out_open(&p->out, -1, &how, &e))
		cli_die("%s", e.msg);
	return p;
}

struct rec_out *
page_records(struct page *p)
{
	return p ? p->out : NULL;
}

bool
page_has_room(struct page *p, enum diff_class class)
{
	if (!p || p->shown[class] >= PAGE_DIFFS || p->records.len > PAGE_TEXT)
		return false;
	p->shown[class]++;
	return true;
}

bool
page_has_prefix_room(struct page *p)
{
	return p && p->prefixes++ < PAGE_PREFIXES;
}

/* Classes that only an order gives. */
static const enum diff_class ordered[] = { DIFF_FIRST, DIFF_CONSEQUENCE,
	DIFF_ISOLATED };
enum { ORDERED = sizeof ordered / sizeof *ordered };

void
page_forget_order(struct page *p)
{
	if (!p)
		return;
	p->unordered = true;
	for (int i = 0; i < ORDERED; i++) {
		p->shown[DIFF_DIFFERENT] += p->shown[ordered[i]];
		p->shown[ordered[i]] = 0;
	}
}

/* ---- HTML ------------------------------------------------------------ */

/*
 * Text of a record in line form: control bytes, bidirectional controls and
 * bad UTF-8 are \xHH already.
 */
static void
put_text(struct buf *b, struct str s)
{
	static const struct {
		char c;
		const char *as;
	} entity[] = { { '&', "&amp;" }, { '<', "&lt;" }, { '>', "&gt;" },
		{ '"', "&quot;" }, { '\'', "&#39;" } };
	for (size_t i = 0; i < s.len; i++) {
		const char *as = NULL;
		for (size_t k = 0; k < sizeof entity / sizeof *entity; k++)
			if (s.p[i] == entity[k].c)
				as = entity[k].as;
		if (as)
			buf_puts(b, as);
		else
			buf_putc(b, s.p[i]);
	}
}

static void
put_cell(struct buf *b, const char *key, struct str value)
{
	buf_printf(b, "<td data-k=\"%s\">", key);
	put_text(b, value);
	buf_puts(b, "</td>");
}

static bool
is_type(struct str line, const char *type)
{
	struct str word = STR_NULL;
	str_cut(&line, '\t', &word);
	return str_is(word, type);
}

/* One key=value of a line; false at the end. */
static bool
next_field(struct str *rest, struct str *key, struct str *value)
{
	struct str word;
	if (!rest->p || !str_cut(rest, '\t', &word))
		return false;
	const char *eq = memchr(word.p, '=', word.len);
	size_t n = eq ? (size_t)(eq - word.p) : word.len;
	*key = (struct str){ word.p, n };
	*value = eq ? (struct str){ eq + 1, word.len - n - 1 } : STR_LIT("");
	return true;
}

static struct str
field(struct str line, const char *key)
{
	struct str word, k, v;
	str_cut(&line, '\t', &word);
	while (next_field(&line, &k, &v))
		if (str_is(k, key))
			return v;
	return STR_LIT("");
}

/* ---- tables ---------------------------------------------------------- */

struct column {
	const char *key, *title;
};

static const struct column difference[] = {
	{ "class", "class" },
	{ "step", "step" },
	{ "rank", "rank" },
	{ "phase", "phase" },
	{ "io", "io" },
	{ "name", "name" },
	{ "a", "A" },
	{ "b", "B" },
	{ NULL, "more" },
};

static const struct column neighbour[] = {
	{ "at", "at" },
	{ "step", "step" },
	{ "rank", "rank" },
	{ "phase", "phase" },
	{ "io", "io" },
	{ "name", "name" },
	{ "result", "result" },
	{ NULL, NULL },
};

static const struct column certified[] = {
	{ "rank", "rank" },
	{ "records", "records" },
	{ "step", "last step" },
	{ "name", "last name" },
	{ "io", "io" },
	{ "next", "first that differs" },
	{ "unmatched", "without a partner" },
	{ NULL, NULL },
};

static const struct column counted[] = {
	{ "class", "class" },
	{ "n", "records" },
	{ "rule", "rule" },
	{ "note", "note" },
	{ NULL, NULL },
};

static bool
has_column(const struct column *c, struct str key)
{
	for (; c->key; c++)
		if (str_is(key, c->key))
			return true;
	return false;
}

/* What a field of the page says. */
static struct str
shown(const struct page *p, const char *key, struct str value)
{
	if (!p->unordered || strcmp(key, "class") != 0)
		return value;
	for (int i = 0; i < ORDERED; i++)
		if (str_is(value, diff_class_name[ordered[i]]))
			return str_c(diff_class_name[DIFF_DIFFERENT]);
	return value;
}

/* The fields that have no column of their own. */
static void
put_more(struct page *p, const struct column *c, struct str line)
{
	struct buf *b = &p->html;
	struct str word, k, v;
	bool any = false;
	str_cut(&line, '\t', &word);
	buf_puts(b, "<td data-k=\"more\">");
	while (next_field(&line, &k, &v)) {
		bool order = str_is(k, "role") || str_is(k, "note");
		if (has_column(c, k) || (p->unordered && order))
			continue;
		buf_puts(b, any ? ", " : "");
		put_text(b, k);
		buf_putc(b, ' ');
		put_text(b, v);
		any = true;
	}
	buf_puts(b, "</td>");
}

static void
put_row(
    struct page *p, const struct column *columns, struct str line, bool here)
{
	struct buf *b = &p->html;
	const struct column *c = columns;
	buf_puts(b, here ? "<tr class=\"here\">" : "<tr>");
	for (; c->key; c++) {
		struct str v = field(line, c->key);
		if (here && !strcmp(c->key, "at"))
			v = STR_LIT("here");
		put_cell(b, c->title, shown(p, c->key, v));
	}
	if (c->title)
		put_more(p, columns, line);
	buf_puts(b, "</tr>\n");
}

static void
begin_table(struct buf *b, const struct column *c, const char *caption)
{
	buf_printf(b, "<table><caption>%s</caption>\n<thead><tr>", caption);
	for (; c->title; c++) {
		buf_printf(b, "<th>%s</th>", c->title);
		if (!c->key)
			break;
	}
	buf_puts(b, "</tr></thead>\n<tbody>\n");
}

static void
end_table(struct buf *b)
{
	buf_puts(b, "</tbody></table>\n");
}

/* All records of a type. */
static void
put_table(struct page *p, const char *type, const struct column *columns,
    const char *title, const char *caption)
{
	struct str rest = buf_view(&p->records), line;
	bool any = false;
	while (rest.len && str_cut(&rest, '\n', &line)) {
		if (!is_type(line, type))
			continue;
		if (!any) {
			buf_printf(&p->html, "<h2>%s</h2>\n", title);
			begin_table(&p->html, columns, caption);
		}
		any = true;
		put_row(p, columns, line, false);
	}
	if (any)
		end_table(&p->html);
}

/* ---- sections ---------------------------------------------------------- */

static struct str
find(const struct page *p, const char *type)
{
	struct str rest = buf_view(&p->records), line;
	while (rest.len && str_cut(&rest, '\n', &line))
		if (is_type(line, type))
			return line;
	return STR_LIT("");
}

static void
put_verdict(struct page *p, const struct report *r)
{
	struct str line = find(p, "verdict"), word, k, v;
	struct buf *b = &p->html;
	buf_puts(b, "<h1>fpdiff: ");
	put_text(b, str_c(r->result));
	buf_puts(b, "</h1>\n<dl>\n");
	static const char *const side[] = { "a", "b" };
	struct str head = find(p, "head");
	for (int i = 0; i < 2; i++) {
		buf_printf(b, "<dt>%s is</dt><dd>", i ? "B" : "A");
		put_text(b, field(head, side[i]));
		buf_puts(b, "</dd>\n");
	}
	str_cut(&line, '\t', &word);
	while (next_field(&line, &k, &v)) {
		buf_puts(b, "<dt>");
		put_text(b, k);
		buf_puts(b, "</dt><dd>");
		put_text(b, v);
		buf_puts(b, "</dd>\n");
	}
	buf_puts(b, "</dl>\n");
}

/* Runs of the marks that are bad news stand out, also without colour. */
static const char *
tag_of(char c)
{
	if (c == 'F')
		return "<b class=\"bad\">";
	if (c == 'x')
		return "<span class=\"bad\">";
	return c == '-' || c == '?' ? "<span class=\"odd\">" : NULL;
}

/* The cells of a row begin behind its label and a blank. */
static void
put_map_line(void *user, const char *text)
{
	struct buf *b = user;
	size_t at = strspn(text, " ");
	bool row = text[at] == '-' || (text[at] >= '0' && text[at] <= '9');
	at += row ? strcspn(text + at, " ") : strlen(text + at);
	put_text(b, (struct str){ text, at });
	while (text[at]) {
		const char *tag = tag_of(text[at]);
		size_t n = 1;
		while (text[at + n] == text[at])
			n++;
		if (tag)
			buf_puts(b, tag);
		put_text(b, (struct str){ text + at, n });
		if (tag)
			buf_puts(b, tag[1] == 'b' ? "</b>" : "</span>");
		at += n;
	}
	buf_putc(b, '\n');
}

static void
put_map(struct page *p, const struct chart *c)
{
	enum { WIDTH = 72, ROWS = 64 };
	buf_puts(&p->html, "<h2>Ranks and steps</h2>\n");
	if (!chart_has_steps(c)) {
		buf_puts(&p->html, "<p>No record has a step.</p>\n");
		return;
	}
	buf_puts(&p->html, "<pre tabindex=\"0\">");
	chart_print(c, WIDTH, ROWS, put_map_line, &p->html);
	buf_puts(&p->html, "</pre>\n");
}

/* The records around the divergence, and itself between -1 and 1. */
static void
put_neighbours(struct page *p)
{
	struct str rest = buf_view(&p->records), line;
	struct str verdict = find(p, "verdict");
	struct buf *b = &p->html;
	bool there = false;
	if (!str_is(field(find(p, "head"), "order"), "exec") ||
	    !field(verdict, "name").len)
		return;
	buf_puts(b, "<h2>First divergence</h2>\n");
	begin_table(b, neighbour, "and the records of its rank next to it");
	while (rest.len && str_cut(&rest, '\n', &line)) {
		if (!is_type(line, "near"))
			continue;
		if (!there && field(line, "at").p[0] != '-') {
			put_row(p, neighbour, verdict, true);
			there = true;
		}
		put_row(p, neighbour, line, false);
	}
	if (!there)
		put_row(p, neighbour, verdict, true);
	end_table(b);
}

static void
put_left_out(struct page *p, const struct tally *t)
{
	bool any = false;
	for (int i = 0; i < DIFF_CLASSES; i++) {
		if (t->n[i] <= p->shown[i])
			continue;
		buf_printf(&p->html, "%s%" PRIu64 " of class %s",
		    any ? ", " : "<p>Left out: ", t->n[i] - p->shown[i],
		    diff_class_name[i]);
		any = true;
	}
	if (any)
		buf_puts(&p->html, ".</p>\n");
}

static void
build(struct page *p, const struct report *r)
{
	struct buf *b = &p->html;
	buf_puts(b, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
		    "<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
		    "content=\"width=device-width, initial-scale=1\">\n<title>"
		    "fpdiff: ");
	put_text(b, str_c(r->result));
	buf_printf(b, "</title>\n<style>%s</style>\n</head>\n<body>\n", style);
	put_verdict(p, r);
	put_map(p, r->chart);
	put_neighbours(p);
	put_table(p, "diff", difference, "Differences",
	    "in the order they were found");
	put_left_out(p, &r->tally);
	put_table(p, "count", counted, "Counts", "of all records");
	put_table(p, "prefix", certified, "Certified",
	    "records that are identical from the beginning, by rank");
	buf_puts(b, "</body>\n</html>\n");
	if (b->failed)
		cli_die("out of memory");
}

/* ---- writing ----------------------------------------------------------- */

int
page_write(struct page *p, const struct report *r)
{
	struct err e;
	if (!p)
		return 0;
	if (rec_out_flush(p->out, &e))
		cli_die("%s", e.msg);
	build(p, r);
	int failed = cli_out_write(&p->file, p->html.p, p->html.len);
	if (cli_out_close(&p->file, !failed))
		failed = -1;
	return failed;
}

void
page_close(struct page *p)
{
	if (!p)
		return;
	if (p->file.fd >= 0)
		cli_out_close(&p->file, false);
	rec_out_close(p->out);
	buf_free(&p->records);
	buf_free(&p->html);
	free(p);
}
