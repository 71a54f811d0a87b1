/* INPUT: sources of bytes: files, pipes, gzip, slices, spools. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gzip.h"
#include "src.h"

enum { SIZE = 300000 }; /* more than SRC_BACK and every buffer */

static unsigned char data[SIZE];

/* No two windows of the data are alike. */
static void
fill(void)
{
	unsigned state = 1;
	for (size_t i = 0; i < SIZE; i++) {
		state = state * 1103515245u + 12345u;
		data[i] = (unsigned char)(state >> 16) & (i & 4096 ? 7 : 255);
	}
}

/* An unlinked file with these bytes, at its start. */
static int
file_of(const void *p, size_t len)
{
	FILE *f = tmpfile();
	CHECK(f && fwrite(p, 1, len, f) == len && !fflush(f));
	int fd = dup(fileno(f));
	fclose(f);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

/* The read end of a pipe that a child fills. */
static int
pipe_of(const void *p, size_t len)
{
	int fd[2];
	CHECK(pipe(fd) == 0);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		const char *at = p;
		close(fd[0]);
		while (len) {
			ssize_t n = write(fd[1], at, len);
			if (n <= 0)
				break;
			at += n;
			len -= (size_t)n;
		}
		_exit(0);
	}
	close(fd[1]);
	return fd[0];
}

static struct src *
open_fd(int fd)
{
	struct src *s = NULL;
	struct err e;
	CHECK(src_open_fd(&s, fd, NULL, 0, &e) == 0);
	return s;
}

/* The window [off, off + len) is the data's, cut at `size`. */
static bool
window_is(struct src *s, uint64_t off, size_t len, uint64_t size)
{
	static unsigned char to[SIZE + 1];
	size_t got;
	struct err e;
	uint64_t left = off < size ? size - off : 0;
	size_t want = len < left ? len : (size_t)left;
	return src_read_some(s, off, to, len, &got, &e) == 0 && got == want &&
	       !memcmp(to, data + (off < size ? off : 0), want);
}

static void
test_file(void)
{
	struct src *s = open_fd(file_of(data, SIZE));
	unsigned char to[100];
	struct err e;
	CHECK(src_size(s) == SIZE && src_is_seekable(s) && !src_is_gzip(s));
	CHECK(window_is(s, 0, SIZE + 1, SIZE));
	CHECK(window_is(s, 299990, 100, SIZE) && window_is(s, 5, 10, SIZE));
	CHECK(window_is(s, SIZE, 10, SIZE));
	CHECK(window_is(s, UINT64_MAX - 5, 10, SIZE));
	CHECK(src_read_at(s, 299990, to, 11, &e) == SE_ETRUNC);
	CHECK(!strcmp(e.msg, "need 11 bytes at offset 299990, have 10"));
	CHECK(src_read_at(s, 299990, to, 10, &e) == 0);
	src_close(s);

	/* A descriptor that stands somewhere begins there. */
	int fd = file_of(data, SIZE);
	lseek(fd, 1000, SEEK_SET);
	s = open_fd(fd);
	CHECK(src_size(s) == SIZE - 1000);
	CHECK(src_read_at(s, 0, to, 100, &e) == 0);
	CHECK(!memcmp(to, data + 1000, 100));
	src_close(s);

	s = open_fd(file_of("", 0));
	CHECK(window_is(s, 0, 10, 0));
	CHECK(src_size(s) == 0);
	src_close(s);
}

