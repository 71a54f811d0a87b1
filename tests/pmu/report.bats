# pmucount: what is shown, and refused.

setup() {
	load common
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

@test "pmucount list names counters, backends and functions, and why not" {
	hand
	run -0 pmucount list ./hand
	[[ $output == *$'function\tfunc=leaf\taddr=0x'* ]]
	[[ $output == *$'backend\tname=step\tcheck=usable'* ]]
	[[ $output == *$'counter\tname=tsc'* ]]
	run -0 pmucount list -f 'fi*' ./hand
	[[ $(grep -c ^function <<<"$output") == 1 ]]
}
