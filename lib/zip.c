/* Zip archives: see zip.h. */
#include "zip.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cur.h"
#include "esc.h"
#include "gzip.h"
#include "num.h"
#include "sort.h"

enum {
	LOCAL_SIG = 0x04034b50,
	CENTRAL_SIG = 0x02014b50,
	END_SIG = 0x06054b50,
	END64_SIG = 0x06064b50,
	LOCATOR_SIG = 0x07064b50,
	DESCRIPTOR_SIG = 0x08074b50,
	LOCAL_LEN = 30,
	CENTRAL_LEN = 46,
	END_LEN = 22,
	END64_LEN = 56,
	LOCATOR_LEN = 20,
	COMMENT_MAX = 65535,
	ZIP64_EXTRA = 1,
	WINDOW = 4096,      /* bytes of headers read at a time */
	IN_SIZE = 32 << 10, /* compressed bytes read at a time */
};

#define FULL32 UINT32_MAX /* "look into the zip64 field" */

/* General purpose bits, APPNOTE 4.4.4. */
enum {
	FLAG_ENCRYPTED = 1 << 0,
	FLAG_LEVEL = 3 << 1, /* how hard the compressor tried */
	FLAG_DESCRIPTOR = 1 << 3,
	FLAG_PATCH = 1 << 5,
	FLAG_STRONG = 1 << 6,
	FLAG_UTF8 = 1 << 11,
	FLAG_MASKED = 1 << 13,
	FLAG_KNOWN = FLAG_LEVEL | FLAG_DESCRIPTOR | FLAG_UTF8,
};

static const struct {
	unsigned id;
	const char *name;
} methods[] = {
	{ 1, "shrink" },
	{ 6, "implode" },
	{ 9, "deflate64" },
	{ 12, "bzip2" },
	{ 14, "lzma" },
	{ 93, "zstd" },
	{ 95, "xz" },
	{ 99, "AES encryption" },
};

/* ---- the end records ---------------------------------------------------- */

struct end {
	uint64_t n, size, off; /* of the directory */
	uint64_t stop;         /* where it must end */
};

static int
not_found(struct src *src, uint64_t size, struct err *e)
{
	unsigned char head[4];
	bool zip = size >= sizeof head &&
		   !src_read_at(src, 0, head, sizeof head, NULL) &&
		   !memcmp(head, "PK\3\4", sizeof head);
	if (!zip)
		return err_set(e, SE_EFORMAT,
		    "not a zip archive: no end "
		    "record in %" PRIu64 " bytes",
		    size);
	return err_set(e, SE_ETRUNC,
	    "truncated: zip end record not found, "
	    "the archive goes on beyond the %" PRIu64 " bytes that are here",
	    size);
}

/*
 * The record nearest to the end counts, as in every loader; a comment that
 * does not reach the end of the file means that bytes are missing or extra.
 */
static int
find_end(struct src *src, const unsigned char *tail, size_t len, uint64_t size,
    size_t *at, struct err *e)
{
	if (len < END_LEN)
		return not_found(src, size, e);
	size_t i = len - END_LEN;
	while (memcmp(tail + i, "PK\5\6", 4))
		if (i-- == 0)
			return not_found(src, size, e);
	struct cur c = cur_over(tail + i + 20, 2);
	size_t comment = cur_le16(&c), behind = len - i - END_LEN;
	if (comment > behind)
		return err_set(e, SE_ETRUNC,
		    "truncated: zip comment of %zu "
		    "bytes, %zu are here",
		    comment, behind);
	if (comment < behind)
		return err_set(e, SE_EFORMAT,
		    "%zu bytes after the zip end "
		    "record at offset %" PRIu64,
		    behind - comment, size - len + i);
	*at = i;
	return 0;
}

