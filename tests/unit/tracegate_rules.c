/* The rules reader of tracegate classify: grammar, units, three values. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../cmd/tracegate/facts.h"
#include "../../cmd/tracegate/rules.h"
#include "test.h"

static int
read_text(struct rules *r, const char *text, struct err *e)
{
	struct src *src;
	*e = (struct err){ 0 };
	if (src_open_mem(&src, text, strlen(text), e))
		return -1;
	return rules_read(r, src, e);
}

/* Is this text refused, with just this message? */
static bool
refused(const char *text, const char *message)
{
	struct rules r;
	struct err e;
	int n = read_text(&r, text, &e);
	rules_free(&r);
	if (n && !strcmp(e.msg, message))
		return true;
	fprintf(stderr, "%s -> %d %s\n", text, n, e.msg);
	return false;
}

static void
messages(void)
{
	CHECK(refused("", "expected a line `cause NAME: ...`"));
	CHECK(refused("\n#x\nwhy a: dur > 1ms\n",
	    "3: expected names, tier or cause, found \"why\""));
	CHECK(refused("cause a dur > 1ms",
	    "1: expected \":\" after the cause, found \"dur\""));
	CHECK(refused("cause a: speed > 1ms",
	    "1: expected a fact of tracegate-rules(5), found \"speed\""));
	CHECK(refused("cause a: dur > 10%",
	    "1: expected a time like 50ms for dur, found \"10%\""));
	CHECK(refused("cause a: coverage > 0.5",
	    "1: expected a share like 10% for coverage, found \"0.5\""));
	CHECK(refused("cause a: ratio > 2ms",
	    "1: expected a number for ratio, found \"2ms\""));
	CHECK(refused("cause a: ratio > nan",
	    "1: expected a number for ratio, found \"nan\""));
	CHECK(refused("cause a: dur = 1ms",
	    "1: expected <, <=, >, >=, ==, != or \"in\", found \"=\""));
	CHECK(refused("cause a: dur in 2ms..1ms",
	    "1: expected a range from low to high for dur"));
	CHECK(refused("cause a: dur in 2ms",
	    "1: expected \"..\" and the upper end, found the end of the "
	    "line"));
	CHECK(refused("cause a: dur > 1ms &&",
	    "1: expected a fact, found the end of the line"));
	CHECK(refused("cause a: (dur > 1ms",
	    "1: expected &&, || or \")\", found the end of the line"));
	CHECK(refused("cause a: dur > 1ms)",
	    "1: expected no \")\" without its \"(\", found \")\""));
	CHECK(refused("cause a: dur > 1ms dur > 2ms",
	    "1: expected &&, || or the end of the line, found \"dur\""));
	CHECK(refused(
	    "cause a: dur.x > 1ms", "1: expected no set of names after dur"));
	CHECK(refused("cause a: on_path > 1%",
	    "1: expected a set of names after on_path, as in on_path.SET"));
	CHECK(refused("cause a: on_path.x > 1%",
	    "1: expected a set that a line `names SET GLOB...` above makes, "
	    "found \"x\""));
	CHECK(refused("names a x\nnames a y\n",
	    "2: expected a new set, found \"a\" again"));
	CHECK(refused("names a", "1: expected a GLOB, found the end of the "
				 "line"));
	CHECK(refused("names a \"x",
	    "1: expected a closing quote, found the end of the line"));
}

/* `n` times one text, and another behind it. */
static int
read_many(const char *before, int n, const char *each, const char *after)
{
	struct buf b = { 0 };
	struct rules r;
	struct err e;
	buf_puts(&b, before);
	for (int i = 0; i < n; i++)
		buf_puts(&b, each);
	buf_puts(&b, after);
	int err = read_text(&r, buf_cstr(&b), &e);
	rules_free(&r);
	buf_free(&b);
	return err;
}

static void
limits(void)
{
	const char *one = "cause a: dur>1ms";
	CHECK(!read_many("cause a: ", RULE_DEPTH_MAX, "!", "dur>1ms"));
	CHECK(read_many("cause a: ", RULE_DEPTH_MAX + 1, "!", "dur>1ms") ==
	      SE_ELIMIT);
	CHECK(!read_many(one, RULE_NODES_MAX / 2 - 1, "&&dur>1ms", ""));
	CHECK(read_many(one, RULE_NODES_MAX / 2, "&&dur>1ms", "") == SE_ELIMIT);
	CHECK(read_many("", RULE_LINE_MAX + 1, "#", "") < 0);
	CHECK(!read_many("", RULES_MAX, "cause a: dur>1ms\n", ""));
	CHECK(read_many("", RULES_MAX + 1, "cause a: dur>1ms\n", "") ==
	      SE_ELIMIT);
	CHECK(!read_many("names a", PATTERNS_MAX, " x", "\ncause a: dur>1ms"));
	CHECK(read_many("names a", PATTERNS_MAX + 1, " x", "\n") == SE_ELIMIT);
}

/* ---- values -------------------------------------------------------------- */

/* A is dur > 1s, B is ratio > 1, C is nth > 1. */
struct three {
	int a, b, c; /* 0 no, 1 yes, 2 not known */
};

static struct fact
of_three(void *user, int fact, int set)
{
	const struct three *t = user;
	int v = fact == FACT_DUR ? t->a : fact == FACT_RATIO ? t->b : t->c;
	(void)set;
	return (struct fact){ v < 2, v == 1 ? 2e9 : 0 };
}

