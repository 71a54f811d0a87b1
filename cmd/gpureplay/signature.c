/* What a process computed, as one number: see signature.h. */
#include "signature.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "arena.h"
#include "map.h"
#include "rec.h"
#include "src.h"

/* What is compared of one record. */
struct item {
	struct u128 key, form, value;
};

struct rank {
	struct u128 name;
	struct hash *hash;
	uint64_t n;
	size_t *at; /* of a reference: where its records are */
	size_t cap;
};

struct reader {
	struct rec_in *in;
	struct map ranks;
	struct arena names;
	struct rank *rank;
	size_t nranks, cap;
	struct buf scratch;
	uint64_t records;
	bool relayed;
	bool keep; /* the items too, for first_find */
	struct item *item;
	size_t nitems, item_cap;
	struct rec rec;
	struct fp fp;
};

static struct u128
text_digest(struct str a, struct str b)
{
	struct buf t = { 0 };
	uint64_t len = a.len;
	buf_add(&t, &len, sizeof len);
	buf_str(&t, a);
	buf_str(&t, b);
	struct u128 d = hash_xxh3(t.p, t.len);
	buf_free(&t);
	return d;
}

static struct item
item_of(struct reader *r, const struct fp *f)
{
	struct item i = { .key = fp_key(f, 0, &r->scratch) };
	if (f->scalar) {
		i.form = text_digest(STR_LIT("scalar"), f->vtype);
		i.value = text_digest(STR_LIT(""), f->value);
		return i;
	}
	i.form = text_digest(f->dtype, f->shape);
	/* Hashes of two algorithms cannot be compared. */
	i.form.lo += (uint64_t)f->hash.algorithm;
	i.value = f->hash.value;
	return i;
}

static bool
items_same(const struct item *a, const struct item *b)
{
	return u128_same(a->key, b->key) && u128_same(a->form, b->form) &&
	       u128_same(a->value, b->value);
}

/* ---- reading ------------------------------------------------------------ */

static int
reader_open(struct reader *r, const char *path, struct err *e)
{
	struct src *src;
	int x = src_open(&src, path, NULL, 0, e);
	return x ? x : rec_in_open(&r->in, src, e);
}

static void
reader_close(struct reader *r)
{
	for (size_t i = 0; i < r->nranks; i++) {
		hash_free(r->rank[i].hash);
		free(r->rank[i].at);
	}
	free(r->rank);
	free(r->item);
	map_free(&r->ranks);
	arena_free(&r->names);
	buf_free(&r->scratch);
	if (r->in)
		rec_in_close(r->in);
}

static int
new_rank(struct reader *r, uint64_t *slot, struct str name, struct err *e)
{
	if (r->nranks == SIGNATURE_RANKS)
		return err_set(
		    e, SE_ELIMIT, "more than %d ranks", SIGNATURE_RANKS);
	if (r->nranks == r->cap) {
		size_t cap = r->cap ? r->cap * 2 : 8;
		struct rank *p = realloc(r->rank, cap * sizeof *p);
		if (!p)
			return err_mem(e);
		r->rank = p;
		r->cap = cap;
	}
	struct rank *k = &r->rank[r->nranks];
	*k = (struct rank){ .name = hash_xxh3(name.p, name.len),
		.hash = hash_new() };
	if (!k->hash)
		return err_mem(e);
	*slot = ++r->nranks;
	return 0;
}

/* The rank a record belongs to, or NULL. */
static struct rank *
rank_of(struct reader *r, struct err *e)
{
	struct str name = r->fp.place[FP_RANK];
	uint64_t *slot = map_get(&r->ranks, name);
	if (!slot) {
		bool fresh;
		struct str own = arena_str(&r->names, name);
		slot = own.p ? map_at(&r->ranks, own, &fresh) : NULL;
		if (!slot) {
			err_mem(e);
			return NULL;
		}
		if (new_rank(r, slot, own, e))
			return NULL;
	}
	return &r->rank[*slot - 1];
}

