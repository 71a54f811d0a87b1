/* Stack files: see stack.h and straightedge-stack(5). */
#include "stack.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "num.h"

static const int64_t SECOND = 1000000000;

/* Statements that may stand only once in a stack. */
enum { ONCE_WINDOW, ONCE_SCOPE, ONCE_RIVALS, ONCE_COVERAGE };

/* A file that is being read. */
struct frame {
	const char *file;
	struct str rest;
	unsigned line, statements;
	int fd; /* kept to ask who may write it; -1: a text */
};

struct parser {
	struct stack *s;
	struct frame frame[STACK_DEPTH_MAX];
	size_t depth;
	struct str word[STACK_WORDS_MAX]; /* of the current line */
	size_t n;
};

static struct frame *
top(struct parser *p)
{
	return &p->frame[p->depth - 1];
}

void
stack_init(struct stack *s)
{
	*s = (struct stack){
		.nsections = 1,
		.lead = 60 * SECOND,
		.lag = 60 * SECOND,
		.skew = 10 * SECOND,
		.coverage = 1,
		.min_flows = 1,
	};
	s->now = &s->section[0];
}

void
stack_free(struct stack *s)
{
	arena_free(&s->arena);
}

/* ---- words ----------------------------------------------------------- */

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/*
 * A word ends at a blank outside double quotes; the quotes go, what they held
 * stays. There is no escape: a quote cannot stand inside quotes.
 */
static int
cut_word(struct parser *p, struct str *rest, struct err *e)
{
	char *to = arena_alloc(&p->s->arena, rest->len + 1);
	size_t n = 0, i = 0;
	bool quoted = false;
	if (!to)
		return err_mem(e);
	for (; i < rest->len && (quoted || !is_blank(rest->p[i])); i++) {
		if (rest->p[i] == '"')
			quoted = !quoted;
		else
			to[n++] = rest->p[i];
	}
	if (quoted)
		return err_set(e, SE_EFORMAT, "quote without its end");
	if (p->n == STACK_WORDS_MAX)
		return err_set(e, SE_ELIMIT, "more than %d words on a line",
		    STACK_WORDS_MAX);
	p->word[p->n++] = (struct str){ to, n };
	rest->p += i;
	rest->len -= i;
	return 0;
}

static int
cut_words(struct parser *p, struct str line, struct err *e)
{
	p->n = 0;
	if (line.len && line.p[line.len - 1] == '\r')
		line.len--;
	for (size_t i = 0; i < line.len; i++)
		if ((unsigned char)line.p[i] < 0x20 && line.p[i] != '\t')
			return err_set(e, SE_EFORMAT,
			    "control byte 0x%02x in column %zu",
			    (unsigned char)line.p[i], i + 1);
	for (;;) {
		while (line.len && is_blank(line.p[0])) {
			line.p++;
			line.len--;
		}
		if (!line.len || line.p[0] == '#')
			return 0;
		int r = cut_word(p, &line, e);
		if (r)
			return r;
	}
}

/* Splits at blanks into words that a program can be given. */
static int
split(struct stack *s, struct str text, char sep, struct words *out,
    struct err *e)
{
	struct str rest = text, w;
	out->n = 0;
	out->word =
	    arena_array(&s->arena, STACK_WORDS_MAX + 1, sizeof *out->word);
	if (!out->word)
		return err_mem(e);
	while (str_cut(&rest, sep, &w)) {
		if (!w.len && sep == ' ')
			continue;
		if (!w.len)
			return err_set(e, SE_EFORMAT, "empty name in a list");
		if (out->n == STACK_WORDS_MAX)
			return err_set(e, SE_ELIMIT, "more than %d words",
			    STACK_WORDS_MAX);
		w = arena_str(&s->arena, w);
		if (!w.p)
			return err_mem(e);
		out->word[out->n++] = w.p;
	}
	return 0;
}

static bool
words_have(const struct words *w, struct str name)
{
	for (size_t i = 0; i < w->n; i++)
		if (str_is(name, w->word[i]))
			return true;
	return false;
}

