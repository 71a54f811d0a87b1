/* Manners at the command line: see cli.h. */
#define _GNU_SOURCE /* struct winsize */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "buf.h"
#include "esc.h"
#include "num.h"

enum { NAMES_MAX = 64 << 20 }; /* bytes in a --files0-from list */

/* Set once at the start of main, for messages. */
static const char *command = "straightedge";

/*
 * A file opened while a standard descriptor is closed would take its place and
 * receive what is meant for it. Put something there that refuses.
 */
static void
fill_standard_descriptors(void)
{
	static const int mode[] = { O_WRONLY, O_RDONLY, O_RDONLY };
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", mode[fd]);
}

void
cli_start(const char *name)
{
	command = name;
	fill_standard_descriptors();
}

const char *
cli_name(void)
{
	return command;
}

/* ---- messages ---------------------------------------------------------- */

/* Escapes what could harm a terminal; backslashes are left as they are. */
static void
put_safe(struct buf *b, const char *text)
{
	struct str rest = str_c(text), part;
	bool first = true;
	while (str_cut(&rest, '\\', &part)) {
		if (!first)
			buf_putc(b, '\\');
		first = false;
		esc_put(b, part);
	}
}

static void __attribute__((format(printf, 1, 0)))
say(const char *fmt, va_list ap)
{
	char text[2048];
	struct buf b = { 0 };
	vsnprintf(text, sizeof text, fmt, ap);
	buf_puts(&b, command);
	buf_puts(&b, ": ");
	put_safe(&b, text);
	buf_putc(&b, '\n');
	fflush(stdout);
	/* One write: lines of several processes do not mix. */
	if (!b.failed)
		fwrite(b.p, 1, b.len, stderr);
	buf_free(&b);
}

void
cli_warn(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

/* Who asked for --prom, until the metrics are written. */
static const struct cli_common *prom_wanted;

static _Noreturn void
end_without_verdict(void)
{
	if (prom_wanted)
		cli_prom(prom_wanted, NULL, NULL, NULL, STATUS_NONE, 0);
	exit(STATUS_NONE);
}

void
cli_die(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	end_without_verdict();
}

/* "LINE: reason" goes on without a blank: file:LINE: reason. */
static const char *
joint(const struct err *e)
{
	size_t n = strspn(e->msg, "0123456789");
	return n && e->msg[n] == ':' ? ":" : ": ";
}

void
cli_warn_err(const char *file, const struct err *e)
{
	cli_warn("%s%s%s", file, joint(e), e->msg);
}

void
cli_die_err(const char *file, const struct err *e)
{
	cli_die("%s%s%s", file, joint(e), e->msg);
}

void
cli_usage(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	fprintf(stderr, "usage: see %s --help\n", command);
	end_without_verdict();
}

void *
cli_alloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);
	if (!p)
		cli_die("out of memory");
	return p;
}

void *
cli_realloc(void *p, size_t n, size_t size)
{
	if (size && n > SIZE_MAX / size)
		cli_die("out of memory");
	size_t bytes = n * size;
	p = realloc(p, bytes > 0 ? bytes : 1);
	if (!p)
		cli_die("out of memory");
	return p;
}

char *
cli_escape_dup(const char *text)
{
	struct buf b = { 0 };
	put_safe(&b, text);
	if (!*buf_cstr(&b) && *text)
		cli_die("out of memory");
	return b.p;
}

uint64_t
cli_u64(const struct opt_state *s, uint64_t min, uint64_t max)
{
	uint64_t v;
	struct err e;
	if (num_u64(str_c(s->arg), min, max, &v, &e))
		cli_usage("option %s: %s", s->name, e.msg);
	return v;
}

uint64_t
cli_size(const struct opt_state *s, uint64_t min, uint64_t max)
{
	uint64_t v;
	struct err e;
	if (num_size(str_c(s->arg), min, max, &v, &e))
		cli_usage("option %s: %s", s->name, e.msg);
	return v;
}

int64_t
cli_duration(const struct opt_state *s)
{
	int64_t v;
	struct err e;
	if (num_duration(str_c(s->arg), &v, &e))
		cli_usage("option %s: %s", s->name, e.msg);
	return v;
}

