# bats file_tags=cmd:tracegate
#
# tracegate on real traces whose answers are known, and on live producers.

setup() {
	load common
	cd "$BATS_TEST_TMPDIR" || return
	traces=$data/traces
}

# field KEY: of the last verdict on standard input.
field() {
	awk -F '\t' -v k="$1" '/^verdict/ { v = ""
		for (i = 2; i <= NF; i++)
			if (index($i, k "=") == 1) v = substr($i, length(k) + 2) }
		END { print v }'
}

# count CLASS: of the records on standard input; 0 if there is none.
count() {
	awk -F '\t' -v c="class=$1" '/^count/ && $2 == c { n = substr($3, 3) }
		END { print n + 0 }'
}

@test "tracegate path names the rank that each collective waited for" {
	need_data traces/dlrm8
	run -1 tracegate path "$traces"/dlrm8/worker*.pt.trace.json.gz
	[ "$(field entity <<<"$output")" = rank:7 ]
	[ "$(grep ^finding <<<"$output" | cut -f 2 | paste -sd ' ')" = \
		"entity=rank:7 entity=rank:7 entity=rank:7 entity=rank:7 \
entity=rank:7 entity=rank:5 entity=rank:5 entity=rank:4" ]
	# The first one is late by what the sources say.
	grep -q $'^finding.*rank:7.*occ=0\tlate=0.007624$' <<<"$output"
}

# bats test_tags=slow
@test "tracegate finds the one stalled step of a training run" {
	need_data traces/torch_cpu_train.json.gz
	run -1 tracegate -v -o s.json "$traces/torch_cpu_train.json.gz"
	[ "$(field reason <<<"$output")" = far ]
	steps=$(grep $'^open.*name=ProfilerStep#\t' <<<"$output")
	# Steps 1 to 4 and 11 open too; only step 13 is beyond 10 thresholds.
	[ "$(wc -l <<<"$steps")" = 6 ]
	far=$(grep -P 'ratio=\d\d' <<<"$steps")
	[ "$(wc -l <<<"$far")" = 1 ]
	grep -q $'\tdur=0.051259\t' <<<"$far"
	python3 "$root/tests/perfetto_rules.py" s.json
}

# bats test_tags=slow
@test "tracegate reads stamps that a double confuses" {
	need_data traces/hta_ns_resolution.json.gz
	need python3
	run -3 tracegate --all -o s.json "$traces/hta_ns_resolution.json.gz"
	# In doubles 66 slices outlive the one around them; in fact none does.
	[ "$(count nest <<<"$output")" = 0 ]
	[ "$(count nest-unit <<<"$output")" = 0 ]
	[ "$(count lost <<<"$output")" = 3829 ]
	[ "$(field reason <<<"$output")" = drops ]
	[ "$(field events <<<"$output")" = 68692 ]
	run -1 tracegate -q --allow-bad=3829 --slo='ProfilerStep*=1ms' \
		"$traces/hta_ns_resolution.json.gz"
	tracegate --all --to=ev -o s.ev "$traces/hta_ns_resolution.json.gz" \
		>/dev/null || true
	# Digit for digit what a slow exact reader finds.
	zcat "$traces/hta_ns_resolution.json.gz" | python3 -c '
import json, sys
from decimal import Decimal
for e in json.loads(sys.stdin.buffer.read().decode("utf8", "replace"),
                    parse_float=Decimal, strict=False)["traceEvents"]:
    if e["ph"] == "X":
        print(int(e["ts"] * 1000), int(e["dur"] * 1000))' >exact
	awk -F '\t' '
		function ns(v, p) {
			if (split(v, p, ".") < 2) p[2] = ""
			v = p[1] substr(p[2] "000000000", 1, 9)
			sub(/^0+/, "", v)
			return v == "" ? 0 : v }
		/^ev/ && /\tdur=/ { print ns(substr($2, 4)), ns(substr($3, 5)) }
		' s.ev >ours
	[ "$(wc -l <exact)" -gt 30000 ]
	cmp exact ours
}

@test "tracegate sees who held the lock in a log of strace" {
	need_data traces/strace_f_ttt_T.txt
	run -1 tracegate -v -o s.json "$traces/strace_f_ttt_T.txt"
	grep -q $'^open.*dur=0.060125.*name=clock_nanosleep.*thread=30141' \
		<<<"$output"
	run -0 tracegate path --inside=futex "$traces/strace_f_ttt_T.txt"
	# 30 times a millisecond, and the 60 ms that two others waited for.
	grep -q $'^blame.*thread=30141\tname=clock_nanosleep\tdur=0.089893' \
		<<<"$output"
	run ! grep -q class=unknown <<<"$output"
}

