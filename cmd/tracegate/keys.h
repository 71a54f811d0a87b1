/*
 * Kinds of events: a category and a name with runs of digits folded to `#`,
 * so that ProfilerStep#12 and ProfilerStep#13 are one. Bounded: what comes
 * after the table is full falls under KEY_OVERFLOW and is counted.
 */
#ifndef KEYS_H
#define KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "cost.h"
#include "event.h"
#include "hist.h"
#include "map.h"
#include "pace.h"
#include "peers.h"
#include "str.h"

enum {
	KEY_NAME_MAX = 192,  /* bytes of a folded name that count */
	KEYS_LIVE = 1024,    /* 6 MiB of histograms */
	KEYS_FILE = 8192,    /* no eviction in a file: ids stay valid */
	KEYS_RESERVED = 256, /* of them only for sync points and steps */
	KEYS_PEERS = 16,     /* kinds with peers, 0.4 MiB each */
	KEY_OVERFLOW = 0,
	KEY_WARM = 32, /* first samples that stay out of the histogram */
	KEY_CACHE = 4096,
};

enum key_class {
	CLASS_PLAIN = 0,
	CLASS_SYNC = 1, /* a synchronisation point: always kept */
	CLASS_STEP = 2, /* a step of the program: always kept */
	CLASS_META = 3, /* names of processes and threads: always kept */
};

struct key {
	char text[2 * KEY_NAME_MAX + 2]; /* category, NUL, folded name, NUL */
	uint16_t cat_len, name_len;
	uint8_t cls;
	bool fixed;      /* thresholds come from a baseline */
	uint64_t events; /* all */
	uint64_t slices; /* with a duration */
	uint64_t opened;
	int64_t far; /* the longest opening beyond DETECT_HUGE thresholds */
	int64_t warm[KEY_WARM];
	int64_t slo;     /* 0: none */
	int64_t fixed_t; /* threshold of the baseline */
	int64_t fixed_median;
	struct hist *hist;
	struct hist_rest rest; /* file mode */
	struct quantiles q;    /* live mode, as of the last recomputation */
	int64_t last_end;      /* of the last slice: gaps */
	struct hist *gap;      /* sync points: time between two */
	uint64_t ngap;
	int64_t last_wall; /* live: when that was, by our clock */
	bool beat_missed;
	struct hist *roll;   /* of recent halves, for shifts */
	struct pace *pace;   /* --steady, or NULL */
	struct peers *peers; /* --peers, or NULL */
	uint64_t compared;   /* slices, with those of peers */
	struct cost *cost;   /* its slices carry one; or NULL */
};

/* One row of a preset: which events are what. */
struct sync_rule {
	const char *cat, *name; /* GLOBs */
	uint8_t cls;
};

struct keys {
	struct key *key;
	uint32_t n, cap, plain; /* in use, room, in use and not reserved */
	bool evict;
	struct map map; /* text -> id */
	struct {
		uint64_t hash;
		uint32_t id;
	} cache[KEY_CACHE];
	uint32_t ncosts, npeers;
	uint64_t overflow, overflow_sync; /* events without a key */
	uint64_t pressure;                /* of them since the last eviction */
	const struct sync_rule *rule;
	size_t nrules;
};

/* `rule` is kept by reference. */
void keys_init(
    struct keys *k, bool live, const struct sync_rule *rule, size_t nrules);
void keys_free(struct keys *k);

/* The id of an event's key. */
uint32_t keys_of(struct keys *k, const struct event *ev);
/* By category and folded name; KEY_OVERFLOW if there is no room. */
uint32_t keys_named(struct keys *k, struct str cat, struct str name);
struct str key_name(const struct key *k);
struct str key_cat(const struct key *k);

/* The costs of a key, made on the way; NULL when there are too many. */
struct cost *keys_cost(struct keys *k, uint32_t id);

/* Folds runs of digits to `#`; bytes used of to[KEY_NAME_MAX]. */
size_t key_fold(char *to, struct str name);

/*
 * The rules of --preset (comma separated names) appended to *rule, which is
 * malloced. A usage error for an unknown name.
 */
void sync_preset(const char *names, struct sync_rule **rule, size_t *n);
void sync_add(struct sync_rule **rule, size_t *n, struct sync_rule r);
#endif
