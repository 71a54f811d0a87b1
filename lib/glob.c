/* Patterns of the command line: see glob.h. */
#include "glob.h"

/*
 * Does the set that starts behind `[` at *at hold c? *at moves behind its
 * `]`; false with *at unmoved if the set has no end.
 */
static bool
in_set(struct str p, size_t *at, unsigned char c)
{
	size_t i = *at;
	bool not = i < p.len && p.p[i] == '!', found = false;
	i += not ;
	for (size_t first = i; i < p.len; i++) {
		unsigned char a = (unsigned char)p.p[i], b = a;
		/* A `]` at the very start is a member. */
		if (a == ']' && i > first) {
			*at = i + 1;
			return found != not ;
		}
		if (i + 2 < p.len && p.p[i + 1] == '-' && p.p[i + 2] != ']') {
			b = (unsigned char)p.p[i + 2];
			i += 2;
		}
		found |= a <= c && c <= b;
	}
	return false;
}

/* Matches one byte with what stands at *at, which is then left behind. */
static bool
match_one(struct str p, size_t *at, unsigned char c)
{
	unsigned char m = (unsigned char)p.p[(*at)++];
	if (m == '?')
		return true;
	if (m == '[') {
		size_t behind = *at;
		bool yes = in_set(p, &behind, c);
		if (behind > *at) {
			*at = behind;
			return yes;
		}
	}
	if (m == '\\' && *at < p.len)
		m = (unsigned char)p.p[(*at)++];
	return m == c;
}

/*
 * On a mismatch the last star takes one byte more. Earlier stars never have
 * to change their mind: what they took was the shortest that fits.
 */
bool
glob_match(struct str pattern, struct str text)
{
	size_t p = 0, t = 0, star = 0, mark = 0;
	bool starred = false;
	while (t < text.len) {
		if (p < pattern.len && pattern.p[p] == '*') {
			starred = true;
			star = ++p;
			mark = t;
			continue;
		}
		if (p < pattern.len &&
		    match_one(pattern, &p, (unsigned char)text.p[t])) {
			t++;
			continue;
		}
		if (!starred)
			return false;
		p = star;
		t = ++mark;
	}
	while (p < pattern.len && pattern.p[p] == '*')
		p++;
	return p == pattern.len;
}
