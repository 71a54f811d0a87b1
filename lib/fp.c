/* What an fp or scalar record says: see fp.h. */
#include "fp.h"

#include <stddef.h>

#include "num.h"

/* How a member is stored. */
enum kind { TEXT, COUNT, SIZE, HASH, REAL };

struct member {
	const char *key;
	unsigned char kind;
	unsigned char types; /* FP, SCALAR or both */
	size_t at;
};

enum { FP = 1, SCALAR = 2, BOTH = FP | SCALAR };

const char *const fp_place_name[FP_PLACES] = {
	[FP_STEP] = "step",
	[FP_MB] = "mb",
	[FP_PHASE] = "phase",
	[FP_RANK] = "rank",
	[FP_DP] = "dp",
	[FP_PP] = "pp",
	[FP_TP] = "tp",
	[FP_EP] = "ep",
	[FP_IO] = "io",
};

// clang-format off
#define AT(m) offsetof(struct fp, m)
/* In the order of schema.c, for both types. */
static const struct member members[] = {
	{ "name", TEXT, BOTH, AT(name) },
	{ "dtype", TEXT, FP, AT(dtype) },
	{ "shape", TEXT, FP, AT(shape) },
	{ "bytes", SIZE, FP, AT(bytes) },
	{ "hash", HASH, FP, AT(hash) },
	{ "vtype", TEXT, SCALAR, AT(vtype) },
	{ "value", TEXT, SCALAR, AT(value) },
	{ "class", TEXT, SCALAR, AT(class) },
	{ "step", TEXT, BOTH, AT(place[FP_STEP]) },
	{ "mb", TEXT, BOTH, AT(place[FP_MB]) },
	{ "phase", TEXT, BOTH, AT(place[FP_PHASE]) },
	{ "rank", TEXT, BOTH, AT(place[FP_RANK]) },
	{ "dp", TEXT, BOTH, AT(place[FP_DP]) },
	{ "pp", TEXT, BOTH, AT(place[FP_PP]) },
	{ "tp", TEXT, BOTH, AT(place[FP_TP]) },
	{ "ep", TEXT, BOTH, AT(place[FP_EP]) },
	{ "io", TEXT, BOTH, AT(place[FP_IO]) },
	{ "seq", COUNT, BOTH, AT(seq) },
	{ "occ", COUNT, BOTH, AT(occ) },
	{ "file", TEXT, BOTH, AT(file) },
	{ "kernel", TEXT, FP, AT(kernel) },
	{ "dev", TEXT, FP, AT(dev) },
	{ "storage", TEXT, FP, AT(storage) },
	{ "canon", HASH, FP, AT(canon) },
	{ "shardsum", HASH, FP, AT(shardsum) },
	{ "unit", COUNT, FP, AT(unit) },
	{ "rows", HASH, FP, AT(rows) },
	{ "tiles", TEXT, FP, AT(tiles) },
	{ "global", TEXT, FP, AT(global) },
	{ "offset", TEXT, FP, AT(offset) },
	{ "replicated", TEXT, FP, AT(replicated) },
	{ "slice", TEXT, FP, AT(slice) },
	{ "left", COUNT, FP, AT(left) },
	{ "min", REAL, FP, AT(min) },
	{ "max", REAL, FP, AT(max) },
	{ "mean", REAL, FP, AT(mean) },
	{ "nan", COUNT, FP, AT(nan) },
	{ "inf", COUNT, FP, AT(inf) },
	{ "zero", COUNT, FP, AT(zero) },
	{ "note", TEXT, BOTH, AT(note) },
};
// clang-format on

enum { MEMBERS = sizeof members / sizeof *members };

/* ---- hashes ------------------------------------------------------------- */

static bool
parse_hex16(struct str s, uint64_t *v)
{
	char wide[HASH_HEX];
	struct u128 u;
	if (s.len != HASH_HEX / 2)
		return false;
	memset(wide, '0', HASH_HEX / 2);
	memcpy(wide + HASH_HEX / 2, s.p, s.len);
	if (!u128_parse((struct str){ wide, sizeof wide }, &u))
		return false;
	*v = u.lo;
	return true;
}

