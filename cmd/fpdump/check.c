/*
 * -c REF.fp: the files that a reference stream names, or the operands, against
 * its records: same, different or unknown.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bundle.h"
#include "fpdump.h"
#include "map.h"
#include "verdict.h"

#define REASON_UNMATCHED "unmatched"
#define REASON_INCOMPARABLE "incomparable"
#define REASON_NOTHING "nothing-compared"

enum {
	NONE = -1,
	SHOWN = 20, /* bad lines; all are counted */
};

/* A record of the reference: its line, kept, and who has the same key. */
struct ref {
	struct str line;
	long next;       /* of the same key, or NONE */
	long from, last; /* of the first of a key: those before are met */
	uint32_t late;   /* found in another file: see struct late */
	bool met;
};

/*
 * A record that was found in another file than the only one of its key. It
 * is a pair with that if no better one is found: told at the end.
 */
struct late {
	size_t ref;
	struct str file, dtype, shape, value;
	struct fp_hash hash;
	enum fp_relation relation;
	const char *why;
	bool scalar;
};

struct check {
	struct settings *s;
	struct rec_out *o;
	struct arena arena;
	struct ref *ref;
	size_t n, cap;
	struct map key;  /* digest of the match key -> number + 1 */
	struct map file; /* all that records name */
	struct late *late;
	size_t nlate, late_cap;
	struct buf scratch, undone;
	struct rec *rec;
	uint64_t compared, equal, different, unmatched, incomparable;
	struct damage damage;
	bool mix64, any_hash;
	bool met_file; /* one that the reference names was read */
};

/* ---- the reference ------------------------------------------------------ */

static struct str
key_of(struct check *c, const struct fp *f, struct u128 *key)
{
	*key = fp_key(f, 0, &c->scratch);
	if (c->scratch.failed)
		cli_die("out of memory");
	return (struct str){ (const char *)key, sizeof *key };
}

static void
add_file(struct check *c, struct str file)
{
	bool fresh;
	if (!file.len || map_get(&c->file, file))
		return;
	struct str kept = arena_str(&c->arena, file);
	if (!kept.p || !map_at(&c->file, kept, &fresh))
		cli_die("out of memory");
}

static void
add_ref(struct check *c, const struct rec *r, const struct fp *f)
{
	struct u128 key;
	bool fresh;
	if (c->n == c->cap) {
		c->cap = c->cap ? c->cap * 2 : 256;
		c->ref = cli_realloc(c->ref, c->cap, sizeof *c->ref);
	}
	struct str line = arena_str(&c->arena, r->raw);
	struct str k = arena_str(&c->arena, key_of(c, f, &key));
	uint64_t *first = k.p && line.p ? map_at(&c->key, k, &fresh) : NULL;
	if (!first)
		cli_die("out of memory");
	struct ref *to = &c->ref[c->n];
	long number = (long)c->n++;
	*to = (struct ref){ line, NONE, number, number, 0, false };
	if (fresh) {
		*first = c->n;
	} else {
		struct ref *head = &c->ref[*first - 1];
		c->ref[head->last].next = number;
		head->last = number;
	}
	add_file(c, f->file);
	if (!f->scalar && !c->any_hash) {
		c->any_hash = true;
		c->mix64 = f->hash.algorithm == FP_MIX64;
	}
}

static void
read_ref(struct check *c)
{
	const char *path = c->s->check;
	struct rec_in *in;
	struct src *src;
	struct err e;
	int r = cli_src_open(&src, path, 0, &e);
	if (!r && !records_probe_file(src))
		r = err_set(&e, SE_EFORMAT, "expected records of fpdump");
	if (!r)
		r = rec_in_open(&in, src, &e);
	if (r)
		cli_die_err(path, &e);
	for (int got; (got = rec_in_next(in, c->rec, &e));) {
		struct fp f;
		if (got == 1 && !fp_is(c->rec))
			continue;
		if (got == 1 && !fp_parse(&f, c->rec, NULL, &e)) {
			if (select_name(&c->s->dump.select, f.name) &&
			    select_step(&c->s->dump.select, f.place[FP_STEP]))
				add_ref(c, c->rec, &f);
			continue;
		}
		if (got == 1) {
			rec_in_bad(in);
			err_prefix(&e, "%" PRIu64, rec_in_totals(in)->lines);
		}
		if (rec_in_totals(in)->bad <= SHOWN)
			cli_warn_err(path, &e);
	}
	if (rec_in_totals(in)->bad > SHOWN)
		cli_warn(
		    "%s: %" PRIu64 " bad lines", path, rec_in_totals(in)->bad);
	damage_add(&c->damage, rec_in_totals(in));
	rec_in_close(in);
}

