#include "entries.h"

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	fuzz_tensor("safetensors", STR_LIT(""), p, len);
	return 0;
}
