/*
 * rcacompose: every stack of one to three agents against the published table,
 * in every order, and the properties of the rules by enumeration.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../cmd/rcacompose/compose.h"
#include "str.h"

enum { AGENTS = 4, KINDS = ROLES * ANSWERS };

static struct opinion
judge(const struct vote *v, size_t n, unsigned quorum)
{
	struct tally t = tally_of(v, n);
	return compose(&t, quorum);
}

static struct vote
vote_of(unsigned code, uint32_t root)
{
	return (struct vote){ (unsigned char)(code / ANSWERS),
		(unsigned char)(code % ANSWERS), root };
}

/* Fills v with the n digits of `code` in base KINDS. */
static void
stack_of(struct vote *v, size_t n, unsigned code)
{
	for (size_t i = 0; i < n; i++, code /= KINDS)
		v[i] = vote_of(code % KINDS, (uint32_t)i);
}

static unsigned
stacks(size_t n)
{
	unsigned k = 1;
	while (n--)
		k *= KINDS;
	return k;
}

/* ---- the table ---------------------------------------------------------- */

static bool
parse_vote(struct str word, struct vote *v)
{
	for (int r = 0; r < ROLES; r++)
		for (int a = 0; a < ANSWERS; a++) {
			char text[32];
			snprintf(text, sizeof text, "%s:%s",
			    role_name((enum role)r),
			    answer_name((enum answer)a));
			if (!str_is(word, text))
				continue;
			v->role = (unsigned char)r;
			v->answer = (unsigned char)a;
			return true;
		}
	return false;
}

