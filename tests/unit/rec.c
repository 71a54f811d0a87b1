/* DOMAIN: the reader and the writer of records. */
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gzip.h"
#include "rec.h"
#include "sort.h"
#include "verdict.h"

/* ---- helpers --------------------------------------------------------- */

/* What reading a whole text said. */
struct reading {
	struct rec_totals t;
	enum rec_state state;
	int records;     /* delivered by rec_in_next */
	int failures;    /* calls that returned an error */
	int last;        /* the last error */
	char first[500]; /* message of the first error */
	char types[200]; /* delivered types, a blank after each */
};

static struct reading
read_text(const void *p, size_t len)
{
	struct reading g = { 0 };
	static struct rec r;
	struct src *src;
	struct rec_in *in;
	struct err e = { 0 };
	CHECK(src_open_mem(&src, p, len, &e) == 0);
	CHECK(rec_in_open(&in, src, &e) == 0);
	for (;;) {
		int got = rec_in_next(in, &r, &e);
		if (got == 0)
			break;
		if (got == 1) {
			size_t n = strlen(g.types);
			g.records++;
			snprintf(g.types + n, sizeof g.types - n, "%.*s ",
			    STR_ARG(r.type));
			continue;
		}
		if (!g.failures++)
			snprintf(g.first, sizeof g.first, "%s", e.msg);
		g.last = got;
		if (!CHECK(g.failures < 10000))
			break;
	}
	g.t = *rec_in_totals(in);
	g.state = rec_totals_state(&g.t);
	rec_in_close(in);
	return g;
}

static struct reading
read_str(const char *text)
{
	return read_text(text, strlen(text));
}

/* The bytes that a writer leaves behind, to be freed. */
static char *
take_back(FILE *f, size_t *len)
{
	long n = lseek(fileno(f), 0, SEEK_END);
	char *p = malloc((size_t)n + 1);
	CHECK(p && pread(fileno(f), p, (size_t)n, 0) == n);
	p[n] = 0;
	fclose(f);
	*len = (size_t)n;
	return p;
}

struct writer {
	FILE *f;
	struct rec_out *o;
};

static struct writer
writer_open(struct rec_how how)
{
	struct writer w = { .f = tmpfile() };
	struct err e;
	CHECK(w.f != NULL);
	CHECK(rec_out_open(&w.o, fileno(w.f), &how, &e) == 0);
	return w;
}

static char *
writer_text(struct writer *w, size_t *len)
{
	CHECK(rec_out_finish(w->o, "same", 0, 0, NULL) == 0);
	rec_out_close(w->o);
	return take_back(w->f, len);
}

static void
put_head(struct rec_out *o)
{
	rec_begin(o, "head");
	rec_put(o, "of", "fp");
	rec_u64(o, "version", 1);
	rec_put(o, "tool", "test");
	rec_end(o);
}

static void
put_scalar(struct rec_out *o, const char *name, struct str value)
{
	rec_begin(o, "scalar");
	rec_put(o, "name", name);
	rec_put(o, "vtype", "text");
	rec_str(o, "value", value);
	rec_end(o);
}

/* head, n scalars of different names, end. */
static char *
stream(const char *prefix, int n, bool gzip, size_t *len)
{
	struct writer w = writer_open((struct rec_how){ .gzip = gzip });
	put_head(w.o);
	for (int i = 0; i < n; i++) {
		char name[40];
		snprintf(name, sizeof name, "%s%d", prefix, i);
		put_scalar(w.o, name, STR_LIT("1"));
	}
	return writer_text(&w, len);
}

/* ---- one line ----------------------------------------------------------- */

static struct rec one;
static char undone[4096];

static int
parse(const char *line, struct err *e)
{
	return rec_parse(str_c(line), undone, &one, e);
}

static bool
value_is(const char *key, const char *value)
{
	const struct str *v = rec_get(&one, key);
	return v && str_is(*v, value);
}

static void
test_parse(void)
{
	CHECK(parse("note\tk=v\tempty=\teq=a=b\tkT=1", NULL) == 0);
	CHECK(str_is(one.type, "note") && one.n == 4 && !one.schema);
	CHECK(value_is("k", "v") && value_is("empty", ""));
	CHECK(value_is("eq", "a=b") && value_is("kT", "1"));
	CHECK(!rec_get(&one, "none") && !rec_get(&one, "K"));

	CHECK(parse("note\ta=\\t\\n\\r\\\\\\x41\\xff\tb=\\x5cn", NULL) == 0);
	CHECK(value_is("a", "\t\n\r\\A\xff") && value_is("b", "\\n"));

	/* Any order of keys, unknown ones among them. */
	CHECK(parse("scalar\tnew=1\tvalue=2\tvtype=f64\tname=l", NULL) == 0);
	CHECK(one.schema && value_is("name", "l") && value_is("new", "1"));

	/* Keys from outside: anything printable; escapes are undone. */
	CHECK(parse("note\tx.External id=7\tx.a\\x3db=8", NULL) == 0);
	CHECK(value_is("x.External id", "7") && value_is("x.a=b", "8"));
}

