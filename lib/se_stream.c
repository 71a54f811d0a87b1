/*
 * Public API: the boundary stream. See straightedge.h.
 *
 * The caller formats a record into the writer of records under a lock, which
 * costs a copy; the thread of the stream takes what is finished, compresses
 * it if asked, and writes it outside the lock.
 */
#define _GNU_SOURCE /* MADV_WIPEONFORK */
#include "straightedge.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "buf.h"
#include "fp.h"
#include "gzip.h"
#include "sig.h"
#include "tensor.h"

enum {
	WAKE_BYTES = 256 << 10, /* the thread is woken at this much */
	MEMBER_BYTES = 64 << 10,
};

static const uint64_t QUEUE_DEFAULT = UINT64_C(64) << 20;

struct se_stream {
	int fd;
	bool own_fd, gzip, closing;
	pid_t pid;            /* the process whose thread writes */
	unsigned char *alive; /* a page that is wiped in a forked child */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* under the lock */
	struct rec_out *out;
	struct buf queue;
	bool woken; /* the thread was told of this queue */
	uint64_t limit, dropped, lost, seq;
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
		s->woken = false;
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

/* ---- opening --------------------------------------------------------- */

static void
put_head(struct se_stream *s, const struct se_stream_options *o)
{
	rec_begin(s->out, "head");
	rec_put(s->out, "of", "fp");
	rec_u64(s->out, "version", SCHEMA_VERSION);
	rec_put(s->out, "tool", o->tool ? o->tool : "libstraightedge");
	rec_put(s->out, "hash", s->hash);
	rec_put(s->out, "order", "exec");
	if (o->inputs)
		rec_put(s->out, "inputs", o->inputs);
	if (o->switches)
		rec_put(s->out, "switches", o->switches);
	if (s->rank)
		rec_put(s->out, "rank", s->rank);
	if (o->world)
		rec_u64(s->out, "world", o->world);
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
	if (s->alive)
		munmap(s->alive, (size_t)sysconf(_SC_PAGESIZE));
	free(s->rank);
	free(s->hash);
	free(s);
}

/*
 * A forked child has no thread to write for it. A system call for every record
 * would cost more than the record: a page that the kernel wipes in the child
 * tells the same.
 */
static void
mark_process(struct se_stream *s)
{
	s->pid = getpid();
#ifdef MADV_WIPEONFORK
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return;
	if (madvise(p, size, MADV_WIPEONFORK)) {
		munmap(p, size);
		return;
	}
	s->alive = p;
	*s->alive = 1;
#endif
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
	if (o.hash && strcmp(o.hash, "xxh3-128") && strcmp(o.hash, "mix64"))
		return SE_EINVAL;
	struct se_stream *s = calloc(1, sizeof *s);
	if (!s)
		return SE_ENOMEM;
	s->fd = fd;
	s->gzip = o.flags & SE_STREAM_GZIP;
	s->limit = o.queue ? o.queue : QUEUE_DEFAULT;
	mark_process(s);
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
	int fd = -1, e = 0;
	const char *where = path ? NULL : getenv(SIG_VARIABLE);
	if (!path && (!where || !*where))
		return SE_ENOENT;
	if (path)
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	else
		e = sig_open(where, &fd, NULL);
	if (fd < 0)
		return e ? e : SE_EIO;
	e = open_stream(out, fd, true, options);
	if (e)
		close(fd);
	return e;
}

/* ---- records --------------------------------------------------------- */

static bool
is_child(const struct se_stream *s)
{
	return s->alive ? !*s->alive : getpid() != s->pid;
}

/* Takes the lock if there is room; else counts the drop. */
static bool
lock_for_record(struct se_stream *s)
{
	if (is_child(s))
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
	bool wake = s->queue.len >= WAKE_BYTES && !s->woken;
	s->woken |= wake;
	pthread_mutex_unlock(&s->lock);
	if (wake)
		pthread_cond_signal(&s->wake);
}

/* The place and what is known about the producer. */
static void
take_place(
    const struct se_stream *s, struct fp *f, const struct se_place *given)
{
	struct se_place p = { 0 };
	if (given)
		memcpy(
		    &p, given, given->size < sizeof p ? given->size : sizeof p);
	const char *const place[FP_PLACES] = {
		[FP_STEP] = p.step,
		[FP_MB] = p.mb,
		[FP_PHASE] = p.phase,
		[FP_RANK] = p.rank ? p.rank : s->rank,
		[FP_DP] = p.dp,
		[FP_PP] = p.pp,
		[FP_TP] = p.tp,
		[FP_EP] = p.ep,
		[FP_IO] = p.io,
	};
	for (int i = 0; i < FP_PLACES; i++)
		f->place[i] = str_c(place[i]);
	f->dev = str_c(p.dev);
	f->kernel = str_c(p.kernel);
	f->storage = str_c(p.storage);
	f->replicated = str_c(p.replicated);
}

static int
put_record(struct se_stream *s, struct fp *f)
{
	if (!lock_for_record(s))
		return 1;
	f->seq = (struct fp_u64){ true, ++s->seq };
	fp_write(s->out, f);
	unlock_after_record(s);
	return 0;
}

/* The digest of the data, or a text the caller has made. */
static int
take_hash(const struct se_stream *s, struct fp *f, const void *data,
    const char *fingerprint)
{
	bool known;
	if (fingerprint)
		return fp_set(
		    f, STR_LIT("hash"), str_c(fingerprint), &known, NULL);
	bool mix = !strcmp(s->hash, "mix64");
	f->hash.algorithm = mix ? FP_MIX64 : FP_XXH3;
	if (mix)
		f->hash.value.lo = hash_mix64(data, (size_t)f->bytes, 0);
	else
		f->hash.value = hash_xxh3(data, (size_t)f->bytes);
	return 0;
}

int
se_stream_tensor(struct se_stream *s, const char *name, const char *dtype,
    unsigned ndim, const uint64_t *shape, const void *data, uint64_t len,
    const char *fingerprint, const struct se_place *place)
{
	if (!name || !dtype || ndim > TENSOR_NDIM_MAX)
		return SE_EINVAL;
	if ((!data && !fingerprint && len) || len > SIZE_MAX)
		return SE_EINVAL;
	struct buf dims = { 0 };
	fp_put_shape(&dims, shape, ndim);
	struct fp f = { .name = str_c(name),
		.dtype = str_c(dtype),
		.shape = ndim ? buf_view(&dims) : STR_LIT(""),
		.bytes = len };
	int e = dims.failed ? SE_ENOMEM : take_hash(s, &f, data, fingerprint);
	if (!e) {
		take_place(s, &f, place);
		e = put_record(s, &f);
	}
	buf_free(&dims);
	return e;
}

int
se_stream_scalar(struct se_stream *s, const char *name, const char *vtype,
    const char *value, const struct se_place *place)
{
	if (!name || !vtype || !value)
		return SE_EINVAL;
	struct fp f = { .scalar = true,
		.name = str_c(name),
		.vtype = str_c(vtype),
		.value = str_c(value) };
	take_place(s, &f, place);
	return put_record(s, &f);
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
	if (is_child(s)) {
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
