/* Storages of PyTorch files, their types, and their check: see torch.h. */
#include <inttypes.h>
#include <string.h>

#include "esc.h"
#include "gzip.h"
#include "num.h"
#include "torch.h"

enum { STEPS_BASE = 1000 }; /* for small pickles */

// clang-format off
/* torch/storage.py, classes that persistent ids name. */
static const struct {
	const char *cls, *dtype;
} storages[] = {
	{ "FloatStorage", "f32" },
	{ "BFloat16Storage", "bf16" },
	{ "HalfStorage", "f16" },
	{ "DoubleStorage", "f64" },
	{ "LongStorage", "i64" },
	{ "IntStorage", "i32" },
	{ "ShortStorage", "i16" },
	{ "CharStorage", "i8" },
	{ "ByteStorage", "u8" },
	{ "BoolStorage", "bool" },
	{ "ComplexFloatStorage", "c64" },
	{ "ComplexDoubleStorage", "c128" },
	{ "QInt8Storage", "i8" },
	{ "QUInt8Storage", "u8" },
	{ "QInt32Storage", "i32" },
	/* Several elements in a byte: the bytes are what is compared. */
	{ "QUInt4x2Storage", "quint4x2" },
	{ "QUInt2x4Storage", "quint2x4" },
	{ "UntypedStorage", "u8" },
	{ "_UntypedStorage", "u8" },
};

/* c10/core/ScalarType.h, names that dtype_find does not know. */
static const struct {
	const char *name, *dtype;
	uint32_t size; /* opaque: bytes of what torch counts as an element */
} dtypes[] = {
	{ "qint8", "i8", 0 },
	{ "quint8", "u8", 0 },
	{ "qint32", "i32", 0 },
	{ "cfloat", "c64", 0 },
	{ "cdouble", "c128", 0 },
	{ "chalf", "c32", 0 },
	{ "float4_e2m1fn_x2", "e2m1x2", 1 },
	{ "quint4x2", "quint4x2", 1 },
	{ "quint2x4", "quint2x4", 1 },
	{ "bits8", "bits8", 1 },
	{ "bits16", "bits16", 2 },
	{ "bits1x8", "bits1x8", 1 },
	{ "bits2x4", "bits2x4", 1 },
	{ "bits4x2", "bits4x2", 1 },
	{ NULL, NULL, 0 },
};
// clang-format on

static const struct dtype *
named_dtype(struct arena *a, struct str name)
{
	for (size_t i = 0; dtypes[i].name; i++) {
		if (!str_is(name, dtypes[i].name))
			continue;
		struct str d = str_c(dtypes[i].dtype);
		uint32_t size = dtypes[i].size;
		return size ? dtype_opaque(a, d, 1, size, size) : dtype_find(d);
	}
	return dtype_find(name);
}

const struct dtype *
torch_dtype(struct arena *a, const struct pickle_node *n)
{
	if (!n || n->kind != PICKLE_GLOBAL || !str_starts(n->s, "torch "))
		return NULL;
	return named_dtype(a, (struct str){ n->s.p + 6, n->s.len - 6 });
}

static const struct dtype *
storage_dtype(struct arena *a, struct str cls)
{
	for (size_t i = 0; i < sizeof storages / sizeof *storages; i++)
		if (str_is(cls, storages[i].cls))
			return named_dtype(a, str_c(storages[i].dtype));
	return NULL;
}

/* ---- persistent ids ------------------------------------------------------ */

bool
torch_ref_is_module(const struct pickle_node *persid)
{
	const struct pickle_node *id = persid->item[0];
	return id->kind == PICKLE_TUPLE && id->n &&
	       id->item[0]->kind == PICKLE_STR &&
	       str_is(id->item[0]->s, "module");
}

/* "torch FloatStorage", "torch.cuda FloatStorage": the last word. */
static struct str
class_of(struct str global)
{
	struct str module = STR_NULL;
	str_cut(&global, ' ', &module);
	return str_starts(module, "torch") ? global : STR_NULL;
}

static bool
size_of(const struct pickle_node *n, uint64_t *out)
{
	if (n->kind != PICKLE_INT || n->i < 0)
		return false;
	*out = (uint64_t)n->i;
	return true;
}

static int
parse_view(struct torch_ref *ref, const struct pickle_node *view, struct err *e)
{
	if (view->kind == PICKLE_NONE)
		return 0;
	if (view->kind != PICKLE_TUPLE || view->n != 3 ||
	    !size_of(view->item[1], &ref->view_off) ||
	    !size_of(view->item[2], &ref->view_n))
		return err_set(e, SE_EFORMAT,
		    "expected (key, offset, size) "
		    "for a view of a storage");
	if (ref->view_off > ref->numel ||
	    ref->view_n > ref->numel - ref->view_off)
		return err_set(e, SE_EFORMAT,
		    "a view of %" PRIu64 " elements from %" PRIu64
		    " in a storage of %" PRIu64,
		    ref->view_n, ref->view_off, ref->numel);
	ref->view = true;
	return 0;
}

