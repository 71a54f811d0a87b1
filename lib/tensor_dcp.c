/*
 * Distributed checkpoints of PyTorch: a directory with a pickle `.metadata`
 * and data files `__RANK_N.distcp`, in which every item is a whole torch.save
 * file (or plain bytes). The source is `.metadata`; hints->dirfd is where it
 * lies.
 * Sources: torch/distributed/checkpoint/metadata.py, filesystem.py.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "esc.h"
#include "num.h"
#include "tensor_formats.h"
#include "torch.h"

#define META "torch.distributed.checkpoint.metadata "

struct dcp {
	struct tensor_set *set;
	const struct tensor_hints *hints;
	struct pickle p;
	struct pickle_node *state; /* fqn to what it is */
	struct map fqn;            /* index of its value in state, plus one */
	struct map files;          /* relative path to struct src */
	struct map places;         /* fqn and offset to chunk, or USED */
	uint64_t found, wanted;    /* chunks of tensors */
	struct err cut;            /* the first item that is not all there */
};

enum { USED = 1 }; /* no address of a node */

/* One item of storage_data. */
struct item {
	struct str fqn, path;
	uint64_t off, len;
	const struct pickle_node *place; /* offset in the tensor, or None */
};

static int
probe(const unsigned char *head, size_t len)
{
	/* Then the prototype of torch 1.13, to be refused. */
	static const char *const modules[] = {
		"torch.distributed.checkpoint.metadata",
		"torch.distributed._shard.checkpoint.metadata",
	};
	if (len < 2 || head[0] != 0x80 || head[1] > 5)
		return 0;
	for (size_t m = 0; m < sizeof modules / sizeof *modules; m++)
		for (size_t i = 0, n = strlen(modules[m]); i + n <= len; i++)
			if (!memcmp(head + i, modules[m], n))
				return 95;
	return 0;
}

bool
tensor_dcp_is_data(const char *name)
{
	struct str s = str_c(name);
	return str_is(s, ".metadata.tmp") || str_ends(s, ".distcp");
}

/* By its content, so that nothing is left out for a file of that name. */
static int
probe_metadata(int dirfd, struct err *e)
{
	unsigned char head[TENSOR_PROBE];
	struct src *src = NULL;
	size_t n = 0;
	int r = src_open_at(&src, dirfd, ".metadata", NULL, SRC_PLAIN, e);
	if (!r)
		r = src_read_some(src, 0, head, sizeof head, &n, e);
	src_close(src);
	return r ? r : probe(head, n) > 0;
}

int
tensor_dcp_find(const char *dir, struct err *e)
{
	DIR *d = opendir(dir);
	if (!d)
		return err_sys(e, "cannot read the directory");
	bool meta = false, data = false;
	for (const struct dirent *f; (f = readdir(d));) {
		meta = meta || !strcmp(f->d_name, ".metadata");
		data = data || tensor_dcp_is_data(f->d_name);
	}
	int r = meta ? probe_metadata(dirfd(d), e) : 0;
	closedir(d);
	if (meta || !data)
		return r;
	return err_set(e, SE_ETRUNC,
	    "a distributed checkpoint without "
	    ".metadata: the save did not finish");
}

/* ---- the parts of the pickle ----------------------------------------------
 */

/* An object's attributes; NULL if it is not of that class. */
static const struct pickle_node *
attributes(const struct pickle_node *n, const char *cls)
{
	if (!n || !pickle_is_call(n, cls))
		return NULL;
	const struct pickle_node *s = n->call->state;
	return s && s->kind == PICKLE_DICT ? s : NULL;
}

/* A torch.Size or a tuple; not more than a tensor may have. */
static int
sizes(struct dcp *d, const struct pickle_node *n, uint64_t **out,
    unsigned *count, struct err *e)
{
	struct torch_walk w = { .set = d->set, .e = e };
	if (!n)
		return err_set(e, SE_EFORMAT, "expected sizes");
	return torch_ints(&w, n, "sizes", out, count);
}

static bool
get_u64(const struct pickle_node *dict, const char *key, uint64_t *out)
{
	const struct pickle_node *n = pickle_get(dict, key);
	if (!n || n->kind != PICKLE_INT || n->i < 0)
		return false;
	*out = (uint64_t)n->i;
	return true;
}

