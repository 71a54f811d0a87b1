/* An operand of fpdiff, record by record. */
#include "fpdiff.h"

#include <inttypes.h>
#include <stdlib.h>

#include "buf.h"
#include "num.h"

enum {
	NAME_SHOWN = 200,
	WARNINGS_MAX = 20,   /* bad lines shown; all are counted */
	CONDITIONS_MAX = 64, /* different values of one condition */
};

/* A stream that was sorted is put back in order in memory. */
#define SORT_MAX (UINT64_C(1) << 30)

static const char *const condition_name[] = { "switches", "build" };
enum { CONDITIONS = 2 };

struct side {
	const struct settings *s;
	const char *name; /* of the file that is open */
	int which;
	struct operand *operand;
	size_t at; /* number of that file */
	struct rec_in *in;
	struct buf sorted; /* holds the input if it had to be reordered */
	struct rec_totals totals; /* of the files before */
	bool held;                /* `line` was read and not yet given out */
	struct str line;
	bool ended;
	bool set, replicated;
	bool order_lost; /* sorted, and not to be put back */
	uint64_t part, warnings;
	bool time_given;
	int64_t time;
	struct str condition[CONDITIONS][CONDITIONS_MAX];
	size_t nconditions[CONDITIONS];
	struct rec rec;
	struct buf key, form, mapped;
	struct twin *twins;
	struct buf host; /* of the last head */
};

const char *
side_name(const struct side *side)
{
	return side->name;
}

bool
side_is_exec(const struct side *side)
{
	return !side->set;
}

uint64_t
side_part(const struct side *side)
{
	return side->part;
}

bool
side_order_lost(const struct side *side)
{
	return side->order_lost;
}

bool
side_inputs_replicated(const struct side *side)
{
	return side->replicated;
}

struct str
side_host(const struct side *side)
{
	return buf_view(&side->host);
}

bool
side_time(const struct side *side, int64_t *ns)
{
	*ns = side->time;
	return side->time_given;
}

/* ---- messages ---------------------------------------------------------- */

static void
warn(struct side *side, const struct err *e)
{
	if (side->warnings++ < WARNINGS_MAX)
		cli_warn_err(side->name, e);
	else if (side->warnings == WARNINGS_MAX + 1)
		cli_warn("%s: more bad lines, counted", side->name);
}

void
side_bad(struct side *side, uint64_t line, const char *what, struct str name)
{
	struct err e;
	size_t n = name.len < NAME_SHOWN ? name.len : NAME_SHOWN;
	rec_in_bad(side->in);
	err_set(&e, SE_EFORMAT, "%" PRIu64 ": %s \"%.*s\"", line, what, (int)n,
	    name.p);
	warn(side, &e);
}

void
side_same_bad(struct side *side)
{
	rec_in_bad(side->in);
}

/* ---- heads ----------------------------------------------------------- */

static void
keep_condition(struct side *side, int which, struct str value)
{
	size_t n = side->nconditions[which];
	for (size_t i = 0; i < n; i++)
		if (str_same(side->condition[which][i], value))
			return;
	if (n == CONDITIONS_MAX)
		return;
	char *copy = cli_alloc(value.len + 1, 1);
	memcpy(copy, value.p, value.len);
	side->condition[which][n] = (struct str){ copy, value.len };
	side->nconditions[which]++;
}

static void
take_head(struct side *side, const struct rec *rec)
{
	struct err e;
	side->part++;
	side->replicated = str_is(rec_text_of(rec, "inputs"), "replicated");
	side->host.len = 0;
	buf_str(&side->host, rec_text_of(rec, "host"));
	side->set |= str_is(rec_text_of(rec, "order"), "set");
	if (rec_get(rec, "time") && !rec_time_of(rec, "time", &side->time, &e))
		side->time_given = true;
	for (int i = 0; i < CONDITIONS; i++) {
		const struct str *v = rec_get(rec, condition_name[i]);
		if (v)
			keep_condition(side, i, *v);
	}
}

static bool
includes(const struct side *side, int which, struct str value)
{
	for (size_t i = 0; i < side->nconditions[which]; i++)
		if (str_same(side->condition[which][i], value))
			return true;
	return false;
}

/* Known on both sides and not the same. What one side does not say is not
 * known to differ. */
const char *
side_conditions_differ(const struct side *a, const struct side *b)
{
	for (int i = 0; i < CONDITIONS; i++) {
		size_t na = a->nconditions[i], nb = b->nconditions[i];
		if (!na || !nb)
			continue;
		if (na != nb)
			return condition_name[i];
		for (size_t k = 0; k < na; k++)
			if (!includes(b, i, a->condition[i][k]))
				return condition_name[i];
	}
	return NULL;
}

/* ---- sorted streams ---------------------------------------------------- */

