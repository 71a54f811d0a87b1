/*
 * Spans of distributed traces: Jaeger JSON (times in microseconds) and OTLP
 * JSON (startTimeUnixNano, endTimeUnixNano as strings). Documents are small;
 * they are read whole.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "num.h"
#include "text.h"

enum {
	DOCUMENT_MAX = 256 << 20, /* bytes */
	LEVELS = 4,               /* arrays around the spans */
};

/* One array on the way down to the spans. */
struct level {
	struct str array;
	const char *at;
	struct str object; /* the element we are in */
};

struct spans {
	struct level level[LEVELS];
	int depth;
	bool ready;
};

static int
read_all(struct reader *r, struct err *e)
{
	int n;
	while ((n = feed_more(&r->feed, e)) == FEED_MORE || n == FEED_IDLE)
		if (feed_left(&r->feed) > DOCUMENT_MAX)
			return err_set(e, SE_ELIMIT,
			    "document of more than %d bytes", DOCUMENT_MAX);
	return n;
}

static int
document(struct reader *r, struct str *doc, struct err *e)
{
	int n = read_all(r, e);
	if (n != FEED_END)
		return n;
	*doc = text_trim(
	    (struct str){ r->feed.buf + r->feed.at, feed_left(&r->feed) });
	if (!scan_valid(*doc))
		return err_set(
		    e, SE_EFORMAT, "expected one valid JSON document of spans");
	return 0;
}

static bool
descend(struct spans *s, struct str object, const char *key)
{
	struct str array = scan_get(object, key);
	if (!array.len || array.p[0] != '[' || s->depth == LEVELS)
		return false;
	s->level[s->depth++] =
	    (struct level){ .array = array, .at = array.p + 1 };
	return true;
}

/* The next object of the innermost array; leaves arrays that are through. */
static bool
advance(struct spans *s)
{
	bool string;
	while (s->depth) {
		struct level *l = &s->level[s->depth - 1];
		if (scan_element(l->array, &l->at, &l->object, &string) &&
		    l->object.len && l->object.p[0] == '{')
			return true;
		s->depth--;
	}
	return false;
}

static int
spans_open(struct reader *r, struct err *e)
{
	r->info.form = FORM_TEXT;
	r->state = calloc(1, sizeof(struct spans));
	return r->state ? 0 : err_mem(e);
}

static void
spans_close(struct reader *r)
{
	free(r->state);
}

static int
give_span(struct reader *r, struct event *ev, int64_t ts, int64_t dur,
    struct str name, struct str service, struct str trace, struct str span,
    struct str parent)
{
	if (dur < 0) {
		reader_bad(r, SE_EFORMAT, "a span ends before it begins");
		return 0;
	}
	struct buf plain = { 0 };
	scan_plain(&plain, name);
	text_slice(r, ev, ts, dur, buf_view(&plain), "span",
	    service.len ? service : STR_LIT("service"),
	    span.len ? span : STR_LIT("span"));
	render_arg(r, "trace", trace);
	render_arg(r, "span", span);
	if (parent.len)
		render_arg(r, "parent", parent);
	render_end(r, ev);
	buf_free(&plain);
	return READ_EVENT;
}

/* ---- Jaeger ---------------------------------------------------------- */

static int
jaeger_span(
    struct reader *r, struct event *ev, struct str trace, struct str span)
{
	int64_t ts, dur;
	if (!text_time(scan_get(span, "startTime"), 1000, &ts) ||
	    !text_time(scan_get(span, "duration"), 1000, &dur)) {
		reader_bad(r, SE_EFORMAT,
		    "a span without startTime and duration in microseconds");
		return 0;
	}
	struct str process = scan_get(span, "processID"), service = process;
	struct str all = scan_get(trace, "processes");
	char key[64];
	if (all.len && process.len < sizeof key) {
		memcpy(key, process.p ? process.p : "", process.len);
		key[process.len] = 0;
		struct str own = scan_get(all, key);
		if (own.len && own.p[0] == '{' &&
		    scan_get(own, "serviceName").len)
			service = scan_get(own, "serviceName");
	}
	struct str refs = scan_get(span, "references"), ref, parent = STR_NULL;
	bool string;
	const char *at = refs.p ? refs.p + 1 : NULL;
	if (refs.len && refs.p[0] == '[' &&
	    scan_element(refs, &at, &ref, &string) && ref.len &&
	    ref.p[0] == '{')
		parent = scan_get(ref, "spanID");
	return give_span(r, ev, ts, dur, scan_get(span, "operationName"),
	    service, scan_get(span, "traceID"), scan_get(span, "spanID"),
	    parent);
}

