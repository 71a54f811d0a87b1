/* A rules file: see rules.h and tracegate-rules(5). */
#include "rules.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "glob.h"
#include "line.h"
#include "num.h"

/* ---- words -------------------------------------------------------------- */

struct scan {
	const char *p, *end;
	struct rules *rules;
	struct node node[RULE_NODES_MAX];
	uint32_t n;
	char op[RULE_DEPTH_MAX]; /* that wait for an operand */
	uint32_t depth;
	struct err *e;
};

static bool
blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void
skip(struct scan *s)
{
	while (s->p < s->end && blank(*s->p))
		s->p++;
}

static bool
letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* What stands here, for a message. */
static struct str
found(const struct scan *s)
{
	const char *q = s->p;
	while (q < s->end && !blank(*q))
		q++;
	if (q - s->p > 40)
		q = s->p + 40;
	return (struct str){ s->p, (size_t)(q - s->p) };
}

static int
expected(struct scan *s, const char *what)
{
	struct str f = found(s);
	if (!f.len)
		return err_set(s->e, SE_EFORMAT,
		    "expected %s, found the end of the line", what);
	return err_set(
	    s->e, SE_EFORMAT, "expected %s, found \"%.*s\"", what, STR_ARG(f));
}

static bool
take(struct scan *s, const char *token)
{
	size_t n = strlen(token);
	skip(s);
	if ((size_t)(s->end - s->p) < n || memcmp(s->p, token, n) != 0)
		return false;
	s->p += n;
	return true;
}

static int
word(struct scan *s, const char *what, struct str *out)
{
	skip(s);
	const char *from = s->p;
	while (s->p < s->end && letter(*s->p))
		s->p++;
	*out = (struct str){ from, (size_t)(s->p - from) };
	if (out->len && out->len <= WORD_MAX)
		return 0;
	s->p = from;
	return expected(s, what);
}

/* ---- conditions --------------------------------------------------------- */

static int
push(struct scan *s, struct node n)
{
	if (s->n == RULE_NODES_MAX)
		return err_set(s->e, SE_ELIMIT,
		    "more than %d conditions and operators", RULE_NODES_MAX);
	s->node[s->n++] = n;
	return 0;
}

static const char *const unit_text[] = {
	[UNIT_TIME] = "a time like 50ms",
	[UNIT_SHARE] = "a share like 10%",
	[UNIT_NUMBER] = "a number",
};

/* The characters a value is made of; ".." ends the first one of a range. */
static struct str
value_text(struct scan *s)
{
	const char *q = s->p;
	for (; q < s->end && (letter(*q) || *q == '.' || *q == '%'); q++)
		if (*q == '.' && s->end - q > 1 && q[1] == '.')
			break;
	return (struct str){ s->p, (size_t)(q - s->p) };
}

static bool
value_of(struct str text, enum unit unit, double *v)
{
	int64_t ns;
	if (unit == UNIT_TIME) {
		if (num_duration(text, &ns, NULL))
			return false;
		*v = (double)ns;
		return true;
	}
	if (unit == UNIT_SHARE) {
		if (!str_ends(text, "%"))
			return false;
		text.len--;
	}
	if (num_f64(text, v, NULL) || !isfinite(*v))
		return false;
	if (unit == UNIT_SHARE)
		*v /= 100;
	return true;
}

static int
value(struct scan *s, const struct fact_kind *k, double *v)
{
	char what[128];
	skip(s);
	struct str text = value_text(s);
	if (text.len && value_of(text, k->unit, v)) {
		s->p += text.len;
		return 0;
	}
	snprintf(what, sizeof what, "%s for %s", unit_text[k->unit], k->name);
	return expected(s, what);
}

static int
range(struct scan *s, const struct fact_kind *k, struct node *n)
{
	n->with_low = n->with_high = true;
	int err = value(s, k, &n->low);
	if (err)
		return err;
	if (!take(s, ".."))
		return expected(s, "\"..\" and the upper end");
	err = value(s, k, &n->high);
	if (!err && n->high < n->low)
		err = err_set(s->e, SE_EFORMAT,
		    "expected a range from low to high for %s", k->name);
	return err;
}

struct compare {
	const char *token;
	signed char side; /* -1: below, 1: above, 0: equal */
	bool with, outside;
};