static void
test_bad_lines(void)
{
	static const struct {
		const char *line, *message;
	} bad[] = {
		{ "fp", "fp record without name=" },
		{ "note\tk=1\tk=2", "duplicate key \"k\"" },
		{ "note\tx.a=1\tx.\\x61=2", "duplicate key \"x.a\"" },
		{ "note\tk", "expected key=value, found \"k\"" },
		{ "note\t=v", "expected key=value, found \"=v\"" },
		{ "note\t", "expected key=value, found \"\"" },
		{ "note\tk=v\t", "expected key=value, found \"\"" },
		{ "note k=v",
		    "fields are separated by TAB, found \"note k=v\"" },
		{ "Note\tk=v", "expected a record type, found \"Note\"" },
		{ "\tk=v", "expected a record type, found \"\"" },
		{ "note\tk v=1", "expected key=value, found \"k v=1\"" },
		{ "note\tx.a\x1b=1",
		    "expected key=value, found \"x.a\x1b=1\"" },
		{ "note\tk=\\q", "k: bad escape at byte 1" },
		{ "note\tk=a\\x4", "k: bad escape at byte 2" },
		{ "note\tk=v\r", "carriage return at the end of the line" },
		{ "scalar\tname=a\tvtype=f64", "scalar record without value=" },
		{ "evidence\tentity=host:a\tagent=b",
		    "evidence record without status=" },
		{ "end\trecords=1", "end record without sum=" },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct err e = { 0 };
		CHECK(parse(bad[i].line, &e) == SE_EFORMAT);
		if (!CHECK(!strncmp(
			e.msg, bad[i].message, strlen(bad[i].message))))
			fprintf(stderr, "  %s\n", e.msg);
		CHECK(parse(bad[i].line, NULL) == SE_EFORMAT);
	}
}

static void
test_numbers_of(void)
{
	uint64_t u = 7;
	int64_t t = 7;
	double d = 7;
	struct err e;
	CHECK(parse("note\tu=12\tt=1.5\td=-inf\tbad=x", NULL) == 0);
	CHECK(rec_u64_of(&one, "u", &u, &e) == 0 && u == 12);
	CHECK(rec_u64_of(&one, "none", &u, &e) == 0 && u == 12);
	CHECK(rec_u64_of(&one, "bad", &u, &e) == SE_EFORMAT && u == 12);
	CHECK(!strncmp(e.msg, "bad: expected an integer", 24));
	CHECK(e.code == SE_EFORMAT);
	CHECK(rec_time_of(&one, "t", &t, &e) == 0 && t == 1500000000);
	CHECK(rec_time_of(&one, "bad", &t, NULL) == SE_EFORMAT);
	CHECK(rec_f64_of(&one, "d", &d, &e) == 0 && d < -1e300);
	CHECK(rec_f64_of(&one, "bad", &d, &e) == SE_EFORMAT);
}

static void
test_probe(void)
{
#define PROBE(s) rec_probe(s, sizeof s - 1)
	CHECK(PROBE("head\tof=fp\tversion=1"));
	CHECK(PROBE("fp\tname=a"));
	CHECK(PROBE("# typed by hand\n\n# twice\nevidence\tentity=host:a\n"));
	CHECK(!PROBE("# a shell script\necho hello\n"));
	CHECK(!PROBE("# only a comment"));
	CHECK(!PROBE("header\tof=fp"));
	CHECK(!PROBE("head of a table\n1=2\n"));
	CHECK(!PROBE("fp\t"));
	CHECK(!PROBE(""));
	CHECK(!PROBE("\x93NUMPY\x01\x00v\x00{'descr'"));
#undef PROBE
}

/* ---- lines ----------------------------------------------------------- */

static void
test_lines(void)
{
	struct reading g = read_str("# comment\n"
				    "\n"
				    "note\tk=v\n"
				    " \t\n"
				    "note\tk\n"
				    "# another\n"
				    "later\tk=v\n"
				    "note\tk=v\r\n"
				    "note\tk=w\n");
	CHECK(g.records == 3 && g.failures == 2 && g.t.bad == 2);
	CHECK(!strcmp(g.types, "note later note "));
	CHECK(!strncmp(g.first, "5: expected key=value", 21));
	CHECK(g.t.lines == 9 && g.t.records == 5);
	CHECK(g.state == REC_TYPED);

	g = read_str("");
	CHECK(g.records == 0 && g.failures == 0 && g.state == REC_TYPED);

	/* A cut last line is not taken for a record. */
	g = read_str("note\tk=v\nnote\tk=12");
	CHECK(g.records == 1 && g.t.bad == 1 && g.t.lines == 2);
	CHECK(!strncmp(g.first, "2: no newline at the end", 24));
	CHECK(g.last == SE_EFORMAT);
}

