# bats file_tags=cmd:tracegate
#
# tracegate classify on traces of known causes (trace_causes.py), on near
# relatives that must not be taken for them, and on rules of all kinds.

setup() {
	load common
	cd "$BATS_TEST_TMPDIR"
}

# answers FILE: what the findings say, each once: cause:NAME or reason:CODE.
answers() {
	sed -nE 's/^finding\t.*\t(cause|reason)=([^\t]*).*/\1:\2/p' "$1" | sort -u
}

# make_trace CASE [SEED]: the files are in the array trace.
make_trace() {
	local line
	need python3
	line=$(python3 "$root/tests/trace_causes.py" . "${2:-1}" "$1")
	read -ra trace <<<"$line"
	trace=("${trace[@]:2}")
}

# judge_all SEED: every case against what is expected of it; says what differs.
judge_all() {
	local name want files got
	python3 "$root/tests/trace_causes.py" . "$1" >cases
	while read -r name want files; do
		# shellcheck disable=SC2086 # several names
		tracegate classify $files >out || :
		got=$(answers out | paste -sd ' ')
		case $want in
		none) [[ -z $got ]] ;;
		unknown) [[ -n $got && $got != *cause:* ]] ;;
		*) [[ $got == "$want" ]] ;;
		esac || echo "seed $1: $name: expected $want, found $got"
	done <cases
}

# bats test_tags=slow
@test "tracegate classify names each shipped cause, and not its relatives" {
	need python3
	run judge_all 1
	[ -z "$output" ]
	# Every cause of the shipped rules has a trace.
	sed -n 's/^cause \([a-z-]*\):.*/cause:\1/p' \
		"$root/cmd/tracegate/rules/causes" | sort -u >causes
	[ "$(wc -l <causes)" = 22 ]
	cut -d ' ' -f 2 cases | grep ^cause: | sort -u | diff -u causes -
}

# bats test_tags=slow
@test "tracegate classify does so whatever the seed of the traces" {
	need python3
	for seed in 2 3 4 5; do
		run judge_all $seed
		[ -z "$output" ]
	done
}

@test "tracegate classify finds the loader of a real training run" {
	need_data traces/torch_cpu_train.json.gz
	run -1 tracegate classify "$data/traces/torch_cpu_train.json.gz"
	[ "$(grep -c cause=dataloader <<<"$output")" = 2 ] # finding and verdict
	grep -P '^finding\t.*cause=dataloader\t.*name=ProfilerStep#13\t' \
		<<<"$output"
	grep -P '^rate\tname=unknown\tk=5\tn=6\t' <<<"$output"
}

# bats test_tags=slow
@test "tracegate classify answers unknown when events were lost" {
	make_trace dataloader
	run -1 tracegate classify -q "${trace[@]}"
	sed 's/}$/,"INFO": ["Record counts: Out-of-range = 3"]}/' \
		"${trace[0]}" >lost.json
	run -3 tracegate classify lost.json
	[ "$(answers - <<<"$output")" = reason:drops ]
	# As many as the user tolerates are no reason.
	run -1 tracegate classify -q --allow-bad=3 lost.json
	# A rule that asks for drops is trusted with them.
	printf '%s\n' 'names d dataloader' \
		'cause load: explains.d > 50% && drops < 10' >own
	run -1 tracegate classify -r own lost.json
	[ "$(answers - <<<"$output")" = cause:load ]
}

# bats test_tags=slow
@test "tracegate classify answers unknown when the end is missing" {
	make_trace dataloader
	sed 's/, {"ph": "i", "name": "Record Window End".*/]}/' \
		"${trace[0]}" >cut.json
	run -3 tracegate classify cut.json
	[ "$(answers - <<<"$output")" = reason:truncated ]
	run -1 tracegate classify --partial cut.json
	[ "$(answers - <<<"$output")" = cause:dataloader ]
}

# bats test_tags=slow
@test "tracegate classify answers unknown when the path explains too little" {
	make_trace gc-pause-silent
	printf 'cause pause: gap_before > 50ms\n' >own
	run -3 tracegate classify -r own "${trace[@]}"
	[ "$(answers - <<<"$output")" = reason:low-coverage ]
	run -1 tracegate classify --coverage=0 -r own "${trace[@]}"
	printf 'cause pause: gap_before > 50ms && coverage < 10%%\n' >own
	run -1 tracegate classify -r own "${trace[@]}"
	[ "$(answers - <<<"$output")" = cause:pause ]
}

# bats test_tags=slow
@test "tracegate classify takes the first rule, and unknown from a tie" {
	make_trace dataloader
	cat >own <<-'END'
		names d dataloader
		cause no: ratio < 2
		cause one: on_path.d > 50%
		cause two: explains.d > 50%
	END
	run -1 tracegate classify -r own "${trace[@]}"
	[ "$(answers - <<<"$output")" = cause:one ]
	grep -P '\tby=one:3\tevidence=on_path.d 8[0-9.]*%\t' <<<"$output"
	sed -i '2i tier' own
	run -3 tracegate classify -r own "${trace[@]}"
	[ "$(answers - <<<"$output")" = reason:tie ]
	# The same cause twice is none.
	sed -i 's/two/one/' own
	run -1 tracegate classify -r own "${trace[@]}"
}

