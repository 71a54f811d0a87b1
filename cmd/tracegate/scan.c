/* JSON for traces: see scan.h. */
#include "scan.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* ---- 64 bytes at a time ------------------------------------------------- */

/* One bit for each of 64 bytes. */
struct masks {
	uint64_t quote, back, open, close, control;
};

#ifdef __SSE2__
static inline uint64_t
gather(__m128i a, __m128i b, __m128i c, __m128i d)
{
	uint64_t lo = (uint32_t)_mm_movemask_epi8(a) |
		      (uint32_t)_mm_movemask_epi8(b) << 16;
	uint64_t hi = (uint32_t)_mm_movemask_epi8(c) |
		      (uint32_t)_mm_movemask_epi8(d) << 16;
	return lo | hi << 32;
}

static inline void
look(const char *p, struct masks *m)
{
	const __m128i *v = (const __m128i *)(const void *)p;
	__m128i a = _mm_loadu_si128(v), b = _mm_loadu_si128(v + 1);
	__m128i c = _mm_loadu_si128(v + 2), d = _mm_loadu_si128(v + 3);
#define EQ(x, ch) _mm_cmpeq_epi8(x, _mm_set1_epi8(ch))
#define ALL(ch) gather(EQ(a, ch), EQ(b, ch), EQ(c, ch), EQ(d, ch))
#define LOW(x) _mm_cmpeq_epi8(_mm_min_epu8(x, low), x)
	m->quote = ALL('"');
	m->back = ALL('\\');
	m->open = ALL('{');
	m->close = ALL('}');
	__m128i low = _mm_set1_epi8(0x1f);
	m->control = gather(LOW(a), LOW(b), LOW(c), LOW(d));
#undef EQ
#undef ALL
#undef LOW
}
#else
static inline void
look(const char *p, struct masks *m)
{
	*m = (struct masks){ 0 };
	for (int i = 0; i < 64; i++) {
		uint64_t bit = UINT64_C(1) << i;
		m->quote |= p[i] == '"' ? bit : 0;
		m->back |= p[i] == '\\' ? bit : 0;
		m->open |= p[i] == '{' ? bit : 0;
		m->close |= p[i] == '}' ? bit : 0;
		m->control |= (unsigned char)p[i] < 0x20 ? bit : 0;
	}
}
#endif

/* Bit i of the result: parity of bits 0..i. */
static inline uint64_t
parity(uint64_t x)
{
	x ^= x << 1;
	x ^= x << 2;
	x ^= x << 4;
	x ^= x << 8;
	x ^= x << 16;
	return x ^ x << 32;
}

/* Bytes that a backslash before them takes the meaning from. */
static uint64_t
escaped(uint64_t back, bool *carry)
{
	uint64_t out = 0;
	bool esc = *carry;
	for (int i = 0; i < 64; i++) {
		if (esc)
			out |= UINT64_C(1) << i;
		esc = !esc && (back >> i & 1);
	}
	*carry = esc;
	return out;
}

/* ---- objects --------------------------------------------------------- */

struct walk {
	uint64_t inside; /* all ones inside a string */
	bool carry;      /* the block before ended in a backslash */
	int depth;
};

static inline void
note_child(struct scan_span *s, bool open, uint32_t at, uint32_t quotes)
{
	if (open) {
		if (s->nchild < SCAN_CHILDREN_MAX)
			s->child[s->nchild] = (struct scan_child){ .open = at };
		return;
	}
	if (s->nchild < SCAN_CHILDREN_MAX) {
		s->child[s->nchild].close = at;
		s->child[s->nchild].quote = quotes;
		s->nchild++;
	}
}

static inline void
store_quotes(struct scan_span *s, uint32_t off, uint64_t quote)
{
	uint32_t *to = s->quote + s->nquote;
	while (quote) {
		*to++ = off + (uint32_t)__builtin_ctzll(quote);
		quote &= quote - 1;
	}
	s->nquote = (uint32_t)(to - s->quote);
}

