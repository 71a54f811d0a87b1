/*
 * What an operand is: a record stream, a directory of streams that are one
 * run, or anything fpdump reads, which is fingerprinted in place.
 */
#include "fpdiff.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bundle.h"
#include "dump.h"
#include "foreign.h"
#include "num.h"
#include "sort.h"
#include "walk.h"

enum {
	PROBE = 4096,
	LOOK = 64, /* files of a directory that are looked at */
};

struct part {
	const char *path;
	bool rank_given;
	uint64_t rank; /* of its first record */
};

struct operand {
	const struct settings *s;
	const char *name;
	struct walk walk;
	struct part *part;
	size_t n;
	bool prints; /* one part, made here */
	enum operand_kind kind;
	uint64_t skipped;
};

static void
warn_skip(void *user, const char *path, const struct err *e)
{
	(void)user;
	cli_warn_err(path, e);
}

/* ---- is it records? ---------------------------------------------------- */

/* The beginning; its length. */
static size_t
peek(const char *path, char *head)
{
	struct src *src;
	size_t n = 0;
	if (src_open(&src, path, cli_tmpdir(), 0, NULL))
		return 0;
	if (src_read_some(src, 0, head, PROBE, &n, NULL))
		n = 0;
	src_close(src);
	return n;
}

static bool
is_special(const char *name)
{
	struct stat st;
	return !strcmp(name, "-") ||
	       (!stat(name, &st) && !S_ISREG(st.st_mode) &&
		   !S_ISDIR(st.st_mode));
}

/* ---- a directory of streams -------------------------------------------- */

static void
find_rank(struct part *p)
{
	struct src *src;
	struct rec_in *in;
	struct rec *rec = cli_alloc(1, sizeof *rec);
	if (!src_open(&src, p->path, cli_tmpdir(), 0, NULL) &&
	    !rec_in_open(&in, src, NULL)) {
		while (rec_in_next(in, rec, NULL) == 1)
			if (fp_is(rec))
				break;
		struct str rank = rec_text_of(rec, "rank");
		p->rank_given =
		    rank.p && !num_u64(rank, 0, UINT64_MAX, &p->rank, NULL);
		rec_in_close(in);
	}
	free(rec);
}

static int
by_rank(const void *pa, const void *pb)
{
	const struct part *a = pa, *b = pb;
	if (a->rank_given != b->rank_given)
		return a->rank_given ? 1 : -1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return strcmp(a->path, b->path);
}

/* One record stream makes a directory a run; looks at no more than it must. */
static bool
has_records(const struct walk *w)
{
	char head[PROBE];
	for (size_t i = 0; i < w->n && i < LOOK; i++)
		if (rec_probe_any(head, peek(w->file[i].path, head)))
			return true;
	return false;
}

static void
list_streams(struct operand *o)
{
	char head[PROBE];
	o->part = cli_alloc(o->walk.n + 1, sizeof *o->part);
	for (size_t i = 0; i < o->walk.n; i++) {
		const char *path = o->walk.file[i].path;
		if (!rec_probe_any(head, peek(path, head))) {
			cli_warn("%s: no record stream, left out", path);
			o->skipped++;
			continue;
		}
		o->part[o->n] = (struct part){ .path = path };
		find_rank(&o->part[o->n++]);
	}
	sort_array(o->part, o->n, sizeof *o->part, by_rank);
}

/* ---- fingerprints in place --------------------------------------------- */

static void
write_head(struct rec_out *out, bool exec)
{
	rec_begin(out, "head");
	rec_put(out, "of", "fp");
	rec_u64(out, "version", SCHEMA_VERSION);
	rec_put(out, "tool", "fpdiff");
	rec_put(out, "hash", "xxh3-128");
	rec_put(out, "order", exec ? "exec" : "set");
	rec_end(out);
}

