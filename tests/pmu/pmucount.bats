# pmucount: counts against hand-counted code, targets that make it hard, the
# three outcomes of diff.

setup() {
	load ../common
	cd "$BATS_TEST_TMPDIR"
	need cc
	src=$root/tests/pmu
	export LD_LIBRARY_PATH=
}

# value FILE FUNC KEY: of a pmu record.
value() {
	awk -F '\t' -v f="func=$2" -v k="$3" '
		$1 == "pmu" && $2 == f {
			for (i = 2; i <= NF; i++)
				if (index($i, k "=") == 1)
					print substr($i, length(k) + 2)
		}' "$1"
}

# is FILE FUNC KEY VALUE
is() {
	local got
	got=$(value "$1" "$2" "$3")
	[[ $got == "$4" ]] || {
		echo "$2 $3: $got, expected $4" >&2
		cat "$1" >&2
		return 1
	}
}

x86() {
	[[ $(uname -m) == x86_64 ]] || skip "not run: needs x86-64"
}

count() {
	timeout 60 pmucount "$@"
}

hand() {
	x86
	cc -O1 -o hand "$src/hand.c" "$src/hand.S"
}

hard() {
	need c++
	skip_sanitized
	c++ -O1 -fpatchable-function-entry=5 "$@" -o hard "$src/hard.cc" \
		-ldl -pthread
}

# hard_same WORD: the same output and status under pmucount; records in o.pmu
hard_same() {
	local want=0 got=0
	timeout 20 ./hard "$1" >want 2>&1 || want=$?
	rm -f o.pmu
	count -b sled -o o.pmu -- ./hard "$1" >got 2>&1 || got=$?
	[[ $got == "$want" ]] || {
		echo "$1: status $got, not $want" >&2
		cat got >&2
		return 1
	}
	same_text want got
}

@test "pmucount step counts hand-counted functions exactly" {
	hand
	run -3 --separate-stderr count -b step -o o.pmu -- ./hand
	[[ $output == "sum 288" && -z $stderr ]]
	is o.pmu leaf calls 9
	is o.pmu leaf self.instructions 27
	is o.pmu leaf min.instructions 3
	is o.pmu leaf max.instructions 3
	is o.pmu loopn incl.instructions 2008
	is o.pmu twice incl.instructions 12
	is o.pmu twice self.instructions 6
	is o.pmu copy self.instructions 12
	is o.pmu tail self.instructions 4
	is o.pmu tail incl.instructions 10
	is o.pmu fib calls 465
	is o.pmu fib incl.instructions 4180
	is o.pmu fib err.instructions 0
}

@test "pmucount step counts what callgrind counts" {
	hand
	need valgrind
	count -b step -f fib -f loopn -f twice -o o.pmu -- ./hand >out || true
	for f in fib loopn twice; do
		timeout 60 valgrind --tool=callgrind --toggle-collect="$f" \
			--callgrind-out-file=cg ./hand >out 2>err || true
		is o.pmu "$f" incl.instructions \
			"$(sed -n 's/^totals: //p' cg)"
	done
}

@test "pmucount step runs callees at full speed with --skip-callees" {
	hand
	count -b step --skip-callees -f main -f twice -o o.pmu -- ./hand \
		>out || true
	is o.pmu twice self.instructions 6
	is o.pmu twice incl.instructions unknown
	is o.pmu twice calls 1
	grep -q '^sum 288$' out
}

@test "pmucount step stops at --max-steps and says so" {
	hand
	run -3 count -b step --max-steps 500 -o o.pmu -- ./hand
	grep -q $'^caveat\twhat=max-steps\tn=500' o.pmu
	grep -q 'flags=[A-Z]*E' o.pmu
}

@test "pmucount step follows threads, forks, exec and longjmp" {
	x86
	hard
	local want got
	for w in threads fork longjmp exec signal; do
		want=0 got=0
		timeout 20 ./hard $w >want 2>&1 || want=$?
		count -b step -f leaf -f jumper -o o.pmu -- ./hard $w \
			>got 2>&1 || got=$?
		[[ $got == "$want" ]]
		same_text want got
		case $w in
		threads) is o.pmu leaf calls 8000 ;;
		fork) is o.pmu leaf calls 10 ;;
		longjmp) is o.pmu jumper unfinished 60 ;;
		signal) is o.pmu leaf calls 100 ;;
		esac
	done
}