// clang-format off
/* The longer ones first. */
static const struct compare compares[] = {
	{ "<=", -1, true, false }, { ">=", 1, true, false },
	{ "==", 0, true, false }, { "!=", 0, true, true },
	{ "<", -1, false, false }, { ">", 1, false, false },
};
// clang-format on

static int
compare(struct scan *s, const struct fact_kind *k, struct node *n)
{
	n->low = -INFINITY;
	n->high = INFINITY;
	n->with_low = n->with_high = true;
	for (size_t i = 0; i < sizeof compares / sizeof *compares; i++) {
		const struct compare *c = &compares[i];
		if (!take(s, c->token))
			continue;
		if (c->side >= 0)
			n->with_low = c->with;
		if (c->side <= 0)
			n->with_high = c->with;
		n->outside = c->outside;
		double v;
		int err = value(s, k, &v);
		if (err)
			return err;
		if (c->side >= 0)
			n->low = v;
		if (c->side <= 0)
			n->high = v;
		return 0;
	}
	skip(s);
	if (s->end - s->p > 2 && !memcmp(s->p, "in", 2) && blank(s->p[2])) {
		s->p += 2;
		return range(s, k, n);
	}
	return expected(s, "<, <=, >, >=, ==, != or \"in\"");
}

static const struct fact_kind *
fact_named(struct str name)
{
	for (const struct fact_kind *k = fact_kinds; k->name; k++)
		if (str_is(name, k->name))
			return k;
	return NULL;
}

static int
set_named(const struct rules *r, struct str name)
{
	for (uint32_t i = 0; i < r->nsets; i++)
		if (str_same(r->set[i].name, name))
			return (int)i;
	return NO_SET;
}

int
rules_set(const struct rules *r, const char *name)
{
	return set_named(r, str_c(name));
}

static int
set_of(struct scan *s, const struct fact_kind *k, struct node *n)
{
	struct str name;
	const char *at = s->p;
	bool dot = s->p < s->end && *s->p == '.';
	if (dot)
		s->p++;
	if (!k->of_set)
		return dot ? err_set(s->e, SE_EFORMAT,
				 "expected no set of names after %s", k->name)
			   : 0;
	if (!dot)
		return err_set(s->e, SE_EFORMAT,
		    "expected a set of names after %s, as in %s.SET", k->name,
		    k->name);
	int err = word(s, "a set of names", &name);
	if (err)
		return err;
	n->set = (int8_t)set_named(s->rules, name);
	s->p = n->set < 0 ? at + 1 : s->p;
	return n->set < 0
		   ? expected(s, "a set that a line `names SET GLOB...` above "
				 "makes")
		   : 0;
}

static int
condition(struct scan *s)
{
	struct str name;
	struct node n = { .op = NODE_TEST, .set = NO_SET };
	int err = word(s, "a fact", &name);
	if (err)
		return err;
	const struct fact_kind *k = fact_named(name);
	if (!k) {
		s->p = name.p;
		return expected(s, "a fact of tracegate-rules(5)");
	}
	n.fact = (uint8_t)(k - fact_kinds);
	err = set_of(s, k, &n);
	if (!err)
		err = compare(s, k, &n);
	return err ? err : push(s, n);
}

/*
 * Operators wait on a stack until what binds tighter is through (Dijkstra's
 * shunting yard): no recursion, whatever the line.
 */
static int
defer(struct scan *s, char op)
{
	if (s->depth == RULE_DEPTH_MAX)
		return err_set(s->e, SE_ELIMIT, "nested more than %d deep",
		    RULE_DEPTH_MAX);
	s->op[s->depth++] = op;
	return 0;
}

static bool
waits(const struct scan *s, char op)
{
	return s->depth && s->op[s->depth - 1] == op;
}

/* The waiting operators of these kinds, `!` last, take their operands. */
static int
settle(struct scan *s, const char *ops)
{
	int err = 0;
	while (!err && s->depth && strchr(ops, s->op[s->depth - 1])) {
		char op = s->op[--s->depth];
		err = push(s, (struct node){ .op = op == '!'   ? NODE_NOT
						   : op == '&' ? NODE_AND
							       : NODE_OR });
	}
	return err;
}

