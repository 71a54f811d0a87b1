/*
 * Prometheus: text exposition (0.0.4), the answer of its HTTP API, and
 * dcgm-exporter, which is the former with sentinels.
 *
 *   name{label="value",...} value [milliseconds]
 *
 * NaN and Inf are legal and unknown(na). An absent series is no sample, hence
 * no evidence. In the API values are strings, and `warnings` or
 * `isPartial` make every sample unknown(partial).
 */
#include "ev.h"
#include "json.h"
#include "num.h"
#include "reasons.h"

/* Values from here on say why DCGM has none (dcgm_fields.h, DCGM_INT64_BLANK
 * = 0x7ffffffffffffff0). */
static const double DCGM_BLANK = 9223372036854775792.0;

/* `value` with \\ \" \n undone; the text continues behind the quote. */
static bool
quoted(struct ev *ev, struct str *s, struct str *out)
{
	char *to = arena_alloc(ev->arena, s->len + 1);
	size_t n = 0, i = 1;
	if (!to || !s->len || s->p[0] != '"')
		return false;
	for (; i < s->len && s->p[i] != '"'; i++) {
		char c = s->p[i];
		if (c == '\\' && i + 1 < s->len) {
			c = s->p[++i];
			c = c == 'n' ? '\n' : c;
		}
		to[n++] = c;
	}
	if (i == s->len)
		return false;
	*out = (struct str){ to, n };
	s->p += i + 1;
	s->len -= i + 1;
	return true;
}

static void
skip_blanks(struct str *s)
{
	while (s->len && (s->p[0] == ' ' || s->p[0] == '\t')) {
		s->p++;
		s->len--;
	}
}

static bool
read_labels(struct ev *ev, struct str *s, struct sample *out)
{
	s->p++;
	s->len--;
	for (;;) {
		skip_blanks(s);
		if (s->len && s->p[0] == '}')
			break;
		const char *eq = s->len ? memchr(s->p, '=', s->len) : NULL;
		if (!eq)
			return false;
		struct str key =
		    ev_trim((struct str){ s->p, (size_t)(eq - s->p) });
		struct str value;
		s->len -= (size_t)(eq + 1 - s->p);
		s->p = eq + 1;
		skip_blanks(s);
		if (!quoted(ev, s, &value))
			return false;
		ev_label_str(out, key, value);
		skip_blanks(s);
		if (s->len && s->p[0] == ',') {
			s->p++;
			s->len--;
		}
	}
	s->p++;
	s->len--;
	return true;
}

static void
set_value(struct sample *s, struct str text, bool dcgm)
{
	if (str_is(text, "+Inf") || str_is(text, "NaN") ||
	    str_is(text, "-Inf") || str_is(text, "Inf")) {
		s->value = NAN;
		s->unknown = REASON_NA;
		return;
	}
	ev_value(s, text);
	if (dcgm && !s->unknown && s->value >= DCGM_BLANK)
		s->unknown = REASON_NA;
}

static bool
read_line(struct ev *ev, struct str line, bool dcgm)
{
	struct sample s;
	size_t n = 0;
	ev_begin(ev, &s);
	while (n < line.len && line.p[n] != '{' && line.p[n] != ' ' &&
	       line.p[n] != '\t')
		n++;
	s.counter = (struct str){ line.p, n };
	line.p += n;
	line.len -= n;
	skip_blanks(&line);
	if (!n || !line.len)
		return false;
	if (line.p[0] == '{' && !read_labels(ev, &line, &s))
		return false;
	struct str value, stamp, more;
	int64_t ms;
	if (!ev_word(&line, &value))
		return false;
	if (ev_word(&line, &stamp)) {
		if (num_i64(stamp, -INT64_C(9000000000000),
			INT64_C(9000000000000), &ms, NULL) ||
		    ev_word(&line, &more))
			return false;
		s.time = ms * 1000000;
	}
	set_value(&s, value, dcgm || str_starts(s.counter, "DCGM_FI_"));
	ev->take(ev, &s);
	return true;
}

