/*
 * PyTorch checkpoints: the zip form, TorchScript's variant of it, and the
 * form before version 1.6. The oldest form, a tar file, is recognised and
 * refused.
 * Sources: torch/serialization.py (_save, _legacy_save, _legacy_load),
 * caffe2/serialize/inline_container.cc.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cur.h"
#include "esc.h"
#include "num.h"
#include "tensor_formats.h"
#include "torch.h"

enum { TAR_MAGIC = 257 }; /* POSIX.1-2008 pax, ustar header block */

/* 0x1950a86a20f9469cfc6c, as LONG1 and as decimal text. */
static const char magic_long[] = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8"
				 "\x50\x19";
static const char magic_text[] = "L119547037146038801333356L\n";

/* ---- by their first bytes ------------------------------------------------ */

static bool
contains(const unsigned char *p, size_t len, const char *what, size_t n)
{
	for (size_t i = 0; i + n <= len; i++)
		if (!memcmp(p + i, what, n))
			return true;
	return false;
}

/* PROTO, in protocol 4 a FRAME, then the magic number. */
static bool
is_legacy(const unsigned char *p, size_t len)
{
	size_t n = len < 32 ? len : 32;
	if (n >= sizeof magic_text - 1 &&
	    !memcmp(p, magic_text, sizeof magic_text - 1))
		return true;
	return n && p[0] == 0x80 &&
	       contains(p, n, magic_long, sizeof magic_long - 1);
}

static bool
is_tar(const unsigned char *p, size_t len)
{
	static const char *const first[] = { "sys_info", "pickle", "tensors",
		"storages" };
	if (len < TAR_MAGIC + 5 || memcmp(p + TAR_MAGIC, "ustar", 5))
		return false;
	const char *name = (const char *)p;
	struct str s = { name, strnlen(name, 100) };
	while (str_starts(s, "./"))
		s = (struct str){ s.p + 2, s.len - 2 };
	for (size_t i = 0; i < sizeof first / sizeof *first; i++)
		if (str_is(s, first[i]))
			return true;
	return false;
}

/* PREFIX/data.pkl and its neighbours, whichever the writer put first. */
static bool
is_zip(const unsigned char *p, size_t len)
{
	static const char *const first[] = { "data.pkl", "byteorder", "version",
		"constants.pkl", ".format_version", ".storage_alignment" };
	struct cur c = cur_over(p, len);
	if (cur_le32(&c) != 0x04034b50)
		return false;
	cur_take(&c, 22);
	size_t n = cur_le16(&c);
	cur_le16(&c);
	struct str name = cur_str(&c, n), prefix;
	if (c.failed || !str_cut(&name, '/', &prefix) || !name.p)
		return false;
	for (size_t i = 0; i < sizeof first / sizeof *first; i++)
		if (str_is(name, first[i]))
			return true;
	/* Not "data/x.npy" of a NumPy archive: keys are numbers. */
	return (str_starts(name, "data/") || str_starts(name, "code/") ||
		   str_starts(name, "constants/") ||
		   str_starts(name, "extra/")) &&
	       !str_ends(name, ".npy");
}

static int
probe(const unsigned char *head, size_t len)
{
	return is_zip(head, len) || is_legacy(head, len) ? 95
	       : is_tar(head, len)                       ? 90
							 : 0;
}

/* ---- zip ------------------------------------------------------------------
 */

struct archive {
	struct zip zip;
	struct str dir;   /* prefix of all members, with its slash */
	const char *data; /* "data/" or "constants/" within it */
	struct map known; /* storages, by key below dir */
	size_t nstorages;
	struct buf name;
};

static const struct zip_member *
member(struct archive *ar, const char *name)
{
	ar->name.len = 0;
	buf_str(&ar->name, ar->dir);
	buf_puts(&ar->name, name);
	return ar->name.failed ? NULL : zip_find(&ar->zip, buf_view(&ar->name));
}

/* Sequential: who copies a source goes through it once. */
struct inflating {
	struct zip_reader *z;
	uint64_t pos;
};

static int
inflate_next(
    void *user, uint64_t off, void *to, size_t len, size_t *got, struct err *e)
{
	struct inflating *f = user;
	if (off != f->pos)
		return err_set(e, SE_EINVAL, "member is read forward only");
	int r = zip_read(f->z, to, len, got, e);
	f->pos += *got;
	return r;
}

