/* An operand of fpdiff, record by record. */
#include "fpdiff.h"

#include <inttypes.h>
#include <stdlib.h>

#include "arena.h"
#include "buf.h"
#include "map.h"
#include "follow.h"
#include "num.h"

enum {
	NAME_SHOWN = 200,
	WARNINGS_MAX = 20, /* bad lines shown; all are counted */
};

struct side {
	const struct settings *s;
	const char *name; /* of the file that is open */
	int which;
	struct operand *operand;
	size_t at; /* number of that file */
	struct rec_in *in;
	struct buf sorted; /* holds the input if it had to be reordered */
	struct rec_totals totals; /* of the files before */
	bool held;                /* `line` was read and not yet given out */
	struct str line;
	bool ended;
	bool set, replicated;
	bool order_lost; /* sorted, and not to be put back */
	uint64_t part, warnings;
	bool closed;           /* the last head has its end */
	struct follow *follow; /* --follow, or NULL */
	bool cut;              /* a signal came before its end */
	bool time_given;
	int64_t time;
	struct conditions conditions;
	uint64_t world;    /* ranks of the run, by its heads; 0: not said */
	struct map ranks;  /* those that have a head here */
	struct arena text; /* their names */
	struct rec rec;
	struct buf key, mapped;
	struct twin *twins;
	struct buf host; /* of the last head */
};

const char *
side_name(const struct side *side)
{
	return side->name;
}

bool
side_is_exec(const struct side *side)
{
	return !side->set;
}

uint64_t
side_part(const struct side *side)
{
	return side->part;
}

bool
side_order_lost(const struct side *side)
{
	return side->order_lost;
}

bool
side_inputs_replicated(const struct side *side)
{
	return side->replicated;
}

struct str
side_host(const struct side *side)
{
	return buf_view(&side->host);
}

bool
side_time(const struct side *side, int64_t *ns)
{
	*ns = side->time;
	return side->time_given;
}

/* ---- messages ---------------------------------------------------------- */

static void
warn(struct side *side, const struct err *e)
{
	if (side->warnings++ < WARNINGS_MAX)
		cli_warn_err(side->name, e);
	else if (side->warnings == WARNINGS_MAX + 1)
		cli_warn("%s: more bad lines, counted", side->name);
}

void
side_bad(struct side *side, uint64_t line, const char *what, struct str name)
{
	struct err e;
	size_t n = name.len < NAME_SHOWN ? name.len : NAME_SHOWN;
	rec_in_bad(side->in);
	err_set(&e, SE_EFORMAT, "%" PRIu64 ": %s \"%.*s\"", line, what, (int)n,
	    name.p);
	warn(side, &e);
}

void
side_same_bad(struct side *side)
{
	rec_in_bad(side->in);
}

/* ---- heads ----------------------------------------------------------- */

static void
take_rank(struct side *side, const struct rec *rec)
{
	struct err e;
	bool fresh;
	uint64_t world = 0;
	struct str rank = rec_text_of(rec, "rank");
	if (rec_u64_of(rec, "world", &world, &e)) {
		warn(side, &e);
		rec_in_bad(side->in);
	}
	if (world > side->world)
		side->world = world;
	if (!rank.p || map_get(&side->ranks, rank))
		return;
	rank = arena_str(&side->text, rank);
	if (!rank.p || !map_at(&side->ranks, rank, &fresh))
		cli_die("out of memory");
}

uint64_t
side_absent_ranks(const struct side *side)
{
	/* Who names the stream of one rank does not ask for the others. */
	bool many = operand_is_run(side->operand) || side->ranks.n > 1;
	return many && side->ranks.n && side->world > side->ranks.n
		   ? side->world - side->ranks.n
		   : 0;
}

