/* Writing records, in every format: see rec.h. */
#include "rec.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "csv.h"
#include "esc.h"
#include "gzip.h"
#include "num.h"

enum {
	FLUSH_SIZE = 64 << 10, /* bytes held back before a write */
	TABLE_ROWS = 512,      /* rows that decide the widths of a table */
	TABLE_WIDTH_MAX = 48,  /* widest padded cell; longer ones stick out */
};

/* A field of the current record, as offsets into `line`. */
struct field {
	size_t key, key_len, value, value_len;
	unsigned char kind;
};

struct column {
	struct str name;
	size_t width; /* table: widest cell so far, in characters */
	bool used;    /* table: some row has it */
};

struct rec_out {
	int fd;
	struct rec_how how;
	struct buf out;  /* finished text, not yet written */
	struct buf line; /* the current record in line form */
	struct field field[REC_FIELDS_MAX];
	size_t nfields;
	const struct schema_type *schema;
	struct str type; /* of the current record; in `line` */
	int key_at;      /* schema position of the last key, for its order */
	uint64_t records, dropped, lost;
	struct u128 sum;
	struct err failure; /* the first one; code 0: none */
	/* tsv, csv, table */
	struct column *column;
	size_t ncolumns;
	char *column_text;
	bool titled;
	struct timespec drained; /* live: when */
	/* table */
	struct buf rows;  /* cells, TAB separated, one row a line */
	struct buf after; /* records of other types, printed behind */
	size_t nrows;
};

static void
fail(struct rec_out *o, int code, const char *what)
{
	if (!o->failure.code)
		err_set(&o->failure, code, "%s", what);
}

/* ---- opening ----------------------------------------------------------- */

static int
columns_given(struct rec_out *o, const char *list, struct err *e)
{
	o->column_text = strdup(list);
	if (!o->column_text)
		return err_mem(e);
	size_t n = 1;
	for (const char *p = list; *p; p++)
		n += *p == ',';
	o->column = calloc(n, sizeof *o->column);
	if (!o->column)
		return err_mem(e);
	struct str rest = str_c(o->column_text), word;
	while (str_cut(&rest, ',', &word)) {
		if (!word.len)
			return err_set(e, SE_EINVAL,
			    "empty name in the list "
			    "of columns \"%s\"",
			    list);
		o->column[o->ncolumns++] =
		    (struct column){ .name = word, .used = true };
	}
	return 0;
}

static int
columns_of_type(struct rec_out *o, struct err *e)
{
	const struct schema_type *t =
	    o->how.type ? schema_find(str_c(o->how.type)) : NULL;
	if (!t)
		return err_set(e, SE_EINVAL, "no record type \"%s\"",
		    o->how.type ? o->how.type : "");
	size_t n = 0;
	while (t->key[n].name)
		n++;
	o->column = calloc(n, sizeof *o->column);
	if (!o->column)
		return err_mem(e);
	for (size_t i = 0; i < n; i++)
		o->column[i].name = str_c(t->key[i].name);
	o->ncolumns = n;
	return 0;
}

int
rec_out_open(
    struct rec_out **out, int fd, const struct rec_how *how, struct err *e)
{
	struct rec_out *o = calloc(1, sizeof *o);
	if (!o)
		return err_mem(e);
	o->fd = fd;
	o->how = *how;
	int r = 0;
	if (how->columns)
		r = columns_given(o, how->columns, e);
	else if (how->form != REC_LINES && how->form != REC_JSON)
		r = columns_of_type(o, e);
	if (r) {
		rec_out_close(o);
		return r;
	}
	*out = o;
	return 0;
}

void
rec_out_close(struct rec_out *o)
{
	if (!o)
		return;
	buf_free(&o->out);
	buf_free(&o->line);
	buf_free(&o->rows);
	buf_free(&o->after);
	free(o->column);
	free(o->column_text);
	free(o);
}

/* ---- bytes out --------------------------------------------------------- */