/* A line of exactly len bytes without its LF. */
static char *
long_line(char *to, size_t len)
{
	memcpy(to, "note\tk=", 7);
	memset(to + 7, 'v', len - 7);
	to[len] = '\n';
	return to + len + 1;
}

static void
test_long_lines(void)
{
	size_t room = 4 * (size_t)REC_LINE_MAX;
	char *text = malloc(room), *p = text;
	CHECK(text != NULL);
	p = long_line(p, REC_LINE_MAX);
	p = long_line(p, REC_LINE_MAX + 1);
	p = long_line(p, 2 * (size_t)REC_LINE_MAX - 100);
	memcpy(p, "note\tk=v\n", 9);
	struct reading g = read_text(text, (size_t)(p + 9 - text));
	CHECK(g.records == 2 && g.failures == 2 && g.t.bad == 2);
	CHECK(g.t.lines == 4);
	CHECK(!strcmp(g.first, "2: line longer than 1048576 bytes"));

	/* One that never ends. */
	g = read_text(text, 3 * (size_t)REC_LINE_MAX);
	CHECK(g.t.bad == 2 && g.t.lines == 3 && g.last == SE_EFORMAT);
	free(text);

	struct buf b = { 0 };
	for (int fields = 255; fields <= 257; fields++) {
		b.len = 0;
		buf_puts(&b, "note");
		for (int i = 0; i < fields; i++)
			buf_printf(&b, "\tk%d=v", i);
		buf_putc(&b, '\n');
		g = read_text(b.p, b.len);
		CHECK(g.records == (fields <= REC_FIELDS_MAX));
		if (fields > REC_FIELDS_MAX)
			CHECK(!strcmp(g.first, "1: more than 256 fields"));
	}
	buf_free(&b);
}

/* ---- sums ------------------------------------------------------------ */

/* Digests from xxhsum -H2; their sum by hand: Python, modulo 2^128. */
static void
test_known_sum(void)
{
	struct reading g = read_str("fp\tname=a\tdtype=f32\tshape=2\tbytes=8\t"
				    "hash=xxh3-128:00\n"
				    "# not in the sum\n"
				    "note\tk=v\n");
	struct u128 known;
	CHECK(u128_parse(STR_LIT("75d4d9f423fd71716d8b4e26d34167f7"), &known));
	CHECK(u128_same(g.t.sum, known) && g.t.records == 2);
}

struct line {
	const char *p;
	size_t len;
};

static int
line_order(const void *x, const void *y)
{
	const struct line *a = x, *b = y;
	return str_order(
	    (struct str){ a->p, a->len }, (struct str){ b->p, b->len });
}

/* Joins the lines of a text in another order, leaving `drop` of them out. */
static size_t
rearrange(const char *text, size_t len, bool sort, int drop, char *to)
{
	struct line l[100];
	size_t n = 0, at = 0;
	struct str rest = { text, len }, word;
	while (rest.len && str_cut(&rest, '\n', &word))
		l[n++] = (struct line){ word.p, word.len + 1 };
	if (sort)
		sort_array(l, n, sizeof *l, line_order);
	for (size_t i = 0; i < n; i++) {
		if ((int)i == drop)
			continue;
		memcpy(to + at, l[i].p, l[i].len);
		at += l[i].len;
	}
	return at;
}

static void
test_states(void)
{
	size_t na, nb, n;
	char *a = stream("a", 5, false, &na), *b = stream("b", 7, false, &nb);
	char both[8192], changed[8192];
	struct reading g = read_text(a, na);
	CHECK(g.state == REC_COMPLETE && g.records == 7 && g.t.declared == 5);
	CHECK(g.t.heads == 1 && g.t.ends == 1 && g.t.ended[0] == 1);

	/* cat, sort and a merge of whole streams stay complete. */
	CHECK(na + nb < sizeof both);
	memcpy(both, a, na);
	memcpy(both + na, b, nb);
	CHECK(read_text(both, na + nb).state == REC_COMPLETE);
	n = rearrange(both, na + nb, true, -1, changed);
	CHECK(n == na + nb && memcmp(both, changed, n));
	g = read_text(changed, n);
	CHECK(g.state == REC_COMPLETE && g.t.declared == 12);

	/* Every line that is lost is seen: 0 and 6 of a are head and end. */
	for (int i = 0; i < 16; i++) {
		n = rearrange(both, na + nb, false, i, changed);
		CHECK(read_text(changed, n).state == REC_FILTERED);
	}
	/* grep '^scalar': nobody types these, the frame is missing. */
	n = rearrange(a, na, false, 0, changed);
	n = rearrange(changed, n, false, 5, both);
	g = read_text(both, n);
	CHECK(g.state == REC_FILTERED && g.failures == 0);
	struct reading whole = read_text(a, na);
	rec_totals_add(&whole.t, &g.t);
	CHECK(rec_totals_state(&whole.t) == REC_FILTERED);
	CHECK(read_str("evidence\tentity=host:a\tagent=b\tstatus=faulty\n")
		  .state == REC_TYPED);

	/* One line twice, or one for another. */
	memcpy(both, a, na);
	n = na + rearrange(b, nb, false, 0, both + na);
	CHECK(read_text(both, n).state == REC_FILTERED); /* no head */
	char *second = strchr(a, '\n') + 1;
	size_t len = (size_t)(strchr(second, '\n') + 1 - second);
	memcpy(both + na, second, len);
	CHECK(read_text(both, na + len).state == REC_ALTERED);
	n = rearrange(a, na, false, 2, both);
	memcpy(both + n, second, len);
	CHECK(read_text(both, n + len).state == REC_ALTERED);
	free(a);
	free(b);
}

