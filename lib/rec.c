/* Reading records: see rec.h. */
#include "rec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "esc.h"
#include "num.h"

enum { READ_SIZE = 64 << 10, MESSAGE_KEY = 40 };

struct rec_in {
	struct src *src;
	struct rec_totals t;
	uint64_t off; /* source bytes read so far */
	char *block;  /* what was read and not used: block[at..len) */
	size_t at, len, cap;
	bool eof, broken;
	char *undone; /* unescaped values of the current line */
	size_t undone_cap;
	struct u128 digest; /* of the current line, if it counts in the sum */
};

/* ---- one line ---------------------------------------------------------- */

const struct str *
rec_get(const struct rec *r, const char *key)
{
	struct str k = str_c(key);
	for (size_t i = 0; i < r->n; i++)
		if (str_same(r->field[i].key, k))
			return &r->field[i].value;
	return NULL;
}

struct str
rec_text_of(const struct rec *r, const char *key)
{
	const struct str *v = rec_get(r, key);
	return v ? *v : STR_NULL;
}

int
rec_u64_of(const struct rec *r, const char *key, uint64_t *out, struct err *e)
{
	const struct str *v = rec_get(r, key);
	if (!v || !num_u64(*v, 0, UINT64_MAX, out, e))
		return 0;
	err_prefix(e, "%s", key);
	return e ? e->code = SE_EFORMAT : SE_EFORMAT;
}

int
rec_time_of(const struct rec *r, const char *key, int64_t *ns, struct err *e)
{
	const struct str *v = rec_get(r, key);
	if (!v || !num_time(*v, ns, e))
		return 0;
	err_prefix(e, "%s", key);
	return e ? e->code = SE_EFORMAT : SE_EFORMAT;
}

int
rec_f64_of(const struct rec *r, const char *key, double *out, struct err *e)
{
	const struct str *v = rec_get(r, key);
	if (!v || !num_f64(*v, out, e))
		return 0;
	err_prefix(e, "%s", key);
	return e ? e->code = SE_EFORMAT : SE_EFORMAT;
}

static bool
is_graphic(char c)
{
	return (unsigned char)c >= 0x20 && c != 0x7f && c != '=';
}

static bool
is_word(struct str s, bool key)
{
	if (!s.len || s.p[0] < 'a' || s.p[0] > 'z')
		return false;
	for (size_t i = 1; i < s.len; i++) {
		char c = s.p[i];
		if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
		    c == '_' || c == '-' || c == '.')
			continue;
		/* x.KEY comes from outside and may be anything printable. */
		if (key && s.p[0] == 'x' && s.p[1] == '.' && is_graphic(c))
			continue;
		if (key && c >= 'A' && c <= 'Z')
			continue;
		return false;
	}
	return true;
}

static int
key_error(struct err *e, const char *what, struct str key)
{
	size_t n = key.len < MESSAGE_KEY ? key.len : MESSAGE_KEY;
	return err_set(e, SE_EFORMAT, "%s \"%.*s\"", what, (int)n, key.p);
}

/*
 * Keys already seen, as a filter: a bit that was clear means a new key; a set
 * bit means a closer look. It keeps the check linear for honest lines.
 */
static bool
seen_before(struct rec *r, struct str key, uint64_t *filter)
{
	unsigned h = (unsigned)key.len * 7u + (unsigned char)key.p[0] * 31u +
		     (unsigned char)key.p[key.len - 1] * 3u +
		     (unsigned char)key.p[key.len / 2];
	uint64_t bit = UINT64_C(1) << (h & 63);
	if (!(*filter & bit)) {
		*filter |= bit;
		return false;
	}
	for (size_t i = 0; i < r->n; i++)
		if (str_same(r->field[i].key, key))
			return true;
	return false;
}

static int
check_required(const struct rec *r, struct err *e)
{
	size_t at = 0;
	for (const struct schema_key *k = r->schema->key; k->name; k++) {
		if (!k->required)
			continue;
		/* Writers keep the order: look where the last one was. */
		struct str name = str_c(k->name);
		size_t i = 0;
		while (
		    i < r->n && !str_same(r->field[(at + i) % r->n].key, name))
			i++;
		if (i == r->n)
			return err_set(e, SE_EFORMAT,
			    "%s record without %s=", r->schema->name, k->name);
		at = (at + i + 1) % r->n;
	}
	return 0;
}

