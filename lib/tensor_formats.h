/*
 * For the readers, tensor_<name>.c, and tensor.c. Nobody else includes this.
 */
#ifndef TENSOR_FORMATS_H
#define TENSOR_FORMATS_H

#include "tensor.h"

/*
 * The formats. A row is all that the rest of the program knows of one: its
 * file defines tensor_NAME. Where two probes score the same, the first wins.
 */
// clang-format off
#define TENSOR_FORMATS(ROW) \
	ROW(npy) \
	ROW(npz) \
	ROW(safetensors) \
	ROW(torch) \
	ROW(index) \
	ROW(gguf) \
	ROW(dcp) \
	ROW(raw) \
	ROW(bytes) \
	ROW(chunks) \
	ROW(csv) \
	ROW(tsv) \
	ROW(jsonl) \
	ROW(lines)
// clang-format on
#define TENSOR_FORMAT_DECLARE(name) \
	extern const struct tensor_format tensor_##name;
TENSOR_FORMATS(TENSOR_FORMAT_DECLARE)

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
