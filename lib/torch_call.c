/*
 * What calls in a pickle would have made: see torch.h. Nothing is called; the
 * arguments of the functions torch.load knows are read as what they mean.
 */
#include <string.h>

#include "esc.h"
#include "num.h"
#include "torch.h"

/* ---- storages and views -------------------------------------------------- */

static int
find_storage(struct torch_walk *w, const struct pickle_node *persid,
    struct torch_ref *ref, struct torch_view *v)
{
	if (persid->kind != PICKLE_PERSID)
		return err_set(w->e, SE_EFORMAT,
		    "expected a persistent id for "
		    "the storage of a tensor");
	int r = torch_ref_parse(ref, persid, &w->set->arena, w->e);
	if (!r && !w->find)
		r = err_set(w->e, SE_EFORMAT, "a storage where there are none");
	if (!r)
		r = w->find(w, ref, &v->storage, w->e);
	if (r)
		return r;
	/* The extent of numel elements fits: `find` compared it. */
	uint64_t size = ref->dtype->size;
	v->dtype = ref->dtype;
	v->start = ref->view ? ref->view_off * size : 0;
	v->room = ref->view ? ref->view_n * size : v->storage->bytes;
	return 0;
}

int
torch_bare_storage(struct torch_walk *w, struct pickle_node *persid)
{
	if (torch_ref_is_module(persid))
		return torch_add_text(w, "class", STR_LIT("module"));
	struct torch_ref ref;
	struct torch_view v = { .ndim = 1 };
	int r = find_storage(w, persid, &ref, &v);
	if (r)
		return r;
	v.shape = arena_alloc(&w->set->arena, sizeof *v.shape);
	v.stride = arena_alloc(&w->set->arena, sizeof *v.stride);
	if (!v.shape || !v.stride)
		return err_mem(w->e);
	v.shape[0] = ref.view ? ref.view_n : ref.numel;
	v.stride[0] = 1;
	return torch_add_view(w, &v);
}

static int
shape_of(struct torch_walk *w, const struct pickle_node *size,
    const struct pickle_node *stride, struct torch_view *v)
{
	uint64_t *steps;
	unsigned n;
	int r = torch_ints(w, size, "sizes", &v->shape, &v->ndim);
	if (!r)
		r = torch_ints(w, stride, "strides", &steps, &n);
	if (!r && n != v->ndim)
		r = err_set(
		    w->e, SE_EFORMAT, "%u sizes and %u strides", v->ndim, n);
	if (!r)
		v->stride = (int64_t *)steps; /* none above INT64_MAX */
	return r;
}

static bool
is_true(const struct pickle_node *n)
{
	return n && n->kind == PICKLE_BOOL && n->i;
}

static int
metadata(
    struct torch_walk *w, const struct pickle_node *dict, struct torch_view *v)
{
	if (dict->kind == PICKLE_NONE)
		return 0;
	if (dict->kind != PICKLE_DICT)
		return err_set(w->e, SE_EFORMAT,
		    "expected a dict as metadata "
		    "of a tensor");
	v->flags |= is_true(pickle_get(dict, "conj")) ? TENSOR_CONJ : 0;
	v->flags |= is_true(pickle_get(dict, "neg")) ? TENSOR_NEG : 0;
	return 0;
}

/* (storage, offset, size, stride, ...): the first four of every rebuild. */
static int
make_view(
    struct torch_walk *w, const struct pickle_node *args, struct torch_view *v)
{
	struct torch_ref ref;
	struct pickle_node *const *a = args->item;
	*v = (struct torch_view){ 0 };
	int r = find_storage(w, a[0], &ref, v);
	if (!r && (a[1]->kind != PICKLE_INT || a[1]->i < 0))
		r = err_set(w->e, SE_EFORMAT,
		    "expected an offset of 0 or more "
		    "into the storage");
	if (r)
		return r;
	v->off = (uint64_t)a[1]->i;
	return shape_of(w, a[2], a[3], v);
}

