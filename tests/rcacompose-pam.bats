# rcacompose beside the real PAM library: where the two differ, and how often.

setup() {
	load common
}

# bats test_tags=slow
@test "rcacompose convicts nobody whom PAM would not, but for late doubts" {
	need cc
	echo '#include <security/pam_appl.h>' >"$BATS_TEST_TMPDIR/try.c"
	cc -E "$BATS_TEST_TMPDIR/try.c" >/dev/null 2>&1 ||
		skip "not run: no security/pam_appl.h"
	ls /lib/*/security/pam_debug.so /usr/lib/security/pam_debug.so \
		/lib/security/pam_debug.so 2>/dev/null | grep -q . ||
		skip "not run: no pam_debug.so"
	cd "$root"
	cc -O1 -std=c11 -D_XOPEN_SOURCE=700 -iquote lib \
		-o "$BATS_TEST_TMPDIR/contrast" tests/pam/contrast.c \
		cmd/rcacompose/compose.c -lpam
	mkdir "$BATS_TEST_TMPDIR/pam"
	run -0 "$BATS_TEST_TMPDIR/contrast" "$BATS_TEST_TMPDIR/pam"
	# U as ignore: PAM convicts 916 of 1884, the rules 376 of these.
	[[ ${lines[0]} == "ignore stacks 1884 pam 916 rules 376 only-rules 0 only-pam 540 "* ]]
	# U as authinfo_unavail: what only the rules convict is a sufficient F
	# that stands behind a required U.
	[[ ${lines[1]} == "authinfo_unavail stacks 1884 pam 612 rules 376 only-rules 25 only-pam 261 "* ]]
	for why in 'conflict 64' 'missing-requisite 188' 'missing-required 114' \
		'missing-sufficient 58' 'unproven 71' 'no-sufficient-fired 20' \
		'no-binding-evidence 25'; do
		[[ ${lines[0]} == *" $why"* ]]
	done
	for why in 'conflict 60' 'missing-requisite 27' 'missing-sufficient 58' \
		'unproven 71' 'no-sufficient-fired 20' 'no-binding-evidence 25'; do
		[[ ${lines[1]} == *" $why"* ]]
	done
}