@test "pmucount sled keeps exceptions working and counts them" {
	hard
	hard_same throw
	is o.pmu catcher calls 10
	is o.pmu thrower calls 5
	is o.pmu thrower unfinished 5
	is o.pmu middle unfinished 5
	is o.pmu leaf calls 25
}

@test "pmucount sled keeps exceptions working with static libgcc, -O0, -O3, clang" {
	local o
	for o in "-static-libgcc -static-libstdc++" -O0 -O3 \
		"-O2 -no-pie" "-O2 -fcf-protection=full" "-O2 -fno-plt"; do
		# shellcheck disable=SC2086 # words
		hard $o
		hard_same throw
		hard_same longjmp
		hard_same args
	done
	command -v clang++ >/dev/null || skip "rest not run: no clang"
	clang++ -O2 -fpatchable-function-entry=5 -o hard "$src/hard.cc" \
		-ldl -pthread
	hard_same throw
	is o.pmu catcher calls 10
	hard_same args
}

@test "pmucount sled follows longjmp, signals, tail calls, deep recursion" {
	hard
	hard_same longjmp
	is o.pmu jumped calls 10
	is o.pmu jumper unfinished 60
	hard_same signal
	is o.pmu handler calls 100
	hard_same deep65
	is o.pmu deep calls 66
	hard_same deep
	[[ $(value o.pmu deep calls) -gt 30000 ]]
	[[ $(($(value o.pmu deep calls) + $(value o.pmu deep lost))) == 100001 ]]
}

@test "pmucount sled counts threads, ended in each way" {
	hard
	hard_same threads
	is o.pmu leaf calls 8000
	is o.pmu 'work(void*)' calls 4
	is o.pmu 'work(void*)' unfinished 4
	hard_same cancel
	is o.pmu leaf calls 2
}

@test "pmucount sled counts a forked child, and its parent's calls once" {
	hard
	hard_same fork
	is o.pmu leaf calls 20
	is o.pmu main calls 1
}

@test "pmucount sled finds libraries loaded later" {
	hard
	cc -O1 -shared -fPIC -fpatchable-function-entry=5 -o plugin.so \
		"$src/plugin.c"
	PLUGIN=$PWD/plugin.so hard_same dlopen
	is o.pmu plugged calls 10
	is o.pmu helper calls 10
}

@test "pmucount sled does not count on other stacks and says so" {
	hard
	hard_same coroutine
	grep -q $'what=foreign-stack\tn=6' o.pmu
	is o.pmu leaf calls 1
}

@test "pmucount sled keeps totals of a target that crashes or is killed" {
	hard
	hard_same crash
	is o.pmu leaf calls 10
	hard_same kill
	is o.pmu leaf calls 1001
	hard_same exit
	is o.pmu quits unfinished 1
}

@test "pmucount sled survives a target that closes every descriptor" {
	hard
	hard_same closeall
	is o.pmu leaf calls 10
}

@test "pmucount sled leaves no trace in the target's environment" {
	hard
	hard_same env
	PMU=1 hard_same exec
	is o.pmu leaf calls 1
}

@test "pmucount sled gives the target its arguments and results untouched" {
	hard
	hard_same args
	is o.pmu many calls 1
	is o.pmu bigger calls 1
	is o.pmu wide calls 1
}

@test "pmucount sled finds sleds whose list GCC lost, and says how" {
	skip_sanitized
	printf '%s\n' 'int unused(int x) { return x; }' \
		'__attribute__((noinline)) int kept(int x) { return x * 3; }' \
		'int main(void) { int s = 0; for (int i = 0; i < 10; i++)' \
		's += kept(i); return s != 135; }' >lost.c
	cc -O1 -fpatchable-function-entry=5 -ffunction-sections \
		-Wl,--gc-sections -o lost lost.c
	run -0 count -b sled -o o.pmu -- ./lost
	is o.pmu kept calls 10
	if ! readelf -S lost | grep -q __patchable; then
		grep -q $'^coverage\t.*scan=2' o.pmu
	fi
}

