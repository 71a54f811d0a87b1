/* One tensor to one fp record: see fingerprint.h. */
#include "fingerprint.h"

#include <stdlib.h>

/*
 * Bytes read at a time: they are hashed while they are still in the cache of
 * the core (L2), and the system calls do not count any more.
 */
enum { BLOCK = 256 << 10 };

struct printer {
	const struct fingerprint_how *how;
	struct digest *digest;
	unsigned char *block;
	struct buf text;
	struct arena scratch; /* of a slice, until the next tensor */
	struct tensor_ahead ahead;
};

int
printer_new(
    struct printer **out, const struct fingerprint_how *how, struct err *e)
{
	struct printer *p = calloc(1, sizeof *p);
	if (!p)
		return err_mem(e);
	p->how = how;
	p->block = malloc(BLOCK);
	int r = p->block ? digest_new(&p->digest, &how->digest, e) : err_mem(e);
	if (r) {
		printer_free(p);
		return r;
	}
	*out = p;
	return 0;
}

void
printer_free(struct printer *p)
{
	if (!p)
		return;
	digest_free(p->digest);
	free(p->block);
	buf_free(&p->text);
	arena_free(&p->scratch);
	free(p);
}

/* The slice that applies to a name, or NULL. */
static const struct slice *
find_slice(const struct fingerprint_how *how, struct str name)
{
	for (size_t i = 0; i < how->nslices; i++)
		if (slice_matches(&how->slice[i], name))
			return &how->slice[i];
	return NULL;
}

void
fingerprint_meet(const struct fingerprint_how *how, struct str name)
{
	const struct slice *s = how->nslices ? find_slice(how, name) : NULL;
	if (s && how->slice_met)
		how->slice_met[s - how->slice] = true;
}

static int
take_block(void *user, const void *data, size_t len, struct err *e)
{
	struct printer *p = user;
	if (p->how->tick)
		p->how->tick(p->how->user, len);
	return digest_add(p->digest, data, len, e);
}

static bool
wants_more(const struct digest_how *h)
{
	return h->canon || h->rows || h->stats || h->unit || h->tiles;
}

static struct str
tiles_text(struct printer *p, const struct digest_result *r, struct arena *a)
{
	p->text.len = 0;
	buf_puts(&p->text, "xxh3-128:");
	for (unsigned i = 0; i < r->ntiles; i++) {
		if (i)
			buf_putc(&p->text, ',');
		u128_put(&p->text, r->tile[i]);
	}
	return p->text.failed ? STR_NULL : arena_str(a, buf_view(&p->text));
}

/* Copies what does not fit into the small result. */
static int
keep_more(struct printer *p, const struct digest_result *r,
    struct fingerprint_more *more, struct arena *a, struct err *e)
{
	more->digest = *r;
	more->digest.tile = NULL;
	if (r->ntiles) {
		more->tiles = tiles_text(p, r, a);
		if (!more->tiles.p)
			return err_mem(e);
	}
	return 0;
}

static int
apply_slice(struct printer *p, const struct tensor *t, struct tensor *view,
    struct fingerprint_more *more, struct arena *a, struct err *e)
{
	p->text.len = 0;
	int r = slice_view(
	    more->slice, t, view, &p->scratch, &more->left, &p->text, e);
	if (r)
		return r;
	uint64_t *shape = arena_array(a, t->ndim, sizeof *shape);
	more->kept = arena_str(a, buf_view(&p->text));
	if (!shape || !more->kept.p || p->text.failed)
		return err_mem(e);
	if (t->ndim)
		memcpy(shape, view->shape, t->ndim * sizeof *shape);
	more->shape = shape;
	more->bytes = view->bytes;
	return 0;
}

void
printer_forget(struct printer *p)
{
	p->ahead.src = NULL;
}

