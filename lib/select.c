/* Which records a user wants: see select.h. */
#include "select.h"

#include "glob.h"
#include "num.h"

int
select_steps(struct select *s, struct str range, struct err *e)
{
	struct str first;
	*s = (struct select){ true, 0, UINT64_MAX, s->glob, s->nglobs };
	str_cut(&range, ':', &first);
	if (!range.p && !first.len)
		return err_set(e, SE_EINVAL,
		    "expected steps as A:B, A: or :B, found \"\"");
	int r = 0;
	if (first.len)
		r = num_u64(first, 0, UINT64_MAX, &s->from, e);
	if (!r && !range.p)
		s->to = s->from;
	if (!r && range.len)
		r = num_u64(range, 0, UINT64_MAX, &s->to, e);
	if (!r && s->to < s->from)
		r = err_set(
		    e, SE_EINVAL, "the last step lies before the first");
	return r;
}

bool
select_name(const struct select *s, struct str name)
{
	if (!s->nglobs)
		return true;
	for (size_t i = 0; i < s->nglobs; i++)
		if (glob_match(str_c(s->glob[i]), name))
			return true;
	return false;
}

bool
select_step(const struct select *s, struct str step)
{
	uint64_t v;
	if (!s->steps)
		return true;
	return step.p && !num_u64(step, s->from, s->to, &v, NULL);
}
