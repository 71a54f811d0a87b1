/*
 * fpdiff: compares two fingerprint streams record by record and names the
 * first that differs. See fpdiff(1).
 */
#include "fpdiff.h"

#include <stdlib.h>

#include "chart.h"
#include "follow.h"
#include "num.h"
#include "page.h"
#include "reruns.h"

enum {
	OPT_STEPS = OPT_OWN,
	OPT_SELECT,
	OPT_FIRST,
	OPT_MAP,
	OPT_WINDOW,
	OPT_STEP,
	OPT_ACROSS,
	OPT_COMBINE,
	OPT_RERUNS,
	OPT_LEARN,
	OPT_ALPHA,
	OPT_TENSORS,
	OPT_PLOT,
	OPT_HTML,
	OPT_FOLLOW,
};

// clang-format off
static const struct opt options[] = {
	{ OPT_ACROSS, "across", "KEY", "replicas in one run: dp, rank, tp ..." },
	{ OPT_COMBINE, "combine", NULL, "add shards up, compare layouts" },
	{ OPT_RERUNS, "reruns", NULL, "references, then -- and reruns" },
	{ OPT_LEARN, "learn", NULL, "make a mask of what good runs differ in" },
	{ OPT_ALPHA, "alpha", "P", "reruns: chance of blame by luck (0.001)" },
	{ OPT_TENSORS, "tensors", NULL, "compare the data: FILE[:NAME]" },
	{ 'm', "mask", "FILE", "differences that are known; repeatable" },
	{ OPT_MAP, "map", "FILE", "names of B that are others in A" },
	{ OPT_STEPS, "steps", "A:B", "only these steps" },
	{ OPT_SELECT, "select", "GLOB", "only these names; repeatable" },
	{ OPT_STEP, "step", "COLUMN", "tables: the step's column (step)" },
	{ OPT_FIRST, "first", NULL, "stop at the first divergence" },
	{ OPT_WINDOW, "window", "N", "records of a rank held (4096)" },
	{ OPT_FOLLOW, "follow", NULL, "A and B are still written" },
	{ OPT_PLOT, "plot", NULL, "draw a map of ranks and steps" },
	{ OPT_HTML, "html", "FILE", "write what was found as one page" },
	OPT_JUDGE, OPT_COMMON, OPT_LAST,
};
// clang-format on

static const char *const usage[] = {
	"fpdiff [options] A B",
	"fpdiff --across KEY RUN",
	"fpdiff --combine RUN1 [RUN2]",
	"fpdiff --reruns REF1 [REF2...] -- RUN1 RUN2...",
	"fpdiff --learn GOOD1 GOOD2 GOOD3... -o unstable.mask",
	"fpdiff --tensors A[:NAME] B[:NAME]",
	NULL,
};
static const char summary[] = "Compares two runs bit by bit: the certified "
			      "prefix, the first divergence,\n"
			      "and what became of the rest.";

static void
read_rules(struct mask **mask, const char *path, unsigned kinds)
{
	struct src *src;
	struct err e;
	if (!*mask && mask_new(mask, &e))
		cli_die("%s", e.msg);
	if (cli_src_open(&src, path, 0, &e) ||
	    mask_read(*mask, src, cli_src_name(path), kinds, &e))
		cli_die_err(cli_src_name(path), &e);
	src_close(src);
}

static void
add_glob(struct select *s, const char *glob)
{
	s->glob = cli_realloc(s->glob, s->nglobs + 1, sizeof *s->glob);
	s->glob[s->nglobs++] = glob;
}

static int
place_of(const struct opt_state *o)
{
	for (int i = 0; i < FP_PLACES; i++)
		if (i >= FP_RANK && i <= FP_EP &&
		    !strcmp(o->arg, fp_place_name[i]))
			return i;
	cli_usage("option %s: expected rank, dp, pp, tp or ep, found \"%s\"",
	    o->name, o->arg);
}

