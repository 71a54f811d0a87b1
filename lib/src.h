/*
 * Bytes from somewhere: a regular file, a pipe, gzip of either, memory, or a
 * slice of another source. One interface, reads at an offset, so that a
 * format reader does not care.
 *
 * A source is *seekable* (file, memory, spooled) or *forward*: then reads go
 * up, and only the last SRC_BACK bytes may be read again. A reader that needs
 * more calls src_seekable() first, which copies what is left of a forward
 * source to an unlinked temporary file.
 *
 * Seekable sources may be read by several threads at once; forward ones not.
 */
#ifndef SRC_H
#define SRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct src;

#define SRC_BACK (64u << 10)
/* Most we put into a temporary file: a gzip bomb ends here, not the disk. */
#define SRC_SPOOL_MAX (UINT64_C(64) << 30)
/* Most we read from a character device: /dev/zero has no end. */
#define SRC_DEVICE_MAX (UINT64_C(256) << 20)
/* Size of a source whose end has not been seen. */
#define SRC_UNKNOWN UINT64_MAX

enum {
	SRC_PLAIN = 1, /* do not look for gzip */
};

/*
 * Opens a file for reading without following it into anything odd: a
 * directory is SE_EINVAL. Gzip is seen by its first bytes and undone. `tmpdir`
 * is where spools go (kept by reference, may be NULL for /tmp).
 */
int src_open(struct src **out, const char *path, const char *tmpdir,
    unsigned flags, struct err *e);
/* The same under a directory descriptor: `name` is one plain component and
 * symbolic links are refused (names that come from inside a file). */
int src_open_at(struct src **out, int dirfd, const char *name,
    const char *tmpdir, unsigned flags, struct err *e);
/*
 * Gives the descriptor of such a source back: the file is opened again for
 * each read, and must be the same. For sets of more files than a process may
 * have descriptors; directory and name outlive the source. Does nothing to
 * what is not a plain regular file.
 */
void src_release_fd(struct src *s, int dirfd, const char *name);
/* Files of one set that keep theirs: far below any usual limit. */
#define SRC_FDS_KEPT 64
/* Takes over `fd` on success; closes it with the source. */
int src_open_fd(struct src **out, int fd, const char *tmpdir, unsigned flags,
    struct err *e);
/*
 * The same for a file or pipe that is still written, as a forward source. At
 * the end of what is there, and now and then while a pipe has nothing, `wait`
 * says what to do: 1 try again a little later, 0 that was the end, or an error.
 */
typedef int src_wait(void *user, struct err *e);
int src_open_growing(struct src **out, int fd, const char *tmpdir,
    src_wait *wait, void *user, struct err *e);
/* Borrows the bytes until src_close. */
int src_open_mem(struct src **out, const void *p, size_t len, struct err *e);
/*
 * Borrows `parent`, which must outlive it, from offset `off` on; `len` may be
 * SRC_UNKNOWN for "to the end".
 */
int src_open_slice(struct src **out, struct src *parent, uint64_t off,
    uint64_t len, struct err *e);
/*
 * Bytes that somebody makes, such as the content of a zip member: forward.
 * `fn` gives up to len bytes at `off`, fewer only at the end, and starts over
 * when `off` lies behind; `user` outlives the source.
 */
typedef int src_fn(
    void *user, uint64_t off, void *to, size_t len, size_t *got, struct err *e);
int src_open_fn(struct src **out, src_fn *fn, void *user, uint64_t size,
    const char *tmpdir, struct err *e);
void src_close(struct src *s);

/* Bytes in all, SRC_UNKNOWN for a forward source that has not ended. */
uint64_t src_size(const struct src *s);
bool src_is_seekable(const struct src *s);
/* Was the input gzip? A torn last member shows as SE_ETRUNC on reading. */
bool src_is_gzip(const struct src *s);

/*
 * Reads up to len bytes at off: the count in *got, less than len only at the
 * end. SE_EINVAL for going back too far in a forward source, SE_ETRUNC where
 * gzip is cut short (bytes before the cut are delivered first), SE_EFORMAT
 * where it is damaged.
 */
int src_read_some(struct src *s, uint64_t off, void *to, size_t len,
    size_t *got, struct err *e);
/*
 * The same, but does not wait on a pipe once it has some bytes: for readers of
 * live streams. *got is 0 only at the end (or with an error).
 */
int src_read_next(struct src *s, uint64_t off, void *to, size_t len,
    size_t *got, struct err *e);
/* All len bytes, or SE_ETRUNC "need N bytes at offset O, have M". */
int
src_read_at(struct src *s, uint64_t off, void *to, size_t len, struct err *e);
/*
 * Makes a forward source seekable; nothing to do on others. SE_EINVAL once
 * more than SRC_BACK bytes went by.
 */
int src_seekable(struct src *s, struct err *e);
/*
 * A seekable copy of `len` bytes from `off` of any source, independent of it:
 * up to SRC_SPOOL_MEM bytes in memory, else in an unlinked temporary file.
 */
#define SRC_SPOOL_MEM (1u << 20)
int src_spool(
    struct src **out, struct src *s, uint64_t off, uint64_t len, struct err *e);

#endif
