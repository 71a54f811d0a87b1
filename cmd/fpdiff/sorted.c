/*
 * Streams that were sorted. `sort` puts `end` before `fp` before `head`; in
 * the order of execution records are put back by rank and seq.
 */
#include "fpdiff.h"

#include <stdlib.h>

#include "num.h"
#include "sort.h"

/* Put back in memory up to this size. */
#define SORT_MAX (UINT64_C(1) << 30)

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
		sort_array(line, n, sizeof *line, by_sequence);
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

/* A stream that has a head and does not begin with it was sorted. */
static bool
was_sorted(struct src *src)
{
	struct err e;
	char first[5] = "";
	size_t got = 0;
	if (src_read_some(src, 0, first, sizeof first, &got, &e) || !got)
		return false;
	return first[0] != '#' && (got < 5 || memcmp(first, "head\t", 5) != 0);
}

struct src *
sorted_undo(struct src *src, const char *name, struct buf *to, bool *lost)
{
	struct err e;
	if (!was_sorted(src))
		return src;
	int r = src_seekable(src, &e);
	/* Torn gzip is readable up to the tear; else nothing can be read. */
	if (r && r != SE_ETRUNC && r != SE_EFORMAT)
		cli_die_err(name, &e);
	if (src_size(src) > SORT_MAX)
		return src;
	struct buf text = { 0 };
	to->len = 0;
	read_all(src, &text);
	struct src *memory;
	if (src_size(src) == text.len && reorder(buf_view(&text), to, lost) &&
	    !src_open_mem(&memory, to->p, to->len, &e)) {
		src_close(src);
		src = memory;
	}
	buf_free(&text);
	return src;
}