static int
read_end64(struct src *src, uint64_t locator, struct cur *l, struct end *out,
    struct err *e)
{
	uint32_t disk = cur_le32(l);
	uint64_t at = cur_le64(l);
	uint32_t disks = cur_le32(l);
	if (disk || disks > 1)
		return err_set(e, SE_EUNSUP, "zip archive in %u parts", disks);
	unsigned char b[END64_LEN];
	if (at > locator || locator - at < END64_LEN)
		return err_set(e, SE_EFORMAT,
		    "zip64 end record said to be at "
		    "offset %" PRIu64 ", its locator is at %" PRIu64,
		    at, locator);
	int r = src_read_at(src, at, b, sizeof b, e);
	if (r)
		return r;
	struct cur c = cur_over(b, sizeof b);
	if (cur_le32(&c) != END64_SIG)
		return err_set(e, SE_EFORMAT,
		    "no zip64 end record at offset "
		    "%" PRIu64,
		    at);
	if (cur_le64(&c) != locator - at - 12)
		return err_set(e, SE_EFORMAT,
		    "zip64 end record at offset "
		    "%" PRIu64 " does not reach its locator",
		    at);
	cur_le32(&c); /* versions */
	uint32_t here = cur_le32(&c), start = cur_le32(&c);
	uint64_t n = cur_le64(&c);
	out->n = cur_le64(&c);
	out->size = cur_le64(&c);
	out->off = cur_le64(&c);
	out->stop = at;
	if (here || start || n != out->n)
		return err_set(e, SE_EUNSUP, "zip archive in several parts");
	return 0;
}

/* A 32-bit field must say the same as its 64-bit twin, or be full. */
static bool
agrees(uint64_t narrow, uint64_t full, uint64_t wide)
{
	return narrow == full || narrow == wide;
}

static int
parse_end(struct src *src, const unsigned char *tail, size_t at, uint64_t base,
    struct end *end, struct err *e)
{
	struct cur c = cur_over(tail + at + 4, END_LEN - 4);
	unsigned disk = cur_le16(&c), start = cur_le16(&c);
	unsigned here = cur_le16(&c);
	struct end narrow = { .n = cur_le16(&c) };
	narrow.size = cur_le32(&c);
	narrow.off = cur_le32(&c);
	narrow.stop = base + at;
	*end = narrow;
	struct cur l = cur_over(tail, at);
	if (at >= LOCATOR_LEN)
		cur_take(&l, at - LOCATOR_LEN);
	if (at >= LOCATOR_LEN && cur_le32(&l) == LOCATOR_SIG) {
		int r = read_end64(src, base + at - LOCATOR_LEN, &l, end, e);
		if (r)
			return r;
		if (!agrees(narrow.n, UINT16_MAX, end->n) ||
		    !agrees(narrow.size, FULL32, end->size) ||
		    !agrees(narrow.off, FULL32, end->off))
			return err_set(e, SE_EFORMAT,
			    "zip and zip64 end "
			    "records disagree");
	}
	if ((disk && disk != UINT16_MAX) || (start && start != UINT16_MAX) ||
	    here != narrow.n)
		return err_set(e, SE_EUNSUP, "zip archive in several parts");
	return 0;
}

static int
check_end(const struct end *end, struct err *e)
{
	if (end->size > end->stop || end->off > end->stop - end->size)
		return err_set(e, SE_EFORMAT,
		    "zip directory of %" PRIu64 " bytes at offset %" PRIu64
		    ", the end record is at "
		    "%" PRIu64,
		    end->size, end->off, end->stop);
	uint64_t gap = end->stop - end->size - end->off;
	if (gap)
		return err_set(e, SE_EFORMAT,
		    "%" PRIu64 " bytes that belong "
		    "to no part of the archive before it or behind its "
		    "directory",
		    gap);
	if (end->n > end->size / CENTRAL_LEN)
		return err_set(e, SE_EFORMAT,
		    "zip directory of %" PRIu64 " bytes cannot hold %" PRIu64
		    " entries",
		    end->size, end->n);
	if (end->n > ZIP_MEMBERS_MAX || end->size > ZIP_DIR_MAX)
		return err_set(e, SE_ELIMIT,
		    "zip directory of %" PRIu64 " entries, %" PRIu64
		    " bytes: the limits are %u and "
		    "%" PRIu64,
		    end->n, end->size, ZIP_MEMBERS_MAX, (uint64_t)ZIP_DIR_MAX);
	return 0;
}

