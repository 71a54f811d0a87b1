/* What is said about the bytes of a tensor: see digest.h. */
#include "digest.h"

#include <math.h>
#include <stdlib.h>

/*
 * Sums of the mean are kept in as many lanes, element i in lane i mod LANES,
 * and added pairwise at the end: one order, whatever the blocks were.
 */
enum { LANES = 8, BATCH = 512, WORD = 8 };

/* One way to cut the bytes into consecutive pieces that are hashed alone. */
struct cutter {
	struct hash *state;    /* of a piece that lies in several blocks */
	uint64_t size, filled; /* of the current piece: bytes, and those seen */
	uint64_t index;        /* of the current piece */
};

/* mix64 of bytes that come in any lengths. */
struct mixer {
	uint64_t sum, words;
	unsigned char carry[WORD];
	size_t ncarry;
};

/* How floats of one width spell zero and NaN. */
struct canon_rule {
	const char *dtype;
	unsigned size;
	uint64_t inf; /* magnitude bits above this: NaN */
	uint64_t nan; /* the one that is written */
};

struct digest {
	struct digest_how how;
	const struct tensor *t;
	uint64_t seen; /* bytes */
	uint64_t total;
	bool single; /* all bytes came in one block: value is `once` */
	struct u128 once;
	struct hash *whole;
	struct mixer mix;
	/* canon */
	const struct canon_rule *rule; /* NULL: not asked or nothing to do */
	bool canon_bool;
	struct hash *canon;
	struct mixer canon_mix;
	unsigned char *scratch;
	size_t scratch_size;
	/* shardsum */
	struct cutter unit;
	bool unit_on;
	uint64_t unit_bytes, row_bytes, row_left;
	uint64_t per_row;              /* units in a row of the whole tensor */
	uint64_t row[TENSOR_NDIM_MAX]; /* of a shard: index of the row */
	struct u128 shardsum;
	/* rows */
	struct cutter line;
	bool line_on;
	struct u128 rows;
	/* tiles */
	struct cutter tile;
	struct u128 *tiles;
	unsigned ntiles;
	uint64_t slab; /* bytes behind one first index */
	/* stats */
	bool stats_on, parts;
	struct digest_stats stats;
	uint64_t at, finite;
	double sum[LANES];
	const char *note;
};

// clang-format off
/* Exponent and mantissa bits: IEEE 754 and OCP OFP8 1.0. */
static const struct canon_rule rules[] = {
	{ "f64", 8, UINT64_C(0x7ff0000000000000), UINT64_C(0x7ff8000000000000) },
	{ "f32", 4, 0x7f800000, 0x7fc00000 },
	{ "f16", 2, 0x7c00, 0x7e00 },
	{ "bf16", 2, 0x7f80, 0x7fc0 },
	{ "e5m2", 1, 0x7c, 0x7e },
	{ "e4m3", 1, 0x7e, 0x7f },
	{ "c128", 8, UINT64_C(0x7ff0000000000000), UINT64_C(0x7ff8000000000000) },
	{ "c64", 4, 0x7f800000, 0x7fc00000 },
	{ "c32", 2, 0x7c00, 0x7e00 },
	{ NULL, 0, 0, 0 },
};
// clang-format on

/* ---- bytes and words ---------------------------------------------------- */

/* Canonical data is little-endian, this machine may not be. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LE16(x) (x)
#define LE32(x) (x)
#define LE64(x) (x)
#else
#define LE16(x) __builtin_bswap16(x)
#define LE32(x) __builtin_bswap32(x)
#define LE64(x) __builtin_bswap64(x)
#endif
#define LE8(x) (x)

/* The words of one width with -0 as +0 and every NaN the same. */
#define CANON(bits)                                                           \
	static void canon##bits(unsigned char *to, const unsigned char *from, \
	    size_t n, uint##bits##_t inf, uint##bits##_t nan)                 \
	{                                                                     \
		const uint##bits##_t mag = (uint##bits##_t) - 1 >> 1;         \
		for (size_t i = 0; i < n; i++) {                              \
			uint##bits##_t v, m;                                  \
			memcpy(&v, from + i * sizeof v, sizeof v);            \
			v = LE##bits(v);                                      \
			m = v & mag;                                          \
			v = m == 0 ? 0 : m > inf ? nan : v;                   \
			v = LE##bits(v);                                      \
			memcpy(to + i * sizeof v, &v, sizeof v);              \
		}                                                             \
	}
