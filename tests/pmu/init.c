/*
 * The first process of the arm64 guest: mounts what is needed, runs pmucount
 * on /guest in each way with the records on the console, and powers off. A
 * run that does not end is killed and says so.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	LIMIT = 4, /* seconds of the guest's clock: 10^9 instructions each */
	WORDS = 32,
};

static pid_t child;

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
too_long(int sig)
{
	static const char text[] = "init: did not end\n";
	if (write(1, text, sizeof text - 1))
		kill(-child, SIGKILL);
}

/* A program and its arguments, between blanks. */
static void
run(const char *name, const char *command)
{
	char text[512], *argv[WORDS];
	int st = 0, n = 0;
	snprintf(text, sizeof text, "%s", command);
	for (char *w = strtok(text, " "); w && n < WORDS - 1;
	     w = strtok(NULL, " "))
		argv[n++] = w;
	argv[n] = NULL;
	printf("== %s\n", name);
	fflush(stdout);
	child = fork();
	if (!child) {
		setpgid(0, 0);
		execv(argv[0], argv);
		_exit(127);
	}
	alarm(LIMIT);
	while (waitpid(child, &st, 0) < 0)
		;
	alarm(0);
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

#define COUNT "/pmucount -o /o.pmu "
#define SLED COUNT "-b sled --event "
#define PROBE COUNT "-b uprobe -f leaf -f loopn -f twice --event "

int
main(void)
{
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sys", "/sys", "sysfs", 0, NULL);
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	signal(SIGALRM, too_long);
	run("list", "/pmucount list");
	run("read", SLED "instructions -- /guest");
	run("read-faults", SLED "instructions,page-faults -- /guest");
	run("faults-read", SLED "page-faults,instructions -- /guest");
	run("uprobe", PROBE "instructions -- /guest");
	run("uprobe-faults", PROBE "instructions,page-faults -- /guest");
	run("diff",
	    "/pmucount diff -n 2 -b sled --event instructions -f update "
	    "--a /before --b /after");
	put("/proc/sys/kernel/perf_user_access", "1");
	run("page", SLED "instructions -- /guest");
	run("page-faults", SLED "instructions,page-faults -- /guest");
	take_all();
	run("taken", SLED "instructions -- /guest");
	printf("== end\n");
	fflush(stdout);
	reboot(RB_POWER_OFF);
	return 0;
}
