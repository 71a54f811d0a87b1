/*
 * The first process of the arm64 guest: mounts what is needed, runs each
 * script line of /tests with its output to the console, and powers off.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/perf_event.h>
#include <unistd.h>

static void
put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		printf("init: cannot write %s\n", path);
	close(fd);
}

static void
show(const char *path)
{
	char line[4096];
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		fputs(line, stdout);
	if (f)
		fclose(f);
	remove(path);
}

static void
run(const char *name, char **argv)
{
	int st = 0;
	printf("== %s\n", name);
	fflush(stdout);
	pid_t p = fork();
	if (!p) {
		execv(argv[0], argv);
		_exit(127);
	}
	waitpid(p, &st, 0);
	show("/o.pmu");
	printf("rc=%d\n", WIFEXITED(st) ? WEXITSTATUS(st) : 128);
	fflush(stdout);
}

/* All six counters of the CPU, pinned: nothing is left for anybody. */
static void
take_all(void)
{
	for (int i = 0; i < 6; i++) {
		struct perf_event_attr a = { .size = sizeof a,
			.type = PERF_TYPE_RAW,
			.config = 0x08, /* INST_RETIRED */
			.pinned = 1 };
		if (syscall(SYS_perf_event_open, &a, -1, 0, -1, 0) < 0)
			printf("init: counter %d refused\n", i);
	}
}

#define PMU "/pmucount"

int
main(void)
{
	char *sled[] = { PMU, "-b", "sled", "--event", "instructions", "-o",
		"/o.pmu", "--", "/guest", NULL };
	char *probe[] = { PMU, "-b", "uprobe", "--event", "instructions", "-f",
		"leaf", "-f", "loopn", "-f", "twice", "-o", "/o.pmu", "--",
		"/guest", NULL };
	char *list[] = { PMU, "list", NULL };
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sys", "/sys", "sysfs", 0, NULL);
	run("list", list);
	run("read", sled);
	put("/proc/sys/kernel/perf_user_access", "1");
	run("page", sled);
	run("uprobe", probe);
	take_all();
	run("taken", sled);
	printf("== end\n");
	fflush(stdout);
	reboot(RB_POWER_OFF);
	return 0;
}
