/* GPU boards, as the kernel shows them: see board.h. */
#include "board.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "num.h"

enum {
	FILE_BYTES = 8192, /* of a file in /proc or /sys */
	RENDER_FIRST = 128,
};

/* ---- small files -------------------------------------------------------- */

static const char *
keep(struct boards *b, struct str s)
{
	struct str own = arena_str(&b->arena, s);
	if (!own.p)
		cli_die("out of memory");
	return own.p;
}

static struct str
trim(struct str s)
{
	while (s.len && strchr(" \t\n", *s.p))
		s = (struct str){ s.p + 1, s.len - 1 };
	while (s.len && strchr(" \t\n", s.p[s.len - 1]))
		s.len--;
	return s;
}

/* The whole of a small file, in `text`; empty if it is not there. */
static struct str
slurp(char *text, const char *path)
{
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, FILE_BYTES, f) : 0;
	if (f)
		fclose(f);
	return (struct str){ text, n };
}

/* The value of a "Key: value" line, NULL if there is none. */
static const char *
value_of(struct boards *b, struct str text, const char *want)
{
	struct str line, key;
	while (str_cut(&text, '\n', &line)) {
		if (!str_cut(&line, ':', &key) || !line.p)
			continue;
		if (str_is(trim(key), want) && trim(line).len)
			return keep(b, trim(line));
	}
	return NULL;
}

/* The text of a file that has one line, NULL if there is none. */
static const char *
line_of(struct boards *b, const char *dir, const char *name)
{
	char path[PATH_MAX], text[FILE_BYTES];
	if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
		return NULL;
	struct str s = trim(slurp(text, path));
	return s.len ? keep(b, s) : NULL;
}

/* Calls fn for each entry of a directory that is not hidden. */
static void
each_entry(const char *path,
    void (*fn)(struct boards *b, const char *root, const char *name),
    struct boards *b, const char *root)
{
	DIR *d = opendir(path);
	struct dirent *entry;
	while (d && (entry = readdir(d)))
		if (*entry->d_name != '.')
			fn(b, root, entry->d_name);
	if (d)
		closedir(d);
}

static struct board *
add(struct boards *b)
{
	if (b->n == BOARDS_MAX)
		return NULL;
	b->list = cli_realloc(b->list, b->n + 1, sizeof *b->list);
	struct board *new = &b->list[b->n++];
	*new = (struct board){ .nvidia = -1, .render = -1 };
	return new;
}

/* ---- NVIDIA ------------------------------------------------------------- */

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54  date": the 550.54 */
static const char *
nvidia_driver(struct boards *b, const char *root)
{
	char path[PATH_MAX], text[FILE_BYTES];
	snprintf(path, sizeof path, "%s/proc/driver/nvidia/version", root);
	struct str rest = slurp(text, path), word;
	while (rest.len && str_cut(&rest, ' ', &word)) {
		double v;
		struct str major = word, minor;
		str_cut(&major, '.', &minor);
		if (major.p && !num_f64(minor, &v, NULL))
			return keep(b, word);
	}
	return NULL;
}

static void
add_nvidia(struct boards *b, const char *root, const char *name)
{
	char path[PATH_MAX], text[FILE_BYTES];
	uint64_t minor;
	if (snprintf(path, sizeof path,
		"%s/proc/driver/nvidia/gpus/%s/information", root,
		name) >= (int)sizeof path)
		return;
	struct str s = slurp(text, path);
	struct board *new = s.len ? add(b) : NULL;
	if (!new)
		return;
	new->pci = keep(b, str_c(name));
	new->model = value_of(b, s, "Model");
	new->uuid = value_of(b, s, "GPU UUID");
	new->driver = nvidia_driver(b, root);
	new->pin = "CUDA_VISIBLE_DEVICES";
	const char *number = value_of(b, s, "Device Minor");
	if (number && !num_u64(str_c(number), 0, INT_MAX, &minor, NULL))
		new->nvidia = (int)minor;
}

/* ---- AMD ---------------------------------------------------------------- */

static void
find_render(struct board *new, const char *device)
{
	char path[PATH_MAX];
	for (int i = RENDER_FIRST; i < RENDER_FIRST + 64; i++) {
		if (snprintf(path, sizeof path, "%s/drm/renderD%d", device,
			i) >= (int)sizeof path)
			return;
		if (!access(path, F_OK))
			new->render = i;
	}
}

