/* INPUT: json against RFC 8259. */
#include "test.h"

#include "json.h"

#include "buf.h"

/* Reads one value and prints it in a form of its own: {k:v}, [v], "s", #n. */
static void
dump(struct json *j, struct buf *b)
{
	struct str v, key;
	switch (json_value(j, &v)) {
	case JSON_OBJECT:
		buf_putc(b, '{');
		while (json_member(j, &key)) {
			buf_str(b, key);
			buf_putc(b, ':');
			dump(j, b);
			buf_putc(b, ' ');
		}
		buf_putc(b, '}');
		break;
	case JSON_ARRAY:
		buf_putc(b, '[');
		while (json_element(j)) {
			dump(j, b);
			buf_putc(b, ' ');
		}
		buf_putc(b, ']');
		break;
	case JSON_STRING:
		buf_putc(b, '"');
		buf_str(b, v);
		break;
	case JSON_NUMBER:
		buf_putc(b, '#');
		buf_str(b, v);
		break;
	case JSON_TRUE:
		buf_putc(b, 'T');
		break;
	case JSON_FALSE:
		buf_putc(b, 'F');
		break;
	case JSON_NULL:
		buf_putc(b, 'N');
		break;
	case JSON_FAILED:
		break;
	}
}

static int
read_all(const char *text, size_t len, struct buf *b, struct err *e)
{
	struct arena a = { 0 };
	struct json j;
	/* A copy of the very size, so that a sanitizer sees a byte too far. */
	struct str copy = arena_str(&a, (struct str){ text, len });
	b->len = 0;
	json_init(&j, (struct str){ copy.p, len }, &a, 0);
	dump(&j, b);
	int r = json_end(&j, e);
	arena_free(&a);
	return r;
}

static void
good(const char *text, const char *want, int line)
{
	struct buf b = { 0 };
	struct err e = { 0 };
	int r = read_all(text, strlen(text), &b, &e);
	if (!CHECK(!r && !strcmp(buf_cstr(&b), want)))
		fprintf(stderr, "line %d: %s: %s\n", line, text,
		    r ? e.msg : buf_cstr(&b));
	/* No prefix of an object or array is a value. */
	if (*text == '{' || *text == '[')
		for (size_t n = 0; n < strlen(text); n++)
			CHECK(read_all(text, n, &b, &e));
	buf_free(&b);
}

static void
bad_len(const char *text, size_t len, int code, const char *msg, int line)
{
	struct buf b = { 0 };
	struct err e = { 0 };
	int r = read_all(text, len, &b, &e);
	if (!CHECK(r == code && strstr(e.msg, msg)))
		fprintf(stderr, "line %d: %d %s\n", line, r,
		    r ? e.msg : buf_cstr(&b));
	buf_free(&b);
}

static void
test_good(void)
{
#define GOOD(text, want) good(text, want, __LINE__)
	GOOD("1", "#1");
	GOOD(" \t\r\n-0.5e+10 ", "#-0.5e+10");
	GOOD("0", "#0");
	GOOD("1E5", "#1E5");
	GOOD("123456789012345678901234567890",
	    "#123456789012345678901234567890");
	GOOD("true", "T");
	GOOD("[true,false , null]", "[T F N ]");
	GOOD("[]", "[]");
	GOOD("{}", "{}");
	GOOD("[[[]],{}]", "[[[] ] {} ]");
	GOOD("{\"a\":1,\"b\":[2,{\"c\":\"d\"}]}", "{a:#1 b:[#2 {c:\"d } ] }");
	GOOD("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\"\\/\b\f\n\r\t");
	GOOD("\"\\u0041\\u00fc\\u20AC\\ud83d\\ude00\"",
	    "\"A\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80");
	GOOD("\"\xf0\x9f\x98\x80\x7f\"", "\"\xf0\x9f\x98\x80\x7f");
	GOOD("[\"a\\u0062c\",\"\"]", "[\"abc \" ]");
	/* the same key in different objects */
	GOOD("[{\"a\":1},{\"a\":{\"a\":2}}]", "[{a:#1 } {a:{a:#2 } } ]");
	GOOD("{\"1\":1,\"2\":1,\"3\":1,\"4\":1,\"5\":1,\"6\":1,\"7\":1,"
	     "\"8\":1,\"9\":1,\"10\":1}",
	    "{1:#1 2:#1 3:#1 4:#1 5:#1 6:#1 7:#1 8:#1 9:#1 10:#1 }");
#undef GOOD
	/* NUL is a character like others. */
	struct arena a = { 0 };
	struct json j;
	struct str v;
	json_init(&j, STR_LIT("\"a\\u0000b\""), &a, 0);
	CHECK(json_value(&j, &v) == JSON_STRING);
	CHECK(str_same(v, (struct str){ "a\0b", 3 }));
	CHECK(!json_end(&j, NULL));
	arena_free(&a);
}