/* Letters, digits and -_. : what may stand in a record without escapes. */
static int
check_name(const char *what, struct str s, struct err *e)
{
	bool ok = s.len && s.len <= 64;
	for (size_t i = 0; ok && i < s.len; i++)
		ok = isalnum((unsigned char)s.p[i]) || s.p[i] == '-' ||
		     s.p[i] == '_' || s.p[i] == '.';
	if (ok)
		return 0;
	return err_set(e, SE_EFORMAT,
	    "%s \"%.*s\": expected 1 to 64 letters, digits and -_.", what,
	    s.len > 70 ? 70 : (int)s.len, s.p ? s.p : "");
}

static struct place
here(struct parser *p)
{
	return (struct place){ top(p)->file, top(p)->line };
}

/* ---- agent NAME key=value ... -------------------------------------------- */

static int
set_exec(struct stack *s, struct agent *a, struct str v, struct err *e)
{
	int r = split(s, v, ' ', &a->exec, e);
	if (!r && !a->exec.n)
		return err_set(e, SE_EFORMAT, "expected a program");
	s->executes = true;
	return r;
}

static int
set_file(struct stack *s, struct agent *a, struct str v, struct err *e)
{
	(void)s;
	a->file = v.p;
	return v.len ? 0 : err_set(e, SE_EFORMAT, "expected a file");
}

static int
set_fd(struct stack *s, struct agent *a, struct str v, struct err *e)
{
	uint64_t n;
	(void)s;
	int r = num_u64(v, 0, 1023, &n, e);
	if (!r)
		a->fd = (int)n;
	return r;
}

static int
set_duration(struct str v, int64_t *out, struct err *e)
{
	int r = num_duration(v, out, e);
	if (!r && *out <= 0)
		return err_set(e, SE_EFORMAT, "expected more than nothing");
	return r;
}

static int
set_timeout(struct stack *s, struct agent *a, struct str v, struct err *e)
{
	(void)s;
	return set_duration(v, &a->timeout, e);
}

static int
set_ttl(struct stack *s, struct agent *a, struct str v, struct err *e)
{
	(void)s;
	return set_duration(v, &a->ttl, e);
}

static int
set_heartbeat(struct stack *s, struct agent *a, struct str v, struct err *e)
{
	(void)s;
	return set_duration(v, &a->heartbeat, e);
}

static int
set_absent(struct stack *s, struct agent *a, struct str v, struct err *e)
{
	(void)s;
	a->absent_healthy = str_is(v, "healthy");
	if (a->absent_healthy || str_is(v, "unknown"))
		return 0;
	return err_set(e, SE_EFORMAT, "expected healthy or unknown");
}

static int
set_kinds(struct stack *s, struct agent *a, struct str v, struct err *e)
{
	return split(s, v, ',', &a->kinds, e);
}

static int
set_max_bound(struct stack *s, struct agent *a, struct str v, struct err *e)
{
	(void)s;
	int r = num_f64(v, &a->max_bound, e);
	if (!r && !(a->max_bound > 0 && a->max_bound <= 1))
		return err_set(
		    e, SE_EFORMAT, "expected a rate above 0 up to 1");
	return r;
}

static const struct {
	const char *name;
	int (*set)(struct stack *, struct agent *, struct str, struct err *);
} agent_keys[] = {
	{ "exec", set_exec },
	{ "file", set_file },
	{ "fd", set_fd },
	{ "timeout", set_timeout },
	{ "ttl", set_ttl },
	{ "absent", set_absent },
	{ "heartbeat", set_heartbeat },
	{ "kinds", set_kinds },
	{ "max-bound", set_max_bound },
};

enum { AGENT_KEYS = sizeof agent_keys / sizeof *agent_keys };

static int
agent_key(struct parser *p, struct agent *a, struct str word, unsigned *seen,
    struct err *e)
{
	struct str v = word, key;
	str_cut(&v, '=', &key);
	for (size_t i = 0; i < AGENT_KEYS; i++) {
		if (!v.p || !str_is(key, agent_keys[i].name))
			continue;
		if (*seen & 1u << i)
			return err_set(
			    e, SE_EFORMAT, "%s= twice", agent_keys[i].name);
		*seen |= 1u << i;
		if (!agent_keys[i].set(p->s, a, v, e))
			return 0;
		err_prefix(e, "%s=", agent_keys[i].name);
		return SE_EFORMAT;
	}
	return err_set(e, SE_EFORMAT, "unknown word \"%.*s\" for an agent",
	    word.len > 60 ? 60 : (int)word.len, word.p);
}