/* A compressed storage is unpacked to where views can be read from it. */
static int
unpack(struct torch_walk *w, const struct archive *ar,
    const struct zip_member *m, struct src **out, struct err *e)
{
	struct inflating f = { 0 };
	struct src *s = NULL;
	int r = zip_reader_new(&f.z, &ar->zip, m, e);
	if (!r)
		r = src_open_fn(&s, inflate_next, &f, m->size, NULL, e);
	if (!r)
		r = src_spool(out, s, 0, m->size, e);
	src_close(s);
	zip_reader_free(f.z);
	return r ? r : tensor_own(w->set, *out, e);
}

static int
add_member(struct torch_walk *w, struct archive *ar, struct str key,
    const struct zip_member *m, struct torch_storage **out, struct err *e)
{
	struct torch_storage *s;
	int r = torch_new_storage(w, &ar->known, key, &s, e);
	if (r)
		return r;
	s->bytes = m->size;
	*out = s;
	ar->nstorages++;
	if (m->method != ZIP_STORED)
		return unpack(w, ar, m, &s->src, e);
	s->src = ar->zip.src;
	s->off = m->off;
	s->has_crc = true;
	s->member = *m;
	s->member.name = arena_str(&w->set->arena, m->name);
	return s->member.name.p ? 0 : err_mem(e);
}

static int
find_member(struct torch_walk *w, const struct torch_ref *ref,
    struct torch_storage **out, struct err *e)
{
	struct archive *ar = w->user;
	struct buf *b = &ar->name;
	b->len = 0;
	buf_str(b, ar->dir);
	buf_puts(b, ar->data);
	buf_str(b, ref->key);
	if (b->failed)
		return err_mem(e);
	/* "7", but "constants/7": the two folders number apart. */
	size_t skip = ar->dir.len + (strcmp(ar->data, "data/") ? 0 : 5);
	struct str key = { b->p + skip, b->len - skip };
	struct torch_storage *s = torch_known_storage(&ar->known, key);
	int r = 0;
	if (!s) {
		const struct zip_member *m = zip_find(&ar->zip, buf_view(b));
		if (!m) {
			r = err_set(e, SE_EFORMAT, "is not in the archive");
			esc_prefix(e, "storage", key);
			return r;
		}
		r = add_member(w, ar, key, m, &s, e);
	}
	if (!r)
		r = torch_check_size(ref, s->bytes, e);
	*out = s;
	return r;
}

/* "big" is written by hosts that are; no member means little. */
static int
read_byteorder(struct torch_walk *w, struct archive *ar, struct err *e)
{
	const struct zip_member *m = member(ar, "byteorder");
	struct str s = STR_LIT("little");
	int r = m ? zip_read_all(&ar->zip, m, 64, &w->set->arena, &s, e) : 0;
	if (r)
		return r;
	w->swap = str_is(s, "big");
	if (!w->swap && !str_is(s, "little"))
		return err_set(e, SE_EFORMAT,
		    "byteorder is neither little nor "
		    "big");
	return 0;
}

/* One of the pickles of an archive, to entries. */
static int
walk_member(struct torch_walk *w, struct archive *ar,
    const struct zip_member *m, struct str prefix, bool skip_empty,
    struct err *e)
{
	struct pickle p = { 0 };
	int r = zip_read_all(
	    &ar->zip, m, PICKLE_SIZE_MAX, &w->set->arena, &w->mem, e);
	if (!r)
		r = src_open_mem(&w->memsrc, w->mem.p, w->mem.len, e);
	if (!r)
		r = tensor_own(w->set, w->memsrc, e);
	if (!r)
		r = pickle_load(&p, w->mem.p, w->mem.len, e);
	if (!r && p.len != w->mem.len)
		r = err_set(e, SE_EFORMAT, "%zu bytes after the pickle",
		    w->mem.len - p.len);
	/* The archive is whole, so this is no truncated file. */
	if (r == SE_ETRUNC) {
		r = SE_EFORMAT;
		if (e)
			e->code = r;
	}
	if (r)
		esc_prefix(e, "zip member", m->name);
	torch_set_steps(w, &p);
	if (!r && !(skip_empty && p.root->kind == PICKLE_TUPLE && !p.root->n))
		r = torch_walk(w, p.root, prefix, e);
	pickle_free(&p);
	return r;
}

