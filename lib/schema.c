/* The record types: see schema.h and straightedge-records(5). */
#include "schema.h"

// clang-format off
#define KEY(k, kind, required) { k, sizeof k - 1, kind, required }
#define T(k) KEY(k, KEY_TEXT, 0)
#define I(k) KEY(k, KEY_INT, 0)
#define F(k) KEY(k, KEY_FLOAT, 0)
#define TM(k) KEY(k, KEY_TIME, 0)
#define H(k) KEY(k, KEY_HASH, 0)
#define REQ(k, kind) KEY(k, kind, 1)
#define END { 0 }

/* What places a record: fp, scalar and diff share it. */
#define PLACE \
	I("step"), I("mb"), T("phase"), I("rank"), I("dp"), I("pp"), I("tp"), \
	I("ep"), T("io")

static const struct schema_key head_keys[] = {
	REQ("of", KEY_TEXT), REQ("version", KEY_INT), REQ("tool", KEY_TEXT),
	T("hash"), T("canon"), T("order"), T("clock"), T("source"),
	T("inputs"), T("switches"), T("build"), T("run"), I("rank"), I("world"),
	TM("time"), T("host"), T("a"), T("b"), I("window"), END,
};

static const struct schema_key end_keys[] = {
	REQ("records", KEY_INT), REQ("sum", KEY_TEXT), T("result"),
	I("status"), I("skipped"), I("lost"), END,
};

static const struct schema_key fp_keys[] = {
	REQ("name", KEY_TEXT), REQ("dtype", KEY_TEXT), REQ("shape", KEY_TEXT),
	REQ("bytes", KEY_INT), REQ("hash", KEY_HASH), PLACE,
	I("seq"), I("occ"), T("file"), T("kernel"), T("dev"), T("storage"),
	H("canon"), H("shardsum"), I("unit"), H("rows"), T("tiles"),
	T("global"), T("offset"), T("replicated"), T("slice"), I("left"),
	F("min"), F("max"), F("mean"), I("nan"), I("inf"), I("zero"),
	T("note"), END,
};

static const struct schema_key scalar_keys[] = {
	REQ("name", KEY_TEXT), REQ("vtype", KEY_TEXT), REQ("value", KEY_TEXT),
	T("class"), PLACE, I("seq"), I("occ"), T("file"), T("note"), END,
};

static const struct schema_key diff_keys[] = {
	REQ("class", KEY_TEXT), REQ("name", KEY_TEXT), PLACE,
	T("a"), T("b"), T("change"), T("role"), T("rule"), T("kernel"), T("dev"),
	I("elements"), F("share"), T("first"), T("box"), T("rows"),
	I("nrows"), T("ulp"), F("abs"), F("rel"), T("bits"), T("stride"),
	I("row"), I("col"), T("expected"), T("actual"), T("file"),
	T("note"), END,
};

static const struct schema_key finding_keys[] = {
	REQ("entity", KEY_TEXT), REQ("result", KEY_TEXT), T("reason"),
	T("cause"), T("by"), T("evidence"), T("need"), T("members"), I("rank"),
	T("name"), I("occ"), TM("late"), TM("from"), TM("until"), F("ratio"),
	F("coverage"), T("note"), T("incident"), END,
};

static const struct schema_key evidence_keys[] = {
	TM("time"), REQ("entity", KEY_TEXT), REQ("agent", KEY_TEXT),
	REQ("status", KEY_TEXT), TM("onset"), TM("until"), T("reason"),
	T("bound"), T("source"), T("chain"), T("incident"), END,
};

static const struct schema_key verdict_keys[] = {
	REQ("result", KEY_TEXT), REQ("status", KEY_INT), T("entity"),
	T("reason"), T("bound"), T("need"), T("scope"), T("cause"),
	PLACE, T("name"), I("prefix"), T("a"), T("b"), I("compared"),
	I("equal"), I("different"), I("unmatched"), I("incomparable"),
	I("masked"), T("incident"), T("members"), I("candidates"),
	I("unobserved"), T("supersedes"), T("final"), F("coverage"),
	I("openings"), F("expected"), I("windows"), I("events"), I("bytes"),
	F("kept"), I("bad"), I("lost"), I("skipped"), I("altered"), END,
};

static const struct schema_key count_keys[] = {
	REQ("class", KEY_TEXT), REQ("n", KEY_INT), T("rule"), T("note"), END,
};

