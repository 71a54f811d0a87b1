/* Numbers without the locale: see num.h. */
#include "num.h"

#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { FOUND_MAX = 40, F64_TEXT_MAX = 400 };

#define NS INT64_C(1000000000)

static int
bad(struct err *e, const char *expected, struct str found)
{
	char safe[FOUND_MAX + 1];
	size_t n = found.len < FOUND_MAX ? found.len : FOUND_MAX;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)found.p[i];
		safe[i] = c >= 0x20 && c < 0x7f ? (char)c : '?';
	}
	safe[n] = 0;
	return err_set(e, SE_EINVAL, "expected %s, found \"%s\"%s", expected,
	    safe, n < found.len ? "..." : "");
}

/* Digits only, whole string; false on anything else or overflow. */
static bool
digits(struct str s, uint64_t *out)
{
	uint64_t v = 0;
	if (!s.len)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		if (!num_mul(v, 10, &v) || !num_add(v, s.p[i] - '0', &v))
			return false;
	}
	*out = v;
	return true;
}

int
num_u64(struct str s, uint64_t min, uint64_t max, uint64_t *out, struct err *e)
{
	uint64_t v;
	if (digits(s, &v) && v >= min && v <= max) {
		*out = v;
		return 0;
	}
	char want[80];
	snprintf(
	    want, sizeof want, "an integer %" PRIu64 " to %" PRIu64, min, max);
	return bad(e, want, s);
}

int
num_i64(struct str s, int64_t min, int64_t max, int64_t *out, struct err *e)
{
	bool neg = s.len && s.p[0] == '-';
	struct str d = { s.p + neg, s.len - neg };
	uint64_t u;
	if (digits(d, &u) && u <= (uint64_t)INT64_MAX + neg) {
		int64_t v = neg ? (int64_t)(0 - u) : (int64_t)u;
		if (v >= min && v <= max) {
			*out = v;
			return 0;
		}
	}
	char want[80];
	snprintf(
	    want, sizeof want, "an integer %" PRId64 " to %" PRId64, min, max);
	return bad(e, want, s);
}

/* [-]digits[.digits][e[+-]digits], at least one digit before e. */
static bool
is_decimal(struct str s)
{
	size_t i = 0, n = 0;
	if (i < s.len && s.p[i] == '-')
		i++;
	for (; i < s.len && s.p[i] >= '0' && s.p[i] <= '9'; i++)
		n++;
	if (i < s.len && s.p[i] == '.')
		for (i++; i < s.len && s.p[i] >= '0' && s.p[i] <= '9'; i++)
			n++;
	if (!n)
		return false;
	if (i == s.len)
		return true;
	if (s.p[i] != 'e' && s.p[i] != 'E')
		return false;
	i++;
	if (i < s.len && (s.p[i] == '-' || s.p[i] == '+'))
		i++;
	size_t first = i;
	while (i < s.len && s.p[i] >= '0' && s.p[i] <= '9')
		i++;
	return i == s.len && i > first;
}

/* The decimal point of the process's locale, for strtod and printf. */
static char
locale_point(void)
{
	const struct lconv *l = localeconv();
	return l->decimal_point[0] && !l->decimal_point[1] ? l->decimal_point[0]
							   : '.';
}

int
num_f64(struct str s, double *out, struct err *e)
{
	if (str_is(s, "nan")) {
		*out = NAN;
		return 0;
	}
	if (str_is(s, "inf") || str_is(s, "-inf")) {
		*out = s.p[0] == '-' ? -INFINITY : INFINITY;
		return 0;
	}
	if (!is_decimal(s) || s.len >= F64_TEXT_MAX)
		return bad(e, "a number", s);
	char text[F64_TEXT_MAX];
	char point = locale_point();
	for (size_t i = 0; i < s.len; i++)
		text[i] = s.p[i] == '.' ? point : s.p[i];
	text[s.len] = 0;
	*out = strtod(text, NULL);
	return 0;
}

