/*
 * Any CSV: the first row names the columns, unless --header does (exports of
 * Kusto have no header). --time COLUMN is when a row was taken: seconds since
 * the epoch or RFC 3339, a blank for the T allowed; a time without a zone
 * needs --zone. All other columns are labels, and counters where a rule names
 * them. Rows of one entity that follow in time make intervals.
 */
#include "ev.h"

#include "csv.h"
#include "num.h"

enum { COLUMNS_MAX = 512 };

struct sheet {
	struct str name[COLUMNS_MAX];
	size_t n, time;
	bool timed;
};

static int
set_names(struct ev *ev, struct sheet *sh, const struct str *cell, size_t n,
    struct err *e)
{
	if (n > COLUMNS_MAX)
		return err_set(
		    e, SE_ELIMIT, "more than %d columns", COLUMNS_MAX);
	sh->n = n;
	for (size_t i = 0; i < n; i++) {
		sh->name[i] = arena_str(ev->arena, ev_trim(cell[i]));
		if (!sh->name[i].p)
			return err_mem(e);
		bool is =
		    ev->time_column && str_is(sh->name[i], ev->time_column);
		if (is)
			sh->time = i;
		sh->timed |= is;
	}
	if (ev->time_column && !sh->timed)
		return err_set(
		    e, SE_EFORMAT, "no column \"%s\"", ev->time_column);
	return 0;
}

static int
names_given(struct ev *ev, struct sheet *sh, struct err *e)
{
	struct str cell[COLUMNS_MAX], rest = str_c(ev->header);
	size_t n = 0;
	while (n < COLUMNS_MAX && str_cut(&rest, ',', &cell[n]))
		n++;
	return set_names(ev, sh, cell, n, e);
}

/* "2020-01-22 16:39:31.523000+00:00" as well as what num_time reads. */
static int64_t
time_of(const struct ev *ev, struct str s)
{
	char text[64];
	int64_t t;
	s = ev_trim(s);
	if (!num_time(s, &t, NULL))
		return t;
	if (s.len < 19 || s.len > sizeof text - 8)
		return NO_TIME;
	memcpy(text, s.p, s.len);
	if (text[10] == ' ')
		text[10] = 'T';
	struct str fixed = { text, s.len };
	if (!num_time(fixed, &t, NULL))
		return t;
	if (!ev->zoned)
		return NO_TIME;
	text[fixed.len++] = 'Z';
	return num_time(fixed, &t, NULL) ? NO_TIME : t - ev->zone;
}

static void
take_row(struct ev *ev, const struct sheet *sh, const struct csv_row *row)
{
	struct sample s;
	ev_begin(ev, &s);
	s.series = sh->timed;
	if (row->n < sh->n) {
		ev->bad++;
		return;
	}
	if (sh->timed) {
		s.time = time_of(ev, row->cell[sh->time]);
		if (s.time == NO_TIME) {
			ev->bad++;
			return;
		}
	}
	for (size_t i = 0; i < sh->n; i++)
		if (s.nlabels < EV_LABELS_MAX)
			ev_label_str(&s, sh->name[i], row->cell[i]);
	for (size_t i = 0; i < sh->n; i++) {
		if (sh->timed && i == sh->time)
			continue;
		s.counter = sh->name[i];
		ev_value(&s, row->cell[i]);
		ev->take(ev, &s);
	}
}

int
ev_csv(struct ev *ev, struct src *src, struct err *e)
{
	struct sheet sh = { .n = 0 };
	struct csv *csv;
	struct csv_row row;
	int got = 1, r = csv_open(&csv, src, CSV_COMMAS, e);
	if (r)
		return r;
	if (ev->header)
		r = names_given(ev, &sh, e);
	else if ((got = csv_next(csv, &row, e)) == 1)
		r = set_names(ev, &sh, row.cell, row.n, e);
	else
		r = got ? got : err_set(e, SE_EFORMAT, "nothing in it");
	while (!r && (got = csv_next(csv, &row, e)) == 1)
		take_row(ev, &sh, &row);
	csv_close(csv);
	return r ? r : got;
}
