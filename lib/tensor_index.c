/*
 * The index of a model in several safetensors files (*.index.json):
 * {"metadata":{"total_size":n},"weight_map":{TENSOR:FILE}}. Files are plain
 * names beside the index; what is in them must be what the index says.
 * Source: huggingface_hub, serialization of sharded checkpoints.
 */
#include <inttypes.h>

#include "esc.h"
#include "json.h"
#include "map.h"
#include "num.h"
#include "tensor_formats.h"

enum {
	INDEX_MAX = 100 << 20, /* as much as a safetensors header */
	SHARDS_MAX = 100000,
	BLOCK = 256 << 10,
};

struct shard {
	struct str name;
	struct src *src;
};

struct reader {
	struct tensor_set *set;
	const struct tensor_hints *hints;
	struct json j;
	struct map files;   /* name -> number in shard[] */
	struct map tensors; /* name -> number of its shard, + 1; 0: found */
	struct map meta;    /* name of a kv: scalar -> its entry */
	struct buf shards;  /* of struct shard */
	uint64_t total;     /* metadata.total_size */
	bool has_total, has_map;
};

static int
probe(const unsigned char *head, size_t len)
{
	static const char key[] = "\"weight_map\"";
	size_t i = 0, n = sizeof key - 1;
	while (i < len && (head[i] == ' ' || head[i] == '\n' ||
			      head[i] == '\r' || head[i] == '\t'))
		i++;
	if (i == len || head[i] != '{')
		return 0;
	for (; i + n <= len; i++)
		if (!memcmp(head + i, key, n))
			return 95;
	return 0;
}

static struct shard *
shard_at(const struct reader *r, size_t i)
{
	return (struct shard *)(void *)r->shards.p + i;
}

static size_t
nshards(const struct reader *r)
{
	return r->shards.len / sizeof(struct shard);
}

/* ---- the JSON ---------------------------------------------------------- */

static bool
read_mapping(struct reader *r, struct str tensor)
{
	struct json *j = &r->j;
	struct str file;
	bool fresh;
	if (!json_expect(j, JSON_STRING, &file))
		return false;
	uint64_t *number = map_at(&r->files, file, &fresh);
	if (!number)
		return json_fail(j, SE_ENOMEM, "out of memory");
	if (fresh) {
		struct shard s = { file, NULL };
		*number = nshards(r);
		buf_add(&r->shards, &s, sizeof s);
	}
	if (nshards(r) > SHARDS_MAX)
		return json_fail(
		    j, SE_ELIMIT, "more than %d files", SHARDS_MAX);
	uint64_t n = *number;
	uint64_t *of = map_at(&r->tensors, tensor, &fresh);
	if (!of || r->shards.failed)
		return json_fail(j, SE_ENOMEM, "out of memory");
	*of = n + 1;
	return true;
}

static bool
read_map(struct reader *r)
{
	struct str key;
	r->has_map = true;
	json_expect(&r->j, JSON_OBJECT, NULL);
	while (json_member(&r->j, &key) && read_mapping(r, key))
		;
	return !r->j.err.code;
}

static bool
read_metadata(struct reader *r)
{
	struct str key, v;
	json_expect(&r->j, JSON_OBJECT, NULL);
	while (json_member(&r->j, &key)) {
		if (!str_is(key, "total_size")) {
			json_skip(&r->j);
			continue;
		}
		/* Some writers say 1.0e9: then there is nothing to compare. */
		if (!json_expect(&r->j, JSON_NUMBER, &v))
			return false;
		r->has_total = !num_u64(v, 0, UINT64_MAX, &r->total, NULL);
	}
	return !r->j.err.code;
}

static int
parse(struct reader *r, struct str text, struct err *e)
{
	struct str key;
	json_init(&r->j, text, &r->set->arena, 0);
	json_expect(&r->j, JSON_OBJECT, NULL);
	while (json_member(&r->j, &key)) {
		if (str_is(key, "weight_map"))
			read_map(r);
		else if (str_is(key, "metadata"))
			read_metadata(r);
		else
			json_skip(&r->j);
	}
	int code = json_end(&r->j, e);
	if (!code && !r->has_map)
		code = err_set(e, SE_EFORMAT, "no weight_map");
	return code;
}

/* The whole source, in the set's arena. */
static int
read_text(struct reader *r, struct src *src, struct str *text, struct err *e)
{
	struct buf b = { 0 };
	size_t n = 0;
	int code;
	do {
		char *to = buf_room(&b, BLOCK);
		code = to ? src_read_some(src, b.len, to, BLOCK, &n, e)
			  : err_mem(e);
		if (!code)
			b.len += n;
		if (!code && b.len > INDEX_MAX)
			code = err_set(e, SE_ELIMIT,
			    "index of more than %d bytes", INDEX_MAX);
	} while (!code && n);
	if (!code) {
		*text = arena_str(&r->set->arena, buf_view(&b));
		code = text->p ? 0 : err_mem(e);
	}
	buf_free(&b);
	return code;
}

/* ---- the files --------------------------------------------------------- */

/*
 * Every shard has its __metadata__, usually the same: one of each key stays.
 * Differences are noted.
 */