static void
check_orders(struct vote *v, size_t n, struct str result, struct str reason)
{
	static const int order[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
		{ 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	for (int k = 0; k < 6; k++) {
		struct vote w[3];
		for (size_t i = 0, m = 0; i < 3; i++)
			if ((size_t)order[k][i] < n)
				w[m++] = v[order[k][i]];
		struct opinion o = judge(w, n, 0);
		CHECK(str_is(result, result_name(o.result)));
		CHECK(str_is(reason, rule_name(o.rule)));
	}
}

static void
test_table(const char *path)
{
	FILE *f = fopen(path, "r");
	if (!f) {
		printf("# not run: no %s\n", path);
		return;
	}
	char line[256];
	int rows = 0;
	while (fgets(line, sizeof line, f)) {
		struct str rest = str_c(line), stack, result, reason, word;
		rest.len -= rest.len && line[rest.len - 1] == '\n';
		if (str_starts(rest, "stack\t"))
			continue;
		CHECK(str_cut(&rest, '\t', &stack) &&
		      str_cut(&rest, '\t', &result) &&
		      str_cut(&rest, '\t', &reason));
		struct vote v[3];
		size_t n = 0;
		while (str_cut(&stack, ' ', &word)) {
			v[n] = (struct vote){ .root = (uint32_t)n };
			CHECK(parse_vote(word, &v[n++]));
		}
		check_orders(v, n, result, reason);
		rows++;
	}
	fclose(f);
	CHECK(rows == 1884);
}

/* ---- properties --------------------------------------------------------- */

static bool
same(struct opinion a, struct opinion b)
{
	return a.result == b.result && a.rule == b.rule &&
	       a.accused == b.accused && a.alibi == b.alibi &&
	       a.observed == b.observed;
}

/* Neighbours swapped and a rotation generate every order. */
static void
check_order_free(const struct vote *v, size_t n, unsigned quorum)
{
	struct opinion o = judge(v, n, quorum);
	for (size_t k = 0; k < n; k++) {
		struct vote w[AGENTS];
		for (size_t i = 0; i < n; i++)
			w[i] = v[(i + k) % n];
		CHECK(same(o, judge(w, n, quorum)));
		struct vote t = w[0];
		w[0] = w[n - 1];
		w[n - 1] = t;
		CHECK(same(o, judge(w, n, quorum)));
	}
}

static void
check_optional(const struct vote *v, size_t n, unsigned quorum)
{
	struct opinion o = judge(v, n, quorum);
	struct vote w[AGENTS + 1];
	memcpy(w, v, n * sizeof *v);
	for (int a = 0; a < ANSWERS; a++) {
		w[n] = (struct vote){ ROLE_OPTIONAL, (unsigned char)a, 99 };
		CHECK(same(o, judge(w, n + 1, quorum)));
	}
}

/* Learning what an unknown is never turns guilt to innocence or back. */
static void
check_no_flip(const struct vote *v, size_t n, unsigned quorum)
{
	enum result r = judge(v, n, quorum).result;
	for (size_t i = 0; i < n; i++) {
		if (v[i].answer != ANSWER_U)
			continue;
		struct vote w[AGENTS];
		memcpy(w, v, n * sizeof *v);
		w[i].answer = ANSWER_F;
		enum result f = judge(w, n, quorum).result;
		w[i].answer = ANSWER_H;
		enum result h = judge(w, n, quorum).result;
		CHECK(r != RESULT_FAULTY ||
		      (f != RESULT_HEALTHY && h != RESULT_HEALTHY));
		CHECK(r != RESULT_HEALTHY ||
		      (f != RESULT_FAULTY && h != RESULT_FAULTY));
	}
}

/* Guilt needs an accuser, health an observer. */
static void
check_grounds(const struct vote *v, size_t n, unsigned quorum)
{
	struct opinion o = judge(v, n, quorum);
	bool binding = false;
	for (size_t i = 0; i < n; i++)
		binding |= v[i].role != ROLE_OPTIONAL;
	CHECK(binding || o.rule == RULE_NO_BINDING);
	CHECK(o.result != RESULT_FAULTY || o.accused);
	CHECK(o.result == RESULT_UNKNOWN || o.observed);
	CHECK(!(o.result == RESULT_FAULTY && o.alibi));
}

/* compose_need names a set that changes the result, and no smaller one. */
static void
check_need(const struct vote *v, size_t n, unsigned quorum)
{
	size_t set[VOTES_MAX];
	size_t k = compose_need(v, n, quorum, set);
	enum result now = judge(v, n, quorum).result;
	size_t best = 0;
	for (unsigned m = 1; m < 1u << n; m++) {
		size_t bits = 0;
		bool open = true, changes = false;
		for (size_t i = 0; i < n; i++) {
			bits += m >> i & 1;
			open &= !(m >> i & 1) || v[i].answer == ANSWER_U;
		}
		for (unsigned fh = 0; open && fh < 1u << n; fh++) {
			struct vote w[AGENTS];
			memcpy(w, v, n * sizeof *v);
			for (size_t i = 0; i < n; i++)
				if (m >> i & 1)
					w[i].answer =
					    fh >> i & 1 ? ANSWER_F : ANSWER_H;
			changes |= judge(w, n, quorum).result != now;
		}
		if (changes && (!best || bits < best))
			best = bits;
	}
	CHECK(k == best);
}

/* The lazy rule against all answers of the lines not yet consulted. */
static void
check_open(const struct vote *v, size_t n, unsigned quorum)
{
	for (size_t heard = 0; heard <= n; heard++) {
		struct tally known = tally_of(v, heard);
		unsigned left[ROLES] = { 0 };
		unsigned ways = 1;
		for (size_t i = heard; i < n; i++) {
			left[v[i].role]++;
			ways *= ANSWERS * 2;
		}
		bool open = false;
		struct opinion first = { 0 };
		for (unsigned c = 0; c < ways; c++) {
			struct vote w[AGENTS];
			unsigned rest = c;
			memcpy(w, v, n * sizeof *v);
			for (size_t i = heard; i < n; i++, rest /= 6) {
				w[i].answer = (unsigned char)(rest % 3);
				/* a root of its own, or the first one's */
				w[i].root = rest % 6 < 3 ? w[i].root : 0;
			}
			struct opinion o = judge(w, n, quorum);
			if (!c)
				first = o;
			open |= o.result != first.result ||
				o.accused != first.accused;
		}
		CHECK(open == compose_open(&known, left, quorum));
	}
}

static void
test_properties(void)
{
	struct vote v[AGENTS];
	struct opinion none = judge(v, 0, 0);
	CHECK(none.result == RESULT_UNKNOWN && none.rule == RULE_NO_BINDING);
	for (size_t n = 1; n <= AGENTS; n++)
		for (unsigned c = 0; c < stacks(n); c++) {
			stack_of(v, n, c);
			for (unsigned q = 0; q < 3; q++) {
				check_order_free(v, n, q);
				check_optional(v, n, q);
				check_no_flip(v, n, q);
				check_grounds(v, n, q);
			}
		}
}

static void
test_searches(void)
{
	struct vote v[AGENTS];
	for (size_t n = 1; n <= AGENTS; n++)
		for (unsigned c = 0; c < stacks(n); c++) {
			stack_of(v, n, c);
			check_need(v, n, c % 3);
			check_open(v, n, c % 3);
		}
}

static void
test_quorum(void)
{
	struct vote v[] = { { ROLE_REQUIRED, ANSWER_F, 1 },
		{ ROLE_REQUIRED, ANSWER_F, 2 }, { ROLE_REQUIRED, ANSWER_U, 3 },
		{ ROLE_SUFFICIENT, ANSWER_U, 4 } };
	CHECK(judge(v, 4, 0).rule == RULE_MISSING_REQUIRED);
	CHECK(judge(v, 4, 2).rule == RULE_REQUIRED_FAULTY);
	CHECK(judge(v, 4, 3).rule == RULE_MISSING_REQUIRED);
	v[1].root = 1; /* the same source twice */
	CHECK(judge(v, 4, 2).rule == RULE_MISSING_REQUIRED);
	v[1].root = 2;
	v[2].answer = ANSWER_H; /* a quorum does not outvote */
	CHECK(judge(v, 4, 2).rule == RULE_CONFLICT);
}

int
main(int argc, char **argv)
{
	test_table(argc > 1 ? argv[1] : "../shared/data/rca/semantics.tsv");
	test_properties();
	test_searches();
	test_quorum();
	return test_done("rcacompose_compose");
}
