/*
 * From stored to canonical bytes: see tensor_blocks in tensor.h.
 *
 * Plain tensors are read front to back. Strided ones are gathered panel by
 * panel: a panel is a stretch of the output that fits in memory, and is
 * filled by runs along the dimension that is densest in the file, so that a
 * Fortran array costs long reads and one transposition in the cache.
 */
#define _GNU_SOURCE /* MADV_HUGEPAGE */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "num.h"
#include "tensor.h"

enum {
	STAGE = 1 << 20,     /* what is read before it is turned */
	TILE = 128,          /* bytes of a tile's row: two cache lines */
	GAP = 4 << 10,       /* reading over so much is cheaper than a call */
	RUN_GOOD = 16 << 10, /* longer runs gain little */
	RUN_POOR = 128,      /* shorter than this is worth more memory */
	HUGE_PAGE = 2 << 20,
	PANEL_MAX = 16 << 20,
	PANEL_MAX_POOR = 64 << 20,
};

/* A tensor's dimensions in bytes, without those of size 1, merged. */
struct view {
	unsigned n;
	uint64_t dim[TENSOR_NDIM_MAX], step[TENSOR_NDIM_MAX];
};

struct gather {
	const struct tensor *t;
	struct src *spool; /* copy of a forward source, or NULL */
	struct view v;
	size_t size; /* of an element */
	unsigned char *panel, *stage;
	size_t panel_size, stage_size;
};

static int
fetch(const struct tensor *t, uint64_t off, void *to, size_t len, struct err *e)
{
	if (t->read)
		return t->read(t, off, to, len, e);
	return src_read_at(t->src, t->off + off, to, len, e);
}

/* ---- what is done to bytes once they are in order ---------------------- */

static void
swap_words(unsigned char *p, size_t len, size_t word)
{
	for (unsigned char *end = p + len; p < end; p += word)
		for (size_t i = 0; i < word / 2; i++) {
			unsigned char c = p[i];
			p[i] = p[word - 1 - i];
			p[word - 1 - i] = c;
		}
}

#define SWAP_FAST(bits)                                      \
	static void swap##bits(unsigned char *p, size_t len) \
	{                                                    \
		for (size_t i = 0; i < len; i += bits / 8) { \
			uint##bits##_t v;                    \
			memcpy(&v, p + i, sizeof v);         \
			v = __builtin_bswap##bits(v);        \
			memcpy(p + i, &v, sizeof v);         \
		}                                            \
	}
SWAP_FAST(16)
SWAP_FAST(32)
SWAP_FAST(64)

static void
swap(unsigned char *p, size_t len, size_t word)
{
	switch (word) {
	case 2:
		swap16(p, len);
		break;
	case 4:
		swap32(p, len);
		break;
	case 8:
		swap64(p, len);
		break;
	default:
		swap_words(p, len, word);
	}
}

/* Flips the sign of every `every`-th word from `first` on. */
static void
flip_signs(
    unsigned char *p, size_t len, size_t word, size_t first, size_t every)
{
	for (size_t i = (first + 1) * word; i <= len; i += every * word)
		p[i - 1] ^= 0x80;
}

static void
negate_ints(unsigned char *p, size_t len, size_t word)
{
	for (size_t i = 0; i < len; i += word) {
		unsigned carry = 1;
		for (size_t k = i; k < i + word; k++) {
			carry += (unsigned char)~p[k];
			p[k] = (unsigned char)carry;
			carry >>= 8;
		}
	}
}

static bool
bad_bool(const unsigned char *p, size_t len)
{
	unsigned char any = 0;
	for (size_t i = 0; i < len; i++)
		any |= p[i];
	return any > 1;
}

static void
transform(struct tensor *t, unsigned char *p, size_t len)
{
	const struct dtype *d = t->dtype;
	if (t->flags & TENSOR_SWAP && d->word > 1)
		swap(p, len, d->word);
	if (t->flags & TENSOR_CONJ)
		flip_signs(p, len, d->word, 1, 2);
	if (t->flags & TENSOR_NEG && d->kind == DTYPE_INT)
		negate_ints(p, len, d->word);
	else if (t->flags & TENSOR_NEG)
		flip_signs(p, len, d->word, 0, 1);
	if (d->kind == DTYPE_BOOL && bad_bool(p, len))
		t->flags |= TENSOR_BADBOOL;
}