static int
parse_hash(struct fp_hash *h, struct str text, struct err *e)
{
	struct str rest = text, word;
	*h = (struct fp_hash){ FP_OTHER, { 0, 0 }, text };
	str_cut(&rest, ':', &word);
	if (!word.len || !rest.p || !rest.len)
		return err_set(e, SE_EFORMAT, "expected algorithm:hex");
	if (str_is(word, "xxh3-128")) {
		h->algorithm = FP_XXH3;
		if (!u128_parse(rest, &h->value))
			return err_set(e, SE_EFORMAT,
			    "expected 32 lowercase hex digits after "
			    "xxh3-128:");
		return 0;
	}
	if (str_is(word, "mix64")) {
		h->algorithm = FP_MIX64;
		if (!parse_hex16(rest, &h->value.lo))
			return err_set(e, SE_EFORMAT,
			    "expected 16 lowercase hex digits after mix64:");
		return 0;
	}
	h->value = hash_xxh3(text.p, text.len);
	return 0;
}

static void
write_hash(struct rec_out *o, const char *key, const struct fp_hash *h)
{
	switch (h->algorithm) {
	case FP_XXH3:
		rec_hash(o, key, "xxh3-128", h->value);
		break;
	case FP_MIX64:
		rec_fmt(
		    o, key, "mix64:%016llx", (unsigned long long)h->value.lo);
		break;
	case FP_OTHER:
		rec_str(o, key, h->text);
		break;
	}
}

/* The algorithm's name in a hash of somebody else's. */
static struct str
algorithm_of(struct str text)
{
	struct str word = text;
	str_cut(&text, ':', &word);
	return word;
}

enum fp_relation
fp_hash_compare(const struct fp_hash *a, const struct fp_hash *b)
{
	if (a->algorithm != b->algorithm)
		return FP_INCOMPARABLE;
	if (u128_same(a->value, b->value))
		return FP_SAME;
	if (a->algorithm == FP_OTHER &&
	    !str_same(algorithm_of(a->text), algorithm_of(b->text)))
		return FP_INCOMPARABLE;
	return FP_DIFFERENT;
}

/* ---- reading ------------------------------------------------------------ */

bool
fp_is(const struct rec *r)
{
	return str_is(r->type, "fp") || str_is(r->type, "scalar");
}

static int
set_member(struct fp *f, const struct member *m, struct str v, struct err *e)
{
	void *to = (char *)f + m->at;
	int r = 0;
	switch (m->kind) {
	case TEXT:
		*(struct str *)to = v;
		return 0;
	case SIZE:
		r = num_u64(v, 0, UINT64_MAX, to, e);
		break;
	case COUNT: {
		struct fp_u64 *n = to;
		n->given = true;
		r = num_u64(v, 0, UINT64_MAX, &n->v, e);
		break;
	}
	case REAL: {
		struct fp_f64 *n = to;
		n->given = true;
		r = num_f64(v, &n->v, e);
		break;
	}
	case HASH:
		r = parse_hash(to, v, e);
		break;
	}
	if (!r)
		return 0;
	err_prefix(e, "%s", m->key);
	return e ? e->code = SE_EFORMAT : SE_EFORMAT;
}

/* Looks at `from` first: records keep the order of the table. */
static const struct member *
find_member(struct str key, int type, size_t *from)
{
	for (size_t i = 0; i < MEMBERS; i++) {
		size_t k =
		    *from + i < MEMBERS ? *from + i : *from + i - MEMBERS;
		const struct member *m = &members[k];
		if (m->types & type && str_is(key, m->key)) {
			*from = k + 1 < MEMBERS ? k + 1 : 0;
			return m;
		}
	}
	return NULL;
}

int
fp_set(
    struct fp *f, struct str key, struct str value, bool *known, struct err *e)
{
	size_t from = 0;
	const struct member *m =
	    find_member(key, f->scalar ? SCALAR : FP, &from);
	*known = m != NULL;
	return m ? set_member(f, m, value, e) : 0;
}

int
fp_parse(
    struct fp *f, const struct rec *r, struct fp_label *label, struct err *e)
{
	*f = (struct fp){ .scalar = str_is(r->type, "scalar"), .label = label };
	int type = f->scalar ? SCALAR : FP;
	size_t from = 0;
	for (size_t i = 0; i < r->n; i++) {
		const struct rec_field *field = &r->field[i];
		const struct member *m = find_member(field->key, type, &from);
		if (!m) {
			if (label)
				label[f->nlabels++] =
				    (struct fp_label){ field->key,
					    field->value };
			continue;
		}
		int err = set_member(f, m, field->value, e);
		if (err)
			return err;
	}
	return 0;
}

