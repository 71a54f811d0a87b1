/* Evidence of many runs: see ledger.h. */
#define _GNU_SOURCE
#include "ledger.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "rec.h"
#include "src.h"

#define SUFFIX ".session"

/* ---- writing ------------------------------------------------------------ */

static int
paths(struct ledger_file *f, const char *dir, const char *id, struct err *e)
{
	struct buf b = { 0 };
	buf_printf(&b, "%s/.%s.tmp", dir, id);
	f->temp = strdup(buf_cstr(&b));
	b.len = 0;
	buf_printf(&b, "%s/%s" SUFFIX, dir, id);
	f->path = strdup(buf_cstr(&b));
	bool ok = !b.failed && f->temp && f->path;
	buf_free(&b);
	return ok ? 0 : err_mem(e);
}

int
ledger_begin(
    struct ledger_file *f, const char *dir, int64_t time, struct err *e)
{
	struct rec_how how = { 0 };
	struct u128 id;
	struct buf text = { 0 };
	*f = (struct ledger_file){ .fd = -1 };
	if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id)
		return err_sys(e, "no random numbers");
	if (mkdir(dir, 0777) && errno != EEXIST)
		return err_sys(e, "cannot create");
	u128_put(&text, id);
	int x = paths(f, dir, buf_cstr(&text), e);
	if (!x) {
		f->fd = open(
		    f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		x = f->fd < 0 ? err_sys(e, "cannot create a file in it")
			      : rec_out_open(&f->o, f->fd, &how, e);
	}
	if (!x) {
		rec_begin(f->o, "head");
		rec_put(f->o, "of", "ledger");
		rec_u64(f->o, "version", SCHEMA_VERSION);
		rec_put(f->o, "tool", "gpureplay " VERSION);
		rec_str(f->o, "run", buf_view(&text));
		rec_time(f->o, "time", time);
		rec_end(f->o);
	}
	buf_free(&text);
	return x;
}

int
ledger_commit(struct ledger_file *f, struct err *e)
{
	int x = f->o ? rec_out_finish(f->o, NULL, 0, 0, e) : SE_EIO;
	if (!x && fsync(f->fd))
		x = err_sys(e, "cannot write");
	if (f->fd >= 0 && close(f->fd) && !x)
		x = err_sys(e, "cannot write");
	if (!x && rename(f->temp, f->path))
		x = err_sys(e, "cannot rename into place");
	if (x && f->temp)
		unlink(f->temp);
	if (f->o)
		rec_out_close(f->o);
	free(f->temp);
	free(f->path);
	return x;
}

/* ---- reading ------------------------------------------------------------ */

/* The number a text has in a table, from 0. The text is copied once. */
static int
number(struct ledger *l, struct map *m, struct str text, size_t *out,
    struct err *e)
{
	uint64_t *slot = map_get(m, text);
	bool fresh;
	if (slot) {
		*out = (size_t)*slot - 1;
		return 0;
	}
	struct str own = arena_str(&l->arena, text);
	slot = own.p ? map_at(m, own, &fresh) : NULL;
	if (!slot)
		return err_mem(e);
	*slot = m->n;
	*out = m->n - 1;
	return 0;
}

static int
device_number(struct ledger *l, struct str id, size_t *out, struct err *e)
{
	int x = number(l, &l->ids, id, out, e);
	if (x || *out < l->ndevices)
		return x;
	struct ledger_device *p =
	    realloc(l->device, (l->ndevices + 1) * sizeof *p);
	struct str own = arena_str(&l->arena, id);
	if (!p || !own.p)
		return err_mem(e);
	l->device = p;
	p[l->ndevices++] = (struct ledger_device){
		.id = own.p, .entity = "", .seen = INT64_MIN, .reset = INT64_MIN
	};
	return 0;
}

/* One file, before it is known whether it is whole. */
struct session_file {
	struct str id;
	int64_t time;
	size_t first_row;
};

static int
note_device(struct ledger *l, size_t device, const struct rec *r, int64_t time,
    struct err *e)
{
	struct ledger_device *d = &l->device[device];
	struct str entity = rec_text_of(r, "entity");
	d->sessions++;
	if (time <= d->seen && *d->entity)
		return 0;
	struct str own = arena_str(&l->arena, entity);
	if (!own.p)
		return err_mem(e);
	d->entity = own.p;
	d->seen = time;
	return 0;
}

