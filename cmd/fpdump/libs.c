/*
 * --libs: the libraries a program would load, found the way ld.so(8) finds
 * them but without running anything.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "dynamic.h"
#include "facts.h"
#include "fpdump.h"
#include "map.h"

enum {
	LIBS_MAX = 10000,
	SCRIPT_DEPTH = 4, /* #! lines that name another script */
	SCRIPT_LINE = 256,
	PARENTS_MAX = 1000, /* RPATH of those that asked */
};

/* A file whose libraries are looked for, and who asked for it. */
struct object {
	const char *path;
	struct dynamic d;
	size_t parent; /* its own number for the program */
};

struct search {
	struct libs *libs;
	struct arena arena;
	struct object *object;
	size_t n;
	struct map seen; /* names that were looked for */
	struct dynamic_cache cache;
	bool has_cache;
	const char *library_path; /* LD_LIBRARY_PATH */
};

static const char *
keep(struct search *s, struct str text)
{
	struct str copy = arena_str(&s->arena, text);
	if (!copy.p)
		cli_die("out of memory");
	return copy.p;
}

/* ---- results --------------------------------------------------------- */

static void
add_fact(struct search *s, struct str name, const char *path, const char *note)
{
	struct buf b = { 0 };
	buf_puts(&b, "lib.");
	buf_str(&b, name);
	buf_puts(&b, ".path");
	facts_add(s->libs->facts, class_container, buf_view(&b),
	    path ? str_c(path) : STR_NULL, note);
	buf_free(&b);
}

static void
add_file(struct search *s, struct str name, const char *path)
{
	struct libs *l = s->libs;
	struct buf b = { 0 };
	buf_puts(&b, "lib.");
	buf_str(&b, name);
	l->path = cli_realloc(l->path, 2 * (l->n + 1), sizeof *l->path);
	l->path[2 * l->n] = strdup(buf_cstr(&b));
	l->path[2 * l->n + 1] = strdup(path);
	if (!l->path[2 * l->n] || !l->path[2 * l->n + 1])
		cli_die("out of memory");
	l->n++;
	buf_free(&b);
}

void
libs_free(struct libs *l)
{
	for (size_t i = 0; i < 2 * l->n; i++)
		free(l->path[i]);
	free(l->path);
}

/* ---- looking for one ---------------------------------------------------- */

static bool
read_object(struct search *s, const char *path, struct dynamic *d)
{
	struct src *src;
	struct stat st;
	if (stat(path, &st) || !S_ISREG(st.st_mode) ||
	    src_open(&src, path, cli_tmpdir(), SRC_PLAIN, NULL))
		return false;
	bool ok = !dynamic_read(d, src, &s->arena, NULL);
	src_close(src);
	return ok;
}

/* The file, if it is there and could be loaded into the program. */
static const char *
try_file(struct search *s, const char *path, struct dynamic *d)
{
	if (!read_object(s, path, d) || !dynamic_fits(d, &s->object[0].d))
		return NULL;
	return path;
}

/* $ORIGIN is the directory of the object that names the path. */
static void
put_expanded(struct buf *b, struct str dir, const char *origin)
{
	const char *slash = strrchr(origin, '/');
	struct str here = { origin, slash ? (size_t)(slash - origin) : 0 };
	while (dir.len) {
		size_t skip = str_starts(dir, "$ORIGIN")     ? 7
			      : str_starts(dir, "${ORIGIN}") ? 9
							     : 0;
		if (skip)
			buf_str(b, here.len ? here : STR_LIT("."));
		else
			buf_putc(b, *dir.p);
		skip = skip ? skip : 1;
		dir.p += skip;
		dir.len -= skip;
	}
}

static const char *
try_dirs(struct search *s, struct str dirs, const char *origin, struct str name,
    struct dynamic *d)
{
	struct str dir;
	const char *found = NULL;
	struct buf b = { 0 };
	while (!found && dirs.len && str_cut(&dirs, ':', &dir)) {
		b.len = 0;
		put_expanded(&b, dir.len ? dir : STR_LIT("."), origin);
		buf_putc(&b, '/');
		buf_str(&b, name);
		found = try_file(s, keep(s, buf_view(&b)), d);
	}
	buf_free(&b);
	return found;
}

/* The first entry for every processor; others only make a note. */
static const char *
try_cache(
    struct search *s, struct str want, struct dynamic *d, const char **note)
{
	for (size_t i = 0; s->has_cache && i < s->cache.n; i++) {
		struct str name, path;
		bool some;
		if (dynamic_cache_entry(
			&s->cache, i, &name, &path, &some, NULL))
			return NULL;
		if (!str_same(name, want))
			continue;
		if (some) {
			*note = "some processors load another from "
				"glibc-hwcaps";
			continue;
		}
		const char *found = try_file(s, keep(s, path), d);
		if (found)
			return found;
	}
	return NULL;
}

/* RPATH of the object and of those that asked for it, unless it has RUNPATH. */
static const char *
try_rpath(struct search *s, size_t from, struct str name, struct dynamic *d)
{
	if (s->object[from].d.runpath.len)
		return NULL;
	for (int depth = 0; depth < PARENTS_MAX; depth++) {
		const struct object *o = &s->object[from];
		const char *found = o->d.runpath.len ? NULL
						     : try_dirs(s, o->d.rpath,
							   o->path, name, d);
		if (found || o->parent == from)
			return found;
		from = o->parent;
	}
	return NULL;
}