/* No byte of a record can change without being seen. */
static void
test_altered(void)
{
	size_t n;
	char *a = stream("a", 3, false, &n);
	size_t first = (size_t)(strchr(a, '\n') + 1 - a);
	size_t last = (size_t)(strstr(a, "end\t") - a);
	for (size_t i = first; i < last; i++) {
		for (int bit = 0; bit < 8; bit++) {
			a[i] ^= (char)(1 << bit);
			CHECK(read_text(a, n).state != REC_COMPLETE);
			a[i] ^= (char)(1 << bit);
		}
	}
	/* Cut anywhere: never complete. */
	for (size_t i = 1; i < n; i++) {
		struct reading g = read_text(a, i);
		CHECK(g.state != REC_COMPLETE);
		CHECK(g.t.bad || g.state == REC_FILTERED);
	}
	free(a);
}

static void
test_totals_add(void)
{
	size_t na, nb;
	char *a = stream("a", 2, false, &na), *b = stream("b", 3, false, &nb);
	char *cut = strstr(b, "end\t");
	struct reading x = read_text(a, na), y = read_text(b, nb);
	rec_totals_add(&x.t, &y.t);
	CHECK(rec_totals_state(&x.t) == REC_COMPLETE && x.t.records == 5);
	x = read_text(a, na);
	y = read_text(b, (size_t)(cut - b));
	rec_totals_add(&x.t, &y.t);
	CHECK(rec_totals_state(&x.t) == REC_FILTERED);
	free(a);
	free(b);
}

static void
test_versions(void)
{
	struct reading g = read_str("head\tof=fp\tversion=2\ttool=t\n");
	CHECK(g.last == SE_EUNSUP && g.records == 0);
	CHECK(!strcmp(g.first, "line 1: stream version 2, expected at most 1"));
	CHECK(g.state != REC_COMPLETE);
	g = read_str("head\tof=fp\tversion=0\ttool=t\n");
	CHECK(g.failures == 0 && g.records == 1);
	g = read_str("head\tof=fp\tversion=x\ttool=t\n");
	CHECK(g.last == SE_EFORMAT && g.t.bad == 1 && g.t.heads == 0);
}

static void
test_bad_ends(void)
{
	static const char *bad[] = {
		"end\trecords=-1\tsum=00000000000000000000000000000000\n",
		"end\trecords=0\tsum=0000000000000000000000000000000\n",
		"end\trecords=0\tsum=0000000000000000000000000000000G\n",
		"end\trecords=0\tsum=00000000000000000000000000000000\t"
		"status=4\n",
		"end\trecords=99999999999999999999\t"
		"sum=00000000000000000000000000000000\n",
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct reading g = read_str(bad[i]);
		CHECK(g.t.bad == 1 && g.t.ends == 0);
	}
	struct reading g = read_str("head\tof=a\tversion=1\ttool=t\n"
				    "end\trecords=0\tsum=00000000000000000000"
				    "000000000000\tstatus=3\tskipped=4\t"
				    "lost=5\n");
	CHECK(g.state == REC_COMPLETE && g.t.ended[3] == 1);
	CHECK(g.t.skipped == 4 && g.t.lost == 5);
}

/* ---- gzip ------------------------------------------------------------ */

