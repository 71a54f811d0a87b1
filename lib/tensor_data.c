/*
 * From stored to canonical bytes: see tensor_blocks in tensor.h.
 *
 * Plain tensors are read front to back. Strided ones are gathered panel by
 * panel: a panel is a stretch of the output that fits in memory, and is
 * filled by runs along the dimension that is densest in the file, so that a
 * Fortran array costs long reads and one transposition in the cache.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "num.h"
#include "tensor.h"

enum {
	STAGE = 64 << 10,   /* one tile while it is turned */
	TILE = 64,          /* bytes of a tile's row: one cache line */
	RUN_GOOD = 4 << 10, /* runs longer than this gain nothing */
	RUN_POOR = 128,     /* shorter than this is worth more memory */
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
	unsigned char *panel, *stage, *span;
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

/* ---- plain ------------------------------------------------------------- */

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

/* n elements `step` bytes apart, packed to `to`. */
static int
read_run(const struct gather *g, uint64_t off, uint64_t step, size_t n,
    unsigned char *to, struct err *e)
{
	size_t size = g->size;
	if (step == size || n == 1)
		return read_raw(g, off, to, n * size, e);
	if (step == 0) {
		int r = read_raw(g, off, to, size, e);
		for (size_t i = 1; !r && i < n; i++)
			memcpy(to + i * size, to, size);
		return r;
	}
	/* Several at a time as long as the gaps are small. */
	size_t many = step < g->stage_size
			  ? 1 + (g->stage_size - size) / (size_t)step
			  : 1;
	for (size_t i = 0; i < n; i += many) {
		size_t k = n - i < many ? n - i : many;
		size_t len = (k - 1) * (size_t)step + size;
		int r = read_raw(g, off + i * step, g->span, len, e);
		if (r)
			return r;
		for (size_t j = 0; j < k; j++)
			memcpy(to + (i + j) * size, g->span + j * (size_t)step,
			    size);
	}
	return 0;
}

/* to[x][y] = from[y][x], rows of `to` `pitch` bytes apart. */
static void
turn(const unsigned char *from, size_t nx, size_t ny, size_t size,
    unsigned char *to, size_t pitch)
{
#define TURN(bytes)                                                         \
	for (size_t x = 0; x < nx; x++)                                     \
		for (size_t y = 0; y < ny; y++)                             \
	memcpy(to + x * pitch + y * (bytes), from + (y * nx + x) * (bytes), \
	    (bytes))
	switch (size) {
	case 1:
		TURN(1);
		break;
	case 2:
		TURN(2);
		break;
	case 4:
		TURN(4);
		break;
	case 8:
		TURN(8);
		break;
	default:
		TURN(size);
	}
#undef TURN
}

/* A plane: `nf` elements `fstep` apart, for each of `nc` last indices. */
struct plane {
	size_t nf, nc;
	uint64_t fstep, cstep;
	size_t pitch; /* output bytes from one f to the next */
};

static int
fill_plane(const struct gather *g, const struct plane *p, uint64_t off,
    unsigned char *out, struct err *e)
{
	size_t size = g->size;
	size_t tile = size < TILE ? TILE / size : 1;
	size_t piece = g->stage_size / (tile * size);
	for (size_t f = 0; f < p->nf; f += piece) {
		size_t nf = p->nf - f < piece ? p->nf - f : piece;
		for (size_t c = 0; c < p->nc; c += tile) {
			size_t nc = p->nc - c < tile ? p->nc - c : tile;
			for (size_t i = 0; i < nc; i++) {
				int r = read_run(g,
				    off + f * p->fstep + (c + i) * p->cstep,
				    p->fstep, nf, g->stage + i * nf * size, e);
				if (r)
					return r;
			}
			turn(g->stage, nf, nc, size,
			    out + f * p->pitch + c * size, p->pitch);
		}
	}
	return 0;
}

/* The dimension whose elements are closest together in the file. */
static unsigned
densest(const struct view *v)
{
	unsigned best = v->n - 1;
	for (unsigned i = 0; i < v->n; i++)
		if (v->dim[i] > 1 && v->step[i] &&
		    (!v->step[best] || v->step[i] < v->step[best]))
			best = i;
	return best;
}

/*
 * Walks all dimensions of the panel but the last and the densest one, and
 * fills a plane (or a run, if they are the same) at each place.
 */
static int
fill_panel(
    const struct gather *g, const struct view *v, uint64_t off, struct err *e)
{
	unsigned last = v->n - 1, f = densest(v);
	uint64_t pitch[TENSOR_NDIM_MAX], at[TENSOR_NDIM_MAX] = { 0 };
	uint64_t bytes = g->size;
	for (unsigned i = v->n; i-- > 0;) {
		pitch[i] = bytes;
		bytes *= v->dim[i];
	}
	struct plane p = { (size_t)v->dim[f], (size_t)v->dim[last], v->step[f],
		v->step[last], (size_t)pitch[f] };
	unsigned char *out = g->panel;
	for (;;) {
		int r = f == last ? read_run(g, off, p.fstep, p.nf, out, e)
				  : fill_plane(g, &p, off, out, e);
		if (r)
			return r;
		unsigned i = v->n;
		while (i-- > 0) {
			if (i == f || i == last)
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
	unsigned f = densest(v);
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

static int
strided_blocks(struct tensor *t, struct gather *g, size_t len,
    tensor_block *block, void *user, struct err *e)
{
	g->size = t->dtype->size;
	int r = make_seekable(g, t, e);
	if (r)
		return r;
	g->panel_size = panel_size(g);
	g->stage_size = STAGE < g->size ? g->size : STAGE;
	g->panel = malloc(g->panel_size);
	g->stage = malloc(g->stage_size);
	g->span = malloc(g->stage_size);
	r = g->panel && g->stage && g->span
		? walk_panels(t, g, len, block, user, e)
		: err_mem(e);
	free(g->panel);
	free(g->stage);
	free(g->span);
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