/* _rebuild_tensor(storage, offset, size, stride) and _v2, with metadata. */
static int
rebuild_tensor(struct torch_walk *w, struct pickle_node *args)
{
	struct torch_view v;
	int r = make_view(w, args, &v);
	if (!r && args->n > 6)
		r = metadata(w, args->item[6], &v);
	return r ? r : torch_add_view(w, &v);
}

/* _v3: an untyped storage, the dtype apart; offset counts its elements. */
static int
rebuild_tensor_v3(struct torch_walk *w, struct pickle_node *args)
{
	struct torch_view v;
	int r = make_view(w, args, &v);
	if (r)
		return r;
	v.dtype = torch_dtype(&w->set->arena, args->item[6]);
	if (!v.dtype) {
		r = err_set(w->e, SE_EUNSUP, "unknown dtype");
		if (args->item[6]->kind == PICKLE_GLOBAL)
			esc_prefix(w->e, "torch", args->item[6]->s);
		return r;
	}
	if (args->n > 7)
		r = metadata(w, args->item[7], &v);
	return r ? r : torch_add_view(w, &v);
}

/* ---- tensors of several parts -------------------------------------------- */

static int
walk_parts(struct torch_walk *w, const struct pickle_node *seq,
    const char *const *names, size_t n)
{
	if (seq->kind != PICKLE_TUPLE || seq->n < n)
		return err_set(w->e, SE_EFORMAT,
		    "expected a tuple of %zu "
		    "parts of a tensor",
		    n);
	int r = 0;
	for (size_t i = 0; !r && i < n; i++)
		r = torch_walk_part(w, names[i], seq->item[i]);
	return r;
}

/* The elements as integers; packed ones as the bytes of the storage. */
static int
quantized_data(struct torch_walk *w, struct pickle_node *args)
{
	struct torch_view v;
	int r = make_view(w, args, &v);
	if (r)
		return r;
	if (v.dtype->kind != DTYPE_OPAQUE)
		return torch_add_view(w, &v);
	return torch_bare_storage(w, args->item[0]);
}

static int
rebuild_qtensor(struct torch_walk *w, struct pickle_node *args)
{
	static const char *const per_tensor[] = { "qscheme", "scale",
		"zero_point" };
	static const char *const per_channel[] = { "qscheme", "scales",
		"zero_points", "axis" };
	const struct pickle_node *q = args->item[4];
	bool channel = q->kind == PICKLE_TUPLE && q->n == 4;
	int r = quantized_data(w, args);
	if (r)
		return r;
	return walk_parts(
	    w, q, channel ? per_channel : per_tensor, channel ? 4 : 3);
}

/* The text behind _get_layout('torch.sparse_coo'). */
static struct str
layout_of(const struct pickle_node *n)
{
	if (!pickle_is_call(n, "torch.serialization _get_layout") ||
	    n->call->args->n != 1 || n->call->args->item[0]->kind != PICKLE_STR)
		return STR_NULL;
	return n->call->args->item[0]->s;
}

/* _rebuild_sparse_tensor(layout, data); data depends on the layout. */
static int
rebuild_sparse(struct torch_walk *w, struct pickle_node *args)
{
	static const char *const coo[] = { "indices", "values", "size" };
	static const char *const rows[] = { "crow_indices", "col_indices",
		"values", "size" };
	static const char *const columns[] = { "ccol_indices", "row_indices",
		"values", "size" };
	struct str layout = layout_of(args->item[0]);
	struct pickle_node *data = args->item[1];
	int r = torch_walk_part(w, "layout", args->item[0]);
	if (r)
		return r;
	if (str_is(layout, "torch.sparse_coo"))
		return walk_parts(w, data, coo, 3);
	if (str_is(layout, "torch.sparse_csr") ||
	    str_is(layout, "torch.sparse_bsr"))
		return walk_parts(w, data, rows, 4);
	if (str_is(layout, "torch.sparse_csc") ||
	    str_is(layout, "torch.sparse_bsc"))
		return walk_parts(w, data, columns, 4);
	r = err_set(w->e, SE_EUNSUP, "unknown layout of a sparse tensor");
	esc_prefix(w->e, "layout", layout);
	return r;
}