/* ---- plain ----------------------------------------------------------- */

/* Says how much there should have been, not only which read failed. */
static int
cut_short(const struct tensor *t, uint64_t need, struct err *e)
{
	uint64_t size = t->src ? src_size(t->src) : SRC_UNKNOWN;
	if (size == SRC_UNKNOWN || t->read)
		return err_prefix(e, "tensor of %" PRIu64 " bytes", need);
	return err_set(e, SE_ETRUNC,
	    "need %" PRIu64 " bytes from offset "
	    "%" PRIu64 ", the input ends at %" PRIu64,
	    need, t->off, size);
}

static int
plain_blocks(struct tensor *t, unsigned char *buf, size_t len,
    tensor_block *block, void *user, struct err *e)
{
	len -= len % t->dtype->size;
	for (uint64_t off = 0; off < t->bytes;) {
		uint64_t left = t->bytes - off;
		size_t n = left < len ? (size_t)left : len;
		int r = fetch(t, off, buf, n, e);
		if (r == SE_ETRUNC)
			return cut_short(t, t->bytes, e);
		if (r)
			return r;
		transform(t, buf, n);
		r = block(user, buf, n, e);
		if (r)
			return r;
		off += n;
	}
	return 0;
}

/* TENSOR_OPENEND: to the end of the source, which tells the shape. */
static int
open_blocks(struct tensor *t, unsigned char *buf, size_t len,
    tensor_block *block, void *user, struct err *e)
{
	size_t size = t->dtype->size;
	uint64_t off = 0;
	len -= len % size;
	while (off < t->limit) {
		uint64_t left = t->limit - off;
		size_t want = left < len ? (size_t)left : len, n;
		int r = src_read_some(t->src, t->off + off, buf, want, &n, e);
		if (r)
			return r;
		if (n % size)
			return err_set(e, SE_EFORMAT,
			    "expected elements of %zu "
			    "bytes, the input ends %zu bytes into one at "
			    "offset %" PRIu64,
			    size, n % size, t->off + off + n - n % size);
		if (!n)
			break;
		transform(t, buf, n);
		r = block(user, buf, n, e);
		if (r)
			return r;
		off += n;
	}
	t->bytes = off;
	t->count = off / size;
	/* Ours and writable: see tensor_open_end. */
	*(uint64_t *)t->shape = t->count;
	t->flags &= ~(unsigned)TENSOR_OPENEND;
	return 0;
}

/* ---- strided ----------------------------------------------------------- */

static void
view_make(struct view *v, const struct tensor *t)
{
	uint64_t size = t->dtype->size;
	v->n = 0;
	for (unsigned i = 0; i < t->ndim; i++) {
		uint64_t dim = t->shape[i];
		uint64_t step = (uint64_t)t->stride[i] * size;
		if (dim == 1)
			continue;
		/* Rows that follow each other are one longer row. */
		if (v->n && v->step[v->n - 1] == dim * step) {
			v->dim[v->n - 1] *= dim;
			v->step[v->n - 1] = step;
			continue;
		}
		v->dim[v->n] = dim;
		v->step[v->n++] = step;
	}
}

static bool
view_is_plain(const struct view *v, size_t size)
{
	return v->n == 0 || (v->n == 1 && v->step[0] == size);
}

static int
read_raw(
    const struct gather *g, uint64_t off, void *to, size_t len, struct err *e)
{
	if (g->spool)
		return src_read_at(g->spool, off, to, len, e);
	return fetch(g->t, off, to, len, e);
}

/* A call of memcpy for each element costs more than all the rest. */
#define ONCE_PER_SIZE __attribute__((always_inline))

enum { SIDE = 16 }; /* rows of a tile that is turned in the cache */

/*
 * to[x][y] = from[x, y]: nx rows of ny elements, which lie xstep and ystep
 * apart in `from`; rows of `to` are `pitch` bytes apart. ny elements are at
 * most TILE bytes. They are put together first and stored a row at a time:
 * `to` is far away, and single elements would fill the store buffer.
 */
