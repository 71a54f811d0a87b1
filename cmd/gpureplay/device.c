/* What a process can be put on: see device.h. */
#define _GNU_SOURCE
#include "device.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "board.h"
#include "cli.h"
#include "hosts.h"
#include "line.h"
#include "num.h"
#include "src.h"

enum { LINE_MAX_BYTES = 65536 }; /* of /proc/cpuinfo: flags are long */

static const char *
keep(struct devices *d, struct str s)
{
	struct str own = arena_str(&d->arena, s);
	if (!own.p)
		cli_die("out of memory");
	return own.p;
}

static const char *
keep_fmt(struct devices *d, const char *fmt, const char *a, const char *b)
{
	struct buf t = { 0 };
	for (; *fmt; fmt++) {
		if (*fmt == '1')
			buf_puts(&t, a);
		else if (*fmt == '2')
			buf_puts(&t, b);
		else
			buf_putc(&t, *fmt);
	}
	if (t.failed)
		cli_die("out of memory");
	const char *own = keep(d, buf_view(&t));
	buf_free(&t);
	return own;
}

static struct device *
add(struct devices *d, const char *option, const char *name)
{
	char host[256] = "";
	for (size_t i = 0; i < d->n; i++)
		if (!strcmp(d->list[i].name, name))
			cli_usage("option %s: %s is there twice", option, name);
	if (d->n == DEVICES_MAX)
		cli_usage("option %s: at most %d devices", option, DEVICES_MAX);
	if (!(d->n & (d->n - 1)))
		d->list =
		    cli_realloc(d->list, d->n ? d->n * 2 : 1, sizeof *d->list);
	gethostname(host, sizeof host - 1);
	struct device *new = &d->list[d->n++];
	*new = (struct device){ .name = name, .cpu = -1, .nvidia = -1 };
	new->entity = keep_fmt(d, "device:1/2", host, name);
	new->id = keep_fmt(d, "name:1/2", host, name);
	new->alike = "";
	return new;
}

/* ---- cores -------------------------------------------------------------- */

static struct str
trim(struct str s)
{
	while (s.len && (*s.p == ' ' || *s.p == '\t'))
		s = (struct str){ s.p + 1, s.len - 1 };
	while (s.len && (s.p[s.len - 1] == ' ' || s.p[s.len - 1] == '\t'))
		s.len--;
	return s;
}

/* The value of "key<tab>: value" lines that make cores alike. */
static bool
tells_kind(struct str key)
{
	static const char *const keys[] = { "vendor_id", "cpu family", "model",
		"model name", "stepping", "microcode", "CPU implementer",
		"CPU part", "CPU variant", "CPU revision", NULL };
	for (int i = 0; keys[i]; i++)
		if (str_is(key, keys[i]))
			return true;
	return false;
}

/* Model, stepping and microcode of a core, and its model for people. */
static void
cpu_kind(struct devices *d, struct device *core)
{
	struct src *src;
	struct line_in *in;
	struct str line, key;
	struct buf kind = { 0 };
	uint64_t at = UINT64_MAX;
	if (src_open(&src, "/proc/cpuinfo", NULL, SRC_PLAIN, NULL))
		return;
	bool ok = !line_open(&in, src, LINE_MAX_BYTES, NULL);
	while (ok && line_next(in, &line, NULL) > 0) {
		struct str value = line;
		if (!str_cut(&value, ':', &key) || !value.p)
			continue;
		key = trim(key);
		value = trim(value);
		if (str_is(key, "processor"))
			num_u64(value, 0, INT32_MAX, &at, NULL);
		if (at != (uint64_t)core->cpu || !tells_kind(key))
			continue;
		buf_str(&kind, value);
		buf_putc(&kind, '|');
		if (str_is(key, "model name"))
			core->model = keep(d, value);
	}
	if (kind.len && !kind.failed)
		core->alike = keep(d, buf_view(&kind));
	buf_free(&kind);
	if (ok)
		line_close(in);
	src_close(src);
}

