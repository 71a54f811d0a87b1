# What lib/cli.c, opt.c and rec_out.c promise, through the smallest command
# there is: build/tools/manners. What each real command makes of it is in
# contract.bats.

setup() {
	load common
	PATH=$build/tools:$PATH
	cd "$BATS_TEST_TMPDIR"
	now=--now=2024-01-01T00:00:00Z
}

# No file but the ones named is left in the directory.
only() {
	[[ $(ls -A | xargs) == "$*" ]] || { ls -A; false; }
}

# ---- options

@test "an option's long name matches exactly, prefixes are refused" {
	run -2 --separate-stderr manners --quie
	[[ $output == "" && ${#stderr_lines[@]} == 2 ]]
	[[ ${stderr_lines[0]} == "manners: unknown option --quie" ]]
	[[ ${stderr_lines[1]} == "usage: see manners --help" ]]
	run -2 manners --quiets
	run -2 manners --=
	run -0 manners --quiet
}

@test "an option takes its argument in every usual spelling" {
	for words in '-l k=v' '-lk=v' '--label k=v' '--label=k=v' '-ql k=v'; do
		run -0 --separate-stderr manners $words
		[[ $stderr == "manners: label k=v" ]]
	done
}

# bats test_tags=slow
@test "an option without its argument, or with one too many, is a usage error" {
	for words in -l --label -ql '--quiet=yes' --number '-x' '--' '-'; do
		[[ $words == - || $words == -- ]] && continue
		run -2 --separate-stderr manners $words
		[[ $output == "" && ${#stderr_lines[@]} == 2 ]]
	done
	run -2 --separate-stderr manners --number
	[[ ${stderr_lines[0]} == "manners: option --number needs an argument: N" ]]
	run -2 --separate-stderr manners --quiet=yes
	[[ ${stderr_lines[0]} == "manners: option --quiet takes no argument" ]]
}

@test "an option with an optional argument takes it after = only" {
	run -0 manners --progress
	run -0 manners --progress=always
	run -2 --separate-stderr manners --progress=never
	[[ ${stderr_lines[0]} == *'expected always, found "never"' ]]
	run -2 --separate-stderr manners --progress always
	[[ $stderr == "manners: always: cannot open: No such file or directory" ]]
}

# bats test_tags=slow
@test "a number out of range is named with its option, value and range" {
	run -2 --separate-stderr manners --number=11
	[[ ${stderr_lines[0]} == 'manners: option --number: expected an integer 1 to 10, found "11"' ]]
	for n in 0 -1 +1 1x '' ' 1' 1.0 99999999999999999999; do
		run -2 manners --number="$n"
	done
	run -0 manners --size=1M
	run -0 manners --size=1024K
	run -2 manners --size=1025K
	run -2 manners --size=-1
	run -0 manners --wait=1.5h
	run -2 manners --wait=15
	run -2 manners --now=2024-01-01
	run -2 manners --color=red
	run -2 manners --allow-bad=x
}

@test "options and operands mix, -- ends options, a command stops at its first operand" {
	printf 'note\tk=1\n' >a
	printf 'note\tk=2\n' >./-q
	run -0 --separate-stderr manners $now a -E -- -q
	[[ ${lines[1]} == $'note\tk=1' && ${lines[2]} == $'note\tk=2' ]]
	run -0 --separate-stderr manners --run $now ls -l --all
	[[ ${stderr_lines[0]} == "manners: command word ls" ]]
	[[ ${stderr_lines[1]} == "manners: command word -l" ]]
	[[ ${#stderr_lines[@]} == 3 ]]
	run -0 --separate-stderr manners --run $now -- --all
	[[ $stderr == "manners: command word --all" ]]
}

@test "an option combination that means nothing is a usage error" {
	run -2 manners -q -v
	run -2 manners --columns=a
	run -2 manners --type=fp
	run -2 manners -F json --columns=a
	run -2 manners -F tsv --type=nosuch
	run -2 manners -F tsv --columns=a,,b
	run -0 manners -F tsv --columns=name
}

# ---- messages

@test "a message escapes what could harm a terminal and keeps the rest" {
	run -2 --separate-stderr manners --die=$'a\e[31m\nb\\n gr\303\274n \377'
	[[ $stderr == 'manners: a\x1b[31m\nb\n grün \xff' ]]
	run -2 --separate-stderr manners $'--\e[0m'
	[[ ${stderr_lines[0]} == 'manners: unknown option --\x1b[0m' ]]
	run -2 --separate-stderr manners -$'\377'
	[[ ${stderr_lines[0]} == 'manners: unknown option -\xff' ]]
	run -2 --separate-stderr manners $'no\nsuch'
	[[ $stderr == 'manners: no\nsuch: cannot open: No such file or directory' ]]
}

@test "a bad line is reported as file:line: reason, counted, and left out" {
	printf 'note\tk=1\nnote\tk\nnote\tk=3\n' >in
	run -3 --separate-stderr manners $now in
	[[ $stderr == 'manners: in:2: expected key=value, found "k"' ]]
	[[ ${lines[1]} == $'note\tk=1' && ${lines[2]} == $'note\tk=3' ]]
	[[ ${lines[3]} == $'verdict\tresult=unknown\tstatus=3\treason=damaged\t'*$'\tbad=1' ]]
	[[ ${lines[4]} == *$'\tresult=unknown\tstatus=3' ]]
	run -0 manners --allow-bad=1 in
	run -3 manners --allow-bad=0 in
	run -2 --separate-stderr manners --strict in
	[[ $output != *verdict* && ${lines[-1]} == *$'\tstatus=2'* ]]
}

# ---- output

@test "an output file appears only when it is complete" {
	run -2 manners -o out --die=boom
	only ""
	manners $now >expected
	manners $now -o out
	cmp expected out
	echo keep >out
	run -2 manners -o out --die=boom
	[[ $(cat out) == keep ]]
	only expected out
}

@test "an output file in the making is removed when a signal ends the command" {
	need kill
	for sig in HUP INT PIPE TERM; do
		n=$(kill -l $sig)
		run -$((128 + n)) manners -o out --raise="$n"
		only ""
	done
}

@test "an ignored signal stays ignored while there is an output file" {
	(
		trap '' HUP
		manners $now -o out --raise="$(kill -l HUP)"
	)
	only out
}

@test "an output file keeps its mode, a new one gets the usual mode" {
	umask 027
	manners -o new
	[[ $(stat -c %a new) == 640 ]]
	chmod 604 new
	manners -o new
	[[ $(stat -c %a new) == 604 ]]
}

@test "an output file behind a symbolic link is replaced, the link stays" {
	mkdir d
	echo old >d/target
	ln -s d/target link
	manners $now -o link
	[[ -L link && $(head -c 4 d/target) == head ]]
	ln -s nowhere dangling
	run -2 manners -o dangling
	[[ -L dangling && ! -e nowhere ]]
	[[ $(ls d) == target ]]
}

@test "an output that is no regular file is written directly" {
	manners $now >expected
	mkfifo fifo
	cat fifo >got &
	manners $now -o fifo
	wait $!
	cmp expected got
	[[ -p fifo ]]
	manners $now -o /dev/stdout >got
	cmp expected got
	[[ -e /dev/stdout ]]
	run -2 --separate-stderr manners -o .
	[[ $stderr == *'cannot open for writing: Is a directory' ]]
	run -2 --separate-stderr manners -o no/such
	[[ $stderr == 'manners: no/such: cannot open for writing: '* ]]
}

@test "an output file that is read-only is refused" {
	[[ $(id -u) != 0 ]] || skip "not run: root may write anything"
	echo old >out
	chmod 444 out
	run -2 manners -o out
	[[ $(cat out) == old ]]
}

@test "a recorder appends" {
	manners $now -a -o out
	manners $now -a -o out
	[[ $(grep -c ^head out) == 2 && $(grep -c ^end out) == 2 ]]
	run -0 manners out
	run -2 manners -a -o out --die=boom
	[[ $(grep -c ^head out) == 2 ]]
}

@test "a full disk is an error" {
	[[ -c /dev/full ]] || skip "not run: no /dev/full"
	for words in '' '-F json' '-F table' '-F csv' '-z' '-q'; do
		run -2 --separate-stderr bash -c "manners $words >/dev/full"
		[[ $stderr == 'manners: standard output: cannot write: No space left on device' ]]
	done
	run -2 --separate-stderr manners -o /dev/full
	[[ $stderr == 'manners: /dev/full: cannot write: No space left on device' ]]
	for words in --help --version; do
		run -2 --separate-stderr bash -c "manners $words >/dev/full"
		[[ $stderr == 'manners: standard output: cannot write: No space left on device' ]]
	done
}

@test "a closed standard output is an error, and no file takes its place" {
	printf 'note\tk=1\n' >in
	cp in before
	run -2 --separate-stderr bash -c 'manners in >&-'
	[[ $stderr == 'manners: standard output: '* ]]
	cmp in before
	run -0 bash -c 'manners in <&-'
	run -0 bash -c 'manners in 2>&-'
}

@test "-z is the same stream, compressed" {
	manners $now >plain
	manners $now -z >zipped
	gzip -dc zipped | cmp plain -
	manners $now -z -o zipped2
	cmp zipped zipped2
	run -0 manners $now zipped
	cat zipped zipped >two
	run -0 manners two
	head -c 100 zipped >torn
	run -3 manners torn
}

# ---- forms

@test "-F json is read back by jq, byte for byte" {
	need jq
	manners $now -F json >out
	jq -e . out >/dev/null
	[[ $(jq -r .record out | tr '\n' ' ') == "head scalar scalar scalar scalar scalar verdict end " ]]
	[[ $(jq -r 'select(.name == "comma, \"quote\"").value' out) == 'a\tb\nc\\d' ]]
	[[ $(jq -r 'select(.record == "end").records | type' out) == number ]]
	[[ $(jq -r 'select(.record == "scalar").value | type' out | uniq) == string ]]
}

@test "-F csv and tsv are read back by Python's csv" {
	need python3
	manners $now -F csv >out.csv
	manners $now -F tsv >out.tsv
	run -0 python3 - <<'END'
import csv
names = ["plain", 'comma, "quote"', r"escape \x1b[31m", "gr\u00fc\u00df",
	 r"not utf-8 \xff"]
with open("out.csv", encoding="utf-8", newline="") as f:
    rows = list(csv.DictReader(f, strict=True))
assert [r["name"] for r in rows] == names, rows
assert rows[1]["value"] == r"a\tb\nc\\d"
assert [r["value"] for r in rows][3:] == ["", " blank "]
assert len({len(r) for r in rows}) == 1 and None not in rows[0]
with open("out.tsv", encoding="utf-8", newline="") as f:
    lines = [l.rstrip("\n").split("\t") for l in f]
assert lines[0] == list(rows[0])
assert [l[0] for l in lines[1:]] == names
assert [l[2] for l in lines[1:]] == [r["value"] for r in rows]
END
}

@test "-F lines, csv and tsv are read by Miller" {
	need mlr
	manners $now >lines
	run -0 mlr --idkvp --ifs tab --pass-comments --ojson filter 'is_present($vtype)' then cut -f name lines
	[[ $(grep -c '"name"' <<<"$output") == 5 ]]
	manners $now -F csv >out.csv
	run -0 mlr --icsv --oxtab filter '$name == "plain"' then cut -f value out.csv
	[[ $output == "value 1" ]]
	manners $now -F tsv >out.tsv
	run -0 mlr --itsv --oxtab filter '$name == "plain"' then cut -f value out.tsv
	[[ $output == "value 1" ]]
}

@test "-F table is for people: aligned, nothing at the ends of lines" {
	manners $now -F table >out
	cat >expected <<'END'
name             vtype  value
plain            text   1
comma, "quote"   text   a\tb\nc\\d
escape \x1b[31m  text   =1+1
grüß             text
not utf-8 \xff   text    blank
verdict: result=same  status=0
END
	same_text expected out
}

@test "-q prints the verdict only, in any form" {
	run -0 manners -q
	[[ $output == $'verdict\tresult=same\tstatus=0' ]]
	run -0 manners -q -F json
	[[ $output == '{"record":"verdict","result":"same","status":0}' ]]
	run -0 manners -q -F tsv --columns=result
	[[ $output == $'result\nsame' ]]
}

# ---- metrics

@test "--prom writes metrics atomically, and a place it cannot write hides nothing" {
	manners $now --prom=m.prom >/dev/null
	cat >expected <<'END'
# TYPE straightedge_status gauge
straightedge_status{tool="manners",job="test"} 0
# TYPE straightedge_result gauge
straightedge_result{tool="manners",job="test",result="same",reason=""} 1
# TYPE straightedge_run_timestamp_seconds gauge
straightedge_run_timestamp_seconds{tool="manners",job="test"} 1704067200
# TYPE straightedge_skipped_total gauge
straightedge_skipped_total{tool="manners",job="test"} 0
END
	same_text expected m.prom
	only expected m.prom
	run -0 --separate-stderr manners $now --prom=no/such.prom
	[[ $stderr == 'manners: no/such.prom: cannot open for writing: '* ]]
	[[ ${lines[-1]} == *status=0 ]]
}

@test "--prom is written when the command fails" {
	run -2 manners $now --prom=m.prom --die=boom
	grep -q '^straightedge_status{tool="manners",job="m"} 2$' m.prom
	grep -q 'result="none"' m.prom
	mkdir d
	run -2 manners $now --prom='d/a"b.prom' --die=boom
	grep -q '^straightedge_status{tool="manners",job="a\\"b"} 2$' 'd/a"b.prom'
	run -2 manners $now --prom=m2.prom no-such-file
	grep -q ' 2$' m2.prom
	run -2 manners $now --prom=m3.prom --no-such-option
	grep -q ' 2$' m3.prom
}

@test "SOURCE_DATE_EPOCH fixes the time, --now wins" {
	SOURCE_DATE_EPOCH=7 run -0 manners
	[[ ${lines[0]} == *time=7 ]]
	SOURCE_DATE_EPOCH=7 run -0 manners --now=8.5
	[[ ${lines[0]} == *time=8.5 ]]
	SOURCE_DATE_EPOCH=x run -2 manners
}

@test "--files0-from reads NUL-separated names and refuses empty ones" {
	printf 'a b\0c\nd\0last' >list
	run -0 manners $now --files0-from=list -F tsv --columns=name
	[[ $output == $'name\na b\nc\\nd\nlast' ]]
	run -0 bash -c 'manners --files0-from=- -F tsv --columns=name <list'
	[[ $output == $'name\na b\nc\\nd\nlast' ]]
	printf 'a\0\0b\0' >list
	run -2 --separate-stderr manners --files0-from=list
	[[ $stderr == *'list: empty name, entry 2' ]]
	run -2 manners --files0-from=nosuch
}
