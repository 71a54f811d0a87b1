/*
 * fpdump: one fingerprint line per tensor.
 *
 * Reads tensor files, directories, any other file, a live stream on standard
 * input, its own records, or the host; prints a stream of fp and scalar
 * records. Manual: fpdump(1), straightedge-fingerprints(5).
 */
#include "fpdump.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "num.h"
#include "sig.h"

enum {
	DTYPE = OPT_OWN,
	SHAPE,
	SKIP,
	CHUNK,
	STEP,
	STEPS,
	SELECT,
	SLICE,
	HASH,
	SHARDSUM,
	ROWS,
	TILES,
	STATS,
	CANON,
	HOST,
	LIBS,
	JOBS_MAX = 256,
};

// clang-format off
static const struct opt options[] = {
	{ 't', "type-in", "FORMAT", "force the input format" },
	{ DTYPE, "dtype", "TYPE", "raw data: type of its elements" },
	{ SHAPE, "shape", "N,N", "raw data: its shape" },
	{ SKIP, "skip", "BYTES", "raw data: header to leave out" },
	{ CHUNK, "chunk", "SIZE", "plain files: one record per block" },
	{ STEP, "step", "COLUMN", "tables: one scalar per cell" },
	{ 'l', "label", "KEY=VALUE", "put a key into every record" },
	{ STEPS, "steps", "A:B", "only records of these steps" },
	{ SELECT, "select", "GLOB", "only names that match; repeatable" },
	{ SLICE, "slice", "NAME[A:B]", "leave padding out; repeatable" },
	{ HASH, "hash", "NAME", "xxh3-128 or mix64" },
	{ SHARDSUM, "shardsum", "N", "add a sum that adds up over shards" },
	{ ROWS, "rows", NULL, "add a sum that ignores the order of rows" },
	{ TILES, "tiles", "N", "add N hashes along the first dimension" },
	{ STATS, "stats", NULL, "add min, max, mean, nan, inf, zero" },
	{ CANON, "canon", NULL, "add a hash with -0 as 0 and NaNs equal" },
	{ 'c', "check", "REF.fp", "check files against records" },
	{ HOST, "host", NULL, "print what the host is and runs" },
	{ LIBS, "libs", "PROGRAM", "and the libraries it would load" },
	{ 'j', "jobs", "N", "threads (1; 0: one per processor)" },
	{ OPT_FILES0, "files0-from", "FILE", "NUL-separated list of files" },
	{ OPT_PROGRESS, "progress", "[=always]", "progress on stderr" },
	OPT_JUDGE,
	OPT_COMMON,
	OPT_LAST,
};
// clang-format on

static const char *const usage[] = {
	"fpdump [options] [FILE | DIR | RECORDS | -]...",
	"fpdump --host [--libs PROGRAM] [options]",
	"fpdump -c REF.fp [options] [FILE | DIR]...",
	NULL,
};
static const char summary[] = "prints one fingerprint line per tensor";

/* ---- options --------------------------------------------------------- */

static void *
grow(void *p, size_t n, size_t size)
{
	return cli_realloc(p, n + 1, size);
}

