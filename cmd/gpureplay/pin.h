/* Where processes really are: affinity and open device files, by /proc. */
#ifndef PIN_H
#define PIN_H

#include <sys/types.h>

#include "child.h"

/*
 * Looks at a process, its threads and its descendants, and turns *pin to
 * PIN_VERIFIED or, for good, to PIN_ELSEWHERE. A look that sees nothing that
 * tells (no device file is open yet) leaves it alone.
 */
void pin_look(pid_t pid, int cpu, int nvidia, enum pin *pin);

/* SIGKILL for all children of this process. */
void pin_kill_children(void);

#endif