/* Kleene: no 0, unknown 1/2, yes 1; and is min, or is max, not is 1 - x. */
static int
level(int v)
{
	return v == 2 ? 1 : v * 2;
}

static int
min(int a, int b)
{
	return a < b ? a : b;
}

static int
max(int a, int b)
{
	return a > b ? a : b;
}

struct formula {
	const char *text;
	int (*value)(int a, int b, int c);
};

// clang-format off
static int f0(int a, int b, int c) { return max(a, min(b, c)); }
static int f1(int a, int b, int c) { return max(min(a, b), c); }
static int f2(int a, int b, int c) { return min(max(a, b), c); }
static int f3(int a, int b, int c) { return max(2 - min(a, b), 2 - c); }
static int f4(int a, int b, int c) { return min(2 - max(a, 2 - b), c); }
static int f5(int a, int b, int c) { return min(min(2 - a, b), 2 - (2 - c)); }

#define A "dur > 1s"
#define B "ratio > 1"
#define C "nth > 1"
static const struct formula formulas[] = {
	{ A "||" B "&&" C, f0 },
	{ A "&&" B "||" C, f1 },
	{ "(" A "||" B ")&&" C, f2 },
	{ "! ( " A " && " B " ) || ! " C, f3 },
	{ "!(" A "||!(" B "))&&((" C "))", f4 },
	{ "!" A "&&" B "&&!!" C, f5 },
};
// clang-format on

static void
three_values(void)
{
	char text[200];
	struct err e;
	for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++) {
		struct rules r;
		snprintf(text, sizeof text, "cause x: %s", formulas[i].text);
		if (!CHECK(!read_text(&r, text, &e))) {
			fprintf(stderr, "%s\n", e.msg);
			continue;
		}
		for (int k = 0; k < 27; k++) {
			struct three t = { k % 3, k / 3 % 3, k / 9 };
			int want = formulas[i].value(
			    level(t.a), level(t.b), level(t.c));
			enum truth got = rule_test(&r.rule[0], of_three, &t);
			CHECK(level((int)got) == want);
		}
		rules_free(&r);
	}
}

static struct fact
one_value(void *user, int fact, int set)
{
	(void)fact;
	(void)set;
	return (struct fact){ true, *(double *)user };
}

static bool
holds(const char *condition, double v)
{
	char text[100];
	struct rules r;
	struct err e;
	snprintf(text, sizeof text, "cause x: %s", condition);
	CHECK(!read_text(&r, text, &e));
	bool yes = rule_test(&r.rule[0], one_value, &v) == TRUTH_YES;
	rules_free(&r);
	return yes;
}

static void
bounds(void)
{
	CHECK(holds("dur > 50ms", 50000001));
	CHECK(!holds("dur > 50ms", 50000000));
	CHECK(holds("dur >= 50ms", 50000000));
	CHECK(holds("dur < 1.5s", 1499999999));
	CHECK(!holds("dur < 1.5s", 1500000000));
	CHECK(holds("dur <= 1.5s", 1500000000));
	CHECK(holds("coverage > 12.5%", 0.126));
	CHECK(!holds("coverage > 12.5%", 0.125));
	CHECK(holds("ratio == 2", 2));
	CHECK(!holds("ratio == 2", 2.5));
	CHECK(holds("ratio != 2", 2.5));
	CHECK(!holds("ratio != 2", 2));
	CHECK(holds("period in 1s..5s", 1e9));
	CHECK(holds("period in 1s..5s", 5e9));
	CHECK(!holds("period in 1s..5s", 5e9 + 1));
	CHECK(!holds("period in 1s..5s", 0));
	CHECK(holds("ratio in 0.5..1.5", 1));
	CHECK(holds("ratio > 1e3", INFINITY));
}

static void
tiers_and_sets(void)
{
	struct rules r;
	struct err e;
	CHECK(!read_text(&r,
	    "names alloc cudaMalloc* cudaFree\nnames off @sched\n"
	    "names both \"a b*\" cudaFree\r\n"
	    "cause a: dur > 1ms\ncause b: dur > 1ms\ntier x\n"
	    "cause c: dur > 1ms\ncause d: drops > 0\ntier\n"
	    "cause e: dur > 1ms\n",
	    &e));
	CHECK(r.n == 5);
	CHECK(r.rule[0].tier != r.rule[1].tier);
	CHECK(r.rule[1].tier != r.rule[2].tier);
	CHECK(r.rule[2].tier == r.rule[3].tier);
	CHECK(r.rule[3].tier != r.rule[4].tier);
	CHECK(r.rule[3].line == 8);
	CHECK(rule_names(&r.rule[3], FACT_DROPS));
	CHECK(!rule_names(&r.rule[2], FACT_DROPS));
	CHECK(rules_sets(&r, STR_LIT("x"), STR_LIT("cudaMallocAsync")) == 1);
	CHECK(rules_sets(&r, STR_LIT("sched"), STR_LIT("q")) == 2);
	CHECK(rules_sets(&r, STR_LIT("x"), STR_LIT("cudaFree")) == 5);
	CHECK(rules_sets(&r, STR_LIT("x"), STR_LIT("a bc")) == 4);
	CHECK(rules_sets(&r, STR_NULL, STR_LIT("sched")) == 0);
	CHECK(rules_set(&r, "off") == 1);
	CHECK(rules_set(&r, "of") == NO_SET);
	rules_free(&r);
}

int
main(void)
{
	messages();
	limits();
	three_values();
	bounds();
	tiers_and_sets();
	return test_done("tracegate_rules");
}
