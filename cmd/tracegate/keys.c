/* Kinds of events: see keys.h. */
#include "keys.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "glob.h"
#include "hash.h"

/* ---- presets --------------------------------------------------------- */

struct preset {
	const char *name;
	struct sync_rule rule;
};

// clang-format off
static const struct preset presets[] = {
	/* libkineto ActivityType.h, cupti_strings.cpp; names as recorded */
	{ "kineto", { "cuda_sync", "*", CLASS_SYNC } },
	{ "kineto", { "xpu_sync", "*", CLASS_SYNC } },
	{ "kineto", { "*", "cuda*Synchronize", CLASS_SYNC } },
	{ "kineto", { "*", "cudaEventQuery", CLASS_SYNC } },
	{ "kineto", { "*", "cudaStreamWaitEvent", CLASS_SYNC } },
	{ "kineto", { "*", "cudaMemcpy", CLASS_SYNC } },
	{ "kineto", { "*", "cudaMalloc", CLASS_SYNC } },
	{ "kineto", { "*", "cudaFree", CLASS_SYNC } },
	{ "kineto", { "*", "cudaHostAlloc", CLASS_SYNC } },
	{ "kineto", { "*", "hip*Synchronize", CLASS_SYNC } },
	{ "kineto", { "*", "hipMalloc", CLASS_SYNC } },
	{ "kineto", { "*", "hipFree", CLASS_SYNC } },
	{ "kineto", { "*", "nccl*", CLASS_SYNC } },
	{ "kineto", { "*", "rccl*", CLASS_SYNC } },
	{ "kineto", { "user_annotation", "*", CLASS_STEP } },
	{ "kineto", { "*", "ProfilerStep*", CLASS_STEP } },
	{ "kineto", { "*", "Record Window End", CLASS_META } },
	{ "kineto", { "*", "Iteration Start*", CLASS_META } },
	/* training loops, by the names people give */
	{ "train", { "*", "dataloader", CLASS_STEP } },
	{ "train", { "*", "forward", CLASS_STEP } },
	{ "train", { "*", "backward", CLASS_STEP } },
	{ "train", { "*", "optimizer", CLASS_STEP } },
	{ "train", { "*", "step", CLASS_STEP } },
	{ "train", { "*", "enumerate(DataLoader)*", CLASS_STEP } },
	/* vLLM V1: record_function and request spans */
	{ "vllm", { "*", "gpu_model_runner: *", CLASS_STEP } },
	{ "vllm", { "*", "vllm_*", CLASS_STEP } },
	{ "vllm", { "*", "schedule", CLASS_STEP } },
	{ "vllm", { "*", "execute_model*", CLASS_STEP } },
	{ "vllm", { "*", "update_from_output", CLASS_STEP } },
	{ "vllm", { "*", "sample_tokens", CLASS_STEP } },
	{ "vllm", { "*", "prefill", CLASS_STEP } },
	{ "vllm", { "*", "decode", CLASS_STEP } },
	{ "vllm", { "*", "sample", CLASS_STEP } },
	/* SGLang: req_time_stats.py */
	{ "sglang", { "*", "tokenize", CLASS_STEP } },
	{ "sglang", { "*", "*_dispatch", CLASS_STEP } },
	{ "sglang", { "*", "request_process", CLASS_STEP } },
	{ "sglang", { "*", "prefill_*", CLASS_STEP } },
	{ "sglang", { "*", "chunked_prefill", CLASS_STEP } },
	{ "sglang", { "*", "decode_*", CLASS_STEP } },
	/* system calls that wait */
	{ "strace", { "wait", "*", CLASS_SYNC } },
	{ "strace", { "wake", "*", CLASS_SYNC } },
	{ "strace", { "syscall", "clock_nanosleep*", CLASS_SYNC } },
	{ "strace", { "syscall", "nanosleep", CLASS_SYNC } },
	{ "strace", { "syscall", "poll", CLASS_SYNC } },
	{ "strace", { "syscall", "ppoll", CLASS_SYNC } },
	{ "strace", { "syscall", "epoll_wait", CLASS_SYNC } },
	{ "strace", { "syscall", "epoll_pwait*", CLASS_SYNC } },
	{ "strace", { "syscall", "select", CLASS_SYNC } },
	{ "strace", { "syscall", "pselect#", CLASS_SYNC } },
	{ "strace", { "syscall", "recv*", CLASS_SYNC } },
	{ "strace", { "syscall", "accept*", CLASS_SYNC } },
	{ "strace", { "syscall", "f*sync", CLASS_SYNC } },
	{ "strace", { "syscall", "wait#", CLASS_SYNC } },
	{ "strace", { "sched", "*", CLASS_SYNC } },
	/* spans of services: entries and what they wait for */
	{ "otel", { "span", "*", CLASS_STEP } },
	/* ev lines and tables: the writer's own kinds */
	{ "ev", { "step", "*", CLASS_STEP } },
	{ "ev", { "sync", "*", CLASS_SYNC } },
};
// clang-format on