@test "pmucount sled counts XRay sleds and compiler hooks" {
	skip_sanitized
	cc -O1 -finstrument-functions -o hooks "$src/speed.c"
	run -0 count -o o.pmu -- ./hooks 1
	is o.pmu tiny calls 2000
	command -v clang >/dev/null || skip "rest not run: no clang"
	printf '%s\n' '__attribute__((noinline)) int kept(int x)' \
		'{ __asm__ volatile(""); return x * 3; }' \
		'int main(void) { int s = 0; for (int i = 0; i < 10; i++)' \
		's += kept(i); return s != 135; }' >xray.c
	clang -O1 -fxray-instrument -fxray-instruction-threshold=1 \
		-o xray xray.c 2>err || skip "rest not run: no XRay"
	run -0 count -o o.pmu -- ./xray
	is o.pmu kept calls 10
}

@test "pmucount sled samples with --gate and prints no calls" {
	skip_sanitized
	cc -O1 -fpatchable-function-entry=5 -o speed "$src/speed.c"
	run -0 count --gate 5/1ms -f tiny -o o.pmu -- ./speed 2000
	[[ -z $(value o.pmu tiny calls) ]]
	[[ $(value o.pmu tiny samples) -lt 400000 ]] # of 4000000
	[[ $(value o.pmu tiny flags) == *G* ]]
	# What it did not look at is in its callers: no self for those.
	run -0 count --gate 5/1ms -o o.pmu -- ./speed 2000
	is o.pmu main self.tsc unknown
	[[ $(value o.pmu main flags) == *H* ]]
}

@test "pmucount sled leaves one NOP in a sled that was not chosen" {
	need valgrind
	skip_sanitized
	cc -O1 -fpatchable-function-entry=5 -o a "$src/speed.c"
	cc -O1 -o b "$src/speed.c"
	for p in a b; do
		timeout 60 valgrind --tool=callgrind --toggle-collect=tiny \
			--callgrind-out-file=cg.$p ./$p 1 >out 2>err
	done
	# gcc: five NOPs of one byte; 2000 calls
	[[ $(($(sed -n 's/^totals: //p' cg.a) - \
		$(sed -n 's/^totals: //p' cg.b))) == 10000 ]]
}

@test "pmucount uprobe counts an unmodified program" {
	cc -O1 -o hand2 "$src/speed.c"
	pmucount list ./hand2 | grep -q $'^backend\tname=uprobe\tcheck=usable' ||
		skip "not run: $(pmucount list | grep name=uprobe)"
	run -0 count -b uprobe -f tiny -o o.pmu -- ./hand2 1
	is o.pmu tiny calls 2000
}

@test "pmucount uprobe counts returns that the kernel has no room for as lost" {
	hard
	pmucount list | grep -q $'^backend\tname=uprobe\tcheck=usable' ||
		skip "not run: no uprobes here"
	run -0 count -b uprobe -f deep -o o.pmu -- ./hard deep65
	is o.pmu deep calls 64
	is o.pmu deep lost 2
	run -0 count -b uprobe -f leaf -o o.pmu -- ./hard threads
	is o.pmu leaf calls 8000
}

@test "pmucount attach counts a running process" {
	cc -O1 -o spin "$src/speed.c"
	pmucount list ./spin | grep -q $'^backend\tname=uprobe\tcheck=usable' ||
		skip "not run: no uprobes here"
	./spin 100000000 >/dev/null &
	local pid=$!
	run -0 count attach -p $pid -f tiny --for 200ms -o o.pmu
	kill $pid
	[[ $(value o.pmu tiny calls) -gt 100 ]]
}

@test "pmucount returns the command's status, and 125 to 127 for its own" {
	hand
	run -3 count -b step -- ./hand
	run -127 --separate-stderr count -- ./not-there
	[[ $stderr == "pmucount: "*not-there* ]]
	: >plain
	run -126 count -- ./plain
	cp hand suid && chmod u+s suid
	run -125 --separate-stderr count -- ./suid
	[[ $stderr == *setuid* ]]
	cc -O1 -static -fpatchable-function-entry=5 -o static "$src/hand.c" \
		"$src/hand.S"
	run -125 --separate-stderr count -b sled -- ./static
	[[ $stderr == *"statically linked"* ]]
	run -2 --separate-stderr count --event nonsense -- ./hand
	[[ $stderr == *'unknown event "nonsense"'* ]]
	run -3 count -b step -f leaf -- ./static
}

