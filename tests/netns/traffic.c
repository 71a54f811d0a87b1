/*
 * Traffic for the fabric of namespaces.
 *
 *   traffic echo PER_MILLE           answer UDP on port 7777 and take TCP on
 *                                    7778, losing so many answers on purpose;
 *                                    prints "ready" first
 *   traffic probe COUNT PORTS DST..  COUNT datagrams from each of PORTS source
 *                                    ports (from 20000) to each address; prints
 *                                    DST,SPORT,SENT,RECEIVED
 *   traffic send BYTES PORTS DST     TCP from each of PORTS source ports (from
 *                                    30000), two seconds at most; prints
 *                                    the retransmits, all together
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	ECHO = 7777,
	SINK = 7778,
	FROM = 20000,
	SEND = 30000,
	SIZE = 64,
	QUIET_MS = 120,
	SEND_MS = 2000,
	PORTS_MAX = 64
};

static struct sockaddr_in
address(const char *ip, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	a.sin_port = htons((uint16_t)port);
	if (ip && inet_pton(AF_INET, ip, &a.sin_addr) != 1) {
		fprintf(stderr, "traffic: bad address %s\n", ip);
		exit(2);
	}
	return a;
}

static int
bound(int type, int port)
{
	struct sockaddr_in a = address(NULL, port);
	int one = 1, fd = socket(AF_INET, type | SOCK_NONBLOCK, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a)) {
		perror("traffic: bind");
		exit(2);
	}
	return fd;
}

/* 0, for use in conditions. */
static int
nap_ms(int ms)
{
	poll(NULL, 0, ms);
	return 0;
}

static int64_t
now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- the other end --------------------------------------------------- */

static void
answer(int fd, int lose, unsigned *count)
{
	char b[2048];
	struct sockaddr_in from;
	socklen_t len = sizeof from;
	ssize_t n;
	while ((n = recvfrom(
		    fd, b, sizeof b, 0, (struct sockaddr *)&from, &len)) >= 0) {
		/* A multiplicative hash of the count: spread, and repeatable.
		 */
		if (++*count * 2654435761u % 1000 >= (unsigned)lose)
			sendto(
			    fd, b, (size_t)n, 0, (struct sockaddr *)&from, len);
	}
}

static int
echo(int lose)
{
	struct pollfd p[64] = { { bound(SOCK_DGRAM, ECHO), POLLIN, 0 },
		{ bound(SOCK_STREAM, SINK), POLLIN, 0 } };
	nfds_t n = 2;
	unsigned count = 0;
	static char sink[1 << 16];
	listen(p[1].fd, 16);
	puts("ready");
	fflush(stdout);
	while (poll(p, n, -1) >= 0) {
		if (p[0].revents)
			answer(p[0].fd, lose, &count);
		if (p[1].revents && n < 64) {
			int fd = accept(p[1].fd, NULL, NULL);
			if (fd >= 0)
				p[n++] = (struct pollfd){ fd, POLLIN, 0 };
		}
		for (nfds_t i = 2; i < n; i++)
			if (p[i].revents &&
			    read(p[i].fd, sink, sizeof sink) <= 0) {
				close(p[i].fd);
				p[i--] = p[--n];
			}
	}
	return 1;
}

/* ---- probes ---------------------------------------------------------- */

static void
collect(const int *fd, int ports, int *got, int wait)
{
	struct pollfd p[PORTS_MAX];
	char b[2048];
	for (int i = 0; i < ports; i++)
		p[i] = (struct pollfd){ fd[i], POLLIN, 0 };
	while (poll(p, (nfds_t)ports, wait) > 0)
		for (int i = 0; i < ports; i++)
			while (p[i].revents && recv(fd[i], b, sizeof b, 0) > 0)
				got[i]++;
}

static int
probe(int count, int ports, char **dst)
{
	int fd[PORTS_MAX];
	char b[SIZE] = { 0 };
	for (int i = 0; i < ports; i++)
		fd[i] = bound(SOCK_DGRAM, FROM + i);
	for (; *dst; dst++) {
		struct sockaddr_in to = address(*dst, ECHO);
		int got[PORTS_MAX] = { 0 };
		for (int k = 0; k < count; k++) {
			for (int i = 0; i < ports; i++)
				sendto(fd[i], b, sizeof b, 0,
				    (struct sockaddr *)&to, sizeof to);
			/* Bursts would overflow a queue: a millisecond each. */
			collect(fd, ports, got, 1);
		}
		collect(fd, ports, got, QUIET_MS);
		for (int i = 0; i < ports; i++)
			printf("%s,%d,%d,%d\n", *dst, FROM + i, count, got[i]);
	}
	return 0;
}

/* ---- the flow that complains ----------------------------------------- */

static void
send_one(int port, int64_t bytes, const char *dst, unsigned *again)
{
	static char b[1 << 14];
	struct sockaddr_in to = address(dst, SINK);
	struct tcp_info info = { 0 };
	socklen_t len = sizeof info;
	int mss = 1000, fd = bound(SOCK_STREAM, port);
	int64_t until = now_ms() + SEND_MS;
	setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof mss);
	if (connect(fd, (struct sockaddr *)&to, sizeof to) &&
	    errno != EINPROGRESS)
		bytes = 0;
	while (bytes > 0 && now_ms() < until) {
		struct pollfd p = { fd, POLLOUT, 0 };
		if (poll(&p, 1, 50) <= 0)
			continue;
		ssize_t n = write(fd, b, sizeof b);
		if (n < 0 && errno != EAGAIN)
			break;
		bytes -= n > 0 ? n : 0;
	}
	/* What was sent must be acknowledged before it is known to have come.
	 */
	do
		getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len);
	while (info.tcpi_unacked && now_ms() < until && !nap_ms(20));
	*again += info.tcpi_total_retrans;
	close(fd);
}

static int
transfer(int64_t bytes, int ports, const char *dst)
{
	unsigned again = 0;
	for (int i = 0; i < ports; i++)
		send_one(SEND + i, bytes, dst, &again);
	printf("%u\n", again);
	return 0;
}

int
main(int argc, char **argv)
{
	long n = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	long ports = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
	if (argc == 3 && !strcmp(argv[1], "echo"))
		return echo((int)n);
	if (ports < 1 || ports > PORTS_MAX || argc < 5)
		return 2;
	if (!strcmp(argv[1], "probe"))
		return probe((int)n, (int)ports, argv + 4);
	if (!strcmp(argv[1], "send") && argc == 5)
		return transfer(n, (int)ports, argv[4]);
	return 2;
}
