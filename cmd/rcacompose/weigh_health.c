/*
 * When an agent said healthy of one entity: what that ends, contradicts and
 * outdoes.
 */
#include "weigh_parts.h"

#include "cli.h"
#include "sort.h"

static int
by_time(const void *x, const void *y)
{
	const int64_t *a = x, *b = y;
	return (*a > *b) - (*a < *b);
}

static void
note_health(struct weigher *w, const struct line *l)
{
	struct span h = line_health(l);
	if (w->nhealth == w->health_cap) {
		w->health_cap = w->health_cap ? 2 * w->health_cap : 64;
		w->health =
		    cli_realloc(w->health, w->health_cap, sizeof *w->health);
		w->healed =
		    cli_realloc(w->healed, w->health_cap, sizeof *w->healed);
	}
	if (h.a != NO_TIME)
		w->health[w->nhealth++] = h;
	if (l->time != NO_TIME)
		w->healed[w->nhealed++] = l->time;
}

/* Sorted; `seen` becomes the latest end of this and all earlier ones. */
void
health_gather(
    struct weigher *w, size_t agent, int32_t first, const struct window *v)
{
	const struct line *line = w->facts->line;
	w->nhealth = w->nhealed = 0;
	for (int32_t i = first; i != NONE; i = line[i].next)
		if (line_says_healthy(w, &line[i], agent, v))
			note_health(w, &line[i]);
	sort_array(w->healed, w->nhealed, sizeof *w->healed, by_time);
	sort_array(w->health, w->nhealth, sizeof *w->health, span_order);
	for (size_t i = 0; i < w->nhealth; i++) {
		struct span *h = &w->health[i];
		h->seen = i && h[-1].seen > h->b ? h[-1].seen : h->b;
	}
}

/* The number of spans that begin before t, or then. */
static size_t
begun(const struct weigher *w, int64_t t, bool then)
{
	size_t low = 0, high = w->nhealth;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (w->health[mid].a < t || (then && w->health[mid].a == t))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Is there a healthy moment, without extent, at t? */
static bool
healthy_at(const struct weigher *w, int64_t t)
{
	size_t i = begun(w, t, false); /* the shortest of those from t on */
	return i < w->nhealth && w->health[i].a == t && w->health[i].b == t;
}

/* The latest end of a span that begins before t (or then). */
static int64_t
healthy_until(const struct weigher *w, int64_t t, bool then)
{
	size_t n = begun(w, t, then);
	return n ? w->health[n - 1].seen : INT64_MIN;
}

int64_t
health_after(const struct weigher *w, int64_t t)
{
	size_t low = 0, high = w->nhealed;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (w->healed[mid] > t)
			high = mid;
		else
			low = mid + 1;
	}
	return low < w->nhealed ? w->healed[low] : INT64_MAX;
}

/*
 * "Faulty" with both ends says that somewhere in between it was; open, that
 * it is at the time of the line. "Healthy" says that all of its span was. Two
 * samples in a row share an end, which contradicts nothing.
 */
bool
health_contradicts(const struct weigher *w, const struct span *f)
{
	bool open = f->b != f->seen;
	if (f->a == f->seen)
		return healthy_at(w, f->a) ||
		       healthy_until(w, f->a, false) > f->a;
	if (open && (healthy_at(w, f->seen) ||
			healthy_until(w, f->seen, false) >= f->seen))
		return true;
	return healthy_until(w, f->a, true) >= f->seen;
}

bool
health_spans(const struct weigher *w, int64_t time)
{
	for (size_t i = 0; i < w->nhealth && time != NO_TIME; i++) {
		const struct span *h = &w->health[i];
		if (h->a < h->b && h->a <= time && time <= h->b)
			return true;
	}
	return false;
}