struct sort_line {
	struct str text, rank;
	uint64_t seq, number;
	int group; /* heads first, then records, then ends */
	bool no_seq;
};

static struct str
value_of(struct str line, const char *key)
{
	struct str word;
	size_t n = strlen(key);
	while (str_cut(&line, '\t', &word))
		if (word.len > n && word.p[n] == '=' && str_starts(word, key))
			return (struct str){ word.p + n + 1, word.len - n - 1 };
	return STR_NULL;
}

static int
by_sequence(const void *pa, const void *pb)
{
	const struct sort_line *a = pa, *b = pb;
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	int c = str_order(a->rank, b->rank);
	if (c)
		return c;
	if (a->seq != b->seq)
		return a->seq < b->seq ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

static struct sort_line
sort_line_of(struct str text, uint64_t number)
{
	struct sort_line l = { .text = text, .number = number, .group = 1 };
	if (str_starts(text, "head\t"))
		l.group = 0;
	else if (str_starts(text, "end\t"))
		l.group = 2;
	else
		l.rank = value_of(text, "rank");
	l.no_seq =
	    num_u64(value_of(text, "seq"), 0, UINT64_MAX, &l.seq, NULL) != 0;
	return l;
}

/* There is no seq to put lines back, and their steps fall. */
static bool
steps_fall(const struct sort_line *line, size_t n)
{
	uint64_t last = 0, step;
	for (size_t i = 0; i < n; i++) {
		const struct sort_line *l = &line[i];
		if (i && !str_same(l->rank, line[i - 1].rank))
			last = 0;
		if (l->group != 1 || !l->no_seq ||
		    num_u64(
			value_of(l->text, "step"), 0, UINT64_MAX, &step, NULL))
			continue;
		if (step < last)
			return true;
		last = step;
	}
	return false;
}

/* True, and *out holds the reordered text, if some rank's seq fell. */
static bool
reorder(struct str text, struct buf *out, bool *lost)
{
	size_t n = 0, cap = 0;
	struct sort_line *line = NULL;
	struct str rest = text, word;
	while (rest.len && str_cut(&rest, '\n', &word)) {
		if (n == cap) {
			cap = cap ? cap * 2 : 1024;
			line = cli_realloc(line, cap, sizeof *line);
		}
		line[n] = sort_line_of(word, n);
		n++;
	}
	bool exec = false;
	for (size_t i = 0; i < n; i++)
		exec |= !line[i].group &&
			str_is(value_of(line[i].text, "order"), "exec");
	/* Without the last newline the last line is cut: leave that alone. */
	exec = exec && text.len && text.p[text.len - 1] == '\n';
	if (exec) {
		qsort(line, n, sizeof *line, by_sequence);
		*lost = steps_fall(line, n);
		for (size_t i = 0; i < n; i++) {
			buf_str(out, line[i].text);
			buf_putc(out, '\n');
		}
	}
	free(line);
	if (out->failed)
		cli_die("out of memory");
	return exec;
}

static void
read_all(struct src *src, struct buf *to)
{
	struct err e;
	size_t got = 1;
	while (got && to->len < SORT_MAX) {
		char *p = buf_room(to, 1 << 20);
		if (!p)
			cli_die("out of memory");
		int r = src_read_some(src, to->len, p, 1 << 20, &got, &e);
		to->len += got;
		if (r)
			break; /* the reader will say it */
	}
}

/*
 * A stream that has a head and does not begin with it was sorted. (sort puts
 * `end` before `fp` before `head`.) In execution order its records are put
 * back by rank and seq.
 */
static struct src *
unsort(struct side *side, struct src *src)
{
	struct err e;
	char first[5] = "";
	size_t got = 0;
	if (src_read_some(src, 0, first, sizeof first, &got, &e) || !got)
		return src;
	if (got == 5 && !memcmp(first, "head\t", 5))
		return src;
	if (first[0] == '#')
		return src;
	int r = src_seekable(src, &e);
	/* Torn gzip is readable up to the tear; else nothing can be read. */
	if (r && r != SE_ETRUNC && r != SE_EFORMAT)
		cli_die_err(side->name, &e);
	if (src_size(src) > SORT_MAX)
		return src;
	struct buf text = { 0 };
	side->sorted.len = 0;
	read_all(src, &text);
	struct src *memory;
	if (src_size(src) == text.len &&
	    reorder(buf_view(&text), &side->sorted, &side->order_lost) &&
	    !src_open_mem(&memory, side->sorted.p, side->sorted.len, &e)) {
		src_close(src);
		src = memory;
	}
	buf_free(&text);
	return src;
}

/* ---- files ----------------------------------------------------------- */

static void
open_part(struct side *side)
{
	struct err e;
	side->name = operand_part_name(side->operand, side->at);
	side->part++;
	struct src *src =
	    unsort(side, operand_part_open(side->operand, side->at));
	if (rec_in_open(&side->in, src, &e))
		cli_die_err(side->name, &e);
}

static bool
next_part(struct side *side)
{
	if (side->at + 1 >= operand_parts(side->operand))
		return false;
	rec_totals_add(&side->totals, rec_in_totals(side->in));
	rec_in_close(side->in);
	side->at++;
	open_part(side);
	return true;
}

bool
side_passed(const struct side *side, struct str rank)
{
	uint64_t here, asked;
	return operand_part_rank(side->operand, side->at, &here) &&
	       !num_u64(rank, 0, UINT64_MAX, &asked, NULL) && asked < here;
}

/* ---- lines ----------------------------------------------------------- */

/* False: nothing for the caller in it. */
static bool
take_line(struct side *side, struct str line)
{
	struct err e;
	if (str_starts(line, "fp\t") || str_starts(line, "scalar\t"))
		return true;
	int r = rec_in_parse(side->in, line, &side->rec, &e);
	if (r == SE_EUNSUP || r == SE_ENOMEM)
		cli_die_err(side->name, &e);
	if (r)
		warn(side, &e);
	else if (str_is(side->rec.type, "head"))
		take_head(side, &side->rec);
	return false;
}

static bool
read_line(struct side *side, struct str *line)
{
	struct err e;
	int got;
	do {
		while ((got = rec_in_line(side->in, line, &e)) != 0) {
			if (got == SE_ENOMEM)
				cli_die_err(side->name, &e);
			if (got < 0)
				warn(side, &e);
			else if (take_line(side, *line))
				return true;
		}
	} while (next_part(side));
	side->ended = true;
	return false;
}

bool
side_line(struct side *side, struct str *line)
{
	if (!side->held)
		return !side->ended && read_line(side, line);
	side->held = false;
	*line = side->line;
	return true;
}

bool
side_twin(struct side *side, const struct side *other, struct str line)
{
	return !side->held && !side->ended &&
	       rec_in_twin(side->in, other->in, line);
}

/* ---- entries ----------------------------------------------------------- */

static char *
put_form(char *to, struct str s)
{
	uint64_t n = s.p ? s.len + 1 : 0;
	memcpy(to, &n, sizeof n);
	if (s.len)
		memcpy(to + sizeof n, s.p, s.len);
	return to + sizeof n + s.len;
}

/* What fp_compare wants equal before it compares. */
static uint64_t
form_of(struct buf *b, const struct fp *f)
{
	struct str rest = f->hash.text, word = STR_NULL;
	if (f->hash.algorithm == FP_OTHER)
		str_cut(&rest, ':', &word);
	/* The length of plain bytes is part of what is compared. */
	bool bytes = !f->scalar && str_is(f->dtype, "bytes");
	uint64_t len = bytes ? 0 : f->bytes;
	/* The type of a scalar is not: 1 and nan, text and null do differ. */
	const struct str part[] = { f->scalar ? STR_NULL : f->dtype,
		bytes ? STR_NULL : f->shape, f->slice, f->global, f->offset,
		word };
	size_t n = sizeof part / sizeof *part, room = 2 + 8 * (n + 1);
	for (size_t i = 0; i < n; i++)
		room += part[i].len;
	b->len = 0;
	char *start = buf_room(b, room), *to = start;
	if (!start)
		return 0;
	*to++ = (char)f->scalar;
	*to++ = (char)f->hash.algorithm;
	memcpy(to, &len, sizeof len);
	to += sizeof len;
	for (size_t i = 0; i < n; i++)
		to = put_form(to, part[i]);
	return hash_table(start, (size_t)(to - start), 0);
}

static bool
is_selected(const struct side *side, const struct fp *f)
{
	const struct select *s = &side->s->select;
	return (!s->nglobs || select_name(s, f->name)) &&
	       (!s->steps || select_step(s, f->place[FP_STEP]));
}

static bool
is_input(struct str io)
{
	return str_is(io, "in") || str_is(io, "param");
}

/* The invocation a record belongs to: its match key without io. */
static uint64_t
boundary_of(const struct fp *f)
{
	uint64_t h = hash_table(f->name.p, f->name.len, 0);
	for (unsigned i = 0; i < FP_PLACES; i++)
		if (i != FP_IO && f->place[i].p)
			h = hash_table(f->place[i].p, f->place[i].len, h + i);
	return h;
}

/* What the comparison needs of every record. */
static void
fill(struct side *side, const struct fp *f, struct str line, struct entry *e)
{
	*e = (struct entry){
		.boundary = boundary_of(f),
		.input = is_input(f->place[FP_IO]),
		.is_volatile = f->scalar && str_is(f->class, "volatile"),
		.seq = f->seq,
		.step = f->place[FP_STEP],
		.rank = f->place[FP_RANK],
		.file = f->file,
		.raw = line,
		.line = rec_in_totals(side->in)->lines,
	};
}

static int
parse(struct side *side, struct str line, struct fp *f)
{
	struct err err;
	int r = rec_in_parse(side->in, line, &side->rec, &err);
	if (r == SE_ENOMEM)
		cli_die_err(side->name, &err);
	if (!r && (r = fp_parse(f, &side->rec, NULL, &err))) {
		rec_in_bad(side->in);
		err_prefix(&err, "%" PRIu64, rec_in_totals(side->in)->lines);
	}
	if (r)
		warn(side, &err);
	return r;
}

int
side_entry(struct side *side, struct str line, struct fp *f, struct entry *e)
{
	if (parse(side, line, f))
		return -1;
	struct mask *map = side->s->map;
	if (map && side->which && mask_map(map, f->name, &side->mapped))
		f->name = buf_view(&side->mapped);
	if (!is_selected(side, f))
		return 0;
	fill(side, f, line, e);
	e->key = fp_key(f, 0, &side->key);
	e->name = hash_table(f->name.p, f->name.len, 0);
	e->form = form_of(&side->form, f);
	e->value =
	    f->scalar ? hash_xxh3(f->value.p, f->value.len) : f->hash.value;
	if (side->key.failed || side->form.failed || side->mapped.failed)
		cli_die("out of memory");
	return 1;
}

int
side_twin_entry(struct side *side, struct str line, struct entry *e)
{
	struct fp f;
	if (!twin_fits(side->twins, line, &f)) {
		if (parse(side, line, &f))
			return -1;
		twin_learn(side->twins, &side->rec);
	}
	if (!is_selected(side, &f))
		return 0;
	fill(side, &f, line, e);
	return 1;
}

static char *
keep(char *to, struct str *s)
{
	if (!s->p)
		return to;
	memcpy(to, s->p, s->len);
	s->p = to;
	return to + s->len;
}

struct entry *
entry_dup(const struct entry *e)
{
	size_t n = e->raw.len + e->rank.len + e->file.len;
	struct entry *copy = malloc(sizeof *e + n);
	if (!copy)
		cli_die("out of memory");
	*copy = *e;
	copy->step = STR_NULL;
	char *to = keep((char *)(copy + 1), &copy->raw);
	to = keep(to, &copy->rank);
	keep(to, &copy->file);
	return copy;
}

/* ---- opening ---------------------------------------------------------- */

struct side *
side_open(const struct settings *s, int which)
{
	struct side *side = cli_alloc(1, sizeof *side);
	side->s = s;
	side->which = which;
	side->twins = twin_new();
	side->operand = operand_open(s, s->operand[which]);
	if (!operand_parts(side->operand))
		cli_die("%s: no record streams in it", s->operand[which]);
	open_part(side);
	side->held = read_line(side, &side->line);
	return side;
}

void
side_over(struct side *side, struct str text)
{
	struct err e;
	struct src *src;
	rec_in_close(side->in);
	side->totals = (struct rec_totals){ 0 };
	side->ended = side->held = false;
	side->warnings = 0;
	if (src_open_mem(&src, text.p, text.len, &e) ||
	    rec_in_open(&side->in, src, &e))
		cli_die_err(side->name, &e);
	side->held = read_line(side, &side->line);
}

void
side_close(struct side *side)
{
	if (!side)
		return;
	rec_in_close(side->in);
	operand_close(side->operand);
	for (int i = 0; i < CONDITIONS; i++)
		for (size_t k = 0; k < side->nconditions[i]; k++)
			free((char *)side->condition[i][k].p);
	twin_free(side->twins);
	buf_free(&side->sorted);
	buf_free(&side->key);
	buf_free(&side->form);
	buf_free(&side->mapped);
	buf_free(&side->host);
	free(side);
}

/* ---- at the end -------------------------------------------------------- */

static struct rec_totals
totals_of(const struct side *side)
{
	struct rec_totals t = side->totals;
	rec_totals_add(&t, rec_in_totals(side->in));
	return t;
}

void
side_damage(const struct side *side, struct damage *d)
{
	struct rec_totals t = totals_of(side);
	/* A producer that left something out and did not count it. */
	if (t.ended[STATUS_UNKNOWN] + t.ended[STATUS_NONE] && !t.skipped)
		t.skipped = t.ended[STATUS_UNKNOWN] + t.ended[STATUS_NONE];
	damage_add(d, &t);
	d->skipped += operand_skipped(side->operand);
}

bool
side_is_filtered(const struct side *side)
{
	struct damage d = { 0 };
	side_damage(side, &d);
	return d.filtered;
}

bool
side_is_whole(const struct side *side)
{
	struct damage d = { 0 };
	side_damage(side, &d);
	return !d.bad && !d.lost && !d.skipped && !d.filtered && !d.altered;
}
