/*
 * Counters of one machine: EDAC from sysfs, SMART from smartctl.
 *
 * grep -H . /sys/devices/system/edac/mc/mc?/?e_count prints PATH:VALUE; the
 * counters are ce_count and ue_count with the label `mc`.
 */
#include "ev.h"

/* The part of a path before its last slash, and what is behind it. */
static void
cut_path(struct str path, struct str *dir, struct str *base)
{
	size_t n = path.len;
	while (n && path.p[n - 1] != '/')
		n--;
	*base = (struct str){ path.p + n, path.len - n };
	*dir = (struct str){ path.p, n ? n - 1 : 0 };
}

int
ev_edac(struct ev *ev, struct str text, struct err *e)
{
	struct str line, dir, base, above, mc;
	(void)e;
	while (text.p && str_cut(&text, '\n', &line)) {
		line = ev_trim(line);
		size_t n = line.len;
		while (n && line.p[n - 1] != ':')
			n--;
		if (!line.len)
			continue;
		if (!n) {
			ev->bad++;
			continue;
		}
		cut_path((struct str){ line.p, n - 1 }, &dir, &base);
		cut_path(dir, &above, &mc);
		struct sample s;
		ev_begin(ev, &s);
		ev_label(&s, "mc", mc);
		s.counter = base;
		ev_value(&s, (struct str){ line.p + n, line.len - n });
		ev->take(ev, &s);
	}
	return 0;
}

/*
 * "  5 Reallocated_Sector_Ct 0x0033 100 100 010 Pre-fail Always - 0": the raw
 * value is the tenth column. "self-assessment test result: PASSED" is the
 * counter health, 1 or 0. NVMe prints "Media and Data Integrity Errors: 0".
 */
static bool
ata_line(struct ev *ev, struct str line)
{
	struct str w[10], rest = line;
	for (int i = 0; i < 10; i++)
		if (!ev_word(&rest, &w[i]))
			return false;
	if (w[0].p[0] < '0' || w[0].p[0] > '9' || !str_starts(w[2], "0x"))
		return false;
	struct sample s;
	ev_begin(ev, &s);
	s.counter = w[1];
	ev_value(&s, w[9]);
	ev->take(ev, &s);
	return true;
}

static void
nvme_line(struct ev *ev, struct str line)
{
	struct str name, value = line, number;
	str_cut(&value, ':', &name);
	if (!value.p || !ev_word(&value, &number) || number.p[0] < '0' ||
	    number.p[0] > '9') {
		ev->left++;
		return;
	}
	if (str_ends(number, "%"))
		number.len--;
	struct sample s;
	ev_begin(ev, &s);
	s.counter = ev_trim(name);
	ev_value(&s, number);
	if (!s.unknown)
		ev->take(ev, &s);
}

int
ev_smart(struct ev *ev, struct str text, struct err *e)
{
	struct str line;
	(void)e;
	while (text.p && str_cut(&text, '\n', &line)) {
		line = ev_trim(line);
		struct str health =
		    ev_after(line, "self-assessment test result: ");
		if (health.p) {
			struct sample s;
			ev_begin(ev, &s);
			s.counter = STR_LIT("health");
			s.value = str_is(health, "PASSED");
			ev->take(ev, &s);
		} else if (line.len && !ata_line(ev, line)) {
			nvme_line(ev, line);
		}
	}
	return 0;
}