static int
rebuild_nested(struct torch_walk *w, struct pickle_node *args)
{
	static const char *const parts[] = { "buffer", "sizes", "strides",
		"offsets" };
	int r = 0;
	for (uint32_t i = 0; !r && i < args->n && i < 4; i++)
		r = torch_walk_part(w, parts[i], args->item[i]);
	return r;
}

/* A tensor on the device "meta" has no data: dtype and sizes are all. */
static int
rebuild_meta(struct torch_walk *w, struct pickle_node *args)
{
	struct buf b = { 0 };
	const struct dtype *d = torch_dtype(&w->set->arena, args->item[0]);
	buf_puts(&b, d ? d->name : "?");
	bool ok = pickle_text(&b, args->item[1]) && !b.failed;
	int r = ok ? torch_add_text(w, "meta", buf_view(&b))
		   : err_set(w->e, SE_EFORMAT, "sizes of a meta tensor");
	buf_free(&b);
	return r;
}

/* ---- wrappers -------------------------------------------------------------
 */

/* The tensor is the first argument; what comes behind is not content. */
static int
first_argument(struct torch_walk *w, struct pickle_node *args)
{
	return torch_walk_node(w, args->item[0]);
}

static bool
has_items(const struct pickle_node *n)
{
	return n->kind == PICKLE_DICT ? n->n > 0 : n->kind != PICKLE_NONE;
}

static int
state_part(struct torch_walk *w, struct pickle_node *state)
{
	return has_items(state) ? torch_walk_part(w, "__state__", state) : 0;
}

/* _rebuild_parameter_with_state(data, requires_grad, hooks, state) */
static int
parameter_with_state(struct torch_walk *w, struct pickle_node *args)
{
	int r = torch_walk_node(w, args->item[0]);
	return r ? r : state_part(w, args->item[3]);
}

/* _rebuild_from_type_v2(func, type, args, state): func(*args) is the data. */
static int
from_type(struct torch_walk *w, struct pickle_node *args)
{
	struct pickle_call inner = { .func = args->item[0],
		.args = args->item[2] };
	struct pickle_node n = { .kind = PICKLE_CALL, .call = &inner };
	if (inner.func->kind != PICKLE_GLOBAL ||
	    inner.args->kind != PICKLE_TUPLE)
		return err_set(w->e, SE_EFORMAT,
		    "expected a function and a "
		    "tuple to rebuild a tensor from");
	int r = torch_walk_node(w, &n);
	return r ? r : state_part(w, args->item[3]);
}

/* No data of its own: the tensors inside are in the state. */
static int
wrapper_subclass(struct torch_walk *w, struct pickle_node *args)
{
	return torch_add_value(w, "object", args->item[0]);
}

/* ---- values ----------------------------------------------------------------
 */

static int
value_size(struct torch_walk *w, struct pickle_node *args)
{
	return torch_add_value(w, "size", args->item[0]);
}

static int
value_layout(struct torch_walk *w, struct pickle_node *args)
{
	return torch_add_value(w, "layout", args->item[0]);
}

/* "cuda:0", "cpu" */
static int
value_device(struct torch_walk *w, struct pickle_node *args)
{
	struct buf b = { 0 };
	bool ok = pickle_text(&b, args->item[0]);
	if (ok && args->n > 1) {
		buf_putc(&b, ':');
		ok = pickle_text(&b, args->item[1]);
	}
	int r = ok && !b.failed ? torch_add_text(w, "device", buf_view(&b))
				: err_set(w->e, SE_EFORMAT, "name of a device");
	buf_free(&b);
	return r;
}

/* "(1,-2)": real and imaginary part. */
static int
value_complex(struct torch_walk *w, struct pickle_node *args)
{
	return torch_add_value(w, "c128", args);
}

/* ---- numpy ------------------------------------------------------------------
 */

/* scalar(dtype, bytes) */
static int
numpy_scalar(struct torch_walk *w, struct pickle_node *args)
{
	return torch_add_numpy(w, NULL, args->item[0], args->item[1], false);
}

