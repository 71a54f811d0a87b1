/*
 * What a file gives itself out as, by its name or its first bytes, against
 * what it was read as. Damage and packing must not turn a file of tensors
 * into one of bytes with a digest that looks right.
 */
#include "tensor.h"

#include <string.h>

#include "foreign.h"

// clang-format off
/* Names that promise a format; only to refuse what does not keep it. */
static const struct {
	const char *end, *format;
} promises[] = {
	{ ".npy", "NumPy array" },
	{ ".npz", "NumPy archive" },
	{ ".safetensors", "safetensors file" },
	{ ".gguf", "GGUF file" },
	{ ".pt", "PyTorch checkpoint" },
	{ ".pth", "PyTorch checkpoint" },
	/* Not every index.json: data sets have those, too. */
	{ ".index.json", "safetensors index" },
};
// clang-format on

static int
check_promise(const struct tensor_set *set, struct str name,
    const struct tensor_hints *h, struct err *e)
{
	if (h->format || h->dtype || h->chunk ||
	    strcmp(set->format->name, "bytes"))
		return 0;
	if (str_ends(name, ".gz"))
		name.len -= 3;
	for (size_t i = 0; i < sizeof promises / sizeof *promises; i++)
		if (str_ends(name, promises[i].end))
			return err_set(e, SE_EFORMAT,
			    "does not begin like a %s (fpdump -t bytes takes "
			    "it as plain bytes)",
			    promises[i].format);
	return 0;
}

/*
 * What no format claimed may be a container that has to be undone first. Asked
 * last: some of ours begin like one of those.
 */
static int
check_foreign(const struct tensor_set *set, struct src *src,
    const struct tensor_hints *h, struct err *e)
{
	static const char *const as_it_is[] = { "raw", "bytes", "chunks" };
	unsigned char head[FOREIGN_HEAD];
	size_t n;
	for (size_t i = 0; h->format && i < 3; i++)
		if (!strcmp(h->format, as_it_is[i]))
			return 0;
	if (h->dtype || h->chunk || set->format->probe ||
	    src_read_some(src, 0, head, sizeof head, &n, NULL))
		return 0;
	return foreign_check(head, n, e);
}

int
tensor_claim(struct tensor_set *set, struct src *src, struct str name,
    const struct tensor_hints *hints, int r, struct err *e)
{
	struct err claim;
	if (!set->format)
		return r;
	int other = check_foreign(set, src, hints, &claim);
	if (!other)
		other = check_promise(set, name, hints, &claim);
	if (!other)
		return r;
	set->n = 0;
	/* Damage explains a promise that is not kept; not a container. */
	if (r && other != SE_EUNSUP)
		return r;
	*e = claim;
	return other;
}