/* The kept line again as a record; it was parsed before. */
static void
reopen(struct check *c, const struct ref *ref, struct fp *f)
{
	c->undone.len = 0;
	char *undone = buf_room(&c->undone, ref->line.len + 1);
	if (!undone || rec_parse(ref->line, undone, c->rec, NULL) ||
	    fp_parse(f, c->rec, NULL, NULL))
		cli_die("out of memory");
}

/* ---- comparing ---------------------------------------------------------- */

static struct str
shown(const struct fp *f, const char *why, struct buf *b)
{
	if (f->scalar)
		return f->value;
	if (why && !strcmp(why, "dtype"))
		return f->dtype;
	if (why && !strcmp(why, "shape"))
		return f->shape;
	b->len = 0;
	if (f->hash.algorithm == FP_XXH3) {
		buf_puts(b, "xxh3-128:");
		u128_put(b, f->hash.value);
	} else if (f->hash.algorithm == FP_MIX64) {
		buf_printf(b, "mix64:%016" PRIx64, f->hash.value.lo);
	} else {
		return f->hash.text;
	}
	return buf_view(b);
}

static void
write_diff(struct check *c, const char *class, const struct fp *a,
    const struct fp *b, const char *why)
{
	const struct fp *f = a ? a : b;
	struct buf x = { 0 };
	rec_begin(c->o, "diff");
	rec_put(c->o, "class", class);
	rec_str(c->o, "name", f->name);
	for (int i = 0; i < FP_PLACES; i++)
		if (f->place[i].p)
			rec_str(c->o, fp_place_name[i], f->place[i]);
	if (a)
		rec_str(c->o, "a", shown(a, why, &x));
	if (b)
		rec_str(c->o, "b", shown(b, why, &x));
	if (f->file.p)
		rec_str(c->o, "file", f->file);
	if (why)
		rec_put(c->o, "note", why);
	rec_end(c->o);
	buf_free(&x);
}

/* Does the reference lack some of what it had? */
static bool
has_holes(const struct check *c)
{
	const struct damage *d = &c->damage;
	return d->filtered || d->altered || d->bad || d->lost;
}

/* Where repeats may be gone, the order of the rest alone says nothing. */
static bool
same_source(const struct check *c, const struct fp *a, const struct fp *b)
{
	if (a->file.p && b->file.p && !str_same(a->file, b->file))
		return false;
	return !has_holes(c) || c->s->dump.select.nglobs ||
	       c->s->dump.select.steps || !a->seq.given || !b->seq.given ||
	       a->seq.v == b->seq.v;
}

/*
 * The first record of a chain that is not met and of the same file, if both
 * say one: repeats come in their order. NONE: there is none.
 */
static long
partner(struct check *c, struct ref *head, const struct fp *f, struct fp *a)
{
	while (head->from != NONE && c->ref[head->from].met)
		head->from = c->ref[head->from].next;
	for (long i = head->from; i != NONE; i = c->ref[i].next) {
		if (c->ref[i].met)
			continue;
		reopen(c, &c->ref[i], a);
		if (same_source(c, a, f))
			return i;
	}
	return NONE;
}

static void
pair(struct check *c, struct ref *ref, const struct fp *a, const struct fp *b,
    enum fp_relation relation, const char *why)
{
	ref->met = true;
	c->compared++;
	switch (relation) {
	case FP_SAME:
		c->equal++;
		break;
	case FP_DIFFERENT:
		c->different++;
		write_diff(c, "different", a, b, NULL);
		break;
	case FP_INCOMPARABLE:
		c->incomparable++;
		write_diff(c, "incomparable", a, b, why);
		break;
	}
}

static void
alone(struct check *c, const struct fp *f)
{
	c->unmatched++;
	write_diff(c, "unmatched", NULL, f, NULL);
}