/* The braces of one block; the bit where the object ends, or -1. */
static inline int
braces(struct scan_span *s, struct walk *w, uint32_t off, uint64_t open,
    uint64_t brace, uint64_t quote)
{
	while (brace) {
		int bit = __builtin_ctzll(brace);
		uint64_t here = brace & -brace;
		brace &= brace - 1;
		if (open & here) {
			if (++w->depth == 2)
				note_child(s, true, off + (uint32_t)bit, 0);
			continue;
		}
		if (--w->depth == 0)
			return bit;
		if (w->depth == 1)
			note_child(s, false, off + (uint32_t)bit,
			    s->nquote + (uint32_t)__builtin_popcountll(
					    quote & (here - 1)));
	}
	return -1;
}

long
scan_object(struct scan_span *s, const char *p, size_t len)
{
	struct walk w = { 0 };
	s->nquote = s->nchild = 0;
	s->control = false;
	for (size_t off = 0; off < len; off += 64) {
		struct masks m;
		look(p + off, &m);
		uint64_t valid = len - off >= 64
				     ? ~UINT64_C(0)
				     : (UINT64_C(1) << (len - off)) - 1;
		uint64_t quote = m.quote & valid;
		if (m.back || w.carry)
			quote &= ~escaped(m.back, &w.carry);
		uint64_t in = parity(quote) ^ w.inside;
		w.inside = 0 - (in >> 63);
		uint64_t brace = (m.open | m.close) & ~in & valid;
		uint64_t control = m.control & in & valid;
		int end = braces(s, &w, (uint32_t)off, m.open, brace, quote);
		if (end >= 0) {
			uint64_t upto = (UINT64_C(2) << end) - 1;
			quote &= upto;
			control &= upto;
		}
		if (control) {
			s->control = true;
			/* A string never goes over the end of a line. */
			for (uint64_t c = control; c; c &= c - 1)
				if (p[off + (size_t)__builtin_ctzll(c)] == '\n')
					return -1;
		}
		store_quotes(s, (uint32_t)off, quote);
		if (end >= 0)
			return (long)(off + (size_t)end + 1);
	}
	return 0;
}

/* ---- values ---------------------------------------------------------- */

static const char *
skip_space(const char *p, const char *end)
{
	while (p < end && scan_space(*p))
		p++;
	return p;
}

/* Behind the closing quote of the string at *p == '"', or NULL. */
static const char *
skip_string(const char *p, const char *end)
{
	for (p++; p < end; p++) {
		if (*p == '\\')
			p++;
		else if (*p == '"')
			return p + 1;
	}
	return NULL;
}

/* Behind the bracket that closes the one at *p, or NULL. */
static const char *
skip_nested(const char *p, const char *end)
{
	int depth = 0;
	while (p && p < end) {
		switch (*p) {
		case '"':
			p = skip_string(p, end);
			continue;
		case '{':
		case '[':
			depth++;
			break;
		case '}':
		case ']':
			if (--depth == 0)
				return p + 1;
		}
		p++;
	}
	return NULL;
}

static bool
ends_literal(char c)
{
	return scan_space(c) || c == ',' || c == '}' || c == ']' || c == ':';
}

const char *
scan_value(const char *p, const char *end, struct str *value)
{
	p = skip_space(p, end);
	if (p == end)
		return NULL;
	const char *from = p;
	if (*p == '"')
		p = skip_string(p, end);
	else if (*p == '{' || *p == '[')
		p = skip_nested(p, end);
	else
		while (p < end && !ends_literal(*p))
			p++;
	if (!p || p == from)
		return NULL;
	*value = (struct str){ from, (size_t)(p - from) };
	return p;
}

static struct str
unquote(struct str v, bool *string)
{
	*string = v.len >= 2 && v.p[0] == '"';
	return *string ? (struct str){ v.p + 1, v.len - 2 } : v;
}

