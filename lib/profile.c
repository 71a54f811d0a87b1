/* How two tensors differ: see profile.h. */
#include "profile.h"

#include <math.h>
#include <string.h>

#include "num.h"

enum { STEP = 4096 }; /* bytes that are compared at once while they agree */

int
profile_start(struct profile *p, const struct dtype *dtype, unsigned ndim,
    const uint64_t *shape, struct err *e)
{
	*p = (struct profile){ .dtype = dtype, .ndim = ndim };
	uint64_t row = dtype->size;
	for (unsigned i = 0; i < ndim; i++) {
		p->shape[i] = shape[i];
		if (i && !num_mul(row, shape[i], &row))
			return err_set(e, SE_ELIMIT, "shape too large");
	}
	p->row_len = row / dtype->block;
	p->width = dtype->size * 8 <= PROFILE_BITS && dtype->block == 1
		       ? dtype->size * 8
		       : 0;
	for (int i = 0; i < 2; i++) {
		p->row[i] = hash_new();
		if (!p->row[i]) {
			profile_end(p);
			return err_mem(e);
		}
	}
	return 0;
}

/* ---- rows, whatever their order ---------------------------------------- */

static void
end_row(struct profile *p)
{
	for (int i = 0; i < 2; i++) {
		p->sum[i] = u128_add(p->sum[i], hash_value(p->row[i]));
		hash_reset(p->row[i]);
	}
	p->in_row = 0;
}

static void
add_rows(struct profile *p, const unsigned char *a, const unsigned char *b,
    size_t len)
{
	while (len && p->row_len) {
		uint64_t left = p->row_len - p->in_row;
		size_t n = len < left ? len : (size_t)left;
		hash_add(p->row[0], a, n);
		hash_add(p->row[1], b, n);
		p->in_row += n;
		a += n;
		b += n;
		len -= n;
		if (p->in_row == p->row_len)
			end_row(p);
	}
}

/* ---- where ----------------------------------------------------------- */

static void
index_of(const struct profile *p, uint64_t flat, uint64_t *index)
{
	for (unsigned i = p->ndim; i-- > 0;) {
		index[i] = flat % p->shape[i];
		flat /= p->shape[i];
	}
}

static void
note_row(struct profile *p, uint64_t row)
{
	if (p->differing && row == p->last_row)
		return;
	bool next = p->differing && row == p->last_row + 1;
	p->last_row = row;
	p->nrows++;
	if (next && p->nranges && p->range[p->nranges - 1].to == row)
		p->range[p->nranges - 1].to++;
	else if (p->nranges < PROFILE_RANGES)
		p->range[p->nranges++] = (struct profile_range){ row, row + 1 };
	else
		p->ranges_cut = true;
}

static void
note_place(struct profile *p, uint64_t flat)
{
	uint64_t index[TENSOR_NDIM_MAX];
	index_of(p, flat * p->dtype->block, index);
	note_row(p, p->ndim ? index[0] : 0);
	for (unsigned i = 0; i < p->ndim; i++) {
		if (!p->differing || index[i] < p->low[i])
			p->low[i] = index[i];
		if (!p->differing || index[i] > p->high[i])
			p->high[i] = index[i];
	}
	if (!p->differing)
		p->first = flat;
	else if (!p->stride)
		p->stride = flat - p->last;
	else if (p->stride != flat - p->last)
		p->irregular = true;
	p->last = flat;
}

/* ---- how ------------------------------------------------------------- */

static uint64_t
word(const unsigned char *p, size_t len)
{
	uint64_t v = 0;
	for (size_t i = len; i-- > 0;)
		v = v << 8 | p[i];
	return v;
}

/* Sign and magnitude to a line on which neighbours are one apart. */
static uint64_t
ulp_between(uint64_t a, uint64_t b, unsigned bits)
{
	uint64_t sign = UINT64_C(1) << (bits - 1), mask = sign - 1;
	uint64_t ma = a & mask, mb = b & mask;
	if ((a & sign) != (b & sign))
		return ma + mb;
	return ma > mb ? ma - mb : mb - ma;
}

static void
note_distance(struct profile *p, const unsigned char *a, const unsigned char *b,
    int part, unsigned size)
{
	double x, y;
	const struct dtype *t = p->dtype;
	if (!dtype_value(t, a, 0, part, &x) || !dtype_value(t, b, 0, part, &y))
		return;
	if (isfinite(x) && isfinite(y)) {
		double d = fabs(x - y);
		p->abs = d > p->abs ? d : p->abs;
		if (x != 0 && d / fabs(x) > p->rel)
			p->rel = d / fabs(x);
		p->abs_given = true;
	}
	bool real = t->kind == DTYPE_FLOAT || t->kind == DTYPE_COMPLEX;
	if (!real || isnan(x) || isnan(y) || size > 8)
		return;
	size_t off = (size_t)part * size;
	uint64_t u =
	    ulp_between(word(a + off, size), word(b + off, size), size * 8);
	p->ulp = u > p->ulp ? u : p->ulp;
	p->ulp_given = true;
}

