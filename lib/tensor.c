/* The table of formats, and what is checked for all of them: see tensor.h. */
#include "tensor.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "esc.h"
#include "map.h"
#include "num.h"
#include "tensor_formats.h"

/* A probe that says this much is believed without seeing more. */
enum { SURE = 90, FIRST_LOOK = 16 };

enum { NOTE_MAX = 2000 };

// clang-format off
#define ADDRESS(name) &tensor_##name,
const struct tensor_format *const tensor_formats[] = {
	TENSOR_FORMATS(ADDRESS) NULL
};
// clang-format on

const struct tensor_format *
tensor_format_find(const char *name)
{
	for (size_t i = 0; tensor_formats[i]; i++)
		if (!strcmp(tensor_formats[i]->name, name))
			return tensor_formats[i];
	return NULL;
}

static const struct tensor_format *
best(const unsigned char *head, size_t len, int *score)
{
	const struct tensor_format *found = NULL;
	*score = 0;
	for (size_t i = 0; tensor_formats[i]; i++) {
		const struct tensor_format *f = tensor_formats[i];
		int s = f->probe ? f->probe(head, len) : 0;
		if (s > *score) {
			*score = s;
			found = f;
		}
	}
	return found;
}

/*
 * A first look at a few bytes: the writer of a pipe may have sent one small
 * array and be waiting.
 */
int
tensor_format_probe(
    struct src *src, const struct tensor_format **out, struct err *e)
{
	unsigned char head[TENSOR_PROBE];
	size_t n;
	int score;
	*out = NULL;
	int r = src_read_some(src, 0, head, FIRST_LOOK, &n, e);
	if (r)
		return r;
	*out = best(head, n, &score);
	if (score >= SURE || n < FIRST_LOOK)
		return 0;
	r = src_read_some(src, 0, head, sizeof head, &n, e);
	*out = r ? NULL : best(head, n, &score);
	return r;
}

/* ---- for formats ------------------------------------------------------- */

struct tensor *
tensor_add(struct tensor_set *set, struct err *e)
{
	if (set->n >= TENSOR_MAX) {
		err_set(e, SE_ELIMIT, "more than %u entries", TENSOR_MAX);
		return NULL;
	}
	if (set->n == set->cap) {
		size_t cap = set->cap ? set->cap * 2 : 16;
		struct tensor *t = realloc(set->t, cap * sizeof *t);
		if (!t) {
			err_mem(e);
			return NULL;
		}
		set->t = t;
		set->cap = cap;
	}
	struct tensor *t = &set->t[set->n++];
	*t = (struct tensor){ 0 };
	return t;
}

int
tensor_own(struct tensor_set *set, struct src *src, struct err *e)
{
	struct src **p =
	    realloc(set->owned, (set->nowned + 1) * sizeof *set->owned);
	if (!p) {
		src_close(src);
		return err_mem(e);
	}
	set->owned = p;
	set->owned[set->nowned++] = src;
	return 0;
}

/* Notes are joined by "; ". Beyond NOTE_MAX they only say that. */
static int
append_note(struct tensor_set *set, struct str line, struct err *e)
{
	if (set->note.len > NOTE_MAX)
		return 0;
	struct buf b = { 0 };
	buf_str(&b, set->note);
	if (set->note.len)
		buf_puts(&b, "; ");
	buf_str(&b, line);
	if (b.len > NOTE_MAX)
		buf_puts(&b, "; and more");
	struct str s =
	    b.failed ? STR_NULL : arena_str(&set->arena, buf_view(&b));
	buf_free(&b);
	if (!s.p)
		return err_mem(e);
	set->note = s;
	return 0;
}

int
tensor_note(struct tensor_set *set, struct err *e, const char *fmt, ...)
{
	char line[400];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	return append_note(set, str_c(line), e);
}

int
tensor_note_name(
    struct tensor_set *set, struct str name, const char *text, struct err *e)
{
	struct err line = { 0 };
	err_set(&line, SE_EFORMAT, "%s", text);
	esc_prefix(&line, "", name);
	const char *p = line.msg;
	return append_note(set, str_c(*p == ' ' ? p + 1 : p), e);
}

int
tensor_add_scalar(struct tensor_set *set, unsigned flags, struct str name,
    struct str vtype, struct str value, struct err *e)
{
	struct arena *a = tensor_arena(set);
	struct tensor *t = tensor_add(set, e);
	if (!t)
		return SE_ENOMEM;
	t->flags = TENSOR_SCALAR | flags;
	t->name = arena_str(a, name);
	t->vtype = arena_str(a, vtype);
	t->value = arena_str(a, value);
	return t->name.p && t->vtype.p && t->value.p ? 0 : err_mem(e);
}

