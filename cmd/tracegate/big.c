/* Memory for what is large: see big.h. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, mremap */
#include "big.h"

#include <stdint.h>
#include <sys/mman.h>

#include "cli.h"

enum { HUGE_PAGE = 2 << 20 };

/* What is mapped: whole pages, so that it can be given back. */
static size_t
bytes_of(size_t n, size_t size)
{
	size_t len;
	if (__builtin_mul_overflow(n, size, &len) || len > SIZE_MAX - HUGE_PAGE)
		cli_die("out of memory");
	return len ? len : 1;
}

void *
big_alloc(size_t n, size_t size)
{
	size_t len = bytes_of(n, size);
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		cli_die("out of memory");
#ifdef MADV_HUGEPAGE
	if (len >= HUGE_PAGE)
		(void)madvise(p, len, MADV_HUGEPAGE);
#endif
	return p;
}

void *
big_grow(void *p, size_t n, size_t more, size_t size)
{
	if (!p)
		return big_alloc(more, size);
	size_t len = bytes_of(more, size);
	p = mremap(p, bytes_of(n, size), len, MREMAP_MAYMOVE);
	if (p == MAP_FAILED)
		cli_die("out of memory");
#ifdef MADV_HUGEPAGE
	if (len >= HUGE_PAGE)
		(void)madvise(p, len, MADV_HUGEPAGE);
#endif
	return p;
}

void
big_free(void *p, size_t n, size_t size)
{
	if (p)
		munmap(p, bytes_of(n, size));
}