/* _frombuffer(bytes, dtype, shape, 'C' or 'F'), protocol 5 */
static int
numpy_frombuffer(struct torch_walk *w, struct pickle_node *args)
{
	const struct pickle_node *order = args->item[3];
	bool fortran = order->kind == PICKLE_STR && str_is(order->s, "F");
	return torch_add_numpy(
	    w, args->item[2], args->item[1], args->item[0], fortran);
}

/* The state of _reconstruct: (1, shape, dtype, fortran, bytes or a list) */
static int
numpy_array(struct torch_walk *w, struct pickle_node *n)
{
	struct pickle_node *s = n->call->state;
	if (!s || s->kind != PICKLE_TUPLE || s->n != 5)
		return err_set(w->e, SE_EFORMAT, "numpy array without state");
	if (s->item[4]->kind == PICKLE_LIST)
		return torch_walk_items(w, s->item[4]);
	return torch_add_numpy(
	    w, s->item[1], s->item[2], s->item[4], is_true(s->item[3]));
}

/* ---- containers ------------------------------------------------------ */

/* Old protocols give the items as a list of [key, value]. */
static int
walk_pairs(struct torch_walk *w, const struct pickle_node *list)
{
	struct pickle_node dict = { .kind = PICKLE_DICT };
	dict.item =
	    arena_array(&w->set->arena, (size_t)list->n * 2, sizeof *dict.item);
	if (!dict.item)
		return err_mem(w->e);
	for (uint32_t i = 0; i < list->n; i++) {
		const struct pickle_node *pair = list->item[i];
		if ((pair->kind != PICKLE_LIST && pair->kind != PICKLE_TUPLE) ||
		    pair->n != 2)
			return err_set(w->e, SE_EFORMAT,
			    "expected pairs of "
			    "key and value");
		dict.item[dict.n++] = pair->item[0];
		dict.item[dict.n++] = pair->item[1];
	}
	return torch_walk_dict(w, &dict);
}

static bool
is_pairs(const struct pickle_node *args)
{
	return args->n == 1 && args->item[0]->kind == PICKLE_LIST;
}

/*
 * OrderedDict, defaultdict, Counter. `_metadata` of a state dict counts the
 * versions of modules, which is about the code, not about the content.
 */
static int
mapping(struct torch_walk *w, struct pickle_node *n)
{
	struct pickle_call *c = n->call;
	bool pairs = is_pairs(c->args);
	int r = pairs ? walk_pairs(w, c->args->item[0]) : 0;
	struct pickle_node *last =
	    c->args->n ? c->args->item[c->args->n - 1] : NULL;
	bool given = last && last->kind == PICKLE_DICT && last->n;
	if (!r && given)
		r = torch_walk_dict(w, last);
	if (!r && c->dict)
		r = torch_walk_dict(w, c->dict);
	if (!r && !pairs && !given && !c->dict && w->depth)
		r = torch_add_text(w, "dict", STR_LIT(""));
	bool versions = c->state && c->state->kind == PICKLE_DICT &&
			c->state->n == 2 && pickle_get(c->state, "_metadata");
	if (!r && c->state && !versions)
		r = state_part(w, c->state);
	return r;
}

/* ---- the table ------------------------------------------------------------
 */

