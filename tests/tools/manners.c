/*
 * The smallest command: what cli.h and opt.h promise, without a command's own
 * affairs in between. Prints some records, or its input's records, and does
 * what the option says.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

enum { OPT_DIE = OPT_OWN, OPT_RAISE, OPT_NUMBER, OPT_SIZE, OPT_TIME, OPT_RUN };

// clang-format off
static const struct opt options[] = {
	{ 'l', "label", "KEY=VALUE", "printed back" },
	{ 'a', "append", NULL, "write like a recorder" },
	{ OPT_DIE, "die", "TEXT", "fail with this message" },
	{ OPT_RAISE, "raise", "N", "send this signal to oneself" },
	{ OPT_NUMBER, "number", "N", "an integer 1 to 10" },
	{ OPT_SIZE, "size", "SIZE", "at most 1M" },
	{ OPT_TIME, "wait", "TIME", "a duration" },
	{ OPT_RUN, "run", NULL, "a command follows" },
	{ OPT_PROGRESS, "progress", "[=WHEN]", "on stderr" },
	{ OPT_FILES0, "files0-from", "FILE", "print the names in it" },
	OPT_JUDGE, OPT_COMMON, OPT_LAST
};
// clang-format on

static const char *const usage[] = { "manners [options] [FILE]...", NULL };

struct settings {
	struct cli_common common;
	const char *die, *names;
	int raise;
	bool append;
};

static void
put(struct rec_out *o, const char *name, const char *value)
{
	rec_begin(o, "scalar");
	rec_put(o, "name", name);
	rec_put(o, "vtype", "text");
	rec_put(o, "value", value);
	rec_end(o);
}

/* Names that a shell, a spreadsheet and a terminal would trip over. */
static void
put_samples(struct rec_out *o)
{
	put(o, "plain", "1");
	put(o, "comma, \"quote\"", "a\tb\nc\\d");
	put(o, "escape \x1b[31m", "=1+1");
	put(o, "gr\xc3\xbc\xc3\x9f", "");
	put(o, "not utf-8 \xff", " blank ");
}

static void
copy(struct rec_out *o, struct damage *d, const char *file)
{
	static struct rec r;
	struct src *src;
	struct rec_in *in;
	struct err e;
	if (src_open(&src, file, cli_tmpdir(), 0, &e) ||
	    rec_in_open(&in, src, &e))
		cli_die_err(file, &e);
	for (int got; (got = rec_in_next(in, &r, &e));) {
		if (got != 1)
			cli_warn_err(file, &e);
		else if (!str_is(r.type, "head") && !str_is(r.type, "end"))
			rec_copy(o, &r);
	}
	damage_add(d, rec_in_totals(in));
	rec_in_close(in);
}

static void
option(struct settings *s, struct opt_state *o, int id)
{
	switch (id) {
	case 'l':
		cli_warn("label %s", o->arg);
		return;
	case 'a':
		s->append = true;
		return;
	case OPT_DIE:
		s->die = o->arg;
		return;
	case OPT_RAISE:
		s->raise = (int)cli_u64(o, 1, 64);
		return;
	case OPT_NUMBER:
		cli_u64(o, 1, 10);
		return;
	case OPT_SIZE:
		cli_size(o, 0, 1 << 20);
		return;
	case OPT_TIME:
		cli_duration(o);
		return;
	case OPT_RUN:
		o->command = true;
		return;
	case OPT_FILES0:
		s->names = o->arg;
		return;
	}
	cli_common(&s->common, id, o, usage, "A command for tests.");
}

static void
print_names(struct rec_out *o, const char *list)
{
	size_t n;
	char **names = cli_names(list, &n);
	for (size_t i = 0; i < n; i++)
		put(o, names[i], "");
	cli_names_free(names, n);
}

static int
settle(const struct settings *s, struct cli_out *to, struct rec_out *o,
    struct damage d)
{
	struct verdict v = { .result = "same", .damage = d };
	verdict_settle(&v, &s->common.policy);
	if (v.status != STATUS_NONE) {
		verdict_begin(o, &v, STR_NULL, NULL);
		verdict_end(o, &v);
	}
	int status = cli_out_end(to, o, v.result, v.status, d.skipped);
	cli_prom(&s->common, "test", v.result, v.reason, status, d.skipped);
	return status;
}

int
main(int argc, char **argv)
{
	struct settings s = { 0 };
	struct opt_state o;
	struct rec_out *out;
	struct cli_out to;
	struct damage d = { 0 };
	struct err e;
	int id, operands = 0;
	const char *operand[16];
	cli_start("manners");
	opt_start(&o, options, argc, argv);
	while ((id = opt_next(&o)) != OPT_END)
		if (id != OPT_OPERAND)
			option(&s, &o, id);
		else if (operands < 16)
			operand[operands++] = o.arg;
	for (; o.command && o.at < argc; o.at++)
		cli_warn("command word %s", argv[o.at]);
	cli_common_done(&s.common, "scalar");
	cli_out_open(&to, s.common.output, s.append);
	if (rec_out_open(&out, to.fd, &s.common.how, &e))
		cli_die_err("standard output", &e);
	rec_begin(out, "head");
	rec_put(out, "of", "scalar");
	rec_u64(out, "version", SCHEMA_VERSION);
	rec_put(out, "tool", "manners " VERSION);
	rec_time(out, "time", cli_now(&s.common));
	rec_end(out);
	if (s.names)
		print_names(out, s.names);
	else if (!operands)
		put_samples(out);
	for (int i = 0; i < operands; i++)
		copy(out, &d, operand[i]);
	if (s.die)
		cli_die("%s", s.die);
	if (s.raise)
		raise(s.raise);
	return settle(&s, &to, out, d);
}
