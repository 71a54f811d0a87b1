#!/bin/bash
# Two checkouts in different places, built at different times, give the same
# bytes. Prints  N passed, N failed, N skipped
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for place in "$work/one" "$work/a longer/two"; do
	mkdir -p "$place"
	git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$place"
	# The name of the place has blanks on purpose, once.
	(cd "$place" && make -s -j "$(getconf _NPROCESSORS_ONLN)" all)
done

passed=0 failed=0
cd "$work/one/build"
while IFS= read -r f; do
	if cmp "$f" "$work/a longer/two/build/$f"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
	# No path of the machine that built it.
	if grep -qF "$work" "$f"; then
		echo "check-repro: $f names the place where it was built"
		failed=$((failed + 1))
	fi
done < <(find . -type f ! -name '*.d' ! -name '*.o')
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
