/*
 * Unit tests are plain programs: CHECK what must hold, end with test_done().
 * A failed check prints file, line and text and the program goes on.
 */
#ifndef TEST_H
#define TEST_H

#include <stdio.h>

static int test_checks, test_failures;

#define CHECK(cond) test_check((cond), __FILE__, __LINE__, #cond)

static inline int
test_check(int ok, const char *file, int line, const char *text)
{
	test_checks++;
	if (!ok) {
		test_failures++;
		fprintf(stderr, "%s:%d: check failed: %s\n", file, line, text);
	}
	return ok;
}

/* Prints one line for the test counter; the exit status of main. */
static inline int
test_done(const char *name)
{
	printf("%s: %d checks, %d failed\n", name, test_checks, test_failures);
	return test_failures || !test_checks;
}

#endif
