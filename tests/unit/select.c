/* Patterns and ranges of the command line. */
#include "select.h"

#include "glob.h"
#include "test.h"

static bool
match(const char *pattern, const char *text)
{
	return glob_match(str_c(pattern), str_c(text));
}

static void
test_glob(void)
{
	CHECK(match("", "") && !match("", "a") && !match("a", ""));
	CHECK(match("*", "") && match("**", "a/b.c"));
	CHECK(match("a*c", "abc") && match("a*c", "ac") && !match("a*c", "ab"));
	CHECK(match("layers.*.weight", "layers.3.mlp.weight"));
	CHECK(!match("layers.*.weight", "layers.3.mlp.bias"));
	CHECK(match("*a*b*", "xxaxxbxx") && !match("*a*b*", "xxbxxa"));
	CHECK(match("*ab", "aab") && match("*aab", "aaaaab"));
	CHECK(match("?", "x") && !match("?", "") && !match("?", "xy"));
	CHECK(match("[abc]", "b") && !match("[abc]", "d"));
	CHECK(match("[a-c]x", "bx") && !match("[!a-c]x", "bx"));
	CHECK(match("[!a-c]x", "dx") && match("[]]", "]"));
	CHECK(match("[a-]", "-") && match("[ab", "[ab") && !match("[ab", "a"));
	CHECK(match("\\*", "*") && !match("\\*", "x") && match("\\", "\\"));
	CHECK(match("a[0]", "a0") && match("a\\[0]", "a[0]"));
	/* Bytes above 127 are bytes, and NUL is one too. */
	CHECK(match("\xc3?", "\xc3\xa9"));
	CHECK(glob_match(STR_LIT("a*"), STR_LIT("a\0b")));
	CHECK(!glob_match(STR_LIT("a"), STR_LIT("a\0b")));
}

/* Many stars must not take exponential time. */
static void
test_glob_cost(void)
{
	char text[2000];
	memset(text, 'a', sizeof text);
	struct str t = { text, sizeof text };
	CHECK(!glob_match(STR_LIT("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b"), t));
}

static bool
in(const char *range, const char *step)
{
	struct select s = { 0 };
	CHECK(select_steps(&s, str_c(range), NULL) == 0);
	return select_step(&s, step ? str_c(step) : STR_NULL);
}

static void
test_steps(void)
{
	CHECK(in("3:5", "3") && in("3:5", "5"));
	CHECK(!in("3:5", "2") && !in("3:5", "6"));
	CHECK(in("3:", "18446744073709551615") && in(":3", "0"));
	CHECK(in("7", "7") && !in("7", "8") && !in("7", "x"));
	CHECK(!in("7", NULL) && in(":", "1") && !in(":", ""));
	struct select s = { 0 };
	CHECK(select_step(&s, STR_NULL));
	const char *bad[] = { "", "5:3", "a:b", "1:2:3", "-1:2", NULL };
	for (int i = 0; bad[i]; i++)
		CHECK(select_steps(&s, str_c(bad[i]), NULL) == SE_EINVAL);
}

static void
test_names(void)
{
	const char *glob[] = { "a.*", "b" };
	struct select s = { .glob = glob, .nglobs = 2 };
	CHECK(select_name(&s, STR_LIT("a.x")) && select_name(&s, STR_LIT("b")));
	CHECK(!select_name(&s, STR_LIT("bb")));
	s.nglobs = 0;
	CHECK(select_name(&s, STR_LIT("bb")));
}

int
main(void)
{
	test_glob();
	test_glob_cost();
	test_steps();
	test_names();
	return test_done("select");
}