/* Undoes the escapes of a word into *room, which moves on. */
static int
undo(struct str *word, char **room, struct err *e)
{
	size_t n;
	if (!word->len || !memchr(word->p, '\\', word->len))
		return 0;
	int r = esc_undo(*word, *room, &n, e);
	if (r)
		return r;
	*word = (struct str){ *room, n };
	*room += n;
	return 0;
}

int
rec_parse(struct str line, char *undone, struct rec *r, struct err *e)
{
	struct str rest = line, word;
	uint64_t filter = 0;
	r->raw = line;
	r->n = 0;
	r->schema = NULL;
	if (line.len && line.p[line.len - 1] == '\r')
		return err_set(e, SE_EFORMAT,
		    "carriage return at the end of "
		    "the line, expected LF alone");
	str_cut(&rest, '\t', &r->type);
	if (!is_word(r->type, false))
		return key_error(e,
		    r->type.len && memchr(r->type.p, ' ', r->type.len)
			? "fields are separated by TAB, found"
			: "expected a record type, found",
		    r->type);
	while (str_cut(&rest, '\t', &word)) {
		const char *eq =
		    word.len ? memchr(word.p, '=', word.len) : NULL;
		struct str key = { word.p, eq ? (size_t)(eq - word.p) : 0 };
		if (!eq || !is_word(key, true))
			return key_error(e, "expected key=value, found", word);
		if (r->n == REC_FIELDS_MAX)
			return err_set(e, SE_EFORMAT, "more than %d fields",
			    REC_FIELDS_MAX);
		struct str value = { eq + 1, word.len - key.len - 1 };
		struct str spelled = key;
		int err = undo(&key, &undone, e);
		if (!err)
			err = undo(&value, &undone, e);
		if (err) {
			err_prefix(e, "%.*s", STR_ARG(spelled));
			return err;
		}
		if (seen_before(r, key, &filter))
			return key_error(e, "duplicate key", key);
		r->field[r->n++] = (struct rec_field){ key, value };
	}
	r->schema = schema_find(r->type);
	return r->schema ? check_required(r, e) : 0;
}

static bool
is_blank(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.p[i] != ' ' && s.p[i] != '\t')
			return false;
	return true;
}

/* A line of a type we know that has a field; `line` may be cut short. */
static bool
probe_line(struct str line)
{
	struct str type;
	str_cut(&line, '\t', &type);
	return schema_find(type) && line.len && memchr(line.p, '=', line.len);
}

bool
rec_probe(const void *p, size_t len)
{
	struct str rest = { p, len }, line;
	while (rest.len && str_cut(&rest, '\n', &line))
		if (!is_blank(line) && line.p[0] != '#')
			return probe_line(line);
	return false;
}

bool
rec_probe_any(const void *p, size_t len)
{
	struct str rest = { p, len }, line;
	while (rest.len && str_cut(&rest, '\n', &line))
		if (rec_probe(line.p, line.len + (rest.p != NULL)))
			return true;
	return false;
}

/* ---- a stream ---------------------------------------------------------- */

int
rec_in_open(struct rec_in **out, struct src *src, struct err *e)
{
	struct rec_in *in = calloc(1, sizeof *in);
	if (in)
		in->block = malloc(READ_SIZE);
	if (!in || !in->block) {
		free(in);
		src_close(src);
		return err_mem(e);
	}
	in->cap = READ_SIZE;
	in->src = src;
	*out = in;
	return 0;
}

void
rec_in_close(struct rec_in *in)
{
	if (!in)
		return;
	src_close(in->src);
	free(in->block);
	free(in->undone);
	free(in);
}