static bool
get_str(const struct pickle_node *dict, const char *key, struct str *out)
{
	const struct pickle_node *n = pickle_get(dict, key);
	if (!n || n->kind != PICKLE_STR)
		return false;
	*out = n->s;
	return true;
}

/* Descriptions of what was done to the bytes (compression): none is read. */
static bool
is_transformed(const struct pickle_node *info)
{
	const struct pickle_node *t = pickle_get(info, "transform_descriptors");
	return t && t->kind != PICKLE_NONE && t->n;
}

static int
parse_item(const struct pickle_node *key, const struct pickle_node *value,
    struct item *it, struct err *e)
{
	const struct pickle_node *index = attributes(key, META "MetadataIndex");
	const struct pickle_node *info = attributes(
	    value, "torch.distributed.checkpoint.filesystem _StorageInfo");
	if (!index || !info || !get_str(index, "fqn", &it->fqn) ||
	    !get_str(info, "relative_path", &it->path) ||
	    !get_u64(info, "offset", &it->off) ||
	    !get_u64(info, "length", &it->len))
		return err_set(e, SE_EFORMAT,
		    "storage_data: expected a "
		    "MetadataIndex and a _StorageInfo");
	it->place = pickle_get(index, "offset");
	if (it->place && it->place->kind == PICKLE_NONE)
		it->place = NULL;
	if (!is_transformed(info))
		return 0;
	err_set(e, SE_EUNSUP, "stored with transforms (compressed?)");
	return esc_prefix(e, "item", it->fqn);
}

/* ---- files ------------------------------------------------------------------
 */

static int
open_file(struct dcp *d, struct str path, struct src **out, struct err *e)
{
	bool fresh;
	uint64_t *at = map_at(&d->files, path, &fresh);
	if (!at)
		return err_mem(e);
	if (!fresh) {
		*out = (struct src *)(uintptr_t)*at;
		return 0;
	}
	/* A name with a NUL would be another name to the system. */
	struct str name = arena_str(&d->set->arena, path);
	int r = 0;
	if (!name.p)
		r = err_mem(e);
	else if (memchr(path.p, 0, path.len))
		r = err_set(e, SE_EFORMAT, "not a plain file name");
	else
		r = src_open_at(out, d->hints->dirfd, name.p, d->hints->tmpdir,
		    SRC_PLAIN, e);
	if (!r)
		r = tensor_own(d->set, *out, e);
	if (!r && !src_is_seekable(*out))
		r = err_set(e, SE_EFORMAT, "is not a regular file");
	if (!r && d->files.n > SRC_FDS_KEPT)
		src_release_fd(*out, d->hints->dirfd, name.p);
	if (!r)
		*at = (uint64_t)(uintptr_t)*out;
	return r;
}

/* The bytes of an item; SE_ETRUNC if they are not all there. */
static int
open_item(struct dcp *d, const struct item *it, struct src **out, struct err *e)
{
	struct src *file = NULL;
	int r = open_file(d, it->path, &file, e);
	/* A file that is not there any more, or not yet: as good as cut. */
	if (r == SE_EIO) {
		r = SE_ETRUNC;
		if (e)
			e->code = r;
	}
	if (!r && !file)
		r = err_set(e, SE_ETRUNC, "cannot be read");
	uint64_t size = r ? 0 : src_size(file);
	if (!r && (it->off > size || it->len > size - it->off))
		r = err_set(e, SE_ETRUNC,
		    "need %" PRIu64 " bytes at offset "
		    "%" PRIu64 ", the file has %" PRIu64,
		    it->len, it->off, size);
	if (!r)
		r = src_open_slice(out, file, it->off, it->len, e);
	if (!r)
		r = tensor_own(d->set, *out, e);
	if (r)
		esc_prefix(e, "file", it->path);
	return r;
}

/* ---- items ------------------------------------------------------------------
 */

static bool
starts_zip(struct src *src)
{
	unsigned char head[4];
	return !src_read_at(src, 0, head, sizeof head, NULL) &&
	       !memcmp(head, "PK\3\4", sizeof head);
}

static int
add_plain(struct dcp *d, const struct item *it, struct src *src,
    const struct dtype *dtype, unsigned ndim, const uint64_t *shape,
    struct err *e)
{
	struct tensor *t = tensor_add(d->set, e);
	if (!t)
		return e ? e->code : SE_ENOMEM;
	t->name = arena_str(&d->set->arena, it->fqn);
	t->dtype = dtype;
	t->ndim = ndim;
	t->shape = shape;
	t->src = src;
	t->limit = it->len;
	return t->name.p ? 0 : err_mem(e);
}

