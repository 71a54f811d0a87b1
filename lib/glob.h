/*
 * Patterns of the command line: `*` any bytes, `?` one byte, `[a-z]` and
 * `[!a-z]` one of a set, `\` takes the next byte as it is. A slash or a dot is
 * a byte like others, and the whole text has to match.
 */
#ifndef GLOB_H
#define GLOB_H

#include <stdbool.h>

#include "str.h"

/* At most pattern.len * text.len steps. A broken set matches itself. */
bool glob_match(struct str pattern, struct str text);

#endif