static void
test_gzip(void)
{
	size_t n, na, nb;
	char *z = stream("a", 40, true, &n);
	CHECK(gzip_probe(z, n));
	struct reading whole = read_text(z, n);
	/* Memory sources are plain: go through a file. */
	CHECK(whole.records == 0);
	free(z);

	char *a = stream("a", 40, true, &na), *b = stream("b", 3, true, &nb);
	for (size_t cut = 0; cut <= na + nb; cut += cut < na ? 7 : 1) {
		FILE *f = tmpfile();
		struct src *src;
		struct rec_in *in;
		struct err e;
		static struct rec r;
		size_t x = cut < na ? cut : na;
		CHECK(f && fwrite(a, 1, x, f) == x);
		CHECK(fwrite(b, 1, cut - x, f) == cut - x && !fflush(f));
		lseek(fileno(f), 0, SEEK_SET);
		CHECK(src_open_fd(&src, dup(fileno(f)), NULL, 0, &e) == 0);
		CHECK(rec_in_open(&in, src, &e) == 0);
		int got, torn = 0;
		while ((got = rec_in_next(in, &r, &e)))
			torn += got == SE_ETRUNC;
		const struct rec_totals *t = rec_in_totals(in);
		bool complete = cut == na || cut == na + nb;
		CHECK((rec_totals_state(t) == REC_COMPLETE) == complete);
		CHECK(t->torn == (torn > 0) && torn <= 1);
		if (cut > 4 && cut < na)
			CHECK(torn == 1 || t->bad);
		if (cut > na)
			CHECK(t->records >= 40);
		rec_in_close(in);
		fclose(f);
	}
	free(a);
	free(b);
}

/* ---- writing --------------------------------------------------------- */

static void
sample(struct rec_out *o)
{
	put_head(o);
	put_scalar(o, "a", STR_LIT("tab\there, \"quoted\" \\ and \x1b[31m"));
	put_scalar(o, "n", STR_LIT("gr\xc3\xbc\xc3\x9f"));
	rec_begin(o, "scalar");
	rec_put(o, "name", "b");
	rec_put(o, "vtype", "i64");
	rec_i64(o, "value", INT64_MIN);
	rec_u64(o, "seq", 9007199254740992u); /* 2^53 */
	rec_u64(o, "occ", 3);
	rec_end(o);
	rec_begin(o, "verdict");
	rec_put(o, "result", "same");
	rec_u64(o, "status", 0);
	rec_end(o);
}

static bool
form_is(struct rec_how how, const char *expected)
{
	struct writer w = writer_open(how);
	size_t n;
	sample(w.o);
	char *text = writer_text(&w, &n);
	bool same = !strcmp(text, expected);
	if (!same)
		fprintf(stderr, "--- expected\n%s--- got\n%s", expected, text);
	free(text);
	return same;
}

static void
test_forms(void)
{
	struct rec_how how = { .type = "scalar" };
	how.form = REC_JSON;
	CHECK(form_is(how,
	    "{\"record\":\"head\",\"of\":\"fp\",\"version\":1,"
	    "\"tool\":\"test\"}\n"
	    "{\"record\":\"scalar\",\"name\":\"a\",\"vtype\":\"text\","
	    "\"value\":"
	    "\"tab\\\\there, \\\"quoted\\\" \\\\\\\\ and \\\\x1b[31m\"}\n"
	    "{\"record\":\"scalar\",\"name\":\"n\",\"vtype\":\"text\","
	    "\"value\":\"gr\xc3\xbc\xc3\x9f\"}\n"
	    "{\"record\":\"scalar\",\"name\":\"b\",\"vtype\":\"i64\","
	    "\"value\":\"-9223372036854775808\","
	    "\"seq\":\"9007199254740992\",\"occ\":3}\n"
	    "{\"record\":\"verdict\",\"result\":\"same\",\"status\":0}\n"
	    "{\"record\":\"end\",\"records\":4,"
	    "\"sum\":\"c8c61a714de9da6c749b1015d6ec1edb\",\"result\":\"same\","
	    "\"status\":0}\n"));
	how.columns = "name,value,occ";
	how.form = REC_TSV;
	CHECK(form_is(how, "name\tvalue\tocc\n"
			   "a\ttab\\there, \"quoted\" \\\\ and \\x1b[31m\t\n"
			   "n\tgr\xc3\xbc\xc3\x9f\t\n"
			   "b\t-9223372036854775808\t3\n"));
	how.form = REC_CSV;
	CHECK(form_is(how,
	    "\"name\",\"value\",\"occ\"\r\n"
	    "\"a\",\"tab\\there, \"\"quoted\"\" \\\\ and \\x1b[31m\",\"\"\r\n"
	    "\"n\",\"gr\xc3\xbc\xc3\x9f\",\"\"\r\n"
	    "\"b\",\"-9223372036854775808\",\"3\"\r\n"));
	how.form = REC_TABLE;
	how.columns = NULL;
	CHECK(form_is(how,
	    "name  vtype  value                                "
	    "seq               occ\n"
	    "a     text   tab\\there, \"quoted\" \\\\ and \\x1b[31m\n"
	    "n     text   gr\xc3\xbc\xc3\x9f\n"
	    "b     i64    -9223372036854775808                 "
	    "9007199254740992  3\n"
	    "verdict: result=same  status=0\n"));
	how.columns = "occ,none,name";
	CHECK(form_is(how, "occ  none  name\n"
			   "           a\n"
			   "           n\n"
			   "3          b\n"
			   "verdict: result=same  status=0\n"));
	/* -q */
	how = (struct rec_how){ .level = 1, .type = "verdict" };
	CHECK(form_is(how, "verdict\tresult=same\tstatus=0\n"));
	how.form = REC_TSV;
	how.columns = "result,status";
	CHECK(form_is(how, "result\tstatus\nsame\t0\n"));
}

