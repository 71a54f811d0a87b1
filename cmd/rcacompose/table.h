/*
 * From what is known of all candidates to one verdict: the first row of the
 * table in rcacompose(1) that matches. A pure function.
 */
#ifndef TABLE_H
#define TABLE_H

#include <stdbool.h>
#include <stddef.h>

enum symptom { SYMPTOM_NONE, SYMPTOM_U, SYMPTOM_F, SYMPTOM_H };

/* Numbers of candidates; those folded into a parent are not in `faulty`,
 * `rivals` and `accused`. */
struct scene {
	size_t candidates;
	size_t faulty;
	size_t rivals;  /* unknown though accused, without an alibi */
	size_t accused; /* unknown though accused, rivals or not */
	size_t healthy;
	size_t unobserved;  /* not healthy, and no binding agent answered */
	size_t pathless;    /* complaining flows whose path nobody knows */
	bool parent_silent; /* a faulty one hangs on an unknown parent */
	bool nested;        /* a faulty parent has faulty children unfolded */
	bool background;    /* an older fault is still active in scope */
	bool incident;      /* there is an incident to be innocent of */
	bool damaged, filtered; /* input that cannot show an absence */
	enum symptom symptom;
	bool rivals_allowed;
	double coverage; /* share of candidates that must be healthy */
};

enum row {
	ROW_NO_CANDIDATES,
	ROW_SYMPTOM_ABSENT,
	ROW_RIVAL,
	ROW_PARENT_SILENT,
	ROW_NESTED,
	ROW_CULPRIT,
	ROW_MULTIPLE,
	ROW_ACCUSED,
	ROW_BACKGROUND,
	ROW_COVERAGE,
	ROW_NO_INCIDENT,
	ROW_DAMAGED,
	ROW_FILTERED,
	ROW_UNEXPLAINED,
	ROW_NO_SYMPTOM,
	ROW_INNOCENT,
	ROWS,
};

enum row table_row(const struct scene *s);
bool table_matches(const struct scene *s, enum row r);
const char *row_result(enum row r); /* NULL: no verdict */
const char *row_reason(enum row r); /* NULL: none */
int row_status(enum row r);

#endif