static unsigned
note_bits(struct profile *p, const unsigned char *a, const unsigned char *b)
{
	unsigned flipped = 0;
	for (unsigned i = 0; i < p->width / 8; i++) {
		unsigned x = a[i] ^ b[i];
		for (unsigned k = 0; x; k++, x >>= 1) {
			if (!(x & 1))
				continue;
			p->bit[i * 8 + k]++;
			flipped++;
		}
	}
	return flipped;
}

static bool
is_zero(const unsigned char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i])
			return false;
	return true;
}

/* Only the signs of zeros differ. */
static bool
is_zero_sign(
    const struct profile *p, const unsigned char *a, const unsigned char *b)
{
	double x, y;
	const struct dtype *t = p->dtype;
	int parts = t->kind == DTYPE_COMPLEX ? 2 : 1;
	if (t->kind != DTYPE_FLOAT && t->kind != DTYPE_COMPLEX)
		return false;
	for (int i = 0; i < parts; i++)
		if (!dtype_value(t, a, 0, i, &x) ||
		    !dtype_value(t, b, 0, i, &y) || x != y)
			return false;
	return true;
}

static bool
is_finite(const struct profile *p, const unsigned char *v)
{
	double x;
	int parts = p->dtype->kind == DTYPE_COMPLEX ? 2 : 1;
	for (int i = 0; i < parts; i++)
		if (dtype_value(p->dtype, v, 0, i, &x) && !isfinite(x))
			return false;
	return true;
}

static void
note_element(struct profile *p, uint64_t flat, const unsigned char *a,
    const unsigned char *b)
{
	const struct dtype *t = p->dtype;
	note_place(p, flat);
	p->differing++;
	p->nullified += is_zero(b, t->size);
	if (!p->width || t->kind == DTYPE_OPAQUE)
		return;
	p->single_bit += note_bits(p, a, b) == 1;
	p->zero_sign += is_zero_sign(p, a, b);
	p->nonfinite += is_finite(p, a) && !is_finite(p, b);
	int parts = t->kind == DTYPE_COMPLEX ? 2 : 1;
	for (int i = 0; i < parts; i++)
		note_distance(p, a, b, i, t->size / (unsigned)parts);
}

/* ---- the interface ----------------------------------------------------- */

void
profile_add(struct profile *p, const void *pa, const void *pb, size_t len)
{
	const unsigned char *a = pa, *b = pb;
	size_t size = p->dtype->size;
	add_rows(p, a, b, len);
	for (size_t at = 0; at < len;) {
		size_t n = len - at < STEP ? len - at : STEP / size * size;
		n = n ? n : size;
		bool same = !memcmp(a + at, b + at, n);
		for (size_t i = 0; i < n && !same; i += size)
			if (memcmp(a + at + i, b + at + i, size))
				note_element(p, p->count + i / size, a + at + i,
				    b + at + i);
		p->count += n / size;
		at += n;
	}
}

void
profile_end(struct profile *p)
{
	p->rows_permuted =
	    p->differing && p->nrows > 1 && u128_same(p->sum[0], p->sum[1]);
	if (p->irregular || p->differing < 3)
		p->stride = 0;
	for (int i = 0; i < 2; i++) {
		hash_free(p->row[i]);
		p->row[i] = NULL;
	}
}

const char *
profile_class(const struct profile *p)
{
	uint64_t n = p->differing;
	if (!n)
		return NULL;
	if (p->rows_permuted)
		return "rows-permuted";
	if (p->zero_sign == n)
		return "zero-sign";
	if (p->nullified == n)
		return "nullified";
	if (!p->width || p->dtype->kind == DTYPE_OPAQUE)
		return "different";
	if (p->nonfinite == n)
		return "nan-inf";
	return p->single_bit == n ? "single-bit" : "multi-bit";
}

static void
put_range(struct buf *b, uint64_t from, uint64_t last)
{
	num_put_u64(b, from);
	if (last == from)
		return;
	buf_putc(b, '-');
	num_put_u64(b, last);
}

void
profile_put_first(struct buf *b, const struct profile *p)
{
	uint64_t index[TENSOR_NDIM_MAX];
	index_of(p, p->first * p->dtype->block, index);
	for (unsigned i = 0; i < p->ndim; i++) {
		if (i)
			buf_putc(b, ',');
		num_put_u64(b, index[i]);
	}
}

void
profile_put_box(struct buf *b, const struct profile *p)
{
	for (unsigned i = 0; i < p->ndim; i++) {
		if (i)
			buf_putc(b, ',');
		put_range(b, p->low[i], p->high[i]);
	}
}

void
profile_put_rows(struct buf *b, const struct profile *p)
{
	for (size_t i = 0; i < p->nranges; i++) {
		if (i)
			buf_putc(b, ',');
		put_range(b, p->range[i].from, p->range[i].to - 1);
	}
	if (p->ranges_cut)
		buf_puts(b, ",...");
}

void
profile_put_bits(struct buf *b, const struct profile *p)
{
	bool any = false;
	for (unsigned i = 0; i < p->width; i++) {
		if (!p->bit[i])
			continue;
		if (any)
			buf_putc(b, ',');
		any = true;
		num_put_u64(b, i);
		buf_putc(b, 'x');
		num_put_u64(b, p->bit[i]);
	}
}