static int
read_end(struct src *src, struct end *end, struct err *e)
{
	uint64_t size = src_size(src);
	uint64_t most = END_LEN + COMMENT_MAX + LOCATOR_LEN;
	size_t len = (size_t)(size < most ? size : most), at = 0;
	unsigned char *tail = malloc(len ? len : 1);
	if (!tail)
		return err_mem(e);
	int r = src_read_at(src, size - len, tail, len, e);
	if (!r)
		r = find_end(src, tail, len, size, &at, e);
	if (!r)
		r = parse_end(src, tail, at, size - len, end, e);
	free(tail);
	return r ? r : check_end(end, e);
}

/* ---- the directory ------------------------------------------------------ */

/*
 * Finds the zip64 field; *c is empty where there is none. Extra fields are
 * id, length, bytes (APPNOTE 4.5.1).
 */
static int
find_zip64(struct str extra, struct cur *out, struct err *e)
{
	*out = cur_over(NULL, 0);
	bool seen = false;
	struct cur c = cur_over(extra.p, extra.len);
	while (cur_left(&c)) {
		unsigned id = cur_le16(&c);
		struct str body = cur_str(&c, cur_le16(&c));
		if (c.failed)
			return err_set(e, SE_EFORMAT,
			    "extra field longer "
			    "than its header says");
		if (id != ZIP64_EXTRA)
			continue;
		if (seen)
			return err_set(e, SE_EFORMAT, "two zip64 fields");
		seen = true;
		*out = cur_over(body.p, body.len);
	}
	return 0;
}

/* Where the 32-bit field is full the zip64 field has the value. */
static void
widen(uint64_t *v, struct cur *wide)
{
	if (*v == FULL32)
		*v = cur_le64(wide);
}

static int
check_method(const struct zip_member *m, struct err *e)
{
	unsigned f = m->flags;
	if (f & (FLAG_ENCRYPTED | FLAG_STRONG | FLAG_MASKED))
		return err_set(e, SE_EUNSUP, "encrypted");
	if (f & FLAG_PATCH)
		return err_set(e, SE_EUNSUP, "holds patch data");
	if (f & ~(unsigned)FLAG_KNOWN)
		return err_set(e, SE_EUNSUP, "unknown flag bits 0x%04x",
		    f & ~(unsigned)FLAG_KNOWN);
	if (m->method == ZIP_STORED || m->method == ZIP_DEFLATED)
		return 0;
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
		if (methods[i].id == m->method)
			return err_set(e, SE_EUNSUP,
			    "compressed with %s, only "
			    "stored and deflate are read",
			    methods[i].name);
	return err_set(
	    e, SE_EUNSUP, "unknown compression method %u", m->method);
}

static int
check_sizes(const struct zip_member *m, struct err *e)
{
	if (m->method == ZIP_STORED && m->csize != m->size)
		return err_set(e, SE_EFORMAT,
		    "stored, but %" PRIu64 " bytes "
		    "in the file and %" PRIu64 " of content",
		    m->csize, m->size);
	if (m->size / ZIP_RATIO_MAX > m->csize)
		return err_set(e, SE_EFORMAT,
		    "%" PRIu64 " bytes declared, "
		    "%" PRIu64 " compressed bytes cannot hold them",
		    m->size, m->csize);
	return 0;
}

