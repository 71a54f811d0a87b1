/* Any bytes as a rules file; what was read is tested against facts. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "../../cmd/tracegate/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);

static struct fact
some_fact(void *user, int fact, int set)
{
	static const double values[] = { 0, 0.5, 1, 1e9, INFINITY, -1 };
	const struct rules *r = user;
	if (fact_kinds[fact].of_set != (set != -1) || set >= (int)r->nsets)
		abort();
	return (
	    struct fact){ (fact + set) % 3 != 0, values[(fact + set + 1) % 6] };
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	struct rules r;
	struct src *src;
	struct err e = { 0 };
	if (src_open_mem(&src, p, len, &e))
		return 0;
	int n = rules_read(&r, src, &e);
	if (!n != !e.code || (n && !e.msg[0]))
		abort();
	for (uint32_t i = 0; !n && i < r.n; i++) {
		rule_test(&r.rule[i], some_fact, &r);
		if (i && r.rule[i].tier < r.rule[i - 1].tier)
			abort();
	}
	rules_sets(&r, STR_LIT("sched"), STR_LIT("cudaMalloc#"));
	rules_free(&r);
	return 0;
}
