/* Helpers of the readers of text formats: see text.h. */
#include "text.h"

struct str
text_trim(struct str s)
{
	while (s.len && scan_space(s.p[0])) {
		s.p++;
		s.len--;
	}
	while (s.len && scan_space(s.p[s.len - 1]))
		s.len--;
	return s;
}

struct str
text_word(struct str *rest)
{
	struct str s = *rest;
	while (s.len && scan_space(s.p[0])) {
		s.p++;
		s.len--;
	}
	size_t n = 0;
	while (n < s.len && !scan_space(s.p[n]))
		n++;
	*rest = text_from(s, n);
	return text_upto(s, n);
}

long
text_find(struct str s, const char *needle)
{
	size_t n = strlen(needle);
	for (size_t i = 0; i + n <= s.len; i++)
		if (!memcmp(s.p + i, needle, n))
			return (long)i;
	return -1;
}

long
text_rfind(struct str s, const char *needle)
{
	size_t n = strlen(needle);
	for (size_t i = s.len; i >= n; i--)
		if (!memcmp(s.p + (i - n), needle, n))
			return (long)(i - n);
	return -1;
}

bool
text_time(struct str s, int64_t unit, int64_t *ns)
{
	bool cut = false;
	return scan_time(s, unit, ns, &cut);
}

bool
text_first_line(const char *p, size_t len, struct str *line)
{
	const char *nl = len ? memchr(p, '\n', len) : NULL;
	*line = (struct str){ p, nl ? (size_t)(nl - p) : len };
	return line->len > 0;
}

void
text_slice(struct reader *r, struct event *ev, int64_t ts, int64_t dur,
    struct str name, const char *cat, struct str pid, struct str tid)
{
	ev->ts = ts;
	ev->dur = dur;
	render_begin(r, ev, 'X', name, str_c(cat));
	render_lane(r, ev, pid, tid);
}

void
text_instant(struct reader *r, struct event *ev, int64_t ts, struct str name,
    const char *cat, struct str pid, struct str tid)
{
	ev->ts = ts;
	ev->dur = 0;
	render_begin(r, ev, 'i', name, str_c(cat));
	render_lane(r, ev, pid, tid);
}
