/* Mask and map files: see mask.h. */
#include "mask.h"

#include <inttypes.h>
#include <regex.h>
#include <stdlib.h>

#include "ere.h"
#include "map.h"
#include "rec.h"

enum { PARTS = 5, GROUPS = 10, PATTERN_MAX = 4096 };

/* What a rule may ask for besides the name, and where fp has it. */
static const struct {
	const char *key;
	int place;
} parts[PARTS] = {
	{ "name", -1 },
	{ "phase", FP_PHASE },
	{ "io", FP_IO },
	{ "rank", FP_RANK },
	{ "step", FP_STEP },
};

struct pattern {
	bool given, plain;
	struct str text; /* plain */
	regex_t re;
};

struct rule {
	struct mask_rule pub;
	struct pattern part[PARTS];
	struct str to; /* map: the template */
	size_t next;   /* plain names: rule of the same name, or SIZE_MAX */
};

struct mask {
	struct arena arena;
	struct rule **rule;
	size_t n, cap;
	struct map plain; /* name -> first rule that has it plain, + 1 */
	size_t *other;    /* rules whose name is a regular expression */
	size_t nother;
	struct buf text; /* a copy with a NUL, for regexec */
};

/* ---- patterns ---------------------------------------------------------- */

static bool
is_plain(struct str s)
{
	static const char ok[] = "_-./:";
	for (size_t i = 0; i < s.len; i++) {
		char c = s.p[i];
		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		    (c >= '0' && c <= '9') || (c && strchr(ok, c)))
			continue;
		return false;
	}
	return true;
}

void
mask_put_literal(struct buf *b, struct str text)
{
	if (is_plain(text)) {
		buf_str(b, text);
		return;
	}
	for (size_t i = 0; i < text.len; i++) {
		if (strchr("\\^$.[]|()?*+{}", text.p[i]))
			buf_putc(b, '\\');
		buf_putc(b, text.p[i]);
	}
}

static int
compile(struct mask *m, struct pattern *p, struct str s, const char *key,
    struct err *e)
{
	p->plain = is_plain(s);
	p->text = arena_str(&m->arena, s);
	if (!p->text.p)
		return err_mem(e);
	if (p->plain) {
		p->given = true;
		return 0;
	}
	if (s.len > PATTERN_MAX || memchr(s.p, 0, s.len))
		return err_set(e, SE_EFORMAT,
		    "%s: expected a pattern of at most %d bytes and no NUL",
		    key, PATTERN_MAX);
	if (ere_check(s, e))
		return err_prefix(e, "%s", key);
	m->text.len = 0;
	buf_puts(&m->text, "^(");
	buf_str(&m->text, s);
	buf_puts(&m->text, ")$");
	const char *text = buf_cstr(&m->text);
	if (m->text.failed)
		return err_mem(e);
	int r = regcomp(&p->re, text, REG_EXTENDED);
	if (r) {
		char why[128];
		regerror(r, &p->re, why, sizeof why);
		return err_set(e, SE_EFORMAT, "%s: %s", key, why);
	}
	p->given = true;
	return 0;
}

/* Groups are those of the user: our own around the whole is number 0. */
static bool
pattern_match(
    struct mask *m, const struct pattern *p, struct str s, regmatch_t *group)
{
	if (p->plain)
		return str_same(p->text, s);
	if (s.len && memchr(s.p, 0, s.len))
		return false;
	m->text.len = 0;
	buf_str(&m->text, s);
	const char *text = buf_cstr(&m->text);
	if (m->text.failed)
		return false;
	return !regexec(&p->re, text, group ? GROUPS : 0, group, 0);
}

/* ---- reading ----------------------------------------------------------- */

static struct rule *
add_rule(struct mask *m, struct err *e)
{
	if (m->n == MASK_RULES_MAX) {
		err_set(e, SE_ELIMIT, "more than %u rules", MASK_RULES_MAX);
		return NULL;
	}
	if (m->n == m->cap) {
		size_t cap = m->cap ? m->cap * 2 : 16;
		struct rule **p = realloc(m->rule, cap * sizeof *p);
		if (p)
			m->rule = p;
		size_t *q = p ? realloc(m->other, cap * sizeof *q) : NULL;
		if (!q) {
			err_mem(e);
			return NULL;
		}
		m->other = q;
		m->cap = cap;
	}
	struct rule *r = arena_alloc(&m->arena, sizeof *r);
	if (!r) {
		err_mem(e);
		return NULL;
	}
	r->next = SIZE_MAX;
	m->rule[m->n++] = r;
	return r;
}