/* An object: a torch.save file, or bytes we do not look into. */
static int
add_bytes(struct dcp *d, const struct item *it, struct err *e)
{
	struct src *src = NULL;
	int r = open_item(d, it, &src, e);
	if (r)
		return r;
	if (starts_zip(src))
		return torch_open_zip(d->set, src, it->fqn, e);
	uint64_t *shape = arena_alloc(&d->set->arena, sizeof *shape);
	if (!shape)
		return err_mem(e);
	*shape = it->len;
	return add_plain(d, it, src, dtype_find(STR_LIT("bytes")), 1, shape, e);
}

/* What .metadata says about a piece of a tensor. */
struct piece {
	unsigned ndim;
	uint64_t *global, *offset, *shape;
	const struct dtype *dtype; /* NULL: not said in a way we know */
};

static bool
same_sizes(const uint64_t *a, const uint64_t *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (a[i] != b[i])
			return false;
	return true;
}

/* (dtype, layout, ...) as a tuple, or attributes. */
static const struct dtype *
dtype_of(struct dcp *d, const struct pickle_node *properties)
{
	const struct pickle_node *s =
	    properties && properties->kind == PICKLE_CALL
		? properties->call->state
		: NULL;
	if (s && s->kind == PICKLE_TUPLE && s->n)
		return torch_dtype(&d->set->arena, s->item[0]);
	return torch_dtype(&d->set->arena, pickle_get(s, "dtype"));
}

static int
parse_chunk(struct dcp *d, const struct pickle_node *chunk, struct piece *p,
    struct err *e)
{
	unsigned no, ns;
	const struct pickle_node *c =
	    attributes(chunk, META "ChunkStorageMetadata");
	int r = sizes(d, pickle_get(c, "offsets"), &p->offset, &no, e);
	if (!r)
		r = sizes(d, pickle_get(c, "sizes"), &p->shape, &ns, e);
	if (!r && (no != p->ndim || ns != p->ndim))
		r = err_set(e, SE_EFORMAT,
		    "a chunk of %u dimensions in a "
		    "tensor of %u",
		    no, p->ndim);
	return r;
}

/* "name, NUL, offsets": what there is one item of. */
static uint64_t *
place(struct dcp *d, struct str fqn, const uint64_t *offset, unsigned n,
    bool *fresh)
{
	struct buf b = { 0 };
	buf_str(&b, fqn);
	buf_putc(&b, 0);
	for (unsigned i = 0; i < n; i++)
		buf_printf(&b, "%" PRIu64 ",", offset[i]);
	uint64_t *at = NULL;
	if (!b.failed && !fresh)
		at = map_get(&d->places, buf_view(&b));
	if (!b.failed && fresh) {
		struct str key = arena_str(&d->set->arena, buf_view(&b));
		at = key.p ? map_at(&d->places, key, fresh) : NULL;
	}
	buf_free(&b);
	return at;
}

/* The chunk at the item's offset; without one there is one chunk. */
static int
find_piece(struct dcp *d, const struct pickle_node *meta, const struct item *it,
    struct piece *p, struct err *e)
{
	uint64_t *offset = NULL;
	unsigned n = 0;
	const struct pickle_node *chunks = pickle_get(meta, "chunks");
	int r = sizes(d, pickle_get(meta, "size"), &p->global, &p->ndim, e);
	if (!r && it->place)
		r = sizes(d, it->place, &offset, &n, e);
	if (!r && !offset && chunks->n == 1) {
		r = parse_chunk(d, chunks->item[0], p, e);
		offset = p->offset;
		n = p->ndim;
	}
	if (r)
		return r;
	uint64_t *at = offset ? place(d, it->fqn, offset, n, NULL) : NULL;
	if (!at)
		return err_set(e, SE_EFORMAT, "no chunk at the item's offset");
	if (*at == USED)
		return err_set(e, SE_EFORMAT, "stored twice");
	r = parse_chunk(d, (const struct pickle_node *)(uintptr_t)*at, p, e);
	*at = USED;
	return r;
}