static const struct schema_key prefix_keys[] = {
	I("rank"), REQ("records", KEY_INT), I("step"), T("name"), T("io"),
	T("next"), I("unmatched"), END,
};

static const struct schema_key near_keys[] = {
	REQ("at", KEY_INT), REQ("name", KEY_TEXT), PLACE, T("result"), END,
};

/* What a user writes for fpdiff, and what fpdiff --learn writes. */
static const struct schema_key mask_keys[] = {
	REQ("name", KEY_TEXT), T("phase"), T("io"), T("rank"), T("step"),
	T("reason"), END,
};

static const struct schema_key unstable_keys[] = {
	REQ("name", KEY_TEXT), T("phase"), T("io"), I("flips"), I("runs"),
	F("bound"), T("reason"), END,
};

static const struct schema_key map_keys[] = {
	REQ("a", KEY_TEXT), REQ("b", KEY_TEXT), END,
};

/* What an incident is about: rcacompose(1), straightedge-incident(5). */
static const struct schema_key incident_keys[] = {
	REQ("id", KEY_TEXT), REQ("start", KEY_TIME), TM("end"), TM("now"),
	T("note"), END,
};

static const struct schema_key flow_keys[] = {
	T("id"), REQ("src", KEY_TEXT), REQ("dst", KEY_TEXT), END,
};

static const struct schema_key path_keys[] = {
	REQ("flow", KEY_TEXT), REQ("hops", KEY_TEXT), END,
};

static const struct schema_key candidate_keys[] = {
	REQ("entity", KEY_TEXT), END,
};

static const struct schema_key attach_keys[] = {
	REQ("child", KEY_TEXT), REQ("parent", KEY_TEXT), END,
};

static const struct schema_key alias_keys[] = {
	REQ("entity", KEY_TEXT), REQ("same", KEY_TEXT), END,
};

static const struct schema_key alive_keys[] = {
	REQ("agent", KEY_TEXT), REQ("entity", KEY_TEXT), TM("since"),
	REQ("until", KEY_TIME), END,
};

static const struct schema_key truth_keys[] = {
	REQ("entity", KEY_TEXT), END,
};

/* rcacompose score: a share with its interval, a changed answer. */
static const struct schema_key rate_keys[] = {
	REQ("name", KEY_TEXT), REQ("k", KEY_INT), REQ("n", KEY_INT),
	F("share"), F("low"), F("high"), T("interval"), T("reason"),
	T("agent"), T("note"), END,
};

/* rcacompose lint: a doubtful place in a stack, a line of its truth table. */
static const struct schema_key warning_keys[] = {
	REQ("class", KEY_TEXT), T("kind"), T("agent"), T("at"),
	REQ("note", KEY_TEXT), END,
};

static const struct schema_key case_keys[] = {
	REQ("kind", KEY_TEXT), REQ("answers", KEY_TEXT),
	REQ("result", KEY_TEXT), REQ("reason", KEY_TEXT), END,
};

static const struct schema_key flip_keys[] = {
	REQ("incident", KEY_TEXT), REQ("class", KEY_TEXT), T("truth"),
	T("a"), T("b"), T("note"), END,
};

static const struct schema_key ev_keys[] = {
	REQ("ts", KEY_TIME), TM("dur"), T("host"), I("rank"), T("proc"),
	T("thread"), T("kind"), REQ("name", KEY_TEXT), T("corr"), I("step"),
	T("ph"), END,
};

static const struct schema_key window_keys[] = {
	REQ("entity", KEY_TEXT), REQ("from", KEY_TIME), REQ("until", KEY_TIME),
	T("reason"), T("name"), TM("at"), TM("dur"), TM("threshold"),
	F("ratio"), I("openings"), I("events"), I("bytes"), T("file"),
	T("note"), END,
};

static const struct schema_key open_keys[] = {
	REQ("at", KEY_TIME), TM("dur"), T("reason"), T("name"), T("kind"),
	T("proc"), T("thread"), TM("threshold"), F("ratio"), END,
};

/* Time on a critical path, by lane and name. */
static const struct schema_key blame_keys[] = {
	REQ("class", KEY_TEXT), I("rank"), T("proc"), T("thread"), T("name"),
	REQ("dur", KEY_TIME), F("share"), I("n"), T("note"), END,
};

/* The graph behind a longest path. */
static const struct schema_key graph_keys[] = {
	I("rank"), TM("from"), TM("until"), REQ("nodes", KEY_INT),
	REQ("edges", KEY_INT), I("critical"), TM("dur"), T("reason"), END,
};