/* 1: r->fp is the next record that is compared; 0: the end. */
static int
reader_next(struct reader *r, struct err *e)
{
	for (;;) {
		int x = rec_in_next(r->in, &r->rec, e);
		if (x == SE_EFORMAT)
			continue;
		if (x <= 0)
			return x;
		if (!fp_is(&r->rec))
			continue;
		if (fp_parse(&r->fp, &r->rec, NULL, e)) {
			rec_in_bad(r->in);
			continue;
		}
		if (r->fp.scalar && str_is(r->fp.class, "volatile"))
			continue;
		r->records++;
		return 1;
	}
}

/* Remembers where in item[] the n-th record of this rank is. */
static int
keep_item(struct reader *r, struct rank *k, const struct item *i, struct err *e)
{
	if (r->nitems == SIGNATURE_NAMED)
		return err_set(
		    e, SE_ELIMIT, "more than %d records", SIGNATURE_NAMED);
	if (r->nitems == r->item_cap) {
		size_t cap = r->item_cap ? r->item_cap * 2 : 256;
		struct item *p = realloc(r->item, cap * sizeof *p);
		if (!p)
			return err_mem(e);
		r->item = p;
		r->item_cap = cap;
	}
	if (k->n == k->cap) {
		size_t cap = k->cap ? k->cap * 2 : 64;
		size_t *p = realloc(k->at, cap * sizeof *p);
		if (!p)
			return err_mem(e);
		k->at = p;
		k->cap = cap;
	}
	k->at[k->n] = r->nitems;
	r->item[r->nitems++] = *i;
	return 0;
}

static int
read_all(struct reader *r, struct err *e)
{
	int x;
	while ((x = reader_next(r, e)) > 0) {
		struct rank *k = rank_of(r, e);
		if (!k)
			return e->code;
		struct item i = item_of(r, &r->fp);
		if (r->scratch.failed)
			return err_mem(e);
		if (r->keep && (x = keep_item(r, k, &i, e)))
			return x;
		hash_add(k->hash, &i, sizeof i);
		k->n++;
	}
	return x;
}

/* A sum: the ranks may have come in any order. */
static struct u128
digest_of(const struct reader *r)
{
	struct u128 sum = { 0, 0 };
	for (size_t i = 0; i < r->nranks; i++) {
		const struct rank *k = &r->rank[i];
		struct u128 part[2] = { k->name, hash_value(k->hash) };
		sum = u128_add(sum, hash_xxh3(part, sizeof part));
	}
	return sum;
}

static void
judge_whole(
    const struct reader *r, int x, const struct err *e, struct signature *out)
{
	const struct rec_totals *t = rec_in_totals(r->in);
	const char *why = NULL;
	bool plain = !r->relayed && !t->heads && !t->ends;
	if (x < 0)
		why = e->msg;
	else if (t->bad)
		why = "it has bad lines";
	else if (t->torn)
		why = "its compressed data is cut short";
	else if (t->lost)
		why = "records were dropped while they were written";
	else if (t->skipped)
		why = "its writer left something out";
	else if (!plain && rec_totals_state(t) != REC_COMPLETE)
		why = "it has no end record, or not all that the end counts";
	out->whole = !why;
	snprintf(out->why, sizeof out->why, "%.*s", (int)sizeof out->why - 1,
	    why ? why : "");
}

int
signature_read(
    const char *path, bool relayed, struct signature *out, struct err *e)
{
	struct reader r = { .relayed = relayed };
	struct stat st;
	*out = (struct signature){ .whole = true };
	if (lstat(path, &st))
		return errno == ENOENT ? 0 : err_sys(e, "cannot look at it");
	/* Whatever a process puts there, reading it must come to an end. */
	if (!S_ISREG(st.st_mode)) {
		out->whole = false;
		snprintf(out->why, sizeof out->why, "it is no regular file");
		return 0;
	}
	if (!st.st_size)
		return 0;
	*e = (struct err){ 0 };
	int x = reader_open(&r, path, e);
	if (!x) {
		x = read_all(&r, e);
		out->records = r.records;
		out->digest = digest_of(&r);
		judge_whole(&r, x, e, out);
		x = x == SE_ENOMEM ? x : 0;
	}
	reader_close(&r);
	return x;
}

