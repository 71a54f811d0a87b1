/*
 * rcacompose: the table of verdicts by enumeration. Every state is in exactly
 * one row; guilt and innocence hold only where everything they need holds.
 */
#include "test.h"

#include <string.h>

#include "../../cmd/rcacompose/table.h"
#include "verdict.h"

static unsigned long seen[ROWS];

/* What must be true of a state before it may be called that. */
static bool
may_accuse(const struct scene *s)
{
	return s->faulty && s->symptom != SYMPTOM_H && !s->parent_silent &&
	       !s->nested && (!s->rivals || s->rivals_allowed);
}

static bool
may_clear(const struct scene *s)
{
	size_t unclear = s->candidates - s->healthy;
	bool covered =
	    !unclear ||
	    (s->coverage < 1 && s->healthy && unclear == s->unobserved &&
		(double)s->healthy / (double)s->candidates >=
		    s->coverage - 1e-12);
	return s->candidates && s->healthy && covered && !s->faulty &&
	       !s->accused && !s->rivals && !s->background && !s->pathless &&
	       s->incident && !s->damaged && !s->filtered &&
	       s->symptom == SYMPTOM_H;
}

static void
check(const struct scene *s)
{
	enum row r = table_row(s);
	seen[r]++;
	for (int i = 0; i < (int)r; i++)
		CHECK(!table_matches(s, (enum row)i));
	CHECK(table_matches(s, r));
	int status = row_status(r);
	CHECK((status == STATUS_FOUND) == (may_accuse(s) && s->candidates));
	CHECK((status == STATUS_CLEAN) == may_clear(s));
	CHECK((r == ROW_CULPRIT) == (status == STATUS_FOUND && s->faulty == 1));
	CHECK((status == STATUS_NONE) == !s->candidates);
	CHECK((status == STATUS_UNKNOWN) ==
	      (row_result(r) && !strcmp(row_result(r), "unknown")));
	CHECK(
	    status == STATUS_FOUND || status == STATUS_CLEAN || row_reason(r));
}

/* Up to four candidates, each of one kind. */
static void
each_flag(struct scene s)
{
	static const double shares[] = { 1, 0.75, 0.5, 0.25 };
	for (unsigned f = 0; f < 1u << 8; f++)
		for (int symptom = 0; symptom < 4; symptom++)
			for (int c = 0; c < 4; c++) {
				s.parent_silent = (f & 1) && s.faulty;
				s.nested = (f & 2) && s.faulty;
				s.background = f & 4;
				s.incident = f & 8;
				s.damaged = f & 16;
				s.filtered = f & 32;
				s.rivals_allowed = f & 64;
				s.pathless = f >> 7;
				s.symptom = (enum symptom)symptom;
				s.coverage = shares[c];
				check(&s);
			}
}

/* Numbers of: faulty, rivals, accused with alibi, healthy, unobserved, and
 * unknown though observed. */
static void
each_state(void)
{
	enum { MOST = 3 };
	for (size_t a = 0; a <= MOST; a++)
		for (size_t b = 0; a + b <= MOST; b++)
			for (size_t c = 0; a + b + c <= MOST; c++)
				for (size_t h = 0; a + b + c + h <= MOST; h++)
					for (size_t u = 0;
					     a + b + c + h + u <= MOST; u++)
						for (size_t o = 0;
						     a + b + c + h + u + o <=
						     MOST;
						     o++) {
							struct scene s = {
								.candidates =
								    a + b + c +
								    h + u + o,
								.faulty = a,
								.rivals = b,
								.accused =
								    b + c,
								.healthy = h,
								.unobserved = u,
							};
							each_flag(s);
						}
}

int
main(void)
{
	each_state();
	for (int r = 0; r < ROWS; r++)
		CHECK(seen[r] > 0);
	return test_done("rcacompose_table");
}
