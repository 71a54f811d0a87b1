/* Differences as they come: see follow.h. */
#include "follow.h"

#include <stdlib.h>

enum {
	SLOTS = 4096, /* records that wait for their partner */
	SHOWN = 8,    /* differences printed without -v */
};

/* A record that came on one side, and how it goes on. */
struct slot {
	struct entry *e;
	int side;
	bool repeated; /* its key came again: nobody knows which is which */
};

struct seen {
	struct report *report;
	struct slot slot[SLOTS];
	uint64_t shown;
	struct rec rec;
	struct buf undone;
};

struct seen *
seen_new(struct report *r)
{
	struct seen *s = cli_alloc(1, sizeof *s);
	s->report = r;
	return s;
}

void
seen_free(struct seen *s)
{
	if (!s)
		return;
	for (int i = 0; i < SLOTS; i++)
		free(s->slot[i].e);
	buf_free(&s->undone);
	free(s);
}

static bool
is_masked(struct seen *s, const struct entry *a)
{
	struct fp f;
	struct mask *m = s->report->s->mask;
	if (!m)
		return false;
	s->undone.len = 0;
	entry_parse(a->raw, &f, &s->rec, buf_room(&s->undone, a->raw.len + 1));
	return mask_find(m, &f) != NULL;
}

static void
tell(struct seen *s, const struct entry *a, const struct entry *b)
{
	if (a->form != b->form || u128_same(a->value, b->value) ||
	    a->is_volatile || b->is_volatile || is_masked(s, a))
		return;
	struct report *r = s->report;
	if (s->shown == SHOWN && !r->s->common.verbose)
		rec_comment(r->out, "more as they come only with -v; the "
				    "verdict counts them");
	if (s->shown++ < SHOWN || r->s->common.verbose)
		report_diff(
		    r, &(struct diff){ .class = DIFF_SEEN, .a = a, .b = b });
}

void
seen_add(struct seen *s, int side, const struct entry *e)
{
	if (!s)
		return;
	struct slot *at = &s->slot[e->key.lo % SLOTS];
	bool same = at->e && u128_same(at->e->key, e->key);
	if (same && (at->side == side || at->repeated)) {
		at->repeated = true;
		return;
	}
	struct entry *old = at->e;
	*at = (struct slot){ 0 };
	if (!same)
		*at = (struct slot){ .e = entry_dup(e), .side = side };
	else if (side == ALIGN_B)
		tell(s, old, e);
	else
		tell(s, e, old);
	free(old);
}
