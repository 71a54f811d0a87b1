/* Calls what hand.S has; the last word of the output is a checksum. */
#include <stdio.h>

int leaf(void);
int twice(void);
int tail(void);
long loopn(long n);
void *copy(void *to, const void *from, long n);
int fib(int n);

int
main(void)
{
	static char a[1000] = "x", b[1000];
	int sum = 0;
	for (int i = 0; i < 5; i++)
		sum += leaf();
	sum += twice() + tail() + tail();
	loopn(1);
	loopn(1000);
	copy(b, a, sizeof a);
	copy(b, a, 0);
	sum += fib(12) + b[0];
	printf("sum %d\n", sum);
	return 3;
}
