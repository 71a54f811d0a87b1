/* Files to records: see dump.h. */
#define _GNU_SOURCE /* O_DIRECTORY */
#include "dump.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "esc.h"
#include "map.h"
#include "sort.h"

/* Work that a thread takes at a time. */
enum {
	TAKE_BYTES = 4 << 20,
	TAKE_ENTRIES = 1024,
	LABELS_MAX = 2 * REC_FIELDS_MAX,
	LEFT_OUT_MAX = 20, /* bad lines of tables shown; all are counted */
};

enum result_flag {
	RESULT_UNWANTED = 1, /* not selected */
	RESULT_DONE = 2,
	RESULT_FAILED = 4,
	RESULT_SHARED = 8, /* another entry has the same storage */
};

struct result {
	struct fingerprint print;
	struct result *same; /* the entry of which this one is a copy */
	const char *message; /* RESULT_FAILED: why */
	unsigned flags;
	int code;
};

/* A file while it is read, and its entries until they are written. */
struct job {
	const struct walk_file *file;
	struct src *src;
	bool own_src;
	int dirfd;
	struct tensor_set set;
	struct result *result;
	size_t next, done; /* entries taken by threads, entries finished */
	bool open;         /* entries may be taken */
	bool serial;       /* all by one thread */
	bool stream;       /* comes in batches: left for later */
	int code;          /* of opening or of the end; message with it */
	const char *message;
	uint64_t missing; /* entries not tried, after a failure */
};

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t more;
	const struct dump_how *how;
	struct job *job;
	size_t njobs;
	size_t next;    /* job to open */
	size_t first;   /* jobs before it have no entries to take */
	size_t opening; /* threads that are opening one */
	int code;       /* a failure that ends everything */
	struct err err;
};

struct worker {
	struct pool *pool;
	struct printer *printer;
	struct arena arena;
	pthread_t thread;
};

/* ---- one file ----------------------------------------------------------- */

static const char *
keep_message(struct arena *a, const struct err *e)
{
	struct str s = arena_str(a, str_c(e->msg));
	return s.p ? s.p : "out of memory";
}

