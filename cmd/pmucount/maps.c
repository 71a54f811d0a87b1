/* /proc/PID/maps and auxv: see maps.h. */
#define _GNU_SOURCE
#include "maps.h"

#include <sys/auxv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "object.h"

static struct mapped *
seen(struct maps *m, const char *path)
{
	for (unsigned i = 0; i < m->n; i++)
		if (!strcmp(m->file[i].path, path))
			return &m->file[i];
	return NULL;
}

int
maps_read(struct maps *m, pid_t pid, struct err *e)
{
	char name[64], perm[8], *line = NULL;
	size_t cap = 0;
	*m = (struct maps){ 0 };
	snprintf(name, sizeof name, "/proc/%ld/maps", (long)pid);
	FILE *f = fopen(name, "r");
	if (!f)
		return err_sys(e, "cannot open %s", name);
	while (getline(&line, &cap, f) > 0) {
		unsigned long long start, end, off;
		int at = 0;
		if (sscanf(line, "%llx-%llx %7s %llx %*s %*s %n", &start, &end,
			perm, &off, &at) < 4 ||
		    !at || line[at] != '/')
			continue;
		line[strcspn(line, "\n")] = 0;
		if (m->n < MAPS_MAX && !seen(m, line + at))
			m->file[m->n++] =
			    (struct mapped){ strdup(line + at), start, off };
	}
	free(line);
	fclose(f);
	return 0;
}

void
maps_free(struct maps *m)
{
	for (unsigned i = 0; i < m->n; i++)
		free(m->file[i].path);
	m->n = 0;
}

uint64_t
maps_base(const struct mapped *f, const struct object *o)
{
	if (o->elf.type == ELF_EXEC)
		return 0;
	struct elf_segment s;
	for (unsigned i = 0; i < o->elf.phnum; i++) {
		if (elf_segment(&o->elf, i, &s, NULL) || s.type != ELF_LOAD)
			continue;
		uint64_t page = s.off & ~UINT64_C(4095);
		if (page == f->off)
			return f->start - (s.vaddr - (s.off - page));
	}
	return f->start - f->off;
}

uint64_t
maps_entry(pid_t pid)
{
	char name[64];
	uint64_t pair[2];
	snprintf(name, sizeof name, "/proc/%ld/auxv", (long)pid);
	FILE *f = fopen(name, "rb");
	if (!f)
		return 0;
	uint64_t entry = 0;
	while (fread(pair, sizeof pair, 1, f) == 1 && pair[0])
		if (pair[0] == AT_ENTRY)
			entry = pair[1];
	fclose(f);
	return entry;
}