static int
index_rule(struct mask *m, struct rule *r, struct err *e)
{
	size_t at = m->n - 1;
	if (!r->part[0].plain) {
		m->other[m->nother++] = at;
		return 0;
	}
	bool fresh;
	uint64_t *first = map_at(&m->plain, r->part[0].text, &fresh);
	if (!first)
		return err_mem(e);
	if (fresh) {
		*first = at + 1;
		return 0;
	}
	struct rule *last = m->rule[*first - 1];
	while (last->next != SIZE_MAX)
		last = m->rule[last->next];
	last->next = at;
	return 0;
}

static int
keep(struct mask *m, struct str *to, struct str s, struct err *e)
{
	*to = arena_str(&m->arena, s);
	return to->p ? 0 : err_mem(e);
}

static int
read_field(
    struct mask *m, struct rule *r, const struct rec_field *f, struct err *e)
{
	for (size_t i = 0; i < PARTS; i++) {
		const char *key = parts[i].key;
		if (r->pub.kind == MASK_MAP)
			key = i ? "" : "b";
		if (r->pub.kind == MASK_UNSTABLE && i > 2)
			key = "";
		if (*key && str_is(f->key, key))
			return compile(m, &r->part[i], f->value, key, e);
	}
	if (r->pub.kind == MASK_MAP && str_is(f->key, "a"))
		return keep(m, &r->to, f->value, e);
	if (r->pub.kind != MASK_MAP && str_is(f->key, "reason"))
		return keep(m, &r->pub.reason, f->value, e);
	if (r->pub.kind == MASK_UNSTABLE && str_is(f->key, "flips"))
		return keep(m, &r->pub.flips, f->value, e);
	if (r->pub.kind == MASK_UNSTABLE && str_is(f->key, "runs"))
		return keep(m, &r->pub.runs, f->value, e);
	if (r->pub.kind == MASK_UNSTABLE && str_is(f->key, "bound"))
		return keep(m, &r->pub.bound, f->value, e);
	/* A key that is not understood would make the rule too wide. */
	return err_set(e, SE_EFORMAT, "unknown key \"%.*s\"",
	    (int)(f->key.len < 40 ? f->key.len : 40), f->key.p);
}

static int
kind_of(const struct rec *rec)
{
	if (str_is(rec->type, "mask"))
		return MASK_HAND;
	if (str_is(rec->type, "unstable"))
		return MASK_UNSTABLE;
	return str_is(rec->type, "map") ? MASK_MAP : 0;
}

/* $1 to $9 stand for groups that the expression has. */
static int
check_template(const struct rule *r, struct err *e)
{
	const struct pattern *p = &r->part[0];
	/* One group is our own parenthesis. */
	size_t groups = p->plain ? 0 : p->re.re_nsub - 1;
	for (size_t i = 0; i + 1 < r->to.len; i++) {
		char d = r->to.p[i + 1];
		if (r->to.p[i] != '$' || d < '1' || d > '9')
			continue;
		if ((size_t)(d - '0') > groups)
			return err_set(e, SE_EFORMAT,
			    "a: $%c, and b has %zu groups in parentheses", d,
			    groups);
	}
	return 0;
}

static int
read_rule(struct mask *m, const struct rec *rec, const char *name,
    unsigned kinds, struct err *e)
{
	int kind = kind_of(rec);
	if (!(kind & (int)kinds))
		return err_set(e, SE_EFORMAT, "expected %s, found \"%.*s\"",
		    kinds & MASK_MAP ? "map" : "mask or unstable",
		    (int)(rec->type.len < 40 ? rec->type.len : 40),
		    rec->type.p);
	struct rule *r = add_rule(m, e);
	if (!r)
		return SE_ENOMEM;
	r->pub.kind = kind;
	m->text.len = 0;
	buf_printf(&m->text, "%s:%" PRIu64, name, rec->line);
	int err = m->text.failed
		      ? err_mem(e)
		      : keep(m, &r->pub.where, buf_view(&m->text), e);
	for (size_t i = 0; i < rec->n && !err; i++)
		err = read_field(m, r, &rec->field[i], e);
	if (!err && !r->part[0].text.len)
		err = err_set(e, SE_EFORMAT,
		    "the pattern for the name is "
		    "empty: it would match nothing");
	if (!err && kind == MASK_MAP)
		err = check_template(r, e);
	return err ? err : index_rule(m, r, e);
}

