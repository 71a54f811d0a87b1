/*
 * Readers of telemetry: the first byte chooses the format, the rest is its
 * text. What they write is read back as records.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../cmd/rcacompose/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);

static int
check(void *user, const char *p, size_t len, struct err *e)
{
	struct str rest = { p, len }, line;
	char *undone = malloc(len ? len : 1);
	(void)user, (void)e;
	while (undone && rest.len && str_cut(&rest, '\n', &line)) {
		struct rec r;
		if (line.len && rec_parse(line, undone, &r, NULL))
			abort();
	}
	free(undone);
	return 0;
}

static void
take(struct ev *ev, const struct sample *s)
{
	rules_sample(ev->user, ev, s);
}

static void
feed(struct ev *ev, const struct ev_format *f, const void *p, size_t len)
{
	struct src *src;
	if (f->text) {
		/* Text readers get a copy that ends in NUL, as from a file. */
		struct str s = arena_str(ev->arena, (struct str){ p, len });
		f->text(ev, s, NULL);
	} else if (!src_open_mem(&src, p, len, NULL)) {
		f->stream(ev, src, NULL);
		src_close(src);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	struct arena arena = { 0 };
	struct rec_how how = { .sink = check };
	struct ev ev = { .arena = &arena,
		.at = 1000,
		.boot = 5,
		.zoned = true,
		.since = NO_TIME,
		.min_n = 10,
		.loss_faulty = 0.01,
		.agent = "fuzz",
		.take = take };
	size_t formats = 0;
	while (ev_formats[formats].name)
		formats++;
	if (!len || rec_out_open(&ev.out, -1, &how, NULL))
		return 0;
	struct rules *r = rules_new();
	rules_add(r, STR_LIT("*err* faulty>10 healthy<=0"), NULL);
	rules_add(r, STR_LIT("* gauge faulty>10 healthy<=5"), NULL);
	rules_entity(r, "port:{port}{iface}{ifname}x");
	rules_time(r, 1000);
	ev.user = r;
	ev.set[ev.nset++] = (struct label){ STR_LIT("host"), STR_LIT("h") };
	feed(&ev, &ev_formats[p[0] % formats], p + 1, len - 1);
	rules_finish(r, &ev);
	rec_out_finish(ev.out, NULL, 0, 0, NULL);
	rec_out_close(ev.out);
	rules_free(r);
	arena_free(&arena);
	return 0;
}
