/* Any bytes as a pickle, and the text of what comes out. */
#include <stdint.h>

#include "pickle.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	struct pickle k;
	struct err e;
	struct buf b = { 0 };
	struct arena a = { 0 };
	struct str s;
	if (!pickle_load(&k, p, len, &e)) {
		if (!k.root || k.len > len)
			__builtin_trap();
		pickle_text(&b, k.root);
		pickle_bytes(k.root, &a, &s);
	}
	pickle_free(&k);
	buf_free(&b);
	arena_free(&a);
	return 0;
}
