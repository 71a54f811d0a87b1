/* Views of storages, and numpy arrays in pickles: see torch.h. */
#include <inttypes.h>
#include <string.h>

#include "esc.h"
#include "num.h"
#include "torch.h"

/* ---- sizes and strides --------------------------------------------------- */

/* A tuple or list, or torch.Size of one; NULL for anything else. */
static const struct pickle_node *
sequence(const struct pickle_node *n)
{
	if (pickle_is_call(n, "torch Size") && n->call->args->n == 1)
		n = n->call->args->item[0];
	return n->kind == PICKLE_TUPLE || n->kind == PICKLE_LIST ? n : NULL;
}

int
torch_ints(struct torch_walk *w, const struct pickle_node *n, const char *what,
    uint64_t **out, unsigned *count)
{
	const struct pickle_node *seq = sequence(n);
	if (!seq)
		return err_set(
		    w->e, SE_EFORMAT, "expected a tuple for the %s", what);
	if (seq->n > TENSOR_NDIM_MAX)
		return err_set(w->e, SE_ELIMIT, "%u dimensions, at most %d",
		    seq->n, TENSOR_NDIM_MAX);
	uint64_t *v = arena_array(&w->set->arena, seq->n, sizeof *v);
	if (!v)
		return err_mem(w->e);
	for (uint32_t i = 0; i < seq->n; i++) {
		const struct pickle_node *x = seq->item[i];
		if (x->kind != PICKLE_INT || x->i < 0)
			return err_set(w->e, SE_EFORMAT,
			    "expected integers "
			    "of 0 or more for the %s",
			    what);
		v[i] = (uint64_t)x->i;
	}
	*out = v;
	*count = seq->n;
	return 0;
}

static bool
is_empty(const struct torch_view *v)
{
	for (unsigned i = 0; i < v->ndim; i++)
		if (v->shape[i] == 0)
			return true;
	return false;
}

/* Elements in C order without gaps; the stride of a 1 means nothing. */
static bool
is_contiguous(const struct torch_view *v)
{
	uint64_t step = 1;
	for (unsigned i = v->ndim; i-- > 0;) {
		if (v->shape[i] == 1)
			continue;
		if ((uint64_t)v->stride[i] != step ||
		    !num_mul(step, v->shape[i], &step))
			return false;
	}
	return true;
}

/* Elements from the first to behind the last one used. */
static bool
extent_of(const struct torch_view *v, uint64_t *out)
{
	uint64_t last = 0, part;
	for (unsigned i = 0; i < v->ndim; i++)
		if (!num_mul(v->shape[i] - 1, (uint64_t)v->stride[i], &part) ||
		    !num_add(last, part, &last))
			return false;
	return num_add(last, 1, out);
}

int
torch_add_view(struct torch_walk *w, struct torch_view *v)
{
	struct tensor *t;
	uint64_t n = 0, start, bytes, end, size = v->dtype->size;
	bool empty = is_empty(v);
	if ((!empty && !extent_of(v, &n)) || !num_mul(v->off, size, &start) ||
	    !num_mul(n, size, &bytes) || !num_add(start, bytes, &end))
		return err_set(w->e, SE_EFORMAT,
		    "sizes, strides and offset "
		    "overflow 64 bits");
	if (!empty && end > v->room) {
		int r = err_set(w->e, SE_EFORMAT,
		    "sizes, strides and offset "
		    "need %" PRIu64 " bytes, it has %" PRIu64,
		    end, v->room);
		esc_prefix(w->e, "storage", v->storage->key);
		return r;
	}
	int r = torch_add(w, &t);
	if (r)
		return r;
	t->dtype = v->dtype;
	t->ndim = v->ndim;
	t->shape = v->shape;
	t->stride = empty || is_contiguous(v) ? NULL : v->stride;
	t->flags = v->flags;
	if (w->swap && v->dtype->word > 1)
		t->flags |= TENSOR_SWAP;
	return torch_cover(v->storage, t, v->start + (empty ? 0 : start), bytes,
	    &w->set->arena, w->e);
}