static void
take_head(struct side *side, const struct rec *rec)
{
	struct err e;
	struct str of = rec_text_of(rec, "of");
	if (!str_is(of, "fp")) {
		err_set(&e, SE_EFORMAT, "%" PRIu64 ": expected a head of=fp",
		    rec_in_totals(side->in)->lines);
		warn(side, &e);
		rec_in_bad(side->in);
	}
	take_rank(side, rec);
	const struct rec_totals *t = rec_in_totals(side->in);
	if (t->heads > 1 && !side->closed)
		cli_warn("%s:%" PRIu64 ": a head, and the stream before it has "
			 "no end: restarted, or cut",
		    side->name, t->lines);
	side->closed = false;
	side->part++;
	side->replicated = str_is(rec_text_of(rec, "inputs"), "replicated");
	side->host.len = 0;
	buf_str(&side->host, rec_text_of(rec, "host"));
	side->set |= str_is(rec_text_of(rec, "order"), "set");
	if (rec_get(rec, "time") && !rec_time_of(rec, "time", &side->time, &e))
		side->time_given = true;
	conditions_take(&side->conditions, rec);
}

/* Known on both sides and not the same. What one side does not say is not
 * known to differ. */
const char *
side_conditions_differ(const struct side *a, const struct side *b)
{
	return conditions_differ(&a->conditions, &b->conditions);
}

/* ---- files ----------------------------------------------------------- */

static void
open_part(struct side *side)
{
	struct err e;
	side->name = operand_part_name(side->operand, side->at);
	side->part++;
	side->closed = false;
	struct src *src =
	    side->s->follow
		? follow_open(
		      &side->follow, side->name, &side->closed, side->s->live)
		: sorted_undo(operand_part_open(side->operand, side->at),
		      side->name, &side->sorted, &side->order_lost);
	if (rec_in_open(&side->in, src, &e))
		cli_die_err(side->name, &e);
}

static bool
next_part(struct side *side)
{
	if (side->at + 1 >= operand_parts(side->operand))
		return false;
	rec_totals_add(&side->totals, rec_in_totals(side->in));
	rec_in_close(side->in);
	side->at++;
	open_part(side);
	return true;
}

bool
side_passed(const struct side *side, struct str rank)
{
	uint64_t here, asked;
	return operand_part_rank(side->operand, side->at, &here) &&
	       !num_u64(rank, 0, UINT64_MAX, &asked, NULL) && asked < here;
}

/* ---- lines ----------------------------------------------------------- */

/* False: nothing for the caller in it. */
static bool
take_line(struct side *side, struct str line)
{
	struct err e;
	if (str_starts(line, "fp\t") || str_starts(line, "scalar\t"))
		return true;
	int r = rec_in_parse(side->in, line, &side->rec, &e);
	if (r == SE_EUNSUP || r == SE_ENOMEM)
		cli_die_err(side->name, &e);
	if (r && side->follow && !rec_in_totals(side->in)->heads)
		cli_die(
		    "%s: no record stream to follow: %s", side->name, e.msg);
	if (r)
		warn(side, &e);
	else if (str_is(side->rec.type, "head"))
		take_head(side, &side->rec);
	else if (str_is(side->rec.type, "end"))
		side->closed = true;
	return false;
}

/* A signal said that it is enough. */
static bool
is_cut(struct side *side)
{
	side->cut |= side->follow && !side->closed && follow_stopped();
	return side->cut;
}

static bool
read_line(struct side *side, struct str *line)
{
	struct err e;
	int got;
	do {
		while (!is_cut(side) &&
		       (got = rec_in_line(side->in, line, &e)) != 0) {
			if (got == SE_ENOMEM)
				cli_die_err(side->name, &e);
			if (got < 0 && is_cut(side))
				break; /* what was half written is not bad */
			if (got < 0)
				warn(side, &e);
			else if (take_line(side, *line))
				return true;
		}
	} while (next_part(side));
	side->ended = true;
	return false;
}

bool
side_line(struct side *side, struct str *line)
{
	if (!side->held)
		return !side->ended && read_line(side, line);
	side->held = false;
	*line = side->line;
	return true;
}

bool
side_twin(struct side *side, const struct side *other, struct str line)
{
	return !side->held && !side->ended &&
	       rec_in_twin(side->in, other->in, line);
}

/* ---- entries ----------------------------------------------------------- */

static bool
is_selected(const struct side *side, const struct fp *f)
{
	const struct select *s = &side->s->select;
	return (!s->nglobs || select_name(s, f->name)) &&
	       (!s->steps || select_step(s, f->place[FP_STEP]));
}

