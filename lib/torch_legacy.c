/*
 * PyTorch files that are read from front to back: the form before version
 * 1.6, and zip archives whose end, with the directory, is missing.
 * Sources: torch/serialization.py (_legacy_save, _legacy_load); PKWARE
 * APPNOTE 6.3.10, sections 4.3.7 and 4.3.9.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cur.h"
#include "esc.h"
#include "gzip.h"
#include "num.h"
#include "tensor_formats.h"
#include "torch.h"

enum {
	LEGACY_FIRST = 64 << 10, /* bytes tried first for a pickle */
	LOCAL_LEN = 30,
	SMALL_MAX = 4096, /* a member whose size only its descriptor tells */
	FLAG_DESCRIPTOR = 1 << 3,
};

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
		r = torch_new_storage(w, &l->known, ref->key, &s, e);
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
		else if (torch_known_storage(&l->known, key))
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
	*out = torch_known_storage(&l->known, ref->key);
	if (*out)
		return torch_check_size(ref, (*out)->bytes, e);
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

int
torch_open_legacy(struct tensor_set *set, struct src *src, struct err *e)
{
	struct legacy l = { .src = src };
	struct torch_walk w = { .set = set, .find = find_placed, .user = &l };
	struct pickle p = { 0 };
	int r = read_header(&l, &p, e);
	if (!r)
		r = keep_pickle(&w, &l, &p, e);
	if (!r)
		r = read_storages(&w, &l, &p, e);
	torch_set_steps(&w, &p);
	if (!r)
		r = torch_walk(&w, p.root, STR_LIT(""), e);
	set->end = l.off;
	pickle_free(&p);
	torch_walk_free(&w);
	map_free(&l.known);
	free(l.p);
	return r;
}

/* ---- archives without an end ----------------------------------------------
 */

/* A local header, and what is known of the member's size. */
struct found {
	struct str name; /* in the set's memory */
	unsigned flags, method;
	uint32_t crc;
	uint64_t size, off; /* size is 0 where the descriptor has it */
};

static int
read_found(
    struct torch_walk *w, struct legacy *l, struct found *f, struct err *e)
{
	unsigned char head[LOCAL_LEN];
	int r = src_read_at(l->src, l->off, head, sizeof head, e);
	if (r)
		return r;
	struct cur c = cur_over(head, sizeof head);
	uint32_t sig = cur_le32(&c);
	cur_le16(&c);
	f->flags = cur_le16(&c);
	f->method = cur_le16(&c);
	cur_le32(&c);
	f->crc = cur_le32(&c);
	cur_le32(&c);
	f->size = cur_le32(&c);
	unsigned name = cur_le16(&c), extra = cur_le16(&c);
	if (sig != 0x04034b50 || f->method != ZIP_STORED ||
	    f->size == UINT32_MAX)
		return err_set(e, SE_EFORMAT, "no plain local header");
	char *p = arena_alloc(&w->set->arena, name);
	if (!p)
		return err_mem(e);
	f->name = (struct str){ p, name };
	f->off = l->off + LOCAL_LEN + name + extra;
	return src_read_at(l->src, l->off + LOCAL_LEN, p, name, e);
}

/*
 * The descriptor behind `size` bytes of content gives the CRC; l->off moves
 * behind it. Both of its forms begin with a signature in PyTorch's files.
 */
static int
take_descriptor(struct legacy *l, struct found *f, uint64_t size, struct err *e)
{
	l->off = f->off + size;
	if (!(f->flags & FLAG_DESCRIPTOR)) {
		if (f->size != size)
			return err_set(e, SE_EFORMAT, "another size");
		return 0;
	}
	unsigned char b[24] = { 0 };
	size_t n;
	int r = src_read_some(l->src, l->off, b, sizeof b, &n, e);
	if (r)
		return r;
	struct cur c = cur_over(b, n);
	uint32_t sig = cur_le32(&c);
	f->crc = cur_le32(&c);
	struct cur wide = c;
	uint64_t narrow_c = cur_le32(&c), narrow = cur_le32(&c);
	bool is_wide =
	    cur_le64(&wide) == size && cur_le64(&wide) == size && !wide.failed;
	bool is_narrow = narrow_c == size && narrow == size && !c.failed;
	if (sig != 0x08074b50 || (!is_wide && !is_narrow))
		return err_set(e, SE_EFORMAT, "no descriptor");
	l->off += is_wide ? 24 : 16;
	f->size = size;
	return 0;
}

/* A small member; one of unknown size ends where a descriptor fits. */
static int
take_small(struct legacy *l, struct found *f, unsigned char *b, size_t *len,
    struct err *e)
{
	size_t n;
	int r = src_read_some(l->src, f->off, b, SMALL_MAX, &n, e);
	bool later = f->flags & FLAG_DESCRIPTOR;
	for (size_t i = later ? 0 : (size_t)f->size; !r && i <= n; i++) {
		*len = i;
		if ((!later || (i + 16 <= n && !memcmp(b + i, "PK\7\10", 4))) &&
		    !take_descriptor(l, f, i, NULL) &&
		    gzip_crc32(0, b, i) == f->crc)
			return 0;
		if (!later)
			break;
	}
	return r ? r : err_set(e, SE_EFORMAT, "not a small whole member");
}

