/* What the readers of telemetry share: see ev.h. */
#include "ev.h"

#include <stdarg.h>
#include <stdio.h>

#include "num.h"
#include "reasons.h"

// clang-format off
const struct ev_format ev_formats[] = {
	{ "csv", "any CSV with a header, or --header", 0, "csv", 0, ev_csv, true, false },
	{ "dcgm", "dcgm-exporter metrics", "device:{UUID}", "dcgm", ev_dcgm, 0, true, false },
	{ "edac", "grep -H . /sys/devices/system/edac/mc/mc*/*_count", "host:{host}", "edac", ev_edac, 0, false, false },
	{ "ethtool", "ethtool -S", "port:{host}/{port}", "ethtool", ev_ethtool, 0, false, false },
	{ "fping", "fping -q -c N (its stderr)", "flow:{target}", "fping", ev_fping, 0, false, false },
	{ "ip-link", "ip -s -j link", "port:{host}/{ifname}", "ip-link", ev_ip_link, 0, false, false },
	{ "lldp", "lldpctl -f keyvalue, or a map of CDP neighbours", 0, "lldp", ev_lldp, 0, false, true },
	{ "mce", "kernel log: machine checks", "host:{host}", "mce", ev_mce, 0, true, true },
	{ "mtr", "mtr --csv", "flow:{target}", "mtr", ev_mtr, 0, true, false },
	{ "nvidia-smi", "nvidia-smi -q", "device:{host}/{pci}", "nvidia-smi", ev_nvidia_smi, 0, false, false },
	{ "probes", "CSV of probes with their paths", 0, "probes", 0, ev_probes, false, true },
	{ "prom", "Prometheus text exposition", 0, "prom", ev_prom, 0, true, false },
	{ "prom-api", "answer of the Prometheus HTTP API", 0, "prom", ev_prom_api, 0, true, false },
	{ "records", "records of the other commands", 0, 0, 0, ev_records, true, true },
	{ "route", "NODE: ip route get, a flow a paragraph", 0, "route", ev_route, 0, false, true },
	{ "smart", "smartctl -A", "device:{host}/{device}", "smart", ev_smart, 0, false, false },
	{ "snmp", "snmpwalk of IF-MIB", "port:{host}/{ifDescr}", "snmp", ev_snmp, 0, false, false },
	{ "sonic", "SONiC show interfaces counters", "port:{host}/{iface}", "sonic", ev_sonic, 0, false, false },
	{ "xid", "kernel log: Xid and SXid of NVIDIA", "device:{host}/{pci}", "xid", ev_xid, 0, true, true },
	{ 0 },
};
// clang-format on

const struct ev_format *
ev_find(const char *name)
{
	for (const struct ev_format *f = ev_formats; f->name; f++)
		if (!strcmp(f->name, name))
			return f;
	return NULL;
}

/* ---- samples ----------------------------------------------------------------
 */

void
ev_begin(const struct ev *ev, struct sample *s)
{
	s->nlabels = ev->nset;
	memcpy(s->label, ev->set, ev->nset * sizeof *s->label);
	s->counter = STR_NULL;
	s->value = NAN;
	s->unknown = NULL;
	s->time = NO_TIME;
	s->series = false;
}

void
ev_label_str(struct sample *s, struct str key, struct str value)
{
	for (size_t i = 0; i < s->nlabels; i++)
		if (str_same(s->label[i].key, key)) {
			s->label[i].value = value;
			return;
		}
	if (s->nlabels < EV_LABELS_MAX)
		s->label[s->nlabels++] = (struct label){ key, value };
}

void
ev_label(struct sample *s, const char *key, struct str value)
{
	ev_label_str(s, str_c(key), value);
}

struct str
ev_get(const struct sample *s, struct str key)
{
	for (size_t i = 0; i < s->nlabels; i++)
		if (str_same(s->label[i].key, key))
			return s->label[i].value;
	return STR_NULL;
}

struct str
ev_set(const struct ev *ev, const char *key)
{
	for (size_t i = 0; i < ev->nset; i++)
		if (str_is(ev->set[i].key, key))
			return ev->set[i].value;
	return STR_NULL;
}

/* Words that tools print where they have no number. */
static bool
is_na(struct str s)
{
	static const char *const word[] = { "N/A", "n/a", "NA", "-", "",
		"[N/A]", "Not Supported", "[Not Supported]", "Unknown", "null",
		"None" };
	for (size_t i = 0; i < sizeof word / sizeof *word; i++)
		if (str_is(s, word[i]))
			return true;
	return false;
}

/* "1,234,567" without its commas; false where they do not stand in threes. */
static bool
uncomma(struct str s, char to[64], size_t *len)
{
	size_t n = 0, since = 0;
	bool comma = false;
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] == ',') {
			if ((comma && since != 3) || !since || since > 3)
				return false;
			comma = true;
			since = 0;
			continue;
		}
		if (n == 63)
			return false;
		to[n++] = s.p[i];
		since++;
	}
	*len = n;
	return !comma || since == 3;
}

void
ev_value(struct sample *s, struct str text)
{
	char plain[64];
	size_t n;
	text = ev_trim(text);
	s->value = NAN;
	s->unknown = NULL;
	if (is_na(text))
		s->unknown = REASON_NA;
	else if (!uncomma(text, plain, &n) ||
		 num_f64((struct str){ plain, n }, &s->value, NULL))
		s->unknown = REASON_GARBLED;
	else if (isnan(s->value) || isinf(s->value))
		s->unknown = REASON_NA;
}

