/*
 * Records about incidents, judged: whatever they say, a judgement comes of it,
 * the same twice, and what was counted adds up.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../cmd/rcacompose/why.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);

static const char text[] =
    "stack 1\nagent a ttl=1h max-bound=0.1\nagent b absent=healthy "
    "heartbeat=60s\nagent c\nagent w\nkind link\nsufficient a\nsufficient "
    "b\nkind switch device\nrequired a\nrequired b\nrequisite c\nquorum "
    "1\nkind host\noptional a\nsufficient c\nsymptom w\n";

static void
check(struct facts *f)
{
	struct weigher w = { .facts = f, .now = INT64_C(2000000000000) };
	struct damage d = { 0 };
	struct policy policy = { 0 };
	struct judgement j;
	struct buf b = { 0 };
	if (judge(&j, f, &w, &d, &policy, NULL))
		abort();
	enum row row = j.row;
	if (j.scene.healthy + j.scene.faulty > j.scene.candidates)
		abort();
	why_change(&j, &b);
	why_need(&j, &b);
	if (j.row != row)
		abort();
	judge_undo(&j);
	if (judge(&j, f, &w, &d, &policy, NULL) || j.row != row)
		abort();
	buf_free(&b);
	weigher_free(&w);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	static struct stack stack;
	struct facts f;
	struct src *src;
	struct rec_in *in;
	struct str line;
	stack_init(&stack);
	if (stack_parse(&stack, "fuzz", STR_LIT(text), NULL))
		abort();
	facts_init(&f, &stack);
	f.trusted = true;
	if (src_open_mem(&src, p, len, NULL) || rec_in_open(&in, src, NULL))
		return 0;
	int got;
	while ((got = rec_in_line(in, &line, NULL)) != 0) {
		struct rec r;
		if (got != 1)
			continue;
		if (rec_in_parse(in, line, &r, NULL)) {
			facts_garbled(&f, line, 0, 1);
		} else if (str_is(r.type, "incident")) {
			if (f.incident) {
				check(&f);
				facts_rewind(&f);
			} else {
				facts_mark(&f);
			}
			facts_incident(&f, &r, NULL);
		} else {
			facts_add(&f, &r, 0, NULL);
		}
	}
	check(&f);
	rec_in_close(in);
	facts_free(&f);
	stack_free(&stack);
	return 0;
}
