#!/bin/bash
# pmucount on real programs: minutes of stepping and of patched code.
#
# usage: tests/check-pmucount.sh        BUILD=build
set -u
cd "$(dirname "$0")/.." || exit 2
exec tests/tools/check tests/pmu/pmucount.bats
