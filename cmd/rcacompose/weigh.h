/*
 * From an agent's lines about one entity to its answer: relevance in time,
 * clocks, thin evidence, contradictions. What the rules then make of the
 * answers is compose.h.
 */
#ifndef WEIGH_H
#define WEIGH_H

#include "compose.h"
#include "facts.h"

struct reply {
	enum answer answer;
	const char *reason; /* of a U, or a remark on an F or H; may be NULL */
	int32_t line;       /* the evidence it rests on, or NONE */
	uint32_t root;      /* of an F */
	bool background;    /* U because of an older fault still active */
	bool accuses;       /* an F was there, whatever became of it */
};

struct weigher {
	const struct facts *facts;
	int64_t now; /* ns: nothing may be stamped after it */
	bool gaps;   /* lines may be missing: silence is not health */
	/* Why an agent that says nothing is silent; NULL: missing. */
	const char *silence[STACK_AGENTS_MAX];
	bool waiting[STACK_AGENTS_MAX]; /* not consulted */
	/* Scratch. */
	unsigned char direction;
	struct span *span;
	size_t cap;
	/* When the agent said healthy, for one entity; sorted. */
	struct span *health;
	int64_t *healed; /* the times of those lines */
	size_t nhealth, nhealed, health_cap;
};

void weigher_free(struct weigher *w);
/* The answer of agent number a about the entity at `root`. */
struct reply weigh(struct weigher *w, size_t a, int32_t root);
/* What the symptom agents say about the complaining flows. */
struct reply weigh_symptom(struct weigher *w, size_t a, int32_t flow);

#endif
