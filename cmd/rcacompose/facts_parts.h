/* What the files of facts.h share among themselves. */
#ifndef FACTS_PARTS_H
#define FACTS_PARTS_H

#include "facts.h"

/* Room for one more of `size` bytes; false: no memory. */
bool facts_grow(void *array, size_t n, size_t *cap, size_t size);
#define GROW(f, name, count, cap) \
	facts_grow(&(f)->name, (f)->count, &(f)->cap, sizeof *(f)->name)

/* For what lives as long as what is taken now. */
struct arena *facts_arena(struct facts *f);
/* The entity of this name, added if need be. */
int facts_need(struct facts *f, struct str name, int32_t *out, struct err *e);
/* The entity that a key of the record names. */
int facts_entity_of(struct facts *f, const struct rec *r, const char *key,
    int32_t *out, struct err *e);

/* One record each, of the type in their name. */
int facts_attach(struct facts *f, const struct rec *r, struct err *e);
int facts_alias(struct facts *f, const struct rec *r, struct err *e);
int facts_flow(struct facts *f, const struct rec *r, struct err *e);
int facts_path_of(struct facts *f, const struct rec *r, struct err *e);
int facts_candidate(struct facts *f, const struct rec *r, struct err *e);
int facts_truth(struct facts *f, const struct rec *r, struct err *e);
int facts_alive(struct facts *f, const struct rec *r, struct err *e);
int facts_evidence(
    struct facts *f, const struct rec *r, unsigned source, struct err *e);

#endif
