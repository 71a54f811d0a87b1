/* Where a program's fingerprints are wanted: see sig.h. */
#include "sig.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "num.h"

int
sig_open(const char *where, int *fd, struct err *e)
{
	struct str s = str_c(where);
	uint64_t n;
	if (!str_starts(s, "fd:")) {
		*fd = open(
		    where, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
		return *fd < 0 ? err_sys(e, "cannot open") : 0;
	}
	s.p += 3;
	s.len -= 3;
	if (num_u64(s, 0, INT_MAX, &n, e))
		return err_prefix(e, "descriptor");
	*fd = fcntl((int)n, F_DUPFD_CLOEXEC, 3);
	return *fd < 0 ? err_sys(e, "descriptor %d", (int)n) : 0;
}
