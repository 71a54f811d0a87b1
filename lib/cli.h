/*
 * Manners at the command line, for commands only: messages, exit, memory that
 * dies, the options all commands share, and output files.
 */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "opt.h"
#include "rec.h"
#include "src.h"
#include "verdict.h"

/* Names the command for messages: "fpdump", or "gpureplay run" for a verb. */
void cli_start(const char *name);
const char *cli_name(void);

/*
 * One line to stderr: "command: text". Control bytes and bad UTF-8 in the text
 * are escaped, so that names from input may be printed as they are.
 */
void cli_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "command: file: message", or "command: file:LINE: reason" for bad lines. */
void cli_warn_err(const char *file, const struct err *e);
/* The same and the end of the program, status 2. */
_Noreturn void
cli_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void cli_die_err(const char *file, const struct err *e);
/* Two lines: what is wrong, and where help is. Status 2. */
_Noreturn void
cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Dies on out of memory. */
void *cli_alloc(size_t n, size_t size);
void *cli_realloc(void *p, size_t n, size_t size);
/* Dies unless the whole of `text` is an integer in the range. */
uint64_t cli_u64(const struct opt_state *s, uint64_t min, uint64_t max);
uint64_t cli_size(const struct opt_state *s, uint64_t min, uint64_t max);
int64_t cli_duration(const struct opt_state *s);

/* What the shared options say; zeroed is the default. */
struct cli_common {
	struct rec_how how;
	const char *output; /* -o, NULL: standard output */
	bool quiet, evidence;
	int verbose;
	int color; /* 0 auto, 1 always, -1 never */
	bool progress, progress_always;
	const char *prom;
	bool now_given;
	int64_t now; /* nanoseconds since the epoch */
	struct policy policy;
	bool labels; /* records may have keys of the user's: see cli_columns */
};

/*
 * Takes an option of OPT_COMMON or OPT_JUDGE; false if `id` is none of them.
 * --help and --version print and end the program with status 0.
 */
bool cli_common(struct cli_common *c, int id, const struct opt_state *s,
    const char *const *usage, const char *summary);
/* Checks combinations once all options are read. `type`: the main type. */
void cli_common_done(struct cli_common *c, const char *type);
/*
 * Dies with a usage error if --columns names what no record of the type has.
 * Names with a dot (x.KEY and the like) are not judged, nor those that `also`
 * (may be NULL) knows. cli_common_done does it unless c->labels.
 */
void cli_columns(const struct cli_common *c,
    bool (*also)(void *user, struct str name), void *user);
/* The next name in a list of columns that the type does not have. */
bool
cli_column_odd(const struct cli_common *c, struct str *rest, struct str *name);

/* --now, else SOURCE_DATE_EPOCH, else the clock. */
int64_t cli_now(const struct cli_common *c);
/* Characters in a line: COLUMNS, else the terminal's, else 80. */
size_t cli_width(void);
/* TMPDIR or /tmp. */
const char *cli_tmpdir(void);
/*
 * Opens an input of the command as src_open does; "-" is standard input, which
 * is there once: the second time it is SE_EINVAL.
 */
int
cli_src_open(struct src **out, const char *path, unsigned flags, struct err *e);
/* For messages: the path, or "standard input". */
const char *cli_src_name(const char *path);
/* Escaped and cut for a message or a terminal; free() it. */
char *cli_escape_dup(const char *text);

/*
 * The output of a command. A regular file given by -o appears under its name
 * only when complete (temporary file and rename); FIFOs and devices are
 * written directly. With `append` it is a recorder's: opened for appending.
 * Whatever ends the program (cli_die, exit, SIGHUP, SIGINT, SIGPIPE, SIGTERM
 * at their default action) also removes the temporary file.
 */
struct cli_out {
	int fd;
	char *path, *temp;
	bool append;
};

/* Dies if it cannot. */
void cli_out_open(struct cli_out *o, const char *path, bool append);
/*
 * Closes (standard output too) and, if `keep`, renames into place. Returns 0
 * or says what failed on stderr and returns -1: the caller exits with 2.
 */
int cli_out_close(struct cli_out *o, bool keep);
/* Writes finished text. Returns 0 or says what failed and returns -1. */
int cli_out_write(const struct cli_out *o, const char *p, size_t len);
/* For messages: its path, or "standard output". */
const char *cli_out_name(const struct cli_out *o);
/*
 * Ends the records that `rec` wrote to `o`: the end record with `result` (NULL:
 * none) and `status`, then closes both. A file given by -o appears unless the
 * status is STATUS_NONE. Returns the status, which is STATUS_NONE (after a
 * message) if something could not be written.
 */
int cli_out_end(struct cli_out *o, struct rec_out *rec, const char *result,
    int status, uint64_t skipped);

/*
 * After text on stdout through stdio (--help): closes it. Returns 0, or says
 * that it could not be written and returns STATUS_NONE.
 */
int cli_said(void);

/*
 * Metrics for node-exporter's textfile collector, written atomically. To be
 * called on every way out of main; cli_die and cli_usage do it themselves
 * (`*c` must still be there). `job` NULL: the name of the file, without
 * directory and .prom, so that it is the same when the command fails. If it
 * cannot write it says so and the status stays what it was.
 */
void cli_prom(const struct cli_common *c, const char *job, const char *result,
    const char *reason, int status, uint64_t skipped);

/*
 * Reads a list of names for --files0-from: NUL separated, from a file or "-".
 * Returns the names (each and the array to be freed with cli_names_free).
 */
char **cli_names(const char *path, size_t *n);
void cli_names_free(char **names, size_t n);

/*
 * Where a file that comes with a command is: installed in
 * PREFIX/share/straightedge/FOLDER, or in cmd/WHOSE/FOLDER of the sources
 * that the program was built in. False: nowhere.
 */
bool cli_shipped(const char *whose, const char *folder, const char *name,
    char *path, size_t room);

/* Dies with a usage error if standard input is a terminal. */
void cli_need_input(void);

#endif