/* Nothing to show: a title where programs read, nothing where people do. */
static void
test_no_rows(void)
{
	static const struct {
		int form;
		const char *text;
	} t[] = {
		{ REC_TABLE, "" },
		{ REC_TSV, "class\tn\trule\tnote\n" },
		{ REC_CSV, "\"class\",\"n\",\"rule\",\"note\"\r\n" },
	};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct rec_how how = { .form = t[i].form, .type = "count" };
		struct writer w = writer_open(how);
		size_t n;
		put_head(w.o);
		char *text = writer_text(&w, &n);
		CHECK(!strcmp(text, t[i].text));
		free(text);
	}
	struct rec_out *o;
	struct err e;
	struct rec_how bad = { .form = REC_TSV, .type = "nosuch" };
	CHECK(rec_out_open(&o, 1, &bad, &e) == SE_EINVAL);
	bad = (struct rec_how){ .form = REC_CSV, .columns = "a,,b" };
	CHECK(rec_out_open(&o, 1, &bad, &e) == SE_EINVAL);
}

/* Fields that have no column are counted, also behind the first 512 rows. */
static void
test_dropped(void)
{
	struct rec_how how = { .form = REC_TABLE, .type = "scalar" };
	struct writer w = writer_open(how);
	for (int i = 0; i < 600; i++) {
		rec_begin(w.o, "scalar");
		rec_put(w.o, "name", "a");
		rec_put(w.o, "vtype", "text");
		rec_put(w.o, "value", "v");
		if (i >= 590)
			rec_put(w.o, "note", "late");
		rec_put(w.o, "label", "x");
		rec_end(w.o);
	}
	CHECK(rec_out_finish(w.o, NULL, 0, 0, NULL) == 0);
	CHECK(rec_out_dropped(w.o) == 600 + 10);
	rec_out_close(w.o);
	fclose(w.f);
}

/* What is written reads back: any bytes in values and outside keys. */
static void
test_round_trip(void)
{
	static struct rec r;
	unsigned state = 1;
	struct err e;
	for (int round = 0; round < 300; round++) {
		char value[60], key[62] = "x.";
		size_t n = (size_t)round % sizeof value, len;
		for (size_t i = 0; i < n; i++) {
			state = state * 1103515245u + 12345u;
			value[i] = (char)(state >> 16);
			/* Keys come as C strings. */
			key[i + 2] = value[i] ? value[i] : '=';
		}
		key[n + 2 < sizeof key ? n + 2 : sizeof key - 1] = 0;
		struct writer w = writer_open((struct rec_how){ 0 });
		put_head(w.o);
		rec_begin(w.o, "note");
		rec_str(w.o, "v", (struct str){ value, n });
		rec_put(w.o, key, "k");
		rec_end(w.o);
		char *text = writer_text(&w, &len);
		struct reading g = read_text(text, len);
		CHECK(g.state == REC_COMPLETE && g.failures == 0);
		struct str line = str_c(strchr(text, '\n') + 1);
		line.len = (size_t)(strchr(line.p, '\n') - line.p);
		char room[2048];
		CHECK(rec_parse(line, room, &r, &e) == 0);
		CHECK(str_same(rec_text_of(&r, "v"), (struct str){ value, n }));
		CHECK(n < 1 || str_is(rec_text_of(&r, key), "k"));
		free(text);
	}
}

/* Passing on changes nothing, unless the line is not fit for a terminal. */
static void
test_copy(void)
{
	static const struct {
		const char *in, *out;
	} t[] = {
		{ "note\tk=a\\tb\\x41\tx.q=1", "note\tk=a\\tb\\x41\tx.q=1" },
		{ "scalar\tvalue=1\tname=b\tvtype=i", /* foreign order */
		    "scalar\tvalue=1\tname=b\tvtype=i" },
		{ "note\tk=gr\xc3\xbc\xc3\x9f", "note\tk=gr\xc3\xbc\xc3\x9f" },
		{ "note\tk=\x1b[31m\x9b", "note\tk=\\x1b[31m\\x9b" },
		{ "note\tx.\xe2\x80\xae=\\\\\x07", /* RLO in the key */
		    "note\tx.\\xe2\\x80\\xae=\\\\\\x07" },
	};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct writer w = writer_open((struct rec_how){ 0 });
		size_t len;
		CHECK(parse(t[i].in, NULL) == 0);
		rec_copy(w.o, &one);
		char *text = writer_text(&w, &len);
		size_t n = strlen(t[i].out);
		CHECK(!strncmp(text, t[i].out, n) && text[n] == '\n');
		/* The sum is over what was written. */
		CHECK(read_text(text, len).t.sum.lo ==
		      read_text(text, len).t.declared_sum.lo);
		free(text);
	}
}

