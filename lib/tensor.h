/*
 * Files as tensors. A format is one file tensor_<name>.c and one row in the
 * table in tensor.c; nobody else names formats.
 *
 *	source -> tensor_open -> entries -> tensor_blocks -> canonical bytes
 *
 * `open` of a format reads all metadata and appends entries with tensor_add;
 * it does not judge extents. tensor_open then checks every entry of every
 * format in one place: names unique, rank, product of dims, byte length,
 * bounds in the source, strides.
 */
#ifndef TENSOR_H
#define TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
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
};

struct tensor {
	struct str name; /* raw bytes: escape before printing */
	unsigned flags;
	/* tensors */
	const struct dtype *dtype;
	unsigned ndim;
	const uint64_t *shape;  /* outermost first */
	const int64_t *stride;  /* in elements; NULL: C order */
	struct src *src;        /* where the data is, owned by the set */
	uint64_t off;           /* of the first element, in bytes */
	uint64_t limit;         /* bytes from `off` the data may use; 0: src */
	struct str storage;     /* key shared by views of one storage, or "" */
	const uint64_t *global; /* TENSOR_CHUNK: shape of the whole */
	const uint64_t *offset; /* TENSOR_CHUNK: where this part starts */
	int (*read)(const struct tensor *t, uint64_t off, void *to, size_t len,
	    struct err *e); /* NULL: stored plain in src */
	void *priv;         /* for read */
	/* scalars */
	struct str vtype, value; /* "f64" "0.1"; text as the format has it */
	/* filled by tensor_open */
	uint64_t count, bytes; /* elements; canonical bytes */
};

struct tensor_set {
	struct arena arena; /* entries, names, shapes: valid until close */
	struct tensor *t;
	size_t n;
	const struct tensor_format *format;
	bool exec;       /* order means something (live stream) */
	uint64_t end;    /* bytes of the source this image took */
	struct str note; /* departures that were accepted, or "" */
	/* private */
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
	int dirfd;       /* directory the source lies in, or -1 */
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
	bool random;   /* open needs a seekable source */
	bool selfends; /* knows its own end: may follow another on a pipe */
};

/* The table, ended by a row without a name. */
extern const struct tensor_format tensor_formats[];
const struct tensor_format *tensor_format_find(const char *name);
/* By content; NULL if nothing scores (a plain file of bytes). */
const struct tensor_format *tensor_format_probe(struct src *src, struct err *e);

/*
 * Reads the metadata of one image that starts at offset 0 of `src` (borrowed
 * until tensor_close). SE_EFORMAT, SE_ETRUNC, SE_ELIMIT or SE_EUNSUP say what
 * is wrong; on SE_ETRUNC the entries that lie wholly within the source stay in
 * `set` (set->n may be > 0) so that a caller can name the last whole tensor.
 * Call tensor_close in every case.
 */
int tensor_open(struct tensor_set *set, struct src *src,
    const struct tensor_hints *hints, struct err *e);
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
 */
typedef int tensor_block(void *user, const void *p, size_t len, struct err *e);
int tensor_blocks(struct tensor *t, void *buf, size_t len, tensor_block *block,
    void *user, struct err *e);

#endif
