/* Loaded by hard.cc while it runs. */
int plugged(int x);

static __attribute__((noinline)) int
helper(int x)
{
	__asm__ volatile("");
	return x * 2;
}

int
plugged(int x)
{
	return helper(x) + 1;
}