int
num_size(struct str s, uint64_t min, uint64_t max, uint64_t *out, struct err *e)
{
	static const char unit[] = "KMGT";
	uint64_t v, mul = 1;
	struct str d = s;
	const char *u = s.len ? memchr(unit, s.p[s.len - 1], 4) : NULL;
	if (u) {
		mul = UINT64_C(1) << (10 * (u - unit + 1));
		d.len--;
	}
	if (digits(d, &v) && num_mul(v, mul, &v) && v >= min && v <= max) {
		*out = v;
		return 0;
	}
	char want[100];
	snprintf(want, sizeof want,
	    "a size %" PRIu64 " to %" PRIu64 " bytes, with K, M, G or T", min,
	    max);
	return bad(e, want, s);
}

/*
 * digits[.digits] times `unit` nanoseconds, exactly; digits below one
 * nanosecond are cut. False on bad syntax or overflow.
 */
static bool
fixed(struct str s, uint64_t unit, uint64_t *out)
{
	const char *dot = s.len ? memchr(s.p, '.', s.len) : NULL;
	struct str whole = s, part = { s.p, 0 };
	if (dot) {
		whole.len = (size_t)(dot - s.p);
		part = (struct str){ dot + 1, s.len - whole.len - 1 };
		if (!part.len)
			return false;
	}
	uint64_t v, frac = 0, scale = unit;
	if (!digits(whole, &v) || !num_mul(v, unit, &v))
		return false;
	for (size_t i = 0; i < part.len; i++) {
		if (part.p[i] < '0' || part.p[i] > '9')
			return false;
		uint64_t d = (uint64_t)(part.p[i] - '0');
		/* unit may not divide by ten all the way: m, h, d. */
		frac += scale / 10 * d + scale % 10 * d / 10;
		scale /= 10;
	}
	return num_add(v, frac, out) && *out <= INT64_MAX;
}

int
num_duration(struct str s, int64_t *ns, struct err *e)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} unit[] = {
		{ "ns", 1 },
		{ "us", 1000 },
		{ "ms", 1000000 },
		{ "s", NS },
		{ "m", 60 * NS },
		{ "h", 3600 * NS },
		{ "d", 86400 * NS },
	};
	for (size_t i = 0; i < sizeof unit / sizeof *unit; i++) {
		if (!str_ends(s, unit[i].name))
			continue;
		struct str d = { s.p, s.len - strlen(unit[i].name) };
		uint64_t v;
		if (!d.len || d.p[d.len - 1] < '0' || d.p[d.len - 1] > '9')
			continue;
		if (!fixed(d, unit[i].ns, &v))
			break;
		*ns = (int64_t)v;
		return 0;
	}
	return bad(e, "a duration like 10s (ns us ms s m h d)", s);
}

static bool
two(const char *p, unsigned max, unsigned *out)
{
	if (p[0] < '0' || p[0] > '9' || p[1] < '0' || p[1] > '9')
		return false;
	*out = (unsigned)(p[0] - '0') * 10 + (unsigned)(p[1] - '0');
	return *out <= max;
}

