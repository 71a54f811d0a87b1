/*
 * rcacompose score -s STACK [--vs OLD] CORPUS...: judges labelled incidents
 * and counts. Unknown is a miss. With --vs the gate for a change of a stack.
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <sys/stat.h>

#include "explain.h"
#include "num.h"
#include "sort.h"
#include "stats.h"
#include "verbs.h"
#include "reasons.h"

enum { OPT_VS = OPT_OWN, OPT_UNLABELLED, OPT_ALLOW_FP, OPT_MAX_DROP };

enum { REASONS_MAX = 256, ALLOWED_MAX = 1024, NAMES_MAX = 1 << 20 };

// clang-format off
static const struct opt options[] = {
	{ 's', "stack", "STACK", "stack file, or the name of a shipped one" },
	{ OPT_VS, "vs", "OLD", "compare with this stack: pass or fail" },
	{ OPT_ALLOW_FP, "allow-fp", "ID", "accept a new false culprit there" },
	{ OPT_MAX_DROP, "max-drop", "POINTS", "coverage that may be lost (2)" },
	{ OPT_UNLABELLED, "unlabelled", NULL, "count a --log instead" },
	OPT_JUDGE,
	OPT_COMMON,
	OPT_LAST,
};
// clang-format on

static const char *const usage[] = {
	"rcacompose score -s STACK [--vs OLD] CORPUS...",
	"rcacompose score --unlabelled LOG...",
	NULL,
};
static const char summary[] =
    "Scores a stack over labelled incidents: directories or streams.";

struct settings {
	struct cli_common common;
	const char *stack, *vs;
	bool unlabelled;
	double max_drop;
	const char *allowed[ALLOWED_MAX];
	size_t nallowed;
	char **operand;
	int noperands;
};

/* How often something was why. */
struct tally_row {
	const char *name;
	uint64_t n;
};

/* One stack and its score. */
struct side {
	struct stack *stack;
	struct facts facts;
	struct weigher weigher;
	uint64_t culprits, innocents; /* labelled so */
	uint64_t wrong;               /* incidents with a false culprit */
	uint64_t wrong_clean; /* of them, those where nobody was guilty */
	uint64_t named, named_wrong;
	uint64_t hits, parts; /* all culprits named; some of several */
	uint64_t cleared;     /* innocent said, and right */
	uint64_t wrong_clear; /* innocent said of the guilty */
	uint64_t unknown_guilty, unknown_clean;
	struct tally_row reason[REASONS_MAX];
	size_t nreasons;
	uint64_t by_agent[STACK_AGENTS_MAX];
	/* The incident at hand. */
	bool correct, false_culprit, answered;
	struct buf said;
};

struct score {
	const struct settings *s;
	struct side side[2]; /* 0: -s, 1: --vs */
	size_t nsides;
	struct inputs inputs;
	size_t fixed_inputs;
	struct damage general, all;
	struct rec_out *out;
	uint64_t unlabelled, undecided, bad_incidents;
	/* --vs */
	uint64_t b, c, new_false, new_false_allowed;
	uint64_t fp_b, fp_c, un_b, un_c;
};

/* ---- options --------------------------------------------------------- */

static void
parse(struct settings *s, int argc, char **argv)
{
	struct opt_state o;
	struct err e;
	int id;
	s->max_drop = 2;
	s->operand = cli_alloc((size_t)argc, sizeof *s->operand);
	opt_start(&o, options, argc, argv);
	while ((id = opt_next(&o)) != OPT_END)
		switch (id) {
		case OPT_OPERAND:
			s->operand[s->noperands++] = (char *)o.arg;
			break;
		case 's':
			s->stack = o.arg;
			break;
		case OPT_VS:
			s->vs = o.arg;
			break;
		case OPT_UNLABELLED:
			s->unlabelled = true;
			break;
		case OPT_ALLOW_FP:
			if (s->nallowed == ALLOWED_MAX)
				cli_usage(
				    "more than %d --allow-fp", ALLOWED_MAX);
			s->allowed[s->nallowed++] = o.arg;
			break;
		case OPT_MAX_DROP:
			if (num_f64(str_c(o.arg), &s->max_drop, &e) ||
			    !(s->max_drop >= 0 && s->max_drop <= 100))
				cli_usage("option %s: expected points from 0 "
					  "to 100, found \"%s\"",
				    o.name, o.arg);
			break;
		default:
			cli_common(&s->common, id, &o, usage, summary);
		}
	cli_common_done(&s->common, "rate");
	if (s->unlabelled && (s->stack || s->vs))
		cli_usage("--unlabelled counts a log, without a stack");
	if (!s->unlabelled && !s->stack)
		cli_usage("which stack? -s STACK");
	if (!s->noperands)
		cli_usage("which corpus? a directory or a stream");
}

