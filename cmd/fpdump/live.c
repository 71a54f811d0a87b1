/*
 * Standard input as a stream: frames (a line `@ TAB key=value ...`, then one
 * .npy or safetensors image), or images back to back. Each image is hashed
 * and its records written before the next is looked at, and nothing is held
 * back while the writer pauses.
 */
#include "fpdump.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "buf.h"
#include "map.h"
#include "num.h"
#include "sort.h"

enum {
	PEEK = 512,
	FRAME_MAX = 64 << 10, /* bytes in a frame line, within SRC_BACK */
	/* Boundaries whose repeats are numbered; then counting starts over. */
	REPEATS_MAX = 1 << 20,
	PAUSE_MS = 1000, /* compressed output: a member a second */
};

/* How often a key was seen within its step. */
struct repeat {
	struct u128 step;
	uint64_t n;
};

struct live {
	struct rec_out *o;
	const struct settings *s;
	struct outcome *out;
	struct src *src;
	uint64_t off;
	struct printer *printer;
	struct fingerprint_text text;
	struct arena arena; /* of one image */
	uint64_t unnamed;   /* images without a name so far */
	/* frames */
	struct buf line, undone;
	struct rec rec;
	struct buf names; /* x.KEY of the frame's other keys */
	struct fp place;  /* what the frame says */
	struct fp_label label[REC_FIELDS_MAX];
	bool framed, bad;
	/* repeats */
	struct map seen;
	struct arena keys;
	struct buf scratch;
};

/* ---- probing --------------------------------------------------------- */

bool
live_is_framed(struct src *src)
{
	char head[2];
	size_t n;
	return !src_read_some(src, 0, head, sizeof head, &n, NULL) && n == 2 &&
	       head[0] == '@' && head[1] == '\t';
}

static const struct tensor_format *
image_format(const struct settings *s, struct src *src, struct err *e)
{
	const struct tensor_format *f = NULL;
	const char *name = s->dump.hints.format;
	if (name)
		f = tensor_format_find(name);
	else
		tensor_format_probe(src, &f, e);
	return f && f->selfends ? f : NULL;
}

/*
 * Other formats are files, also on a pipe. So is a safetensors image in a
 * regular file: arrays are put back to back into one, these never are.
 */
bool
live_probe(const struct settings *s, struct src *src)
{
	if (s->live || live_is_framed(src))
		return true;
	const struct tensor_format *f = image_format(s, src, NULL);
	struct stat st;
	if (f && !strcmp(f->name, "safetensors"))
		return fstat(STDIN_FILENO, &st) || !S_ISREG(st.st_mode);
	return f && !strcmp(f->name, "npy");
}

/* ---- frames ---------------------------------------------------------- */

/* Keys of a record that a frame may set. The rest is ours to say. */
static bool
may_set(struct str key)
{
	static const char *const other[] = { "name", "seq", "occ", "kernel",
		"dev", "storage", "global", "offset", "replicated", NULL };
	for (int i = 0; i < FP_PLACES; i++)
		if (str_is(key, fp_place_name[i]))
			return true;
	for (int i = 0; other[i]; i++)
		if (str_is(key, other[i]))
			return true;
	return false;
}

/* A producer's own key, as x.KEY so that it cannot collide with ours. */
static void
keep_other(struct live *l, const struct rec_field *f)
{
	struct fp_label *to = &l->label[l->place.nlabels++];
	to->value = f->value;
	if (str_starts(f->key, "x.")) {
		to->key = f->key;
		return;
	}
	/* Room was made before: the pointer stays. */
	to->key.p = l->names.p + l->names.len;
	buf_puts(&l->names, "x.");
	buf_str(&l->names, f->key);
	to->key.len = f->key.len + 2;
}

static int
read_keys(struct live *l, struct err *e)
{
	l->place = (struct fp){ .label = l->label };
	l->names.len = 0;
	if (!buf_room(&l->names, 3 * l->line.len))
		return err_mem(e);
	for (size_t i = 0; i < l->rec.n; i++) {
		const struct rec_field *f = &l->rec.field[i];
		bool known;
		if (!may_set(f->key)) {
			keep_other(l, f);
			continue;
		}
		int r = fp_set(&l->place, f->key, f->value, &known, e);
		if (r)
			return r;
	}
	return 0;
}

/* The line without its `@`, parsed as a record of a type nobody knows. */
static int
parse_frame(struct live *l, struct err *e)
{
	l->undone.len = 0;
	buf_putc(&l->line, 0); /* room, not text */
	l->line.len--;
	if (l->line.failed || !buf_room(&l->undone, l->line.len + 1))
		return err_mem(e);
	int r = rec_parse(buf_view(&l->line), l->undone.p, &l->rec, e);
	return r ? r : read_keys(l, e);
}

/*
 * Reads the line at l->off: 1 with it in l->line, the `@` replaced by a type
 * name, 0 if no frame begins here.
 */
