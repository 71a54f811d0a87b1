/* Files of a directory that are one checkpoint: see bundle.h. */
#include "bundle.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "buf.h"
#include "json.h"
#include "map.h"
#include "src.h"

/* As in tensor_index.c, which refuses longer ones with a message. */
enum { INDEX_MAX = 100 << 20, BLOCK = 256 << 10 };

struct bundle {
	struct walk *w;
	struct map path; /* of every file -> its number */
	bool *covered;
	struct map orphaned; /* directories already complained about */
	struct buf text;
	struct arena arena; /* of one index */
};

static struct str
directory(struct str path)
{
	while (path.len && path.p[path.len - 1] != '/')
		path.len--;
	return path;
}

static struct str
base_name(struct str path)
{
	size_t n = directory(path).len;
	return (struct str){ path.p + n, path.len - n };
}

static struct str
path_of(const struct bundle *b, size_t i)
{
	return str_c(b->w->file[i].path);
}

/* The number of the file NAME beside the file `of`, or NULL. */
static uint64_t *
beside(struct bundle *b, struct str of, struct str name)
{
	b->text.len = 0;
	buf_str(&b->text, directory(of));
	buf_str(&b->text, name);
	return b->text.failed ? NULL : map_get(&b->path, buf_view(&b->text));
}

/* ---- safetensors -------------------------------------------------------- */

static bool
read_all(struct bundle *b, const char *path, struct str *text)
{
	struct src *src;
	struct buf t = { 0 };
	size_t n = 0;
	if (src_open(&src, path, NULL, 0, NULL))
		return false;
	bool ok = true;
	do {
		char *to = buf_room(&t, BLOCK);
		ok = to && !src_read_some(src, t.len, to, BLOCK, &n, NULL) &&
		     t.len < INDEX_MAX;
		t.len += ok ? n : 0;
	} while (ok && n);
	src_close(src);
	*text = ok ? arena_str(&b->arena, buf_view(&t)) : STR_NULL;
	buf_free(&t);
	return ok && text->p;
}

static bool
is_link(const char *path)
{
	struct stat st;
	return lstat(path, &st) || S_ISLNK(st.st_mode);
}

/* Can the index of file i speak for this shard? Marks it, if told to. */
static bool
take_shard(struct bundle *b, size_t i, struct str name, bool mark)
{
	uint64_t *k = beside(b, path_of(b, i), name);
	if (!str_ends(name, ".safetensors") ||
	    (k && is_link(b->w->file[*k].path)))
		return false;
	/* One that is missing is the reader's to report. */
	if (k && mark)
		b->covered[*k] = true;
	return true;
}

enum whose {
	NO_MAP, /* or damaged: the reader says so */
	OURS,
	OTHERS,
};

/* Goes over the weight_map. */
static enum whose
take_map(struct bundle *b, size_t i, struct str text, bool mark)
{
	struct json j;
	struct str key, name;
	bool found = false, ours = true;
	json_init(&j, text, &b->arena, 0);
	json_expect(&j, JSON_OBJECT, NULL);
	while (json_member(&j, &key)) {
		if (!str_is(key, "weight_map")) {
			json_skip(&j);
			continue;
		}
		found = true;
		json_expect(&j, JSON_OBJECT, NULL);
		while (json_member(&j, &key) &&
		       json_expect(&j, JSON_STRING, &name))
			ours = ours && take_shard(b, i, name, mark);
	}
	if (json_end(&j, NULL) || !found)
		return NO_MAP;
	return ours ? OURS : OTHERS;
}

static void
fold_index(struct bundle *b, size_t i)
{
	struct walk_file *f = &b->w->file[i];
	struct str text;
	enum whose whose = NO_MAP;
	if (read_all(b, f->path, &text))
		whose = take_map(b, i, text, false);
	if (whose == OURS)
		take_map(b, i, text, true);
	if (whose == OTHERS)
		f->format = "bytes";
	arena_free(&b->arena);
}

/* ---- torch ----------------------------------------------------------- */

static int
fold_distcp(struct bundle *b, size_t i, struct err *e)
{
	struct str dir = directory(path_of(b, i));
	bool fresh;
	b->covered[i] = true;
	if (beside(b, dir, STR_LIT(".metadata")))
		return 0;
	if (!map_at(&b->orphaned, dir, &fresh))
		return err_mem(e);
	if (!fresh)
		return 0;
	err_set(e, SE_EFORMAT,
	    "data of a distributed checkpoint without .metadata: the save did "
	    "not finish");
	b->w->skipped++;
	if (b->w->skip)
		b->w->skip(b->w->user, b->w->file[i].path, e);
	return 0;
}

/* ---- all ------------------------------------------------------------- */

static int
fold_all(struct bundle *b, struct err *e)
{
	struct walk *w = b->w;
	int r = 0;
	for (size_t i = 0; i < w->n; i++) {
		bool fresh;
		uint64_t *at = map_at(&b->path, path_of(b, i), &fresh);
		if (!at)
			return err_mem(e);
		*at = i;
	}
	for (size_t i = 0; !r && i < w->n; i++) {
		struct str name = base_name(path_of(b, i));
		if (!w->file[i].listed)
			continue;
		if (str_ends(name, "index.json"))
			fold_index(b, i);
		else if (str_ends(name, ".distcp"))
			r = fold_distcp(b, i, e);
	}
	return r;
}

int
bundle_fold(struct walk *w, struct err *e)
{
	struct bundle b = { .w = w };
	b.covered = calloc(w->n ? w->n : 1, sizeof *b.covered);
	int r = b.covered ? fold_all(&b, e) : err_mem(e);
	size_t kept = 0;
	for (size_t i = 0; !r && i < w->n; i++)
		if (!b.covered[i])
			w->file[kept++] = w->file[i];
	if (!r)
		w->n = kept;
	map_free(&b.path);
	map_free(&b.orphaned);
	buf_free(&b.text);
	arena_free(&b.arena);
	free(b.covered);
	return r;
}
