/*
 * Public API: the boundary stream. See straightedge.h.
 *
 * The caller formats a record into the writer of records under a lock, which
 * costs a copy; the thread of the stream takes what is finished, compresses
 * it if asked, and writes it outside the lock.
 */
#define _GNU_SOURCE /* pthread_condattr_setclock on older libcs */
#include "straightedge.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "buf.h"
#include "gzip.h"
#include "rec.h"

enum {
	WAKE_BYTES = 256 << 10, /* the thread is woken at this much */
	MEMBER_BYTES = 64 << 10,
	SHAPE_TEXT = 64 * 21,
};

static const uint64_t QUEUE_DEFAULT = UINT64_C(64) << 20;

struct se_stream {
	int fd;
	bool own_fd, gzip, closing;
	pid_t pid; /* the process whose thread writes */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* under the lock */
	struct rec_out *out;
	struct buf queue;
	uint64_t limit, dropped, lost;
	struct err failure;
	/* constant */
	char *rank, *hash;
};

static int
enqueue(void *user, const char *p, size_t len, struct err *e)
{
	struct se_stream *s = user;
	buf_add(&s->queue, p, len);
	return s->queue.failed ? err_mem(e) : 0;
}

/* ---- the thread --------------------------------------------------------- */

static int
write_all(int fd, const char *p, size_t n, struct err *e)
{
	while (n) {
		ssize_t w = write(fd, p, n);
		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return err_sys(e, "cannot write");
		p += w;
		n -= (size_t)w;
	}
	return 0;
}

static int
write_out(const struct se_stream *s, const struct buf *b, struct err *e)
{
	if (!s->gzip)
		return write_all(s->fd, b->p, b->len, e);
	struct buf z = { 0 };
	int r = 0;
	for (size_t at = 0; at < b->len && !r; at += MEMBER_BYTES) {
		size_t n = b->len - at;
		n = n < MEMBER_BYTES ? n : MEMBER_BYTES;
		z.len = 0;
		r = gzip_member(&z, b->p + at, n, e);
		if (!r)
			r = write_all(s->fd, z.p, z.len, e);
	}
	buf_free(&z);
	return r;
}

static void
wait_a_second(struct se_stream *s)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec++;
	while (!s->closing && s->queue.len < WAKE_BYTES)
		if (pthread_cond_timedwait(&s->wake, &s->lock, &until))
			break;
}

static void *
writer(void *user)
{
	struct se_stream *s = user;
	struct buf mine = { 0 };
	pthread_mutex_lock(&s->lock);
	for (bool last = false; !last;) {
		wait_a_second(s);
		last = s->closing;
		rec_out_flush(s->out, NULL);
		struct buf full = s->queue;
		s->queue = mine;
		s->queue.len = 0;
		bool broken = s->failure.code != 0;
		pthread_mutex_unlock(&s->lock);

		struct err e = { 0 };
		if (!broken && full.len)
			write_out(s, &full, &e);
		mine = full;
		pthread_mutex_lock(&s->lock);
		if (e.code)
			s->failure = e;
	}
	pthread_mutex_unlock(&s->lock);
	buf_free(&mine);
	return NULL;
}

/* ---- opening ------------------------------------------------------------ */

static void
put_head(struct se_stream *s, const struct se_stream_options *o)
{
	rec_begin(s->out, "head");
	rec_put(s->out, "of", "fp");
	rec_u64(s->out, "version", SCHEMA_VERSION);
	rec_put(s->out, "tool", o->tool ? o->tool : "libstraightedge");
	rec_put(s->out, "hash", s->hash);
	rec_put(s->out, "order", "exec");
	if (o->switches)
		rec_put(s->out, "switches", o->switches);
	if (s->rank)
		rec_put(s->out, "rank", s->rank);
	if (!(o->flags & SE_STREAM_STATIC)) {
		struct timespec t;
		char host[256] = "";
		clock_gettime(CLOCK_REALTIME, &t);
		gethostname(host, sizeof host - 1);
		rec_time(
		    s->out, "time", (int64_t)t.tv_sec * 1000000000 + t.tv_nsec);
		rec_put(s->out, "host", host);
	}
	rec_end(s->out);
}

static int
start_thread(struct se_stream *s)
{
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&s->lock, NULL);
	return pthread_create(&s->thread, NULL, writer, s) ? SE_EIO : 0;
}

static void
free_stream(struct se_stream *s)
{
	rec_out_close(s->out);
	buf_free(&s->queue);
	if (s->own_fd)
		close(s->fd);
	free(s->rank);
	free(s->hash);
	free(s);
}

static int
open_stream(struct se_stream **out, int fd, bool own,
    const struct se_stream_options *given)
{
	struct se_stream_options o = { 0 };
	if (given && given->size <= sizeof o)
		memcpy(&o, given, given->size);
	else if (given)
		o = *given;
	struct se_stream *s = calloc(1, sizeof *s);
	if (!s)
		return SE_ENOMEM;
	s->fd = fd;
	s->gzip = o.flags & SE_STREAM_GZIP;
	s->limit = o.queue ? o.queue : QUEUE_DEFAULT;
	s->pid = getpid();
	s->hash = strdup(o.hash ? o.hash : "xxh3-128");
	s->rank = o.rank ? strdup(o.rank) : NULL;
	struct rec_how how = { .sink = enqueue, .user = s };
	int e = !s->hash || (o.rank && !s->rank)
		    ? SE_ENOMEM
		    : rec_out_open(&s->out, -1, &how, NULL);
	if (!e) {
		put_head(s, &o);
		e = start_thread(s);
	}
	if (e) {
		free_stream(s);
		return e;
	}
	s->own_fd = own;
	*out = s;
	return 0;
}