/* Hybrid processors: the kernel lists the cores of each kind. */
static void
cpu_hybrid(struct devices *d, struct device *core)
{
	static const char *const kinds[] = { "cpu_core", "cpu_atom",
		"cpu_lowpower", NULL };
	for (int i = 0; kinds[i]; i++) {
		char path[80], text[4096] = "";
		snprintf(path, sizeof path, "/sys/devices/%s/cpus", kinds[i]);
		FILE *f = fopen(path, "re");
		if (!f)
			continue;
		struct str rest = { text, fread(text, 1, sizeof text - 1, f) };
		struct str word, low;
		fclose(f);
		if (rest.len && text[rest.len - 1] == '\n')
			rest.len--;
		while (str_cut(&rest, ',', &word)) {
			uint64_t a, b;
			str_cut(&word, '-', &low);
			if (num_u64(low, 0, INT32_MAX, &a, NULL))
				continue;
			b = a;
			if (word.p)
				num_u64(word, a, INT32_MAX, &b, NULL);
			if (a <= (uint64_t)core->cpu &&
			    (uint64_t)core->cpu <= b)
				core->alike =
				    keep_fmt(d, "1 2", core->alike, kinds[i]);
		}
	}
}

static void
add_cpu(struct devices *d, const char *option, uint64_t number)
{
	char name[32];
	snprintf(name, sizeof name, "cpu%d", (int)number);
	struct device *core = add(d, option, keep(d, str_c(name)));
	core->cpu = (int)number;
	core->id = keep_fmt(d, "core:1", core->entity + strlen("device:"), "");
	cpu_kind(d, core);
	cpu_hybrid(d, core);
}

void
devices_add_cpus(struct devices *d, const char *option, const char *list)
{
	struct str rest = str_c(list), word, low;
	cpu_set_t may;
	if (sched_getaffinity(0, sizeof may, &may))
		cli_die("cannot see which cores may be used");
	while (str_cut(&rest, ',', &word)) {
		uint64_t a, b;
		struct err e;
		struct str high = word;
		str_cut(&high, '-', &low);
		int x = num_u64(low, 0, CPU_SETSIZE - 1, &a, &e);
		b = a;
		if (!x && high.p)
			x = num_u64(high, a, CPU_SETSIZE - 1, &b, &e);
		if (x)
			cli_usage("option %s: expected cores such as 3,7-9: %s",
			    option, e.msg);
		for (uint64_t i = a; i <= b; i++) {
			if (!CPU_ISSET((size_t)i, &may))
				cli_usage("option %s: core %d may not be used",
				    option, (int)i);
			add_cpu(d, option, i);
		}
	}
}

void
devices_all_cpus(struct devices *d)
{
	cpu_set_t may;
	if (sched_getaffinity(0, sizeof may, &may))
		cli_die("cannot see which cores may be used");
	for (uint64_t i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET((size_t)i, &may) && d->n < DEVICES_MAX)
			add_cpu(d, "--cpus", i);
}

/* ---- hosts -------------------------------------------------------------- */

static void
add_far(struct devices *d, const char *option, const char *host, int cpu)
{
	char core[32] = "";
	if (cpu >= 0)
		snprintf(core, sizeof core, "/cpu%d", cpu);
	struct device *new = add(d, option,
	    keep_fmt(d,
		"1"
		"2",
		host, core));
	new->entity = keep_fmt(d, cpu < 0 ? "host:1" : "device:12", host, core);
	new->id = keep_fmt(d, cpu < 0 ? "host:1" : "core:12", host, core);
	new->host = keep(d, str_c(host));
	new->cpu = cpu;
}

void
devices_add_hosts(
    struct devices *d, const char *option, const char *list, const char *cpus)
{
	const char **host = cli_alloc(HOSTS_MAX, sizeof *host);
	struct err e;
	size_t n;
	if (hosts_expand(list, &d->arena, host, &n, &e))
		cli_usage("option %s: %s", option, e.msg);
	for (size_t i = 0; i < n; i++) {
		struct str rest = str_c(cpus), word;
		if (!cpus)
			add_far(d, option, host[i], -1);
		while (str_cut(&rest, ',', &word)) {
			uint64_t cpu;
			if (num_u64(word, 0, CPU_SETSIZE - 1, &cpu, &e))
				cli_usage("option --cpus: %s", e.msg);
			add_far(d, option, host[i], (int)cpu);
		}
	}
	free(host);
}

