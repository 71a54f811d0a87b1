/* Order of time: see sorter.h. */
#include "sorter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "big.h"
#include "cli.h"
#include "spool.h"

enum {
	DIGIT = 11, /* bits a pass: 2048 counters fit the first-level cache */
	RADIX = 1 << DIGIT,
	/* Item, and while sorting two pairs, or one and the item's copy. */
	BYTES_EACH = 2 * (int)sizeof(struct item) + 16,
	ITEMS_MIN = 1 << 16,
	RUNS_MAX = 1024,
	MERGE_BLOCK = 1 << 12, /* items read from a run at a time */
};

struct pair {
	uint64_t key;
	uint32_t at;
};

struct sorter {
	struct item *item;
	size_t n, cap, max;
	const char *tmpdir;
	int fd; /* of the runs */
	uint64_t written;
	size_t run_len[RUNS_MAX];
	size_t runs;
	void *map;
	size_t map_len;
};

struct sorter *
sorter_new(uint64_t memory, const char *tmpdir)
{
	struct sorter *s = cli_alloc(1, sizeof *s);
	s->tmpdir = tmpdir;
	s->fd = -1;
	s->max = memory / BYTES_EACH;
	if (s->max < ITEMS_MIN)
		s->max = ITEMS_MIN;
	if (s->max > UINT32_MAX)
		s->max = UINT32_MAX;
	return s;
}

uint64_t
sorter_runs(const struct sorter *s)
{
	return s->runs;
}

void
sorter_free(struct sorter *s)
{
	if (!s)
		return;
	if (s->map)
		munmap(s->map, s->map_len);
	if (s->fd >= 0)
		close(s->fd);
	big_free(s->item, s->cap, sizeof *s->item);
	free(s);
}

/* ---- one run in memory -------------------------------------------------- */

static void
radix_pass(const struct pair *from, struct pair *to, size_t n, int shift)
{
	static const uint64_t mask = RADIX - 1;
	uint32_t count[RADIX] = { 0 }, at = 0;
	for (size_t i = 0; i < n; i++)
		count[from[i].key >> shift & mask]++;
	for (int d = 0; d < RADIX; d++) {
		uint32_t c = count[d];
		count[d] = at;
		at += c;
	}
	for (size_t i = 0; i < n; i++)
		to[count[from[i].key >> shift & mask]++] = from[i];
}

static bool
in_order(const struct item *it, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (it[i].ts < it[i - 1].ts)
			return false;
	return true;
}

/* Item i becomes the one that a[i] names. */
static void
permute(struct sorter *s, const struct pair *a)
{
	struct item *to = big_alloc(s->cap, sizeof *to);
	for (size_t i = 0; i < s->n; i++)
		to[i] = s->item[a[i].at];
	big_free(s->item, s->cap, sizeof *to);
	s->item = to;
}

/* Sorts item[0..n), unless it is in order. */
static void
sort_run(struct sorter *s)
{
	size_t n = s->n;
	if (in_order(s->item, n))
		return;
	int64_t min = s->item[0].ts, max = min;
	for (size_t i = 1; i < n; i++) {
		min = s->item[i].ts < min ? s->item[i].ts : min;
		max = s->item[i].ts > max ? s->item[i].ts : max;
	}
	struct pair *a = big_alloc(n, sizeof *a);
	struct pair *b = big_alloc(n, sizeof *b);
	for (size_t i = 0; i < n; i++)
		a[i] = (struct pair){ (uint64_t)s->item[i].ts - (uint64_t)min,
			(uint32_t)i };
	uint64_t range = (uint64_t)max - (uint64_t)min;
	for (int shift = 0; shift < 64 && range >> shift; shift += DIGIT) {
		radix_pass(a, b, n, shift);
		struct pair *t = a;
		a = b;
		b = t;
	}
	big_free(b, n, sizeof *b);
	permute(s, a);
	big_free(a, n, sizeof *a);
}

/* ---- runs on disk ------------------------------------------------------- */

static int
write_at(int fd, const void *p, size_t len, uint64_t off, struct err *e)
{
	const char *c = p;
	while (len) {
		ssize_t w = pwrite(fd, c, len, (off_t)off);
		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return err_sys(e, "cannot write a temporary file");
		c += w;
		len -= (size_t)w;
		off += (uint64_t)w;
	}
	return 0;
}

static int
spill(struct sorter *s, struct err *e)
{
	if (s->runs == RUNS_MAX)
		return err_set(e, SE_ELIMIT,
		    "more than %d runs: give more --memory", RUNS_MAX);
	if (s->fd < 0)
		s->fd = spool_temp(s->tmpdir, e);
	if (s->fd < 0)
		return SE_EIO;
	sort_run(s);
	const struct item *it = s->item;
	int r =
	    write_at(s->fd, it, s->n * sizeof *it, s->written * sizeof *it, e);
	if (r)
		return r;
	s->written += s->n;
	s->run_len[s->runs++] = s->n;
	s->n = 0;
	return 0;
}

