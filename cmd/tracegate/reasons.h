/* Why a window opened or a verdict is what it is: REASONS in tracegate(1). */
#ifndef REASONS_H
#define REASONS_H

/* of openings and windows */
#define REASON_SLOW "slow"
#define REASON_COLD "cold"
#define REASON_TAIL "tail"
#define REASON_SLO "slo"
#define REASON_BASELINE "baseline"
#define REASON_FAST "fast"
#define REASON_COST "cost"
#define REASON_RATE "rate"
#define REASON_PEER "peer"
#define REASON_GAP "gap"
#define REASON_AUDIT "audit"
/* of anomalies, beside slo, baseline and gap */
#define REASON_FAR "far"
#define REASON_MANY "many"
#define REASON_LATE_RANK "late-rank"
/* of shifts, beside tail */
#define REASON_MEDIAN "median"
/* of unknowns, beside cold */
#define REASON_UNTESTED "untested"
#define REASON_LATE "late"
#define REASON_DROPS "drops"
#define REASON_TRUNCATED "truncated"
#define REASON_INTERRUPTED "interrupted"
#define REASON_LOW_COVERAGE "low-coverage"
#define REASON_NO_SYNC_EVENTS "no-sync-events"
#define REASON_NO_RELEASER "no-releaser"
#define REASON_TIE "tie"
#define REASON_BAD_EVENT_REF "bad-event-ref"
#define REASON_ORPHAN_GPU "orphan-gpu"
#define REASON_SKEW "skew"
#define REASON_CYCLE "cycle"
#define REASON_MISSING "missing"
#define REASON_NO_MATCH "no-match"
/* of control records */
#define REASON_TRACER_ABSENT "tracer-absent"
#define REASON_TRACER_FAILED "tracer-failed"

#endif
