/* Deflate and gzip through zlib: see gzip.h. */
#include "gzip.h"

#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

struct inflate {
	z_stream z;
};

int
inflate_new(struct inflate **out, int form, struct err *e)
{
	struct inflate *f = calloc(1, sizeof *f);
	if (!f)
		return err_mem(e);
	int bits = form == INFLATE_GZIP ? 16 + MAX_WBITS : -MAX_WBITS;
	if (inflateInit2(&f->z, bits) != Z_OK) {
		free(f);
		return err_mem(e);
	}
	*out = f;
	return 0;
}

int
inflate_run(struct inflate *f, const void *in, size_t *inlen, void *out,
    size_t *outlen, bool *end, struct err *e)
{
	uInt nin = *inlen < UINT_MAX ? (uInt)*inlen : UINT_MAX;
	uInt nout = *outlen < UINT_MAX ? (uInt)*outlen : UINT_MAX;
	f->z.next_in = (z_const Bytef *)in;
	f->z.avail_in = nin;
	f->z.next_out = out;
	f->z.avail_out = nout;
	int r = inflate(&f->z, Z_NO_FLUSH);
	*inlen = nin - f->z.avail_in;
	*outlen = nout - f->z.avail_out;
	*end = r == Z_STREAM_END;
	if (r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR)
		return 0;
	if (r == Z_MEM_ERROR)
		return err_mem(e);
	return err_set(e, SE_EFORMAT, "damaged compressed data: %s",
	    f->z.msg ? f->z.msg : "dictionary wanted");
}

void
inflate_reset(struct inflate *f)
{
	inflateReset(&f->z);
}

void
inflate_free(struct inflate *f)
{
	if (!f)
		return;
	inflateEnd(&f->z);
	free(f);
}

uint32_t
gzip_crc32(uint32_t crc, const void *p, size_t len)
{
	return (uint32_t)crc32_z(crc, p, len);
}

bool
gzip_probe(const void *p, size_t len)
{
	const unsigned char *b = p;
	return len >= 4 && b[0] == 0x1f && b[1] == 0x8b && b[2] == 8 &&
	       !(b[3] & 0xe0);
}

int
gzip_member(struct buf *to, const void *p, size_t len, struct err *e)
{
	if (len > UINT_MAX / 2)
		return err_set(e, SE_ELIMIT, "gzip member of %zu bytes", len);
	z_stream z = { 0 };
	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS,
		8, Z_DEFAULT_STRATEGY) != Z_OK)
		return err_mem(e);
	uLong room = deflateBound(&z, (uLong)len);
	z.next_in = (z_const Bytef *)p;
	z.avail_in = (uInt)len;
	z.next_out = (Bytef *)buf_room(to, room);
	z.avail_out = (uInt)room;
	int r = z.next_out ? deflate(&z, Z_FINISH) : Z_MEM_ERROR;
	if (r == Z_STREAM_END)
		to->len += room - z.avail_out;
	deflateEnd(&z);
	return r == Z_STREAM_END ? 0 : err_mem(e);
}
