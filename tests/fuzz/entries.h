/* Opens the input as one format and reads everything in it. */
#ifndef ENTRIES_H
#define ENTRIES_H

#include <stdint.h>

#include "tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);

enum {
	FUZZ_SCRATCH = 64 << 10,
	FUZZ_READ_MAX = 4 << 20, /* an expanded tensor is slow, not wrong */
};

static int
fuzz_count(void *user, const void *p, size_t len, struct err *e)
{
	size_t *n = user;
	*n += len;
	return *n > FUZZ_READ_MAX;
}

static void
fuzz_tensor(const char *format, struct str step, const uint8_t *p, size_t len)
{
	static unsigned char scratch[FUZZ_SCRATCH];
	struct tensor_hints hints = {
		.format = format, .step = step, .dirfd = -1
	};
	struct tensor_set set;
	struct src *src;
	struct err e;
	size_t n = 0;
	if (src_open_mem(&src, p, len, &e))
		return;
	int r = tensor_open(&set, src, &hints, &e);
	while (!r && (r = tensor_next(&set, &e)) > 0) {
		r = 0;
		for (size_t i = 0; !r && i < set.n; i++)
			if (!(set.t[i].flags & TENSOR_SCALAR))
				r = tensor_blocks(&set.t[i], scratch,
				    sizeof scratch, fuzz_count, &n, &e);
	}
	if (!r)
		tensor_finish(&set, &e);
	tensor_close(&set);
	src_close(src);
}

#endif
