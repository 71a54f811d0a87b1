# pmucount: by kernel probes.

setup() {
	load common
}

@test "pmucount uprobe counts an unmodified program" {
	cc -O1 -o hand2 "$src/speed.c"
	usable uprobe ./hand2
	run -0 count -b uprobe -f tiny -o o.pmu -- ./hand2 1
	is o.pmu tiny calls 2000
}

@test "pmucount uprobe counts returns that the kernel has no room for as lost" {
	hard
	usable uprobe
	run -0 count -b uprobe -f deep -o o.pmu -- ./hard deep65
	is o.pmu deep calls 64
	is o.pmu deep lost 2
	run -0 count -b uprobe -f leaf -o o.pmu -- ./hard threads
	is o.pmu leaf calls 8000
}

@test "pmucount attach counts a running process" {
	cc -O1 -o spin "$src/speed.c"
	usable uprobe ./spin
	./spin 100000000 >/dev/null &
	local pid=$!
	run -0 count attach -p $pid -f tiny --for 200ms -o o.pmu
	kill $pid
	[[ $(value o.pmu tiny calls) -gt 100 ]]
}
