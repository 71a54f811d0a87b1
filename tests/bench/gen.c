/*
 * Makes large inputs for the benchmarks:
 *
 *	gen records N PERMILLE SEED	an fp stream of N boundaries, of which
 *					PERMILLE/1000 are left out and as many
 *					inserted, decided by SEED
 *	gen tensors N			a safetensors file of N tensors of 4 f32
 *	gen big BYTES			one of 64 MiB tensors, BYTES in all
 *	gen noise BYTES			float-like bytes that deflate a little
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "num.h"
#include "rec.h"

enum { BLOCK = 1 << 20, LAYERS = 32, OPS = 12, PER_STEP = LAYERS * OPS };

static uint64_t
next(uint64_t *s)
{
	uint64_t x = *s += UINT64_C(0x9e3779b97f4a7c15);
	return hash_mix64(&x, sizeof x, 0);
}

static void
put_record(struct rec_out *o, const char *op, uint64_t i)
{
	uint64_t in_step = i % PER_STEP;
	struct u128 h = hash_xxh3(&i, sizeof i);
	rec_begin(o, "fp");
	rec_fmt(o, "name", "layers.%" PRIu64 ".%s", in_step / OPS, op);
	rec_put(o, "dtype", "bf16");
	rec_put(o, "shape", "4096,1024");
	rec_u64(o, "bytes", 8388608);
	rec_hash(o, "hash", "xxh3-128", h);
	rec_u64(o, "step", i / PER_STEP);
	rec_u64(o, "rank", 0);
	rec_put(o, "io", "out");
	rec_end(o);
}

static int
records(uint64_t n, uint64_t permille, uint64_t seed)
{
	static const char *const op[OPS] = { "norm1", "q", "k", "v", "attn",
		"proj", "norm2", "gate", "up", "act", "down", "add" };
	struct rec_how how = { 0 };
	struct rec_out *o;
	struct err e = { 0 };
	if (rec_out_open(&o, STDOUT_FILENO, &how, &e))
		return 1;
	rec_begin(o, "head");
	rec_put(o, "of", "fp");
	rec_u64(o, "version", SCHEMA_VERSION);
	rec_put(o, "tool", "gen");
	rec_put(o, "hash", "xxh3-128");
	rec_put(o, "order", "exec");
	rec_end(o);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t r = next(&seed) % 1000;
		if (permille && r < permille)
			continue;
		if (permille && r >= 1000 - permille)
			put_record(o, "copy", i);
		put_record(o, op[i % OPS], i);
	}
	int bad = rec_out_finish(o, NULL, 0, 0, &e);
	rec_out_close(o);
	return bad != 0;
}

static int
safetensors(uint64_t n, uint64_t elements)
{
	struct buf b = { 0 };
	uint64_t size = elements * 4;
	buf_putc(&b, '{');
	for (uint64_t i = 0; i < n; i++)
		buf_printf(&b,
		    "%s\"t%07" PRIu64 "\":{\"dtype\":\"F32\","
		    "\"shape\":[%" PRIu64 "],\"data_offsets\":[%" PRIu64
		    ",%" PRIu64 "]}",
		    i ? "," : "", i, elements, i * size, (i + 1) * size);
	buf_putc(&b, '}');
	while (b.len % 8)
		buf_putc(&b, ' ');
	for (int i = 0; i < 8; i++)
		putchar((int)((uint64_t)b.len >> (8 * i) & 255));
	fwrite(b.p, 1, b.len, stdout);
	buf_free(&b);

	static uint64_t block[BLOCK / 8];
	uint64_t left = n * size, seed = 1;
	while (left) {
		size_t want = left < BLOCK ? (size_t)left : BLOCK;
		for (size_t i = 0; i < BLOCK / 8; i += 64)
			block[i] = next(&seed);
		if (fwrite(block, 1, want, stdout) != want)
			return 1;
		left -= want;
	}
	return fflush(stdout) != 0;
}

static int
noise(uint64_t bytes)
{
	static uint32_t block[BLOCK / 4];
	uint64_t seed = 1;
	for (uint64_t at = 0; at < bytes; at += BLOCK) {
		for (size_t i = 0; i < BLOCK / 4; i++) {
			uint64_t r = next(&seed);
			block[i] = (uint32_t)(0x3f000000 | (r & 0x7fffff));
		}
		size_t want = bytes - at < BLOCK ? (size_t)(bytes - at) : BLOCK;
		if (fwrite(block, 1, want, stdout) != want)
			return 1;
	}
	return fflush(stdout) != 0;
}

int
main(int argc, char **argv)
{
	uint64_t v[3] = { 0, 0, 0 };
	for (int i = 2; i < argc && i < 5; i++)
		if (num_size(str_c(argv[i]), 0, UINT64_MAX, &v[i - 2], NULL))
			return 2;
	if (argc == 5 && !strcmp(argv[1], "records"))
		return records(v[0], v[1], v[2]);
	if (argc == 3 && !strcmp(argv[1], "tensors"))
		return safetensors(v[0], 4);
	if (argc == 3 && !strcmp(argv[1], "big"))
		return safetensors(v[0] >> 26, 1 << 24);
	if (argc == 3 && !strcmp(argv[1], "noise"))
		return noise(v[0]);
	fprintf(stderr, "usage: gen records N PERMILLE SEED | tensors N | "
			"big BYTES | noise BYTES\n");
	return 2;
}