static void
write_all(struct rec_out *o, const char *p, size_t n)
{
	if (o->how.sink) {
		o->how.sink(o->how.user, p, n, &o->failure);
		return;
	}
	while (n) {
		ssize_t w = write(o->fd, p, n);
		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0) {
			if (!o->failure.code)
				err_sys(&o->failure, "cannot write");
			return;
		}
		p += w;
		n -= (size_t)w;
	}
}

/* Writes at most one gzip member's worth at a time. */
static void
drain(struct rec_out *o)
{
	struct buf z = { 0 };
	if (o->out.failed)
		fail(o, SE_ENOMEM, "out of memory");
	for (size_t at = 0; at < o->out.len && !o->failure.code;) {
		size_t n = o->out.len - at;
		if (!o->how.gzip) {
			write_all(o, o->out.p + at, n);
			break;
		}
		n = n < FLUSH_SIZE ? n : FLUSH_SIZE;
		z.len = 0;
		if (!gzip_member(&z, o->out.p + at, n, &o->failure))
			write_all(o, z.p, z.len);
		at += n;
	}
	buf_free(&z);
	o->out.len = 0;
	if (o->how.live)
		clock_gettime(CLOCK_MONOTONIC, &o->drained);
}

/* A live stream can be followed: nothing waits for longer than a second. */
static bool
is_stale(const struct rec_out *o)
{
	struct timespec now;
	if (!o->how.live || clock_gettime(CLOCK_MONOTONIC, &now))
		return false;
	time_t s = now.tv_sec - o->drained.tv_sec;
	return s > 1 || (s == 1 && now.tv_nsec >= o->drained.tv_nsec);
}

int
rec_out_flush(struct rec_out *o, struct err *e)
{
	drain(o);
	if (!o->failure.code)
		return 0;
	return err_set(e, o->failure.code, "%s", o->failure.msg);
}

void
rec_out_lost(struct rec_out *o, uint64_t n)
{
	o->lost += n;
}

uint64_t
rec_out_dropped(const struct rec_out *o)
{
	return o->dropped;
}

/* ---- one record in the other formats ----------------------------------- */

static struct str
field_key(const struct rec_out *o, size_t i)
{
	return (struct str){ o->line.p + o->field[i].key, o->field[i].key_len };
}

static struct str
field_value(const struct rec_out *o, size_t i)
{
	return (
	    struct str){ o->line.p + o->field[i].value, o->field[i].value_len };
}

static void
json_string(struct buf *b, struct str s)
{
	buf_putc(b, '"');
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] == '"' || s.p[i] == '\\')
			buf_putc(b, '\\');
		buf_putc(b, s.p[i]);
	}
	buf_putc(b, '"');
}

/* An integer in canonical form below 2^53, which every JSON reader keeps. */
static bool
json_integer(struct str s)
{
	int64_t v;
	const int64_t max = (INT64_C(1) << 53) - 1;
	bool neg = s.len && s.p[0] == '-';
	if (num_i64(s, -max, max, &v, NULL))
		return false;
	return s.p[neg] != '0' || (s.len == 1 && !neg);
}

static void
emit_json(struct rec_out *o)
{
	struct buf *b = &o->out;
	buf_puts(b, "{\"record\":");
	json_string(b, o->type);
	for (size_t i = 0; i < o->nfields; i++) {
		buf_putc(b, ',');
		json_string(b, field_key(o, i));
		buf_putc(b, ':');
		struct str v = field_value(o, i);
		if (o->field[i].kind == KEY_INT && json_integer(v))
			buf_str(b, v);
		else
			json_string(b, v);
	}
	buf_puts(b, "}\n");
}

static struct str
cell(const struct rec_out *o, const struct column *c, size_t *found)
{
	for (size_t i = 0; i < o->nfields; i++) {
		if (!str_same(field_key(o, i), c->name))
			continue;
		++*found;
		return field_value(o, i);
	}
	return (struct str){ "", 0 };
}

