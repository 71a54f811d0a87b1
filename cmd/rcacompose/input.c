/* Record files into facts: see input.h. */
#include "input.h"

#include <string.h>

enum { COMPLAINTS_MAX = 5 }; /* bad lines shown of one file */

unsigned
inputs_add(struct inputs *in, const char *name)
{
	if (in->n == INPUTS_MAX)
		cli_die("more than %d inputs", INPUTS_MAX);
	if (in->n == in->cap) {
		in->cap = in->cap ? 2 * in->cap : 16;
		in->name = cli_realloc(in->name, in->cap, sizeof *in->name);
	}
	char *copy = cli_alloc(strlen(name) + 1, 1);
	memcpy(copy, name, strlen(name));
	in->name[in->n] = copy;
	return (unsigned)in->n++;
}

const char *
inputs_name(const struct inputs *in, unsigned source)
{
	return source < in->n ? in->name[source] : "?";
}

void
inputs_free(struct inputs *in)
{
	for (size_t i = 0; i < in->n; i++)
		free(in->name[i]);
	free(in->name);
	*in = (struct inputs){ 0 };
}

/* ---- one stream -------------------------------------------------------------
 */

struct reader {
	struct facts *facts;
	struct rec_in *in;
	const char *name;
	unsigned source, complaints;
	int agent; /* evidence must be its own; -1: anybody's */
	incident_fn *begin;
	void *user;
	uint64_t bad_before; /* bad lines before the current incident */
	struct damage whole; /* of the stream, where known beforehand */
	bool known;
};

static void
complain(struct reader *r, const struct err *e)
{
	if (r->complaints++ < COMPLAINTS_MAX)
		cli_warn_err(r->name, e);
	else if (r->complaints == COMPLAINTS_MAX + 1)
		cli_warn("%s: more bad lines, not shown", r->name);
}

static void
bad_record(struct reader *r, const struct rec *rec, struct err *e)
{
	rec_in_bad(r->in);
	err_prefix(e, "%llu", (unsigned long long)rec->line);
	complain(r, e);
}

/* What is known of the stream so far, and whether that is all. */
static struct damage
damage_now(struct reader *r, bool ended)
{
	struct damage d = r->whole;
	const struct rec_totals *t = rec_in_totals(r->in);
	if (ended && !r->known)
		damage_add(&d, t);
	else if (!r->known)
		d.typed = !t->heads;
	d.bad = t->bad - r->bad_before;
	r->bad_before = t->bad;
	return d;
}

/* Two stacks may be fed at once, for comparison. */
static int
add_to_all(
    struct facts *f, const struct rec *rec, unsigned source, struct err *e)
{
	int err = facts_add(f, rec, source, e);
	int other = f->also ? facts_add(f->also, rec, source, e) : 0;
	return err ? err : other;
}

static int
take(struct reader *r, const struct rec *rec, struct err *e)
{
	struct facts *f = r->facts;
	bool evidence = str_is(rec->type, "evidence");
	if (r->agent >= 0 && !evidence && !str_is(rec->type, "alive"))
		return 0;
	if (r->agent >= 0 && !str_same(rec_text_of(rec, "agent"),
				 f->stack->agent[r->agent].name))
		return err_set(e, SE_EFORMAT, "evidence of another agent");
	if (!str_is(rec->type, "incident"))
		return add_to_all(f, rec, r->source, e);
	if (r->begin) {
		struct damage d = damage_now(r, false);
		r->begin(r->user, rec, &d);
	} else if (f->incident) {
		return err_set(e, SE_EFORMAT,
		    "a second incident: give the file as operand instead");
	}
	int err = facts_incident(f, rec, e);
	return err || !f->also ? err : facts_incident(f->also, rec, e);
}

