/* Records about an incident: see facts.h and straightedge-incident(5). */
#include "facts.h"

#include <math.h>
#include <stdlib.h>

#include "hash.h"
#include "num.h"
#include "reasons.h"

enum { WALK_MAX = 256 }; /* parents looked at for a circle */

static const char OWN[] = "rcacompose";

void
facts_init(struct facts *f, const struct stack *s)
{
	*f = (struct facts){
		.stack = s, .start = NO_TIME, .end = NO_TIME, .now = NO_TIME
	};
}

void
facts_free(struct facts *f)
{
	arena_free(&f->keep);
	arena_free(&f->temp);
	map_free(&f->old);
	map_free(&f->fresh);
	free(f->entity);
	free(f->edge);
	free(f->line);
	free(f->alive);
	free(f->flow);
	free(f->listed);
	free(f->onpath);
	free(f->truth);
	free(f->touched);
}

/* Room for one more of `size` bytes; false: no memory. */
static bool
grow(void *array, size_t n, size_t *cap, size_t size)
{
	void **p = array;
	if (n < *cap)
		return true;
	size_t want = *cap ? *cap * 2 : 64;
	void *q = realloc(*p, want * size);
	if (!q)
		return false;
	*p = q;
	*cap = want;
	return true;
}

#define GROW(f, name, count, cap) \
	grow(&(f)->name, (f)->count, &(f)->cap, sizeof *(f)->name)

static struct arena *
arena_now(struct facts *f)
{
	return f->marked ? &f->temp : &f->keep;
}

/* ---- names ----------------------------------------------------------- */

bool
link_ends(struct str name, struct str *a, struct str *b, bool *directed)
{
	if (!str_starts(name, "link:"))
		return false;
	name.p += 5;
	name.len -= 5;
	const char *gt = name.len ? memchr(name.p, '>', name.len) : NULL;
	size_t at, gap = gt ? 1 : 2;
	if (gt)
		at = (size_t)(gt - name.p);
	else
		for (at = 0; at + 1 < name.len; at++)
			if (name.p[at] == '-' && name.p[at + 1] == '-')
				break;
	if (at + gap >= name.len || !at)
		return false;
	*a = (struct str){ name.p, at };
	*b = (struct str){ name.p + at + gap, name.len - at - gap };
	*directed = gt != NULL;
	return true;
}

int32_t
facts_find(const struct facts *f, struct str name)
{
	const uint64_t *v = map_get(&f->fresh, name);
	if (!v)
		v = map_get(&f->old, name);
	return v ? (int32_t)*v : NONE;
}

/* Remembers that e must be put back by facts_rewind. */
bool
facts_touch(struct facts *f, int32_t e)
{
	if (f->entity[e].touched || !f->marked)
		return true;
	if (!GROW(f, touched, ntouched, touched_cap))
		return false;
	f->touched[f->ntouched++] = e;
	return f->entity[e].touched = true;
}

static void
set_kind(struct facts *f, struct entity *n)
{
	struct str rest = n->name, a, b;
	bool directed;
	str_cut(&rest, ':', &n->kind);
	if (!rest.p)
		n->kind = (struct str){ n->name.p, 0 };
	if (link_ends(n->name, &a, &b, &directed) && !directed)
		f->undirected = true;
}

int32_t
facts_entity(struct facts *f, struct str name)
{
	int32_t at = facts_find(f, name);
	if (at != NONE)
		return facts_touch(f, at) ? at : NONE;
	if (f->nentities == ENTITIES_MAX ||
	    !GROW(f, entity, nentities, entities_cap))
		return NONE;
	bool fresh;
	struct str kept = arena_str(arena_now(f), name);
	uint64_t *slot =
	    kept.p ? map_at(f->marked ? &f->fresh : &f->old, kept, &fresh)
		   : NULL;
	if (!slot)
		return NONE;
	at = (int32_t)f->nentities++;
	*slot = (uint64_t)at;
	struct entity *n = &f->entity[at];
	*n = (struct entity){ .name = kept,
		.ties = { at, at, at, 1, NONE, NONE },
		.first = NONE,
		.last_flow = NONE,
		.complaint = NONE,
		.finding = NONE };
	n->kept = n->ties;
	set_kind(f, n);
	return at;
}