/* More bytes behind block[at..len). Room for one overlong line at most. */
static int
read_more(struct rec_in *in, struct err *e)
{
	memmove(in->block, in->block + in->at, in->len - in->at);
	in->len -= in->at;
	in->at = 0;
	if (in->cap - in->len < READ_SIZE / 2) {
		char *p = realloc(in->block, in->cap + READ_SIZE);
		if (!p)
			return err_mem(e);
		in->block = p;
		in->cap += READ_SIZE;
	}
	size_t n;
	int r = src_read_next(
	    in->src, in->off, in->block + in->len, in->cap - in->len, &n, e);
	in->len += n;
	in->off += n;
	in->eof = !r && n == 0;
	return r;
}

static int
bad_line(struct rec_in *in, struct err *e)
{
	in->t.bad++;
	if (!e)
		return SE_EFORMAT;
	err_prefix(e, "%" PRIu64, in->t.lines);
	return e->code = SE_EFORMAT;
}

/* Drops an overlong line up to its LF, so that the next one can be read. */
static int
skip_line(struct rec_in *in, struct err *e)
{
	for (size_t dropped = 0;; dropped += in->len - in->at) {
		char *lf = memchr(in->block + in->at, '\n', in->len - in->at);
		in->at = lf ? (size_t)(lf + 1 - in->block) : in->len;
		if (lf || in->eof)
			break;
		int r = dropped > REC_SKIP_MAX
			    ? err_set(e, SE_ELIMIT,
				  "line %" PRIu64 " is longer than %u bytes: "
				  "no record stream",
				  in->t.lines, REC_SKIP_MAX)
			    : read_more(in, e);
		if (r) {
			in->broken = true;
			in->t.torn = true;
			return r;
		}
	}
	err_set(e, SE_EFORMAT, "line longer than %u bytes", REC_LINE_MAX);
	return bad_line(in, e);
}

/* The next line of any kind, without its LF. */
static int
next_line(struct rec_in *in, struct str *line, struct err *e)
{
	size_t looked = 0;
	for (;;) {
		char *p = in->block + in->at;
		size_t have = in->len - in->at;
		char *lf = have > looked
			       ? memchr(p + looked, '\n', have - looked)
			       : NULL;
		if (lf) {
			*line = (struct str){ p, (size_t)(lf - p) };
			in->at += line->len + 1;
			in->t.lines++;
			if (line->len <= REC_LINE_MAX)
				return 1;
			err_set(e, SE_EFORMAT, "line longer than %u bytes",
			    REC_LINE_MAX);
			return bad_line(in, e);
		}
		looked = have;
		if (have > REC_LINE_MAX) {
			in->t.lines++;
			return skip_line(in, e);
		}
		if (in->broken)
			return 0;
		if (in->eof)
			break;
		int r = read_more(in, e);
		if (!r)
			continue;
		/* The caller hears of it once; whole lines came before. */
		in->broken = true;
		in->t.torn = true;
		return r;
	}
	if (in->at == in->len)
		return 0;
	in->at = in->len;
	in->t.lines++;
	err_set(e, SE_EFORMAT, "no newline at the end: the line may be cut");
	return bad_line(in, e);
}

/* A record of a type that only programs write. */
static bool
is_recorded(struct str line)
{
	struct str type;
	str_cut(&line, '\t', &type);
	return schema_find(type) && !schema_is_typed(type);
}

int
rec_in_line(struct rec_in *in, struct str *line, struct err *e)
{
	for (;;) {
		int r = next_line(in, line, e);
		if (r != 1)
			return r;
		if (line->len && line->p[0] == '#')
			continue;
		if (is_blank(*line))
			continue;
		if (str_starts(*line, "head\t") || str_starts(*line, "end\t"))
			return 1;
		if (!in->t.recorded && !in->t.heads)
			in->t.recorded = is_recorded(*line);
		in->digest = hash_xxh3(line->p, line->len);
		in->t.records++;
		in->t.sum = u128_add(in->t.sum, in->digest);
		return 1;
	}
}

bool
rec_in_twin(struct rec_in *in, const struct rec_in *other, struct str line)
{
	/* The LF of `line` is still there: it lies in a block of `other`. */
	size_t n = line.len + 1;
	if (in->len - in->at < n || memcmp(in->block + in->at, line.p, n))
		return false;
	in->at += n;
	in->t.lines++;
	in->t.records++;
	in->digest = other->digest;
	in->t.sum = u128_add(in->t.sum, in->digest);
	return true;
}

