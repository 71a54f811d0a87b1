/* Object files of the target: see object.h. */
#define _GNU_SOURCE
#include "object.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "cur.h"
#include "insn.h"
#include "map.h"
#include "rt/shared.h"
#include "sort.h"

enum {
	FUNCS_MAX = 4 << 20, /* symbols, or sites, of one object */
	SEGMENTS_MAX = 256,  /* each address is looked for in all of them */
	SLED_LISTS_MAX = 64, /* a linker joins them into one */
	BEFORE_MAX = 16,     /* NOPs ahead of a function that we look over */
	XRAY_ENTRY = 32, /* bytes of an entry of xray_instr_map, version 2 */
};

/* ---- names -------------------------------------------------------------- */

typedef char *demangle_fn(const char *, char *, size_t *, int *);

/* From the C++ runtime if there is one on this machine; NULL if not. */
static demangle_fn *
demangler(void)
{
	void *lib = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
	void *sym = lib ? dlsym(lib, "__cxa_demangle") : NULL;
	demangle_fn *fn;
	memcpy(&fn, &sym, sizeof fn);
	return fn;
}

static void
demangle_all(struct object *o)
{
	demangle_fn *fn = NULL;
	bool asked = false;
	for (size_t i = 0; i < o->nfuncs; i++) {
		struct func *f = &o->func[i];
		if (strncmp(f->name, "_Z", 2))
			continue;
		if (!asked)
			fn = demangler();
		asked = true;
		char *text = fn ? fn(f->name, NULL, NULL, NULL) : NULL;
		struct str kept =
		    text ? arena_str(&o->arena, str_c(text)) : STR_NULL;
		if (kept.p)
			f->shown = kept.p;
		free(text);
	}
}

static void
append_to_name(struct object *o, struct func *f, char mark, const char *more)
{
	struct buf b = { 0 };
	buf_puts(&b, f->shown);
	buf_putc(&b, mark);
	buf_puts(&b, more);
	struct str kept =
	    b.failed ? STR_NULL : arena_str(&o->arena, buf_view(&b));
	f->shown = kept.p ? kept.p : f->shown;
	buf_free(&b);
}

/* Functions that share their name get their file's, or a number, added. */
static void
tell_apart(struct object *o, bool by_file)
{
	struct map all = { 0 }, done = { 0 };
	bool fresh;
	for (size_t i = 0; i < o->nfuncs; i++) {
		struct str name = str_c(o->func[i].shown);
		uint64_t *n =
		    o->func[i].alias_of ? NULL : map_at(&all, name, &fresh);
		if (n)
			++*n;
	}
	for (size_t i = 0; i < o->nfuncs; i++) {
		struct func *f = &o->func[i];
		struct str name = str_c(f->shown);
		const uint64_t *n = map_get(&all, name);
		if (f->alias_of || !n || *n < 2 || (by_file && !f->file))
			continue;
		uint64_t *number = map_at(&done, name, &fresh);
		char text[24];
		snprintf(text, sizeof text, "%llu",
		    number ? (unsigned long long)++*number : 0);
		if (by_file)
			append_to_name(o, f, '@', f->file);
		else if (strcmp(text, "1"))
			append_to_name(o, f, '#', text);
	}
	map_free(&all);
	map_free(&done);
}

void
object_demangle(struct object *o)
{
	demangle_all(o);
	tell_apart(o, true);
	tell_apart(o, false);
}

/* "ns::f(int)" is also found as "ns::f". */
static bool
matches_bare(const char *pattern, const char *shown)
{
	const char *open = strpbrk(shown, "(@#");
	if (!open || open == shown)
		return false;
	char *bare = strndup(shown, (size_t)(open - shown));
	bool r = bare && !fnmatch(pattern, bare, 0);
	free(bare);
	return r;
}

bool
func_matches(const struct func *f, const char *pattern)
{
	if (!fnmatch(pattern, f->name, 0))
		return true;
	return !fnmatch(pattern, f->shown, 0) ||
	       matches_bare(pattern, f->shown);
}

/* ---- functions ---------------------------------------------------------- */

static int
by_address(const void *a, const void *b)
{
	const struct func *x = a, *y = b;
	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	/* Of names for one place the longer size, then the first by bytes. */
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return strcmp(x->name, y->name);
}