/* ---- options all commands share ----------------------------------------- */

static int
one_of(const struct opt_state *s, const char *const *words, const char *list)
{
	for (int i = 0; words[i]; i++)
		if (!strcmp(s->arg, words[i]))
			return i;
	cli_usage(
	    "option %s: expected %s, found \"%s\"", s->name, list, s->arg);
}

static int64_t
time_of(const char *what, const char *text)
{
	int64_t v;
	struct err e;
	if (num_time(str_c(text), &v, &e))
		cli_usage("%s: %s", what, e.msg);
	return v;
}

bool
cli_common(struct cli_common *c, int id, const struct opt_state *s,
    const char *const *usage, const char *summary)
{
	static const char *const forms[] = { "lines", "table", "json", "tsv",
		"csv", NULL };
	static const char *const colors[] = { "never", "auto", "always", NULL };
	switch (id) {
	case 'F':
		c->how.form = one_of(s, forms,
		    "lines, table, json, tsv or "
		    "csv");
		return true;
	case OPT_TYPE:
		c->how.type = s->arg;
		return true;
	case OPT_COLUMNS:
		c->how.columns = s->arg;
		return true;
	case 'o':
		c->output = s->arg;
		return true;
	case 'z':
		c->how.gzip = true;
		return true;
	case 'q':
		c->quiet = true;
		return true;
	case 'v':
		c->verbose++;
		return true;
	case 'E':
		c->evidence = true;
		return true;
	case OPT_COLOR:
		c->color = one_of(s, colors, "auto, always or never") - 1;
		return true;
	case OPT_NOW:
		c->now = time_of(s->name, s->arg);
		c->now_given = true;
		return true;
	case OPT_STRICT:
		c->policy.strict = true;
		return true;
	case OPT_ALLOW_BAD:
		c->policy.allow_bad = cli_u64(s, 0, UINT64_MAX / 2);
		return true;
	case OPT_PARTIAL:
		c->policy.partial = true;
		return true;
	case OPT_PROM:
		c->prom = s->arg;
		prom_wanted = c;
		return true;
	case OPT_PROGRESS:
		c->progress = true;
		if (s->arg && strcmp(s->arg, "always"))
			cli_usage("option %s: expected always, found \"%s\"",
			    s->name, s->arg);
		c->progress_always = s->arg != NULL;
		return true;
	case 'h':
		opt_help(s->table, usage, summary);
		exit(cli_said());
	case 'V':
		printf("%s %s\n", command, VERSION);
		exit(cli_said());
	}
	return false;
}

bool
cli_column_odd(const struct cli_common *c, struct str *rest, struct str *name)
{
	const struct schema_type *t = schema_find(str_c(c->how.type));
	while (str_cut(rest, ',', name))
		if (!memchr(name->p, '.', name->len) && name->len &&
		    schema_key(t, *name, 0) < 0)
			return true;
	return false;
}

void
cli_columns(const struct cli_common *c,
    bool (*also)(void *user, struct str name), void *user)
{
	struct str rest = str_c(c->how.columns), name;
	while (rest.p && cli_column_odd(c, &rest, &name)) {
		struct buf b = { 0 };
		const struct schema_type *t = schema_find(str_c(c->how.type));
		if (also && also(user, name))
			continue;
		for (const struct schema_key *k = t->key; k->name; k++)
			buf_printf(&b, "%s%s", b.len ? " " : "", k->name);
		cli_usage("option --columns: %s records have no \"%.*s\", "
			  "but %s",
		    c->how.type, STR_ARG(name), buf_cstr(&b));
	}
}

void
cli_common_done(struct cli_common *c, const char *type)
{
	bool cells = c->how.form != REC_LINES && c->how.form != REC_JSON;
	if (!cells && c->how.columns)
		cli_usage("--columns goes with -F table, tsv or csv");
	if (!cells && c->how.type)
		cli_usage("--type goes with -F table, tsv or csv");
	if (c->how.type && !schema_find(str_c(c->how.type)))
		cli_usage("option --type: no record type \"%s\"", c->how.type);
	if (c->quiet && c->verbose)
		cli_usage("-q and -v exclude each other");
	if (!c->how.type)
		c->how.type = c->quiet ? "verdict" : type;
	c->how.level = c->quiet;
	if (!c->labels)
		cli_columns(c, NULL, NULL);
}

