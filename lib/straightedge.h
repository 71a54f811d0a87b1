/*
 * libstraightedge: fingerprints, boundary streams, records.
 *
 * C ABI: opaque handles and functions only. Structures that may grow carry
 * their own size first; set it with sizeof. No globals, no output but what was
 * asked for, no exit. A handle is used by one thread at a time unless said
 * otherwise. Functions return 0 (or a count) or a negative SE_E code; codes
 * may be added, so expect unknown ones. Manual: straightedge(3).
 */
#ifndef STRAIGHTEDGE_H
#define STRAIGHTEDGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum se_error {
	SE_EIO = -1,     /* the system refused */
	SE_EFORMAT = -2, /* the input breaks its format */
	SE_ETRUNC = -3,  /* the input ends too early */
	SE_ELIMIT = -4,  /* a limit of the library was reached */
	SE_EUNSUP = -5,  /* valid, but not supported */
	SE_ENOMEM = -6,  /* out of memory */
	SE_EINVAL = -7,  /* an argument is wrong */
	SE_ENOENT = -8   /* what was asked for is not there */
};

/* "0.1.0": of the library that is running, not of this header. */
const char *se_version(void);

/* ---- fingerprints ------------------------------------------------------- */

/* Room for any fingerprint text, with its NUL. */
#define SE_FINGERPRINT_SIZE 64

/*
 * The fingerprint of `len` bytes as text: "xxh3-128:" or "mix64:" and lower
 * case hex. `algorithm` is that word; NULL means xxh3-128. Bytes are those of
 * the tensor in C order, little-endian.
 */
int se_fingerprint(const char *algorithm, const void *data, size_t len,
    char *text, size_t size);

/*
 * mix64 of a piece whose first 64-bit word has index `first` in the whole;
 * pieces add up modulo 2^64. Every piece but the last is a multiple of eight
 * bytes. The definition is in straightedge-fingerprints(5).
 */
uint64_t se_mix64(const void *data, size_t len, uint64_t first);

/*
 * Adds the shardsum terms of a run of consecutive units to sum[2] (high word,
 * low word): the data is cut into units of `unit` bytes, the last one may be
 * shorter; `first` is the global index of the first. Start with zeros, add
 * shards in any order. SE_EINVAL if unit is 0.
 */
int se_shardsum(
    const void *data, size_t len, size_t unit, uint64_t first, uint64_t sum[2]);

/* The same digest from data that comes in pieces. */
struct se_hasher;
int se_hasher_open(struct se_hasher **h, const char *algorithm);
int se_hasher_add(struct se_hasher *h, const void *data, size_t len);
/* May be called at any time; more data may follow. */
int se_hasher_text(const struct se_hasher *h, char *text, size_t size);
void se_hasher_reset(struct se_hasher *h);
void se_hasher_close(struct se_hasher *h);

/* ---- boundary stream ---------------------------------------------------- */

/*
 * A stream of fingerprints that grows in a file. Records go to a queue; one
 * thread of the library writes them, at least once a second. The caller never
 * waits for the disk: when the queue is full the record is dropped, counted
 * and reported in the end record as lost=. What was written stays readable
 * after kill -9 and is then seen as incomplete.
 */
struct se_stream;

enum se_stream_flag {
	SE_STREAM_GZIP = 1,  /* gzip members of at most 64 KiB or a second */
	SE_STREAM_STATIC = 2 /* no time= and host= in the head */
};

struct se_stream_options {
	size_t size; /* sizeof(struct se_stream_options) */
	unsigned flags;
	const char *tool;     /* head tool=; NULL: "libstraightedge" */
	const char *hash;     /* algorithm of the records; NULL: xxh3-128 */
	const char *rank;     /* rank= of every record that has none */
	const char *switches; /* head switches=, or NULL */
	const char *inputs;   /* head inputs=: "replicated" if every rank
				 is fed the same; NULL: not said */
	uint64_t queue;       /* bytes queued at most; 0: 64 MiB */
	uint64_t world;       /* ranks of the job in all; 0: not said */
};

/*
 * Creates or truncates `path`. NULL: appends where the environment variable
 * STRAIGHTEDGE_SIG says ("fd:N" or a path), which a command sets that wants
 * the fingerprints of a program; SE_ENOENT if it is not set. `options` may be
 * NULL.
 */
int se_stream_open(struct se_stream **s, const char *path,
    const struct se_stream_options *options);
/* The same on a descriptor, which stays the caller's. */
int se_stream_open_fd(
    struct se_stream **s, int fd, const struct se_stream_options *options);

