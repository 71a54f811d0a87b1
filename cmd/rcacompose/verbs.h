/* The verbs, and what they share. */
#ifndef VERBS_H
#define VERBS_H

#include "cli.h"
#include "stack.h"

int run_main(int argc, char **argv);
int read_main(int argc, char **argv);
int lint_main(int argc, char **argv);
int score_main(int argc, char **argv);

/*
 * Reads the stack that -s names: a path, or without a slash one of those that
 * are shipped. Dies with what is wrong.
 */
struct stack *stack_open(const char *name);
void stack_close(struct stack *s);
/* The path that -s NAME stands for. */
void stack_path(const char *name, char *path, size_t room);

/* A stream of `of` records, its head written; `source` may be NULL. */
struct rec_out *records_open(
    int fd, const struct rec_how *how, const char *of, const char *source);

#endif
