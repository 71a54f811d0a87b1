# gpureplay: the verdict over real processes, with known right answers; what a
# child may do to it; devices, pins and signatures.

setup() {
	load common
	cd "$BATS_TEST_TMPDIR"
	mkdir state
	worker=$build/tools/worker
}

# replay DEVICES SEED FAULTS [HOW] [OPTION]...: worker on DEVICES, which are
# alike; the pin is vouched for.
replay() {
	local devices=$1 seed=$2 faults=$3 how=${4-}
	shift 3
	[[ $# == 0 ]] || shift
	rm -f state/count
	timeout 300 gpureplay run --devices="$devices" --pin='DEV={device}' \
		--trust-pin --max-time=5m --ratio=1 "$@" -- \
		sh -c 'exec "$0" "$1" "$2" "$3" "$DEV" "$4"' \
		"$worker" state "$seed" "$faults" "$how"
}

# field TYPE KEY: of the first such record of $output.
field() {
	sed -n "s/^$1\t.*\<$2=\([^\t]*\).*/\1/p" <<<"$output" | head -n 1
}

# says RESULT REASON
says() {
	[[ $(field verdict result) == "$1" && $(field verdict reason) == "$2" ]] || {
		printf '%s\n' "expected $1($2)" "$output" >&2
		return 1
	}
}

# bats test_tags=slow
@test "gpureplay run names the one device that computes wrong, and where" {
	local seed
	for seed in 1; do
		run -1 --separate-stderr replay a,b,c,d $seed c:0.7
		says faulty ""
		[[ $(field verdict entity) == device:*/c ]]
		[[ $(field verdict need) == swap:* ]]
		[[ $(field diff name) == layer.1 && $(field diff step) == 1 ]]
		[[ $(field diff io) == out && $(field diff class) == different ]]
		[[ $(field diff note) == "9 records before it are equal" ]]
		[[ $(field device pin) == trusted ]]
	done
	grep -q $'^device\t.*/c\t.*role=suspect' <<<"$output"
	[[ $(grep -c 'role=reference' <<<"$output") == 3 ]]
}

# bats test_tags=slow
@test "gpureplay run finds it by default in eight devices, a race could not" {
	run -1 --separate-stderr replay a,b,c,d,e,f,g,h 5 f:0.8 "" --ratio=10
	says faulty ""
	[[ $(field verdict entity) == device:*/f ]]
	# 8 (10/17)^k <= 1e-3 at k = 17
	[[ $(field plan divergent) == 17 ]]
	[[ $(sed -n 's/.*role=suspect.*\tk=\([0-9]*\).*/\1/p' <<<"$output") == 17 ]]
}

# bats test_tags=slow,many
@test "gpureplay run blames nobody but the faulty one in many seeded cases" {
	local seed device blamed found=0
	for seed in {10..40}; do
		device=$(printf %s "abcd" | cut -c $((seed % 4 + 1)))
		run --separate-stderr replay a,b,c,d $seed $device:0.6
		[[ $status == 1 ]]
		[[ $(field verdict entity) == device:*/$device ]]
		run --separate-stderr replay a,b,c,d $seed '*:0.15'
		[[ $status == 3 ]]
		run --separate-stderr replay a,b,c,d $seed "*:0.1,$device:1" \
			same -n 15
		[[ $status == 3 ]]
	done
}

# bats test_tags=slow
@test "gpureplay run never blames a device for a race" {
	local seed
	for seed in 1 2; do
		run -3 --separate-stderr replay a,b,c,d $seed '*:0.3'
		says unknown nondeterministic
		[[ -z $(field verdict entity) ]]
	done
}

# bats test_tags=slow
@test "gpureplay run never blames a device for a race ten times likelier on it" {
	local seed rates='*:0.03,b:0.3'
	for seed in 1 2; do
		run -3 --separate-stderr replay a,b,c,d $seed "$rates" "" \
			--ratio=10 -n 20
		[[ $(field verdict reason) =~ ^(nondeterministic|thin)$ ]]
	done
}

# bats test_tags=slow
@test "gpureplay run never blames a device that differs every time" {
	run -3 --separate-stderr replay a,b,c 1 b:1 same
	says unknown consistent-difference
	run -3 --separate-stderr replay a,b,c 1 b:1
	says unknown consistent-difference
}

@test "gpureplay run calls nobody faulty when all have the same fault" {
	run -0 --separate-stderr replay a,b,c 1 '*:1' same --rate=0.5
	says healthy ""
}

@test "gpureplay run blames the faulty reference, not the suspect" {
	run -1 --separate-stderr replay a,b,c,d 3 a:0.7 "" --suspect=d
	says faulty ""
	[[ $(field verdict entity) == device:*/a ]]
	grep -q $'^device\t.*/d\t.*role=named' <<<"$output"
}

@test "gpureplay run needs fewer divergences of a named suspect" {
	run -0 replay a,b,c,d 1 '' '' --dry-run
	[[ $(field plan divergent) == 6 ]]
	run -0 replay a,b,c,d 1 '' '' --dry-run --suspect=b
	[[ $(field plan divergent) == 5 ]]
}

@test "gpureplay run of two devices that differ blames neither" {
	run -3 --separate-stderr replay a,b 1 a:0.5
	says unknown two-devices
	[[ -z $(field verdict entity) ]]
}

@test "gpureplay run of one device cannot acquit it" {
	run -3 --separate-stderr replay a 1 '' '' --rate=0.5
	says unknown no-reference
	[[ $(field verdict bound) == "rate<="* ]]
	run -3 --separate-stderr replay a 1 a:0.5
	says unknown nondeterministic
}

# bats test_tags=slow
@test "gpureplay run acquits with a bound, not before it has enough rounds" {
	run -0 --separate-stderr replay a,b,c 1 '' '' --rate=0.5
	says healthy ""
	# ln(3 / 0.05) / 9
	[[ $(field verdict bound) == "rate<=0.455 of processes at 95%" ]]
	[[ $(field device processes) == 9 ]]
	run -3 --separate-stderr replay a,b,c 1 '' '' -n 3
	says unknown few
	[[ $(field verdict need) == "407 more clean rounds, est. 407 rounds, "* ]]
}

@test "gpureplay run calls a few divergences thin and says what is missing" {
	run -3 --separate-stderr replay a,b,c,d 1 b:0.3 "" -n 5
	says unknown thin
	[[ $(field verdict entity) == device:*/b ]]
	[[ $(field verdict need) == *" more divergent process"*", est. "* ]]
}

@test "gpureplay run without a signature is no test" {
	run -2 --separate-stderr replay a,b,c 1 '*:1' nosig
	[[ $stderr == *"no fp records where STRAIGHTEDGE_SIG says"* ]]
	[[ $stderr == *"nothing was tested"* ]]
	[[ $output == *$'\tstatus=2' && $output != *verdict* ]]
	[[ $(field device nosig) == 3 ]]
}

# bats test_tags=slow
@test "gpureplay run counts crashes, exits and time-outs, and does not acquit" {
	local how count limit
	for how in crash:signal exit:exit hang:timeout; do
		count=${how#*:} how=${how%:*}
		# Only what hangs has to wait for it.
		limit=30s
		[[ $how != hang ]] || limit=1s
		run -3 --separate-stderr replay a,b,c 2 b:0.2 $how --rate=0.5 \
			--timeout=$limit
		says unknown failures
		[[ $output == *$'/b\t'*"$count="[1-9]* ]]
		[[ $stderr == *"gpureplay run: b: "* ]]
	done
}

# bats test_tags=slow
@test "gpureplay run names an input that differs first as a transfer" {
	run -1 --separate-stderr replay a,b,c,d 1 c:0.7 input
	[[ $(field diff io) == in && $(field diff first) == transfer ]]
	[[ $(field diff note) == "8 records before it are equal" ]]
}

# bats test_tags=slow
@test "gpureplay run compares standard output and files when asked" {
	echo 'echo "$1" >out; echo same' >cmd
	set -- --devices=a,b,c --pin='X={device}' --trust-pin --rate=0.9
	run -0 gpureplay run "$@" --sig stdout -- sh cmd 1
	run -3 gpureplay run "$@" --sig out -- sh -c 'sh cmd $X'
	says unknown nondeterministic
	[[ $(field diff name) == out ]]
	run -0 gpureplay run "$@" --sig out --sig stdout -- sh cmd 1
	# What an earlier process left there is no signature.
	run -2 --separate-stderr gpureplay run "$@" --sig out -- true
	[[ $stderr == *"--sig out: was not written"* ]]
}

# bats test_tags=slow
@test "gpureplay run verifies that the command stays on its core" {
	[[ $(nproc) -ge 2 ]] || skip "not run: one core"
	set -- run --cpus=0,1 --rate=0.6
	run -0 --separate-stderr gpureplay "$@" -- \
		"$worker" state 1 '' x
	says healthy ""
	[[ $(field device pin) == verified ]]
	run -3 --separate-stderr gpureplay "$@" -- \
		"$worker" state 1 '*:1' x move
	says unknown pin-unverified
	[[ $(field device pin) == elsewhere ]]
	run -3 --separate-stderr gpureplay "$@" --sig stdout -- \
		sh -c 'taskset -c 0,1 sleep 0.1; true'
	[[ $output == *pin=elsewhere* && $output == *reason=pin-unverified* ]]
	# Once is enough, and what was seen is not vouched for either.
	rm -f state/count
	run -3 --separate-stderr gpureplay "$@" --trust-pin -- \
		sh -c '"$0" state 1 "*:0.4" x move; exec "$0" state 1 "" x' \
		"$worker"
	says unknown pin-unverified
	run -3 --separate-stderr gpureplay "$@" --sig stdout -- \
		sh -c 'taskset -cp $$ | sed "s/.*: //"'
	says unknown two-devices
}

@test "gpureplay run does not trust a pin that nobody verified" {
	run -3 --separate-stderr gpureplay run --devices=a,b,c \
		--pin='X={device}' --sig stdout --rate=0.9 -- echo
	says unknown pin-unverified
}

@test "gpureplay run prints the plan and, when asked, no more" {
	run -0 gpureplay run --cpus=0 --deterministic --dry-run -- echo 'a b'
	[[ ${lines[0]} == head* && ${lines[1]} == plan* ]]
	[[ $(field process argv) == "echo 'a b'" ]]
	[[ $(field process env) == *CUBLAS_WORKSPACE_CONFIG=:4096:8* ]]
	CUBLAS_WORKSPACE_CONFIG=other run -0 gpureplay run --cpus=0 \
		--deterministic --dry-run -- echo
	[[ $(field process env) != *CUBLAS* ]]
	run -0 gpureplay run --devices=a --pin='V=x-{device}-{device}' \
		--dry-run -- echo
	[[ $(field process env) == *"V=x-a-a"* ]]
	[[ $(field process cpu) == "" ]]
}

@test "gpureplay run sets switches only where they are unset" {
	PYTHONHASHSEED=7 run -0 gpureplay run --devices=a,b --pin='X={device}' \
		--trust-pin --rate=0.9 --deterministic -v --sig f -- \
		sh -c 'echo "$PYTHONHASHSEED $NCCL_ALGO" >f'
	[[ $(cat f) == "7 Ring" ]]
}

@test "gpureplay run gives the verdict so far when it is interrupted" {
	local pid i
	gpureplay run --devices=a,b,c --pin='X={device}' --trust-pin \
		--sig stdout -v -o out -- sh -c 'echo; echo >>ran' &
	pid=$!
	for ((i = 0; i < 500; i++)); do
		[[ -e ran && $(wc -l <ran) -gt 8 ]] && break
		read -r -t 0.02 <> <(:) || :
	done
	# bash starts background jobs with SIGINT ignored
	kill -TERM $pid
	rc=0
	wait $pid || rc=$?
	[[ $rc == 3 ]]
	output=$(cat out)
	says unknown few
	[[ $(field device processes) -ge 1 ]]
}

# bats test_tags=slow
@test "gpureplay run leaves no process behind" {
	run -0 --separate-stderr gpureplay run --devices=a,b \
		--pin='X={device}' --trust-pin --rate=0.9 --sig stdout -v -- sh -c \
		'(setsid sh -c "echo \$\$ >>pids; exec sleep 100" >/dev/null 2>&1 &)
		sleep 100 & echo $! >>pids; sleep 0.1'
	[[ $(field process strays) -ge 1 ]]
	[[ $(wc -l <pids) -ge 4 ]]
	while read -r pid; do
		! kill -0 "$pid" 2>/dev/null
	done <pids
}

# bats test_tags=slow
@test "gpureplay run survives a child that floods its outputs" {
	run -0 --separate-stderr gpureplay run --devices=a,b \
		--pin='X={device}' --trust-pin --rate=0.9 --sig stdout -- \
		sh -c 'head -c 30000000 /dev/zero; head -c 3000000 /dev/zero >&2'
}

# bats test_tags=slow
@test "gpureplay run takes hostile signatures for damaged ones" {
	local text
	for text in 'fp\tname=a\n' '\0\0\0' 'head\tof=fp\tversion=1\ttool=x\n' \
		'fp\tname=a\tdtype=f32\tshape=1\tbytes=4\thash=xxh3-128:zz\n' \
		'end\trecords=5\tsum=1\n' '\x1f\x8b\x08\x00garbage' \
		'head\tof=fp\tversion=99\ttool=x\n'; do
		run -2 --separate-stderr gpureplay run --devices=a,b,c \
			--pin='X={device}' --trust-pin -- \
			sh -c 'printf "$1" >$STRAIGHTEDGE_SIG' x "$text"
		[[ $output == *"damaged=3"* || $output == *"nosig=3"* ]]
	done
	head -c 3000000 /dev/urandom >noise
	run -2 --separate-stderr gpureplay run --devices=a,b \
		--pin='X={device}' --trust-pin -- \
		sh -c 'cp noise $STRAIGHTEDGE_SIG'
	for text in 'ln -s /dev/zero' mkfifo mkdir; do
		run -2 --separate-stderr timeout 20 gpureplay run \
			--devices=a,b --pin='X={device}' --trust-pin -- \
			sh -c "$text \$STRAIGHTEDGE_SIG"
		[[ $stderr == *"it is no regular file"* ]]
	done
	run -2 --separate-stderr timeout 20 gpureplay run --devices=a,b \
		--pin='X={device}' --trust-pin --sig=f -- \
		sh -c 'rm -f f; mkfifo f'
}

@test "gpureplay run takes records without head and end from a program" {
	printf 'fp\tname=%s\tdtype=u8\tshape=1\tbytes=1\thash=x:%s\n' a 1 >fp
	run -0 gpureplay run --devices=a,b --pin='X={device}' --trust-pin \
		--rate=0.9 -- sh -c 'cat fp >>$STRAIGHTEDGE_SIG'
	# Ranks may be interleaved in any way; the order within one counts.
	echo 'f() { printf "fp\tname=$1\tdtype=u8\tshape=1\tbytes=1\thash=x:1\trank=$2\n"
		} >>$STRAIGHTEDGE_SIG
		if [ $X = a ]; then f l 0; f l 1; f m 0; f m 1
		else f l 1; f m 1; f l 0; f m 0; fi' >ranks
	run -0 gpureplay run --devices=a,b --pin='X={device}' --trust-pin \
		--rate=0.9 -- sh ranks
	sed -i 's/f l 0; f m 0/f m 0; f l 0/' ranks
	run -3 gpureplay run --devices=a,b --pin='X={device}' --trust-pin \
		--rate=0.9 -- sh ranks
	[[ $(field diff class) == unmatched && $(field diff rank) == 0 ]]
}

@test "gpureplay run reads what fpdump writes for it" {
	seq 9 >data
	run -0 gpureplay run --devices=a,b --pin='X={device}' --trust-pin \
		--rate=0.9 -v -- fpdump data
	[[ $(field process records) == 1 ]]
}

# bats test_tags=slow
@test "gpureplay run gives evidence and metrics" {
	run -1 replay a,b,c,d 1 c:0.7 "" -E --prom=m.prom
	[[ $(field evidence status) == faulty ]]
	[[ $(field evidence entity) == device:*/c ]]
	[[ $(grep -c ^evidence <<<"$output") == 1 ]]
	grep -q 'result="faulty"' m.prom
	run -1 rcacompose -s gpu-node -q - <<<"$output"
	[[ $output == *$'result=culprit'*entity=device:*/c$'\t'* ]]
	run -0 replay a,b,c 1 '' '' --rate=0.5 -E
	[[ $(grep -c $'^evidence\t.*status=healthy' <<<"$output") == 3 ]]
	# Its bound is a rate, for max-bound of the stack: too few to acquit.
	[[ $(field evidence bound) =~ ^0[.][0-9]+$ ]]
	run -3 rcacompose -s gpu-node - <<<"$output"
	[[ $output == *gpureplay=U:thin* ]]
}

# bats test_tags=slow
@test "gpureplay run refuses what it cannot do" {
	local words
	while read -r words; do
		run -2 --separate-stderr gpureplay run $words
		[[ -z $output && $stderr == "gpureplay run: "* ]]
	done <<-'END'
		-- true
		--cpus=0
		--cpus=0 --devices=a --pin=X={device} -- true
		--devices=a -- true
		--devices=a,a --pin=X={device} -- true
		--devices=a,,b --pin=X={device} -- true
		--cpus=0,0 -- true
		--cpus=9999 -- true
		--cpus=1023 -- true
		--cpus=2-1 -- true
		--cpus=x -- true
		--devices=a --pin=X -- true
		--devices=a --pin={device} -- true
		--devices=a --pin=X={device} --suspect=b -- true
		--cpus=0 --alpha=0.5 -- true
		--cpus=0 --rate=0 -- true
		--cpus=0 --rate=nan -- true
		--cpus=0 --ratio=0.5 -- true
		--cpus=0 --timeout=0s -- true
		--cpus=0 --sig= -- true
	END
	run -2 --separate-stderr gpureplay run --cpus=0 -- ./no-such-file
	[[ $stderr == *"./no-such-file: cannot execute: No such file"* ]]
}

@test "gpureplay run leaves no files behind" {
	mkdir tmp
	TMPDIR=tmp run -1 replay a,b,c,d 1 c:0.7
	TMPDIR=tmp run -2 gpureplay run --cpus=0 -- ./no-such-file
	[[ -z $(ls -A tmp) ]]
	TMPDIR=./none run -2 --separate-stderr gpureplay run --cpus=0 -- true
	[[ $stderr == *"cannot create"* ]]
}

# ---- devices

# A machine with two NVIDIA boards, one of them in use, and one of AMD.
machine() {
	local n=m/proc/driver/nvidia
	mkdir -p $n/gpus/0000:{17,65}:00.0 m/sys/bus/pci/slots/{4,7} \
		m/proc/{7,8,x}/fd m/sys/devices/0000:03:00.0/drm/renderD129 \
		m/sys/bus/pci/drivers/amdgpu m/sys/module/amdgpu
	echo "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue" \
		>$n/version
	printf '%s\n' 'Model: 		 NVIDIA H100' 'IRQ:   	 5' \
		'GPU UUID: 	 GPU-aaaa' 'Device Minor: 	 0' \
		>$n/gpus/0000:17:00.0/information
	printf '%s\n' 'Model: 		 NVIDIA H100' 'GPU UUID: 	 GPU-bbbb' \
		'Device Minor: 	 1' >$n/gpus/0000:65:00.0/information
	echo 0000:65:00 >m/sys/bus/pci/slots/7/address
	ln -s /dev/nvidia1 m/proc/7/fd/3
	ln -s /dev/nvidia1 m/proc/7/fd/4
	ln -s /dev/nvidiactl m/proc/8/fd/3
	ln -s ../../../../devices/0000:03:00.0 \
		m/sys/bus/pci/drivers/amdgpu/0000:03:00.0
	echo 5a5a >m/sys/devices/0000:03:00.0/unique_id
	echo 692 >m/sys/devices/0000:03:00.0/serial_number
	ln -s /dev/dri/renderD129 m/proc/8/fd/4
}

@test "gpureplay devices lists boards with what finds them" {
	machine
	run -0 gpureplay devices --root=m
	[[ $(grep -c ^device <<<"$output") == 3 ]]
	[[ ${lines[1]} == device$'\t'entity=device:*/0000:03:00.0$'\t'* ]]
	[[ ${lines[1]} == *pin=ROCR_VISIBLE_DEVICES=GPU-5a5a*serial=692*busy=1 ]]
	[[ ${lines[2]} == *pin=CUDA_VISIBLE_DEVICES=GPU-aaaa*busy=0 ]]
	[[ ${lines[2]} == *"model=NVIDIA H100"*driver=550.54.15* ]]
	[[ ${lines[2]} != *slot=* ]]
	[[ ${lines[3]} == *uuid=GPU-bbbb*slot=7*busy=1 ]]
}

@test "gpureplay devices survives any content of these files" {
	local f
	machine
	for f in m/proc/driver/nvidia/{version,gpus/*/information} \
		m/sys/bus/pci/slots/7/address; do
		head -c 20000 /dev/urandom >$f
	done
	run -0 gpureplay devices --root=m
	: >m/proc/driver/nvidia/gpus/0000:17:00.0/information
	run -0 gpureplay devices --root=m
	[[ $(grep -c ^device <<<"$output") == 2 ]]
	run -2 --separate-stderr gpureplay devices --root=none
	[[ $stderr == *"no boards"* ]]
}

@test "gpureplay devices lists the cores that may be used" {
	run -0 gpureplay devices
	[[ $(grep -c $'^device\t.*pin=--cpus=' <<<"$output") == $(nproc) ]]
	run -0 taskset -c 0 gpureplay devices
	[[ $(grep -c pin=--cpus=0 <<<"$output") == 1 ]]
	[[ $(grep -c pin=--cpus <<<"$output") == 1 ]]
}

# ---- ledger

# bats test_tags=slow
@test "gpureplay run goes on from its ledger, which convicts in the end" {
	local session
	for session in 1 2 3 4 5; do
		run --separate-stderr replay a,b,c,d 1$session c:0.4 "" -n 4 --ledger=L
		[[ $status == 1 ]] && break
		[[ $(field verdict reason) =~ ^(thin|few)$ ]]
	done
	says faulty ""
	[[ $(field verdict entity) == device:*/c ]]
	[[ $(field verdict cause) == ledger ]]
	[[ $session -gt 1 ]]
	[[ $(ls L | wc -l) == "$session" ]]
	run -1 gpureplay ledger --ratio=1 L -E
	says faulty ""
	[[ $(field verdict entity) == device:*/c ]]
	[[ $(grep -c $'^evidence\t.*status=faulty' <<<"$output") == 1 ]]
	# What was made with ratio 1 is judged with the ratio asked for.
	run -3 gpureplay ledger L
	says unknown thin
	# A copy says nothing new; a reset forgets.
	cp L/"$(ls L | head -n 1)" L/copy.session
	run -1 gpureplay ledger --ratio=1 L
	[[ $(field standing sessions) == "$session" ]]
	id=$(field standing id)
	run -2 --separate-stderr gpureplay ledger --reset=none L
	[[ $stderr == *'has no device "none"'* ]]
	run -0 gpureplay ledger --reset="${id%a}c" L
	run -2 gpureplay ledger --reset= L
	run -3 gpureplay ledger --ratio=1 L
	grep -q $'^standing\t.*/c\t.*processes=0\tk=0' <<<"$output"
}

# bats test_tags=slow
@test "gpureplay run acquits with what its ledger has, but not more" {
	run -3 --separate-stderr replay a,b,c 1 '' '' --rate=0.5 -n 5 --ledger=L
	says unknown few
	run -0 --separate-stderr replay a,b,c 1 '' '' --rate=0.5 -n 5 --ledger=L
	says healthy ""
	[[ $(field verdict cause) == ledger ]]
	# ln(3 / 0.05) / 10
	[[ $(field verdict bound) == "rate<=0.409 of processes at 95%" ]]
	# Another workload begins at nothing, and so does another device.
	run -3 --separate-stderr replay a,b,c 2 '' '' --rate=0.5 -n 5 --ledger=L
	says unknown few
	run -3 --separate-stderr replay a,b,d 1 '' '' --rate=0.5 -n 5 --ledger=L
	says unknown few
	run -3 --separate-stderr gpureplay ledger L
	says unknown few
	run -0 --separate-stderr gpureplay ledger --rate=0.9 L
	says healthy ""
	# A session that cannot be read might be the one that diverged.
	echo nonsense >L/x.session
	run -3 --separate-stderr gpureplay ledger --rate=0.9 L
	says unknown damaged
	[[ $stderr == *"L/x.session: "* && $(field verdict bad) == 1 ]]
	run -0 gpureplay ledger --rate=0.9 --allow-bad=1 L
	run -2 gpureplay ledger --rate=0.9 --strict L
	run -3 --separate-stderr replay a,b,c 1 '' '' --rate=0.3 -n 5 --ledger=L
	says unknown few
}

# bats test_tags=slow
@test "gpureplay run's ledger never convicts of what a race can do" {
	local i
	run --separate-stderr replay a,b,c,d 21 c:0.6 "" -n 5 --ledger=L
	says unknown thin
	# Once it was seen on two devices, nothing of the workload counts.
	run -3 --separate-stderr gpureplay ledger L
	[[ $(sed -n 's/.*c\tid=.*\tk=\([0-9]*\)\t.*/\1/p' <<<"$output") -gt 0 ]]
	grep ^row L/*.session | sed 's/pin=/voids=yes\t&/' |
		"$build/tools/seal" run=2 time=2 | sed "1s/of=fp/of=ledger/" \
			>L/race.session
	run -3 --separate-stderr gpureplay ledger L
	[[ -z $stderr ]]
	[[ $(grep -c $'\tk=0\tvoided=2\t' <<<"$output") == 4 ]]
	# One that differs every time is another build, session after session.
	for i in 1 2 3; do
		run -3 --separate-stderr replay a,b,c 1 b:1 same -n 8 --ledger=M
		says unknown consistent-difference
	done
	run -3 gpureplay ledger --ratio=1 M
	[[ $output == *$'\tk=0\tvoided=3\t'* ]]
	# Two that differ: it is not said which.
	run -3 replay a,b 1 a:0.5 "" --ledger=N
	[[ ! -e N ]]
}

# bats test_tags=slow
@test "gpureplay ledger survives any content of its directory" {
	local f n
	run -3 --separate-stderr replay a,b,c 1 '' '' -n 2 --ledger=L
	f=$(ls L/*.session)
	cp $f whole
	for ((n = 0; n < $(wc -c <whole); n += 37)); do
		head -c $n whole >$f
		run -2 --separate-stderr gpureplay ledger L
		[[ $stderr == *"holds no session"* ]]
	done
	cp whole $f
	ln -s /dev/zero L/zero.session
	ln -s ../whole L/link.session
	mkfifo L/fifo.session
	mkdir L/dir.session
	head -c 100000 /dev/urandom >L/noise.session
	sed 's/k=0/k=5/' whole >L/forged.session
	truncate -s 10M L/large.session
	run -3 --separate-stderr timeout 20 gpureplay ledger L
	says unknown few
	[[ $(field verdict bad) == 7 ]]
}

# ---- hosts

# far HOSTS SEED FAULTS [OPTION]...: worker on hosts, which are this one.
far() {
	local hosts=$1 seed=$2 faults=$3
	shift 3
	rm -f state/count
	timeout 300 gpureplay run --hosts="$hosts" --launch='env DEV={host}' \
		--ratio=1 --trust-pin "$@" -- sh -c \
		'exec "$0" state "$1" "$2" "$DEV" "$3"' \
		"$worker" "$seed" "$faults" "${how-}"
}

# bats test_tags=slow
@test "gpureplay run names the host that computes wrong, through a launcher" {
	run -1 --separate-stderr far 'n[1-4]' 1 n3:0.6
	says faulty ""
	[[ $(field verdict entity) == host:n3 ]]
	[[ $(field diff name) == layer.1 && $(field diff dev) == host:n3 ]]
	run -3 --separate-stderr far 'n[1-3],m' 1 '*:0.4'
	says unknown nondeterministic
}

# bats test_tags=slow
@test "gpureplay run compares hashes through a launcher" {
	set -- --hosts=a,b --launch="env X={host}" --trust-pin --rate=0.9
	run -0 gpureplay run "$@" --sig=stdout -- echo same
	run -3 gpureplay run "$@" --sig=stdout -- sh -c 'echo $X'
	says unknown two-devices
	[[ $(field diff name) == stdout ]]
	run -0 gpureplay run "$@" --sig=stdout --sig=f -- sh -c 'echo >f'
}

# bats test_tags=slow
@test "gpureplay run counts what fails on a host" {
	local how limit
	for how in crash:signal exit:exit hang:timeout nosig:nosig; do
		limit=30s
		[[ $how != hang:* ]] || limit=1s
		how=${how%:*} run -3 --separate-stderr far a,b,c 2 b:0.2 \
			--rate=0.5 --timeout=$limit
		says unknown failures
		[[ $output == *$'/b\t'* || $output == *host:b$'\t'* ]]
		[[ $output == *"${how#*:}="[1-9]* ]]
	done
	run -2 --separate-stderr gpureplay run --hosts=a,b \
		--launch='sh -c "exit 3" {host}' -- true
	[[ $stderr == *"a: exit status 3"*"nothing was tested"* ]]
	run -2 --separate-stderr gpureplay run --hosts=a --launch='none {host}' \
		-- true
	[[ $stderr == *"none: cannot execute"* ]]
	run -2 --separate-stderr gpureplay run --hosts=a,b \
		--launch='env X={host}' -- ./no-such-file
	[[ $stderr == *"exit status 2: gpureplay exec: ./no-such-file: "* ]]
}

# bats test_tags=slow
@test "gpureplay run reads what is left of a far side's records as damaged" {
	local cut
	cat >launcher <<-'END'
		shift
		"$@" >whole
		echo "a banner of the launcher"
		sed "$CUT" whole
	END
	CUT= run -0 --separate-stderr gpureplay run --hosts=a,b --trust-pin \
		--launch='sh launcher {host}' --rate=0.9 --sig=stdout -- echo
	for cut in '$d' '/^scalar/d' 's/value=./value=x/' 3q; do
		CUT=$cut run -2 --separate-stderr gpureplay run --hosts=a,b \
			--trust-pin --launch='sh launcher {host}' --rate=0.9 \
			--sig=stdout -- echo
		[[ $output == *damaged=3* || $output == *nosig=3* ]]
	done
}

# bats test_tags=slow
@test "gpureplay run verifies that it is the host that was asked for" {
	run -0 gpureplay run --hosts="$(hostname),$(hostname).example" \
		--launch='env X={host}' --rate=0.9 --sig=stdout -- echo
	[[ $(field device pin) == verified ]]
	run -3 gpureplay run --hosts=a,b --launch='env X={host}' --rate=0.9 \
		--sig=stdout -- echo
	says unknown pin-unverified
	run -0 gpureplay run --hosts="$(hostname)" --cpus=0 -v -n 1 \
		--launch='env X={host}' --dry-run --deterministic -- echo
	[[ $(field process argv) == "env X=$(hostname) gpureplay exec "* ]]
	[[ $(field process argv) == *" --cpu=0 --deterministic -- echo" ]]
}

# bats test_tags=slow
@test "gpureplay run compares hosts of one kind only" {
	cat >launcher <<-'END'
		host=$1
		shift
		"$@" >whole
		[ $host = b ] && sed -i 's/build=/build=other/' whole
		grep -v ^end whole | grep -v ^head | SEAL
	END
	sed -i "s,SEAL,'$build/tools/seal'," launcher
	run -3 --separate-stderr gpureplay run --hosts=a,b,c --trust-pin \
		--launch='sh launcher {host}' --rate=0.5 --sig=stdout -- echo
	[[ $(grep -c 'group=1' <<<"$output") -ge 2 ]]
	[[ $(grep $'^device\t.*group=2' <<<"$output") == *entity=host:b* ]]
	[[ $(grep $'^device\t.*group=1' <<<"$output") == *host:a*host:c* ]]
	says unknown no-reference
}

@test "gpureplay run reads lists of hosts and the words of a launcher" {
	argv() {
		gpureplay run --dry-run -F tsv --type process --columns entity,argv \
			"$@" -- c
	}
	run -0 argv --hosts='n[08-10,3].x,m' --launch='a "b  c" {host}'"'d e'"
	[[ ${#lines[@]} == 6 ]]
	[[ ${lines[1]} == host:n08.x$'\t'"a 'b  c' 'n08.xd e' gpureplay exec"* ]]
	[[ ${lines[2]} == host:n09.x* && ${lines[3]} == host:n10.x* ]]
	[[ ${lines[4]} == host:n3.x* && ${lines[5]} == host:m* ]]
	local bad
	for bad in '' a, 'n[1' 'n[2-1]' 'n[x]' 'n[]' 'n[1][2]' 'n[1-99999]' a,a; do
		run -2 --separate-stderr argv --hosts="$bad" --launch='x {host}'
		[[ $stderr == "gpureplay run: option --hosts: "* ]]
	done
	run -2 argv --hosts=a --launch=x
	run -2 argv --hosts=a --launch='x "{host}'
	run -2 argv --hosts=a
	run -2 argv --launch='x {host}'
	run -2 argv --hosts=a --launch='x {host}' --devices=b
}

@test "gpureplay exec prints how the command ended and its signature" {
	run -0 gpureplay exec --cpu=0 --sig=stdout -- echo hi
	[[ $(field process outcome) == ok && $(field process pin) == verified ]]
	[[ $(field scalar value) == "$(echo hi | xxhsum -H2 | cut -d ' ' -f 1)" ]]
	run -0 gpureplay exec -- sh -c 'echo oh >&2; exit 3'
	[[ $(field process outcome) == exit && $(field process exit) == 3 ]]
	[[ $(field process note) == oh ]]
	seq 9 >data
	run -0 gpureplay exec -- fpdump data
	[[ $(field fp name) == data || -n $(field fp hash) ]]
	run -2 gpureplay exec
}

@test "gpureplay switches tells unset, kept and conflict, and status 1 of a conflict" {
	local all
	unset "${!CUBLAS_@}" "${!NCCL_@}" "${!MKL_@}" "${!OMP_@}" PYTHONHASHSEED
	run -0 gpureplay switches
	all=$(grep -c '^switch' <<<"$output")
	[[ $output != *state=conflict* ]]
	run -1 env NCCL_ALGO=Tree CUBLAS_WORKSPACE_CONFIG=:16:8 gpureplay switches
	[[ $output == *$'name=NCCL_ALGO\tstate=conflict\tvalue=Ring\tnow=Tree\t'* ]]
	[[ $output == *$'name=CUBLAS_WORKSPACE_CONFIG\tstate=kept\tvalue=:4096:8\tnow=:16:8\t'* ]]
	[[ $output == *$'name=PYTHONHASHSEED\tstate=unset\tvalue=0\tnote='* ]]
	# Those that are unset, and no other, for env.
	run -1 --separate-stderr env NCCL_ALGO=Tree PYTHONHASHSEED=0 gpureplay switches -F env
	[[ $(wc -l <<<"$output") == $((all - 2)) ]]
	[[ $output == *$'\nMKL_DYNAMIC=FALSE\n'* && $output != *NCCL_ALGO* ]]
	[[ $stderr == "gpureplay switches: NCCL_ALGO=Tree is left alone: NCCL wants Ring" ]]
	# With them set nothing is left to set.
	run -0 env $(gpureplay switches -F env) gpureplay switches -F env
	[[ -z $output ]]
}

@test "gpureplay switches --cost times a command with and without, and no failing one" {
	unset MKL_DYNAMIC
	# Three times as long where the switch is set.
	run -0 gpureplay switches --cost=6 -- sh -c 'sleep 0.0${MKL_DYNAMIC:+6}2'
	[[ $(field cost n) == 6 ]]
	awk -v w="$(field cost without)" -v r="$(field cost ratio)" -v l="$(field cost low)" '
		BEGIN { exit !(w >= 0.02 && r > 1 && l <= r) }'
	run -2 --separate-stderr gpureplay switches --cost=6 -- sh -c 'echo why >&2; exit 3'
	[[ $stderr == "gpureplay switches: sh: exit: why: no cost" ]]
	run -2 gpureplay switches --cost=6 -- ./nowhere
	run -2 gpureplay switches --cost=5 -- true
	run -2 gpureplay switches --cost=6
	run -2 gpureplay switches true
	run -2 gpureplay switches -F env -z
	run -2 bash -c 'gpureplay switches -F env >/dev/full'
}