int
se_stream_open_fd(
    struct se_stream **out, int fd, const struct se_stream_options *options)
{
	return open_stream(out, fd, false, options);
}

int
se_stream_open(struct se_stream **out, const char *path,
    const struct se_stream_options *options)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return SE_EIO;
	int e = open_stream(out, fd, true, options);
	if (e)
		close(fd);
	return e;
}

/* ---- records ------------------------------------------------------------ */

/* Takes the lock if there is room; else counts the drop. */
static bool
lock_for_record(struct se_stream *s)
{
	if (getpid() != s->pid)
		return false;
	pthread_mutex_lock(&s->lock);
	if (s->queue.len < s->limit && !s->failure.code)
		return true;
	s->dropped++;
	pthread_mutex_unlock(&s->lock);
	return false;
}

static void
unlock_after_record(struct se_stream *s)
{
	if (s->queue.len >= WAKE_BYTES)
		pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
}

static void
put_place(struct se_stream *s, const struct se_place *given)
{
	struct se_place p = { 0 };
	if (given)
		memcpy(
		    &p, given, given->size < sizeof p ? given->size : sizeof p);
	const char *rank = p.rank ? p.rank : s->rank;
	const struct {
		const char *key, *value;
	} part[] = {
		{ "step", p.step },
		{ "mb", p.mb },
		{ "phase", p.phase },
		{ "rank", rank },
		{ "dp", p.dp },
		{ "pp", p.pp },
		{ "tp", p.tp },
		{ "ep", p.ep },
		{ "io", p.io },
		{ "kernel", p.kernel },
		{ "dev", p.dev },
		{ "storage", p.storage },
		{ "replicated", p.replicated },
	};
	for (size_t i = 0; i < sizeof part / sizeof *part; i++)
		if (part[i].value)
			rec_put(s->out, part[i].key, part[i].value);
}

static size_t
shape_text(char *to, size_t size, unsigned ndim, const uint64_t *shape)
{
	size_t n = (size_t)snprintf(to, size, "[");
	for (unsigned i = 0; i < ndim; i++)
		n += (size_t)snprintf(
		    to + n, size - n, "%s%" PRIu64, i ? "," : "", shape[i]);
	n += (size_t)snprintf(to + n, size - n, "]");
	return n;
}

int
se_stream_tensor(struct se_stream *s, const char *name, const char *dtype,
    unsigned ndim, const uint64_t *shape, const void *data, uint64_t len,
    const char *fingerprint, const struct se_place *place)
{
	char text[SE_FINGERPRINT_SIZE], dims[SHAPE_TEXT];
	if (!name || !dtype || ndim > 64 || (!data && !fingerprint && len))
		return SE_EINVAL;
	if (!fingerprint) {
		int e = se_fingerprint(
		    s->hash, data, (size_t)len, text, sizeof text);
		if (e)
			return e;
		fingerprint = text;
	}
	size_t n = shape_text(dims, sizeof dims, ndim, shape);
	if (!lock_for_record(s))
		return 1;
	rec_begin(s->out, "fp");
	rec_put(s->out, "name", name);
	rec_put(s->out, "dtype", dtype);
	rec_str(s->out, "shape", (struct str){ dims, n });
	rec_u64(s->out, "bytes", len);
	rec_put(s->out, "hash", fingerprint);
	put_place(s, place);
	rec_end(s->out);
	unlock_after_record(s);
	return 0;
}

int
se_stream_scalar(struct se_stream *s, const char *name, const char *vtype,
    const char *value, const struct se_place *place)
{
	if (!name || !vtype || !value)
		return SE_EINVAL;
	if (!lock_for_record(s))
		return 1;
	rec_begin(s->out, "scalar");
	rec_put(s->out, "name", name);
	rec_put(s->out, "vtype", vtype);
	rec_put(s->out, "value", value);
	put_place(s, place);
	rec_end(s->out);
	unlock_after_record(s);
	return 0;
}

int
se_stream_lost(struct se_stream *s, uint64_t n)
{
	pthread_mutex_lock(&s->lock);
	s->lost += n;
	pthread_mutex_unlock(&s->lock);
	return 0;
}

uint64_t
se_stream_dropped(const struct se_stream *s)
{
	struct se_stream *m = (struct se_stream *)s; /* only for its lock */
	pthread_mutex_lock(&m->lock);
	uint64_t n = m->dropped;
	pthread_mutex_unlock(&m->lock);
	return n;
}

int
se_stream_close(struct se_stream *s)
{
	if (!s)
		return 0;
	if (getpid() != s->pid) {
		free_stream(s);
		return 0;
	}
	pthread_mutex_lock(&s->lock);
	rec_out_lost(s->out, s->lost + s->dropped);
	int e = rec_out_finish(s->out, NULL, 0, 0, NULL);
	s->closing = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	if (s->failure.code)
		e = s->failure.code;
	if (s->own_fd && close(s->fd) && !e)
		e = SE_EIO;
	s->own_fd = false;
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free_stream(s);
	return e;
}
