/*
 * The event writer of libstraightedge: ns an event, written to a descriptor.
 * usage: events EVENTS FILE
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "straightedge.h"

static int64_t
clock_ns(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int
main(int argc, char **argv)
{
	struct se_writer *w;
	if (argc != 3)
		return 2;
	long n = strtol(argv[1], NULL, 10);
	int fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (n <= 0 || fd < 0 || se_writer_open(&w, fd, NULL))
		return 2;
	static const char *const args[] = { "tokens", "64" };
	struct se_event ev = { .size = sizeof ev,
		.name = "execute_model",
		.kind = "step",
		.proc = "engine",
		.thread = "main",
		.step = "1",
		.args = args,
		.nargs = 1 };
	int64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (long i = 0; i < n; i++) {
		ev.ts = clock_ns(CLOCK_REALTIME);
		ev.dur = 20000000 + i;
		if (se_writer_event(w, &ev))
			return 1;
	}
	if (se_writer_flush(w))
		return 1;
	int64_t took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
	printf("%.1f\n", (double)took / (double)n);
	return se_writer_close(w, NULL, 0) != 0;
}
