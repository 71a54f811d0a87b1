/*
 * The parts of the parser of stack files: words and files (stack_file.c),
 * agents (stack_agent.c), all other statements (stack.c).
 */
#ifndef STACK_PARSE_H
#define STACK_PARSE_H

#include "stack.h"

/* A file that is being read. */
struct frame {
	const char *file;
	struct str rest;
	unsigned line, statements;
	int fd; /* kept to ask who may write it; -1: a text */
};

struct parser {
	struct stack *s;
	struct frame frame[STACK_DEPTH_MAX];
	size_t depth;
	struct str word[STACK_WORDS_MAX]; /* of the current line */
	size_t n;
};

/* Where the current line stands. */
struct place parser_here(const struct parser *p);

/* Splits at `sep` into words that a program can be given. */
int words_split(struct stack *s, struct str text, char sep, struct words *out,
    struct err *e);
bool words_have(const struct words *w, struct str name);
/* Letters, digits and -_. : what may stand in a record without escapes. */
int words_name(const char *what, struct str s, struct err *e);

/* One statement each; the words are in the parser. */
int stack_statement(struct parser *p, struct err *e);
int stack_agent_line(struct parser *p, struct err *e);
int stack_include(struct parser *p, struct err *e);

#endif
