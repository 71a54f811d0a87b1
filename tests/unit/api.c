/* The public API against values from xxhsum and from hand computation. */
#include "test.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "straightedge.h"

static char path[64];

static bool
value_is(const struct se_reader *r, const char *key, const char *want)
{
	size_t len;
	const char *v = se_reader_get(r, key, &len);
	return v && len == strlen(want) && !memcmp(v, want, len);
}

static void
test_fingerprint(void)
{
	char text[SE_FINGERPRINT_SIZE], again[SE_FINGERPRINT_SIZE];
	/* printf abc | xxhsum -H2 */
	CHECK(!se_fingerprint(NULL, "abc", 3, text, sizeof text));
	CHECK(!strcmp(text, "xxh3-128:06b05ab6733a618578af5f94892f3950"));
	CHECK(se_fingerprint("md5", "abc", 3, text, sizeof text) == SE_EINVAL);
	CHECK(se_fingerprint(NULL, "abc", 3, text, 20) == SE_EINVAL);

	unsigned char data[1000];
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (unsigned char)(i * i);
	static const char *const algorithm[] = { "xxh3-128", "mix64" };
	for (int a = 0; a < 2; a++) {
		struct se_hasher *h;
		CHECK(!se_hasher_open(&h, algorithm[a]));
		se_fingerprint(
		    algorithm[a], data, sizeof data, text, sizeof text);
		/* Pieces of every small size give the whole. */
		for (size_t piece = 1; piece < 40; piece++) {
			se_hasher_reset(h);
			for (size_t at = 0; at < sizeof data; at += piece)
				se_hasher_add(h, data + at,
				    sizeof data - at < piece ? sizeof data - at
							     : piece);
			se_hasher_text(h, again, sizeof again);
			CHECK(!strcmp(text, again));
		}
		se_hasher_close(h);
	}

	/* Shards in any order add up to the whole; moved units do not. */
	uint64_t whole[2] = { 0, 0 }, parts[2] = { 0, 0 }, moved[2] = { 0, 0 };
	CHECK(!se_shardsum(data, 1000, 100, 0, whole));
	se_shardsum(data + 500, 500, 100, 5, parts);
	se_shardsum(data, 500, 100, 0, parts);
	CHECK(whole[0] == parts[0] && whole[1] == parts[1]);
	se_shardsum(data + 500, 500, 100, 0, moved);
	se_shardsum(data, 500, 100, 5, moved);
	CHECK(whole[0] != moved[0] && whole[1] != moved[1]);
	CHECK(se_shardsum(data, 1000, 0, 0, whole) == SE_EINVAL);
}

static void
write_stream(unsigned flags, int n)
{
	struct se_stream_options o = {
		.size = sizeof o, .flags = flags, .rank = "3"
	};
	struct se_place p = { .size = sizeof p, .step = "7", .io = "out" };
	uint64_t shape[2] = { 1, 3 };
	struct se_stream *s;
	CHECK(!se_stream_open(&s, path, &o));
	for (int i = 0; i < n; i++)
		CHECK(!se_stream_tensor(
		    s, "a\tb", "u8", 2, shape, "abc", 3, NULL, &p));
	CHECK(!se_stream_scalar(s, "loss", "f64", "0.25", &p));
	CHECK(se_stream_tensor(s, NULL, "u8", 2, shape, "abc", 3, NULL, &p) ==
	      SE_EINVAL);
	CHECK(!se_stream_close(s));
}

static void
test_stream(unsigned flags, int n)
{
	struct se_reader *r;
	int fps = 0, scalars = 0, got;
	char seq[20];
	write_stream(flags, n);
	CHECK(!se_reader_open(&r, path));
	while ((got = se_reader_next(r)) == 1) {
		size_t len;
		const char *type = se_reader_type(r, &len);
		if (len == 2 && !memcmp(type, "fp", 2)) {
			fps++;
			CHECK(value_is(r, "name", "a\tb"));
			CHECK(value_is(r, "shape", "1,3"));
			CHECK(value_is(r, "rank", "3"));
			CHECK(value_is(r, "step", "7"));
			snprintf(seq, sizeof seq, "%d", fps);
			CHECK(value_is(r, "seq", seq));
			CHECK(value_is(r, "hash",
			    "xxh3-128:"
			    "06b05ab6733a618578af5f94892f3950"));
			CHECK(!se_reader_get(r, "mb", NULL));
		} else if (len == 6 && !memcmp(type, "scalar", 6)) {
			scalars++;
			CHECK(value_is(r, "value", "0.25"));
		}
	}
	CHECK(got == 0 && fps == n && scalars == 1);
	CHECK(se_reader_state(r) == SE_STATE_COMPLETE);
	CHECK(se_reader_bad(r) == 0);
	se_reader_close(r);
}

