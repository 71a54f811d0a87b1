/* From operands to files: see walk.h. */
#define _GNU_SOURCE /* O_DIRECTORY */
#include "walk.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sort.h"
#include "tensor.h"

/* The directories above the current one, to find loops. */
struct above {
	const struct above *up;
	dev_t dev;
	ino_t ino;
	unsigned depth;
};

struct names {
	char **p;
	size_t n, cap;
};

static void
left_out(struct walk *w, const char *path, const struct err *e)
{
	w->skipped++;
	if (w->skip)
		w->skip(w->user, path, e);
}

static int
add_file(struct walk *w, const char *path, struct str name, bool listed,
    struct err *e)
{
	if (w->n == WALK_FILES_MAX)
		return err_set(
		    e, SE_ELIMIT, "more than %u files", WALK_FILES_MAX);
	if (w->n == w->cap) {
		size_t cap = w->cap ? w->cap * 2 : 64;
		struct walk_file *p = realloc(w->file, cap * sizeof *p);
		if (!p)
			return err_mem(e);
		w->file = p;
		w->cap = cap;
	}
	w->file[w->n++] =
	    (struct walk_file){ .path = path, .name = name, .listed = listed };
	return 0;
}

static int
by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int
names_add(struct names *l, const char *name, struct err *e)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 64;
		char **p = realloc(l->p, cap * sizeof *p);
		if (!p)
			return err_mem(e);
		l->p = p;
		l->cap = cap;
	}
	l->p[l->n] = strdup(name);
	if (!l->p[l->n])
		return err_mem(e);
	l->n++;
	return 0;
}

static void
names_free(struct names *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->p[i]);
	free(l->p);
}

static int
list(const char *path, struct names *l, struct err *e)
{
	DIR *d = opendir(path);
	if (!d)
		return err_sys(e, "cannot open");
	int r = 0;
	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(d);
		if (!entry) {
			if (errno)
				r = err_sys(e, "cannot read the directory");
			break;
		}
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		r = names_add(l, entry->d_name, e);
		if (r)
			break;
	}
	closedir(d);
	if (!r)
		sort_array(l->p, l->n, sizeof *l->p, by_bytes);
	return r;
}

/* PATH/NAME in the arena. */
static char *
join(struct walk *w, const char *path, const char *name)
{
	size_t n = strlen(path), m = strlen(name);
	bool slash = n && path[n - 1] != '/';
	char *p = arena_alloc(&w->arena, n + slash + m + 1);
	if (!p)
		return NULL;
	memcpy(p, path, n);
	if (slash)
		p[n] = '/';
	memcpy(p + n + slash, name, m + 1);
	return p;
}

static int
check_loop(const struct above *up, const struct stat *st, struct err *e)
{
	if (up && up->depth >= WALK_DEPTH_MAX)
		return err_set(e, SE_ELIMIT,
		    "directories nested deeper than %u", WALK_DEPTH_MAX);
	for (; up; up = up->up)
		if (up->dev == st->st_dev && up->ino == st->st_ino)
			return err_set(
			    e, SE_EINVAL, "is a directory that it lies in");
	return 0;
}

/*
 * Adds a file or counts what is left out; 1: a directory, still to be walked,
 * with *st and *full.
 */
static int
visit(struct walk *w, const char *path, const char *name, size_t base,
    struct stat *st, char **full, struct err *e)
{
	*full = join(w, path, name);
	if (!*full)
		return err_mem(e);
	if (stat(*full, st)) {
		err_sys(e, "cannot stat");
		left_out(w, *full, e);
		return 0;
	}
	if (S_ISREG(st->st_mode)) {
		w->bytes += (uint64_t)st->st_size;
		return add_file(w, *full, str_c(*full + base), true, e);
	}
	if (S_ISDIR(st->st_mode))
		return 1;
	err_set(e, SE_EINVAL, "neither a regular file nor a directory");
	left_out(w, *full, e);
	return 0;
}

/* A directory inside that cannot be walked is left out, not the rest. */
static bool
is_fatal(int r, const struct walk *w)
{
	return r == SE_ENOMEM || w->n == WALK_FILES_MAX;
}

/*
 * Data files of a distributed checkpoint are read through its .metadata, and
 * without it not at all.
 */
static bool
is_checkpoint(struct walk *w, const char *path, const struct names *l)
{
	struct err e = { 0 };
	bool data = false;
	for (size_t i = 0; !data && i < l->n; i++)
		data = tensor_dcp_is_data(l->p[i]);
	int r = data ? tensor_dcp_find(path, &e) : 0;
	if (r < 0)
		left_out(w, path, &e);
	return r != 0;
}

static int
walk_dir(struct walk *w, const char *path, size_t base, const struct stat *st,
    const struct above *up, struct err *e)
{
	struct names l = { 0 };
	struct above here = { up, st->st_dev, st->st_ino,
		up ? up->depth + 1 : 1 };
	int r = list(path, &l, e);
	bool checkpoint = !r && is_checkpoint(w, path, &l);
	for (size_t i = 0; !r && i < l.n; i++) {
		struct stat inner;
		char *full;
		if (checkpoint && tensor_dcp_is_data(l.p[i]))
			continue;
		r = visit(w, path, l.p[i], base, &inner, &full, e);
		if (r != 1)
			continue;
		r = check_loop(&here, &inner, e);
		if (!r)
			r = walk_dir(w, full, base, &inner, &here, e);
		if (r && !is_fatal(r, w)) {
			left_out(w, full, e);
			r = 0;
		}
	}
	names_free(&l);
	return r;
}

int
walk_add(struct walk *w, const char *operand, struct err *e)
{
	struct stat st;
	struct str name = arena_str(&w->arena, str_c(operand));
	if (!name.p)
		return err_mem(e);
	if (stat(operand, &st))
		return err_sys(e, "cannot open");
	if (S_ISREG(st.st_mode))
		w->bytes += (uint64_t)st.st_size;
	if (!S_ISDIR(st.st_mode))
		return add_file(w, name.p, name, false, e);
	size_t base = name.len;
	base += base && operand[base - 1] != '/';
	return walk_dir(w, name.p, base, &st, NULL, e);
}

void
walk_close(struct walk *w)
{
	arena_free(&w->arena);
	free(w->file);
	*w = (struct walk){ 0 };
}