static bool
wanted(const struct object *o, const struct elf_symbol *y, uint64_t *off)
{
	uint64_t left;
	if (y->type != ELF_FUNC && y->type != ELF_IFUNC)
		return false;
	return y->section && y->name.len &&
	       elf_offset(&o->elf, y->value, off, &left, NULL) == 1;
}

static int
add_symbols(struct object *o, const struct elf_section *s, struct err *e)
{
	size_t n = elf_symbols(s);
	if (n > FUNCS_MAX)
		return err_set(
		    e, SE_ELIMIT, "%zu symbols, at most %d", n, FUNCS_MAX);
	const char *file = NULL;
	o->func = arena_array(&o->arena, n ? n : 1, sizeof *o->func);
	if (!o->func)
		return err_mem(e);
	for (size_t i = 0; i < n; i++) {
		struct elf_symbol y;
		uint64_t off;
		int r = elf_symbol(&o->elf, s, i, &y, e);
		if (r)
			return r;
		if (!y.section && str_is(y.name, "__cyg_profile_func_enter"))
			o->hooks = true;
		if (y.type == ELF_FILE) /* of the local symbols behind it */
			file = y.name.len ? y.name.p : NULL;
		if (!wanted(o, &y, &off))
			continue;
		o->func[o->nfuncs++] = (struct func){
			.name = y.name.p, /* ends with NUL in its table */
			.shown = y.name.p,
			.vaddr = y.value,
			.size = y.size,
			.off = off,
			.ifunc = y.type == ELF_IFUNC,
			.file = y.bind ? NULL : file,
		};
	}
	return 0;
}

static void
note_aliases(struct object *o)
{
	size_t first = 0;
	for (size_t i = 1; i < o->nfuncs; i++) {
		if (o->func[i].vaddr == o->func[first].vaddr)
			o->func[i].alias_of = (uint32_t)first + 1;
		else
			first = i;
	}
}

/* What the program imports says which hooks and stacks to expect. */
static int
read_imports(struct object *o, struct err *e)
{
	struct elf_section s;
	int r = elf_find_type(&o->elf, ELF_DYNSYM, &s, e);
	if (r <= 0)
		return r;
	for (size_t i = 0; i < elf_symbols(&s); i++) {
		struct elf_symbol y;
		if (elf_symbol(&o->elf, &s, i, &y, NULL) || y.section)
			continue;
		o->hooks |= str_is(y.name, "__cyg_profile_func_enter");
		o->contexts |= str_is(y.name, "swapcontext") ||
			       str_is(y.name, "makecontext");
	}
	return 0;
}

static int
read_functions(struct object *o, struct err *e)
{
	struct elf_section s;
	int r = elf_find_type(&o->elf, ELF_SYMTAB, &s, e);
	if (!r) {
		r = elf_find_type(&o->elf, ELF_DYNSYM, &s, e);
		o->from_dynsym = r == 1;
	}
	if (r == 1)
		r = add_symbols(o, &s, e);
	if (r < 0)
		return r;
	if (o->nfuncs)
		sort_array(o->func, o->nfuncs, sizeof *o->func, by_address);
	note_aliases(o);
	return read_imports(o, e);
}