static int
parse_central(struct cur *c, struct zip_member *m, struct err *e)
{
	size_t at = cur_off(c);
	uint32_t sig = cur_le32(c);
	cur_le32(c); /* versions: the features are checked themselves */
	m->flags = cur_le16(c);
	m->method = cur_le16(c);
	cur_le32(c); /* time and date */
	m->crc = cur_le32(c);
	m->csize = cur_le32(c);
	m->size = cur_le32(c);
	size_t name = cur_le16(c), extra = cur_le16(c), note = cur_le16(c);
	unsigned disk = cur_le16(c);
	cur_take(c, 6); /* attributes */
	m->header = cur_le32(c);
	m->name = cur_str(c, name);
	struct str x = cur_str(c, extra);
	cur_take(c, note);
	if (c->failed || sig != CENTRAL_SIG)
		return err_set(e, SE_EFORMAT,
		    "no whole entry at byte %zu of "
		    "the zip directory",
		    at);
	struct cur wide;
	int r = find_zip64(x, &wide, e);
	if (!r) {
		widen(&m->size, &wide);
		widen(&m->csize, &wide);
		widen(&m->header, &wide);
		if (wide.failed)
			r = err_set(e, SE_EFORMAT, "zip64 field too short");
		else if (disk && disk != UINT16_MAX)
			r = err_set(e, SE_EUNSUP,
			    "in another part of the "
			    "archive");
	}
	if (!r)
		r = check_method(m, e);
	if (!r)
		r = check_sizes(m, e);
	if (r)
		esc_prefix(e, "zip member", m->name);
	return r;
}

static int
read_directory(struct zip *z, const struct end *end, struct err *e)
{
	unsigned char *dir = arena_alloc(&z->arena, (size_t)end->size);
	z->m = arena_array(&z->arena, (size_t)end->n, sizeof *z->m);
	if (!dir || !z->m)
		return err_mem(e);
	int r = src_read_at(z->src, end->off, dir, (size_t)end->size, e);
	struct cur c = cur_over(dir, (size_t)end->size);
	while (!r && z->n < end->n)
		r = parse_central(&c, &z->m[z->n++], e);
	if (!r && cur_left(&c))
		return err_set(e, SE_EFORMAT,
		    "%zu bytes after the %zu entries "
		    "of the zip directory",
		    cur_left(&c), z->n);
	return r;
}

/* ---- local headers ------------------------------------------------------ */

/* Headers of small members lie close together: one read serves many. */
struct window {
	struct src *src;
	uint64_t base, limit; /* limit: start of the directory */
	size_t len, cap;
	unsigned char *p;
};

static int
window_at(
    struct window *w, uint64_t off, size_t len, struct cur *out, struct err *e)
{
	if (off > w->limit || len > w->limit - off)
		return err_set(e, SE_EFORMAT,
		    "%zu bytes at offset %" PRIu64
		    " reach into the zip directory at %" PRIu64,
		    len, off, w->limit);
	if (off < w->base || off - w->base > w->len ||
	    len > w->len - (size_t)(off - w->base)) {
		size_t want = len > WINDOW ? len : WINDOW;
		if (want > w->cap) {
			unsigned char *p = realloc(w->p, want);
			if (!p)
				return err_mem(e);
			w->p = p;
			w->cap = want;
		}
		if (want > w->limit - off)
			want = (size_t)(w->limit - off);
		w->len = 0;
		int r = src_read_at(w->src, off, w->p, want, e);
		if (r)
			return r;
		w->base = off;
		w->len = want;
	}
	*out = cur_over(w->p + (off - w->base), len);
	return 0;
}

/*
 * Sizes and CRC of a member with a descriptor may be zero here: they were not
 * known yet.
 */
static bool
local_agrees(const struct zip_member *m, uint64_t local, uint64_t central)
{
	return local == central || (!local && m->flags & FLAG_DESCRIPTOR);
}

static int
check_local(struct cur *c, const struct zip_member *m, struct err *e)
{
	cur_le16(c); /* version */
	unsigned flags = cur_le16(c), method = cur_le16(c);
	cur_le32(c);
	uint32_t crc = cur_le32(c);
	uint64_t csize = cur_le32(c), size = cur_le32(c);
	size_t name = cur_le16(c), extra = cur_le16(c);
	struct str n = cur_str(c, name), x = cur_str(c, extra);
	if (!str_same(n, m->name))
		return err_set(e, SE_EFORMAT, "local header has another name");
	if (flags != m->flags || method != m->method)
		return err_set(e, SE_EFORMAT,
		    "local header has flags 0x%04x, "
		    "method %u; the directory 0x%04x, %u",
		    flags, method, m->flags, m->method);
	struct cur wide;
	int r = find_zip64(x, &wide, e);
	if (r)
		return r;
	widen(&size, &wide);
	widen(&csize, &wide);
	if (wide.failed)
		return err_set(e, SE_EFORMAT, "zip64 field too short");
	if (!local_agrees(m, crc, m->crc) ||
	    !local_agrees(m, csize, m->csize) ||
	    !local_agrees(m, size, m->size))
		return err_set(e, SE_EFORMAT,
		    "local header says CRC %08x, "
		    "%" PRIu64 " and %" PRIu64 " bytes; the directory %08x, "
		    "%" PRIu64 " and %" PRIu64,
		    crc, csize, size, m->crc, m->csize, m->size);
	return 0;
}

