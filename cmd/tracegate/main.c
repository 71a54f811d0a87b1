/*
 * tracegate: keeps traces shallow, deep around an anomaly, and says what the
 * critical path was. See tracegate(1).
 */
#include "opt.h"
#include "verbs.h"

static const struct verb verbs[] = {
	{ "filter", verb_filter, "shallow always, deep around an anomaly" },
	{ "path", verb_path, "the critical path, across threads and ranks" },
	{ "classify", verb_classify, "why each slow period was slow" },
	{ "baseline", verb_baseline, "freeze what is usual for later runs" },
	{ "control", verb_control, "turn a tracer on at an anomaly" },
	{ "", verb_filter, NULL },
	{ NULL, NULL, NULL },
};

int
main(int argc, char **argv)
{
	return opt_verbs(verbs, "tracegate",
	    "Keeps traces shallow, and deep around an anomaly.", argc, argv);
}