static int
check_agent(const struct agent *a, struct err *e)
{
	int ways = (a->exec.n > 0) + (a->file != NULL) + (a->fd >= 0);
	if (ways > 1)
		return err_set(e, SE_EFORMAT,
		    "agent %.*s: exec=, file= and fd= exclude each other",
		    STR_ARG(a->name));
	if (a->heartbeat && !a->absent_healthy)
		return err_set(e, SE_EFORMAT,
		    "agent %.*s: heartbeat= goes with absent=healthy",
		    STR_ARG(a->name));
	return 0;
}

static int
do_agent(struct parser *p, struct err *e)
{
	struct stack *s = p->s;
	if (p->n < 2)
		return err_set(e, SE_EFORMAT, "expected agent NAME key=value");
	int r = check_name("agent", p->word[1], e);
	if (r)
		return r;
	if (str_is(p->word[1], "rcacompose"))
		return err_set(e, SE_EFORMAT,
		    "agent rcacompose: own verdicts are no evidence");
	if (stack_agent(s, p->word[1]) >= 0)
		return err_set(
		    e, SE_EFORMAT, "agent %.*s twice", STR_ARG(p->word[1]));
	if (s->nagents == STACK_AGENTS_MAX)
		return err_set(
		    e, SE_ELIMIT, "more than %d agents", STACK_AGENTS_MAX);
	struct agent *a = &s->agent[s->nagents++];
	*a = (struct agent){ .name = p->word[1],
		.fd = -1,
		.timeout = 10 * SECOND,
		.max_bound = NAN,
		.at = here(p) };
	unsigned seen = 0;
	for (size_t i = 2; i < p->n && !r; i++)
		r = agent_key(p, a, p->word[i], &seen, e);
	return r ? r : check_agent(a, e);
}

/* ---- sections ----------------------------------------------------------- */

static int
do_kind(struct parser *p, struct err *e)
{
	struct stack *s = p->s;
	if (p->n < 2)
		return err_set(e, SE_EFORMAT, "expected kind NAME ...");
	if (s->nsections == STACK_SECTIONS_MAX)
		return err_set(e, SE_ELIMIT, "more than %d kind lines",
		    STACK_SECTIONS_MAX - 1);
	struct section *new = &s->section[s->nsections];
	new->at = here(p);
	new->kinds.word = arena_array(&s->arena, p->n, sizeof *new->kinds.word);
	if (!new->kinds.word)
		return err_mem(e);
	for (size_t i = 1; i < p->n; i++) {
		int r = check_name("kind", p->word[i], e);
		if (r)
			return r;
		for (size_t k = 1; k <= s->nsections; k++)
			if (words_have(&s->section[k].kinds, p->word[i]))
				return err_set(e, SE_EFORMAT, "kind %.*s twice",
				    STR_ARG(p->word[i]));
		new->kinds.word[new->kinds.n++] = p->word[i].p;
	}
	s->nsections++;
	s->now = new;
	return 0;
}

static int
find_agent(struct parser *p, size_t *at, struct err *e)
{
	if (p->n != 2)
		return err_set(e, SE_EFORMAT,
		    "expected %.*s and one agent, found %zu words",
		    STR_ARG(p->word[0]), p->n);
	int i = stack_agent(p->s, p->word[1]);
	if (i < 0)
		return err_set(e, SE_EFORMAT,
		    "agent \"%.*s\" is not declared above",
		    p->word[1].len > 64 ? 64 : (int)p->word[1].len,
		    p->word[1].p);
	p->s->agent[i].used = true;
	*at = (size_t)i;
	return 0;
}