static inline ONCE_PER_SIZE void
turn_tile(const unsigned char *from, size_t xstep, size_t ystep, size_t nx,
    size_t ny, size_t size, unsigned char *to, size_t pitch)
{
	unsigned char tile[SIDE * TILE];
	for (size_t x = 0; x < nx; x += SIDE) {
		size_t n = nx - x < SIDE ? nx - x : SIDE;
		for (size_t y = 0; y < ny; y++) {
			const unsigned char *p = from + x * xstep + y * ystep;
			unsigned char *q = tile + y * size;
			/* A constant count is unrolled. */
			if (n == SIDE)
				for (size_t i = 0; i < SIDE; i++)
					memcpy(
					    q + i * TILE, p + i * xstep, size);
			else
				for (size_t i = 0; i < n; i++)
					memcpy(
					    q + i * TILE, p + i * xstep, size);
		}
		for (size_t i = 0; i < n; i++)
			memcpy(
			    to + (x + i) * pitch, tile + i * TILE, ny * size);
	}
}

static void
turn(const unsigned char *from, size_t xstep, size_t ystep, size_t nx,
    size_t ny, size_t size, unsigned char *to, size_t pitch)
{
	if (ny == 1 && xstep == size && pitch == size) {
		memcpy(to, from, nx * size);
		return;
	}
	size_t most = size < TILE ? TILE / size : 1;
	for (size_t y = 0; y < ny; y += most) {
		const unsigned char *p = from + y * ystep;
		unsigned char *q = to + y * size;
		size_t n = ny - y < most ? ny - y : most;
		/* A constant size makes the copies single moves. */
		if (size == 4)
			turn_tile(p, xstep, ystep, nx, n, 4, q, pitch);
		else if (size == 2)
			turn_tile(p, xstep, ystep, nx, n, 2, q, pitch);
		else if (size == 8)
			turn_tile(p, xstep, ystep, nx, n, 8, q, pitch);
		else if (size == 1)
			turn_tile(p, xstep, ystep, nx, n, 1, q, pitch);
		else if (size <= TILE)
			turn_tile(p, xstep, ystep, nx, n, size, q, pitch);
		else
			for (size_t x = 0; x < nx; x++)
				memcpy(q + x * pitch, p + x * xstep, size);
	}
}

/*
 * Up to three dimensions that are handled at once: f, the densest in the
 * file; c, the last, densest in the output; g, which lies next to f in the
 * file so that one read gets many runs. c may be the same as f (then nc is 1)
 * or as g (then `joined`).
 */
struct block {
	size_t nf, ng, nc;
	uint64_t fstep, gstep, cstep; /* bytes apart in the file */
	size_t fpitch, gpitch;        /* and in the output; of c: size */
	bool joined;
};

/* How a block is cut to fit the stage. */
struct cut {
	size_t nf, ng, nc; /* of each at a time */
	size_t xstep;      /* of f in the stage */
	size_t row;        /* bytes of the stage from one c to the next */
};

static size_t
span_of(size_t n, uint64_t step, size_t one)
{
	return (n - 1) * (size_t)step + one;
}

/* How many spans of `one` bytes, `step` apart, are no longer than `max`. */
static size_t
spans_in(size_t n, uint64_t step, size_t one, size_t max)
{
	if (one >= max || step == 0)
		return one >= max ? 1 : n;
	uint64_t fit = 1 + (max - one) / step;
	return fit < n ? (size_t)fit : n;
}

/* Is it cheaper to read over the gaps between runs than to skip them? */
static bool
dense(uint64_t step, size_t run)
{
	return step <= run + GAP;
}

static struct cut
cut_block(const struct gather *g, const struct block *b)
{
	size_t size = g->size, budget = g->stage_size;
	struct cut k = { .ng = 1, .nc = 1 };
	if (b->nc > 1 && !b->joined) {
		k.nc = size < TILE ? TILE / size : 1;
		/* Rows a power of two apart would share cache sets. */
		budget = budget / k.nc - TILE;
	}
	bool raw = dense(b->fstep, size);
	k.xstep = raw ? (size_t)b->fstep : size;
	k.nf = spans_in(b->nf, k.xstep, size, budget);
	size_t run = span_of(k.nf, k.xstep, size);
	bool whole = raw && k.nf == b->nf;
	if (whole && b->ng > 1 && dense(b->gstep, run))
		k.ng = spans_in(b->ng, b->gstep, run, budget);
	if (b->joined)
		k.nc = spans_in(b->nc, b->cstep, run, budget);
	k.row = b->joined ? (size_t)b->cstep : budget + TILE;
	return k;
}

