/*
 * Fingerprint hashes. The only file that knows xxHash is hash.c.
 *
 * Algorithms and their names in records:
 *   xxh3-128  XXH3 128 bit, seed 0, of the bytes; text is the canonical
 *             (big-endian) hex, equal to `xxhsum -H2`
 *   mix64     sum over i of mix(word[i] ^ i * K) mod 2^64 (hash_mix64)
 * None is cryptographic: they find accidents, not adversaries.
 */
#ifndef HASH_H
#define HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "str.h"

struct u128 {
	uint64_t hi, lo;
};

enum { HASH_HEX = 32 }; /* hex digits of a u128, no NUL */

static inline bool
u128_same(struct u128 a, struct u128 b)
{
	return a.hi == b.hi && a.lo == b.lo;
}

/* a + b mod 2^128 */
static inline struct u128
u128_add(struct u128 a, struct u128 b)
{
	struct u128 s = { a.hi + b.hi, a.lo + b.lo };
	s.hi += s.lo < a.lo;
	return s;
}

/* 32 lowercase hex digits, most significant first. */
void u128_put(struct buf *b, struct u128 v);
/* Exactly 32 lowercase hex digits. */
bool u128_parse(struct str s, struct u128 *out);

/* XXH3-128, seed 0, in one go. */
struct u128 hash_xxh3(const void *p, size_t len);
/* XXH3-64 with a seed: for tables, never printed. */
uint64_t hash_table(const void *p, size_t len, uint64_t seed);

/* Streaming XXH3-128. NULL from hash_new: out of memory. */
struct hash;
struct hash *hash_new(void);
void hash_reset(struct hash *h);
void hash_add(struct hash *h, const void *p, size_t len);
struct u128 hash_value(const struct hash *h);
void hash_free(struct hash *h);

/*
 * The term of one shardsum unit: XXH3-128 over 32 bytes,
 *   le64 global unit index | le64 bytes in the unit | XXH3-128(unit),
 * the inner digest in canonical order. Sum the terms with u128_add. The index
 * is hashed data, not a seed: seeded sums of short rows collide.
 */
struct u128 hash_unit(uint64_t index, const void *unit, size_t len);
/* The same from the digest of a unit that was hashed in pieces. */
struct u128 hash_unit_of(uint64_t index, uint64_t len, struct u128 digest);

/*
 * mix64: the bytes are taken as little-endian 64-bit words w[0..n), the last
 * one zero padded; `first` is the index of the first word in the whole tensor
 * (so pieces add up); K = 0x9e3779b97f4a7c15 and
 *   mix(x): x ^= x >> 30, x *= 0xbf58476d1ce4e5b9,
 *           x ^= x >> 27, x *= 0x94d049bb133111eb, x ^= x >> 31
 * (the finaliser of SplitMix64, Steele, Lea and Flood, OOPSLA 2014).
 * The result is the sum of mix(w[i] ^ (first + i) * K) mod 2^64. Every piece
 * but the last has a length that is a multiple of 8.
 */
uint64_t hash_mix64(const void *p, size_t len, uint64_t first);

#endif
