/* Whose time a path is: see blame.h. */
#include "blame.h"

#include <string.h>

#include "scan.h"
#include "sort.h"

static int
by_place(const void *a, const void *b)
{
	const struct blame *x = a, *y = b;
	if (x->nowhere != y->nowhere)
		return x->nowhere ? 1 : -1;
	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return strcmp(x->class, y->class);
}

static int
by_share(const void *a, const void *b)
{
	const struct blame *x = a, *y = b;
	if (x->dur != y->dur)
		return x->dur > y->dur ? -1 : 1;
	return by_place(a, b);
}

struct blame
blame_of(const struct model *m, int32_t slice, int64_t dur)
{
	if (slice < 0)
		return (struct blame){ .nowhere = true, .dur = dur, .n = 1 };
	return (struct blame){ .lane = m->slice[slice].lane,
		.name = m->slice[slice].name,
		.dur = dur,
		.n = 1 };
}

uint32_t
blame_add_up(struct blame *b, uint32_t n)
{
	uint32_t kept = 0;
	if (!n)
		return 0;
	sort_array(b, n, sizeof *b, by_place);
	for (uint32_t i = 1; i < n; i++) {
		if (by_place(&b[kept], &b[i])) {
			b[++kept] = b[i];
			continue;
		}
		b[kept].dur += b[i].dur;
		b[kept].n += b[i].n;
	}
	sort_array(b, ++kept, sizeof *b, by_share);
	return kept;
}

void
blame_text(struct rec_out *o, const char *key, struct str content)
{
	struct buf b = { 0 };
	scan_plain(&b, content);
	rec_str(o, key, buf_view(&b));
	buf_free(&b);
}

void
blame_put(struct rec_out *o, const struct model *m, const struct blame *b,
    int64_t wall)
{
	rec_begin(o, "blame");
	rec_put(o, "class", b->class);
	if (m->rank >= 0)
		rec_i64(o, "rank", m->rank);
	if (!b->nowhere) {
		blame_text(o, "proc", m->lanes.lane[b->lane].pid);
		blame_text(o, "thread", m->lanes.lane[b->lane].tid);
		blame_text(o, "name", m->name[b->name]);
	}
	rec_time(o, "dur", b->dur);
	rec_fmt(o, "share", "%.4f", (double)b->dur / (double)wall);
	rec_u64(o, "n", b->n);
	rec_end(o);
}
