/*
 * Who is connected to whom, and which way a flow goes.
 *
 * lldp reads `lldpctl -f keyvalue` (with --set host=NAME) or a JSON map of
 * neighbours, {"devices": {HOST: {PORT: {"target_device": HOST,
 * "target_port": PORT}}}}. For a link between port P of A and port Q of B:
 *
 *	alias link:A--B  port:A/P     what both directions share (state)
 *	alias link:B>A   rx:A/P       what A receives there
 *	alias link:A>B   tx:A/P       what A sends there
 *	attach link:A--B switch:A     and switch:B
 *
 * Where several links join the same two nodes, A and B are A:P and B:Q.
 */
#include "ev.h"
#include "json.h"
#include "map.h"

enum { LINKS_MAX = 1 << 20 };

struct neighbour {
	struct str host, port, peer, peer_port;
};

struct net {
	struct ev *ev;
	struct neighbour *n;
	size_t len, cap;
	struct map pairs; /* "A\nB" -> links between them */
	struct map ports; /* "A/P" already seen */
};

static bool
add(struct net *net, struct neighbour x)
{
	if (!x.host.len || !x.port.len || !x.peer.len)
		return true;
	if (net->len == LINKS_MAX)
		return false;
	if (net->len == net->cap) {
		size_t want = net->cap ? 2 * net->cap : 256;
		struct neighbour *p =
		    arena_array(net->ev->arena, want, sizeof *p);
		if (!p)
			return false;
		memcpy(p, net->n ? net->n : p, net->len * sizeof *p);
		net->n = p;
		net->cap = want;
	}
	net->n[net->len++] = x;
	return true;
}

/* How often this pair of hosts is joined, seen from one of its ends. */
static uint64_t *
links_of(struct net *net, const struct neighbour *x)
{
	bool fresh;
	return map_at(&net->pairs,
	    ev_fmt(net->ev, "%.*s\n%.*s", STR_ARG(x->host), STR_ARG(x->peer)),
	    &fresh);
}

static bool
is_new(struct net *net, struct str host, struct str port)
{
	bool fresh = false;
	struct str k =
	    ev_fmt(net->ev, "%.*s/%.*s", STR_ARG(host), STR_ARG(port));
	return map_at(&net->ports, k, &fresh) && fresh;
}

static struct str
end_name(struct net *net, struct str host, struct str port, bool parallel)
{
	if (!parallel || !port.len)
		return host;
	return ev_fmt(net->ev, "%.*s:%.*s", STR_ARG(host), STR_ARG(port));
}

static void
put_end(struct net *net, struct str a, struct str b, struct str cable,
    struct str host, struct str port)
{
	struct ev *ev = net->ev;
	if (!port.len)
		return;
	struct str p = ev_fmt(ev, "%.*s/%.*s", STR_ARG(host), STR_ARG(port));
	ev_pair(ev, "alias", "entity", cable, "same",
	    ev_fmt(ev, "port:%.*s", STR_ARG(p)));
	ev_pair(ev, "alias", "entity",
	    ev_fmt(ev, "link:%.*s>%.*s", STR_ARG(b), STR_ARG(a)), "same",
	    ev_fmt(ev, "rx:%.*s", STR_ARG(p)));
	ev_pair(ev, "alias", "entity",
	    ev_fmt(ev, "link:%.*s>%.*s", STR_ARG(a), STR_ARG(b)), "same",
	    ev_fmt(ev, "tx:%.*s", STR_ARG(p)));
	ev_pair(ev, "attach", "child", cable, "parent",
	    ev_fmt(ev, "switch:%.*s", STR_ARG(host)));
}

static void
put_link(struct net *net, const struct neighbour *x)
{
	const uint64_t *n = links_of(net, x);
	bool parallel = n && *n > 1;
	struct str a = end_name(net, x->host, x->port, parallel);
	struct str b = end_name(net, x->peer, x->peer_port, parallel);
	bool swap = str_order(a, b) > 0;
	struct str cable = ev_fmt(net->ev, "link:%.*s--%.*s",
	    STR_ARG(swap ? b : a), STR_ARG(swap ? a : b));
	put_end(net, a, b, cable, x->host, x->port);
	put_end(net, b, a, cable, x->peer, x->peer_port);
}

static void
put_all(struct net *net)
{
	for (size_t i = 0; i < net->len; i++) {
		uint64_t *n = links_of(net, &net->n[i]);
		if (n)
			++*n;
	}
	for (size_t i = 0; i < net->len; i++) {
		const struct neighbour *x = &net->n[i];
		/* The other end may have told of this link already. */
		bool fresh = is_new(net, x->host, x->port);
		if (x->peer_port.len)
			fresh &= is_new(net, x->peer, x->peer_port);
		if (fresh)
			put_link(net, x);
	}
	map_free(&net->pairs);
	map_free(&net->ports);
}

/* ---- lldpctl -f keyvalue --------------------------------------------- */

