/*
 * What PyTorch's containers (zip, legacy, distributed) share: from the graph
 * of a pickle to entries of a tensor set. Only tensor_torch.c, tensor_dcp.c
 * and torch_*.c include this.
 * Sources: torch/_utils.py, torch/_tensor.py, torch/serialization.py.
 */
#ifndef TORCH_H
#define TORCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "map.h"
#include "pickle.h"
#include "tensor.h"
#include "zip.h"

/* A container reached by many paths is walked once for each of them. */
#define TORCH_PATHS_MAX 8

/* ---- storages (torch_storage.c) ----------------------------------------- */

/* A persistent id: ('storage', type, key, location, numel[, view]). */
struct torch_ref {
	struct str key;
	const struct dtype *dtype; /* of its elements; u8 where untyped */
	uint64_t numel;
	bool view; /* legacy: elements [view_off, view_off + view_n) */
	uint64_t view_off, view_n;
};

struct torch_storage {
	struct str key;
	struct src *src;
	uint64_t off, bytes;
	/* zip members: the CRC-32 is compared before a digest can be had */
	bool has_crc;
	struct zip_member member;
	pthread_mutex_t lock; /* of verified */
	bool verified;
};

int torch_ref_parse(struct torch_ref *ref, const struct pickle_node *persid,
    struct arena *a, struct err *e);
/* True if the persistent id names a class, not a storage (legacy). */
bool torch_ref_is_module(const struct pickle_node *persid);
/* By name of a dtype ("torch float8_e4m3fn"); NULL: unknown. */
const struct dtype *torch_dtype(struct arena *a, const struct pickle_node *n);

/*
 * Points t at `extent` bytes of the storage from `start` on, which lie within
 * it, with what it takes to check them.
 */
int torch_cover(struct torch_storage *s, struct tensor *t, uint64_t start,
    uint64_t extent, struct arena *a, struct err *e);

/* ---- the walk (torch_walk.c) -------------------------------------------- */

struct torch_walk;
typedef int torch_find(struct torch_walk *w, const struct torch_ref *ref,
    struct torch_storage **out, struct err *e);

/* Zero-initialise, set the first group, call torch_walk, torch_walk_free. */
struct torch_walk {
	struct tensor_set *set;
	torch_find *find; /* NULL: no storages here */
	void *user;
	struct str label; /* in front of storage keys, or "" */
	bool swap;        /* storages are big-endian */
	struct str mem;   /* the pickle's bytes, or nothing: lent by memsrc */
	struct src *memsrc;
	size_t steps_max;
	/* private */
	struct err *e;
	struct buf path;
	struct torch_part *part; /* of the path, for quoting */
	size_t steps;
	unsigned depth, level; /* parts of the path, calls of ourselves */
	struct map names;
};

/* Entries for everything below root, named from `prefix` on. */
int torch_walk(struct torch_walk *w, struct pickle_node *root,
    struct str prefix, struct err *e);
void torch_walk_free(struct torch_walk *w);

/* For torch_call.c. The path grows by a part for the time of the call. */
int torch_walk_node(struct torch_walk *w, struct pickle_node *n);
int
torch_walk_part(struct torch_walk *w, const char *part, struct pickle_node *n);
int torch_walk_items(struct torch_walk *w, struct pickle_node *n);
int torch_walk_dict(struct torch_walk *w, struct pickle_node *n);
/* An entry named by the path. */
int torch_add(struct torch_walk *w, struct tensor **out);
int torch_add_text(struct torch_walk *w, const char *vtype, struct str value);
/* A scalar with the node's text. */
int torch_add_value(
    struct torch_walk *w, const char *vtype, const struct pickle_node *n);
/* A tensor whose data lies in memory of the set; dtype and shape are open. */
int torch_add_mem(struct torch_walk *w, struct str bytes, struct tensor **out);

/* ---- calls (torch_call.c) ----------------------------------------------- */

/* A CALL node: a tensor, a container, a value, or an opaque object. */
int torch_call(struct torch_walk *w, struct pickle_node *n);
/* A bare storage. */
int torch_bare_storage(struct torch_walk *w, struct pickle_node *persid);

/* ---- views (torch_view.c) ----------------------------------------------- */

struct torch_view {
	const struct dtype *dtype;
	struct torch_storage *storage;
	uint64_t start, room; /* bytes of the storage that may be used */
	uint64_t off;         /* elements from start */
	unsigned ndim;
	uint64_t *shape;
	int64_t *stride;
	unsigned flags;
};

/* Sizes or strides: a tuple (or torch.Size) of integers, none negative. */
int torch_ints(struct torch_walk *w, const struct pickle_node *n,
    const char *what, uint64_t **out, unsigned *count);
/* Checks the extent against the storage and adds the entry. */
int torch_add_view(struct torch_walk *w, struct torch_view *v);
/* numpy arrays and scalars inside the pickle. */
int torch_add_numpy(struct torch_walk *w, const struct pickle_node *shape,
    const struct pickle_node *dtype, const struct pickle_node *data,
    bool fortran);

/* ---- containers (tensor_torch.c, torch_legacy.c) ------------------------ */

/* A storage under `key`, to be filled in, and one that is known by its key. */
int torch_new_storage(struct torch_walk *w, struct map *known, struct str key,
    struct torch_storage **out, struct err *e);
struct torch_storage *
torch_known_storage(const struct map *known, struct str key);
/* What the pickle says about a storage's size against what is there. */
int
torch_check_size(const struct torch_ref *ref, uint64_t bytes, struct err *e);
/* Lets the walk of this pickle take so many steps. */
void torch_set_steps(struct torch_walk *w, const struct pickle *p);

int torch_open_zip(
    struct tensor_set *set, struct src *src, struct str prefix, struct err *e);

int torch_open_legacy(struct tensor_set *set, struct src *src, struct err *e);
/*
 * A zip archive that ends early, with the message that says so in *e: adds
 * what is whole and returns SE_ETRUNC.
 */
int torch_open_cut(struct tensor_set *set, struct src *src, struct err *e);

#endif
