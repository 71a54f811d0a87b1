/*
 * rcacompose score -s STACK [--vs OLD] CORPUS...: judges labelled incidents
 * and counts. Unknown is a miss. With --vs the gate for a change of a stack.
 */
#include "score.h"

#include "num.h"
#include "verbs.h"

enum {
	OPT_VS = OPT_OWN,
	OPT_UNLABELLED,
	OPT_ALLOW_FP,
	OPT_MAX_DROP,
	OPT_CLUSTER
};

// clang-format off
static const struct opt options[] = {
	{ 's', "stack", "STACK", "clos, gpu-node, serving or a file" },
	{ OPT_VS, "vs", "OLD", "compare with this stack: pass or fail" },
	{ OPT_ALLOW_FP, "allow-fp", "ID", "accept a new false culprit there" },
	{ OPT_MAX_DROP, "max-drop", "POINTS", "coverage that may be lost (2)" },
	{ OPT_CLUSTER, "cluster", "KEY", "incidents alike in it are one" },
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

/* ---- options --------------------------------------------------------- */

static void
parse(struct score_settings *s, int argc, char **argv)
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
		case OPT_CLUSTER:
			s->cluster = o.arg;
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
	if (s->unlabelled && (s->stack || s->vs || s->cluster))
		cli_usage("--unlabelled counts a log, without a stack");
	if (!s->unlabelled && !s->stack)
		cli_usage("which stack? -s STACK");
	if (!s->noperands)
		cli_usage("which corpus? a directory or a stream");
}

/* ---- main ------------------------------------------------------------ */

static int
score_corpus(struct score *sc, const char **result, const char **reason)
{
	int opened = 0;
	for (int i = 0; i < sc->s->noperands; i++) {
		const char *path = sc->s->operand[i];
		bool ok = corpus_read(sc, path);
		opened += ok;
		sc->all.skipped += !ok;
	}
	card_print(sc);
	const struct side *s = &sc->side[0];
	if (!opened || !(s->culprits + s->innocents)) {
		cli_warn("no labelled incident");
		return STATUS_NONE;
	}
	if (sc->nsides > 1)
		return gate_print(sc, result, reason);
	bool left_out = sc->all.bad || sc->all.skipped || sc->all.filtered ||
			sc->unlabelled;
	return left_out ? STATUS_UNKNOWN : STATUS_CLEAN;
}

int
score_main(int argc, char **argv)
{
	struct score_settings *s = cli_alloc(1, sizeof *s);
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
	int status = s->unlabelled ? unlabelled_score(sc)
				   : score_corpus(sc, &result, &reason);
	uint64_t skipped = sc->all.bad + sc->all.skipped;
	status = cli_out_end(&out, sc->out, result, status, skipped);
	cli_prom(&s->common, NULL, result, reason, status, skipped);
	for (size_t i = 0; i < sc->nsides; i++)
		card_free(&sc->side[i]);
	free(sc);
	free(s->operand);
	free(s);
	return status;
}