static int
read_local(struct window *w, struct zip_member *m, struct err *e)
{
	struct cur c;
	int r = window_at(w, m->header, LOCAL_LEN, &c, e);
	if (r)
		return r;
	if (cur_le32(&c) != LOCAL_SIG)
		return err_set(e, SE_EFORMAT,
		    "no local header at offset "
		    "%" PRIu64,
		    m->header);
	cur_take(&c, 22);
	size_t len = LOCAL_LEN + (size_t)cur_le16(&c);
	len += cur_le16(&c);
	r = window_at(w, m->header, len, &c, e);
	if (r)
		return r;
	cur_le32(&c);
	r = check_local(&c, m, e);
	m->off = m->header + len;
	if (!r && (m->off > w->limit || m->csize > w->limit - m->off))
		return err_set(e, SE_EFORMAT,
		    "%" PRIu64 " bytes at offset "
		    "%" PRIu64 " reach into the zip directory at %" PRIu64,
		    m->csize, m->off, w->limit);
	m->end = m->off + m->csize;
	return r;
}

/* With or without signature, sizes of 4 or 8 bytes (APPNOTE 4.3.9). */
static bool
descriptor_is(struct cur c, const struct zip_member *m, bool sig, bool wide)
{
	if (sig && cur_le32(&c) != DESCRIPTOR_SIG)
		return false;
	uint32_t crc = cur_le32(&c);
	uint64_t csize = wide ? cur_le64(&c) : cur_le32(&c);
	uint64_t size = wide ? cur_le64(&c) : cur_le32(&c);
	return !c.failed && crc == m->crc && csize == m->csize &&
	       size == m->size;
}

static int
read_descriptor(struct window *w, struct zip_member *m, struct err *e)
{
	if (!(m->flags & FLAG_DESCRIPTOR))
		return 0;
	struct cur c;
	uint64_t left = w->limit - m->end;
	int r = window_at(w, m->end, left < 24 ? (size_t)left : 24, &c, e);
	if (r)
		return r;
	for (int form = 3; form >= 0; form--) {
		bool sig = form & 1, wide = form & 2;
		if (!descriptor_is(c, m, sig, wide))
			continue;
		m->end += (sig ? 8 : 4) + (wide ? 16 : 8);
		return 0;
	}
	return err_set(e, SE_EFORMAT,
	    "no data descriptor at offset %" PRIu64
	    " that agrees with the directory",
	    m->end);
}

static int
by_header(const void *a, const void *b)
{
	const struct zip_member *const *x = a, *const *y = b;
	return ((*x)->header > (*y)->header) - ((*x)->header < (*y)->header);
}

static int
check_in_order(struct window *w, struct zip_member **m, size_t n, struct err *e)
{
	uint64_t free_from = 0;
	for (size_t i = 0; i < n; i++) {
		int r = 0;
		if (m[i]->header < free_from)
			r = err_set(e, SE_EFORMAT, "overlaps another member");
		if (!r)
			r = read_local(w, m[i], e);
		if (!r)
			r = read_descriptor(w, m[i], e);
		if (r) {
			esc_prefix(e, "zip member", m[i]->name);
			return r;
		}
		if (i == 0 && m[i]->header)
			return err_set(e, SE_EFORMAT,
			    "%" PRIu64 " bytes "
			    "before the first zip member",
			    m[i]->header);
		free_from = m[i]->end;
	}
	return 0;
}

