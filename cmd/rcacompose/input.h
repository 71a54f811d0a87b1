/*
 * Record files into facts, and what was wrong with them.
 */
#ifndef INPUT_H
#define INPUT_H

#include "cli.h"
#include "facts.h"

enum { INPUTS_MAX = 60000 }; /* files with evidence: a line has 16 bits */

/* The files of one evaluation, by the number that lines of evidence carry. */
struct inputs {
	char **name;
	size_t n, cap;
};

unsigned inputs_add(struct inputs *in, const char *name);
const char *inputs_name(const struct inputs *in, unsigned source);
void inputs_free(struct inputs *in);

/*
 * Called where an incident begins (with its record) in a stream that may hold
 * many, and with NULL at the end of the stream. `damage` is that of the input
 * since the last call, and of the whole stream as far as it is known.
 */
typedef void
incident_fn(void *user, const struct rec *r, const struct damage *damage);

/*
 * Reads records from a file ("-": standard input) into the facts. Bad lines
 * go to stderr, the first few of them, and into *damage. False: it could not
 * be opened. With `begin`, incident records are handed over; without, the
 * file describes at most one incident.
 */
bool input_read(struct facts *f, struct inputs *in, const char *path,
    struct damage *damage, incident_fn *begin, void *user);

/* What is wrong with two parts is wrong with the whole. */
void damage_merge(struct damage *to, const struct damage *d);

/*
 * The same from memory, for what an agent printed: evidence of its own. False:
 * some of it could not be read, or is missing.
 */
bool input_text(struct facts *f, struct inputs *in, const char *name,
    struct str text, int agent, struct damage *damage);

#endif
