/*
 * Runs are evidence, and each counts once: who names one twice, in whatever
 * spelling, or a copy of it, would have it confirm itself.
 */
#include "fpdiff.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "hash.h"
#include "src.h"

enum { BLOCK = 256 << 10 };

struct named {
	const char *name;
	struct stat st;
	bool there, hashed;
	struct u128 hash;
};

static bool
is_same_file(const struct named *a, const struct named *b)
{
	if (!strcmp(a->name, b->name))
		return true;
	return a->there && b->there && a->st.st_dev == b->st.st_dev &&
	       a->st.st_ino == b->st.st_ino;
}

/* ---- copies ------------------------------------------------------------ */

static void
hash_file(struct named *f)
{
	struct src *src;
	struct err e;
	struct hash *h = hash_new();
	char *block = cli_alloc(BLOCK, 1);
	uint64_t at = 0;
	size_t got = 0;
	int r;
	if (!h)
		cli_die("out of memory");
	if (src_open(&src, f->name, cli_tmpdir(), SRC_PLAIN, &e))
		cli_die_err(f->name, &e);
	while (!(r = src_read_some(src, at, block, BLOCK, &got, &e)) && got) {
		hash_add(h, block, got);
		at += got;
	}
	if (r)
		cli_die_err(f->name, &e);
	f->hash = hash_value(h);
	f->hashed = true;
	hash_free(h);
	free(block);
	src_close(src);
}

/* Does it say when it was made? Two runs do not have every byte and that. */
static bool
says_time(const struct settings *s, const char *name)
{
	struct settings one = *s;
	int64_t time;
	one.operand[ALIGN_A] = name;
	struct side *side = side_open(&one, ALIGN_A);
	bool given = side_time(side, &time);
	side_close(side);
	return given;
}

static bool
is_copy(const struct settings *s, struct named *a, struct named *b)
{
	if (!a->there || !b->there || !S_ISREG(a->st.st_mode) ||
	    !S_ISREG(b->st.st_mode) || a->st.st_size != b->st.st_size)
		return false;
	if (!a->hashed)
		hash_file(a);
	if (!b->hashed)
		hash_file(b);
	return u128_same(a->hash, b->hash) && says_time(s, a->name);
}

/* ---- all of them ------------------------------------------------------- */

static void
check_pair(const struct settings *s, struct named *a, struct named *b)
{
	if (is_same_file(a, b))
		cli_usage("%s is named twice, as %s: one run counts once",
		    b->name, a->name);
	if (is_copy(s, a, b))
		cli_usage("%s is a copy of %s: one run counts once", b->name,
		    a->name);
}

void
once_check(const struct settings *s)
{
	size_t n = s->nrefs + s->nruns;
	struct named *list = cli_alloc(n, sizeof *list);
	for (size_t i = 0; i < n; i++) {
		struct named *f = &list[i];
		f->name = i < s->nrefs ? s->ref[i] : s->run[i - s->nrefs];
		f->there = !stat(f->name, &f->st);
		for (size_t k = 0; k < i; k++)
			check_pair(s, &list[k], f);
	}
	free(list);
}
