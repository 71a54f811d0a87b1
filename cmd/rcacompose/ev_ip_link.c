/*
 * ip -s -j link: an array of objects. Counters are named rx.errors, tx.dropped
 * and so on; `operstate` is 1 for UP, 0 for DOWN, and unknown otherwise. The
 * text has no time of its own.
 */
#include "ev.h"
#include "json.h"
#include "reasons.h"

static void
send(struct ev *ev, const struct sample *base, struct str counter,
    struct str value)
{
	struct sample s = *base;
	s.counter = counter;
	ev_value(&s, value);
	ev->take(ev, &s);
}

static void
read_side(struct ev *ev, struct json *j, struct sample *s, const char *side)
{
	struct str key, value;
	if (!json_expect(j, JSON_OBJECT, &value))
		return;
	while (json_member(j, &key)) {
		enum json_type t = json_value(j, &value);
		if (t == JSON_NUMBER)
			send(ev, s, ev_fmt(ev, "%s.%.*s", side, STR_ARG(key)),
			    value);
		else if (t == JSON_OBJECT || t == JSON_ARRAY) {
			json_fail(j, SE_EFORMAT, "expected a number");
			return;
		}
	}
}

static void
read_stats(struct ev *ev, struct json *j, struct sample *s)
{
	struct str key, value;
	if (!json_expect(j, JSON_OBJECT, &value))
		return;
	while (json_member(j, &key))
		if (str_is(key, "rx"))
			read_side(ev, j, s, "rx");
		else if (str_is(key, "tx"))
			read_side(ev, j, s, "tx");
		else
			json_skip(j);
}

static void
send_state(struct ev *ev, const struct sample *base, struct str state)
{
	struct sample s = *base;
	s.counter = STR_LIT("operstate");
	if (str_is(state, "UP"))
		s.value = 1;
	else if (str_is(state, "DOWN") || str_is(state, "LOWERLAYERDOWN"))
		s.value = 0;
	else
		s.unknown = REASON_NA;
	ev->take(ev, &s);
}

/* The name comes first in what ip prints; a link without one is refused. */
static void
read_link(struct ev *ev, struct json *j)
{
	struct sample s;
	struct str key, value, name = STR_NULL;
	ev_begin(ev, &s);
	while (json_member(j, &key)) {
		if (str_is(key, "ifname") &&
		    json_expect(j, JSON_STRING, &name)) {
			ev_label(&s, "ifname", name);
		} else if (!name.p && (str_is(key, "operstate") ||
					  str_is(key, "stats64"))) {
			json_fail(j, SE_EFORMAT, "expected ifname before it");
		} else if (str_is(key, "operstate")) {
			if (json_expect(j, JSON_STRING, &value))
				send_state(ev, &s, value);
		} else if (str_is(key, "stats64")) {
			read_stats(ev, j, &s);
		} else {
			json_skip(j);
		}
	}
}

int
ev_ip_link(struct ev *ev, struct str text, struct err *e)
{
	struct json j;
	struct str v;
	json_init(&j, text, ev->arena, 0);
	if (json_expect(&j, JSON_ARRAY, &v))
		while (json_element(&j))
			if (json_expect(&j, JSON_OBJECT, &v))
				read_link(ev, &j);
	return json_end(&j, e);
}