static int
walk_archive(
    struct torch_walk *w, struct archive *ar, struct str prefix, struct err *e)
{
	const struct zip_member *data = member(ar, "data.pkl");
	const struct zip_member *constants = member(ar, "constants.pkl");
	if (!data && (constants || member(ar, "model.json")))
		return err_set(e, SE_EUNSUP,
		    "a TorchScript archive without "
		    "data.pkl");
	if (!data)
		return err_set(e, SE_EFORMAT,
		    "a zip archive without data.pkl "
		    "is no PyTorch file");
	ar->data = "data/";
	int r = read_byteorder(w, ar, e);
	if (!r)
		r = walk_member(w, ar, data, prefix, false, e);
	if (r && constants)
		return err_prefix(e, "TorchScript archive");
	if (r || !constants)
		return r;
	ar->data = "constants/";
	r = walk_member(w, ar, constants, STR_LIT("constants"), true, e);
	return r ? err_prefix(e, "TorchScript archive") : 0;
}

/* torch.save writes no storage that nothing points to. */
static int
note_unused(struct tensor_set *set, struct archive *ar, struct err *e)
{
	size_t n = 0;
	for (size_t i = 0; i < ar->zip.n; i++) {
		struct str s = ar->zip.m[i].name;
		s = (struct str){ s.p + ar->dir.len, s.len - ar->dir.len };
		n += str_starts(s, "data/") || str_starts(s, "constants/");
	}
	if (n <= ar->nstorages)
		return 0;
	return tensor_note(
	    set, e, "%zu storages that no tensor uses", n - ar->nstorages);
}

static int
check_prefix(struct archive *ar, struct err *e)
{
	struct str rest = ar->zip.n ? ar->zip.m[0].name : STR_NULL, first;
	if (!str_cut(&rest, '/', &first) || !rest.p)
		return err_set(e, SE_EFORMAT,
		    "a zip archive without data.pkl "
		    "is no PyTorch file");
	ar->dir = (struct str){ first.p, first.len + 1 };
	for (size_t i = 0; i < ar->zip.n; i++) {
		struct str s = ar->zip.m[i].name;
		if (s.len >= ar->dir.len &&
		    !memcmp(s.p, ar->dir.p, ar->dir.len))
			continue;
		int r = err_set(e, SE_EFORMAT,
		    "is not in the folder of the "
		    "others");
		esc_prefix(e, "zip member", s);
		return r;
	}
	return 0;
}

int
torch_open_zip(
    struct tensor_set *set, struct src *src, struct str prefix, struct err *e)
{
	struct archive ar = { .data = "data/" };
	struct torch_walk w = {
		.set = set, .find = find_member, .user = &ar, .label = prefix
	};
	int r = zip_open(&ar.zip, src, e);
	if (!r)
		r = check_prefix(&ar, e);
	if (!r)
		r = walk_archive(&w, &ar, prefix, e);
	if (!r)
		r = note_unused(set, &ar, e);
	torch_walk_free(&w);
	map_free(&ar.known);
	buf_free(&ar.name);
	zip_close(&ar.zip);
	return r;
}

/* ---- which of them --------------------------------------------------------
 */

static int
open_set(struct tensor_set *set, struct src *src,
    const struct tensor_hints *hints, struct err *e)
{
	unsigned char head[512];
	size_t n;
	int r = src_read_some(src, 0, head, sizeof head, &n, e);
	if (r)
		return r;
	if (is_tar(head, n))
		return err_set(e, SE_EUNSUP,
		    "a tar checkpoint of PyTorch "
		    "before 0.1.10 is not supported");
	if (is_legacy(head, n))
		return torch_open_legacy(set, src, e);
	set->end = src_size(src);
	r = torch_open_zip(set, src, STR_LIT(""), e);
	return r == SE_ETRUNC ? torch_open_cut(set, src, e) : r;
}

const struct tensor_format tensor_torch = {
	.name = "torch",
	.what = "PyTorch checkpoint, zip or legacy",
	.probe = probe,
	.open = open_set,
	.random = true,
	.selfends = true,
};
