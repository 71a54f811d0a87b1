/* Ranks and steps: see chart.h. */
#include "chart.h"

#include <inttypes.h>
#include <stdlib.h>

#include "fpdiff.h"
#include "num.h"

/* Bins that are held, powers of two; one more for what has no number. */
enum { RANKS = 256, STEPS = 1024, ROW = STEPS + 1 };

/* Numbers in bins: v is in bin v >> shift, which is held modulo `bins`. */
struct axis {
	bool any;
	uint64_t low, high;
	unsigned shift;
	size_t bins;
};

struct chart {
	struct axis rank, step;
	bool stepless, rankless; /* records without a number were there */
	bool unordered;
	unsigned char *cell; /* sets of marks */
};

// clang-format off
static const struct {
	char mark;
	const char *means;
} legend[CHART_MARKS] = {
	[CHART_SAME] = { '.', "same" },
	[CHART_MASKED] = { 'm', "masked" },
	[CHART_UNSTABLE] = { 'u', "unstable or behind it" },
	[CHART_INCOMPARABLE] = { '?', "not comparable" },
	[CHART_UNMATCHED] = { '-', "no partner" },
	[CHART_DIFFERENT] = { 'x', "different" },
	[CHART_FIRST] = { 'F', "first divergence of a rank" },
};
// clang-format on

struct chart *
chart_new(void)
{
	struct chart *c = cli_alloc(1, sizeof *c);
	c->rank.bins = RANKS;
	c->step.bins = STEPS;
	c->cell = cli_alloc(RANKS + 1, ROW);
	return c;
}

void
chart_free(struct chart *c)
{
	if (!c)
		return;
	free(c->cell);
	free(c);
}

void
chart_forget_order(struct chart *c)
{
	if (c)
		c->unordered = true;
}

bool
chart_has_steps(const struct chart *c)
{
	return c->step.any;
}

/* ---- axes ------------------------------------------------------------ */

static size_t
bin_of(const struct axis *a, uint64_t v)
{
	return (size_t)(v >> a->shift) & (a->bins - 1);
}

/* Bins from the lowest to the highest, less one. */
static uint64_t
span_of(const struct axis *a, unsigned shift)
{
	return (a->high >> shift) - (a->low >> shift);
}

/* Two bins between low and high become one. */
static void
halve(struct chart *c, struct axis *a, uint64_t low, uint64_t high)
{
	unsigned char *to = cli_alloc(RANKS + 1, ROW);
	bool steps = a == &c->step;
	size_t lines = steps ? RANKS + 1 : ROW;
	size_t n = (size_t)((high >> a->shift) - (low >> a->shift)) + 1;
	for (size_t k = 0; k < n; k++) {
		uint64_t b = (low >> a->shift) + k;
		size_t from = (size_t)b & (a->bins - 1);
		size_t into = (size_t)(b >> 1) & (a->bins - 1);
		for (size_t i = 0; i < lines; i++)
			to[steps ? i * ROW + into : into * ROW + i] |=
			    c->cell[steps ? i * ROW + from : from * ROW + i];
	}
	for (size_t i = 0; i < lines; i++) {
		size_t at = steps ? i * ROW + STEPS : RANKS * ROW + i;
		to[at] = c->cell[at];
	}
	free(c->cell);
	c->cell = to;
	a->shift++;
}

static void
stretch(struct chart *c, struct axis *a, uint64_t v)
{
	uint64_t low = a->low, high = a->high;
	if (!a->any) {
		a->any = true;
		a->low = a->high = v;
		return;
	}
	if (v >= low && v <= high)
		return;
	a->low = v < low ? v : low;
	a->high = v > high ? v : high;
	while (span_of(a, a->shift) >= a->bins)
		halve(c, a, low, high);
}

