/* From samples to evidence: see rules.h. */
#include "rules.h"

#include "cli.h"
#include "glob.h"
#include "num.h"
#include "reasons.h"

struct limits {
	struct str counter; /* a pattern */
	bool gauge;
	bool below; /* faulty<X: small is bad */
	bool met;   /* such a counter was there */
	double faulty, healthy;
};

/* What one rule knows of one entity. */
struct cell {
	double last;
	int64_t time; /* of `last`; NO_TIME: none yet */
	int64_t good; /* when a gauge was last not faulty */
	bool have;
	unsigned char says; /* of the current sample */
	const char *why;
	int64_t from; /* where the interval it judges began */
};

enum { SAYS_NOTHING = 3 };

struct thing {
	struct str name;
	struct cell cell[RULES_MAX];
	int64_t now; /* time of the current sample */
	bool fresh;  /* something was said since the last line */
	/* A line that may grow. */
	bool pending;
	unsigned char status;
	const char *reason;
	int64_t onset, until;
};

struct rules {
	struct limits rule[RULES_MAX];
	size_t n;
	const char *template;
	struct arena arena;
	struct map names;
	struct thing **thing;
	size_t nthings, cap;
	bool previous, series;
	int64_t at;
	uint64_t nameless;
	struct buf name;
};

struct rules *
rules_new(void)
{
	return cli_alloc(1, sizeof(struct rules));
}

void
rules_free(struct rules *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->nthings; i++)
		free(r->thing[i]);
	free(r->thing);
	map_free(&r->names);
	arena_free(&r->arena);
	buf_free(&r->name);
	free(r);
}

/* ---- the text of a rule ---------------------------------------------- */

static int
limit(
    struct str w, const char *word, const char *op, double *out, struct err *e)
{
	size_t n = strlen(word) + strlen(op);
	if (!str_starts(w, word) || w.len <= n ||
	    memcmp(w.p + strlen(word), op, strlen(op)) != 0)
		return err_set(e, SE_EFORMAT,
		    "expected COUNTER [gauge] faulty>X healthy<=Y or "
		    "faulty<X healthy>=Y");
	return num_f64((struct str){ w.p + n, w.len - n }, out, e);
}

int
rules_add(struct rules *r, struct str text, struct err *e)
{
	struct str w[16], rest = text;
	size_t n = 0;
	if (r->n == RULES_MAX)
		return err_set(e, SE_ELIMIT, "more than %d rules", RULES_MAX);
	while (n < 16 && ev_word(&rest, &w[n]))
		n++;
	if (n < 3 || n == 16)
		return err_set(e, SE_EFORMAT,
		    "expected COUNTER [gauge] faulty>X healthy<=Y");
	struct limits *x = &r->rule[r->n];
	*x = (struct limits){ .gauge = n > 3 && str_is(w[n - 3], "gauge") };
	/* Names of counters may hold blanks: all words before the limits. */
	size_t words = n - 2 - x->gauge;
	const char *end = w[words - 1].p + w[words - 1].len;
	x->counter = arena_str(
	    &r->arena, (struct str){ w[0].p, (size_t)(end - w[0].p) });
	x->below = str_starts(w[n - 2], "faulty<");
	int err =
	    limit(w[n - 2], "faulty", x->below ? "<" : ">", &x->faulty, e);
	if (!err)
		err = limit(w[n - 1], "healthy",
		    x->below ? ">=" : "<=", &x->healthy, e);
	if (err)
		return err;
	if (x->below ? x->healthy < x->faulty : x->healthy > x->faulty)
		return err_set(
		    e, SE_EFORMAT, "the limits overlap: a value would be both");
	r->n++;
	return 0;
}

bool
rules_loss(const struct rules *r, struct ev *ev)
{
	const struct limits *x = &r->rule[0];
	if (r->n != 1 || !str_is(x->counter, "loss") || x->below)
		return false;
	ev->loss_faulty = x->faulty;
	ev->loss_healthy = x->healthy;
	return true;
}

bool
rules_met(const struct rules *r, size_t i, struct str *counter)
{
	*counter = r->rule[i].counter;
	return r->rule[i].met;
}

size_t
rules_count(const struct rules *r)
{
	return r->n;
}

void
rules_entity(struct rules *r, const char *template)
{
	r->template = template;
}

