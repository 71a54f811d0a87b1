/* Alignment of two windows: see align.h. */
#include "align.h"

#include <stdlib.h>
#include <string.h>

/*
 * A score is one number: pairs, equal forms and equal values, 21 bits each.
 * Windows have at most 2^16 items, so the fields do not run into each other.
 */
#define SCORE_PAIR (UINT64_C(1) << 42)
#define SCORE_FORM (UINT64_C(1) << 21)
#define SCORE_VALUE UINT64_C(1)

/* Bytes of arrows in one programme: the default window squared. */
#define CELLS_MAX ((size_t)1 << 24)
/* Cells that cost less than the rest of a window. */
#define CHEAP ((size_t)1 << 14)

static const size_t bands[] = { 64, 512, SIZE_MAX };

enum arrow { ARROW_UP = 0, ARROW_LEFT = 1, ARROW_PAIR = 2 };

struct align_slot {
	uint64_t key;
	size_t na, nb; /* how often on either side */
	size_t ia, ib; /* where last */
};

struct span {
	size_t from, to;
};

/* One call: what is aligned and where the result goes. */
struct job {
	struct align_work *w;
	const struct align_item *a, *b;
	size_t *pair;
	bool banded; /* some part may be worse than it could be */
};

/* ---- memory ---------------------------------------------------------- */

static int
reserve(void *array, size_t *cap, size_t n, size_t size, struct err *e)
{
	void **p = array;
	if (n <= *cap)
		return 0;
	free(*p);
	*cap = 0;
	*p = malloc(n * size);
	if (!*p)
		return err_mem(e);
	*cap = n;
	return 0;
}

void
align_work_free(struct align_work *w)
{
	free(w->arrow);
	free(w->score[0]);
	free(w->number);
	free(w->slot);
	*w = (struct align_work){ 0 };
}

/* ---- a table of keys --------------------------------------------------- */

static uint64_t
mix(uint64_t x)
{
	x ^= x >> 32;
	x *= UINT64_C(0x9e3779b97f4a7c15);
	return x ^ x >> 29;
}

/* Empty slots have na == nb == 0; returns their number less one as a mask. */
static int
table_clear(struct align_work *w, size_t items, size_t *mask, struct err *e)
{
	size_t n = 64;
	while (n < 2 * items)
		n *= 2;
	int r = reserve(&w->slot, &w->slot_cap, n, sizeof *w->slot, e);
	if (r)
		return r;
	memset(w->slot, 0, n * sizeof *w->slot);
	*mask = n - 1;
	return 0;
}

static struct align_slot *
table_at(struct align_work *w, size_t mask, uint64_t key)
{
	size_t i = (size_t)mix(key) & mask;
	while ((w->slot[i].na || w->slot[i].nb) && w->slot[i].key != key)
		i = (i + 1) & mask;
	w->slot[i].key = key;
	return &w->slot[i];
}

/* ---- scores ---------------------------------------------------------- */

static uint64_t
worth(const struct align_item *x, const struct align_item *y)
{
	if (x->key != y->key)
		return 0;
	if (x->form != y->form)
		return SCORE_PAIR;
	return SCORE_PAIR + SCORE_FORM +
	       (x->value == y->value ? SCORE_VALUE : 0);
}

static bool
same(const struct align_item *x, const struct align_item *y)
{
	return x->key == y->key && x->form == y->form && x->value == y->value;
}

/* The key (0), with the form (1), with the value too (2). */
static uint64_t
level_key(const struct align_item *x, int level)
{
	uint64_t h = x->key;
	if (level > 0)
		h = mix(h + 1) ^ x->form;
	if (level > 1)
		h = mix(h + 2) ^ x->value;
	return h;
}

/* No matching of the two spans scores more than this. */
static int
bound(
    struct job *j, struct span sa, struct span sb, uint64_t *out, struct err *e)
{
	static const uint64_t unit[] = { SCORE_PAIR, SCORE_FORM, SCORE_VALUE };
	*out = 0;
	for (int level = 0; level < 3; level++) {
		size_t mask;
		int r = table_clear(j->w, sa.to - sa.from, &mask, e);
		if (r)
			return r;
		for (size_t i = sa.from; i < sa.to; i++)
			table_at(j->w, mask, level_key(&j->a[i], level))->na++;
		for (size_t i = sb.from; i < sb.to; i++) {
			struct align_slot *s =
			    table_at(j->w, mask, level_key(&j->b[i], level));
			if (s->nb < s->na) {
				s->nb++;
				*out += unit[level];
			}
		}
	}
	return 0;
}