/* `!` and `(` as they come, then a condition, then `)`. */
static int
operand(struct scan *s)
{
	int err = 0;
	for (;;) {
		char op = take(s, "!") ? '!' : take(s, "(") ? '(' : 0;
		if (!op)
			break;
		err = defer(s, op);
		if (err)
			return err;
	}
	err = condition(s);
	if (!err)
		err = settle(s, "!");
	while (!err && take(s, ")")) {
		err = settle(s, "&|");
		if (!err && !waits(s, '(')) {
			s->p--;
			return expected(s, "no \")\" without its \"(\"");
		}
		s->depth -= !err;
		if (!err)
			err = settle(s, "!");
	}
	return err;
}

static int
expression(struct scan *s)
{
	int err = operand(s);
	while (!err) {
		bool tight = take(s, "&&");
		if (!tight && !take(s, "||"))
			break;
		err = settle(s, tight ? "&" : "&|");
		if (!err)
			err = defer(s, tight ? '&' : '|');
		if (!err)
			err = operand(s);
	}
	if (!err)
		err = settle(s, "&|");
	skip(s);
	if (!err && s->p < s->end)
		return expected(s, "&&, || or the end of the line");
	if (!err && s->depth)
		return expected(s, "&&, || or \")\"");
	return err;
}

/* ---- lines -------------------------------------------------------------- */

static int
copy(struct rules *r, struct str text, struct str *out, struct err *e)
{
	*out = arena_str(&r->arena, text);
	return out->p ? 0 : err_mem(e);
}

/* A GLOB up to the next blank, or in double quotes; `@` asks the category. */
static int
pattern(struct scan *s)
{
	struct rules *r = s->rules;
	struct pattern p = { .category = take(s, "@") };
	bool quoted = s->p < s->end && *s->p == '"';
	const char *from = s->p + quoted;
	for (s->p = from; s->p < s->end; s->p++)
		if (quoted ? *s->p == '"' : blank(*s->p))
			break;
	p.glob = (struct str){ from, (size_t)(s->p - from) };
	if (quoted && s->p == s->end)
		return expected(s, "a closing quote");
	s->p += quoted;
	if (!p.glob.len) {
		s->p = from;
		return expected(s, "a GLOB");
	}
	if (r->npatterns == PATTERNS_MAX)
		return err_set(
		    s->e, SE_ELIMIT, "more than %d GLOBs", PATTERNS_MAX);
	int err = copy(r, p.glob, &p.glob, s->e);
	if (!err)
		r->pattern[r->npatterns++] = p;
	return err;
}

static int
names_line(struct scan *s)
{
	struct rules *r = s->rules;
	struct name_set set = { .first = r->npatterns };
	int err = word(s, "the name of a set", &set.name);
	if (err)
		return err;
	if (set_named(r, set.name) >= 0)
		return err_set(s->e, SE_EFORMAT,
		    "expected a new set, found \"%.*s\" again",
		    STR_ARG(set.name));
	if (r->nsets == SETS_MAX)
		return err_set(s->e, SE_ELIMIT, "more than %d sets", SETS_MAX);
	do {
		err = pattern(s);
		skip(s);
	} while (!err && s->p < s->end);
	set.n = r->npatterns - set.first;
	if (!err)
		err = copy(r, set.name, &set.name, s->e);
	if (!err)
		r->set[r->nsets++] = set;
	return err;
}

static int
cause_line(struct scan *s, struct rule *rule)
{
	struct rules *r = s->rules;
	s->n = s->depth = 0;
	int err = word(s, "the name of a cause", &rule->cause);
	if (err)
		return err;
	if (!take(s, ":"))
		return expected(s, "\":\" after the cause");
	err = expression(s);
	if (!err)
		err = copy(r, rule->cause, &rule->cause, s->e);
	if (err)
		return err;
	rule->n = s->n;
	rule->node = arena_array(&r->arena, s->n, sizeof *rule->node);
	if (!rule->node)
		return err_mem(s->e);
	memcpy(rule->node, s->node, s->n * sizeof *rule->node);
	return 0;
}

/* Where the rules before and after a `tier` line stand. */
struct tiers {
	uint32_t now;
	bool given; /* there was a `tier` line */
};

