/* What logs of verdicts tell without labels: see score.h. */
#include "score.h"

#include "sort.h"

struct log {
	struct map names[2];
	struct tally_row row[2][REASONS_MAX]; /* reasons, agents */
	size_t n[2];
	uint64_t verdicts, unknown;
	struct arena arena;
};

static void
log_name(struct log *l, int which, struct str name)
{
	bool fresh;
	if (!map_get(&l->names[which], name)) {
		if (l->n[which] == REASONS_MAX)
			return;
		name = arena_str(&l->arena, name);
		uint64_t *at = map_at(&l->names[which], name, &fresh);
		if (!at)
			cli_die("out of memory");
		*at = l->n[which];
		l->row[which][l->n[which]++].name = name.p;
	}
	l->row[which][*map_get(&l->names[which], name)].n++;
}

static void
log_verdict(struct log *l, const struct rec *r)
{
	struct str causes = rec_text_of(r, "cause"), agent;
	l->verdicts++;
	if (!str_is(rec_text_of(r, "result"), "unknown"))
		return;
	l->unknown++;
	log_name(l, 0, rec_text_of(r, "reason"));
	while (causes.p && str_cut(&causes, ',', &agent))
		log_name(l, 1, agent);
}

static bool
read_log(struct score *sc, struct log *l, const char *path)
{
	struct err e;
	struct src *src;
	struct rec_in *in;
	struct rec r;
	int err = cli_src_open(&src, path, 0, &e);
	if (!err)
		err = rec_in_open(&in, src, &e);
	if (err) {
		cli_warn_err(cli_src_name(path), &e);
		return false;
	}
	int got;
	while ((got = rec_in_next(in, &r, &e)) != 0)
		if (got != 1)
			cli_warn_err(path, &e);
		else if (str_is(r.type, "verdict"))
			log_verdict(l, &r);
	damage_add(&sc->all, rec_in_totals(in));
	rec_in_close(in);
	return true;
}

static void
put_log_rows(struct score *sc, struct log *l, int which, const char *name,
    const char *key)
{
	sort_array(l->row[which], l->n[which], sizeof **l->row, card_by_count);
	for (size_t i = 0; i < l->n[which]; i++)
		card_rate(sc->out, name, l->row[which][i].n, l->verdicts, key,
		    l->row[which][i].name);
}

int
unlabelled_score(struct score *sc)
{
	struct log *l = cli_alloc(1, sizeof *l);
	int opened = 0;
	for (int i = 0; i < sc->s->noperands; i++)
		opened += read_log(sc, l, sc->s->operand[i]);
	card_rate(sc->out, "unknown", l->unknown, l->verdicts, NULL, NULL);
	put_log_rows(sc, l, 0, "unknown-reason", "reason");
	put_log_rows(sc, l, 1, "unknown-agent", "agent");
	int status = !opened || !l->verdicts                    ? STATUS_NONE
		     : opened < sc->s->noperands || sc->all.bad ? STATUS_UNKNOWN
								: STATUS_CLEAN;
	map_free(&l->names[0]);
	map_free(&l->names[1]);
	arena_free(&l->arena);
	free(l);
	return status;
}