static int
add_item(struct parser *p, enum role role, struct err *e)
{
	struct section *now = p->s->now;
	size_t agent;
	int r = find_agent(p, &agent, e);
	if (r)
		return r;
	for (size_t i = 0; i < now->n; i++)
		if (now->item[i].agent == agent)
			return err_set(e, SE_EFORMAT,
			    "agent %.*s twice for one kind, first in line %u",
			    STR_ARG(p->word[1]), now->item[i].at.line);
	if (now->n == VOTES_MAX)
		return err_set(
		    e, SE_ELIMIT, "more than %d lines for one kind", VOTES_MAX);
	now->item[now->n++] = (struct item){ role, agent, here(p) };
	return 0;
}

static int
do_requisite(struct parser *p, struct err *e)
{
	return add_item(p, ROLE_REQUISITE, e);
}

static int
do_required(struct parser *p, struct err *e)
{
	return add_item(p, ROLE_REQUIRED, e);
}

static int
do_sufficient(struct parser *p, struct err *e)
{
	return add_item(p, ROLE_SUFFICIENT, e);
}

static int
do_optional(struct parser *p, struct err *e)
{
	return add_item(p, ROLE_OPTIONAL, e);
}

static int
do_quorum(struct parser *p, struct err *e)
{
	uint64_t k;
	if (p->n != 2)
		return err_set(e, SE_EFORMAT, "expected quorum K");
	if (p->s->now->quorum)
		return err_set(e, SE_EFORMAT, "quorum twice for one kind");
	int r = num_u64(p->word[1], 1, VOTES_MAX, &k, e);
	if (!r)
		p->s->now->quorum = (unsigned)k;
	return r;
}

static int
do_symptom(struct parser *p, struct err *e)
{
	size_t agent;
	int r = find_agent(p, &agent, e);
	if (r)
		return r;
	for (size_t i = 0; i < p->s->nsymptoms; i++)
		if (p->s->symptom[i] == agent)
			return err_set(e, SE_EFORMAT, "symptom %.*s twice",
			    STR_ARG(p->word[1]));
	p->s->symptom[p->s->nsymptoms++] = agent;
	return 0;
}

/* ---- settings ----------------------------------------------------------- */

static int
only_once(struct parser *p, unsigned which, struct err *e)
{
	struct place *first = &p->s->once[which];
	if (p->s->seen & 1u << which)
		return err_set(e, SE_EFORMAT, "%.*s again, first in %s:%u",
		    STR_ARG(p->word[0]), first->file, first->line);
	p->s->seen |= 1u << which;
	*first = here(p);
	return 0;
}

static int
do_window(struct parser *p, struct err *e)
{
	int r = only_once(p, ONCE_WINDOW, e);
	for (size_t i = 1; i < p->n && !r; i++) {
		struct str v = p->word[i], key;
		str_cut(&v, '=', &key);
		int64_t *to = !v.p                  ? NULL
			      : str_is(key, "lead") ? &p->s->lead
			      : str_is(key, "lag")  ? &p->s->lag
			      : str_is(key, "skew") ? &p->s->skew
						    : NULL;
		if (!to)
			return err_set(e, SE_EFORMAT,
			    "expected lead=, lag= or skew=, found \"%.*s\"",
			    STR_ARG(p->word[i]));
		r = num_duration(v, to, e);
	}
	return r || p->n > 1
		   ? r
		   : err_set(e, SE_EFORMAT, "expected lead=, lag= or skew=");
}

static int
do_scope(struct parser *p, struct err *e)
{
	static const char *const word[] = { "attached", "paths", "all" };
	int r = only_once(p, ONCE_SCOPE, e);
	if (r)
		return r;
	size_t i = 0;
	while (p->n > 1 && i < 3 && !str_is(p->word[1], word[i]))
		i++;
	if (p->n < 2 || i == 3)
		return err_set(
		    e, SE_EFORMAT, "expected scope attached, paths or all");
	p->s->scope = (enum scope_rule)i;
	if (p->n == 2)
		return 0;
	struct str v = p->word[2], key;
	uint64_t n;
	str_cut(&v, '=', &key);
	if (p->n != 3 || !v.p || !str_is(key, "min-flows"))
		return err_set(e, SE_EFORMAT, "expected min-flows=N");
	r = num_u64(v, 1, 1000000, &n, e);
	if (!r)
		p->s->min_flows = (unsigned)n;
	return r;
}

