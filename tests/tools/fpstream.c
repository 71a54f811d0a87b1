/*
 * fpstream RECORDS [MISSING_PER_MILLE [SEED [RANKS]]]: a large stream of
 * fingerprints in execution order, for tests of speed and memory. From one
 * stream to another with a different SEED other records are missing; their
 * hashes are the same.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "hash.h"
#include "num.h"

enum { NAMES = 200 };

static uint64_t
number(int argc, char **argv, int i, uint64_t otherwise)
{
	uint64_t v = otherwise;
	if (i < argc && num_u64(str_c(argv[i]), 0, UINT64_MAX, &v, NULL))
		exit(2);
	return v;
}

int
main(int argc, char **argv)
{
	uint64_t n = number(argc, argv, 1, 1000);
	uint64_t missing = number(argc, argv, 2, 0);
	uint64_t seed = number(argc, argv, 3, 1);
	uint64_t ranks = number(argc, argv, 4, 1), seq = 0, records = 0;
	struct u128 sum = { 0, 0 };
	struct buf text = { 0 };
	char line[512];
	printf("head\tof=fp\tversion=1\ttool=test\torder=exec\n");
	for (uint64_t i = 0; i < n; i++) {
		uint64_t r = hash_table(&i, sizeof i, seed) % 1000;
		struct u128 h = hash_xxh3(&i, sizeof i);
		uint64_t k = i / ranks;
		if (r < missing)
			continue;
		int len = snprintf(line, sizeof line,
		    "fp\tname=model.layers.%" PRIu64
		    ".mlp\tdtype=bf16\tshape=4096,4096\tbytes=33554432\t"
		    "hash=xxh3-128:%016" PRIx64 "%016" PRIx64 "\tstep=%" PRIu64
		    "\trank=%" PRIu64 "\tio=%s\tseq=%" PRIu64,
		    k / 2 % NAMES, h.hi, h.lo, k / 2 / NAMES, i % ranks,
		    k % 2 ? "out" : "in", seq++);
		sum = u128_add(sum, hash_xxh3(line, (size_t)len));
		records++;
		puts(line);
	}
	u128_put(&text, sum);
	printf("end\trecords=%" PRIu64 "\tsum=%s\tstatus=0\n", records,
	    buf_cstr(&text));
	buf_free(&text);
	return fclose(stdout) ? 1 : 0;
}