static int
check_locals(struct zip *z, uint64_t limit, struct err *e)
{
	struct zip_member **order = calloc(z->n ? z->n : 1, sizeof *order);
	if (!order)
		return err_mem(e);
	for (size_t i = 0; i < z->n; i++)
		order[i] = &z->m[i];
	sort_array(order, z->n, sizeof *order, by_header);
	struct window w = { .src = z->src, .limit = limit };
	int r = check_in_order(&w, order, z->n, e);
	free(w.p);
	free(order);
	return r;
}

/* Leaves the folders out and makes the table of names. */
static int
index_names(struct zip *z, struct err *e)
{
	size_t n = 0;
	for (size_t i = 0; i < z->n; i++) {
		struct zip_member m = z->m[i];
		if (str_ends(m.name, "/") && !m.size)
			continue;
		bool fresh;
		uint64_t *at = map_at(&z->byname, m.name, &fresh);
		if (!at)
			return err_mem(e);
		if (!fresh) {
			int r = err_set(e, SE_EFORMAT, "is there twice");
			esc_prefix(e, "zip member", m.name);
			return r;
		}
		*at = n;
		z->m[n++] = m;
	}
	z->n = n;
	return 0;
}

int
zip_open(struct zip *z, struct src *src, struct err *e)
{
	*z = (struct zip){ .src = src };
	struct end end = { 0 };
	int r = read_end(src, &end, e);
	if (!r)
		r = read_directory(z, &end, e);
	if (!r)
		r = check_locals(z, end.off, e);
	return r ? r : index_names(z, e);
}

void
zip_close(struct zip *z)
{
	map_free(&z->byname);
	arena_free(&z->arena);
	*z = (struct zip){ 0 };
}

const struct zip_member *
zip_find(const struct zip *z, struct str name)
{
	const uint64_t *at = map_get(&z->byname, name);
	return at ? &z->m[*at] : NULL;
}

/* ---- content --------------------------------------------------------- */

struct zip_reader {
	struct src *src;
	struct zip_member m;
	struct inflate *z; /* NULL: stored */
	unsigned char *in; /* IN_SIZE bytes, for deflate */
	size_t in_at, in_len;
	uint64_t used, made; /* compressed bytes read, content given */
	uint32_t crc;
	bool ended, checked; /* deflate stream over; size and CRC hold */
};

int
zip_reader_new(struct zip_reader **out, const struct zip *z,
    const struct zip_member *m, struct err *e)
{
	struct zip_reader *r = calloc(1, sizeof *r);
	if (!r)
		return err_mem(e);
	r->src = z->src;
	r->m = *m;
	int s = 0;
	if (m->method == ZIP_DEFLATED) {
		r->in = malloc(IN_SIZE);
		s = r->in ? inflate_new(&r->z, INFLATE_RAW, e) : err_mem(e);
	}
	if (s) {
		zip_reader_free(r);
		return s;
	}
	*out = r;
	return 0;
}

void
zip_reader_free(struct zip_reader *r)
{
	if (!r)
		return;
	inflate_free(r->z);
	free(r->in);
	free(r);
}

static int
refill(struct zip_reader *r, struct err *e)
{
	uint64_t left = r->m.csize - r->used;
	if (!left)
		return err_set(e, SE_EFORMAT,
		    "compressed data ends after "
		    "%" PRIu64 " of %" PRIu64 " bytes",
		    r->made, r->m.size);
	size_t n = left < IN_SIZE ? (size_t)left : IN_SIZE;
	int s = src_read_at(r->src, r->m.off + r->used, r->in, n, e);
	if (s)
		return s;
	r->used += n;
	r->in_at = 0;
	r->in_len = n;
	return 0;
}

/*
 * Some bytes, or none and `ended`. More input is read only when none came:
 * zlib may hold output back for lack of room after it took all input.
 */