static int
check_piece(const struct piece *p, struct err *e)
{
	for (unsigned i = 0; i < p->ndim; i++)
		if (p->offset[i] > p->global[i] ||
		    p->shape[i] > p->global[i] - p->offset[i])
			return err_set(e, SE_EFORMAT,
			    "a chunk of %" PRIu64 " from %" PRIu64
			    " in a dimension of %" PRIu64,
			    p->shape[i], p->offset[i], p->global[i]);
	return 0;
}

/* The tensor read from the item must be the chunk that .metadata describes. */
static int
check_tensor(struct dcp *d, size_t before, const struct piece *p, struct err *e)
{
	const struct tensor *t = &d->set->t[before];
	if (d->set->n != before + 1 || t->flags & TENSOR_SCALAR)
		return err_set(e, SE_EFORMAT,
		    "expected one tensor in the "
		    "item");
	if (t->ndim != p->ndim || !same_sizes(t->shape, p->shape, p->ndim))
		return err_set(e, SE_EFORMAT,
		    "the tensor in the item has "
		    "another shape than .metadata says");
	if (p->dtype && strcmp(p->dtype->name, t->dtype->name))
		return err_set(e, SE_EFORMAT,
		    "the tensor in the item is "
		    "%s, .metadata says %s",
		    t->dtype->name, p->dtype->name);
	return 0;
}

static int
add_piece(
    struct dcp *d, const struct item *it, const struct piece *p, struct err *e)
{
	struct src *src = NULL;
	size_t before = d->set->n;
	int r = open_item(d, it, &src, e);
	if (r)
		return r;
	if (starts_zip(src))
		r = torch_open_zip(d->set, src, it->fqn, e);
	else if (p->dtype)
		r = add_plain(d, it, src, p->dtype, p->ndim, p->shape, e);
	else
		r = err_set(e, SE_EUNSUP, "plain bytes of an unknown dtype");
	if (!r)
		r = check_tensor(d, before, p, e);
	if (r)
		return r;
	/* A single chunk is the tensor itself, as in every other format. */
	if (same_sizes(p->shape, p->global, p->ndim))
		return 0;
	struct tensor *t = &d->set->t[before];
	t->flags |= TENSOR_CHUNK;
	t->global = p->global;
	t->offset = p->offset;
	return 0;
}

static int
add_object(struct dcp *d, const struct item *it, struct err *e)
{
	bool fresh;
	uint64_t *at = place(d, it->fqn, NULL, 0, &fresh);
	if (!at)
		return err_mem(e);
	if (!fresh)
		return err_set(e, SE_EFORMAT, "stored twice");
	return add_bytes(d, it, e);
}

static int
add_item(struct dcp *d, const struct item *it, struct err *e)
{
	const uint64_t *at = map_get(&d->fqn, it->fqn);
	const struct pickle_node *m = at ? d->state->item[*at - 1] : NULL;
	if (!m)
		return err_set(e, SE_EFORMAT, "is not in state_dict_metadata");
	d->found++;
	if (pickle_is_call(m, META "BytesStorageMetadata"))
		return add_object(d, it, e);
	const struct pickle_node *meta =
	    attributes(m, META "TensorStorageMetadata");
	struct piece p = { 0 };
	if (!meta)
		return err_set(e, SE_EUNSUP,
		    "expected TensorStorageMetadata "
		    "or BytesStorageMetadata");
	p.dtype = dtype_of(d, pickle_get(meta, "properties"));
	int r = find_piece(d, meta, it, &p, e);
	if (!r)
		r = check_piece(&p, e);
	return r ? r : add_piece(d, it, &p, e);
}

/* ---- the whole --------------------------------------------------------------
 */

static int
index_chunks(struct dcp *d, struct str fqn, const struct pickle_node *meta,
    struct err *e)
{
	const struct pickle_node *chunks = pickle_get(meta, "chunks");
	struct piece p = { 0 };
	int r = sizes(d, pickle_get(meta, "size"), &p.global, &p.ndim, e);
	if (!r && (!chunks || chunks->kind != PICKLE_LIST || !chunks->n))
		r = err_set(e, SE_EFORMAT, "expected a list of chunks");
	for (uint32_t i = 0; !r && i < chunks->n; i++) {
		bool fresh = true;
		r = parse_chunk(d, chunks->item[i], &p, e);
		uint64_t *at =
		    r ? NULL : place(d, fqn, p.offset, p.ndim, &fresh);
		if (!r && !at)
			r = err_mem(e);
		if (!r && !fresh)
			r = err_set(e, SE_EFORMAT, "two chunks at one offset");
		if (!r)
			*at = (uint64_t)(uintptr_t)chunks->item[i];
	}
	d->wanted += r ? 0 : chunks->n;
	return r;
}

