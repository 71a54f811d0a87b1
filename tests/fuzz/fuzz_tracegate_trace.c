/* Any bytes as a trace of any format: read to the end, every event looked at.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../cmd/tracegate/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);

static void
look(const struct event *ev)
{
	struct buf b = { 0 };
	if (!ev->raw.len || !ev->raw.p || event_end(ev) < ev->ts)
		abort();
	scan_plain(&b, ev->name);
	if (ev->args.len)
		scan_get(ev->args, "correlation");
	scan_valid(ev->raw);
	buf_free(&b);
}

static void
read_as(const uint8_t *p, size_t len, const char *type)
{
	static const struct fields fields = { .unit = 1000 };
	struct reader r;
	struct event ev = { 0 };
	struct err e = { 0 };
	if (!reader_open_mem(&r, p, len, type, &fields, &e))
		while (reader_next(&r, &ev, &e) == READ_EVENT)
			look(&ev);
	reader_close(&r);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	read_as(p, len, NULL);
	for (int i = 0; reader_formats[i]; i++)
		read_as(p, len, reader_formats[i]->name);
	return 0;
}