static int
need_entity(struct facts *f, struct str name, int32_t *out, struct err *e)
{
	if (!name.len || name.len > ENTITY_NAME_MAX)
		return err_set(e, SE_EFORMAT,
		    "expected the name of an entity, 1 to %d bytes",
		    ENTITY_NAME_MAX);
	*out = facts_entity(f, name);
	if (*out != NONE)
		return 0;
	return err_set(e, SE_ELIMIT, "more than %d entities", ENTITIES_MAX);
}

static int
entity_of(struct facts *f, const struct rec *r, const char *key, int32_t *out,
    struct err *e)
{
	int err = need_entity(f, rec_text_of(r, key), out, e);
	if (err == SE_EFORMAT)
		err_prefix(e, "%s", key);
	return err;
}

/* ---- topology ----------------------------------------------------------- */

/* Is `what` above or equal to `from`? Gives up, with true, on hostile depth. */
static bool
is_above(const struct facts *f, int32_t from, int32_t what, int *steps)
{
	int32_t m = from;
	if (facts_root(f, from) == facts_root(f, what))
		return true;
	do {
		for (int32_t k = f->entity[m].ties.up; k != NONE;
		     k = f->edge[k].next_up)
			if (++*steps > WALK_MAX ||
			    is_above(f, f->edge[k].parent, what, steps))
				return true;
		m = f->entity[m].ties.ring;
	} while (m != from);
	return false;
}

static int
take_attach(struct facts *f, const struct rec *r, struct err *e)
{
	int32_t child, parent;
	int steps = 0;
	int err = entity_of(f, r, "child", &child, e);
	if (!err)
		err = entity_of(f, r, "parent", &parent, e);
	if (err)
		return err;
	if (is_above(f, parent, child, &steps))
		return err_set(e, SE_EFORMAT,
		    steps > WALK_MAX ? "attach: more than 256 parents above"
				     : "attach closes a circle");
	if (!GROW(f, edge, nedges, edges_cap))
		return err_mem(e);
	struct ties *c = &f->entity[child].ties, *p = &f->entity[parent].ties;
	int32_t at = (int32_t)f->nedges++;
	f->edge[at] = (struct edge){ child, parent, c->up, p->down };
	c->up = at;
	p->down = at;
	return 0;
}

static int
take_alias(struct facts *f, const struct rec *r, struct err *e)
{
	int32_t a, b;
	int err = entity_of(f, r, "entity", &a, e);
	if (!err)
		err = entity_of(f, r, "same", &b, e);
	if (err)
		return err;
	int32_t x = facts_root(f, a), y = facts_root(f, b);
	if (x == y)
		return 0;
	if (!facts_touch(f, x) || !facts_touch(f, y))
		return err_mem(e);
	int32_t label = f->entity[x].ties.label;
	if (f->entity[x].ties.size < f->entity[y].ties.size) {
		int32_t t = x;
		x = y;
		y = t;
	}
	struct ties *to = &f->entity[x].ties, *from = &f->entity[y].ties;
	int32_t t = to->ring;
	from->same = x;
	to->size += from->size;
	to->label = label;
	to->ring = from->ring;
	from->ring = t;
	return 0;
}

/* ---- flows, paths, candidates -------------------------------------------- */

static struct str
flow_name(struct facts *f, const char *fmt_a, struct str a, struct str b)
{
	char *p = arena_alloc(arena_now(f), a.len + b.len + 8);
	if (!p)
		return STR_NULL;
	int n = snprintf(p, a.len + b.len + 8, "flow:%.*s%s%.*s", STR_ARG(a),
	    fmt_a, (int)b.len, b.p ? b.p : "");
	return (struct str){ p, (size_t)n };
}

