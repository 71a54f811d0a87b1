/* pmucount list: what can be counted here, how, and what cannot and why. */
#define _GNU_SOURCE
#include "pmucount.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"

// clang-format off
static const struct opt options[] = {
	{ 'f', "function", "GLOB", "only these functions (repeatable)" },
	OPT_COMMON, OPT_LAST
};
// clang-format on

static const char *const usage[] = {
	"pmucount list [-f FUNC]... [options] [PROGRAM]",
	NULL,
};

static void
list_counters(struct rec_out *o)
{
	for (const struct event *ev = event_table; ev->name; ev++) {
		int why = event_try(ev, NULL);
		rec_begin(o, "counter");
		rec_put(o, "name", ev->name);
		rec_put(o, "unit", ev->unit);
		rec_put(o, "source",
		    ev->source == PMU_TSC    ? "tsc"
		    : ev->source == PMU_PAGE ? "page"
					     : "read");
		rec_put(o, "exact", ev->exact ? "yes" : "no");
		rec_put(o, "check", why ? "refused" : "usable");
		if (why)
			rec_put(o, "note", event_why(ev, why));
		rec_end(o);
	}
}

static void
list_backends(const struct settings *s, const char *program, struct object *obj,
    struct rec_out *o)
{
	for (int i = 0; backends[i]; i++) {
		struct err e;
		int x = backends[i]->usable(s, program, obj, &e);
		rec_begin(o, "backend");
		rec_put(o, "name", backends[i]->name);
		rec_put(o, "check", x ? "refused" : "usable");
		rec_put(o, "note", x ? e.msg : backends[i]->what);
		rec_end(o);
	}
}

static const struct site *
site_of(const struct object *o, size_t func)
{
	size_t lo = 0, hi = o->nsites;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (o->site[mid].func < func)
			lo = mid + 1;
		else
			hi = mid;
	}
	bool found = lo < o->nsites && o->site[lo].func == func;
	return found ? &o->site[lo] : NULL;
}

static const char *
site_name(unsigned kind)
{
	static const char *const names[] = { "none", "nops", "nop5", "xray",
		"hook", "nop4" };
	return kind < sizeof names / sizeof *names ? names[kind] : "none";
}

static void
list_functions(
    const struct settings *s, const struct object *obj, struct rec_out *o)
{
	for (size_t i = 0; i < obj->nfuncs; i++) {
		const struct func *f = &obj->func[i];
		const struct site *k =
		    site_of(obj, f->alias_of ? f->alias_of - 1 : i);
		if (!is_wanted(s, f))
			continue;
		rec_begin(o, "function");
		rec_put(o, "func", f->shown);
		rec_fmt(o, "addr", "0x%llx", (unsigned long long)f->vaddr);
		rec_u64(o, "size", f->size);
		rec_put(o, "sled", site_name(k ? k->kind : 0));
		if (f->alias_of)
			rec_put(o, "alias", obj->func[f->alias_of - 1].shown);
		if (f->ifunc)
			rec_put(o, "note",
			    "chosen at load time: count what it resolves to");
		rec_end(o);
	}
}

static void
list_coverage(const struct object *obj, struct rec_out *o)
{
	rec_begin(o, "coverage");
	rec_put(o, "object", obj->path);
	rec_u64(o, "functions", obj->nfuncs);
	rec_u64(o, "section", obj->by_section);
	rec_u64(o, "scan", obj->by_scan);
	rec_u64(o, "refused", obj->odd);
	if (!obj->nfuncs)
		rec_put(o, "note", "no symbols");
	else if (obj->from_dynsym)
		rec_put(o, "note", "stripped: exported functions only");
	rec_end(o);
}

static const char *
parse(struct settings *s, int argc, char **argv)
{
	struct opt_state o;
	const char *program = NULL;
	int id;
	opt_start(&o, options, argc, argv);
	while ((id = opt_next(&o)) != OPT_END) {
		if (id == OPT_OPERAND && !program)
			program = o.arg;
		else if (id == OPT_OPERAND)
			cli_usage("one program at a time");
		else if (!settings_option(s, id, &o) &&
			 !cli_common(&s->common, id, &o, usage,
			     "Lists counters and backends usable here, and "
			     "functions of a program."))
			cli_usage("unexpected option %s", o.name);
	}
	cli_common_done(&s->common, program ? "function" : "counter");
	return program;
}

int
verb_list(int argc, char **argv)
{
	struct settings s = { .max_steps = UINT64_MAX };
	struct object *obj = NULL;
	struct cli_out out;
	struct rec_out *o;
	struct err e = { 0 };
	const char *name = parse(&s, argc, argv);
	char *program = name ? launch_find_dup(name) : NULL;
	if (name && !program)
		cli_die("%s: no such program", name);
	if (program && object_open(&obj, program, &e))
		cli_die_err(program, &e);
	if (obj)
		object_demangle(obj);
	cli_out_open(&out, s.common.output, false);
	if (rec_out_open(&o, out.fd, &s.common.how, &e))
		cli_die("%s", e.msg);
	rec_begin(o, "head");
	rec_put(o, "of", "pmulist");
	rec_u64(o, "version", SCHEMA_VERSION);
	rec_put(o, "tool", "pmucount " VERSION);
	rec_end(o);
	list_counters(o);
	list_backends(&s, program, obj, o);
	if (obj) {
		list_functions(&s, obj, o);
		list_coverage(obj, o);
	}
	int status = cli_out_end(&out, o, NULL, STATUS_CLEAN, 0);
	object_close(obj);
	free(program);
	return status;
}
