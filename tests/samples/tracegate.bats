# bats file_tags=cmd:tracegate
#
# tracegate on real traces with known answers. They are no part of the
# repository: without them these tests are not run.

setup() {
	load ../common
	cd "$BATS_TEST_TMPDIR"
	traces=$data/traces
}

# field KEY: of the last verdict on standard input.
field() {
	awk -F '\t' -v k="$1" '/^verdict/ { v = ""
		for (i = 2; i <= NF; i++)
			if (index($i, k "=") == 1) v = substr($i, length(k) + 2) }
		END { print v }'
}

@test "tracegate finds the slow step of a torch training run" {
	need_data traces/torch_cpu_train.json.gz
	run -1 tracegate -v -o small.json "$traces/torch_cpu_train.json.gz"
	opened=$(grep -P 'name=ProfilerStep#\t' <<<"$output" | grep -c ^open)
	# Steps 1 to 4, 11 and 13; only 13 is beyond ten times its threshold.
	[ "$opened" = 6 ]
	far=$(grep -P '^open.*name=ProfilerStep#\t' <<<"$output" |
		sed 's/.*ratio=//' | awk '$1 > 10' | wc -l)
	[ "$far" = 1 ]
	grep -P '^open\tat=0.036704\tdur=0.051259\t' <<<"$output"
	python3 "$root/tests/perfetto_rules.py" small.json
}

@test "tracegate reads every stamp of the samples exactly" {
	need python3
	need_data traces/hta_ns_resolution.json.gz
	for f in hta_ns_resolution hta_nccl_data hta_cpu_only; do
		run -3 tracegate --all --to=ev "$traces/$f.json.gz" \
			--output=out.ev || [ "$status" -le 1 ]
		python3 - "$traces/$f.json.gz" out.ev <<-'END'
			import gzip, json, sys
			from decimal import Decimal
			trace = json.loads(gzip.open(sys.argv[1]).read().decode("utf-8", "replace"),
			    parse_float=Decimal)
			base = trace.get("baseTimeNanoseconds", 0)
			want = [(base + int(Decimal(e.get("ts", 0)) * 1000),
			    int(Decimal(e["dur"]) * 1000) if "dur" in e else None)
			    for e in trace["traceEvents"] if e]
			def ns(text):
			    a, _, b = text.partition(".")
			    return int(a) * 10**9 + int(b.ljust(9, "0") or 0)
			got = []
			for line in open(sys.argv[2], encoding="utf-8", errors="replace"):
			    if line.startswith("ev\t"):
			        f = dict(x.split("=", 1) for x in line.rstrip("\n").split("\t")[1:])
			        got.append((ns(f["ts"]), ns(f["dur"]) if "dur" in f else None))
			assert len(want) == len(got) > 20, (len(want), len(got))
			assert want == got
		END
	done
}

@test "tracegate says unknown where the producer lost records" {
	need_data traces/hta_ns_resolution.json.gz
	run -3 tracegate -q "$traces/hta_ns_resolution.json.gz"
	[ "$(field reason <<<"$output")" = drops ]
	[ "$(field lost <<<"$output")" = 3829 ]
	# Told to tolerate them, it judges.
	run -0 tracegate -q --allow-bad=4000 "$traces/hta_ns_resolution.json.gz"
}

@test "tracegate counts no broken nesting that only doubles see" {
	# 66 slices of this trace seem to outlive their parents when ts + dur is
	# added in double precision; in nanoseconds none does.
	need_data traces/hta_ns_resolution.json.gz
	run -3 tracegate -o t.json "$traces/hta_ns_resolution.json.gz"
	! grep -q class=nest <<<"$output"
	run tracegate -o t.json "$traces/hta_simple_add.json.gz"
	grep -P 'class=nest\tn=7\t' <<<"$output"
}

@test "tracegate path names the rank that each collective waited for" {
	need_data traces/dlrm8
	run -1 tracegate path "$traces"/dlrm8/worker*.gz
	ranks=$(sed -n 's/^finding\tentity=rank:\([0-9]*\).*/\1/p' <<<"$output" |
		tr -d '\n')
	[ "$ranks" = 77777554 ]
	grep -P '^finding\tentity=rank:7\t.*occ=0\tlate=0.007624$' <<<"$output"
	[ "$(field entity <<<"$output")" = rank:7 ]
	# No clock is off by more than the 7 us that the ends differ by.
	sed -n 's/.*uncertainty=\([0-9.]*\).*/\1/p' <<<"$output" |
		awk '$1 > 0.000004 { exit 1 }'
}

@test "tracegate path does not explain what no record explains" {
	need_data traces/dlrm8
	run -3 tracegate path "$traces/dlrm8/worker0.pt.trace.json.gz"
	[ "$(field reason <<<"$output")" = no-sync-events ]
	awk -v c="$(field coverage <<<"$output")" 'BEGIN { exit !(c < 0.4) }'
}

@test "tracegate path goes from a futex wait to the holder of the lock" {
	need_data traces/strace_f_ttt_T.txt
	run -0 tracegate path --inside=futex "$traces/strace_f_ttt_T.txt"
	# Thread 30141 slept 60 ms with the lock held.
	blame=$(grep -m 1 ^blame <<<"$output")
	[[ $blame == *thread=30141*name=clock_nanosleep* ]]
}

@test "tracegate reads each kind of trace" {
	need_data traces
	while read -r file format; do
		run tracegate -o t.json "$traces/$file"
		[ "$status" -ne 2 ] || [[ $output == *"nothing to test"* ]]
		grep -qP "^head.*source=$format\t" <<<"$output"
		python3 "$root/tests/perfetto_rules.py" t.json
	done <<-END
		strace_f_ttt_T.txt strace
		strace_f_tt_T_y.txt strace
		strace_f_r_T_sync.txt strace
		perf_trace_sleep.txt perf-trace
		speedscope_simple-with-pid.linux-perf.txt perf-script
		catapult_android_systrace.txt ftrace
		crisp/5.json jaeger
		catapult_simple_trace.json.gz chrome
	END
}

@test "tracegate gives a result or an error for every odd trace" {
	need_data traces/speedscope
	for f in "$traces"/speedscope/*.json "$traces"/catapult*.json; do
		for how in --file --live; do
			run timeout 20 tracegate $how -o t.json "$f"
			[ "$status" -le 3 ]
			[[ $output == *$'\t'result=* || $output == *"tracegate: "* ]]
		done
	done
}