static int
temporary(void)
{
	struct buf b = { 0 };
	buf_printf(&b, "%s/fpdiff.XXXXXX", cli_tmpdir());
	if (b.failed || !buf_cstr(&b))
		cli_die("out of memory");
	int fd = mkstemp(b.p);
	if (fd < 0)
		cli_die("%s: cannot create: %s", b.p, strerror(errno));
	unlink(b.p);
	buf_free(&b);
	return fd;
}

/* Only a file can be looked at and still be read. */
static bool
beside_records(const struct operand *o)
{
	char head[PROBE];
	for (int i = 0; i < 2; i++) {
		const char *other = o->s->operand[i];
		if (other != o->name && !is_special(other) &&
		    rec_probe_any(head, peek(other, head)))
			return true;
	}
	return false;
}

static enum operand_kind
kind_of(const struct operand *o, const struct tensor_hints *h,
    const struct dump_count *count)
{
	if (dump_is_series(h))
		return OPERAND_TABLE;
	bool one = o->walk.n <= 1 && !(o->walk.n && o->walk.file[0].listed);
	return one && count->plain ? OPERAND_BYTES : OPERAND_TENSORS;
}

/*
 * A pipe of no known format may have no end, and its bytes alone are what
 * cmp(1) compares.
 */
static void
check_pipe(const struct operand *o, struct src *pipe, struct tensor_hints *h)
{
	const struct tensor_format *f = NULL;
	unsigned char head[FOREIGN_HEAD];
	struct err e;
	size_t n;
	if (dump_find_step_src(h, pipe, &e))
		cli_warn("%s: %s", o->name, e.msg);
	if (src_read_some(pipe, 0, head, sizeof head, &n, &e) ||
	    tensor_format_probe(pipe, &f, &e) ||
	    (!f && foreign_check(head, n, &e)))
		cli_die_err(o->name, &e);
	if (!f && !h->step.len)
		cli_die("%s: neither records nor tensors nor a table with a "
			"column \"step\" (--step COLUMN reads others)",
		    o->name);
}

/*
 * The records go to a temporary file: small, and read like any other. `pipe`
 * is the operand if it can be read only once, else NULL; it is closed here.
 */
static struct src *
fingerprint(struct operand *o, struct src *pipe)
{
	struct rec_out *out;
	struct rec_how form = { .form = REC_LINES };
	struct dump_count count = { 0 };
	struct dump_how how = { .jobs = 1, .left_out = warn_skip };
	struct src *src;
	struct err e;
	how.hints.dirfd = -1;
	how.hints.step = str_c(o->s->step);
	/*
	 * Two files of one tensor each are compared whatever their names;
	 * beside records a file has the name that fpdump gives it.
	 */
	bool one = pipe || (o->walk.n == 1 && !o->walk.file[0].listed);
	how.alone = one && !beside_records(o) ? "tensor" : NULL;
	if (pipe)
		check_pipe(o, pipe, &how.hints);
	else if (dump_find_step(&how.hints, o->walk.file, o->walk.n, &e))
		cli_warn("%s", e.msg);
	how.exec = dump_is_series(&how.hints);
	int fd = temporary();
	if (rec_out_open(&out, fd, &form, &e))
		cli_die("%s", e.msg);
	write_head(out, how.exec);
	if (pipe ? dump_src(out, pipe, o->name, &how, &count, &e)
		 : dump_files(out, o->walk.file, o->walk.n, &how, &count, &e))
		cli_die_err(o->name, &e);
	src_close(pipe);
	o->kind = kind_of(o, &how.hints, &count);
	uint64_t lacks = count.skipped + o->walk.skipped;
	if (lacks && !count.records)
		exit(STATUS_NONE); /* what is wrong was said */
	if (rec_out_finish(
		out, NULL, lacks ? STATUS_UNKNOWN : STATUS_CLEAN, lacks, &e))
		cli_die("%s", e.msg);
	rec_out_close(out);
	if (lseek(fd, 0, SEEK_SET))
		cli_die("cannot read back: %s", strerror(errno));
	if (src_open_fd(&src, fd, cli_tmpdir(), SRC_PLAIN, &e))
		cli_die("%s", e.msg);
	return src;
}

