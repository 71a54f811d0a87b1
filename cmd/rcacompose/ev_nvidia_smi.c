/*
 * nvidia-smi -q: sections by indentation, "name : value". GPUs are named by
 * the PCI address in their title, never by their position: one N/A must not
 * shift the rest. Counters are named by their sections, "ECC Errors/Volatile/
 * SRAM Uncorrectable Parity". Yes and No are 1 and 0; units behind a number
 * are dropped.
 */
#include "ev.h"
#include "reasons.h"

enum { DEPTH_MAX = 12 };

struct tree {
	struct str name[DEPTH_MAX];
	size_t indent[DEPTH_MAX];
	size_t depth;
};

static struct str
path_of(struct ev *ev, const struct tree *t, struct str leaf)
{
	struct str p = STR_LIT("");
	for (size_t i = 0; i < t->depth; i++)
		p = ev_fmt(ev, "%.*s%.*s/", STR_ARG(p), STR_ARG(t->name[i]));
	return ev_fmt(ev, "%.*s%.*s", STR_ARG(p), STR_ARG(leaf));
}

static void
set_value(struct sample *s, struct str v)
{
	struct str number;
	if (str_is(v, "Yes") || str_is(v, "No")) {
		s->value = str_is(v, "Yes");
		return;
	}
	if (str_is(v, "Requested functionality has been deprecated") ||
	    ev_has(v, "N/A") || str_starts(v, "[")) {
		s->unknown = REASON_NA;
		return;
	}
	ev_word(&v, &number);
	ev_value(s, number);
}

/* Words are no counters: only what begins like a number or says Yes or No. */
static bool
is_counter(struct str v)
{
	return v.len && ((v.p[0] >= '0' && v.p[0] <= '9') || v.p[0] == '-' ||
			    str_is(v, "Yes") || str_is(v, "No") ||
			    ev_has(v, "N/A") || str_starts(v, "["));
}

/* "GPU 00000000:9B:00.0" */
static struct str
gpu_title(struct str line)
{
	struct str after = ev_after(line, "GPU ");
	if (!str_starts(line, "GPU ") || after.len < 7)
		return STR_NULL;
	return memchr(after.p, ':', after.len) ? ev_trim(after) : STR_NULL;
}

int
ev_nvidia_smi(struct ev *ev, struct str text, struct err *e)
{
	struct tree t = { .depth = 0 };
	struct str line, gpu = STR_NULL;
	bool any = false;
	while (text.p && str_cut(&text, '\n', &line)) {
		struct str s = ev_trim(line);
		size_t indent = (size_t)(s.p - line.p);
		if (!s.len || s.p[0] == '=')
			continue;
		struct str title = indent ? STR_NULL : gpu_title(s);
		if (title.p) {
			gpu = title;
			any = true;
			t.depth = 0;
			continue;
		}
		if (!gpu.p)
			continue;
		while (t.depth && t.indent[t.depth - 1] >= indent)
			t.depth--;
		struct str value = ev_after(s, " : ");
		if (!value.p) {
			if (t.depth == DEPTH_MAX)
				return err_set(e, SE_ELIMIT,
				    "sections nest deeper than %d", DEPTH_MAX);
			t.name[t.depth] = s;
			t.indent[t.depth++] = indent;
			continue;
		}
		struct str name =
		    ev_trim((struct str){ s.p, s.len - value.len - 3 });
		value = ev_trim(value);
		if (!is_counter(value))
			continue;
		struct sample out;
		ev_begin(ev, &out);
		ev_label(&out, "pci", gpu);
		out.counter = path_of(ev, &t, name);
		set_value(&out, value);
		ev->take(ev, &out);
	}
	return any ? 0
		   : err_set(e, SE_EFORMAT, "expected a line \"GPU ADDRESS\"");
}