static int
add_flow(struct facts *f, struct str name, int32_t *out, struct err *e)
{
	int err = need_entity(f, name, out, e);
	if (err)
		return err;
	if (f->entity[*out].complaint != NONE)
		return 0;
	if (!GROW(f, flow, nflows, flows_cap))
		return err_mem(e);
	f->entity[*out].complaint = (int32_t)f->nflows;
	f->flow[f->nflows++] = (struct flow){ .entity = *out };
	return 0;
}

static int
take_flow(struct facts *f, const struct rec *r, struct err *e)
{
	struct str id = rec_text_of(r, "id");
	int32_t flow;
	struct str name = id;
	if (!id.len)
		name = flow_name(
		    f, "-", rec_text_of(r, "src"), rec_text_of(r, "dst"));
	else if (!str_starts(id, "flow:"))
		name = flow_name(f, "", id, STR_NULL);
	int err = name.p ? add_flow(f, name, &flow, e) : err_mem(e);
	if (err)
		return err;
	struct flow *x = &f->flow[f->entity[flow].complaint];
	x->src = arena_str(arena_now(f), rec_text_of(r, "src"));
	x->dst = arena_str(arena_now(f), rec_text_of(r, "dst"));
	return x->src.p && x->dst.p ? 0 : err_mem(e);
}

static int
add_to_path(struct facts *f, int32_t flow, struct str name, struct err *e)
{
	int32_t at;
	int err = need_entity(f, name, &at, e);
	if (err)
		return err;
	struct entity *n = &f->entity[at];
	if (n->last_flow == flow)
		return 0;
	n->last_flow = flow;
	n->flows++;
	f->entity[flow].has_path = true;
	if (!GROW(f, onpath, nonpath, onpath_cap))
		return err_mem(e);
	f->onpath[f->nonpath++] = at;
	return 0;
}

/* "switch:l1" and "switch:s1" in a row: the link between them. */
static int
add_between(
    struct facts *f, int32_t flow, struct str a, struct str b, struct err *e)
{
	struct str skip;
	str_cut(&a, ':', &skip);
	str_cut(&b, ':', &skip);
	if (!a.p || !b.p)
		return 0;
	size_t room = a.len + b.len + 8;
	char *p = arena_alloc(arena_now(f), room);
	if (!p)
		return err_mem(e);
	int n = snprintf(p, room, "link:%.*s>%.*s", STR_ARG(a), STR_ARG(b));
	return add_to_path(f, flow, (struct str){ p, (size_t)n }, e);
}

/*
 * A hop as typed: a>b and a--b are links; a bare word is a switch, or a host
 * where the flow begins or ends there.
 */
static struct str
hop_name(struct facts *f, const struct flow *flow, struct str hop)
{
	bool link = memchr(hop.p, '>', hop.len) != NULL;
	for (size_t i = 0; !link && i + 1 < hop.len; i++)
		link = hop.p[i] == '-' && hop.p[i + 1] == '-';
	const char *colon = memchr(hop.p, ':', hop.len);
	if (colon && (!link || str_starts(hop, "link:")))
		return hop;
	bool end = str_same(hop, flow->src) || str_same(hop, flow->dst);
	const char *kind = link ? "link" : end ? "host" : "switch";
	size_t room = hop.len + 10;
	char *p = arena_alloc(arena_now(f), room);
	if (!p)
		return STR_NULL;
	int n = snprintf(p, room, "%s:%.*s", kind, STR_ARG(hop));
	return (struct str){ p, (size_t)n };
}

int
facts_hops(struct facts *f, struct str flow, struct str hops, struct err *e)
{
	struct str name = flow, hop, before = STR_NULL;
	int32_t at;
	if (!str_starts(flow, "flow:"))
		name = flow_name(f, "", flow, STR_NULL);
	int err = name.p ? add_flow(f, name, &at, e) : err_mem(e);
	int count = 0;
	while (!err && hops.p && str_cut(&hops, ' ', &hop)) {
		if (!hop.len)
			continue;
		if (count++ == HOPS_MAX)
			return err_set(
			    e, SE_EFORMAT, "more than %d hops", HOPS_MAX);
		struct str n =
		    hop_name(f, &f->flow[f->entity[at].complaint], hop);
		if (!n.p)
			return err_mem(e);
		err = add_to_path(f, at, n, e);
		bool node = !str_starts(n, "link:");
		if (!err && node && before.p)
			err = add_between(f, at, before, n, e);
		before = node ? n : STR_NULL;
	}
	if (!err && !count)
		return err_set(e, SE_EFORMAT, "hops: expected some");
	return err;
}

