/*
 * NumPy archives (.npz): a zip whose members are .npy files.
 * Source: numpy/lib/npyio.py (savez). Member x.npy is the array x.
 *
 * Content always goes through the zip reader, stored or deflated, so that
 * its CRC-32 is checked.
 */
#include "cur.h"
#include "esc.h"
#include "tensor_formats.h"
#include "zip.h"

/* One member as a forward source. */
struct member {
	const struct zip *zip;
	const struct zip_member *m;
	struct zip_reader *r; /* NULL: not reading */
	uint64_t pos;         /* of r */
};

struct npz {
	struct zip zip;
	struct member *member;
	size_t n;
};

static int
probe(const unsigned char *head, size_t len)
{
	struct cur c = cur_over(head, len);
	if (len < 4 || memcmp(head, "PK\3\4", 4))
		return 0;
	/* APPNOTE 4.3.7: the length of the name at 26, the name at 30 */
	cur_take(&c, 26);
	size_t n = cur_le16(&c);
	cur_take(&c, 2);
	return str_ends(cur_str(&c, n), ".npy") ? 95 : 0;
}

static void
stop(struct member *mb)
{
	zip_reader_free(mb->r);
	mb->r = NULL;
}

/* An idle member costs nothing: the reader goes as soon as it is done. */
static int
read_member(
    void *user, uint64_t off, void *to, size_t len, size_t *got, struct err *e)
{
	struct member *mb = user;
	*got = 0;
	if (off >= mb->m->size || !len)
		return 0;
	int r = 0;
	if (!mb->r || off < mb->pos) {
		stop(mb);
		mb->pos = 0;
		r = zip_reader_new(&mb->r, mb->zip, mb->m, e);
	}
	while (!r && mb->pos < off) {
		uint64_t gap = off - mb->pos;
		size_t n;
		r = zip_read(mb->r, to, gap < len ? (size_t)gap : len, &n, e);
		mb->pos += n;
		if (!r && !n)
			r = err_set(e, SE_ETRUNC, "member ends early");
	}
	if (!r)
		r = zip_read(mb->r, to, len, got, e);
	mb->pos += *got;
	if (r || mb->pos >= mb->m->size)
		stop(mb);
	return r;
}

static int
add_array(struct tensor_set *set, struct src *src, const struct zip_member *m,
    const struct tensor_hints *hints, struct err *e)
{
	size_t i = set->n;
	int r = tensor_npy.open(set, src, hints, e);
	if (r)
		return r;
	/* The archive may be closed before the set. */
	struct str name = { m->name.p, m->name.len - 4 };
	set->t[i].name = arena_str(&set->arena, name);
	if (!set->t[i].name.p)
		return err_mem(e);
	if (set->end < m->size)
		return err_set(e, SE_EFORMAT, "%ju bytes follow the npy data",
		    (uintmax_t)(m->size - set->end));
	return 0;
}

/* What is no array is bytes. */
static int
add_other(struct tensor_set *set, struct src *src, const struct zip_member *m,
    struct err *e)
{
	struct tensor *t = tensor_add(set, e);
	if (!t)
		return SE_ENOMEM;
	t->name = arena_str(&set->arena, m->name);
	if (!t->name.p)
		return err_mem(e);
	t->dtype = dtype_find(STR_LIT("bytes"));
	t->limit = SRC_UNKNOWN;
	return tensor_open_end(set, t, src, e);
}

static int
add_member(struct tensor_set *set, struct member *mb,
    const struct tensor_hints *hints, struct err *e)
{
	struct src *src;
	int r =
	    src_open_fn(&src, read_member, mb, mb->m->size, hints->tmpdir, e);
	if (!r)
		r = tensor_own(set, src, e);
	if (!r)
		r = str_ends(mb->m->name, ".npy")
			? add_array(set, src, mb->m, hints, e)
			: add_other(set, src, mb->m, e);
	stop(mb);
	if (r)
		esc_prefix(e, "member", mb->m->name);
	return r;
}

static int
open_set(struct tensor_set *set, struct src *src,
    const struct tensor_hints *hints, struct err *e)
{
	struct npz *z = arena_alloc(&set->arena, sizeof *z);
	if (!z)
		return err_mem(e);
	set->priv = z;
	int r = zip_open(&z->zip, src, e);
	if (r)
		return r;
	z->member = arena_array(&set->arena, z->zip.n, sizeof *z->member);
	if (!z->member)
		return err_mem(e);
	for (size_t i = 0; !r && i < z->zip.n; i++) {
		struct member *mb = &z->member[z->n++];
		mb->zip = &z->zip;
		mb->m = &z->zip.m[i];
		r = add_member(set, mb, hints, e);
	}
	set->end = src_size(src);
	return r;
}

static void
close_set(struct tensor_set *set)
{
	struct npz *z = set->priv;
	if (!z)
		return;
	for (size_t i = 0; i < z->n; i++)
		stop(&z->member[i]);
	zip_close(&z->zip);
}

const struct tensor_format tensor_npz = {
	.name = "npz",
	.what = "NumPy archive",
	.probe = probe,
	.open = open_set,
	.close = close_set,
	.random = true,
};