bool
scan_element(struct str array, const char **at, struct str *value, bool *string)
{
	const char *end = str_end(array), *p = skip_space(*at, end);
	if (p < end && *p == ',')
		p++;
	p = skip_space(p, end);
	if (p >= end || *p == ']')
		return false;
	p = scan_value(p, end, value);
	if (!p)
		return false;
	*value = unquote(*value, string);
	*at = p;
	return true;
}

bool
scan_member(struct str object, const char **at, struct str *key,
    struct str *value, bool *string)
{
	const char *end = str_end(object), *p = skip_space(*at, end);
	if (p < end && *p == ',')
		p = skip_space(p + 1, end);
	if (p >= end || *p != '"')
		return false;
	const char *q = skip_string(p, end);
	if (!q)
		return false;
	*key = (struct str){ p + 1, (size_t)(q - p) - 2 };
	p = skip_space(q, end);
	if (p >= end || *p != ':')
		return false;
	p = scan_value(p + 1, end, value);
	if (!p)
		return false;
	*value = unquote(*value, string);
	*at = p;
	return true;
}

struct str
scan_get(struct str object, const char *key)
{
	struct str k, v;
	bool string;
	const char *at = object.p + 1;
	if (object.len < 2)
		return STR_NULL;
	while (scan_member(object, &at, &k, &v, &string))
		if (str_is(k, key))
			return v;
	return STR_NULL;
}

/* ---- the strict judge --------------------------------------------------- */

/* Bytes of the UTF-8 sequence at p (RFC 3629), 0 if there is none. */
static int
utf8_len(const unsigned char *p, const unsigned char *end)
{
	if (p[0] < 0x80)
		return 1;
	int n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4 || end - p < n)
		return 0;
	for (int i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hex digits at p, or -1. */
static int
hex4(const char *p, const char *end)
{
	int v = 0;
	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int d = hex_digit(p[i]);
		if (d < 0)
			return -1;
		v = v * 16 + d;
	}
	return v;
}

static const char *
valid_string(const char *p, const char *end)
{
	for (p++; p < end;) {
		unsigned char c = (unsigned char)*p;
		if (c == '"')
			return p + 1;
		if (c < 0x20)
			return NULL;
		if (c == '\\') {
			if (end - p < 2 || !p[1] ||
			    !strchr("\"\\/bfnrtu", p[1]))
				return NULL;
			if (p[1] == 'u' && hex4(p + 2, end) < 0)
				return NULL;
			p += p[1] == 'u' ? 6 : 2;
			continue;
		}
		int n = utf8_len(
		    (const unsigned char *)p, (const unsigned char *)end);
		if (!n)
			return NULL;
		p += n;
	}
	return NULL;
}

static const char *
digits(const char *p, const char *end)
{
	const char *from = p;
	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p > from ? p : NULL;
}

static const char *
valid_number(const char *p, const char *end)
{
	if (p < end && *p == '-')
		p++;
	const char *from = p;
	p = digits(p, end);
	if (!p || (*from == '0' && p - from > 1))
		return NULL;
	if (p < end && *p == '.') {
		p = digits(p + 1, end);
		if (!p)
			return NULL;
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		p = digits(p, end);
	}
	return p;
}

static const char *
valid_scalar(const char *p, const char *end)
{
	static const char *const words[] = { "true", "false", "null" };
	if (*p == '"')
		return valid_string(p, end);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t n = strlen(words[i]);
		if ((size_t)(end - p) >= n && !memcmp(p, words[i], n))
			return p + n;
	}
	return valid_number(p, end);
}

static const char *
valid_key(const char *p, const char *end)
{
	p = skip_space(p, end);
	if (p >= end || *p != '"')
		return NULL;
	p = valid_string(p, end);
	if (!p)
		return NULL;
	p = skip_space(p, end);
	return p < end && *p == ':' ? p + 1 : NULL;
}