/* nf elements and their neighbours, as they lie or, if far apart, packed. */
static int
read_runs(const struct gather *g, const struct block *b, const struct cut *k,
    uint64_t off, size_t nf, size_t len, unsigned char *to, struct err *e)
{
	if (k->xstep == b->fstep)
		return read_raw(g, off, to, len, e);
	int r = 0;
	for (size_t i = 0; !r && i < nf; i++)
		r = read_raw(
		    g, off + i * b->fstep, to + i * g->size, g->size, e);
	return r;
}

/* One stageful: nf, ng and nc elements of a block. */
static int
fill_cut(const struct gather *g, const struct block *b, const struct cut *k,
    const struct cut *n, uint64_t off, unsigned char *out, struct err *e)
{
	size_t len = span_of(n->nf, k->xstep, g->size);
	len = span_of(n->ng, b->gstep, len);
	if (b->joined)
		len = span_of(n->nc, b->cstep, len);
	for (size_t c = 0; c < n->nc; c += b->joined ? n->nc : 1) {
		int r = read_runs(g, b, k, off + c * b->cstep, n->nf, len,
		    g->stage + c * k->row, e);
		if (r)
			return r;
	}
	for (size_t j = 0; j < n->ng; j++)
		turn(g->stage + j * b->gstep, k->xstep, k->row, n->nf, n->nc,
		    g->size, out + j * b->gpitch, b->fpitch);
	return 0;
}

static size_t
least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static int
fill_block(const struct gather *g, const struct block *b, uint64_t off,
    unsigned char *out, struct err *e)
{
	struct cut k = cut_block(g, b), n;
	for (size_t f = 0; f < b->nf; f += k.nf) {
		n.nf = least(b->nf - f, k.nf);
		for (size_t j = 0; j < b->ng; j += k.ng) {
			n.ng = least(b->ng - j, k.ng);
			for (size_t c = 0; c < b->nc; c += k.nc) {
				n.nc = least(b->nc - c, k.nc);
				int r = fill_cut(g, b, &k, &n,
				    off + f * b->fstep + j * b->gstep +
					c * b->cstep,
				    out + f * b->fpitch + j * b->gpitch +
					c * g->size,
				    e);
				if (r)
					return r;
			}
		}
	}
	return 0;
}

/*
 * The dimension other than `not` whose elements are closest together in the
 * file; v->n if there is none.
 */
static unsigned
densest(const struct view *v, unsigned not )
{
	unsigned best = v->n;
	for (unsigned i = 0; i < v->n; i++)
		if (i != not &&v->dim[i] > 1 && v->step[i] &&
		    (best == v->n || v->step[i] < v->step[best]))
			best = i;
	return best;
}

/* Which dimensions of a view make the block. */
struct plan {
	struct block b;
	unsigned f, g, last;
};

static struct plan
make_plan(const struct view *v, const uint64_t *pitch, size_t size)
{
	struct plan p = { .last = v->n - 1 };
	p.f = densest(v, v->n);
	if (p.f == v->n)
		p.f = p.last; /* one element for all */
	p.g = densest(v, p.f);
	struct block *b = &p.b;
	*b = (struct block){ .ng = 1,
		.nc = 1,
		.nf = (size_t)v->dim[p.f],
		.fstep = v->step[p.f],
		.fpitch = (size_t)pitch[p.f] };
	if (p.f != p.last) {
		b->nc = (size_t)v->dim[p.last];
		b->cstep = v->step[p.last];
	}
	if (p.g == p.last) {
		size_t run = span_of(b->nf, b->fstep, size);
		b->joined = dense(b->fstep, size) && dense(b->cstep, run) &&
			    run <= STAGE / 2;
		p.g = v->n;
	} else if (p.g < v->n) {
		b->ng = (size_t)v->dim[p.g];
		b->gstep = v->step[p.g];
		b->gpitch = (size_t)pitch[p.g];
	}
	return p;
}

