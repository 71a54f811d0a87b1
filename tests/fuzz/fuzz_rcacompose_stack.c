/* Stack files: any bytes give a stack or a message. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../cmd/rcacompose/stack.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	struct stack *s = malloc(sizeof *s);
	struct err e = { 0 };
	if (!s)
		return 0;
	stack_init(s);
	int r =
	    stack_parse(s, "fuzz", (struct str){ (const char *)p, len }, &e);
	if (r && !e.msg[0])
		abort();
	for (size_t i = 0; !r && i < s->nagents; i++)
		if (!agent_covers(&s->agent[i], STR_LIT("link")) &&
		    !s->agent[i].kinds.n)
			abort();
	stack_free(s);
	free(s);
	return 0;
}