static int
take_head(struct rec_in *in, const struct rec *r, struct err *e)
{
	uint64_t version = 0;
	int err = rec_u64_of(r, "version", &version, e);
	if (err)
		return err;
	if (version > SCHEMA_VERSION)
		return err_set(e, SE_EUNSUP,
		    "line %" PRIu64 ": stream version "
		    "%" PRIu64 ", expected at most %d",
		    in->t.lines, version, SCHEMA_VERSION);
	in->t.heads++;
	return 0;
}

static int
take_end(struct rec_in *in, const struct rec *r, struct err *e)
{
	uint64_t n = 0, status = 0, skipped = 0, lost = 0;
	struct u128 sum;
	int err = rec_u64_of(r, "records", &n, e);
	if (!err)
		err = rec_u64_of(r, "status", &status, e);
	if (!err)
		err = rec_u64_of(r, "skipped", &skipped, e);
	if (!err)
		err = rec_u64_of(r, "lost", &lost, e);
	if (err)
		return err;
	if (!u128_parse(rec_text_of(r, "sum"), &sum))
		return err_set(e, SE_EFORMAT, "sum: expected 32 hex digits");
	if (status > 3)
		return err_set(e, SE_EFORMAT, "status: expected 0 to 3");
	in->t.ends++;
	in->t.declared += n;
	in->t.declared_sum = u128_add(in->t.declared_sum, sum);
	in->t.ended[status]++;
	in->t.skipped += skipped;
	in->t.lost += lost;
	return 0;
}

int
rec_in_parse(struct rec_in *in, struct str line, struct rec *r, struct err *e)
{
	if (in->undone_cap < line.len) {
		free(in->undone);
		in->undone_cap = line.len < 4096 ? 4096 : line.len;
		in->undone = malloc(in->undone_cap);
		if (!in->undone) {
			in->undone_cap = 0;
			return err_mem(e);
		}
	}
	r->line = in->t.lines;
	int err = rec_parse(line, in->undone, r, e);
	if (!err && str_is(r->type, "head"))
		err = take_head(in, r, e);
	else if (!err && str_is(r->type, "end"))
		err = take_end(in, r, e);
	return err == SE_EFORMAT || err == SE_EINVAL ? bad_line(in, e) : err;
}

int
rec_in_next(struct rec_in *in, struct rec *r, struct err *e)
{
	struct str line;
	int got = rec_in_line(in, &line, e);
	if (got != 1)
		return got;
	int err = rec_in_parse(in, line, r, e);
	return err ? err : 1;
}

void
rec_in_bad(struct rec_in *in)
{
	in->t.bad++;
}

const struct rec_totals *
rec_in_totals(const struct rec_in *in)
{
	return &in->t;
}

static bool
is_bare(const struct rec_totals *t)
{
	return t->recorded && !t->heads && !t->ends;
}

enum rec_state
rec_totals_state(const struct rec_totals *t)
{
	if (t->torn || is_bare(t))
		return REC_FILTERED;
	if (!t->heads && !t->ends)
		return REC_TYPED;
	if (t->heads != t->ends || t->records < t->declared)
		return REC_FILTERED;
	if (t->records > t->declared || !u128_same(t->sum, t->declared_sum))
		return REC_ALTERED;
	return REC_COMPLETE;
}

void
rec_totals_add(struct rec_totals *to, const struct rec_totals *from)
{
	to->lines += from->lines;
	to->records += from->records;
	to->bad += from->bad;
	to->heads += from->heads;
	to->ends += from->ends;
	to->declared += from->declared;
	to->sum = u128_add(to->sum, from->sum);
	to->declared_sum = u128_add(to->declared_sum, from->declared_sum);
	for (int i = 0; i < 4; i++)
		to->ended[i] += from->ended[i];
	to->skipped += from->skipped;
	to->lost += from->lost;
	/* Whole streams beside a bare one do not make it whole. */
	to->torn |= from->torn || is_bare(from);
}