/* Where a record belongs. NULL members are absent. */
struct se_place {
	size_t size; /* sizeof(struct se_place) */
	const char *step, *mb, *phase, *rank, *dp, *pp, *tp, *ep, *io;
	const char *dev, *kernel, *storage, *replicated;
};

/*
 * A tensor seen at a boundary. Either `data` (len bytes, C order, little-
 * endian), which is fingerprinted before the call returns, or `fingerprint`,
 * text made elsewhere ("mix64:..."; `len` still says the bytes). `place` may
 * be NULL. Returns 0, 1 if the record was dropped, or an error.
 */
int se_stream_tensor(struct se_stream *s, const char *name, const char *dtype,
    unsigned ndim, const uint64_t *shape, const void *data, uint64_t len,
    const char *fingerprint, const struct se_place *place);
/* A value that is not a tensor; `value` is kept as text. */
int se_stream_scalar(struct se_stream *s, const char *name, const char *vtype,
    const char *value, const struct se_place *place);
/* Boundaries the caller knows it could not see; added to lost=. */
int se_stream_lost(struct se_stream *s, uint64_t n);
uint64_t se_stream_dropped(const struct se_stream *s);
/*
 * Writes what is queued and the end record, joins the thread, frees. The first
 * failure of the whole stream, e.g. SE_EIO for a full disk. In a child after
 * fork() it only frees.
 */
int se_stream_close(struct se_stream *s);

/* ---- reading records ---------------------------------------------------- */

struct se_reader;

enum se_state {
	SE_STATE_COMPLETE = 1, /* whole: counts and sums agree */
	SE_STATE_FILTERED = 2, /* records or their end are missing */
	SE_STATE_TYPED = 3,    /* written by hand: no head, no end */
	SE_STATE_ALTERED = 4   /* changed after writing */
};

/* "-" is standard input. Gzip is undone. */
int se_reader_open(struct se_reader **r, const char *path);
/*
 * 1: a record, valid until the next call. 0: the end. SE_EFORMAT: a bad line;
 * go on with the next call. Anything else ends the input.
 */
int se_reader_next(struct se_reader *r);
/*
 * Of the current record: `*len` bytes, any byte may be among them, no NUL ends
 * them; escapes are undone. With len NULL one can only ask whether it is there.
 */
const char *se_reader_type(const struct se_reader *r, size_t *len);
/* NULL if there is no such key. */
const char *
se_reader_get(const struct se_reader *r, const char *key, size_t *len);
/* The i-th key, NULL behind the last. */
const char *se_reader_key(const struct se_reader *r, unsigned i, size_t *len);
uint64_t se_reader_line(const struct se_reader *r);
/* What the last negative return was about: "LINE: reason". */
const char *se_reader_error(const struct se_reader *r);
/* An enum se_state; only final once the end was reached. */
int se_reader_state(const struct se_reader *r);
uint64_t se_reader_bad(const struct se_reader *r);
void se_reader_close(struct se_reader *r);

/* ---- writing records ---------------------------------------------------- */

struct se_writer;

/* `format`: "lines", "json", or NULL for lines. The descriptor stays open. */
int se_writer_open(struct se_writer **w, int fd, const char *format);
/*
 * A record: begin, then its keys in the order of straightedge-records(5), then
 * end. Failures stick until se_writer_close. Values are escaped here.
 */
void se_writer_begin(struct se_writer *w, const char *type);
void se_writer_text(
    struct se_writer *w, const char *key, const char *value, size_t len);
void se_writer_integer(struct se_writer *w, const char *key, int64_t value);
void se_writer_number(struct se_writer *w, const char *key, double value);
void se_writer_time(struct se_writer *w, const char *key, int64_t ns);
void se_writer_end(struct se_writer *w);
/*
 * An ev record, an event of a trace: a slice, or an instant if dur is
 * negative. NULL members are absent. args: nargs pairs KEY, VALUE, which
 * become x.KEY=VALUE; keys are letters, digits, `_`, `-` and `.`. Counters
 * have ph "C". The order of keys is taken care of.
 */
struct se_event {
	size_t size; /* sizeof(struct se_event) */
	const char *name;
	int64_t ts, dur;  /* ns since the epoch, ns */
	const char *kind; /* "step" and "sync" are always kept */
	const char *host, *rank, *proc, *thread, *corr, *step, *ph;
	const char *const *args;
	size_t nargs;
};
/* 0, or SE_EINVAL: no name, or a key or number that is none. */
int se_writer_event(struct se_writer *w, const struct se_event *ev);
int se_writer_flush(struct se_writer *w);
/* Writes the end record (result may be NULL), frees; the first failure. */
int se_writer_close(struct se_writer *w, const char *result, int status);

#ifdef __cplusplus
}
#endif

#endif
