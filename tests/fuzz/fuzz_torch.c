/* Any bytes as a PyTorch checkpoint, and the data of every tensor. */
#include <stdint.h>

#include "tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);

enum { DATA_MAX = 4 << 20 };

/* Stops after some megabytes: expanded tensors are large. */
static int
take(void *user, const void *p, size_t len, struct err *e)
{
	size_t *left = user;
	if (len > *left)
		return 1;
	*left -= len;
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	static unsigned char buf[64 << 10];
	const struct tensor_hints hints = { .format = "torch", .dirfd = -1 };
	struct tensor_set set;
	struct src *src;
	struct err e;
	size_t left = DATA_MAX;
	if (src_open_mem(&src, p, len, &e))
		return 0;
	tensor_open(&set, src, &hints, &e);
	for (size_t i = 0; i < set.n && left; i++)
		if (!(set.t[i].flags & TENSOR_SCALAR))
			tensor_blocks(
			    &set.t[i], buf, sizeof buf, take, &left, &e);
	tensor_close(&set);
	src_close(src);
	return 0;
}
