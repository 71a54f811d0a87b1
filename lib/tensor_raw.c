/*
 * Files that do not say what is in them: elements of a type the user names,
 * or plain bytes, whole or in blocks.
 */
#include <stdio.h>

#include "tensor_formats.h"

enum { CHUNK_BATCH = 64 };

static int
raw_open(struct tensor_set *set, struct src *src,
    const struct tensor_hints *hints, struct err *e)
{
	if (!hints->dtype)
		return err_set(e, SE_EINVAL, "raw data needs an element type");
	struct tensor *t = tensor_add(set, e);
	if (!t)
		return SE_ENOMEM;
	t->dtype = hints->dtype;
	t->off = hints->skip;
	t->limit = SRC_UNKNOWN;
	set->end = SRC_UNKNOWN;
	if (!hints->shape)
		return tensor_open_end(set, t, src, e);

	size_t n = hints->ndim;
	uint64_t *shape = arena_array(&set->arena, n, sizeof *shape);
	if (!shape)
		return err_mem(e);
	memcpy(shape, hints->shape, n * sizeof *shape);
	t->src = src;
	t->ndim = hints->ndim;
	t->shape = shape;
	/* A size that overflows is refused for the entry itself. */
	uint64_t count = 1, bytes;
	for (size_t i = 0; i < n; i++)
		count *= shape[i];
	if (dtype_bytes(t->dtype, count, &bytes))
		set->end = t->off + bytes;
	return 0;
}

static int
bytes_open(struct tensor_set *set, struct src *src,
    const struct tensor_hints *hints, struct err *e)
{
	struct tensor *t = tensor_add(set, e);
	if (!t)
		return SE_ENOMEM;
	t->dtype = dtype_find(STR_LIT("bytes"));
	t->off = hints->skip;
	t->limit = SRC_UNKNOWN;
	return tensor_open_end(set, t, src, e);
}

struct chunks {
	uint64_t size, off, index;
};

static int
chunks_open(struct tensor_set *set, struct src *src,
    const struct tensor_hints *hints, struct err *e)
{
	struct chunks *c = arena_alloc(&set->arena, sizeof *c);
	if (!c)
		return err_mem(e);
	if (!hints->chunk)
		return err_set(e, SE_EINVAL, "chunks need a size");
	c->size = hints->chunk;
	c->off = hints->skip;
	set->priv = c;
	return 0;
}

/* Is there another block? An empty input still has one, of no bytes. */
static int
more_chunks(
    struct tensor_set *set, const struct chunks *c, bool *more, struct err *e)
{
	uint64_t size = src_size(set->src);
	unsigned char byte;
	size_t n = 1;
	int r = 0;
	if (size == SRC_UNKNOWN)
		r = src_read_some(set->src, c->off, &byte, 1, &n, e);
	else
		n = c->off < size;
	*more = n > 0 || c->index == 0;
	return r;
}

static int
add_chunk(struct tensor_set *set, struct chunks *c, struct err *e)
{
	struct tensor *t = tensor_add(set, e);
	if (!t)
		return SE_ENOMEM;
	char name[24];
	int n = snprintf(name, sizeof name, "%ju", (uintmax_t)c->index++);
	t->name = arena_str(&set->batch, (struct str){ name, (size_t)n });
	if (!t->name.p)
		return err_mem(e);
	t->dtype = dtype_find(STR_LIT("bytes"));
	t->off = c->off;
	t->limit = c->size;
	c->off =
	    c->size < SRC_UNKNOWN - c->off ? c->off + c->size : SRC_UNKNOWN;
	return tensor_open_end(set, t, set->src, e);
}

/* One at a time from a pipe: the end is only known once it was read. */
static int
chunks_next(struct tensor_set *set, struct err *e)
{
	struct chunks *c = set->priv;
	size_t want = src_size(set->src) == SRC_UNKNOWN ? 1 : CHUNK_BATCH;
	while (set->n < want) {
		bool more;
		int r = more_chunks(set, c, &more, e);
		if (r || !more)
			return r;
		r = add_chunk(set, c, e);
		if (r)
			return r;
	}
	return 0;
}

const struct tensor_format tensor_raw = {
	.name = "raw",
	.what = "plain elements, with --dtype and --shape",
	.open = raw_open,
	.selfends = true,
};

const struct tensor_format tensor_bytes = {
	.name = "bytes",
	.what = "any file as one tensor of bytes",
	.open = bytes_open,
};

const struct tensor_format tensor_chunks = {
	.name = "chunks",
	.what = "any file in blocks of --chunk bytes",
	.open = chunks_open,
	.next = chunks_next,
};