static void
emit_titles(struct rec_out *o)
{
	for (size_t i = 0; i < o->ncolumns; i++) {
		if (i)
			buf_putc(&o->out, o->how.form == REC_CSV ? ',' : '\t');
		if (o->how.form == REC_CSV)
			csv_put(&o->out, o->column[i].name);
		else
			buf_str(&o->out, o->column[i].name);
	}
	buf_puts(&o->out, o->how.form == REC_CSV ? "\r\n" : "\n");
	o->titled = true;
}

static void
emit_row(struct rec_out *o)
{
	if (!o->titled)
		emit_titles(o);
	size_t found = 0;
	for (size_t i = 0; i < o->ncolumns; i++) {
		struct str v = cell(o, &o->column[i], &found);
		if (i)
			buf_putc(&o->out, o->how.form == REC_CSV ? ',' : '\t');
		if (o->how.form == REC_CSV)
			csv_put(&o->out, v);
		else
			buf_str(&o->out, v);
	}
	buf_puts(&o->out, o->how.form == REC_CSV ? "\r\n" : "\n");
	o->dropped += o->nfields - found;
}

/* ---- the table for people ---------------------------------------------- */

/* Code points: good enough for columns, and independent of the locale. */
static size_t
characters(struct str s)
{
	size_t n = 0;
	for (size_t i = 0; i < s.len; i++)
		n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
	return n;
}

/* No blanks at the end of a row. */
static void
trim(struct buf *b)
{
	while (b->len && b->p[b->len - 1] == ' ')
		b->len--;
}

static void
pad(struct buf *b, struct str s, size_t width, bool last)
{
	buf_str(b, s);
	if (last)
		return;
	size_t n = characters(s);
	do
		buf_putc(b, ' ');
	while (n++ < width + 1);
}

static void
table_line(struct rec_out *o, struct str row)
{
	size_t last = 0, i = 0;
	for (size_t k = 0; k < o->ncolumns; k++)
		if (o->column[k].used)
			last = k;
	struct str v;
	for (; i < o->ncolumns && str_cut(&row, '\t', &v); i++)
		if (o->column[i].used)
			pad(&o->out, v, o->column[i].width, i == last);
		else
			o->dropped += o->titled && v.len;
	trim(&o->out);
	buf_putc(&o->out, '\n');
}

static void
table_flush(struct rec_out *o)
{
	struct str rest = buf_view(&o->rows), row;
	if (!o->titled) {
		struct buf title = { 0 };
		for (size_t i = 0; i < o->ncolumns; i++) {
			struct column *c = &o->column[i];
			size_t n = characters(c->name);
			c->width = c->width > n ? c->width : n;
			buf_str(&title, c->name);
			buf_putc(&title, '\t');
		}
		if (o->nrows)
			table_line(o, buf_view(&title));
		buf_free(&title);
		o->titled = o->nrows > 0;
	}
	while (rest.len && str_cut(&rest, '\n', &row))
		table_line(o, row);
	o->rows.len = 0;
	o->nrows = 0;
}

static void
table_row(struct rec_out *o)
{
	size_t found = 0;
	for (size_t i = 0; i < o->ncolumns; i++) {
		struct column *c = &o->column[i];
		struct str v = cell(o, c, &found);
		size_t n = characters(v);
		if (!o->titled) {
			c->used |= v.len > 0;
			if (n > c->width)
				c->width =
				    n < TABLE_WIDTH_MAX ? n : TABLE_WIDTH_MAX;
		}
		buf_str(&o->rows, v);
		buf_putc(&o->rows, '\t');
	}
	buf_putc(&o->rows, '\n');
	o->dropped += o->nfields - found;
	if (++o->nrows >= TABLE_ROWS)
		table_flush(o);
}

static void
table_other(struct rec_out *o)
{
	if (str_is(o->type, "head") || str_is(o->type, "end"))
		return;
	buf_str(&o->after, o->type);
	buf_putc(&o->after, ':');
	for (size_t i = 0; i < o->nfields; i++) {
		buf_puts(&o->after, i ? "  " : " ");
		buf_str(&o->after, field_key(o, i));
		buf_putc(&o->after, '=');
		buf_str(&o->after, field_value(o, i));
	}
	buf_putc(&o->after, '\n');
}

