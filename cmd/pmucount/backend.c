/* What is to be counted, and which backend can. */
#define _GNU_SOURCE
#include "pmucount.h"

#include <stdlib.h>
#include <string.h>

const struct backend *const backends[] = { &backend_sled, &backend_uprobe,
	&backend_step, NULL };

bool
settings_option(struct settings *s, int id, const struct opt_state *o)
{
	struct err e;
	switch (id) {
	case 'f':
		if (s->npatterns == PATTERNS_MAX)
			cli_usage("at most %d -f options", PATTERNS_MAX);
		s->pattern[s->npatterns++] = o->arg;
		return true;
	case OPT_EVENT:
		if (event_add(&s->events, o->arg, &e))
			cli_usage("option %s: %s", o->name, e.msg);
		return true;
	case 'b':
		s->backend = strcmp(o->arg, "auto") ? o->arg : NULL;
		for (int i = 0; s->backend && strcmp(o->arg, backends[i]->name);
		     i++)
			if (!backends[i + 1])
				cli_usage("option -b: expected auto, sled, "
					  "uprobe or step, found \"%s\"",
				    o->arg);
		return true;
	case OPT_MAX_STEPS:
		s->max_steps = cli_u64(o, 1, UINT64_MAX / 2);
		return true;
	case OPT_SKIP_CALLEES:
		s->skip_callees = true;
		return true;
	case OPT_AS_ROOT:
		s->as_root = true;
		return true;
	case OPT_SERIALIZE:
		s->serialize = true;
		return true;
	}
	return false;
}

bool
is_named(const struct settings *s, const struct func *f)
{
	for (size_t i = 0; i < s->npatterns; i++)
		if (func_matches(f, s->pattern[i]))
			return true;
	return false;
}

bool
is_wanted(const struct settings *s, const struct func *f)
{
	return !s->npatterns || is_named(s, f);
}

static const struct backend *
named(const char *name)
{
	for (int i = 0; backends[i]; i++)
		if (!strcmp(backends[i]->name, name))
			return backends[i];
	return NULL;
}

static const struct backend *
first_usable(const struct settings *s, const char *program, struct object *o,
    struct result *r, struct err *e)
{
	struct err why;
	if (s->backend) {
		const struct backend *b = named(s->backend);
		int x = b->usable(s, program, o, &why);
		if (!x)
			return b;
		err_set(e, x, "backend %s: %s", b->name, why.msg);
		return NULL;
	}
	char all[400] = "";
	size_t len = 0;
	for (int i = 0; backends[i]; i++) {
		const struct backend *b = backends[i];
		if (!b->usable(s, program, o, &why))
			return b;
		result_caveat(
		    r, "backend-refused", 1, "%s: %s", b->name, why.msg);
		int n = snprintf(all + len, sizeof all - len, "%s%s: %s",
		    len ? "; " : "", b->name, why.msg);
		len += n > 0 && (size_t)n < sizeof all - len ? (size_t)n : 0;
	}
	err_set(e, SE_EUNSUP, "no backend can count it: %s", all);
	return NULL;
}

const struct backend *
backend_choose(const struct settings *s, const char *program, struct result *r,
    struct err *e)
{
	struct object *o = NULL;
	struct err why = { 0 };
	int x = object_open(&o, program, &why);
	/* A script is no ELF file; what it runs may well be one. */
	if (x && x != SE_EFORMAT) {
		err_set(e, x, "%s", why.msg);
		return NULL;
	}
	const struct backend *b = first_usable(s, program, o, r, e);
	object_close(o);
	return b;
}