# bats test_tags=slow
@test "tracegate classify says what a rule waits for, and lets none pass it" {
	make_trace dataloader
	cat >own <<-'END'
		names d dataloader
		names q num_requests_waiting
		cause queue: value.q > 10
		cause load: explains.d > 50%
	END
	run -3 tracegate classify -r own "${trace[@]}"
	[ "$(answers - <<<"$output")" = reason:missing ]
	grep -P '\tneed=value.q: the number, as a counter or an argument\t' \
		<<<"$output"
	# What is false anyhow waits for nothing.
	sed -i 's/value.q > 10/value.q > 10 \&\& ratio < 1/' own
	run -1 tracegate classify -r own "${trace[@]}"
}

# bats test_tags=slow
@test "tracegate classify refuses bad rules, and judges nothing" {
	make_trace dataloader
	printf 'names d dataloader\ncause a: explains.d > 5ms\n' >own
	run -2 --separate-stderr tracegate classify -r own "${trace[@]}"
	[ -z "$output" ]
	want='expected a share like 10% for explains, found "5ms"'
	[ "$stderr" = "tracegate classify: own:2: $want" ]
	run -2 tracegate classify -r none "${trace[@]}"
	run -2 tracegate classify -r /dev/null "${trace[@]}"
}

# bats test_tags=slow
@test "tracegate classify calls even steps normal, and few of them cold" {
	need python3
	python3 "$root/tests/trace_causes.py" . 1 dataloader >/dev/null
	python3 - <<-'END'
		import json
		d = json.load(open("dataloader-0.json"))
		cut = min(e["ts"] for e in d["traceEvents"]
		          if e["name"] == "ProfilerStep#20")
		for name, end in ("even.json", cut), ("few.json", cut / 6):
		    ev = [e for e in d["traceEvents"] if e["name"] ==
		          "Record Window End" or e["ts"] + e.get("dur", 0) < end]
		    json.dump(dict(d, traceEvents=ev), open(name, "w"))
	END
	run -0 tracegate classify -q even.json
	[[ $output == *result=normal* ]]
	run -3 tracegate classify -q few.json
	[[ $output == *reason=cold* ]]
	# A limit needs no others to compare with.
	run -3 tracegate classify --slo=1us few.json
	[[ $(answers - <<<"$output") == reason:* ]]
	echo '[{"ph":"X","name":"a","ts":1,"dur":5}]' >none.json
	run -2 tracegate classify none.json
	[[ $output == *"no steps in the input"* ]]
}

# bats test_tags=slow
@test "tracegate classify compares with the baseline of an earlier run" {
	make_trace none
	run -0 tracegate baseline -o base "${trace[0]}"
	# All steps four times as long: nothing is unusual within the trace.
	python3 - "${trace[0]}" <<-'END'
		import json, sys
		d = json.load(open(sys.argv[1]))
		for e in d["traceEvents"]:
		    e["ts"] *= 4
		    if "dur" in e: e["dur"] *= 4
		json.dump(d, open("slow.json", "w"))
	END
	run -0 tracegate classify -q slow.json
	run -3 tracegate classify --baseline=base slow.json
	[ "$(grep -c ^finding <<<"$output")" = 70 ]
	# There is no normal step to compare with.
	[ "$(answers - <<<"$output")" = reason:missing ]
}

# bats test_tags=slow
@test "tracegate classify -E gives evidence about the rank" {
	make_trace straggler
	run -1 tracegate classify -E "${trace[@]}"
	grep ^evidence <<<"$output" | cut -f 3- | sort | uniq -c >got
	printf '      3 %s\t%s\t%s\t%s\n' entity=rank:2 agent=tracegate \
		status=faulty reason=straggler | diff - got
	grep -P '^verdict\t.*entity=rank:2\tcause=straggler\t' <<<"$output"
}

# serve OPTION... SEED STEPS: a serving loop, judged; the score is in $output.
serve() {
	"$build/tools/serve" "$@" truth >serve.ev
	tracegate classify serve.ev >found || :
	python3 "$root/tests/serve_score.py" truth found
}

# of NAME KEY: of a rate line in $output.
of() {
	sed -nE "s/^rate\tname=$1\t.*\t?$2=([^\t]*).*/\1/p" <<<"$output" |
		head -n 1
}

# bats test_tags=slow
@test "tracegate classify names the stalls of a serving loop, and none wrong" {
	need python3
	run -0 serve 7 3000
	[ "$(of wrong k)" = 0 ]
	# More than 100 stalls of 11 kinds; unknown counts as missed.
	[ "$(of right n)" -gt 100 ]
	awk -v low="$(of right low)" 'BEGIN { exit !(low > 0.9) }'
	[ "$(cut -d ' ' -f 2 truth | sort -u | wc -l)" = 11 ]
	# Read from a pipe it says the same.
	run -1 tracegate classify - < <(cat serve.ev)
	diff found - <<<"$output"
	# A score of rules that know nothing.
	printf 'cause other: ratio > 1 && coverage >= 0%%\n' >own
	tracegate classify -r own serve.ev >found || :
	run -0 python3 "$root/tests/serve_score.py" truth found
	[ "$(of right k)" = 0 ]
	[ "$(of wrong k)" -gt 100 ]
}

# bats test_tags=slow
@test "tracegate classify names the stalls of a loop on a real clock" {
	need python3
	skip_sanitized
	run -0 serve -r 1 500
	# The machine's own stalls are not in the truth; its steps have no name.
	run -1 grep 'was called' <(grep -v 'no stall' <<<"$output")
	run -0 python3 "$root/tests/serve_score.py" truth found
	awk -v low="$(of right low)" 'BEGIN { exit !(low > 0.6) }'
}