static void
test_pipe(void)
{
	struct src *s = open_fd(pipe_of(data, SIZE));
	unsigned char to[10];
	size_t got;
	struct err e;
	CHECK(src_size(s) == SRC_UNKNOWN && !src_is_seekable(s));
	CHECK(window_is(s, 0, 100, SIZE) && window_is(s, 0, 50, SIZE));
	CHECK(window_is(s, 1000, 100000, SIZE));
	/* The last SRC_BACK bytes can be read again, no more. */
	CHECK(window_is(s, 101000 - SRC_BACK, SRC_BACK, SIZE));
	CHECK(window_is(s, 101000 - SRC_BACK, SRC_BACK + 77, SIZE));
	CHECK(src_read_some(s, 0, to, 10, &got, &e) == SE_EINVAL && !got);
	CHECK(src_seekable(s, &e) == SE_EINVAL);
	CHECK(window_is(s, 250000, 100000, SIZE));
	CHECK(src_size(s) == SIZE);
	CHECK(window_is(s, SIZE - 3, 10, SIZE));
	src_close(s);
}

static void
test_spool(void)
{
	struct err e;
	struct src *s = open_fd(pipe_of(data, SIZE));
	CHECK(window_is(s, 0, 60000, SIZE));
	CHECK(src_seekable(s, &e) == 0 && src_is_seekable(s));
	CHECK(src_size(s) == SIZE && window_is(s, 0, SIZE, SIZE));
	CHECK(window_is(s, 7, 10, SIZE));
	CHECK(src_seekable(s, &e) == 0);
	src_close(s);
}

static void
test_slice(void)
{
	struct err e;
	struct src *s = open_fd(file_of(data, SIZE)), *a, *b;
	unsigned char to[100];
	size_t got;
	CHECK(src_open_slice(&a, s, 100, 50, &e) == 0);
	CHECK(src_size(a) == 50 && src_is_seekable(a));
	CHECK(src_read_some(a, 0, to, 100, &got, &e) == 0 && got == 50);
	CHECK(!memcmp(to, data + 100, 50));
	CHECK(src_read_some(a, 50, to, 100, &got, &e) == 0 && got == 0);
	CHECK(src_read_at(a, 45, to, 6, &e) == SE_ETRUNC);
	/* A slice of a slice, and one that reaches behind its parent. */
	CHECK(src_open_slice(&b, a, 40, SRC_UNKNOWN, &e) == 0);
	CHECK(src_read_some(b, 0, to, 100, &got, &e) == 0 && got == 10);
	CHECK(!memcmp(to, data + 140, 10) && src_size(b) == 10);
	src_close(b);
	src_close(a);
	CHECK(src_open_slice(&a, s, SIZE - 5, 50, &e) == 0);
	CHECK(src_size(a) == 5);
	CHECK(src_read_some(a, 0, to, 100, &got, &e) == 0 && got == 5);
	src_close(a);
	CHECK(src_open_slice(&a, s, UINT64_MAX - 2, 50, &e) == 0);
	CHECK(src_size(a) == 0);
	CHECK(src_read_some(a, 0, to, 100, &got, &e) == 0 && got == 0);
	src_close(a);
	src_close(s);
}

static void
test_next(void)
{
	/* What is there is given, without waiting for the rest. */
	int fd[2];
	struct src *s;
	unsigned char to[100];
	size_t got;
	struct err e;
	CHECK(pipe(fd) == 0 && write(fd[1], "abcd", 4) == 4);
	s = open_fd(fd[0]);
	CHECK(src_read_next(s, 0, to, 100, &got, &e) == 0 && got == 4);
	CHECK(write(fd[1], "ef", 2) == 2);
	CHECK(src_read_next(s, 4, to, 100, &got, &e) == 0 && got == 2);
	CHECK(src_read_next(s, 1, to, 2, &got, &e) == 0 && got == 2);
	CHECK(!memcmp(to, "bc", 2));
	close(fd[1]);
	CHECK(src_read_next(s, 6, to, 100, &got, &e) == 0 && got == 0);
	src_close(s);
}

/* ---- gzip -----------------------------------------------------------------
 */

