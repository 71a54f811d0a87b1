/* Expressions from outside: see ere.h. */
#include "ere.h"

#include <stdint.h>
#include <string.h>

struct level {
	uint64_t sum;  /* of what stands before `last` */
	uint64_t last; /* what a repetition would repeat */
};

/* Behind a bracket expression that begins at p[i]; the end if it has none. */
static size_t
bracket_end(struct str s, size_t i)
{
	i++;
	if (i < s.len && s.p[i] == '^')
		i++;
	if (i < s.len && s.p[i] == ']')
		i++;
	while (i < s.len && s.p[i] != ']') {
		char kind = i + 1 < s.len ? s.p[i + 1] : 0;
		bool class = s.p[i] == '[' && kind && strchr(":.=", kind);
		i += class ? 2 : 1;
		while (class && i + 1 < s.len &&
		       !(s.p[i] == kind && s.p[i + 1] == ']'))
			i++;
		if (class)
			i += 2;
	}
	return i < s.len ? i + 1 : s.len;
}

/* "{n,m}" at s: how often, and its length; 0: it is none. */
static size_t
interval(struct str s, uint64_t *times)
{
	uint64_t n = 0;
	*times = 1;
	for (size_t i = 1; i < s.len; i++) {
		char c = s.p[i];
		if (c >= '0' && c <= '9') {
			n = n > ERE_SIZE_MAX ? n : n * 10 + (uint64_t)(c - '0');
			*times = n > *times ? n : *times;
		} else if (c == ',') {
			n = 0;
			*times += 1; /* {n,} is n of them and a star */
		} else {
			return c == '}' ? i + 1 : 0;
		}
	}
	return 0;
}

int
ere_check(struct str s, struct err *e)
{
	struct level level[ERE_DEPTH_MAX + 1] = { { 0, 0 } };
	struct level *l = level;
	for (size_t i = 0, step; i < s.len; i += step) {
		char c = s.p[i];
		uint64_t times = 2;
		step = 1;
		if (c == '(') {
			if (l == level + ERE_DEPTH_MAX)
				return err_set(e, SE_ELIMIT,
				    "more than %d parentheses in each other",
				    ERE_DEPTH_MAX);
			l->sum += l->last;
			*++l = (struct level){ 0, 0 };
			continue;
		}
		if (c == ')') {
			if (l == level)
				return err_set(e, SE_EFORMAT,
				    "a closing parenthesis without its "
				    "opening one");
			uint64_t whole = l->sum + l->last;
			(--l)->last = whole;
			continue;
		}
		if (c == '{')
			step = interval(
			    (struct str){ s.p + i, s.len - i }, &times);
		if ((c == '{' && step) || c == '*' || c == '+' || c == '?') {
			l->last *= times;
		} else {
			l->sum += l->last;
			l->last = 1;
			bool escaped = c == '\\' && i + 1 < s.len;
			step = c == '['  ? bracket_end(s, i) - i
			       : escaped ? 2
					 : 1;
		}
		if (l->sum + l->last > ERE_SIZE_MAX)
			return err_set(e, SE_ELIMIT,
			    "becomes larger than %u characters once its "
			    "repetitions are written out",
			    ERE_SIZE_MAX);
	}
	if (l != level)
		return err_set(
		    e, SE_EFORMAT, "an opening parenthesis without its end");
	return 0;
}
