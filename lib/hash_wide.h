/*
 * XXH3 with the wide vectors that not every processor has: the same values
 * from the same state, sooner. hash.c alone uses it.
 */
#ifndef HASH_WIDE_H
#define HASH_WIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "hash.h"

/* Can this processor? False where there is nothing to choose. */
bool hash_wide_works(void);
/* Only if it works. `state` is an XXH3_state_t. */
struct u128 hash_wide_xxh3(const void *p, size_t len);
void hash_wide_add(void *state, const void *p, size_t len);

#endif
