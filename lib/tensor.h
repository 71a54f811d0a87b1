/*
 * Files as tensors. A format is one file tensor_<name>.c and one row in the
 * table in tensor_formats.h; nobody else names formats.
 *
 *	source -> tensor_open -> entries -> tensor_blocks -> canonical bytes
 *
 * `open` of a format reads all metadata and appends entries with tensor_add;
 * it does not judge extents. tensor_open then checks every entry of every
 * format in one place: names unique, rank, product of dims, byte length,
 * bounds in the source, strides.
 *
 * Formats that may be endless (tables, text, chunks) have a `next` as well
 * and hand their entries out batch by batch, in constant memory. One loop
 * reads both kinds:
 *
 *	r = tensor_open(&set, src, &hints, &e);
 *	while (!r && (r = tensor_next(&set, &e)) > 0) {
 *		r = 0;
 *		for (size_t i = 0; i < set.n; i++)
 *			... set.t[i] ...
 *	}
 *	if (!r)
 *		r = tensor_finish(&set, &e);
 *	tensor_close(&set);
 *
 * A caller that wants to sort the entries of a file asks tensor_is_stream.
 */
#ifndef TENSOR_H
#define TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "buf.h"
#include "dtype.h"
#include "err.h"
#include "src.h"
#include "str.h"

#define TENSOR_PROBE 4096           /* bytes a probe may look at */
#define TENSOR_NDIM_MAX 64          /* torch's and numpy's own limit */
#define TENSOR_NAME_MAX (64u << 10) /* names longer are refused */
#define TENSOR_MAX 10000000u        /* entries in one file */
/* An expanded (stride 0) tensor may be this much larger than its bytes. */
#define TENSOR_EXPAND_MAX 65536u

enum tensor_flag {
	TENSOR_SWAP = 1,     /* stored big-endian */
	TENSOR_SCALAR = 2,   /* not a tensor: `value` is its text */
	TENSOR_CONJ = 4,     /* torch: logical value is conjugated */
	TENSOR_NEG = 8,      /* torch: logical value is negated */
	TENSOR_CHUNK = 16,   /* part of a larger tensor: global, offset */
	TENSOR_BADBOOL = 32, /* set while reading: a bool byte not 0 or 1 */
	/*
	 * Ends where a pipe ends: shape[0], count and bytes are SRC_UNKNOWN
	 * until tensor_blocks has run.
	 */
	TENSOR_OPENEND = 64,
	TENSOR_META = 128, /* scalar about the container, named kv:KEY */
	/* Not an entry: something was left out here, `value` says why. */
	TENSOR_LEFT_OUT = 256,
};

/* A million of them may be there at once: kept small. */
struct tensor {
	struct str name; /* raw: escape before printing; "": the file's */
	unsigned flags;
	/* tensors */
	unsigned ndim;
	const struct dtype *dtype;
	const uint64_t *shape; /* outermost first */
	struct src *src;       /* where the data is, owned by the set */
	uint64_t off;          /* of the first element, in bytes */
	/*
	 * Bytes from `off` the data may use: the extent the file declares;
	 * SRC_UNKNOWN: to the end of src. Zero is zero.
	 */
	uint64_t limit;
	struct str storage; /* key shared by views of one storage, or "" */
	struct str file;    /* beside the source, that has the data, or "" */
	union {
		struct {                       /* tensors */
			const int64_t *stride; /* in elements; NULL: C order */
			/* TENSOR_CHUNK: shape of the whole, where this starts
			 */
			const uint64_t *global, *offset;
			/* NULL: stored plain in src; priv is its own */
			int (*read)(const struct tensor *t, uint64_t off,
			    void *to, size_t len, struct err *e);
			void *priv;
		};
		struct { /* TENSOR_SCALAR, TENSOR_LEFT_OUT */
			/* "f64" "0.1": text as the format has it */
			struct str vtype, value;
			struct str step; /* tables: the step's cell, or "" */
		};
	};
	/* filled by tensor_open */
	uint64_t count, bytes; /* elements; canonical bytes */
};

struct tensor_set {
	struct arena arena; /* names, shapes: valid until close */
	struct arena batch; /* the same of a stream: until tensor_next */
	struct tensor *t;   /* until tensor_next or close */
	size_t n;
	const struct tensor_format *format;
	bool exec;       /* order means something (live stream) */
	uint64_t end;    /* bytes of the source this image took */
	struct str note; /* departures that were accepted, or "" */
	/* for the format */
	struct src *src;
	const struct tensor_hints *hints; /* until tensor_open returns */
	void *priv;                       /* its state between calls of next */
	bool partial; /* SE_ETRUNC from open, but the entries are whole */
	/* private to tensor.c */
	bool given;      /* the entries of tensor_open went out */
	struct err late; /* a failure that the next batch is instead */
	bool follow;
	size_t cap;
	struct src **owned;
	size_t nowned;
};

/* What the user said about a file that does not say it itself. */
struct tensor_hints {
	const char *format;        /* force: a name of the table, or NULL */
	const struct dtype *dtype; /* raw: element type */
	unsigned ndim;             /* raw: shape, with dtype */
	const uint64_t *shape;
	uint64_t skip;   /* raw: header bytes to leave out */
	uint64_t chunk;  /* bytes: one entry per block, 0: one in all */
	struct str step; /* tables: column that is the step, or "" */
	bool follow; /* another image may follow: leave what is behind alone */
	int dirfd;   /* directory the source lies in, or -1 */
	const char *dir; /* and its name for messages, or NULL */
	const char *tmpdir;
};

