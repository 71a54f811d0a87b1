/*
 * The traffic of a fabric of namespaces, and its counters, all nodes in one
 * process: so that none of them measures while another one sleeps.
 *
 *   traffic PREFIX DIRECTORY SWITCH... HOST=ADDRESS...
 *
 * Each node is in the namespace PREFIX NODE; hosts whose names begin with the
 * same two characters have one leaf and do not probe one another. Every host
 * answers UDP on port 7777 and takes TCP on 7778. Commands are read from
 * standard input, each is answered when it is done:
 *
 *   count FILE            what every interface has counted, to DIRECTORY/FILE,
 *                         ifname,rx_dropped,rx_errors,carrier_changes: ok
 *   lose HOST PER_MILLE   from now on it loses so many UDP answers: ok
 *   connect SRC DST       a TCP flow from each of 32 ports, from 30000: ok
 *   run                   probes, and a packet every 20 ms on each flow; says
 *                         middle after a third of a second, and done
 *   stop                  ends a run, once it has lasted for a second
 *
 * A probe is a datagram every 16 ms from each of 8 source ports, from 20000, of
 * each host to each other. DIRECTORY/rows gets what became of them,
 * src,dst,sport,since,time,sent,recv for every 64 ms, and DIRECTORY/sent the
 * retransmits of the flows, all together.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
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
	PORTS = 8,
	FLOWS = 32, /* so many that a fault of some ports meets one */
	NODES_MAX = 32,
	HOSTS_MAX = 8,
	NAME = 16,
	PERIOD_MS = 16,
	TICKS = 60, /* of one run, at least */
	TICKS_MAX = 600,
	MIDDLE = 20,
	SLICE = 4, /* ticks in one row */
	SLICES = TICKS_MAX / SLICE,
	PROBE = 64,    /* bytes */
	PACKET = 1000, /* bytes of TCP */
	PACKET_MS = 20,
	QUIET_MS = 150,  /* for the last answers */
	LAST_MS = 400,   /* for what is not yet acknowledged */
	HELLO_MS = 3000, /* for connections */
	ROOM = 4 << 20,  /* bytes that may wait to be read */
	FDS_MAX = 1 + HOSTS_MAX * (PORTS + 2) + 2 * FLOWS
};

struct host {
	char name[NAME];
	struct sockaddr_in at;
	int ns, probe[PORTS];
	unsigned lose, answered;
};

/* What a probe carries there and back. */
struct stamp {
	uint16_t to, slice;
};

enum kind { COMMAND, ANSWER, LISTEN, BACK, DRAIN };

static struct host host[HOSTS_MAX];
static int nhosts;
static int links_of[NODES_MAX], nnodes; /* sockets that know the interfaces */
static struct pollfd ready[FDS_MAX];
static struct {
	enum kind kind;
	int host, port;
} what[FDS_MAX];
static nfds_t nready;

static int flow[FLOWS], nflows;
static struct {
	int64_t since, time;
	unsigned sent, got[HOSTS_MAX][HOSTS_MAX][PORTS];
} slice[SLICES];
static const char *directory;
static bool running, stopped;

static void
die(const char *why)
{
	perror(why);
	exit(2);
}

static int64_t
clock_ms(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t
now_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

static void
enter(int ns)
{
	if (setns(ns, CLONE_NEWNET))
		die("traffic: setns");
}

/* A socket of this host. */
static int
bound(const struct host *h, int type, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int one = 1, room = ROOM;
	enter(h->ns);
	int fd = socket(AF_INET, type | SOCK_NONBLOCK, 0);
	a.sin_port = htons((uint16_t)port);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	/* On a busy machine the reader may sleep for a while. */
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a))
		die("traffic: bind");
	return fd;
}

static struct sockaddr_in
at_port(const struct host *h, int port)
{
	struct sockaddr_in a = h->at;
	a.sin_port = htons((uint16_t)port);
	return a;
}

static void
watch(int fd, enum kind kind, int h, int port)
{
	if (nready == FDS_MAX)
		die("traffic: too many sockets");
	what[nready].kind = kind;
	what[nready].host = h;
	what[nready].port = port;
	ready[nready++] = (struct pollfd){ fd, POLLIN, 0 };
}

