/* Bytes kept in a temporary file: see spool.h. */
#include "spool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "src.h"

enum { SPOOL_BLOCK = 256 << 10 };

int
spool_temp(const char *dir, struct err *e)
{
	char name[4096];
	int n = snprintf(name, sizeof name, "%s/tracegate.XXXXXX", dir);
	if (n < 0 || (size_t)n >= sizeof name)
		return err_set(e, SE_EINVAL, "temporary directory: too long");
	int fd = mkstemp(name);
	if (fd < 0)
		return err_sys(e, "cannot make a temporary file in %s", dir);
	unlink(name);
	return fd;
}

int
spool_open(struct spool *s, const char *tmpdir, struct err *e)
{
	*s = (struct spool){ .fd = spool_temp(tmpdir, e) };
	return s->fd < 0 ? s->fd : 0;
}

int
spool_flush(struct spool *s, struct err *e)
{
	const char *p = s->pending.p;
	size_t len = s->pending.len;
	if (s->pending.failed)
		return err_mem(e);
	while (len) {
		ssize_t w = write(s->fd, p, len);
		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return err_sys(e, "cannot write a temporary file");
		p += w;
		len -= (size_t)w;
	}
	s->pending.len = 0;
	return 0;
}

int
spool_add(struct spool *s, struct str bytes, uint64_t *off, struct err *e)
{
	*off = s->len;
	if (s->len + bytes.len > SRC_SPOOL_MAX)
		return err_set(
		    e, SE_ELIMIT, "too much to keep in a temporary file");
	buf_str(&s->pending, bytes);
	s->len += bytes.len;
	return s->pending.len < SPOOL_BLOCK ? 0 : spool_flush(s, e);
}

void
spool_close(struct spool *s)
{
	if (s->fd >= 0)
		close(s->fd);
	buf_free(&s->pending);
	*s = (struct spool){ .fd = -1 };
}
