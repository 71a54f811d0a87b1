/* Prints the record types: "type key kind" a line, "!" behind required ones. */
#include <stdio.h>

#include "schema.h"

int
main(void)
{
	static const char *const kinds[] = {
		[KEY_TEXT] = "text",
		[KEY_INT] = "integer",
		[KEY_FLOAT] = "float",
		[KEY_TIME] = "time",
		[KEY_HASH] = "hash",
	};
	for (const struct schema_type *t = schema_types; t->name; t++)
		for (const struct schema_key *k = t->key; k->name; k++)
			printf("%s %s %s%s\n", t->name, k->name, kinds[k->kind],
			    k->required ? " !" : "");
	return 0;
}
