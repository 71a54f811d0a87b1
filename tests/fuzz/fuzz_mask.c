/* Mask and map files: whatever is in them, no crash and bounded work. */
#include "mask.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct mask *m;
	struct src *src;
	struct err e;
	struct buf to = { 0 };
	struct fp f = { .name = STR_LIT("layers.1.mlp"),
		.place = {
		    [FP_IO] = STR_LIT("out"), [FP_STEP] = STR_LIT("3") } };
	/* regcomp of the system is not what is tested: no huge counts. */
	if (len > 4096 || memchr(data, '{', len))
		return 0;
	if (mask_new(&m, &e))
		return 0;
	if (!src_open_mem(&src, data, len, &e)) {
		mask_read(m, src, "fuzz",
		    len & 1 ? MASK_MAP : MASK_HAND | MASK_UNSTABLE, &e);
		src_close(src);
	}
	mask_find(m, &f);
	mask_map(m, f.name, &to);
	buf_free(&to);
	mask_free(m);
	return 0;
}
