/* What the heads of a side say it was made with: switches and build. */
#include "fpdiff.h"

#include <stdlib.h>

static const char *const condition_name[CONDITIONS] = { "switches", "build" };

static bool
includes(const struct conditions *c, int which, struct str value)
{
	for (size_t i = 0; i < c->n[which]; i++)
		if (str_same(c->value[which][i], value))
			return true;
	return false;
}

static void
keep(struct conditions *c, int which, struct str value)
{
	if (includes(c, which, value) || c->n[which] == CONDITIONS_MAX)
		return;
	char *copy = cli_alloc(value.len + 1, 1);
	memcpy(copy, value.p, value.len);
	c->value[which][c->n[which]++] = (struct str){ copy, value.len };
}

void
conditions_take(struct conditions *c, const struct rec *head)
{
	for (int i = 0; i < CONDITIONS; i++) {
		const struct str *v = rec_get(head, condition_name[i]);
		if (v)
			keep(c, i, *v);
	}
}

const char *
conditions_differ(const struct conditions *a, const struct conditions *b)
{
	for (int i = 0; i < CONDITIONS; i++) {
		if (!a->n[i] || !b->n[i])
			continue;
		if (a->n[i] != b->n[i])
			return condition_name[i];
		for (size_t k = 0; k < a->n[i]; k++)
			if (!includes(b, i, a->value[i][k]))
				return condition_name[i];
	}
	return NULL;
}

void
conditions_free(struct conditions *c)
{
	for (int i = 0; i < CONDITIONS; i++)
		for (size_t k = 0; k < c->n[i]; k++)
			free((char *)c->value[i][k].p);
}
