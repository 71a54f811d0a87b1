/*
 * Records: one line each, type TAB key=value TAB ... LF, as described in
 * straightedge-records(5).
 *
 *	src -> rec_in -> struct rec          one reader for every command
 *	rec_begin .. rec_end -> rec_out      one writer for every format
 */
#ifndef REC_H
#define REC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "hash.h"
#include "schema.h"
#include "src.h"
#include "str.h"

#define REC_LINE_MAX (1u << 20)  /* bytes in a line: a name and 4096 tiles */
#define REC_SKIP_MAX (64u << 20) /* an overlong line this long is no text */
#define REC_FIELDS_MAX 256       /* key=value pairs in a line */

struct rec_field {
	struct str key, value; /* value with escapes undone */
};

struct rec {
	struct str type;
	size_t n;
	struct rec_field field[REC_FIELDS_MAX];
	const struct schema_type *schema; /* NULL: a type we do not know */
	struct str raw;                   /* the line as read, without LF */
	uint64_t line;                    /* number in its input, from 1 */
};

/* The value of a key, or NULL. The pointer lives as long as the record. */
const struct str *rec_get(const struct rec *r, const char *key);
/* The same, empty (p NULL) when absent. */
struct str rec_text_of(const struct rec *r, const char *key);
/* Absent: *out is left alone and 0 returned. Bad: SE_EFORMAT names the key. */
int
rec_u64_of(const struct rec *r, const char *key, uint64_t *out, struct err *e);
int
rec_time_of(const struct rec *r, const char *key, int64_t *ns, struct err *e);
int
rec_f64_of(const struct rec *r, const char *key, double *out, struct err *e);

/* ---- reading ----------------------------------------------------------- */

struct rec_in;

/* How whole an input is, once its end was reached. */
enum rec_state {
	REC_COMPLETE = 1, /* every head has its end, counts and sums agree */
	REC_FILTERED = 2, /* fewer records than its ends say, or no end */
	REC_TYPED = 3,    /* neither head nor end, and of types to be typed */
	REC_ALTERED = 4,  /* more records than its ends say, or another sum */
};

struct rec_totals {
	uint64_t lines;   /* all of them */
	uint64_t records; /* all but head, end, comments and blank lines */
	uint64_t bad;     /* lines that could not be used */
	uint64_t heads, ends;
	uint64_t declared; /* sum of records= over all ends */
	struct u128 sum, declared_sum;
	uint64_t ended[4]; /* ends by their status=, absent counts as 0 */
	uint64_t skipped;  /* sum of skipped= over all ends */
	uint64_t lost;     /* sum of lost= over all ends */
	bool torn;         /* compressed input was cut short or damaged */
	bool recorded;     /* before any head: records that no person types */
};

/* Takes over `src`, also when it fails. */
int rec_in_open(struct rec_in **out, struct src *src, struct err *e);
void rec_in_close(struct rec_in *in);

/*
 * The next record. 1: *r is filled and valid until the next call. 0: the end.
 * SE_EFORMAT: a bad line, counted; e says "LINE: reason" and the next call
 * goes on behind it. SE_EUNSUP: the stream is of a later version.
 * SE_ETRUNC, SE_EIO: the input broke here; the next call returns 0.
 * SE_ELIMIT: a line without end, as from a device; the next call returns 0.
 * Heads and ends are delivered like other records; comments and blank lines
 * are not. Known types are checked for their required keys.
 */
int rec_in_next(struct rec_in *in, struct rec *r, struct err *e);

/*
 * The same in two steps, for readers that can often do without the second:
 * the raw line (1, 0 or an error as above), then its parse (0 or SE_EFORMAT,
 * counted as bad).
 */
int rec_in_line(struct rec_in *in, struct str *line, struct err *e);
int
rec_in_parse(struct rec_in *in, struct str line, struct rec *r, struct err *e);
/*
 * For comparing two inputs: if the next line of `in` is the same as `line`,
 * which rec_in_line just gave from `other` and which is no head or end, takes
 * it: true. False says nothing: then ask rec_in_line.
 */
