/* Lists of hosts and the words of a launcher: see hosts.h. */
#include "hosts.h"

#include <string.h>

#include "buf.h"
#include "num.h"

/* ---- hosts -------------------------------------------------------------- */

struct names {
	struct arena *arena;
	const char **name;
	size_t n;
};

static int
keep(struct names *t, struct str s, struct err *e)
{
	if (!s.len)
		return err_set(e, SE_EFORMAT, "an empty name");
	if (t->n == HOSTS_MAX)
		return err_set(e, SE_ELIMIT, "more than %d hosts", HOSTS_MAX);
	struct str own = arena_str(t->arena, s);
	if (!own.p)
		return err_mem(e);
	t->name[t->n++] = own.p;
	return 0;
}

/* One of the list in the brackets: 3, 1-4 or 01-10. */
static int
add_range(struct names *t, struct str before, struct str range,
    struct str after, struct err *e)
{
	struct str low, high = range;
	uint64_t a, b;
	str_cut(&high, '-', &low);
	int x = num_u64(low, 0, 999999999, &a, e);
	b = a;
	if (!x && high.p)
		x = num_u64(high, a, 999999999, &b, e);
	for (uint64_t i = a; !x && i <= b; i++) {
		struct buf name = { 0 };
		int width = low.len > 1 && *low.p == '0' ? (int)low.len : 1;
		buf_str(&name, before);
		buf_printf(&name, "%0*u", width, (unsigned)i);
		buf_str(&name, after);
		x = name.failed ? err_mem(e) : keep(t, buf_view(&name), e);
		buf_free(&name);
	}
	return x;
}

static int
add_hosts(struct names *t, struct str word, struct err *e)
{
	const char *open = memchr(word.p, '[', word.len);
	const char *end = word.p + word.len;
	if (!open)
		return keep(t, word, e);
	const char *close = memchr(open, ']', (size_t)(end - open));
	if (!close || memchr(close, '[', (size_t)(end - close)))
		return err_set(e, SE_EFORMAT, "expected one [...] in a name");
	struct str before = { word.p, (size_t)(open - word.p) };
	struct str list = { open + 1, (size_t)(close - open) - 1 }, range;
	struct str after = { close + 1, (size_t)(end - close) - 1 };
	int x = 0;
	while (!x && str_cut(&list, ',', &range))
		x = add_range(t, before, range, after, e);
	return x;
}

/* The next name, up to a comma that is not in brackets. */
static struct str
next_name(struct str *rest, bool *more)
{
	size_t i = 0;
	for (int depth = 0; i < rest->len; i++) {
		depth += rest->p[i] == '[';
		depth -= rest->p[i] == ']';
		if (rest->p[i] == ',' && depth <= 0)
			break;
	}
	struct str word = { rest->p, i };
	*more = i < rest->len;
	i += *more;
	*rest = (struct str){ rest->p + i, rest->len - i };
	return word;
}

int
hosts_expand(const char *list, struct arena *a, const char **name, size_t *n,
    struct err *e)
{
	struct names t = { a, name, 0 };
	struct str rest = str_c(list);
	bool more = true;
	int x = 0;
	while (!x && more)
		x = add_hosts(&t, next_name(&rest, &more), e);
	*n = t.n;
	return x;
}

/* ---- words -------------------------------------------------------------- */

int
words_split(const char *text, struct arena *a, const char **word, size_t *n,
    struct err *e)
{
	struct buf w = { 0 };
	char quote = 0;
	bool inside = false;
	int x = 0;
	*n = 0;
	for (const char *p = text;; p++) {
		bool end = !*p || (!quote && (*p == ' ' || *p == '\t'));
		if (end && inside) {
			struct str own = arena_str(a, buf_view(&w));
			if (w.failed || !own.p)
				x = err_mem(e);
			else if (*n == WORDS_MAX)
				x = err_set(e, SE_ELIMIT, "more than %d words",
				    WORDS_MAX);
			else
				word[(*n)++] = own.p;
			w.len = 0;
			inside = false;
		}
		if (!*p || x)
			break;
		if (end)
			continue;
		inside = true;
		if (quote ? *p == quote : *p == '\'' || *p == '"')
			quote = quote ? 0 : *p;
		else
			buf_putc(&w, *p);
	}
	if (!x && quote)
		x = err_set(e, SE_EFORMAT, "a quote is not closed");
	if (!x && !*n)
		x = err_set(e, SE_EFORMAT, "no word");
	buf_free(&w);
	return x;
}