static void
unwatch(nfds_t i)
{
	close(ready[i].fd);
	ready[i] = ready[--nready];
	what[i] = what[nready];
}

static int
find(const char *name)
{
	for (int h = 0; h < nhosts; h++)
		if (!strcmp(host[h].name, name))
			return h;
	fprintf(stderr, "traffic: no host %s\n", name);
	exit(2);
}

/* ---- what comes in --------------------------------------------------- */

static void
answer(int fd, struct host *h)
{
	char b[PROBE];
	struct sockaddr_in from;
	socklen_t len = sizeof from;
	struct sockaddr *peer = (struct sockaddr *)&from;
	ssize_t n;
	while ((n = recvfrom(fd, b, sizeof b, 0, peer, &len)) >= 0)
		/* A multiplicative hash: spread, and repeatable. */
		if (++h->answered * 2654435761u % 1000 >= h->lose)
			sendto(fd, b, (size_t)n, 0, peer, len);
}

static void
collect(int fd, int h, int port)
{
	char b[PROBE];
	struct stamp s;
	while (recv(fd, b, sizeof b, 0) == PROBE) {
		memcpy(&s, b, sizeof s);
		if (s.to < nhosts && s.slice < SLICES)
			slice[s.slice].got[h][s.to][port]++;
	}
}

static void command(void);

static void
take(nfds_t i)
{
	static char sink[1 << 16];
	int fd = ready[i].fd, h = what[i].host, peer;
	switch (what[i].kind) {
	case COMMAND:
		command();
		break;
	case ANSWER:
		answer(fd, &host[h]);
		break;
	case LISTEN:
		if ((peer = accept(fd, NULL, NULL)) >= 0)
			watch(peer, DRAIN, h, 0);
		break;
	case BACK:
		collect(fd, h, what[i].port);
		break;
	case DRAIN:
		if (read(fd, sink, sizeof sink) <= 0)
			unwatch(i);
	}
}

/* Serves everybody for so many ms, once at least. */
static void
serve(int64_t ms)
{
	int64_t end = now_ms() + ms, left = ms;
	do {
		poll(ready, nready, (int)left);
		/* From behind: the last one may take the place of another. */
		for (nfds_t i = nready; i-- > 0;)
			if (ready[i].revents)
				take(i);
		left = end - now_ms();
	} while (left > 0);
}

/* ---- the flows that complain ----------------------------------------- */

static struct tcp_info
info_of(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof info;
	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len);
	return info;
}

static bool
is_up(int fd)
{
	return info_of(fd).tcpi_state == TCP_ESTABLISHED;
}

/* What was sent must be acknowledged before it is known to have come. */
static bool
is_acked(int fd)
{
	return !info_of(fd).tcpi_unacked;
}

static bool
await(bool (*is)(int), int64_t ms)
{
	for (int64_t end = now_ms() + ms; now_ms() < end; serve(1)) {
		int n = 0;
		while (n < nflows && is(flow[n]))
			n++;
		if (n == nflows)
			return true;
	}
	return false;
}

/* Both ends: a reset may get lost on what is broken. */
static void
hang_up(void)
{
	/* With a reset: the same ports are wanted again soon. */
	struct linger now = { 1, 0 };
	while (nflows > 0) {
		setsockopt(
		    flow[--nflows], SOL_SOCKET, SO_LINGER, &now, sizeof now);
		close(flow[nflows]);
	}
	for (nfds_t i = nready; i-- > 0;)
		if (what[i].kind == DRAIN)
			unwatch(i);
}

static void
call(const struct host *from, const struct host *to)
{
	struct sockaddr_in a = at_port(to, SINK);
	int one = 1, mss = PACKET;
	hang_up();
	while (nflows < FLOWS) {
		int fd = bound(from, SOCK_STREAM, SEND + nflows);
		setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof mss);
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		connect(fd, (struct sockaddr *)&a, sizeof a);
		flow[nflows++] = fd;
	}
	if (!await(is_up, HELLO_MS))
		die("traffic: connect");
}

static FILE *
create(const char *name)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	FILE *f = fopen(path, "w");
	if (!f)
		die(path);
	return f;
}

