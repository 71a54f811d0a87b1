/* Public API: fingerprints. See straightedge.h. */
#include "straightedge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"

enum algorithm { XXH3_128, MIX64, UNKNOWN };

struct se_hasher {
	enum algorithm algorithm;
	struct hash *xxh3;
	uint64_t mix, words;   /* sum so far; whole words in it */
	unsigned char tail[8]; /* bytes of the word that is not full yet */
	size_t ntail;
};

static enum algorithm
algorithm_of(const char *name)
{
	if (!name || !strcmp(name, "xxh3-128"))
		return XXH3_128;
	return strcmp(name, "mix64") ? UNKNOWN : MIX64;
}

static int
put_text(char *text, size_t size, enum algorithm a, struct u128 h)
{
	int n = a == MIX64
		    ? snprintf(
			  text, size, "mix64:%016llx", (unsigned long long)h.lo)
		    : snprintf(text, size, "xxh3-128:%016llx%016llx",
			  (unsigned long long)h.hi, (unsigned long long)h.lo);
	return n < 0 || (size_t)n >= size ? SE_EINVAL : 0;
}

const char *
se_version(void)
{
	return VERSION;
}

int
se_fingerprint(const char *algorithm, const void *data, size_t len, char *text,
    size_t size)
{
	enum algorithm a = algorithm_of(algorithm);
	if (a == UNKNOWN)
		return SE_EINVAL;
	struct u128 h = { 0, 0 };
	if (a == MIX64)
		h.lo = hash_mix64(data, len, 0);
	else
		h = hash_xxh3(data, len);
	return put_text(text, size, a, h);
}

uint64_t
se_mix64(const void *data, size_t len, uint64_t first)
{
	return hash_mix64(data, len, first);
}

int
se_shardsum(
    const void *data, size_t len, size_t unit, uint64_t first, uint64_t sum[2])
{
	if (!unit)
		return SE_EINVAL;
	const unsigned char *p = data;
	struct u128 s = { sum[0], sum[1] };
	while (len) {
		size_t n = len < unit ? len : unit;
		s = u128_add(s, hash_unit(first++, p, n));
		p += n;
		len -= n;
	}
	sum[0] = s.hi;
	sum[1] = s.lo;
	return 0;
}

int
se_hasher_open(struct se_hasher **out, const char *algorithm)
{
	enum algorithm a = algorithm_of(algorithm);
	if (a == UNKNOWN)
		return SE_EINVAL;
	struct se_hasher *h = calloc(1, sizeof *h);
	if (!h)
		return SE_ENOMEM;
	h->algorithm = a;
	h->xxh3 = a == XXH3_128 ? hash_new() : NULL;
	if (a == XXH3_128 && !h->xxh3) {
		free(h);
		return SE_ENOMEM;
	}
	*out = h;
	return 0;
}

int
se_hasher_add(struct se_hasher *h, const void *data, size_t len)
{
	const unsigned char *p = data;
	if (h->algorithm == XXH3_128) {
		hash_add(h->xxh3, p, len);
		return 0;
	}
	while (len && h->ntail) {
		h->tail[h->ntail++] = *p++;
		len--;
		if (h->ntail < sizeof h->tail)
			continue;
		h->mix += hash_mix64(h->tail, sizeof h->tail, h->words++);
		h->ntail = 0;
	}
	size_t whole = len & ~(size_t)7;
	h->mix += hash_mix64(p, whole, h->words);
	h->words += whole / 8;
	if (len > whole)
		memcpy(h->tail, p + whole, len - whole);
	h->ntail += len - whole;
	return 0;
}

int
se_hasher_text(const struct se_hasher *h, char *text, size_t size)
{
	struct u128 v = { 0, 0 };
	if (h->algorithm == MIX64)
		v.lo = h->mix + hash_mix64(h->tail, h->ntail, h->words);
	else
		v = hash_value(h->xxh3);
	return put_text(text, size, h->algorithm, v);
}

void
se_hasher_reset(struct se_hasher *h)
{
	if (h->xxh3)
		hash_reset(h->xxh3);
	h->mix = h->words = 0;
	h->ntail = 0;
}

void
se_hasher_close(struct se_hasher *h)
{
	if (!h)
		return;
	hash_free(h->xxh3);
	free(h);
}