static void
emit(struct rec_out *o)
{
	bool main = o->how.type && str_is(o->type, o->how.type);
	switch (o->how.form) {
	case REC_LINES:
		buf_str(&o->out, buf_view(&o->line));
		buf_putc(&o->out, '\n');
		break;
	case REC_JSON:
		emit_json(o);
		break;
	case REC_TABLE:
		if (main)
			table_row(o);
		else
			table_other(o);
		break;
	default:
		if (main)
			emit_row(o);
	}
}

/* ---- building a record -------------------------------------------------- */

void
rec_begin(struct rec_out *o, const char *type)
{
	o->line.len = 0;
	o->nfields = 0;
	o->key_at = 0;
	o->schema = schema_find(str_c(type));
	buf_puts(&o->line, type);
}

/* Keys that come from outside (x.KEY) may hold anything. */
static void
put_key(struct buf *b, struct str key, bool known)
{
	struct str part;
	if (known) {
		buf_str(b, key);
		return;
	}
	for (bool first = true; str_cut(&key, '=', &part); first = false) {
		if (!first)
			buf_puts(b, "\\x3d");
		esc_put(b, part);
	}
}

/* Opens a field; its value is appended to o->line by the caller. */
static struct field *
field_begin(struct rec_out *o, struct str key)
{
	int at = o->schema ? schema_key(o->schema, key, o->key_at) : -1;
	if (at >= 0) {
		assert(at >= o->key_at);
		o->key_at = at;
	}
	if (o->nfields == REC_FIELDS_MAX) {
		fail(o, SE_ELIMIT, "record has too many fields");
		o->nfields--;
	}
	struct field *f = &o->field[o->nfields++];
	buf_putc(&o->line, '\t');
	f->key = o->line.len;
	f->kind = at >= 0 ? o->schema->key[at].kind : KEY_TEXT;
	put_key(&o->line, key, at >= 0);
	f->key_len = o->line.len - f->key;
	buf_putc(&o->line, '=');
	f->value = o->line.len;
	return f;
}

static void
field_end(struct rec_out *o, struct field *f)
{
	f->value_len = o->line.len - f->value;
}

void
rec_str(struct rec_out *o, const char *key, struct str value)
{
	struct field *f = field_begin(o, str_c(key));
	esc_put(&o->line, value);
	field_end(o, f);
}

void
rec_label(struct rec_out *o, struct str key, struct str value)
{
	struct field *f = field_begin(o, key);
	esc_put(&o->line, value);
	field_end(o, f);
}

void
rec_put(struct rec_out *o, const char *key, const char *value)
{
	rec_str(o, key, str_c(value));
}

void
rec_fmt(struct rec_out *o, const char *key, const char *fmt, ...)
{
	char small[512];
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(small, sizeof small, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof small) {
		rec_str(o, key, (struct str){ small, (size_t)n });
	} else {
		char *big = n < 0 ? NULL : malloc((size_t)n + 1);
		if (big) {
			vsnprintf(big, (size_t)n + 1, fmt, again);
			rec_str(o, key, (struct str){ big, (size_t)n });
		} else {
			fail(o, SE_ENOMEM, "out of memory");
		}
		free(big);
	}
	va_end(again);
}

void
rec_u64(struct rec_out *o, const char *key, uint64_t v)
{
	struct field *f = field_begin(o, str_c(key));
	num_put_u64(&o->line, v);
	field_end(o, f);
}