static int
merge_metadata(struct reader *r, size_t first, struct str file, struct err *e)
{
	struct tensor_set *set = r->set;
	size_t kept = first;
	for (size_t i = first; i < set->n; i++) {
		struct tensor *t = &set->t[i];
		bool fresh = true;
		uint64_t *at = NULL;
		if (t->flags & TENSOR_META) {
			at = map_at(&r->meta, t->name, &fresh);
			if (!at)
				return err_mem(e);
		}
		if (fresh) {
			if (at)
				*at = kept;
			set->t[kept++] = *t;
		} else if (!str_same(set->t[*at].value, t->value)) {
			int code = tensor_note_name(set, file,
			    "__metadata__ unlike that of other files", e);
			if (code)
				return code;
		}
	}
	set->n = kept;
	return 0;
}

/* The tensors of one shard are those the index says, no more, no less. */
static int
cross_check(struct reader *r, size_t first, uint64_t shard, struct err *e)
{
	struct tensor_set *set = r->set;
	for (size_t i = first; i < set->n; i++) {
		struct tensor *t = &set->t[i];
		if (t->flags & TENSOR_SCALAR)
			continue;
		t->file = shard_at(r, shard)->name;
		uint64_t *of = map_get(&r->tensors, t->name);
		if (of && *of == shard + 1) {
			*of = 0; /* found */
			continue;
		}
		int code = of ? err_set(e, SE_EFORMAT,
				    *of ? "the index says it is in another file"
					: "is there twice")
			      : tensor_note_name(set, t->name,
				    "in a file, not in the index", e);
		if (code) {
			esc_prefix(e, "tensor", t->name);
			return code;
		}
	}
	return 0;
}

static int
open_shard(struct reader *r, uint64_t i, struct err *e)
{
	struct tensor_set *set = r->set;
	struct shard *s = shard_at(r, i);
	size_t first = set->n;
	/* arena_str puts a NUL behind it; one inside makes it another name. */
	struct str name = arena_str(&set->arena, s->name);
	if (!name.p)
		return err_mem(e);
	if (memchr(name.p, 0, name.len))
		return err_set(e, SE_EFORMAT, "not a plain file name");
	int code = src_open_at(
	    &s->src, r->hints->dirfd, name.p, r->hints->tmpdir, 0, e);
	if (code)
		return code;
	code = tensor_own(set, s->src, e);
	if (!code && i >= SRC_FDS_KEPT)
		src_release_fd(s->src, r->hints->dirfd, name.p);
	if (!code)
		code = tensor_safetensors.open(set, s->src, r->hints, e);
	if (code)
		return code;
	uint64_t size = src_size(s->src);
	if (size != SRC_UNKNOWN && size > set->end)
		return err_set(e, SE_EFORMAT,
		    "%" PRIu64 " bytes follow the end of the data at offset "
		    "%" PRIu64,
		    size - set->end, set->end);
	code = merge_metadata(r, first, s->name, e);
	return code ? code : cross_check(r, first, i, e);
}

/* Names that no file had. */
static int
check_found(struct reader *r, struct str text, struct err *e)
{
	struct json j;
	struct str key, tensor;
	int code = 0;
	json_init(&j, text, &r->set->arena, JSON_ANY_KEYS);
	json_expect(&j, JSON_OBJECT, NULL);
	while (json_member(&j, &key)) {
		if (!str_is(key, "weight_map")) {
			json_skip(&j);
			continue;
		}
		json_expect(&j, JSON_OBJECT, NULL);
		while (json_member(&j, &tensor)) {
			json_skip(&j);
			uint64_t *of = map_get(&r->tensors, tensor);
			if (code || !of || !*of)
				continue;
			struct str file = shard_at(r, *of - 1)->name;
			code = err_set(e, SE_EFORMAT, "is not in it");
			esc_prefix(e, "file", file);
			esc_prefix(e, "tensor", tensor);
		}
	}
	json_end(&j, NULL);
	return code;
}

static int
check_total(struct reader *r, struct err *e)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < r->set->n; i++)
		if (!(r->set->t[i].flags & TENSOR_SCALAR))
			sum += r->set->t[i].limit;
	if (!r->has_total || sum == r->total)
		return 0;
	return tensor_note(r->set, e,
	    "the index says %" PRIu64 " bytes in all, the files have "
	    "%" PRIu64,
	    r->total, sum);
}

static int
open_all(struct reader *r, struct src *src, struct err *e)
{
	struct str text;
	int code = read_text(r, src, &text, e);
	if (!code)
		code = parse(r, text, e);
	if (!code && r->hints->dirfd < 0 && nshards(r))
		code = err_set(e, SE_EINVAL,
		    "an index names files beside it: give it by its name");
	for (uint64_t i = 0; !code && i < nshards(r); i++) {
		code = open_shard(r, i, e);
		if (code)
			esc_prefix(e, "file", shard_at(r, i)->name);
	}
	if (!code)
		code = check_found(r, text, e);
	if (!code)
		code = check_total(r, e);
	return code;
}

static int
open_set(struct tensor_set *set, struct src *src,
    const struct tensor_hints *hints, struct err *e)
{
	struct reader r = { .set = set, .hints = hints };
	int code = open_all(&r, src, e);
	map_free(&r.files);
	map_free(&r.tensors);
	map_free(&r.meta);
	buf_free(&r.shards);
	set->end = SRC_UNKNOWN;
	return code;
}

const struct tensor_format tensor_index = {
	.name = "index",
	.what = "index.json of several safetensors files",
	.probe = probe,
	.open = open_set,
};
