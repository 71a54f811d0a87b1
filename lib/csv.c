/* CSV and TSV through libcsv: see csv.h. */
#include "csv.h"

#include <csv.h>

void
csv_put(struct buf *b, struct str field)
{
	size_t room = csv_write2(NULL, 0, field.p, field.len, CSV_QUOTE);
	char *to = buf_room(b, room);
	if (to)
		b->len += csv_write2(to, room, field.p, field.len, CSV_QUOTE);
}