static int
read_text(struct ev *ev, struct str text, bool dcgm)
{
	struct str line;
	while (text.p && str_cut(&text, '\n', &line)) {
		line = ev_trim(line);
		if (line.len && line.p[0] != '#' && !read_line(ev, line, dcgm))
			ev->bad++;
	}
	return 0;
}

int
ev_prom(struct ev *ev, struct str text, struct err *e)
{
	(void)e;
	return read_text(ev, text, false);
}

int
ev_dcgm(struct ev *ev, struct str text, struct err *e)
{
	(void)e;
	return read_text(ev, text, true);
}

/* ---- the HTTP API ---------------------------------------------------- */

/* [1435781451.781,"1"] */
static void
read_point(struct json *j, struct sample *s, bool partial)
{
	struct str v;
	int n = 0;
	if (!json_expect(j, JSON_ARRAY, &v))
		return;
	for (; json_element(j); n++) {
		enum json_type t = json_value(j, &v);
		if (n == 0 && t == JSON_NUMBER && !num_time(v, &s->time, NULL))
			continue;
		if (n == 1 && t == JSON_STRING) {
			set_value(s, v, str_starts(s->counter, "DCGM_FI_"));
			if (partial && !s->unknown)
				s->unknown = REASON_PARTIAL;
			continue;
		}
		json_fail(j, SE_EFORMAT, "expected [time, \"value\"]");
	}
}

static void
read_metric(struct json *j, struct sample *s)
{
	struct str key, value;
	if (!json_expect(j, JSON_OBJECT, &value))
		return;
	while (json_member(j, &key))
		if (json_expect(j, JSON_STRING, &value)) {
			if (str_is(key, "__name__"))
				s->counter = value;
			else
				ev_label_str(s, key, value);
		}
}

static void
read_result(struct ev *ev, struct json *j, bool partial)
{
	struct str key, v;
	struct sample s;
	ev_begin(ev, &s);
	while (json_member(j, &key)) {
		if (str_is(key, "metric")) {
			read_metric(j, &s);
		} else if (str_is(key, "value")) {
			read_point(j, &s, partial);
			ev->take(ev, &s);
		} else if (str_is(key, "values")) {
			if (!json_expect(j, JSON_ARRAY, &v))
				return;
			s.series = true;
			while (json_element(j)) {
				read_point(j, &s, partial);
				ev->take(ev, &s);
			}
		} else {
			json_skip(j);
		}
	}
}

static void
read_data(struct ev *ev, struct json *j, bool partial)
{
	struct str key, v;
	if (!json_expect(j, JSON_OBJECT, &v))
		return;
	while (json_member(j, &key))
		if (str_is(key, "result")) {
			if (!json_expect(j, JSON_ARRAY, &v))
				return;
			while (json_element(j))
				if (json_expect(j, JSON_OBJECT, &v))
					read_result(ev, j, partial);
		} else {
			json_skip(j);
		}
}

/* Warnings may stand behind the data they are about: looked for first. */
static bool
is_partial(struct ev *ev, struct str text, bool *success)
{
	struct json j;
	struct str key, v;
	bool partial = false;
	json_init(&j, text, ev->arena, 0);
	if (json_expect(&j, JSON_OBJECT, &v))
		while (json_member(&j, &key)) {
			partial |= str_is(key, "warnings");
			if (str_is(key, "status") &&
			    json_expect(&j, JSON_STRING, &v))
				*success = str_is(v, "success");
			else if (!str_is(key, "status"))
				json_skip(&j);
		}
	json_end(&j, NULL);
	return partial;
}

int
ev_prom_api(struct ev *ev, struct str text, struct err *e)
{
	struct json j;
	struct str key, v;
	bool success = false;
	bool partial = is_partial(ev, text, &success);
	if (!success)
		return err_set(e, SE_EFORMAT, "expected status \"success\"");
	json_init(&j, text, ev->arena, 0);
	json_expect(&j, JSON_OBJECT, &v);
	while (json_member(&j, &key))
		if (str_is(key, "data"))
			read_data(ev, &j, partial);
		else
			json_skip(&j);
	return json_end(&j, e);
}