int
facts_path(struct facts *f, unsigned n, struct str nodes, struct err *e)
{
	struct buf b = { 0 };
	struct str rest = nodes, node;
	char id[32];
	snprintf(id, sizeof id, "path-%u", n);
	for (size_t i = 0; str_cut(&rest, ',', &node); i++) {
		bool plain = node.len && !memchr(node.p, ':', node.len);
		bool end = !i || !rest.p;
		if (!node.len || memchr(node.p, ' ', node.len)) {
			buf_free(&b);
			return err_set(e, SE_EFORMAT,
			    "expected names with commas between them");
		}
		if (plain)
			buf_puts(&b, end ? "host:" : "switch:");
		buf_str(&b, node);
		buf_putc(&b, ' ');
	}
	int r =
	    b.failed ? err_mem(e) : facts_hops(f, str_c(id), buf_view(&b), e);
	buf_free(&b);
	return r;
}

static int
take_path(struct facts *f, const struct rec *r, struct err *e)
{
	struct str flow = rec_text_of(r, "flow");
	if (!flow.len)
		return err_set(e, SE_EFORMAT, "flow: expected a name");
	return facts_hops(f, flow, rec_text_of(r, "hops"), e);
}

static int
take_candidate(struct facts *f, const struct rec *r, struct err *e)
{
	int32_t at;
	int err = entity_of(f, r, "entity", &at, e);
	if (err)
		return err;
	if (!GROW(f, listed, nlisted, listed_cap))
		return err_mem(e);
	f->listed[f->nlisted++] = at;
	return 0;
}

static int
take_truth(struct facts *f, const struct rec *r, struct err *e)
{
	struct str name = rec_text_of(r, "entity");
	int32_t at;
	if (str_is(name, "none"))
		f->truth_none = true;
	else if (str_is(name, "unknown"))
		f->truth_unknown = true;
	else {
		int err = entity_of(f, r, "entity", &at, e);
		if (err)
			return err;
		if (!GROW(f, truth, ntruths, truths_cap))
			return err_mem(e);
		f->truth[f->ntruths++] = at;
	}
	if (f->truth_none + f->truth_unknown + (f->ntruths > 0) > 1)
		return err_set(e, SE_EFORMAT,
		    "truth: none, unknown and a name exclude each other");
	return 0;
}

int
facts_incident(struct facts *f, const struct rec *r, struct err *e)
{
	struct str id = rec_text_of(r, "id");
	int err = rec_time_of(r, "start", &f->start, e);
	if (!err)
		err = rec_time_of(r, "end", &f->end, e);
	if (!err)
		err = rec_time_of(r, "now", &f->now, e);
	if (err)
		return err;
	if (f->end != NO_TIME && f->end < f->start)
		return err_set(e, SE_EFORMAT, "incident ends before it starts");
	f->id = arena_str(arena_now(f), id);
	if (f->group_by)
		f->group = arena_str(arena_now(f), rec_text_of(r, f->group_by));
	f->incident = true;
	return f->id.p ? 0 : err_mem(e);
}

/* ---- evidence ----------------------------------------------------------- */

static int
agent_of(struct facts *f, const struct rec *r)
{
	return stack_agent(f->stack, rec_text_of(r, "agent"));
}

static int
take_alive(struct facts *f, const struct rec *r, struct err *e)
{
	int agent = agent_of(f, r);
	struct alive a = { .agent = (uint16_t)agent, .since = NO_TIME };
	int err = rec_time_of(r, "since", &a.since, e);
	if (!err)
		err = rec_time_of(r, "until", &a.until, e);
	if (err)
		return err;
	if (agent < 0 || !f->trusted) {
		f->other_agents += agent < 0;
		return 0;
	}
	if (!GROW(f, alive, nalive, alive_cap))
		return err_mem(e);
	a.entity = arena_str(arena_now(f), rec_text_of(r, "entity"));
	f->alive[f->nalive++] = a;
	return a.entity.p ? 0 : err_mem(e);
}