int
tensor_late(struct tensor_set *set, int r, struct err *e)
{
	if (r >= 0)
		return 0;
	if (!set->n)
		return r;
	err_set(&set->late, r, "%s", e ? e->msg : "");
	return 0;
}

int
tensor_open_end(
    struct tensor_set *set, struct tensor *t, struct src *src, struct err *e)
{
	uint64_t *shape = arena_alloc(tensor_arena(set), sizeof *shape);
	if (!shape)
		return err_mem(e);
	t->src = src;
	t->ndim = 1;
	t->shape = shape;
	uint64_t size = src_size(src);
	if (size == SRC_UNKNOWN) {
		*shape = SRC_UNKNOWN;
		t->flags |= TENSOR_OPENEND;
		return 0;
	}
	if (t->off > size)
		return err_set(e, SE_ETRUNC,
		    "expected %" PRIu64 " bytes to skip, the input ends "
		    "at %" PRIu64,
		    t->off, size);
	uint64_t len = size - t->off;
	len = len < t->limit ? len : t->limit;
	if (len % t->dtype->size)
		return err_set(e, SE_EFORMAT,
		    "%" PRIu64 " bytes from offset %" PRIu64
		    " are no whole number of %s elements",
		    len, t->off, t->dtype->name);
	*shape = len / t->dtype->size * t->dtype->block;
	return 0;
}

/* ---- checks of every entry --------------------------------------------- */

static int
count_elements(struct tensor *t, struct err *e)
{
	t->count = 1;
	/* A zero anywhere means none, however large the others are. */
	for (unsigned i = 0; i < t->ndim; i++)
		if (t->shape[i] == 0)
			t->count = 0;
	for (unsigned i = 0; i < t->ndim; i++)
		if (!num_mul(t->count, t->shape[i], &t->count))
			return err_set(e, SE_EFORMAT,
			    "the number of elements overflows 64 bits");
	if (!dtype_bytes(t->dtype, t->count, &t->bytes))
		return err_set(e, SE_EFORMAT, "%" PRIu64 " elements of %s: %s",
		    t->count, t->dtype->name,
		    t->count % t->dtype->block ? "no whole number of blocks"
					       : "size overflows 64 bits");
	return 0;
}

/* Bytes from the first to behind the last one used. */
static int
measure(const struct tensor *t, uint64_t *extent, struct err *e)
{
	*extent = t->bytes;
	if (!t->stride || !t->count)
		return 0;
	if (t->dtype->block != 1)
		return err_set(
		    e, SE_EFORMAT, "strides over blocks of %s", t->dtype->name);
	uint64_t last = 0, part;
	for (unsigned i = 0; i < t->ndim; i++) {
		if (t->stride[i] < 0)
			return err_set(e, SE_EFORMAT,
			    "expected strides of 0 or more, found %" PRId64,
			    t->stride[i]);
		if (!num_mul(t->shape[i] - 1, (uint64_t)t->stride[i], &part) ||
		    !num_add(last, part, &last))
			return err_set(
			    e, SE_EFORMAT, "strides overflow 64 bits");
	}
	if (!num_add(last, 1, &last) || !dtype_bytes(t->dtype, last, extent))
		return err_set(e, SE_EFORMAT, "strides overflow 64 bits");
	if (*extent && t->bytes / *extent > TENSOR_EXPAND_MAX)
		return err_set(e, SE_ELIMIT,
		    "%" PRIu64 " bytes expanded from %" PRIu64
		    ": more than %u times",
		    t->bytes, *extent, TENSOR_EXPAND_MAX);
	return 0;
}

static int
check_bounds(const struct tensor *t, uint64_t extent, bool exact, struct err *e)
{
	uint64_t end, size = t->read ? SRC_UNKNOWN : src_size(t->src);
	if (extent > t->limit || (exact && extent != t->limit))
		return err_set(e, SE_EFORMAT,
		    "shape and type need %" PRIu64
		    " bytes, the file gives them %" PRIu64,
		    extent, t->limit);
	if (!num_add(t->off, extent, &end))
		return err_set(e, SE_EFORMAT, "offset overflows 64 bits");
	if (size != SRC_UNKNOWN && end > size)
		return err_set(e, SE_ETRUNC,
		    "needs %" PRIu64 " bytes at offset %" PRIu64
		    ", the input ends at %" PRIu64,
		    extent, t->off, size);
	return 0;
}

