/* The one place that includes xxhash: inline, for the includer's target. */
#ifndef XXH_H
#define XXH_H

#if defined(__GNUC__) && !defined(__clang__)
/* The inner loop of XXH3 takes twice the time with gcc's -O2 (gcc 12). */
#pragma GCC optimize("O3")
#endif
#define XXH_INLINE_ALL
#include <xxhash.h>

#endif
