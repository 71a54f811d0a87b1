/* What an ELF file asks the dynamic linker for: see dynamic.h. */
#include "dynamic.h"

#include <inttypes.h>

#include "cur.h"
#include "num.h"

/* gABI: figures 4-3, 5-1, 5-10. */
enum {
	EHDR_MAX = 64,
	PT_LOAD = 1,
	PT_DYNAMIC = 2,
	PT_INTERP = 3,
	DT_NULL = 0,
	DT_NEEDED = 1,
	DT_STRTAB = 5,
	DT_STRSZ = 10,
	DT_SONAME = 14,
	DT_RPATH = 15,
	DT_RUNPATH = 29,
	SEGMENTS_MAX = 4096,
	TAGS_MAX = 1 << 16,
	INTERP_MAX = 4096,
};

/* Header and entries of the cache, in bytes. */
enum { CACHE_HEAD = 48, CACHE_ENTRY = 24, CACHE_MAGIC = 20 };

struct segment {
	uint64_t type, off, vaddr, filesz;
};

struct tag {
	uint64_t tag, value;
};

struct reader {
	struct dynamic *d;
	struct src *src;
	struct arena *arena;
	struct segment *seg;
	size_t nseg;
	struct tag *tag;
	size_t ntags;
	struct str strings;
};

/* ---- numbers of either class and order ---------------------------------- */

static uint64_t
take(struct cur *c, const struct dynamic *d, unsigned bytes)
{
	const unsigned char *p = cur_take(c, bytes);
	uint64_t v = 0;
	for (unsigned i = 0; p && i < bytes; i++)
		v = v << 8 | p[d->big ? i : bytes - 1 - i];
	return v;
}

static uint64_t
take_word(struct cur *c, const struct dynamic *d)
{
	return take(c, d, d->bits / 8);
}

static void *
read_part(const struct reader *r, uint64_t off, uint64_t len, int *code,
    struct err *e)
{
	void *p = arena_alloc(r->arena, (size_t)len);
	*code = p ? src_read_at(r->src, off, p, (size_t)len, e) : err_mem(e);
	return *code ? NULL : p;
}

/* ---- headers --------------------------------------------------------- */

static int
read_header(struct reader *r, uint64_t *phoff, unsigned *phnum,
    unsigned *phsize, struct err *e)
{
	unsigned char head[EHDR_MAX];
	struct dynamic *d = r->d;
	size_t n;
	int code = src_read_some(r->src, 0, head, sizeof head, &n, e);
	if (code)
		return code;
	if (n < 52 || memcmp(head, "\177ELF", 4) || head[4] < 1 ||
	    head[4] > 2 || head[5] < 1 || head[5] > 2)
		return err_set(e, SE_EFORMAT, "not an ELF file");
	d->bits = head[4] == 1 ? 32 : 64;
	d->big = head[5] == 2;
	struct cur c = cur_over(head, n);
	cur_take(&c, 18);
	d->machine = (unsigned)take(&c, d, 2);
	cur_take(&c, 4 + d->bits / 8); /* version, entry */
	*phoff = take_word(&c, d);
	cur_take(&c, d->bits / 8 + 4 + 2); /* section table, flags, size */
	*phsize = (unsigned)take(&c, d, 2);
	*phnum = (unsigned)take(&c, d, 2);
	if (c.failed)
		return err_set(e, SE_ETRUNC, "ELF header cut at %zu bytes", n);
	return 0;
}

static void
parse_segment(struct cur *c, const struct dynamic *d, struct segment *s)
{
	s->type = take(c, d, 4);
	if (d->bits == 64)
		cur_take(c, 4); /* flags stand here */
	s->off = take_word(c, d);
	s->vaddr = take_word(c, d);
	take_word(c, d); /* physical address */
	s->filesz = take_word(c, d);
}

static int
read_segments(struct reader *r, struct err *e)
{
	uint64_t phoff = 0;
	unsigned phnum = 0, phsize = 0;
	int code = read_header(r, &phoff, &phnum, &phsize, e);
	if (code || !phnum)
		return code;
	unsigned least = r->d->bits == 64 ? 56 : 32;
	if (phnum > SEGMENTS_MAX || phsize < least || phsize > 1024)
		return err_set(e, SE_EFORMAT,
		    "ELF header: %u segments of %u bytes", phnum, phsize);
	unsigned char *p =
	    read_part(r, phoff, (uint64_t)phnum * phsize, &code, e);
	if (!p) {
		err_prefix(e, "ELF segments");
		return code;
	}
	r->seg = arena_array(r->arena, phnum, sizeof *r->seg);
	if (!r->seg)
		return err_mem(e);
	r->nseg = phnum;
	for (unsigned i = 0; i < phnum; i++) {
		struct cur c = cur_over(p + (size_t)i * phsize, phsize);
		parse_segment(&c, r->d, &r->seg[i]);
	}
	return 0;
}

