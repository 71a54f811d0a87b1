/*
 * The comparison for speed: compiler hooks that do by hand what pmucount does
 * for a counter: shadow stack, self, inclusive, minimum and maximum by
 * function, two reads of the time stamp counter a call.
 */
#include <stdint.h>
#include <time.h>

#define QUIET __attribute__((no_instrument_function))

static struct total {
	uint64_t calls, self, incl, min, max;
	uint32_t active;
} total[4096];
static struct frame {
	void *fn;
	uint64_t start, child;
} frame[4096];
static int depth;

QUIET static uint64_t
ticks(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	uint64_t v;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#endif
}

QUIET static struct total *
total_of(const void *fn)
{
	return &total[(uintptr_t)fn / 16 % 4096];
}

void __cyg_profile_func_enter(void *fn, void *from) QUIET;
void __cyg_profile_func_exit(void *fn, void *from) QUIET;

void
__cyg_profile_func_enter(void *fn, void *from)
{
	struct frame *f = &frame[depth++ % 4096];
	(void)from;
	total_of(fn)->active++;
	f->fn = fn;
	f->child = 0;
	f->start = ticks();
}

void
__cyg_profile_func_exit(void *fn, void *from)
{
	uint64_t end = ticks();
	struct frame *f = &frame[--depth % 4096];
	struct total *t = total_of(f->fn);
	uint64_t d = end - f->start;
	(void)fn;
	(void)from;
	t->calls++;
	t->self += d - f->child;
	if (!--t->active)
		t->incl += d;
	if (d < t->min)
		t->min = d;
	if (d > t->max)
		t->max = d;
	if (depth)
		f[-1].child += d;
}
