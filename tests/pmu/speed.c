/*
 * What a call of a tiny function costs: the best of many short batches, so
 * that other load on the machine hardly matters. Prints nanoseconds a call.
 * The same source is built plain, with sleds, with hooks and for uftrace.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CALLS = 2000, BATCHES = 400 };

#define QUIET __attribute__((no_instrument_function))

int tiny(int x);

__attribute__((noinline)) int
tiny(int x)
{
	return x < 3 ? x : tiny(x - 1) + 1;
}

QUIET static uint64_t
now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int
main(int argc, char **argv)
{
	uint64_t best = UINT64_MAX;
	int batches = argc > 1 ? (int)strtol(argv[1], NULL, 10) : BATCHES;
	volatile int sum = 0;
	for (int b = 0; b < batches; b++) {
		uint64_t a = now();
		/* Each is eight calls, seven of them nested. */
		for (int i = 0; i < CALLS / 8; i++)
			sum += tiny(9);
		uint64_t d = now() - a;
		best = d < best ? d : best;
	}
	printf("%.2f\n", (double)best / CALLS);
	return 0;
}
