/* Fingerprint hashes: see hash.h. */
#include "hash.h"

#include <stdlib.h>

#include "hash_wide.h"
#include "xxh.h"

/* XXH3 has no vectors in what is shorter. */
enum { WIDE_MIN = 241 };

struct hash {
	XXH3_state_t state;
};

static struct u128
from_xxh(XXH128_hash_t h)
{
	return (struct u128){ h.high64, h.low64 };
}

void
u128_put(struct buf *b, struct u128 v)
{
	static const char hex[] = "0123456789abcdef";
	char text[HASH_HEX];
	for (int i = 15; i >= 0; i--, v.hi >>= 4, v.lo >>= 4) {
		text[i] = hex[v.hi & 15];
		text[16 + i] = hex[v.lo & 15];
	}
	buf_add(b, text, sizeof text);
}

/* Value of a lowercase hex digit plus one, 0: none. No branches on digits. */
static const unsigned char hex_value[256] = {
	['0'] = 1,
	['1'] = 2,
	['2'] = 3,
	['3'] = 4,
	['4'] = 5,
	['5'] = 6,
	['6'] = 7,
	['7'] = 8,
	['8'] = 9,
	['9'] = 10,
	['a'] = 11,
	['b'] = 12,
	['c'] = 13,
	['d'] = 14,
	['e'] = 15,
	['f'] = 16,
};

/* False if one of the 16 bytes is no digit. */
static bool
hex16(const char *p, uint64_t *out)
{
	uint64_t v = 0;
	bool ok = true;
	for (int i = 0; i < 16; i++) {
		unsigned d = hex_value[(unsigned char)p[i]];
		ok &= d != 0;
		v = v << 4 | ((d - 1) & 15);
	}
	*out = v;
	return ok;
}

bool
u128_parse(struct str s, struct u128 *out)
{
	struct u128 v;
	if (s.len != HASH_HEX || !hex16(s.p, &v.hi) || !hex16(s.p + 16, &v.lo))
		return false;
	*out = v;
	return true;
}

struct u128
hash_xxh3(const void *p, size_t len)
{
	if (len >= WIDE_MIN && hash_wide_works())
		return hash_wide_xxh3(p, len);
	return from_xxh(XXH3_128bits(len ? p : "", len));
}

uint64_t
hash_table(const void *p, size_t len, uint64_t seed)
{
	return XXH3_64bits_withSeed(len ? p : "", len, seed);
}

struct hash *
hash_new(void)
{
	/* The state wants 64-byte alignment. */
	size_t size = (sizeof(struct hash) + 63) & ~(size_t)63;
	struct hash *h = aligned_alloc(64, size);
	if (h)
		hash_reset(h);
	return h;
}

void
hash_reset(struct hash *h)
{
	XXH3_INITSTATE(&h->state);
	XXH3_128bits_reset(&h->state);
}

void
hash_add(struct hash *h, const void *p, size_t len)
{
	if (len >= WIDE_MIN && hash_wide_works())
		hash_wide_add(&h->state, p, len);
	else if (len)
		XXH3_128bits_update(&h->state, p, len);
}

struct u128
hash_value(const struct hash *h)
{
	return from_xxh(XXH3_128bits_digest(&h->state));
}

void
hash_free(struct hash *h)
{
	free(h);
}

static void
put_le64(unsigned char *to, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		to[i] = (unsigned char)(v >> (8 * i));
}

static void
put_be64(unsigned char *to, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		to[i] = (unsigned char)(v >> (56 - 8 * i));
}

struct u128
hash_unit_of(uint64_t index, uint64_t len, struct u128 digest)
{
	unsigned char term[32];
	put_le64(term, index);
	put_le64(term + 8, len);
	put_be64(term + 16, digest.hi);
	put_be64(term + 24, digest.lo);
	return hash_xxh3(term, sizeof term);
}

struct u128
hash_unit(uint64_t index, const void *unit, size_t len)
{
	return hash_unit_of(index, len, hash_xxh3(unit, len));
}

static uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t
get_le64(const unsigned char *p, size_t n)
{
	uint64_t v = 0;
	for (size_t i = n; i > 0; i--)
		v = v << 8 | p[i - 1];
	return v;
}

uint64_t
hash_mix64(const void *data, size_t len, uint64_t first)
{
	const unsigned char *p = data;
	const uint64_t k = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t sum = 0, at = first * k;
	for (; len >= 8; len -= 8, p += 8, at += k)
		sum += mix(get_le64(p, 8) ^ at);
	if (len)
		sum += mix(get_le64(p, len) ^ at);
	return sum;
}
