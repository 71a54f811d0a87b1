/* Why a verdict is what it is: see REASONS in tracegate(1). */
#ifndef REASONS_H
#define REASONS_H

#define REASON_SLO "slo"
#define REASON_BASELINE "baseline"
#define REASON_FAR "far"
#define REASON_GAP "gap"
#define REASON_MANY "many"
#define REASON_LATE_RANK "late-rank"
#define REASON_COLD "cold"
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
#define REASON_NO_MATCH "no-match"

#endif
