/* What a process has mapped, as far as code goes. */
#ifndef MAPS_H
#define MAPS_H

#include <stdint.h>
#include <sys/types.h>

#include "err.h"

enum { MAPS_MAX = 256 };

struct mapped {
	char *path;
	uint64_t start, off; /* of the first mapping of the file */
};

struct maps {
	struct mapped file[MAPS_MAX];
	unsigned n;
};

/* The files with executable mappings, in order of address. */
int maps_read(struct maps *m, pid_t pid, struct err *e);
void maps_free(struct maps *m);

struct object;
/* Address of an object's address 0 in the process. */
uint64_t maps_base(const struct mapped *f, const struct object *o);

/* AT_ENTRY of the process, 0 if it cannot be read. */
uint64_t maps_entry(pid_t pid);

#endif
