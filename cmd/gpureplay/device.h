/* What a process can be put on: cores, boards, or names that the user knows. */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "arena.h"
#include "str.h"

enum { DEVICES_MAX = 1024 };

struct device {
	const char *name;   /* what {device} becomes, what --suspect says */
	const char *entity; /* device:HOST/NAME */
	const char *id;     /* in a ledger: what it is, wherever it is put */
	const char *alike;  /* only devices with the same text are compared */
	const char *model;  /* or NULL */
	const char *host;   /* where --launch puts it, or NULL */
	int cpu;            /* number of the core, or -1 */
	int nvidia;         /* minor number of the board, or -1 */
	bool named;         /* by --suspect */
};

struct devices {
	struct device *list;
	size_t n;
	struct arena arena;
};

/*
 * "3,7-9" as cores that we may use; dies with a usage error on others and on
 * one that is there twice.
 */
void devices_add_cpus(struct devices *d, const char *option, const char *list);
/* n[1-4]: hosts, or the cores of `cpus` (may be NULL) on each of them. */
void devices_add_hosts(
    struct devices *d, const char *option, const char *list, const char *cpus);
/* This host as a whole. */
void devices_add_host(struct devices *d);
/* All cores that we may use. */
void devices_all_cpus(struct devices *d);
/*
 * Boards that no other process has open, by UUID, with the variable of their
 * vendor as the pin; busy ones are said and counted in *busy. Dies if boards
 * of two vendors are there. Returns the variable, or NULL: there is none.
 */
const char *devices_add_boards(struct devices *d, size_t *busy);
/* The same for those of a list of UUIDs; NULL if it has other names. */
const char *
devices_known_boards(struct devices *d, const char *option, const char *list);
/* Names, comma separated. The user vouches that they are alike. */
void devices_add_names(struct devices *d, const char *option, const char *list);
/* Marks the devices of a list; dies if one is not among those to be run. */
void devices_suspect(struct devices *d, const char *option, const char *list);
void devices_free(struct devices *d);

#endif
