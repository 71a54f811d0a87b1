/* Counters by name: see event.h. */
#define _GNU_SOURCE
#include "event.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "num.h"

#define HW(name, id, exact)                                             \
	{                                                               \
		name, PMU_PAGE, PERF_TYPE_HARDWARE, id, exact, "events" \
	}
#define SW(name, id, unit)                                          \
	{                                                           \
		name, PMU_READ, PERF_TYPE_SOFTWARE, id, false, unit \
	}

// clang-format off
const struct event event_table[] = {
	HW("instructions", PERF_COUNT_HW_INSTRUCTIONS, true),
	HW("cycles", PERF_COUNT_HW_CPU_CYCLES, false),
	HW("branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS, true),
	HW("branch-misses", PERF_COUNT_HW_BRANCH_MISSES, false),
	HW("cache-references", PERF_COUNT_HW_CACHE_REFERENCES, false),
	HW("cache-misses", PERF_COUNT_HW_CACHE_MISSES, false),
	HW("ref-cycles", PERF_COUNT_HW_REF_CPU_CYCLES, false),
	SW("task-clock", PERF_COUNT_SW_TASK_CLOCK, "ns"),
	SW("page-faults", PERF_COUNT_SW_PAGE_FAULTS, "events"),
	SW("context-switches", PERF_COUNT_SW_CONTEXT_SWITCHES, "events"),
	SW("migrations", PERF_COUNT_SW_CPU_MIGRATIONS, "events"),
	{ "tsc", PMU_TSC, 0, 0, false, "ticks" },
	{ 0 },
};
// clang-format on

static int
raw(struct event *out, struct str name, struct err *e)
{
	uint64_t v = 0;
	for (size_t i = 1; i < name.len; i++) {
		char c = name.p[i];
		int d = c >= '0' && c <= '9'   ? c - '0'
			: c >= 'a' && c <= 'f' ? c - 'a' + 10
					       : -1;
		if (d < 0 || v >> 60)
			return err_set(e, SE_EINVAL,
			    "expected r and a hexadecimal code, found \"%.*s\"",
			    STR_ARG(name));
		v = v << 4 | (unsigned)d;
	}
	*out =
	    (struct event){ NULL, PMU_PAGE, PERF_TYPE_RAW, v, false, "events" };
	return 0;
}

int
event_find(struct event *out, struct str name, struct err *e)
{
	for (const struct event *v = event_table; v->name; v++)
		if (str_is(name, v->name)) {
			*out = *v;
			return 0;
		}
	if (name.len > 1 && name.len < 18 && name.p[0] == 'r' &&
	    name.p[1] != 'e')
		return raw(out, name, e);
	return err_set(e, SE_EINVAL,
	    "unknown event \"%.*s\"; `pmucount list` prints the names",
	    STR_ARG(name));
}

int
event_add(struct event_set *set, const char *list, struct err *e)
{
	struct str rest = str_c(list), word;
	while (str_cut(&rest, ',', &word)) {
		if (set->n == PMU_COUNTERS)
			return err_set(e, SE_ELIMIT,
			    "at most %d counters in one run", PMU_COUNTERS);
		struct event *ev = &set->event[set->n];
		int r = event_find(ev, word, e);
		if (r)
			return r;
		if (!ev->name) /* the text of the option lives on */
			ev->name = word.p;
		for (unsigned i = 0; i < set->n; i++)
			if (set->event[i].type == ev->type &&
			    set->event[i].config == ev->config)
				return err_set(e, SE_EINVAL,
				    "event \"%.*s\" twice", STR_ARG(word));
		set->n++;
	}
	return 0;
}

bool
event_is_hardware(const struct event *ev)
{
	return ev->source == PMU_PAGE;
}

int
event_try(const struct event *ev, int *keep)
{
	if (ev->source == PMU_TSC || ev->source == PMU_GIVEN)
		return 0;
	struct perf_event_attr a = {
		.size = sizeof a,
		.type = ev->type,
		.config = ev->config,
		.disabled = 1,
		.exclude_kernel = event_is_hardware(ev),
		.exclude_hv = event_is_hardware(ev),
	};
	long fd =
	    syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return errno;
	if (keep)
		*keep = (int)fd;
	else
		close((int)fd);
	return 0;
}

const char *
event_why(const struct event *ev, int error)
{
	switch (error) {
	case 0:
		return "usable";
	case ENOENT:
		return event_is_hardware(ev)
			   ? "no PMU here, or not this event (a virtual "
			     "machine without one?)"
			   : "the kernel does not have it";
	case EOPNOTSUPP:
	case ENODEV:
	case ENXIO:
		return "the hypervisor or CPU offers no such counter";
	case EACCES:
	case EPERM:
		return "no permission: CAP_PERFMON, or "
		       "kernel.perf_event_paranoid 2 or less (a container's "
		       "seccomp filter also answers so)";
	case ENOSYS:
		return "perf_event_open is not there: kernel or seccomp";
	case EMFILE:
	case ENFILE:
		return "out of descriptors";
	case EINVAL:
		return "the PMU does not take it, or not beside the others";
	case EBUSY:
		return "another user holds the counter (NMI watchdog?)";
	}
	return "refused";
}
