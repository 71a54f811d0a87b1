/* Reason codes: rcacompose(1) explains each. Those of the rules that decide a
 * finding are in compose.c, damaged and filtered in verdict.h. */
#ifndef REASONS_H
#define REASONS_H

/* A verdict of rcacompose. */
#define REASON_NO_CANDIDATES "no-candidates"
#define REASON_SYMPTOM_ABSENT "symptom-absent"
#define REASON_RIVAL "rival"
#define REASON_PARENT_SILENT "parent-silent"
#define REASON_NESTED "nested"
#define REASON_ACCUSED "accused"
#define REASON_BACKGROUND_IN_SCOPE "background-in-scope"
#define REASON_COVERAGE "coverage"
#define REASON_NO_INCIDENT "no-incident"
#define REASON_UNEXPLAINED "unexplained"
#define REASON_NO_SYMPTOM "no-symptom"

/* The gate of rcacompose score --vs, with coverage. */
#define REASON_FALSE_CULPRIT "false-culprit"
#define REASON_MCNEMAR "mcnemar"

/* An answer of an agent: why it is unknown, or how it came. */
#define REASON_MISSING "missing"
#define REASON_STALE "stale"
#define REASON_SKEW "skew"
#define REASON_THIN "thin"
#define REASON_GARBLED "garbled"
#define REASON_CIRCULAR "circular"
#define REASON_CONFLICT "conflict"
#define REASON_BACKGROUND "background"
#define REASON_CONSEQUENCE "consequence"
#define REASON_NO_ONSET "no-onset"
#define REASON_NO_TIME "no-time"
#define REASON_UNSTATED "unstated"
#define REASON_ABSENT "absent"
#define REASON_NOT_CONSULTED "not-consulted"
#define REASON_TIMEOUT "timeout"
#define REASON_ERROR "error"
#define REASON_FLOOD "flood"
#define REASON_NO_FLOW "no-flow"

/* What the readers of telemetry say. */
#define REASON_NA "na"
#define REASON_NODATA "nodata"
#define REASON_IN_BAND "in-band"
#define REASON_PARTIAL "partial"
#define REASON_AMBIGUOUS "ambiguous"
#define REASON_APPLICATION "application"
#define REASON_REPAIRED "repaired"
#define REASON_UNCLASSIFIED "unclassified"
#define REASON_NON_FATAL "non-fatal"
#define REASON_CORRECTED "corrected"

#endif
