/*
 * ethtool -S: "NIC statistics:" and lines "     name: value". Names may hold
 * blanks, dots and colons; the last colon is the one that counts. The port is
 * not in the text: --set port=eth0, or the first line "# ethtool -S eth0".
 */
#include "ev.h"

int
ev_ethtool(struct ev *ev, struct str text, struct err *e)
{
	struct str line, port = ev_set(ev, "port");
	bool titled = false;
	while (text.p && str_cut(&text, '\n', &line)) {
		struct str after = ev_after(line, "ethtool -S ");
		line = ev_trim(line);
		if (after.p && line.len && line.p[0] == '#')
			port = ev_trim(after);
		if (!line.len || line.p[0] == '#')
			continue;
		if (str_is(line, "NIC statistics:")) {
			titled = true;
			continue;
		}
		size_t at = line.len;
		while (at && line.p[at - 1] != ':')
			at--;
		if (!titled || at < 2) {
			ev->bad++;
			continue;
		}
		struct sample s;
		ev_begin(ev, &s);
		ev_label(&s, "port", port);
		s.counter = ev_trim((struct str){ line.p, at - 1 });
		ev_value(&s, (struct str){ line.p + at, line.len - at });
		ev->take(ev, &s);
	}
	return titled ? 0
		      : err_set(e, SE_EFORMAT, "expected \"NIC statistics:\"");
}
