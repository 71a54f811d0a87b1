/*
 * ELF: this very program read by the reader, then cut at every length and
 * damaged in every header byte; a small made-up file with known contents.
 */
#include "test.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "elf.h"

int elf_test_marker(int x);

/* A function whose symbol, size and address the reader must find. */
__attribute__((noinline)) int
elf_test_marker(int x)
{
	return x * 3 + 1;
}

static unsigned char *
whole_file(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		return NULL;
	size_t cap = 16u << 20;
	unsigned char *p = malloc(cap);
	*len = p ? fread(p, 1, cap, f) : 0;
	fclose(f);
	return p;
}

/* Asks for everything; the sum keeps the calls alive. */
static uint64_t
walk(const unsigned char *p, size_t len)
{
	struct elf f;
	struct elf_section s;
	struct elf_segment g;
	struct elf_symbol y;
	struct str d;
	struct err e;
	uint64_t sum = 0, a, b;
	if (elf_open(&f, p, len, &e))
		return 0;
	for (unsigned i = 0; i < f.phnum; i++)
		sum += !elf_segment(&f, i, &g, &e);
	for (unsigned i = 0; i < f.shnum; i++) {
		if (elf_section(&f, i, &s, &e))
			continue;
		for (size_t k = 0; s.type == ELF_SYMTAB && k < elf_symbols(&s);
		     k += 7)
			sum += !elf_symbol(&f, &s, k, &y, &e);
		for (size_t k = 0; s.type == ELF_RELA && k < elf_relas(&s); k++)
			sum += (uint64_t)elf_rela(&f, &s, k, &a, &b);
	}
	sum += (uint64_t)(elf_note(&f, "GNU", 3, &d, &e) > 0);
	sum += (uint64_t)(elf_needed(&f, 0, &d, &e) > 0);
	return sum + (uint64_t)(elf_offset(&f, f.entry, &a, &b, &e) > 0);
}

static void
test_self(const unsigned char *p, size_t len)
{
	struct elf f;
	struct elf_section s;
	struct elf_symbol y = { 0 };
	struct str d;
	struct err e;
	CHECK(!elf_open(&f, p, len, &e));
	CHECK(f.type == ELF_DYN || f.type == ELF_EXEC);
	CHECK(elf_find(&f, ".symtab", &s, &e) == 1 && s.type == ELF_SYMTAB);
	bool found = false;
	for (size_t i = 0; i < elf_symbols(&s) && !found; i++) {
		CHECK(!elf_symbol(&f, &s, i, &y, &e));
		found = str_is(y.name, "elf_test_marker");
	}
	CHECK(found && y.type == ELF_FUNC && y.size > 0 && y.bind == 1);
	/* The bytes the file has for it are the bytes in memory. */
	uint64_t off = 0, left = 0;
	CHECK(elf_offset(&f, y.value, &off, &left, &e) == 1 && left >= y.size);
	int (*marker)(int) = elf_test_marker;
	void *code;
	memcpy(&code, &marker, sizeof code);
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
	CHECK(!memcmp(p + off, code, y.size));
#endif
	CHECK(elf_test_marker(2) == 7);
	CHECK(elf_find(&f, ".no-such-section", &s, &e) == 0);
	bool libc = false;
	for (unsigned i = 0; elf_needed(&f, i, &d, &e) == 1; i++)
		libc |= str_starts(d, "libc.so");
	CHECK(libc);
	CHECK(elf_offset(&f, UINT64_MAX, &off, &left, &e) == 0);
	CHECK(elf_note(&f, "Nobody", 1, &d, &e) == 0);
}

static void
test_damage(const unsigned char *p, size_t len)
{
	unsigned char *copy = malloc(len);
	/* Headers densely, the rest in steps: the file is large. */
	for (size_t n = 0; n < len; n += n < 4096 ? 1 : len / 97 + 1) {
		unsigned char *cut = malloc(n ? n : 1);
		memcpy(cut, p, n);
		walk(cut, n);
		free(cut);
	}
	struct elf f;
	struct err e;
	elf_open(&f, p, len, &e);
	size_t at[] = { 0, (size_t)f.phoff, (size_t)f.shoff };
	size_t size[] = { 64, (size_t)f.phnum * 56, (size_t)f.shnum * 64 };
	memcpy(copy, p, len);
	for (int t = 0; t < 3; t++)
		for (size_t i = 0; i < size[t]; i++)
			for (int flip = 0; flip < 3; flip++) {
				static const unsigned char mask[] = { 1, 0x80,
					0xff };
				copy[at[t] + i] ^= mask[flip];
				walk(copy, len);
				copy[at[t] + i] ^= mask[flip];
			}
	CHECK(walk(copy, len) == walk(p, len) && walk(p, len) > 10);
	free(copy);
}

static void
test_refusals(void)
{
	struct elf f;
	struct err e;
	unsigned char h[64] = { 0x7f, 'E', 'L', 'F', 2, 1, 1 };
	CHECK(elf_open(&f, "#!/bin/sh\n", 10, &e) == SE_EFORMAT);
	CHECK(elf_open(&f, h, 63, &e) == SE_ETRUNC);
	CHECK(elf_open(&f, h, 64, &e) == 0); /* no tables at all */
	h[4] = 1;
	CHECK(elf_open(&f, h, 64, &e) == SE_EUNSUP);
	h[4] = 2;
	h[5] = 2;
	CHECK(elf_open(&f, h, 64, &e) == SE_EUNSUP);
	h[5] = 1;
	h[60] = 1; /* one section header of 0 bytes */
	CHECK(elf_open(&f, h, 64, &e) == SE_EFORMAT);
	h[58] = 64;
	CHECK(elf_open(&f, h, 64, &e) == 0); /* it lies on the header */
	h[40] = 1;
	CHECK(elf_open(&f, h, 64, &e) == SE_ETRUNC);
}

int
main(int argc, char **argv)
{
	size_t len = 0;
	unsigned char *p = whole_file(argv[0], &len);
	CHECK(p && len > 1000);
	if (p) {
		test_self(p, len);
		test_damage(p, len);
	}
	test_refusals();
	free(p);
	return test_done("elf");
}