static int
index_state(struct dcp *d, struct err *e)
{
	const struct pickle_node *s = d->state;
	for (uint32_t i = 0; i + 1 < s->n; i += 2) {
		bool fresh;
		const struct pickle_node *key = s->item[i];
		if (key->kind != PICKLE_STR)
			return err_set(e, SE_EFORMAT,
			    "state_dict_metadata: "
			    "expected names as keys");
		uint64_t *at = map_at(&d->fqn, key->s, &fresh);
		if (!at)
			return err_mem(e);
		*at = i + 2;
		const struct pickle_node *meta =
		    attributes(s->item[i + 1], META "TensorStorageMetadata");
		int r = meta ? index_chunks(d, key->s, meta, e) : 0;
		if (r || !fresh) {
			r = r ? r : err_set(e, SE_EFORMAT, "described twice");
			return esc_prefix(e, "item", key->s);
		}
		d->wanted += !meta;
	}
	return 0;
}

/*
 * An item that is cut off is left out, the rest is read: what is whole has
 * its digests, and the answer is still SE_ETRUNC.
 */
static int
add_items(struct dcp *d, const struct pickle_node *data, struct err *e)
{
	for (uint32_t i = 0; i + 1 < data->n; i += 2) {
		struct item it = { 0 };
		struct err one = { 0 };
		size_t before = d->set->n;
		int r = parse_item(data->item[i], data->item[i + 1], &it, e);
		if (r)
			return r;
		r = add_item(d, &it, &one);
		if (!r)
			continue;
		esc_prefix(&one, "item", it.fqn);
		if (r != SE_ETRUNC)
			return err_set(e, r, "%s", one.msg);
		d->set->n = before;
		if (!d->cut.code)
			d->cut = one;
	}
	if (d->cut.code)
		return err_set(e, d->cut.code, "%s", d->cut.msg);
	if (d->found != d->wanted)
		return err_set(e, SE_ETRUNC,
		    "%" PRIu64 " parts of tensors are "
		    "in storage_data, .metadata describes %" PRIu64,
		    d->found, d->wanted);
	return 0;
}

static int
walk_metadata(struct dcp *d, struct err *e)
{
	const struct pickle_node *m = attributes(d->p.root, META "Metadata");
	struct pickle_node *state = pickle_get(m, "state_dict_metadata");
	const struct pickle_node *data = pickle_get(m, "storage_data");
	if (!state || state->kind != PICKLE_DICT || !data ||
	    data->kind != PICKLE_DICT)
		return err_set(e, SE_EUNSUP,
		    "expected Metadata with "
		    "state_dict_metadata and storage_data");
	d->state = state;
	int r = index_state(d, e);
	return r ? r : add_items(d, data, e);
}

static int
open_set(struct tensor_set *set, struct src *src,
    const struct tensor_hints *hints, struct err *e)
{
	struct dcp d = { .set = set, .hints = hints };
	uint64_t size = src_size(src);
	if (hints->dirfd < 0)
		return err_set(e, SE_EINVAL,
		    ".metadata of a distributed "
		    "checkpoint: name its directory");
	if (size > PICKLE_SIZE_MAX)
		return err_set(
		    e, SE_ELIMIT, ".metadata of %" PRIu64 " bytes", size);
	char *p = arena_alloc(&set->arena, (size_t)size);
	if (!p)
		return err_mem(e);
	int r = src_read_at(src, 0, p, (size_t)size, e);
	if (!r)
		r = pickle_load(&d.p, p, (size_t)size, e);
	set->partial = !r;
	if (!r)
		r = walk_metadata(&d, e);
	/* Of .metadata; how much the data files lack is in the message. */
	set->end = r ? 0 : d.p.len;
	pickle_free(&d.p);
	map_free(&d.fqn);
	map_free(&d.files);
	map_free(&d.places);
	return r;
}

const struct tensor_format tensor_dcp = {
	.name = "dcp",
	.what = "PyTorch distributed checkpoint (.metadata)",
	.probe = probe,
	.open = open_set,
	.random = true,
	.selfends = true,
};
