/*
 * Kernel logs: Xid and SXid of NVIDIA drivers, and machine checks. Such logs
 * hold faults only: that nothing is there is not health (see absent= in
 * straightedge-stack(5)). Which numbers mean hardware: NVIDIA, "XID Errors"
 * (docs.nvidia.com/deploy/xid-errors).
 */
#include "ev.h"
#include "num.h"
#include "reasons.h"

/* Xid that a program can cause are no fault of the device. */
// clang-format off
static const struct {
	unsigned xid;
	const char *status, *reason;
} xids[] = {
	{ 13, "unknown", REASON_APPLICATION }, /* graphics engine exception */
	{ 31, "unknown", REASON_APPLICATION }, /* memory page fault */
	{ 43, "unknown", REASON_APPLICATION }, /* stopped processing */
	{ 45, "unknown", REASON_APPLICATION }, /* preemptive cleanup */
	{ 48, "faulty", 0 },              /* double bit ECC error */
	{ 62, "faulty", 0 },              /* internal micro-controller halt */
	{ 63, "unknown", REASON_REPAIRED },    /* page retired, row remapped */
	{ 64, "faulty", 0 },              /* that failed */
	/* A healthy GPU reports 74 when the other end of the link is bad. */
	{ 74, "unknown", REASON_AMBIGUOUS },
	{ 79, "faulty", 0 },              /* fallen off the bus */
	{ 92, "faulty", 0 },              /* high single bit ECC rate */
	{ 94, "faulty", 0 },              /* contained ECC error */
	{ 95, "faulty", 0 },              /* uncontained ECC error */
	{ 119, "faulty", 0 },             /* GSP RPC timeout */
	{ 120, "faulty", 0 },             /* GSP error */
};
// clang-format on

static void
send_event(struct ev *ev, struct str entity, const char *status,
    const char *reason, int64_t t)
{
	int64_t time = t != NO_TIME ? t : ev->at;
	ev_evidence(ev, entity, status, time, t, t, reason, NAN);
}

/* "(PCI:0000:9b:00): 119, ..." or "(0000:03:00): 14, ..." */
static bool
pci_and_number(struct str s, struct str *pci, uint64_t *n)
{
	struct str number;
	if (!s.len || s.p[0] != '(')
		return false;
	s.p++;
	s.len--;
	if (!str_cut(&s, ')', pci) || !s.p || !str_starts(s, ": "))
		return false;
	if (str_starts(*pci, "PCI:")) {
		pci->p += 4;
		pci->len -= 4;
	}
	s.p += 2;
	s.len -= 2;
	return str_cut(&s, ',', &number) && pci->len &&
	       !num_u64(ev_trim(number), 0, 100000, n, NULL);
}

static struct str
entity_of(struct ev *ev, const char *kind, struct str pci)
{
	struct str host = ev_set(ev, "host");
	if (host.len)
		return ev_fmt(
		    ev, "%s:%.*s/%.*s", kind, STR_ARG(host), STR_ARG(pci));
	return ev_fmt(ev, "%s:%.*s", kind, STR_ARG(pci));
}

static bool
xid_line(struct ev *ev, struct str line, struct str after)
{
	struct str pci;
	uint64_t n;
	if (!pci_and_number(after, &pci, &n))
		return false;
	const char *status = "unknown", *reason = REASON_UNCLASSIFIED;
	for (size_t i = 0; i < sizeof xids / sizeof *xids; i++)
		if (xids[i].xid == n) {
			status = xids[i].status;
			reason = xids[i].reason;
		}
	send_event(ev, entity_of(ev, "device", pci), status, reason,
	    ev_log_time(ev, line));
	return true;
}

/* "SXid (PCI:0000:00:00.0): 20034, Fatal, Link 30 LTSSM Fault Up" */
static bool
sxid_line(struct ev *ev, struct str line, struct str after)
{
	struct str pci;
	uint64_t n;
	if (!pci_and_number(after, &pci, &n))
		return false;
	bool fatal = ev_has(after, ", Fatal,");
	send_event(ev, entity_of(ev, "switch", pci),
	    fatal ? "faulty" : "unknown", fatal ? NULL : REASON_NON_FATAL,
	    ev_log_time(ev, line));
	return true;
}

int
ev_xid(struct ev *ev, struct str text, struct err *e)
{
	struct str line;
	(void)e;
	while (text.p && str_cut(&text, '\n', &line)) {
		line = ev_trim(line);
		struct str sxid = ev_after(line, ": SXid ");
		struct str xid = ev_after(line, "NVRM: Xid ");
		bool ok = sxid.p  ? sxid_line(ev, line, sxid)
			  : xid.p ? xid_line(ev, line, xid)
				  : true;
		ev->bad += !ok;
		ev->left += !sxid.p && !xid.p && line.len;
	}
	return 0;
}

/*
 * "mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 4: ..." and
 * what the decoder adds, "[Hardware Error]: Corrected error, ...". A
 * corrected error was corrected: it is shown, as an unknown.
 */
int
ev_mce(struct ev *ev, struct str text, struct err *e)
{
	struct str line, host = ev_set(ev, "host");
	if (!host.len)
		return err_set(e, SE_EINVAL, "needs --set host=NAME");
	struct str entity = ev_fmt(ev, "host:%.*s", STR_ARG(host));
	while (text.p && str_cut(&text, '\n', &line)) {
		struct str what = ev_after(line, "[Hardware Error]: ");
		if (!what.p) {
			ev->left += line.len > 0;
			continue;
		}
		bool bad = ev_has(what, "Machine Check Exception") ||
			   ev_has(what, "Uncorrected") || ev_has(what, "Fatal");
		bool corrected = ev_has(what, "Corrected error") ||
				 ev_has(what, "Machine Check: ");
		if (bad || corrected)
			send_event(ev, entity, bad ? "faulty" : "unknown",
			    bad ? NULL : REASON_CORRECTED,
			    ev_log_time(ev, line));
		else
			ev->left++;
	}
	return 0;
}
