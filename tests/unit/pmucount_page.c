/*
 * Counters read through a made-up perf page: every way that the seqlock, the
 * index and the width can go. Expected values by hand from the rules in
 * include/uapi/linux/perf_event.h.
 */
#include "test.h"

#include <string.h>

#include "../../cmd/pmucount/rt/page.h"

/* What the hardware answers, and what happens to the page meanwhile. */
static struct {
	struct perf_event_mmap_page page;
	uint64_t raw;
	uint32_t index; /* asked for last */
	unsigned reads;
	unsigned moves;      /* the first so many reads are torn */
	uint32_t then_index; /* where the counter is after a move */
	int64_t then_offset;
	uint64_t then_raw;
} hw;

static uint64_t
hw_read(uint32_t index)
{
	uint64_t v = hw.raw;
	hw.index = index;
	hw.reads++;
	if (hw.moves) {
		hw.moves--;
		hw.page.lock += 2;
		hw.page.index = hw.then_index;
		hw.page.offset = hw.then_offset;
		hw.raw = hw.then_raw;
	}
	return v;
}

/* A page that can be read: 48 bits, offset 1000. */
static void
fresh(uint64_t raw)
{
	memset(&hw, 0, sizeof hw);
	hw.page.lock = 2;
	hw.page.index = 1;
	hw.page.offset = 1000;
	hw.page.pmc_width = 48;
	hw.page.cap_user_rdpmc = 1;
	hw.page.cap_bit0_is_deprecated = 1;
	hw.page.time_enabled = hw.page.time_running = 12345;
	hw.raw = raw;
}

static bool
reads_as(uint64_t want)
{
	uint64_t v = 77;
	return pmu_page_read(&hw.page, hw_read, &v) == PMU_PAGE_OK && v == want;
}

/* read(2) is asked instead, and nothing is made up. */
static bool
is_slow(void)
{
	uint64_t v = 77;
	return pmu_page_read(&hw.page, hw_read, &v) == PMU_PAGE_SLOW && v == 77;
}

static void
test_not_readable(void)
{
	fresh(5);
	CHECK(reads_as(1005) && hw.reads == 1 && hw.index == 1);
	fresh(5);
	hw.page.index = 0; /* not on the PMU: the offset alone is stale */
	CHECK(is_slow() && !hw.reads);
	fresh(5);
	hw.page.cap_user_rdpmc = 0;
	CHECK(is_slow() && !hw.reads); /* rdpmc would be a SIGSEGV */
	fresh(5);
	hw.page.cap_bit0_is_deprecated = 0;
	CHECK(is_slow() && !hw.reads);
	fresh(5);
	hw.page.time_running--; /* was off the PMU: never scaled */
	CHECK(is_slow() && !hw.reads);
	fresh(5);
	hw.page.time_enabled = hw.page.time_running = 0;
	CHECK(reads_as(1005));
}

static void
test_indexes(void)
{
	fresh(5);
	hw.page.index = 4;
	CHECK(reads_as(1005) && hw.index == 4);
	fresh(5);
	hw.page.index = (UINT32_C(1) << 30) + 1; /* a fixed counter */
	CHECK(reads_as(1005) && hw.index == (UINT32_C(1) << 30) + 1);
	fresh(5);
	hw.page.index = 32; /* the cycle counter of arm64 */
	CHECK(reads_as(1005) && hw.index == 32);
}

static void
test_widths(void)
{
	/* The kernel starts a counter at -N and keeps N in the offset. */
	static const struct {
		unsigned width;
		int64_t offset;
		uint64_t raw, want;
	} rows[] = {
		{ 48, 100, UINT64_C(0xffffffffff9c), 0 },
		{ 48, 100, UINT64_C(0xffffffffffff), 99 },
		{ 48, 100, 0, 100 },
		{ 48, 1000, UINT64_C(0x7fffffffffff), 0x8000000003e7 },
		{ 48, 0, UINT64_C(0x800000000000),
		    (uint64_t)-INT64_C(0x800000000000) },
		{ 40, 100, UINT64_C(0xffffffff9c), 0 },
		{ 40, 100, UINT64_C(0x7fffffffff), 0x8000000063 },
		{ 32, 100, UINT64_C(0xffffff9c), 0 },
		{ 32, 0x7fffffff, UINT64_C(0x80000001), 0 },
		/* Bits above the width mean nothing. */
		{ 32, 100, UINT64_C(0xdeadbeefffffff9c), 0 },
		{ 48, 100, UINT64_C(0xabcd000000000005), 105 },
		{ 64, -5, 12, 7 },
		{ 64, 100, UINT64_MAX, 99 },
		{ 0, 7, 5, 12 }, /* a kernel that does not say */
		{ 1, 10, 1, 9 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		fresh(rows[i].raw);
		hw.page.pmc_width = (uint16_t)rows[i].width;
		hw.page.offset = rows[i].offset;
		if (!CHECK(reads_as(rows[i].want)))
			fprintf(stderr, "row %zu\n", i);
	}
}

static void
test_seqlock(void)
{
	/* Moved during the read: old counter with the new offset, or the
	 * other way round, would be 1007 or 2005. */
	fresh(5);
	hw.moves = 1;
	hw.then_index = 3;
	hw.then_offset = 2000;
	hw.then_raw = 7;
	CHECK(reads_as(2007) && hw.reads == 2 && hw.index == 3);
	fresh(5);
	hw.moves = 100;
	hw.then_index = 3;
	hw.then_offset = 2000;
	hw.then_raw = 7;
	CHECK(reads_as(2007) && hw.reads == 101);
	/* Moved off the PMU during the read. */
	fresh(5);
	hw.moves = 1;
	CHECK(is_slow() && hw.reads == 1);
	/* Being written, for good: an end all the same. */
	fresh(5);
	hw.page.lock = 3;
	CHECK(is_slow());
	/* Never twice the same. */
	fresh(5);
	hw.moves = 1u << 30;
	hw.then_index = 1;
	CHECK(is_slow() && hw.reads == PMU_PAGE_ROUNDS);
	/* A lock that wraps. */
	fresh(5);
	hw.page.lock = UINT32_MAX - 1;
	hw.moves = 1;
	hw.then_index = 1;
	hw.then_offset = 50;
	hw.then_raw = 1;
	CHECK(reads_as(51) && hw.page.lock == 0);
}

int
main(void)
{
	test_not_readable();
	test_indexes();
	test_widths();
	test_seqlock();
	return test_done("pmucount_page");
}
