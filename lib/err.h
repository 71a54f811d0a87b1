/*
 * One failure, in one line.
 *
 * Functions that can fail return 0 or one of the negative SE_E codes and
 * fill the `struct err` the caller gave, if any. The message has no newline,
 * no file name and no command name: the caller adds those once.
 */
#ifndef ERR_H
#define ERR_H

#include "straightedge.h" /* the SE_E codes */

struct err {
	int code;
	char msg[500];
};

/* Stores code and message (cut to fit) and returns code. `e` may be NULL. */
int err_set(struct err *e, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* SE_EIO with strerror(errno) after the message. */
int err_sys(struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* SE_ENOMEM with the usual text. */
int err_mem(struct err *e);

/* Puts "PREFIX: " before a message that is already there; returns its code. */
int err_prefix(struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
