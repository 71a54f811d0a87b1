/* GPU boards, as the kernel shows them: /proc/driver/nvidia and /sys. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

#include "arena.h"

enum { BOARDS_MAX = 1024 };

/* Texts may be NULL: not known. */
struct board {
	const char *pci;    /* 0000:17:00.0 */
	const char *uuid;   /* NVIDIA GPU-..., AMD GPU-<unique id> */
	const char *serial; /* printed on the board */
	const char *slot;   /* name of the slot in the chassis */
	const char *model, *driver;
	const char *pin; /* variable that chooses it */
	int nvidia;      /* minor number, or -1 */
	int render;      /* number of /dev/dri/renderDN, or -1 */
	unsigned busy;   /* processes that have it open, as far as we see */
};

struct boards {
	struct board *list;
	size_t n;
	uint64_t hidden; /* processes whose files we may not see */
	struct arena arena;
};

/*
 * Finds the boards below `root` ("" is this machine), ordered by PCI address.
 * Dies if there is no memory; what cannot be read is not known.
 */
void boards_find(struct boards *b, const char *root);
void boards_free(struct boards *b);

#endif
