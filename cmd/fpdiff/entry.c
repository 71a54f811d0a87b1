/* One record, by what is compared. */
#include "fpdiff.h"

#include <stdlib.h>

#include "num.h"

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

void
entry_place(struct entry *e, const struct fp *f, struct str line)
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
	};
}

bool
entry_value(struct entry *e, const struct fp *f, struct buf *scratch)
{
	e->key = fp_key(f, 0, scratch);
	e->name = hash_table(f->name.p, f->name.len, 0);
	e->form = form_of(scratch, f);
	e->value =
	    f->scalar ? hash_xxh3(f->value.p, f->value.len) : f->hash.value;
	return !scratch->failed;
}

void
entry_parse(struct str raw, struct fp *f, struct rec *rec, char *undone)
{
	struct err e;
	if (!undone)
		cli_die("out of memory");
	rec_parse(raw, undone, rec, &e);
	fp_parse(f, rec, NULL, &e);
}

bool
entry_step(const struct entry *e, uint64_t *step)
{
	return e->step.p && !num_u64(e->step, 0, UINT64_MAX, step, NULL);
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
	size_t n = e->raw.len + e->step.len + e->rank.len + e->file.len;
	struct entry *copy = malloc(sizeof *e + n);
	if (!copy)
		cli_die("out of memory");
	*copy = *e;
	char *to = keep((char *)(copy + 1), &copy->raw);
	to = keep(to, &copy->step);
	to = keep(to, &copy->rank);
	keep(to, &copy->file);
	return copy;
}