/* A queue that is always full: everything is dropped, and the end says so. */
static void
test_drops(void)
{
	struct se_stream_options o = { .size = sizeof o, .queue = 1 };
	struct se_stream *s;
	struct se_reader *r;
	uint64_t shape[1] = { 3 };
	int dropped = 0, lost = 0;
	CHECK(!se_stream_open(&s, path, &o));
	for (int i = 0; i < 5000; i++)
		dropped += se_stream_tensor(s, "t", "u8", 1, shape, "abc", 3,
			       NULL, NULL) == 1;
	CHECK(dropped > 0);
	CHECK(se_stream_dropped(s) == (uint64_t)dropped);
	se_stream_lost(s, 2);
	CHECK(!se_stream_close(s));
	CHECK(!se_reader_open(&r, path));
	while (se_reader_next(r) == 1) {
		char want[20];
		snprintf(want, sizeof want, "%d", dropped + 2);
		lost += value_is(r, "lost", want);
	}
	CHECK(lost == 1);
	se_reader_close(r);
}

/* kill -9 under the writer: whole lines stay readable, marked incomplete. */
static void
test_killed(void)
{
	pid_t child = fork();
	if (child == 0) {
		struct se_stream *s;
		uint64_t shape[1] = { 3 };
		if (se_stream_open(&s, path, NULL))
			_exit(1);
		for (;;)
			se_stream_tensor(
			    s, "t", "u8", 1, shape, "abc", 3, NULL, NULL);
	}
	struct stat st = { 0 };
	for (int i = 0; i < 500 && st.st_size < 1 << 20; i++) {
		poll(NULL, 0, 10);
		if (stat(path, &st))
			st.st_size = 0;
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	struct se_reader *r;
	int got, bad = 0;
	uint64_t n = 0;
	CHECK(!se_reader_open(&r, path));
	while ((got = se_reader_next(r)) == 1 || got == SE_EFORMAT) {
		bad += got == SE_EFORMAT;
		n += got == 1;
	}
	CHECK(n > 1000 && bad <= 1); /* only the last line may be cut */
	CHECK(se_reader_state(r) == SE_STATE_FILTERED);
	se_reader_close(r);
}

/* A forked child writes nothing and does not disturb its parent's stream. */
static void
test_fork(void)
{
	struct se_stream *s;
	struct se_reader *r;
	uint64_t shape[1] = { 3 }, n = 0;
	int status = 1;
	CHECK(!se_stream_open(&s, path, NULL));
	se_stream_tensor(s, "a", "u8", 1, shape, "abc", 3, NULL, NULL);
	pid_t child = fork();
	if (child == 0) {
		int r1 = se_stream_tensor(
		    s, "child", "u8", 1, shape, "abc", 3, NULL, NULL);
		_exit(r1 != 1 || se_stream_close(s) != 0 ? 1 : 0);
	}
	waitpid(child, &status, 0);
	CHECK(status == 0);
	se_stream_tensor(s, "b", "u8", 1, shape, "abc", 3, NULL, NULL);
	CHECK(!se_stream_close(s));
	CHECK(!se_reader_open(&r, path));
	while (se_reader_next(r) == 1) {
		CHECK(!value_is(r, "name", "child"));
		n++;
	}
	CHECK(n == 4 && se_reader_state(r) == SE_STATE_COMPLETE);
	se_reader_close(r);
}

static void
test_full_disk(void)
{
	struct se_stream *s;
	uint64_t shape[1] = { 3 };
	if (access("/dev/full", W_OK))
		return;
	CHECK(!se_stream_open(&s, "/dev/full", NULL));
	se_stream_tensor(s, "t", "u8", 1, shape, "abc", 3, NULL, NULL);
	CHECK(se_stream_close(s) == SE_EIO);
}

static unsigned
whole_streams(void)
{
	struct se_reader *r;
	unsigned heads = 0;
	CHECK(!se_reader_open(&r, path));
	while (se_reader_next(r) > 0)
		heads += *se_reader_type(r, NULL) == 'h';
	CHECK(se_reader_state(r) == SE_STATE_COMPLETE);
	se_reader_close(r);
	return heads;
}

/* Where the environment says: appended, to a path or a descriptor. */
static void
test_wanted(void)
{
	struct se_stream *s;
	char fd[32];
	unlink(path);
	unsetenv("STRAIGHTEDGE_SIG");
	CHECK(se_stream_open(&s, NULL, NULL) == SE_ENOENT);
	setenv("STRAIGHTEDGE_SIG", "fd:1000000", 1);
	CHECK(se_stream_open(&s, NULL, NULL) == SE_EIO);
	setenv("STRAIGHTEDGE_SIG", "fd:", 1);
	CHECK(se_stream_open(&s, NULL, NULL) < 0);
	setenv("STRAIGHTEDGE_SIG", path, 1);
	for (int i = 0; i < 2; i++) {
		CHECK(!se_stream_open(&s, NULL, NULL));
		CHECK(!se_stream_close(s));
	}
	CHECK(whole_streams() == 2);
	FILE *f = fopen(path, "a");
	snprintf(fd, sizeof fd, "fd:%d", fileno(f));
	setenv("STRAIGHTEDGE_SIG", fd, 1);
	CHECK(!se_stream_open(&s, NULL, NULL));
	CHECK(!se_stream_close(s));
	CHECK(whole_streams() == 3 && !fclose(f));
	unsetenv("STRAIGHTEDGE_SIG");
}

static void
test_writer(void)
{
	FILE *f = tmpfile();
	struct se_writer *w;
	CHECK(se_writer_open(&w, fileno(f), "xml") == SE_EINVAL);
	CHECK(!se_writer_open(&w, fileno(f), NULL));
	se_writer_begin(w, "evidence");
	se_writer_time(w, "time", 1500000000);
	se_writer_text(w, "entity", "link:a>b", 8);
	se_writer_text(w, "agent", "me", 2);
	se_writer_text(w, "status", "faulty", 6);
	se_writer_end(w);
	CHECK(!se_writer_close(w, NULL, 0));
	char text[300] = "";
	rewind(f);
	CHECK(fread(text, 1, sizeof text - 1, f) > 0);
	CHECK(!strncmp(text,
	    "evidence\ttime=1.5\tentity=link:a>b\tagent=me\t"
	    "status=faulty\nend\trecords=1\tsum=",
	    74));
	fclose(f);
}

/* One event, and what the reader makes of it. */
static void
test_event(void)
{
	FILE *f = tmpfile();
	struct se_writer *w;
	static const char *const args[] = { "new_tokens", "64", "why", "a\tb" };
	static const char *const odd[] = { "two words", "1" };
	struct se_event ev = { .size = sizeof ev,
		.name = "step",
		.ts = 1500000001,
		.dur = 2000,
		.kind = "step",
		.rank = "3",
		.thread = "main",
		.args = args,
		.nargs = 2 };
	CHECK(!se_writer_open(&w, fileno(f), NULL));
	CHECK(!se_writer_event(w, &ev));
	struct se_event bad = ev;
	bad.name = NULL;
	CHECK(se_writer_event(w, &bad) == SE_EINVAL);
	bad = ev;
	bad.rank = "three";
	CHECK(se_writer_event(w, &bad) == SE_EINVAL);
	bad = ev;
	bad.args = odd;
	bad.nargs = 1;
	CHECK(se_writer_event(w, &bad) == SE_EINVAL);
	bad.args = odd + 1;
	bad.nargs = 0;
	bad.size = 8;
	CHECK(se_writer_event(w, &bad) == SE_EINVAL);
	ev = (struct se_event){ .size = sizeof ev, .name = "x", .dur = -1 };
	CHECK(!se_writer_event(w, &ev));
	CHECK(!se_writer_close(w, NULL, 0));
	char text[400] = "";
	static const char want[] =
	    "ev\tts=1.500000001\tdur=0.000002\trank=3\tthread=main\tkind=step\t"
	    "name=step\tx.new_tokens=64\tx.why=a\\tb\nev\tts=0\tname=x\n"
	    "end\trecords=2\t";
	rewind(f);
	CHECK(fread(text, 1, sizeof text - 1, f) > 0);
	CHECK(!strncmp(text, want, sizeof want - 1));
	fclose(f);
}

int
main(void)
{
	snprintf(
	    path, sizeof path, "/tmp/straightedge-api.%ld", (long)getpid());
	test_fingerprint();
	test_stream(0, 1);
	test_stream(SE_STREAM_GZIP | SE_STREAM_STATIC, 20000);
	test_stream(0, 50000);
	test_drops();
	test_killed();
	test_fork();
	test_full_disk();
	test_wanted();
	test_writer();
	test_event();
	unlink(path);
	return test_done("unit api");
}