static void
test_gzip(void)
{
	struct buf z = { 0 };
	struct err e;
	size_t cuts[] = { 0, 1000, 1000, 170000, SIZE };
	/* Four members, the second of them empty. */
	for (size_t i = 1; i < sizeof cuts / sizeof *cuts; i++)
		CHECK(gzip_member(&z, data + cuts[i - 1], cuts[i] - cuts[i - 1],
			  &e) == 0);
	for (int from_pipe = 0; from_pipe < 2; from_pipe++) {
		struct src *s = open_fd(
		    from_pipe ? pipe_of(z.p, z.len) : file_of(z.p, z.len));
		CHECK(src_is_gzip(s) && !src_is_seekable(s));
		CHECK(window_is(s, 0, 10, SIZE));
		CHECK(window_is(s, 0, SIZE + 1, SIZE) && src_size(s) == SIZE);
		src_close(s);
		s = open_fd(
		    from_pipe ? pipe_of(z.p, z.len) : file_of(z.p, z.len));
		CHECK(src_seekable(s, &e) == 0 && window_is(s, 9, SIZE, SIZE));
		CHECK(src_is_gzip(s));
		src_close(s);
	}
	/* Zero padding is what tapes leave; other bytes are not. */
	size_t whole = z.len;
	for (int i = 0; i < 600; i++)
		buf_putc(&z, 0);
	struct src *s = open_fd(file_of(z.p, z.len));
	CHECK(window_is(s, 0, SIZE, SIZE) && window_is(s, SIZE, 9, SIZE));
	src_close(s);
	z.len = whole;
	buf_puts(&z, "more");
	s = open_fd(file_of(z.p, z.len));
	size_t got;
	unsigned char to[10];
	CHECK(window_is(s, 0, SIZE, SIZE));
	CHECK(src_read_some(s, SIZE, to, 10, &got, &e) == SE_EFORMAT);
	CHECK(strstr(e.msg, "found byte 0x6d") != NULL);
	src_close(s);
	/* Asked for as it is. */
	CHECK(src_open_fd(&s, file_of(z.p, z.len), NULL, SRC_PLAIN, &e) == 0);
	CHECK(src_size(s) == z.len && !src_is_gzip(s));
	src_close(s);
	buf_free(&z);
}

/* All that was there is delivered, then it is said that more is missing. */
static void
test_torn(void)
{
	struct buf z = { 0 };
	struct err e;
	enum { N = 3000 };
	unsigned char to[N];
	CHECK(gzip_member(&z, data, 1000, &e) == 0);
	size_t first = z.len;
	CHECK(gzip_member(&z, data + 1000, N - 1000, &e) == 0);
	uint64_t before = 0;
	for (size_t cut = 4; cut < z.len; cut++) {
		struct src *s = open_fd(file_of(z.p, cut));
		uint64_t off = 0;
		size_t got;
		int r;
		while (!(r = src_read_some(s, off, to, 100, &got, &e)) && got) {
			CHECK(!memcmp(to, data + off, got));
			off += got;
		}
		CHECK(r == (cut == first ? 0 : SE_ETRUNC));
		CHECK(off >= before && off <= N);
		CHECK(off >= 1000 || cut < first);
		before = off;
		/* It stays broken. */
		if (r)
			CHECK(src_read_some(s, off, to, 1, &got, &e) == r);
		src_close(s);
	}
	/* A flipped bit does not give the whole data without a word, unless it
	 * fills up the last byte of a member or says nothing in its header. */
	int silent = 0;
	for (size_t i = 10; i < z.len; i += 3) {
		z.p[i] ^= 0x10;
		struct src *s = open_fd(file_of(z.p, z.len));
		size_t got;
		int r = src_read_some(s, 0, to, N, &got, &e);
		if (!r && got == N)
			r = src_read_some(s, N, to, 1, &got, &e);
		else if (!r)
			r = src_read_some(s, got, to, N, &got, &e);
		silent += r == 0 && (i < first || i >= first + 10);
		src_close(s);
		z.p[i] ^= 0x10;
	}
	CHECK(silent <= 2);
	buf_free(&z);
}