/* Kept with what a diff record shows of it. */
static void
add_late(struct check *c, struct ref *ref, const struct fp *f)
{
	struct fp a;
	if (c->nlate == c->late_cap) {
		c->late_cap = c->late_cap ? c->late_cap * 2 : 256;
		c->late = cli_realloc(c->late, c->late_cap, sizeof *c->late);
	}
	struct late *l = &c->late[c->nlate++];
	*l = (struct late){ .ref = (size_t)(ref - c->ref), .hash = f->hash };
	l->scalar = f->scalar;
	reopen(c, ref, &a);
	l->relation = fp_compare(&a, f, &l->why);
	l->file = arena_str(&c->arena, f->file);
	l->dtype = arena_str(&c->arena, f->dtype);
	l->shape = arena_str(&c->arena, f->shape);
	l->value = arena_str(&c->arena, f->value);
	l->hash.text = STR_NULL; /* made here: of an algorithm with a name */
	if (!l->file.p || !l->dtype.p || !l->shape.p || !l->value.p)
		cli_die("out of memory");
	ref->late++;
}

/* One and one are a pair wherever they were stored. */
static void
settle_late(struct check *c)
{
	for (size_t i = 0; i < c->nlate; i++) {
		const struct late *l = &c->late[i];
		struct ref *ref = &c->ref[l->ref];
		struct fp a, b;
		reopen(c, ref, &a);
		b = a;
		b.scalar = l->scalar;
		b.file = l->file;
		b.dtype = l->dtype;
		b.shape = l->shape;
		b.value = l->value;
		b.hash = l->hash;
		if (ref->met || ref->late > 1)
			alone(c, &b);
		else
			pair(c, ref, &a, &b, l->relation, l->why);
	}
}

static int
take(void *user, const struct fp *f, struct err *e)
{
	struct check *c = user;
	struct fp a;
	struct u128 key;
	const char *why = NULL;
	(void)e;
	const uint64_t *first = map_get(&c->key, key_of(c, f, &key));
	struct ref *head = first ? &c->ref[*first - 1] : NULL;
	long i = head ? partner(c, head, f, &a) : NONE;
	c->met_file |= f->file.len && map_get(&c->file, f->file);
	if (i != NONE) {
		enum fp_relation relation = fp_compare(&a, f, &why);
		pair(c, &c->ref[i], &a, f, relation, why);
	} else if (head && head->next == NONE && !head->met) {
		add_late(c, head, f);
	} else {
		alone(c, f);
	}
	return 0;
}

static void
left_out(void *user, const char *file, const struct err *e)
{
	(void)user;
	cli_warn_err(file, e);
}

/* ---- the files ---------------------------------------------------------- */

/*
 * The files that the reference names, each once. A file with one record tells
 * how its tensor is called, in case it has no name of its own.
 */
static void
add_named(struct check *c, struct walk *w)
{
	struct map seen = { 0 };
	struct err e;
	for (size_t i = 0; i < c->n; i++) {
		struct fp f;
		bool fresh;
		reopen(c, &c->ref[i], &f);
		if (!f.file.len || memchr(f.file.p, 0, f.file.len))
			continue;
		struct str path = arena_str(&c->arena, f.file);
		uint64_t *at = path.p ? map_at(&seen, path, &fresh) : NULL;
		if (!at)
			cli_die("out of memory");
		if (!fresh) {
			if (*at)
				w->file[*at - 1].as = STR_NULL;
			continue;
		}
		size_t before = w->n;
		if (walk_add(w, path.p, &e)) {
			cli_warn_err(path.p, &e);
			/* Gone is an answer; unreadable is none. */
			bool gone = access(path.p, F_OK) && errno == ENOENT;
			c->damage.skipped += !gone;
		} else if (w->n == before + 1) {
			*at = w->n;
			w->file[before].as = arena_str(&c->arena, f.name);
		}
	}
	map_free(&seen);
}

static void
compare_files(struct check *c, struct dump_count *count)
{
	struct walk w = { .skip = warn_left_out };
	struct err e;
	for (size_t i = 0; i < c->s->noperands; i++)
		if (walk_add(&w, c->s->operand[i], &e)) {
			cli_warn_err(c->s->operand[i], &e);
			c->damage.skipped++;
		}
	if (!c->s->noperands)
		add_named(c, &w);
	if (dump_find_step(&c->s->dump.hints, w.file, w.n, &e))
		cli_warn("%s", e.msg);
	c->s->dump.exec = dump_is_series(&c->s->dump.hints);
	if (bundle_fold(&w, &e) ||
	    dump_files(c->o, w.file, w.n, &c->s->dump, count, &e))
		cli_die("%s", e.msg);
	c->damage.skipped += w.skipped + count->skipped;
	walk_close(&w);
}