void
rules_previous(struct rules *r, bool previous)
{
	r->previous = previous;
}

void
rules_time(struct rules *r, int64_t at)
{
	r->at = at;
}

uint64_t
rules_nameless(const struct rules *r)
{
	return r->nameless;
}

/* ---- things ---------------------------------------------------------- */

/* False where the template names a label that is not there. */
static bool
expand(struct rules *r, const struct sample *s)
{
	struct str rest = str_c(r->template), part, key;
	r->name.len = 0;
	while (str_cut(&rest, '{', &part)) {
		buf_str(&r->name, part);
		if (!rest.p)
			break;
		if (!str_cut(&rest, '}', &key) || !rest.p)
			return false;
		struct str v = ev_get(s, key);
		if (!v.len)
			return false;
		buf_str(&r->name, v);
	}
	return r->name.len > 0 && r->name.len <= 4096;
}

static struct thing *
thing_of(struct rules *r, const struct sample *s)
{
	bool fresh;
	if (!expand(r, s)) {
		r->nameless += !r->previous;
		return NULL;
	}
	struct str name = buf_view(&r->name);
	uint64_t *at = map_get(&r->names, name);
	if (at)
		return r->thing[*at];
	if (r->nthings == r->cap) {
		r->cap = r->cap ? 2 * r->cap : 64;
		r->thing = cli_realloc(r->thing, r->cap, sizeof *r->thing);
	}
	struct thing *t = cli_alloc(1, sizeof *t);
	t->name = arena_str(&r->arena, name);
	at = t->name.p ? map_at(&r->names, t->name, &fresh) : NULL;
	if (!at)
		cli_die("out of memory");
	*at = r->nthings;
	for (size_t i = 0; i < RULES_MAX; i++)
		t->cell[i] = (struct cell){
			.time = NO_TIME, .good = NO_TIME, .says = SAYS_NOTHING
		};
	t->now = NO_TIME;
	return r->thing[r->nthings++] = t;
}

/* ---- lines ----------------------------------------------------------- */

static const char *const word[] = { "unknown", "faulty", "healthy" };

static void
put_pending(struct ev *ev, struct thing *t)
{
	if (!t->pending)
		return;
	ev_evidence(ev, t->name, word[t->status], t->until,
	    t->status == SAYS_UNKNOWN ? NO_TIME : t->onset,
	    t->status == SAYS_UNKNOWN ? NO_TIME : t->until,
	    t->status == SAYS_UNKNOWN ? t->reason : NULL, NAN);
	t->pending = false;
}