/* A learned mask is a stream, and says how it was learned. */
static bool
is_around(struct str type)
{
	static const char *const around[] = { "head", "finding", "count",
		"evidence", "verdict", "end" };
	for (size_t i = 0; i < sizeof around / sizeof *around; i++)
		if (str_is(type, around[i]))
			return true;
	return false;
}

static int
read_all(struct mask *m, struct rec_in *in, struct rec *rec, const char *name,
    unsigned kinds, struct err *e)
{
	int got;
	while ((got = rec_in_next(in, rec, e)) > 0) {
		if (is_around(rec->type))
			continue;
		int r = read_rule(m, rec, name, kinds, e);
		if (r == SE_EFORMAT)
			err_prefix(e, "%" PRIu64, rec->line);
		if (r)
			return r;
	}
	return got;
}

int
mask_read(struct mask *m, struct src *src, const char *name, unsigned kinds,
    struct err *e)
{
	struct rec_in *in;
	struct src *slice;
	int r = src_open_slice(&slice, src, 0, SRC_UNKNOWN, e);
	if (!r)
		r = rec_in_open(&in, slice, e);
	if (r)
		return r;
	struct rec *rec = malloc(sizeof *rec);
	r = rec ? read_all(m, in, rec, name, kinds, e) : err_mem(e);
	free(rec);
	rec_in_close(in);
	return r;
}

int
mask_new(struct mask **out, struct err *e)
{
	*out = calloc(1, sizeof **out);
	return *out ? 0 : err_mem(e);
}

void
mask_free(struct mask *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n; i++)
		for (size_t k = 0; k < PARTS; k++) {
			struct pattern *p = &m->rule[i]->part[k];
			if (p->given && !p->plain)
				regfree(&p->re);
		}
	map_free(&m->plain);
	buf_free(&m->text);
	arena_free(&m->arena);
	free(m->rule);
	free(m->other);
	free(m);
}

/* ---- using ----------------------------------------------------------- */

static bool
rule_matches(struct mask *m, const struct rule *r, const struct fp *f)
{
	for (size_t i = 0; i < PARTS; i++) {
		struct str s =
		    parts[i].place < 0 ? f->name : f->place[parts[i].place];
		if (r->part[i].given && !pattern_match(m, &r->part[i], s, NULL))
			return false;
	}
	return true;
}

/* The first in the order of the files, plain or not. */
static struct rule *
find_rule(struct mask *m, const struct fp *f)
{
	size_t best = SIZE_MAX;
	uint64_t *first = map_get(&m->plain, f->name);
	for (size_t i = first ? *first - 1 : SIZE_MAX; i != SIZE_MAX;
	     i = m->rule[i]->next)
		if (rule_matches(m, m->rule[i], f)) {
			best = i;
			break;
		}
	for (size_t k = 0; k < m->nother && m->other[k] < best; k++)
		if (rule_matches(m, m->rule[m->other[k]], f))
			best = m->other[k];
	return best == SIZE_MAX ? NULL : m->rule[best];
}

const struct mask_rule *
mask_find(struct mask *m, const struct fp *f)
{
	struct rule *r = find_rule(m, f);
	if (!r)
		return NULL;
	r->pub.uses++;
	return &r->pub;
}

static void
put_template(struct buf *to, struct str template, struct str name,
    const regmatch_t *group)
{
	for (size_t i = 0; i < template.len; i++) {
		char c = template.p[i];
		char d = i + 1 < template.len ? template.p[i + 1] : 0;
		if (c != '$' || d < '1' || d > '9') {
			buf_putc(to, c);
			continue;
		}
		i++;
		/* Group 1 of the expression is our own parenthesis. */
		int g = d - '0' + 1;
		if (!group || g >= GROUPS || group[g].rm_so < 0)
			continue;
		buf_add(to, name.p + group[g].rm_so,
		    (size_t)(group[g].rm_eo - group[g].rm_so));
	}
}

bool
mask_map(struct mask *m, struct str name, struct buf *to)
{
	struct fp f = { .name = name };
	struct rule *r = find_rule(m, &f);
	if (!r)
		return false;
	r->pub.uses++;
	regmatch_t group[GROUPS];
	bool plain = r->part[0].plain;
	if (!plain)
		pattern_match(m, &r->part[0], name, group);
	to->len = 0;
	put_template(to, r->to, name, plain ? NULL : group);
	return true;
}

size_t
mask_count(const struct mask *m)
{
	return m->n;
}

const struct mask_rule *
mask_rule(const struct mask *m, size_t i)
{
	return &m->rule[i]->pub;
}