static void
test_bad(void)
{
#define BAD(text, code, msg) bad_len(text, sizeof text - 1, code, msg, __LINE__)
	BAD("", SE_ETRUNC, "found the end");
	BAD("  ", SE_ETRUNC, "byte 2");
	BAD("[1,]", SE_EFORMAT, "byte 3: expected a value, found ']'");
	BAD("[,1]", SE_EFORMAT, "expected a value");
	BAD("[1 2]", SE_EFORMAT, "expected ',' or ']', found '2'");
	BAD("[1}", SE_EFORMAT, "expected ',' or ']'");
	BAD("{\"a\":1,}", SE_EFORMAT, "expected a key");
	BAD("{\"a\" 1}", SE_EFORMAT, "expected ':'");
	BAD("{a:1}", SE_EFORMAT, "expected a key");
	BAD("{\"a\":1]", SE_EFORMAT, "expected ',' or '}'");
	BAD("{\"a\":}", SE_EFORMAT, "expected a value");
	BAD("1 2", SE_EFORMAT, "nothing more");
	BAD("]", SE_EFORMAT, "expected a value");
	BAD("01", SE_EFORMAT, "leading zero");
	BAD("-", SE_ETRUNC, "a digit");
	BAD("-a", SE_EFORMAT, "a digit");
	BAD("1.", SE_ETRUNC, "a digit");
	BAD("1.e5", SE_EFORMAT, "a digit");
	BAD(".5", SE_EFORMAT, "expected a value");
	BAD("1e", SE_ETRUNC, "a digit");
	BAD("1e+", SE_ETRUNC, "a digit");
	BAD("+1", SE_EFORMAT, "expected a value");
	BAD("0x10", SE_EFORMAT, "nothing more");
	BAD("NaN", SE_EFORMAT, "expected a value");
	BAD("tru", SE_EFORMAT, "expected a value");
	BAD("True", SE_EFORMAT, "expected a value");
	BAD("nullx", SE_EFORMAT, "nothing more");
	BAD("'a'", SE_EFORMAT, "found '''");
	BAD("\"a", SE_ETRUNC, "the end of a string");
	BAD("\"a\\", SE_ETRUNC, "without an end");
	BAD("\"a\\\"", SE_ETRUNC, "without an end");
	BAD("\"\\x41\"", SE_EFORMAT, "expected an escape, found 'x'");
	BAD("\"\\u12\"", SE_EFORMAT, "hexadecimal");
	BAD("\"\\u12g4\"", SE_EFORMAT, "hexadecimal");
	BAD("\"\\ud800\"", SE_EFORMAT, "surrogate");
	BAD("\"\\ud800\\u0041\"", SE_EFORMAT, "surrogate");
	BAD("\"\\ud800\\ud800\"", SE_EFORMAT, "surrogate");
	BAD("\"\\udc00\"", SE_EFORMAT, "surrogate");
	BAD("\"\n\"", SE_EFORMAT, "control byte 0x0a");
	BAD("\"\0\"", SE_EFORMAT, "control byte 0x00");
	BAD("[1\0]", SE_EFORMAT, "found byte 0x00");
	BAD("\"\xff\"", SE_EFORMAT, "byte 0xff is not UTF-8");
	BAD("\"\xc0\xaf\"", SE_EFORMAT, "not UTF-8");
	BAD("\"\xed\xa0\x80\"", SE_EFORMAT, "not UTF-8");
	BAD("\"\xf4\x90\x80\x80\"", SE_EFORMAT, "not UTF-8");
	BAD("\"\xe2\x82", SE_EFORMAT, "not UTF-8");
	BAD("\xef\xbb\xbf{}", SE_EFORMAT, "expected a value");
	BAD("/**/1", SE_EFORMAT, "expected a value");
	BAD("{\"a\":1,\"b\":2,\"a\":3}", SE_EFORMAT, "key \"a\" appears twice");
	BAD("{\"a\\n\":1,\"a\\u000a\":3}", SE_EFORMAT,
	    "key \"a\\n\" appears twice");
	BAD("{\"1\":1,\"2\":1,\"3\":1,\"4\":1,\"5\":1,\"6\":1,\"7\":1,"
	    "\"8\":1,\"9\":1,\"10\":1,\"9\":2}",
	    SE_EFORMAT, "key \"9\" appears twice");
	BAD("{\"1\":1,\"2\":1,\"3\":1,\"4\":1,\"5\":1,\"6\":1,\"7\":1,"
	    "\"8\":1,\"9\":1,\"10\":1,\"1\":2}",
	    SE_EFORMAT, "key \"1\" appears twice");
#undef BAD
	struct buf deep = { 0 };
	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		buf_putc(&deep, '[');
	bad_len(deep.p, deep.len, SE_ETRUNC, "found the end", __LINE__);
	buf_putc(&deep, '[');
	bad_len(deep.p, deep.len, SE_ELIMIT, "deeper than 64", __LINE__);
	deep.len = 0;
	for (int i = 0; i < 200000; i++)
		buf_puts(&deep, "{\"a\":");
	bad_len(deep.p, deep.len, SE_ELIMIT, "deeper than 64", __LINE__);
	buf_free(&deep);
}

