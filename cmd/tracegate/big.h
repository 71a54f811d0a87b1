/*
 * Memory for what is large and touched all over: in huge pages where the
 * system has them. Small pages cost more than the sort itself here.
 */
#ifndef BIG_H
#define BIG_H

#include <stddef.h>

/* n times size zero bytes; dies when there is no memory. */
void *big_alloc(size_t n, size_t size);
/* The same memory with room for more, moved without being copied. */
void *big_grow(void *p, size_t n, size_t more, size_t size);
/* With the same numbers; p may be NULL. */
void big_free(void *p, size_t n, size_t size);

#endif
