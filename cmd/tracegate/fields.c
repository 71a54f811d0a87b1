/* --fields: which columns hold what. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "verbs.h"

struct unit {
	const char *name;
	int64_t ns;
};

static const struct unit units[] = {
	{ "ns", 1 },
	{ "us", 1000 },
	{ "ms", 1000000 },
	{ "s", 1000000000 },
};

static const char *
copy(struct str s)
{
	char *p = cli_alloc(s.len + 1, 1);
	if (s.len)
		memcpy(p, s.p, s.len);
	return p;
}

static void
take(struct fields *f, struct str key, struct str value)
{
	const char **const to[] = { &f->ts, &f->dur, &f->name, &f->cost,
		&f->thread, &f->proc };
	static const char *const names[] = { "ts", "dur", "name", "cost",
		"thread", "proc" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (str_is(key, names[i])) {
			free((char *)(uintptr_t)*to[i]);
			*to[i] = copy(value);
			return;
		}
	for (size_t i = 0;
	     str_is(key, "unit") && i < sizeof units / sizeof *units; i++)
		if (str_is(value, units[i].name)) {
			f->unit = units[i].ns;
			return;
		}
	cli_usage("option --fields: expected ts=, dur=, name=, cost=, thread=, "
		  "proc= or unit=ns|us|ms|s, found \"%.*s=%.*s\"",
	    STR_ARG(key), STR_ARG(value));
}

void
fields_parse(struct fields *f, const struct opt_state *o)
{
	struct str rest = str_c(o->arg), word;
	while (str_cut(&rest, ',', &word)) {
		struct str value = word, key;
		str_cut(&value, '=', &key);
		if (!value.p || !value.len)
			cli_usage("option --fields: expected key=column, found "
				  "\"%.*s\"",
			    STR_ARG(word));
		take(f, key, value);
	}
}

void
fields_free(struct fields *f)
{
	const char *const all[] = { f->ts, f->dur, f->name, f->cost, f->thread,
		f->proc };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free((char *)(uintptr_t)all[i]);
}