/* ---- opening --------------------------------------------------------------
 */

static void
test_open(void)
{
	char dir[] = "/tmp/straightedge-test.XXXXXX";
	struct src *s;
	struct err e;
	CHECK(mkdtemp(dir) != NULL);
	int d = open(dir, O_RDONLY | O_DIRECTORY);
	CHECK(d >= 0);
	CHECK(!mkfifoat(d, "fifo", 0600) && !mkdirat(d, "sub", 0700));
	CHECK(!symlinkat("/etc/passwd", d, "link"));
	int fd = openat(d, "plain", O_WRONLY | O_CREAT, 0600);
	CHECK(fd >= 0 && write(fd, "x", 1) == 1 && !close(fd));

	CHECK(src_open(&s, dir, NULL, 0, &e) == SE_EINVAL);
	CHECK(!strcmp(e.msg, "is a directory"));
	CHECK(src_open(&s, "/nonexistent", NULL, 0, &e) == SE_EIO);
	CHECK(strstr(e.msg, strerror(ENOENT)) != NULL);
	CHECK(src_open_at(&s, d, "plain", NULL, 0, &e) == 0);
	src_close(s);
	/* Without a descriptor of its own, and only as long as it is the same.
	 */
	char byte = 0;
	CHECK(src_open_at(&s, d, "plain", NULL, 0, &e) == 0);
	int next = dup(d);
	src_release_fd(s, d, "plain");
	CHECK(dup(d) == next - 1 && !close(next - 1) && !close(next));
	CHECK(src_read_at(s, 0, &byte, 1, &e) == 0 && byte == 'x');
	CHECK(src_size(s) == 1 && src_is_seekable(s));
	CHECK(!renameat(d, "plain", d, "other"));
	CHECK(src_read_at(s, 0, &byte, 1, &e) == SE_EIO);
	fd = openat(d, "plain", O_WRONLY | O_CREAT, 0600);
	CHECK(fd >= 0 && write(fd, "y", 1) == 1 && !close(fd));
	CHECK(src_read_at(s, 0, &byte, 1, &e) == SE_EIO);
	CHECK(strstr(e.msg, "another file") != NULL);
	CHECK(!unlinkat(d, "other", 0));
	src_close(s);
	/* Names that come from inside a file. */
	CHECK(src_open_at(&s, d, "fifo", NULL, 0, &e) == SE_EINVAL);
	CHECK(src_open_at(&s, d, "sub", NULL, 0, &e) == SE_EINVAL);
	CHECK(src_open_at(&s, d, "link", NULL, 0, &e) == SE_EIO);
	CHECK(src_open_at(&s, d, "none", NULL, 0, &e) == SE_EIO);
	static const char *const bad[] = { "", ".", "..", "../plain",
		"/etc/passwd", "sub/../plain" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(src_open_at(&s, d, bad[i], NULL, 0, &e) == SE_EFORMAT);

	unlinkat(d, "fifo", 0);
	unlinkat(d, "link", 0);
	unlinkat(d, "plain", 0);
	unlinkat(d, "sub", AT_REMOVEDIR);
	close(d);
	CHECK(rmdir(dir) == 0);
}

static void
test_memory(void)
{
	struct src *s;
	struct err e;
	CHECK(src_open_mem(&s, data, SIZE, &e) == 0);
	CHECK(src_size(s) == SIZE && src_is_seekable(s));
	CHECK(window_is(s, 17, SIZE, SIZE) && window_is(s, SIZE, 1, SIZE));
	src_close(s);
	CHECK(src_open_mem(&s, NULL, 0, &e) == 0);
	CHECK(window_is(s, 0, 1, 0));
	src_close(s);
}

int
main(void)
{
	fill();
	test_file();
	test_pipe();
	test_spool();
	test_slice();
	test_next();
	test_gzip();
	test_torn();
	test_open();
	test_memory();
	return test_done("src");
}