int
sorter_add(struct sorter *s, const struct item *it, struct err *e)
{
	if (s->n == s->cap) {
		if (s->n == s->max) {
			int r = spill(s, e);
			if (r)
				return r;
		} else {
			size_t want = s->cap ? s->cap * 2 : ITEMS_MIN;
			size_t cap = want < s->max ? want : s->max;
			s->item =
			    big_grow(s->item, s->cap, cap, sizeof *s->item);
			s->cap = cap;
		}
	}
	s->item[s->n++] = *it;
	return 0;
}

/* One run while merging. */
struct run {
	uint64_t off, left; /* in items */
	struct item *block;
	size_t at, n;
};

static int
refill(struct sorter *s, struct run *r, struct err *e)
{
	size_t n = r->left < MERGE_BLOCK ? (size_t)r->left : MERGE_BLOCK;
	r->at = 0;
	r->n = n;
	char *p = (char *)r->block;
	size_t len = n * sizeof *r->block;
	uint64_t off = r->off * sizeof *r->block;
	while (len) {
		ssize_t got = pread(s->fd, p, len, (off_t)off);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return err_sys(e, "cannot read a temporary file");
		p += got;
		len -= (size_t)got;
		off += (uint64_t)got;
	}
	r->off += n;
	r->left -= n;
	return 0;
}

/* Run a goes before run b: earlier stamp, or the earlier run. */
static bool
before(const struct run *run, uint32_t a, uint32_t b)
{
	int64_t x = run[a].block[run[a].at].ts, y = run[b].block[run[b].at].ts;
	return x != y ? x < y : a < b;
}

static void
sift(uint32_t *heap, size_t n, size_t i, const struct run *run)
{
	for (;;) {
		size_t c = 2 * i + 1;
		if (c >= n)
			return;
		if (c + 1 < n && before(run, heap[c + 1], heap[c]))
			c++;
		if (!before(run, heap[c], heap[i]))
			return;
		uint32_t t = heap[i];
		heap[i] = heap[c];
		heap[c] = t;
		i = c;
	}
}

static int
merge_runs(struct sorter *s, struct run *run, struct item *to, struct err *e)
{
	uint32_t heap[RUNS_MAX];
	size_t n = s->runs;
	for (uint32_t i = 0; i < n; i++)
		heap[i] = i;
	for (size_t i = n; i-- > 0;)
		sift(heap, n, i, run);
	while (n) {
		struct run *r = &run[heap[0]];
		*to++ = r->block[r->at++];
		if (r->at == r->n && r->left) {
			int bad = refill(s, r, e);
			if (bad)
				return bad;
		}
		if (r->at == r->n)
			heap[0] = heap[--n];
		sift(heap, n, 0, run);
	}
	return 0;
}

/* The merged array lives in a file of its own, so memory can be given back. */
static int
map_result(struct sorter *s, struct err *e)
{
	int fd = spool_temp(s->tmpdir, e);
	if (fd < 0)
		return SE_EIO;
	s->map_len = s->written * sizeof(struct item);
	/* Really allocated: a full disk is an error now, not a signal later. */
	int r = posix_fallocate(fd, 0, (off_t)s->map_len);
	if (r) {
		errno = r;
		r = err_sys(
		    e, "cannot make a temporary file of %zu bytes", s->map_len);
	} else {
		s->map = mmap(NULL, s->map_len, PROT_READ | PROT_WRITE,
		    MAP_SHARED, fd, 0);
		if (s->map == MAP_FAILED) {
			s->map = NULL;
			r = err_sys(e, "cannot map a temporary file");
		}
	}
	close(fd);
	return r;
}

static int
merge(struct sorter *s, struct err *e)
{
	int r = map_result(s, e);
	if (r)
		return r;
	big_free(s->item, s->cap, sizeof *s->item);
	s->item = NULL;
	struct run *run = cli_alloc(s->runs, sizeof *run);
	uint64_t off = 0;
	for (size_t i = 0; i < s->runs && !r; i++) {
		run[i] = (struct run){ .off = off,
			.left = s->run_len[i],
			.block = cli_alloc(MERGE_BLOCK, sizeof(struct item)) };
		off += s->run_len[i];
		r = refill(s, &run[i], e);
	}
	if (!r)
		r = merge_runs(s, run, s->map, e);
	for (size_t i = 0; i < s->runs; i++)
		free(run[i].block);
	free(run);
	return r;
}

int
sorter_finish(struct sorter *s, struct item **items, size_t *n, struct err *e)
{
	if (!s->runs) {
		if (s->n)
			sort_run(s);
		*n = s->n;
		*items = s->item;
		return 0;
	}
	int r = s->n ? spill(s, e) : 0;
	if (!r)
		r = merge(s, e);
	*items = s->map;
	*n = s->written;
	return r;
}