/* ---- right or wrong -------------------------------------------------- */

/* A cable and each of its directions are the same place. */
static bool
same_place(struct str x, struct str y)
{
	struct str a, b, c, d;
	bool p, q;
	if (str_same(x, y))
		return true;
	if (!link_ends(x, &a, &b, &p) || !link_ends(y, &c, &d, &q) || (p && q))
		return false;
	return (str_same(a, c) && str_same(b, d)) ||
	       (str_same(a, d) && str_same(b, c));
}

static bool
is_true(struct judgement *j, const struct finding *x)
{
	const struct facts *f = j->facts;
	struct str name = judge_name(j, x);
	for (size_t i = 0; i < f->ntruths; i++)
		if (same_place(name, facts_name(f, f->truth[i])))
			return true;
	return false;
}

static bool
is_named(struct judgement *j, int32_t truth)
{
	struct str name = facts_name(j->facts, truth);
	for (size_t i = 0; i < j->n; i++)
		if (j->finding[i].counted &&
		    same_place(judge_name(j, &j->finding[i]), name))
			return true;
	return false;
}

static void
add_reason(struct side *s, const char *name)
{
	size_t i = 0;
	while (i < s->nreasons && strcmp(s->reason[i].name, name) != 0)
		i++;
	if (i == REASONS_MAX)
		return;
	if (i == s->nreasons)
		s->reason[s->nreasons++].name = name;
	s->reason[i].n++;
}

static void
count_unknown(struct side *s, struct judgement *j, bool guilty)
{
	bool agents[STACK_AGENTS_MAX];
	add_reason(s, row_reason(j->row));
	judge_causes(j, agents);
	for (size_t i = 0; i < s->stack->nagents; i++)
		s->by_agent[i] += agents[i];
	if (guilty)
		s->unknown_guilty++;
	else
		s->unknown_clean++;
}

static void
count_named(struct side *s, struct judgement *j, bool guilty)
{
	const struct facts *f = j->facts;
	size_t wrong = 0, found = 0;
	for (size_t i = 0; i < j->n; i++)
		if (j->finding[i].counted) {
			s->named++;
			wrong += !guilty || !is_true(j, &j->finding[i]);
		}
	for (size_t i = 0; i < f->ntruths; i++)
		found += is_named(j, f->truth[i]);
	s->named_wrong += wrong;
	s->false_culprit = wrong > 0;
	s->wrong += wrong > 0;
	s->wrong_clean += !guilty;
	bool all = guilty && found == f->ntruths;
	s->hits += all;
	s->parts += guilty && found && !all;
	s->correct = all && !wrong;
}

static void
count(struct side *s, struct judgement *j)
{
	bool guilty = j->facts->ntruths > 0;
	int status = row_status(j->row);
	s->correct = s->false_culprit = false;
	s->answered = status == STATUS_FOUND || status == STATUS_CLEAN;
	s->culprits += guilty;
	s->innocents += !guilty;
	if (status == STATUS_FOUND) {
		count_named(s, j, guilty);
	} else if (status == STATUS_CLEAN) {
		s->cleared += !guilty;
		s->wrong_clear += guilty;
		s->correct = !guilty;
	} else {
		count_unknown(s, j, guilty);
	}
}

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
	count(s, &j);
}

