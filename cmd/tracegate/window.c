/* Windows: see window.h. */
#include "window.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

void
windows_free(struct windows *ws)
{
	free(ws->w);
	*ws = (struct windows){ 0 };
}

static int64_t
add(int64_t a, int64_t b)
{
	int64_t v;
	if (__builtin_add_overflow(a, b, &v))
		return b > 0 ? INT64_MAX : INT64_MIN;
	return v;
}

/* Token bucket in the time of the stream. */
static bool
allowed(struct windows *ws, int64_t now)
{
	const struct window_rules *r = &ws->rules;
	if (ws->n && now < add(ws->w[ws->n - 1].until, r->cooldown) &&
	    r->cooldown)
		return false;
	if (!r->per_minute)
		return true;
	if (!ws->filled) {
		ws->filled = true;
		ws->tokens = r->burst;
		ws->tokens_at = now;
	}
	if (now > ws->tokens_at) {
		ws->tokens +=
		    (double)(now - ws->tokens_at) / 60e9 * r->per_minute;
		ws->tokens_at = now;
	}
	if (ws->tokens > r->burst)
		ws->tokens = r->burst;
	if (ws->tokens < 1)
		return false;
	ws->tokens--;
	return true;
}

static void
join(struct window *to, const struct window *from)
{
	to->from = from->from < to->from ? from->from : to->from;
	to->until = from->until > to->until ? from->until : to->until;
	to->openings += from->openings;
	to->events += from->events;
	to->bytes += from->bytes;
	to->audit = to->audit && from->audit;
	to->history_short = to->history_short || from->history_short;
	to->cut = to->cut || from->cut;
	bool normal = to->worst.why == WHY_AUDIT;
	if (from->worst.why != WHY_AUDIT &&
	    (normal ||
		opening_percent(&from->worst) > opening_percent(&to->worst)))
		to->worst = from->worst;
}

/* Extends the last window, within the limit of its length. */
static struct window *
extend(struct windows *ws, const struct window *more)
{
	struct window *last = &ws->w[ws->n - 1];
	int64_t until = last->until;
	join(last, more);
	int64_t limit = add(last->from, ws->rules.longest);
	if (ws->rules.longest && last->until > limit) {
		/* The slice itself is always within. */
		int64_t slice = add(more->worst.ts, more->worst.dur);
		limit = slice > limit ? slice : limit;
		last->until = until > limit ? until : limit;
	}
	while (ws->n > 1 && ws->w[ws->n - 2].until >= ws->w[ws->n - 1].from) {
		join(&ws->w[ws->n - 2], &ws->w[ws->n - 1]);
		ws->n--;
	}
	return &ws->w[ws->n - 1];
}

struct window *
windows_open(struct windows *ws, const struct opening *o)
{
	bool audit = o->why == WHY_AUDIT;
	int64_t end = add(o->ts, o->dur);
	struct window w = { .worst = *o,
		.openings = !audit,
		.audit = audit,
		.from = audit ? o->ts : add(o->ts, -ws->rules.before),
		.until = audit ? end : add(end, ws->rules.after) };
	if (ws->n && w.from <= ws->w[ws->n - 1].until)
		return extend(ws, &w);
	if (!audit && !allowed(ws, end)) {
		ws->suppressed++;
		return NULL;
	}
	if (ws->n == ws->cap) {
		ws->cap = ws->cap ? ws->cap * 2 : 16;
		ws->w = cli_realloc(ws->w, ws->cap, sizeof *ws->w);
	}
	w.id = ++ws->opened;
	ws->w[ws->n] = w;
	return &ws->w[ws->n++];
}

struct window *
windows_hit(const struct windows *ws, int64_t ts, int64_t end)
{
	size_t lo = 0, hi = ws->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (ws->w[mid].until < ts)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < ws->n && ws->w[lo].from <= end ? &ws->w[lo] : NULL;
}