@test "pmucount refuses what is no program, or has no symbols, by name" {
	hand
	cp hand stripped && strip stripped
	run -125 --separate-stderr count -b step -- ./stripped
	[[ $stderr == *"no symbols"* ]]
	head -c 100 hand >cut && chmod +x cut
	run -125 count -b step -- ./cut
	run -2 --separate-stderr count list ./cut
	[[ $stderr == *"needs"* || $stderr == *"not in the file"* ]]
}

@test "pmucount report prints flat, tree, distribution and folded stacks" {
	hand
	count -b step -o o.pmu -- ./hand >out || true
	run -0 pmucount report --top 1 o.pmu
	[[ $output == *$'pmu\tfunc=fib\tcalls=465'* ]]
	pmucount report --flame o.pmu >folded
	grep -qx 'main;twice;leaf 6' folded
	grep -qx 'main;tail;leaf 6' folded
	pmucount report --tree o.pmu >tree
	grep -q $'^callpath\t.*depth=2\tfunc=leaf\tcalls=2' tree
	pmucount report --dist -f leaf o.pmu >dist
	grep -q $'^bucket\tfunc=leaf\tcounter=instructions\tfrom=2\tto=3\tcalls=9' dist
	pmucount report --vs o.pmu -f leaf o.pmu >vs
	grep -q $'^versus\tfunc=leaf\t.*per_call=0.00' vs
	pmucount report --flame --vs o.pmu o.pmu >folded
	grep -qx 'main;twice;leaf 6 6' folded
}

@test "pmucount report says what is missing of a cut file, status 3" {
	hand
	count -b step -o o.pmu -- ./hand >out || true
	head -n 5 o.pmu >cut.pmu
	run -3 --separate-stderr pmucount report cut.pmu
	[[ $stderr == *incomplete* ]]
	printf 'pmu\tfunc=f\n' >no.pmu
	run -2 --separate-stderr pmucount report no.pmu
	[[ $stderr == *"no counter record"* ]]
}

@test "pmucount report never takes a cut or damaged file for a whole one" {
	local f=$root/tests/fuzz/corpus/pmucount_result/step.pmu size n v st
	size=$(stat -c %s "$f")
	for ((n = 0; n < size; n += 97)); do
		head -c $n "$f" >cut.pmu
		for v in --top=9 --tree --dist --flame --vs="$f"; do
			st=0
			pmucount report "$v" cut.pmu >out 2>err || st=$?
			[[ $st == 2 || $st == 3 ]] && [[ -s err ]] || {
				echo "cut at $n, $v: status $st" >&2
				return 1
			}
		done
	done
	# A digit that is another one: the file's own sum tells.
	for ((n = 120; n < size - 60; n += 97)); do
		cp "$f" bad.pmu
		printf 7 | dd of=bad.pmu bs=1 seek=$n conv=notrunc status=none
		cmp -s "$f" bad.pmu && continue
		st=0
		pmucount diff "$f" bad.pmu >out 2>err || st=$?
		[[ $st == 1 || $st == 2 || $st == 3 ]] || {
			echo "byte $n: status $st" >&2
			return 1
		}
	done
}

@test "pmucount report prints gated values as they are, and unknown for the rest" {
	local f=$root/tests/fuzz/corpus/pmucount_result/gate.pmu
	pmucount report "$f" >o.pmu
	is o.pmu tiny incl.tsc 3053
	is o.pmu tiny self.tsc unknown
	pmucount report --tree --by tsc "$f" >tree
	grep -q $'func=tiny\tsamples=15\t.*self.tsc=unknown\tincl.tsc=3053' tree
	run -2 --separate-stderr pmucount report --flame "$f"
	[[ $stderr == *"--gate counts no totals"* ]]
}

@test "pmucount report --by sorts, and --vs has what only one run has" {
	local f=$root/tests/fuzz/corpus/pmucount_result/step.pmu
	grep -v 'func=fib' "$f" | grep -v '^end' >a.pmu
	pmucount report --vs "$f" a.pmu >vs 2>err || true
	grep -q $'^versus\tfunc=fib\t.*calls_a=0\tcalls_b=465\ta=absent\tb=4180' vs
	{
		printf 'counter\tname=%s\n' instructions tsc
		printf 'pmu\tfunc=f\tcalls=1\tself.instructions=%s\tself.tsc=%s\n' \
			9 1
		printf 'pmu\tfunc=g\tcalls=1\tself.instructions=%s\tself.tsc=%s\n' \
			5 2
	} >two.pmu
	[[ $(pmucount report --by tsc two.pmu | sed -n 's/^pmu.func=\(.\).*/\1/p' |
		tr -d '\n') == gf ]]
}

