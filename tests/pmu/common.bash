# Loaded by the .bats files here:  setup() { load common; }
# Everything of ../common.bash, an empty directory to work in, and $src: the
# sources of the targets.

load ../common
cd "$BATS_TEST_TMPDIR" || exit 1
need cc
# shellcheck disable=SC2154 # of ../common.bash
src=$root/tests/pmu
export LD_LIBRARY_PATH=

# value FILE FUNC KEY: of a pmu record.
value() {
	awk -F '\t' -v f="func=$2" -v k="$3" '
		$1 == "pmu" && $2 == f {
			for (i = 2; i <= NF; i++)
				if (index($i, k "=") == 1)
					print substr($i, length(k) + 2)
		}' "$1"
}

# is FILE FUNC KEY VALUE
is() {
	local got
	got=$(value "$1" "$2" "$3")
	[[ $got == "$4" ]] || {
		echo "$2 $3: $got, expected $4" >&2
		cat "$1" >&2
		return 1
	}
}

x86() {
	[[ $(uname -m) == x86_64 ]] || skip "not run: needs x86-64"
}

count() {
	timeout 60 pmucount "$@"
}

hand() {
	x86
	cc -O1 -o hand "$src/hand.c" "$src/hand.S"
}

hard() {
	need c++
	skip_sanitized
	c++ -O1 -fpatchable-function-entry=5 "$@" -o hard "$src/hard.cc" \
		-ldl -pthread
}

# hard_same WORD: the same output and status under pmucount; records in o.pmu
hard_same() {
	local want=0 got=0
	timeout 20 ./hard "$1" >want 2>&1 || want=$?
	rm -f o.pmu
	count -b sled -o o.pmu -- ./hard "$1" >got 2>&1 || got=$?
	[[ $got == "$want" ]] || {
		echo "$1: status $got, not $want" >&2
		cat got >&2
		return 1
	}
	same_text want got
}

# usable BACKEND [PROGRAM]: skips unless it can be had here.
usable() {
	local line
	line=$(pmucount list "${@:2}" | grep $'^backend\tname='"$1"$'\t')
	[[ $line == *check=usable* ]] || skip "not run: ${line##*note=}"
}

# The two builds of the published story.
stories() {
	x86
	cc -O1 -o before "$src/update.c"
	cc -O1 -DATOMIC -o after "$src/update.c"
}

# body PROGRAM FUNC: instructions up to the return, if no branch is taken
body() {
	objdump -d --no-show-raw-insn "$1" | awk -v f="<$2>:" '
		$2 == f { on = 1; next }
		on { n++ }
		on && $2 ~ /^ret/ { print n; exit }'
}
