# pmucount: by single-stepping.

setup() {
	load common
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
