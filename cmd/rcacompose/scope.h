/*
 * Which entities an incident is about, and which lines of evidence speak of
 * them: what lies on the paths of the complaining flows, what belongs to it,
 * what is listed. A link may be spelled with and without its direction.
 */
#ifndef SCOPE_H
#define SCOPE_H

#include "facts.h"

enum { SPELLINGS = 4 };

/* Entities, each once; released with free(list.e). */
struct list {
	int32_t *e;
	size_t n, cap;
};

/* The candidates; they are marked in the facts. */
void scope_candidates(struct facts *f, struct list *l);
/*
 * Gives each candidate its lines, in the order of the input. Returns how many
 * entities have evidence and are no candidates.
 */
size_t scope_lines(struct facts *f, const struct list *candidates);

/* Is it a flow: what complains, and never a culprit? */
bool scope_is_flow(const struct facts *f, int32_t e);
/* The entities, other than e, that are the same link or a part of it. */
size_t
scope_spellings(const struct facts *f, int32_t e, int32_t out[SPELLINGS]);
/* The candidate "link:A<sep>B", or NONE. */
int32_t
scope_link(const struct facts *f, struct str a, const char *sep, struct str b);

#endif