/* Two hosts are alike if their boards are, too. */
static void
add_board_kinds(struct devices *d, struct device *host)
{
	struct boards b;
	boards_find(&b, "");
	for (size_t i = 0; i < b.n; i++) {
		const struct board *x = &b.list[i];
		host->alike =
		    keep_fmt(d, "12|", host->alike, x->model ? x->model : "");
		host->alike =
		    keep_fmt(d, "12|", host->alike, x->driver ? x->driver : "");
	}
	boards_free(&b);
}

void
devices_add_host(struct devices *d)
{
	char name[256] = "";
	gethostname(name, sizeof name - 1);
	struct device *new = add(d, "", keep(d, str_c(name)));
	/* What it is like is what its first core is like. */
	new->cpu = 0;
	cpu_kind(d, new);
	new->cpu = -1;
	new->entity = keep_fmt(d, "host:1", name, "");
	add_board_kinds(d, new);
}

/* ---- boards ------------------------------------------------------------- */

static void
add_board(struct devices *d, const struct board *b)
{
	char host[256] = "";
	gethostname(host, sizeof host - 1);
	struct device *new = add(d, "--devices", keep(d, str_c(b->uuid)));
	new->entity = keep_fmt(d, "device:1/2", host, b->pci);
	new->id = keep_fmt(d, "2:1", b->uuid, b->nvidia < 0 ? "amd" : "nvidia");
	new->model = b->model ? keep(d, str_c(b->model)) : NULL;
	new->alike = keep_fmt(
	    d, "1|2", b->model ? b->model : "", b->driver ? b->driver : "");
	new->nvidia = b->nvidia;
}

static const char *
one_pin(const char *before, const char *pin)
{
	if (before && strcmp(before, pin))
		cli_usage("boards of two vendors: name those of one with "
			  "--devices");
	return pin;
}

const char *
devices_add_boards(struct devices *d, size_t *busy)
{
	struct boards b;
	const char *pin = NULL;
	boards_find(&b, "");
	for (size_t i = 0; i < b.n; i++) {
		const struct board *x = &b.list[i];
		if (!x->uuid || x->busy) {
			cli_warn("%s: left out: %s", x->pci,
			    x->uuid ? "another process has it open"
				    : "it has no UUID");
			++*busy;
			continue;
		}
		pin = one_pin(pin, x->pin);
		add_board(d, x);
	}
	boards_free(&b);
	return pin;
}

const char *
devices_known_boards(struct devices *d, const char *option, const char *list)
{
	struct boards b;
	struct str rest = str_c(list), word;
	const char *pin = NULL;
	bool all = true;
	boards_find(&b, "");
	while (all && str_cut(&rest, ',', &word)) {
		size_t i = 0;
		while (i < b.n &&
		       !(b.list[i].uuid && str_is(word, b.list[i].uuid)))
			i++;
		all = i < b.n;
		if (all) {
			pin = one_pin(pin, b.list[i].pin);
			add_board(d, &b.list[i]);
		}
	}
	boards_free(&b);
	if (!all)
		d->n = 0;
	return all ? pin : NULL;
}

/* ---- names -------------------------------------------------------------- */

void
devices_add_names(struct devices *d, const char *option, const char *list)
{
	struct str rest = str_c(list), word;
	while (str_cut(&rest, ',', &word)) {
		if (!word.len)
			cli_usage("option %s: an empty name", option);
		add(d, option, keep(d, word));
	}
}

void
devices_suspect(struct devices *d, const char *option, const char *list)
{
	struct str rest = str_c(list), word;
	while (str_cut(&rest, ',', &word)) {
		bool found = false;
		for (size_t i = 0; i < d->n; i++) {
			struct device *x = &d->list[i];
			bool is =
			    str_is(word, x->name) || str_is(word, x->entity);
			x->named |= is;
			found |= is;
		}
		if (!found)
			cli_usage("option %s: \"%.*s\" is not among the "
				  "devices",
			    option, STR_ARG(word));
	}
}

void
devices_free(struct devices *d)
{
	free(d->list);
	arena_free(&d->arena);
}
