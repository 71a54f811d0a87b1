/*
 * From samples to evidence: the rules of `read`, per entity.
 *
 *	COUNTER [gauge] faulty>X healthy<=Y     (or < and >=)
 *
 * A counter counts only as the difference of two stamped samples; a gauge as
 * it is. Between the limits nothing is known. An entity is faulty if one rule
 * says so, healthy if all do.
 */
#ifndef RULES_H
#define RULES_H

#include "ev.h"

enum { RULES_MAX = 64 };

struct rules;

/* SE_EFORMAT says what is wrong with the text. */
struct rules *rules_new(void);
int rules_add(struct rules *r, struct str text, struct err *e);
/*
 * The limits of a rule for "loss", for readers that judge by themselves.
 * False: there are other rules.
 */
bool rules_loss(const struct rules *r, struct ev *ev);
size_t rules_count(const struct rules *r);
/* Was there a counter, of a named entity, that rule i is about? */
bool rules_met(const struct rules *r, size_t i, struct str *counter);
/* "port:{host}/{ifname}": the labels of a sample in braces. */
void rules_entity(struct rules *r, const char *template);
/* The earlier of two samples: remembered, not judged. */
void rules_previous(struct rules *r, bool previous);
void rules_time(struct rules *r, int64_t at);
void rules_sample(struct rules *r, struct ev *ev, const struct sample *s);
/* Writes what is left. */
void rules_finish(struct rules *r, struct ev *ev);
/* Samples whose entity has a label that was not there. */
uint64_t rules_nameless(const struct rules *r);
void rules_free(struct rules *r);

#endif
