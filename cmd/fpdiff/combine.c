/*
 * --combine: the shards of every tensor of a run are added up, so that runs of
 * other layouts can be compared. What comes out is a set of fp records whose
 * hash is the sum of the shards' sums.
 */
#include "fpdiff.h"

#include <stdlib.h>

#include "map.h"
#include "num.h"

enum { NDIM_MAX = 64, SHARDS_MAX = 65536 };

struct box {
	uint64_t from[NDIM_MAX], len[NDIM_MAX];
	size_t ndim;
};

struct shard {
	struct entry *e;
	struct shard *next;
};

/* All shards of one tensor: match key without parallel coordinates. */
struct whole {
	struct shard *shard, **end;
	size_t n;
	struct whole *next;
};

/* The first that differ, and how many sums have none of those. */
struct replicas {
	struct entry *a, *b;
	uint64_t agree;
};

struct combine {
	struct report *report;
	struct side *side;
	struct arena arena;
	struct map keys;
	struct whole *whole, **end;
	struct rec_out *out;
	uint64_t skipped;
	struct replicas *replicas;
	struct rec rec;
	struct buf text, undone;
};

static const unsigned coordinates =
    1u << FP_RANK | 1u << FP_DP | 1u << FP_PP | 1u << FP_TP | 1u << FP_EP;

static void
open_shard(struct combine *c, const struct shard *s, struct fp *f)
{
	c->undone.len = 0;
	entry_parse(
	    s->e->raw, f, &c->rec, buf_room(&c->undone, s->e->raw.len + 1));
}

static void
read_shards(struct combine *c)
{
	struct str line;
	struct fp f;
	struct entry e;
	bool fresh;
	while (side_line(c->side, &line)) {
		if (side_entry(c->side, line, &f, &e) != 1 || f.scalar)
			continue;
		struct u128 *key = arena_alloc(&c->arena, sizeof *key);
		if (!key)
			cli_die("out of memory");
		*key = fp_key(&f, coordinates, &c->text);
		struct str k = { (const char *)key, sizeof *key };
		uint64_t *at = map_at(&c->keys, k, &fresh);
		struct whole *w = fresh ? arena_alloc(&c->arena, sizeof *w)
					: (struct whole *)(uintptr_t)*at;
		struct shard *s = arena_alloc(&c->arena, sizeof *s);
		if (!at || !w || !s)
			cli_die("out of memory");
		if (fresh) {
			*at = (uint64_t)(uintptr_t)w;
			w->end = &w->shard;
			*c->end = w;
			c->end = &w->next;
		}
		s->e = entry_dup(&e);
		*w->end = s;
		w->end = &s->next;
		w->n++;
	}
}

/* ---- ranges ---------------------------------------------------------- */

/* Where the shard lies in its whole; a record without global= is all of it. */
static bool
box_of(const struct fp *f, struct box *b, uint64_t *global)
{
	size_t ng, no;
	if (fp_shape(f->shape, b->len, NDIM_MAX, &b->ndim, NULL))
		return false;
	if (!f->global.p) {
		memcpy(global, b->len, sizeof b->len);
		memset(b->from, 0, sizeof b->from);
		return true;
	}
	if (fp_shape(f->global, global, NDIM_MAX, &ng, NULL) ||
	    fp_shape(f->offset, b->from, NDIM_MAX, &no, NULL) ||
	    ng != b->ndim || no != ng)
		return false;
	for (size_t i = 0; i < ng; i++)
		if (b->from[i] > global[i] ||
		    b->len[i] > global[i] - b->from[i])
			return false;
	return true;
}

static bool
same_box(const struct box *a, const struct box *b)
{
	return a->ndim == b->ndim &&
	       !memcmp(a->from, b->from, a->ndim * sizeof *a->from) &&
	       !memcmp(a->len, b->len, a->ndim * sizeof *a->len);
}

static bool
overlaps(const struct box *a, const struct box *b)
{
	for (size_t i = 0; i < a->ndim; i++)
		if (a->from[i] >= b->from[i] + b->len[i] ||
		    b->from[i] >= a->from[i] + a->len[i])
			return false;
	return true;
}

static bool
volume(const uint64_t *len, size_t n, uint64_t *out)
{
	*out = 1;
	for (size_t i = 0; i < n; i++)
		if (!num_mul(*out, len[i], out))
			return false;
	return true;
}

