/* The switches that make frameworks and libraries reproducible. */
#ifndef SWITCHES_H
#define SWITCHES_H

#include <stddef.h>

enum switch_state {
	SWITCH_SET,      /* was unset */
	SWITCH_KEPT,     /* is already at a reproducible value */
	SWITCH_CONFLICT, /* is at another value, which is left alone */
};

struct known_switch {
	const char *name, *value;
	const char *also; /* other good values, or NULL */
	const char *for_what;
};

/* Ended by a NULL name. */
extern const struct known_switch known_switches[];

enum switch_state switch_state(const struct known_switch *s, const char *now);

#endif
