/*
 * --tensors: the data itself. Both files are read at the same time, one of
 * them by a thread that hands over block by block, so that memory does not
 * grow with the tensors.
 */
#include "fpdiff.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "map.h"
#include "num.h"
#include "profile.h"
#include "tensor.h"

enum { BLOCK = 1 << 20, REC_PROBE = 4096 };

struct file {
	const char *path; /* without the name */
	char *copy;
	struct str name; /* of the tensor, or all */
	struct src *src;
	struct tensor_set set;
	bool damaged; /* it may have had more tensors */
};

/* ---- opening ----------------------------------------------------------- */

/* "FILE:NAME" if FILE exists and the whole does not. */
static void
split_operand(struct file *f, const char *operand)
{
	struct stat st;
	f->path = operand;
	if (!stat(operand, &st))
		return;
	size_t len = strlen(operand);
	f->copy = cli_alloc(len + 1, 1);
	memcpy(f->copy, operand, len);
	for (char *c = f->copy + len; c-- > f->copy;) {
		if (*c != ':')
			continue;
		*c = 0;
		if (!stat(f->copy, &st)) {
			f->path = f->copy;
			f->name = str_c(operand + (c - f->copy) + 1);
			return;
		}
		*c = ':';
	}
}

static void
refuse_others(const struct file *f)
{
	char head[REC_PROBE];
	size_t n;
	if (!src_read_some(f->src, 0, head, sizeof head, &n, NULL) &&
	    rec_probe(head, n))
		cli_usage("%s: records hold no data: compare them without "
			  "--tensors",
		    f->path);
}

/* Torn gzip is readable up to the tear, but stays torn. */
static int
open_set(struct file *f, struct err *e)
{
	static const struct tensor_hints hints = { .dirfd = -1 };
	struct err inside;
	int torn = src_seekable(f->src, e);
	if (torn && torn != SE_ETRUNC && torn != SE_EFORMAT)
		return torn;
	int r = tensor_open(&f->set, f->src, &hints, &inside);
	r = tensor_claim(&f->set, f->src, str_c(f->path), &hints, r, &inside);
	if (torn && r != SE_EUNSUP)
		return torn;
	*e = inside;
	return r;
}

/* Of a damaged file what can be read is compared. */
static void
open_file(struct file *f, const char *operand)
{
	struct stat st;
	struct err e;
	split_operand(f, operand);
	if (!stat(f->path, &st) && S_ISDIR(st.st_mode))
		cli_usage("%s: is a directory: compare it without --tensors, "
			  "or its files one by one",
		    f->path);
	if (cli_src_open(&f->src, f->path, 0, &e))
		cli_die_err(cli_src_name(f->path), &e);
	refuse_others(f);
	int r = open_set(f, &e);
	if (r && !f->set.n)
		cli_die_err(f->path, &e);
	if (r)
		cli_warn_err(f->path, &e);
	f->damaged = r != 0;
	if (tensor_is_stream(&f->set))
		cli_die("%s: a table: compare it without --tensors", f->path);
}

static void
close_file(struct file *f)
{
	tensor_close(&f->set);
	src_close(f->src);
	free(f->copy);
}

/* ---- two readers in step ----------------------------------------------- */

/* What the thread hands over: p[0..len), empty once it was used up. */
struct pump {
	struct tensor *t;
	pthread_mutex_t lock;
	pthread_cond_t turn;
	const unsigned char *p;
	size_t len;
	bool ended, stop;
	bool left; /* not read to the end: no fault of this file */
	int result;
	struct err e;
};

static int
offer(void *user, const void *p, size_t len, struct err *e)
{
	struct pump *pump = user;
	pthread_mutex_lock(&pump->lock);
	pump->p = p;
	pump->len = len;
	pthread_cond_broadcast(&pump->turn);
	while (pump->len && !pump->stop)
		pthread_cond_wait(&pump->turn, &pump->lock);
	bool stop = pump->left = pump->len > 0;
	pthread_mutex_unlock(&pump->lock);
	return stop ? err_set(e, SE_EIO, "the other tensor ended early") : 0;
}

static void *
pump_main(void *arg)
{
	struct pump *pump = arg;
	void *buf = malloc(BLOCK);
	int r = buf ? tensor_blocks(pump->t, buf, BLOCK, offer, pump, &pump->e)
		    : err_mem(&pump->e);
	free(buf);
	pthread_mutex_lock(&pump->lock);
	pump->result = r;
	pump->ended = true;
	pthread_cond_broadcast(&pump->turn);
	pthread_mutex_unlock(&pump->lock);
	return NULL;
}

struct both {
	struct pump pump;
	bool left; /* as in pump */
	struct profile *profile;
};

