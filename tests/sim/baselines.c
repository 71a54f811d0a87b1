/*
 * What people did before: always name the most suspicious one. Reads the
 * stream that fabric prints and scores three ways on it; shares no code with
 * the command that is compared.
 *
 *   weighted-sum        over the whole fabric: probe 0.5, counter 0.3, state
 *                       0.2, switch 0.5 for each that says faulty; the highest
 *                       is named if it reaches 0.3
 *   weighted-sum-scope  the same over the paths of the complaining flows
 *   votes               each flow that loses packets, in the whole fabric,
 *                       gives 1/h to each of its h links, the link with most
 *                       is named (007, NSDI 2018); they stand in comments,
 *                       "# lossy LINK...", that the command does not read
 *
 * Each always answers, if only with "nobody": its coverage is whole.
 *
 * usage: baselines <STREAM
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "map.h"
#include "stats.h"

enum { NAMES_MAX = 8192, NAME = 48, TRUTHS = 8 };

enum { SUM, SUM_SCOPE, VOTES, METHODS };
static const char *const method[] = { "weighted-sum", "weighted-sum-scope",
	"votes" };
static const double least[] = { 0.3, 0.3, 0.1 };

static const struct {
	const char *agent;
	double weight;
} weights[] = { { "probe", 0.5 }, { "counter", 0.3 }, { "state", 0.2 },
	{ "switch", 0.5 } };

struct entity {
	char name[NAME];
	double score[METHODS];
	bool scope;
};

static struct entity entity[NAMES_MAX];
static int nentities;
static struct map names; /* to their place in entity[] */
static char truth[TRUTHS][NAME];
static int ntruths;
static bool labelled, open;

static struct {
	unsigned long n, guilty, wrong, missed;
} total[METHODS];

static struct entity *
find(const char *name)
{
	const uint64_t *known = map_get(&names, str_c(name));
	bool fresh;
	if (known)
		return &entity[*known];
	if (nentities == NAMES_MAX)
		exit(2);
	struct entity *e = &entity[nentities];
	memset(e, 0, sizeof *e);
	snprintf(e->name, NAME, "%s", name);
	uint64_t *at = map_at(&names, str_c(e->name), &fresh);
	if (!at)
		exit(2);
	*at = (uint64_t)nentities++;
	return e;
}

/* The value of a key in a line, up to its TAB. */
static bool
value(const char *line, const char *key, char *to, size_t room)
{
	char k[32];
	snprintf(k, sizeof k, "\t%s=", key);
	const char *p = strstr(line, k);
	if (!p)
		return false;
	p += strlen(k);
	size_t n = strcspn(p, "\t\n");
	if (n >= room)
		n = room - 1;
	memcpy(to, p, n);
	to[n] = 0;
	return true;
}

/* a>b and a--b and b>a are one cable where either is without direction. */
static bool
same(const char *x, const char *y)
{
	const char *c = strstr(y, "--");
	if (!strcmp(x, y))
		return true;
	const char *gt = strchr(x, '>');
	if (!c || !gt || strncmp(x, "link:", 5) != 0)
		return false;
	size_t a = (size_t)(c - y) - 5, b = (size_t)(gt - x) - 5;
	const char *y1 = y + 5, *y2 = c + 2, *x1 = x + 5, *x2 = gt + 1;
	bool forward = a == b && !strncmp(x1, y1, a) && !strcmp(x2, y2);
	bool back = strlen(y2) == b && !strncmp(x1, y2, b) && strlen(x2) == a &&
		    !strncmp(x2, y1, a);
	return forward || back;
}

static void
score(int m)
{
	const struct entity *best = NULL;
	bool right = false;
	for (int i = 0; i < nentities; i++)
		if (!best || entity[i].score[m] > best->score[m])
			best = &entity[i];
	bool named = best && best->score[m] >= least[m];
	for (int i = 0; i < ntruths && named; i++)
		right |= same(best->name, truth[i]);
	total[m].n++;
	total[m].guilty += ntruths > 0;
	total[m].wrong += named && !right;
	total[m].missed += ntruths > 0 && !right;
}

static void
finish(void)
{
	for (int m = 0; open && labelled && m < METHODS; m++)
		score(m);
	nentities = ntruths = 0;
	map_free(&names);
	names = (struct map){ 0 };
	labelled = false;
	open = true;
}

/* The next of "a>b b>c", as link:a>b. */
static bool
next_link(const char **p, char name[NAME])
{
	size_t n = strcspn(*p, " \n");
	snprintf(name, NAME, "link:%.*s", (int)n, *p);
	*p += n;
	*p += strspn(*p, " \n");
	return n > 0;
}

static void
take_path(const char *line)
{
	char hops[512], name[NAME];
	if (!value(line, "hops", hops, sizeof hops))
		return;
	for (const char *p = hops; next_link(&p, name);)
		find(name)->scope = true;
}

static void
take_lossy(const char *hops)
{
	char name[NAME];
	const char *p = hops;
	int n = 0;
	while (next_link(&p, name))
		n++;
	for (p = hops; next_link(&p, name);)
		find(name)->score[VOTES] += 1.0 / n;
}

static void
take_evidence(const char *line)
{
	char name[NAME], agent[32], status[16];
	if (!value(line, "entity", name, sizeof name) ||
	    !value(line, "agent", agent, sizeof agent) ||
	    !value(line, "status", status, sizeof status) ||
	    strcmp(status, "faulty") != 0)
		return;
	struct entity *e = find(name);
	for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
		if (!strcmp(agent, weights[i].agent)) {
			e->score[SUM] += weights[i].weight;
			if (e->scope || !strncmp(name, "switch:", 7))
				e->score[SUM_SCOPE] += weights[i].weight;
		}
}

static void
take_truth(const char *line)
{
	char name[NAME];
	if (!value(line, "entity", name, sizeof name))
		return;
	labelled = strcmp(name, "unknown") != 0;
	if (labelled && strcmp(name, "none") != 0 && ntruths < TRUTHS)
		snprintf(truth[ntruths++], NAME, "%s", name);
}

static void
put(const char *m, const char *what, unsigned long k, unsigned long n)
{
	struct interval i = stats_wilson(k, n, STATS_Z95);
	printf("%-20s %-14s %6lu/%-6lu %6.2f %% (%.2f to %.2f)\n", m, what, k,
	    n, n ? 100.0 * (double)k / (double)n : 0, 100 * i.low,
	    100 * i.high);
}

int
main(void)
{
	static char line[1 << 16];
	while (fgets(line, sizeof line, stdin))
		if (!strncmp(line, "incident\t", 9))
			finish();
		else if (!strncmp(line, "path\t", 5))
			take_path(line);
		else if (!strncmp(line, "# lossy ", 8))
			take_lossy(line + 8);
		else if (!strncmp(line, "evidence\t", 9))
			take_evidence(line);
		else if (!strncmp(line, "truth\t", 6))
			take_truth(line);
	finish();
	for (int m = 0; m < METHODS; m++) {
		put(method[m], "false culprit", total[m].wrong, total[m].n);
		put(method[m], "miss", total[m].missed, total[m].guilty);
		put(method[m], "coverage", total[m].n, total[m].n);
	}
	return 0;
}