static void
put_sent(void)
{
	unsigned again = 0;
	FILE *f = create("sent");
	await(is_acked, LAST_MS);
	for (int i = 0; i < nflows; i++)
		again += info_of(flow[i]).tcpi_total_retrans;
	hang_up();
	fprintf(f, "%u\n", again);
	if (fclose(f))
		die("traffic: sent");
}

/* ---- probes ---------------------------------------------------------- */

static bool
is_pair(int h, int d)
{
	return strncmp(host[h].name, host[d].name, 2) != 0;
}

static void
send_probes(unsigned tick)
{
	char b[PROBE] = { 0 };
	struct stamp s = { .slice = (uint16_t)(tick / SLICE) };
	int64_t now = clock_ms(CLOCK_REALTIME);
	if (!slice[s.slice].sent++)
		slice[s.slice].since = now;
	for (int d = 0; d < nhosts; d++) {
		struct sockaddr_in to = at_port(&host[d], ECHO);
		s.to = (uint16_t)d;
		memcpy(b, &s, sizeof s);
		for (int h = 0; h < nhosts; h++)
			for (int i = 0; is_pair(h, d) && i < PORTS; i++)
				sendto(host[h].probe[i], b, sizeof b, 0,
				    (struct sockaddr *)&to, sizeof to);
	}
	slice[s.slice].time = clock_ms(CLOCK_REALTIME);
}

static void
put_row(FILE *f, int h, int d, int port, int s)
{
	long long a = slice[s].since, b = slice[s].time;
	fprintf(f, "%s,%s,%d,%lld.%03lld,%lld.%03lld,%u,%u\n", host[h].name,
	    host[d].name, FROM + port, a / 1000, a % 1000, b / 1000, b % 1000,
	    slice[s].sent, slice[s].got[h][d][port]);
}

static void
put_rows(void)
{
	FILE *f = create("rows");
	for (int h = 0; h < nhosts; h++)
		for (int d = 0; d < nhosts; d++)
			for (int i = 0; is_pair(h, d) && i < PORTS; i++)
				for (int s = 0; s < SLICES && slice[s].sent;
				     s++)
					put_row(f, h, d, i, s);
	if (fclose(f))
		die("traffic: rows");
}

/* Whoever comes late goes on from there: a row knows its time. */
static void
run(void)
{
	static const char packet[PACKET];
	int64_t probe = now_ms(), data = probe;
	unsigned tick = 0;
	memset(slice, 0, sizeof slice);
	stopped = false;
	running = true;
	while (tick < TICKS_MAX && (tick < TICKS || !stopped)) {
		int64_t now = now_ms();
		if (now >= data) {
			for (int i = 0; i < nflows; i++)
				send(flow[i], packet, PACKET, MSG_NOSIGNAL);
			data = now + PACKET_MS;
		}
		if (now >= probe) {
			send_probes(tick++);
			probe = now + PERIOD_MS;
			if (tick == MIDDLE)
				puts("middle");
		}
		now = now_ms();
		int64_t next = probe < data ? probe : data;
		serve(next > now ? next - now : 0);
	}
	serve(QUIET_MS);
	running = false;
	put_rows();
	put_sent();
}

/* ---- counters ---------------------------------------------------------- */

static void
put_link(FILE *f, struct nlmsghdr *m)
{
	struct ifinfomsg *i = NLMSG_DATA(m);
	int left = (int)IFLA_PAYLOAD(m);
	struct rtnl_link_stats64 s = { 0 };
	const char *name = "";
	uint32_t changes = 0;
	for (struct rtattr *a = IFLA_RTA(i); RTA_OK(a, left);
	     a = RTA_NEXT(a, left))
		if (a->rta_type == IFLA_IFNAME)
			name = RTA_DATA(a);
		else if (a->rta_type == IFLA_CARRIER_CHANGES)
			memcpy(&changes, RTA_DATA(a), sizeof changes);
		else if (a->rta_type == IFLA_STATS64)
			memcpy(&s, RTA_DATA(a),
			    RTA_PAYLOAD(a) < sizeof s ? RTA_PAYLOAD(a)
						      : sizeof s);
	if (strcmp(name, "lo") != 0)
		fprintf(f, "%s,%llu,%llu,%u\n", name,
		    (unsigned long long)s.rx_dropped,
		    (unsigned long long)s.rx_errors, changes);
}

