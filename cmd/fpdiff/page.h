/*
 * --html FILE: what was found as one page that needs nothing else: no script,
 * no network, no colour. The records that are printed anyway are collected in
 * line form and become tables; their number is limited.
 */
#ifndef PAGE_H
#define PAGE_H

#include "chart.h"
#include "fpdiff.h"

enum {
	PAGE_DIFFS = 100,   /* differences of each class */
	PAGE_PREFIXES = 64, /* ranks */
};
#define PAGE_TEXT (4u << 20) /* bytes of records, but for the verdict */

/* Dies if the file cannot be written. */
struct page *page_open(const char *path);
/* Where records go; NULL: no page. */
struct rec_out *page_records(struct page *p);
/* Is there room for another difference of this class? */
bool page_has_room(struct page *p, enum diff_class class);
bool page_has_prefix_room(struct page *p);
/* The records are out of order: no difference is the first. */
void page_forget_order(struct page *p);
/*
 * Once all records are there: the file appears under its name. 0, or -1 after
 * a message.
 */
int page_write(struct page *p, const struct report *r);
/* Drops what was not written. */
void page_close(struct page *p);

#endif
