/* The escapes of the line format: see esc.h. */
#include "esc.h"

#include <stdint.h>

/*
 * Length of the UTF-8 sequence at p (RFC 3629: no overlong forms, no
 * surrogates, nothing above U+10FFFF) and its code point; 0 if invalid.
 */
static size_t
utf8(const unsigned char *p, size_t left, uint32_t *cp)
{
	if (p[0] < 0x80) {
		*cp = p[0];
		return 1;
	}
	size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	if (p[0] < 0xc2 || p[0] > 0xf4 || n > left)
		return 0;
	uint32_t v = p[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		v = v << 6 | (p[i] & 0x3f);
	}
	if (v < least[n] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
		return 0;
	*cp = v;
	return n;
}

static int
is_unsafe(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c ||
	       c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

/* Bytes at the start of s that need no escape. */
static size_t
plain_run(struct str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t i = 0;
	while (i < s.len) {
		if (p[i] >= 0x20 && p[i] < 0x7f && p[i] != '\\') {
			i++;
			continue;
		}
		uint32_t cp;
		size_t n = utf8(p + i, s.len - i, &cp);
		if (p[i] == '\\' || !n || is_unsafe(cp))
			break;
		i += n;
	}
	return i;
}

int
esc_is_plain(struct str s)
{
	return plain_run(s) == s.len;
}

void
esc_put(struct buf *b, struct str s)
{
	static const char hex[] = "0123456789abcdef";
	while (s.len) {
		size_t run = plain_run(s);
		buf_add(b, s.p, run);
		s.p += run;
		s.len -= run;
		if (!s.len)
			break;
		const unsigned char *p = (const unsigned char *)s.p;
		uint32_t cp;
		size_t n = utf8(p, s.len, &cp);
		if (!n)
			n = 1;
		for (size_t i = 0; i < n; i++) {
			buf_putc(b, '\\');
			const char *named = n == 1 && p[i]
						? strchr("\tt\nn\rr\\\\", p[i])
						: NULL;
			if (named) {
				buf_putc(b, named[1]);
				continue;
			}
			buf_putc(b, 'x');
			buf_putc(b, hex[p[i] >> 4]);
			buf_putc(b, hex[p[i] & 15]);
		}
		s.p += n;
		s.len -= n;
	}
}

static int
nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int
esc_undo(struct str s, char *to, size_t *len, struct err *e)
{
	size_t n = 0;
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] != '\\') {
			to[n++] = s.p[i];
			continue;
		}
		char c = i + 1 < s.len ? s.p[i + 1] : 0;
		const char *named = c ? strchr("t\tn\nr\r\\\\", c) : NULL;
		/* Only the letter at an even place names an escape. */
		if (c == 't' || c == 'n' || c == 'r' || c == '\\') {
			to[n++] = named[1];
			i++;
			continue;
		}
		int hi = c == 'x' && i + 3 < s.len ? nibble(s.p[i + 2]) : -1;
		int lo = hi >= 0 ? nibble(s.p[i + 3]) : -1;
		if (lo < 0)
			return err_set(e, SE_EFORMAT,
			    "bad escape at byte %zu: expected \\t \\n \\r "
			    "\\\\ or \\xHH",
			    i + 1);
		to[n++] = (char)(hi << 4 | lo);
		i += 3;
	}
	*len = n;
	return 0;
}

int
esc_prefix(struct err *e, const char *what, struct str name)
{
	bool cut = name.len > ESC_SHOWN;
	struct buf b = { 0 };
	esc_put(&b, (struct str){ name.p, cut ? ESC_SHOWN : name.len });
	if (cut)
		buf_puts(&b, "...");
	int r = err_prefix(e, "%s %s", what, buf_cstr(&b));
	buf_free(&b);
	return r;
}