/* ---- numpy ----------------------------------------------------------------
 */

// clang-format off
static const struct {
	const char *code, *dtype;
} numpy[] = {
	{ "b1", "bool" }, { "?", "bool" },
	{ "i1", "i8" }, { "i2", "i16" }, { "i4", "i32" }, { "i8", "i64" },
	{ "u1", "u8" }, { "u2", "u16" }, { "u4", "u32" }, { "u8", "u64" },
	{ "f2", "f16" }, { "f4", "f32" }, { "f8", "f64" },
	{ "c8", "c64" }, { "c16", "c128" },
};
// clang-format on

/* numpy.dtype('f8', False, True) with state (3, '<', ...). */
static int
numpy_dtype(struct torch_walk *w, const struct pickle_node *n,
    const struct dtype **out, bool *swap)
{
	const struct pickle_node *args =
	    pickle_is_call(n, "numpy dtype") ? n->call->args : NULL;
	if (!args || !args->n || args->item[0]->kind != PICKLE_STR)
		return err_set(w->e, SE_EUNSUP, "unknown numpy dtype");
	struct str code = args->item[0]->s;
	const struct pickle_node *state = n->call->state;
	*swap = state && state->kind == PICKLE_TUPLE && state->n > 1 &&
		state->item[1]->kind == PICKLE_STR &&
		str_is(state->item[1]->s, ">");
	*out = NULL;
	for (size_t i = 0; i < sizeof numpy / sizeof *numpy; i++)
		if (str_is(code, numpy[i].code))
			*out = dtype_find(str_c(numpy[i].dtype));
	if (*out)
		return 0;
	int r = err_set(w->e, SE_EUNSUP, "only numbers and bools are read");
	esc_prefix(w->e, "numpy dtype", code);
	return r;
}

static bool
count_of(const uint64_t *shape, unsigned ndim, uint64_t *out)
{
	*out = 1;
	for (unsigned i = 0; i < ndim; i++)
		if (shape[i] == 0)
			*out = 0;
	for (unsigned i = 0; i < ndim && *out; i++)
		if (!num_mul(*out, shape[i], out))
			return false;
	return true;
}

static const int64_t *
fortran_strides(struct arena *a, const uint64_t *shape, unsigned ndim)
{
	int64_t *stride = arena_array(a, ndim, sizeof *stride);
	uint64_t step = 1;
	for (unsigned i = 0; stride && i < ndim; i++) {
		stride[i] = (int64_t)step;
		step *= shape[i]; /* no overflow: the product fits memory */
	}
	return stride;
}

int
torch_add_numpy(struct torch_walk *w, const struct pickle_node *shape,
    const struct pickle_node *dtype, const struct pickle_node *data,
    bool fortran)
{
	const struct dtype *d;
	bool swap = false;
	uint64_t *dims = NULL, count, bytes;
	unsigned ndim = 0;
	int r = numpy_dtype(w, dtype, &d, &swap);
	if (!r && shape)
		r = torch_ints(w, shape, "shape", &dims, &ndim);
	if (r)
		return r;
	struct str raw;
	if (!pickle_bytes(data, &w->set->arena, &raw))
		return err_set(w->e, SE_EUNSUP, "numpy array without bytes");
	if (!count_of(dims, ndim, &count) || !num_mul(count, d->size, &bytes) ||
	    bytes != raw.len)
		return err_set(w->e, SE_EFORMAT,
		    "numpy array of %zu bytes "
		    "does not fit its shape",
		    raw.len);
	struct tensor *t;
	r = torch_add_mem(w, raw, &t);
	if (r)
		return r;
	t->dtype = d;
	t->ndim = ndim;
	t->shape = dims;
	t->flags = swap && d->word > 1 ? TENSOR_SWAP : 0;
	if (!fortran || ndim < 2 || !count)
		return 0;
	t->stride = fortran_strides(&w->set->arena, dims, ndim);
	return t->stride ? 0 : err_mem(w->e);
}
