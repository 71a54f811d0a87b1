/*
 * worker DIR SEED FAULTS DEVICE [HOW]: a step of training in small, for tests
 * of gpureplay: two steps of three layers, whose fingerprints go where
 * STRAIGHTEDGE_SIG says. FAULTS is a list DEVICE:RATE, * is any device; with
 * that probability, decided by SEED and by how often DIR was used, layer.1 of
 * step 1 gets another bit. HOW changes what goes wrong, see `how`.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hash.h"
#include "num.h"
#include "straightedge.h"

/* How many were here before. Processes come one after the other. */
static uint64_t
count(const char *dir)
{
	char path[4096];
	struct stat st;
	snprintf(path, sizeof path, "%s/count", dir);
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
	if (fd < 0 || fstat(fd, &st) || write(fd, ".", 1) != 1)
		exit(9);
	close(fd);
	return (uint64_t)st.st_size;
}

static double
rate_of(const char *faults, const char *device)
{
	struct str rest = str_c(faults), word, name;
	double rate = 0, r;
	while (str_cut(&rest, ',', &word)) {
		if (!word.len)
			continue;
		str_cut(&word, ':', &name);
		if (!word.p || num_f64(word, &r, NULL))
			exit(9);
		if (str_is(name, device) || str_is(name, "*"))
			rate = r;
	}
	return rate;
}

/* What goes wrong where it does: another bit, or one of these. */
static void
go_wrong(const char *how)
{
	if (!strcmp(how, "crash"))
		raise(SIGABRT); /* sanitizers turn SIGSEGV into an exit */
	if (!strcmp(how, "exit"))
		exit(7);
	if (!strcmp(how, "hang"))
		for (;;)
			pause();
	if (!strcmp(how, "nosig"))
		exit(0);
	if (!strcmp(how, "move")) {
		cpu_set_t all;
		CPU_ZERO(&all);
		CPU_SET(0, &all);
		CPU_SET(1, &all);
		sched_setaffinity(0, sizeof all, &all);
	}
}

static void
layer(struct se_stream *s, uint64_t step, int i, const char *io, uint64_t bit,
    const char *rank)
{
	uint64_t data[2] = { step * 10 + (uint64_t)i, bit }, shape[1] = { 2 };
	char name[32], text[24];
	struct se_place p = { .size = sizeof p, .io = io, .rank = rank };
	snprintf(name, sizeof name, "layer.%d", i);
	snprintf(text, sizeof text, "%" PRIu64, step);
	p.step = text;
	se_stream_tensor(s, name, "u64", 1, shape, data, sizeof data, NULL, &p);
}

int
main(int argc, char **argv)
{
	struct se_stream_options o = { .size = sizeof o };
	struct se_stream *s;
	uint64_t seed;
	if (argc < 5 || num_u64(str_c(argv[2]), 0, UINT64_MAX, &seed, NULL))
		return 2;
	const char *how = argc > 5 ? argv[5] : "";
	uint64_t at[2] = { seed, count(argv[1]) };
	struct u128 coin = hash_xxh3(at, sizeof at);
	bool wrong =
	    (double)(coin.hi >> 11) * 0x1p-53 < rate_of(argv[3], argv[4]);
	/* A fault that is there differs from time to time; "same" does not. */
	uint64_t bit = wrong ? (strcmp(how, "same") ? coin.lo | 1 : 1) : 0;
	if (wrong)
		go_wrong(how);
	if (!strcmp(how, "move"))
		bit = 0;
	if (se_stream_open(&s, NULL, &o))
		return 9;
	for (uint64_t step = 0; step < 2; step++)
		for (int i = 0; i < 3; i++) {
			bool here = step == 1 && i == 1;
			bool in = here && !strcmp(how, "input");
			layer(s, step, i, "in", in ? bit : 0, "0");
			layer(s, step, i, "out", here ? bit : 0, "0");
		}
	return se_stream_close(s) ? 9 : 0;
}
