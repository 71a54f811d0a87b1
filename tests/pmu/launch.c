/*
 * Executes the words of $LAUNCH, split at blanks. Statically linked: it does
 * not take the preloaded runtime, which is meant for what it executes.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS = 16 };

int
main(void)
{
	char *argv[WORDS], *text = getenv("LAUNCH");
	int n = 0;
	for (char *w = strtok(text, " "); w && n < WORDS - 1;
	     w = strtok(NULL, " "))
		argv[n++] = w;
	argv[n] = NULL;
	if (n)
		execv(argv[0], argv);
	return 127;
}
