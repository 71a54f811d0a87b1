/* Makes zip archives for tests, right ones and wrong ones. */
#ifndef ZIPMAKE_H
#define ZIPMAKE_H

#include <string.h>

#include "buf.h"
#include "gzip.h"
#include "str.h"

enum {
	MAKE_DEFLATE = 1,
	MAKE_DESCRIPTOR = 2, /* zero sizes in the local header */
	MAKE_ZIP64 = 4,      /* sizes in zip64 fields */
	MAKE_NOSIG = 8,      /* descriptor without signature */
};

struct zipmake {
	struct buf out, dir;
	unsigned n;
	size_t local;   /* offset of the last local header */
	size_t central; /* offset of its entry in dir */
	size_t dir_off; /* set by zipmake_end */
};

static inline void
le(struct buf *b, unsigned long long v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		buf_putc(b, i < 8 ? (char)(v >> (8 * i)) : 0);
}

/* Overwrites n bytes at off. */
static inline void
poke(struct buf *b, size_t off, unsigned long long v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		b->p[off + i] = (char)(v >> (8 * i));
}

static inline void
zipmake_sizes(
    struct buf *b, unsigned long long c, unsigned long long u, unsigned n)
{
	le(b, c, n);
	le(b, u, n);
}

static inline void
zipmake_add(struct zipmake *z, const char *name, const void *p, size_t len,
    unsigned how)
{
	struct buf raw = { 0 };
	/* A gzip member is 10 bytes, the deflate stream, 8 bytes. */
	if (how & MAKE_DEFLATE)
		gzip_member(&raw, p, len, NULL);
	struct str data = how & MAKE_DEFLATE
			      ? (struct str){ raw.p + 10, raw.len - 18 }
			      : (struct str){ p, len };
	unsigned crc = gzip_crc32(0, p, len);
	bool later = how & MAKE_DESCRIPTOR, big = how & MAKE_ZIP64;
	unsigned flags = (later ? 8u : 0) | 0x800;
	unsigned method = how & MAKE_DEFLATE ? 8 : 0;
	size_t nlen = strlen(name);

	z->local = z->out.len;
	le(&z->out, 0x04034b50, 4);
	le(&z->out, 45, 2);
	le(&z->out, flags, 2);
	le(&z->out, method, 2);
	le(&z->out, 0, 4);
	le(&z->out, later ? 0 : crc, 4);
	if (big)
		zipmake_sizes(&z->out, 0xffffffff, 0xffffffff, 4);
	else
		zipmake_sizes(
		    &z->out, later ? 0 : data.len, later ? 0 : len, 4);
	le(&z->out, nlen, 2);
	le(&z->out, big ? 20 : 5, 2);
	buf_add(&z->out, name, nlen);
	if (big) {
		le(&z->out, 1, 2);
		le(&z->out, 16, 2);
		zipmake_sizes(
		    &z->out, later ? 0 : len, later ? 0 : data.len, 8);
	} else {
		buf_add(&z->out, "FB\1\0Z", 5);
	}
	buf_add(&z->out, data.p, data.len);
	if (later) {
		if (!(how & MAKE_NOSIG))
			le(&z->out, 0x08074b50, 4);
		le(&z->out, crc, 4);
		zipmake_sizes(&z->out, data.len, len, big ? 8 : 4);
	}

	z->central = z->dir.len;
	le(&z->dir, 0x02014b50, 4);
	le(&z->dir, 0, 4);
	le(&z->dir, flags, 2);
	le(&z->dir, method, 2);
	le(&z->dir, 0, 4);
	le(&z->dir, crc, 4);
	if (big)
		zipmake_sizes(&z->dir, 0xffffffff, 0xffffffff, 4);
	else
		zipmake_sizes(&z->dir, data.len, len, 4);
	le(&z->dir, nlen, 2);
	le(&z->dir, big ? 28 : 0, 2);
	le(&z->dir, 0, 2 + 2 + 6);
	le(&z->dir, big ? 0xffffffff : z->local, 4);
	buf_add(&z->dir, name, nlen);
	if (big) {
		le(&z->dir, 1, 2);
		le(&z->dir, 24, 2);
		zipmake_sizes(&z->dir, len, data.len, 8);
		le(&z->dir, z->local, 8);
	}
	z->n++;
	buf_free(&raw);
}

static inline void
zipmake_end(struct zipmake *z, unsigned how)
{
	z->dir_off = z->out.len;
	buf_add(&z->out, z->dir.p, z->dir.len);
	bool big = how & MAKE_ZIP64;
	size_t at = z->out.len;
	if (big) {
		le(&z->out, 0x06064b50, 4);
		le(&z->out, 44, 8);
		le(&z->out, 45, 4);
		le(&z->out, 0, 8);
		le(&z->out, z->n, 8);
		le(&z->out, z->n, 8);
		le(&z->out, z->dir.len, 8);
		le(&z->out, z->dir_off, 8);
		le(&z->out, 0x07064b50, 4);
		le(&z->out, 0, 4);
		le(&z->out, at, 8);
		le(&z->out, 1, 4);
	}
	le(&z->out, 0x06054b50, 4);
	le(&z->out, 0, 4);
	le(&z->out, big ? 0xffff : z->n, 2);
	le(&z->out, big ? 0xffff : z->n, 2);
	le(&z->out, big ? 0xffffffff : z->dir.len, 4);
	le(&z->out, big ? 0xffffffff : z->dir_off, 4);
	le(&z->out, 0, 2);
}

static inline void
zipmake_free(struct zipmake *z)
{
	buf_free(&z->out);
	buf_free(&z->dir);
}

#endif
