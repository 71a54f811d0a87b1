/*
 * Bytes kept in a temporary file until the verdict over them is known: events
 * that came through a pipe, or that a reader rendered.
 */
#ifndef SPOOL_H
#define SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"
#include "str.h"

struct spool {
	int fd;
	struct buf pending;
	uint64_t len; /* with what is pending */
};

int spool_open(struct spool *s, const char *tmpdir, struct err *e);
/* The offset of the bytes goes to *off. */
int spool_add(struct spool *s, struct str bytes, uint64_t *off, struct err *e);
/* Writes what is pending; then fd can be read. */
int spool_flush(struct spool *s, struct err *e);
void spool_close(struct spool *s);

/* An unlinked temporary file; a descriptor, or an error. */
int spool_temp(const char *tmpdir, struct err *e);

#endif