void
chart_add(struct chart *c, const struct entry *e, enum chart_mark mark)
{
	uint64_t step, rank;
	size_t row = RANKS, column = STEPS;
	if (!c)
		return;
	if (entry_step(e, &step)) {
		stretch(c, &c->step, step);
		column = bin_of(&c->step, step);
	} else {
		c->stepless = true;
	}
	if (e->rank.p && !num_u64(e->rank, 0, UINT64_MAX, &rank, NULL)) {
		stretch(c, &c->rank, rank);
		row = bin_of(&c->rank, rank);
	} else {
		c->rankless = true;
	}
	c->cell[row * ROW + column] |= (unsigned char)(1u << mark);
}

/* ---- drawing ----------------------------------------------------------- */

/* How an axis is shown: 2^shift numbers a cell, `n` cells from `first` on. */
struct scale {
	unsigned shift;
	uint64_t first;
	size_t n;
};

struct drawing {
	const struct chart *c;
	struct scale rank, step;
	size_t label, width;
	unsigned seen; /* marks that were drawn */
	struct buf text;
	chart_line *line;
	void *user;
};

static struct scale
scale_of(const struct axis *a, size_t most)
{
	struct scale s = { .shift = a->shift };
	if (!a->any)
		return s;
	while (span_of(a, s.shift) >= most)
		s.shift++;
	s.first = a->low >> s.shift;
	s.n = (size_t)span_of(a, s.shift) + 1;
	return s;
}

/* Stored bins that one cell shows; none: the bin of what has no number. */
struct bins {
	uint64_t from;
	size_t n;
	bool none;
};

static struct bins
bins_at(const struct axis *a, const struct scale *s, size_t i)
{
	unsigned by = s->shift - a->shift;
	uint64_t low = a->low >> a->shift, high = a->high >> a->shift;
	if (i >= s->n)
		return (struct bins){ .n = 1, .none = true };
	uint64_t from = (s->first + i) << by;
	uint64_t to = from + ((UINT64_C(1) << by) - 1);
	from = from < low ? low : from;
	to = to > high ? high : to;
	return (struct bins){ .from = from, .n = (size_t)(to - from) + 1 };
}

static size_t
place_of(const struct axis *a, const struct bins *b, size_t i)
{
	return b->none ? a->bins : (size_t)(b->from + i) & (a->bins - 1);
}

/* The marks of all stored cells that are shown as one. */
static unsigned
marks_at(const struct drawing *d, size_t row, size_t column)
{
	const unsigned first = 1u << CHART_FIRST;
	const struct chart *c = d->c;
	struct bins r = bins_at(&c->rank, &d->rank, row);
	struct bins s = bins_at(&c->step, &d->step, column);
	unsigned set = 0;
	for (size_t i = 0; i < r.n; i++)
		for (size_t k = 0; k < s.n; k++)
			set |= c->cell[place_of(&c->rank, &r, i) * ROW +
				       place_of(&c->step, &s, k)];
	if (c->unordered && set & first)
		set = (set & ~first) | 1u << CHART_DIFFERENT;
	return set;
}

static char
mark_of(unsigned set)
{
	for (int m = CHART_MARKS; m-- > 0;)
		if (set >> m & 1)
			return legend[m].mark;
	return ' ';
}

/* "7", or "4-7" where several share a row; of what has none "-". */
static void
put_label(struct buf *b, const struct axis *a, const struct scale *s, size_t i)
{
	if (i >= s->n) {
		buf_putc(b, '-');
		return;
	}
	uint64_t from = (s->first + i) << s->shift;
	uint64_t to = from + ((UINT64_C(1) << s->shift) - 1);
	from = from < a->low ? a->low : from;
	to = to > a->high ? a->high : to;
	num_put_u64(b, from);
	if (to > from) {
		buf_putc(b, '-');
		num_put_u64(b, to);
	}
}

static void
print(struct drawing *d)
{
	while (d->text.len && d->text.p[d->text.len - 1] == ' ')
		d->text.len--;
	d->line(d->user, buf_cstr(&d->text));
	d->text.len = 0;
}

static void
pad(struct buf *b, size_t to)
{
	while (b->len < to && !b->failed)
		buf_putc(b, ' ');
}