/* "a,b,c": c is where it all came from. Own verdicts are no evidence. */
static uint32_t
chain_root(struct str chain, int agent, bool *own)
{
	struct str word = STR_NULL, last = STR_NULL, head;
	while (chain.p && str_cut(&chain, ',', &word)) {
		if (!word.len)
			continue;
		last = word;
		str_cut(&word, ':', &head);
		*own |= str_is(head, OWN);
	}
	if (!last.len)
		return (uint32_t)agent;
	/* Two roots that collide count once: fewer witnesses, never more. */
	return (uint32_t)hash_table(last.p, last.len, 0) | UINT32_C(1) << 31;
}

/* A rate, perhaps with < or <= before it. */
static double
bound_of(struct str s)
{
	double v;
	if (s.len && s.p[0] == '<') {
		s.p++;
		s.len--;
		if (s.len && s.p[0] == '=') {
			s.p++;
			s.len--;
		}
	}
	return num_f64(s, &v, NULL) ? NAN : v;
}

static int
status_of(struct str s, struct err *e)
{
	static const char *const word[] = { "unknown", "faulty", "healthy" };
	for (int i = 0; i < 3; i++)
		if (str_is(s, word[i]))
			return i;
	return err_set(e, SE_EFORMAT,
	    "status: expected faulty, healthy or unknown, found \"%.*s\"",
	    s.len > 40 ? 40 : (int)s.len, s.p ? s.p : "");
}

static int
line_times(const struct rec *r, struct line *l, struct err *e)
{
	int err = rec_time_of(r, "time", &l->time, e);
	if (!err)
		err = rec_time_of(r, "onset", &l->onset, e);
	if (!err)
		err = rec_time_of(r, "until", &l->until, e);
	if (!err && l->onset != NO_TIME && l->until != NO_TIME &&
	    l->until < l->onset)
		return err_set(e, SE_EFORMAT, "until lies before onset");
	return err;
}

static int
add_line(struct facts *f, const struct line *l, struct err *e)
{
	if (f->nlines == LINES_MAX)
		return err_set(
		    e, SE_ELIMIT, "more than %d lines of evidence", LINES_MAX);
	if (!GROW(f, line, nlines, lines_cap))
		return err_mem(e);
	f->line[f->nlines++] = *l;
	return 0;
}

/* What could not be read counts against the agent's silence there. */
static int
add_hard(struct facts *f, struct line *l, const char *reason, struct err *e)
{
	l->status = SAYS_UNKNOWN;
	l->hard = true;
	l->reason = reason;
	l->time = l->onset = l->until = NO_TIME;
	return add_line(f, l, e);
}

static int
take_evidence(
    struct facts *f, const struct rec *r, unsigned source, struct err *e)
{
	struct str about = rec_text_of(r, "incident");
	if (about.len && f->incident && !str_same(about, f->id))
		return err_set(e, SE_EFORMAT,
		    "evidence of incident \"%.*s\" among that of another",
		    about.len > 60 ? 60 : (int)about.len, about.p);
	struct str name = rec_text_of(r, "agent");
	int agent = stack_agent(f->stack, name);
	bool own = str_is(name, OWN);
	if (agent < 0) {
		f->other_agents += !own;
		f->refused += own;
		return 0;
	}
	struct line l = { .agent = (uint16_t)agent,
		.source = (uint16_t)source,
		.number = r->line,
		.time = NO_TIME,
		.onset = NO_TIME,
		.until = NO_TIME };
	int err = entity_of(f, r, "entity", &l.entity, e);
	if (err)
		return err;
	l.root = chain_root(rec_text_of(r, "chain"), agent, &own);
	if (own) {
		f->refused++;
		return add_hard(f, &l, REASON_CIRCULAR, e);
	}
	int status = status_of(rec_text_of(r, "status"), e);
	err = status < 0 ? status : line_times(r, &l, e);
	if (err) {
		int more = add_hard(f, &l, REASON_GARBLED, NULL);
		return more ? more : err;
	}
	l.status = (unsigned char)status;
	l.bound = bound_of(rec_text_of(r, "bound"));
	struct str reason = rec_text_of(r, "reason");
	l.reason = REASON_UNSTATED;
	if (status == SAYS_UNKNOWN && reason.len) {
		l.reason = arena_str(arena_now(f), reason).p;
		if (!l.reason)
			return err_mem(e);
	}
	return add_line(f, &l, e);
}

