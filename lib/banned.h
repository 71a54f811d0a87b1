/*
 * Included before everything else in our own builds: what is named here does
 * not compile. Each has a bounded or checked twin that we use instead.
 */
#ifndef BANNED_H
#define BANNED_H

/* Headers first: some declare or wrap these names. */
#include <ctype.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sort.h" /* the one place that calls qsort */

#undef alloca /* a macro where more than POSIX is asked for */
#pragma GCC poison strcpy strcat strncat sprintf vsprintf gets strtok
#pragma GCC poison atoi atol atoll atof alloca asctime ctime tmpnam mktemp
#pragma GCC poison setlocale qsort

#endif
