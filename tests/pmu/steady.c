/*
 * A target for comparing a program with itself: a function of the processor
 * only and one of memory, each some microseconds a call.
 */
#include <stdint.h>
#include <stdlib.h>

#ifndef ROUNDS
#define ROUNDS 3000
#endif
enum { CALLS = 60, WORDS = 1 << 14 };

uint64_t work(uint64_t x);
uint64_t walk(const uint64_t *p);

__attribute__((noinline)) uint64_t
work(uint64_t x)
{
	for (int i = 0; i < ROUNDS; i++)
		x = x * UINT64_C(6364136223846793005) + 1;
	return x;
}

__attribute__((noinline)) uint64_t
walk(const uint64_t *p)
{
	uint64_t sum = 0;
	for (int i = 0; i < WORDS; i += 8)
		sum += p[i];
	return sum;
}

int
main(void)
{
	uint64_t *p = calloc(WORDS, sizeof *p), x = 1;
	for (int i = 0; p && i < CALLS; i++) {
		p[i] = x = work(x);
		x += walk(p);
	}
	free(p);
	return x == 0;
}
