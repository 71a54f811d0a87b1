# pmucount: same, changed or unknown.

setup() {
	load common
}

@test "pmucount diff finds an atomic that is shorter, by exact counts" {
	stories
	run -1 count diff -b step -n 2 -f update --a ./before --b ./after
	need objdump
	a=$(body before update) b=$(body after update)
	[[ $a -gt $b && $b -gt 1 ]]
	[[ $output == *$'func=update\tcounter=instructions\tresult=changed\treason=exact\ta='$a$'\tb='$b$'\t'* ]]
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
	[[ $output == *result=unknown* ]]
	sed 's/exact=yes/exact=no/' a.pmu | grep -v '^end\|^head' >t.pmu
	run -3 pmucount diff t.pmu t.pmu
	[[ $output == *reason=one-run* ]]
}

@test "pmucount diff finds no change in lines that a cut file lacks" {
	local f=$root/tests/fuzz/corpus/pmucount_result/step.pmu n st lines
	lines=$(grep -c '' "$f")
	for ((n = 1; n < lines; n++)); do
		head -n "$n" "$f" >cut.pmu
		st=0
		pmucount diff "$f" cut.pmu >out 2>err || st=$?
		[[ $st == 2 || $st == 3 ]] || {
			echo "cut at line $n: status $st" >&2
			grep changed out >&2
			return 1
		}
	done
}
