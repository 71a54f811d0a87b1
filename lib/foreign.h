/*
 * Containers of other tools that are not read here, seen by their first
 * bytes. They are refused with the command that turns them into something
 * that is, so that nobody takes the digest of a container for that of what
 * is in it.
 */
#ifndef FOREIGN_H
#define FOREIGN_H

#include <stddef.h>

#include "err.h"

#define FOREIGN_HEAD 512 /* bytes that are enough to see all of them */

/* 0, or SE_EUNSUP with what it is and the command. */
int foreign_check(const void *head, size_t len, struct err *e);

#endif
