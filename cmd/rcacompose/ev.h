/*
 * Readers of telemetry text: each turns one format into samples (a counter of
 * a labelled thing at a time) or into records that it writes itself. What
 * samples mean is decided by the rules of the command line, in read.c.
 */
#ifndef EV_H
#define EV_H

#include <math.h>

#include "arena.h"
#include "err.h"
#include "facts.h"
#include "rec.h"
#include "src.h"

enum {
	EV_LABELS_MAX = 64,      /* of one sample */
	EV_TEXT_MAX = 256 << 20, /* bytes of a text that is read at once */
};

struct label {
	struct str key, value;
};

struct sample {
	struct label label[EV_LABELS_MAX];
	size_t nlabels;
	struct str counter;
	double value;
	const char *unknown; /* why there is no value: na, garbled, ... */
	int64_t time;        /* ns, NO_TIME: the time of the whole text */
	bool series;         /* more of the same thing will follow in time */
};

struct ev {
	/* Given to the reader. */
	struct arena *arena; /* of the text */
	const char *header;  /* --header: names of columns, or NULL */
	const char *time_column;
	struct label set[EV_LABELS_MAX]; /* --set KEY=VALUE */
	size_t nset;
	int64_t at, boot, zone; /* ns; zone: local time minus UTC */
	int64_t since;          /* when the measurement began */
	bool zoned;
	double loss_faulty, loss_healthy; /* of probes */
	uint64_t min_n;
	const char *agent;
	struct rec_out *out; /* for records that are no samples */
	/* Called with each sample; NULL while --previous is read for records.
	 */
	void (*take)(struct ev *ev, const struct sample *s);
	void *user;
	/* Filled by the reader. */
	uint64_t bad;  /* lines that were not understood */
	uint64_t left; /* lines that say nothing about anybody */
	bool previous; /* reading the earlier sample: write nothing */
	uint64_t records, samples;
};

struct ev_format {
	const char *name, *help;
	const char *entity; /* default template */
	const char *agent;  /* default name */
	/* One of the two. */
	int (*text)(struct ev *, struct str text, struct err *e);
	int (*stream)(struct ev *, struct src *src, struct err *e);
	bool stamped; /* samples or events carry their own time */
	bool direct;  /* writes evidence or topology itself, without rules */
};

extern const struct ev_format ev_formats[];
const struct ev_format *ev_find(const char *name);

/* ---- for readers --------------------------------------------------------- */

/* A sample with the labels of --set, to be filled further. */
void ev_begin(const struct ev *ev, struct sample *s);
/* Later labels win over earlier ones. */
void ev_label(struct sample *s, const char *key, struct str value);
void ev_label_str(struct sample *s, struct str key, struct str value);
struct str ev_get(const struct sample *s, struct str key);
/* A number with optional thousands commas; N/A and the like are "na". */
void ev_value(struct sample *s, struct str text);
/* Cuts blanks off both ends. */
struct str ev_trim(struct str s);
/* The next word, blanks between. */
bool ev_word(struct str *rest, struct str *word);
/* The value of --set KEY, or empty. */
struct str ev_set(const struct ev *ev, const char *key);
bool ev_has(struct str s, const char *needle);
/* What follows `needle` in s, or p NULL. */
struct str ev_after(struct str s, const char *needle);
/* One evidence record, for readers that know what they see. */
void
ev_evidence(struct ev *ev, struct str entity, const char *status, int64_t time,
    int64_t onset, int64_t until, const char *reason, double bound);
/* Any other record of two keys. */
void ev_pair(struct ev *ev, const char *type, const char *k1, struct str v1,
    const char *k2, struct str v2);
/* printf into the arena. */
struct str ev_fmt(struct ev *ev, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/*
 * The time in front of a kernel log line: "[Sun Feb 23 16:24:18 2025]" with
 * --zone, "[ 123.456]" with --boot. NO_TIME: none that can be placed.
 */
int64_t ev_log_time(const struct ev *ev, struct str line);

/* The readers, one a file. */
int ev_ethtool(struct ev *, struct str, struct err *);
int ev_ip_link(struct ev *, struct str, struct err *);
int ev_sonic(struct ev *, struct str, struct err *);
int ev_prom(struct ev *, struct str, struct err *);
int ev_prom_api(struct ev *, struct str, struct err *);
int ev_snmp(struct ev *, struct str, struct err *);
int ev_fping(struct ev *, struct str, struct err *);
int ev_mtr(struct ev *, struct str, struct err *);
int ev_probes(struct ev *, struct src *, struct err *);
int ev_nvidia_smi(struct ev *, struct str, struct err *);
int ev_dcgm(struct ev *, struct str, struct err *);
int ev_xid(struct ev *, struct str, struct err *);
int ev_mce(struct ev *, struct str, struct err *);
int ev_edac(struct ev *, struct str, struct err *);
int ev_smart(struct ev *, struct str, struct err *);
int ev_lldp(struct ev *, struct str, struct err *);
int ev_route(struct ev *, struct str, struct err *);
int ev_csv(struct ev *, struct src *, struct err *);
int ev_records(struct ev *, struct src *, struct err *);

#endif
