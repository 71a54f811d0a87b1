/*
 * fpdiff in small, against straightedge.h alone: the first record of B that is
 * not that of A, both in order of execution. What fpdiff does beyond this
 * (alignment, masks, roots, several ranks) needs more of the library than it
 * promises to keep; the exit status and the verdict mean the same.
 *
 * usage: firstdiff A B
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <straightedge.h>
#include <unistd.h>

/* What makes two records of one place, straightedge-records(5). */
static const char *const places[] = { "name", "step", "mb", "phase", "rank",
	"dp", "pp", "tp", "ep", "io", NULL };
/* What must agree before the values may be compared, and the values. */
static const char *const conditions[] = { "dtype", "shape", "vtype", NULL };
static const char *const values[] = { "hash", "value", NULL };

struct side {
	const char *path;
	struct se_reader *r;
	uint64_t records;
	int lost; /* something could not be read */
};

static void
die(const char *path, const char *what)
{
	fprintf(stderr, "firstdiff: %s: %s\n", path, what);
	exit(2);
}

/* Text of a record has a length and no NUL behind it. */
static int
is_type(const struct side *s, const char *type)
{
	size_t n;
	const char *p = se_reader_type(s->r, &n);
	return n == strlen(type) && !memcmp(p, type, n);
}

/* 1: a record that is compared is current. 0: the end. */
static int
next(struct side *s)
{
	int n;
	while ((n = se_reader_next(s->r))) {
		if (n == SE_EFORMAT) {
			fprintf(stderr, "firstdiff: %s:%s\n", s->path,
			    se_reader_error(s->r));
			s->lost = 1;
			continue;
		}
		if (n < 0) {
			fprintf(stderr, "firstdiff: %s: %s\n", s->path,
			    se_reader_error(s->r));
			s->lost = 1;
			return 0;
		}
		if (!is_type(s, "fp") && !is_type(s, "scalar"))
			continue;
		s->records++;
		return 1;
	}
	return 0;
}

/* Absent equals only absent. */
static int
same(const struct side *a, const struct side *b, const char *const *keys)
{
	for (; *keys; keys++) {
		size_t n, m;
		const char *x = se_reader_get(a->r, *keys, &n);
		const char *y = se_reader_get(b->r, *keys, &m);
		if (!x != !y || (x && (n != m || memcmp(x, y, n))))
			return 0;
	}
	return 1;
}

static void
copy(struct se_writer *w, const struct side *s, const char *key, const char *as)
{
	size_t n;
	const char *v = se_reader_get(s->r, key, &n);
	if (v)
		se_writer_text(w, as, v, n);
}

static int
conclude(struct se_writer *w, const struct side *at, const char *result,
    int status, const char *reason, int64_t prefix)
{
	se_writer_begin(w, "verdict");
	se_writer_text(w, "result", result, strlen(result));
	se_writer_integer(w, "status", status);
	if (reason)
		se_writer_text(w, "reason", reason, strlen(reason));
	if (at)
		for (int i = 1; places[i]; i++)
			copy(w, at, places[i], places[i]);
	if (at)
		copy(w, at, "name", "name");
	se_writer_integer(w, "prefix", prefix);
	se_writer_end(w);
	return se_writer_close(w, result, status) ? 2 : status;
}

static void
print_difference(
    struct se_writer *w, const struct side *a, const struct side *b)
{
	const char *value =
	    se_reader_get(a->r, "hash", NULL) ? "hash" : "value";
	se_writer_begin(w, "diff");
	se_writer_text(w, "class", "first", 5);
	for (int i = 0; places[i]; i++)
		copy(w, b, places[i], places[i]);
	copy(w, a, value, "a");
	copy(w, b, value, "b");
	se_writer_end(w);
}

/* Why equal prefixes of two inputs are no equal inputs; NULL: they are. */
static const char *
doubt(const struct side *s)
{
	if (s->lost)
		return "damaged";
	switch (se_reader_state(s->r)) {
	case SE_STATE_COMPLETE:
		return NULL;
	case SE_STATE_FILTERED:
		return "filtered";
	default:
		return "damaged";
	}
}

static int
compare(struct side *a, struct side *b, struct se_writer *w)
{
	int64_t prefix = 0;
	int more_a, more_b;
	while ((more_a = next(a)) & (more_b = next(b))) {
		if (!same(a, b, places))
			return conclude(
			    w, b, "unknown", 3, "unmatched", prefix);
		if (!same(a, b, conditions))
			return conclude(
			    w, b, "unknown", 3, "incomparable", prefix);
		if (!same(a, b, values)) {
			print_difference(w, a, b);
			return conclude(w, b, "different", 1, NULL, prefix);
		}
		prefix++;
	}
	if (!a->records || !b->records)
		die(a->records ? b->path : a->path, "no record to compare");
	if (more_a || more_b)
		return conclude(
		    w, more_a ? a : b, "unknown", 3, "unmatched", prefix);
	const char *why = doubt(a) ? doubt(a) : doubt(b);
	return why ? conclude(w, NULL, "unknown", 3, why, prefix)
		   : conclude(w, NULL, "same", 0, NULL, prefix);
}

int
main(int argc, char **argv)
{
	struct side side[2] = { 0 };
	struct se_writer *w;
	if (argc != 3) {
		fprintf(stderr, "usage: firstdiff A B\n");
		return 2;
	}
	for (int i = 0; i < 2; i++) {
		side[i].path = argv[i + 1];
		if (se_reader_open(&side[i].r, side[i].path))
			die(side[i].path, "cannot open");
	}
	if (se_writer_open(&w, STDOUT_FILENO, NULL))
		die("standard output", "cannot write");
	se_writer_begin(w, "head");
	se_writer_text(w, "of", "diff", 4);
	se_writer_integer(w, "version", 1);
	se_writer_text(w, "tool", "firstdiff", 9);
	se_writer_end(w);
	int status = compare(&side[0], &side[1], w);
	se_reader_close(side[0].r);
	se_reader_close(side[1].r);
	return status;
}
