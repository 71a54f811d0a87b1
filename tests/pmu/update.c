/*
 * The story of an optimisation that a sampling profile gets wrong: update() by
 * several short instructions, or (ATOMIC) by one that takes long. Called 300
 * times, and once more with an argument.
 */
void update(long x);

static long sum;
#ifndef ATOMIC
static volatile long seen;
#endif

__attribute__((noinline)) void
update(long x)
{
#ifdef ATOMIC
	__atomic_fetch_add(&sum, x, __ATOMIC_SEQ_CST);
#else
	long n = sum + x;
	seen = n;
	if (n < 0)
		seen = 1;
	sum = n;
#endif
}

int
main(int argc, char **argv)
{
	for (int i = 0; i < 300 + (argc > 1); i++)
		update(i);
	return sum == 0;
}
