#!/bin/bash
# pmucount on real programs: stepped, patched while they run, and probed.
#
# usage: tests/check-pmucount.sh        BUILD=build
set -u
cd "$(dirname "$0")/.." || exit 2
exec tests/tools/check tests/pmu/*.bats
