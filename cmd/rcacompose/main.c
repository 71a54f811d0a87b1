/*
 * rcacompose: composes what agents say into findings per entity and one
 * verdict, which may be that it cannot tell. See rcacompose(1).
 */
#include "cli.h"
#include "verbs.h"

// clang-format off
static const struct verb verbs[] = {
	{ "", run_main, "judge an incident" },
	{ "read", read_main, "turn telemetry text into evidence" },
	{ "lint", lint_main, "look for mistakes in a stack" },
	{ "score", score_main, "score a stack over labelled incidents" },
	{ 0 },
};
// clang-format on

int
main(int argc, char **argv)
{
	return opt_verbs(verbs, "rcacompose", NULL, argc, argv);
}