/* Which flags make sense for which type. */
static int
check_flags(const struct tensor *t, struct err *e)
{
	unsigned kind = t->dtype->kind;
	if (t->flags & TENSOR_CONJ && kind != DTYPE_COMPLEX)
		return err_set(e, SE_EFORMAT, "conjugated %s", t->dtype->name);
	bool signs = kind == DTYPE_COMPLEX || kind == DTYPE_INT ||
		     (kind == DTYPE_FLOAT && t->dtype->size > 1);
	if (t->flags & TENSOR_NEG && !signs)
		return err_set(e, SE_EUNSUP, "negated %s", t->dtype->name);
	return 0;
}

static int
check_entry(struct tensor *t, bool exact, struct err *e)
{
	if (t->name.len > TENSOR_NAME_MAX)
		return err_set(e, SE_ELIMIT, "a name of more than %u bytes",
		    TENSOR_NAME_MAX);
	if (t->flags & TENSOR_SCALAR)
		return 0;
	assert(t->dtype && t->src && (t->shape || !t->ndim));
	if (t->ndim > TENSOR_NDIM_MAX)
		return err_set(e, SE_ELIMIT, "%u dimensions, at most %d",
		    t->ndim, TENSOR_NDIM_MAX);
	if (t->flags & TENSOR_OPENEND) {
		t->count = t->bytes = SRC_UNKNOWN;
		return 0;
	}
	uint64_t extent;
	int r = count_elements(t, e);
	if (!r)
		r = measure(t, &extent, e);
	if (!r)
		r = check_bounds(t, extent, exact, e);
	if (!r)
		r = check_flags(t, e);
	return r;
}

static bool
names_rise(const struct tensor_set *set)
{
	for (size_t i = 1; i < set->n; i++)
		if (str_order(set->t[i - 1].name, set->t[i].name) >= 0)
			return false;
	return true;
}

int
tensor_check_unique(const struct tensor_set *set, struct err *e)
{
	struct map seen = { 0 };
	int r = 0;
	/* Names that only rise, as in many files, are unique. */
	if (names_rise(set))
		return 0;
	for (size_t i = 0; !r && i < set->n; i++) {
		bool fresh;
		/* Parts of one tensor share its name; who made them looks. */
		if (set->t[i].flags & TENSOR_CHUNK)
			continue;
		if (!map_at(&seen, set->t[i].name, &fresh))
			r = err_mem(e);
		else if (!fresh) {
			r = err_set(e, SE_EFORMAT, "appears twice");
			esc_prefix(e, "tensor", set->t[i].name);
		}
	}
	map_free(&seen);
	return r;
}

/* What one wants to know about a cut file, behind the message. */
static void
add_last(const struct tensor_set *set, struct err *e)
{
	const struct tensor *last = NULL;
	for (size_t i = 0; i < set->n; i++) {
		const struct tensor *t = &set->t[i];
		if (!(t->flags & TENSOR_SCALAR) &&
		    (!last || t->off >= last->off))
			last = t;
	}
	struct buf b = { 0 };
	if (set->end && set->end != SRC_UNKNOWN)
		buf_printf(&b, "; expected %" PRIu64 " bytes in all", set->end);
	buf_puts(&b, "; last whole tensor: ");
	if (last)
		esc_put(&b, last->name);
	else
		buf_puts(&b, "none");
	size_t used = strlen(e->msg);
	snprintf(e->msg + used, sizeof e->msg - used, "%s", buf_cstr(&b));
	buf_free(&b);
}

static void
name_entry(const struct tensor *t, struct err *e)
{
	if (t->name.len)
		esc_prefix(e, "tensor", t->name);
	if (t->file.len)
		esc_prefix(e, "file", t->file);
}

/*
 * The one place where extents are judged. Entries that lie behind the end of
 * the source leave the set; the first of them is the message. Anything else
 * wrong empties it.
 */
static int
check_all(struct tensor_set *set, struct err *e)
{
	struct err one;
	int cut = 0;
	size_t kept = 0;
	for (size_t i = 0; i < set->n; i++) {
		struct tensor *t = &set->t[i];
		int r = check_entry(t, set->format->exact, &one);
		if (r && r != SE_ETRUNC) {
			set->n = 0;
			err_set(e, r, "%s", one.msg);
			name_entry(t, e);
			return r;
		}
		if (!r) {
			set->t[kept++] = *t;
		} else if (!cut) {
			cut = err_set(e, r, "%s", one.msg);
			name_entry(t, e);
		}
	}
	set->n = kept;
	if (cut && e)
		add_last(set, e);
	return cut;
}