static void
test_gzip_members(void)
{
	/* Incompressible enough that several members are needed. */
	struct writer w = writer_open((struct rec_how){ .gzip = true });
	size_t n, members = 0;
	put_head(w.o);
	for (int i = 0; i < 5000; i++) {
		char v[40];
		snprintf(v, sizeof v, "%d", i * 7919);
		put_scalar(w.o, "a", str_c(v));
	}
	char *text = writer_text(&w, &n);
	for (size_t i = 0; i + 4 < n; i++)
		members += !memcmp(text + i, "\x1f\x8b\x08\x00\x00", 5);
	CHECK(members >= 3);
	free(text);

	/* A long line is cut into members as well. */
	w = writer_open((struct rec_how){ .gzip = true });
	char *big = malloc(300000);
	CHECK(big != NULL);
	memset(big, 'v', 300000);
	put_scalar(w.o, "a", (struct str){ big, 300000 });
	text = writer_text(&w, &n);
	members = 0;
	for (size_t i = 0; i + 4 < n; i++)
		members += !memcmp(text + i, "\x1f\x8b\x08\x00\x00", 5);
	CHECK(members == 6); /* five and the end */
	free(text);
	free(big);
}

static int
sink(void *user, const char *p, size_t len, struct err *e)
{
	struct buf *b = user;
	if (b->len > 200000)
		return err_set(e, SE_EIO, "sink is full");
	buf_add(b, p, len);
	return 0;
}

static void
test_write_failures(void)
{
	struct err e;
	struct buf b = { 0 };
	struct rec_how how = { .sink = sink, .user = &b };
	struct rec_out *o;
	CHECK(rec_out_open(&o, -1, &how, &e) == 0);
	put_head(o);
	rec_out_lost(o, 2);
	CHECK(rec_out_finish(o, NULL, 3, 1, &e) == 0);
	CHECK(strstr(buf_cstr(&b), "\tstatus=3\tskipped=1\tlost=2\n") != NULL);
	rec_out_close(o);

	/* The first failure stays and is reported at the end. */
	CHECK(rec_out_open(&o, -1, &how, &e) == 0);
	for (int i = 0; i < 20000; i++)
		put_scalar(o, "a", STR_LIT("0123456789"));
	CHECK(rec_out_finish(o, NULL, 0, 0, &e) == SE_EIO);
	CHECK(!strcmp(e.msg, "sink is full"));
	CHECK(rec_out_flush(o, &e) == SE_EIO);
	rec_out_close(o);
	buf_free(&b);

	/* A closed descriptor. */
	how = (struct rec_how){ 0 };
	CHECK(rec_out_open(&o, -1, &how, &e) == 0);
	put_head(o);
	CHECK(rec_out_finish(o, NULL, 0, 0, &e) == SE_EIO);
	CHECK(!strncmp(e.msg, "cannot write: ", 14));
	rec_out_close(o);

	/* A record that no reader would take. */
	struct writer w = writer_open(how);
	char *big = malloc(REC_LINE_MAX);
	CHECK(big != NULL);
	memset(big, 'v', REC_LINE_MAX);
	put_scalar(w.o, "a", (struct str){ big, REC_LINE_MAX });
	CHECK(rec_out_finish(w.o, NULL, 0, 0, &e) == SE_ELIMIT);
	rec_out_close(w.o);
	fclose(w.f);
	free(big);

	w = writer_open(how);
	rec_begin(w.o, "note");
	for (int i = 0; i <= REC_FIELDS_MAX; i++) {
		char key[16];
		snprintf(key, sizeof key, "k%d", i);
		rec_u64(w.o, key, 1);
	}
	rec_end(w.o);
	CHECK(rec_out_finish(w.o, NULL, 0, 0, &e) == SE_ELIMIT);
	rec_out_close(w.o);
	fclose(w.f);
}

/* A live stream is written out while it goes on; others wait for more. */
static void
test_live(void)
{
	for (int live = 0; live < 2; live++) {
		struct rec_how how = { .live = live };
		struct writer w = writer_open(how);
		put_scalar(w.o, "a", STR_LIT("1"));
		off_t first = lseek(fileno(w.f), 0, SEEK_END);
		CHECK((first > 0) == live); /* nothing was written before */
		rec_out_close(w.o);
		fclose(w.f);
	}
}