static bool
is_allowed(const struct settings *s, struct str id)
{
	for (size_t i = 0; i < s->nallowed; i++)
		if (str_is(id, s->allowed[i]))
			return true;
	return false;
}

static void
put_truth(const struct score *sc)
{
	const struct facts *f = &sc->side[0].facts;
	struct buf b = { 0 };
	for (size_t i = 0; i < f->ntruths; i++) {
		if (i)
			buf_putc(&b, ',');
		buf_str(&b, facts_name(f, f->truth[i]));
	}
	rec_str(sc->out, "truth", f->ntruths ? buf_view(&b) : STR_LIT("none"));
	buf_free(&b);
}

static void
compare(struct score *sc)
{
	struct side *new = &sc->side[0], *old = &sc->side[1];
	const char *class = "changed";
	struct str id = new->facts.id;
	bool worse = new->false_culprit && !old->false_culprit;
	bool allowed = worse && is_allowed(sc->s, id);
	sc->b += old->correct && !new->correct;
	sc->c += !old->correct && new->correct;
	sc->new_false += worse && !allowed;
	sc->new_false_allowed += allowed;
	sc->fp_b += worse;
	sc->fp_c += !new->false_culprit && old->false_culprit;
	sc->un_b += old->answered && !new->answered;
	sc->un_c += !old->answered && new->answered;
	if (str_same(buf_view(&new->said), buf_view(&old->said)) &&
	    new->correct == old->correct && !worse)
		return;
	if (worse)
		class = allowed ? "false-culprit-allowed" : "false-culprit";
	else if (old->correct != new->correct)
		class = new->correct ? "better" : "worse";
	rec_begin(sc->out, "flip");
	rec_str(sc->out, "incident", id);
	rec_put(sc->out, "class", class);
	put_truth(sc);
	rec_str(sc->out, "a", buf_view(&old->said));
	rec_str(sc->out, "b", buf_view(&new->said));
	rec_end(sc->out);
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
		compare(sc);
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
		sc->fixed_inputs = sc->inputs.n;
	}
	if (!begun)
		return;
	judge_incident(sc, &all);
	for (size_t i = 0; i < sc->nsides; i++)
		facts_rewind(&sc->side[i].facts);
}