void
sync_add(struct sync_rule **rule, size_t *n, struct sync_rule r)
{
	*rule = cli_realloc(*rule, *n + 1, sizeof **rule);
	(*rule)[(*n)++] = r;
}

void
sync_preset(const char *names, struct sync_rule **rule, size_t *n)
{
	struct str rest = str_c(names), word;
	while (str_cut(&rest, ',', &word)) {
		size_t before = *n;
		bool all = str_is(word, "all");
		for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
			if (all || str_is(word, presets[i].name))
				sync_add(rule, n, presets[i].rule);
		if (*n == before)
			cli_usage(
			    "option --preset: unknown name in \"%s\"", names);
	}
}

/* ---- the table ---------------------------------------------------------- */

size_t
key_fold(char *to, struct str name)
{
	size_t n = 0;
	for (size_t i = 0; i < name.len && n < KEY_NAME_MAX; i++) {
		char c = name.p[i];
		bool digit = c >= '0' && c <= '9';
		if (digit && n && to[n - 1] == '#')
			continue;
		to[n++] = digit ? '#' : c;
	}
	return n;
}

struct str
key_name(const struct key *k)
{
	return (struct str){ k->text + k->cat_len + 1, k->name_len };
}

struct str
key_cat(const struct key *k)
{
	return (struct str){ k->text, k->cat_len };
}

static struct str
key_text(const struct key *k)
{
	return (struct str){ k->text, (size_t)k->cat_len + 1 + k->name_len };
}

void
keys_init(
    struct keys *k, bool live, const struct sync_rule *rule, size_t nrules)
{
	*k = (struct keys){ .evict = live, .rule = rule, .nrules = nrules };
	k->cap = live ? KEYS_LIVE : KEYS_FILE;
	k->key = cli_alloc(k->cap, sizeof *k->key);
	k->n = k->plain = 1;
	struct key *o = &k->key[KEY_OVERFLOW];
	memcpy(o->text, "\0(other)", 8);
	o->name_len = 7;
}

void
keys_free(struct keys *k)
{
	for (uint32_t i = 0; i < k->n; i++) {
		free(k->key[i].hist);
		free(k->key[i].gap);
		free(k->key[i].roll);
		cost_free(k->key[i].cost);
		free(k->key[i].pace);
		peers_free(k->key[i].peers);
	}
	free(k->key);
	map_free(&k->map);
}

static uint8_t
class_of(const struct keys *k, struct str cat, struct str name)
{
	for (size_t i = 0; i < k->nrules; i++)
		if (glob_match(str_c(k->rule[i].cat), cat) &&
		    glob_match(str_c(k->rule[i].name), name))
			return k->rule[i].cls;
	return CLASS_PLAIN;
}

