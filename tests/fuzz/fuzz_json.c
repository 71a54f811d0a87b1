#include <stdint.h>

#include "json.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);

/* The first byte chooses between reading everything and skipping. */
int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	struct arena a = { 0 };
	struct json j;
	struct str v;
	struct err e;
	if (!len)
		return 0;
	json_init(&j, (struct str){ (const char *)p + 1, len - 1 }, &a,
	    p[0] & 2 ? JSON_ANY_KEYS : 0);
	if (p[0] & 1) {
		json_skip(&j);
	} else {
		json_value(&j, &v);
		while (j.depth) {
			bool on = j.level[j.depth - 1]->type == JSON_OBJECT
				      ? json_member(&j, &v)
				      : json_element(&j);
			if (on)
				json_value(&j, &v);
			if (j.err.code)
				break;
		}
	}
	json_end(&j, &e);
	arena_free(&a);
	return 0;
}
