/* Bytes from somewhere: see src.h. */
#define _GNU_SOURCE /* O_TMPFILE, posix_fadvise hints */
#include "src.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gzip.h"

enum {
	IN_SIZE = 64 << 10,   /* compressed bytes read at a time */
	SKIP_SIZE = 64 << 10, /* bytes skipped at a time */
	WAIT_MS = 200,        /* between two looks at what is still written */
};

enum src_kind { FD_FILE, FD_STREAM, MEMORY, SLICE, FUNCTION };

struct src {
	enum src_kind kind;
	int fd;
	uint64_t size; /* SRC_UNKNOWN until known */
	const char *tmpdir;
	/* FD_FILE after src_release_fd */
	const char *name; /* NULL: fd is open */
	int dirfd;
	dev_t dev;
	ino_t ino;
	/* MEMORY */
	const unsigned char *mem;
	void *owned; /* freed with the source, or NULL */
	/* FUNCTION */
	src_fn *fn;
	void *user;
	/* SLICE */
	struct src *parent;
	uint64_t base;
	/* FD_STREAM: a pipe, or gzip of anything */
	struct inflate *z; /* NULL: plain */
	unsigned char *in; /* raw bytes not yet used */
	size_t in_at, in_len;
	bool in_eof, member; /* no more raw bytes; inside a gzip member */
	uint64_t in_off;     /* raw offset of in[in_at], for messages */
	uint64_t pos;        /* bytes delivered so far */
	unsigned char *back; /* ring of the last SRC_BACK of them */
	bool broken;         /* a failure ended it; kept below */
	struct err failure;
	bool gzip;
	bool device;    /* a character device: may have no end */
	src_wait *wait; /* still written: asked at the end, or NULL */
	void *wait_user;
	bool regular;
};

static int
read_fd(int fd, void *to, size_t len, size_t *got, struct err *e)
{
	*got = 0;
	for (;;) {
		ssize_t n = read(fd, to, len);
		if (n >= 0) {
			*got = (size_t)n;
			return 0;
		}
		if (errno != EINTR)
			return err_sys(e, "read");
	}
}

/* The same; of what is still written an end is only believed if so said. */
static int
read_growing(struct src *s, void *to, size_t len, size_t *got, struct err *e)
{
	*got = 0;
	for (;;) {
		struct pollfd p = { .fd = s->fd, .events = POLLIN };
		if (s->regular || poll(&p, 1, WAIT_MS) > 0) {
			int r = read_fd(s->fd, to, len, got, e);
			if (r || *got || !s->regular)
				return r;
		}
		int again = s->wait(s->wait_user, e);
		if (again <= 0)
			return again;
		if (s->regular)
			poll(NULL, 0, WAIT_MS);
	}
}

static int
read_raw(struct src *s, void *to, size_t len, size_t *got, struct err *e)
{
	return s->wait ? read_growing(s, to, len, got, e)
		       : read_fd(s->fd, to, len, got, e);
}

/* ---- the forward source ------------------------------------------------ */

static int
refill(struct src *s, struct err *e)
{
	size_t got;
	s->in_at = s->in_len = 0;
	int r = read_raw(s, s->in, IN_SIZE, &got, e);
	if (r)
		return r;
	s->in_len = got;
	s->in_eof = got == 0;
	return 0;
}

/* Between members: zero padding is legal (RFC 1952 leaves it to tools). */
static int
next_member(struct src *s, struct err *e)
{
	for (;;) {
		while (s->in_at < s->in_len && s->in[s->in_at] == 0 && s->pos) {
			s->in_at++;
			s->in_off++;
		}
		if (s->in_at < s->in_len)
			break;
		if (s->in_eof)
			return 0;
		int r = refill(s, e);
		if (r)
			return r;
	}
	if (s->in[s->in_at] != 0x1f)
		return err_set(e, SE_EFORMAT,
		    "gzip: expected a member at "
		    "compressed offset %" PRIu64 ", found byte 0x%02x",
		    s->in_off, s->in[s->in_at]);
	inflate_reset(s->z);
	s->member = true;
	return 0;
}