static int
frame_line(struct live *l, struct err *e)
{
	uint64_t off = l->off;
	char part[PEEK];
	l->line.len = 0;
	for (;;) {
		size_t n;
		int r = src_read_next(l->src, off, part, sizeof part, &n, e);
		if (r)
			return r;
		if (off == l->off && (!n || part[0] != '@'))
			return 0;
		if (!n)
			return err_set(e, SE_ETRUNC,
			    "a frame's line is cut at offset %" PRIu64, off);
		char *lf = memchr(part, '\n', n);
		size_t len = lf ? (size_t)(lf - part) : n;
		size_t skip = off == l->off; /* the `@` */
		if (skip)
			buf_puts(&l->line, "frame");
		buf_add(&l->line, part + skip, len - skip);
		off += len + (lf != NULL);
		if (off - l->off > FRAME_MAX)
			return err_set(e, SE_ELIMIT,
			    "a frame's line of more than %d bytes at offset "
			    "%" PRIu64,
			    FRAME_MAX, l->off);
		if (lf)
			break;
	}
	l->off = off;
	return l->line.failed ? err_mem(e) : 1;
}

/* ---- images ---------------------------------------------------------- */

/* A shard's place in the whole, if the frame gives one that fits. */
static int
place_shard(struct live *l, struct tensor *t, struct err *e)
{
	const struct fp *p = &l->place;
	if (!p->global.p && !p->offset.p)
		return 0;
	size_t n, m;
	uint64_t *dim =
	    arena_array(&l->arena, 2 * TENSOR_NDIM_MAX, sizeof *dim);
	if (!dim)
		return err_mem(e);
	uint64_t *global = dim, *offset = dim + TENSOR_NDIM_MAX;
	int r = fp_shape(p->global, global, TENSOR_NDIM_MAX, &n, e);
	if (!r)
		r = fp_shape(p->offset, offset, TENSOR_NDIM_MAX, &m, e);
	if (r)
		return r;
	bool fits = n == t->ndim && m == t->ndim;
	for (unsigned i = 0; fits && i < t->ndim; i++)
		fits = offset[i] <= global[i] &&
		       t->shape[i] <= global[i] - offset[i];
	if (!fits)
		return err_set(
		    e, SE_EFORMAT, "global= and offset= do not fit the shape");
	t->global = global;
	t->offset = offset;
	t->flags |= TENSOR_CHUNK;
	return 0;
}

/* Name of entry t: its own, the frame's, both, or a number. */
static int
name_entry(struct live *l, struct tensor *t, struct err *e)
{
	struct str name = l->place.name;
	struct buf b = { 0 };
	if (!name.p && t->name.len)
		return 0;
	if (!name.p)
		buf_printf(&b, "arr_%" PRIu64, l->unnamed++);
	buf_str(&b, name);
	if (name.p && t->name.len) {
		buf_putc(&b, '.');
		buf_str(&b, t->name);
	}
	t->name = arena_str(&l->arena, buf_view(&b));
	buf_free(&b);
	return t->name.p ? 0 : err_mem(e);
}

/* Counts repeats of a key within its step, in bounded memory. */
static int
number_repeat(struct live *l, struct fp *f, struct err *e)
{
	if (f->occ.given)
		return 0;
	struct u128 step =
	    hash_xxh3(f->place[FP_STEP].p, f->place[FP_STEP].len);
	struct u128 key = fp_key(f, 1u << FP_STEP, &l->scratch);
	if (l->scratch.failed)
		return err_mem(e);
	if (l->seen.n >= REPEATS_MAX) {
		map_free(&l->seen);
		arena_free(&l->keys);
	}
	struct str k = { (const char *)&key, sizeof key };
	uint64_t *at = map_get(&l->seen, k);
	struct repeat *r;
	if (at) {
		r = (struct repeat *)(uintptr_t)*at;
	} else {
		bool fresh;
		k = arena_str(&l->keys, k);
		r = arena_alloc(&l->keys, sizeof *r);
		at = k.p && r ? map_at(&l->seen, k, &fresh) : NULL;
		if (!at)
			return err_mem(e);
		*at = (uintptr_t)r;
	}
	if (!u128_same(r->step, step))
		*r = (struct repeat){ step, 0 };
	if (r->n)
		f->occ = (struct fp_u64){ true, r->n };
	r->n++;
	return 0;
}

/* What the frame says about every record of its image. */
static void
add_place(struct fp *f, const struct fp *p)
{
	for (int i = 0; i < FP_PLACES; i++)
		if (p->place[i].p)
			f->place[i] = p->place[i];
	f->seq = p->seq;
	f->occ = p->occ;
	f->kernel = p->kernel;
	f->dev = p->dev;
	f->storage = p->storage;
	f->replicated = p->replicated;
	f->label = p->label;
	f->nlabels = p->nlabels;
}