/* The cuts along the last dimension lie between units. */
static bool
cuts_units(const struct box *b, const uint64_t *global, uint64_t unit)
{
	if (!b->ndim || !unit)
		return !unit;
	size_t i = b->ndim - 1;
	uint64_t end = b->from[i] + b->len[i];
	return b->from[i] % unit || (end % unit && end != global[i]);
}

/* ---- one tensor -------------------------------------------------------- */

/* What was added up so far. */
struct sum {
	struct box *box;
	size_t n;
	struct u128 sum;
	struct u128 *part;
	struct shard **shard;
	uint64_t covered, bytes, unit, global[NDIM_MAX];
	size_t ndim;
	const char *why; /* it cannot be added */
};

static void
put_rank(struct buf *b, const char *word, const struct entry *e)
{
	buf_puts(b, word);
	buf_str(b, e->rank.p ? e->rank : STR_LIT("none"));
}

static void
replica(struct combine *c, const struct shard *a, const struct shard *b)
{
	struct buf note = { 0 };
	buf_puts(&note, "replicas of one shard: ");
	put_rank(&note, "rank ", a->e);
	put_rank(&note, " and ", b->e);
	struct diff d = { .class = DIFF_DIFFERENT,
		.a = a->e,
		.b = b->e,
		.note = buf_cstr(&note) };
	c->report->tally.n[DIFF_DIFFERENT]++;
	report_diff(c->report, &d);
	buf_free(&note);
	if (c->replicas->a)
		return;
	c->replicas->a = entry_dup(a->e);
	c->replicas->b = entry_dup(b->e);
}

static void
add_shard(struct combine *c, struct sum *s, struct shard *shard)
{
	struct fp f;
	struct box b;
	uint64_t global[NDIM_MAX], v;
	open_shard(c, shard, &f);
	if (!f.shardsum.algorithm || !f.unit.given)
		s->why = "no shardsum";
	else if (!box_of(&f, &b, global) || !volume(b.len, b.ndim, &v))
		s->why = "global, offset and shape do not fit";
	else if (cuts_units(&b, global, f.unit.v))
		s->why = "the unit does not divide the shards";
	if (s->why)
		return;
	if (!s->n) {
		memcpy(s->global, global, sizeof s->global);
		s->ndim = b.ndim;
		s->unit = f.unit.v;
	}
	if (s->unit != f.unit.v || s->ndim != b.ndim ||
	    memcmp(s->global, global, s->ndim * sizeof *global)) {
		s->why = "shards of other wholes or units";
		return;
	}
	for (size_t i = 0; i < s->n; i++) {
		if (same_box(&s->box[i], &b)) {
			if (!u128_same(s->part[i], f.shardsum.value))
				replica(c, s->shard[i], shard);
			return;
		}
		if (overlaps(&s->box[i], &b)) {
			s->why = "shards overlap";
			return;
		}
	}
	s->box[s->n] = b;
	s->part[s->n] = f.shardsum.value;
	s->shard[s->n++] = shard;
	s->sum = u128_add(s->sum, f.shardsum.value);
	s->covered += v;
	s->bytes += f.bytes;
}

static void
put_whole(struct combine *c, const struct whole *w, const struct sum *s)
{
	struct fp f;
	char hash[80];
	struct buf hex = { 0 };
	open_shard(c, w->shard, &f);
	for (unsigned i = 0; i < FP_PLACES; i++)
		if (coordinates >> i & 1)
			f.place[i] = STR_NULL;
	c->text.len = 0;
	fp_put_shape(&c->text, s->global, s->ndim);
	u128_put(&hex, s->sum);
	snprintf(hash, sizeof hash, "shardsum.%llu:%s",
	    (unsigned long long)s->unit, buf_cstr(&hex));
	struct fp out = {
		.name = f.name,
		.dtype = f.dtype,
		.shape = c->text.len ? buf_view(&c->text) : STR_LIT(""),
		.bytes = s->bytes,
		.hash = { .algorithm = FP_OTHER, .text = str_c(hash) },
	};
	memcpy(out.place, f.place, sizeof out.place);
	fp_write(c->out, &out);
	buf_free(&hex);
}