static const struct segment *
find_segment(const struct reader *r, unsigned type)
{
	for (size_t i = 0; i < r->nseg; i++)
		if (r->seg[i].type == type)
			return &r->seg[i];
	return NULL;
}

/* Where an address lies in the file, with `len` bytes behind it. */
static bool
file_offset(const struct reader *r, uint64_t vaddr, uint64_t len, uint64_t *off)
{
	for (size_t i = 0; i < r->nseg; i++) {
		const struct segment *s = &r->seg[i];
		if (s->type != PT_LOAD || vaddr < s->vaddr)
			continue;
		uint64_t in = vaddr - s->vaddr;
		if (in <= s->filesz && len <= s->filesz - in &&
		    num_add(s->off, in, off))
			return true;
	}
	return false;
}

/* ---- the dynamic section ------------------------------------------------ */

static int
read_tags(struct reader *r, const struct segment *s, struct err *e)
{
	int code;
	unsigned size = r->d->bits / 4;
	uint64_t n = s->filesz / size;
	if (n > TAGS_MAX)
		return err_set(e, SE_ELIMIT,
		    "ELF dynamic section of %" PRIu64 " entries, at most %d", n,
		    TAGS_MAX);
	unsigned char *p = read_part(r, s->off, n * size, &code, e);
	if (!p) {
		err_prefix(e, "ELF dynamic section");
		return code;
	}
	r->tag = arena_array(r->arena, (size_t)n, sizeof *r->tag);
	if (!r->tag)
		return err_mem(e);
	struct cur c = cur_over(p, (size_t)(n * size));
	while (cur_left(&c) >= size) {
		struct tag t = { take_word(&c, r->d), take_word(&c, r->d) };
		if (t.tag == DT_NULL)
			break;
		r->tag[r->ntags++] = t;
	}
	return 0;
}

static bool
find_tag(const struct reader *r, uint64_t tag, uint64_t *value)
{
	for (size_t i = 0; i < r->ntags; i++)
		if (r->tag[i].tag == tag) {
			*value = r->tag[i].value;
			return true;
		}
	return false;
}

static int
read_strings(struct reader *r, struct err *e)
{
	uint64_t addr, len, off;
	int code;
	if (!find_tag(r, DT_STRTAB, &addr) || !find_tag(r, DT_STRSZ, &len))
		return err_set(e, SE_EFORMAT,
		    "ELF: dynamic section without "
		    "strings");
	if (len > DYNAMIC_STRINGS_MAX)
		return err_set(e, SE_ELIMIT,
		    "ELF: %" PRIu64 " bytes of names, at most %u", len,
		    DYNAMIC_STRINGS_MAX);
	if (!file_offset(r, addr, len, &off))
		return err_set(e, SE_EFORMAT,
		    "ELF: names at address 0x%" PRIx64
		    " lie in no loaded segment",
		    addr);
	uint64_t size = src_size(r->src);
	if (size != SRC_UNKNOWN && (off > size || len > size - off))
		return err_set(e, SE_ETRUNC,
		    "ELF: need %" PRIu64 " bytes of names at offset %" PRIu64
		    ", the file ends at %" PRIu64,
		    len, off, size);
	char *p = read_part(r, off, len, &code, e);
	r->strings = (struct str){ p, p ? (size_t)len : 0 };
	return code;
}

static int
text_at(const struct reader *r, uint64_t at, struct str *out, struct err *e)
{
	const char *end = NULL;
	if (at < r->strings.len)
		end = memchr(r->strings.p + at, 0, r->strings.len - at);
	if (!end)
		return err_set(e, SE_EFORMAT,
		    "ELF: name %" PRIu64 " lies outside the strings", at);
	*out = (struct str){ r->strings.p + at,
		(size_t)(end - (r->strings.p + at)) };
	return 0;
}

static int
read_names(struct reader *r, struct err *e)
{
	struct dynamic *d = r->d;
	size_t n = 0;
	for (size_t i = 0; i < r->ntags; i++)
		n += r->tag[i].tag == DT_NEEDED;
	if (n > DYNAMIC_NEEDED_MAX)
		return err_set(e, SE_ELIMIT, "ELF: %zu libraries, at most %u",
		    n, DYNAMIC_NEEDED_MAX);
	d->needed = arena_array(r->arena, n ? n : 1, sizeof *d->needed);
	if (!d->needed)
		return err_mem(e);
	int code = 0;
	for (size_t i = 0; !code && i < r->ntags; i++) {
		uint64_t at = r->tag[i].value;
		switch (r->tag[i].tag) {
		case DT_NEEDED:
			code = text_at(r, at, &d->needed[d->n], e);
			d->n += !code;
			break;
		case DT_RPATH:
			code = text_at(r, at, &d->rpath, e);
			break;
		case DT_RUNPATH:
			code = text_at(r, at, &d->runpath, e);
			break;
		case DT_SONAME:
			code = text_at(r, at, &d->soname, e);
			break;
		}
	}
	return code;
}