/* Opens a bracket: empty ones are closed at once, objects get their key. */
static const char *
valid_open(const char *p, const char *end, char *stack, int *depth)
{
	if (*depth == SCAN_DEPTH_MAX)
		return NULL;
	char close = *p == '{' ? '}' : ']';
	p = skip_space(p + 1, end);
	if (p < end && *p == close)
		return p + 1;
	stack[(*depth)++] = close;
	return close == '}' ? valid_key(p, end) : p;
}

/* What may follow a value inside the open brackets. */
static const char *
valid_close(
    const char *p, const char *end, const char *stack, int *depth, bool *more)
{
	*more = false;
	while (*depth) {
		p = skip_space(p, end);
		if (p == end)
			return NULL;
		if (*p == ',') {
			*more = true;
			return stack[*depth - 1] == '}' ? valid_key(p + 1, end)
							: p + 1;
		}
		if (*p++ != stack[--*depth])
			return NULL;
	}
	return p;
}

bool
scan_valid(struct str text)
{
	char stack[SCAN_DEPTH_MAX];
	const char *p = text.p, *end = str_end(text);
	int depth = 0;
	bool more = true;
	while (more) {
		p = skip_space(p, end);
		if (p == end)
			return false;
		int before = depth;
		if (*p == '{' || *p == '[') {
			p = valid_open(p, end, stack, &depth);
			if (p && depth > before)
				continue;
		} else {
			p = valid_scalar(p, end);
		}
		if (p)
			p = valid_close(p, end, stack, &depth, &more);
		if (!p)
			return false;
	}
	return p == end;
}

/* ---- text ------------------------------------------------------------ */

static void
put_utf8(struct buf *b, uint32_t c)
{
	if (c < 0x80) {
		buf_putc(b, (char)c);
		return;
	}
	int n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	buf_putc(b, (char)(lead[n] | c >> 6 * (n - 1)));
	for (int i = n - 2; i >= 0; i--)
		buf_putc(b, (char)(0x80 | (c >> 6 * i & 0x3f)));
}

/* \uXXXX at p, a surrogate pair together; bytes used. */
static size_t
put_unicode(struct buf *b, const char *p, const char *end)
{
	int hi = hex4(p + 2, end);
	if (hi < 0) {
		buf_putc(b, '\\');
		return 1;
	}
	if (hi >= 0xd800 && hi < 0xdc00 && end - p >= 12 && p[6] == '\\' &&
	    p[7] == 'u') {
		int lo = hex4(p + 8, end);
		if (lo >= 0xdc00 && lo < 0xe000) {
			put_utf8(b, 0x10000 + ((uint32_t)(hi - 0xd800) << 10) +
					(uint32_t)(lo - 0xdc00));
			return 12;
		}
	}
	put_utf8(b, hi >= 0xd800 && hi < 0xe000 ? 0xfffd : (uint32_t)hi);
	return 6;
}

void
scan_plain(struct buf *b, struct str content)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	if (!content.len)
		return;
	const char *p = content.p, *end = str_end(content);
	while (p < end) {
		if (*p != '\\' || end - p < 2) {
			buf_putc(b, *p++);
			continue;
		}
		const char *at = p[1] ? strchr(from, p[1]) : NULL;
		if (p[1] == 'u') {
			p += put_unicode(b, p, end);
		} else if (at) {
			buf_putc(b, to[at - from]);
			p += 2;
		} else {
			buf_putc(b, *p++);
		}
	}
}

void
scan_quote(struct buf *b, struct str text)
{
	const unsigned char *p = (const unsigned char *)text.p;
	const unsigned char *end = (const unsigned char *)str_end(text);
	while (p < end) {
		if (*p == '"' || *p == '\\') {
			buf_putc(b, '\\');
			buf_putc(b, (char)*p++);
		} else if (*p < 0x20) {
			buf_printf(b, "\\u%04x", *p++);
		} else {
			int n = utf8_len(p, end);
			if (n)
				buf_add(b, p, (size_t)n);
			else
				buf_puts(b, "\xef\xbf\xbd");
			p += n ? n : 1;
		}
	}
}

