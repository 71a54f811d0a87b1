/*
 * Any bytes as .metadata of a distributed checkpoint, with the data files of
 * tests/data/torch/two.dcp beside it.
 */
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);

static int
take(void *user, const void *p, size_t len, struct err *e)
{
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	static unsigned char buf[64 << 10];
	struct tensor_hints hints = { .format = "dcp" };
	struct tensor_set set;
	struct src *src;
	struct err e;
	if (src_open_mem(&src, p, len, &e))
		return 0;
	hints.dirfd = open("tests/data/torch/two.dcp", O_RDONLY | O_DIRECTORY);
	tensor_open(&set, src, &hints, &e);
	for (size_t i = 0; i < set.n; i++)
		if (!(set.t[i].flags & TENSOR_SCALAR) &&
		    set.t[i].bytes < sizeof buf)
			tensor_blocks(
			    &set.t[i], buf, sizeof buf, take, NULL, &e);
	tensor_close(&set);
	src_close(src);
	if (hints.dirfd >= 0)
		close(hints.dirfd);
	return 0;
}