/* The map has no removal: it is made again. Rare, and bounded by KEYS_LIVE. */
static void
forget(struct keys *k, uint32_t id)
{
	struct key *old = &k->key[id];
	free(old->hist);
	free(old->gap);
	free(old->roll);
	k->ncosts -= old->cost != NULL;
	k->npeers -= old->peers != NULL;
	cost_free(old->cost);
	free(old->pace);
	peers_free(old->peers);
	*old = (struct key){ 0 };
	map_free(&k->map);
	k->map = (struct map){ 0 };
	for (uint32_t i = 1; i < k->n; i++)
		if (i != id) {
			bool fresh;
			uint64_t *at =
			    map_at(&k->map, key_text(&k->key[i]), &fresh);
			if (!at)
				cli_die("out of memory");
			*at = i;
		}
	memset(k->cache, 0, sizeof k->cache);
}

/* Space saving: the rarest key goes once as many came without one. */
static uint32_t
make_room(struct keys *k)
{
	uint32_t rare = 0;
	for (uint32_t i = 1; i < k->n; i++)
		if (k->key[i].cls == CLASS_PLAIN &&
		    (!rare || k->key[i].events < k->key[rare].events))
			rare = i;
	if (!rare || k->pressure <= k->key[rare].events + KEYS_LIVE)
		return KEY_OVERFLOW;
	k->pressure = 0;
	forget(k, rare);
	return rare;
}

static uint32_t
new_slot(struct keys *k, uint8_t cls)
{
	uint32_t room = cls ? k->cap : k->cap - KEYS_RESERVED;
	if (k->n < k->cap && (cls || k->plain < room)) {
		k->plain += !cls;
		return k->n++;
	}
	return k->evict && !cls ? make_room(k) : KEY_OVERFLOW;
}

uint32_t
keys_named(struct keys *k, struct str cat, struct str name)
{
	char text[2 * KEY_NAME_MAX + 2];
	size_t cat_len = cat.len < KEY_NAME_MAX ? cat.len : KEY_NAME_MAX;
	if (cat_len)
		memcpy(text, cat.p, cat_len);
	text[cat_len] = 0;
	size_t name_len = key_fold(text + cat_len + 1, name);
	struct str all = { text, cat_len + 1 + name_len };
	uint64_t *at = map_get(&k->map, all);
	if (at)
		return (uint32_t)*at;
	struct str folded = { text + cat_len + 1, name_len };
	uint8_t cls = class_of(k, (struct str){ text, cat_len }, folded);
	uint32_t id = new_slot(k, cls);
	if (id == KEY_OVERFLOW) {
		k->overflow++;
		k->overflow_sync += cls == CLASS_SYNC || cls == CLASS_STEP;
		k->pressure++;
		return id;
	}
	struct key *key = &k->key[id];
	memcpy(key->text, text, all.len);
	key->cat_len = (uint16_t)cat_len;
	key->name_len = (uint16_t)name_len;
	key->cls = cls;
	bool fresh;
	at = map_at(&k->map, key_text(key), &fresh);
	if (!at)
		cli_die("out of memory");
	*at = id;
	return id;
}

struct cost *
keys_cost(struct keys *k, uint32_t id)
{
	struct key *key = &k->key[id];
	if (!key->cost && k->ncosts < COST_KEYS) {
		key->cost = cli_alloc(1, sizeof *key->cost);
		k->ncosts++;
	}
	return key->cost;
}

uint32_t
keys_of(struct keys *k, const struct event *ev)
{
	uint64_t h = hash_table(ev->name.p, ev->name.len, 1) ^
		     (hash_table(ev->cat.p, ev->cat.len, 2) << 1);
	size_t slot = h % KEY_CACHE;
	uint32_t id = k->cache[slot].id;
	if (k->cache[slot].hash != h || id == KEY_OVERFLOW) {
		id = keys_named(k, ev->cat, ev->name);
		k->cache[slot].hash = h;
		k->cache[slot].id = id;
	}
	k->key[id].events++;
	return id;
}