/* False at the end. */
static bool
read_one(struct reader *r)
{
	struct str line;
	struct rec rec;
	struct err e;
	int got = rec_in_line(r->in, &line, &e);
	if (got == 0)
		return false;
	if (got == 1) {
		got = rec_in_parse(r->in, line, &rec, &e);
		for (struct facts *f = r->facts; f && got == SE_EFORMAT;
		     f = f->also)
			facts_garbled(
			    f, line, r->source, rec_in_totals(r->in)->lines);
	}
	if (got == SE_EUNSUP && r->agent < 0)
		cli_die_err(r->name, &e);
	if (got == SE_EUNSUP)
		rec_in_bad(r->in); /* that agent alone cannot be understood */
	if (got < 0) {
		complain(r, &e);
		return true;
	}
	/* Only what a program wrote whole may say that silence is health. */
	bool trusted = r->agent >= 0 || rec_in_totals(r->in)->heads;
	for (struct facts *f = r->facts; f; f = f->also)
		f->trusted = trusted;
	int err = take(r, &rec, &e);
	if (err == SE_EFORMAT)
		bad_record(r, &rec, &e);
	else if (err)
		cli_die_err(r->name, &e);
	return true;
}

/* ---- is it whole? ---------------------------------------------------- */

/*
 * A stream of many incidents is judged before its end is seen. Where it says
 * how much there should be (it has a head), it is read twice: once to count.
 */
static bool
count_first(struct reader *r, struct src *src, struct err *e)
{
	struct src *slice;
	struct rec_in *in;
	struct str line;
	char first[5];
	size_t n;
	if (src_read_some(src, 0, first, sizeof first, &n, e) || n < 5 ||
	    memcmp(first, "head\t", 5) != 0)
		return true;
	if (src_seekable(src, e) ||
	    src_open_slice(&slice, src, 0, SRC_UNKNOWN, e) ||
	    rec_in_open(&in, slice, e))
		return false;
	int got;
	while ((got = rec_in_line(in, &line, e)) != 0) {
		struct rec rec;
		if (got != 1)
			continue;
		if (str_starts(line, "head\t") || str_starts(line, "end\t"))
			rec_in_parse(in, line, &rec, NULL);
	}
	damage_add(&r->whole, rec_in_totals(in));
	r->known = true;
	rec_in_close(in);
	return true;
}

static struct src *
open_input(const char *path, struct err *e)
{
	struct src *src;
	return cli_src_open(&src, path, 0, e) ? NULL : src;
}

void
damage_merge(struct damage *to, const struct damage *d)
{
	to->bad += d->bad;
	to->lost += d->lost;
	to->skipped += d->skipped;
	to->filtered |= d->filtered;
	to->altered |= d->altered;
	to->typed |= d->typed;
}

static bool
read_all(struct reader *r, struct src *src, struct damage *damage)
{
	struct err e;
	struct src *slice = src;
	bool many = r->begin != NULL;
	if (many && !count_first(r, src, &e)) {
		cli_warn_err(r->name, &e);
		src_close(src);
		return false;
	}
	if (many && src_open_slice(&slice, src, 0, SRC_UNKNOWN, &e)) {
		cli_warn_err(r->name, &e);
		src_close(src);
		return false;
	}
	if (rec_in_open(&r->in, slice, &e))
		cli_die_err(r->name, &e);
	while (read_one(r))
		;
	struct damage d = damage_now(r, true);
	if (r->begin)
		r->begin(r->user, NULL, &d);
	damage_merge(damage, &d);
	rec_in_close(r->in);
	if (many)
		src_close(src);
	return true;
}

bool
input_read(struct facts *f, struct inputs *in, const char *path,
    struct damage *damage, incident_fn *begin, void *user)
{
	struct err e;
	struct src *src = open_input(path, &e);
	if (!src) {
		cli_warn_err(path, &e);
		return false;
	}
	struct reader r = { .facts = f,
		.name = strcmp(path, "-") ? path : "standard input",
		.source = inputs_add(in, path),
		.agent = -1,
		.begin = begin,
		.user = user };
	return read_all(&r, src, damage);
}

bool
input_text(struct facts *f, struct inputs *in, const char *name,
    struct str text, int agent, struct damage *damage)
{
	struct err e;
	struct src *src;
	struct damage d = { 0 };
	if (src_open_mem(&src, text.p ? text.p : "", text.len, &e))
		cli_die_err(name, &e);
	struct reader r = { .facts = f,
		.name = name,
		.source = inputs_add(in, name),
		.agent = agent };
	read_all(&r, src, &d);
	d.typed = false;
	damage_merge(damage, &d);
	return !(d.bad || d.lost || d.skipped || d.altered || d.filtered);
}