void
rec_i64(struct rec_out *o, const char *key, int64_t v)
{
	struct field *f = field_begin(o, str_c(key));
	if (v < 0)
		buf_putc(&o->line, '-');
	num_put_u64(&o->line, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
	field_end(o, f);
}

void
rec_f64(struct rec_out *o, const char *key, double v)
{
	struct field *f = field_begin(o, str_c(key));
	num_put_f64(&o->line, v);
	field_end(o, f);
}

void
rec_time(struct rec_out *o, const char *key, int64_t ns)
{
	struct field *f = field_begin(o, str_c(key));
	num_put_time(&o->line, ns);
	field_end(o, f);
}

void
rec_hash(
    struct rec_out *o, const char *key, const char *algorithm, struct u128 v)
{
	struct field *f = field_begin(o, str_c(key));
	buf_puts(&o->line, algorithm);
	buf_putc(&o->line, ':');
	u128_put(&o->line, v);
	field_end(o, f);
}

static void
finish_record(struct rec_out *o, bool counted)
{
	if (o->line.failed)
		fail(o, SE_ENOMEM, "out of memory");
	if (o->line.len > REC_LINE_MAX)
		fail(o, SE_ELIMIT, "record is longer than a line may be");
	if (o->failure.code)
		return;
	if (counted) {
		o->records++;
		o->sum = u128_add(o->sum, hash_xxh3(o->line.p, o->line.len));
	}
	o->type = (struct str){ o->line.p, o->line.len };
	struct str rest = o->type;
	str_cut(&rest, '\t', &o->type);
	if (o->how.level == 0 || str_is(o->type, "verdict"))
		emit(o);
	if (o->out.len >= FLUSH_SIZE || is_stale(o))
		drain(o);
}

void
rec_end(struct rec_out *o)
{
	bool frame = o->schema && !strcmp(o->schema->name, "head");
	finish_record(o, !frame);
}

/* Printable ASCII and TAB: nothing that a writer would have escaped. */
static bool
is_plain_line(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if ((c < 0x20 && c != '\t') || c >= 0x7f)
			return false;
	}
	return true;
}

void
rec_copy(struct rec_out *o, const struct rec *r)
{
	o->line.len = 0;
	o->nfields = 0;
	o->key_at = 0;
	o->schema = r->schema;
	if (o->how.form == REC_LINES && is_plain_line(r->raw)) {
		buf_str(&o->line, r->raw);
	} else {
		buf_str(&o->line, r->type);
		/* Foreign writers may have another order: no assertion. */
		for (size_t i = 0; i < r->n; i++) {
			o->key_at = 0;
			struct field *f = field_begin(o, r->field[i].key);
			esc_put(&o->line, r->field[i].value);
			field_end(o, f);
		}
	}
	finish_record(o, !str_is(r->type, "head") && !str_is(r->type, "end"));
}

void
rec_comment(struct rec_out *o, const char *fmt, ...)
{
	if (o->how.form != REC_LINES || o->how.level)
		return;
	char small[1024];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(small, sizeof small, fmt, ap);
	va_end(ap);
	size_t len = n < 0 ? 0 : (size_t)n;
	buf_puts(&o->out, "# ");
	esc_put(&o->out,
	    (struct str){ small, len < sizeof small ? len : sizeof small - 1 });
	buf_putc(&o->out, '\n');
}

void
rec_out_end(struct rec_out *o, const char *result, int status, uint64_t skipped)
{
	rec_begin(o, "end");
	rec_u64(o, "records", o->records);
	struct field *f = field_begin(o, STR_LIT("sum"));
	u128_put(&o->line, o->sum);
	field_end(o, f);
	if (result)
		rec_put(o, "result", result);
	rec_u64(o, "status", (uint64_t)status);
	if (skipped)
		rec_u64(o, "skipped", skipped);
	if (o->lost)
		rec_u64(o, "lost", o->lost);
	finish_record(o, false);
	o->records = 0;
	o->sum = (struct u128){ 0, 0 };
}

int
rec_out_finish(struct rec_out *o, const char *result, int status,
    uint64_t skipped, struct err *e)
{
	rec_out_end(o, result, status, skipped);
	bool rows = o->how.form == REC_TSV || o->how.form == REC_CSV;
	if (rows && !o->titled && !o->failure.code)
		emit_titles(o);
	if (o->how.form == REC_TABLE && !o->failure.code) {
		table_flush(o);
		buf_str(&o->out, buf_view(&o->after));
	}
	return rec_out_flush(o, e);
}
