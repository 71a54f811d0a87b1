/* ELF files in memory: see elf.h. */
#include "elf.h"

#include "cur.h"

enum {
	HEADER_SIZE = 64,
	PHDR_SIZE = 56,
	SHDR_SIZE = 64,
	SYM_SIZE = 24,
	RELA_SIZE = 24,
	DYN_SIZE = 16,
	REL_X86_64 = 8,     /* R_X86_64_RELATIVE */
	REL_AARCH64 = 1027, /* R_AARCH64_RELATIVE */
};

static bool
inside(const struct elf *f, uint64_t off, uint64_t size)
{
	return off <= f->len && size <= f->len - off;
}

static struct str
slice(const struct elf *f, uint64_t off, uint64_t size)
{
	return (struct str){ (const char *)f->p + off, (size_t)size };
}

/* The text at `off` of a string table; empty if it has no end in there. */
static struct str
text_at(struct str table, uint64_t off)
{
	if (off >= table.len)
		return STR_LIT("");
	size_t left = table.len - (size_t)off;
	size_t max = left < ELF_NAME_MAX ? left : ELF_NAME_MAX;
	const char *p = table.p + off, *end = memchr(p, 0, max);
	return end ? (struct str){ p, (size_t)(end - p) } : STR_LIT("");
}

bool
elf_probe(const void *p, size_t len)
{
	return len >= 4 && !memcmp(p, "\177ELF", 4);
}

static int
check_tables(const struct elf *f, struct err *e)
{
	if (f->phnum && f->phsize < PHDR_SIZE)
		return err_set(e, SE_EFORMAT,
		    "program headers of %u bytes, expected %d", f->phsize,
		    PHDR_SIZE);
	if (f->shnum && f->shsize < SHDR_SIZE)
		return err_set(e, SE_EFORMAT,
		    "section headers of %u bytes, expected %d", f->shsize,
		    SHDR_SIZE);
	if (!inside(f, f->phoff, (uint64_t)f->phnum * f->phsize))
		return err_set(e, SE_ETRUNC,
		    "program headers at offset %llu are not in the file",
		    (unsigned long long)f->phoff);
	if (!inside(f, f->shoff, (uint64_t)f->shnum * f->shsize))
		return err_set(e, SE_ETRUNC,
		    "section headers at offset %llu are not in the file",
		    (unsigned long long)f->shoff);
	return 0;
}

int
elf_open(struct elf *f, const void *p, size_t len, struct err *e)
{
	*f = (struct elf){ .p = p, .len = len };
	if (!elf_probe(p, len))
		return err_set(e, SE_EFORMAT, "not an ELF file");
	struct cur c = cur_over(p, len);
	const unsigned char *id = cur_take(&c, 16);
	f->type = cur_le16(&c);
	f->machine = cur_le16(&c);
	cur_le32(&c); /* e_version */
	f->entry = cur_le64(&c);
	f->phoff = cur_le64(&c);
	f->shoff = cur_le64(&c);
	cur_le32(&c); /* e_flags */
	cur_le16(&c); /* e_ehsize */
	f->phsize = cur_le16(&c);
	f->phnum = cur_le16(&c);
	f->shsize = cur_le16(&c);
	f->shnum = cur_le16(&c);
	unsigned names = cur_le16(&c);
	if (c.failed)
		return err_set(e, SE_ETRUNC,
		    "the ELF header needs %d bytes, have %zu", HEADER_SIZE,
		    len);
	if (id[4] != 2 || id[5] != 1)
		return err_set(
		    e, SE_EUNSUP, "only 64 bit little-endian ELF is read");
	if (f->shnum > ELF_SECTIONS_MAX)
		return err_set(e, SE_ELIMIT, "%u sections, at most %d",
		    f->shnum, ELF_SECTIONS_MAX);
	int r = check_tables(f, e);
	if (r)
		return r;
	struct elf_section s;
	if (names && names < f->shnum && !elf_section(f, names, &s, NULL))
		f->names = s.data;
	return 0;
}

int
elf_segment(
    const struct elf *f, unsigned i, struct elf_segment *out, struct err *e)
{
	if (i >= f->phnum)
		return err_set(e, SE_EINVAL, "no segment %u", i);
	struct cur c =
	    cur_over(f->p + f->phoff + (uint64_t)i * f->phsize, PHDR_SIZE);
	out->type = cur_le32(&c);
	out->flags = cur_le32(&c);
	out->off = cur_le64(&c);
	out->vaddr = cur_le64(&c);
	cur_le64(&c); /* p_paddr */
	out->filesz = cur_le64(&c);
	out->memsz = cur_le64(&c);
	if (!inside(f, out->off, out->filesz))
		return err_set(e, SE_ETRUNC,
		    "segment %u ends at %llu + %llu, the file at %zu", i,
		    (unsigned long long)out->off,
		    (unsigned long long)out->filesz, f->len);
	return 0;
}

int
elf_section(
    const struct elf *f, unsigned i, struct elf_section *out, struct err *e)
{
	if (i >= f->shnum)
		return err_set(e, SE_EINVAL, "no section %u", i);
	struct cur c =
	    cur_over(f->p + f->shoff + (uint64_t)i * f->shsize, SHDR_SIZE);
	uint32_t name = cur_le32(&c);
	out->type = cur_le32(&c);
	out->flags = cur_le64(&c);
	out->addr = cur_le64(&c);
	out->off = cur_le64(&c);
	out->size = cur_le64(&c);
	out->link = cur_le32(&c);
	out->info = cur_le32(&c);
	cur_le64(&c); /* sh_addralign */
	out->entsize = cur_le64(&c);
	out->name = text_at(f->names, name);
	out->data = STR_LIT("");
	if (out->type == ELF_NOBITS || out->type == 0)
		return 0;
	if (!inside(f, out->off, out->size))
		return err_set(e, SE_ETRUNC,
		    "section %u ends at %llu + %llu, the file at %zu", i,
		    (unsigned long long)out->off, (unsigned long long)out->size,
		    f->len);
	out->data = slice(f, out->off, out->size);
	return 0;
}

