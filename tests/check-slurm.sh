#!/bin/bash
# gpureplay run over real launchers: Slurm with two and three nodes on this
# host, which listens on loopback only, and Open MPI.
#
# usage: tests/check-slurm.sh        BUILD=build
# "not run" where Slurm and munge are not installed or root is not allowed.
set -u
cd "$(dirname "$0")/.." || exit 2
build=${BUILD:-build}
[[ $build == /* ]] || build=$PWD/$build
PATH=$build:$PATH:/usr/sbin:/sbin
export LC_ALL=C
passed=0 failed=0 skipped=0 dir='' pids=()

finish() {
	local file
	for file in "$dir"/*.pid; do
		[[ -e $file ]] && kill "$(cat "$file")" 2>/dev/null
	done
	[[ ${#pids[@]} == 0 ]] || kill "${pids[@]}" 2>/dev/null
	wait
	[[ -z $dir ]] || rm -rf "$dir"
	echo "$passed passed, $failed failed, $skipped skipped"
	[[ $failed == 0 ]]
	exit
}

not_run() {
	echo "check-slurm: not run: $1"
	skipped=$((skipped + 1))
}

# says TEXT STATUS WANT... -- COMMAND...: the exit status, and every WANT is in
# one line of the output that begins with verdict.
says() {
	local text=$1 status=$2 want=() got line word
	shift 2
	while [[ $1 != -- ]]; do
		want+=("$1")
		shift
	done
	shift
	rm -f "$dir/state/count"
	timeout 120 "$@" >"$dir/out" 2>"$dir/err" </dev/null
	got=$?
	line=$(grep ^verdict "$dir/out")$'\t'
	for word in "${want[@]}"; do
		[[ $line == *$'\t'"$word"$'\t'* ]] || got="$got, no $word"
	done
	if [[ $got == "$status" ]]; then
		passed=$((passed + 1))
		echo "ok $text"
	else
		failed=$((failed + 1))
		echo "not ok $text: exit $got, expected $status"
		head -n 20 "$dir/out" "$dir/err"
	fi
}

dir=$(mktemp -d)
mkdir "$dir/state"
chmod 755 "$dir"
trap 'exit 1' INT TERM
make -s "$build/tools/worker" BUILD="$build" >/dev/null || exit 2

# Then FAULTS and the variable that names the node.
step=(sh -c 'eval node=\$$4
	exec "$0" "$1" "$2" "$3" "$node"' "$build/tools/worker" "$dir/state" 1)

# ---- Slurm

start_munge() {
	[[ -S /run/munge/munge.socket.2 ]] && munge -n >/dev/null 2>&1 && return
	(umask 077 && head -c 1024 /dev/urandom >"$dir/munge.key")
	munged --force --key-file="$dir/munge.key" \
		--socket="$dir/munge.socket" --pid-file="$dir/munge.pid" \
		--log-file="$dir/munge.log" --seed-file="$dir/munge.seed" \
		>"$dir/munge.out" 2>&1 || return
	auth="AuthInfo=socket=$dir/munge.socket"
}

start_slurm() {
	local n host
	host=$(hostname -s)
	export SLURM_CONF=$dir/slurm.conf
	mkdir "$dir/save" "$dir"/spool.n{1,2,3}
	cat >"$SLURM_CONF" <<-END
		ClusterName=test
		SlurmctldHost=$host(127.0.0.1)
		SlurmUser=root
		SlurmctldPort=16817
		SlurmdPort=16818
		AuthType=auth/munge
		${auth-}
		CredType=cred/munge
		StateSaveLocation=$dir/save
		SlurmdSpoolDir=$dir/spool.%n
		SlurmctldPidFile=$dir/ctld.pid
		SlurmdPidFile=$dir/d.%n.pid
		SlurmctldLogFile=$dir/ctld.log
		SlurmdLogFile=$dir/d.%n.log
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		ReturnToService=2
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		MpiDefault=none
		SwitchType=switch/none
	END
	for n in 1 2 3; do
		echo "NodeName=n$n NodeHostname=$host NodeAddr=127.0.0.1" \
			"Port=1700$n CPUs=2 RealMemory=500" >>"$SLURM_CONF"
	done
	echo "PartitionName=p Nodes=n[1-3] Default=YES State=UP" \
		"OverSubscribe=FORCE" >>"$SLURM_CONF"
	slurmctld -D -f "$SLURM_CONF" >"$dir/ctld.out" 2>&1 &
	pids+=($!)
	for n in 1 2 3; do
		slurmd -D -f "$SLURM_CONF" -N n$n >"$dir/d.$n.out" 2>&1 &
		pids+=($!)
	done
	for ((n = 0; n < 300; n++)); do
		[[ $(sinfo -h -o '%D %t' 2>/dev/null) == "3 idle" ]] && return
		sleep 0.1
	done
	return 1
}

with_slurm() {
	local tool launch='srun -w {host} -N1 -n1' run
	for tool in slurmctld slurmd srun munged; do
		command -v $tool >/dev/null || {
			not_run "no $tool"
			return
		}
	done
	[[ $(id -u) == 0 ]] || {
		not_run 'Slurm needs root'
		return
	}
	start_munge && start_slurm || {
		not_run "Slurm did not start: $(tail -n 1 "$dir"/ctld.out \
			"$dir"/munge.out 2>/dev/null | tail -n 1)"
		return
	}
	run=(gpureplay run --launch="$launch" --ratio=1 --trust-pin)
	says 'three nodes of Slurm: the poisoned one is named' 1 \
		result=faulty entity=host:n2 -- \
		"${run[@]}" --hosts='n[1-3]' -- \
		"${step[@]}" n2:0.7 SLURMD_NODENAME
	says 'three nodes: a step that is not deterministic' 3 \
		result=unknown reason=nondeterministic -- \
		"${run[@]}" --hosts='n[1-3]' -- \
		"${step[@]}" '*:0.5' SLURMD_NODENAME
	says 'three nodes: nothing wrong' 0 result=healthy -- \
		"${run[@]}" --hosts='n[1-3]' --rate=0.7 -- \
		"${step[@]}" '' SLURMD_NODENAME
	says 'two nodes: it is not said which' 3 \
		result=unknown reason=two-devices -- \
		"${run[@]}" --hosts='n1,n2' -- \
		"${step[@]}" n2:0.7 SLURMD_NODENAME
	says 'a node that is not there' 2 -- \
		"${run[@]}" --hosts='n1,none' -- \
		"${step[@]}" '' SLURMD_NODENAME
	says 'without trust: Slurm calls this host n1, it is not' 3 \
		reason=pin-unverified -- \
		gpureplay run --launch="$launch" --hosts='n1,n2' --rate=0.9 \
		-- "${step[@]}" '' SLURMD_NODENAME
}

# ---- Open MPI

with_mpi() {
	local mpi='mpirun --allow-run-as-root --oversubscribe -np 1'
	command -v mpirun >/dev/null || {
		not_run 'no mpirun'
		return
	}
	says 'Open MPI: the poisoned process is named' 1 \
		result=faulty entity=host:b -- \
		gpureplay run --launch="env NODE={host} $mpi" \
		--hosts=a,b,c --ratio=1 --trust-pin -- \
		"${step[@]}" b:0.7 NODE
}

with_slurm
with_mpi
finish