# bats test_tags=slow
@test "tracegate tells what is wrong with every malformed trace" {
	need_data traces/speedscope
	need python3
	while read -r file class n; do
		run tracegate --all -o o.json "$traces/speedscope/$file.json"
		echo "$file: $status"
		[ "$status" = 3 ]
		[ "$(count "$class" <<<"$output")" = "$n" ]
		# Begins that never end stay; the rest is balanced.
		python3 "$root/tests/perfetto_rules.py" o.json >rules || {
			[ "$class" = open-slice ]
			grep -q "$n begins without end" rules
		}
	done <<-'END'
		bex-interaction bad 0
		end-non-top-of-stack open-slice 1
		hermes-multiple-frames bad 0
		matching-x bad 0
		mismatched-name mismatched-end 1
		multiprocess bad 0
		not-enough-end-events open-slice 2
		out-of-order-unbalanced-name mismatched-end 1
		simple bad 1
		simple-hermes bad 0
		simple-partial truncated 1
		simple-partial-trailing-comma truncated 1
		too-many-end-events orphan-end 2
		unbalanced-name mismatched-end 1
		x-events-matching-start bad 0
	END
	# No file of the folder was left out.
	files=("$traces"/speedscope/*)
	[ ${#files[@]} = 15 ]
}

# bats test_tags=slow
@test "tracegate gives a result or a clear error for every sample" {
	need_data traces/catapult_trivial_trace.json
	for file in "$traces"/catapult_* "$traces"/perfetto_* \
		"$traces"/crisp/*.json; do
		run --separate-stderr tracegate --all -o o.json "$file"
		echo "$file: $status"
		case $status in
		1 | 3) [ -s o.json ] ;;
		2) [[ $stderr == *"$file: "[a-z]* ]] ;;
		*) false ;;
		esac
		rm -f o.json
	done
	run -1 tracegate --all -o o.json \
		"$traces/catapult_main_thread_has_unclosed_slices.json"
	[ "$(count open-slice <<<"$output")" -gt 0 ]
}

# bats test_tags=slow
@test "tracegate finishes a trace ten times larger than its memory" {
	skip_sanitized
	awk 'BEGIN { print "["
		for (i = 0; i < 400000; i++) {
			t = (i * 7919) % 400000
			printf "{\"ph\":\"X\",\"name\":\"op\",\"ts\":%d,\"dur\":%d},\n",
				t * 10, t == 77777 ? 900000 : 3
		}
		printf "{\"ph\":\"i\",\"name\":\"e\",\"ts\":%d}]", t }' >t.json
	[ "$(stat -c %s t.json)" -gt 10485760 ]
	run -1 tracegate --memory=512M -o whole.json t.json
	mv "$BATS_TEST_TMPDIR/whole.json" a.json
	run -1 tracegate --memory=1M -o a2.json t.json
	cmp a.json a2.json
	cat t.json | run -1 tracegate --file --memory=1M -o a3.json -
	cmp a.json a3.json
}

# bats test_tags=slow
@test "tracegate ends well when its reader goes away" {
	awk 'BEGIN { print "["
		for (i = 0; i < 200000; i++) {
			printf "{\"ph\":\"X\",\"name\":\"step\",\"ts\":%d,", i * 10
			printf "\"dur\":5},\n" } }' >t.json
	# SIGPIPE, as for any filter; nothing hangs.
	run -0 timeout 20 bash -c 'set -o pipefail
		tracegate --all --live t.json 2>err | head -c 1000 >part
		[ "${PIPESTATUS[0]}" = 141 ]'
	[ "$(wc -c <part)" = 1000 ]
}

@test "tracegate knows a format by what comes first, however little" {
	need_data traces/strace_f_ttt_T.txt
	{
		head -c 20 "$traces/strace_f_ttt_T.txt"
		sleep 0.3
		tail -c +21 "$traces/strace_f_ttt_T.txt"
	} | {
		run -1 tracegate -q --live -
		[ "$(field reason <<<"$output")" = far ]
	}
}

# bats test_tags=slow
@test "tracegate watches strace through a pipe and names the holder of a lock" {
	need strace python3
	strace -o /dev/null true 2>/dev/null || skip "not run: no ptrace here"
	cat >locks.py <<-'END'
		import threading, time
		lock = threading.Lock()
		def work(holder):
		    for i in range(120):
		        with lock:
		            time.sleep(0.120 if holder and i == 80 else 0.0002)
		        time.sleep(0.0005)
		t = [threading.Thread(target=work, args=(k == 1,)) for k in range(3)]
		for one in t:
		    one.start()
		    if one is t[1]:
		        print(one.native_id, flush=True)
		for one in t:
		    one.join()
	END
	strace -f -ttt -T -o '|tee log.txt | tracegate -v --live \
		--slo=clock_nano*=100ms -o s.json >records' \
		/usr/bin/python3 -I -S locks.py >holder 2>err
	# The pipe's end may outlive strace.
	for _ in $(seq 100); do
		grep -q ^end records && break
		sleep 0.1
	done
	holder=$(cat holder)
	[ "$(field result <records)" = anomaly ]
	python3 "$root/tests/perfetto_rules.py" s.json
	grep -P "^open.*dur=0\.1[1-9].*name=clock_nanosleep.*thread=$holder" \
		records
	[ "$(grep -c "^open.*dur=0\.1[1-9].*name=futex.*kind=wait" records)" -ge 2 ]
	# The longest wait around that moment is one for the holder, who slept.
	at=$(grep "^open.*name=clock_nanosleep.*thread=$holder" records |
		grep -o 'at=[0-9.]*' | tail -n 1 | cut -c4-)
	awk -v at="$at" '$2 > at - 0.05 && $2 < at + 0.2' log.txt >part.txt
	run tracegate path --inside=futex part.txt
	# Who gets a lock without being woken leaves no trace: then unknown.
	grep -P "thread=$holder\tname=clock_nanosleep\tdur=0\.1" \
		<<<"$output" || [ "$(field reason <<<"$output")" = no-releaser ]
}

# bats test_tags=slow
@test "tracegate control has perf record the anomalous second and no other" {
	need perf python3
	mkfifo ctl ack
	sh -c 'while :; do :; done' &
	busy=$!
	perf record -q -o perf.data -D -1 -e cpu-clock -F 500 \
		-k CLOCK_MONOTONIC --control fifo:ctl,ack -p $busy 2>perf.err &
	perf=$!
	sleep 1
	if ! kill -0 $perf 2>/dev/null; then
		kill $busy
		skip "not run: perf cannot record here: $(head -n 1 perf.err)"
	fi
	cat >steps.py <<-'END'
		import time
		print("[", flush=True)
		begin, slow = time.monotonic(), False
		while time.monotonic() < begin + 6:
		    at = time.monotonic()
		    stall = not slow and at > begin + 2
		    slow = slow or stall
		    time.sleep(0.4 if stall else 0.005)
		    us = (time.monotonic() - at) * 1e6
		    print('{"ph":"X","name":"step","ts":%d,"dur":%d},'
		          % (at * 1e6, us), flush=True)
		print('{}]')
	END
	status=0
	python3 steps.py | timeout 30 tracegate control --perf=ctl,ack \
		--hold=1s --lateness=50ms - >records || status=$?
	kill -INT $perf
	wait $perf || true
	kill $busy
	[ "$status" = 1 ]
	[ "$(grep -c '^control.*result=on$' records)" = 1 ]
	# perf's own samples: about a second, from the stall on.
	perf script -i perf.data -F time 2>/dev/null | tr -d ': ' | sort -n >times
	at=$(grep -o 'at=[0-9.]*' records | head -n 1 | cut -c4-)
	awk -v at="$at" '
		NR == 1 { first = $1 }
		{ last = $1 }
		END { print NR, first - at, last - first
			exit !(NR > 100 && first > at && first < at + 1.5 &&
				last - first > 0.5 && last - first < 3) }' times
}

# bats test_tags=slow
@test "tracegate finds the step that was stalled in a PyTorch profile" {
	python=
	for p in python3 /usr/bin/python3; do
		$p -c 'import torch' 2>/dev/null && python=$p && break
	done
	[ -n "$python" ] || skip "not run: no torch"
	cat >train.py <<-'END'
		import time, torch
		from torch.profiler import profile, record_function, schedule
		from torch.profiler import ProfilerActivity
		torch.manual_seed(0)
		torch.set_num_threads(1)
		model = torch.nn.Linear(256, 256)
		opt = torch.optim.SGD(model.parameters(), lr=0.01)
		with profile(activities=[ProfilerActivity.CPU],
		             schedule=schedule(wait=1, warmup=1, active=40),
		             on_trace_ready=lambda p:
		             p.export_chrome_trace("t.json")) as prof:
		    for i in range(42):
		        with record_function("dataloader"):
		            if i == 31:
		                time.sleep(0.5)
		            x = torch.randn(64, 256)
		        loss = model(x).square().mean()
		        opt.zero_grad()
		        loss.backward()
		        opt.step()
		        prof.step()
	END
	$python train.py 2>/dev/null
	run -1 tracegate -v --audit=0 -o s.json t.json
	[ "$(field reason <<<"$output")" = far ]
	stall=$(grep -P '^open.*dur=0\.5.*name=dataloader' <<<"$output")
	[ "$(wc -l <<<"$stall")" = 1 ]
	# It is the 30th of the profiled steps, and its operators are kept.
	at=$(grep -o 'at=[0-9.]*' <<<"$stall" | cut -c4-)
	$python -c '
import json, sys
d = json.load(open("s.json"))
d = d["traceEvents"] if isinstance(d, dict) else d
steps = sorted(e["ts"] for e in d
               if e["name"].startswith("ProfilerStep") and e["ph"] == "X")
at = float(sys.argv[1]) * 1e6
nth = sum(1 for t in steps if t <= at + 1)
print(nth, len(steps))
sys.exit(nth != 30)' "$at"
}
