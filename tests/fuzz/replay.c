/*
 * Feeds a fuzz target every file of its corpus: whole, cut at every length,
 * and with every byte changed. So the corpus is a test without a fuzzer.
 * build/replay/NAME reads tests/fuzz/corpus/NAME.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);

enum {
	FILE_MAX = 1 << 20,
	STEPS = 400, /* cuts and changes in one file, spread over its length */
};

/* A copy of the exact size, so that a sanitizer sees a read behind it. */
static void
feed(const uint8_t *p, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	if (!copy)
		exit(2);
	memcpy(copy, p, len);
	LLVMFuzzerTestOneInput(copy, len);
	free(copy);
}

static void
feed_variants(uint8_t *p, size_t len)
{
	static const uint8_t flips[] = { 0x01, 0x80, 0xff };
	size_t step = len / STEPS + 1;
	feed(p, len);
	for (size_t n = 0; n < len; n += step)
		feed(p, n);
	for (size_t i = 0; i < len; i += step) {
		uint8_t flip = flips[i / step % sizeof flips];
		p[i] ^= flip;
		feed(p, len);
		p[i] ^= flip;
	}
}

static int
feed_file(const char *dir, const char *name, uint8_t *p)
{
	char path[8192];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "rb");
	if (!f) {
		perror(path);
		return 1;
	}
	size_t len = fread(p, 1, FILE_MAX, f);
	fclose(f);
	feed_variants(p, len);
	return 0;
}

int
main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	char dir[4096];
	snprintf(dir, sizeof dir, "tests/fuzz/corpus/%s",
	    slash ? slash + 1 : argv[0]);
	DIR *d = opendir(dir);
	uint8_t *p = malloc(FILE_MAX);
	if (!d || !p) {
		fprintf(stderr, "%s: no corpus\n", dir);
		return 2;
	}
	int failed = 0, n = 0;
	struct dirent *entry;
	while ((entry = readdir(d))) {
		if (entry->d_name[0] == '.')
			continue;
		failed |= feed_file(dir, entry->d_name, p);
		n++;
	}
	closedir(d);
	free(p);
	printf("%s: %d files\n", dir, n);
	return failed || !n;
}