/* A block of A: takes as much of B. */
static int
take(void *user, const void *data, size_t len, struct err *e)
{
	struct both *both = user;
	struct pump *pump = &both->pump;
	const unsigned char *a = data;
	int r = 0;
	pthread_mutex_lock(&pump->lock);
	while (len && !r) {
		while (!pump->len && !pump->ended)
			pthread_cond_wait(&pump->turn, &pump->lock);
		if (!pump->len) {
			both->left = true;
			r = err_set(e, SE_ETRUNC, "the other tensor is short");
			break;
		}
		size_t n = len < pump->len ? len : pump->len;
		profile_add(both->profile, a, pump->p, n);
		a += n;
		len -= n;
		pump->p += n;
		pump->len -= n;
		if (!pump->len)
			pthread_cond_broadcast(&pump->turn);
	}
	pthread_mutex_unlock(&pump->lock);
	return r;
}

/* False: one of the two could not be read, and that was said. */
static bool
read_both(struct file *fa, struct tensor *a, struct file *fb, struct tensor *b,
    struct profile *p)
{
	struct both both = { .pump = { .t = b }, .profile = p };
	struct pump *pump = &both.pump;
	struct err e;
	pthread_t thread;
	void *buf = cli_alloc(BLOCK, 1);
	pthread_mutex_init(&pump->lock, NULL);
	pthread_cond_init(&pump->turn, NULL);
	if (pthread_create(&thread, NULL, pump_main, pump))
		cli_die("cannot start a thread");
	int r = tensor_blocks(a, buf, BLOCK, take, &both, &e);
	pthread_mutex_lock(&pump->lock);
	pump->stop = true;
	pthread_cond_broadcast(&pump->turn);
	pthread_mutex_unlock(&pump->lock);
	pthread_join(thread, NULL);
	pthread_cond_destroy(&pump->turn);
	pthread_mutex_destroy(&pump->lock);
	free(buf);
	/* A file that was left because of the other is not to blame. */
	if (r && (!both.left || !pump->result))
		cli_warn_err(fa->path, &e);
	if (pump->result && (!pump->left || !r))
		cli_warn_err(fb->path, &pump->e);
	return !r && !pump->result;
}

/* ---- one pair ---------------------------------------------------------- */

/* The one element that differs, in words. */
static void
put_element(struct report *r, const struct profile *p)
{
	unsigned bit = 0;
	struct buf *b = &r->text;
	while (bit < p->width && !p->bit[bit])
		bit++;
	b->len = 0;
	buf_printf(b, "bit %u of one element, ", bit);
	buf_puts(b, p->ndim == 2 ? "row,col " : p->ndim ? "at " : "a scalar");
	profile_put_first(b, p);
	rec_str(r->out, "note", buf_view(b));
}

static void
put_profile(struct report *r, struct str name, const struct profile *p)
{
	struct rec_out *o = r->out;
	struct buf *b = &r->text;
	static void (*const put[])(struct buf *, const struct profile *) = {
		profile_put_first, profile_put_box, profile_put_rows
	};
	static const char *const key[] = { "first", "box", "rows" };
	rec_begin(o, "diff");
	rec_put(o, "class", profile_class(p));
	rec_str(o, "name", name);
	rec_u64(o, "elements", p->differing);
	rec_f64(o, "share", (double)p->differing / (double)p->count);
	for (int i = 0; i < 3 && p->ndim; i++) {
		b->len = 0;
		put[i](b, p);
		rec_str(o, key[i], buf_view(b));
	}
	if (p->ndim)
		rec_u64(o, "nrows", p->nrows);
	if (p->ulp_given)
		rec_u64(o, "ulp", p->ulp);
	if (p->abs_given) {
		rec_f64(o, "abs", p->abs);
		rec_f64(o, "rel", p->rel);
	}
	b->len = 0;
	profile_put_bits(b, p);
	if (b->len)
		rec_str(o, "bits", buf_view(b));
	if (p->stride)
		rec_u64(o, "stride", p->stride);
	if (p->differing == 1 && !strcmp(profile_class(p), "single-bit"))
		put_element(r, p);
	rec_end(o);
}

static void
put_incomparable(
    struct report *r, const struct tensor *a, const struct tensor *b)
{
	bool type = !str_is(str_c(a->dtype->name), b->dtype->name);
	struct rec_out *o = r->out;
	r->tally.n[DIFF_INCOMPARABLE]++;
	rec_begin(o, "diff");
	rec_put(o, "class", "incomparable");
	rec_str(o, "name", a->name);
	for (int i = 0; i < 2; i++) {
		const struct tensor *t = i ? b : a;
		r->text.len = 0;
		if (type)
			buf_puts(&r->text, t->dtype->name);
		else
			fp_put_shape(&r->text, t->shape, t->ndim);
		rec_str(o, i ? "b" : "a", buf_view(&r->text));
	}
	rec_put(o, "note", type ? "dtype" : "shape");
	rec_end(o);
}