/* A pipe delivers what is there: the second line is not waited for. */
static void
test_pipe(void)
{
	static struct rec r;
	int fd[2];
	struct src *src;
	struct rec_in *in;
	struct err e;
	CHECK(pipe(fd) == 0);
	CHECK(write(fd[1], "note\tk=1\nno", 11) == 11);
	CHECK(src_open_fd(&src, fd[0], NULL, 0, &e) == 0);
	CHECK(rec_in_open(&in, src, &e) == 0);
	CHECK(rec_in_next(in, &r, &e) == 1 && r.line == 1);
	CHECK(write(fd[1], "te\tk=2\n", 7) == 7);
	CHECK(rec_in_next(in, &r, &e) == 1 && r.line == 2);
	close(fd[1]);
	CHECK(rec_in_next(in, &r, &e) == 0);
	rec_in_close(in);
}

/* ---- verdicts ----------------------------------------------------------- */

static void
test_verdict(void)
{
	static const struct {
		int status;
		struct damage d;
		struct policy p;
		int expected;
		const char *reason, *scope;
	} t[] = {
		{ 0, { 0 }, { 0 }, 0, NULL, NULL },
		{ 0, { .bad = 1 }, { 0 }, 3, "damaged", NULL },
		{ 0, { .bad = 1 }, { .allow_bad = 1 }, 0, NULL, NULL },
		{ 0, { .bad = 1, .lost = 1 }, { .allow_bad = 1 }, 3, "damaged",
		    NULL },
		{ 0, { .skipped = 1 }, { .strict = true }, 2, "damaged", NULL },
		{ 1, { .bad = 9 }, { .strict = true }, 1, NULL, NULL },
		{ 1, { .filtered = true }, { 0 }, 1, NULL, NULL },
		{ 0, { .filtered = true }, { 0 }, 3, "filtered", NULL },
		{ 0, { .filtered = true }, { .partial = true }, 0, NULL,
		    "partial" },
		{ 0, { .altered = 1 }, { .partial = true, .allow_bad = 9 }, 3,
		    "damaged", NULL },
		{ 0, { .typed = true }, { 0 }, 0, NULL, "typed" },
		{ 3, { .bad = 1 }, { .strict = true }, 2, "thin", NULL },
		{ 3, { .bad = 1 }, { 0 }, 3, "thin", NULL },
		{ 3, { 0 }, { .strict = true }, 3, "thin", NULL },
	};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct verdict v = { .result = "same",
			.status = t[i].status,
			.damage = t[i].d };
		if (v.status == 3)
			v.reason = "thin";
		verdict_settle(&v, &t[i].p);
		CHECK(v.status == t[i].expected);
		CHECK(str_same(str_c(v.reason), str_c(t[i].reason)));
		CHECK(str_same(str_c(v.scope), str_c(t[i].scope)));
		CHECK(str_is(str_c(v.result), "same") ==
		      (v.reason == NULL || t[i].status == 3));
	}
	static const int worse[][3] = { { 0, 0, 0 }, { 0, 1, 1 }, { 0, 3, 3 },
		{ 1, 3, 1 }, { 2, 0, 0 }, { 2, 3, 3 }, { 2, 1, 1 },
		{ 2, 2, 2 } };
	for (size_t i = 0; i < sizeof worse / sizeof *worse; i++) {
		CHECK(status_worse(worse[i][0], worse[i][1]) == worse[i][2]);
		CHECK(status_worse(worse[i][1], worse[i][0]) == worse[i][2]);
	}
}

/* The order of the schema is what the writer asserts: one of everything. */
static void
test_verdict_record(void)
{
	struct verdict v = { .result = "unknown",
		.status = 3,
		.reason = "thin",
		.need = "more",
		.scope = "typed",
		.damage = { .bad = 1, .lost = 2, .skipped = 3 } };
	struct writer w = writer_open((struct rec_how){ 0 });
	size_t n;
	verdict_begin(w.o, &v, STR_LIT("host:a"), "0.05");
	rec_put(w.o, "cause", "code");
	verdict_end(w.o, &v);
	char *text = writer_text(&w, &n);
	static const char line[] =
	    "verdict\tresult=unknown\tstatus=3\tentity=host:a\treason=thin\t"
	    "bound=0.05\tneed=more\tscope=typed\tcause=code\tbad=1\tlost=2\t"
	    "skipped=3\n";
	CHECK(!strncmp(text, line, sizeof line - 1));
	free(text);
}

int
main(void)
{
	test_parse();
	test_bad_lines();
	test_numbers_of();
	test_probe();
	test_lines();
	test_long_lines();
	test_known_sum();
	test_states();
	test_altered();
	test_totals_add();
	test_versions();
	test_bad_ends();
	test_gzip();
	test_forms();
	test_no_rows();
	test_dropped();
	test_round_trip();
	test_copy();
	test_gzip_members();
	test_write_failures();
	test_live();
	test_pipe();
	test_verdict();
	test_verdict_record();
	return test_done("rec");
}