int64_t
cli_now(const struct cli_common *c)
{
	if (c->now_given)
		return c->now;
	const char *fixed = getenv("SOURCE_DATE_EPOCH");
	if (fixed && *fixed)
		return time_of("SOURCE_DATE_EPOCH", fixed);
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

size_t
cli_width(void)
{
	const char *text = getenv("COLUMNS");
	struct winsize w;
	uint64_t n;
	if (text && !num_u64(str_c(text), 1, 10000, &n, NULL))
		return (size_t)n;
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_col)
		return w.ws_col;
	return 80;
}

const char *
cli_tmpdir(void)
{
	const char *d = getenv("TMPDIR");
	return d && *d ? d : "/tmp";
}

int
cli_src_open(struct src **out, const char *path, unsigned flags, struct err *e)
{
	static bool taken;
	if (strcmp(path, "-"))
		return src_open(out, path, cli_tmpdir(), flags, e);
	if (taken)
		return err_set(
		    e, SE_EINVAL, "standard input can only be read once");
	taken = true;
	return src_open_fd(out, STDIN_FILENO, cli_tmpdir(), flags, e);
}

const char *
cli_src_name(const char *path)
{
	return strcmp(path, "-") ? path : "standard input";
}

/* ---- output ---------------------------------------------------------- */

enum { PENDING_MAX = 8 };

/*
 * Temporary files that must not outlive the command, however it ends. Written
 * by the main thread, read by the handlers below.
 */
static char *volatile pending[PENDING_MAX];
static pid_t pending_owner;

static void
remove_pending(void)
{
	/* A child between fork and exec has no part in its parent's files. */
	if (getpid() != pending_owner)
		return;
	for (int i = 0; i < PENDING_MAX; i++)
		if (pending[i])
			unlink(pending[i]);
}

/* Installed with SA_RESETHAND: the second time the signal does its work. */
static void
on_fatal_signal(int sig)
{
	remove_pending();
	raise(sig);
}

static void
watch_pending(void)
{
	static const int fatal[] = { SIGHUP, SIGINT, SIGPIPE, SIGTERM };
	if (pending_owner)
		return;
	pending_owner = getpid();
	atexit(remove_pending);
	struct sigaction old, ours = { .sa_handler = on_fatal_signal };
	sigemptyset(&ours.sa_mask);
	ours.sa_flags = (int)SA_RESETHAND | SA_NODEFER;
	for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
		if (!sigaction(fatal[i], NULL, &old) &&
		    old.sa_handler == SIG_DFL)
			sigaction(fatal[i], &ours, NULL);
}

static void
forget_pending(const char *temp)
{
	for (int i = 0; i < PENDING_MAX; i++)
		if (pending[i] == temp)
			pending[i] = NULL;
}

static char *
concat(const char *a, const char *b)
{
	size_t n = strlen(a) + strlen(b) + 1;
	char *s = cli_alloc(n, 1);
	snprintf(s, n, "%s%s", a, b);
	return s;
}

/* The mode a plain open() would have given, or that of the file replaced. */
static void
usual_mode(int fd, const struct stat *old)
{
	mode_t mask = umask(0);
	umask(mask);
	fchmod(fd, old ? old->st_mode & 0777 : 0666 & ~mask);
}

/*
 * /dev/stdout and /proc/self/fd/N name an open file, which is written, not
 * replaced; so are FIFOs and devices.
 */
static bool
written_directly(const char *path, const struct stat *st)
{
	return (st && !S_ISREG(st->st_mode)) || !strncmp(path, "/dev/", 5) ||
	       !strncmp(path, "/proc/", 6);
}

/* A new file beside the target that takes its place when complete. */
static bool
open_beside(struct cli_out *o, const struct stat *old)
{
	char *volatile *slot = pending;
	while (slot < pending + PENDING_MAX && *slot)
		slot++;
	if (slot == pending + PENDING_MAX) {
		errno = EMFILE;
		return false;
	}
	o->temp = concat(o->path, ".XXXXXX");
	watch_pending();
	o->fd = mkstemp(o->temp);
	if (o->fd < 0)
		return false;
	*slot = o->temp;
	usual_mode(o->fd, old);
	return true;
}

