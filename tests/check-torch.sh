#!/bin/bash
# PyTorch as the judge: makes checkpoints with torch, reads them with fpdump,
# and compares name, dtype, shape, size and digest of every entry; then runs
# the tests of the Python module that need torch.
#
# usage: tests/check-torch.sh [BUILD]        says "not run" where torch is not
set -u
build=${1:-${BUILD:-build}}
dump=${DUMP:-$build/fpdump}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

skip() {
	echo "check-torch: not run: $1"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
}

python=
for p in "${PYTHON:-python3}" /usr/bin/python3; do
	if "$p" -c 'import torch, numpy' 2>/dev/null; then
		python=$p
		break
	fi
done
[[ -n $python ]] || skip 'no python3 with torch and numpy'
command -v xxhsum >/dev/null || skip 'no xxhsum'
[[ -x $dump ]] || skip "no $dump"

"$python" tests/data/make_torch.py "$dir" || exit 1

passed=0 failed=0
for path in "$dir"/*.pt "$dir"/*.dcp; do
	file=${path##*/}
	"$dump" "$path" 2>"$dir/err" | awk -F'\t' -v OFS='\t' '
		$1 != "fp" && $1 != "scalar" { next }
		{
			delete v
			for (i = 2; i <= NF; i++) {
				at = index($i, "=")
				v[substr($i, 1, at - 1)] = substr($i, at + 1)
			}
			sub(/^xxh3-128:/, "", v["hash"])
		}
		$1 == "fp" {
			print "fp", v["name"], v["dtype"], v["shape"],
			    v["bytes"], v["hash"]
		}
		$1 == "scalar" {
			print "scalar", v["name"], v["vtype"], v["value"]
		}' | LC_ALL=C sort >"$dir/got"
	# What has no name of its own has its file's.
	awk -F'\t' -v OFS='\t' -v f="$file" '
		$1 == f { if ($3 == "") $3 = f; print }' "$dir/manifest" |
		cut -f 2- | LC_ALL=C sort >"$dir/want"
	# Every line of the manifest; no tensor that is not in it.
	if ! LC_ALL=C comm -13 "$dir/got" "$dir/want" | grep -q . &&
		! LC_ALL=C comm -23 "$dir/got" "$dir/want" | grep -q '^fp'; then
		passed=$((passed + 1))
		continue
	fi
	failed=$((failed + 1))
	echo "not ok $file"
	cat "$dir/err"
	diff -u "$dir/want" "$dir/got" | grep '^[-+]' | head -n 20
done
echo "check-torch: $passed checkpoints as torch has them, $failed not"

# The Python module beside torch.
if BUILD=$build timeout 300 bats --tap tests/torch/module.bats >"$dir/tap"; then
	ok=0
else
	ok=1
	grep -v '^ok' "$dir/tap"
fi
passed=$((passed + $(grep -c '^ok [^#]*$' "$dir/tap")))
failed=$((failed + $(grep -c '^not ok' "$dir/tap")))
echo "$passed passed, $failed failed, 0 skipped"
[[ $ok == 0 && $failed -eq 0 && $passed -gt 0 ]]
