/* The shared memory of a run, and its end: a result. */
#ifndef SESSION_H
#define SESSION_H

#include "event.h"
#include "object.h"
#include "result.h"
#include "rt/engine.h"

struct session {
	int fd;
	struct pmu_head *head;
	struct pmu_func *func; /* PMU_FUNCS of them */
	size_t mapped;         /* bytes of head and functions */
	struct event_set events;
	/* pmucount's own view of the objects in head->object[]. */
	struct object *object[PMU_OBJECTS];
	/* The function of object[] behind each func[] (the target could have
	 * written over the shared copy). */
	struct {
		uint32_t object, func, before;
	} * known;
	uint32_t nknown, nobjects;
	uint64_t asked[PMU_OBJECTS]; /* functions selected of each object */
	uint32_t nidle;              /* of known[]: see session_idle() */
};

int session_open(struct session *s, const struct event_set *ev, struct err *e);
void session_close(struct session *s);

/* Adds an object (taken over); its number, or an error. */
int session_object(
    struct session *s, struct object *o, uint64_t base, struct err *e);
/* Adds a function of it; its number, or SE_ELIMIT. */
int session_func(struct session *s, uint32_t object, uint32_t func,
    const struct site *site, struct err *e);

/* A sled that is not wanted, of five NOPs which the runtime makes one. */
void session_idle(
    struct session *s, uint32_t object, uint32_t func, const struct site *site);

/* Block i, mapped for the caller; NULL if it cannot be. For backends that
 * count from outside; blocks stay mapped until session_close. */
int session_block(struct session *s, uint32_t i, struct pmu_view *v);

/* Sums the blocks up, closing what is still open as unfinished. */
int session_result(struct session *s, struct result *r, struct err *e);

#endif
