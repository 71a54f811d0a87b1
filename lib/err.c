/* One failure, in one line: see err.h. */
#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int
err_set(struct err *e, int code, const char *fmt, ...)
{
	if (!e)
		return code;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	e->code = code;
	return code;
}

int
err_sys(struct err *e, const char *fmt, ...)
{
	int saved = errno;
	if (!e)
		return SE_EIO;
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	size_t used = n < 0 ? 0 : (size_t)n;
	if (used < sizeof e->msg)
		snprintf(e->msg + used, sizeof e->msg - used, "%s%s",
		    used ? ": " : "", strerror(saved));
	e->code = SE_EIO;
	return SE_EIO;
}

int
err_mem(struct err *e)
{
	return err_set(e, SE_ENOMEM, "out of memory");
}

int
err_prefix(struct err *e, const char *fmt, ...)
{
	if (!e)
		return SE_EINVAL;
	char old[sizeof e->msg];
	memcpy(old, e->msg, sizeof old);
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	size_t used = n < 0 ? 0 : (size_t)n;
	if (used + 3 > sizeof e->msg)
		return e->code;
	size_t room = sizeof e->msg - used - 3, len = strlen(old);
	len = len < room ? len : room;
	memcpy(e->msg + used, ": ", 2);
	memcpy(e->msg + used + 2, old, len);
	e->msg[used + 2 + len] = 0;
	return e->code;
}