static int
read_interp(struct reader *r, const struct segment *s, struct err *e)
{
	int code;
	if (!s->filesz || s->filesz > INTERP_MAX)
		return err_set(e, SE_EFORMAT,
		    "ELF: interpreter's name of %" PRIu64 " bytes", s->filesz);
	char *p = read_part(r, s->off, s->filesz, &code, e);
	if (!p)
		return code;
	const char *end = memchr(p, 0, (size_t)s->filesz);
	if (!end)
		return err_set(
		    e, SE_EFORMAT, "ELF: interpreter's name without end");
	r->d->interp = (struct str){ p, (size_t)(end - p) };
	return 0;
}

int
dynamic_read(struct dynamic *d, struct src *src, struct arena *a, struct err *e)
{
	struct reader r = { .d = d, .src = src, .arena = a };
	*d = (struct dynamic){ .interp = STR_LIT("") };
	d->rpath = d->runpath = d->soname = STR_LIT("");
	int code = src_seekable(src, e);
	if (!code)
		code = read_segments(&r, e);
	const struct segment *s = code ? NULL : find_segment(&r, PT_INTERP);
	if (s)
		code = read_interp(&r, s, e);
	s = code ? NULL : find_segment(&r, PT_DYNAMIC);
	if (!s)
		return code;
	code = read_tags(&r, s, e);
	uint64_t any;
	bool names = find_tag(&r, DT_NEEDED, &any) ||
		     find_tag(&r, DT_SONAME, &any) ||
		     find_tag(&r, DT_RUNPATH, &any);
	if (code || !names)
		return code;
	code = read_strings(&r, e);
	return code ? code : read_names(&r, e);
}

bool
dynamic_fits(const struct dynamic *a, const struct dynamic *b)
{
	return a->bits == b->bits && a->machine == b->machine &&
	       a->big == b->big;
}

/* ---- the linker's cache -------------------------------------------------- */

/* Numbers in it are the host's; we read it on the host that wrote it. */
static uint64_t
native(struct cur *c, size_t n)
{
	const unsigned char *p = cur_take(c, n);
	uint64_t wide = 0;
	uint32_t narrow = 0;
	if (!p)
		return 0;
	if (n == sizeof wide) {
		memcpy(&wide, p, n);
		return wide;
	}
	memcpy(&narrow, p, sizeof narrow);
	return narrow;
}

int
dynamic_cache_open(struct dynamic_cache *c, struct str bytes, struct err *e)
{
	static const char magic[] = "glibc-ld.so.cache1.1";
	struct cur cur = cur_over(bytes.p, bytes.len);
	const unsigned char *p = cur_take(&cur, CACHE_MAGIC);
	uint64_t n = native(&cur, 4);
	if (cur.failed || memcmp(p, magic, CACHE_MAGIC))
		return err_set(
		    e, SE_EUNSUP, "not a cache of glibc 2.2 or later");
	if (bytes.len < CACHE_HEAD ||
	    n > (bytes.len - CACHE_HEAD) / CACHE_ENTRY)
		return err_set(e, SE_EFORMAT,
		    "linker's cache of %zu bytes with %" PRIu64 " entries",
		    bytes.len, n);
	*c = (struct dynamic_cache){ bytes, (size_t)n };
	return 0;
}

static bool
cache_text(const struct dynamic_cache *c, uint64_t at, struct str *out)
{
	const char *p = c->bytes.p, *end = NULL;
	if (at < c->bytes.len)
		end = memchr(p + at, 0, c->bytes.len - at);
	if (!end)
		return false;
	*out = (struct str){ p + at, (size_t)(end - (p + at)) };
	return true;
}

int
dynamic_cache_entry(const struct dynamic_cache *c, size_t i, struct str *name,
    struct str *path, bool *some, struct err *e)
{
	struct cur cur =
	    cur_over(c->bytes.p + CACHE_HEAD + i * CACHE_ENTRY, CACHE_ENTRY);
	native(&cur, 4); /* flags */
	uint64_t key = native(&cur, 4), value = native(&cur, 4);
	native(&cur, 4); /* version of the kernel, not used any more */
	*some = native(&cur, 8) != 0;
	if (!cache_text(c, key, name) || !cache_text(c, value, path))
		return err_set(e, SE_EFORMAT,
		    "entry %zu of the linker's cache points outside", i);
	return 0;
}