/* At the first call: reads the document and enters its list `key`. */
static int
begin(struct reader *r, const char *key, struct err *e)
{
	struct spans *s = r->state;
	struct str doc;
	if (s->ready)
		return 0;
	int n = document(r, &doc, e);
	if (n)
		return n;
	s->ready = true;
	descend(s, doc, key);
	return 0;
}

static int
jaeger_next(struct reader *r, struct event *ev, struct err *e)
{
	struct spans *s = r->state;
	int n = begin(r, "data", e);
	if (n)
		return n;
	while (advance(s)) {
		struct level *l = &s->level[s->depth - 1];
		if (s->depth == 1) {
			descend(s, l->object, "spans");
		} else if (jaeger_span(r, ev, s->level[0].object, l->object) ==
			   READ_EVENT) {
			return READ_EVENT;
		}
	}
	return READ_END;
}

static int
jaeger_probe(const char *p, size_t len)
{
	struct str head = text_trim((struct str){ p, len });
	return str_starts(head, "{") && text_find(head, "\"data\"") > 0 &&
		       (text_find(head, "\"spans\"") > 0 ||
			   text_find(head, "\"processes\"") > 0 ||
			   text_find(head, "\"traceID\"") > 0)
		   ? 80
		   : 0;
}

const struct format jaeger_format = { "jaeger", "Jaeger JSON", jaeger_probe,
	spans_open, jaeger_next, spans_close };

/* ---- OTLP ------------------------------------------------------------ */

/* The value of the attribute service.name of a resource. */
static struct str
service_of(struct str resource_spans)
{
	struct str resource = scan_get(resource_spans, "resource");
	struct str list = resource.len && resource.p[0] == '{'
			      ? scan_get(resource, "attributes")
			      : STR_NULL;
	struct str one;
	bool string;
	const char *at = list.p ? list.p + 1 : NULL;
	while (list.len && list.p[0] == '[' &&
	       scan_element(list, &at, &one, &string))
		if (one.len && one.p[0] == '{' &&
		    str_is(scan_get(one, "key"), "service.name")) {
			struct str v = scan_get(one, "value");
			return v.len && v.p[0] == '{'
				   ? scan_get(v, "stringValue")
				   : v;
		}
	return STR_NULL;
}

static int
otlp_span(struct reader *r, struct event *ev, struct str outer, struct str span)
{
	int64_t ts, end;
	if (!text_time(scan_get(span, "startTimeUnixNano"), 1, &ts) ||
	    !text_time(scan_get(span, "endTimeUnixNano"), 1, &end)) {
		reader_bad(r, SE_EFORMAT,
		    "a span without startTimeUnixNano and endTimeUnixNano");
		return 0;
	}
	return give_span(r, ev, ts, end - ts, scan_get(span, "name"),
	    service_of(outer), scan_get(span, "traceId"),
	    scan_get(span, "spanId"), scan_get(span, "parentSpanId"));
}

static int
otlp_next(struct reader *r, struct event *ev, struct err *e)
{
	struct spans *s = r->state;
	int n = begin(r, "resourceSpans", e);
	if (n)
		return n;
	while (advance(s)) {
		struct level *l = &s->level[s->depth - 1];
		if (s->depth == 1) {
			if (!descend(s, l->object, "scopeSpans"))
				descend(s, l->object,
				    "instrumentationLibrarySpans");
		} else if (s->depth == 2) {
			descend(s, l->object, "spans");
		} else if (otlp_span(r, ev, s->level[0].object, l->object) ==
			   READ_EVENT) {
			return READ_EVENT;
		}
	}
	return READ_END;
}

static int
otlp_probe(const char *p, size_t len)
{
	struct str head = text_trim((struct str){ p, len });
	return str_starts(head, "{") && text_find(head, "\"resourceSpans\"") > 0
		   ? 85
		   : 0;
}

const struct format otlp_format = { "otlp", "OTLP JSON", otlp_probe, spans_open,
	otlp_next, spans_close };
