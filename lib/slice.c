/* The part of a tensor that counts: see slice.h. */
#include "slice.h"

#include <inttypes.h>

#include "glob.h"
#include "num.h"

static int
parse_range(struct slice_range *r, struct str word, struct err *e)
{
	struct str first, rest = word;
	str_cut(&rest, ':', &first);
	if (!rest.p)
		return err_set(e, SE_EINVAL, "expected a range like 0:10");
	*r = (struct slice_range){ 0, SRC_UNKNOWN, !first.len && !rest.len };
	int err = 0;
	if (first.len)
		err = num_u64(first, 0, INT64_MAX, &r->from, e);
	if (!err && rest.len)
		err = num_u64(rest, 0, INT64_MAX, &r->to, e);
	if (!err && r->to < r->from)
		err = err_set(e, SE_EINVAL, "a range ends before it begins");
	return err;
}

int
slice_parse(struct slice *s, struct str text, struct err *e)
{
	size_t open = text.len;
	while (open > 0 && text.p[open - 1] != '[')
		open--;
	if (open < 2 || text.p[text.len - 1] != ']' || open + 1 == text.len)
		return err_set(
		    e, SE_EINVAL, "expected NAME[a:b] or NAME[a:b,c:d]");
	*s = (struct slice){ .name = { text.p, open - 1 } };
	struct str rest = { text.p + open, text.len - open - 1 }, word;
	while (str_cut(&rest, ',', &word)) {
		if (s->n == TENSOR_NDIM_MAX)
			return err_set(e, SE_ELIMIT, "more than %d dimensions",
			    TENSOR_NDIM_MAX);
		int r = parse_range(&s->range[s->n++], word, e);
		if (r)
			return r;
	}
	return 0;
}

bool
slice_matches(const struct slice *s, struct str name)
{
	return glob_match(s->name, name);
}

/* Strides of C order, in elements. */
static void
c_order(const struct tensor *t, int64_t *stride)
{
	uint64_t step = 1;
	for (unsigned i = t->ndim; i-- > 0;) {
		stride[i] = (int64_t)step;
		step *= t->shape[i];
	}
}

/* Behind a reader there are no offsets but those it is asked for. */
struct part {
	const struct tensor *whole;
	uint64_t base;
};

static int
read_part(
    const struct tensor *t, uint64_t off, void *to, size_t len, struct err *e)
{
	const struct part *p = t->priv;
	return p->whole->read(p->whole, p->base + off, to, len, e);
}

static int
move_start(struct tensor *view, const struct tensor *t, uint64_t skip,
    struct arena *a, struct err *e)
{
	if (!t->read) {
		view->off += skip;
		return 0;
	}
	struct part *p = arena_alloc(a, sizeof *p);
	if (!p)
		return err_mem(e);
	*p = (struct part){ t, skip };
	view->read = read_part;
	view->priv = p;
	return 0;
}

static int
check(const struct slice *s, const struct tensor *t, struct err *e)
{
	if (t->flags & TENSOR_OPENEND)
		return err_set(
		    e, SE_EUNSUP, "a slice of data whose size is not known");
	if (t->dtype->block != 1)
		return err_set(
		    e, SE_EUNSUP, "a slice of %s blocks", t->dtype->name);
	if (t->flags & TENSOR_CHUNK)
		return err_set(e, SE_EUNSUP, "a slice of a shard");
	if (s->n > t->ndim)
		return err_set(e, SE_EINVAL,
		    "a slice of %u dimensions, the tensor has %u", s->n,
		    t->ndim);
	for (unsigned i = 0; i < s->n; i++) {
		const struct slice_range *r = &s->range[i];
		uint64_t end = r->to == SRC_UNKNOWN ? r->from : r->to;
		if (end > t->shape[i])
			return err_set(e, SE_EINVAL,
			    "a slice up to %" PRIu64
			    ", dimension %u has %" PRIu64,
			    end, i, t->shape[i]);
	}
	return 0;
}

static void
put_range(struct buf *b, const struct slice_range *r, uint64_t dim)
{
	if (b->len)
		buf_putc(b, ',');
	if (!r->all)
		num_put_u64(b, r->from);
	buf_putc(b, ':');
	if (!r->all)
		num_put_u64(b, r->to == SRC_UNKNOWN ? dim : r->to);
}

int
slice_view(const struct slice *s, const struct tensor *t, struct tensor *view,
    struct arena *a, uint64_t *left, struct buf *text, struct err *e)
{
	int r = check(s, t, e);
	if (r)
		return r;
	uint64_t *shape = arena_array(a, t->ndim, sizeof *shape);
	int64_t *stride = arena_array(a, t->ndim, sizeof *stride);
	if (!shape || !stride)
		return err_mem(e);
	if (t->stride && t->ndim)
		memcpy(stride, t->stride, t->ndim * sizeof *stride);
	else
		c_order(t, stride);

	*view = *t;
	view->shape = shape;
	view->stride = stride;
	view->count = 1;
	uint64_t skip = 0;
	text->len = 0;
	for (unsigned i = 0; i < t->ndim; i++) {
		shape[i] = t->shape[i];
		if (i < s->n) {
			const struct slice_range *q = &s->range[i];
			uint64_t to = q->to == SRC_UNKNOWN ? shape[i] : q->to;
			shape[i] = to - q->from;
			skip += q->from * (uint64_t)stride[i];
			put_range(text, q, t->shape[i]);
		}
		view->count *= shape[i];
	}
	/* No overflow: all of it lies within a tensor that was checked. */
	*left = t->count - view->count;
	view->bytes = view->count * t->dtype->size;
	skip *= view->count ? t->dtype->size : 0;
	return move_start(view, t, skip, a, e);
}
