/* Containers that are not read: see foreign.h. */
#include "foreign.h"

#include <string.h>

// clang-format off
static const struct {
	size_t off, len;
	const char *magic, *what, *command;
} foreign[] = {
	/* RFC 8878 section 3.1.1; its skippable frames, section 3.1.2 */
	{ 0, 4, "\x28\xb5\x2f\xfd", "Zstandard data", "zstd -dc FILE" },
	{ 1, 3, "\x2a\x4d\x18", "Zstandard data", "zstd -dc FILE" },
	/* xz file format 1.2.1, section 2.1.1.1 */
	{ 0, 6, "\xfd" "7zXZ\0", "xz data", "xz -dc FILE" },
	/* bzip2 source, BZ_HDR_* and the magic of a block */
	{ 4, 6, "1AY&SY", "bzip2 data", "bzip2 -dc FILE" },
	/* LZ4 frame format 1.6.4 */
	{ 0, 4, "\x04\x22\x4d\x18", "LZ4 data", "lz4 -dc FILE" },
	/* lzip manual, File format */
	{ 0, 5, "LZIP\1", "lzip data", "lzip -dc FILE" },
	/* 7zFormat.txt, SignatureHeader */
	{ 0, 6, "7z\xbc\xaf\x27\x1c", "a 7z archive", "7z x -so FILE" },
	/* POSIX.1-2008 pax, ustar interchange format */
	{ 257, 5, "ustar", "a tar archive", "tar -xf FILE -C DIR" },
	/* HDF5 File Format Specification 3.0, section II.A */
	{ 0, 8, "\x89HDF\r\n\x1a\n", "an HDF5 file",
	  "h5dump -d DATASET -b LE -o data.bin FILE" },
	/* SQLite Database File Format, section 1.3.1; nsys export has it too */
	{ 0, 16, "SQLite format 3", "an SQLite database",
	  "sqlite3 -csv -header FILE 'select ...'" },
	/* Apache Parquet, File format */
	{ 0, 4, "PAR1", "a Parquet file",
	  "duckdb -csv -c \"from 'FILE'\"" },
};
// clang-format on

/*
 * Two magics above are not at the start, and short: what stands before must
 * fit as well.
 */
static int
starts_well(size_t off, const unsigned char *head)
{
	if (off == 1)
		return (head[0] & 0xf0) == 0x50;
	if (off == 4)
		return !memcmp(head, "BZh", 3) && head[3] >= '1' &&
		       head[3] <= '9';
	return 1;
}

int
foreign_check(const void *head, size_t len, struct err *e)
{
	const unsigned char *p = head;
	for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
		size_t off = foreign[i].off, n = foreign[i].len;
		if (len < off || len - off < n ||
		    memcmp(p + off, foreign[i].magic, n) ||
		    !starts_well(off, p))
			continue;
		return err_set(e, SE_EUNSUP,
		    "is %s, not read here: convert it first, as with %s",
		    foreign[i].what, foreign[i].command);
	}
	return 0;
}
