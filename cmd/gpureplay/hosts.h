/* Lists of hosts and the words of a launcher. */
#ifndef HOSTS_H
#define HOSTS_H

#include <stddef.h>

#include "arena.h"
#include "err.h"

enum { HOSTS_MAX = 1024, WORDS_MAX = 256 };

/*
 * "n[1-4,07],login" as names, in the arena, of which there are at most
 * HOSTS_MAX. Numbers keep their leading zeros.
 */
int hosts_expand(const char *list, struct arena *a, const char **name,
    size_t *n, struct err *e);

/*
 * Cuts a template at blanks; '...' and "..." hold words with blanks together.
 * At most WORDS_MAX words.
 */
int words_split(const char *text, struct arena *a, const char **word, size_t *n,
    struct err *e);

#endif