static int
one_line(struct scan *s, struct tiers *t, uint64_t number)
{
	struct rules *r = s->rules;
	struct str first;
	skip(s);
	if (s->p == s->end || *s->p == '#')
		return 0;
	const char *at = s->p;
	int err = word(s, "names, tier or cause", &first);
	if (err)
		return err;
	if (str_is(first, "names"))
		return names_line(s);
	if (str_is(first, "tier")) {
		t->now++;
		t->given = true;
		return 0;
	}
	if (!str_is(first, "cause")) {
		s->p = at;
		return expected(s, "names, tier or cause");
	}
	if (r->n == RULES_MAX)
		return err_set(
		    s->e, SE_ELIMIT, "more than %d rules", RULES_MAX);
	t->now += !t->given;
	r->rule[r->n] =
	    (struct rule){ .tier = t->now, .line = (uint32_t)number };
	err = cause_line(s, &r->rule[r->n]);
	r->n += !err;
	return err;
}

int
rules_read(struct rules *r, struct src *src, struct err *e)
{
	struct line_in *in;
	struct tiers t = { 0 };
	struct str line;
	*r = (struct rules){ 0 };
	int n = line_open(&in, src, RULE_LINE_MAX, e);
	if (n) {
		src_close(src);
		return n;
	}
	r->rule = arena_array(&r->arena, RULES_MAX, sizeof *r->rule);
	n = r->rule ? 0 : err_mem(e);
	while (!n && (n = line_next(in, &line, e)) == 1) {
		struct scan s = {
			.p = line.p, .end = str_end(line), .rules = r, .e = e
		};
		n = one_line(&s, &t, line_number(in));
		if (n)
			err_prefix(e, "%" PRIu64, line_number(in));
	}
	if (!n && !r->n)
		n = err_set(e, SE_EFORMAT, "expected a line `cause NAME: ...`");
	line_close(in);
	src_close(src);
	return n;
}

void
rules_free(struct rules *r)
{
	arena_free(&r->arena);
	*r = (struct rules){ 0 };
}

uint64_t
rules_sets(const struct rules *r, struct str cat, struct str name)
{
	uint64_t bits = 0;
	for (uint32_t i = 0; i < r->nsets; i++)
		for (uint32_t k = 0; k < r->set[i].n; k++) {
			const struct pattern *p =
			    &r->pattern[r->set[i].first + k];
			if (glob_match(p->glob, p->category ? cat : name)) {
				bits |= UINT64_C(1) << i;
				break;
			}
		}
	return bits;
}

bool
rule_names(const struct rule *rule, int fact)
{
	for (uint32_t i = 0; i < rule->n; i++)
		if (rule->node[i].op == NODE_TEST && rule->node[i].fact == fact)
			return true;
	return false;
}

/* ---- testing ------------------------------------------------------------ */

static enum truth
test_one(const struct node *n, fact_get *get, void *user)
{
	struct fact f = get(user, n->fact, n->set);
	if (!f.known)
		return TRUTH_UNKNOWN;
	bool in = (n->with_low ? f.v >= n->low : f.v > n->low) &&
		  (n->with_high ? f.v <= n->high : f.v < n->high);
	return in != n->outside ? TRUTH_YES : TRUTH_NO;
}

/* Kleene's logic: false && unknown is false, true || unknown is true. */
static enum truth
join(enum truth a, enum truth b, enum truth decides)
{
	if (a == decides || b == decides)
		return decides;
	return a == TRUTH_UNKNOWN || b == TRUTH_UNKNOWN ? TRUTH_UNKNOWN : a;
}

enum truth
rule_test(const struct rule *rule, fact_get *get, void *user)
{
	enum truth v[RULE_NODES_MAX] = { TRUTH_UNKNOWN };
	uint32_t n = 0;
	for (uint32_t i = 0; i < rule->n; i++) {
		const struct node *it = &rule->node[i];
		if (it->op == NODE_TEST) {
			v[n++] = test_one(it, get, user);
		} else if (it->op == NODE_NOT) {
			enum truth t = v[n - 1];
			v[n - 1] = t == TRUTH_UNKNOWN ? t
				   : t == TRUTH_YES   ? TRUTH_NO
						      : TRUTH_YES;
		} else {
			n--;
			v[n - 1] = join(v[n - 1], v[n],
			    it->op == NODE_AND ? TRUTH_NO : TRUTH_YES);
		}
	}
	return v[0];
}
