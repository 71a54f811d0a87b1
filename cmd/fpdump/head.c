/* The head of what fpdump writes, and its messages. */
#define _GNU_SOURCE /* gethostname */
#include "fpdump.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

void
head_write(
    struct rec_out *o, const struct settings *s, const char *order, bool live)
{
	char host[256];
	rec_begin(o, "head");
	rec_put(o, "of", "fp");
	rec_u64(o, "version", SCHEMA_VERSION);
	rec_put(o, "tool", "fpdump");
	rec_put(o, "hash", s->dump.print.digest.mix64 ? "mix64" : "xxh3-128");
	if (s->dump.print.digest.canon)
		rec_put(o, "canon", "zero,nan");
	rec_put(o, "order", order);
	if (live) {
		rec_time(o, "time", cli_now(&s->common));
		host[sizeof host - 1] = 0;
		if (!gethostname(host, sizeof host - 1))
			rec_put(o, "host", host);
	}
	rec_end(o);
}

uint64_t
slices_unmet(const struct settings *s)
{
	const struct fingerprint_how *p = &s->dump.print;
	uint64_t n = 0;
	for (size_t i = 0; i < p->nslices; i++) {
		if (p->slice_met[i])
			continue;
		cli_warn("--slice %.*s: there is no tensor of that name",
		    STR_ARG(p->slice[i].name));
		n++;
	}
	return n;
}

void
warn_left_out(void *user, const char *file, const struct err *e)
{
	(void)user;
	cli_warn_err(strcmp(file, "-") ? file : "standard input", e);
}
