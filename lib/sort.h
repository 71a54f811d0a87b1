/*
 * Sorting in place. Unlike qsort(3), which must not be given a null pointer
 * even for no elements (C11 7.22.5), it takes an array that was never made.
 */
#ifndef SORT_H
#define SORT_H

#include <stddef.h>
#include <stdlib.h>

static inline void
sort_array(
    void *p, size_t n, size_t size, int (*order)(const void *, const void *))
{
	if (n > 1)
		(qsort)(p, n, size, order);
}

#endif