/* ---- opening and reading ----------------------------------------------- */

/* What the user's hints make of a file that has no magic. */
static int
plain_name(struct src *src, const struct tensor_hints *hints, const char **name,
    struct err *e)
{
	unsigned char head[TENSOR_PROBE];
	size_t n;
	*name = hints->dtype ? "raw" : hints->chunk ? "chunks" : "bytes";
	if (!hints->step.len || hints->dtype || hints->chunk)
		return 0;
	int r = src_read_some(src, 0, head, sizeof head, &n, e);
	if (!r)
		*name = tensor_table_sniff(head, n);
	return r;
}

static int
choose(struct tensor_set *set, struct src *src,
    const struct tensor_hints *hints, struct err *e)
{
	const char *name = hints->format;
	if (!name) {
		int r = tensor_format_probe(src, &set->format, e);
		if (r || set->format)
			return r;
		r = plain_name(src, hints, &name, e);
		if (r)
			return r;
	}
	set->format = tensor_format_find(name);
	return set->format
		   ? 0
		   : err_set(e, SE_EINVAL, "unknown format \"%s\"", name);
}

static int
open_format(struct tensor_set *set, struct src *src,
    const struct tensor_hints *hints, struct err *e)
{
	int r = set->format->random ? src_seekable(src, e) : 0;
	if (!r)
		r = set->format->open(set, src, hints, e);
	if (r && !(r == SE_ETRUNC && set->partial)) {
		set->n = 0;
		return r;
	}
	int cut = r;
	r = check_all(set, cut ? NULL : e);
	if (!r)
		r = tensor_check_unique(set, cut ? NULL : e);
	if (r && r != SE_ETRUNC)
		set->n = 0;
	if (cut && e)
		add_last(set, e);
	return cut ? cut : r;
}

static int
check_tail(const struct tensor_set *set, struct err *e)
{
	uint64_t size = src_size(set->src);
	if (set->follow || !set->format->selfends || size == SRC_UNKNOWN ||
	    size <= set->end)
		return 0;
	return err_set(e, SE_EFORMAT,
	    "%" PRIu64 " bytes follow the end of the %s data at offset "
	    "%" PRIu64,
	    size - set->end, set->format->name, set->end);
}

int
tensor_open(struct tensor_set *set, struct src *src,
    const struct tensor_hints *hints, struct err *e)
{
	static const struct tensor_hints none = { .dirfd = -1 };
	*set = (struct tensor_set){ .src = src };
	set->hints = hints ? hints : &none;
	set->follow = set->hints->follow;
	int r = choose(set, src, set->hints, e);
	if (!r)
		r = open_format(set, src, set->hints, e);
	if (!r)
		r = check_tail(set, e);
	set->hints = NULL;
	return r;
}

int
tensor_next(struct tensor_set *set, struct err *e)
{
	if (!tensor_is_stream(set)) {
		int fresh = !set->given;
		set->given = true;
		return fresh;
	}
	arena_free(&set->batch);
	set->n = 0;
	if (set->late.code)
		return err_set(e, set->late.code, "%s", set->late.msg);
	int r = set->format->next(set, e);
	if (!r)
		r = check_all(set, e);
	if (r) {
		set->n = 0;
		return r;
	}
	return set->n > 0;
}

int
tensor_finish(struct tensor_set *set, struct err *e)
{
	if (set->follow || !set->format->selfends)
		return 0;
	unsigned char byte;
	size_t n;
	int r = src_read_some(set->src, set->end, &byte, 1, &n, e);
	if (r || !n)
		return r;
	return err_set(e, SE_EFORMAT,
	    "more bytes follow the end of the %s data at offset %" PRIu64,
	    set->format->name, set->end);
}

/* The format's own memory stays: names may lie in it. */
void
tensor_release(struct tensor_set *set)
{
	for (size_t i = set->nowned; i > 0; i--)
		src_close(set->owned[i - 1]);
	free(set->owned);
	set->owned = NULL;
	set->nowned = 0;
}

void
tensor_close(struct tensor_set *set)
{
	if (set->format && set->format->close)
		set->format->close(set);
	tensor_release(set);
	free(set->t);
	arena_free(&set->batch);
	arena_free(&set->arena);
	*set = (struct tensor_set){ 0 };
}
