/*
 * snmpwalk, `MIB::object.index = TYPE: value`. The index of an interface may
 * change after a reboot: rows are named by ifDescr (or ifName), never by the
 * index; a row whose name does not come is left aside. Only objects of the
 * IF-MIB with an index are read. Counter32 may wrap: a fall is garbled, as for
 * every counter. "No Such Instance", "Timeout" and values without their type
 * are unknown.
 */
#include "ev.h"
#include "map.h"
#include "reasons.h"

struct walk {
	struct ev *ev;
	struct map name; /* index -> position in text of its name */
	struct str *names;
	size_t n, cap;
};

/* "IF-MIB::ifInErrors.1 = Counter32: 0" */
static bool
split(struct str line, struct str *object, struct str *index, struct str *value)
{
	struct str left = line, mib;
	*value = ev_after(line, " = ");
	if (!value->p)
		return false;
	left.len -= value->len + 3;
	struct str rest = ev_after(left, "::");
	mib = (struct str){ left.p, rest.p ? left.len - rest.len - 2 : 0 };
	if (!rest.p || !str_is(mib, "IF-MIB"))
		return false;
	return str_cut(&rest, '.', object) && rest.p && (*index = rest).len > 0;
}

/* The text behind "TYPE: ", or an unknown. */
static void
set_value(struct sample *s, struct str value)
{
	static const struct {
		const char *type;
		bool number;
	} types[] = { { "Counter32: ", true }, { "Counter64: ", true },
		{ "Gauge32: ", true }, { "INTEGER: ", true } };
	s->value = NAN;
	s->unknown = REASON_NA;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		if (!str_starts(value, types[i].type))
			continue;
		struct str v = value, word;
		v.p += strlen(types[i].type);
		v.len -= strlen(types[i].type);
		ev_word(&v, &word);
		const char *open =
		    word.len ? memchr(word.p, '(', word.len) : NULL;
		if (open && str_ends(word, ")")) { /* up(1) */
			word.len -= (size_t)(open + 1 - word.p) + 1;
			word.p = open + 1;
		} else if (str_starts(value, "INTEGER: ") &&
			   str_is(s->counter, "ifOperStatus")) {
			return; /* without its word the MIB was wrong */
		}
		ev_value(s, word);
		return;
	}
}

static bool
note_name(struct walk *w, struct str index, struct str value)
{
	struct str text = ev_after(value, "STRING: ");
	bool fresh;
	if (!text.p)
		return false;
	uint64_t *at = map_at(&w->name, index, &fresh);
	if (!at)
		return false;
	if (!fresh)
		return true; /* ifDescr came, ifName adds nothing */
	if (w->n == w->cap)
		return false;
	*at = w->n;
	w->names[w->n++] = ev_trim(text);
	return true;
}

static void
send(struct walk *w, struct str object, struct str index, struct str value)
{
	struct sample s;
	const uint64_t *at = map_get(&w->name, index);
	if (!at) {
		w->ev->left++;
		return;
	}
	ev_begin(w->ev, &s);
	ev_label(&s, "ifDescr", w->names[*at]);
	s.counter = object;
	set_value(&s, value);
	w->ev->take(w->ev, &s);
}

static bool
is_name(struct str object)
{
	return str_is(object, "ifDescr") || str_is(object, "ifName");
}

int
ev_snmp(struct ev *ev, struct str text, struct err *e)
{
	struct walk w = { .ev = ev };
	struct str rest = text, line, object, index, value;
	for (size_t i = 0; i < text.len; i++)
		w.cap += text.p[i] == '\n';
	w.names = arena_array(ev->arena, ++w.cap, sizeof *w.names);
	if (!w.names)
		return err_mem(e);
	while (rest.p && str_cut(&rest, '\n', &line))
		if (split(ev_trim(line), &object, &index, &value) &&
		    is_name(object))
			note_name(&w, index, value);
	while (text.p && str_cut(&text, '\n', &line)) {
		line = ev_trim(line);
		if (!line.len)
			continue;
		if (!split(line, &object, &index, &value)) {
			if (str_starts(line, "Timeout"))
				ev->bad++;
			else
				ev->left++;
			continue;
		}
		if (!is_name(object))
			send(&w, object, index, value);
	}
	map_free(&w.name);
	return 0;
}
