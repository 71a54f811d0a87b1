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

enum {
	LEGACY_FIRST = 64 << 10, /* bytes tried first for a pickle */
	TAR_MAGIC = 257,         /* POSIX.1-2008 pax, ustar header block */
	STEPS_BASE = 1000,       /* for small pickles */
};

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

int
tensor_torch_probe(const unsigned char *head, size_t len)
{
	return is_zip(head, len) || is_legacy(head, len) ? 95
	       : is_tar(head, len)                       ? 90
							 : 0;
}

/* ---- what both forms share ------------------------------------------------
 */

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

static int
new_storage(struct torch_walk *w, struct map *known, struct str key,
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

static struct torch_storage *
known_storage(const struct map *known, struct str key)
{
	const uint64_t *at = map_get(known, key);
	return at ? (struct torch_storage *)(uintptr_t)*at : NULL;
}

/* What the pickle says about its size against what is there. */
static int
check_size(const struct torch_ref *ref, uint64_t bytes, struct err *e)
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

static void
set_steps(struct torch_walk *w, const struct pickle *p)
{
	w->steps_max += TORCH_PATHS_MAX * p->nnodes + STEPS_BASE;
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
	int r = new_storage(w, &ar->known, key, &s, e);
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
	struct torch_storage *s = known_storage(&ar->known, key);
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
		r = check_size(ref, s->bytes, e);
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
	set_steps(w, &p);
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

/* ---- legacy ---------------------------------------------------------------
 */

struct legacy {
	struct src *src;
	uint64_t off;     /* of what comes next */
	struct map known; /* storages by key */
	unsigned char *p; /* the pickle last read */
};

/*
 * The pickle at l->off. Its length shows when it is over: what was too short
 * is read again, twice as much.
 */
static int
next_pickle(struct legacy *l, struct pickle *p, struct err *e)
{
	uint64_t size = src_size(l->src);
	uint64_t left = size > l->off ? size - l->off : 0;
	size_t want = LEGACY_FIRST;
	for (;; want *= 2) {
		size_t n = left < want ? (size_t)left : want;
		unsigned char *b = realloc(l->p, n ? n : 1);
		if (!b)
			return err_mem(e);
		l->p = b;
		int r = src_read_at(l->src, l->off, b, n, e);
		if (r)
			return r;
		pickle_free(p);
		r = pickle_load(p, b, n, e);
		if (r != SE_ETRUNC || n == left) {
			if (r)
				err_prefix(e, "offset %" PRIu64, l->off);
			l->off += p->len;
			return r;
		}
	}
}

static int
read_header(struct legacy *l, struct pickle *p, struct err *e)
{
	int r = next_pickle(l, p, e); /* the magic number: probed */
	if (!r)
		r = next_pickle(l, p, e);
	if (!r && (p->root->kind != PICKLE_INT || p->root->i != 1001))
		r = err_set(e, SE_EUNSUP, "expected protocol version 1001");
	if (!r)
		r = next_pickle(l, p, e); /* word sizes: of no effect */
	return r ? r : next_pickle(l, p, e);
}

/* Keys to what the main pickle says about them. */
static int
collect_refs(const struct pickle *p, struct map *at, struct torch_ref *ref,
    struct arena *a, struct err *e)
{
	for (size_t i = 0; i < p->npersid; i++) {
		bool fresh;
		if (torch_ref_is_module(p->persid[i]))
			continue;
		int r = torch_ref_parse(&ref[i], p->persid[i], a, e);
		if (r)
			return r;
		uint64_t *v = map_at(at, ref[i].key, &fresh);
		if (!v)
			return err_mem(e);
		if (fresh)
			*v = i;
	}
	return 0;
}

/*
 * One storage: i64 number of elements, elements. Little-endian whatever the
 * host was (THPStorage_writeFileRaw). What lies behind the end of a cut file
 * is placed where it would be, so that tensor_open can tell what is missing.
 */
static int
place_storage(struct torch_walk *w, struct legacy *l,
    const struct torch_ref *ref, struct err *e)
{
	struct torch_storage *s;
	uint64_t size = src_size(l->src), numel = ref->numel;
	unsigned char b[8];
	int r = 0;
	if (l->off < size && size - l->off >= sizeof b) {
		r = src_read_at(l->src, l->off, b, sizeof b, e);
		struct cur c = cur_over(b, sizeof b);
		numel = cur_le64(&c);
	}
	if (!r && numel != ref->numel) {
		r = err_set(e, SE_EFORMAT,
		    "the pickle says %" PRIu64 " elements, at offset %" PRIu64
		    " it has %" PRIu64,
		    ref->numel, l->off, numel);
		esc_prefix(e, "storage", ref->key);
	}
	if (!r)
		r = new_storage(w, &l->known, ref->key, &s, e);
	if (r)
		return r;
	s->src = l->src;
	if (!num_mul(numel, ref->dtype->size, &s->bytes) ||
	    !num_add(l->off, sizeof b, &s->off) ||
	    !num_add(s->off, s->bytes, &l->off))
		return err_set(e, SE_EFORMAT,
		    "storages of more than 2^64 "
		    "bytes");
	return 0;
}

static int
place_storages(struct torch_walk *w, struct legacy *l,
    const struct pickle_node *keys, const struct map *at,
    const struct torch_ref *ref, struct err *e)
{
	if (keys->kind != PICKLE_LIST)
		return err_set(e, SE_EFORMAT,
		    "expected a list of storage "
		    "keys");
	for (uint32_t i = 0; i < keys->n; i++) {
		const struct pickle_node *k = keys->item[i];
		struct str key = k->kind == PICKLE_STR ? k->s : STR_NULL;
		const uint64_t *v = key.p ? map_get(at, key) : NULL;
		int r = 0;
		if (!v)
			r = err_set(e, SE_EFORMAT,
			    "its size is not in the "
			    "main pickle");
		else if (known_storage(&l->known, key))
			r = err_set(e, SE_EFORMAT,
			    "twice in the list of "
			    "keys");
		if (r) {
			esc_prefix(e, "storage", key);
			return r;
		}
		r = place_storage(w, l, &ref[*v], e);
		if (r)
			return r;
	}
	return 0;
}

static int
find_placed(struct torch_walk *w, const struct torch_ref *ref,
    struct torch_storage **out, struct err *e)
{
	struct legacy *l = w->user;
	*out = known_storage(&l->known, ref->key);
	if (*out)
		return check_size(ref, (*out)->bytes, e);
	int r = err_set(e, SE_EFORMAT, "is not in the list of keys");
	esc_prefix(e, "storage", ref->key);
	return r;
}

/* The list of keys, and the place of every storage behind it. */
static int
read_storages(struct torch_walk *w, struct legacy *l, const struct pickle *p,
    struct err *e)
{
	struct map at = { 0 };
	struct pickle keys = { 0 };
	struct torch_ref *ref = calloc(p->npersid + 1, sizeof *ref);
	int r = ref ? collect_refs(p, &at, ref, &w->set->arena, e) : err_mem(e);
	if (!r)
		r = next_pickle(l, &keys, e);
	if (!r)
		r = place_storages(w, l, keys.root, &at, ref, e);
	pickle_free(&keys);
	map_free(&at);
	free(ref);
	return r;
}

/* Entries keep text of the main pickle: a copy that stays. */
static int
keep_pickle(
    struct torch_walk *w, struct legacy *l, struct pickle *p, struct err *e)
{
	w->mem = arena_str(
	    &w->set->arena, (struct str){ (const char *)l->p, p->len });
	if (!w->mem.p)
		return err_mem(e);
	pickle_free(p);
	int r = pickle_load(p, w->mem.p, w->mem.len, e);
	if (!r)
		r = src_open_mem(&w->memsrc, w->mem.p, w->mem.len, e);
	return r ? r : tensor_own(w->set, w->memsrc, e);
}

static int
open_legacy(struct tensor_set *set, struct src *src, struct err *e)
{
	struct legacy l = { .src = src };
	struct torch_walk w = { .set = set, .find = find_placed, .user = &l };
	struct pickle p = { 0 };
	int r = read_header(&l, &p, e);
	if (!r)
		r = keep_pickle(&w, &l, &p, e);
	if (!r)
		r = read_storages(&w, &l, &p, e);
	set_steps(&w, &p);
	if (!r)
		r = torch_walk(&w, p.root, STR_LIT(""), e);
	set->end = l.off;
	pickle_free(&p);
	torch_walk_free(&w);
	map_free(&l.known);
	free(l.p);
	return r;
}

/* ---- which of them --------------------------------------------------------
 */

int
tensor_torch_open(struct tensor_set *set, struct src *src,
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
		return open_legacy(set, src, e);
	set->end = src_size(src);
	return torch_open_zip(set, src, STR_LIT(""), e);
}