/* A directory for formats that name other files. */
static int
directory_of(struct job *j, struct tensor_hints *hints, struct arena *a)
{
	const char *path = j->file->path, *slash = strrchr(path, '/');
	struct str dir = { path, slash ? (size_t)(slash - path) : 0 };
	if (slash == path)
		dir.len = 1;
	struct str name = arena_str(a, dir.len ? dir : STR_LIT("."));
	if (!name.p)
		return SE_ENOMEM;
	hints->dir = name.p;
	j->dirfd = open(name.p, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	hints->dirfd = j->dirfd;
	return 0;
}

/* Only these formats look beside themselves. */
static bool
needs_directory(const char *path)
{
	struct str s = str_c(path);
	return str_ends(s, ".json") || str_ends(s, ".metadata");
}

/* An array file holds one tensor and no name for it. */
static struct str
file_name(const struct job *j, const struct dump_how *how)
{
	struct str name = j->file->name;
	if (j->file->as.len)
		return j->file->as;
	if (!j->file->listed && how->alone)
		return str_c(how->alone);
	for (size_t i = name.len; !j->file->listed && i > 0; i--)
		if (name.p[i - 1] == '/') {
			name.p += i;
			name.len -= i;
			break;
		}
	if (!j->set.format || strcmp(j->set.format->name, "npy"))
		return name;
	if (str_ends(name, ".gz"))
		name.len -= 3;
	if (str_ends(name, ".npy") && name.len > 4)
		name.len -= 4;
	return name;
}

static int
name_chunk(struct tensor *t, struct str file, struct arena *a)
{
	struct buf b = { 0 };
	buf_str(&b, file);
	buf_putc(&b, ':');
	buf_str(&b, t->name);
	struct str s = b.failed ? STR_NULL : arena_str(a, buf_view(&b));
	buf_free(&b);
	t->name = s;
	return s.p ? 0 : SE_ENOMEM;
}

/* Names for entries that have none of their own. */
static int
name_entries(struct job *j, const struct dump_how *how, struct arena *a)
{
	struct str name = file_name(j, how);
	bool chunks = j->set.format && !strcmp(j->set.format->name, "chunks");
	for (size_t i = 0; i < j->set.n; i++) {
		struct tensor *t = &j->set.t[i];
		if (chunks && name_chunk(t, name, a))
			return SE_ENOMEM;
		if (!t->name.len)
			t->name = name;
	}
	return 0;
}

static bool
same_dims(const void *a, const void *b, unsigned n)
{
	return a == b || !n || (a && b && !memcmp(a, b, n * sizeof(uint64_t)));
}

static bool
same_view(const struct tensor *a, const struct tensor *b)
{
	return a->src == b->src && a->off == b->off && a->dtype == b->dtype &&
	       a->flags == b->flags && a->ndim == b->ndim &&
	       a->read == b->read && a->priv == b->priv &&
	       same_dims(a->shape, b->shape, a->ndim) &&
	       same_dims(a->stride, b->stride, a->ndim);
}

/* Finds tied tensors: one storage under several names. */
static int
find_ties(struct job *j, bool copies)
{
	struct map seen = { 0 };
	int r = 0;
	for (size_t i = 0; i < j->set.n; i++) {
		const struct tensor *t = &j->set.t[i];
		bool fresh;
		if (!t->storage.len)
			continue;
		uint64_t *first = map_at(&seen, t->storage, &fresh);
		if (!first) {
			r = SE_ENOMEM;
			break;
		}
		if (fresh) {
			*first = i;
			continue;
		}
		j->result[*first].flags |= RESULT_SHARED;
		j->result[i].flags |= RESULT_SHARED;
		bool wanted = !(j->result[*first].flags & RESULT_UNWANTED);
		if (copies && wanted && same_view(t, &j->set.t[*first]))
			j->result[i].same = &j->result[*first];
	}
	map_free(&seen);
	return r;
}

static void
select_entries(struct job *j, const struct dump_how *how)
{
	for (size_t i = 0; i < j->set.n; i++)
		if (!select_name(&how->select, j->set.t[i].name))
			j->result[i].flags = RESULT_UNWANTED;
}

static void
job_fail(struct job *j, int code, const struct err *e, struct arena *a)
{
	if (j->code)
		return;
	j->code = code;
	j->message = keep_message(a, e);
}

/* A pipe can only be read in the order in which things lie in it. */
static int
by_offset(const void *a, const void *b)
{
	const struct tensor *x = a, *y = b;
	if (x->off != y->off)
		return x->off < y->off ? -1 : 1;
	return str_order(x->name, y->name);
}

/* Records are read by themselves: as one tensor they would say nothing. */
static int
check_records(const struct job *j, const struct tensor_hints *h, struct err *e)
{
	char head[TENSOR_PROBE];
	size_t n;
	if (h->format || h->dtype || h->chunk ||
	    strcmp(j->set.format->name, "bytes") ||
	    src_read_some(j->src, 0, head, sizeof head, &n, NULL) ||
	    !rec_probe(head, n))
		return 0;
	return err_set(e, SE_EUNSUP,
	    "is a stream of records, which is not read among other files "
	    "(-t bytes takes it as plain bytes)");
}

/* Metadata of one file. Entries of a cut file that are whole are kept. */
static int
job_open(struct job *j, const struct dump_how *how, struct arena *a)
{
	struct err e = { 0 };
	struct tensor_hints hints = how->hints;
	hints.dirfd = j->dirfd = -1;
	if (j->file->format && !hints.format)
		hints.format = j->file->format;
	int r = 0;
	if (!j->src) {
		r = src_open(&j->src, j->file->path, hints.tmpdir, 0, &e);
		j->own_src = !r;
		if (!r && needs_directory(j->file->path))
			r = directory_of(j, &hints, a);
	}
	if (!r)
		r = tensor_open(&j->set, j->src, &hints, &e);
	if (j->src)
		r = tensor_claim(&j->set, j->src, j->file->name, &hints, r, &e);
	if (!r && check_records(j, &hints, &e)) {
		r = SE_EUNSUP;
		j->set.n = 0;
	}
	if (r)
		job_fail(j, r, &e, a);
	if (r == SE_ENOMEM || !j->src)
		return r == SE_ENOMEM ? r : 0;
	j->stream = !r && tensor_is_stream(&j->set);
	j->serial = !src_is_seekable(j->src);
	if (j->serial && j->set.n)
		sort_array(j->set.t, j->set.n, sizeof *j->set.t, by_offset);
	if (name_entries(j, how, a))
		return SE_ENOMEM;
	j->result = calloc(j->set.n ? j->set.n : 1, sizeof *j->result);
	if (!j->result)
		return SE_ENOMEM;
	select_entries(j, how);
	return find_ties(j, !how->print.nslices);
}

/* Data is read: what follows the image, then the descriptors. */
static void
job_end_data(struct job *j, struct arena *a)
{
	struct err e = { 0 };
	if (!j->code && j->set.format) {
		int r = tensor_finish(&j->set, &e);
		if (r)
			job_fail(j, r, &e, a);
	}
	tensor_release(&j->set);
	if (j->own_src)
		src_close(j->src);
	j->src = NULL;
	j->own_src = false;
	if (j->dirfd >= 0)
		close(j->dirfd);
	j->dirfd = -1;
}

static void
job_free(struct job *j)
{
	tensor_close(&j->set);
	if (j->own_src)
		src_close(j->src);
	if (j->dirfd >= 0)
		close(j->dirfd);
	free(j->result);
}

/* ---- entries --------------------------------------------------------- */

static bool
is_work(const struct job *j, size_t i)
{
	return !(j->set.t[i].flags & TENSOR_SCALAR) && !j->result[i].same &&
	       !(j->result[i].flags & RESULT_UNWANTED);
}

static int
take_entry(struct worker *w, struct job *j, size_t i)
{
	struct result *r = &j->result[i];
	struct err e = { 0 };
	r->code =
	    printer_take(w->printer, &j->set.t[i], &w->arena, &r->print, &e);
	if (!r->code) {
		r->flags |= RESULT_DONE;
		return 0;
	}
	r->flags |= RESULT_FAILED;
	r->message = keep_message(&w->arena, &e);
	return r->code;
}

/* Behind damage a forward source gives the same answer for every entry. */
static bool
is_last_word(const struct job *j, int code)
{
	return j->serial && (code == SE_ETRUNC || code == SE_EIO);
}

static void
take_entries(struct worker *w, struct job *j, size_t from, size_t to)
{
	printer_forget(w->printer);
	for (size_t i = from; i < to; i++) {
		if (!is_work(j, i))
			continue;
		int code = take_entry(w, j, i);
		if (!code || !is_last_word(j, code))
			continue;
		for (size_t k = i + 1; k < to; k++)
			j->missing += is_work(j, k);
		return;
	}
}

/* ---- threads --------------------------------------------------------- */

/* Where the entries that are taken together end. */
static size_t
portion(const struct job *j)
{
	uint64_t bytes = 0;
	size_t i = j->next;
	if (j->serial)
		return j->set.n;
	while (
	    i < j->set.n && bytes < TAKE_BYTES && i - j->next < TAKE_ENTRIES) {
		uint64_t n = is_work(j, i) ? j->set.t[i].bytes : 0;
		bytes += n < TAKE_BYTES ? n : TAKE_BYTES;
		i++;
	}
	return i;
}

/* An opened file with entries left, under the lock. */
static struct job *
find_work(struct pool *p)
{
	for (size_t i = p->first; i < p->next; i++) {
		struct job *j = &p->job[i];
		if (j->open && j->next < j->set.n)
			return j;
		if (i == p->first && j->open && j->next == j->set.n)
			p->first++;
	}
	return NULL;
}

static void
do_work(struct worker *w, struct job *j)
{
	struct pool *p = w->pool;
	size_t from = j->next, to = portion(j);
	j->next = to;
	pthread_mutex_unlock(&p->lock);
	take_entries(w, j, from, to);
	pthread_mutex_lock(&p->lock);
	j->done += to - from;
	if (j->done < j->set.n)
		return;
	pthread_mutex_unlock(&p->lock);
	job_end_data(j, &w->arena);
	pthread_mutex_lock(&p->lock);
}

static void
open_next(struct worker *w)
{
	struct pool *p = w->pool;
	struct job *j = &p->job[p->next++];
	p->opening++;
	pthread_mutex_unlock(&p->lock);
	int r = job_open(j, p->how, &w->arena);
	if (!r && !j->stream && !j->set.n)
		job_end_data(j, &w->arena);
	pthread_mutex_lock(&p->lock);
	p->opening--;
	if (r && !p->code)
		p->code = err_mem(&p->err);
	j->open = true;
	pthread_cond_broadcast(&p->more);
}

static void *
work(void *worker)
{
	struct worker *w = worker;
	struct pool *p = w->pool;
	pthread_mutex_lock(&p->lock);
	while (!p->code) {
		struct job *j = find_work(p);
		if (j)
			do_work(w, j);
		else if (p->next < p->njobs)
			open_next(w);
		else if (p->opening)
			pthread_cond_wait(&p->more, &p->lock);
		else
			break;
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* ---- records --------------------------------------------------------- */

static int
set_labels(struct fp *f, const struct dump_how *how, struct fp_label *other,
    struct err *e)
{
	const struct fp_label *had = f->label;
	size_t n = 0, nhad = f->nlabels;
	for (size_t i = 0; i < how->nlabels; i++) {
		bool known;
		int r = fp_set(
		    f, how->label[i].key, how->label[i].value, &known, e);
		if (r)
			return r;
		if (!known)
			other[n++] = how->label[i];
	}
	/* What the record said itself gives way to the user's word. */
	for (size_t i = 0; i < nhad; i++) {
		size_t k = 0;
		while (k < how->nlabels &&
		       !str_same(how->label[k].key, had[i].key))
			k++;
		if (k == how->nlabels && n < LABELS_MAX)
			other[n++] = had[i];
	}
	f->label = other;
	f->nlabels = n;
	return 0;
}

int
dump_record(struct rec_out *o, struct fp *f, const struct dump_how *how,
    struct dump_count *count, struct err *e)
{
	struct fp_label other[LABELS_MAX];
	if (how->nlabels) {
		int r = set_labels(f, how, other, e);
		if (r)
			return r;
	}
	if (!select_step(&how->select, f->place[FP_STEP]) ||
	    !select_name(&how->select, f->name))
		return 0;
	if (how->exec && !f->seq.given)
		f->seq = (struct fp_u64){ true, count->seq++ };
	count->records++;
	count->scalars += f->scalar;
	if (how->take)
		return how->take(how->user, f, e);
	fp_write(o, f);
	return 0;
}

/* What is being written: entries in order, texts made anew for each. */
struct writer {
	struct rec_out *o;
	const struct dump_how *how;
	struct dump_count *count;
	struct fingerprint_text text;
	struct buf file;
	struct str last;   /* name, to number repeats */
	uint64_t occ;      /* how often it was there before */
	uint64_t left_out; /* lines of tables */
};

static void
say(struct writer *w, const char *file, int code, const char *what,
    struct str name, const char *message)
{
	struct err e;
	err_set(&e, code, "%s", message);
	if (what)
		esc_prefix(&e, what, name);
	if (w->how->left_out)
		w->how->left_out(w->how->user, file, &e);
}

/* A line of a table; a table may have nothing but bad ones. */
static void
say_left_out(struct writer *w, const char *file, struct str why)
{
	struct err e;
	w->count->skipped++;
	if (w->left_out++ == LEFT_OUT_MAX)
		say(w, file, SE_EFORMAT, NULL, STR_NULL,
		    "more bad lines, counted");
	if (w->left_out > LEFT_OUT_MAX)
		return;
	err_set(&e, SE_EFORMAT, "%.*s", STR_ARG(why));
	say(w, file, SE_EFORMAT, NULL, STR_NULL, e.msg);
}

/* An index stands for the files beside it: those are named, not the index. */
static struct str
source_file(struct writer *w, const struct job *j, const struct tensor *t)
{
	struct str name = j->file->name;
	if (!t->file.len)
		return name;
	w->file.len = 0;
	for (size_t i = name.len; i > 0; i--)
		if (name.p[i - 1] == '/') {
			buf_add(&w->file, name.p, i);
			break;
		}
	buf_str(&w->file, t->file);
	return buf_view(&w->file);
}

static int
write_entry(struct writer *w, const struct job *j, size_t i, struct err *e)
{
	const struct tensor *t = &j->set.t[i];
	const struct result *r = &j->result[i];
	if (t->flags & TENSOR_LEFT_OUT) {
		say_left_out(w, j->file->path, t->value);
		return 0;
	}
	if (r->flags & RESULT_UNWANTED)
		return 0;
	fingerprint_meet(&w->how->print, t->name);
	const struct result *made = r->same ? r->same : r;
	if (made->flags & RESULT_FAILED) {
		w->count->skipped++;
		say(w, j->file->path, made->code, t->name.len ? "tensor" : NULL,
		    t->name, made->message);
		return 0;
	}
	if (!(t->flags & TENSOR_SCALAR) && !(made->flags & RESULT_DONE))
		return 0;
	struct fp f;
	fingerprint_fill(&f, &w->how->print, t, &made->print, &w->text);
	f.file = source_file(w, j, t);
	if (r->flags & RESULT_SHARED)
		f.storage = t->storage;
	w->occ = str_same(t->name, w->last) ? w->occ + 1 : 0;
	w->last = t->name;
	if (w->occ && !j->stream)
		f.occ = (struct fp_u64){ true, w->occ };
	return dump_record(w->o, &f, w->how, w->count, e);
}

static void
report(struct writer *w, const struct job *j)
{
	/* What was accepted although it departs from the format. */
	if (j->set.note.len)
		rec_comment(w->o, "%.*s: %.*s", STR_ARG(j->file->name),
		    STR_ARG(j->set.note));
	w->count->skipped += j->missing;
	if (!j->code && !w->how->hints.format && j->set.format &&
	    !strcmp(j->set.format->name, "bytes"))
		w->count->plain++;
	if (!j->code)
		return;
	w->count->skipped++;
	say(w, j->file->path, j->code, NULL, STR_NULL, j->message);
}

/* Entry `entry` of job `job`, with its name at hand. */
struct item {
	struct str name;
	uint32_t job, entry;
};

static int
by_name(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int c = str_order(x->name, y->name);
	if (!c)
		c = (x->job > y->job) - (x->job < y->job);
	return c ? c : (x->entry > y->entry) - (x->entry < y->entry);
}

/* Many files are in order already: then nothing need be held to sort it. */
static bool
in_order(const struct pool *p)
{
	struct item last = { .name = STR_NULL };
	bool first = true;
	for (size_t i = 0; i < p->njobs; i++) {
		const struct job *j = &p->job[i];
		for (size_t k = 0; !j->stream && k < j->set.n; k++) {
			struct item one = { j->set.t[k].name, (uint32_t)i,
				(uint32_t)k };
			if (!first && by_name(&last, &one) > 0)
				return false;
			last = one;
			first = false;
		}
	}
	return true;
}

static int
write_as_is(struct writer *w, const struct pool *p, struct err *e)
{
	int r = 0;
	for (size_t i = 0; i < p->njobs; i++) {
		const struct job *j = &p->job[i];
		for (size_t k = 0; !r && !j->stream && k < j->set.n; k++)
			r = write_entry(w, j, k, e);
	}
	return r;
}

static int
write_sorted(struct writer *w, const struct pool *p, struct err *e)
{
	if (in_order(p))
		return write_as_is(w, p, e);
	size_t n = 0;
	for (size_t i = 0; i < p->njobs; i++)
		n += p->job[i].stream ? 0 : p->job[i].set.n;
	struct item *item = malloc(n * sizeof *item);
	if (!item)
		return err_mem(e);
	n = 0;
	for (size_t i = 0; i < p->njobs; i++) {
		const struct job *j = &p->job[i];
		for (size_t k = 0; !j->stream && k < j->set.n; k++)
			item[n++] = (struct item){ j->set.t[k].name,
				(uint32_t)i, (uint32_t)k };
	}
	sort_array(item, n, sizeof *item, by_name);
	int r = 0;
	for (size_t i = 0; !r && i < n; i++)
		r = write_entry(w, &p->job[item[i].job], item[i].entry, e);
	free(item);
	return r;
}

/* ---- streams --------------------------------------------------------- */

/* One batch after the other, hashed and written before the next is read. */
static int
write_stream(
    struct writer *w, struct job *j, struct worker *worker, struct err *e)
{
	int r;
	while ((r = tensor_next(&j->set, e)) > 0) {
		free(j->result);
		j->result = calloc(j->set.n, sizeof *j->result);
		arena_free(&worker->arena);
		if (!j->result || name_entries(j, w->how, &worker->arena)) {
			return err_mem(e);
		}
		/* Names of the last batch are gone; repeats are the rule. */
		w->last = STR_NULL;
		select_entries(j, w->how);
		take_entries(worker, j, 0, j->set.n);
		for (size_t i = 0; i < j->set.n; i++) {
			int fatal = write_entry(w, j, i, e);
			if (fatal)
				return fatal;
		}
	}
	if (!r)
		r = tensor_finish(&j->set, e);
	if (r) {
		struct err keep = *e;
		w->count->skipped++;
		say(w, j->file->path, r, NULL, STR_NULL, keep.msg);
	}
	return 0;
}

/* ---- all of it ---------------------------------------------------------- */

static int
write_all(struct rec_out *o, struct pool *p, struct worker *worker,
    struct dump_count *count, struct err *e)
{
	struct writer w = { .o = o, .how = p->how, .count = count };
	int r = 0;
	for (size_t i = 0; i < p->njobs; i++)
		report(&w, &p->job[i]);
	r = write_sorted(&w, p, e);
	for (size_t i = 0; !r && i < p->njobs; i++)
		if (p->job[i].stream)
			r = write_stream(&w, &p->job[i], worker, e);
	fingerprint_text_free(&w.text);
	buf_free(&w.file);
	return r;
}

/* Starts what it can; one thread is always there: the caller. */
static void
run_threads(struct worker *worker, unsigned n)
{
	unsigned started = 1;
	while (started < n && !pthread_create(&worker[started].thread, NULL,
				  work, &worker[started]))
		started++;
	work(&worker[0]);
	for (unsigned i = 1; i < started; i++)
		pthread_join(worker[i].thread, NULL);
}

static int
dump_jobs(struct rec_out *o, struct job *job, size_t n,
    const struct dump_how *how, struct dump_count *count, struct err *e)
{
	struct pool pool = { .how = how, .job = job, .njobs = n };
	unsigned nworkers = how->jobs ? how->jobs : 1;
	struct worker *worker = calloc(nworkers, sizeof *worker);
	int r = worker ? 0 : err_mem(e);
	for (unsigned i = 0; !r && i < nworkers; i++) {
		worker[i].pool = &pool;
		r = printer_new(&worker[i].printer, &how->print, e);
	}
	if (!r) {
		pthread_mutex_init(&pool.lock, NULL);
		pthread_cond_init(&pool.more, NULL);
		run_threads(worker, nworkers);
		pthread_cond_destroy(&pool.more);
		pthread_mutex_destroy(&pool.lock);
		r = pool.code;
		if (r && e)
			*e = pool.err;
	}
	if (!r)
		r = write_all(o, &pool, &worker[0], count, e);
	for (unsigned i = 0; worker && i < nworkers; i++) {
		printer_free(worker[i].printer);
		arena_free(&worker[i].arena);
	}
	free(worker);
	for (size_t i = 0; i < n; i++)
		job_free(&job[i]);
	return r;
}

/* ---- tables -------------------------------------------------------------- */

enum { LOOKS = 16 }; /* files that are looked at */

static enum tensor_look
look(struct src *src, struct buf *columns)
{
	char *head = malloc(TENSOR_LOOK);
	size_t n;
	enum tensor_look found = TENSOR_NO_TABLE;
	const struct tensor_format *f = NULL;
	if (head && !tensor_format_probe(src, &f, NULL) && !f &&
	    !src_read_some(src, 0, head, TENSOR_LOOK, &n, NULL))
		found = tensor_look(head, n, columns);
	free(head);
	return found;
}

static bool
is_hinted(const struct tensor_hints *h)
{
	return h->format || h->dtype || h->chunk || h->step.len;
}

static bool
note_table(struct err *note, enum tensor_look found, struct buf *columns)
{
	if (found == TENSOR_SERIES)
		err_set(note, 0,
		    "one of several files, so taken as plain bytes; --step "
		    "step reads the cells of tables");
	else
		err_set(note, 0,
		    "taken as plain bytes: no column \"step\"; --step COLUMN "
		    "reads the cells, of %s",
		    buf_cstr(columns));
	return true;
}

bool
dump_find_step_src(
    struct tensor_hints *hints, struct src *src, struct err *note)
{
	struct buf columns = { 0 };
	enum tensor_look found =
	    is_hinted(hints) ? TENSOR_NO_TABLE : look(src, &columns);
	if (found == TENSOR_SERIES)
		hints->step = STR_LIT("step");
	bool noted =
	    found == TENSOR_NO_STEP && note_table(note, found, &columns);
	buf_free(&columns);
	return noted;
}

bool
dump_find_step(struct tensor_hints *hints, const struct walk_file *file,
    size_t n, struct err *note)
{
	bool noted = false;
	for (size_t i = 0; !is_hinted(hints) && !noted && i < n && i < LOOKS;
	     i++) {
		struct src *src;
		struct stat st;
		/* What lies in a directory was not named; of a FIFO a look
		 * would take the beginning away. */
		if (file[i].listed || stat(file[i].path, &st) ||
		    !S_ISREG(st.st_mode) ||
		    src_open(&src, file[i].path, hints->tmpdir, 0, NULL))
			continue;
		if (n == 1) {
			noted = dump_find_step_src(hints, src, note);
		} else {
			struct buf columns = { 0 };
			enum tensor_look found = look(src, &columns);
			noted = found && note_table(note, found, &columns);
			buf_free(&columns);
		}
		src_close(src);
		if (noted)
			err_prefix(note, "%s", file[i].path);
	}
	return noted;
}

bool
dump_is_series(const struct tensor_hints *h)
{
	const struct tensor_format *f =
	    h->format ? tensor_format_find(h->format) : NULL;
	return h->step.len || (f && f->next && strcmp(f->name, "chunks"));
}

/* Formats that come in batches are read one file after the other. */
static bool
is_stream(const struct tensor_hints *h)
{
	const struct tensor_format *f =
	    h->format ? tensor_format_find(h->format) : NULL;
	return h->chunk || h->step.len || (f && f->next);
}

int
dump_files(struct rec_out *o, const struct walk_file *file, size_t n,
    const struct dump_how *how, struct dump_count *count, struct err *e)
{
	struct job *job = calloc(n ? n : 1, sizeof *job);
	if (!job)
		return err_mem(e);
	for (size_t i = 0; i < n; i++) {
		job[i].file = &file[i];
		job[i].dirfd = -1;
	}
	int r = 0;
	size_t each = is_stream(&how->hints) ? 1 : n;
	for (size_t i = 0; !r && i < n; i += each)
		r = dump_jobs(o, job + i, each, how, count, e);
	free(job);
	return r;
}

int
dump_src(struct rec_out *o, struct src *src, const char *name,
    const struct dump_how *how, struct dump_count *count, struct err *e)
{
	struct walk_file file = { .path = name, .name = str_c(name) };
	struct job job = { .file = &file, .src = src, .dirfd = -1 };
	return dump_jobs(o, &job, 1, how, count, e);
}
