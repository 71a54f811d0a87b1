/* Stack files: their words, who may write them, what they include. */
#include "stack_parse.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"

static struct frame *
top(struct parser *p)
{
	return &p->frame[p->depth - 1];
}

struct place
parser_here(const struct parser *p)
{
	const struct frame *f = &p->frame[p->depth - 1];
	return (struct place){ f->file, f->line };
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

int
words_split(struct stack *s, struct str text, char sep, struct words *out,
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

bool
words_have(const struct words *w, struct str name)
{
	for (size_t i = 0; i < w->n; i++)
		if (str_is(name, w->word[i]))
			return true;
	return false;
}

int
words_name(const char *what, struct str s, struct err *e)
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

int
stack_include(struct parser *p, struct err *e)
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
	return stack_statement(p, e);
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