/* lldp.PORT.chassis.name=..., lldp.PORT.port.ifname=... (or descr) */
static bool
keyvalue(struct net *net, struct neighbour *now, struct str line)
{
	struct str value = line, key, port;
	str_cut(&value, '=', &key);
	if (!value.p || !str_starts(key, "lldp."))
		return true;
	key.p += 5;
	key.len -= 5;
	str_cut(&key, '.', &port);
	if (!key.p)
		return true;
	if (!str_same(port, now->port)) {
		if (!add(net, *now))
			return false;
		now->port = port;
		now->peer = now->peer_port = STR_NULL;
	}
	if (str_ends(key, "chassis.name"))
		now->peer = ev_trim(value);
	else if (str_ends(key, "port.ifname") ||
		 (!now->peer_port.len && str_ends(key, "port.descr")))
		now->peer_port = ev_trim(value);
	return true;
}

static int
read_keyvalue(struct net *net, struct str text, struct err *e)
{
	struct neighbour now = { .host = ev_set(net->ev, "host") };
	struct str line;
	if (!now.host.len)
		return err_set(e, SE_EINVAL, "needs --set host=NAME");
	while (text.p && str_cut(&text, '\n', &line))
		if (!keyvalue(net, &now, line))
			return err_mem(e);
	return add(net, now) ? 0 : err_mem(e);
}

/* ---- a map of neighbours --------------------------------------------- */

static void
read_port(struct net *net, struct json *j, struct neighbour x)
{
	struct str key, v;
	if (!json_expect(j, JSON_OBJECT, &v))
		return;
	while (json_member(j, &key))
		if (str_is(key, "target_device"))
			json_expect(j, JSON_STRING, &x.peer);
		else if (str_is(key, "target_port"))
			json_expect(j, JSON_STRING, &x.peer_port);
		else
			json_skip(j);
	if (!add(net, x))
		json_fail(j, SE_ELIMIT, "more than %d links", LINKS_MAX);
}

static void
read_devices(struct net *net, struct json *j)
{
	struct neighbour x = { .port = STR_NULL };
	struct str v;
	if (!json_expect(j, JSON_OBJECT, &v))
		return;
	while (json_member(j, &x.host))
		if (json_expect(j, JSON_OBJECT, &v))
			while (json_member(j, &x.port))
				read_port(net, j, x);
}

static int
read_map(struct net *net, struct str text, struct err *e)
{
	struct json j;
	struct str key, v;
	json_init(&j, text, net->ev->arena, 0);
	json_expect(&j, JSON_OBJECT, &v);
	while (json_member(&j, &key))
		if (str_is(key, "devices"))
			read_devices(net, &j);
		else
			json_skip(&j);
	return json_end(&j, e);
}

int
ev_lldp(struct ev *ev, struct str text, struct err *e)
{
	struct net net = { .ev = ev };
	struct str first = text;
	while (first.len && (first.p[0] == ' ' || first.p[0] == '\n')) {
		first.p++;
		first.len--;
	}
	bool json = first.len && first.p[0] == '{';
	int r = json ? read_map(&net, text, e) : read_keyvalue(&net, text, e);
	if (!r)
		put_all(&net);
	return r;
}

/* ---- ip route get ---------------------------------------------------- */

/*
 * "l1: 10.0.3.3 from 10.0.1.1 via 10.0.9.2 dev l1-s2 ...", the name of the
 * node added in front, one line a hop, an empty line between flows. Prints one
 * path of tx:NODE/DEV, which the aliases of `read lldp` turn into links. With
 * several answers for one hop (ECMP) all of them are on the path.
 */
static void
end_path(struct ev *ev, struct str *hops, unsigned *n)
{
	struct str flow = ev_set(ev, "flow");
	if (!hops->len)
		return;
	if (!flow.len || *n)
		flow = ev_fmt(ev, "%.*s%s%u", STR_ARG(flow),
		    flow.len ? "-" : "route-", *n + 1);
	ev_pair(ev, "path", "flow", flow, "hops", *hops);
	*hops = STR_NULL;
	++*n;
}

int
ev_route(struct ev *ev, struct str text, struct err *e)
{
	struct str line, hops = STR_NULL, node, dev;
	unsigned n = 0;
	(void)e;
	while (text.p && str_cut(&text, '\n', &line)) {
		line = ev_trim(line);
		if (!line.len) {
			end_path(ev, &hops, &n);
			continue;
		}
		struct str after = ev_after(line, " dev "), rest = line;
		str_cut(&rest, ':', &node);
		if (!rest.p || !after.p || !ev_word(&after, &dev) ||
		    memchr(node.p, ' ', node.len)) {
			if (ev_has(line, "cache"))
				continue; /* the second line of an answer */
			ev->bad++;
			continue;
		}
		struct buf b = { 0 };
		if (hops.len) {
			buf_str(&b, hops);
			buf_putc(&b, ' ');
		}
		buf_printf(&b, "tx:%.*s/%.*s", STR_ARG(node), STR_ARG(dev));
		hops = arena_str(ev->arena, buf_view(&b));
		buf_free(&b);
		if (!hops.p)
			return err_mem(e);
	}
	end_path(ev, &hops, &n);
	return 0;
}