static const char *
find(struct search *s, size_t from, struct str name, struct dynamic *d,
    const char **note)
{
	static const char dirs[] = "/lib64:/usr/lib64:/lib:/usr/lib";
	const struct object *o = &s->object[from];
	*note = NULL;
	if (memchr(name.p, '/', name.len))
		return try_file(s, keep(s, name), d);
	const char *found = try_rpath(s, from, name, d);
	if (!found && s->library_path)
		found = try_dirs(s, str_c(s->library_path), o->path, name, d);
	if (!found)
		found = try_dirs(s, o->d.runpath, o->path, name, d);
	if (!found)
		found = try_cache(s, name, d, note);
	if (!found)
		found = try_dirs(s, STR_LIT(dirs), o->path, name, d);
	return found;
}

/* ---- all of them -------------------------------------------------------- */

static void
add_object(
    struct search *s, const char *path, const struct dynamic *d, size_t parent)
{
	if (s->n == LIBS_MAX)
		cli_die("more than %d libraries", LIBS_MAX);
	s->object[s->n++] = (struct object){ path, *d, parent };
}

static void
want(struct search *s, size_t from, struct str name)
{
	struct dynamic d;
	const char *note;
	bool fresh;
	if (!map_at(&s->seen, name, &fresh))
		cli_die("out of memory");
	if (!fresh)
		return;
	const char *path = find(s, from, name, &d, &note);
	add_fact(s, name, path, note);
	if (!path)
		return;
	add_file(s, name, path);
	add_object(s, path, &d, from);
}

static void
want_preloaded(struct search *s)
{
	const char *list = getenv("LD_PRELOAD");
	struct str rest = str_c(list), word;
	while (rest.len && str_cut(&rest, ' ', &word)) {
		struct str part;
		while (word.len && str_cut(&word, ':', &part))
			if (part.len)
				want(s, 0, part);
	}
}

static void
load_cache(struct search *s)
{
	struct src *src;
	if (src_open(&src, "/etc/ld.so.cache", NULL, SRC_PLAIN, NULL))
		return;
	uint64_t size = src_size(src);
	if (size <= DYNAMIC_CACHE_MAX) {
		char *p = arena_alloc(&s->arena, (size_t)size);
		s->has_cache = p &&
			       !src_read_at(src, 0, p, (size_t)size, NULL) &&
			       !dynamic_cache_open(&s->cache,
				   (struct str){ p, (size_t)size }, NULL);
	}
	src_close(src);
}

/* ---- the program -------------------------------------------------------- */

/* As execvp(3) would find it. */
static const char *
find_program(struct search *s, const char *name)
{
	const char *path = getenv("PATH");
	struct str dirs = str_c(path), dir;
	if (strchr(name, '/') || !path)
		return name;
	while (str_cut(&dirs, ':', &dir)) {
		struct buf b = { 0 };
		buf_str(&b, dir.len ? dir : STR_LIT("."));
		buf_putc(&b, '/');
		buf_puts(&b, name);
		const char *full = keep(s, buf_view(&b));
		buf_free(&b);
		if (!access(full, X_OK))
			return full;
	}
	return name;
}

/* The interpreter of a `#!` line: env(1) means the next word. */
static const char *
interpreter(struct search *s, const char *path)
{
	char line[SCRIPT_LINE];
	struct src *src;
	size_t n;
	if (src_open(&src, path, NULL, SRC_PLAIN, NULL))
		return NULL;
	int r = src_read_some(src, 0, line, sizeof line, &n, NULL);
	src_close(src);
	struct str rest = { line, n }, first = STR_NULL, word;
	if (r || !str_starts(rest, "#!"))
		return NULL;
	rest.p += 2;
	rest.len -= 2;
	str_cut(&rest, '\n', &first);
	while (first.len && str_cut(&first, ' ', &word))
		if (word.len && !str_ends(word, "/env") && *word.p != '-')
			return find_program(s, keep(s, word));
	return NULL;
}

static bool
open_program(struct search *s, const char *program)
{
	struct dynamic d;
	struct src *src;
	struct err e;
	const char *path = find_program(s, program);
	for (int i = 0; i < SCRIPT_DEPTH; i++) {
		const char *next = interpreter(s, path);
		if (!next)
			break;
		path = next;
	}
	int r = src_open(&src, path, cli_tmpdir(), SRC_PLAIN, &e);
	if (!r) {
		r = dynamic_read(&d, src, &s->arena, &e);
		src_close(src);
	}
	if (r) {
		cli_warn_err(path, &e);
		return false;
	}
	facts_add(s->libs->facts, class_container, STR_LIT("program.path"),
	    str_c(path), NULL);
	add_file(s, STR_LIT("program"), path);
	add_object(s, path, &d, 0);
	return true;
}

void
libs_collect(struct libs *l, const char *program)
{
	struct search s = { .libs = l };
	s.object = cli_alloc(LIBS_MAX, sizeof *s.object);
	s.library_path = getenv("LD_LIBRARY_PATH");
	load_cache(&s);
	if (!open_program(&s, program)) {
		facts_add(l->facts, class_container, STR_LIT("program.path"),
		    STR_NULL, NULL);
	} else {
		if (s.object[0].d.interp.len)
			want(&s, 0, s.object[0].d.interp);
		want_preloaded(&s);
	}
	/* Breadth first, as the linker does. */
	for (size_t i = 0; i < s.n; i++)
		for (size_t k = 0; k < s.object[i].d.n; k++)
			want(&s, i, s.object[i].d.needed[k]);
	map_free(&s.seen);
	free(s.object);
	arena_free(&s.arena);
}