/* rtnetlink(7): a dump of RTM_GETLINK, in parts, until NLMSG_DONE. */
static void
put_links(FILE *f, int fd)
{
	static char b[1 << 16];
	struct {
		struct nlmsghdr h;
		struct ifinfomsg i;
	} ask = { { sizeof ask, RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 0, 0 },
		{ .ifi_family = AF_UNSPEC } };
	if (send(fd, &ask, sizeof ask, 0) < 0)
		die("traffic: netlink");
	for (;;) {
		ssize_t n = recv(fd, b, sizeof b, 0);
		if (n <= 0)
			die("traffic: netlink");
		for (struct nlmsghdr *m = (void *)b; NLMSG_OK(m, n);
		     m = NLMSG_NEXT(m, n)) {
			if (m->nlmsg_type == NLMSG_DONE)
				return;
			if (m->nlmsg_type == RTM_NEWLINK)
				put_link(f, m);
		}
	}
}

static void
put_counters(const char *name)
{
	FILE *f = create(name);
	fputs("ifname,rx_dropped,rx_errors,carrier_changes\n", f);
	for (int i = 0; i < nnodes; i++)
		put_links(f, links_of[i]);
	if (fclose(f))
		die("traffic: counters");
}

/* ---- commands -------------------------------------------------------- */

/* One line a time: whoever asks waits for the answer. */
static void
command(void)
{
	char line[256], verb[16] = "", a[NAME] = "", b[NAME] = "";
	ssize_t n = read(0, line, sizeof line - 1);
	if (n <= 0)
		exit(0);
	line[n] = 0;
	sscanf(line, "%15s %15s %15s", verb, a, b);
	if (running) {
		stopped |= !strcmp(verb, "stop");
		return;
	}
	if (!strcmp(verb, "lose"))
		host[find(a)].lose = (unsigned)strtoul(b, NULL, 10);
	else if (!strcmp(verb, "count"))
		put_counters(a);
	else if (!strcmp(verb, "connect"))
		call(&host[find(a)], &host[find(b)]);
	else if (!strcmp(verb, "run"))
		run();
	else
		die("traffic: unknown command");
	puts(verb[0] == 'r' ? "done" : "ok");
}

static void
add_host(const char *name, const char *ip, int ns)
{
	struct host *h = &host[nhosts];
	if (nhosts == HOSTS_MAX)
		die("traffic: too many hosts");
	snprintf(h->name, NAME, "%s", name);
	h->ns = ns;
	h->at.sin_family = AF_INET;
	if (inet_pton(AF_INET, ip, &h->at.sin_addr) != 1)
		die(ip);
	int sink = bound(h, SOCK_STREAM, SINK);
	listen(sink, FLOWS);
	watch(sink, LISTEN, nhosts, 0);
	watch(bound(h, SOCK_DGRAM, ECHO), ANSWER, nhosts, 0);
	for (int i = 0; i < PORTS; i++) {
		h->probe[i] = bound(h, SOCK_DGRAM, FROM + i);
		watch(h->probe[i], BACK, nhosts, i);
	}
	nhosts++;
}

static void
add_node(const char *prefix, char *arg)
{
	char path[256], *ip = strchr(arg, '=');
	if (ip)
		*ip++ = 0;
	snprintf(path, sizeof path, "/run/netns/%s%s", prefix, arg);
	int ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0 || nnodes == NODES_MAX)
		die(path);
	enter(ns);
	links_of[nnodes] = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	if (links_of[nnodes++] < 0)
		die("traffic: netlink");
	if (ip)
		add_host(arg, ip, ns);
	else
		close(ns);
}

int
main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	directory = argv[2];
	/* Who waits for a processor is no broken link. */
	sched_setscheduler(0, SCHED_RR, &(struct sched_param){ 1 });
	setvbuf(stdout, NULL, _IOLBF, 0);
	watch(0, COMMAND, 0, 0);
	for (int i = 3; i < argc; i++)
		add_node(argv[1], argv[i]);
	puts("ready");
	for (;;)
		serve(1000);
}