void
facts_garbled(
    struct facts *f, struct str line, unsigned source, uint64_t number)
{
	struct str word, entity = STR_NULL, agent = STR_NULL;
	struct line l = { .source = (uint16_t)source, .number = number };
	if (!str_starts(line, "evidence\t"))
		return;
	while (str_cut(&line, '\t', &word)) {
		if (str_starts(word, "entity="))
			entity = (struct str){ word.p + 7, word.len - 7 };
		else if (str_starts(word, "agent="))
			agent = (struct str){ word.p + 6, word.len - 6 };
	}
	int a = stack_agent(f->stack, agent);
	if (a < 0 || need_entity(f, entity, &l.entity, NULL))
		return;
	l.agent = (uint16_t)a;
	add_hard(f, &l, REASON_GARBLED, NULL);
}

// clang-format off
static const struct {
	const char *type;
	int (*take)(struct facts *, const struct rec *, struct err *);
	bool of_incident; /* may not stand before it */
} takers[] = {
	{ "flow", take_flow, true },
	{ "path", take_path, true },
	{ "candidate", take_candidate, true },
	{ "attach", take_attach, false },
	{ "alias", take_alias, false },
	{ "alive", take_alive, false },
	{ "truth", take_truth, true },
};
// clang-format on

int
facts_add(struct facts *f, const struct rec *r, unsigned source, struct err *e)
{
	if (str_is(r->type, "evidence"))
		return take_evidence(f, r, source, e);
	for (size_t i = 0; i < sizeof takers / sizeof *takers; i++)
		if (str_is(r->type, takers[i].type)) {
			if (takers[i].of_incident && !f->incident)
				return err_set(e, SE_EFORMAT,
				    "%s before the incident it belongs to",
				    takers[i].type);
			return takers[i].take(f, r, e);
		}
	return 0;
}

/* ---- one incident after the other ---------------------------------------- */

void
facts_mark(struct facts *f)
{
	if (f->marked)
		return;
	for (size_t i = 0; i < f->nentities; i++)
		f->entity[i].kept = f->entity[i].ties;
	f->entities_kept = f->nentities;
	f->edges_kept = f->nedges;
	f->lines_kept = f->nlines;
	f->alive_kept = f->nalive;
	f->marked = true;
}

/* Names and edges from before the mark, as they were then. */
static void
restore(struct facts *f, int32_t e)
{
	struct entity *n = &f->entity[e];
	if ((size_t)e >= f->entities_kept)
		return;
	n->ties = n->kept;
	n->first = n->finding = n->last_flow = n->complaint = NONE;
	n->flows = 0;
	n->candidate = n->touched = n->has_path = false;
}

void
facts_rewind(struct facts *f)
{
	for (size_t i = 0; i < f->ntouched; i++)
		restore(f, f->touched[i]);
	f->ntouched = 0;
	f->nentities = f->entities_kept;
	f->nedges = f->edges_kept;
	f->nlines = f->lines_kept;
	f->nalive = f->alive_kept;
	f->nflows = f->nlisted = f->nonpath = 0;
	f->ntruths = 0;
	f->truth_none = f->truth_unknown = f->truths_bad = false;
	f->incident = false;
	f->id = f->group = STR_NULL;
	f->start = f->end = f->now = NO_TIME;
	f->other_agents = f->refused = 0;
	arena_free(&f->temp);
	map_free(&f->fresh);
}
