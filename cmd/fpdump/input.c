/*
 * What the operands are. All of it is found out before anything is written:
 * the head of the output says what order its records have, and a table has
 * the columns of one type.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bundle.h"
#include "fpdump.h"

/* ---- looking --------------------------------------------------------- */

static bool
is_stdin(const char *operand)
{
	return !strcmp(operand, "-");
}

static bool
is_pipe(const char *path)
{
	struct stat st;
	return is_stdin(path) || (!stat(path, &st) && !S_ISREG(st.st_mode) &&
				     !S_ISDIR(st.st_mode));
}

/* Is the first operand a record stream? Then all have to be. */
static bool
is_records(const struct settings *s)
{
	struct src *src;
	struct stat st;
	const char *path = s->operand[0];
	if (s->records)
		return true;
	/* Opening a FIFO to look at it would take its beginning away. */
	if (s->dump.hints.format || stat(path, &st) || !S_ISREG(st.st_mode) ||
	    src_open(&src, path, cli_tmpdir(), 0, NULL))
		return false;
	bool yes = records_probe_file(src);
	src_close(src);
	return yes;
}

/*
 * The ways in which standard input, or a FIFO in its place, can be meant.
 * Live streams are read from standard input only.
 */
static void
look_at_pipe(
    struct settings *s, const char *name, struct input *in, struct outcome *out)
{
	bool std = is_stdin(name);
	const char *path = cli_src_name(name);
	struct stat st;
	struct err e;
	in->name = name;
	if (cli_src_open(&in->src, name, 0, &e)) {
		cli_warn_err(path, &e);
		out->unread++;
		return;
	}
	bool forced = s->dump.hints.format || s->live || s->records;
	if (s->records || (!forced && records_probe(in->src))) {
		in->kind = INPUT_RECORDS;
	} else if (std && live_probe(s, in->src)) {
		in->kind = INPUT_LIVE;
		in->recorder = live_is_framed(in->src) &&
			       !fstat(STDIN_FILENO, &st) &&
			       !S_ISREG(st.st_mode);
	} else {
		in->kind = INPUT_PIPE;
		if (dump_find_step_src(&s->dump.hints, in->src, &e))
			cli_warn("%s: %s", path, e.msg);
	}
}

static void
look_at_files(struct settings *s, struct input *in, struct outcome *out)
{
	struct walk *w = &in->walk;
	struct err e;
	w->skip = warn_left_out;
	for (size_t i = 0; i < s->noperands; i++)
		if (walk_add(w, s->operand[i], &e)) {
			cli_warn_err(s->operand[i], &e);
			out->unread++;
		}
	if (!w->n && !w->skipped && !out->unread) {
		cli_warn("%s: nothing in it", s->operand[0]);
		out->unread++;
	}
	if (bundle_fold(w, &e))
		cli_die("%s", e.msg);
	out->count.skipped += w->skipped;
	if (dump_find_step(&s->dump.hints, w->file, w->n, &e))
		cli_warn("%s", e.msg);
	in->kind = INPUT_FILES;
}

void
input_look(struct settings *s, struct input *in, struct outcome *out)
{
	size_t dashes = 0;
	for (size_t i = 0; i < s->noperands; i++)
		dashes += is_stdin(s->operand[i]);
	if (s->host)
		in->kind = INPUT_HOST;
	else if (!s->noperands)
		look_at_pipe(s, "-", in, out);
	else if (s->noperands == 1 && is_pipe(s->operand[0]))
		look_at_pipe(s, s->operand[0], in, out);
	else if (is_records(s))
		in->kind = INPUT_RECORDS;
	else if (dashes)
		cli_usage("standard input stands alone, not among files");
	else
		look_at_files(s, in, out);
	s->dump.exec = in->kind == INPUT_LIVE || dump_is_series(&s->dump.hints);
}

void
input_close(struct input *in)
{
	walk_close(&in->walk);
	src_close(in->src);
}

/* ---- reading ----------------------------------------------------------- */

/* A pipe that is neither a live stream nor records: a file like others. */
static void
dump_pipe(struct rec_out *o, const struct settings *s, struct src *src,
    const char *name, struct outcome *out)
{
	const char *path = cli_src_name(name);
	struct err e;
	char byte;
	size_t n;
	if (src_read_next(src, 0, &byte, 1, &n, &e)) {
		cli_warn_err(path, &e);
		out->unread++;
	} else if (!n && !s->dump.hints.format) {
		cli_warn("%s: empty", path);
		out->unread++;
	} else if (dump_src(o, src, name, &s->dump, &out->count, &e)) {
		cli_die_err(path, &e);
	}
}

static void
copy_operand(struct rec_out *o, const struct settings *s, const char *path,
    struct outcome *out)
{
	struct src *src;
	struct err e;
	int r = cli_src_open(&src, path, 0, &e);
	if (!r) {
		records_copy(o, s, src, path, out);
		return;
	}
	cli_warn_err(path, &e);
	out->unread++;
}

/* What only reading the data can say is not to be had of records. */
static void
check_no_data_options(const struct settings *s)
{
	const struct digest_how *g = &s->dump.print.digest;
	const char *name = s->dump.print.nslices ? "slice"
			   : g->mix64            ? "hash"
			   : g->unit             ? "shardsum"
			   : g->rows             ? "rows"
			   : g->tiles            ? "tiles"
			   : g->stats            ? "stats"
			   : g->canon            ? "canon"
						 : NULL;
	if (name)
		cli_usage("--%s needs the data, the input is records", name);
}

static void
copy_records(struct rec_out *o, const struct settings *s, struct input *in,
    struct outcome *out)
{
	if (in->src)
		records_copy(o, s, in->src, cli_src_name(in->name), out);
	for (size_t i = 0; !in->src && i < s->noperands; i++)
		copy_operand(o, s, s->operand[i], out);
	in->src = NULL;
}

void
input_dump(struct rec_out *o, const struct settings *s, struct input *in,
    struct outcome *out)
{
	struct err e;
	if (in->kind == INPUT_RECORDS) {
		check_no_data_options(s);
		copy_records(o, s, in, out);
		return;
	}
	if (in->kind != INPUT_HOST)
		head_write(o, s, s->dump.exec ? "exec" : "set", in->recorder);
	switch (in->kind) {
	case INPUT_HOST:
		host_dump(o, s, out);
		return;
	case INPUT_LIVE:
		live_dump(o, s, in->src, out);
		return;
	case INPUT_PIPE:
		dump_pipe(o, s, in->src, in->name, out);
		return;
	case INPUT_FILES:
		progress_total(s->progress, in->walk.bytes);
		if (dump_files(o, in->walk.file, in->walk.n, &s->dump,
			&out->count, &e))
			cli_die("%s", e.msg);
		return;
	case INPUT_RECORDS:
	case INPUT_NONE:
		return;
	}
}