/* Walks the dimensions of the panel that are not in the block. */
static int
fill_panel(
    const struct gather *g, const struct view *v, uint64_t off, struct err *e)
{
	uint64_t pitch[TENSOR_NDIM_MAX], at[TENSOR_NDIM_MAX] = { 0 };
	uint64_t bytes = g->size;
	for (unsigned i = v->n; i-- > 0;) {
		pitch[i] = bytes;
		bytes *= v->dim[i];
	}
	struct plan p = make_plan(v, pitch, g->size);
	unsigned char *out = g->panel;
	for (;;) {
		int r = fill_block(g, &p.b, off, out, e);
		if (r)
			return r;
		unsigned i = v->n;
		while (i-- > 0) {
			if (i == p.f || i == p.g || i == p.last)
				continue;
			off += v->step[i];
			out += pitch[i];
			if (++at[i] < v->dim[i])
				break;
			off -= at[i] * v->step[i];
			out -= at[i] * pitch[i];
			at[i] = 0;
		}
		if (i == UINT_MAX)
			return 0;
	}
}

/* Hands the panel out in pieces no larger than the caller's buffer. */
static int
give(struct tensor *t, unsigned char *p, size_t n, size_t len,
    tensor_block *block, void *user, struct err *e)
{
	transform(t, p, n);
	len -= len % t->dtype->size;
	while (n) {
		size_t k = n < len ? n : len;
		int r = block(user, p, k, e);
		if (r)
			return r;
		p += k;
		n -= k;
	}
	return 0;
}

/*
 * How many bytes of output to make at once: enough that runs along the
 * densest dimension are long.
 */
static size_t
panel_size(const struct gather *g)
{
	const struct view *v = &g->v;
	unsigned f = densest(v, v->n);
	f = f == v->n ? f - 1 : f;
	uint64_t inner = g->size, want, poor;
	/* No overflow: the product of all dims fits. */
	for (unsigned i = f + 1; i < v->n; i++)
		inner *= v->dim[i];
	uint64_t good = RUN_GOOD / g->size + 1;
	good = v->dim[f] < good ? v->dim[f] : good;
	if (!num_mul(inner, good, &want))
		want = PANEL_MAX_POOR;
	if (!num_mul(inner, RUN_POOR / g->size + 1, &poor))
		poor = PANEL_MAX_POOR;
	uint64_t max = poor > PANEL_MAX ? PANEL_MAX_POOR : PANEL_MAX;
	want = want > max ? max : want;
	want = want < STAGE ? STAGE : want;
	want = want > g->t->bytes ? g->t->bytes : want;
	return want < g->size ? g->size : (size_t)want;
}

/* The panels of the tensor, one after the other in C order. */
static int
walk_panels(struct tensor *t, struct gather *g, size_t len, tensor_block *block,
    void *user, struct err *e)
{
	const struct view *v = &g->v;
	/* Dimensions behind `cut` are whole in a panel, those before are 1. */
	unsigned cut = v->n - 1;
	uint64_t inner = g->size;
	while (cut > 0 && inner <= g->panel_size / v->dim[cut])
		inner *= v->dim[cut--];
	uint64_t rows = g->panel_size / inner;

	struct view part = { .n = v->n - cut };
	memcpy(part.dim, v->dim + cut, part.n * sizeof *part.dim);
	memcpy(part.step, v->step + cut, part.n * sizeof *part.step);
	uint64_t at[TENSOR_NDIM_MAX] = { 0 }, off = 0;
	for (;;) {
		part.dim[0] = v->dim[cut] - at[cut];
		part.dim[0] = part.dim[0] < rows ? part.dim[0] : rows;
		int r = fill_panel(g, &part, off, e);
		if (r == SE_ETRUNC)
			return cut_short(t, t->bytes, e);
		if (!r)
			r = give(t, g->panel, (size_t)(part.dim[0] * inner),
			    len, block, user, e);
		if (r)
			return r;
		at[cut] += part.dim[0];
		off += part.dim[0] * v->step[cut];
		unsigned i = cut;
		while (at[i] == v->dim[i]) {
			if (i == 0)
				return 0;
			off -= at[i] * v->step[i];
			at[i] = 0;
			i--;
			at[i]++;
			off += v->step[i];
		}
	}
}

/* Bytes from the first to behind the last one the view touches. */
static uint64_t
extent(const struct gather *g)
{
	uint64_t end = g->size;
	for (unsigned i = 0; i < g->v.n; i++)
		end += (g->v.dim[i] - 1) * g->v.step[i];
	return end;
}

