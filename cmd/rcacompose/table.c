/* The table of verdicts: see table.h and rcacompose(1). */
#include "table.h"

#include "verdict.h"
#include "reasons.h"

static bool
no_candidates(const struct scene *s)
{
	return !s->candidates;
}

static bool
symptom_absent(const struct scene *s)
{
	return s->symptom == SYMPTOM_H && (s->faulty || s->accused);
}

static bool
has_rival(const struct scene *s)
{
	return s->faulty && s->rivals && !s->rivals_allowed;
}

static bool
parent_silent(const struct scene *s)
{
	return s->parent_silent;
}

static bool
nested(const struct scene *s)
{
	return s->nested;
}

static bool
one_faulty(const struct scene *s)
{
	return s->faulty == 1;
}

static bool
many_faulty(const struct scene *s)
{
	return s->faulty > 1;
}

static bool
some_accused(const struct scene *s)
{
	return s->accused;
}

static bool
background(const struct scene *s)
{
	return s->background;
}

/* Only what nobody looked at can be excused. */
static bool
uncovered(const struct scene *s)
{
	size_t unclear = s->candidates - s->healthy;
	if (!unclear && !s->pathless)
		return false;
	bool excused =
	    s->coverage < 1 && unclear == s->unobserved && !s->pathless &&
	    s->healthy &&
	    (double)s->healthy >= s->coverage * (double)s->candidates;
	return !excused;
}

static bool
no_incident(const struct scene *s)
{
	return !s->incident;
}

static bool
damaged(const struct scene *s)
{
	return s->damaged;
}

static bool
filtered(const struct scene *s)
{
	return s->filtered;
}

static bool
unexplained(const struct scene *s)
{
	return s->symptom == SYMPTOM_F || s->symptom == SYMPTOM_U;
}

static bool
no_symptom(const struct scene *s)
{
	return s->symptom == SYMPTOM_NONE;
}

static bool
always(const struct scene *s)
{
	(void)s;
	return true;
}

// clang-format off
static const struct {
	bool (*matches)(const struct scene *);
	const char *result, *reason;
	int status;
} rows[ROWS] = {
	[ROW_NO_CANDIDATES] = { no_candidates, 0, REASON_NO_CANDIDATES, STATUS_NONE },
	[ROW_SYMPTOM_ABSENT] = { symptom_absent, "unknown", REASON_SYMPTOM_ABSENT, STATUS_UNKNOWN },
	[ROW_RIVAL] = { has_rival, "unknown", REASON_RIVAL, STATUS_UNKNOWN },
	[ROW_PARENT_SILENT] = { parent_silent, "unknown", REASON_PARENT_SILENT, STATUS_UNKNOWN },
	[ROW_NESTED] = { nested, "unknown", REASON_NESTED, STATUS_UNKNOWN },
	[ROW_CULPRIT] = { one_faulty, "culprit", 0, STATUS_FOUND },
	[ROW_MULTIPLE] = { many_faulty, "multiple", 0, STATUS_FOUND },
	[ROW_ACCUSED] = { some_accused, "unknown", REASON_ACCUSED, STATUS_UNKNOWN },
	[ROW_BACKGROUND] = { background, "unknown", REASON_BACKGROUND_IN_SCOPE, STATUS_UNKNOWN },
	[ROW_COVERAGE] = { uncovered, "unknown", REASON_COVERAGE, STATUS_UNKNOWN },
	[ROW_NO_INCIDENT] = { no_incident, "unknown", REASON_NO_INCIDENT, STATUS_UNKNOWN },
	[ROW_DAMAGED] = { damaged, "unknown", REASON_DAMAGED, STATUS_UNKNOWN },
	[ROW_FILTERED] = { filtered, "unknown", REASON_FILTERED, STATUS_UNKNOWN },
	[ROW_UNEXPLAINED] = { unexplained, "unknown", REASON_UNEXPLAINED, STATUS_UNKNOWN },
	[ROW_NO_SYMPTOM] = { no_symptom, "unknown", REASON_NO_SYMPTOM, STATUS_UNKNOWN },
	[ROW_INNOCENT] = { always, "innocent", 0, STATUS_CLEAN },
};
// clang-format on

bool
table_matches(const struct scene *s, enum row r)
{
	return rows[r].matches(s);
}

enum row
table_row(const struct scene *s)
{
	int r = 0;
	while (!rows[r].matches(s))
		r++;
	return (enum row)r;
}

const char *
row_result(enum row r)
{
	return rows[r].result;
}

const char *
row_reason(enum row r)
{
	return rows[r].reason;
}

int
row_status(enum row r)
{
	return rows[r].status;
}