/* Waits no longer than it must: the records may come slowly. */
static bool
pipe_has_records(struct src *src)
{
	char head[PROBE];
	size_t have = 0, n;
	do {
		if (src_read_next(
			src, have, head + have, sizeof head - have, &n, NULL))
			return true; /* whose reader says what is wrong */
		have += n;
		if (rec_probe_any(head, have))
			return true;
	} while (n && have < sizeof head);
	return !have;
}

/* ---- the interface ----------------------------------------------------- */

struct operand *
operand_open(const struct settings *s, const char *name)
{
	struct err e;
	struct stat st;
	struct operand *o = cli_alloc(1, sizeof *o);
	o->s = s;
	o->name = name;
	o->walk.skip = warn_skip;
	o->part = NULL;
	if (s->follow && !stat(name, &st) && S_ISDIR(st.st_mode))
		cli_die(
		    "%s: is a directory: follow the stream of each rank", name);
	if (s->follow || is_special(name)) {
		o->part = cli_alloc(1, sizeof *o->part);
		o->part[0] = (struct part){ .path = name };
		o->n = 1;
		return o;
	}
	if (walk_add(&o->walk, name, &e))
		cli_die_err(name, &e);
	if (!o->walk.n)
		cli_die("%s: nothing in it", name);
	o->skipped = o->walk.skipped;
	if (has_records(&o->walk)) {
		list_streams(o);
		return o;
	}
	if (bundle_fold(&o->walk, &e))
		cli_die_err(name, &e);
	o->prints = true;
	o->n = 1;
	return o;
}

void
operand_close(struct operand *o)
{
	walk_close(&o->walk);
	free(o->part);
	free(o);
}

size_t
operand_parts(const struct operand *o)
{
	return o->n;
}

bool
operand_is_run(const struct operand *o)
{
	return o->walk.n && o->walk.file[0].listed && !o->prints;
}

uint64_t
operand_skipped(const struct operand *o)
{
	/* Of tensors the end record says it. */
	return o->prints ? 0 : o->skipped;
}

const char *
operand_part_name(const struct operand *o, size_t i)
{
	return o->prints ? o->name : o->part[i].path;
}

bool
operand_part_rank(const struct operand *o, size_t i, uint64_t *rank)
{
	if (o->prints)
		return false;
	*rank = o->part[i].rank;
	return o->part[i].rank_given;
}

struct src *
operand_part_open(struct operand *o, size_t i)
{
	struct src *src;
	struct err e;
	if (o->prints)
		return fingerprint(o, NULL);
	const char *path = o->part[i].path;
	if (cli_src_open(&src, path, 0, &e))
		cli_die_err(cli_src_name(path), &e);
	return o->walk.n || pipe_has_records(src) ? src : fingerprint(o, src);
}

void
operand_check_pair(const struct operand *a, const struct operand *b)
{
	static const char *const word[] = { "fingerprint records", "tensors",
		"a table with steps", "plain bytes" };
	bool tables = a->kind == OPERAND_TABLE || b->kind == OPERAND_TABLE;
	bool tensors = a->kind == OPERAND_TENSORS || b->kind == OPERAND_TENSORS;
	bool bytes = a->kind == OPERAND_BYTES || b->kind == OPERAND_BYTES;
	if (a->kind == b->kind || !(bytes || (tables && tensors)))
		return;
	bool records = a->kind == OPERAND_RECORDS || b->kind == OPERAND_RECORDS;
	cli_die("nothing to compare: %s is read as %s, %s as %s%s", a->name,
	    word[a->kind], b->name, word[b->kind],
	    tables    ? "; --step COLUMN reads tables"
	    : records ? "; fpdump -c REF FILE checks a file"
		      : "");
}
