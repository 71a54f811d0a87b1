/*
 * Deflate and gzip through zlib. The only file that knows zlib is gzip.c.
 */
#ifndef GZIP_H
#define GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"

enum inflate_form {
	INFLATE_GZIP = 1, /* RFC 1952, one member; CRC and length checked */
	INFLATE_RAW = 2,  /* RFC 1951, as in zip members */
};

struct inflate;

int inflate_new(struct inflate **out, int form, struct err *e);
/*
 * Takes up to *inlen bytes and gives up to *outlen; both become what was used
 * and made. *end is true once the stream (member) is complete; then the rest
 * of the input is not touched. SE_EFORMAT for damaged data. Without progress
 * and without *end it needs more input or more room.
 */
int inflate_run(struct inflate *z, const void *in, size_t *inlen, void *out,
    size_t *outlen, bool *end, struct err *e);
/* Ready for the next stream or member. */
void inflate_reset(struct inflate *z);
void inflate_free(struct inflate *z);

/* CRC-32 of zip and gzip; start with 0. */
uint32_t gzip_crc32(uint32_t crc, const void *p, size_t len);

/* True if the bytes begin like a gzip member (RFC 1952 section 2.3.1). */
bool gzip_probe(const void *p, size_t len);

/*
 * One complete gzip member that holds the bytes, appended to `to`: no name,
 * no time, so the same bytes give the same member.
 */
int gzip_member(struct buf *to, const void *p, size_t len, struct err *e);

#endif
