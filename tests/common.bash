# Loaded by every .bats file inside setup():  setup() { load common; }
#
# Gives $root (the repository), $build (where the binaries are, PATH begins
# with it), $data (samples that are not part of the repository; may be
# missing), and the helpers below. Write to $BATS_TEST_TMPDIR only.

bats_require_minimum_version 1.5.0

root=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)
build=${BUILD:-build}
[[ $build == /* ]] || build=$root/$build
data=$root/../shared/data
PATH=$build:$PATH

# The same bytes on every machine; what a user has set must not matter.
unset NO_COLOR COLUMNS SOURCE_DATE_EPOCH STRAIGHTEDGE_SIG
export LC_ALL=C TERM=dumb TZ=UTC

# need TOOL...: skips unless all of them are installed.
need() {
	local tool
	for tool; do
		command -v "$tool" >/dev/null || skip "not run: no $tool"
	done
}

# need_data PATH...: skips unless the samples are beside the repository.
need_data() {
	local path
	for path; do
		[[ -e $data/$path ]] || skip "not run: no ../shared/data/$path"
	done
}

# Sanitizers and coverage change speed, memory and symbols: tests of these have
# nothing to say.
skip_sanitized() {
	case ${build##*/} in
	asan | tsan | cov) skip "not run: a ${build##*/} build" ;;
	esac
}

# same_text EXPECTED ACTUAL: both are files; shows the difference.
same_text() {
	diff -u "$1" "$2"
}