static int
do_rivals(struct parser *p, struct err *e)
{
	int r = only_once(p, ONCE_RIVALS, e);
	if (r)
		return r;
	p->s->rivals_allowed = p->n == 2 && str_is(p->word[1], "allow");
	if (p->s->rivals_allowed || (p->n == 2 && str_is(p->word[1], "refuse")))
		return 0;
	return err_set(e, SE_EFORMAT, "expected rivals allow or rivals refuse");
}

static int
do_coverage(struct parser *p, struct err *e)
{
	int r = only_once(p, ONCE_COVERAGE, e);
	if (r)
		return r;
	if (p->n != 2)
		return err_set(e, SE_EFORMAT, "expected innocent-coverage C");
	r = num_f64(p->word[1], &p->s->coverage, e);
	if (!r && !(p->s->coverage > 0 && p->s->coverage <= 1))
		return err_set(e, SE_EFORMAT,
		    "innocent-coverage: expected a share above 0 up to 1");
	return r;
}

/* ---- files ----------------------------------------------------------- */

int
stack_trust(int fd, const char *what, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st))
		return err_sys(e, "cannot examine");
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return err_set(e, SE_EINVAL,
		    "%s belongs to user %u, expected the caller or root", what,
		    (unsigned)st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, SE_EINVAL,
		    "%s is writable by others (mode %03o)", what,
		    (unsigned)(st.st_mode & 0777));
	return 0;
}

/* Reads at most STACK_SIZE_MAX bytes of a regular file. */
static int
slurp(struct stack *s, int fd, struct str *out, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st))
		return err_sys(e, "cannot examine");
	if (!S_ISREG(st.st_mode))
		return err_set(e, SE_EINVAL, "expected a regular file");
	if (st.st_size > STACK_SIZE_MAX)
		return err_set(
		    e, SE_ELIMIT, "larger than %d bytes", STACK_SIZE_MAX);
	char *p = arena_alloc(&s->arena, (size_t)st.st_size + 1);
	if (!p)
		return err_mem(e);
	size_t n = 0;
	while (n < (size_t)st.st_size) {
		ssize_t got = read(fd, p + n, (size_t)st.st_size - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, "cannot read");
		if (!got)
			break;
		n += (size_t)got;
	}
	*out = (struct str){ p, n };
	return 0;
}

/* "DIR of `from`/path", or path as it is. */
static const char *
beside(struct stack *s, const char *from, struct str path)
{
	const char *slash = strrchr(from, '/');
	if (!path.len || path.p[0] == '/' || !slash)
		return arena_str(&s->arena, path).p;
	size_t dir = (size_t)(slash - from) + 1;
	char *p = arena_alloc(&s->arena, dir + path.len + 1);
	if (!p)
		return NULL;
	memcpy(p, from, dir);
	memcpy(p + dir, path.p, path.len);
	return p;
}

/* The text is read when the parser comes back to its loop. */
static int
push_file(struct parser *p, const char *path, struct err *e)
{
	struct str text;
	if (p->depth == STACK_DEPTH_MAX)
		return err_set(e, SE_ELIMIT, "includes nest deeper than %d",
		    STACK_DEPTH_MAX);
	for (size_t i = 0; i < p->depth; i++)
		if (!strcmp(p->frame[i].file, path))
			return err_set(e, SE_EFORMAT, "it includes itself");
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return err_sys(e, "cannot open");
	int r = slurp(p->s, fd, &text, e);
	if (!r)
		p->frame[p->depth++] =
		    (struct frame){ .file = path, .rest = text, .fd = fd };
	else
		close(fd);
	return r;
}

static int
do_include(struct parser *p, struct err *e)
{
	if (p->n != 2)
		return err_set(e, SE_EFORMAT, "expected include PATH");
	const char *path = beside(p->s, top(p)->file, p->word[1]);
	if (!path)
		return err_mem(e);
	int r = push_file(p, path, e);
	if (r)
		err_prefix(e, "%s", path);
	return r;
}