static int
take_row(struct ledger *l, const struct session_file *f, const struct rec *r,
    struct err *e)
{
	struct ledger_row row = { .time = f->time };
	struct str id = rec_text_of(r, "id");
	if (!id.len)
		return err_set(e, SE_EFORMAT, "a device without an id");
	int x = device_number(l, id, &row.rule.device, e);
	x = x ? x
	      : number(l, &l->workloads, rec_text_of(r, "workload"),
		    &row.rule.workload, e);
	x = x ? x
	      : number(l, &l->builds, rec_text_of(r, "build"), &row.build, e);
	x = x ? x : rec_u64_of(r, "processes", &row.rule.processes, e);
	x = x ? x : rec_u64_of(r, "k", &row.rule.k, e);
	x = x ? x : rec_u64_of(r, "failed", &row.failed, e);
	x = x ? x : rec_f64_of(r, "f", &row.rule.f, e);
	if (x)
		return x;
	if (row.rule.k > row.rule.processes || row.rule.processes >> 48 ||
	    !(row.rule.f > 0 && row.rule.f <= 1))
		return err_set(
		    e, SE_EFORMAT, "expected k of processes and 0 < f <= 1");
	row.rule.voids = str_is(rec_text_of(r, "voids"), "yes");
	row.pinned = !str_is(rec_text_of(r, "pin"), "unverified");
	if (l->nrows == LEDGER_ROWS_MAX)
		return err_set(
		    e, SE_ELIMIT, "more than %d rows", LEDGER_ROWS_MAX);
	if (l->nrows == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 256;
		struct ledger_row *p = realloc(l->row, cap * sizeof *p);
		if (!p)
			return err_mem(e);
		l->row = p;
		l->cap = cap;
	}
	l->row[l->nrows++] = row;
	return note_device(l, row.rule.device, r, f->time, e);
}

static int
take_reset(struct ledger *l, const struct session_file *f, const struct rec *r,
    struct err *e)
{
	size_t device;
	int x = device_number(l, rec_text_of(r, "id"), &device, e);
	if (!x && f->time > l->device[device].reset)
		l->device[device].reset = f->time;
	return x;
}

static int
take_head(struct ledger *l, struct session_file *f, const struct rec *r,
    struct err *e)
{
	if (!str_is(rec_text_of(r, "of"), "ledger"))
		return err_set(e, SE_EFORMAT, "is no session of a ledger");
	f->id = arena_str(&l->arena, rec_text_of(r, "run"));
	if (!f->id.len || !rec_get(r, "time"))
		return err_set(
		    e, SE_EFORMAT, "its head has no run= or no time=");
	return rec_time_of(r, "time", &f->time, e);
}

/* Two passes: first whether it is whole and new, then what it says. */
static int
read_file(struct ledger *l, struct rec_in *in, struct session_file *f,
    bool apply, struct err *e)
{
	struct rec *r = malloc(sizeof *r);
	int x = r ? 0 : err_mem(e);
	while (!x && (x = rec_in_next(in, r, e)) > 0) {
		x = 0;
		if (str_is(r->type, "head"))
			x = apply ? 0 : take_head(l, f, r, e);
		else if (apply && str_is(r->type, "row"))
			x = take_row(l, f, r, e);
		else if (apply && str_is(r->type, "reset"))
			x = take_reset(l, f, r, e);
	}
	free(r);
	const struct rec_totals *t = rec_in_totals(in);
	if (!x && (t->heads != 1 || rec_totals_state(t) != REC_COMPLETE))
		x = err_set(e, SE_ETRUNC, "is not whole");
	return x;
}

static int
pass(struct ledger *l, int dirfd, const char *name, struct session_file *f,
    bool apply, struct err *e)
{
	struct src *src;
	struct rec_in *in = NULL;
	int x = src_open_at(&src, dirfd, name, NULL, SRC_PLAIN, e);
	if (x)
		return x;
	if (src_size(src) > LEDGER_BYTES_MAX) {
		src_close(src);
		return err_set(
		    e, SE_ELIMIT, "is larger than %d bytes", LEDGER_BYTES_MAX);
	}
	x = rec_in_open(&in, src, e);
	if (!x)
		x = read_file(l, in, f, apply, e);
	if (in)
		rec_in_close(in);
	return x;
}

/* The same session may have been copied from another ledger. */
static int
is_new(
    struct ledger *l, const struct session_file *f, bool *fresh, struct err *e)
{
	uint64_t *slot = map_at(&l->seen, f->id, fresh);
	if (!slot)
		return err_mem(e);
	*slot = 1;
	return 0;
}

