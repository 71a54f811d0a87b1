/* Calls what guest.S has. */
int leaf(void);
int twice(void);
long loopn(long n);

int
main(void)
{
	for (int i = 0; i < 1000; i++)
		leaf();
	for (int i = 0; i < 10; i++)
		loopn(1000);
	for (int i = 0; i < 5; i++)
		twice();
	return 7;
}