static void
add_amd(struct boards *b, const char *root, const char *name)
{
	char dir[PATH_MAX], text[FILE_BYTES], real[PATH_MAX];
	if (snprintf(dir, sizeof dir, "%s/sys/bus/pci/drivers/amdgpu/%s", root,
		name) >= (int)sizeof dir ||
	    !strchr(name, ':') || !realpath(dir, real))
		return;
	const char *unique = line_of(b, real, "unique_id");
	struct board *new = add(b);
	if (!new)
		return;
	new->pci = keep(b, str_c(name));
	new->model = line_of(b, real, "product_name");
	new->serial = line_of(b, real, "serial_number");
	snprintf(dir, sizeof dir, "%s/sys/module/amdgpu/version", root);
	struct str version = trim(slurp(text, dir));
	new->driver = version.len ? keep(b, version) : NULL;
	new->pin = "ROCR_VISIBLE_DEVICES";
	find_render(new, real);
	if (unique && snprintf(dir, sizeof dir, "GPU-%s", unique) > 0)
		new->uuid = keep(b, str_c(dir));
}

/* ---- where, and in use -------------------------------------------------- */

/* /sys/bus/pci/slots/NAME/address is 0000:17:00, without the function. */
static void
note_slot(struct boards *b, const char *root, const char *name)
{
	char dir[PATH_MAX];
	if (snprintf(dir, sizeof dir, "%s/sys/bus/pci/slots/%s", root, name) >=
	    (int)sizeof dir)
		return;
	const char *address = line_of(b, dir, "address");
	for (size_t i = 0; address && i < b->n; i++)
		if (str_starts(str_c(b->list[i].pci), address))
			b->list[i].slot = keep(b, str_c(name));
}

static void
note_open(struct boards *b, const char *target, bool *seen)
{
	char name[64];
	for (size_t i = 0; i < b->n; i++) {
		struct board *x = &b->list[i];
		snprintf(name, sizeof name, "/dev/nvidia%d", x->nvidia);
		bool is = x->nvidia >= 0 && !strcmp(target, name);
		snprintf(name, sizeof name, "/dev/dri/renderD%d", x->render);
		is |= x->render >= 0 && !strcmp(target, name);
		x->busy += is && !seen[i];
		seen[i] |= is;
	}
}

static void
note_process(struct boards *b, const char *root, const char *name)
{
	char dir[PATH_MAX], path[PATH_MAX + 300], target[256];
	bool seen[BOARDS_MAX] = { false };
	uint64_t pid;
	struct dirent *entry;
	if (num_u64(str_c(name), 1, INT_MAX, &pid, NULL))
		return;
	snprintf(dir, sizeof dir, "%s/proc/%s/fd", root, name);
	DIR *d = opendir(dir);
	b->hidden += !d;
	while (d && (entry = readdir(d))) {
		snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
		ssize_t n = readlink(path, target, sizeof target - 1);
		target[n > 0 ? n : 0] = '\0';
		note_open(b, target, seen);
	}
	if (d)
		closedir(d);
}

static int
by_pci(const void *a, const void *b)
{
	const struct board *x = a, *y = b;
	return strcmp(x->pci, y->pci);
}

void
boards_find(struct boards *b, const char *root)
{
	static const struct {
		const char *dir;
		void (*fn)(struct boards *b, const char *root, const char *);
	} step[] = {
		{ "/proc/driver/nvidia/gpus", add_nvidia },
		{ "/sys/bus/pci/drivers/amdgpu", add_amd },
		{ "/sys/bus/pci/slots", note_slot },
		{ "/proc", note_process },
	};
	char path[PATH_MAX];
	*b = (struct boards){ 0 };
	for (size_t i = 0; i < sizeof step / sizeof *step; i++) {
		/* without boards nobody asks who uses them */
		if (i >= 2 && !b->n)
			break;
		if (snprintf(path, sizeof path, "%s%s", root, step[i].dir) <
		    (int)sizeof path)
			each_entry(path, step[i].fn, b, root);
	}
	sort_array(b->list, b->n, sizeof *b->list, by_pci);
}

void
boards_free(struct boards *b)
{
	free(b->list);
	arena_free(&b->arena);
}