/* Records of the reference that nothing was found for. */
static void
report_missing(struct check *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct fp a;
		if (c->ref[i].met)
			continue;
		c->unmatched++;
		reopen(c, &c->ref[i], &a);
		write_diff(c, "unmatched", &a, NULL, "missing");
	}
}

/* ---- the verdict -------------------------------------------------------- */

static struct verdict
judge(const struct check *c)
{
	struct verdict v = {
		.result = "same", .status = STATUS_CLEAN, .damage = c->damage
	};
	/* A file that could not be read explains records that are missing. */
	bool lacking = c->unmatched && (c->compared || c->met_file) &&
		       !c->damage.skipped && !c->damage.filtered;
	if (c->different || lacking) {
		v.result = "different";
		v.status = STATUS_FOUND;
		v.reason = c->different ? NULL : REASON_UNMATCHED;
	} else if (c->incomparable) {
		v.result = "unknown";
		v.status = STATUS_UNKNOWN;
		v.reason = REASON_INCOMPARABLE;
		v.need = "a reference made with the same options";
	} else if (!c->compared) {
		v.result = "unknown";
		v.status = STATUS_UNKNOWN;
		v.reason = REASON_NOTHING;
		v.need = "files that the reference has records of";
	}
	return v;
}

static void
write_verdict(struct check *c, const struct verdict *v)
{
	verdict_begin(c->o, v, STR_NULL, NULL);
	rec_u64(c->o, "compared", c->compared);
	rec_u64(c->o, "equal", c->equal);
	if (c->different)
		rec_u64(c->o, "different", c->different);
	if (c->unmatched)
		rec_u64(c->o, "unmatched", c->unmatched);
	if (c->incomparable)
		rec_u64(c->o, "incomparable", c->incomparable);
	verdict_end(c->o, v);
}

static void
write_evidence(struct check *c, const struct verdict *v)
{
	if (!c->s->common.evidence)
		return;
	static const char *const word[] = { "healthy", "faulty", "unknown",
		"unknown" };
	rec_begin(c->o, "evidence");
	rec_time(c->o, "time", cli_now(&c->s->common));
	rec_put(c->o, "entity", "code:files");
	rec_put(c->o, "agent", "fpdump");
	rec_put(c->o, "status", word[v->status]);
	if (v->reason)
		rec_put(c->o, "reason", v->reason);
	rec_end(c->o);
}

static int
finish(struct check *c, struct cli_out *file, struct verdict *v)
{
	verdict_settle(v, &c->s->common.policy);
	write_evidence(c, v);
	if (v->status != STATUS_NONE)
		write_verdict(c, v);
	return cli_out_end(file, c->o, v->result, v->status, c->damage.skipped);
}

static void
check_free(struct check *c)
{
	arena_free(&c->arena);
	map_free(&c->key);
	map_free(&c->file);
	free(c->late);
	buf_free(&c->scratch);
	buf_free(&c->undone);
	free(c->ref);
	free(c->rec);
}

int
check_main(struct settings *s)
{
	struct check c = { .s = s };
	struct dump_count count = { 0 };
	struct cli_out file;
	struct err e;
	c.rec = cli_alloc(1, sizeof *c.rec);
	read_ref(&c);
	cli_out_open(&file, s->common.output, false);
	if (rec_out_open(&c.o, file.fd, &s->common.how, &e))
		cli_die_err("output", &e);
	s->progress = progress_start(&s->common);
	s->dump.take = take;
	s->dump.left_out = left_out;
	s->dump.user = &c;
	s->dump.print.digest.mix64 |= c.mix64;
	rec_begin(c.o, "head");
	rec_put(c.o, "of", "diff");
	rec_u64(c.o, "version", SCHEMA_VERSION);
	rec_put(c.o, "tool", "fpdump");
	rec_put(c.o, "order", "set");
	rec_end(c.o);
	compare_files(&c, &count);
	c.damage.skipped += slices_unmet(s);
	settle_late(&c);
	report_missing(&c);
	progress_stop(s->progress);
	struct verdict v = judge(&c);
	v.status = finish(&c, &file, &v);
	cli_prom(
	    &s->common, NULL, v.result, v.reason, v.status, c.damage.skipped);
	check_free(&c);
	return v.status;
}
