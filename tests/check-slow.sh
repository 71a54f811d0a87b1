#!/bin/bash
# The tests of the base suite that take seconds each: they wait, or cut a file
# at every length.
#
# usage: tests/check-slow.sh        BUILD=build
set -u
cd "$(dirname "$0")/.." || exit 2
export TAGS=slow
mapfile -t files < <(grep -l '^# bats test_tags=slow' tests/*.bats)
exec tests/tools/check "${files[@]}"
