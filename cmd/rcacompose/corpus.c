/* Reads labelled incidents and has each judged: see score.h. */
#include "score.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "sort.h"

/* ---- incidents ------------------------------------------------------- */

static void
judge_side(struct score *sc, struct side *s, const struct damage *d)
{
	struct judgement j;
	struct err e;
	const struct cli_common *c = &sc->s->common;
	s->weigher.facts = &s->facts;
	s->weigher.now = s->facts.now != NO_TIME ? s->facts.now : cli_now(c);
	s->weigher.gaps = d->filtered || d->altered || d->lost || d->skipped ||
			  d->bad > c->policy.allow_bad;
	if (judge(&j, &s->facts, &s->weigher, d, &c->policy, &e))
		cli_die("%s", e.msg);
	s->said.len = 0;
	if (sc->nsides > 1)
		explain_answer(&j, &s->said);
	card_count(s, &j);
}

static void
judge_incident(struct score *sc, const struct damage *d)
{
	const struct facts *f = &sc->side[0].facts;
	if (f->truth_unknown) {
		sc->undecided++;
		return;
	}
	if (!f->ntruths && !f->truth_none) {
		sc->unlabelled++;
		return;
	}
	sc->bad_incidents += d->bad > 0;
	for (size_t i = 0; i < sc->nsides; i++)
		judge_side(sc, &sc->side[i], d);
	if (sc->nsides > 1)
		gate_compare(sc);
}

static void
on_incident(void *user, const struct rec *rec, const struct damage *d)
{
	struct score *sc = user;
	struct damage all = sc->general;
	damage_merge(&all, d);
	bool begun = sc->side[0].facts.incident;
	if (!begun && rec) {
		for (size_t i = 0; i < sc->nsides; i++)
			facts_mark(&sc->side[i].facts);
		sc->general = all;
	}
	if (!begun)
		return;
	judge_incident(sc, &all);
	for (size_t i = 0; i < sc->nsides; i++)
		facts_rewind(&sc->side[i].facts);
}

static void
start_side(const struct score *sc, struct side *s)
{
	facts_init(&s->facts, s->stack);
	s->facts.group_by = sc->s->cluster;
}

static void
start_facts(struct score *sc)
{
	for (size_t i = 0; i < sc->nsides; i++)
		start_side(sc, &sc->side[i]);
	if (sc->nsides > 1)
		sc->side[0].facts.also = &sc->side[1].facts;
}

static void
end_facts(struct score *sc)
{
	for (size_t i = 0; i < sc->nsides; i++)
		facts_free(&sc->side[i].facts);
	inputs_free(&sc->inputs);
	sc->general = (struct damage){ 0 };
}

static bool
score_stream(struct score *sc, const char *path)
{
	struct damage d = { 0 };
	start_facts(sc);
	bool ok = input_read(
	    &sc->side[0].facts, &sc->inputs, path, &d, on_incident, sc);
	damage_merge(&sc->all, &d);
	end_facts(sc);
	return ok;
}

/* ---- directories ----------------------------------------------------- */

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names in a directory, without hidden ones, sorted. NULL: cannot. */
static char **
list(const char *dir, size_t *n)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char **names = NULL;
	*n = 0;
	if (!d)
		return NULL;
	while ((e = readdir(d)) && *n < NAMES_MAX) {
		if (e->d_name[0] == '.')
			continue;
		size_t room = strlen(dir) + strlen(e->d_name) + 2;
		char *path = cli_alloc(room, 1);
		snprintf(path, room, "%s/%s", dir, e->d_name);
		names = cli_realloc(names, *n + 1, sizeof *names);
		names[(*n)++] = path;
	}
	closedir(d);
	sort_array(names, *n, sizeof *names, by_name);
	return names ? names : cli_alloc(1, sizeof *names);
}

static bool
is_dir(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Only files of records; notes and raw telemetry may lie beside them. */
static bool
has_records(const char *path)
{
	struct src *src;
	char first[256];
	size_t n = 0;
	if (src_open(&src, path, cli_tmpdir(), 0, NULL))
		return false;
	bool ok = !src_read_some(src, 0, first, sizeof first, &n, NULL) &&
		  (rec_probe(first, n) || (n && first[0] == '#'));
	src_close(src);
	return ok;
}

static bool
is_incident_file(const char *path)
{
	const char *slash = strrchr(path, '/');
	return !strncmp(slash ? slash + 1 : path, "incident", 8);
}

/* The file that says what the incident is comes first. */
static void
read_files(struct score *sc, char **file, size_t n, struct damage *d)
{
	for (int first = 1; first >= 0; first--)
		for (size_t i = 0; i < n; i++)
			if (is_incident_file(file[i]) == first &&
			    !is_dir(file[i]) && has_records(file[i]))
				d->skipped += !input_read(&sc->side[0].facts,
				    &sc->inputs, file[i], d, NULL, NULL);
}

static bool
score_one(struct score *sc, const char *dir)
{
	size_t n;
	struct damage d = { 0 };
	char **file = list(dir, &n);
	if (!file)
		return false;
	start_facts(sc);
	read_files(sc, file, n, &d);
	bool is = sc->side[0].facts.incident;
	if (is)
		judge_incident(sc, &d);
	damage_merge(&sc->all, &d);
	end_facts(sc);
	cli_names_free(file, n);
	return is;
}

static bool
score_directory(struct score *sc, const char *dir)
{
	size_t n;
	bool any = false;
	char **entry = list(dir, &n);
	if (!entry) {
		cli_warn("%s: cannot read: %s", dir, strerror(errno));
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		if (!is_dir(entry[i]))
			continue;
		bool ok = score_one(sc, entry[i]);
		if (!ok)
			cli_warn("%s: no incident record", entry[i]);
		sc->all.skipped += !ok;
		any = true;
	}
	cli_names_free(entry, n);
	return any || score_one(sc, dir);
}

bool
corpus_read(struct score *sc, const char *path)
{
	return is_dir(path) ? score_directory(sc, path)
			    : score_stream(sc, path);
}