/* ---- text ------------------------------------------------------------ */

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

struct str
ev_trim(struct str s)
{
	while (s.len && is_space(s.p[0])) {
		s.p++;
		s.len--;
	}
	while (s.len && is_space(s.p[s.len - 1]))
		s.len--;
	return s;
}

bool
ev_word(struct str *rest, struct str *word)
{
	*rest = ev_trim(*rest);
	size_t n = 0;
	while (n < rest->len && !is_space(rest->p[n]))
		n++;
	*word = (struct str){ rest->p, n };
	rest->p = rest->p ? rest->p + n : NULL;
	rest->len -= n;
	return n > 0;
}

struct str
ev_after(struct str s, const char *needle)
{
	size_t n = strlen(needle);
	for (size_t i = 0; i + n <= s.len; i++)
		if (!memcmp(s.p + i, needle, n))
			return (struct str){ s.p + i + n, s.len - i - n };
	return STR_NULL;
}

bool
ev_has(struct str s, const char *needle)
{
	return ev_after(s, needle).p != NULL;
}

struct str
ev_fmt(struct ev *ev, const char *fmt, ...)
{
	char small[2048];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(small, sizeof small, fmt, ap);
	va_end(ap);
	size_t len = n < 0 ? 0 : (size_t)n;
	if (len >= sizeof small)
		len = sizeof small - 1;
	struct str s = arena_str(ev->arena, (struct str){ small, len });
	return s.p ? s : (struct str){ "", 0 };
}

/* ---- the time of a kernel log line ----------------------------------- */

/* Days from 1970-01-01 of a date in the Gregorian calendar. */
static int64_t
days_of(int64_t y, int64_t m, int64_t d)
{
	y -= m <= 2;
	int64_t era = (y >= 0 ? y : y - 399) / 400;
	int64_t yoe = y - era * 400;
	int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static int
month_of(struct str s)
{
	static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	for (int i = 0; i < 12 && s.len == 3; i++)
		if (!memcmp(names + 3 * i, s.p, 3))
			return i + 1;
	return 0;
}

static bool
clock_of(struct str s, int64_t *sec)
{
	struct str rest = s, part;
	uint64_t v[3];
	for (int i = 0; i < 3; i++)
		if (!rest.p || !str_cut(&rest, ':', &part) ||
		    num_u64(part, 0, i ? 60 : 23, &v[i], NULL))
			return false;
	*sec = (int64_t)(v[0] * 3600 + v[1] * 60 + v[2]);
	return !rest.p;
}

/* "Sun Feb 23 16:24:18 2025": dmesg -T, which names no zone. */
static int64_t
calendar_time(const struct ev *ev, struct str s)
{
	struct str w[5];
	uint64_t day, year;
	int64_t sec;
	for (int i = 0; i < 5; i++)
		if (!ev_word(&s, &w[i]))
			return NO_TIME;
	int m = month_of(w[1]);
	if (!m || num_u64(w[2], 1, 31, &day, NULL) || !clock_of(w[3], &sec) ||
	    num_u64(w[4], 1970, 2200, &year, NULL) || !ev->zoned)
		return NO_TIME;
	sec += days_of((int64_t)year, m, (int64_t)day) * 86400;
	return sec * 1000000000 - ev->zone;
}

int64_t
ev_log_time(const struct ev *ev, struct str line)
{
	struct str inside;
	int64_t t;
	if (!line.len || line.p[0] != '[')
		return NO_TIME;
	line.p++;
	line.len--;
	if (!str_cut(&line, ']', &inside) || !line.p)
		return NO_TIME;
	inside = ev_trim(inside);
	if (ev->boot != NO_TIME && !num_time(inside, &t, NULL))
		return t >= 0 && t < INT64_MAX / 2 ? ev->boot + t : NO_TIME;
	return calendar_time(ev, inside);
}

/* ---- records --------------------------------------------------------- */

void
ev_evidence(struct ev *ev, struct str entity, const char *status, int64_t time,
    int64_t onset, int64_t until, const char *reason, double bound)
{
	if (ev->previous)
		return;
	rec_begin(ev->out, "evidence");
	if (time != NO_TIME)
		rec_time(ev->out, "time", time);
	rec_str(ev->out, "entity", entity);
	rec_put(ev->out, "agent", ev->agent);
	rec_put(ev->out, "status", status);
	if (onset != NO_TIME)
		rec_time(ev->out, "onset", onset);
	if (until != NO_TIME)
		rec_time(ev->out, "until", until);
	if (reason)
		rec_put(ev->out, "reason", reason);
	if (!isnan(bound))
		rec_f64(ev->out, "bound", bound);
	rec_end(ev->out);
	ev->records++;
}

void
ev_pair(struct ev *ev, const char *type, const char *k1, struct str v1,
    const char *k2, struct str v2)
{
	if (ev->previous)
		return;
	rec_begin(ev->out, type);
	rec_str(ev->out, k1, v1);
	rec_str(ev->out, k2, v2);
	rec_end(ev->out);
	ev->records++;
}
