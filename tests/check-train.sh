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
	finish
}

# says TEXT STATUS PATTERN COMMAND...: exit status and a line of the output.
says() {
	local text=$1 status=$2 pattern=$3 got
	shift 3
	timeout 60 "$@" >"$dir/out" 2>"$dir/err"
	got=$?
	if [[ $got == "$status" ]] && grep -qE "$pattern" "$dir/out"; then
		passed=$((passed + 1))
		echo "ok $text"
		return
	fi
	failed=$((failed + 1))
	echo "not ok $text: status $got, expected $status and $pattern"
	head -n 15 "$dir/out" "$dir/err"
}

for python in "${PYTHON:-python3}" /usr/bin/python3 ''; do
	[[ -n $python ]] && "$python" -c 'import torch, numpy' 2>/dev/null && break
done
[[ -n $python ]] || not_run 'no python3 with torch and numpy'
[[ -x $build/fpdiff && -e $build/libstraightedge.so ]] ||
	not_run 'no fpdiff or no libstraightedge.so'

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
train() {
	timeout 120 "$python" tests/train/train.py "$@" || {
		echo "check-train: train.py $*: failed"
		failed=$((failed + 1))
		finish
	}
}

train -o "$dir/a.fp" --save-grad "$dir/a.npy"
train -o "$dir/b.fp"
train -o "$dir/flip.fp" --flip 37 --save-grad "$dir/flip.npy"

says 'two deterministic runs are the same, every record' 0 \
	'^verdict	result=same	.*prefix=2680' fpdiff "$dir/a.fp" "$dir/b.fp"
says 'one flipped bit in one gradient: that step and boundary' 1 \
	'^verdict	result=different	.*step=37	.*io=grad	name=blocks.1.fc2.weight' \
	fpdiff "$dir/a.fp" "$dir/flip.fp"
says 'the tensors themselves: row 13, one bit' 1 \
	'^diff	class=single-bit	.*first=13,40' \
	fpdiff --tensors "$dir/a.npy" "$dir/flip.npy"
says 'a run cut short shows no difference, and not that there is none' 3 \
	'^verdict	result=unknown	.*reason=filtered' \
	bash -c "head -n 1000 '$dir/b.fp' | fpdiff '$dir/a.fp' -"

for i in 1 2 3 4; do
	train -o "$dir/race$i.fp" --race --steps 12
done
says 'a race in a kernel: the boundary that begins to differ' 1 \
	'^verdict	result=different	.*name=blocks.1.mix' \
	fpdiff "$dir/race1.fp" "$dir/race2.fp"
finish
