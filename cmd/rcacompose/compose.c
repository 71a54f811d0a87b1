/* From answers to a finding: see compose.h and straightedge-stack(5). */
#include "compose.h"

struct tally
tally_of(const struct vote *v, size_t n)
{
	struct tally t = { 0 };
	for (size_t i = 0; i < n; i++) {
		t.has[v[i].role][v[i].answer] = true;
		if (v[i].role != ROLE_REQUIRED || v[i].answer != ANSWER_F)
			continue;
		size_t k = 0;
		while (k < i &&
		       (v[k].role != ROLE_REQUIRED || v[k].answer != ANSWER_F ||
			   v[k].root != v[i].root))
			k++;
		t.witnesses += k == i;
	}
	return t;
}

static enum rule
first_rule(const struct tally *t, unsigned quorum)
{
	const bool *gate = t->has[ROLE_REQUISITE];
	const bool *witness = t->has[ROLE_REQUIRED];
	const bool *gun = t->has[ROLE_SUFFICIENT];
	bool some_f = gate[ANSWER_F] || witness[ANSWER_F] || gun[ANSWER_F];
	bool quorate = quorum && t->witnesses >= quorum;
	if (some_f && (gate[ANSWER_H] || witness[ANSWER_H]))
		return RULE_CONFLICT;
	if (gate[ANSWER_H])
		return RULE_REQUISITE_CLEARS;
	if (gate[ANSWER_U])
		return RULE_MISSING_REQUISITE;
	if (gun[ANSWER_F])
		return RULE_SUFFICIENT;
	if (witness[ANSWER_U] && !quorate)
		return RULE_MISSING_REQUIRED;
	if (witness[ANSWER_F])
		return RULE_REQUIRED_FAULTY;
	if (gun[ANSWER_U])
		return RULE_MISSING_SUFFICIENT;
	if (witness[ANSWER_H])
		return RULE_REQUIRED_HEALTHY;
	if (gate[ANSWER_F])
		return RULE_UNPROVEN;
	if (gun[ANSWER_H])
		return RULE_NONE_FIRED;
	return RULE_NO_BINDING;
}

// clang-format off
#define BIT(role, answer) (1u << (ROLE_ ## role * ANSWERS + ANSWER_ ## answer))

static const struct {
	const char *name;
	enum result result;
	unsigned decides; /* which votes the rule rests on */
} rules[] = {
	[RULE_CONFLICT] = { "conflict", RESULT_UNKNOWN,
		BIT(REQUISITE, F) | BIT(REQUIRED, F) | BIT(SUFFICIENT, F) |
		BIT(REQUISITE, H) | BIT(REQUIRED, H) },
	[RULE_REQUISITE_CLEARS] = { "requisite-clears", RESULT_HEALTHY,
		BIT(REQUISITE, H) },
	[RULE_MISSING_REQUISITE] = { "missing-requisite", RESULT_UNKNOWN,
		BIT(REQUISITE, U) },
	[RULE_SUFFICIENT] = { "sufficient", RESULT_FAULTY,
		BIT(SUFFICIENT, F) },
	[RULE_MISSING_REQUIRED] = { "missing-required", RESULT_UNKNOWN,
		BIT(REQUIRED, U) },
	[RULE_REQUIRED_FAULTY] = { "required-agree", RESULT_FAULTY,
		BIT(REQUIRED, F) },
	[RULE_MISSING_SUFFICIENT] = { "missing-sufficient", RESULT_UNKNOWN,
		BIT(SUFFICIENT, U) },
	[RULE_REQUIRED_HEALTHY] = { "required-agree", RESULT_HEALTHY,
		BIT(REQUIRED, H) },
	[RULE_UNPROVEN] = { "unproven", RESULT_UNKNOWN, BIT(REQUISITE, F) },
	[RULE_NONE_FIRED] = { "no-sufficient-fired", RESULT_HEALTHY,
		BIT(SUFFICIENT, H) },
	[RULE_NO_BINDING] = { "no-binding-evidence", RESULT_UNKNOWN, 0 },
};
// clang-format on

struct opinion
compose(const struct tally *t, unsigned quorum)
{
	struct opinion o = { .rule = first_rule(t, quorum) };
	o.result = rules[o.rule].result;
	o.accused = t->has[ROLE_REQUIRED][ANSWER_F] ||
		    t->has[ROLE_SUFFICIENT][ANSWER_F];
	o.alibi = t->has[ROLE_REQUISITE][ANSWER_H];
	for (int r = ROLE_REQUISITE; r <= ROLE_SUFFICIENT; r++)
		o.observed |= t->has[r][ANSWER_F] || t->has[r][ANSWER_H];
	return o;
}

const char *
rule_name(enum rule r)
{
	return rules[r].name;
}