static int
read_as_src(
    void *user, uint64_t off, void *to, size_t len, size_t *got, struct err *e)
{
	const struct tensor *t = user;
	*got = len;
	return t->read(t, off, to, len, e);
}

/* A reader that inflates is no better than a pipe at going back. */
static int
make_seekable(struct gather *g, struct tensor *t, struct err *e)
{
	uint64_t len = extent(g);
	if (!t->read && src_is_seekable(t->src))
		return 0;
	int r;
	if (t->read) {
		struct src *s;
		r = src_open_fn(&s, read_as_src, t, len, NULL, e);
		if (r)
			return r;
		r = src_spool(&g->spool, s, 0, len, e);
		src_close(s);
	} else {
		r = src_spool(&g->spool, t->src, t->off, len, e);
	}
	return r == SE_ETRUNC ? cut_short(t, len, e) : r;
}

/*
 * Rows of a panel are far apart: with small pages each store would miss the
 * TLB. The advice may be refused.
 */
static unsigned char *
panel_alloc(size_t n)
{
	void *p;
	if (n < HUGE_PAGE)
		return malloc(n);
	if (posix_memalign(&p, HUGE_PAGE, n))
		return NULL;
#ifdef MADV_HUGEPAGE
	madvise(p, n, MADV_HUGEPAGE);
#endif
	return p;
}

static int
strided_blocks(struct tensor *t, struct gather *g, size_t len,
    tensor_block *block, void *user, struct err *e)
{
	g->size = t->dtype->size;
	int r = make_seekable(g, t, e);
	if (r)
		return r;
	g->panel_size = panel_size(g);
	g->stage_size = STAGE;
	g->panel = panel_alloc(g->panel_size);
	g->stage = malloc(g->stage_size);
	r = g->panel && g->stage ? walk_panels(t, g, len, block, user, e)
				 : err_mem(e);
	free(g->panel);
	free(g->stage);
	src_close(g->spool);
	return r;
}

int
tensor_blocks(struct tensor *t, void *buf, size_t len, tensor_block *block,
    void *user, struct err *e)
{
	if (t->flags & TENSOR_SCALAR || !t->dtype)
		return err_set(e, SE_EINVAL, "not a tensor");
	if (len < t->dtype->size)
		return err_set(e, SE_EINVAL, "buffer smaller than an element");
	if (t->flags & TENSOR_OPENEND)
		return open_blocks(t, buf, len, block, user, e);
	if (!t->bytes)
		return 0;
	if (!t->stride)
		return plain_blocks(t, buf, len, block, user, e);
	struct gather g = { .t = t };
	view_make(&g.v, t);
	if (view_is_plain(&g.v, t->dtype->size))
		return plain_blocks(t, buf, len, block, user, e);
	return strided_blocks(t, &g, len, block, user, e);
}

/* Is it all in the window, perhaps after filling it from there on? */
static bool
ahead_has(struct tensor_ahead *w, const struct tensor *t)
{
	uint64_t skip = t->off - w->off;
	bool near = w->src == t->src && t->off >= w->off;
	if (near && skip <= w->len && t->bytes <= w->len - skip)
		return true;
	w->src = NULL;
	if (src_read_some(
		t->src, t->off, w->bytes, sizeof w->bytes, &w->len, NULL))
		return false;
	w->src = t->src;
	w->off = t->off;
	return t->bytes <= w->len;
}

int
tensor_blocks_ahead(struct tensor *t, struct tensor_ahead *w, void *buf,
    size_t len, tensor_block *block, void *user, struct err *e)
{
	const unsigned odd = TENSOR_SCALAR | TENSOR_OPENEND;
	bool small = t->dtype && !(t->flags & odd) && !t->stride && !t->read &&
		     t->bytes && t->bytes <= TENSOR_AHEAD / 4 &&
		     t->bytes <= len && src_is_seekable(t->src);
	/* What cannot be had from the window fails in the usual words. */
	if (!small || !ahead_has(w, t))
		return tensor_blocks(t, buf, len, block, user, e);
	memcpy(buf, w->bytes + (t->off - w->off), (size_t)t->bytes);
	transform(t, buf, (size_t)t->bytes);
	return block(user, buf, (size_t)t->bytes, e);
}
