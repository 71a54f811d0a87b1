/*
 * --split DIR: a file a window, each a trace of its own: the names of
 * processes and threads, and whatever is kept that touches the window.
 */
#ifndef SPLIT_H
#define SPLIT_H

#include <stdbool.h>
#include <stdint.h>

#include "out.h"
#include "window.h"

enum {
	SPLIT_FILES = 4096,    /* windows beyond get none */
	SPLIT_HELD = 4 << 20,  /* bytes of all files that wait in memory */
	SPLIT_NAMES = 1 << 20, /* bytes of metadata that each file gets */
};

/* Bytes of all files, unless --max-bytes says another number. */
#define SPLIT_MAX (UINT64_C(1) << 30)

struct part {
	struct out out;
	uint32_t window; /* its number */
	bool made;
};

struct split {
	const char *dir;
	const struct trace_info *info;
	bool gzip;
	uint64_t max, bytes; /* in all files */
	uint64_t over;       /* events that had no room */
	struct part *part;
	size_t n;
	size_t held;        /* bytes of the parts */
	struct buf names;   /* metadata events, each after its length */
	uint64_t nameless;  /* that had no room there */
	struct err failure; /* the first */
};

/* Makes the directory if it is not there; dies if it cannot. */
void split_open(struct split *s, const char *dir, bool gzip, uint64_t max,
    const struct trace_info *info);
/* Metadata: for all files. */
void split_name(struct split *s, struct str raw);
/* An event that is kept, for all windows that [ts, end] touches. */
void split_event(struct split *s, const struct windows *ws, int64_t ts,
    int64_t end, struct str raw);
/* Ends all files. 0, or the first failure. */
int split_close(struct split *s, struct err *e);
void split_free(struct split *s);
/* The name of a window's file in DIR, or an empty string. */
struct str split_file(const struct split *s, uint32_t window, char to[32]);

#endif
