/*
 * SONiC `show interfaces counters` and its like: a title line that begins
 * with IFACE, a line of dashes, one line a port. A cell ends where the dashes
 * of its column end: "2000.00 MB/s" is one cell. N/A is unknown, also in
 * STATE (U is 1, D and X are 0). Numbers have thousands commas.
 */
#include "ev.h"

enum { COLUMNS_MAX = 64 };

struct table {
	struct str name[COLUMNS_MAX];
	size_t end[COLUMNS_MAX]; /* last column of characters, exclusive */
	size_t n;
};

/* Columns are what the dashes say. */
static bool
read_ruler(struct table *t, struct str title, struct str ruler)
{
	size_t i = 0;
	t->n = 0;
	while (i < ruler.len) {
		size_t from = i;
		while (i < ruler.len && ruler.p[i] == '-')
			i++;
		if (i == from || t->n == COLUMNS_MAX)
			return false;
		size_t lo = t->n ? t->end[t->n - 1] : 0;
		size_t hi = i < title.len ? i : title.len;
		t->name[t->n] =
		    lo < hi ? ev_trim((struct str){ title.p + lo, hi - lo })
			    : STR_NULL;
		t->end[t->n++] = i;
		while (i < ruler.len && ruler.p[i] == ' ')
			i++;
	}
	return t->n > 1;
}

static struct str
cell(const struct table *t, struct str line, size_t i)
{
	size_t lo = i ? t->end[i - 1] : 0, hi = t->end[i];
	if (i == t->n - 1 || hi > line.len)
		hi = line.len;
	if (lo >= hi)
		return (struct str){ "", 0 };
	return ev_trim((struct str){ line.p + lo, hi - lo });
}

/* "MB/s" and "%" are for people: such columns are no counters. */
static bool
is_display(struct str cell)
{
	return str_ends(cell, "/s") || str_ends(cell, "%") ||
	       str_ends(cell, ")");
}

/* Between two columns there are two blanks. */
static bool
is_row(const struct table *t, struct str line)
{
	size_t gap = t->end[0];
	return line.len > gap + 2 && line.p[gap] == ' ' &&
	       line.p[gap + 1] == ' ' && cell(t, line, 0).len;
}

static void
read_row(struct ev *ev, const struct table *t, struct str line)
{
	struct sample s;
	ev_begin(ev, &s);
	ev_label(&s, "iface", cell(t, line, 0));
	for (size_t i = 1; i < t->n; i++) {
		struct str v = cell(t, line, i);
		if (is_display(v))
			continue;
		s.counter = t->name[i];
		s.unknown = NULL;
		if (str_is(s.counter, "STATE") && str_is(v, "U"))
			s.value = 1;
		else if (str_is(s.counter, "STATE") &&
			 (str_is(v, "D") || str_is(v, "X")))
			s.value = 0;
		else
			ev_value(&s, v);
		ev->take(ev, &s);
	}
}

int
ev_sonic(struct ev *ev, struct str text, struct err *e)
{
	struct table t = { .n = 0 };
	struct str line, title = STR_NULL;
	bool any = false;
	while (text.p && str_cut(&text, '\n', &line)) {
		struct str word = ev_trim(line);
		if (str_starts(word, "IFACE")) {
			title = line;
			t.n = 0;
		} else if (title.p && str_starts(line, "---")) {
			if (!read_ruler(&t, title, line))
				return err_set(e, SE_EFORMAT,
				    "expected dashes under the titles");
			title = STR_NULL;
			any = true;
		} else if (t.n && is_row(&t, line)) {
			read_row(ev, &t, line);
		} else if (word.len) {
			ev->left++;
		}
		if (!word.len)
			t.n = 0;
	}
	return any ? 0
		   : err_set(e, SE_EFORMAT,
			 "expected a title line IFACE and a line of dashes");
}
