/*
 * Options: one const table per command (or verb) that parses the command line
 * and prints --help, so that the two cannot differ.
 */
#ifndef OPT_H
#define OPT_H

#include <stdbool.h>

struct opt {
	int id;           /* the short letter, or a number above 255 */
	const char *name; /* long name, always there */
	const char *arg;  /* what the argument is called, NULL: none;
			     "[=WORD]": optional, only with = */
	const char *help; /* one line */
};

enum {
	OPT_END = 0,     /* nothing left */
	OPT_OPERAND = 1, /* s->arg is an operand */
	/* ids of the long-only options all commands share */
	OPT_COLOR = 256,
	OPT_PROGRESS,
	OPT_PROM,
	OPT_NOW,
	OPT_STRICT,
	OPT_ALLOW_BAD,
	OPT_PARTIAL,
	OPT_FILES0,
	OPT_COLUMNS,
	OPT_TYPE,
	OPT_OWN = 300, /* commands number theirs from here */
};

// clang-format off
/* Rows for every command. */
#define OPT_COMMON \
	{ 'F', "format", "FORM", "lines, table, json, tsv or csv" }, \
	{ OPT_TYPE, "type", "TYPE", "record type for table, tsv, csv" }, \
	{ OPT_COLUMNS, "columns", "LIST", "their columns, comma separated" }, \
	{ 'o', "output", "FILE", "write there instead of standard output" }, \
	{ 'z', "compress", NULL, "compress the output (gzip)" }, \
	{ 'q', "quiet", NULL, "the verdict only" }, \
	{ 'v', "verbose", NULL, "more" }, \
	{ OPT_COLOR, "color", "WHEN", "auto, always or never" }, \
	{ OPT_NOW, "now", "TIME", "the time to print instead of the clock" }, \
	{ 'h', "help", NULL, "print this" }, \
	{ 'V', "version", NULL, "print the version" }

/* Rows for commands that reach a verdict from input that may be damaged. */
#define OPT_JUDGE \
	{ 'E', "evidence", NULL, "print evidence records for rcacompose" }, \
	{ OPT_STRICT, "strict", NULL, "damaged input: no verdict, status 2" }, \
	{ OPT_ALLOW_BAD, "allow-bad", "N", "tolerate N bad lines" }, \
	{ OPT_PARTIAL, "partial", NULL, "filtered input is all there is" }, \
	{ OPT_PROM, "prom", "FILE", "write metrics for node-exporter" }

#define OPT_LAST { 0, 0, 0, 0 }
// clang-format on

struct opt_state {
	const struct opt *table;
	char **argv;
	int argc;
	int at;           /* next argument to look at */
	const char *more; /* rest of a cluster of short options */
	bool command;     /* stop at the first operand: a command follows */
	bool ended;       /* after -- */
	const char *arg;  /* of the option, or the operand */
	const char *name; /* as the user wrote it, for messages */
	char shown[64];
};

/* argv[0] is the command or verb and is skipped. */
void
opt_start(struct opt_state *s, const struct opt *table, int argc, char **argv);

/*
 * The id of the next option, OPT_OPERAND or OPT_END. Options and operands may
 * mix unless s->command. Long names match exactly. A usage error ends the
 * program with status 2 through cli_usage().
 * With s->command, OPT_END comes at the first operand (or after --) and
 * argv[s->at] is that operand.
 */
int opt_next(struct opt_state *s);

/* Usage lines, a sentence, and the table, to standard output. */
void opt_help(
    const struct opt *table, const char *const *usage, const char *summary);

/*
 * Commands with verbs have one table of them; each verb has its own file,
 * options and --help. The row with an empty name is what runs without a verb.
 */
struct verb {
	const char *name; /* NULL ends the table */
	int (*main)(int argc, char **argv);
	const char *help;
};

/*
 * Names the command ("CMD" or "CMD VERB") for messages and runs the verb that
 * argv[1] names, with argv starting at the verb; else the nameless verb with
 * argv as it is. `CMD --help` is the nameless verb's affair, with the list of
 * verbs added by opt_help; without one it prints that list.
 */
int opt_verbs(const struct verb *table, const char *command,
    const char *summary, int argc, char **argv);
void opt_list_verbs(const struct verb *table, const char *command);

#endif
