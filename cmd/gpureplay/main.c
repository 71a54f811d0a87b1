/*
 * gpureplay: replays the exact work on suspect and reference devices and says
 * which of them computes wrong, or that the program does. See gpureplay(1).
 */
#include "gpureplay.h"

// clang-format off
static const struct opt options[] = { OPT_COMMON, OPT_LAST };
// clang-format on

static const char *const usage[] = {
	"gpureplay run|devices|switches|exec|ledger ... (each has a --help)",
	NULL,
};

/* Without a verb there is nothing to do but to say so. */
static int
verb_none(int argc, char **argv)
{
	struct cli_common c = { 0 };
	struct opt_state o;
	int id;
	opt_start(&o, options, argc, argv);
	while ((id = opt_next(&o)) != OPT_END) {
		if (id == OPT_OPERAND)
			cli_usage("unknown verb \"%s\"", o.arg);
		if (!cli_common(&c, id, &o, usage,
			"Finds the device that computes wrong."))
			cli_usage("unexpected option %s", o.name);
	}
	cli_usage("expected a verb");
}

static const struct verb verbs[] = {
	{ "run", verb_run, "replay a whole command on every device" },
	{ "devices", verb_devices, "boards and cores, and who uses them" },
	{ "switches", verb_switches, "what makes results reproducible here" },
	{ "exec", verb_exec, "the far side of run --launch" },
	{ "ledger", verb_ledger, "what many sessions say about each device" },
	{ "", verb_none, NULL },
	{ 0 },
};

int
main(int argc, char **argv)
{
	return opt_verbs(verbs, "gpureplay",
	    "finds the device that computes wrong", argc, argv);
}