static int
one_entry(struct live *l, struct tensor *t, struct err *e)
{
	const struct dump_how *how = &l->s->dump;
	struct fingerprint print;
	struct fp f;
	int r = 0;
	if (l->framed)
		r = place_shard(l, t, e);
	if (!r)
		r = name_entry(l, t, e);
	if (r)
		return r;
	fingerprint_meet(&how->print, t->name);
	/* Read in any case: the next image lies behind it. */
	if (!(t->flags & TENSOR_SCALAR))
		r = printer_take(l->printer, t, &l->arena, &print, e);
	if (r)
		return r;
	if (l->bad)
		return 0;
	fingerprint_fill(&f, &how->print, t, &print, &l->text);
	if (l->framed)
		add_place(&f, &l->place);
	progress_items(l->s->progress, 1);
	r = number_repeat(l, &f, e);
	return r ? r : dump_record(l->o, &f, how, &l->out->count, e);
}

static int
by_offset(const void *a, const void *b)
{
	const struct tensor *x = a, *y = b;
	if (x->off != y->off)
		return x->off < y->off ? -1 : 1;
	return str_order(x->name, y->name);
}

static int
not_an_image(struct live *l, struct err *e)
{
	unsigned char byte = 0;
	size_t n;
	int r = src_read_next(l->src, l->off, &byte, 1, &n, e);
	if (r)
		return r;
	if (!n)
		return err_set(e, SE_ETRUNC,
		    "a frame without its image at offset %" PRIu64, l->off);
	return err_set(e, SE_EFORMAT,
	    "expected a frame, an .npy or a safetensors image at offset "
	    "%" PRIu64 ", found byte 0x%02x",
	    l->off, byte);
}

/* The image at l->off, which then points behind it. */
static int
one_image(struct live *l, struct err *e)
{
	struct tensor_hints hints = l->s->dump.hints;
	struct tensor_set set = { 0 };
	struct src *slice;
	hints.follow = true;
	hints.dirfd = -1;
	int r = src_open_slice(&slice, l->src, l->off, SRC_UNKNOWN, e);
	if (r)
		return r;
	const struct tensor_format *f = image_format(l->s, slice, e);
	printer_forget(l->printer);
	if (f) {
		hints.format = f->name;
		r = tensor_open(&set, slice, &hints, e);
		if (!r && set.n)
			sort_array(set.t, set.n, sizeof *set.t, by_offset);
		for (size_t i = 0; !r && i < set.n; i++)
			r = one_entry(l, &set.t[i], e);
		if (r)
			err_prefix(e, "image at offset %" PRIu64, l->off);
		l->off += set.end;
	} else {
		r = not_an_image(l, e);
	}
	tensor_close(&set);
	src_close(slice);
	arena_free(&l->arena);
	return r;
}

/* ---- the stream --------------------------------------------------------- */

/* Writes out what is there before a read that may wait. */
static void
before_waiting(struct live *l)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	int wait = l->s->common.how.gzip ? PAUSE_MS : 0;
	if (poll(&in, 1, wait) == 0)
		rec_out_flush(l->o, NULL);
}

static bool
at_end(struct live *l, int *r, struct err *e)
{
	char byte;
	size_t n;
	*r = src_read_next(l->src, l->off, &byte, 1, &n, e);
	return *r || !n;
}

static void
left_out(struct live *l, const struct err *e)
{
	const struct dump_how *how = &l->s->dump;
	l->out->count.skipped++;
	if (how->left_out)
		how->left_out(how->user, "standard input", e);
}

static int
next(struct live *l, struct err *e)
{
	l->bad = false;
	l->place = (struct fp){ 0 };
	int r = frame_line(l, e);
	if (r < 0)
		return r;
	l->framed = r;
	if (l->framed && parse_frame(l, e)) {
		/* Its image can still be read over. */
		err_prefix(e, "frame that ends at offset %" PRIu64, l->off);
		left_out(l, e);
		l->bad = true;
		l->place = (struct fp){ 0 };
	}
	return one_image(l, e);
}

void
live_dump(struct rec_out *o, const struct settings *s, struct src *src,
    struct outcome *out)
{
	struct live l = { .o = o, .s = s, .out = out, .src = src };
	struct err e;
	int r = printer_new(&l.printer, &s->dump.print, &e);
	if (r)
		cli_die_err("standard input", &e);
	for (;;) {
		before_waiting(&l);
		if (at_end(&l, &r, &e))
			break;
		r = next(&l, &e);
		if (r)
			break;
	}
	if (r)
		left_out(&l, &e);
	printer_free(l.printer);
	fingerprint_text_free(&l.text);
	arena_free(&l.arena);
	arena_free(&l.keys);
	map_free(&l.seen);
	buf_free(&l.line);
	buf_free(&l.undone);
	buf_free(&l.names);
	buf_free(&l.scratch);
}
