/* --host: what the machine is. */
#include "fpdump.h"

void
host_dump(struct rec_out *o, const struct settings *s, struct outcome *out)
{
	(void)out;
	head_write(o, s, "set", true);
}
