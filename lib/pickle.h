/*
 * Python pickles as data. The machine builds a graph of nodes and executes
 * nothing: a call is a node with the name of what would have been called and
 * its arguments. Protocols 0 to 5, without extension registry, INST, OBJ and
 * out-of-band buffers, which are refused by name.
 * Source: CPython Lib/pickletools.py, the opcode table.
 */
#ifndef PICKLE_H
#define PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "buf.h"
#include "err.h"
#include "str.h"

/* A checkpoint of a million tensors has some 15 million. */
#define PICKLE_NODES_MAX (32u << 20)
/* Text of all opcodes of one pickle; .metadata of large jobs are 100 MB. */
#define PICKLE_SIZE_MAX ((size_t)1 << 30)
/* Containers within containers, for those who walk the graph. */
#define PICKLE_DEPTH_MAX 200
/* A dotted module and class name. */
#define PICKLE_NAME_MAX 1024

enum pickle_kind {
	PICKLE_NONE,
	PICKLE_BOOL,   /* i */
	PICKLE_INT,    /* i */
	PICKLE_LONG,   /* s: little-endian two's complement, more than 64 bit */
	PICKLE_FLOAT,  /* f */
	PICKLE_STR,    /* s: UTF-8 as written, not checked */
	PICKLE_BYTES,  /* s */
	PICKLE_GLOBAL, /* s: "module name", one blank between */
	PICKLE_TUPLE,  /* item[0..n) */
	PICKLE_LIST,   /* item[0..n) */
	PICKLE_SET,    /* item[0..n), frozen or not */
	PICKLE_DICT,   /* item[0..n): key, value, key, value, in order */
	PICKLE_PERSID, /* item[0]: the id */
	PICKLE_CALL,   /* call */
};

struct pickle_node {
	unsigned char kind;
	unsigned char busy; /* for walkers: 0 outside of a walk */
	uint32_t n, cap;
	union {
		int64_t i;
		double f;
		struct str s;
		struct pickle_node **item;
		struct pickle_call *call;
	};
};

/* REDUCE, NEWOBJ or NEWOBJ_EX, and what was done to the result later. */
struct pickle_call {
	struct pickle_node *func;   /* GLOBAL, PERSID or CALL */
	struct pickle_node *args;   /* TUPLE */
	struct pickle_node *kwargs; /* DICT or NULL */
	struct pickle_node *state;  /* argument of BUILD, or NULL */
	struct pickle_node *list;   /* appended or added items, or NULL */
	struct pickle_node *dict;   /* items that were set, or NULL */
};

struct pickle {
	struct arena arena;
	struct pickle_node *root;
	struct pickle_node **persid; /* every persistent id in the pickle */
	size_t npersid, nnodes;
	size_t len; /* bytes up to and with STOP */
	/* private */
	size_t persid_cap;
};

/*
 * Reads one pickle from the start of the bytes, which must stay as long as
 * the nodes are used: strings point into them. SE_ETRUNC if they end before
 * STOP. Messages name the byte. Call pickle_free in every case.
 */
int pickle_load(struct pickle *p, const void *bytes, size_t len, struct err *e);
void pickle_free(struct pickle *p);

/* True if the node is the global `name`, "module name". */
bool pickle_is_global(const struct pickle_node *n, const char *name);
/* True if the node is a call of that global. */
bool pickle_is_call(const struct pickle_node *n, const char *name);
/* The value of a string key in a DICT, or NULL. */
struct pickle_node *pickle_get(const struct pickle_node *dict, const char *key);
/*
 * The bytes of a bytes or bytearray object, however the protocol writes it.
 * False for anything else.
 */
bool
pickle_bytes(const struct pickle_node *n, struct arena *a, struct str *out);
/*
 * A node whose items are those of a set or frozenset, however the protocol
 * writes it; NULL for anything else.
 */
const struct pickle_node *pickle_set(const struct pickle_node *n);
/*
 * Appends the value as text: none, true, 12, 0.1, strings as they are, bytes
 * as hex, names of classes, (a,b) and {a,b} (sorted: sets have no order).
 * False if it is nested more than PICKLE_TEXT_DEPTH deep or longer than
 * PICKLE_TEXT_MAX: a cut text could make different things look the same.
 */
#define PICKLE_TEXT_DEPTH 16
#define PICKLE_TEXT_MAX (64u << 10)
bool pickle_text(struct buf *b, const struct pickle_node *n);

#endif
