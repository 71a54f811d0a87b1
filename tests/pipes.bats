# Commands in pipelines with each other and with the tools of the system.

setup() {
	load common
	for c in fpdump fpdiff; do
		[[ -x $build/$c ]] || skip "not run: no $c yet"
	done
	cd "$BATS_TEST_TMPDIR"
	demo=$root/tests/demo/data
}

# A stream of files of this directory.
files() {
	mkdir -p d
	for i in 1 2 3 4 5 6 7 8 9; do
		seq $((i * 100)) >d/file$i
	done
	fpdump --now=0 d
}

@test "fpdump's stream survives sort, cat and a merge" {
	files >a.fp
	sort a.fp >sorted
	run -0 --separate-stderr fpdiff -q sorted a.fp
	[[ $output == $'verdict\tresult=same'* && $output != *scope=* ]]
	cat a.fp sorted >twice
	run -0 --separate-stderr fpdump -q twice
	[[ $stderr == "" ]]
	gzip -c a.fp >a.gz
	run -0 fpdiff -q a.gz a.fp
	run -0 bash -c 'gzip -dc a.gz | fpdiff -q - a.fp'
}

@test "fpdump's stream through grep or head shows differences, not their absence" {
	files >a.fp
	grep file1 a.fp >part
	run -3 --separate-stderr fpdiff -q part part
	[[ $output == *$'result=unknown\tstatus=3\treason=filtered'* ]]
	head -n 5 a.fp >part
	run -3 --separate-stderr fpdiff -q part part
	[[ $output == *$'result=unknown\tstatus=3\treason=filtered'* ]]
	run -0 fpdiff -q --partial part part
	[[ $output == *$'\tscope=partial'* ]]
	sed -i 's/^2/3/' d/file2
	fpdump --now=0 d >b.fp
	head -n 5 b.fp >part2
	run -1 fpdiff -q part part2
}

@test "fpdump's stream with a changed line is damaged" {
	files >a.fp
	sed '/file3/s/xxh3-128:[0-9a-f]*/xxh3-128:00000000000000000000000000000000/' a.fp >b.fp
	run -1 fpdiff -q a.fp b.fp
	run -3 --separate-stderr fpdiff -q b.fp b.fp
	[[ $output == *$'\treason=damaged'* ]]
}

@test "fpdump | fpdiff reads a stream while another command writes it" {
	files >a.fp
	run -0 bash -c 'fpdump --now=0 d | fpdiff -q a.fp -'
	[[ $output == $'verdict\tresult=same'* ]]
	sed -i 's/^2/3/' d/file5
	run -1 bash -c 'set -o pipefail; fpdump d | fpdiff a.fp -'
	run -0 bash -c 'fpdump --now=0 d | fpdiff a.fp - | grep ^diff'
	[[ $output == *file5* ]]
}

@test "fpdiff's records go through cut, awk, join and Miller" {
	need mlr
	files >a.fp
	sed -i 's/^2/3/' d/file5
	fpdump --now=0 d >b.fp
	fpdiff a.fp b.fp >diffs || [[ $? == 1 ]]
	[[ $(grep -c ^diff diffs) == 1 ]]
	run -0 mlr --idkvp --ifs tab --pass-comments --ojson \
		filter 'is_present($elements) || is_present($class)' diffs
	[[ $output == *file5* ]]
	run -0 bash -c "awk -F '\t' '\$1 == \"verdict\"' diffs | cut -f 2"
	[[ $output == result=different ]]
}

@test "fpdiff finds the flipped bit of the shipped runs from compressed streams" {
	[[ -e $demo/good.fp.gz ]] || skip "not run: no tests/demo/data"
	run -1 --separate-stderr fpdiff -q "$demo/good.fp.gz" "$demo/bad.fp.gz"
	[[ $output == *$'\tstep=37\t'*$'\tname=blocks.1.fc2.weight\t'* ]]
	run -1 bash -c "zcat '$demo/bad.fp.gz' | fpdiff -q '$demo/good.fp.gz' -"
	[[ $output == *$'\tstep=37\t'* ]]
}

@test "fpdump's names with newlines, escapes and quotes stay one line each" {
	mkdir odd
	echo 1 >"odd/$(printf 'new\nline')"
	echo 2 >"odd/$(printf 'esc\033[31m')"
	echo 3 >"odd/quote\"comma,tab$(printf '\t')"
	echo 4 >"odd/back\\slash"
	printf 5 >"odd/$(printf 'bad\377utf8')"
	fpdump odd >odd.fp
	[[ $(grep -c ^fp odd.fp) == 5 ]]
	! grep -q "$(printf '\033')" odd.fp
	run -0 fpdiff -q odd.fp odd
	fpdump -F json odd >json
	! command -v jq >/dev/null || [[ $(jq -s length json) == $(wc -l <odd.fp) ]]
}