bool
rule_decides(enum rule r, enum role role, enum answer answer)
{
	return rules[r].decides >> (role * ANSWERS + answer) & 1;
}

const char *
result_name(enum result r)
{
	static const char *const name[] = { "unknown", "faulty", "healthy" };
	return name[r];
}

const char *
answer_name(enum answer a)
{
	static const char *const name[] = { "U", "F", "H" };
	return name[a];
}

const char *
role_name(enum role r)
{
	static const char *const name[] = { "requisite", "required",
		"sufficient", "optional" };
	return name[r];
}

/* ---- what could still change -------------------------------------------- */

/*
 * Each set of answers that `n` more lines of a role could add is a mask of
 * the three answers with at most n bits, and none only if n is 0.
 */
static bool
is_possible(unsigned mask, unsigned n)
{
	unsigned bits = (mask & 1) + (mask >> 1 & 1) + (mask >> 2 & 1);
	return n ? bits && bits <= n : !bits;
}

static void
add_mask(struct tally *t, enum role role, unsigned mask)
{
	for (int a = 0; a < ANSWERS; a++)
		t->has[role][a] |= mask >> a & 1;
}

/* Both ends of how many new witnesses there could be. */
static bool
same_for_all(
    const struct tally *t, unsigned most, unsigned quorum, struct opinion first)
{
	struct tally more = *t;
	for (int k = 0; k < 2; k++) {
		more.witnesses = t->witnesses + (k ? most : 0);
		struct opinion o = compose(&more, quorum);
		if (o.result != first.result || o.accused != first.accused)
			return false;
	}
	return true;
}

bool
compose_open(
    const struct tally *known, const unsigned left[ROLES], unsigned quorum)
{
	struct opinion first = { 0 };
	bool have = false;
	for (unsigned m = 0; m < 512; m++) {
		unsigned gate = m & 7, witness = m >> 3 & 7, gun = m >> 6;
		if (!is_possible(gate, left[ROLE_REQUISITE]) ||
		    !is_possible(witness, left[ROLE_REQUIRED]) ||
		    !is_possible(gun, left[ROLE_SUFFICIENT]))
			continue;
		struct tally t = *known;
		add_mask(&t, ROLE_REQUISITE, gate);
		add_mask(&t, ROLE_REQUIRED, witness);
		add_mask(&t, ROLE_SUFFICIENT, gun);
		bool f = witness >> ANSWER_F & 1;
		unsigned others = (witness & 1) + (witness >> ANSWER_H & 1);
		unsigned most = f ? left[ROLE_REQUIRED] - others : 0;
		if (!have)
			first = compose(&t, quorum);
		have = true;
		if (!same_for_all(&t, most, quorum, first))
			return true;
	}
	return false;
}

/* All answers F or H to the votes in `set`: does one change the result? */
static bool
could_change(const struct vote *v, size_t n, unsigned quorum, const size_t *set,
    size_t k)
{
	struct vote w[VOTES_MAX];
	struct tally t = tally_of(v, n);
	enum result now = compose(&t, quorum).result;
	for (size_t i = 0; i < n; i++)
		w[i] = v[i];
	for (unsigned m = 0; m < 1u << k; m++) {
		for (size_t i = 0; i < k; i++)
			w[set[i]].answer = m >> i & 1 ? ANSWER_H : ANSWER_F;
		t = tally_of(w, n);
		if (compose(&t, quorum).result != now)
			return true;
	}
	return false;
}

/* The next choice of k out of n in lexicographic order. */
static bool
next_choice(size_t *pick, size_t k, size_t n)
{
	size_t i = k;
	while (i && pick[i - 1] == n - k + i - 1)
		i--;
	if (!i)
		return false;
	pick[i - 1]++;
	for (; i < k; i++)
		pick[i] = pick[i - 1] + 1;
	return true;
}

/*
 * Sets of up to NEED_EXACT are tried one by one; beyond that only the set of
 * all unknown votes, up to NEED_ALL of them.
 */
enum { NEED_EXACT = 3, NEED_ALL = 12 };

size_t
compose_need(
    const struct vote *v, size_t n, unsigned quorum, size_t set[VOTES_MAX])
{
	size_t open[VOTES_MAX], nopen = 0, pick[NEED_ALL];
	for (size_t i = 0; i < n; i++)
		if (v[i].answer == ANSWER_U && v[i].role != ROLE_OPTIONAL)
			open[nopen++] = i;
	for (size_t k = 1; k <= nopen && k <= NEED_ALL; k++) {
		if (k > NEED_EXACT && k < nopen)
			continue;
		for (size_t i = 0; i < k; i++)
			pick[i] = i;
		do {
			for (size_t i = 0; i < k; i++)
				set[i] = open[pick[i]];
			if (could_change(v, n, quorum, set, k))
				return k;
		} while (next_choice(pick, k, nopen));
	}
	return 0;
}