static uint64_t
score_of(const struct job *j, struct span sa)
{
	uint64_t n = 0;
	for (size_t i = sa.from; i < sa.to; i++)
		if (j->pair[i] != ALIGN_NONE)
			n += worth(&j->a[i], &j->b[j->pair[i]]);
	return n;
}

/* ---- the dynamic programme --------------------------------------------- */

/* Which columns of a row are looked at: those near the diagonal. */
struct band {
	ptrdiff_t shift; /* of the first column, from the row's number */
	size_t width;
	bool all;
};

static bool
band_fits(size_t n, size_t m, size_t half, struct band *to)
{
	size_t skew = n > m ? n - m : m - n;
	size_t far = n > m ? n : m;
	to->all = half >= far;
	to->width = to->all ? m + 1 : 2 * half + skew + 1;
	to->shift = to->all ? 0 : -(ptrdiff_t)(half + (n > m ? skew : 0));
	return to->width <= CELLS_MAX / (n + 1);
}

static size_t
band_first(const struct band *band, size_t i)
{
	ptrdiff_t first = band->all ? 0 : (ptrdiff_t)i + band->shift;
	return first > 0 ? (size_t)first : 0;
}

static size_t
band_last(const struct band *band, size_t i, size_t m)
{
	if (band->all)
		return m;
	ptrdiff_t last =
	    (ptrdiff_t)i + band->shift + (ptrdiff_t)band->width - 1;
	return last < (ptrdiff_t)m ? (size_t)last : m;
}

static size_t
band_cell(const struct band *band, size_t i, size_t col)
{
	ptrdiff_t first = band->all ? 0 : (ptrdiff_t)i + band->shift;
	return i * band->width + (size_t)((ptrdiff_t)col - first);
}

/*
 * Scores are kept for two rows only, by column. At equal score a gap wins over
 * a pair when going back, so that of several equal partners the first is
 * taken and what is surplus comes last.
 */
static void
fill(struct job *j, struct span sa, struct span sb, const struct band *band)
{
	struct align_work *w = j->w;
	size_t n = sa.to - sa.from, m = sb.to - sb.from;
	uint64_t *prev = w->score[0], *cur = w->score[0] + m + 1;
	size_t prev_first = 0, prev_last = band_last(band, 0, m);
	memset(prev, 0, (prev_last + 1) * sizeof *prev);
	for (size_t i = 1; i <= n; i++) {
		size_t first = band_first(band, i);
		size_t last = band_last(band, i, m);
		const struct align_item *x = &j->a[sa.from + i - 1];
		unsigned char *arrow =
		    w->arrow + band_cell(band, i, first) - first;
		for (size_t c = first; c <= last; c++) {
			uint64_t best = 0, v;
			unsigned char way = c ? ARROW_LEFT : ARROW_UP;
			if (c > first)
				best = cur[c - 1];
			if (c >= prev_first && c <= prev_last &&
			    (c == first || prev[c] >= best)) {
				best = prev[c];
				way = ARROW_UP;
			}
			if (c && c - 1 >= prev_first && c - 1 <= prev_last &&
			    x->key == j->b[sb.from + c - 1].key) {
				v = prev[c - 1] +
				    worth(x, &j->b[sb.from + c - 1]);
				if (v > best) {
					best = v;
					way = ARROW_PAIR;
				}
			}
			cur[c] = best;
			arrow[c] = way;
		}
		uint64_t *swap = prev;
		prev = cur;
		cur = swap;
		prev_first = first;
		prev_last = last;
	}
}

static void
follow(struct job *j, struct span sa, struct span sb, const struct band *band)
{
	size_t i = sa.to - sa.from, c = sb.to - sb.from;
	while (i) {
		switch (j->w->arrow[band_cell(band, i, c)]) {
		case ARROW_UP:
			j->pair[sa.from + --i] = ALIGN_NONE;
			break;
		case ARROW_LEFT:
			c--;
			break;
		default:
			j->pair[sa.from + --i] = sb.from + --c;
			break;
		}
	}
}