static int
pull_gzip(struct src *s, void *to, size_t len, size_t *got, struct err *e)
{
	*got = 0;
	while (*got == 0) {
		if (!s->member) {
			int r = next_member(s, e);
			if (r || !s->member)
				return r;
		}
		if (s->in_at == s->in_len && !s->in_eof) {
			int r = refill(s, e);
			if (r)
				return r;
		}
		/* At a cut zlib may still hold bytes it has not given out. */
		size_t nin = s->in_len - s->in_at, nout = len;
		bool end;
		int r = inflate_run(
		    s->z, s->in + s->in_at, &nin, to, &nout, &end, e);
		s->in_at += nin;
		s->in_off += nin;
		if (r) {
			err_prefix(
			    e, "gzip: compressed offset %" PRIu64, s->in_off);
			return r;
		}
		*got = nout;
		s->member = !end;
		if (!nout && !end && s->in_at == s->in_len && s->in_eof)
			return err_set(e, SE_ETRUNC,
			    "gzip: cut short at compressed offset %" PRIu64,
			    s->in_off);
	}
	return 0;
}

static int
pull_plain(struct src *s, void *to, size_t len, size_t *got, struct err *e)
{
	size_t have = s->in_len - s->in_at;
	if (have) {
		*got = have < len ? have : len;
		memcpy(to, s->in + s->in_at, *got);
		s->in_at += *got;
		return 0;
	}
	if (s->in_eof) {
		*got = 0;
		return 0;
	}
	int r = read_raw(s, to, len, got, e);
	s->in_eof = !r && *got == 0;
	return r;
}

static void
remember(struct src *s, const unsigned char *p, size_t n)
{
	uint64_t at = s->pos;
	if (n > SRC_BACK) {
		at += n - SRC_BACK;
		p += n - SRC_BACK;
		n = SRC_BACK;
	}
	size_t i = (size_t)(at % SRC_BACK);
	size_t first = n < SRC_BACK - i ? n : SRC_BACK - i;
	memcpy(s->back + i, p, first);
	memcpy(s->back, p + first, n - first);
}

/* The next bytes of the stream; *got 0 is the end. Failures stay. */
static int
pull(struct src *s, void *to, size_t len, size_t *got, struct err *e)
{
	*got = 0;
	if (s->broken)
		return err_set(e, s->failure.code, "%s", s->failure.msg);
	if (s->size != SRC_UNKNOWN)
		return 0;
	struct err *f = &s->failure;
	int r = s->z ? pull_gzip(s, to, len, got, f)
		     : pull_plain(s, to, len, got, f);
	if (!r && s->device && s->pos > SRC_DEVICE_MAX)
		r = err_set(f, SE_ELIMIT,
		    "a device that gives more than %" PRIu64 " bytes",
		    SRC_DEVICE_MAX);
	if (r) {
		*got = 0;
		s->broken = true;
		return err_set(e, f->code, "%s", f->msg);
	}
	if (*got == 0) {
		s->size = s->pos;
		return 0;
	}
	remember(s, to, *got);
	s->pos += *got;
	return 0;
}

static int
forward_read(struct src *s, uint64_t off, unsigned char *to, size_t len,
    size_t *got, bool wait, struct err *e)
{
	*got = 0;
	if (off < s->pos) {
		uint64_t behind = s->pos - off;
		if (behind > SRC_BACK)
			return err_set(e, SE_EINVAL,
			    "cannot go back to offset "
			    "%" PRIu64 " in a pipe",
			    off);
		size_t n = behind < len ? (size_t)behind : len;
		size_t i = (size_t)(off % SRC_BACK);
		size_t first = n < SRC_BACK - i ? n : SRC_BACK - i;
		memcpy(to, s->back + i, first);
		memcpy(to + first, s->back, n - first);
		*got = n;
		off += n;
	}
	while (off > s->pos) {
		unsigned char skip[SKIP_SIZE];
		uint64_t gap = off - s->pos;
		size_t n;
		int r = pull(s, skip,
		    gap < sizeof skip ? (size_t)gap : sizeof skip, &n, e);
		if (r || !n)
			return r;
	}
	while (*got < len && (wait || !*got)) {
		size_t n;
		int r = pull(s, to + *got, len - *got, &n, e);
		/* What came before the failure is delivered first. */
		if (r)
			return *got ? 0 : r;
		if (!n)
			return 0;
		*got += n;
	}
	return 0;
}

/* ---- opening ----------------------------------------------------------- */

static int
make_stream(struct src *s, bool gzip, struct err *e)
{
	s->kind = FD_STREAM;
	s->size = SRC_UNKNOWN;
	s->gzip = gzip;
	s->back = malloc(SRC_BACK);
	if (!s->in)
		s->in = malloc(IN_SIZE);
	if (!s->back || !s->in)
		return err_mem(e);
	return gzip ? inflate_new(&s->z, INFLATE_GZIP, e) : 0;
}

