/*
 * What a call of a tiny function costs in CPU time: the best of many batches,
 * so that other load on the machine hardly matters. Prints nanoseconds a call.
 * The same source is built plain, with sleds, with hooks and for uftrace; with
 * SITE=quick or SITE=naive it calls a function of nine instructions that begins
 * with one the kernel emulates, or with none near its start (x86-64).
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

#ifdef SITE
int quick(int x);
int naive(int x);
#define MOVES "mov %edi, %eax\n" /* the kernel steps it */
#define FUNCTION(name, first)                                                 \
	__asm__(".globl " name "\n"                                           \
		".type " name ", @function\n" name                            \
		":\n" first MOVES MOVES MOVES MOVES MOVES MOVES MOVES "ret\n" \
		".size " name ", .-" name "\n")
FUNCTION("quick", "nop\n");
FUNCTION("naive", MOVES);
#endif

QUIET static uint64_t
now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
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
#ifdef SITE
		for (int i = 0; i < CALLS; i++)
			sum += SITE(i);
#else
		/* Each is eight calls, seven of them nested. */
		for (int i = 0; i < CALLS / 8; i++)
			sum += tiny(9);
#endif
		uint64_t d = now() - a;
		best = d < best ? d : best;
	}
	printf("%.2f\n", (double)best / CALLS);
	return 0;
}