static void
start_facts(struct score *sc)
{
	for (size_t i = 0; i < sc->nsides; i++)
		facts_init(&sc->side[i].facts, sc->side[i].stack);
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
	if (*n)
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

/* ---- what is printed ------------------------------------------------- */

static void
put_rate(struct rec_out *o, const char *name, uint64_t k, uint64_t n,
    const char *key, const char *value)
{
	struct interval i = stats_wilson(k, n, STATS_Z95);
	rec_begin(o, "rate");
	rec_put(o, "name", name);
	rec_u64(o, "k", k);
	rec_u64(o, "n", n);
	if (n) {
		rec_f64(o, "share", (double)k / (double)n);
		rec_f64(o, "low", i.low);
		rec_f64(o, "high", i.high);
		rec_put(o, "interval", "wilson95");
	}
	if (key)
		rec_put(o, key, value);
	rec_end(o);
}

/* "Less than 1 %" is a claim: the exact one-sided bound carries it or not. */
static void
put_claim(struct rec_out *o, uint64_t k, uint64_t n)
{
	double high = stats_upper(k, n, 0.05);
	rec_begin(o, "rate");
	rec_put(o, "name", "false-culprit-claim");
	rec_u64(o, "k", k);
	rec_u64(o, "n", n);
	rec_f64(o, "high", high);
	rec_put(o, "interval", "clopper-pearson-one-sided95");
	if (high < 0.01)
		rec_put(o, "note", "false culprits are below 1 %");
	else if (!k)
		rec_fmt(o, "note",
		    "cannot claim below 1 %%: needs %llu incidents without one",
		    (unsigned long long)stats_trials(0.01, 0.05));
	else
		rec_put(o, "note", "cannot claim below 1 %");
	rec_end(o);
}

static int
by_count(const void *x, const void *y)
{
	const struct tally_row *a = x, *b = y;
	if (a->n != b->n)
		return a->n > b->n ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void
put_side(struct rec_out *o, struct side *s)
{
	uint64_t n = s->culprits + s->innocents;
	uint64_t unknown = s->unknown_guilty + s->unknown_clean;
	uint64_t wrong = s->wrong + s->wrong_clear;
	uint64_t misses = s->culprits - s->hits - s->parts;
	put_rate(o, "false-culprit", s->wrong, n, NULL, NULL);
	put_claim(o, s->wrong, n);
	put_rate(o, "false-culprit-innocent", s->wrong_clean, s->innocents,
	    NULL, NULL);
	put_rate(o, "false-blame", s->named_wrong, s->named, NULL, NULL);
	put_rate(o, "miss", misses, s->culprits, NULL, NULL);
	put_rate(o, "partial", s->parts, s->culprits, NULL, NULL);
	put_rate(o, "false-innocent", s->wrong_clear, s->culprits, NULL, NULL);
	put_rate(o, "missed-exoneration", s->unknown_clean, s->innocents, NULL,
	    NULL);
	put_rate(o, "coverage", n - unknown, n, NULL, NULL);
	put_rate(o, "selective-risk", wrong, n - unknown, NULL, NULL);
	put_rate(o, "generalised-risk", wrong, n, NULL, NULL);
	put_rate(o, "unknown", unknown, n, NULL, NULL);
	sort_array(s->reason, s->nreasons, sizeof *s->reason, by_count);
	for (size_t i = 0; i < s->nreasons; i++)
		put_rate(o, "unknown-reason", s->reason[i].n, n, "reason",
		    s->reason[i].name);
	for (size_t i = 0; i < s->stack->nagents; i++)
		if (s->by_agent[i])
			put_rate(o, "unknown-agent", s->by_agent[i], n, "agent",
			    s->stack->agent[i].name.p);
}

static void
put_excluded(struct score *sc)
{
	const struct {
		const char *class;
		uint64_t n;
		const char *note;
	} rows[] = {
		{ "unlabelled", sc->unlabelled, "incidents without truth" },
		{ "undecided", sc->undecided, "incidents with truth unknown" },
		{ "damaged", sc->bad_incidents, "incidents with bad lines" },
	};
	for (size_t i = 0; i < 3; i++) {
		if (!rows[i].n)
			continue;
		rec_begin(sc->out, "count");
		rec_put(sc->out, "class", rows[i].class);
		rec_u64(sc->out, "n", rows[i].n);
		rec_put(sc->out, "note", rows[i].note);
		rec_end(sc->out);
	}
}

/* ---- the gate -------------------------------------------------------- */

static double
coverage(const struct side *s)
{
	uint64_t n = s->culprits + s->innocents;
	uint64_t unknown = s->unknown_guilty + s->unknown_clean;
	return n ? 100 * (double)(n - unknown) / (double)n : 0;
}

static void
put_mcnemar(struct rec_out *o, const char *name, uint64_t b, uint64_t c)
{
	struct mcnemar m = stats_mcnemar(b, c);
	rec_begin(o, "rate");
	rec_put(o, "name", name);
	rec_u64(o, "k", b);
	rec_u64(o, "n", b + c);
	rec_fmt(o, "note",
	    "McNemar: exact p %.6g, mid-p %.6g, one-sided for worse %.6g",
	    m.exact, m.mid, m.worse);
	rec_end(o);
}

static struct verdict
gate(const struct score *sc)
{
	struct verdict v = { .result = "pass", .status = STATUS_CLEAN };
	const struct side *new = &sc->side[0], *old = &sc->side[1];
	double drop = coverage(old) - coverage(new);
	const char *why = NULL;
	if (sc->new_false)
		why = REASON_FALSE_CULPRIT;
	else if (drop > sc->s->max_drop + 1e-9)
		why = REASON_COVERAGE;
	else if (stats_mcnemar(sc->b, sc->c).worse < 0.05)
		why = REASON_MCNEMAR;
	if (why) {
		v.result = "fail";
		v.status = STATUS_FOUND;
		v.reason = why;
	}
	v.damage = sc->all;
	v.damage.typed = false;
	return v;
}

static int
put_gate(struct score *sc, const char **result, const char **reason)
{
	struct verdict v = gate(sc);
	put_mcnemar(sc->out, "worse", sc->b, sc->c);
	put_mcnemar(sc->out, "worse-false-culprit", sc->fp_b, sc->fp_c);
	put_mcnemar(sc->out, "worse-unknown", sc->un_b, sc->un_c);
	verdict_settle(&v, &sc->s->common.policy);
	*result = v.result;
	*reason = v.reason;
	if (v.status == STATUS_NONE)
		return v.status;
	verdict_begin(sc->out, &v, STR_NULL, NULL);
	rec_u64(
	    sc->out, "compared", sc->side[0].culprits + sc->side[0].innocents);
	rec_u64(sc->out, "different", sc->b + sc->c);
	verdict_end(sc->out, &v);
	return v.status;
}

/* ---- logs ------------------------------------------------------------ */

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
	bool std = !strcmp(path, "-");
	int err = std ? src_open_fd(&src, 0, cli_tmpdir(), 0, &e)
		      : src_open(&src, path, cli_tmpdir(), 0, &e);
	if (!err)
		err = rec_in_open(&in, src, &e);
	if (err) {
		cli_warn_err(path, &e);
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
	sort_array(l->row[which], l->n[which], sizeof **l->row, by_count);
	for (size_t i = 0; i < l->n[which]; i++)
		put_rate(sc->out, name, l->row[which][i].n, l->verdicts, key,
		    l->row[which][i].name);
}

static int
score_logs(struct score *sc)
{
	struct log *l = cli_alloc(1, sizeof *l);
	int opened = 0;
	for (int i = 0; i < sc->s->noperands; i++)
		opened += read_log(sc, l, sc->s->operand[i]);
	put_rate(sc->out, "unknown", l->unknown, l->verdicts, NULL, NULL);
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

/* ---- main ------------------------------------------------------------ */

static int
score_corpus(struct score *sc, const char **result, const char **reason)
{
	int opened = 0;
	for (int i = 0; i < sc->s->noperands; i++) {
		const char *path = sc->s->operand[i];
		bool ok = is_dir(path) ? score_directory(sc, path)
				       : score_stream(sc, path);
		opened += ok;
		sc->all.skipped += !ok;
	}
	put_side(sc->out, &sc->side[0]);
	put_excluded(sc);
	const struct side *s = &sc->side[0];
	if (!opened || !(s->culprits + s->innocents)) {
		cli_warn("no labelled incident");
		return STATUS_NONE;
	}
	if (sc->nsides > 1)
		return put_gate(sc, result, reason);
	bool left_out = sc->all.bad || sc->all.skipped || sc->all.filtered ||
			sc->unlabelled;
	return left_out ? STATUS_UNKNOWN : STATUS_CLEAN;
}

int
score_main(int argc, char **argv)
{
	struct settings *s = cli_alloc(1, sizeof *s);
	struct score *sc = cli_alloc(1, sizeof *sc);
	struct cli_out out;
	const char *result = NULL, *reason = NULL;
	parse(s, argc, argv);
	sc->s = s;
	const char *name[] = { s->stack, s->vs };
	for (int i = 0; i < 2 && name[i]; i++)
		sc->side[sc->nsides++].stack = stack_open(name[i]);
	cli_out_open(&out, s->common.output, false);
	sc->out = records_open(out.fd, &s->common.how, "rate", NULL);
	int status =
	    s->unlabelled ? score_logs(sc) : score_corpus(sc, &result, &reason);
	uint64_t skipped = sc->all.bad + sc->all.skipped;
	status = records_close(sc->out, &out, result, status, skipped);
	cli_prom(&s->common, NULL, result, reason, status, skipped);
	for (size_t i = 0; i < sc->nsides; i++) {
		stack_close(sc->side[i].stack);
		weigher_free(&sc->side[i].weigher);
		buf_free(&sc->side[i].said);
	}
	free(sc);
	free(s->operand);
	free(s);
	return status;
}
