# pmucount: by sleds.

setup() {
	load common
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
	grep -q $'flags=[A-Z]*H\t.*self.tsc=unknown\tincl.tsc=[0-9]' o.pmu
}

@test "pmucount sled leaves one NOP in a sled that was not chosen, also with --gate" {
	x86
	need valgrind
	skip_sanitized
	local tool n
	tool=$(find /usr/libexec/valgrind /usr/lib/valgrind \
		/usr/lib/*/valgrind -name callgrind-amd64-linux -print -quit \
		2>/dev/null) || true
	[[ -n $tool ]] || skip "not run: valgrind's parts are elsewhere"
	cc -O1 -o plain "$src/speed.c"
	cc -O1 -fpatchable-function-entry=5 -o sleds "$src/speed.c"
	cc -static -o launch "$src/launch.c" || skip "not run: no static libc"
	printf '#!%s\n' "$PWD/launch" >script
	chmod +x script
	# totals PROGRAM WORDS...: instructions in tiny, 2000 calls
	totals() {
		rm -f cg
		export LAUNCH="$tool --tool=callgrind --smc-check=all \
			--toggle-collect=tiny --callgrind-out-file=cg ./$1 1"
		LAUNCH=${LAUNCH//[[:space:]]/ }
		"${@:2}" ./script >out 2>err || cat err >&2
		sed -n 's/^totals: //p' cg
	}
	export VALGRIND_LAUNCHER=/usr/bin/valgrind
	n=$(totals plain timeout 60)
	[[ $(totals sleds timeout 60) == $((n + 5 * 2000)) ]] # as gcc left it
	[[ $(totals sleds count -b sled -f main --) == $((n + 2000)) ]]
	[[ $(totals sleds count -b sled --gate 5/1ms -f main --) == \
		$((n + 2000)) ]]
}
