/*
 * From what a user names on the command line to files: directories are
 * walked, in byte order of their names, symbolic links followed, loops found.
 */
#ifndef WALK_H
#define WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "err.h"
#include "str.h"

#define WALK_DEPTH_MAX 64u       /* directories inside each other */
#define WALK_FILES_MAX 10000000u /* files in all */

struct walk_file {
	const char *path;   /* to open it */
	struct str name;    /* relative to the directory operand, or as given */
	bool listed;        /* found in a directory */
	const char *format; /* to force, or NULL: by content */
	struct str as;      /* what an unnamed tensor in it is called, or "" */
};

/* Hears of what was left out: `path` and one line why. */
typedef void walk_skip(void *user, const char *path, const struct err *e);

struct walk {
	struct arena arena; /* paths; valid until walk_close */
	struct walk_file *file;
	size_t n, cap;
	uint64_t skipped;
	uint64_t bytes;  /* in the regular files */
	walk_skip *skip; /* may be NULL */
	void *user;
};

/*
 * Adds a file, or the regular files under a directory. FIFOs, sockets and
 * devices in a directory are left out and counted; named themselves they are
 * files like others. An error means that nothing came of this operand.
 */
int walk_add(struct walk *w, const char *operand, struct err *e);
void walk_close(struct walk *w);

#endif
