/*
 * Traffic for the fabric of namespaces.
 *
 *   traffic echo PER_MILLE           answer UDP on port 7777 and take TCP on
 *                                    7778, losing so many answers on purpose;
 *                                    prints "ready" first
 *   traffic probe START PORTS DST..  a datagram every 16 ms, for a second from
 *                                    START (ms since the epoch), from each of
 *                                    PORTS source ports (from 20000) to each
 *                                    address; prints DST,SPORT,SENT,RECEIVED
 *   traffic send MS PORTS DST        TCP from each of PORTS source ports (from
 *                                    30000), a packet every 10 ms from each;
 *                                    prints the retransmits, all together
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
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
	QUIET_MS = 150,
	PROBES = 60,
	PROBES_MIN = 54, /* with fewer it may have slept through a flap */
	PERIOD_MS = 16,
	LATE_MS = 100, /* a probe that would be sent so late is left out */
	PACKET = 1000, /* bytes of TCP */
	TICK_MS = 10,
	LAST_MS = 1500, /* for what is not yet acknowledged */
	ROOM = 4 << 20, /* bytes that may wait to be read */
	PORTS_MAX = 64,
	DSTS_MAX = 64
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
	int one = 1, room = ROOM, fd = socket(AF_INET, type | SOCK_NONBLOCK, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	/* On a busy machine the reader may sleep for a while. */
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a)) {
		perror("traffic: bind");
		exit(2);
	}
	return fd;
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

/* Who answers, and how often on which port. */
struct answers {
	struct sockaddr_in from[DSTS_MAX];
	int n, ports, fd[PORTS_MAX], got[DSTS_MAX][PORTS_MAX];
};

static void
collect(struct answers *a, int wait)
{
	struct pollfd p[PORTS_MAX];
	char b[2048];
	struct sockaddr_in from;
	socklen_t len = sizeof from;
	for (int i = 0; i < a->ports; i++)
		p[i] = (struct pollfd){ a->fd[i], POLLIN, 0 };
	while (poll(p, (nfds_t)a->ports, wait) > 0)
		for (int i = 0; i < a->ports; i++)
			while (p[i].revents &&
			       recvfrom(a->fd[i], b, sizeof b, 0,
				   (struct sockaddr *)&from, &len) > 0)
				for (int d = 0; d < a->n; d++)
					a->got[d][i] +=
					    a->from[d].sin_addr.s_addr ==
					    from.sin_addr.s_addr;
}

static int64_t
epoch_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void
send_all(const struct answers *a, int d)
{
	char b[SIZE] = { 0 };
	for (int i = 0; i < a->ports; i++)
		sendto(a->fd[i], b, sizeof b, 0,
		    (const struct sockaddr *)&a->from[d], sizeof a->from[d]);
}

/*
 * All sources send at the same times: who had measured at another time would
 * call a path clean that was not when the others lost their packets. For the
 * same reason a source that slept for a while says nothing.
 */
static int
probe(int64_t start, int ports, char **dst)
{
	static struct answers a;
	int sent = 0;
	a.ports = ports;
	for (int i = 0; i < ports; i++)
		a.fd[i] = bound(SOCK_DGRAM, FROM + i);
	for (; dst[a.n] && a.n < DSTS_MAX; a.n++)
		a.from[a.n] = address(dst[a.n], ECHO);
	for (int k = 0; k < PROBES; k++) {
		int64_t at = start + k * PERIOD_MS, now;
		while ((now = epoch_ms()) < at)
			collect(&a, (int)(at - now));
		if (now > at + LATE_MS)
			continue;
		sent++;
		for (int d = 0; d < a.n; d++)
			send_all(&a, d);
	}
	collect(&a, QUIET_MS);
	for (int d = 0; d < a.n && sent >= PROBES_MIN; d++)
		for (int i = 0; i < ports; i++)
			printf("%s,%d,%d,%d\n", dst[d], FROM + i, sent,
			    a.got[d][i]);
	return 0;
}

/* ---- the flow that complains ----------------------------------------- */

static int
connected(int port, const char *dst)
{
	struct sockaddr_in to = address(dst, SINK);
	int one = 1, mss = PACKET, fd = bound(SOCK_STREAM, port);
	setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof mss);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (connect(fd, (struct sockaddr *)&to, sizeof to) &&
	    errno != EINPROGRESS)
		perror("traffic: connect");
	return fd;
}

static struct tcp_info
info_of(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof info;
	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len);
	return info;
}

/* What was sent must be acknowledged before it is known to have come. */
static bool
waits(const int *fd, int ports)
{
	for (int i = 0; i < ports; i++)
		if (info_of(fd[i]).tcpi_unacked)
			return true;
	return false;
}

static int
transfer(int ms, int ports, const char *dst)
{
	static const char b[PACKET];
	int fd[PORTS_MAX];
	unsigned again = 0;
	int64_t start = now_ms(), end;
	for (int i = 0; i < ports; i++)
		fd[i] = connected(SEND + i, dst);
	while (now_ms() < start + ms) {
		poll(NULL, 0, TICK_MS);
		for (int i = 0; i < ports; i++)
			if (write(fd[i], b, sizeof b) < 0 && errno == EPIPE)
				return 2;
	}
	end = now_ms() + LAST_MS;
	while (waits(fd, ports) && now_ms() < end)
		poll(NULL, 0, TICK_MS);
	for (int i = 0; i < ports; i++)
		again += info_of(fd[i]).tcpi_total_retrans;
	printf("%u\n", again);
	return 0;
}

int
main(int argc, char **argv)
{
	/* Who waits for a processor is no broken link; without root it may be.
	 */
	sched_setscheduler(0, SCHED_RR, &(struct sched_param){ 1 });
	long n = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	long ports = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
	if (argc == 3 && !strcmp(argv[1], "echo"))
		return echo((int)n);
	if (ports < 1 || ports > PORTS_MAX || argc < 5)
		return 2;
	if (!strcmp(argv[1], "probe"))
		return probe(n, (int)ports, argv + 4);
	if (!strcmp(argv[1], "send") && argc == 5)
		return transfer((int)n, (int)ports, argv[4]);
	return 2;
}
