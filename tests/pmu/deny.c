/*
 * deny CALL... -- COMMAND...: runs the command where a seccomp filter answers
 * EPERM to these system calls (perf_event_open, ptrace), as in containers.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	unsigned number;
} calls[] = {
	{ "perf_event_open", SYS_perf_event_open },
	{ "ptrace", SYS_ptrace },
	{ "memfd_create", SYS_memfd_create },
};

static int
deny(unsigned number)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof code / sizeof *code, code };
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

int
main(int argc, char **argv)
{
	int i = 1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return 126;
	for (; i < argc && strcmp(argv[i], "--"); i++)
		for (size_t k = 0; k < sizeof calls / sizeof *calls; k++)
			if (!strcmp(calls[k].name, argv[i]) &&
			    deny(calls[k].number))
				return 126;
	if (i + 1 < argc)
		execvp(argv[i + 1], argv + i + 1);
	return 127;
}