struct tensor_format {
	const char *name;
	const char *what; /* one line for --help and the man page */
	/* 0 = certainly not, 100 = certain. Sees at most TENSOR_PROBE bytes. */
	int (*probe)(const unsigned char *head, size_t len);
	/* Appends entries. Errors name offsets in the source. */
	int (*open)(struct tensor_set *set, struct src *src,
	    const struct tensor_hints *hints, struct err *e);
	/*
	 * For endless formats: `open` appends nothing, each call of `next`
	 * appends some entries from set->batch memory, none at the end.
	 */
	int (*next)(struct tensor_set *set, struct err *e);
	void (*close)(struct tensor_set *set); /* frees set->priv, or NULL */
	bool exact;    /* `limit` is declared and must be the very size */
	bool random;   /* open needs a seekable source */
	bool selfends; /* knows its own end: may follow another on a pipe */
};

/* The table, ended by NULL. */
extern const struct tensor_format *const tensor_formats[];
const struct tensor_format *tensor_format_find(const char *name);
/*
 * By content; *out is NULL if nothing scores (a plain file of bytes). Reads
 * no more of a pipe than it must: 16 bytes, if they say enough.
 */
int tensor_format_probe(
    struct src *src, const struct tensor_format **out, struct err *e);

/* True if entries come in batches and set->n is 0 before tensor_next. */
static inline bool
tensor_is_stream(const struct tensor_set *set)
{
	return set->format && set->format->next;
}

/*
 * Reads the metadata of one image that starts at offset 0 of `src` (borrowed
 * until tensor_close). SE_EFORMAT, SE_ETRUNC, SE_ELIMIT or SE_EUNSUP say what
 * is wrong; on SE_ETRUNC the entries that lie wholly within the source stay in
 * `set` (set->n may be > 0) so that a caller can name the last whole tensor.
 * Call tensor_close in every case.
 */
int tensor_open(struct tensor_set *set, struct src *src,
    const struct tensor_hints *hints, struct err *e);
/*
 * After tensor_open, which said `r` and *e: is this what the file gives itself
 * out as? If it is the container of another tool (SE_EUNSUP), or plain bytes
 * under a name that promises a format (SE_EFORMAT), the set becomes empty.
 * Returns what is wrong with the file after all.
 */
int tensor_claim(struct tensor_set *set, struct src *src, struct str name,
    const struct tensor_hints *hints, int r, struct err *e);
/*
 * 1: set->t[0..n) are the next entries (those before are gone); 0: there are
 * no more. Of a format that is not a stream all entries are one batch, in
 * place from tensor_open on.
 */
int tensor_next(struct tensor_set *set, struct err *e);
/*
 * After all data was read: SE_EFORMAT if something follows the image, unless
 * hints->follow allowed it. (tensor_open sees that only where the size of
 * the source is known.) On a pipe this waits for its end.
 */
int tensor_finish(struct tensor_set *set, struct err *e);
/* Data is read: sources are closed, entries stay until tensor_close. */
void tensor_release(struct tensor_set *set);
void tensor_close(struct tensor_set *set);

/* For formats. The entry is zeroed; NULL: out of memory or TENSOR_MAX. */
struct tensor *tensor_add(struct tensor_set *set, struct err *e);
/* The set closes `src` with itself, also when this fails. */
int tensor_own(struct tensor_set *set, struct src *src, struct err *e);

/*
 * The canonical bytes: logical C order, little-endian, conjugation and
 * negation applied. Calls `block` with consecutive pieces, each a whole number
 * of elements (blocks), until all `bytes` went by or it returns non-zero,
 * which is then returned. `buf` is scratch of `len` bytes, at least 64 KiB.
 * A short source is SE_ETRUNC with expected and actual size.
 *
 * Entries that lie in ascending offset order can be read from a pipe; only a
 * strided one is then copied to a temporary file. For those (transposed,
 * Fortran) up to 16 MiB are allocated, 64 MiB where less would leave runs
 * under 128 bytes to read.
 */
typedef int tensor_block(void *user, const void *p, size_t len, struct err *e);
int tensor_blocks(struct tensor *t, void *buf, size_t len, tensor_block *block,
    void *user, struct err *e);

/*
 * Bytes read ahead, for many small tensors that lie near each other: one read
 * of the source serves them all. One per thread; zeroed it is empty. Empty it
 * before a source that it may hold is closed.
 */
#define TENSOR_AHEAD (16u << 10)
struct tensor_ahead {
	const struct src *src;
	uint64_t off;
	size_t len;
	unsigned char bytes[TENSOR_AHEAD];
};

/* tensor_blocks through such a window, for tensors small enough to gain. */
int tensor_blocks_ahead(struct tensor *t, struct tensor_ahead *w, void *buf,
    size_t len, tensor_block *block, void *user, struct err *e);

/*
 * Is this the beginning of a table that says so itself: CSV, TSV or JSON Lines
 * whose first line names a column `step`? TENSOR_NO_STEP: it looks like a
 * table, but has none. The first names are appended to `columns`, for a
 * message. `len` is TENSOR_LOOK unless the text is shorter: of a longer first
 * line of cells the beginning decides. A line that is no object is a bad line
 * of JSON Lines if objects follow.
 */
#define TENSOR_LOOK (32u << 10)
enum tensor_look {
	TENSOR_NO_TABLE = 0,
	TENSOR_SERIES = 1,
	TENSOR_NO_STEP = 2,
};
enum tensor_look tensor_look(const char *text, size_t len, struct buf *columns);

/*
 * Is the directory a distributed checkpoint of PyTorch? 1: yes, open its
 * ".metadata" with hints->dirfd; it speaks for the data files. 0: no.
 * SE_ETRUNC: data files without .metadata, so the save did not finish.
 */
int tensor_dcp_find(const char *dir, struct err *e);
/* A name that only such data files have. */
bool tensor_dcp_is_data(const char *name);

#endif
