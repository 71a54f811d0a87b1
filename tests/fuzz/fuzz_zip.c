/* Any bytes as a zip archive: directory, headers, content of every member. */
#include <stdint.h>

#include "zip.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);

/* Content read of one input: a bomb is refused by its ratio, not by time. */
enum { CONTENT_MAX = 4 << 20 };

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	struct src *src;
	struct zip z = { 0 };
	struct err e;
	uint64_t left = CONTENT_MAX;
	if (src_open_mem(&src, p, len, &e))
		return 0;
	int r = zip_open(&z, src, &e);
	for (size_t i = 0; !r && i < z.n; i++) {
		const struct zip_member *m = &z.m[i];
		if (zip_find(&z, m->name) != m)
			__builtin_trap();
		if (m->size > left)
			break;
		left -= m->size;
		zip_verify(&z, m, &e);
	}
	zip_close(&z);
	src_close(src);
	return 0;
}