static bool
is_key(struct str s)
{
	if (!s.len || s.p[0] < 'a' || s.p[0] > 'z')
		return false;
	for (size_t i = 0; i < s.len; i++) {
		char c = s.p[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		bool digit = c >= '0' && c <= '9';
		if (!letter && !digit && c != '_' && c != '-' && c != '.')
			return false;
	}
	return true;
}

/* What only reading the data can say. */
static bool
is_ours(struct str key)
{
	static const char *const list[] = { "dtype", "shape", "bytes", "hash",
		"canon", "shardsum", "unit", "rows", "tiles", "slice", "left",
		"min", "max", "mean", "nan", "inf", "zero", "vtype", "value",
		"file", "seq", "occ", "storage", "global", "offset", NULL };
	for (int i = 0; list[i]; i++)
		if (str_is(key, list[i]))
			return true;
	return false;
}

static void
add_label(struct settings *s, const struct opt_state *opt)
{
	struct str value = str_c(opt->arg), key;
	str_cut(&value, '=', &key);
	if (!value.p || !is_key(key))
		cli_usage("option %s: expected KEY=VALUE, found \"%s\"",
		    opt->name, opt->arg);
	if (is_ours(key))
		cli_usage("option %s: \"%.*s\" is what fpdump finds out",
		    opt->name, STR_ARG(key));
	struct dump_how *d = &s->dump;
	for (size_t i = 0; i < d->nlabels; i++)
		if (str_same(d->label[i].key, key))
			cli_usage("option %s: \"%.*s\" is given twice",
			    opt->name, STR_ARG(key));
	if (d->nlabels >= REC_FIELDS_MAX / 4)
		cli_usage("option %s: more than %d labels", opt->name,
		    REC_FIELDS_MAX / 4);
	struct fp_label *l =
	    grow((void *)d->label, d->nlabels, sizeof *d->label);
	l[d->nlabels++] = (struct fp_label){ key, value };
	d->label = l;
}

static void
add_slice(struct settings *s, const struct opt_state *opt)
{
	struct fingerprint_how *p = &s->dump.print;
	struct err e;
	struct slice *list =
	    grow((void *)p->slice, p->nslices, sizeof *p->slice);
	p->slice = list;
	p->slice_met = grow(p->slice_met, p->nslices, sizeof *p->slice_met);
	p->slice_met[p->nslices] = false;
	if (slice_parse(&list[p->nslices++], str_c(opt->arg), &e))
		cli_usage("option %s: %s", opt->name, e.msg);
}

static void
set_shape(struct settings *s, const struct opt_state *opt)
{
	struct tensor_hints *h = &s->dump.hints;
	uint64_t *dim = cli_alloc(TENSOR_NDIM_MAX, sizeof *dim);
	size_t n;
	struct err e;
	if (fp_shape(str_c(opt->arg), dim, TENSOR_NDIM_MAX, &n, &e))
		cli_usage("option %s: %s", opt->name, e.msg);
	free((void *)h->shape);
	h->shape = dim;
	h->ndim = (unsigned)n;
}

static void
set_dtype(struct settings *s, const struct opt_state *opt)
{
	s->dump.hints.dtype = dtype_find(str_c(opt->arg));
	if (!s->dump.hints.dtype)
		cli_usage(
		    "option %s: no element type \"%s\"", opt->name, opt->arg);
}

static void
set_hash(struct settings *s, const struct opt_state *opt)
{
	bool mix = !strcmp(opt->arg, "mix64");
	if (!mix && strcmp(opt->arg, "xxh3-128"))
		cli_usage("option %s: expected xxh3-128 or mix64, found \"%s\"",
		    opt->name, opt->arg);
	s->dump.print.digest.mix64 = mix;
}

static void
set_format(struct settings *s, const struct opt_state *opt)
{
	s->live = !strcmp(opt->arg, "live");
	s->records = !strcmp(opt->arg, "records");
	if (s->live || s->records)
		return;
	if (tensor_format_find(opt->arg)) {
		s->dump.hints.format = opt->arg;
		return;
	}
	struct buf b = { 0 };
	for (size_t i = 0; tensor_formats[i]; i++)
		buf_printf(&b, "%s, ", tensor_formats[i]->name);
	buf_puts(&b, "live or records");
	cli_usage("option %s: expected %s, found \"%s\"", opt->name,
	    buf_cstr(&b), opt->arg);
}

static void
set_steps(struct settings *s, const struct opt_state *opt)
{
	struct err e;
	if (select_steps(&s->dump.select, str_c(opt->arg), &e))
		cli_usage("option %s: %s", opt->name, e.msg);
}

static unsigned
processors(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	return n < 1 ? 1 : n > JOBS_MAX ? JOBS_MAX : (unsigned)n;
}

static void
add_operand(struct settings *s, const char *path)
{
	s->operand = grow(s->operand, s->noperands, sizeof *s->operand);
	char *copy = strdup(path);
	if (!copy)
		cli_die("out of memory");
	s->operand[s->noperands++] = copy;
}

static void
add_list(struct settings *s, const char *path)
{
	size_t n;
	char **names = cli_names(path, &n);
	if (!n)
		cli_die("%s: no names in it", path);
	for (size_t i = 0; i < n; i++)
		add_operand(s, names[i]);
	cli_names_free(names, n);
}

/* -F sum is of whole files as they are; NULL: none is given that is not. */
static const char *
not_of_sums(const struct settings *s)
{
	const struct dump_how *d = &s->dump;
	const struct tensor_hints *h = &d->hints;
	const struct digest_how *g = &d->print.digest;
	bool bytes = h->format && !strcmp(h->format, "bytes");
	const struct {
		bool given;
		const char *name;
	} list[] = {
		{ s->live || s->records || (h->format && !bytes), "-t" },
		{ h->dtype != NULL, "--dtype" },
		{ h->skip != 0, "--skip" },
		{ h->chunk != 0, "--chunk" },
		{ h->step.len != 0, "--step" },
		{ d->nlabels != 0, "-l" },
		{ d->select.steps, "--steps" },
		{ d->select.nglobs != 0, "--select" },
		{ d->print.nslices != 0, "--slice" },
		{ g->mix64, "--hash=mix64" },
		{ g->unit != 0, "--shardsum" },
		{ g->rows, "--rows" },
		{ g->tiles != 0, "--tiles" },
		{ g->stats, "--stats" },
		{ g->canon, "--canon" },
		{ s->common.how.gzip, "-z" },
		{ s->common.policy.partial, "--partial" },
	};
	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		if (list[i].given)
			return list[i].name;
	return NULL;
}

static void
check_combinations(struct settings *s)
{
	const struct tensor_hints *h = &s->dump.hints;
	if (h->shape && !h->dtype)
		cli_usage("--shape goes with --dtype");
	if (h->dtype && h->chunk)
		cli_usage("--dtype and --chunk exclude each other");
	if (s->libs && !s->host)
		cli_usage("--libs goes with --host");
	if (s->sum && (s->host || s->check))
		cli_usage("-F sum goes with files");
	if (s->sum && not_of_sums(s))
		cli_usage("-F sum is of files as they are: not with %s",
		    not_of_sums(s));
	if (s->common.evidence && !s->check)
		cli_usage("-E goes with -c");
	if (s->check && (s->host || s->records || s->live))
		cli_usage("-c checks files");
	for (size_t i = 0; s->check && i < s->noperands; i++)
		if (!strcmp(s->operand[i], "-"))
			cli_usage("-c checks files that have a name, found "
				  "\"-\"");
}

/* One option of ours; false: it is one that all commands share. */
static bool
own_option(struct settings *s, int id, const struct opt_state *opt)
{
	struct dump_how *d = &s->dump;
	struct digest_how *g = &d->print.digest;
	switch (id) {
	case 't':
		set_format(s, opt);
		return true;
	case DTYPE:
		set_dtype(s, opt);
		return true;
	case SHAPE:
		set_shape(s, opt);
		return true;
	case SKIP:
		d->hints.skip = cli_size(opt, 0, INT64_MAX);
		return true;
	case CHUNK:
		d->hints.chunk = cli_size(opt, 1, INT64_MAX);
		return true;
	case STEP:
		d->hints.step = str_c(opt->arg);
		return true;
	case 'l':
		add_label(s, opt);
		return true;
	case STEPS:
		set_steps(s, opt);
		return true;
	case SELECT:
		d->select.glob = grow((void *)d->select.glob, d->select.nglobs,
		    sizeof *d->select.glob);
		d->select.glob[d->select.nglobs++] = opt->arg;
		return true;
	case SLICE:
		add_slice(s, opt);
		return true;
	case HASH:
		set_hash(s, opt);
		return true;
	case SHARDSUM:
		g->unit = cli_size(opt, 1, INT64_MAX);
		return true;
	case ROWS:
		g->rows = true;
		return true;
	case TILES:
		g->tiles = (unsigned)cli_u64(opt, 1, DIGEST_TILES_MAX);
		return true;
	case STATS:
		g->stats = true;
		return true;
	case CANON:
		g->canon = true;
		return true;
	case 'c':
		s->check = opt->arg;
		return true;
	case HOST:
		s->host = true;
		return true;
	case LIBS:
		s->libs = opt->arg;
		return true;
	case 'j':
		d->jobs = (unsigned)cli_u64(opt, 0, JOBS_MAX);
		d->jobs = d->jobs ? d->jobs : processors();
		return true;
	case OPT_FILES0:
		add_list(s, opt->arg);
		return true;
	case OPT_OPERAND:
		add_operand(s, opt->arg);
		return true;
	case 'F':
		s->sum = !strcmp(opt->arg, "sum");
		return s->sum;
	}
	return false;
}

static void
parse(struct settings *s, int argc, char **argv)
{
	struct opt_state opt;
	int id;
	opt_start(&opt, options, argc, argv);
	while ((id = opt_next(&opt)) != OPT_END)
		if (!own_option(s, id, &opt))
			cli_common(&s->common, id, &opt, usage, summary);
	s->type_given = s->common.how.type != NULL;
	s->common.labels = !s->check;
	cli_common_done(&s->common, s->check ? "diff" : "fp");
	check_combinations(s);
}

static void
settings_free(struct settings *s)
{
	for (size_t i = 0; i < s->noperands; i++)
		free(s->operand[i]);
	free(s->operand);
	free((void *)s->dump.label);
	free((void *)s->dump.print.slice);
	free(s->dump.print.slice_met);
	free((void *)s->dump.hints.shape);
	free(s->dump.select.glob);
}

/* ---- what came of it -------------------------------------------------- */

/* Was something asked for that is not there? */
static bool
selects_nothing(const struct settings *s, const struct outcome *out)
{
	const struct select *c = &s->dump.select;
	if (out->count.records || (!c->nglobs && !c->steps))
		return false;
	cli_warn("nothing matches %s", !c->steps   ? "--select"
				       : c->nglobs ? "--select and --steps"
						   : "--steps");
	return true;
}

/* As verdict_settle judges: filtered is not damaged. */
static int
status_of(const struct settings *s, const struct outcome *out)
{
	const struct policy *p = &s->common.policy;
	uint64_t lacks = out->count.skipped + out->unread;
	bool damaged = lacks > p->allow_bad;
	if ((lacks || out->filtered) && !out->count.records)
		return STATUS_NONE;
	if (damaged && p->strict)
		return STATUS_NONE;
	return damaged || (out->filtered && !p->partial) ? STATUS_UNKNOWN
							 : STATUS_CLEAN;
}

static bool
is_label(void *user, struct str name)
{
	const struct dump_how *d = &((const struct settings *)user)->dump;
	for (size_t i = 0; i < d->nlabels; i++)
		if (str_same(d->label[i].key, name))
			return true;
	return false;
}

/* Tables have one type, and what a user wants to see of a table is its cells.
 */
static void
choose_columns(struct settings *s, const struct input *in)
{
	bool scalars =
	    in->kind == INPUT_HOST ||
	    (in->kind != INPUT_RECORDS && dump_is_series(&s->dump.hints));
	if (scalars && !s->type_given && !s->common.quiet)
		s->common.how.type = "scalar";
	/* Records that are read may have labels: seen when they are. */
	if (in->kind != INPUT_RECORDS)
		cli_columns(&s->common, is_label, s);
}

/* Was a column asked for that no record had? */
static bool
lacks_columns(const struct settings *s, const struct outcome *out)
{
	const struct cli_common *c = &s->common;
	struct str rest = str_c(c->how.columns), name;
	bool lacks = false;
	if (!rest.p || !out->count.records)
		return false;
	for (unsigned i = 0; i < 64 && cli_column_odd(c, &rest, &name); i++) {
		if (out->columns_seen >> i & 1 || is_label((void *)s, name))
			continue;
		cli_warn("--columns: no record has a \"%.*s\"", STR_ARG(name));
		lacks = true;
	}
	return lacks;
}

static void
report_scalars(const struct settings *s, const struct outcome *out)
{
	int form = s->common.how.form;
	if ((form == REC_TSV || form == REC_CSV) && out->count.scalars &&
	    !strcmp(s->common.how.type, "fp"))
		cli_warn("%" PRIu64 " scalar records are not in this table: "
			 "--type scalar",
		    out->count.scalars);
}

/* Records that were copied have brought their ends with them. */
static bool
has_ended(const struct settings *s, const struct input *in)
{
	int form = s->common.how.form;
	return in->kind == INPUT_RECORDS &&
	       (form == REC_LINES || form == REC_JSON);
}

static int
flush(struct cli_out *file, struct rec_out *o, int status)
{
	struct err e;
	if (rec_out_flush(o, &e)) {
		cli_warn_err(cli_out_name(file), &e);
		status = STATUS_NONE;
	}
	rec_out_close(o);
	/* Nothing is no reason to lose what the file has. */
	return cli_out_close(file, status != STATUS_NONE) ? STATUS_NONE
							  : status;
}

static void
tick(void *user, uint64_t bytes)
{
	const struct settings *s = user;
	progress_bytes(s->progress, bytes);
}

/* -o, else where the program that runs us wants fingerprints, else stdout. */
static void
open_output(const struct settings *s, struct cli_out *file)
{
	struct err e;
	const char *where = getenv(SIG_VARIABLE);
	if (s->common.output || !where || !*where) {
		cli_out_open(file, s->common.output, false);
		return;
	}
	*file = (struct cli_out){ .append = true };
	if (sig_open(where, &file->fd, &e))
		cli_die(SIG_VARIABLE "=%s: %s", where, e.msg);
}

static int
run(struct settings *s)
{
	struct outcome out = { 0 };
	struct input in = { .kind = INPUT_NONE };
	struct cli_out file;
	struct rec_out *o;
	struct err e;
	open_output(s, &file);
	s->progress = progress_start(&s->common);
	input_look(s, &in, &out);
	if (s->common.policy.partial && in.kind != INPUT_RECORDS &&
	    in.kind != INPUT_NONE)
		cli_usage("--partial goes with records, or -c");
	choose_columns(s, &in);
	if (rec_out_open(&o, file.fd, &s->common.how, &e))
		cli_die_err("output", &e);
	input_dump(o, s, &in, &out);
	progress_stop(s->progress);
	if (in.kind != INPUT_RECORDS)
		out.count.skipped += slices_unmet(s);
	report_scalars(s, &out);
	bool nothing = selects_nothing(s, &out) || lacks_columns(s, &out);
	int status = nothing ? STATUS_NONE : status_of(s, &out);
	uint64_t skipped = out.count.skipped + out.unread;
	if (s->common.verbose)
		cli_warn("%" PRIu64 " records, %" PRIu64 " left out",
		    out.count.records, skipped);
	status = has_ended(s, &in)
		     ? flush(&file, o, status)
		     : cli_out_end(&file, o, NULL, status, skipped);
	input_close(&in);
	cli_prom(&s->common, NULL, NULL, NULL, status, skipped);
	return status;
}

int
main(int argc, char **argv)
{
	struct settings s = { .dump.jobs = 1 };
	cli_start("fpdump");
	s.dump.left_out = warn_left_out;
	s.dump.print.tick = tick;
	s.dump.print.user = &s;
	s.dump.hints.dirfd = -1;
	parse(&s, argc, argv);
	if (!s.noperands && !s.host && !s.check)
		cli_need_input();
	s.dump.hints.tmpdir = cli_tmpdir();
	int status = s.sum ? sum_main(&s) : s.check ? check_main(&s) : run(&s);
	settings_free(&s);
	return status;
}
