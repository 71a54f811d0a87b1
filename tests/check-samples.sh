#!/bin/bash
# Real files with known answers, and numpy beside the readers: says "not run"
# where the samples or numpy are not.
#
# usage: tests/check-samples.sh        BUILD=build
set -u
cd "$(dirname "$0")/.." || exit 2
exec tests/tools/check tests/samples/*.bats