int
torch_ref_parse(struct torch_ref *ref, const struct pickle_node *persid,
    struct arena *a, struct err *e)
{
	*ref = (struct torch_ref){ 0 };
	const struct pickle_node *id = persid->item[0];
	struct pickle_node *const *item = id->item;
	if (id->kind != PICKLE_TUPLE || id->n < 5 || id->n > 6 ||
	    item[0]->kind != PICKLE_STR || !str_is(item[0]->s, "storage"))
		return err_set(e, SE_EFORMAT,
		    "expected a persistent id "
		    "('storage', type, key, location, size)");
	if (item[2]->kind != PICKLE_STR || item[1]->kind != PICKLE_GLOBAL ||
	    !size_of(item[4], &ref->numel))
		return err_set(e, SE_EFORMAT,
		    "expected a type, a key and a "
		    "size in the persistent id of a storage");
	ref->key = item[2]->s;
	ref->dtype = storage_dtype(a, class_of(item[1]->s));
	if (!ref->dtype) {
		int r = err_set(e, SE_EUNSUP, "unknown type of storage");
		esc_prefix(e, "torch", item[1]->s);
		return r;
	}
	return id->n == 6 ? parse_view(ref, item[5], e) : 0;
}

/* ---- content --------------------------------------------------------------
 */

/* Reads the whole storage once, whoever asks first. */
static int
verify(struct torch_storage *s, struct err *e)
{
	if (!s->has_crc)
		return 0;
	pthread_mutex_lock(&s->lock);
	struct zip z = { .src = s->src };
	int r = s->verified ? 0 : zip_verify(&z, &s->member, e);
	s->verified = !r;
	pthread_mutex_unlock(&s->lock);
	return r;
}

struct cover {
	struct torch_storage *s;
	uint64_t start; /* of the tensor in the storage */
	bool whole;     /* reads every byte of it, first to last */
	uint64_t next;
	uint32_t crc;
};

/*
 * A tensor that is the whole storage has its CRC-32 made as it goes by; any
 * other has the storage verified before its first byte is handed out.
 */
static int
read_checked(
    const struct tensor *t, uint64_t off, void *to, size_t len, struct err *e)
{
	struct cover *c = t->priv;
	struct torch_storage *s = c->s;
	if (off == 0)
		c->next = c->crc = 0;
	bool follows = c->whole && off == c->next;
	int r = follows ? 0 : verify(s, e);
	if (!r)
		r = src_read_at(s->src, s->off + c->start + off, to, len, e);
	if (r || !follows)
		return r;
	c->crc = gzip_crc32(c->crc, to, len);
	c->next += len;
	if (c->next != s->bytes || c->crc == s->member.crc)
		return 0;
	r = err_set(e, SE_EFORMAT,
	    "content has CRC-32 %08x, the archive says "
	    "%08x: damaged",
	    c->crc, s->member.crc);
	esc_prefix(e, "zip member", s->member.name);
	return r;
}

int
torch_cover(struct torch_storage *s, struct tensor *t, uint64_t start,
    uint64_t extent, struct arena *a, struct err *e)
{
	t->src = s->src;
	t->off = s->off + start;
	t->limit = s->bytes - start;
	t->storage = s->key;
	if (!s->has_crc || !extent)
		return 0;
	struct cover *c = arena_alloc(a, sizeof *c);
	if (!c)
		return err_mem(e);
	*c = (struct cover){ .s = s, .start = start };
	c->whole = start == 0 && extent == s->bytes;
	t->priv = c;
	t->read = read_checked;
	return 0;
}

/* ---- all of a file ------------------------------------------------------- */

/* Several archives in one set number their storages apart. */
static struct str
label(struct arena *a, struct str prefix, struct str key)
{
	if (!prefix.len)
		return key;
	char *p = arena_alloc(a, prefix.len + 1 + key.len);
	if (!p)
		return STR_NULL;
	memcpy(p, prefix.p, prefix.len);
	p[prefix.len] = ':';
	memcpy(p + prefix.len + 1, key.p, key.len);
	return (struct str){ p, prefix.len + 1 + key.len };
}

int
torch_new_storage(struct torch_walk *w, struct map *known, struct str key,
    struct torch_storage **out, struct err *e)
{
	struct arena *a = &w->set->arena;
	struct torch_storage *s = arena_alloc(a, sizeof *s);
	bool fresh;
	struct str copy = arena_str(a, key);
	uint64_t *at = s && copy.p ? map_at(known, copy, &fresh) : NULL;
	if (!at || pthread_mutex_init(&s->lock, NULL))
		return err_mem(e);
	s->key = label(a, w->label, copy);
	if (!s->key.p)
		return err_mem(e);
	*at = (uint64_t)(uintptr_t)s;
	*out = s;
	return 0;
}

struct torch_storage *
torch_known_storage(const struct map *known, struct str key)
{
	const uint64_t *at = map_get(known, key);
	return at ? (struct torch_storage *)(uintptr_t)*at : NULL;
}

/* What the pickle says about its size against what is there. */
int
torch_check_size(const struct torch_ref *ref, uint64_t bytes, struct err *e)
{
	uint64_t want;
	if (num_mul(ref->numel, ref->dtype->size, &want) && want == bytes)
		return 0;
	int r = err_set(e, SE_EFORMAT,
	    "the pickle says %" PRIu64 " elements of %" PRIu32
	    " bytes, it has %" PRIu64 " bytes",
	    ref->numel, ref->dtype->size, bytes);
	esc_prefix(e, "storage", ref->key);
	return r;
}

void
torch_set_steps(struct torch_walk *w, const struct pickle *p)
{
	w->steps_max += TORCH_PATHS_MAX * p->nnodes + STEPS_BASE;
}
