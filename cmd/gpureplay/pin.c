/* Where processes really are: see pin.h. */
#define _GNU_SOURCE
#include "pin.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "num.h"

enum {
	FAMILY_MAX = 512,     /* processes of one that are looked at */
	LIST_BYTES = 1 << 16, /* of one list of children */
	FILES_MAX = 4096,     /* open files that are looked at */
};

typedef void visit(void *user, uint64_t number);

/* Calls for each entry of a directory whose name is a number. */
static void
each_number(const char *path, visit *fn, void *user)
{
	DIR *d = opendir(path);
	struct dirent *entry;
	for (int n = 0; d && n < FILES_MAX && (entry = readdir(d)); n++) {
		uint64_t number;
		if (!num_u64(str_c(entry->d_name), 0, INT32_MAX, &number, NULL))
			fn(user, number);
	}
	if (d)
		closedir(d);
}

static void
each_child(pid_t pid, uint64_t thread, visit *fn, void *user)
{
	char path[64], *list = malloc(LIST_BYTES);
	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid,
	    (int)thread);
	int fd = list ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t n = fd < 0 ? 0 : read(fd, list, LIST_BYTES);
	struct str rest = { list, n > 0 ? (size_t)n : 0 }, word;
	while (str_cut(&rest, ' ', &word)) {
		uint64_t child;
		if (!num_u64(word, 1, INT32_MAX, &child, NULL))
			fn(user, child);
	}
	if (fd >= 0)
		close(fd);
	free(list);
}

/* The process and what comes from it, breadth first. */
struct seen {
	pid_t family[FAMILY_MAX];
	size_t n;
	pid_t pid; /* the one that is looked at */
	int cpu, nvidia;
	bool here, elsewhere;
};

static void
add_relative(void *user, uint64_t pid)
{
	struct seen *s = user;
	if (s->n < FAMILY_MAX)
		s->family[s->n++] = (pid_t)pid;
}

static void
look_at_core(struct seen *s, uint64_t thread)
{
	cpu_set_t set;
	if (s->cpu < 0 || sched_getaffinity((pid_t)thread, sizeof set, &set))
		return;
	if (CPU_COUNT(&set) == 1 && CPU_ISSET((size_t)s->cpu, &set))
		s->here = true;
	else
		s->elsewhere = true;
}

static void
look_at_thread(void *user, uint64_t thread)
{
	struct seen *s = user;
	look_at_core(s, thread);
	each_child(s->pid, thread, add_relative, s);
}

/* /dev/nvidiaN is a board; nvidiactl, nvidia-uvm and so on are not. */
static void
look_at_file(void *user, uint64_t fd)
{
	struct seen *s = user;
	char path[64], target[64];
	uint64_t minor;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)s->pid, (int)fd);
	ssize_t n = readlink(path, target, sizeof target);
	struct str t = { target, n > 0 ? (size_t)n : 0 };
	if (!str_starts(t, "/dev/nvidia"))
		return;
	t.p += strlen("/dev/nvidia");
	t.len -= strlen("/dev/nvidia");
	if (num_u64(t, 0, INT32_MAX, &minor, NULL))
		return;
	if ((int)minor == s->nvidia)
		s->here = true;
	else
		s->elsewhere = true;
}

void
pin_look(pid_t pid, int cpu, int nvidia, enum pin *pin)
{
	char path[64];
	struct seen s = {
		.family = { pid }, .n = 1, .cpu = cpu, .nvidia = nvidia
	};
	if (cpu < 0 && nvidia < 0)
		return;
	for (size_t i = 0; i < s.n; i++) {
		s.pid = s.family[i];
		snprintf(path, sizeof path, "/proc/%d/task", (int)s.pid);
		each_number(path, look_at_thread, &s);
		if (nvidia < 0)
			continue;
		snprintf(path, sizeof path, "/proc/%d/fd", (int)s.pid);
		each_number(path, look_at_file, &s);
	}
	if (s.elsewhere)
		*pin = PIN_ELSEWHERE;
	else if (s.here && *pin == PIN_UNSEEN)
		*pin = PIN_VERIFIED;
}

static void
kill_one(void *user, uint64_t pid)
{
	kill((pid_t)pid, SIGKILL);
}

static void
kill_children_of(void *user, uint64_t thread)
{
	each_child(getpid(), thread, kill_one, user);
}

void
pin_kill_children(void)
{
	each_number("/proc/self/task", kill_children_of, NULL);
}