static int
take_storage(struct torch_walk *w, struct legacy *l, struct found *f,
    const struct torch_ref *ref, struct err *e)
{
	struct torch_storage *s;
	uint64_t bytes, size = src_size(l->src);
	if (!num_mul(ref->numel, ref->dtype->size, &bytes) || f->off > size ||
	    bytes > size - f->off)
		return err_set(e, SE_ETRUNC, "content is cut");
	int r = take_descriptor(l, f, bytes, e);
	if (!r)
		r = torch_new_storage(w, &l->known, ref->key, &s, e);
	if (r)
		return r;
	s->src = l->src;
	s->off = f->off;
	s->bytes = bytes;
	s->has_crc = true;
	s->member = (struct zip_member){ .name = f->name,
		.crc = f->crc,
		.csize = bytes,
		.size = bytes,
		.off = f->off };
	return 0;
}

/*
 * Members in the order of the file, until one is not whole; true if the byte
 * order was among them. torch.save writes it, if at all, before the storages.
 */
static bool
take_members(struct torch_walk *w, struct legacy *l, struct str dir,
    const struct map *at, const struct torch_ref *ref)
{
	bool ordered = false;
	static const char data[] = "data/", order[] = "byteorder";
	for (;;) {
		struct found f;
		unsigned char small[SMALL_MAX];
		size_t n = 0;
		if (read_found(w, l, &f, NULL) || f.name.len <= dir.len ||
		    memcmp(f.name.p, dir.p, dir.len))
			return ordered;
		struct str s = { f.name.p + dir.len, f.name.len - dir.len };
		struct str key = str_starts(s, data)
				     ? (struct str){ s.p + 5, s.len - 5 }
				     : STR_NULL;
		const uint64_t *v = key.p ? map_get(at, key) : NULL;
		if (v && !torch_known_storage(&l->known, key)) {
			if (take_storage(w, l, &f, &ref[*v], NULL))
				return ordered;
			continue;
		}
		if (key.p || take_small(l, &f, small, &n, NULL))
			return ordered;
		if (!str_is(s, order))
			continue;
		ordered = true;
		w->swap = n == 3 && !memcmp(small, "big", 3);
	}
}

/* The rest is placed behind the end: tensor_open leaves it out by that. */
static int
miss_storages(struct torch_walk *w, struct legacy *l,
    const struct torch_ref *ref, size_t n, struct err *e)
{
	int r = 0;
	for (size_t i = 0; !r && i < n; i++) {
		struct torch_storage *s;
		if (!ref[i].dtype || torch_known_storage(&l->known, ref[i].key))
			continue;
		r = torch_new_storage(w, &l->known, ref[i].key, &s, e);
		if (r)
			break;
		s->src = l->src;
		s->off = src_size(l->src);
		if (!num_mul(ref[i].numel, ref[i].dtype->size, &s->bytes))
			r = err_set(e, SE_EFORMAT, "a storage overflows");
	}
	return r;
}

/* data.pkl comes first in what torch.save writes. */
static int
first_member(struct torch_walk *w, struct legacy *l, struct pickle *p,
    struct str *dir, struct err *e)
{
	struct found f;
	int r = read_found(w, l, &f, e);
	if (r)
		return r;
	struct str rest = f.name, prefix;
	if (!str_cut(&rest, '/', &prefix) || !str_is(rest, "data.pkl"))
		return err_set(e, SE_EFORMAT, "data.pkl is not first");
	*dir = (struct str){ prefix.p, prefix.len + 1 };
	l->off = f.off;
	r = next_pickle(l, p, e);
	if (!r)
		r = keep_pickle(w, l, p, e);
	if (!r)
		r = take_descriptor(l, &f, p->len, e);
	if (!r && gzip_crc32(0, w->mem.p, w->mem.len) != f.crc)
		r = err_set(e, SE_EFORMAT, "data.pkl is damaged");
	return r;
}

static int
rescue(struct torch_walk *w, struct legacy *l, struct pickle *p, struct err *e)
{
	struct str dir = STR_NULL;
	struct map at = { 0 };
	int r = first_member(w, l, p, &dir, e);
	if (r)
		return r;
	struct torch_ref *ref = calloc(p->npersid + 1, sizeof *ref);
	r = ref ? collect_refs(p, &at, ref, &w->set->arena, e) : err_mem(e);
	if (!r) {
		if (!take_members(w, l, dir, &at, ref))
			r = tensor_note(w->set, e,
			    "byte order not seen, little-endian assumed");
		r = r ? r : miss_storages(w, l, ref, p->npersid, e);
	}
	torch_set_steps(w, p);
	if (!r)
		r = torch_walk(w, p->root, STR_LIT(""), e);
	map_free(&at);
	free(ref);
	return r;
}

int
torch_open_cut(struct tensor_set *set, struct src *src, struct err *e)
{
	struct legacy l = { .src = src };
	struct torch_walk w = { .set = set, .find = find_placed, .user = &l };
	struct pickle p = { 0 };
	struct err why;
	set->end = 0;
	set->partial = !rescue(&w, &l, &p, &why);
	pickle_free(&p);
	torch_walk_free(&w);
	map_free(&l.known);
	free(l.p);
	return SE_ETRUNC;
}