static bool
is_comparable(const struct tensor *a, const struct tensor *b)
{
	return !strcmp(a->dtype->name, b->dtype->name) && a->ndim == b->ndim &&
	       (!a->ndim ||
		   !memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape));
}

/* What tensors_compare wants to know. */
struct found {
	struct damage damage;
	struct str name;    /* of the first tensor that differs */
	uint64_t unmatched; /* which the other file, being whole, lacks */
};

static void
compare_pair(struct report *r, struct file *fa, struct tensor *a,
    struct file *fb, struct tensor *b, struct found *found)
{
	struct profile p;
	struct err e;
	if (!is_comparable(a, b)) {
		put_incomparable(r, a, b);
		return;
	}
	if (profile_start(&p, a->dtype, a->ndim, a->shape, &e))
		cli_die_err(fa->path, &e);
	bool whole = read_both(fa, a, fb, b, &p);
	profile_end(&p);
	found->damage.skipped += !whole;
	if (p.differing) {
		if (!r->tally.n[DIFF_DIFFERENT]++)
			found->name = a->name;
		put_profile(r, a->name.len ? a->name : str_c("tensor"), &p);
	} else {
		r->tally.equal += whole;
	}
}

static void
put_unmatched(struct report *r, const struct tensor *t, int side,
    const struct file *other, struct found *found)
{
	found->unmatched += !other->damaged;
	r->tally.n[DIFF_UNMATCHED]++;
	r->tally.alone[side]++;
	rec_begin(r->out, "diff");
	rec_put(r->out, "class", "unmatched");
	rec_str(r->out, "name", t->name);
	rec_put(r->out, side ? "b" : "a", t->dtype->name);
	if (other->damaged)
		rec_put(r->out, "note", "the other file is damaged");
	rec_end(r->out);
}

/* ---- all of them ------------------------------------------------------- */

static bool
is_wanted(const struct report *r, const struct file *f, const struct tensor *t)
{
	if (t->flags & TENSOR_SCALAR)
		return false;
	if (f->name.p)
		return str_same(f->name, t->name);
	const struct select *s = &r->s->select;
	return !s->nglobs || select_name(s, t->name);
}

static size_t
count_wanted(const struct report *r, const struct file *f, struct tensor **only)
{
	size_t n = 0;
	for (size_t i = 0; i < f->set.n; i++)
		if (is_wanted(r, f, &f->set.t[i])) {
			*only = &f->set.t[i];
			n++;
		}
	if (f->name.p && !n)
		cli_die("%s: no tensor \"%.*s\"", f->path, STR_ARG(f->name));
	return n;
}

static void
compare_by_name(
    struct report *r, struct file *fa, struct file *fb, struct found *found)
{
	struct map names = { 0 };
	for (size_t i = 0; i < fb->set.n; i++) {
		bool fresh;
		struct tensor *t = &fb->set.t[i];
		if (!is_wanted(r, fb, t))
			continue;
		uint64_t *at = map_at(&names, t->name, &fresh);
		if (!at)
			cli_die("out of memory");
		*at = i + 1;
	}
	for (size_t i = 0; i < fa->set.n; i++) {
		struct tensor *t = &fa->set.t[i];
		if (!is_wanted(r, fa, t))
			continue;
		uint64_t *at = map_get(&names, t->name);
		if (!at) {
			put_unmatched(r, t, 0, fb, found);
			continue;
		}
		size_t k = (size_t)*at - 1;
		*at = 0;
		compare_pair(r, fa, t, fb, &fb->set.t[k], found);
	}
	for (size_t i = 0; i < fb->set.n; i++) {
		uint64_t *at = map_get(&names, fb->set.t[i].name);
		if (at && *at == i + 1)
			put_unmatched(r, &fb->set.t[i], 1, fa, found);
	}
	map_free(&names);
}

int
tensors_compare(struct report *r)
{
	struct file f[2] = { 0 };
	struct tensor *only[2] = { 0 };
	struct found found = { 0 };
	size_t n[2];
	for (int i = 0; i < 2; i++) {
		open_file(&f[i], r->s->operand[i]);
		found.damage.skipped += f[i].damaged;
		n[i] = count_wanted(r, &f[i], &only[i]);
	}
	report_head(r, false);
	bool one = n[0] == 1 && n[1] == 1;
	/* What is left of a damaged file need not be the one. */
	if (one && (!(f[0].damaged || f[1].damaged) ||
		       str_same(only[0]->name, only[1]->name)))
		compare_pair(r, &f[0], only[0], &f[1], only[1], &found);
	else
		compare_by_name(r, &f[0], &f[1], &found);
	report_counts(r);
	struct outcome o = { .v = { .damage = found.damage } };
	if (tally_different(&r->tally) == 1)
		o.name = found.name;
	judge_tensors(r, &o, found.unmatched > 0);
	int status = report_verdict(r, &o);
	close_file(&f[0]);
	close_file(&f[1]);
	return status;
}