static int
pull(struct zip_reader *r, void *to, size_t len, size_t *got, struct err *e)
{
	*got = 0;
	for (;;) {
		size_t in = r->in_len - r->in_at;
		*got = len;
		int s = inflate_run(
		    r->z, r->in + r->in_at, &in, to, got, &r->ended, e);
		if (s)
			return s;
		r->in_at += in;
		if (*got || r->ended)
			return 0;
		if (r->in_at == r->in_len)
			s = refill(r, e);
		if (s)
			return s;
	}
}

static int
check_deflate_end(struct zip_reader *r, struct err *e)
{
	unsigned char more;
	size_t n = 0;
	int s = r->ended ? 0 : pull(r, &more, 1, &n, e);
	if (s)
		return s;
	if (n)
		return err_set(e, SE_EFORMAT,
		    "more than the %" PRIu64 " bytes declared", r->m.size);
	uint64_t rest = r->m.csize - r->used + (r->in_len - r->in_at);
	if (rest)
		return err_set(e, SE_EFORMAT,
		    "%" PRIu64 " bytes after the "
		    "compressed data",
		    rest);
	return 0;
}

static int
check_content(struct zip_reader *r, struct err *e)
{
	int s = r->z ? check_deflate_end(r, e) : 0;
	if (s)
		return s;
	if (r->crc != r->m.crc)
		return err_set(e, SE_EFORMAT,
		    "content has CRC-32 %08x, the "
		    "archive says %08x: damaged",
		    r->crc, r->m.crc);
	r->checked = true;
	return 0;
}

static int
read_some(
    struct zip_reader *r, void *to, size_t len, size_t *got, struct err *e)
{
	if (r->z) {
		int s = r->ended ? 0 : pull(r, to, len, got, e);
		if (!s && !*got)
			s = err_set(e, SE_EFORMAT,
			    "%" PRIu64 " bytes declared, "
			    "the compressed data has %" PRIu64,
			    r->m.size, r->made);
		return s;
	}
	*got = len;
	return src_read_at(r->src, r->m.off + r->made, to, len, e);
}

static int
read_checked(struct zip_reader *r, unsigned char *to, size_t len, size_t *got,
    struct err *e)
{
	while (*got < len && r->made < r->m.size) {
		uint64_t left = r->m.size - r->made;
		size_t want = len - *got, n = 0;
		if (want > left)
			want = (size_t)left;
		int s = read_some(r, to + *got, want, &n, e);
		if (s)
			return s;
		r->crc = gzip_crc32(r->crc, to + *got, n);
		r->made += n;
		*got += n;
	}
	if (r->made == r->m.size && !r->checked)
		return check_content(r, e);
	return 0;
}

int
zip_read(struct zip_reader *r, void *to, size_t len, size_t *got, struct err *e)
{
	*got = 0;
	int s = read_checked(r, to, len, got, e);
	if (s)
		esc_prefix(e, "zip member", r->m.name);
	return s;
}

int
zip_read_all(const struct zip *z, const struct zip_member *m, size_t max,
    struct arena *a, struct str *out, struct err *e)
{
	if (m->size > max) {
		int s = err_set(e, SE_ELIMIT,
		    "%" PRIu64 " bytes, the limit "
		    "is %zu",
		    m->size, max);
		esc_prefix(e, "zip member", m->name);
		return s;
	}
	char *p = arena_alloc(a, (size_t)m->size);
	if (!p)
		return err_mem(e);
	struct zip_reader *r;
	int s = zip_reader_new(&r, z, m, e);
	if (s)
		return s;
	s = zip_read(r, p, (size_t)m->size, &out->len, e);
	out->p = p;
	zip_reader_free(r);
	return s;
}

int
zip_verify(const struct zip *z, const struct zip_member *m, struct err *e)
{
	enum { BLOCK = 256 << 10 };
	struct zip_reader *r;
	int s = zip_reader_new(&r, z, m, e);
	if (s)
		return s;
	unsigned char *block = malloc(BLOCK);
	if (!block)
		s = err_mem(e);
	for (size_t n = BLOCK; !s && n == BLOCK;)
		s = zip_read(r, block, BLOCK, &n, e);
	free(block);
	zip_reader_free(r);
	return s;
}
