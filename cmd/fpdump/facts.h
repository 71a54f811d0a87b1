/* Facts about the host, collected before they are written in order. */
#ifndef FACTS_H
#define FACTS_H

#include <stddef.h>

#include "arena.h"
#include "str.h"

/* What a fact belongs to: class= of its record. */
extern const char class_host[], class_container[], class_volatile[];

struct fact {
	struct str name, value;
	const char *class;
	const char *note; /* or NULL */
};

struct facts {
	struct arena arena;
	struct fact *p;
	size_t n, cap;
};

/* Copies both; dies when out of memory. A value with p NULL is "unknown". */
void facts_add(struct facts *f, const char *class, struct str name,
    struct str value, const char *note);

/* libs.c: the libraries a program would load, and where they are. */
struct libs {
	struct facts *facts;
	char **path; /* files to fingerprint: name, path, name, path ... */
	size_t n;
};
void libs_collect(struct libs *l, const char *program);
void libs_free(struct libs *l);

#endif
