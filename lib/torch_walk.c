/*
 * From the graph of a pickle to entries: see torch.h.
 *
 * An entry's name is the way to it: keys of dicts and indexes of lists joined
 * by dots. A key with dots of its own stays as it is, so that a state dict
 * has the names it has everywhere else; only where two ways give the same
 * name the later one gets quotes around keys that could be misread.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "esc.h"
#include "num.h"
#include "torch.h"

enum {
	STR_SHOWN = 1024, /* longer strings become tensors of bytes */
	BYTES_SHOWN = 64,
};

struct torch_part {
	size_t start; /* in path, behind the dot */
	bool text;    /* a string key: may need quotes */
};

/* A container is two deep here: itself and the call that makes it. */
enum { PARTS_MAX = 2 * PICKLE_DEPTH_MAX };

/* ---- names ----------------------------------------------------------------
 */

static bool
misleading(struct str s)
{
	bool digits = s.len > 0;
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] == '.' || s.p[i] == '"')
			return true;
		digits = digits && s.p[i] >= '0' && s.p[i] <= '9';
	}
	return digits || !s.len;
}

static void
put_quoted(struct buf *b, struct str s)
{
	buf_putc(b, '"');
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] == '"' || s.p[i] == '\\')
			buf_putc(b, '\\');
		buf_putc(b, s.p[i]);
	}
	buf_putc(b, '"');
}

/* The path with quotes around string keys that look like something else. */
static struct str
quoted_name(struct torch_walk *w)
{
	struct buf b = { 0 };
	size_t first = w->depth ? w->part[0].start : w->path.len;
	buf_add(&b, w->path.p, first);
	for (unsigned i = 0; i < w->depth; i++) {
		size_t at = w->part[i].start;
		size_t end =
		    i + 1 < w->depth ? w->part[i + 1].start - 1 : w->path.len;
		struct str s = { w->path.p + at, end - at };
		if (i)
			buf_putc(&b, '.');
		if (w->part[i].text && misleading(s))
			put_quoted(&b, s);
		else
			buf_str(&b, s);
	}
	struct str name =
	    b.failed ? STR_NULL : arena_str(&w->set->arena, buf_view(&b));
	buf_free(&b);
	return name;
}

static int
unique_name(struct torch_walk *w, struct str *out)
{
	if (w->path.len > TENSOR_NAME_MAX)
		return err_set(w->e, SE_ELIMIT, "a name of more than %u bytes",
		    TENSOR_NAME_MAX);
	bool fresh = false;
	struct str name = arena_str(&w->set->arena, buf_view(&w->path));
	if (w->path.failed || !name.p || !map_at(&w->names, name, &fresh))
		return err_mem(w->e);
	if (!fresh) {
		name = quoted_name(w);
		if (!name.p || !map_at(&w->names, name, &fresh))
			return err_mem(w->e);
	}
	if (!fresh) {
		int r = err_set(w->e, SE_EFORMAT, "appears twice");
		esc_prefix(w->e, "tensor", name);
		return r;
	}
	*out = name;
	return 0;
}

int
torch_add(struct torch_walk *w, struct tensor **out)
{
	struct str name;
	int r = unique_name(w, &name);
	if (r)
		return r;
	*out = tensor_add(w->set, w->e);
	if (!*out)
		return w->e ? w->e->code : SE_ENOMEM;
	(*out)->name = name;
	return 0;
}

/* ---- leaves ---------------------------------------------------------------
 */

int
torch_add_text(struct torch_walk *w, const char *vtype, struct str value)
{
	struct tensor *t;
	int r = torch_add(w, &t);
	if (r)
		return r;
	t->flags = TENSOR_SCALAR;
	t->vtype = str_c(vtype); /* always a literal */
	t->value = arena_str(&w->set->arena, value);
	return t->value.p ? 0 : err_mem(w->e);
}

/* Bytes of the pickle itself are read where they are. */
int
torch_add_mem(struct torch_walk *w, struct str bytes, struct tensor **out)
{
	int r = torch_add(w, out);
	if (r)
		return r;
	struct tensor *t = *out;
	t->limit = bytes.len;
	uintptr_t p = (uintptr_t)bytes.p, mem = (uintptr_t)w->mem.p;
	if (w->memsrc && p >= mem && p - mem <= w->mem.len) {
		t->src = w->memsrc;
		t->off = p - mem;
		return 0;
	}
	r = src_open_mem(&t->src, bytes.p, bytes.len, w->e);
	return r ? r : tensor_own(w->set, t->src, w->e);
}

