/*
 * --follow: streams that are still written. At the end of what is there a
 * reader waits, unless the stream has its end record, until more comes or a
 * signal says that it is enough.
 */
#include "follow.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct follow {
	const char *path;
	int fd;
	bool named, changed;
	const bool *closed;
	struct rec_out *out;
};

/* ---- signals ----------------------------------------------------------- */

enum { SIGNALS = 2 };
static const int asked[SIGNALS] = { SIGINT, SIGTERM };
static struct sigaction before[SIGNALS];
static volatile sig_atomic_t stopped;

/* The first time it is a question for the verdict; then it does its work. */
static void
on_signal(int sig)
{
	stopped = 1;
	for (int i = 0; i < SIGNALS; i++)
		if (asked[i] == sig)
			sigaction(sig, &before[i], NULL);
}

void
follow_start(void)
{
	struct sigaction ours = { .sa_handler = on_signal };
	sigemptyset(&ours.sa_mask);
	for (int i = 0; i < SIGNALS; i++)
		if (!sigaction(asked[i], NULL, &before[i]) &&
		    before[i].sa_handler != SIG_IGN)
			sigaction(asked[i], &ours, NULL);
}

bool
follow_stopped(void)
{
	return stopped;
}

/* ---- waiting ----------------------------------------------------------- */

/* Something else than growth: what was read is no longer there. */
static int
check_file(struct follow *f, struct err *e)
{
	struct stat open, there;
	off_t at = lseek(f->fd, 0, SEEK_CUR);
	if (fstat(f->fd, &open) || !S_ISREG(open.st_mode) || at < 0)
		return 0;
	f->changed = true;
	if (open.st_size < at)
		return err_set(e, SE_EIO,
		    "shrank to %" PRIu64 " bytes, %" PRIu64 " were read",
		    (uint64_t)open.st_size, (uint64_t)at);
	if (f->named && stat(f->path, &there))
		return err_set(
		    e, SE_EIO, "removed or renamed while it was followed");
	if (f->named &&
	    (there.st_ino != open.st_ino || there.st_dev != open.st_dev))
		return err_set(e, SE_EIO,
		    "replaced by another file while it was followed");
	f->changed = false;
	return 0;
}

/* At the end of what is there: 1 wait for more, 0 that is all, or an error. */
static int
at_end(void *user, struct err *e)
{
	struct follow *f = user;
	if (*f->closed)
		return 0;
	/* What was found should not wait with us. */
	if (rec_out_flush(f->out, e))
		cli_die("%s", e->msg);
	if (stopped)
		return err_set(e, SE_EIO, "stopped by a signal");
	int r = check_file(f, e);
	return r ? r : 1;
}

struct src *
follow_open(struct follow **follow, const char *path, const bool *closed,
    struct rec_out *out)
{
	struct err e;
	struct src *src;
	bool named = strcmp(path, "-") != 0;
	int fd = named ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	if (fd < 0)
		cli_die("%s: cannot open: %s", path, strerror(errno));
	struct follow *f = *follow = cli_alloc(1, sizeof *f);
	*f = (struct follow){ .path = path,
		.fd = fd,
		.named = named,
		.closed = closed,
		.out = out };
	if (src_open_growing(&src, fd, cli_tmpdir(), at_end, f, &e))
		cli_die_err(path, &e);
	return src;
}

bool
follow_changed(const struct follow *f)
{
	return f && f->changed;
}

void
follow_close(struct follow *f)
{
	free(f);
}