static int
programme(struct job *j, struct span sa, struct span sb,
    const struct band *band, struct err *e)
{
	struct align_work *w = j->w;
	size_t n = sa.to - sa.from, m = sb.to - sb.from;
	int r = reserve(&w->arrow, &w->arrow_cap, (n + 1) * band->width, 1, e);
	if (!r)
		r = reserve(&w->score[0], &w->score_cap, 2 * (m + 1),
		    sizeof *w->score[0], e);
	if (r)
		return r;
	fill(j, sa, sb, band);
	follow(j, sa, sb, band);
	return 0;
}

/*
 * For spans too large for any band: each item takes the next partner that is
 * still ahead. Not the best, but in order.
 */
static void
in_order(struct job *j, struct span sa, struct span sb)
{
	size_t next = sb.from;
	for (size_t i = sa.from; i < sa.to; i++) {
		size_t at = next, end = next + bands[0];
		while (at < sb.to && at < end && j->a[i].key != j->b[at].key)
			at++;
		bool found = at < sb.to && at < end;
		j->pair[i] = found ? at : ALIGN_NONE;
		next = found ? at + 1 : next;
	}
	j->banded = true;
}

/* The best of two spans without anchors. */
static int
align_span(struct job *j, struct span sa, struct span sb, struct err *e)
{
	while (sa.from < sa.to && sb.from < sb.to &&
	       same(&j->a[sa.from], &j->b[sb.from]))
		j->pair[sa.from++] = sb.from++;
	while (sa.from < sa.to && sb.from < sb.to &&
	       same(&j->a[sa.to - 1], &j->b[sb.to - 1]))
		j->pair[--sa.to] = --sb.to;
	if (sa.from == sa.to || sb.from == sb.to)
		return 0;
	uint64_t most;
	int r = bound(j, sa, sb, &most, e);
	if (r || !most)
		return r;
	struct band band;
	size_t n = sa.to - sa.from, m = sb.to - sb.from;
	for (size_t k = 0; k < sizeof bands / sizeof bands[0]; k++) {
		if (!band_fits(n, m, bands[k], &band)) {
			if (!k)
				in_order(j, sa, sb);
			j->banded = true;
			return 0;
		}
		r = programme(j, sa, sb, &band, e);
		if (r || band.all || score_of(j, sa) == most)
			return r;
	}
	return 0;
}

/* ---- anchors ----------------------------------------------------------- */

/* Keys that occur once on both sides, in the order of a; returns how many. */
static int
find_anchors(struct job *j, struct span sa, struct span sb, size_t *anchor,
    size_t *n, struct err *e)
{
	size_t mask;
	size_t items = sa.to - sa.from + (sb.to - sb.from);
	int r = table_clear(j->w, items, &mask, e);
	if (r)
		return r;
	for (size_t i = sa.from; i < sa.to; i++)
		table_at(j->w, mask, j->a[i].key)->na++;
	for (size_t i = sb.from; i < sb.to; i++) {
		struct align_slot *s = table_at(j->w, mask, j->b[i].key);
		s->nb++;
		s->ib = i;
	}
	*n = 0;
	for (size_t i = sa.from; i < sa.to; i++) {
		struct align_slot *s = table_at(j->w, mask, j->a[i].key);
		j->pair[i] = ALIGN_NONE;
		if (s->na != 1 || s->nb != 1)
			continue;
		j->pair[i] = s->ib;
		anchor[(*n)++] = i;
	}
	return 0;
}

/*
 * The longest chain of anchors that keeps the order of b (patience sorting):
 * tail[k] is the anchor that ends the best chain of k + 1, back[] leads back.
 * Anchors outside the chain lose their partner. Returns the chain's length;
 * the chain itself comes to stand in anchor[].
 */
static size_t
keep_order(struct job *j, size_t *anchor, size_t n, size_t *tail, size_t *back)
{
	size_t len = 0;
	for (size_t k = 0; k < n; k++) {
		size_t at = j->pair[anchor[k]], lo = 0, hi = len;
		while (lo < hi) {
			size_t mid = (lo + hi) / 2;
			if (j->pair[anchor[tail[mid]]] < at)
				lo = mid + 1;
			else
				hi = mid;
		}
		back[k] = lo ? tail[lo - 1] : ALIGN_NONE;
		tail[lo] = k;
		len = lo == len ? len + 1 : len;
	}
	size_t k = len ? tail[len - 1] : ALIGN_NONE;
	for (size_t i = len; i-- > 0; k = back[k])
		tail[i] = k;
	for (size_t i = 0, next = 0; i < n; i++) {
		if (next < len && tail[next] == i)
			anchor[next++] = anchor[i];
		else
			j->pair[anchor[i]] = ALIGN_NONE;
	}
	return len;
}

