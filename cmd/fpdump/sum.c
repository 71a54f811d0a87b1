/*
 * -F sum: one `hash  file` line per file, of the file's own bytes, as
 * `xxhsum -H2` prints and `xxhsum -c` takes them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "fpdump.h"
#include "walk.h"

enum { BLOCK = 256 << 10 };

struct summer {
	struct hash *hash;
	unsigned char *block;
	struct buf line;
	struct cli_out file;
	uint64_t done, skipped;
};

static int
write_line(struct summer *m)
{
	const char *p = m->line.p;
	for (size_t left = m->line.failed ? 0 : m->line.len; left;) {
		ssize_t n = write(m->file.fd, p, left);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		p += n;
		left -= (size_t)n;
	}
	return m->line.failed ? -1 : 0;
}

static int
hash_src(struct summer *m, struct src *src, struct err *e)
{
	uint64_t off = 0;
	hash_reset(m->hash);
	for (;;) {
		size_t n;
		int r = src_read_some(src, off, m->block, BLOCK, &n, e);
		if (r || !n)
			return r;
		hash_add(m->hash, m->block, n);
		off += n;
	}
}

static void
skip(struct summer *m, const char *path, const struct err *e)
{
	m->skipped++;
	cli_warn_err(path, e);
}

static void
sum_file(struct summer *m, const char *path)
{
	struct err e;
	struct src *src;
	int r = cli_src_open(&src, path, SRC_PLAIN, &e);
	if (!r) {
		r = hash_src(m, src, &e);
		src_close(src);
	}
	/* One line is one file: the format has no escape for a newline. */
	if (!r && strchr(path, '\n'))
		r = err_set(&e, SE_EUNSUP,
		    "a name with a newline does not fit into a checksum line");
	if (r) {
		skip(m, path, &e);
		return;
	}
	m->line.len = 0;
	u128_put(&m->line, hash_value(m->hash));
	buf_puts(&m->line, "  ");
	buf_puts(&m->line, path);
	buf_putc(&m->line, '\n');
	if (write_line(m)) {
		err_sys(&e, "cannot write");
		cli_die_err(cli_out_name(&m->file), &e);
	}
	m->done++;
}

static void
sum_operand(struct summer *m, const char *operand)
{
	struct walk w = { .skip = warn_left_out };
	struct err e;
	if (!strcmp(operand, "-")) {
		sum_file(m, operand);
		return;
	}
	if (walk_add(&w, operand, &e))
		skip(m, operand, &e);
	for (size_t i = 0; i < w.n; i++)
		sum_file(m, w.file[i].path);
	m->skipped += w.skipped;
	walk_close(&w);
}

int
sum_main(const struct settings *s)
{
	struct summer m = { .hash = hash_new(), .block = malloc(BLOCK) };
	if (!m.hash || !m.block)
		cli_die("out of memory");
	cli_out_open(&m.file, s->common.output, false);
	for (size_t i = 0; i < s->noperands; i++)
		sum_operand(&m, s->operand[i]);
	if (!s->noperands)
		sum_file(&m, "-");
	hash_free(m.hash);
	free(m.block);
	buf_free(&m.line);
	const struct policy *p = &s->common.policy;
	int status = STATUS_CLEAN;
	if (m.skipped > p->allow_bad)
		status = p->strict ? STATUS_NONE : STATUS_UNKNOWN;
	if (m.skipped && !m.done)
		status = STATUS_NONE;
	if (cli_out_close(&m.file, status != STATUS_NONE))
		status = STATUS_NONE;
	cli_prom(&s->common, NULL, NULL, NULL, status, m.skipped);
	return status;
}