/* The parts of the interface that dump does not use. */
static void
test_calls(void)
{
	struct arena a = { 0 };
	struct json j;
	struct str v, key;
	struct err e;
	uint64_t n = 0;
	json_init(&j, STR_LIT("{\"x\":[1,{\"y\":[]}],\"n\":7}"), &a, 0);
	CHECK(json_expect(&j, JSON_OBJECT, NULL));
	CHECK(json_member(&j, &key) && str_is(key, "x"));
	json_skip(&j);
	CHECK(json_member(&j, &key) && str_is(key, "n"));
	CHECK(json_u64(&j, 7, &n) && n == 7);
	CHECK(!json_member(&j, &key));
	CHECK(!json_end(&j, &e));

	json_init(&j, STR_LIT("[8, -1, 1.0]"), &a, 0);
	CHECK(json_expect(&j, JSON_ARRAY, NULL) && json_element(&j));
	CHECK(!json_u64(&j, 7, &n));
	CHECK(!json_element(&j)); /* it failed: nothing more comes */
	CHECK(json_end(&j, &e) == SE_EFORMAT);
	CHECK(strstr(e.msg, "0 to 7, found \"8\"") != NULL);

	json_init(&j, STR_LIT("\"s\""), &a, 0);
	CHECK(!json_expect(&j, JSON_NUMBER, &v));
	CHECK(json_end(&j, &e) == SE_EFORMAT);
	CHECK(strstr(e.msg, "a number, found a string") != NULL);

	/* A value that nobody read, an end that nobody reached. */
	json_init(&j, STR_LIT("[1]"), &a, 0);
	json_value(&j, &v);
	CHECK(json_end(&j, &e) == SE_EFORMAT);
	json_init(&j, STR_LIT("[1]"), &a, 0);
	CHECK(!json_member(&j, &key) && json_end(&j, &e) == SE_EINVAL);

	/* The caller may look for duplicates himself. */
	json_init(&j, STR_LIT("{\"a\":1,\"a\":2}"), &a, JSON_ANY_KEYS);
	json_skip(&j);
	CHECK(!json_end(&j, &e));
	arena_free(&a);
}

int
main(void)
{
	test_good();
	test_bad();
	test_calls();
	return test_done("unit json");
}
