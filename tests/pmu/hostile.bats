# pmucount: where it may not, and targets that are not what it hopes for. The
# target's own behaviour, streams, user and status stay what they were.

setup() {
	load common
}

# Lets others in, or skips: call it outside of `run`.
open_up() {
	[[ $(id -u) == 0 ]] || skip "${1-}not run: needs root to step down"
	need setpriv
	chmod a+rx "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR"/test \
		"$BATS_TEST_TMPDIR" ./*
	setpriv --reuid 65534 --regid 65534 --clear-groups \
		test -x "$PWD" || skip "${1-}not run: the way here is closed"
}

# as_nobody COMMAND...: another user, without capabilities
as_nobody() {
	setpriv --reuid 65534 --regid 65534 --clear-groups \
		--bounding-set=-all --inh-caps=-all timeout 60 "$@"
}

@test "pmucount names the capability that a kernel probe needs" {
	hand
	mkdir bin
	cp "$build/pmucount" "$build/libpmucount.so" bin/
	open_up
	run -0 as_nobody bin/pmucount list ./hand
	[[ $output == *$'\tname=uprobe\tcheck=refused'*CAP_SYS_ADMIN*sudo* ]]
	run -125 --separate-stderr as_nobody bin/pmucount -b uprobe -f leaf \
		-- ./hand
	[[ $stderr == *"backend uprobe: needs CAP_SYS_ADMIN"* && -z $output ]]
	run -3 --separate-stderr as_nobody bin/pmucount -b step -f leaf -- ./hand
	[[ $output == "sum 288" ]]
}

@test "pmucount says that a seccomp filter may be what refuses" {
	hand
	cc -O1 -o deny "$src/deny.c" || skip "not run: no seccomp headers"
	run -0 ./deny perf_event_open -- pmucount list
	[[ $output == *$'counter\tname=task-clock\t'*check=refused*seccomp* ]]
	run -125 --separate-stderr ./deny ptrace -- pmucount -b step -f leaf \
		-- ./hand
	[[ $stderr == *CAP_SYS_PTRACE*seccomp* && -z $output ]]
	run -125 --separate-stderr ./deny perf_event_open -- pmucount -b uprobe \
		-f leaf -- ./hand
	[[ $stderr == *CAP_SYS_ADMIN* || $stderr == *permission* ]]
	[[ -z $output ]]
}

@test "pmucount counts in a PID namespace of its own" {
	hand
	unshare -pf --mount-proc true 2>/dev/null ||
		skip "not run: no PID namespaces here"
	run -3 --separate-stderr timeout 60 unshare -pf --mount-proc \
		pmucount -b step -f leaf -o o.pmu -- ./hand
	is o.pmu leaf self.instructions 27
}

@test "pmucount says of an inlined function that there is nothing to count" {
	x86
	printf '%s\n' 'static int gone(int x) { return x + 1; }' \
		'int main(int c, char **v) { return gone(c) - 2; }' >i.c
	cc -O2 -fpatchable-function-entry=5 -o inlined i.c
	run -125 --separate-stderr count -b sled -f gone -- ./inlined
	[[ $stderr == *"no function with a sled matched"* ]]
	usable uprobe
	run -125 --separate-stderr count -b uprobe -f gone -- ./inlined
	[[ $stderr == *"inlined everywhere"* ]]
}

@test "pmucount refuses Go: its stacks move under return probes" {
	hand
	need objcopy
	printf 'Go' >note
	objcopy --add-section .note.go.buildid=note hand go
	run -125 --separate-stderr count -- ./go
	[[ $stderr == *"built by Go"* && -z $output ]]
	local b
	for b in sled uprobe step; do
		run -125 --separate-stderr count -b $b -f main -- ./go
		[[ $stderr == *"Go"* || $stderr == *CAP_SYS_ADMIN* ]]
		[[ -z $output ]]
	done
}

@test "pmucount refuses truncated and hostile programs without running them" {
	hand
	local n size
	size=$(stat -c %s hand)
	for n in 64 200 1000 $((size / 2)) $((size - 1)); do
		head -c $n hand >cut
		chmod +x cut
		run --separate-stderr count -b step -- ./cut
		[[ $status -ge 125 && -n $stderr && -z $output ]] || {
			echo "cut at $n: status $status, $output" >&2
			return 1
		}
	done
	# 65535 program headers that overlap everything.
	cp hand many
	printf '\xff\xff' | dd of=many bs=1 seek=56 conv=notrunc status=none
	run -125 --separate-stderr count -b step -- ./many
	[[ -n $stderr && -z $output ]]
}

@test "pmucount leaves streams, environment, directory and user alone" {
	x86
	cc -O1 -fpatchable-function-entry=5 -o self "$src/self.c"
	local b
	for b in step sled; do
		printf 'in\n' | ./self >want 2>want.err
		printf 'in\n' | count -b $b -o o.pmu -- ./self >out 2>err
		same_text want out
		same_text want.err err
	done
	open_up "rest "
	SUDO_UID=65534 SUDO_GID=65534 run -0 --separate-stderr \
		count -b step --as-root -o o.pmu -- ./self
	[[ $output == "0 "* ]]
	SUDO_UID=65534 SUDO_GID=65534 run -0 --separate-stderr \
		count -b step -o o.pmu -- ./self
	[[ $output == "65534 "* ]]
}

@test "pmucount counts a target with hardly any descriptors, or says why not" {
	hard
	local want=0
	timeout 20 ./hard crash >want 2>&1 || want=$?
	(ulimit -n 24 && exec timeout 60 pmucount -b sled -o o.pmu -- \
		./hard crash) >got 2>&1 || [[ $? == "$want" ]]
	is o.pmu leaf calls 10
	# Too few for ourselves: trouble of our own, and the target never ran.
	local st=0
	(ulimit -n 4 && exec timeout 60 pmucount -b sled -o p.pmu -- \
		./hard env) >got 2>err || st=$?
	[[ $st -ge 125 && -s err ]]
}

@test "pmucount passes a killing signal on, and an exec's own failure" {
	x86
	hard
	run -137 --separate-stderr count -b step -f leaf -o o.pmu -- ./hard kill
	printf '#!/no/such/interpreter\n' >bad
	chmod +x bad
	run --separate-stderr count -b step -- ./bad
	[[ $status == 126 || $status == 127 || $status == 125 ]]
	[[ -n $stderr && -z $output ]]
}
