/*
 * Reading a line that both sides have. Nothing of it is compared, so all that
 * matters is that it is a good line and where it belongs. Most lines have the
 * keys of one before, in the same order: what was checked of those keys
 * (spelling, duplicates, required ones) need not be checked again.
 */
#include "fpdiff.h"

#include <stdlib.h>

#include "num.h"

enum { FORMS = 4 }; /* forms remembered: fp and scalar, in and out */

enum role {
	ROLE_TEXT,
	ROLE_NUMBER,
	ROLE_SEQ,
	ROLE_HASH,
	ROLE_NAME,
	ROLE_PLACE, /* and on: + enum fp_place */
};

struct form {
	size_t n;
	struct str type, key[REC_FIELDS_MAX]; /* in `text`; key has its = */
	unsigned char role[REC_FIELDS_MAX];
	struct buf text;
};

struct twin {
	struct form form[FORMS];
	size_t last, next;
};

static const struct {
	const char *key;
	enum role role;
} roles[] = {
	{ "name", ROLE_NAME },
	{ "seq", ROLE_SEQ },
	{ "hash", ROLE_HASH },
	{ "canon", ROLE_HASH },
	{ "rows", ROLE_HASH },
	{ "shardsum", ROLE_HASH },
	{ "bytes", ROLE_NUMBER },
	{ "occ", ROLE_NUMBER },
	{ "unit", ROLE_NUMBER },
	{ "left", ROLE_NUMBER },
	{ "nan", ROLE_NUMBER },
	{ "inf", ROLE_NUMBER },
	{ "zero", ROLE_NUMBER },
};

/* Floating point: left to the long way. */
static const char *const refused[] = { "min", "max", "mean" };

struct twin *
twin_new(void)
{
	return cli_alloc(1, sizeof(struct twin));
}

void
twin_free(struct twin *t)
{
	for (int i = 0; t && i < FORMS; i++)
		buf_free(&t->form[i].text);
	free(t);
}

/* ---- a form ---------------------------------------------------------- */

static bool
role_of(struct str key, unsigned char *role)
{
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		if (str_is(key, refused[i]))
			return false;
	*role = ROLE_TEXT;
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
		if (str_is(key, roles[i].key))
			*role = (unsigned char)roles[i].role;
	for (int i = 0; i < FP_PLACES; i++)
		if (str_is(key, fp_place_name[i]))
			*role = (unsigned char)(ROLE_PLACE + i);
	return true;
}

void
twin_learn(struct twin *t, const struct rec *rec)
{
	struct form *f = &t->form[t->next];
	f->n = 0;
	f->text.len = 0;
	buf_str(&f->text, rec->raw);
	if (f->text.failed)
		cli_die("out of memory");
	struct str rest = buf_view(&f->text), word;
	str_cut(&rest, '\t', &f->type);
	for (size_t i = 0; i < rec->n && str_cut(&rest, '\t', &word); i++) {
		size_t len = rec->field[i].key.len;
		f->key[i] = (struct str){ word.p, len + 1 };
		if (!role_of((struct str){ word.p, len }, &f->role[i])) {
			f->n = 0;
			return;
		}
		f->n = i + 1;
	}
	t->last = t->next;
	t->next = (t->next + 1) % FORMS;
}

/* ---- a line ---------------------------------------------------------- */

static bool
is_hash(struct str s)
{
	static const char name[] = "xxh3-128:";
	struct u128 v;
	size_t n = sizeof name - 1;
	return s.len == n + HASH_HEX && !memcmp(s.p, name, n) &&
	       u128_parse((struct str){ s.p + n, HASH_HEX }, &v);
}

static bool
take_value(struct fp *f, unsigned role, struct str value)
{
	uint64_t v;
	switch (role) {
	case ROLE_TEXT:
		return true;
	case ROLE_NAME:
		f->name = value;
		return true;
	case ROLE_HASH:
		return is_hash(value);
	case ROLE_SEQ:
		f->seq.given = true;
		return !num_u64(value, 0, UINT64_MAX, &f->seq.v, NULL);
	case ROLE_NUMBER:
		return !num_u64(value, 0, UINT64_MAX, &v, NULL);
	}
	f->place[role - ROLE_PLACE] = value;
	return true;
}

static bool
fits(const struct form *form, struct str line, struct fp *f)
{
	const char *p = line.p, *end = line.p + line.len;
	size_t n = form->type.len;
	if (!form->n || line.len <= n || memcmp(p, form->type.p, n))
		return false;
	p += n;
	for (size_t i = 0; i < form->n; i++) {
		n = form->key[i].len;
		if ((size_t)(end - p) < n + 1 || *p++ != '\t' ||
		    memcmp(p, form->key[i].p, n))
			return false;
		p += n;
		const char *tab = memchr(p, '\t', (size_t)(end - p));
		struct str value = { p, (size_t)((tab ? tab : end) - p) };
		if (!take_value(f, form->role[i], value))
			return false;
		p = tab ? tab : end;
	}
	return p == end;
}

bool
twin_fits(struct twin *t, struct str line, struct fp *f)
{
	/* Escapes and carriage returns are for the long way. */
	if (memchr(line.p, '\\', line.len) || line.p[line.len - 1] == '\r')
		return false;
	for (size_t i = 0; i < FORMS; i++) {
		size_t k = (t->last + i) % FORMS;
		*f = (struct fp){ .scalar = line.p[0] == 's' };
		if (fits(&t->form[k], line, f)) {
			t->last = k;
			return true;
		}
	}
	return false;
}

/* ---- two lines that differ in seq alone -------------------------------- */

static size_t
common_prefix(struct str a, struct str b)
{
	size_t n = a.len < b.len ? a.len : b.len, i = 0;
	while (i + 8 <= n && !memcmp(a.p + i, b.p + i, 8))
		i += 8;
	while (i < n && a.p[i] == b.p[i])
		i++;
	return i;
}

bool
twin_but_seq(struct str a, struct str b, struct fp_u64 *seq)
{
	static const char key[] = "\tseq=";
	size_t n = sizeof key - 1, i = common_prefix(a, b);
	while (i && (i == a.len || a.p[i] != '\t'))
		i--;
	if (a.len - i < n || b.len - i < n || memcmp(a.p + i, key, n) ||
	    memcmp(b.p + i, key, n))
		return false;
	struct str ra = { a.p + i + n, a.len - i - n }, va;
	struct str rb = { b.p + i + n, b.len - i - n }, vb;
	str_cut(&ra, '\t', &va);
	str_cut(&rb, '\t', &vb);
	seq->given = true;
	return !ra.p == !rb.p && str_same(ra, rb) &&
	       !num_u64(vb, 0, UINT64_MAX, &seq->v, NULL);
}