static void
add_up(struct combine *c, const struct whole *w)
{
	struct sum s = { 0 };
	uint64_t all, before = c->report->tally.n[DIFF_DIFFERENT];
	if (w->n > SHARDS_MAX)
		s.why = "too many shards";
	s.box = cli_alloc(w->n, sizeof *s.box);
	s.part = cli_alloc(w->n, sizeof *s.part);
	s.shard = cli_alloc(w->n, sizeof *s.shard);
	for (struct shard *k = w->shard; k && !s.why; k = k->next)
		add_shard(c, &s, k);
	if (!s.why && (!volume(s.global, s.ndim, &all) || s.covered != all))
		s.why = "the shards leave gaps";
	if (s.why) {
		struct fp f;
		open_shard(c, w->shard, &f);
		cli_warn(
		    "%s: %.*s: %s", side_name(c->side), STR_ARG(f.name), s.why);
		c->skipped++;
	} else {
		put_whole(c, w, &s);
		c->replicas->agree +=
		    c->report->tally.n[DIFF_DIFFERENT] == before;
	}
	free(s.box);
	free(s.part);
	free(s.shard);
}

/* ---- one run ----------------------------------------------------------- */

static int
collect(void *user, const char *p, size_t len, struct err *e)
{
	buf_add(user, p, len);
	return ((struct buf *)user)->failed ? err_mem(e) : 0;
}

static struct side *
combined(struct report *r, int which, struct buf *to, struct replicas *replicas)
{
	struct combine *c = cli_alloc(1, sizeof *c);
	struct rec_how how = { .sink = collect, .user = to };
	struct damage d = { 0 };
	struct err e;
	c->report = r;
	c->replicas = replicas;
	c->end = &c->whole;
	c->side = side_open(r->s, which);
	read_shards(c);
	side_damage(c->side, &d);
	if (rec_out_open(&c->out, -1, &how, &e))
		cli_die("%s", e.msg);
	rec_begin(c->out, "head");
	rec_put(c->out, "of", "fp");
	rec_u64(c->out, "version", SCHEMA_VERSION);
	rec_put(c->out, "tool", "fpdiff");
	rec_put(c->out, "order", "set");
	rec_end(c->out);
	for (const struct whole *w = c->whole; w; w = w->next)
		add_up(c, w);
	/* Without an end the sums are as filtered as their input. */
	uint64_t lacks = c->skipped + d.bad + d.lost + d.skipped + d.altered;
	int err = d.filtered
		      ? rec_out_flush(c->out, &e)
		      : rec_out_finish(c->out, NULL,
			    lacks ? STATUS_UNKNOWN : STATUS_CLEAN, lacks, &e);
	if (err)
		cli_die("%s", e.msg);
	rec_out_close(c->out);
	struct side *side = c->side;
	side_over(side, buf_view(to));
	for (const struct whole *w = c->whole; w; w = w->next)
		for (const struct shard *k = w->shard; k; k = k->next)
			free(k->e);
	map_free(&c->keys);
	arena_free(&c->arena);
	buf_free(&c->text);
	buf_free(&c->undone);
	free(c);
	return side;
}

/* One run has nothing to be compared with but its own replicas. */
static int
check_one(struct report *r, struct side *side, const struct replicas *found)
{
	struct str line;
	struct outcome o = { .a = found->a, .b = found->b };
	while (side_line(side, &line))
		continue; /* to its end, which counts what was left out */
	r->tally.equal = found->agree;
	side_damage(side, &o.v.damage);
	o.time_given = side_time(side, &o.time);
	report_counts(r);
	judge_tensors(r, &o, false);
	return report_verdict(r, &o);
}

int
combine_compare(struct report *r)
{
	struct buf text[2] = { { 0 }, { 0 } };
	struct replicas found = { 0 };
	struct side *b = NULL;
	int status;
	report_head(r, false);
	struct side *a = combined(r, ALIGN_A, &text[0], &found);
	if (r->s->nrefs + r->s->nruns == 1) {
		status = check_one(r, a, &found);
	} else {
		b = combined(r, ALIGN_B, &text[1], &found);
		status = set_compare(r, a, b);
	}
	side_close(a);
	side_close(b);
	free(found.a);
	free(found.b);
	buf_free(&text[0]);
	buf_free(&text[1]);
	return status;
}