bool
rec_in_twin(struct rec_in *in, const struct rec_in *other, struct str line);
/* Counts the current line as bad (a reader's own check failed). */
void rec_in_bad(struct rec_in *in);

const struct rec_totals *rec_in_totals(const struct rec_in *in);
enum rec_state rec_totals_state(const struct rec_totals *t);
/* Adds `from` to `to`: several inputs that are one whole. */
void rec_totals_add(struct rec_totals *to, const struct rec_totals *from);

/* Could these bytes be the start of a record stream? For probes. */
bool rec_probe(const void *p, size_t len);
/* Or of one whose first lines were damaged: is any line like a record? */
bool rec_probe_any(const void *p, size_t len);

/*
 * Parses one line (without LF). Values with escapes are undone into `undone`,
 * which needs line.len bytes. Checks syntax, duplicate keys and the required
 * keys of known types; no file name and no line number in the message.
 */
int rec_parse(struct str line, char *undone, struct rec *r, struct err *e);

/* ---- writing ----------------------------------------------------------- */

struct rec_out;

enum rec_form {
	REC_LINES = 0,
	REC_TABLE = 1, /* aligned, for people */
	REC_JSON = 2,  /* JSON Lines */
	REC_TSV = 3,
	REC_CSV = 4,
};

struct rec_how {
	int form;
	const char *type;    /* main type: what table, tsv and csv print */
	const char *columns; /* their columns, comma separated; NULL: all */
	bool gzip;           /* members of at most 64 KiB */
	bool live;           /* a recorder: written out every second */
	int level;           /* 0 all records, 1 only verdicts (-q) */
	/* Takes finished text instead of the descriptor; 0 or an error. */
	int (*sink)(void *user, const char *p, size_t len, struct err *e);
	void *user;
};

/* Writes to `fd`, which stays open and belongs to the caller, or to a sink. */
int rec_out_open(
    struct rec_out **out, int fd, const struct rec_how *how, struct err *e);

/*
 * A record: begin, its keys in the order of the schema (asserted), end. The
 * x.* and label keys come last. Failures stick until rec_out_flush.
 */
void rec_begin(struct rec_out *o, const char *type);
void rec_str(struct rec_out *o, const char *key, struct str value);
void rec_put(struct rec_out *o, const char *key, const char *value);
/* A label or x.* key: letters, digits, `_`, `-` and `.`, as rec_parse wants. */
void rec_label(struct rec_out *o, struct str key, struct str value);
void rec_fmt(struct rec_out *o, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void rec_u64(struct rec_out *o, const char *key, uint64_t v);
void rec_i64(struct rec_out *o, const char *key, int64_t v);
void rec_f64(struct rec_out *o, const char *key, double v);
void rec_time(struct rec_out *o, const char *key, int64_t ns);
void rec_hash(
    struct rec_out *o, const char *key, const char *algorithm, struct u128 v);
void rec_end(struct rec_out *o);

/*
 * Passes a record on: the same bytes, unless the line held bytes that have to
 * be escaped and were not.
 */
void rec_copy(struct rec_out *o, const struct rec *r);
/* `# text`: a comment line; not in the other formats. */
void rec_comment(struct rec_out *o, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * end records= sum= [result=] status= [skipped=] for the records since the
 * last head, and counts from zero: for output of several streams in a row.
 * result may be NULL.
 */
void rec_out_end(
    struct rec_out *o, const char *result, int status, uint64_t skipped);
/*
 * The same for the last or only stream. Then everything is written out. The
 * first failure of the whole output, if any.
 */
int rec_out_finish(struct rec_out *o, const char *result, int status,
    uint64_t skipped, struct err *e);
/* Counts records that were never written, for lost= in the end record. */
void rec_out_lost(struct rec_out *o, uint64_t n);
/* What is buffered goes to the descriptor (one gzip member). */
int rec_out_flush(struct rec_out *o, struct err *e);
/* Fields that tsv, csv or table had no column for. */
uint64_t rec_out_dropped(const struct rec_out *o);
void rec_out_close(struct rec_out *o);

#endif