CANON(8)
CANON(16)
CANON(32)
CANON(64)

static void
mixer_add(struct mixer *m, const unsigned char *p, size_t len)
{
	while (m->ncarry && m->ncarry < WORD && len) {
		m->carry[m->ncarry++] = *p++;
		len--;
	}
	if (m->ncarry == WORD) {
		m->sum += hash_mix64(m->carry, WORD, m->words++);
		m->ncarry = 0;
	}
	size_t whole = len & ~(size_t)(WORD - 1);
	m->sum += hash_mix64(p, whole, m->words);
	m->words += whole / WORD;
	memcpy(m->carry + m->ncarry, p + whole, len - whole);
	m->ncarry += len - whole;
}

static uint64_t
mixer_value(const struct mixer *m)
{
	return m->sum + hash_mix64(m->carry, m->ncarry, m->words);
}

/* ---- pieces ---------------------------------------------------------- */

/* Takes the digest of a piece and sets the size of the next. */
typedef void piece_fn(struct digest *d, struct cutter *c, struct u128 value);

static void
cutter_start(struct cutter *c, uint64_t size)
{
	c->size = size;
	c->filled = c->index = 0;
}

static void
cutter_add(struct digest *d, struct cutter *c, const unsigned char *p,
    size_t len, piece_fn *piece)
{
	while (len) {
		uint64_t want = c->size - c->filled;
		size_t n = want < len ? (size_t)want : len;
		if (n == c->size) {
			piece(d, c, hash_xxh3(p, n));
		} else {
			if (!c->filled)
				hash_reset(c->state);
			hash_add(c->state, p, n);
			c->filled += n;
			if (c->filled == c->size) {
				c->filled = 0;
				piece(d, c, hash_value(c->state));
			}
		}
		p += n;
		len -= n;
	}
}

/*
 * A shard's next row: its index in the whole tensor, in C order over all
 * dimensions but the last.
 */
static void
next_row(struct digest *d)
{
	const struct tensor *t = d->t;
	if (!(t->flags & TENSOR_CHUNK)) {
		d->unit.index = ++d->row[0] * d->per_row;
		return;
	}
	for (unsigned i = t->ndim - 1; i-- > 0;) {
		if (++d->row[i] < t->shape[i])
			break;
		d->row[i] = 0;
	}
	uint64_t index = 0;
	for (unsigned i = 0; i + 1 < t->ndim; i++)
		index = index * t->global[i] + t->offset[i] + d->row[i];
	d->unit.index =
	    index * d->per_row + t->offset[t->ndim - 1] / d->how.unit;
}

static void
take_unit(struct digest *d, struct cutter *c, struct u128 value)
{
	d->shardsum =
	    u128_add(d->shardsum, hash_unit_of(c->index, c->size, value));
	c->index++;
	d->row_left -= c->size;
	if (!d->row_left) {
		d->row_left = d->row_bytes;
		next_row(d);
	}
	c->size = d->row_left < d->unit_bytes ? d->row_left : d->unit_bytes;
}

static void
take_row(struct digest *d, struct cutter *c, struct u128 value)
{
	(void)c;
	d->rows = u128_add(d->rows, value);
}

/* Tile i holds the first indices from i * R / N up to (i + 1) * R / N. */
static uint64_t
tile_edge(const struct digest *d, uint64_t i)
{
	uint64_t rows = d->t->ndim ? d->t->shape[0] : 1, n = d->ntiles;
	/* i <= n: the product of the remainder cannot overflow. */
	return rows / n * i + rows % n * i / n;
}

static void
take_tile(struct digest *d, struct cutter *c, struct u128 value)
{
	d->tiles[c->index++] = value;
	uint64_t i = c->index;
	if (i < d->ntiles)
		c->size = (tile_edge(d, i + 1) - tile_edge(d, i)) * d->slab;
}