static const struct {
	const char *word;
	int (*parse)(struct parser *, struct err *);
} statements[] = {
	{ "agent", do_agent },
	{ "kind", do_kind },
	{ "requisite", do_requisite },
	{ "required", do_required },
	{ "sufficient", do_sufficient },
	{ "optional", do_optional },
	{ "quorum", do_quorum },
	{ "symptom", do_symptom },
	{ "window", do_window },
	{ "scope", do_scope },
	{ "rivals", do_rivals },
	{ "innocent-coverage", do_coverage },
	{ "include", do_include },
};

static int
do_statement(struct parser *p, struct err *e)
{
	for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
		if (str_is(p->word[0], statements[i].word))
			return statements[i].parse(p, e);
	return err_set(e, SE_EFORMAT, "unknown statement \"%.*s\"",
	    p->word[0].len > 60 ? 60 : (int)p->word[0].len, p->word[0].p);
}

/* The first statement: `stack 1`. */
static int
check_version(const struct parser *p, struct err *e)
{
	if (p->n == 2 && str_is(p->word[0], "stack") && str_is(p->word[1], "1"))
		return 0;
	return err_set(e, SE_EFORMAT, "expected \"stack 1\" as first line");
}

static int
do_line(struct parser *p, struct str line, struct err *e)
{
	struct frame *f = top(p);
	f->line++;
	int r = cut_words(p, line, e);
	if (r || !p->n)
		return r;
	if (!f->statements++)
		return check_version(p, e);
	return do_statement(p, e);
}

/* A file ended: it had something to say, and may be trusted with it. */
static int
end_file(struct parser *p, struct err *e)
{
	struct frame *f = top(p);
	if (f->statements < 2)
		return err_set(e, SE_EFORMAT,
		    f->statements ? "nothing in it"
				  : "expected \"stack 1\" as first line");
	if (p->s->executes && f->fd >= 0)
		return stack_trust(f->fd, "a stack that runs programs", e);
	return 0;
}

/* "LINE: reason", with the way through the includes before it. */
static void
add_way(const struct parser *p, struct err *e)
{
	struct err old = *e;
	struct buf b = { 0 };
	for (size_t i = 0; i < p->depth; i++)
		buf_printf(&b, "%s%s%u: ", i ? p->frame[i].file : "",
		    i ? ":" : "", p->frame[i].line);
	err_set(e, old.code, "%s%s", buf_cstr(&b), old.msg);
	buf_free(&b);
}

static int
parse(struct parser *p, struct err *e)
{
	int r = 0;
	while (p->depth && !r) {
		struct frame *f = top(p);
		struct str line;
		if (f->rest.len && str_cut(&f->rest, '\n', &line)) {
			r = do_line(p, line, e);
			continue;
		}
		r = end_file(p, e);
		if (r)
			continue;
		if (f->fd >= 0)
			close(f->fd);
		p->depth--;
	}
	if (r)
		add_way(p, e);
	for (; p->depth; p->depth--)
		if (top(p)->fd >= 0)
			close(top(p)->fd);
	return r;
}

int
stack_parse(struct stack *s, const char *name, struct str text, struct err *e)
{
	struct parser p = { .s = s, .depth = 1 };
	p.frame[0] = (struct frame){ .file = name, .rest = text, .fd = -1 };
	return parse(&p, e);
}

int
stack_read(struct stack *s, const char *path, struct err *e)
{
	struct parser p = { .s = s };
	const char *kept = arena_str(&s->arena, str_c(path)).p;
	if (!kept)
		return err_mem(e);
	int r = push_file(&p, kept, e);
	return r ? r : parse(&p, e);
}

/* ---- questions ----------------------------------------------------------- */

int
stack_agent(const struct stack *s, struct str name)
{
	for (size_t i = 0; i < s->nagents; i++)
		if (str_same(s->agent[i].name, name))
			return (int)i;
	return -1;
}

const struct section *
stack_section(const struct stack *s, struct str kind)
{
	for (size_t i = 1; i < s->nsections; i++)
		if (words_have(&s->section[i].kinds, kind))
			return &s->section[i];
	return &s->section[0];
}

bool
agent_covers(const struct agent *a, struct str kind)
{
	return !a->kinds.n || words_have(&a->kinds, kind);
}