static int
read_session(struct ledger *l, int dirfd, const char *name, struct err *e)
{
	struct session_file f = { .first_row = l->nrows };
	bool fresh = false;
	int x = pass(l, dirfd, name, &f, false, e);
	if (!x)
		x = is_new(l, &f, &fresh, e);
	if (x || !fresh) {
		l->duplicates += !x;
		return x;
	}
	x = pass(l, dirfd, name, &f, true, e);
	if (x)
		l->nrows = f.first_row;
	else
		l->sessions++;
	return x;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names in order, so that the answer does not depend on the directory's. */
static char **
names_dup(DIR *d, size_t *n, struct err *e)
{
	char **name = NULL;
	size_t cap = 0;
	struct dirent *entry;
	*n = 0;
	while ((entry = readdir(d))) {
		struct str s = str_c(entry->d_name);
		if (*s.p == '.' || !str_ends(s, SUFFIX))
			continue;
		if (*n == LEDGER_SESSIONS_MAX) {
			err_set(e, SE_ELIMIT, "more than %d sessions",
			    LEDGER_SESSIONS_MAX);
			break;
		}
		if (*n == cap) {
			cap = cap ? cap * 2 : 64;
			name = cli_realloc(name, cap, sizeof *name);
		}
		name[*n] = strdup(entry->d_name);
		if (!name[*n])
			cli_die("out of memory");
		++*n;
	}
	sort_array(name, *n, sizeof *name, by_name);
	return name;
}

int
ledger_read(struct ledger *l, const char *dir, struct err *e)
{
	size_t n;
	struct buf path = { 0 };
	*l = (struct ledger){ 0 };
	*e = (struct err){ 0 };
	DIR *d = opendir(dir);
	if (!d)
		return err_sys(e, "cannot open");
	char **name = names_dup(d, &n, e);
	int x = e->code;
	for (size_t i = 0; i < n; i++) {
		struct err why;
		int bad = x ? 0 : read_session(l, dirfd(d), name[i], &why);
		path.len = 0;
		buf_printf(&path, "%s/%s", dir, name[i]);
		if (bad) {
			cli_warn_err(buf_cstr(&path), &why);
			l->bad++;
		}
		free(name[i]);
	}
	buf_free(&path);
	free(name);
	closedir(d);
	l->nworkloads = l->workloads.n;
	return x;
}

/* ---- judging ------------------------------------------------------------ */

static bool
is_current(const struct ledger *l, const struct ledger_row *r)
{
	return r->pinned && r->time > l->device[r->rule.device].reset;
}

int
ledger_judge(struct ledger *l, const struct rule_setup *setup, struct err *e)
{
	struct rule_row *row = calloc(l->nrows + 1, sizeof *row);
	size_t n = 0;
	l->standing = calloc(l->ndevices + 1, sizeof *l->standing);
	if (!row || !l->standing) {
		free(row);
		return err_mem(e);
	}
	for (size_t i = 0; i < l->nrows; i++) {
		const struct ledger_row *r = &l->row[i];
		/* That the program has a race is true whoever showed it. */
		if (!is_current(l, r) && !r->rule.voids)
			continue;
		row[n] = r->rule;
		if (!is_current(l, r))
			row[n].processes = row[n].k = 0;
		row[n].f = setup->ratio / (setup->ratio + 1 / r->rule.f - 1);
		n++;
	}
	int x = rule_ledger(
	    setup, row, n, l->ndevices, l->nworkloads, l->standing, e);
	free(row);
	return x;
}

size_t
ledger_find(const struct ledger *l, const char *id)
{
	uint64_t *slot = map_get(&l->ids, str_c(id));
	return slot ? (size_t)*slot - 1 : SIZE_MAX;
}

uint64_t
ledger_clean(const struct ledger *l, size_t device, const char *workload,
    const char *build)
{
	uint64_t *w = map_get(&l->workloads, str_c(workload));
	uint64_t *b = map_get(&l->builds, str_c(build));
	uint64_t n = 0;
	if (!w || !b)
		return 0;
	for (size_t i = 0; i < l->nrows; i++) {
		const struct ledger_row *r = &l->row[i];
		if (r->rule.workload != *w - 1)
			continue;
		if (r->rule.voids)
			return 0;
		if (r->rule.device != device || r->build != *b - 1 ||
		    !is_current(l, r))
			continue;
		if (r->rule.k || r->failed)
			return 0;
		n += r->rule.processes;
	}
	return n;
}

void
ledger_free(struct ledger *l)
{
	free(l->device);
	free(l->row);
	free(l->standing);
	map_free(&l->ids);
	map_free(&l->workloads);
	map_free(&l->builds);
	map_free(&l->seen);
	arena_free(&l->arena);
}
