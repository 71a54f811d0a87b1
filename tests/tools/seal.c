/*
 * seal [KEY=VALUE ...] < lines > stream: a head with these keys before the
 * lines, and the end that belongs to them. For tests that write records. The
 * first may be of=TYPE, else it is of=fp.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"

int
main(int argc, char **argv)
{
	char *line = NULL;
	size_t cap = 0, records = 0;
	ssize_t len;
	struct u128 sum = { 0, 0 };
	struct buf text = { 0 };
	bool of = argc > 1 && !strncmp(argv[1], "of=", 3);
	printf("head\t%s\tversion=1\ttool=test", of ? argv[1] : "of=fp");
	for (int i = 1 + of; i < argc; i++)
		printf("\t%s", argv[i]);
	putchar('\n');
	while ((len = getline(&line, &cap, stdin)) > 0) {
		len -= line[len - 1] == '\n';
		sum = u128_add(sum, hash_xxh3(line, (size_t)len));
		records++;
		fwrite(line, 1, (size_t)len, stdout);
		putchar('\n');
	}
	u128_put(&text, sum);
	printf(
	    "end\trecords=%zu\tsum=%s\tstatus=0\n", records, buf_cstr(&text));
	buf_free(&text);
	free(line);
	return ferror(stdin) || fclose(stdout) ? 1 : 0;
}