/* ---- writing ------------------------------------------------------------ */

static void
write_member(struct rec_out *o, const struct fp *f, const struct member *m)
{
	const void *from = (const char *)f + m->at;
	switch (m->kind) {
	case TEXT: {
		const struct str *s = from;
		if (s->p)
			rec_str(o, m->key, *s);
		break;
	}
	case SIZE:
		rec_u64(o, m->key, *(const uint64_t *)from);
		break;
	case COUNT: {
		const struct fp_u64 *n = from;
		if (n->given)
			rec_u64(o, m->key, n->v);
		break;
	}
	case REAL: {
		const struct fp_f64 *n = from;
		if (n->given)
			rec_f64(o, m->key, n->v);
		break;
	}
	case HASH:
		write_hash(o, m->key, from);
		break;
	}
}

void
fp_write(struct rec_out *o, const struct fp *f)
{
	int type = f->scalar ? SCALAR : FP;
	rec_begin(o, f->scalar ? "scalar" : "fp");
	for (size_t i = 0; i < MEMBERS; i++)
		if (members[i].types & type)
			write_member(o, f, &members[i]);
	for (size_t i = 0; i < f->nlabels; i++)
		rec_label(o, f->label[i].key, f->label[i].value);
	rec_end(o);
}

/* ---- keys and comparing ------------------------------------------------- */

static void
put_part(struct buf *b, struct str s)
{
	char len[9];
	len[0] = s.p != NULL;
	for (int i = 0; i < 8; i++)
		len[1 + i] = (char)((uint64_t)s.len >> (8 * i));
	buf_add(b, len, sizeof len);
	buf_str(b, s);
}

struct u128
fp_key(const struct fp *f, unsigned without, struct buf *scratch)
{
	scratch->len = 0;
	for (unsigned i = 0; i < FP_PLACES; i++)
		put_part(scratch, without & 1u << i ? STR_NULL : f->place[i]);
	put_part(scratch, without & FP_NAME ? STR_NULL : f->name);
	return hash_xxh3(scratch->p, scratch->len);
}

/* What must agree before values may be compared. */
static const struct {
	const char *key;
	unsigned type;
	size_t at;
} conditions[] = {
	{ "dtype", FP, AT(dtype) },
	{ "shape", FP, AT(shape) },
	{ "slice", FP, AT(slice) },
	{ "global", FP, AT(global) },
	{ "offset", FP, AT(offset) },
	{ "vtype", SCALAR, AT(vtype) },
};

static enum fp_relation
incomparable(const char **why, const char *key)
{
	if (why)
		*why = key;
	return FP_INCOMPARABLE;
}

enum fp_relation
fp_compare(const struct fp *a, const struct fp *b, const char **why)
{
	if (a->scalar != b->scalar)
		return incomparable(why, "record");
	unsigned type = a->scalar ? SCALAR : FP;
	for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
		if (!(conditions[i].type & type))
			continue;
		const struct str *x =
		    (const void *)((const char *)a + conditions[i].at);
		const struct str *y =
		    (const void *)((const char *)b + conditions[i].at);
		if (!x->p != !y->p || !str_same(*x, *y))
			return incomparable(why, conditions[i].key);
	}
	if (a->scalar)
		return str_same(a->value, b->value) ? FP_SAME : FP_DIFFERENT;
	if (a->bytes != b->bytes)
		return incomparable(why, "bytes");
	enum fp_relation r = fp_hash_compare(&a->hash, &b->hash);
	return r == FP_INCOMPARABLE ? incomparable(why, "hash") : r;
}

/* ---- shapes ------------------------------------------------------------- */

int
fp_shape(struct str s, uint64_t *dim, size_t max, size_t *n, struct err *e)
{
	struct str rest = s, word;
	*n = 0;
	if (!s.len)
		return 0;
	while (str_cut(&rest, ',', &word)) {
		if (*n == max)
			return err_set(
			    e, SE_ELIMIT, "more than %zu dimensions", max);
		int r = num_u64(word, 0, UINT64_MAX, &dim[*n], e);
		if (r)
			return r;
		++*n;
	}
	return 0;
}

void
fp_put_shape(struct buf *b, const uint64_t *dim, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_putc(b, ',');
		num_put_u64(b, dim[i]);
	}
}
