/*
 * What an incident is about: its flows and their paths, candidates, the truth.
 * See facts.h.
 */
#include "facts_parts.h"

static struct str
flow_name(struct facts *f, struct str a, const char *between, struct str b)
{
	char *p = arena_alloc(facts_arena(f), a.len + b.len + 8);
	if (!p)
		return STR_NULL;
	int n = snprintf(p, a.len + b.len + 8, "flow:%.*s%s%.*s", STR_ARG(a),
	    between, (int)b.len, b.p ? b.p : "");
	return (struct str){ p, (size_t)n };
}

static int
add_flow(struct facts *f, struct str name, int32_t *out, struct err *e)
{
	int err = facts_need(f, name, out, e);
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

int
facts_flow(struct facts *f, const struct rec *r, struct err *e)
{
	struct str id = rec_text_of(r, "id");
	int32_t flow;
	struct str name = id;
	if (!id.len)
		name = flow_name(
		    f, rec_text_of(r, "src"), "-", rec_text_of(r, "dst"));
	else if (!str_starts(id, "flow:"))
		name = flow_name(f, id, "", STR_NULL);
	int err = name.p ? add_flow(f, name, &flow, e) : err_mem(e);
	if (err)
		return err;
	struct flow *x = &f->flow[f->entity[flow].complaint];
	x->src = arena_str(facts_arena(f), rec_text_of(r, "src"));
	x->dst = arena_str(facts_arena(f), rec_text_of(r, "dst"));
	return x->src.p && x->dst.p ? 0 : err_mem(e);
}

static int
add_to_path(struct facts *f, int32_t flow, struct str name, struct err *e)
{
	int32_t at;
	int err = facts_need(f, name, &at, e);
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
	char *p = arena_alloc(facts_arena(f), room);
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
	char *p = arena_alloc(facts_arena(f), room);
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
		name = flow_name(f, flow, "", STR_NULL);
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

int
facts_path_of(struct facts *f, const struct rec *r, struct err *e)
{
	struct str flow = rec_text_of(r, "flow");
	if (!flow.len)
		return err_set(e, SE_EFORMAT, "flow: expected a name");
	return facts_hops(f, flow, rec_text_of(r, "hops"), e);
}

int
facts_candidate(struct facts *f, const struct rec *r, struct err *e)
{
	int32_t at;
	int err = facts_entity_of(f, r, "entity", &at, e);
	if (err)
		return err;
	if (!GROW(f, listed, nlisted, listed_cap))
		return err_mem(e);
	f->listed[f->nlisted++] = at;
	return 0;
}

int
facts_truth(struct facts *f, const struct rec *r, struct err *e)
{
	struct str name = rec_text_of(r, "entity");
	int32_t at;
	if (str_is(name, "none"))
		f->truth_none = true;
	else if (str_is(name, "unknown"))
		f->truth_unknown = true;
	else {
		int err = facts_entity_of(f, r, "entity", &at, e);
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
	f->id = arena_str(facts_arena(f), id);
	if (f->group_by)
		f->group =
		    arena_str(facts_arena(f), rec_text_of(r, f->group_by));
	f->incident = true;
	return f->id.p ? 0 : err_mem(e);
}
