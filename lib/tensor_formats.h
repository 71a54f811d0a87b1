/*
 * The readers behind the table in tensor.c. Nobody else includes this.
 */
#ifndef TENSOR_FORMATS_H
#define TENSOR_FORMATS_H

#include "tensor.h"

/* A `probe`, an `open`: see struct tensor_format. */
#define TENSOR_PROBE_OF(name) \
	int tensor_##name##_probe(const unsigned char *head, size_t len)
#define TENSOR_OPEN_OF(name)                                              \
	int tensor_##name##_open(struct tensor_set *set, struct src *src, \
	    const struct tensor_hints *hints, struct err *e)

TENSOR_PROBE_OF(npy);
TENSOR_OPEN_OF(npy);
TENSOR_PROBE_OF(npz);
TENSOR_OPEN_OF(npz);
void tensor_npz_close(struct tensor_set *set);
TENSOR_PROBE_OF(safetensors);
TENSOR_OPEN_OF(safetensors);
TENSOR_PROBE_OF(dcp);
TENSOR_OPEN_OF(dcp);
TENSOR_PROBE_OF(torch);
TENSOR_OPEN_OF(torch);
TENSOR_PROBE_OF(index);
TENSOR_OPEN_OF(index);
TENSOR_PROBE_OF(gguf);
TENSOR_OPEN_OF(gguf);
TENSOR_OPEN_OF(raw);
TENSOR_OPEN_OF(bytes);
TENSOR_OPEN_OF(chunks);
int tensor_chunks_next(struct tensor_set *set, struct err *e);
TENSOR_OPEN_OF(lines);
int tensor_lines_next(struct tensor_set *set, struct err *e);
void tensor_lines_close(struct tensor_set *set);
TENSOR_OPEN_OF(csv);
TENSOR_OPEN_OF(tsv);
int tensor_cells_next(struct tensor_set *set, struct err *e);
TENSOR_OPEN_OF(jsonl);
int tensor_jsonl_next(struct tensor_set *set, struct err *e);
void tensor_table_close(struct tensor_set *set);
/* csv, tsv or jsonl. */
const char *tensor_table_sniff(const unsigned char *head, size_t len);

/* ---- helpers of several formats ---------------------------------------- */

/* Memory that lives as long as the entries being added. */
static inline struct arena *
tensor_arena(struct tensor_set *set)
{
	return set->format->next ? &set->batch : &set->arena;
}

/*
 * What `next` returns after r: if a failure comes behind entries that are
 * fine, they go out first and the failure waits for the next call.
 */
int tensor_late(struct tensor_set *set, int r, struct err *e);
/* SE_EFORMAT that names a name which two entries have. */
int tensor_check_unique(const struct tensor_set *set, struct err *e);
/* Appends a line to set->note: a departure that was accepted. */
int tensor_note(struct tensor_set *set, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same about a name from the file, which is escaped: "NAME: TEXT". */
int tensor_note_name(
    struct tensor_set *set, struct str name, const char *text, struct err *e);
/* A scalar; the texts are copied. */
int tensor_add_scalar(struct tensor_set *set, unsigned flags, struct str name,
    struct str vtype, struct str value, struct err *e);
/*
 * Makes t one dimension that goes to the end of src: its length where it is
 * known, else TENSOR_OPENEND, up to t->limit bytes.
 */
int tensor_open_end(
    struct tensor_set *set, struct tensor *t, struct src *src, struct err *e);

#endif