static void
take_option(struct settings *s, int id, const struct opt_state *o)
{
	struct err e;
	switch (id) {
	case 'm':
		read_rules(&s->mask, o->arg, MASK_HAND | MASK_UNSTABLE);
		return;
	case OPT_MAP:
		read_rules(&s->map, o->arg, MASK_MAP);
		return;
	case OPT_STEPS:
		if (select_steps(&s->select, str_c(o->arg), &e))
			cli_usage("option %s: %s", o->name, e.msg);
		return;
	case OPT_SELECT:
		add_glob(&s->select, o->arg);
		return;
	case OPT_STEP:
		s->step = o->arg;
		return;
	case OPT_FIRST:
		s->first = true;
		return;
	case OPT_ACROSS:
		s->across = place_of(o);
		return;
	case OPT_COMBINE:
		s->combine = true;
		return;
	case OPT_RERUNS:
		s->reruns = true;
		return;
	case OPT_LEARN:
		s->learn = true;
		return;
	case OPT_ALPHA:
		if (num_f64(str_c(o->arg), &s->alpha, &e) ||
		    !(s->alpha > 0 && s->alpha < 1))
			cli_usage("option %s: expected a number between 0 and "
				  "1, found \"%s\"",
			    o->name, o->arg);
		return;
	case OPT_TENSORS:
		s->tensors = true;
		return;
	case OPT_FOLLOW:
		s->follow = s->common.how.live = true;
		return;
	case OPT_PLOT:
		s->plot = true;
		return;
	case OPT_HTML:
		s->html = o->arg;
		return;
	case OPT_WINDOW:
		s->window = cli_u64(o, ALIGN_WINDOW_MIN, ALIGN_WINDOW_MAX);
		return;
	}
	cli_common(&s->common, id, o, usage, summary);
}

static void
add_name(const char ***list, size_t *n, const char *name)
{
	*list = cli_realloc(*list, *n + 1, sizeof **list);
	(*list)[(*n)++] = name;
}

static bool
compares_two(const struct settings *s)
{
	return !s->reruns && !s->tensors && !s->learn && !s->combine &&
	       s->across < 0;
}

// clang-format off
enum { TWO = 1, ACROSS = 2, COMBINE = 4, RERUNS = 8, LEARN = 16, TENSORS = 32 };

/* Options that mean something in some ways to compare only. */
static const struct {
	int id, ways;
	const char *name;
} only[] = {
	{ 'm', TWO | COMBINE | RERUNS | LEARN, "--mask" },
	{ OPT_MAP, TWO | COMBINE | RERUNS | LEARN, "--map" },
	{ OPT_STEPS, ~TENSORS, "--steps" },
	{ OPT_STEP, ~TENSORS, "--step" },
	{ OPT_FIRST, TWO, "--first" },
	{ OPT_ALPHA, RERUNS, "--alpha" },
	{ OPT_WINDOW, TWO | RERUNS | LEARN, "--window" },
	{ OPT_PARTIAL, ~TENSORS, "--partial" },
};

static const struct {
	int way;
	const char *name;
} ways[] = {
	{ TWO, "two runs" }, { ACROSS, "--across" }, { COMBINE, "--combine" },
	{ RERUNS, "--reruns" }, { LEARN, "--learn" }, { TENSORS, "--tensors" },
};
// clang-format on

enum { ONLY = sizeof only / sizeof *only, WAYS = sizeof ways / sizeof *ways };

static int
way_of(const struct settings *s)
{
	if (s->across >= 0)
		return ACROSS;
	if (s->combine)
		return COMBINE;
	if (s->reruns)
		return RERUNS;
	if (s->learn)
		return LEARN;
	return s->tensors ? TENSORS : TWO;
}

static void
check_ways(const struct settings *s, const bool *given)
{
	int way = way_of(s), k = 0;
	while (k < WAYS - 1 && ways[k].way != way)
		k++;
	for (int i = 0; i < ONLY; i++)
		if (given[i] && !(only[i].ways & way))
			cli_usage("%s has no meaning with %s", only[i].name,
			    ways[k].name);
}

/* --plot and --html show the comparison of two runs. */
static void
check_map(const struct settings *s)
{
	if ((s->plot || s->html || s->follow) && !compares_two(s))
		cli_usage("%s goes with two runs, A and B", s->plot ? "--plot"
							    : s->html
								? "--html"
								: "--follow");
	if (s->plot && (s->common.quiet || s->common.how.form != REC_LINES))
		cli_usage("--plot draws in comments: not with -q or -F");
	if (s->html && !strcmp(s->html, "-"))
		cli_usage("option --html: expected the name of a file, found "
			  "\"-\"");
	if (s->html && s->common.output && !strcmp(s->html, s->common.output))
		cli_usage("-o and --html are the same file");
}