/* ---- statistics --------------------------------------------------------- */

/* One element or part as a double. */
static void
count(struct digest *d, double v)
{
	struct digest_stats *s = &d->stats;
	uint64_t i = d->at++;
	if (v != v) {
		s->nan++;
		return;
	}
	if (!s->range || v < s->min)
		s->min = v;
	if (!s->range || v > s->max)
		s->max = v;
	s->range = true;
	if (isinf(v)) {
		s->inf++;
		return;
	}
	s->zero += v == 0;
	d->finite++;
	d->sum[i % LANES] += v;
}

/* Elements first to first + n as doubles; the usual types without a call. */
static void
load(const struct dtype *t, const unsigned char *p, size_t first, size_t n,
    double *out)
{
	if (t->kind == DTYPE_FLOAT && t->size == 8) {
		memcpy(out, p + first * 8, n * 8);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
		for (size_t i = 0; i < n; i++) {
			uint64_t v;
			memcpy(&v, out + i, 8);
			v = LE64(v);
			memcpy(out + i, &v, 8);
		}
#endif
		return;
	}
	bool brain = !strcmp(t->name, "bf16");
	if (t->kind == DTYPE_FLOAT && (t->size == 4 || brain)) {
		for (size_t i = 0; i < n; i++) {
			uint32_t v = 0;
			float f;
			if (brain) {
				uint16_t half;
				memcpy(&half, p + (first + i) * 2, 2);
				v = (uint32_t)LE16(half) << 16;
			} else {
				memcpy(&v, p + (first + i) * 4, 4);
				v = LE32(v);
			}
			memcpy(&f, &v, 4);
			out[i] = f;
		}
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (!dtype_value(t, p, first + i, 0, &out[i]))
			out[i] = 0;
}

static void
stats_add(struct digest *d, const unsigned char *p, size_t len)
{
	const struct dtype *t = d->t->dtype;
	double v[BATCH];
	size_t n = len / t->size;
	for (size_t i = 0; i < n; i += BATCH) {
		size_t k = n - i < BATCH ? n - i : BATCH;
		load(t, p, i, k, v);
		for (size_t j = 0; j < k; j++)
			count(d, v[j]);
		for (size_t j = 0; d->parts && j < k; j++) {
			double im = 0;
			dtype_value(t, p, i + j, 1, &im);
			count(d, im);
		}
	}
}

static void
stats_end(struct digest *d)
{
	struct digest_stats *s = &d->stats;
	double sum = ((d->sum[0] + d->sum[1]) + (d->sum[2] + d->sum[3])) +
		     ((d->sum[4] + d->sum[5]) + (d->sum[6] + d->sum[7]));
	s->average = d->finite && !d->parts;
	if (s->average)
		s->mean = sum / (double)d->finite;
	/* There is no order among complex numbers. */
	s->range = s->range && !d->parts;
}

/* ---- what a tensor allows ----------------------------------------------- */

static void
lack(struct digest *d, const char *note)
{
	if (!d->note)
		d->note = note;
}

/* Units must not be cut by the edges of a shard. */
static bool
edges_fit(const struct tensor *t, uint64_t unit)
{
	unsigned last = t->ndim - 1;
	uint64_t from = t->offset[last], to = from + t->shape[last];
	return from % unit == 0 && (to % unit == 0 || to == t->global[last]);
}

static void
start_shardsum(struct digest *d)
{
	const struct tensor *t = d->t;
	const struct dtype *type = t->dtype;
	bool shard = t->flags & TENSOR_CHUNK && t->ndim;
	uint64_t unit = d->how.unit;
	uint64_t row = t->ndim ? t->shape[t->ndim - 1] : 1;
	d->unit_on = false;
	d->shardsum = (struct u128){ 0, 0 };
	if (!unit)
		return;
	if (unit % type->block || (row % type->block && type->block > 1)) {
		lack(d, "shardsum: the unit is no whole number of blocks");
		return;
	}
	if (shard && !edges_fit(t, unit)) {
		lack(d, "shardsum: the unit does not divide the shard's edges");
		return;
	}
	uint64_t whole = shard ? t->global[t->ndim - 1] : row;
	d->unit_on = true;
	d->per_row = whole / unit + (whole % unit != 0);
	/* Not known to the end: one row of any length. */
	bool open = t->flags & TENSOR_OPENEND;
	d->row_bytes = open ? UINT64_MAX : row / type->block * type->size;
	uint64_t blocks = unit / type->block;
	d->unit_bytes = blocks > d->row_bytes / type->size
			    ? d->row_bytes
			    : blocks * type->size;
	d->row_left = d->row_bytes;
	memset(d->row, 0, sizeof d->row);
	cutter_start(&d->unit, d->unit_bytes);
	if (!shard)
		return;
	uint64_t index = 0;
	for (unsigned i = 0; i + 1 < t->ndim; i++)
		index = index * t->global[i] + t->offset[i];
	d->unit.index = index * d->per_row + t->offset[t->ndim - 1] / unit;
}

static void
start_slabs(struct digest *d)
{
	const struct tensor *t = d->t;
	bool open = t->flags & TENSOR_OPENEND;
	uint64_t rows = t->ndim ? t->shape[0] : 1;
	bool split = !open && rows && t->bytes % rows;
	d->line_on = d->how.rows && !split;
	d->ntiles = 0;
	d->rows = (struct u128){ 0, 0 };
	if (split && (d->how.rows || d->how.tiles))
		lack(d, "rows, tiles: the first index cuts blocks");
	if (open && d->how.tiles)
		lack(d, "tiles: the size was not known beforehand");
	d->slab = open ? t->dtype->size : rows ? t->bytes / rows : 0;
	cutter_start(&d->line, d->slab);
	if (!d->how.tiles || split || open || !t->bytes)
		return;
	d->ntiles = rows < d->how.tiles ? (unsigned)rows : d->how.tiles;
	cutter_start(&d->tile, tile_edge(d, 1) * d->slab);
}

static void
start_canon(struct digest *d)
{
	const struct dtype *t = d->t->dtype;
	d->rule = NULL;
	d->canon_bool = d->how.canon && t->kind == DTYPE_BOOL;
	if (!d->how.canon)
		return;
	for (const struct canon_rule *r = rules; r->dtype; r++)
		if (!strcmp(r->dtype, t->name))
			d->rule = r;
	d->canon_mix = (struct mixer){ 0 };
	if ((d->rule || d->canon_bool) && !d->how.mix64)
		hash_reset(d->canon);
}

static void
start_stats(struct digest *d)
{
	const struct dtype *t = d->t->dtype;
	double v;
	static const unsigned char zero[16];
	d->stats_on = d->how.stats && t->block == 1 &&
		      t->kind != DTYPE_OPAQUE && t->size <= sizeof zero &&
		      dtype_value(t, zero, 0, 0, &v);
	d->parts = t->kind == DTYPE_COMPLEX;
	d->stats = (struct digest_stats){ 0 };
	d->at = d->finite = 0;
	memset(d->sum, 0, sizeof d->sum);
}

/* ---- public ---------------------------------------------------------- */

int
digest_new(struct digest **out, const struct digest_how *how, struct err *e)
{
	struct digest *d = calloc(1, sizeof *d);
	if (!d)
		return err_mem(e);
	d->how = *how;
	d->whole = hash_new();
	d->canon = hash_new();
	d->unit.state = hash_new();
	d->line.state = hash_new();
	d->tile.state = hash_new();
	if (how->tiles)
		d->tiles = calloc(how->tiles, sizeof *d->tiles);
	if (!d->whole || !d->canon || !d->unit.state || !d->line.state ||
	    !d->tile.state || (how->tiles && !d->tiles)) {
		digest_free(d);
		return err_mem(e);
	}
	*out = d;
	return 0;
}

void
digest_free(struct digest *d)
{
	if (!d)
		return;
	hash_free(d->whole);
	hash_free(d->canon);
	hash_free(d->unit.state);
	hash_free(d->line.state);
	hash_free(d->tile.state);
	free(d->tiles);
	free(d->scratch);
	free(d);
}

void
digest_start(struct digest *d, const struct tensor *t)
{
	d->t = t;
	d->seen = 0;
	d->total = t->bytes;
	d->single = false;
	d->note = NULL;
	d->mix = (struct mixer){ 0 };
	const struct digest_how *h = &d->how;
	if (!h->canon && !h->rows && !h->stats && !h->unit && !h->tiles)
		return;
	start_canon(d);
	start_shardsum(d);
	start_slabs(d);
	start_stats(d);
}

static int
canon_add(struct digest *d, const unsigned char *p, size_t len, struct err *e)
{
	if (d->scratch_size < len) {
		free(d->scratch);
		d->scratch_size = 0;
		d->scratch = malloc(len);
		if (!d->scratch)
			return err_mem(e);
		d->scratch_size = len;
	}
	const struct canon_rule *r = d->rule;
	if (d->canon_bool)
		for (size_t i = 0; i < len; i++)
			d->scratch[i] = p[i] != 0;
	else if (r->size == 8)
		canon64(d->scratch, p, len / 8, r->inf, r->nan);
	else if (r->size == 4)
		canon32(
		    d->scratch, p, len / 4, (uint32_t)r->inf, (uint32_t)r->nan);
	else if (r->size == 2)
		canon16(
		    d->scratch, p, len / 2, (uint16_t)r->inf, (uint16_t)r->nan);
	else
		canon8(d->scratch, p, len, (uint8_t)r->inf, (uint8_t)r->nan);
	if (d->how.mix64)
		mixer_add(&d->canon_mix, d->scratch, len);
	else
		hash_add(d->canon, d->scratch, len);
	return 0;
}

int
digest_add(void *digest, const void *data, size_t len, struct err *e)
{
	struct digest *d = digest;
	const struct digest_how *h = &d->how;
	if (h->mix64) {
		mixer_add(&d->mix, data, len);
	} else if (!d->seen && len == d->total) {
		/* Small tensors do without the streaming state. */
		d->once = hash_xxh3(data, len);
		d->single = true;
	} else {
		if (!d->seen)
			hash_reset(d->whole);
		hash_add(d->whole, data, len);
	}
	d->seen += len;
	if (!h->canon && !h->rows && !h->stats && !h->unit && !h->tiles)
		return 0;
	if (d->unit_on)
		cutter_add(d, &d->unit, data, len, take_unit);
	if (d->line_on)
		cutter_add(d, &d->line, data, len, take_row);
	if (d->ntiles)
		cutter_add(d, &d->tile, data, len, take_tile);
	if (d->stats_on)
		stats_add(d, data, len);
	return d->rule || d->canon_bool ? canon_add(d, data, len, e) : 0;
}

static struct u128
whole_value(const struct digest *d)
{
	if (d->how.mix64)
		return (struct u128){ 0, mixer_value(&d->mix) };
	if (d->single)
		return d->once;
	return d->seen ? hash_value(d->whole) : hash_xxh3(NULL, 0);
}

void
digest_end(struct digest *d, struct digest_result *out)
{
	*out = (struct digest_result){ .hash = whole_value(d) };
	const struct digest_how *h = &d->how;
	if (!h->canon && !h->rows && !h->stats && !h->unit && !h->tiles)
		return;
	/* A row whose end nobody knew: what is left is its last unit. */
	if (d->unit_on && d->unit.filled) {
		d->unit.size = d->unit.filled;
		d->shardsum = u128_add(
		    d->shardsum, hash_unit_of(d->unit.index, d->unit.filled,
				     hash_value(d->unit.state)));
	}
	if (d->rule || d->canon_bool) {
		out->canon_given = true;
		out->canon.lo = mixer_value(&d->canon_mix);
		if (!h->mix64)
			out->canon = hash_value(d->canon);
	}
	out->shardsum_given = d->unit_on;
	out->shardsum = d->shardsum;
	out->rows_given = d->line_on;
	out->rows = d->rows;
	out->tile = d->tiles;
	out->ntiles = d->ntiles;
	if (d->stats_on) {
		stats_end(d);
		out->stats_given = true;
		out->stats = d->stats;
	}
	out->note = d->note;
}