int
signature_file(const char *path, struct u128 *out, uint64_t *len, struct err *e)
{
	struct src *src = NULL;
	struct hash *h = hash_new();
	char block[65536];
	size_t got = 0;
	int x = h ? src_open(&src, path, NULL, SRC_PLAIN, e) : err_mem(e);
	*len = 0;
	while (!x) {
		x = src_read_some(src, *len, block, sizeof block, &got, e);
		if (x || !got)
			break;
		hash_add(h, block, got);
		*len += got;
	}
	if (h && (!x || *len || got))
		*out = hash_value(h);
	if (src)
		src_close(src);
	hash_free(h);
	return x;
}

void
signature_add(struct signature *s, const char *name, struct u128 digest)
{
	struct u128 part[3] = { s->digest, hash_xxh3(name, strlen(name)),
		digest };
	s->digest = hash_xxh3(part, sizeof part);
	s->records++;
}

/* ---- the first that differs --------------------------------------------- */

static int
put_first(struct reader *b, const struct item *i, const struct item *at,
    struct first *out, struct err *e)
{
	out->class = FIRST_UNMATCHED;
	if (at && u128_same(at->key, i->key))
		out->class = u128_same(at->form, i->form) ? FIRST_DIFFERENT
							  : FIRST_INCOMPARABLE;
	out->index = b->records - 1;
	struct rec rec;
	buf_str(&out->text, b->rec.raw);
	char *undone = buf_room(&out->text, out->text.len);
	if (!undone)
		return err_mem(e);
	int x = rec_parse(buf_view(&out->text), undone, &rec, e);
	if (!x)
		x = fp_parse(&out->fp, &rec, NULL, e);
	buf_str(&out->b, out->fp.scalar ? out->fp.value : out->fp.hash.text);
	return x;
}

/* The n-th record that is compared of a file: its hash or value. */
static int
fetch(const char *path, size_t n, struct buf *to, struct err *e)
{
	struct reader r = { 0 };
	int x = reader_open(&r, path, e);
	for (size_t i = 0; !x && i <= n; i++)
		x = reader_next(&r, e) > 0 ? 0 : SE_ENOENT;
	if (!x)
		buf_str(to, r.fp.scalar ? r.fp.value : r.fp.hash.text);
	reader_close(&r);
	return x;
}

/* Goes through B beside what was kept of A. 1: found. */
static int
compare(struct reader *a, struct reader *b, size_t *number, struct first *out,
    struct err *e)
{
	int x;
	while ((x = reader_next(b, e)) > 0) {
		struct rank *k = rank_of(b, e);
		if (!k)
			return e->code;
		struct item i = item_of(b, &b->fp);
		uint64_t *slot = map_get(&a->ranks, b->fp.place[FP_RANK]);
		struct rank *other = slot ? &a->rank[*slot - 1] : NULL;
		const struct item *at = NULL;
		if (other && k->n < other->n) {
			*number = other->at[k->n];
			at = &a->item[*number];
		}
		k->n++;
		if (at && items_same(at, &i))
			continue;
		x = put_first(b, &i, at, out, e);
		return x ? x : 1;
	}
	return x;
}

int
first_find(const char *a, const char *b, struct first *out, struct err *e)
{
	struct reader ra = { .keep = true }, rb = { 0 };
	size_t number = 0;
	*out = (struct first){ .class = FIRST_NONE };
	int x = reader_open(&ra, a, e);
	if (!x)
		x = read_all(&ra, e);
	if (!x)
		x = reader_open(&rb, b, e);
	if (!x)
		x = compare(&ra, &rb, &number, out, e);
	reader_close(&ra);
	reader_close(&rb);
	if (x > 0 && out->class != FIRST_UNMATCHED)
		x = fetch(a, number, &out->a, e);
	return x < 0 ? x : 0;
}

void
first_free(struct first *f)
{
	buf_free(&f->text);
	buf_free(&f->a);
	buf_free(&f->b);
}