static int
add_long(struct torch_walk *w, struct str s)
{
	struct tensor *t;
	uint64_t *shape = arena_alloc(&w->set->arena, sizeof *shape);
	int r = shape ? torch_add_mem(w, s, &t) : err_mem(w->e);
	if (r)
		return r;
	*shape = s.len;
	t->dtype = dtype_find(STR_LIT("bytes"));
	t->ndim = 1;
	t->shape = shape;
	return 0;
}

static int
add_bytes(struct torch_walk *w, struct str s)
{
	static const char hex[] = "0123456789abcdef";
	char text[2 * BYTES_SHOWN];
	if (s.len > BYTES_SHOWN)
		return add_long(w, s);
	for (size_t i = 0; i < s.len; i++) {
		text[2 * i] = hex[(unsigned char)s.p[i] >> 4];
		text[2 * i + 1] = hex[(unsigned char)s.p[i] & 15];
	}
	return torch_add_text(w, "bytes", (struct str){ text, 2 * s.len });
}

int
torch_add_value(
    struct torch_walk *w, const char *vtype, const struct pickle_node *n)
{
	struct buf b = { 0 };
	bool ok = pickle_text(&b, n) && !b.failed;
	int r = ok ? torch_add_text(w, vtype, buf_view(&b))
		   : err_set(w->e, SE_ELIMIT,
			 "a value nested more than %d "
			 "deep or longer than %u bytes",
			 PICKLE_TEXT_DEPTH, PICKLE_TEXT_MAX);
	buf_free(&b);
	return r;
}

static int
add_leaf(struct torch_walk *w, const struct pickle_node *n)
{
	static const char *const vtypes[] = {
		[PICKLE_NONE] = "none",
		[PICKLE_BOOL] = "bool",
		[PICKLE_INT] = "i64",
		[PICKLE_LONG] = "int",
		[PICKLE_FLOAT] = "f64",
		[PICKLE_STR] = "str",
		[PICKLE_GLOBAL] = "class",
	};
	if (n->kind == PICKLE_STR && n->s.len > STR_SHOWN)
		return add_long(w, n->s);
	if (n->kind == PICKLE_GLOBAL && torch_dtype(&w->set->arena, n))
		return torch_add_value(w, "dtype", n);
	return torch_add_value(w, vtypes[n->kind], n);
}

/* ---- paths ----------------------------------------------------------------
 */

static int
enter(struct torch_walk *w, bool text)
{
	if (w->depth >= PARTS_MAX)
		return err_set(w->e, SE_ELIMIT, "nested more than %d deep",
		    PICKLE_DEPTH_MAX);
	if (w->path.len || w->depth)
		buf_putc(&w->path, '.');
	w->part[w->depth++] = (struct torch_part){ w->path.len, text };
	return 0;
}

/* Not after a failure: the path is part of the message. */
static int
leave(struct torch_walk *w, size_t len)
{
	w->depth--;
	w->path.len = len;
	return 0;
}

int
torch_walk_part(struct torch_walk *w, const char *part, struct pickle_node *n)
{
	size_t len = w->path.len;
	int r = enter(w, false);
	if (r)
		return r;
	buf_puts(&w->path, part);
	r = torch_walk_node(w, n);
	return r ? r : leave(w, len);
}

int
torch_walk_items(struct torch_walk *w, struct pickle_node *n)
{
	size_t len = w->path.len;
	int r = 0;
	for (uint32_t i = 0; !r && i < n->n; i++) {
		r = enter(w, false);
		if (r)
			return r;
		num_put_u64(&w->path, i);
		r = torch_walk_node(w, n->item[i]);
		if (!r)
			leave(w, len);
	}
	return r;
}

static int
walk_entry(
    struct torch_walk *w, struct pickle_node *key, struct pickle_node *value)
{
	size_t len = w->path.len;
	int r = enter(w, key->kind == PICKLE_STR);
	if (r)
		return r;
	if (!pickle_text(&w->path, key))
		r = err_set(w->e, SE_EUNSUP,
		    "a dict key that cannot be "
		    "written as text");
	if (!r)
		r = torch_walk_node(w, value);
	return r ? r : leave(w, len);
}