static const struct schema_key clock_keys[] = {
	REQ("rank", KEY_INT), TM("offset"), TM("uncertainty"), I("n"),
	T("reason"), END,
};

/* What tracegate classify knows of a slow period. */
static const struct schema_key fact_keys[] = {
	REQ("entity", KEY_TEXT), REQ("name", KEY_TEXT), T("value"), T("need"),
	END,
};

static const struct schema_key shift_keys[] = {
	T("name"), T("kind"), TM("at"), TM("from"), TM("until"), T("reason"),
	END,
};

static const struct schema_key base_keys[] = {
	REQ("name", KEY_TEXT), T("kind"), REQ("n", KEY_INT), TM("median"),
	TM("p99"), TM("p999"), REQ("threshold", KEY_TIME), END,
};

static const struct schema_key control_keys[] = {
	REQ("action", KEY_TEXT), TM("at"), TM("asked"), TM("acked"), TM("off"),
	T("result"), T("reason"), T("note"), END,
};

/* A measured function: then self.C incl.C err.C min.C max.C per counter C. */
static const struct schema_key pmu_keys[] = {
	REQ("func", KEY_TEXT), I("calls"), I("samples"), T("object"),
	T("flags"), I("lost"), I("unfinished"), I("interrupted"),
	I("migrated"), END,
};

static const struct schema_key counter_keys[] = {
	REQ("name", KEY_TEXT), T("unit"), T("source"), T("exact"), T("check"),
	I("self"), I("child"), I("spread"), I("hz"), T("note"), END,
};

/* A call path: then self.C incl.C per counter C. */
static const struct schema_key callpath_keys[] = {
	REQ("id", KEY_INT), I("parent"), I("depth"), REQ("func", KEY_TEXT),
	I("calls"), I("samples"),
	T("object"), T("flags"), I("unfinished"), END,
};

static const struct schema_key dist_keys[] = {
	REQ("func", KEY_TEXT), T("object"), REQ("counter", KEY_TEXT),
	REQ("buckets", KEY_TEXT), END,
};

static const struct schema_key bucket_keys[] = {
	REQ("func", KEY_TEXT), REQ("counter", KEY_TEXT), I("from"), I("to"),
	I("calls"), F("share"), END,
};

static const struct schema_key versus_keys[] = {
	REQ("func", KEY_TEXT), REQ("counter", KEY_TEXT), I("calls_a"),
	I("calls_b"), T("a"), T("b"), F("per_call"), END,
};

static const struct schema_key coverage_keys[] = {
	REQ("object", KEY_TEXT), I("functions"), I("asked"), I("on"),
	I("section"), I("scan"), I("refused"), T("note"), END,
};

static const struct schema_key backend_keys[] = {
	REQ("name", KEY_TEXT), T("check"), T("note"), END,
};

static const struct schema_key function_keys[] = {
	REQ("func", KEY_TEXT), T("addr"), I("size"), T("sled"), T("alias"),
	T("note"), END,
};

static const struct schema_key caveat_keys[] = {
	REQ("what", KEY_TEXT), I("n"), T("note"), END,
};

static const struct schema_key delta_keys[] = {
	REQ("func", KEY_TEXT), REQ("counter", KEY_TEXT),
	REQ("result", KEY_TEXT), T("reason"), T("a"), T("b"), F("change"),
	F("p"), F("layout"), I("n"), T("bound"), T("need"), T("object"), END,
};

/* gpureplay: what a run is going to do, its devices, its processes. */
static const struct schema_key plan_keys[] = {
	I("group"), REQ("devices", KEY_INT), I("rounds"), I("divergent"),
	TM("max_time"), TM("timeout"), F("rate"), F("alpha"), F("ratio"),
	T("model"), END,
};

static const struct schema_key device_keys[] = {
	REQ("entity", KEY_TEXT), I("group"), T("role"), I("processes"), I("k"),
	F("low"), F("high"), T("pin"), I("exit"), I("signal"), I("timeout"),
	I("flood"), I("nosig"), I("damaged"), I("strays"), F("p"), F("ratio"),
	T("model"), T("driver"), T("uuid"), T("serial"), T("slot"), I("busy"),
	T("note"), END,
};

static const struct schema_key switch_keys[] = {
	REQ("name", KEY_TEXT), REQ("state", KEY_TEXT),
	REQ("value", KEY_TEXT), T("now"), T("note"), END,
};

