/*
 * Records in, a selection of them out: a whole stream gives a whole stream,
 * one that is not whole gives one without its end.
 */
#include "fpdump.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	PROBE = 64,
	PROBE_FILE = 4096,
	ENOUGH = 16,
	SHOWN = 20, /* bad lines; all are counted */
};

/* What the ends of an input said, for the ends of the selection. */
struct ends {
	uint64_t n, skipped, lost;
	int status;
	char result[32]; /* of the only one */
	bool foreign;    /* the last head is not of fingerprints */
};

/* Waits for no more than it takes to see. */
bool
records_probe(struct src *src)
{
	char head[PROBE];
	size_t have = 0, n;
	do {
		if (src_read_next(
			src, have, head + have, sizeof head - have, &n, NULL))
			return false;
		have += n;
		if (have && (head[0] < 'a' || head[0] > 'z'))
			return false;
	} while (n && have < ENOUGH);
	return rec_probe(head, have);
}

bool
records_probe_file(struct src *src)
{
	char head[PROBE_FILE];
	size_t n;
	return !src_read_some(src, 0, head, sizeof head, &n, NULL) &&
	       rec_probe_any(head, n);
}

static int
take_end(struct ends *t, const struct rec *r, struct err *e)
{
	uint64_t status = 0, skipped = 0, lost = 0;
	int err = rec_u64_of(r, "status", &status, e);
	if (!err)
		err = rec_u64_of(r, "skipped", &skipped, e);
	if (!err)
		err = rec_u64_of(r, "lost", &lost, e);
	struct str result = rec_text_of(r, "result");
	t->status = t->n ? status_worse(t->status, (int)status) : (int)status;
	t->n++;
	t->skipped += skipped;
	t->lost += lost;
	t->result[0] = 0;
	if (t->n == 1 && result.len < sizeof t->result) {
		memcpy(t->result, result.len ? result.p : "", result.len);
		t->result[result.len] = 0;
	}
	return err;
}

static bool
has_key(const struct rec *r, struct str key)
{
	for (size_t i = 0; i < r->n; i++)
		if (str_same(r->field[i].key, key))
			return true;
	return false;
}

/* Labels are what records say: which of the columns asked for are some? */
static void
see_columns(const struct settings *s, const struct rec *r, struct outcome *out)
{
	const struct cli_common *c = &s->common;
	struct str rest = str_c(c->how.columns), name;
	if (!rest.p || !str_is(r->type, c->how.type))
		return;
	for (unsigned i = 0; i < 64 && cli_column_odd(c, &rest, &name); i++)
		if (has_key(r, name))
			out->columns_seen |= UINT64_C(1) << i;
}

/* A fingerprint or scalar: passed on as it is unless labels are added. */
static int
take_record(struct rec_out *o, const struct settings *s, const struct rec *r,
    struct outcome *out, struct err *e)
{
	static struct fp_label label[REC_FIELDS_MAX];
	const struct dump_how *how = &s->dump;
	struct fp f;
	int err = fp_parse(&f, r, how->nlabels ? label : NULL, e);
	if (err)
		return err;
	if (how->nlabels) {
		see_columns(s, r, out);
		return dump_record(o, &f, how, &out->count, e);
	}
	if (!select_name(&how->select, rec_text_of(r, "name")) ||
	    !select_step(&how->select, rec_text_of(r, "step")))
		return 0;
	rec_copy(o, r);
	see_columns(s, r, out);
	out->count.records++;
	out->count.scalars += str_is(r->type, "scalar");
	return 0;
}

static int
take(struct rec_out *o, const struct settings *s, const struct rec *r,
    struct ends *ends, struct outcome *out, struct err *e)
{
	if (str_is(r->type, "end"))
		return take_end(ends, r, e);
	if (str_is(r->type, "head"))
		ends->foreign = !str_is(rec_text_of(r, "of"), "fp");
	if (fp_is(r) && ends->foreign)
		return err_set(e, SE_EFORMAT,
		    "a fingerprint under the head of another kind of stream");
	if (fp_is(r))
		return take_record(o, s, r, out, e);
	rec_copy(o, r);
	return 0;
}

/* As many ends as there were heads; the first has all the records. */
static void
write_ends(struct rec_out *o, const struct ends *t)
{
	for (uint64_t i = 0; i < t->n; i++) {
		if (i == 0 && t->lost)
			rec_out_lost(o, t->lost);
		rec_out_end(o, t->n == 1 && t->result[0] ? t->result : NULL,
		    i ? STATUS_CLEAN : t->status, i ? 0 : t->skipped);
	}
}

static void
close_input(struct rec_out *o, const struct rec_in *in, const char *name,
    const struct ends *ends, struct outcome *out)
{
	const struct rec_totals *t = rec_in_totals(in);
	switch (rec_totals_state(t)) {
	case REC_COMPLETE:
		if (!t->bad) {
			write_ends(o, ends);
			break;
		}
		cli_warn("%s: %" PRIu64 " bad lines: the selection has no end "
			 "record",
		    name, t->bad);
		out->filtered = true;
		break;
	case REC_TYPED:
		break;
	case REC_FILTERED:
		cli_warn("%s: records or ends are missing: the selection has "
			 "no end record either",
		    name);
		out->filtered = true;
		break;
	case REC_ALTERED:
		cli_warn("%s: changed after it was written: the selection "
			 "has no end record",
		    name);
		out->filtered = true;
		break;
	}
	out->count.skipped += t->bad;
}

void
records_copy(struct rec_out *o, const struct settings *s, struct src *src,
    const char *name, struct outcome *out)
{
	static struct rec r; /* 8 KiB and more: not on the stack */
	struct ends ends = { 0 };
	struct rec_in *in;
	struct err e;
	if (rec_in_open(&in, src, &e))
		cli_die_err(name, &e);
	for (;;) {
		int got = rec_in_next(in, &r, &e);
		if (got == 0)
			break;
		int err = got < 0 ? got : take(o, s, &r, &ends, out, &e);
		if (err && got > 0) {
			rec_in_bad(in);
			err_prefix(&e, "%" PRIu64, rec_in_totals(in)->lines);
		}
		if (err && rec_in_totals(in)->bad <= SHOWN)
			cli_warn_err(name, &e);
		if (got == SE_EUNSUP || got == SE_ENOMEM) {
			out->filtered = true;
			out->count.skipped++;
			break;
		}
	}
	close_input(o, in, name, &ends, out);
	rec_in_close(in);
}