/* False with errno and nothing left behind. */
static bool
try_open(struct cli_out *o, const char *path, bool append)
{
	struct stat st;
	bool there = !stat(path, &st);
	o->append = append || written_directly(path, there ? &st : NULL);
	if (o->append) {
		int flags =
		    O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : 0);
		o->path = concat(path, "");
		o->fd = open(path, flags, 0666);
		return o->fd >= 0;
	}
	if (there && access(path, W_OK))
		return false;
	/* A symbolic link stays: what it points to is replaced. */
	o->path = realpath(path, NULL);
	if (!o->path && !lstat(path, &st))
		return false;
	if (!o->path)
		o->path = concat(path, "");
	return open_beside(o, there ? &st : NULL);
}

static void
forget(struct cli_out *o)
{
	free(o->temp);
	free(o->path);
	*o = (struct cli_out){ .fd = -1 };
}

void
cli_out_open(struct cli_out *o, const char *path, bool append)
{
	*o = (struct cli_out){ .fd = STDOUT_FILENO, .append = append };
	if (path && strcmp(path, "-") && !try_open(o, path, append))
		cli_die(
		    "%s: cannot open for writing: %s", path, strerror(errno));
}

const char *
cli_out_name(const struct cli_out *o)
{
	return o->path ? o->path : "standard output";
}

