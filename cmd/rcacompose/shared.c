/* What the verbs share: stacks by name, streams out. See verbs.h. */
#include "verbs.h"

#include <errno.h>
#include <unistd.h>

#include "cli.h"

void
stack_path(const char *name, char *path, size_t room)
{
	if (strchr(name, '/')) {
		snprintf(path, room, "%s", name);
		return;
	}
	if (!cli_shipped("rcacompose", "stacks", name, path, room))
		cli_die("no shipped stack \"%s\": a file needs a slash, ./%s",
		    name, name);
}

struct stack *
stack_open(const char *name)
{
	char path[4096];
	struct err e;
	struct stack *s = cli_alloc(1, sizeof *s);
	stack_path(name, path, sizeof path);
	stack_init(s);
	if (stack_read(s, path, &e))
		cli_die_err(path, &e);
	return s;
}

void
stack_close(struct stack *s)
{
	if (s)
		stack_free(s);
	free(s);
}

struct rec_out *
records_open(
    int fd, const struct rec_how *how, const char *of, const char *source)
{
	struct rec_out *o;
	struct err e;
	if (rec_out_open(&o, fd, how, &e))
		cli_die("%s", e.msg);
	rec_begin(o, "head");
	rec_put(o, "of", of);
	rec_u64(o, "version", SCHEMA_VERSION);
	rec_put(o, "tool", "rcacompose/" VERSION);
	if (source)
		rec_put(o, "source", source);
	rec_end(o);
	return o;
}