int
printer_take(struct printer *p, struct tensor *t, struct arena *a,
    struct fingerprint *out, struct err *e)
{
	const struct slice *slice =
	    p->how->nslices ? find_slice(p->how, t->name) : NULL;
	struct fingerprint_more *more = NULL;
	struct tensor view, *read = t;
	if (slice || wants_more(&p->how->digest)) {
		more = arena_alloc(a, sizeof *more);
		if (!more)
			return err_mem(e);
		more->slice = slice;
	}
	int r = 0;
	if (slice) {
		arena_free(&p->scratch);
		read = &view;
		r = apply_slice(p, t, &view, more, a, e);
		if (r)
			return r;
	}
	digest_start(p->digest, read);
	r = tensor_blocks_ahead(
	    read, &p->ahead, p->block, BLOCK, take_block, p, e);
	if (r)
		return r;
	t->flags |= read->flags & TENSOR_BADBOOL;
	struct digest_result result;
	digest_end(p->digest, &result);
	*out = (struct fingerprint){ result.hash, more };
	return more ? keep_more(p, &result, more, a, e) : 0;
}

/* ---- records --------------------------------------------------------- */

static void
fill_stats(struct fp *f, const struct digest_stats *s)
{
	f->min = (struct fp_f64){ s->range, s->min };
	f->max = (struct fp_f64){ s->range, s->max };
	f->mean = (struct fp_f64){ s->average, s->mean };
	f->nan = (struct fp_u64){ true, s->nan };
	f->inf = (struct fp_u64){ true, s->inf };
	f->zero = (struct fp_u64){ true, s->zero };
}

static void
add_note(struct buf *b, const char *text)
{
	if (!text)
		return;
	if (b->len)
		buf_puts(b, "; ");
	buf_puts(b, text);
}

static void
fill_more(struct fp *f, const struct fingerprint_how *how, int algorithm,
    const struct fingerprint_more *m, struct buf *note)
{
	const struct digest_result *r = &m->digest;
	if (r->canon_given)
		f->canon = (struct fp_hash){ algorithm, r->canon, STR_NULL };
	if (r->shardsum_given) {
		f->shardsum =
		    (struct fp_hash){ FP_XXH3, r->shardsum, STR_NULL };
		f->unit = (struct fp_u64){ true, how->digest.unit };
	}
	if (r->rows_given)
		f->rows = (struct fp_hash){ FP_XXH3, r->rows, STR_NULL };
	f->tiles = m->tiles;
	if (r->stats_given)
		fill_stats(f, &r->stats);
	if (m->slice) {
		f->slice = m->kept;
		f->left = (struct fp_u64){ true, m->left };
		f->bytes = m->bytes;
	}
	add_note(note, r->note);
}

static struct str
put_dims(struct buf *b, const uint64_t *dim, unsigned n)
{
	b->len = 0;
	fp_put_shape(b, dim, n);
	return (struct str){ b->len ? b->p : "", b->len };
}

void
fingerprint_fill(struct fp *f, const struct fingerprint_how *how,
    const struct tensor *t, const struct fingerprint *print,
    struct fingerprint_text *text)
{
	*f = (struct fp){ .scalar = t->flags & TENSOR_SCALAR, .name = t->name };
	if (t->step.len)
		f->place[FP_STEP] = t->step;
	if (f->scalar) {
		f->vtype = t->vtype;
		f->value = t->value;
		return;
	}
	const struct fingerprint_more *more = print->more;
	int algorithm = how->digest.mix64 ? FP_MIX64 : FP_XXH3;
	f->dtype = str_c(t->dtype->name);
	f->shape = put_dims(&text->shape,
	    more && more->slice ? more->shape : t->shape, t->ndim);
	f->bytes = t->bytes;
	f->hash = (struct fp_hash){ algorithm, print->hash, STR_NULL };
	if (t->flags & TENSOR_CHUNK) {
		f->global = put_dims(&text->global, t->global, t->ndim);
		f->offset = put_dims(&text->offset, t->offset, t->ndim);
	}
	text->note.len = 0;
	if (t->flags & TENSOR_BADBOOL)
		add_note(&text->note, "bool bytes other than 0 and 1");
	if (more)
		fill_more(f, how, algorithm, more, &text->note);
	if (text->note.len)
		f->note = buf_view(&text->note);
}

void
fingerprint_text_free(struct fingerprint_text *text)
{
	buf_free(&text->shape);
	buf_free(&text->global);
	buf_free(&text->offset);
	buf_free(&text->note);
}