static void
draw_title(struct drawing *d)
{
	buf_puts(&d->text, "map: a row a rank, steps to the right");
	if (d->step.shift)
		buf_printf(&d->text, ", %" PRIu64 " steps a column",
		    UINT64_C(1) << d->step.shift);
	if (d->rank.shift)
		buf_printf(&d->text, ", %" PRIu64 " ranks a row",
		    UINT64_C(1) << d->rank.shift);
	print(d);
}

/* A step above every tenth column, and above the first. */
static void
draw_axis(struct drawing *d)
{
	enum { EVERY = 10 };
	struct buf *b = &d->text;
	pad(b, d->label - 4);
	buf_puts(b, "rank ");
	for (size_t i = 0; i < d->step.n; i += EVERY) {
		size_t at = d->label + 1 + i, before = b->len;
		uint64_t v = (d->step.first + i) << d->step.shift;
		if (i && b->len + 1 > at)
			continue;
		pad(b, at);
		num_put_u64(b, v < d->c->step.low ? d->c->step.low : v);
		if (b->len > d->width)
			b->len = before;
	}
	print(d);
}

static void
draw_row(struct drawing *d, size_t row)
{
	struct buf *b = &d->text, name = { 0 };
	unsigned any = 0;
	put_label(&name, &d->c->rank, &d->rank, row);
	pad(b, d->label - name.len);
	buf_str(b, buf_view(&name));
	buf_free(&name);
	buf_putc(b, ' ');
	size_t columns = d->step.n + (d->c->stepless ? 2 : 0);
	for (size_t i = 0; i < columns; i++) {
		/* A gap, then what has no step. */
		bool gap = i == d->step.n;
		unsigned set = gap ? 0 : marks_at(d, row, i);
		any |= set;
		buf_putc(b, mark_of(set));
	}
	d->seen |= any;
	if (any)
		print(d);
	b->len = 0;
}

static void
put_word(struct drawing *d, char mark, const char *means)
{
	struct buf *b = &d->text;
	size_t n = strlen(means) + 2;
	if (b->len && b->len + 2 + n > d->width)
		print(d);
	if (b->len)
		buf_puts(b, "  ");
	if (mark)
		buf_printf(b, "%c ", mark);
	buf_puts(b, means);
}

static void
draw_legend(struct drawing *d)
{
	for (int m = 0; m < CHART_MARKS; m++)
		if (m == CHART_SAME || d->seen >> m & 1)
			put_word(d, legend[m].mark, legend[m].means);
	put_word(d, 0, "blank: no record");
	if (d->step.shift || d->rank.shift)
		put_word(d, 0, "a cell shows its worst");
	if (d->c->stepless)
		put_word(d, 0, "last column: no step");
	print(d);
}

void
chart_print(const struct chart *c, size_t width, size_t rows, chart_line *line,
    void *user)
{
	enum { LABEL_MAX = 2 * 20 + 1, LABEL_MIN = 4 };
	struct drawing d = { .c = c, .line = line, .user = user };
	struct buf name = { 0 };
	d.width = width < CHART_WIDTH_MIN   ? CHART_WIDTH_MIN
		  : width > CHART_WIDTH_MAX ? CHART_WIDTH_MAX
					    : width;
	d.rank = scale_of(&c->rank, rows);
	d.label = LABEL_MIN;
	for (size_t i = 0; i < d.rank.n; i++) {
		name.len = 0;
		put_label(&name, &c->rank, &d.rank, i);
		d.label = name.len > d.label ? name.len : d.label;
	}
	buf_free(&name);
	size_t besides = d.label + 1 + (c->stepless ? 2 : 0);
	d.step =
	    scale_of(&c->step, d.width > besides + 8 ? d.width - besides : 8);
	draw_title(&d);
	draw_axis(&d);
	for (size_t i = 0; i < d.rank.n + c->rankless; i++)
		draw_row(&d, i);
	draw_legend(&d);
	buf_free(&d.text);
}