/* Python keeps the last of two equal keys; we would show both. */
static int
check_keys(struct torch_walk *w, const struct pickle_node *n)
{
	struct map ints = { 0 }, texts = { 0 };
	int r = 0;
	for (uint32_t i = 0; !r && i < n->n; i += 2) {
		const struct pickle_node *k = n->item[i];
		bool number = k->kind == PICKLE_INT || k->kind == PICKLE_BOOL;
		bool fresh = true;
		void *ok = w;
		if (number)
			ok = map_at(&ints,
			    (struct str){ (const char *)&k->i, sizeof k->i },
			    &fresh);
		else if (k->kind == PICKLE_STR)
			ok = map_at(&texts, k->s, &fresh);
		if (!ok) {
			r = err_mem(w->e);
		} else if (!fresh) {
			r = err_set(w->e, SE_EFORMAT, "twice in one dict");
			if (!number)
				esc_prefix(w->e, "key", k->s);
		}
	}
	map_free(&ints);
	map_free(&texts);
	return r;
}

int
torch_walk_dict(struct torch_walk *w, struct pickle_node *n)
{
	int r = check_keys(w, n);
	for (uint32_t i = 0; !r && i + 1 < n->n; i += 2)
		r = walk_entry(w, n->item[i], n->item[i + 1]);
	return r;
}

/* ---- nodes ----------------------------------------------------------------
 */

static bool
only_values(const struct pickle_node *set)
{
	for (uint32_t i = 0; i < set->n; i++)
		if (set->item[i]->kind > PICKLE_BYTES)
			return false;
	return true;
}

/* An empty container is seen too, but the root needs no name for that. */
static int
walk_container(struct torch_walk *w, struct pickle_node *n)
{
	static const char *const vtypes[] = {
		[PICKLE_TUPLE] = "tuple",
		[PICKLE_LIST] = "list",
		[PICKLE_SET] = "set",
		[PICKLE_DICT] = "dict",
	};
	if (!n->n)
		return w->depth
			   ? torch_add_text(w, vtypes[n->kind], STR_LIT(""))
			   : 0;
	if (n->kind == PICKLE_DICT)
		return torch_walk_dict(w, n);
	if (n->kind == PICKLE_SET && only_values(n))
		return torch_add_value(w, "set", n);
	return torch_walk_items(w, n);
}

static int
walk_inside(struct torch_walk *w, struct pickle_node *n)
{
	struct str bytes;
	const struct pickle_node *set = pickle_set(n);
	if (pickle_bytes(n, &w->set->arena, &bytes))
		return add_bytes(w, bytes);
	if (set && only_values(set))
		return torch_add_value(w, "set", n);
	if (n->kind == PICKLE_CALL)
		return torch_call(w, n);
	if (n->kind == PICKLE_PERSID)
		return torch_bare_storage(w, n);
	return walk_container(w, n);
}

int
torch_walk_node(struct torch_walk *w, struct pickle_node *n)
{
	/*
	 * Shared parts are walked once for each way to them, so a few bytes
	 * can ask for 2^60 steps.
	 */
	if (++w->steps > w->steps_max)
		return err_set(w->e, SE_ELIMIT,
		    "shared containers unfold to "
		    "more than %zu values",
		    w->steps_max);
	if (n->kind <= PICKLE_GLOBAL && n->kind != PICKLE_BYTES)
		return add_leaf(w, n);
	if (n->busy)
		return torch_add_text(w, "cycle", STR_LIT(""));
	if (w->level >= PARTS_MAX)
		return err_set(
		    w->e, SE_ELIMIT, "nested more than %d deep", PARTS_MAX);
	n->busy = 1;
	w->level++;
	int r = walk_inside(w, n);
	w->level--;
	n->busy = 0;
	return r;
}

int
torch_walk(struct torch_walk *w, struct pickle_node *root, struct str prefix,
    struct err *e)
{
	w->e = e;
	w->depth = w->level = 0;
	w->path.len = 0;
	if (!w->part)
		w->part = calloc(PARTS_MAX, sizeof *w->part);
	if (!w->part)
		return err_mem(e);
	buf_str(&w->path, prefix);
	int r = torch_walk_node(w, root);
	if (!r || !w->path.len)
		return r;
	esc_prefix(e, "at", buf_view(&w->path));
	return r;
}

void
torch_walk_free(struct torch_walk *w)
{
	buf_free(&w->path);
	map_free(&w->names);
	free(w->part);
}
