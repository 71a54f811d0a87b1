/*
 * gpureplay devices: boards and cores, how to find the board, who uses it,
 * and what puts a program on it.
 */
#define _GNU_SOURCE
#include "gpureplay.h"

#include <sched.h>
#include <unistd.h>

#include "board.h"

enum { OPT_ROOT = OPT_OWN };

// clang-format off
static const struct opt options[] = {
	{ OPT_ROOT, "root", "DIR", "read DIR/proc and DIR/sys; boards only" },
	OPT_COMMON, OPT_LAST
};
// clang-format on

static const char *const usage[] = {
	"gpureplay devices [options]",
	NULL,
};

struct listing {
	struct cli_common common;
	const char *root;
	struct boards boards;
	struct devices cores;
};

static void
put_text(struct rec_out *o, const char *key, const char *value)
{
	if (value)
		rec_put(o, key, value);
}

static void
put_board(struct rec_out *o, const struct board *b, const char *host)
{
	rec_begin(o, "device");
	rec_fmt(o, "entity", "device:%s/%s", host, b->pci);
	if (b->pin && b->uuid)
		rec_fmt(o, "pin", "%s=%s", b->pin, b->uuid);
	put_text(o, "model", b->model);
	put_text(o, "driver", b->driver);
	put_text(o, "uuid", b->uuid);
	put_text(o, "serial", b->serial);
	put_text(o, "slot", b->slot);
	rec_u64(o, "busy", b->busy);
	rec_end(o);
}

/* The number of the first core that is like this one, from 1. */
static size_t
kind_of(const struct devices *d, size_t core)
{
	size_t kind = 1;
	for (size_t i = 0; i <= core; i++) {
		size_t first = 0;
		while (strcmp(d->list[first].alike, d->list[i].alike))
			first++;
		if (!strcmp(d->list[i].alike, d->list[core].alike))
			return kind;
		kind += first == i;
	}
	return kind;
}

static void
put_core(struct rec_out *o, const struct devices *d, size_t i)
{
	const struct device *core = &d->list[i];
	rec_begin(o, "device");
	rec_put(o, "entity", core->entity);
	rec_u64(o, "group", kind_of(d, i));
	rec_fmt(o, "pin", "--cpus=%d", core->cpu);
	put_text(o, "model", core->model);
	rec_end(o);
}

static void
put_all(const struct listing *l, struct rec_out *o)
{
	char host[256] = "";
	gethostname(host, sizeof host - 1);
	rec_begin(o, "head");
	rec_put(o, "of", "devices");
	rec_u64(o, "version", SCHEMA_VERSION);
	rec_put(o, "tool", "gpureplay " VERSION);
	rec_time(o, "time", cli_now(&l->common));
	rec_put(o, "host", host);
	rec_end(o);
	for (size_t i = 0; i < l->boards.n; i++)
		put_board(o, &l->boards.list[i], host);
	for (size_t i = 0; i < l->cores.n; i++)
		put_core(o, &l->cores, i);
}

static void
parse(struct listing *l, int argc, char **argv)
{
	struct opt_state o;
	int id;
	opt_start(&o, options, argc, argv);
	while ((id = opt_next(&o)) != OPT_END) {
		if (id == OPT_ROOT)
			l->root = o.arg;
		else if (id == OPT_OPERAND)
			cli_usage("unexpected operand \"%s\"", o.arg);
		else if (!cli_common(&l->common, id, &o, usage,
			     "Lists boards and cores and who uses them."))
			cli_usage("unexpected option %s", o.name);
	}
	cli_common_done(&l->common, "device");
}

int
verb_devices(int argc, char **argv)
{
	struct listing l = { .root = "" };
	struct cli_out out;
	struct rec_out *o;
	struct err e;
	parse(&l, argc, argv);
	cli_out_open(&out, l.common.output, false);
	if (rec_out_open(&o, out.fd, &l.common.how, &e))
		cli_die_err("output", &e);
	boards_find(&l.boards, l.root);
	if (!*l.root)
		devices_all_cpus(&l.cores);
	put_all(&l, o);
	int status = l.boards.n || l.cores.n ? STATUS_CLEAN : STATUS_NONE;
	if (status)
		cli_warn("there are no boards");
	if (l.boards.n && l.boards.hidden)
		cli_warn("the files of %llu processes may not be seen: busy= "
			 "may be too low",
		    (unsigned long long)l.boards.hidden);
	status = cli_out_end(&out, o, NULL, status, 0);
	devices_free(&l.cores);
	boards_free(&l.boards);
	return status;
}