int
elf_find(const struct elf *f, const char *name, struct elf_section *out,
    struct err *e)
{
	for (unsigned i = 1; i < f->shnum; i++) {
		int r = elf_section(f, i, out, e);
		if (str_is(out->name, name))
			return r ? r : 1;
	}
	return 0;
}

int
elf_find_type(
    const struct elf *f, uint32_t type, struct elf_section *out, struct err *e)
{
	for (unsigned i = 1; i < f->shnum; i++) {
		int r = elf_section(f, i, out, e);
		if (out->type == type)
			return r ? r : 1;
	}
	return 0;
}

size_t
elf_symbols(const struct elf_section *s)
{
	return s->data.len / SYM_SIZE;
}

int
elf_symbol(const struct elf *f, const struct elf_section *s, size_t i,
    struct elf_symbol *out, struct err *e)
{
	if (i >= elf_symbols(s))
		return err_set(e, SE_EINVAL, "no symbol %zu", i);
	struct cur c = cur_over(s->data.p + i * SYM_SIZE, SYM_SIZE);
	uint32_t name = cur_le32(&c);
	unsigned info = cur_u8(&c);
	cur_u8(&c); /* st_other */
	out->section = cur_le16(&c);
	out->value = cur_le64(&c);
	out->size = cur_le64(&c);
	out->type = info & 15;
	out->bind = info >> 4;
	out->name = STR_LIT("");
	struct elf_section names;
	if (!s->link || s->link >= f->shnum)
		return 0;
	int r = elf_section(f, s->link, &names, e);
	if (!r)
		out->name = text_at(names.data, name);
	return r;
}

int
elf_offset(const struct elf *f, uint64_t vaddr, uint64_t *off, uint64_t *left,
    struct err *e)
{
	struct elf_segment s;
	for (unsigned i = 0; i < f->phnum; i++) {
		int r = elf_segment(f, i, &s, e);
		if (r)
			return r;
		if (s.type != ELF_LOAD || vaddr < s.vaddr ||
		    vaddr - s.vaddr >= s.filesz)
			continue;
		*off = s.off + (vaddr - s.vaddr);
		*left = s.filesz - (vaddr - s.vaddr);
		return 1;
	}
	return 0;
}

size_t
elf_relas(const struct elf_section *s)
{
	return s->data.len / RELA_SIZE;
}

int
elf_rela(const struct elf *f, const struct elf_section *s, size_t i,
    uint64_t *place, uint64_t *value)
{
	if (i >= elf_relas(s))
		return 0;
	struct cur c = cur_over(s->data.p + i * RELA_SIZE, RELA_SIZE);
	*place = cur_le64(&c);
	uint32_t type = (uint32_t)cur_le64(&c);
	*value = cur_le64(&c);
	return type == (f->machine == ELF_X86_64 ? REL_X86_64 : REL_AARCH64);
}

/* Notes are name and description, each padded to four bytes. */
static int
note_in(struct str bytes, const char *owner, uint32_t type, struct str *desc)
{
	struct cur c = cur_over(bytes.p, bytes.len);
	size_t want = strlen(owner) + 1;
	while (cur_left(&c) >= 12) {
		uint32_t namesz = cur_le32(&c), descsz = cur_le32(&c);
		uint32_t found = cur_le32(&c);
		struct str name = cur_str(&c, namesz);
		cur_take(&c, -(size_t)namesz & 3);
		*desc = cur_str(&c, descsz);
		if (c.failed)
			return 0;
		if (found == type && namesz == want &&
		    !memcmp(name.p, owner, want))
			return 1;
		size_t pad = -(size_t)descsz & 3;
		cur_take(&c, pad < cur_left(&c) ? pad : cur_left(&c));
	}
	return 0;
}

int
elf_note(const struct elf *f, const char *owner, uint32_t type,
    struct str *desc, struct err *e)
{
	struct elf_section s;
	for (unsigned i = 1; i < f->shnum; i++)
		if (!elf_section(f, i, &s, NULL) && s.type == ELF_NOTES &&
		    note_in(s.data, owner, type, desc))
			return 1;
	struct elf_segment g;
	for (unsigned i = 0; i < f->phnum; i++) {
		int r = elf_segment(f, i, &g, e);
		if (r)
			return r;
		if (g.type == ELF_NOTE &&
		    note_in(slice(f, g.off, g.filesz), owner, type, desc))
			return 1;
	}
	return 0;
}

int
elf_needed(const struct elf *f, unsigned i, struct str *name, struct err *e)
{
	struct elf_section dyn, names;
	int r = elf_find(f, ".dynamic", &dyn, e);
	if (r <= 0)
		return r;
	if (!dyn.link || dyn.link >= f->shnum)
		return err_set(e, SE_EFORMAT, ".dynamic names no strings");
	r = elf_section(f, dyn.link, &names, e);
	if (r)
		return r;
	struct cur c = cur_over(dyn.data.p, dyn.data.len);
	while (cur_left(&c) >= DYN_SIZE) {
		uint64_t tag = cur_le64(&c), value = cur_le64(&c);
		if (tag != ELF_NEEDED || i--)
			continue;
		*name = text_at(names.data, value);
		return 1;
	}
	return 0;
}