int
cli_out_write(const struct cli_out *o, const char *p, size_t len)
{
	while (len) {
		ssize_t n = write(o->fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			cli_warn("%s: cannot write: %s", cli_out_name(o),
			    strerror(errno));
			return -1;
		}
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int
cli_out_close(struct cli_out *o, bool keep)
{
	int r = 0;
	const char *name = cli_out_name(o);
	/* EINVAL: a file system that cannot, and has nothing to lose. */
	if (keep && o->temp && fsync(o->fd) && errno != EINVAL) {
		cli_warn("%s: cannot write: %s", name, strerror(errno));
		r = -1;
	}
	if (close(o->fd)) {
		cli_warn("%s: cannot close: %s", name, strerror(errno));
		r = -1;
	}
	if (o->temp && keep && !r && rename(o->temp, o->path)) {
		cli_warn(
		    "%s: cannot rename into place: %s", name, strerror(errno));
		r = -1;
	}
	if (o->temp && (!keep || r))
		unlink(o->temp);
	if (o->temp)
		forget_pending(o->temp);
	forget(o);
	return r;
}

int
cli_out_end(struct cli_out *o, struct rec_out *rec, const char *result,
    int status, uint64_t skipped)
{
	struct err e;
	bool none = status == STATUS_NONE;
	if (rec_out_finish(rec, none ? NULL : result, status, skipped, &e)) {
		cli_warn_err(cli_out_name(o), &e);
		status = STATUS_NONE;
	}
	rec_out_close(rec);
	return cli_out_close(o, status != STATUS_NONE) ? STATUS_NONE : status;
}

int
cli_said(void)
{
	if (!fflush(stdout) && !fclose(stdout))
		return STATUS_CLEAN;
	cli_warn("standard output: cannot write: %s", strerror(errno));
	return STATUS_NONE;
}

/* ---- metrics --------------------------------------------------------- */

/* A label value: backslash, quote and newline escaped (text format 0.0.4). */
static void
put_label(struct buf *b, const char *key, struct str value)
{
	buf_printf(b, "%s=\"", key);
	for (size_t i = 0; i < value.len; i++) {
		char c = value.p[i];
		if (c == '"' || c == '\\')
			buf_putc(b, '\\');
		if (c == '\n')
			buf_puts(b, "\\n");
		else
			buf_putc(b, c);
	}
	buf_putc(b, '"');
}

static void
put_series(struct buf *b, const char *name, struct str job)
{
	buf_printf(b, "# TYPE %s gauge\n%s{", name, name);
	put_label(b, "tool", str_c(command));
	buf_putc(b, ',');
	put_label(b, "job", job);
}

/* The name of the file, which tells one job of cron from another. */
static struct str
job_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct str name = str_c(slash ? slash + 1 : path);
	if (str_ends(name, ".prom"))
		name.len -= 5;
	return str_is(name, "-") ? STR_LIT("") : name;
}

void
cli_prom(const struct cli_common *c, const char *given, const char *result,
    const char *reason, int status, uint64_t skipped)
{
	prom_wanted = NULL;
	if (!c->prom)
		return;
	struct buf b = { 0 };
	struct str job = given ? str_c(given) : job_of(c->prom);
	put_series(&b, "straightedge_status", job);
	buf_printf(&b, "} %d\n", status);
	put_series(&b, "straightedge_result", job);
	buf_putc(&b, ',');
	put_label(&b, "result", str_c(result ? result : "none"));
	buf_putc(&b, ',');
	put_label(&b, "reason", str_c(reason ? reason : ""));
	buf_puts(&b, "} 1\n");
	put_series(&b, "straightedge_run_timestamp_seconds", job);
	buf_puts(&b, "} ");
	num_put_time(&b, cli_now(c));
	buf_putc(&b, '\n');
	put_series(&b, "straightedge_skipped_total", job);
	buf_puts(&b, "} ");
	num_put_u64(&b, skipped);
	buf_putc(&b, '\n');

	/* The verdict stands, and the exit status says it, without metrics. */
	struct cli_out o = { .fd = STDOUT_FILENO };
	if (strcmp(c->prom, "-") && !try_open(&o, c->prom, false)) {
		cli_warn("%s: cannot open for writing: %s", c->prom,
		    strerror(errno));
		forget(&o);
		buf_free(&b);
		return;
	}
	const char *p = b.p;
	size_t left = b.failed ? 0 : b.len;
	bool ok = !b.failed;
	while (left && ok) {
		ssize_t w = write(o.fd, p, left);
		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			cli_warn(
			    "%s: cannot write: %s", c->prom, strerror(errno));
		ok = w >= 0;
		p += ok ? w : 0;
		left -= ok ? (size_t)w : 0;
	}
	cli_out_close(&o, ok);
	buf_free(&b);
}

/* ---- input names -------------------------------------------------------- */

char **
cli_names(const char *path, size_t *n)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "r") : stdin;
	if (!f)
		cli_die("%s: cannot open: %s", path, strerror(errno));
	char **names = NULL;
	char *name = NULL;
	size_t cap = 0, total = 0, count = 0;
	ssize_t len;
	while ((len = getdelim(&name, &cap, 0, f)) > 0) {
		if (name[len - 1] == 0)
			len--;
		total += (size_t)len;
		if (!len)
			cli_die("%s: empty name, entry %zu", path, count + 1);
		if (total > NAMES_MAX)
			cli_die(
			    "%s: more than %d bytes of names", path, NAMES_MAX);
		names = cli_realloc(names, count + 1, sizeof *names);
		names[count++] = name;
		name = NULL;
		cap = 0;
	}
	free(name);
	if (ferror(f))
		cli_die("%s: cannot read: %s", path, strerror(errno));
	if (f != stdin)
		fclose(f);
	*n = count;
	return names;
}

void
cli_names_free(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

bool
cli_shipped(const char *whose, const char *folder, const char *name, char *path,
    size_t room)
{
	char self[2048];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	while (n > 0 && self[n - 1] != '/')
		n--;
	if (n <= 0)
		return false;
	snprintf(path, room, "%.*s../share/straightedge/%s/%s", (int)n, self,
	    folder, name);
	if (!access(path, R_OK))
		return true;
	/* Built, not installed: build/ or build/VARIANT/. */
	for (int up = 1; up <= 2; up++) {
		snprintf(path, room, "%.*s%scmd/%s/%s/%s", (int)n, self,
		    up == 1 ? "../" : "../../", whose, folder, name);
		if (!access(path, R_OK))
			return true;
	}
	return false;
}

void
cli_need_input(void)
{
	if (isatty(STDIN_FILENO))
		cli_usage("no input: name a file, or - for standard input");
}