static bool
same_reason(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* A line that only continues the last one makes it longer. */
static void
put_line(struct ev *ev, struct thing *t, unsigned char status,
    const char *reason, int64_t onset, int64_t until)
{
	bool goes_on = t->pending && t->status == status &&
		       same_reason(t->reason, reason) &&
		       (t->until == onset || status == SAYS_UNKNOWN);
	if (goes_on) {
		t->until = until;
		return;
	}
	put_pending(ev, t);
	t->pending = true;
	t->status = status;
	t->reason = reason;
	t->onset = onset;
	t->until = until;
}

/* All rules together, once all counters of one time are in. */
static void
close_time(struct rules *r, struct ev *ev, struct thing *t)
{
	unsigned char status = SAYS_HEALTHY;
	const char *reason = NULL;
	int64_t onset = NO_TIME, health = NO_TIME;
	bool first = true;
	if (!t->fresh)
		return;
	for (size_t i = 0; i < r->n; i++) {
		struct cell *c = &t->cell[i];
		unsigned char says = c->says;
		const char *why = c->why;
		if (says == SAYS_NOTHING) {
			says = SAYS_UNKNOWN;
			why = REASON_MISSING;
		}
		if (says == SAYS_FAULTY) {
			bool earlier =
			    status != SAYS_FAULTY ||
			    (c->from != NO_TIME &&
				(onset == NO_TIME || c->from < onset));
			if (earlier)
				onset = c->from;
			status = SAYS_FAULTY;
		} else if (says == SAYS_UNKNOWN && status == SAYS_HEALTHY) {
			status = SAYS_UNKNOWN;
			reason = why;
		} else if (says == SAYS_HEALTHY) {
			/* Healthy since the latest of the beginnings. */
			if (first || c->from > health)
				health = c->from;
			first = false;
		}
		c->says = SAYS_NOTHING;
		c->why = NULL;
	}
	t->fresh = false;
	if (status == SAYS_HEALTHY)
		onset = health;
	put_line(ev, t, status, status == SAYS_UNKNOWN ? reason : NULL, onset,
	    t->now);
}

/* ---- samples --------------------------------------------------------- */

static unsigned char
judge_value(const struct limits *x, double v)
{
	if (x->below ? v < x->faulty : v > x->faulty)
		return SAYS_FAULTY;
	if (x->below ? v >= x->healthy : v <= x->healthy)
		return SAYS_HEALTHY;
	return SAYS_UNKNOWN;
}

static void
say(struct cell *c, unsigned char says, const char *why, int64_t from)
{
	/* Two counters under one pattern: the worse one speaks. */
	static const int rank[] = { [SAYS_NOTHING] = 0,
		[SAYS_HEALTHY] = 1,
		[SAYS_UNKNOWN] = 2,
		[SAYS_FAULTY] = 3 };
	if (rank[says] <= rank[c->says])
		return;
	c->says = says;
	c->why = why;
	c->from = from;
}

static void
take_gauge(struct rules *r, const struct limits *x, struct cell *c,
    const struct sample *s, int64_t now, int64_t since)
{
	unsigned char says = judge_value(x, s->value);
	(void)r;
	int64_t from = says == SAYS_FAULTY ? c->good : now;
	if (since != NO_TIME)
		from = since;
	say(c, says, REASON_IN_BAND, from);
	if (says != SAYS_FAULTY)
		c->good = now;
}

static void
take_counter(
    const struct limits *x, struct cell *c, const struct sample *s, int64_t now)
{
	double before = c->last;
	int64_t then = c->time;
	bool had = c->have;
	c->last = s->value;
	c->time = now;
	c->have = true;
	if (!had && s->series)
		return; /* the next one is compared with it */
	if (!had)
		say(c, SAYS_UNKNOWN, REASON_NODATA, NO_TIME);
	else if (then == NO_TIME || now == NO_TIME)
		say(c, SAYS_UNKNOWN, REASON_NO_TIME, NO_TIME);
	else if (now <= then)
		say(c, SAYS_UNKNOWN, REASON_SKEW, NO_TIME);
	else if (s->value < before) /* wrapped, or started again */
		say(c, SAYS_UNKNOWN, REASON_GARBLED, NO_TIME);
	else
		say(c, judge_value(x, s->value - before), REASON_IN_BAND, then);
}

static void
take_for_rule(struct rules *r, struct ev *ev, size_t i, const struct sample *s,
    int64_t now)
{
	struct thing *t = thing_of(r, s);
	if (!t)
		return;
	struct cell *c = &t->cell[i];
	r->rule[i].met |= !r->previous;
	if (r->previous) {
		if (s->unknown)
			return;
		c->last = s->value;
		c->time = now;
		c->have = true;
		if (r->rule[i].gauge &&
		    judge_value(&r->rule[i], s->value) != SAYS_FAULTY)
			c->good = now;
		return;
	}
	if (t->fresh && t->now != now && s->series)
		close_time(r, ev, t);
	if (t->now == NO_TIME || now > t->now || s->series)
		t->now = now;
	if (s->unknown)
		say(c, SAYS_UNKNOWN, s->unknown, NO_TIME);
	else if (r->rule[i].gauge)
		take_gauge(r, &r->rule[i], c, s, now, ev->since);
	else
		take_counter(&r->rule[i], c, s, now);
	t->fresh |= c->says != SAYS_NOTHING;
}

void
rules_sample(struct rules *r, struct ev *ev, const struct sample *s)
{
	int64_t now = s->time != NO_TIME ? s->time : r->at;
	for (size_t i = 0; i < r->n; i++)
		if (glob_match(r->rule[i].counter, s->counter))
			take_for_rule(r, ev, i, s, now);
}

void
rules_finish(struct rules *r, struct ev *ev)
{
	for (size_t i = 0; i < r->nthings; i++) {
		close_time(r, ev, r->thing[i]);
		put_pending(ev, r->thing[i]);
	}
}
