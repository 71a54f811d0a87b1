#include "entries.h"

/* The first byte says which kind of table it is. */
int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	static const char *const format[] = { "csv", "tsv", "jsonl", "lines" };
	if (!len)
		return 0;
	fuzz_tensor(format[p[0] % 4], p[0] & 4 ? STR_LIT("a") : STR_LIT(""),
	    p + 1, len - 1);
	return 0;
}