/* Index of the last function that begins at or before the address, or -1. */
static long
func_before(const struct object *o, uint64_t vaddr)
{
	size_t lo = 0, hi = o->nfuncs;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (o->func[mid].vaddr <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return -1;
	uint32_t alias = o->func[lo - 1].alias_of;
	return alias ? (long)alias - 1 : (long)lo - 1;
}

const struct func *
object_at(const struct object *o, uint64_t vaddr)
{
	long i = func_before(o, vaddr);
	if (i < 0)
		return NULL;
	const struct func *f = &o->func[i];
	if (vaddr - f->vaddr >= f->size && vaddr != f->vaddr)
		return NULL;
	return f;
}

struct str
object_code(const struct object *o, uint64_t vaddr, size_t len)
{
	uint64_t off, left;
	if (elf_offset(&o->elf, vaddr, &off, &left, NULL) != 1)
		return STR_LIT("");
	size_t n = left < len ? (size_t)left : len;
	return (struct str){ (const char *)o->elf.p + off, n };
}

/* ---- sites -------------------------------------------------------------- */

static int
add_site(struct object *o, size_t *cap, struct site s, struct err *e)
{
	if (o->nsites == FUNCS_MAX)
		return err_set(
		    e, SE_ELIMIT, "more than %d listed sleds", FUNCS_MAX);
	if (o->nsites == *cap) {
		size_t n = *cap ? *cap * 2 : 256;
		struct site *p = arena_array(&o->arena, n, sizeof *p);
		if (!p)
			return err_mem(e);
		if (o->nsites)
			memcpy(p, o->site, o->nsites * sizeof *p);
		o->site = p;
		*cap = n;
	}
	o->site[o->nsites++] = s;
	return 0;
}

static int
by_site(const void *a, const void *b)
{
	const struct site *x = a, *y = b;
	if (x->func != y->func)
		return x->func < y->func ? -1 : 1;
	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

/* Sorted, and the first of each function only. */
static void
sort_sites(struct object *o)
{
	size_t n = 0;
	if (o->nsites)
		sort_array(o->site, o->nsites, sizeof *o->site, by_site);
	for (size_t i = 0; i < o->nsites; i++)
		if (!n || o->site[i].func != o->site[n - 1].func)
			o->site[n++] = o->site[i];
	o->nsites = n;
}

/*
 * A listed place. The list points at the first NOP; with
 * -fpatchable-function-entry=N,M that is M bytes ahead of the function.
 */
static int
site_listed(struct object *o, size_t *cap, uint64_t vaddr, struct err *e)
{
	long i = func_before(o, vaddr);
	if (i < 0 || !object_at(o, vaddr)) {
		i = func_before(o, vaddr + BEFORE_MAX);
		if (i < 0 || o->func[i].vaddr < vaddr) {
			o->odd++;
			return 0;
		}
		vaddr = o->func[i].vaddr;
	}
	const struct func *f = &o->func[i];
	unsigned before = 0;
	uint64_t at = insn_skip_landing(
	    o->elf.machine, object_code(o, f->vaddr, 8), &before);
	if (vaddr == f->vaddr)
		vaddr += at;
	unsigned kind = insn_sled(o->elf.machine, object_code(o, vaddr, 16));
	if (!kind || vaddr - f->vaddr > BEFORE_MAX) {
		o->odd++;
		return 0;
	}
	return add_site(o, cap,
	    (struct site){
		vaddr, (uint32_t)i, (uint16_t)kind, (uint16_t)before },
	    e);
}

/* The addresses of __patchable_function_entries: eight bytes each, in the
 * section itself or, in position independent files, in relocations. */
static int
sites_patchable(struct object *o, size_t *cap, struct err *e)
{
	unsigned lists = 0;
	int r = 0;
	for (unsigned i = 1; i < o->elf.shnum && !r; i++) {
		struct elf_section s, rel;
		r = elf_section(&o->elf, i, &s, e);
		if (r || (!str_is(s.name, "__patchable_function_entries") &&
			     !str_is(s.name, "__mcount_loc")))
			continue;
		if (lists++ == SLED_LISTS_MAX)
			return err_set(e, SE_ELIMIT,
			    "more than %d lists of "
			    "sleds: not a linked file",
			    SLED_LISTS_MAX);
		struct cur c = cur_over(s.data.p, s.data.len);
		while (cur_left(&c) >= 8 && !r) {
			uint64_t at = cur_le64(&c);
			if (at)
				r = site_listed(o, cap, at, e);
		}
		if (r || elf_find(&o->elf, ".rela.dyn", &rel, e) != 1)
			continue;
		for (size_t k = 0; k < elf_relas(&rel) && !r; k++) {
			uint64_t place, value;
			if (elf_rela(&o->elf, &rel, k, &place, &value) == 1 &&
			    place >= s.addr && place - s.addr < s.size)
				r = site_listed(o, cap, value, e);
		}
	}
	return r;
}

static int
sites_xray(struct object *o, size_t *cap, struct err *e)
{
	struct elf_section s;
	int r = elf_find(&o->elf, "xray_instr_map", &s, e);
	if (r <= 0)
		return r;
	for (size_t i = 0; i + XRAY_ENTRY <= s.data.len; i += XRAY_ENTRY) {
		struct cur c = cur_over(s.data.p + i, XRAY_ENTRY);
		uint64_t at = cur_le64(&c);
		cur_le64(&c);
		unsigned kind = cur_u8(&c);
		cur_u8(&c);
		unsigned version = cur_u8(&c);
		if (kind != 0) /* 0: entry; exits need no sled with us */
			continue;
		if (version != 2) {
			o->odd++;
			continue;
		}
		r = site_listed(o, cap, s.addr + i + at, e);
		if (r)
			return r;
	}
	return 0;
}

/*
 * Sleds whose list is gone: GCC 12 puts all addresses of a file into one
 * section that dies with its first function (--gc-sections, COMDAT).
 */
static int
sites_by_bytes(struct object *o, size_t *cap, struct err *e)
{
	size_t listed = o->nsites, k = 0;
	for (size_t i = 0; i < o->nfuncs; i++) {
		while (k < listed && o->site[k].func < i)
			k++;
		if (o->func[i].alias_of || (k < listed && o->site[k].func == i))
			continue;
		const struct func *f = &o->func[i];
		unsigned before = 0;
		uint64_t at =
		    f->vaddr + insn_skip_landing(o->elf.machine,
				   object_code(o, f->vaddr, 8), &before);
		unsigned kind = insn_sled_sure(
		    o->elf.machine, object_code(o, at, 16), listed > 0);
		if (!kind)
			continue;
		int r = add_site(o, cap,
		    (struct site){
			at, (uint32_t)i, (uint16_t)kind, (uint16_t)before },
		    e);
		if (r)
			return r;
	}
	o->by_section = listed;
	o->by_scan = o->nsites - listed;
	return 0;
}

static int
read_sites(struct object *o, struct err *e)
{
	size_t cap = 0;
	int r = sites_patchable(o, &cap, e);
	if (!r)
		r = sites_xray(o, &cap, e);
	if (r)
		return r;
	sort_sites(o);
	r = sites_by_bytes(o, &cap, e);
	sort_sites(o);
	return r;
}

/* ---- opening ------------------------------------------------------------ */

static int
map_file(struct object *o, struct err *e)
{
	int fd = open(o->path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0)
		return err_sys(e, "cannot open");
	if (fstat(fd, &st)) {
		err_sys(e, "cannot read");
		close(fd);
		return SE_EIO;
	}
	if (!S_ISREG(st.st_mode) || st.st_size < 4) {
		close(fd);
		return err_set(e, SE_EFORMAT, "not an ELF file");
	}
	o->len = (size_t)st.st_size;
	o->map = mmap(NULL, o->len, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (o->map == MAP_FAILED) {
		o->map = NULL;
		return err_sys(e, "cannot map");
	}
	return 0;
}

static void
look_around(struct object *o)
{
	struct elf_section s;
	struct elf_segment g;
	struct str d;
	o->go = elf_find(&o->elf, ".note.go.buildid", &s, NULL) == 1 ||
		elf_note(&o->elf, "Go", 4, &d, NULL) == 1;
	for (unsigned i = 0; i < o->elf.phnum; i++)
		if (!elf_segment(&o->elf, i, &g, NULL))
			o->dynamic |= g.type == ELF_INTERP;
}

static int
read_object(struct object *o, const void *p, size_t len, struct err *e)
{
	int r = elf_open(&o->elf, p, len, e);
	if (!r && o->elf.phnum > SEGMENTS_MAX)
		r = err_set(e, SE_ELIMIT, "%u segments, at most %d",
		    o->elf.phnum, SEGMENTS_MAX);
	if (!r)
		r = read_functions(o, e);
	if (!r)
		r = read_sites(o, e);
	if (!r)
		look_around(o);
	return r;
}

static int
opened(struct object **out, struct object *o, int r)
{
	if (r)
		object_close(o);
	else
		*out = o;
	return r;
}

int
object_open(struct object **out, const char *path, struct err *e)
{
	struct object *o = calloc(1, sizeof *o);
	if (!o)
		return err_mem(e);
	o->path = strdup(path);
	int r = o->path ? map_file(o, e) : err_mem(e);
	if (!r)
		r = read_object(o, o->map, o->len, e);
	return opened(out, o, r);
}

int
object_open_mem(struct object **out, const void *p, size_t len, struct err *e)
{
	struct object *o = calloc(1, sizeof *o);
	if (!o)
		return err_mem(e);
	o->path = strdup("");
	int r = o->path ? read_object(o, p, len, e) : err_mem(e);
	return opened(out, o, r);
}

void
object_close(struct object *o)
{
	if (!o)
		return;
	if (o->map)
		munmap(o->map, o->len);
	arena_free(&o->arena);
	free(o->path);
	free(o);
}
