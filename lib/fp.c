/* What an fp or scalar record says: see fp.h. */
#include "fp.h"

#include <stddef.h>

#include "num.h"

/* How a member is stored. */
enum kind { TEXT, COUNT, SIZE, HASH, REAL };

struct member {
	struct str key;
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
#define STR_INIT(s) { (s), sizeof(s) - 1 }
/* In the order of schema.c, for both types. */
static const struct member members[] = {
	{ STR_INIT("name"), TEXT, BOTH, AT(name) },
	{ STR_INIT("dtype"), TEXT, FP, AT(dtype) },
	{ STR_INIT("shape"), TEXT, FP, AT(shape) },
	{ STR_INIT("bytes"), SIZE, FP, AT(bytes) },
	{ STR_INIT("hash"), HASH, FP, AT(hash) },
	{ STR_INIT("vtype"), TEXT, SCALAR, AT(vtype) },
	{ STR_INIT("value"), TEXT, SCALAR, AT(value) },
	{ STR_INIT("class"), TEXT, SCALAR, AT(class) },
	{ STR_INIT("step"), TEXT, BOTH, AT(place[FP_STEP]) },
	{ STR_INIT("mb"), TEXT, BOTH, AT(place[FP_MB]) },
	{ STR_INIT("phase"), TEXT, BOTH, AT(place[FP_PHASE]) },
	{ STR_INIT("rank"), TEXT, BOTH, AT(place[FP_RANK]) },
	{ STR_INIT("dp"), TEXT, BOTH, AT(place[FP_DP]) },
	{ STR_INIT("pp"), TEXT, BOTH, AT(place[FP_PP]) },
	{ STR_INIT("tp"), TEXT, BOTH, AT(place[FP_TP]) },
	{ STR_INIT("ep"), TEXT, BOTH, AT(place[FP_EP]) },
	{ STR_INIT("io"), TEXT, BOTH, AT(place[FP_IO]) },
	{ STR_INIT("seq"), COUNT, BOTH, AT(seq) },
	{ STR_INIT("occ"), COUNT, BOTH, AT(occ) },
	{ STR_INIT("file"), TEXT, BOTH, AT(file) },
	{ STR_INIT("kernel"), TEXT, FP, AT(kernel) },
	{ STR_INIT("dev"), TEXT, FP, AT(dev) },
	{ STR_INIT("storage"), TEXT, FP, AT(storage) },
	{ STR_INIT("canon"), HASH, FP, AT(canon) },
	{ STR_INIT("shardsum"), HASH, FP, AT(shardsum) },
	{ STR_INIT("unit"), COUNT, FP, AT(unit) },
	{ STR_INIT("rows"), HASH, FP, AT(rows) },
	{ STR_INIT("tiles"), TEXT, FP, AT(tiles) },
	{ STR_INIT("global"), TEXT, FP, AT(global) },
	{ STR_INIT("offset"), TEXT, FP, AT(offset) },
	{ STR_INIT("replicated"), TEXT, FP, AT(replicated) },
	{ STR_INIT("slice"), TEXT, FP, AT(slice) },
	{ STR_INIT("left"), COUNT, FP, AT(left) },
	{ STR_INIT("min"), REAL, FP, AT(min) },
	{ STR_INIT("max"), REAL, FP, AT(max) },
	{ STR_INIT("mean"), REAL, FP, AT(mean) },
	{ STR_INIT("nan"), COUNT, FP, AT(nan) },
	{ STR_INIT("inf"), COUNT, FP, AT(inf) },
	{ STR_INIT("zero"), COUNT, FP, AT(zero) },
	{ STR_INIT("note"), TEXT, BOTH, AT(note) },
};
// clang-format on

enum { MEMBERS = sizeof members / sizeof *members };

/* ---- hashes ---------------------------------------------------------- */

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

/* ---- reading --------------------------------------------------------- */

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
	err_prefix(e, "%s", m->key.p);
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
		if (m->types & type && str_same(key, m->key)) {
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

/* ---- writing --------------------------------------------------------- */

static void
write_member(struct rec_out *o, const struct fp *f, const struct member *m)
{
	const void *from = (const char *)f + m->at;
	switch (m->kind) {
	case TEXT: {
		const struct str *s = from;
		if (s->p)
			rec_str(o, m->key.p, *s);
		break;
	}
	case SIZE:
		rec_u64(o, m->key.p, *(const uint64_t *)from);
		break;
	case COUNT: {
		const struct fp_u64 *n = from;
		if (n->given)
			rec_u64(o, m->key.p, n->v);
		break;
	}
	case REAL: {
		const struct fp_f64 *n = from;
		if (n->given)
			rec_f64(o, m->key.p, n->v);
		break;
	}
	case HASH:
		write_hash(o, m->key.p, from);
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

/* Writes without asking: fp_key made room for all parts. */
static char *
put_part(char *to, struct str s)
{
	uint64_t n = s.len;
	to[0] = s.p != NULL;
	to[1] = (char)n;
	to[2] = (char)(n >> 8);
	to[3] = (char)(n >> 16);
	to[4] = (char)(n >> 24);
	to[5] = (char)(n >> 32);
	to[6] = (char)(n >> 40);
	to[7] = (char)(n >> 48);
	to[8] = (char)(n >> 56);
	if (n)
		memcpy(to + 9, s.p, s.len);
	return to + 9 + n;
}

struct u128
fp_key(const struct fp *f, unsigned without, struct buf *scratch)
{
	struct str part[FP_PLACES + 1];
	size_t room = sizeof part / sizeof *part * 9;
	for (unsigned i = 0; i <= FP_PLACES; i++) {
		part[i] = i < FP_PLACES ? f->place[i] : f->name;
		if (without & 1u << i)
			part[i] = STR_NULL;
		room += part[i].len;
	}
	scratch->len = 0;
	char *start = buf_room(scratch, room), *to = start;
	if (!start)
		return (struct u128){ 0, 0 };
	for (unsigned i = 0; i <= FP_PLACES; i++)
		to = put_part(to, part[i]);
	return hash_xxh3(start, (size_t)(to - start));
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
	/* The length of plain bytes is part of what is compared. */
	bool bytes = str_is(a->dtype, "bytes") && str_is(b->dtype, "bytes");
	for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
		if (!(conditions[i].type & type))
			continue;
		if (bytes && conditions[i].at == AT(shape))
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
	if (a->bytes != b->bytes && !bytes)
		return incomparable(why, "bytes");
	enum fp_relation r = fp_hash_compare(&a->hash, &b->hash);
	return r == FP_INCOMPARABLE ? incomparable(why, "hash") : r;
}

/* ---- shapes ---------------------------------------------------------- */

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
