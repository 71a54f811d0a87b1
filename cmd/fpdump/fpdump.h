/* What the files of fpdump share. See fpdump(1). */
#ifndef FPDUMP_H
#define FPDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli.h"
#include "dump.h"
#include "progress.h"
#include "rec.h"
#include "src.h"
#include "walk.h"

struct settings {
	struct cli_common common;
	struct dump_how dump;
	bool sum;           /* -F sum */
	bool host;          /* --host */
	const char *libs;   /* --libs PROGRAM */
	const char *check;  /* -c REF.fp */
	bool live, records; /* -t live, -t records */
	bool type_given;    /* --type */
	bool listed;        /* --files0-from */
	char **operand;
	size_t noperands;
	struct progress *progress;
};

/* What came of it. */
struct outcome {
	struct dump_count count;
	uint64_t unread; /* operands that could not be read */
	bool filtered;   /* records in: the input was not whole */
	/* Records in: which odd ones of --columns some record had, by bits. */
	uint64_t columns_seen;
};

/* ---- input.c: what the operands are -------------------------------------- */

enum input_kind {
	INPUT_NONE, /* could not be read, which was said */
	INPUT_HOST,
	INPUT_RECORDS,
	INPUT_LIVE,
	INPUT_PIPE, /* standard input or a FIFO, read like a file */
	INPUT_FILES,
};

struct input {
	enum input_kind kind;
	struct src *src;  /* of a pipe */
	const char *name; /* and what the user called it */
	bool recorder;    /* a program speaks: the head gets time and host */
	struct walk walk; /* INPUT_FILES */
};

/* Finds out, and sets what follows from it for dump: step, exec. */
void input_look(struct settings *s, struct input *in, struct outcome *out);
/* Head and records; of INPUT_RECORDS the ends as well. */
void input_dump(struct rec_out *o, const struct settings *s, struct input *in,
    struct outcome *out);
void input_close(struct input *in);

/* ---- live.c: standard input as a stream of images ----------------------- */

/* Does it begin with a frame, or an image that knows its own end? */
bool live_probe(const struct settings *s, struct src *src);
/* Is it framed? Then a program speaks, and the stream has time and host. */
bool live_is_framed(struct src *src);
void live_dump(struct rec_out *o, const struct settings *s, struct src *src,
    struct outcome *out);

/* ---- records.c: records in, selection out ------------------------------- */

bool records_probe(struct src *src);
/* The same of a file, whose first lines may be damaged. */
bool records_probe_file(struct src *src);
/* Takes over src. Writes the heads and ends of the input as well. */
void records_copy(struct rec_out *o, const struct settings *s, struct src *src,
    const char *name, struct outcome *out);

/* ---- sum.c: -F sum ------------------------------------------------------ */

int sum_main(const struct settings *s);

/* ---- host.c: --host and --libs ------------------------------------------ */

void
host_dump(struct rec_out *o, const struct settings *s, struct outcome *out);

/* ---- check.c: -c -------------------------------------------------------- */

/* Compares files with a reference; the exit status. */
int check_main(struct settings *s);

/* ---- head.c ---------------------------------------------------------- */

/* The head record; `live` adds time and host. */
void head_write(
    struct rec_out *o, const struct settings *s, const char *order, bool live);
/* Says which --slice met no tensor; how many. */
uint64_t slices_unmet(const struct settings *s);
/* A message about a file or operand, for dump_how.left_out. */
void warn_left_out(void *user, const char *file, const struct err *e);

#endif