/* Days from 1970-01-01 in the proleptic Gregorian calendar. */
static int64_t
days(int64_t y, unsigned m, unsigned d)
{
	y -= m <= 2;
	int64_t era = (y >= 0 ? y : y - 399) / 400;
	int64_t yoe = y - era * 400;
	int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

/* YYYY-MM-DDTHH:MM:SS[.frac](Z|+HH:MM|-HH:MM), RFC 3339 section 5.6. */
static bool
rfc3339(struct str s, int64_t *ns)
{
	static const unsigned len[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31,
		30, 31 };
	unsigned c, y, mo, d, h, mi, se, zh = 0, zm = 0;
	if (s.len < 20 || s.p[4] != '-' || s.p[7] != '-' || s.p[13] != ':' ||
	    s.p[16] != ':')
		return false;
	if (s.p[10] != 'T' && s.p[10] != 't' && s.p[10] != ' ')
		return false;
	if (!two(s.p, 99, &c) || !two(s.p + 2, 99, &y) ||
	    !two(s.p + 5, 12, &mo) || !two(s.p + 8, 31, &d) ||
	    !two(s.p + 11, 23, &h) || !two(s.p + 14, 59, &mi) ||
	    !two(s.p + 17, 60, &se))
		return false;
	y += 100 * c;
	bool leap = y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
	if (!mo || !d || d > len[mo - 1] || (mo == 2 && d == 29 && !leap))
		return false;

	size_t i = 19;
	uint64_t frac = 0;
	if (s.p[i] == '.') {
		size_t first = ++i;
		uint64_t scale = NS;
		for (; i < s.len && s.p[i] >= '0' && s.p[i] <= '9'; i++) {
			scale /= 10;
			frac += scale * (uint64_t)(s.p[i] - '0');
		}
		if (i == first)
			return false;
	}
	if (i + 1 == s.len && (s.p[i] == 'Z' || s.p[i] == 'z'))
		i++;
	else if (i + 6 == s.len && (s.p[i] == '+' || s.p[i] == '-') &&
		 s.p[i + 3] == ':' && two(s.p + i + 1, 23, &zh) &&
		 two(s.p + i + 4, 59, &zm))
		;
	else
		return false;
	int64_t zone = (int64_t)(zh * 3600 + zm * 60);
	if (i < s.len && s.p[i] == '-')
		zone = -zone;
	int64_t t = days(y, mo, d) * 86400 + h * 3600 + mi * 60 + se - zone;
	int64_t out;
	if (__builtin_mul_overflow(t, NS, &out) ||
	    __builtin_add_overflow(out, (int64_t)frac, &out))
		return false;
	*ns = out;
	return true;
}

int
num_time(struct str s, int64_t *ns, struct err *e)
{
	uint64_t v;
	bool neg = s.len && s.p[0] == '-';
	if (fixed((struct str){ s.p + neg, s.len - neg }, NS, &v)) {
		*ns = neg ? -(int64_t)v : (int64_t)v;
		return 0;
	}
	if (rfc3339(s, ns))
		return 0;
	return bad(
	    e, "a time: seconds since the epoch or RFC 3339 with zone", s);
}

static void
put_float(struct buf *b, double v, int min, int max, bool single)
{
	if (isnan(v)) {
		buf_puts(b, "nan");
		return;
	}
	if (isinf(v)) {
		buf_puts(b, v < 0 ? "-inf" : "inf");
		return;
	}
	char text[40];
	for (int prec = min; prec <= max; prec++) {
		snprintf(text, sizeof text, "%.*g", prec, v);
		double back = strtod(text, NULL);
		if (single ? (float)back == (float)v : back == v)
			break;
	}
	char point = locale_point();
	for (char *p = text; *p; p++)
		if (*p == point)
			*p = '.';
	buf_puts(b, text);
}

void
num_put_f64(struct buf *b, double v)
{
	put_float(b, v, DBL_DIG, DBL_DECIMAL_DIG, false);
}

void
num_put_f32(struct buf *b, float v)
{
	put_float(b, (double)v, FLT_DIG, FLT_DECIMAL_DIG, true);
}

void
num_put_u64(struct buf *b, uint64_t v)
{
	char text[20];
	size_t i = sizeof text;
	do
		text[--i] = (char)('0' + v % 10);
	while (v /= 10);
	buf_add(b, text + i, sizeof text - i);
}

void
num_put_time(struct buf *b, int64_t ns)
{
	uint64_t u = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	if (ns < 0)
		buf_putc(b, '-');
	num_put_u64(b, u / (uint64_t)NS);
	uint64_t frac = u % (uint64_t)NS;
	if (!frac)
		return;
	char text[9];
	size_t n = 0;
	for (uint64_t scale = (uint64_t)NS / 10; frac; scale /= 10) {
		text[n++] = (char)('0' + frac / scale);
		frac %= scale;
	}
	buf_putc(b, '.');
	buf_add(b, text, n);
}