/* Between anchors; `lost` is how many anchors were given up for the order. */
static int
align_anchored(
    struct job *j, struct span sa, struct span sb, size_t *lost, struct err *e)
{
	struct align_work *w = j->w;
	size_t n = sa.to - sa.from, found;
	int r =
	    reserve(&w->number, &w->number_cap, 3 * n, sizeof *w->number, e);
	if (!r)
		r = find_anchors(j, sa, sb, w->number, &found, e);
	if (r)
		return r;
	size_t kept =
	    keep_order(j, w->number, found, w->number + n, w->number + 2 * n);
	*lost = found - kept;
	struct span ra = sa, rb = sb;
	for (size_t k = 0; k <= kept && !r; k++) {
		size_t at = k < kept ? w->number[k] : sa.to;
		ra.to = at;
		rb.to = k < kept ? j->pair[at] : sb.to;
		r = align_span(j, ra, rb, e);
		ra.from = at + 1;
		rb.from = rb.to + 1;
	}
	return r;
}

/* What lies unpaired between two pairs, once more and without a band. */
static int
rescue(struct job *j, struct span sa, struct span sb, struct err *e)
{
	struct span ga = { sa.from, sa.from }, gb = { sb.from, sb.from };
	for (size_t i = sa.from; i <= sa.to; i++) {
		if (i < sa.to && j->pair[i] == ALIGN_NONE)
			continue;
		ga.to = i;
		gb.to = i < sa.to ? j->pair[i] : sb.to;
		struct band band;
		bool both = ga.from < ga.to && gb.from < gb.to;
		if (both && band_fits(ga.to - ga.from, gb.to - gb.from,
				SIZE_MAX, &band)) {
			int r = programme(j, ga, gb, &band, e);
			if (r)
				return r;
		}
		ga.from = i + 1;
		gb.from = gb.to + 1;
	}
	return 0;
}

/*
 * Anchors are not always part of the best matching: one that moved across a
 * run of repeated keys separates them. It shows as pairs missing beyond the
 * anchors that were lost; then the spans are aligned without any, and where
 * that is cheap for a missing value as well.
 */
static int
improve(
    struct job *j, struct span sa, struct span sb, size_t lost, struct err *e)
{
	uint64_t most;
	int r = bound(j, sa, sb, &most, e);
	uint64_t have = score_of(j, sa);
	size_t n = sa.to - sa.from, m = sb.to - sb.from;
	bool all_pairs = have / SCORE_PAIR + lost >= most / SCORE_PAIR;
	if (r || have == most || (all_pairs && n * m > CHEAP))
		return r;
	size_t *kept = malloc((n ? n : 1) * sizeof *kept);
	if (!kept)
		return err_mem(e);
	memcpy(kept, j->pair + sa.from, n * sizeof *kept);
	for (size_t i = sa.from; i < sa.to; i++)
		j->pair[i] = ALIGN_NONE;
	r = align_span(j, sa, sb, e);
	if (!r && score_of(j, sa) < have)
		memcpy(j->pair + sa.from, kept, n * sizeof *kept);
	free(kept);
	return r;
}

int
align_window(struct align_work *w, const struct align_item *a, size_t na,
    const struct align_item *b, size_t nb, size_t *pair, struct err *e)
{
	struct job j = { .w = w, .a = a, .b = b, .pair = pair };
	struct span sa = { 0, na }, sb = { 0, nb };
	for (size_t i = 0; i < na; i++)
		pair[i] = ALIGN_NONE;
	while (sa.from < na && sb.from < nb && same(&a[sa.from], &b[sb.from]))
		pair[sa.from++] = sb.from++;
	while (sa.from < sa.to && sb.from < sb.to &&
	       same(&a[sa.to - 1], &b[sb.to - 1]))
		pair[--sa.to] = --sb.to;
	if (sa.from == sa.to || sb.from == sb.to)
		return 0;
	size_t lost = 0;
	int r = align_anchored(&j, sa, sb, &lost, e);
	if (!r)
		r = improve(&j, sa, sb, lost, e);
	if (!r && j.banded)
		r = rescue(&j, sa, sb, e);
	return r;
}