@test "pmucount tells static functions of one name apart by their files" {
	x86
	printf '%s\n' 'static __attribute__((noinline)) int help(int x)' \
		'{ __asm__ volatile(""); return x + 1; }' \
		'int A(int x) { return help(x) + help(x); }' >a.c
	printf '%s\n' 'static __attribute__((noinline)) int help(int x)' \
		'{ __asm__ volatile(""); return x * 3; } int A(int);' \
		'int main(void) { return A(1) + help(2) - 10; }' >b.c
	cc -O1 -o two a.c b.c
	run -0 count -b step -f help -o o.pmu -- ./two
	is o.pmu help@a.c calls 2
	is o.pmu help@b.c calls 1
	run -0 pmucount report o.pmu
	run -0 count -b step -f 'help@b*' -o o.pmu -- ./two
	[[ $(grep -c ^pmu o.pmu) == 1 ]]
}

# The two builds of the atomic story.
stories() {
	x86
	cat >update.c <<'END'
#include <stdio.h>
static long c;
static volatile long seen;
__attribute__((noinline)) void update(long x)
{
#ifdef ATOMIC
	__atomic_fetch_add(&c, x, __ATOMIC_SEQ_CST);
#else
	long n = c + x;
	seen = n;
	if (n < 0)
		seen = 1;
	c = n;
#endif
}
int main(int argc, char **v)
{
	for (int i = 0; i < 300 + (argc > 1); i++)
		update(i);
	return c == 0;
}
END
	cc -O1 -o before update.c
	cc -O1 -DATOMIC -o after update.c
}

@test "pmucount diff finds an atomic that is shorter, by exact counts" {
	stories
	run -1 count diff -b step -n 2 -f update --a ./before --b ./after
	a=$(sed -n 's/.*func=update\tcounter=instructions.*\ta=\([0-9]*\).*/\1/p' \
		<<<"$output")
	b=$(sed -n 's/.*func=update\tcounter=instructions.*\tb=\([0-9]*\).*/\1/p' \
		<<<"$output")
	[[ $((a - b)) == 3 ]]
	[[ $output == *$'func=update\tcounter=calls\tresult=same'* ]]
	[[ $output == *$'verdict\tresult=changed\tstatus=1'* ]]
}

@test "pmucount diff finds the same program the same" {
	stories
	run -0 count diff -b step -n 2 -f update --a ./before --b ./before
	[[ $output == *$'verdict\tresult=same\tstatus=0'* ]]
}

@test "pmucount diff does not compare calls when their numbers differ" {
	stories
	run -1 count diff -b step -n 2 -f update --a ./before --b './after 1'
	[[ $output == *$'func=update\tcounter=calls\tresult=changed'* ]]
	[[ $output == *$'func=update\tcounter=instructions\tresult=unknown\treason=calls-differ'* ]]
}

@test "pmucount diff of two files decides exact counters only" {
	stories
	count -b step -f update -o a.pmu -- ./before
	count -b step -f update -o b.pmu -- ./after
	run -1 pmucount diff a.pmu b.pmu
	run -0 pmucount diff a.pmu a.pmu
	head -n 3 a.pmu >cut.pmu
	run -3 pmucount diff a.pmu cut.pmu
	[[ $output == *reason=filtered* ]]
	sed 's/exact=yes/exact=no/' a.pmu | grep -v '^end\|^head' >t.pmu
	run -3 pmucount diff t.pmu t.pmu
	[[ $output == *reason=one-run* ]]
}

@test "pmucount list names counters, backends and functions, and why not" {
	hand
	run -0 pmucount list ./hand
	[[ $output == *$'function\tfunc=leaf\taddr=0x'* ]]
	[[ $output == *$'backend\tname=step\tcheck=usable'* ]]
	[[ $output == *$'counter\tname=tsc'* ]]
	run -0 pmucount list -f 'fi*' ./hand
	[[ $(grep -c ^function <<<"$output") == 1 ]]
}
