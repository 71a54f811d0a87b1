/*
 * What the records say about one incident: entities and how they belong
 * together, the complaining flows and their paths, and lines of evidence.
 *
 * A stream may hold many incidents. What stands before the first one (the
 * topology) is kept for all of them: facts_mark() keeps it, facts_rewind()
 * forgets the rest.
 */
#ifndef FACTS_H
#define FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "err.h"
#include "map.h"
#include "rec.h"
#include "stack.h"
#include "str.h"

#define NO_TIME INT64_MIN
enum { NONE = -1 }; /* no index */

enum {
	ENTITIES_MAX = 1 << 21, /* names: a large fabric has 350,000 links */
	LINES_MAX = 1 << 23,    /* lines of evidence of one incident */
	HOPS_MAX = 4096,        /* of one path */
	ENTITY_NAME_MAX = 4096, /* bytes */
};

/* How an entity belongs to others; the part that an incident may change. */
struct ties {
	int32_t same;     /* towards the root of its aliases; itself */
	int32_t ring;     /* next of its aliases, in a circle */
	int32_t label;    /* at the root: the one whose name is shown */
	uint32_t size;    /* at the root: number of aliases */
	int32_t up, down; /* first edge to a parent, to a child */
};

struct entity {
	struct str name, kind;
	struct ties ties, kept;
	/* Of the current incident, and valid at the root only. */
	int32_t first;     /* its lines of evidence */
	int32_t last_flow; /* the flow that was counted last */
	int32_t complaint; /* of a flow: its index */
	uint32_t flows;    /* affected paths it lies on */
	int32_t finding;   /* index once judged */
	bool candidate, touched, has_path;
};

struct edge {
	int32_t child, parent, next_up, next_down;
};

enum status { SAYS_UNKNOWN, SAYS_FAULTY, SAYS_HEALTHY };

/* One line of evidence. */
struct line {
	int32_t entity, next;
	uint16_t agent, source; /* source: index of its file */
	unsigned char status;
	unsigned char direction;    /* of an undirected link: 1, 2, 0 both */
	bool hard;                  /* unusable: its time says nothing */
	uint32_t root;              /* where its chain begins */
	int64_t time, onset, until; /* ns, or NO_TIME */
	double bound;               /* NAN: none given */
	const char *reason;         /* of an unknown */
	uint64_t number;            /* line in its file */
};

struct alive {
	uint16_t agent;
	struct str entity; /* a name, or a prefix and '*' */
	int64_t since, until;
};

/* Who complains; its ends are hosts. */
struct flow {
	int32_t entity;
	struct str src, dst;
};

struct facts {
	const struct stack *stack;
	struct facts *also;      /* gets the same records, for another stack */
	struct arena keep, temp; /* before and after the mark */
	struct map old, fresh;   /* names, before and after the mark */
	bool marked;

	struct entity *entity;
	size_t nentities, entities_cap, entities_kept;
	struct edge *edge;
	size_t nedges, edges_cap, edges_kept;
	struct line *line;
	size_t nlines, lines_cap, lines_kept;
	struct alive *alive;
	size_t nalive, alive_cap, alive_kept;
	struct flow *flow; /* that complain */
	size_t nflows, flows_cap;
	int32_t *listed; /* candidate records */
	size_t nlisted, listed_cap;
	int32_t *onpath; /* entities on affected paths */
	size_t nonpath, onpath_cap;
	int32_t *truth;
	size_t ntruths, truths_cap;
	bool truth_none, truth_unknown;
	int32_t *touched; /* entities with something to rewind */
	size_t ntouched, touched_cap;

	/* The incident. */
	bool incident; /* there is one */
	struct str id;
	const char *group_by;    /* a key of its record, or NULL */
	struct str group;        /* its value */
	int64_t start, end, now; /* ns, or NO_TIME */
	bool undirected;         /* some link has no direction */
	bool trusted; /* what comes now may say that silence is health */

	/* What was left aside. */
	uint64_t other_agents, refused;
};

void facts_init(struct facts *f, const struct stack *s);
void facts_free(struct facts *f);
/* What is there now stays; what comes is forgotten by facts_rewind. */
void facts_mark(struct facts *f);
void facts_rewind(struct facts *f);

/*
 * Takes one record; types it does not know are no affair of it. SE_EFORMAT:
 * the record is bad (and, if it was evidence that could be placed, its agent
 * is now unknown(garbled) there). `incident` records are taken by
 * facts_incident.
 */
int
facts_add(struct facts *f, const struct rec *r, unsigned source, struct err *e);
int facts_incident(struct facts *f, const struct rec *r, struct err *e);
/* A line that is no record: its agent, if it can be read, is garbled. */
void facts_garbled(
    struct facts *f, struct str line, unsigned source, uint64_t number);
/* --path A,B,C of flow number n. */
int facts_path(struct facts *f, unsigned n, struct str nodes, struct err *e);
/* A path as in a path record. */
int
facts_hops(struct facts *f, struct str flow, struct str hops, struct err *e);

/* The entity of this name, added if need be; NONE: no memory or too many. */
int32_t facts_entity(struct facts *f, struct str name);
/* The entity of this name, or NONE. */
int32_t facts_find(const struct facts *f, struct str name);

/* To be called before e is changed: facts_rewind puts it back. */
bool facts_touch(struct facts *f, int32_t e);

/* The one that stands for all aliases of e. */
static inline int32_t
facts_root(const struct facts *f, int32_t e)
{
	while (f->entity[e].ties.same != e)
		e = f->entity[e].ties.same;
	return e;
}

/* The name to show for e. */
static inline struct str
facts_name(const struct facts *f, int32_t e)
{
	return f->entity[f->entity[facts_root(f, e)].ties.label].name;
}

/* "link:a>b" or "link:a--b": the ends. False for anything else. */
bool link_ends(struct str name, struct str *a, struct str *b, bool *directed);

#endif
