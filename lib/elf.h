/*
 * ELF files, 64 bit little-endian: sections, segments, symbols, relative
 * relocations and notes. The file lies in memory and stays the caller's; the
 * reader allocates nothing, believes nothing and copies what it returns.
 *
 * Format: System V ABI, gABI chapter 4 and 5; psABI of x86-64 and AArch64.
 */
#ifndef ELF_H
#define ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "str.h"

enum {
	ELF_SECTIONS_MAX = 65279, /* SHN_LORESERVE - 1: no extended numbers */
	ELF_NAME_MAX = 64 << 10,  /* longest symbol name that is returned */
};

/* Values of the fields that our readers ask for. */
enum {
	ELF_X86_64 = 62,
	ELF_AARCH64 = 183,
	ELF_EXEC = 2, /* e_type: fixed addresses */
	ELF_DYN = 3,  /* position independent, or a shared object */
	ELF_LOAD = 1, /* p_type */
	ELF_DYNAMIC = 2,
	ELF_INTERP = 3,
	ELF_NOTE = 4,
	ELF_EXECUTE = 1, /* p_flags */
	ELF_RELA = 4,    /* sh_type */
	ELF_NOBITS = 8,
	ELF_SYMTAB = 2,
	ELF_DYNSYM = 11,
	ELF_NOTES = 7,
	ELF_FUNC = 2, /* symbol types */
	ELF_FILE = 4,
	ELF_IFUNC = 10,
	ELF_NEEDED = 1, /* d_tag */
};

struct elf {
	const unsigned char *p;
	size_t len;
	unsigned type, machine;
	uint64_t entry;
	uint64_t phoff, shoff;
	unsigned phnum, phsize, shnum, shsize;
	struct str names; /* of sections; empty without a table */
};

struct elf_segment {
	uint32_t type, flags;
	uint64_t off, vaddr, filesz, memsz;
};

struct elf_section {
	struct str name;
	uint32_t type, link, info;
	uint64_t flags, addr, off, size, entsize;
	struct str data; /* empty for ELF_NOBITS */
};

struct elf_symbol {
	struct str name;
	unsigned type, bind; /* bind: 0 local, 1 global, 2 weak */
	unsigned section;    /* 0: undefined */
	uint64_t value, size;
};

/* Could these first bytes be one? (Four are enough.) */
bool elf_probe(const void *p, size_t len);
/* Checks the header. SE_EFORMAT, SE_ETRUNC, or SE_EUNSUP for other classes. */
int elf_open(struct elf *f, const void *p, size_t len, struct err *e);

int elf_segment(
    const struct elf *f, unsigned i, struct elf_segment *out, struct err *e);
int elf_section(
    const struct elf *f, unsigned i, struct elf_section *out, struct err *e);
/* The first section with this name: 1, 0 if there is none, or an error. */
int elf_find(const struct elf *f, const char *name, struct elf_section *out,
    struct err *e);
/* The first section of a type, the same way. */
int elf_find_type(
    const struct elf *f, uint32_t type, struct elf_section *out, struct err *e);

/* Symbols in a section of type ELF_SYMTAB or ELF_DYNSYM. */
size_t elf_symbols(const struct elf_section *s);
int elf_symbol(const struct elf *f, const struct elf_section *s, size_t i,
    struct elf_symbol *out, struct err *e);

/*
 * Where an address of the file's own view lies in the file: 1, or 0 if no
 * loaded segment has bytes for it. *left gets the bytes up to the segment's
 * end.
 */
int elf_offset(const struct elf *f, uint64_t vaddr, uint64_t *off,
    uint64_t *left, struct err *e);

/* Reads one relative relocation (R_*_RELATIVE) of a section ELF_RELA: 1 and
 * place and value, 0 if entry i is of another kind, or an error. */
size_t elf_relas(const struct elf_section *s);
int elf_rela(const struct elf *f, const struct elf_section *s, size_t i,
    uint64_t *place, uint64_t *value);

/*
 * The note with this owner and type, from sections or segments: 1 and its
 * description, 0 if there is none, or an error.
 */
int elf_note(const struct elf *f, const char *owner, uint32_t type,
    struct str *desc, struct err *e);

/* Entry i of DT_NEEDED and friends: 1 and the text, 0 at the end, an error. */
int
elf_needed(const struct elf *f, unsigned i, struct str *name, struct err *e);

#endif
