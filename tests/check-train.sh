#!/bin/bash
# Real training with PyTorch and known faults, recorded by straightedge.py and
# judged by fpdiff. tests/train/train.py says what each fault is.
#
# usage: tests/check-train.sh        BUILD=build   "not run" where torch is not
set -u
cd "$(dirname "$0")/.." || exit 2
build=${BUILD:-build}
[[ $build == /* ]] || build=$PWD/$build
PATH=$build:$PATH
export LC_ALL=C GLOO_SOCKET_IFNAME=lo
passed=0 failed=0 skipped=0

finish() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[[ $failed == 0 ]]
	exit
}

not_run() {
	echo "check-train: not run: $1"
	skipped=$((skipped + 1))
}

# holds LINE KEY=VALUE...: LINE is a record that has all of these.
holds() {
	local line="$1"$'\t' field
	shift
	for field; do
		[[ $line == *$'\t'"$field"$'\t'* ]] || return 1
	done
}

# any_holds TYPE KEY=VALUE... <RECORDS
any_holds() {
	local line type=$1
	shift
	while IFS= read -r line; do
		[[ $line == "$type"$'\t'* ]] && holds "$line" "$@" && return
	done
	return 1
}

# says TEXT STATUS TYPE KEY=VALUE... -- COMMAND...: the exit status, and a
# record of that type which has these fields.
says() {
	local text=$1 status=$2 want=() got
	shift 2
	while [[ $1 != -- ]]; do
		want+=("$1")
		shift
	done
	shift
	timeout 60 "$@" >"$dir/out" 2>"$dir/err"
	got=$?
	text="$text: exit $status, ${want[*]}"
	if [[ $got == "$status" ]] && any_holds "${want[@]}" <"$dir/out"; then
		passed=$((passed + 1))
		echo "ok $text"
		return
	fi
	failed=$((failed + 1))
	echo "not ok $text: was exit $got"
	head -n 15 "$dir/out" "$dir/err"
}

for python in "${PYTHON:-python3}" /usr/bin/python3 ''; do
	[[ -n $python ]] && "$python" -c 'import torch, numpy' 2>/dev/null && break
done
[[ -n $python ]] || {
	not_run 'no python3 with torch and numpy'
	finish
}
[[ -x $build/fpdiff && -e $build/libstraightedge.so ]] || {
	not_run 'no fpdiff or no libstraightedge.so'
	finish
}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

train() {
	timeout 120 "$python" tests/train/train.py "$@" || {
		echo "not ok train.py $*"
		failed=$((failed + 1))
		finish
	}
}

# ---- two runs ------------------------------------------------------------

train -o "$dir/run{run}.fp" --runs 2 --save-grad "$dir/a.npy"
train -o "$dir/flip.fp" --flip 37 --save-grad "$dir/flip.npy"

says 'two deterministic runs are the same, every record' 0 \
	verdict result=same prefix=2680 equal=2680 -- \
	fpdiff "$dir/run0.fp" "$dir/run1.fp"
says 'one flipped bit in one gradient: that step and boundary' 1 \
	verdict result=different step=37 io=grad name=blocks.1.fc2.weight -- \
	fpdiff "$dir/run0.fp" "$dir/flip.fp"
says 'the tensors themselves: row and column, one bit' 1 \
	diff class=single-bit first=13,40 -- \
	fpdiff --tensors "$dir/a.npy" "$dir/flip.npy"
says 'a run cut short shows no difference, and not that there is none' 3 \
	verdict result=unknown reason=filtered different=0 -- \
	bash -c "head -n 1000 '$dir/run1.fp' | fpdiff '$dir/run0.fp' -"

# ---- what a recorder sees, and what is left of it ----------------------------

# The records of a step by io, and what the end says.
seen() {
	awk -F'\t' '
		$1 == "fp" && /\tstep=1\t/ && match($0, /\tio=[a-z]+/) {
			n[substr($0, RSTART + 4, RLENGTH - 4)]++
		}
		$1 == "end" && match($0, /lost=[0-9]+/) {
			lost = substr($0, RSTART, RLENGTH)
		}
		END {
			printf "seen\t%s", lost
			for (io in n)
				printf "\t%s=%d", io, n[io]
			print ""
		}' "$1"
}

# killed OPTION...: train.py, which ends by kill -9.
killed() {
	timeout 120 "$python" tests/train/train.py "$@" 2>/dev/null
	[[ $? == 137 ]] || {
		echo "not ok train.py $*: was not killed"
		failed=$((failed + 1))
	}
} 2>/dev/null

train -o "$dir/cover.fp" --cover
seen "$dir/cover.fp" >"$dir/cover.seen"
train -o "$dir/whole.fp" --steps 12
killed -o "$dir/killed.fp" --steps 12 --kill 7
train -o "$dir/resumed.fp" --steps 12 --resume 5
cat "$dir/killed.fp" "$dir/resumed.fp" >"$dir/both.fp"

# A keyword among the inputs; 10 parameters and buffers before the step and 6
# parameters behind it; 2 things a step that cannot be recorded: an object that
# a module returns and the sparse gradient of an embedding.
says 'every kind of boundary is recorded, the rest is counted' 0 \
	seen in=6 param=16 out=5 grad=11 state=18 lost=4 -- \
	cat "$dir/cover.seen"
says 'kill -9: what was written is readable, and known to be incomplete' 3 \
	verdict result=unknown reason=filtered prefix=469 equal=469 \
	different=0 -- \
	fpdiff "$dir/whole.fp" "$dir/killed.fp"
says 'restarted two steps back: nothing differs, what repeats is unmatched' 3 \
	verdict result=unknown reason=filtered prefix=804 equal=804 \
	different=0 unmatched=134 -- \
	fpdiff "$dir/whole.fp" "$dir/both.fp"

# ---- replicas: a batch and a file each, one directory ----------------------

# replicas NAME N OPTION...
replicas() {
	local name=$1 n=$2
	shift 2
	mkdir "$dir/$name"
	train -o "$dir/$name/run.{rank}.fp" --steps 8 --replicas "$n" "$@"
}

replicas three 3
replicas weight 3 --corrupt 1 --where weight
replicas after 3 --corrupt 2 --where after
replicas before 3 --corrupt 2 --where before
replicas two 2
replicas pair 2 --corrupt 1 --where after
mkdir "$dir/short"
cp "$dir"/three/run.[01].fp "$dir/short"
head -n 300 "$dir/three/run.2.fp" >"$dir/short/run.2.fp"

# In each of 8 steps: 11 parameters before and after, their gradients and
# momenta.
says 'three replicas that agree' 0 \
	verdict result=same compared=352 equal=352 -- \
	fpdiff --across dp "$dir/three"
says 'a flipped bit in the weight of one of three: its rank' 1 \
	verdict result=different entity=rank:1 step=5 phase=fwd rank=1 \
	io=param name=head.weight -- \
	fpdiff --across dp "$dir/weight"
says 'a flipped bit in the reduced gradient of one of three: its rank' 1 \
	verdict result=different entity=rank:2 step=5 phase=opt rank=2 \
	io=grad name=head.weight -- \
	fpdiff --across dp "$dir/after"
says 'a bit flipped before the reduction is in all replicas: they agree' 0 \
	verdict result=same compared=352 equal=352 -- \
	fpdiff --across dp "$dir/before"
says 'and a reference run of the same ranks shows it' 1 \
	verdict result=different step=5 phase=opt io=grad name=head.weight -- \
	fpdiff "$dir/three" "$dir/before"
says 'two replicas that agree' 0 \
	verdict result=same compared=352 equal=352 -- \
	fpdiff --across dp "$dir/two"
says 'two replicas that disagree: nobody is named' 3 \
	verdict result=unknown reason=no-majority 'need=a third replica' \
	step=5 name=head.weight -- \
	fpdiff --across dp "$dir/pair"
says 'one of three replicas ends early: not the same' 3 \
	verdict result=unknown reason=missing-replicas different=0 -- \
	fpdiff --across dp "$dir/short"

# ---- shards --------------------------------------------------------------

train -o "$dir" --steps 3 --shards
for part in "$dir"/*/*.live; do
	fpdump --shardsum 8 -o "${part%.live}.fp" <"$part"
	rm "$part"
done
mkdir "$dir/gap"
cp "$dir"/columns4/part[013].fp "$dir/gap"

for pair in 'rows2 rows4' 'rows2 columns4' 'columns2 columns4' \
	'columns2 rows4'; do
	read -r a b <<<"$pair"
	says "one model saved as $a and as $b" 0 \
		verdict result=same compared=6 equal=6 -- \
		fpdiff --combine "$dir/$a" "$dir/$b"
done
says 'one bit of one element in one of four shards: that tensor' 1 \
	verdict result=different name=blocks.1.fc2.weight equal=5 \
	different=1 -- \
	fpdiff --combine "$dir/rows2" "$dir/changed"
says 'a shard is missing: incomplete, not the same' 3 \
	verdict result=unknown reason=damaged equal=0 different=0 skipped=6 -- \
	fpdiff --combine "$dir/rows2" "$dir/gap"

# ---- runs that vary by themselves ------------------------------------------

# learned NAME BOUNDARY PHASE IO: a mask of good runs 0 to 5, used on the first
# that is not like run 0. Whether two are not is the machine's doing.
learned() {
	local name=$1 boundary=$2 phase=$3 io=$4 run odd=()
	for run in 1 2 3 4 5; do
		cmp -s "$dir/$name"{0,$run}.fp || odd+=("$dir/$name$run.fp")
	done
	((${#odd[@]} > 1)) || {
		not_run "$name: it hardly varies here"
		return 1
	}
	says "$name: one boundary is unstable" 1 \
		verdict result=different equal=6 masked=1 -- \
		fpdiff --learn "$dir/$name"[0-5].fp
	cp "$dir/out" "$dir/$name.mask"
	says "$name: it is the one that makes the difference" 0 \
		unstable "name=$boundary" "phase=$phase" "io=$io" \
		"flips=${#odd[@]}" runs=6 -- \
		cat "$dir/$name.mask"
	says "$name: a good run with a flip is not called different" 3 \
		verdict result=unknown reason=unstable -- \
		fpdiff -m "$dir/$name.mask" "$dir/${name}0.fp" "${odd[0]}"
	says "$name: each flip is counted" 3 \
		count class=unstable "rule=$dir/$name.mask:2" -- \
		fpdiff -m "$dir/$name.mask" "$dir/${name}0.fp" "${odd[0]}"
	good=${odd[0]}
}

train -o "$dir/race{run}.fp" --race --steps 6 --runs 6
train -o "$dir/gather{run}.fp" --gather --steps 3 --runs 6
train -o "$dir/tally{run}.fp" --tally 3 --steps 8 --runs 6
train -o "$dir/gather-flip.fp" --gather --steps 3 --flip 0
train -o "$dir/tally-flip2.fp" --tally 3 --steps 8 --flip 2
train -o "$dir/tally-flip6.fp" --tally 3 --steps 8 --flip 6

if learned race blocks.1.mix fwd out; then
	says 'race: the boundary that begins to differ' 1 \
		verdict result=different phase=fwd io=out \
		name=blocks.1.mix -- \
		fpdiff "$dir/race0.fp" "$good"
fi
if learned gather embed.weight bwd grad; then
	says 'gather: a fault before the unstable boundary is found' 1 \
		verdict result=different step=0 io=grad \
		name=blocks.1.fc2.weight -- \
		fpdiff -m "$dir/gather.mask" "$dir/gather0.fp" \
		"$dir/gather-flip.fp"
fi
if learned tally Tally fwd out; then
	says 'tally: a fault before the unstable boundary is found' 1 \
		verdict result=different step=2 io=grad \
		name=blocks.1.fc2.weight -- \
		fpdiff -m "$dir/tally.mask" "$dir/tally0.fp" \
		"$dir/tally-flip2.fp"
	says 'tally: behind it a fault may be its consequence' 3 \
		verdict result=unknown reason=unstable step=6 -- \
		fpdiff -m "$dir/tally.mask" "$dir/tally0.fp" \
		"$dir/tally-flip6.fp"
	# Nothing depends on the tally; a person who knows says so.
	printf 'mask\tname=Tally\tio=out\treason=nothing reads it\n' \
		>"$dir/known.mask"
	says 'tally: known to have none, it hides no fault' 1 \
		verdict result=different step=6 io=grad \
		name=blocks.1.fc2.weight -- \
		fpdiff -m "$dir/known.mask" "$dir/tally0.fp" \
		"$dir/tally-flip6.fp"
	says 'tally: and a good run is the same' 0 \
		verdict result=same different=0 -- \
		fpdiff -m "$dir/known.mask" "$dir/tally0.fp" "$good"
fi
finish
