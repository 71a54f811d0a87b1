/*
 * recorder FILE [RECORDS [BAD]]: a training loop that records through the
 * public API, two tensors a step, as fast as it can; without RECORDS until it
 * is killed. From record BAD on the bits are others. Says on stderr when the
 * first records were handed over; status 1 if the stream failed.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "num.h"
#include "straightedge.h"

enum { TOLD = 4000 };

static uint64_t
number(int argc, char **argv, int i)
{
	uint64_t v = UINT64_MAX;
	if (i < argc && num_u64(str_c(argv[i]), 0, UINT64_MAX, &v, NULL))
		exit(2);
	return v;
}

static int
record(struct se_stream *s, uint64_t i, uint64_t bad)
{
	char step[24], name[24];
	uint64_t data[2] = { i, i >= bad }, shape[1] = { 2 };
	struct se_place place = { .size = sizeof place };
	snprintf(step, sizeof step, "%" PRIu64, i / 2);
	snprintf(name, sizeof name, "layer.%" PRIu64, i % 2);
	place.step = step;
	place.rank = "0";
	return se_stream_tensor(
	    s, name, "u64", 1, shape, data, sizeof data, NULL, &place);
}

int
main(int argc, char **argv)
{
	struct se_stream *s;
	struct se_stream_options o = { .size = sizeof o,
		.flags = SE_STREAM_STATIC };
	uint64_t n = number(argc, argv, 2), bad = number(argc, argv, 3);
	if (argc < 2 || se_stream_open(&s, argv[1], &o))
		return 2;
	for (uint64_t i = 0; i < n; i++) {
		if (record(s, i, bad) < 0)
			break;
		if (i == TOLD)
			fputs("running\n", stderr);
		/* Endless, but not at the speed of the disk. */
		if (n == UINT64_MAX && i % 64 == 63)
			nanosleep(&(struct timespec){ 0, 200000 }, NULL);
	}
	return se_stream_close(s) ? 1 : 0;
}
