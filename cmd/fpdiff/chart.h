/*
 * A map of ranks and steps in plain characters: what became of the records of
 * each. Its memory does not grow with either: where there are too many steps
 * or ranks they share a cell, by twos, fours and so on, which shows the worst
 * of them.
 */
#ifndef CHART_H
#define CHART_H

#include <stdbool.h>
#include <stddef.h>

struct entry;
struct chart;

/* What a record can have become; the later the worse. */
enum chart_mark {
	CHART_SAME,
	CHART_MASKED,
	CHART_UNSTABLE, /* or behind an unstable one */
	CHART_INCOMPARABLE,
	CHART_UNMATCHED,
	CHART_DIFFERENT,
	CHART_FIRST, /* the first divergence of its rank */
	CHART_MARKS,
};

struct chart *chart_new(void);
void chart_free(struct chart *c);
/* Nothing is done if `c` is NULL. */
void chart_add(struct chart *c, const struct entry *e, enum chart_mark mark);
/* Out of order nothing was the first. */
void chart_forget_order(struct chart *c);
/* Is there a step to draw by? */
bool chart_has_steps(const struct chart *c);

/*
 * Prints it line by line: at most `rows` rows of ranks and `width` characters.
 * `text` is a line without its end.
 */
enum { CHART_WIDTH_MIN = 40, CHART_WIDTH_MAX = 1000 };
typedef void chart_line(void *user, const char *text);
void chart_print(const struct chart *c, size_t width, size_t rows,
    chart_line *line, void *user);

#endif
