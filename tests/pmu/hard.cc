// What breaks careless counters: exceptions, longjmp, threads, fork, tail
// calls, deep recursion, signals, other stacks, exit from below.
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdexcept>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static volatile long sink;

extern "C" NOINLINE int leaf(int x) { sink = sink + x; return x + 1; }
extern "C" NOINLINE int thrower(int x)
{
	leaf(x);
	if (x % 2)
		throw std::runtime_error("odd");
	return x;
}
struct guard {
	~guard() { leaf(100); }
};
extern "C" NOINLINE int middle(int x) { guard g; return thrower(x) + 1; }
extern "C" NOINLINE int catcher(int x)
{
	try {
		return middle(x);
	} catch (const std::exception &) {
		return leaf(-x);
	}
}
static jmp_buf env;
extern "C" NOINLINE void jumper(int n)
{
	if (n == 0)
		longjmp(env, 1);
	jumper(n - 1);
	leaf(n);
}
extern "C" NOINLINE int jumped(int n)
{
	if (setjmp(env))
		return leaf(n);
	jumper(n);
	return 0;
}
extern "C" NOINLINE long deep(long n) { return n ? deep(n - 1) + 1 : 0; }
extern "C" NOINLINE int frames(int)
{
	void *a[64];
	return backtrace(a, 64);
}
extern "C" NOINLINE int traced(int x) { return frames(x) + leaf(0) * 0; }
static void *work(void *p)
{
	for (int i = 0; i < 1000; i++)
		leaf(i);
	if (p)
		pthread_exit(p);
	return nullptr;
}
extern "C" NOINLINE void handler(int) { leaf(7); }
static ucontext_t main_context, other;
extern "C" NOINLINE void on_other(void)
{
	for (int i = 0; i < 5; i++) {
		leaf(i);
		swapcontext(&other, &main_context);
	}
}
extern "C" NOINLINE int coroutine(void)
{
	static char stack[1 << 16];
	getcontext(&other);
	other.uc_stack.ss_sp = stack;
	other.uc_stack.ss_size = sizeof stack;
	other.uc_link = &main_context;
	makecontext(&other, on_other, 0);
	for (int i = 0; i < 5; i++)
		swapcontext(&main_context, &other);
	return leaf(1);
}
extern "C" NOINLINE long many(long a, long b, long c, long d, long e, long f,
    long g, long h, double x, double y)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h +
	       (long)(x * 100) + (long)(y * 1000);
}
struct big {
	long v[9];
};
extern "C" NOINLINE big bigger(int x)
{
	big b;
	for (int i = 0; i < 9; i++)
		b.v[i] = x * i;
	return b;
}
extern "C" NOINLINE long double wide(long double x) { return x * 1.5L; }
extern "C" NOINLINE void quits(int n) { leaf(1); exit(n); }

static int run(const char *what)
{
	auto is = [&](const char *w) { return !strcmp(what, w); };
	if (is("throw")) {
		int s = 0;
		for (int i = 0; i < 10; i++)
			s += catcher(i);
		return printf("%d\n", s), 0;
	}
	if (is("longjmp")) {
		int s = 0;
		for (int i = 0; i < 10; i++)
			s += jumped(5);
		return printf("%d\n", s), 0;
	}
	if (is("deep"))
		return printf("%ld\n", deep(100000)), 0;
	if (is("deep65"))
		return printf("%ld\n", deep(65)), 0;
	if (is("backtrace"))
		return printf("%d\n", traced(1)), 0;
	if (is("threads")) {
		pthread_t t[8];
		for (int i = 0; i < 8; i++)
			pthread_create(&t[i], nullptr, work,
			    i % 2 ? &t[i] : nullptr);
		for (int i = 0; i < 8; i++)
			pthread_join(t[i], nullptr);
		return puts("joined"), 0;
	}
	if (is("signal")) {
		signal(SIGUSR1, handler);
		for (int i = 0; i < 100; i++)
			raise(SIGUSR1);
		return puts("raised"), 0;
	}
	if (is("coroutine"))
		return printf("%d\n", coroutine()), 0;
	if (is("args")) {
		big b = bigger(3);
		printf("%ld %ld %.1Lf\n", many(1, 2, 3, 4, 5, 6, 7, 8, 0.25,
		    0.5), b.v[8], wide(3));
		return 0;
	}
	if (is("fork")) {
		fflush(stdout);
		pid_t p = fork();
		for (int i = 0; i < 10; i++)
			leaf(i);
		if (!p)
			_exit(4);
		int st;
		waitpid(p, &st, 0);
		return printf("child %d\n", WEXITSTATUS(st)), 0;
	}
	if (is("crash")) {
		for (int i = 0; i < 10; i++)
			leaf(i);
		raise(SIGSEGV);
	}
	if (is("kill"))
		for (int i = 0;; i++) {
			leaf(i);
			if (i == 1000)
				kill(getpid(), SIGKILL);
		}
	if (is("closeall")) {
		for (int i = 0; i < 4096; i++)
			if (i != 1)
				close(i);
		for (int i = 0; i < 10; i++)
			leaf(i);
		return puts("closed"), 0;
	}
	if (is("exec")) {
		leaf(1);
		execl("/bin/echo", "echo", "new", (char *)nullptr);
	}
	if (is("env")) {
		extern char **environ;
		for (char **e = environ; *e; e++)
			if (!strncmp(*e, "LD_PRELOAD", 10) ||
			    !strncmp(*e, "PMUCOUNT", 8))
				puts(*e);
		return puts("clean"), 0;
	}
	if (is("exit"))
		quits(9);
	if (is("dlopen")) {
		void *l = dlopen(getenv("PLUGIN"), RTLD_NOW);
		auto f = l ? (int (*)(int))dlsym(l, "plugged") : nullptr;
		int s = 0;
		for (int i = 0; f && i < 10; i++)
			s += f(i);
		return printf("%d\n", s), 0;
	}
	if (is("cancel")) {
		pthread_t t;
		pthread_create(&t, nullptr, [](void *) -> void * {
			guard g;
			leaf(1);
			for (;;)
				sleep(1);
		}, nullptr);
		usleep(20000);
		pthread_cancel(t);
		pthread_join(t, nullptr);
		return puts("cancelled"), 0;
	}
	return 2;
}

int main(int, char **v) { return v[1] ? run(v[1]) : 2; }
