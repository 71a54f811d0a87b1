/*
 * A leaf-spine fabric with faults, and what monitoring says of it: labelled
 * incidents as records on standard output, for scoring. Same seed, same bytes.
 *
 * usage: fabric SEED INCIDENTS [visible]
 *
 * 32 leaves, 16 spines, 8 hosts a leaf. At any time 0.3 to 1 % of the links
 * are bad since days (papers, 5.4) and nobody minds. An incident has four
 * flows of one leaf that complain, each with its path. What is wrong, and who
 * can see it, is the table `faults`. With "visible" only faults that some
 * agent saw (the truth of others is unknown), and half of the incidents
 * without a fault.
 *
 * Other flows of the fabric that lose packets stand in comments, for those who
 * let them vote: # lossy LINK...
 *
 * Besides: agents that miss or answer late, an agent that is down, clocks
 * that run ahead, false alarms, links that broke elsewhere at the same time, a
 * link that is shut, and congestion where its traffic went, minutes later.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LEAVES = 32,
	SPINES = 16,
	HOSTS = 8,
	FABRIC = LEAVES * SPINES * 2, /* directed links between switches */
	EDGES = LEAVES * HOSTS * 2,   /* and to hosts */
	LINKS = FABRIC + EDGES,
	FLOWS = 4,
	OTHERS = 400,       /* flows that are looked at, but do not complain */
	START = 2000000000, /* of the first incident, s since the epoch */
	STEP = 7200,
};

/* What goes wrong around the fault itself, per line or per incident. */
static const double MISSING = 0.002, STALE = 0.001, SKEWED = 0.0005,
		    FALSE_ALARM = 0.00001, AGENT_DOWN = 0.002, ELSEWHERE = 0.2,
		    MITIGATED = 0.3;

enum agent { PROBE, COUNTER, STATE, AGENTS };
static const char *const agent_name[] = { "probe", "counter", "state" };

enum kind {
	NOTHING,
	ALARM,
	APPLICATION,
	LOSS,
	SUBSET,
	MTU,
	FLAP,
	LIMIT,
	SWITCH,
	TWO,
	CORRUPT,
	SILENT,
	OLD
};

static const struct {
	enum kind kind;
	double weight;      /* how often, where there is a fault */
	double see[AGENTS]; /* how surely each agent sees it */
	bool both;          /* the whole cable */
	bool visible;
} faults[] = {
	{ LOSS, 0.3, { 0.999, 0, 0 }, false, true },
	{ SUBSET, 0.15, { 0.999, 0, 0 }, false, true },
	{ MTU, 0.1, { 0, 0.999, 0 }, false, true },
	{ FLAP, 0.15, { 0.9, 0.999, 0.999 }, true, true },
	{ LIMIT, 0.1, { 0.99, 0.99, 0 }, false, true },
	{ SWITCH, 0.03, { 0.99, 0.5, 0 }, false, true },
	{ TWO, 0.02, { 0.999, 0, 0 }, false, true },
	/* Seen by no agent, by none that answers, or long before. */
	{ CORRUPT, 0.07, { 0, 0, 0 }, false, false },
	{ SILENT, 0.04, { 0, 0, 0 }, false, false },
	{ OLD, 0.04, { 0.99, 0.5, 0 }, false, false },
};
enum { KINDS = sizeof faults / sizeof *faults };

static uint64_t state;

/* SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). */
static uint64_t
draw(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static double
uniform(void)
{
	return (double)(draw() >> 11) * 0x1p-53;
}

static bool
chance(double p)
{
	return uniform() < p;
}

static int
below(int n)
{
	return (int)(draw() % (uint64_t)n);
}

/* ---- links ----------------------------------------------------------- */

/* Even numbers go up, odd ones down; l ^ 1 is the other direction. */
static int
uplink(int leaf, int spine)
{
	return (leaf * SPINES + spine) * 2;
}

static int
edge(int leaf, int host)
{
	return FABRIC + (leaf * HOSTS + host) * 2;
}

static void
put_link(int link)
{
	int k = link / 2;
	char low[16], high[16];
	if (link < FABRIC) {
		snprintf(low, 16, "l%d", k / SPINES);
		snprintf(high, 16, "s%d", k % SPINES);
	} else {
		k -= FABRIC / 2;
		snprintf(low, 16, "h%d-%d", k / HOSTS, k % HOSTS);
		snprintf(high, 16, "l%d", k / HOSTS);
	}
	printf("%s>%s", link & 1 ? high : low, link & 1 ? low : high);
}

/* What stands before the first incident: who is part of what. */
static void
put_topology(void)
{
	for (int l = 0; l < FABRIC; l++)
		for (int end = 0; end < 2; end++) {
			printf("attach\tchild=link:");
			put_link(l);
			printf("\tparent=switch:%c%d\n", end ? 's' : 'l',
			    end ? l / 2 % SPINES : l / 2 / SPINES);
		}
	for (int l = FABRIC; l < LINKS; l++) {
		int k = (l - FABRIC) / 2;
		printf("attach\tchild=link:");
		put_link(l);
		printf("\tparent=switch:l%d\n", k / HOSTS);
		printf("attach\tchild=link:");
		put_link(l);
		printf("\tparent=host:h%d-%d\n", k / HOSTS, k % HOSTS);
	}
}

/* ---- one incident ---------------------------------------------------- */

struct flow {
	int from, to, spine; /* hosts as leaf * HOSTS + host */
	int path[4];
	bool suffers;
};

struct incident {
	long t;
	enum kind kind;
	int row; /* in faults[], -1: no fault */
	struct flow flow[FLOWS];
	bool scope[LINKS];
	bool bad[LINKS];       /* the fault of this incident */
	bool old[LINKS];       /* background */
	bool down[AGENTS + 1]; /* the last one is the switch agent */
	bool seen;             /* some agent reported the fault */
	int mitigated;         /* link that was shut, -1: none */
	int congested;         /* where its traffic went */
};

static void
route(struct flow *f, int from, int to, int spine)
{
	f->from = from;
	f->to = to;
	f->spine = spine;
	f->path[0] = edge(from / HOSTS, from % HOSTS);
	f->path[1] = uplink(from / HOSTS, spine);
	f->path[2] = uplink(to / HOSTS, spine) | 1;
	f->path[3] = edge(to / HOSTS, to % HOSTS) | 1;
}

static void
make_flows(struct incident *x)
{
	int leaf = below(LEAVES), spine = below(SPINES);
	bool one = x->kind == SWITCH || x->kind == SILENT;
	for (int i = 0; i < FLOWS; i++) {
		struct flow *f = &x->flow[i];
		int other = (leaf + 1 + below(LEAVES - 1)) % LEAVES;
		route(f, leaf * HOSTS + below(HOSTS),
		    other * HOSTS + below(HOSTS), one ? spine : below(SPINES));
		for (int k = 0; k < 4; k++)
			x->scope[f->path[k]] = true;
	}
}

static void
break_links(struct incident *x)
{
	int link = x->flow[0].path[1 + below(2)];
	if (x->row < 0)
		return;
	if (x->kind == SWITCH || x->kind == SILENT) {
		for (int l = 0; l < FABRIC; l++)
			x->bad[l] = l / 2 % SPINES == x->flow[0].spine;
		return;
	}
	x->bad[link] = true;
	if (faults[x->row].both)
		x->bad[link ^ 1] = true;
	if (x->kind == TWO)
		x->bad[x->flow[FLOWS - 1].path[1 + below(2)]] = true;
	if (x->kind != OLD && chance(MITIGATED)) {
		x->mitigated = link;
		x->congested = x->flow[1].path[1 + below(2)];
	}
}

static void
set_up(struct incident *x, bool visible)
{
	double share = 0.003 + 0.007 * uniform();
	x->row = -1;
	x->mitigated = x->congested = -1;
	if (chance(0.5)) {
		x->kind = visible || chance(0.6) ? ALARM : APPLICATION;
	} else {
		double w, sum = 0;
		do {
			x->row = below(KINDS);
			sum = faults[x->row].weight;
			w = uniform() * 0.3;
		} while (w > sum || (visible && !faults[x->row].visible));
		x->kind = faults[x->row].kind;
	}
	make_flows(x);
	for (int l = 0; l < LINKS; l++)
		x->old[l] = chance(share);
	break_links(x);
	for (int a = 0; a <= AGENTS; a++)
		x->down[a] = chance(AGENT_DOWN);
	for (int i = 0; i < FLOWS; i++)
		for (int k = 0; k < 4; k++)
			x->flow[i].suffers |= x->bad[x->flow[i].path[k]];
	x->flow[0].suffers |= x->kind == APPLICATION;
}

/* ---- what is said ---------------------------------------------------- */

static void
put_line(long time, const char *agent, const char *status, long onset)
{
	printf("\tagent=%s\tstatus=%s\ttime=%ld", agent, status, time);
	if (onset)
		printf("\tonset=%ld", onset);
	putchar('\n');
}

static void
say_link(int link, long time, const char *agent, const char *status, long onset)
{
	printf("evidence\tentity=link:");
	put_link(link);
	put_line(time, agent, status, onset);
}

/* When a healthy answer is stamped: mostly well. */
static long
stamp(const struct incident *x)
{
	double u = uniform();
	if (u < STALE)
		return x->t - 3600;
	return u < STALE + SKEWED ? x->t + 1000000 : x->t + 60;
}

static bool
sees(const struct incident *x, int link, int agent)
{
	if (x->row < 0 || !x->bad[link])
		return false;
	return chance(faults[x->row].see[agent]);
}

static void
say_of_link(struct incident *x, int l, int a)
{
	const char *agent = agent_name[a];
	bool silent = x->kind == SILENT && x->bad[l];
	bool app = x->kind == APPLICATION && a == PROBE &&
		   (l == x->flow[0].path[0] || l == (x->flow[0].path[0] ^ 1));
	if (x->down[a] || chance(MISSING) || (silent && a != PROBE))
		return;
	if (silent || app)
		say_link(l, x->t + 60, agent, "unknown\treason=ambiguous", 0);
	else if (x->old[l] && a != STATE)
		say_link(l, x->t + 60, agent, "faulty",
		    chance(0.8) ? x->t - 86400 * (1 + below(9)) : 0);
	else if (sees(x, l, a)) {
		x->seen |= a != STATE && x->kind != OLD;
		say_link(l, x->t + 60, agent, "faulty",
		    x->kind == OLD ? x->t - 86400 : x->t - 10 + below(30));
	} else if (chance(FALSE_ALARM))
		say_link(l, x->t + 60, agent, "faulty", x->t + below(30));
	else
		say_link(l, stamp(x), agent, "healthy", 0);
	if (a == COUNTER && (l == x->mitigated || l == x->congested))
		say_link(l, x->t + 600, agent, "faulty", x->t + 400);
}

static void
say_of_node(const struct incident *x, const char *kind, const char *name,
    const char *agent, const char *status, long onset)
{
	if (chance(MISSING))
		return;
	printf("evidence\tentity=%s:%s", kind, name);
	put_line(onset ? x->t + 60 : stamp(x), agent, status, onset);
}

static void
say_of_switch(struct incident *x, char level, int n)
{
	char name[16];
	bool mine = level == 's' && n == x->flow[0].spine;
	snprintf(name, sizeof name, "%c%d", level, n);
	if (x->down[AGENTS] || (mine && x->kind == SILENT))
		return;
	if (mine && x->kind == SWITCH)
		say_of_node(x, "switch", name, "switch", "faulty", x->t + 5);
	else
		say_of_node(x, "switch", name, "switch", "healthy", 0);
}

static void
say_of_host(const struct incident *x, int host)
{
	char name[16];
	snprintf(name, sizeof name, "h%d-%d", host / HOSTS, host % HOSTS);
	if (x->down[PROBE])
		return;
	if (x->kind == APPLICATION && host == x->flow[0].from)
		say_of_node(
		    x, "host", name, "probe", "unknown\treason=ambiguous", 0);
	else
		say_of_node(x, "host", name, "probe", "healthy", 0);
}

static void
put_hops(const struct flow *f)
{
	for (int k = 0; k < 4; k++) {
		if (k)
			putchar(' ');
		put_link(f->path[k]);
	}
	putchar('\n');
}

static void
put_lossy(const struct incident *x)
{
	for (int i = 0; i < FLOWS + OTHERS; i++) {
		struct flow f;
		bool lossy = false;
		if (i < FLOWS)
			f = x->flow[i];
		else
			route(&f, below(LEAVES * HOSTS), below(LEAVES * HOSTS),
			    below(SPINES));
		if (f.from / HOSTS == f.to / HOSTS)
			continue; /* within a leaf */
		for (int k = 0; k < 4; k++)
			lossy |= x->bad[f.path[k]] || x->old[f.path[k]];
		if (lossy || (i < FLOWS && f.suffers)) {
			printf("# lossy ");
			put_hops(&f);
		}
	}
}

static void
say_all(struct incident *x)
{
	bool leaf[LEAVES] = { false }, spine[SPINES] = { false };
	bool host[LEAVES * HOSTS] = { false };
	for (int l = 0; l < LINKS; l++)
		for (int a = 0; a < AGENTS; a++)
			if (x->scope[l] || (x->bad[l] && sees(x, l, a)) ||
			    (x->old[l] && a == below(2)))
				say_of_link(x, l, a);
	for (int i = 0; i < FLOWS; i++) {
		const struct flow *f = &x->flow[i];
		leaf[f->from / HOSTS] = leaf[f->to / HOSTS] = true;
		spine[f->spine] = true;
		host[f->from] = host[f->to] = true;
		printf("evidence\tentity=flow:%d", i);
		put_line(x->t + 60, "retrans",
		    f->suffers ? "faulty" : "healthy", f->suffers ? x->t : 0);
	}
	for (int n = 0; n < LEAVES; n++)
		if (leaf[n])
			say_of_switch(x, 'l', n);
	for (int n = 0; n < SPINES; n++)
		if (spine[n])
			say_of_switch(x, 's', n);
	for (int n = 0; n < LEAVES * HOSTS; n++)
		if (host[n])
			say_of_host(x, n);
	int away = below(LINKS);
	if (chance(ELSEWHERE) && !x->scope[away])
		say_link(away, x->t + 60, "counter", "faulty", x->t + 3);
}

static void
put_truth(const struct incident *x, bool visible)
{
	if (x->row < 0 || (visible && !x->seen)) {
		printf("truth\tentity=%s\n", x->row < 0 ? "none" : "unknown");
		return;
	}
	if (x->kind == SWITCH || x->kind == SILENT) {
		printf("truth\tentity=switch:s%d\n", x->flow[0].spine);
		return;
	}
	for (int l = 0; l < LINKS; l++) {
		if (!x->bad[l] || (faults[x->row].both && l & 1))
			continue;
		printf("truth\tentity=link:");
		/* l and l ^ 1: the cable between the same two nodes. */
		if (faults[x->row].both)
			printf("l%d--s%d", l / 2 / SPINES, l / 2 % SPINES);
		else
			put_link(l);
		putchar('\n');
	}
}

static void
put_incident(struct incident *x, int id, bool visible)
{
	printf("incident\tid=%d\tstart=%ld\tend=%ld\tnow=%ld\tnote=kind-%d\n",
	    id, x->t, x->t + 900, x->t + 900, x->kind);
	for (int i = 0; i < FLOWS; i++) {
		const struct flow *f = &x->flow[i];
		printf("flow\tid=%d\tsrc=h%d-%d\tdst=h%d-%d\n", i,
		    f->from / HOSTS, f->from % HOSTS, f->to / HOSTS,
		    f->to % HOSTS);
		printf("path\tflow=%d\thops=", i);
		put_hops(f);
	}
	put_lossy(x);
	say_all(x);
	put_truth(x, visible);
}

int
main(int argc, char **argv)
{
	bool visible = argc > 3 && !strcmp(argv[3], "visible");
	if (argc < 3) {
		fprintf(stderr, "usage: fabric SEED INCIDENTS [visible]\n");
		return 2;
	}
	state = strtoull(argv[1], NULL, 10);
	long n = strtol(argv[2], NULL, 10);
	put_topology();
	for (long i = 0; i < n; i++) {
		struct incident x = { .t = START + i * STEP };
		set_up(&x, visible);
		put_incident(&x, (int)i, visible);
	}
	return fflush(stdout) ? 2 : 0;
}
