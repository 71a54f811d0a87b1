/* XXH3 for AVX2: see hash_wide.h. */
#if defined(__x86_64__) && defined(__GNUC__)
#define WIDE 1
#ifdef __clang__
#pragma clang attribute push( \
    __attribute__((target("avx2"))), apply_to = function)
#define XXH_VECTOR 2 /* XXH_AVX2 */
#include <immintrin.h>
#else
#pragma GCC target("avx2")
#endif
#endif
#include "hash_wide.h"

#include "xxh.h"

/*
 * Registers whose upper halves are in use slow down every SSE instruction of
 * the caller's program, threefold in a reference BLAS.
 */
static void
leave(void)
{
#ifdef WIDE
	__builtin_ia32_vzeroupper();
#endif
}

struct u128
hash_wide_xxh3(const void *p, size_t len)
{
	XXH128_hash_t h = XXH3_128bits(p, len);
	leave();
	return (struct u128){ h.high64, h.low64 };
}

void
hash_wide_add(void *state, const void *p, size_t len)
{
	XXH3_128bits_update(state, p, len);
	leave();
}

#ifdef WIDE
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC reset_options
#endif
#endif

bool
hash_wide_works(void)
{
#ifdef WIDE
	return __builtin_cpu_supports("avx2");
#else
	return false;
#endif
}
