/* Public API: records in and out. See straightedge.h. */
#include "straightedge.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "num.h"
#include "rec.h"

struct se_reader {
	struct rec_in *in;
	struct rec rec;
	struct err err;
};

struct se_writer {
	struct rec_out *out;
};

/* ---- reading --------------------------------------------------------- */

int
se_reader_open(struct se_reader **out, const char *path)
{
	struct src *src;
	struct se_reader *r = calloc(1, sizeof *r);
	if (!r)
		return SE_ENOMEM;
	int fd = strcmp(path, "-") ? -1 : dup(STDIN_FILENO);
	int e = fd >= 0 ? src_open_fd(&src, fd, NULL, 0, &r->err)
			: src_open(&src, path, NULL, 0, &r->err);
	if (e && fd >= 0)
		close(fd);
	if (!e)
		e = rec_in_open(&r->in, src, &r->err);
	if (e) {
		free(r);
		return e;
	}
	*out = r;
	return 0;
}

int
se_reader_next(struct se_reader *r)
{
	int got = rec_in_next(r->in, &r->rec, &r->err);
	if (got != 1) {
		r->rec.n = 0;
		r->rec.type = STR_NULL;
	}
	return got;
}

static const char *
give(struct str s, size_t *len)
{
	if (len)
		*len = s.len;
	return s.p ? s.p : "";
}

const char *
se_reader_type(const struct se_reader *r, size_t *len)
{
	return give(r->rec.type, len);
}

const char *
se_reader_get(const struct se_reader *r, const char *key, size_t *len)
{
	const struct str *v = rec_get(&r->rec, key);
	return v ? give(*v, len) : NULL;
}

const char *
se_reader_key(const struct se_reader *r, unsigned i, size_t *len)
{
	return i < r->rec.n ? give(r->rec.field[i].key, len) : NULL;
}

uint64_t
se_reader_line(const struct se_reader *r)
{
	return rec_in_totals(r->in)->lines;
}

const char *
se_reader_error(const struct se_reader *r)
{
	return r->err.msg;
}

int
se_reader_state(const struct se_reader *r)
{
	return (int)rec_totals_state(rec_in_totals(r->in));
}

uint64_t
se_reader_bad(const struct se_reader *r)
{
	return rec_in_totals(r->in)->bad;
}

void
se_reader_close(struct se_reader *r)
{
	if (!r)
		return;
	rec_in_close(r->in);
	free(r);
}

/* ---- writing --------------------------------------------------------- */

int
se_writer_open(struct se_writer **out, int fd, const char *format)
{
	struct rec_how how = { 0 };
	if (format && !strcmp(format, "json"))
		how.form = REC_JSON;
	else if (format && strcmp(format, "lines"))
		return SE_EINVAL;
	struct se_writer *w = calloc(1, sizeof *w);
	if (!w)
		return SE_ENOMEM;
	int e = rec_out_open(&w->out, fd, &how, NULL);
	if (e) {
		free(w);
		return e;
	}
	*out = w;
	return 0;
}

void
se_writer_begin(struct se_writer *w, const char *type)
{
	rec_begin(w->out, type);
}

void
se_writer_text(
    struct se_writer *w, const char *key, const char *value, size_t len)
{
	rec_str(w->out, key, (struct str){ value, len });
}

void
se_writer_integer(struct se_writer *w, const char *key, int64_t value)
{
	rec_i64(w->out, key, value);
}

void
se_writer_number(struct se_writer *w, const char *key, double value)
{
	rec_f64(w->out, key, value);
}

void
se_writer_time(struct se_writer *w, const char *key, int64_t ns)
{
	rec_time(w->out, key, ns);
}

void
se_writer_end(struct se_writer *w)
{
	rec_end(w->out);
}

/* ---- events ------------------------------------------------------------- */

enum { ARG_KEY_MAX = 62 };

static bool
arg_key(const char *key)
{
	size_t n = 0;
	for (; key && key[n]; n++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWX"
			    "YZ0123456789_-.",
			key[n]))
			return false;
	return n && n <= ARG_KEY_MAX;
}

static bool
whole(const char *number)
{
	int64_t v;
	return !number ||
	       !num_i64(str_c(number), INT64_MIN, INT64_MAX, &v, NULL);
}

static void
put_if(struct rec_out *o, const char *key, const char *value)
{
	if (value)
		rec_put(o, key, value);
}

int
se_writer_event(struct se_writer *w, const struct se_event *ev)
{
	if (ev->size < sizeof *ev || !ev->name || !whole(ev->rank) ||
	    !whole(ev->step))
		return SE_EINVAL;
	for (size_t i = 0; i < ev->nargs; i++)
		if (!arg_key(ev->args[2 * i]) || !ev->args[2 * i + 1])
			return SE_EINVAL;
	struct rec_out *o = w->out;
	rec_begin(o, "ev");
	rec_time(o, "ts", ev->ts);
	if (ev->dur >= 0)
		rec_time(o, "dur", ev->dur);
	put_if(o, "host", ev->host);
	put_if(o, "rank", ev->rank);
	put_if(o, "proc", ev->proc);
	put_if(o, "thread", ev->thread);
	put_if(o, "kind", ev->kind);
	rec_put(o, "name", ev->name);
	put_if(o, "corr", ev->corr);
	put_if(o, "step", ev->step);
	put_if(o, "ph", ev->ph);
	for (size_t i = 0; i < ev->nargs; i++) {
		char key[ARG_KEY_MAX + 3] = "x.";
		size_t n = strlen(ev->args[2 * i]);
		memcpy(key + 2, ev->args[2 * i], n);
		rec_label(
		    o, (struct str){ key, n + 2 }, str_c(ev->args[2 * i + 1]));
	}
	rec_end(o);
	return 0;
}

int
se_writer_flush(struct se_writer *w)
{
	return rec_out_flush(w->out, NULL);
}

int
se_writer_close(struct se_writer *w, const char *result, int status)
{
	int e = rec_out_finish(w->out, result, status, 0, NULL);
	rec_out_close(w->out);
	free(w);
	return e;
}