// clang-format off
/* Calls whose arguments are all there is: state or items on them are lies. */
static const struct {
	const char *name;
	uint32_t min; /* arguments */
	int (*run)(struct torch_walk *w, struct pickle_node *args);
} plain[] = {
	{ "torch._utils _rebuild_tensor_v2", 6, rebuild_tensor },
	{ "torch._utils _rebuild_tensor", 4, rebuild_tensor },
	{ "torch._utils _rebuild_tensor_v3", 7, rebuild_tensor_v3 },
	{ "torch._utils _rebuild_parameter", 1, first_argument },
	{ "torch._utils _rebuild_parameter_with_state", 4,
		parameter_with_state },
	{ "torch.nn.parameter Parameter", 1, first_argument },
	{ "torch._utils _rebuild_qtensor", 5, rebuild_qtensor },
	{ "torch._utils _rebuild_sparse_tensor", 2, rebuild_sparse },
	{ "torch._utils _rebuild_sparse_csr_tensor", 2, rebuild_sparse },
	{ "torch._utils _rebuild_nested_tensor", 1, rebuild_nested },
	{ "torch._utils _rebuild_meta_tensor_no_storage", 2, rebuild_meta },
	{ "torch._utils _rebuild_wrapper_subclass", 1, wrapper_subclass },
	{ "torch._utils _rebuild_device_tensor_from_numpy", 1,
		first_argument },
	{ "torch._utils _rebuild_device_tensor_from_cpu_tensor", 1,
		first_argument },
	{ "torch._utils _rebuild_xla_tensor", 1, first_argument },
	{ "torch._tensor _rebuild_from_type_v2", 4, from_type },
	{ "torch._tensor _rebuild_from_type", 4, from_type },
	{ "torch Size", 1, value_size },
	{ "torch device", 1, value_device },
	{ "torch.serialization _get_layout", 1, value_layout },
	{ "builtins complex", 2, value_complex },
	{ "numpy.core.multiarray scalar", 2, numpy_scalar },
	{ "numpy._core.multiarray scalar", 2, numpy_scalar },
	{ "numpy.core.numeric _frombuffer", 4, numpy_frombuffer },
	{ "numpy._core.numeric _frombuffer", 4, numpy_frombuffer },
};

/* Calls that get their content later. */
static const struct {
	const char *name;
	int (*run)(struct torch_walk *w, struct pickle_node *n);
} filled[] = {
	{ "collections OrderedDict", mapping },
	{ "collections defaultdict", mapping },
	{ "collections Counter", mapping },
	{ "numpy.core.multiarray _reconstruct", numpy_array },
	{ "numpy._core.multiarray _reconstruct", numpy_array },
};
// clang-format on

static int
plain_call(struct torch_walk *w, struct pickle_node *n, size_t i)
{
	struct pickle_call *c = n->call;
	int r = 0;
	if (c->kwargs || c->state || c->list || c->dict)
		r = err_set(w->e, SE_EFORMAT,
		    "items or state set on the "
		    "result: loading would change it");
	else if (c->args->n < plain[i].min)
		r = err_set(w->e, SE_EFORMAT, "%u arguments, expected %u",
		    c->args->n, plain[i].min);
	if (r) {
		esc_prefix(w->e, "call of", c->func->s);
		return r;
	}
	return plain[i].run(w, c->args);
}

/* Attributes by name, so that tensors in a saved module have names. */
static int
object_state(struct torch_walk *w, struct pickle_call *c)
{
	if (!c->state)
		return 0;
	if (c->state->kind == PICKLE_DICT && !c->dict)
		return torch_walk_dict(w, c->state);
	return torch_walk_part(w, "__state__", c->state);
}

/* Something we do not know: its class, and all that hangs on it. */
static int
object(struct torch_walk *w, struct pickle_node *n)
{
	struct pickle_call *c = n->call;
	struct pickle_node *cls = c->func;
	if (cls->kind == PICKLE_PERSID && torch_ref_is_module(cls) &&
	    cls->item[0]->n > 1)
		cls = cls->item[0]->item[1];
	bool named = cls->kind == PICKLE_GLOBAL;
	int r = named ? torch_add_value(w, "object", cls)
		      : torch_add_text(w, "object", STR_LIT("?"));
	if (!r && !named)
		r = torch_walk_part(w, "__class__", cls);
	if (!r && c->args->n)
		r = torch_walk_part(w, "__args__", c->args);
	if (!r && c->kwargs)
		r = torch_walk_part(w, "__kwargs__", c->kwargs);
	if (!r && c->list)
		r = torch_walk_items(w, c->list);
	if (!r && c->dict)
		r = torch_walk_dict(w, c->dict);
	return r ? r : object_state(w, c);
}

int
torch_call(struct torch_walk *w, struct pickle_node *n)
{
	struct pickle_node *func = n->call->func;
	if (func->kind != PICKLE_GLOBAL)
		return object(w, n);
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
		if (str_is(func->s, plain[i].name))
			return plain_call(w, n, i);
	for (size_t i = 0; i < sizeof filled / sizeof *filled; i++)
		if (str_is(func->s, filled[i].name))
			return filled[i].run(w, n);
	return object(w, n);
}