/* ---- times ----------------------------------------------------------- */

enum { DIGITS_MAX = 64 }; /* significant digits looked at in slow numbers */
/* Microseconds whose nanoseconds surely fit. */
#define WHOLE_MAX UINT64_C(9223372036854774)

/* A number as digits and a power of ten: value = 0.d1d2d3... * 10^point. */
struct decimal {
	char digit[DIGITS_MAX];
	int n;
	long point;
	bool negative, cut;
};

static const char *
take_digits(struct decimal *d, const char *p, const char *end, bool whole)
{
	for (; p < end && *p >= '0' && *p <= '9'; p++) {
		if (*p == '0' && d->n == 0) {
			if (!whole)
				d->point--;
			continue;
		}
		if (d->n < DIGITS_MAX)
			d->digit[d->n++] = *p;
		else if (*p != '0')
			d->cut = true;
		if (whole)
			d->point++;
	}
	return p;
}

static bool
read_decimal(struct decimal *d, struct str s)
{
	const char *p = s.p, *end = str_end(s);
	*d = (struct decimal){ 0 };
	if (p < end && *p == '-') {
		d->negative = true;
		p++;
	}
	if (valid_number(p, end) != end)
		return false;
	p = take_digits(d, p, end, true);
	if (p < end && *p == '.')
		p = take_digits(d, p + 1, end, false);
	if (p == end)
		return true;
	bool down = p[1] == '-';
	long exp = 0;
	for (p += down || p[1] == '+' ? 2 : 1; p < end; p++)
		if (exp < 100000)
			exp = exp * 10 + (*p - '0');
	d->point += down ? -exp : exp;
	return true;
}

static int
power_of(int64_t unit)
{
	int n = 0;
	for (; unit > 1; unit /= 10)
		n++;
	return n;
}

/* Exponents, long fractions, strange shapes: slow and exact. */
static bool
slow_time(struct str s, int64_t unit, int64_t *ns, bool *cut)
{
	struct decimal d;
	if (!s.len || !read_decimal(&d, s))
		return false;
	long whole = d.point + power_of(unit);
	int64_t v = 0;
	for (long i = 0; i < whole && (d.n || i < 1); i++) {
		int digit = i < d.n ? d.digit[i] - '0' : 0;
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, digit, &v))
			return false;
	}
	for (long i = whole < 0 ? 0 : whole; i < d.n; i++)
		d.cut = d.cut || d.digit[i] != '0';
	*ns = d.negative ? -v : v;
	*cut = *cut || d.cut;
	return true;
}

bool
scan_time(struct str s, int64_t unit, int64_t *ns, bool *cut)
{
	/* The usual shape: up to 16 digits, then at most three decimals. */
	const char *p = s.p, *end = str_end(s);
	uint64_t v = 0;
	if (unit != 1000 || s.len == 0 || s.len > 20)
		return slow_time(s, unit, ns, cut);
	while (p < end && (unsigned char)(*p - '0') < 10)
		v = v * 10 + (uint64_t)(*p++ - '0');
	size_t whole = (size_t)(p - s.p), left = (size_t)(end - p);
	if (whole == 0 || whole > 16 || v > WHOLE_MAX || left == 1 ||
	    left > 4 || (whole > 1 && s.p[0] == '0') || (left && *p != '.'))
		return slow_time(s, unit, ns, cut);
	uint64_t frac = 0;
	for (size_t i = 1; i < 4; i++) {
		unsigned digit = i < left ? (unsigned char)(p[i] - '0') : 0u;
		if (digit > 9)
			return slow_time(s, unit, ns, cut);
		frac = frac * 10 + digit;
	}
	*ns = (int64_t)(v * 1000 + frac);
	return true;
}
