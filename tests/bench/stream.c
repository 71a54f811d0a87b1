/*
 * What a record costs the caller of the boundary stream: stream N [MODE] writes
 * N records to FILE and prints nanoseconds a call. MODE "data" hashes 64 bytes,
 * "known" passes a fingerprint that is there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "straightedge.h"

int
main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	char *end;
	long n = strtol(argv[1], &end, 10);
	const char *known = strcmp(argv[2], "known")
				? NULL
				: "xxh3-128:06b05ab6733a618578af5f94892f3950";
	unsigned char data[64] = { 1 };
	uint64_t shape[2] = { 4, 16 };
	struct se_stream_options o = {
		.size = sizeof o, .rank = "0", .queue = 1 << 30
	};
	struct se_place p = { .size = sizeof p, .step = "17", .io = "out" };
	struct se_stream *s;
	if (*end || se_stream_open(&s, argv[3], &o))
		return 1;
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (long i = 0; i < n; i++)
		if (se_stream_tensor(s, "layers.11.attention.out", "u8", 2,
			shape, data, sizeof data, known, &p))
			return 1;
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("%.1f\n", ((double)(b.tv_sec - a.tv_sec) * 1e9 +
			     (double)(b.tv_nsec - a.tv_nsec)) /
			     (double)n);
	return se_stream_close(s) != 0;
}