static int
start(struct src *s, unsigned flags, struct err *e)
{
	struct stat st;
	if (fstat(s->fd, &st))
		return err_sys(e, "stat");
	if (S_ISDIR(st.st_mode))
		return err_set(e, SE_EINVAL, "is a directory");
	s->device = S_ISCHR(st.st_mode);
	bool look = !(flags & SRC_PLAIN);
	/* /proc files say size 0 and are read as streams. */
	off_t at = lseek(s->fd, 0, SEEK_CUR);
	s->regular = S_ISREG(st.st_mode);
	if (s->regular && st.st_size > 0 && at >= 0 && !s->wait) {
		unsigned char head[4];
		ssize_t n = look ? pread(s->fd, head, sizeof head, at) : 0;
		if (n < 0)
			return err_sys(e, "read");
		if (gzip_probe(head, (size_t)n))
			return make_stream(s, true, e);
		s->kind = FD_FILE;
		s->base = (uint64_t)at;
		s->size = at < st.st_size ? (uint64_t)(st.st_size - at) : 0;
#ifdef POSIX_FADV_SEQUENTIAL
		posix_fadvise(s->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
		return 0;
	}
	if (!look)
		return make_stream(s, false, e);
	s->in = malloc(IN_SIZE);
	if (!s->in)
		return err_mem(e);
	while (s->in_len < 4 && !s->in_eof) {
		size_t n;
		int r = read_raw(s, s->in + s->in_len, 4 - s->in_len, &n, e);
		if (r)
			return r;
		s->in_len += n;
		s->in_eof = n == 0;
	}
	return make_stream(s, gzip_probe(s->in, s->in_len), e);
}

static int
open_fd(struct src **out, int fd, const char *tmpdir, unsigned flags,
    src_wait *wait, void *user, struct err *e)
{
	struct src *s = calloc(1, sizeof *s);
	if (!s)
		return err_mem(e);
	s->fd = fd;
	s->tmpdir = tmpdir ? tmpdir : "/tmp";
	s->wait = wait;
	s->wait_user = user;
	int r = start(s, flags, e);
	if (r) {
		s->fd = -1;
		src_close(s);
		return r;
	}
	*out = s;
	return 0;
}

int
src_open_fd(
    struct src **out, int fd, const char *tmpdir, unsigned flags, struct err *e)
{
	return open_fd(out, fd, tmpdir, flags, NULL, NULL, e);
}

int
src_open_growing(struct src **out, int fd, const char *tmpdir, src_wait *wait,
    void *user, struct err *e)
{
	return open_fd(out, fd, tmpdir, 0, wait, user, e);
}

static int
open_owned(
    struct src **out, int fd, const char *tmpdir, unsigned flags, struct err *e)
{
	if (fd < 0)
		return err_sys(e, "cannot open");
	int r = src_open_fd(out, fd, tmpdir, flags, e);
	if (r)
		close(fd);
	return r;
}

int
src_open(struct src **out, const char *path, const char *tmpdir, unsigned flags,
    struct err *e)
{
	return open_owned(
	    out, open(path, O_RDONLY | O_CLOEXEC), tmpdir, flags, e);
}

/* Somebody may have put a FIFO there: do not wait, do not read it. */
static int
open_in(int dirfd, const char *name)
{
	return openat(
	    dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

int
src_open_at(struct src **out, int dirfd, const char *name, const char *tmpdir,
    unsigned flags, struct err *e)
{
	if (!*name || strchr(name, '/') || !strcmp(name, ".") ||
	    !strcmp(name, ".."))
		return err_set(e, SE_EFORMAT, "not a plain file name");
	int fd = open_in(dirfd, name);
	struct stat st;
	if (fd >= 0 && !fstat(fd, &st) && !S_ISREG(st.st_mode)) {
		close(fd);
		return err_set(e, SE_EINVAL, "not a regular file");
	}
	return open_owned(out, fd, tmpdir, flags, e);
}

void
src_release_fd(struct src *s, int dirfd, const char *name)
{
	struct stat st;
	if (s->kind != FD_FILE || s->name || fstat(s->fd, &st))
		return;
	s->name = name;
	s->dirfd = dirfd;
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	close(s->fd);
	s->fd = -1;
}

int
src_open_mem(struct src **out, const void *p, size_t len, struct err *e)
{
	struct src *s = calloc(1, sizeof *s);
	if (!s)
		return err_mem(e);
	s->kind = MEMORY;
	s->fd = -1;
	s->mem = p;
	s->size = len;
	*out = s;
	return 0;
}

int
src_open_slice(struct src **out, struct src *parent, uint64_t off, uint64_t len,
    struct err *e)
{
	struct src *s = calloc(1, sizeof *s);
	if (!s)
		return err_mem(e);
	s->kind = SLICE;
	s->fd = -1;
	s->parent = parent;
	s->base = off;
	s->size = len;
	s->gzip = parent->gzip;
	*out = s;
	return 0;
}

int
src_open_fn(struct src **out, src_fn *fn, void *user, uint64_t size,
    const char *tmpdir, struct err *e)
{
	struct src *s = calloc(1, sizeof *s);
	if (!s)
		return err_mem(e);
	s->kind = FUNCTION;
	s->fd = -1;
	s->fn = fn;
	s->user = user;
	s->size = size;
	s->tmpdir = tmpdir ? tmpdir : "/tmp";
	*out = s;
	return 0;
}

void
src_close(struct src *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	inflate_free(s->z);
	free(s->in);
	free(s->back);
	free(s->owned);
	free(s);
}

/* ---- reading ----------------------------------------------------------- */

uint64_t
src_size(const struct src *s)
{
	if (s->kind != SLICE)
		return s->size;
	uint64_t whole = src_size(s->parent);
	if (whole == SRC_UNKNOWN)
		return s->size;
	uint64_t left = whole > s->base ? whole - s->base : 0;
	return s->size < left ? s->size : left;
}

bool
src_is_seekable(const struct src *s)
{
	if (s->kind == SLICE)
		return src_is_seekable(s->parent);
	return s->kind == FD_FILE || s->kind == MEMORY;
}

bool
src_is_gzip(const struct src *s)
{
	return s->gzip;
}

static int
read_file(struct src *s, int fd, uint64_t off, unsigned char *to, size_t len,
    size_t *got, struct err *e)
{
	while (*got < len) {
		ssize_t n = pread(
		    fd, to + *got, len - *got, (off_t)(s->base + off + *got));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(
			    e, "read at offset %" PRIu64, off + *got);
		if (n == 0)
			break;
		*got += (size_t)n;
	}
	return 0;
}

static int
file_read(struct src *s, uint64_t off, unsigned char *to, size_t len,
    size_t *got, struct err *e)
{
	struct stat st;
	if (off > INT64_MAX - s->base)
		return 0;
	if (!s->name)
		return read_file(s, s->fd, off, to, len, got, e);
	int fd = open_in(s->dirfd, s->name);
	if (fd < 0)
		return err_sys(e, "cannot open again");
	int r;
	if (fstat(fd, &st) || st.st_dev != s->dev || st.st_ino != s->ino)
		r = err_set(e, SE_EIO, "is another file than it was before");
	else
		r = read_file(s, fd, off, to, len, got, e);
	close(fd);
	return r;
}

static int
read_some(struct src *s, uint64_t off, void *to, size_t len, size_t *got,
    bool wait, struct err *e)
{
	*got = 0;
	switch (s->kind) {
	case FD_FILE:
		return file_read(s, off, to, len, got, e);
	case FD_STREAM:
		return forward_read(s, off, to, len, got, wait, e);
	case MEMORY:
		if (off >= s->size)
			return 0;
		*got = len < s->size - off ? len : (size_t)(s->size - off);
		memcpy(to, s->mem + off, *got);
		return 0;
	case SLICE:
		if (off >= s->size || off > UINT64_MAX - s->base)
			return 0;
		if (s->size != SRC_UNKNOWN && len > s->size - off)
			len = (size_t)(s->size - off);
		return read_some(
		    s->parent, s->base + off, to, len, got, wait, e);
	case FUNCTION:
		return s->fn(s->user, off, to, len, got, e);
	}
	return err_set(e, SE_EINVAL, "unknown kind of source");
}

int
src_read_some(struct src *s, uint64_t off, void *to, size_t len, size_t *got,
    struct err *e)
{
	return read_some(s, off, to, len, got, true, e);
}

int
src_read_next(struct src *s, uint64_t off, void *to, size_t len, size_t *got,
    struct err *e)
{
	return read_some(s, off, to, len, got, false, e);
}

int
src_read_at(struct src *s, uint64_t off, void *to, size_t len, struct err *e)
{
	size_t got = 0;
	while (got < len) {
		size_t n;
		int r = src_read_some(
		    s, off + got, (char *)to + got, len - got, &n, e);
		if (r)
			return r;
		if (!n)
			break;
		got += n;
	}
	if (got == len)
		return 0;
	return err_set(e, SE_ETRUNC,
	    "need %zu bytes at offset %" PRIu64 ", have %zu", len, off, got);
}

static int
temp_file(const char *dir, struct err *e)
{
	int fd;
#ifdef O_TMPFILE
	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
#endif
	char name[4096];
	int n = snprintf(name, sizeof name, "%s/straightedge.XXXXXX", dir);
	if (n < 0 || (size_t)n >= sizeof name)
		return err_set(e, SE_EINVAL,
		    "temporary directory name is too "
		    "long");
	fd = mkstemp(name);
	if (fd < 0)
		return err_sys(e, "cannot make a temporary file in %s", dir);
	unlink(name);
	return fd;
}

static int
write_all(int fd, const unsigned char *p, size_t n, struct err *e)
{
	while (n) {
		ssize_t w = write(fd, p, n);
		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return err_sys(e, "cannot write a temporary file");
		p += w;
		n -= (size_t)w;
	}
	return 0;
}

/* Up to len bytes from `off` of s into a temporary file; *n says how many. */
static int
copy_out(struct src *s, uint64_t off, uint64_t len, int fd, uint64_t *n,
    struct err *e)
{
	unsigned char *block = malloc(IN_SIZE);
	int r = block ? 0 : err_mem(e);
	*n = 0;
	while (!r && *n < len) {
		size_t want = len - *n < IN_SIZE ? (size_t)(len - *n) : IN_SIZE;
		size_t got;
		r = src_read_some(s, off + *n, block, want, &got, e);
		if (r || !got)
			break;
		*n += got;
		if (*n > SRC_SPOOL_MAX)
			r = err_set(e, SE_ELIMIT,
			    "more than %" PRIu64
			    " bytes to keep in a temporary file",
			    (uint64_t)SRC_SPOOL_MAX);
		else
			r = write_all(fd, block, got, e);
	}
	free(block);
	return r;
}

/* Nobody else's fields are in use then. */
static void
become_file(struct src *s, int fd, uint64_t size)
{
	if (s->fd >= 0)
		close(s->fd);
	inflate_free(s->z);
	free(s->in);
	free(s->back);
	s->z = NULL;
	s->in = s->back = NULL;
	s->fd = fd;
	s->kind = FD_FILE;
	s->base = 0;
	s->size = size;
}

/*
 * Spools a forward source from its start. A slice makes its parent seekable:
 * offsets stay the same. What went by already must still be remembered.
 */
int
src_seekable(struct src *s, struct err *e)
{
	if (s->kind == SLICE)
		return src_seekable(s->parent, e);
	if (src_is_seekable(s))
		return 0;
	if (s->pos > SRC_BACK)
		return err_set(e, SE_EINVAL,
		    "cannot go back in a pipe after %" PRIu64 " bytes", s->pos);
	int fd = temp_file(s->tmpdir, e);
	if (fd < 0)
		return fd == SE_EINVAL ? SE_EINVAL : SE_EIO;
	uint64_t n;
	int r = copy_out(s, 0, SRC_UNKNOWN, fd, &n, e);
	/* A torn gzip stays readable up to the tear. */
	if (r && r != SE_ETRUNC && r != SE_EFORMAT) {
		close(fd);
		return r;
	}
	become_file(s, fd, n);
	return r;
}

static int
spool_mem(
    struct src *to, struct src *from, uint64_t off, size_t len, struct err *e)
{
	to->kind = MEMORY;
	to->mem = to->owned = malloc(len ? len : 1);
	if (!to->owned)
		return err_mem(e);
	return src_read_at(from, off, to->owned, len, e);
}

static const char *
tmpdir_of(const struct src *s)
{
	while (s->kind == SLICE)
		s = s->parent;
	return s->tmpdir ? s->tmpdir : "/tmp";
}

static int
spool_file(
    struct src *to, struct src *from, uint64_t off, uint64_t len, struct err *e)
{
	to->kind = FD_FILE;
	to->fd = temp_file(tmpdir_of(from), e);
	if (to->fd < 0)
		return to->fd == SE_EINVAL ? SE_EINVAL : SE_EIO;
	uint64_t n;
	int r = copy_out(from, off, len, to->fd, &n, e);
	if (r || n == len)
		return r;
	return err_set(e, SE_ETRUNC,
	    "need %" PRIu64 " bytes at offset %" PRIu64 ", have %" PRIu64, len,
	    off, n);
}

int
src_spool(
    struct src **out, struct src *s, uint64_t off, uint64_t len, struct err *e)
{
	struct src *to = calloc(1, sizeof *to);
	if (!to)
		return err_mem(e);
	to->fd = -1;
	to->size = len;
	int r = len <= SRC_SPOOL_MEM ? spool_mem(to, s, off, (size_t)len, e)
				     : spool_file(to, s, off, len, e);
	if (r)
		src_close(to);
	else
		*out = to;
	return r;
}