static int
parse(struct side *side, struct str line, struct fp *f)
{
	struct err err;
	int r = rec_in_parse(side->in, line, &side->rec, &err);
	if (r == SE_ENOMEM)
		cli_die_err(side->name, &err);
	if (!r && (r = fp_parse(f, &side->rec, NULL, &err))) {
		rec_in_bad(side->in);
		err_prefix(&err, "%" PRIu64, rec_in_totals(side->in)->lines);
	}
	if (r)
		warn(side, &err);
	return r;
}

int
side_entry(struct side *side, struct str line, struct fp *f, struct entry *e)
{
	if (parse(side, line, f))
		return -1;
	struct mask *map = side->s->map;
	if (map && side->which && mask_map(map, f->name, &side->mapped))
		f->name = buf_view(&side->mapped);
	if (!is_selected(side, f))
		return 0;
	entry_place(e, f, line);
	e->line = rec_in_totals(side->in)->lines;
	if (!entry_value(e, f, &side->key) || side->mapped.failed)
		cli_die("out of memory");
	return 1;
}

int
side_twin_entry(struct side *side, struct str line, struct entry *e)
{
	struct fp f;
	if (!twin_fits(side->twins, line, &f)) {
		if (parse(side, line, &f))
			return -1;
		twin_learn(side->twins, &side->rec);
	}
	if (!is_selected(side, &f))
		return 0;
	entry_place(e, &f, line);
	e->line = rec_in_totals(side->in)->lines;
	return 1;
}

/* ---- opening ---------------------------------------------------------- */

struct side *
side_open(const struct settings *s, int which)
{
	struct side *side = cli_alloc(1, sizeof *side);
	side->s = s;
	side->which = which;
	side->twins = twin_new();
	side->operand = operand_open(s, s->operand[which]);
	if (!operand_parts(side->operand))
		cli_die("%s: no record streams in it", s->operand[which]);
	open_part(side);
	side->held = read_line(side, &side->line);
	return side;
}

void
side_over(struct side *side, struct str text)
{
	struct err e;
	struct src *src;
	rec_in_close(side->in);
	side->totals = (struct rec_totals){ 0 };
	side->ended = side->held = false;
	side->warnings = 0;
	if (src_open_mem(&src, text.p, text.len, &e) ||
	    rec_in_open(&side->in, src, &e))
		cli_die_err(side->name, &e);
	side->held = read_line(side, &side->line);
}

void
side_close(struct side *side)
{
	if (!side)
		return;
	rec_in_close(side->in);
	follow_close(side->follow);
	operand_close(side->operand);
	conditions_free(&side->conditions);
	map_free(&side->ranks);
	arena_free(&side->text);
	twin_free(side->twins);
	buf_free(&side->sorted);
	buf_free(&side->key);
	buf_free(&side->mapped);
	buf_free(&side->host);
	free(side);
}

void
side_check_pair(const struct side *a, const struct side *b)
{
	operand_check_pair(a->operand, b->operand);
}

/* ---- at the end -------------------------------------------------------- */

static struct rec_totals
totals_of(const struct side *side)
{
	struct rec_totals t = side->totals;
	rec_totals_add(&t, rec_in_totals(side->in));
	return t;
}

void
side_damage(const struct side *side, struct damage *d)
{
	struct rec_totals t = totals_of(side);
	/* A producer that left something out and did not count it. */
	if (t.ended[STATUS_UNKNOWN] + t.ended[STATUS_NONE] && !t.skipped)
		t.skipped = t.ended[STATUS_UNKNOWN] + t.ended[STATUS_NONE];
	damage_add(d, &t);
	d->filtered |= side->cut;
	d->altered += follow_changed(side->follow);
	d->skipped += operand_skipped(side->operand) + side_absent_ranks(side);
}

bool
side_is_filtered(const struct side *side)
{
	struct damage d = { 0 };
	side_damage(side, &d);
	return d.filtered;
}

bool
side_is_whole(const struct side *side)
{
	struct damage d = { 0 };
	side_damage(side, &d);
	return !d.bad && !d.lost && !d.skipped && !d.filtered && !d.altered;
}
