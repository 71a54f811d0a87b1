/*
 * pmucount: counts functions at their first instruction and their return,
 * and prints what could still be wrong with the numbers. See pmucount(1).
 */
#define _GNU_SOURCE
#include "pmucount.h"

static const struct verb verbs[] = {
	{ "run", verb_run, "count a command (the verb may be left out)" },
	{ "attach", verb_attach, "count a running process for a while" },
	{ "report", verb_report, "show what a run recorded" },
	{ "diff", verb_diff, "same, changed or unknown" },
	{ "list", verb_list, "counters, backends and functions" },
	{ "", verb_run, NULL },
	{ 0 },
};

int
main(int argc, char **argv)
{
	return opt_verbs(verbs, "pmucount",
	    "counts functions at entry and exit", argc, argv);
}
