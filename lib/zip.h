/*
 * Zip archives as .npz and PyTorch files use them: stored or deflated members
 * found through the central directory, zip64, data descriptors. It is strict,
 * because a checker that reads an archive differently from the loader says
 * nothing about what was loaded: the local header must agree with the
 * directory, members may not overlap, names are unique, nothing stands before
 * the first member or between directory and end record.
 * Source: PKWARE APPNOTE 6.3.10, sections 4.3 to 4.5.
 */
#ifndef ZIP_H
#define ZIP_H

#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "err.h"
#include "map.h"
#include "src.h"
#include "str.h"

/* As many members as a file may have tensors. */
#define ZIP_MEMBERS_MAX 10000000u
/* Directories are read whole; 10 million members of 100 bytes fit. */
#define ZIP_DIR_MAX (UINT64_C(1) << 30)
/* Deflate makes at most 258 bytes out of 2 bits. */
#define ZIP_RATIO_MAX 1032u

enum { ZIP_STORED = 0, ZIP_DEFLATED = 8 };

struct zip_member {
	struct str name; /* raw bytes: escape before printing */
	unsigned method, flags;
	uint32_t crc;
	uint64_t csize, size; /* bytes in the file, bytes of content */
	uint64_t header;      /* offset of the local header */
	uint64_t off;         /* of the data: stored content lies here, plain */
	uint64_t end;         /* behind the data and its descriptor */
};

struct zip {
	struct arena arena;
	struct src *src;
	struct zip_member *m; /* in the order of the directory */
	size_t n;          /* directory entries (names ending in /) left out */
	struct map byname; /* private: index into m */
};

/*
 * Reads the directory and checks every member's local header. `src` is
 * borrowed until zip_close and must be seekable. Encrypted, multi-disk and
 * otherwise compressed archives are SE_EUNSUP. Call zip_close in every case.
 */
int zip_open(struct zip *z, struct src *src, struct err *e);
void zip_close(struct zip *z);
/* The member of exactly this name, or NULL. */
const struct zip_member *zip_find(const struct zip *z, struct str name);

/*
 * The content of one member, forward. The CRC-32 and the declared size are
 * checked when the last byte goes by: reads before that may deliver bytes of
 * a damaged member.
 */
struct zip_reader;
int zip_reader_new(struct zip_reader **out, const struct zip *z,
    const struct zip_member *m, struct err *e);
/* Up to len bytes; *got < len only at the end of the member. */
int zip_read(
    struct zip_reader *r, void *to, size_t len, size_t *got, struct err *e);
void zip_reader_free(struct zip_reader *r);

/* The whole content, checked, in the arena; SE_ELIMIT above `max` bytes. */
int zip_read_all(const struct zip *z, const struct zip_member *m, size_t max,
    struct arena *a, struct str *out, struct err *e);
/* Reads the member once and says whether CRC-32 and size hold. */
int zip_verify(const struct zip *z, const struct zip_member *m, struct err *e);

#endif
