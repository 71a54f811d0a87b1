/*
 * The escapes of the line format: \t \n \r \\ and \xHH, nothing else.
 */
#ifndef ESC_H
#define ESC_H

#include "buf.h"
#include "err.h"
#include "str.h"

/*
 * Appends s so that it is safe in a record and on a terminal: backslash, TAB,
 * LF and CR by name; bytes below 0x20, code points 0x7f to 0x9f, the
 * bidirectional controls (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to
 * U+2069), U+2028, U+2029 and bytes that are not UTF-8 as \xHH.
 */
void esc_put(struct buf *b, struct str s);

/* True if esc_put would copy s as it is. */
int esc_is_plain(struct str s);

/*
 * Undoes esc_put into `to`, which has room for s.len bytes; *len gets the
 * length. SE_EFORMAT for an unknown or cut escape.
 */
int esc_undo(struct str s, char *to, size_t *len, struct err *e);

/*
 * Puts "WHAT NAME: " before a message that is already there, the name escaped
 * and cut at ESC_SHOWN bytes; returns the message's code.
 */
enum { ESC_SHOWN = 120 };
int esc_prefix(struct err *e, const char *what, struct str name);

#endif