static const struct schema_key cost_keys[] = {
	REQ("n", KEY_INT), F("without"), F("with"), F("ratio"), F("low"),
	F("high"), END,
};

/* gpureplay's ledger: what a session says, and all of them together. */
static const struct schema_key row_keys[] = {
	REQ("entity", KEY_TEXT), REQ("id", KEY_TEXT),
	REQ("workload", KEY_TEXT), REQ("build", KEY_TEXT),
	REQ("processes", KEY_INT), REQ("k", KEY_INT), I("failed"),
	REQ("f", KEY_FLOAT), T("voids"), T("pin"), END,
};

static const struct schema_key reset_keys[] = {
	REQ("id", KEY_TEXT), T("note"), END,
};

static const struct schema_key standing_keys[] = {
	REQ("entity", KEY_TEXT), REQ("id", KEY_TEXT), T("result"),
	I("sessions"), I("processes"), I("k"), I("voided"), F("product"),
	F("expected"), F("p"), F("bound"), TM("seen"), TM("reset"), END,
};

static const struct schema_key process_keys[] = {
	REQ("entity", KEY_TEXT), I("round"), T("outcome"), I("exit"),
	I("signal"), I("result"), I("records"), T("pin"), TM("dur"),
	I("strays"), I("cpu"), T("host"), T("build"), T("env"), T("argv"),
	T("note"), END,
};

const struct schema_type schema_types[] = {
	{ "head", head_keys },
	{ "fp", fp_keys },
	{ "scalar", scalar_keys },
	{ "diff", diff_keys },
	{ "prefix", prefix_keys },
	{ "near", near_keys },
	{ "count", count_keys },
	{ "finding", finding_keys },
	{ "mask", mask_keys },
	{ "unstable", unstable_keys },
	{ "map", map_keys },
	{ "evidence", evidence_keys },
	{ "incident", incident_keys },
	{ "flow", flow_keys },
	{ "path", path_keys },
	{ "candidate", candidate_keys },
	{ "attach", attach_keys },
	{ "alias", alias_keys },
	{ "alive", alive_keys },
	{ "truth", truth_keys },
	{ "rate", rate_keys },
	{ "flip", flip_keys },
	{ "warning", warning_keys },
	{ "case", case_keys },
	{ "ev", ev_keys },
	{ "window", window_keys },
	{ "open", open_keys },
	{ "blame", blame_keys },
	{ "graph", graph_keys },
	{ "clock", clock_keys },
	{ "fact", fact_keys },
	{ "shift", shift_keys },
	{ "base", base_keys },
	{ "control", control_keys },
	{ "counter", counter_keys },
	{ "backend", backend_keys },
	{ "function", function_keys },
	{ "pmu", pmu_keys },
	{ "callpath", callpath_keys },
	{ "dist", dist_keys },
	{ "bucket", bucket_keys },
	{ "versus", versus_keys },
	{ "coverage", coverage_keys },
	{ "caveat", caveat_keys },
	{ "delta", delta_keys },
	{ "plan", plan_keys },
	{ "device", device_keys },
	{ "process", process_keys },
	{ "switch", switch_keys },
	{ "cost", cost_keys },
	{ "row", row_keys },
	{ "reset", reset_keys },
	{ "standing", standing_keys },
	{ "verdict", verdict_keys },
	{ "end", end_keys },
	END,
};
// clang-format on

const struct schema_type *
schema_find(struct str type)
{
	for (const struct schema_type *t = schema_types; t->name; t++)
		if (str_is(type, t->name))
			return t;
	return NULL;
}

bool
schema_is_typed(struct str type)
{
	static const char *const typed[] = { "evidence", "incident", "flow",
		"path", "candidate", "attach", "alias", "alive", "truth",
		"mask", "map", NULL };
	for (int i = 0; typed[i]; i++)
		if (str_is(type, typed[i]))
			return true;
	return false;
}

static bool
is_key(const struct schema_key *k, struct str key)
{
	return key.len == k->len && key.len && *key.p == *k->name &&
	       !memcmp(key.p, k->name, key.len);
}

int
schema_key(const struct schema_type *t, struct str key, int from)
{
	/* Writers keep the order: mostly it is the next one or close to it. */
	for (const struct schema_key *k = t->key + from; k->name; k++)
		if (is_key(k, key))
			return (int)(k - t->key);
	for (int i = 0; i < from; i++)
		if (is_key(&t->key[i], key))
			return i;
	return -1;
}