static void
check(struct settings *s)
{
	if (s->reruns + s->tensors + s->learn + s->combine + (s->across >= 0) >
	    1)
		cli_usage(
		    "--across, --combine, --reruns, --learn and --tensors "
		    "exclude each other");
	check_map(s);
	if (s->across >= 0 && s->nrefs + s->nruns != 1)
		cli_usage("expected one run, found %zu", s->nrefs + s->nruns);
	if (s->across >= 0) {
		s->operand[0] = s->operand[1] =
		    s->nrefs ? s->ref[0] : s->run[0];
		return;
	}
	if (s->reruns && (!s->nrefs || !s->nruns))
		cli_usage("expected references, then -- and at least one run");
	if (s->learn && (s->nrefs < 2 || s->nruns))
		cli_usage(
		    "expected at least two good runs, found %zu", s->nrefs);
	if (s->learn || s->reruns)
		once_check(s);
	if (s->learn) {
		s->operand[0] = s->ref[0];
		s->operand[1] = s->ref[1];
		return;
	}
	if (s->reruns) {
		s->operand[0] = s->ref[0];
		s->operand[1] = s->run[0];
		return;
	}
	if (s->combine && s->nrefs + s->nruns == 1) {
		if (s->map)
			cli_usage("--map goes with two runs, found one");
		s->operand[0] = s->operand[1] =
		    s->nrefs ? s->ref[0] : s->run[0];
		return;
	}
	if (s->nrefs + s->nruns != 2)
		cli_usage(
		    "expected two operands, found %zu", s->nrefs + s->nruns);
	for (size_t i = 0; i < 2; i++)
		s->operand[i] = i < s->nrefs ? s->ref[i] : s->run[i - s->nrefs];
	if (!strcmp(s->operand[0], "-") && !strcmp(s->operand[1], "-"))
		cli_usage("only one operand can be standard input");
}

static void
parse(struct settings *s, int argc, char **argv)
{
	struct opt_state o;
	bool given[ONLY] = { false };
	int id;
	s->window = ALIGN_WINDOW;
	s->alpha = RERUNS_ALPHA;
	s->across = -1;
	opt_start(&o, options, argc, argv);
	while ((id = opt_next(&o)) != OPT_END) {
		for (int i = 0; i < ONLY; i++)
			given[i] |= only[i].id == id;
		if (id != OPT_OPERAND)
			take_option(s, id, &o);
		else if (o.ended)
			add_name(&s->run, &s->nruns, o.arg);
		else
			add_name(&s->ref, &s->nrefs, o.arg);
	}
	cli_common_done(&s->common, "diff");
	check_ways(s, given);
	check(s);
}

static int
compare_streams(struct report *r)
{
	struct side *a = side_open(r->s, ALIGN_A);
	struct side *b = side_open(r->s, ALIGN_B);
	side_check_pair(a, b);
	bool exec = side_is_exec(a) && side_is_exec(b);
	report_head(r, exec);
	int status = exec ? exec_compare(r, a, b) : set_compare(r, a, b);
	side_close(a);
	side_close(b);
	return status;
}

static int
compare(struct report *r)
{
	if (r->s->tensors)
		return tensors_compare(r);
	if (r->s->across >= 0)
		return across_compare(r);
	if (r->s->combine)
		return combine_compare(r);
	if (r->s->reruns)
		return reruns_compare(r);
	return r->s->learn ? learn_compare(r) : compare_streams(r);
}

int
main(int argc, char **argv)
{
	static struct settings s;
	static struct report r;
	struct cli_out file;
	struct err e;
	cli_start("fpdiff");
	parse(&s, argc, argv);
	cli_out_open(&file, s.common.output, false);
	if (rec_out_open(&r.out, file.fd, &s.common.how, &e))
		cli_die("%s", e.msg);
	r.s = &s;
	s.live = r.out;
	if (s.follow)
		follow_start();
	if (s.html)
		r.page = page_open(s.html);
	if (s.plot || s.html)
		r.chart = chart_new();
	int status = compare(&r);
	page_close(r.page);
	status = cli_out_end(&file, r.out, r.result, status, 0);
	cli_prom(&s.common, NULL, r.result, r.reason, status, r.skipped);
	chart_free(r.chart);
	report_free(&r);
	mask_free(s.mask);
	mask_free(s.map);
	free(s.select.glob);
	free(s.ref);
	free(s.run);
	return status;
}
