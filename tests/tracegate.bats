# bats file_tags=cmd:tracegate
#
# tracegate on real traces with known answers, on streams made here, and on
# everything that is wrong with traces. Runs BUILD (build).

setup() {
	load common
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

# steps N SLOW DUR: N steps of 1 ms, step SLOW takes DUR us; an array.
steps() {
	awk -v n="$1" -v slow="${2:--1}" -v dur="${3:-0}" 'BEGIN {
		print "["
		for (t = i = 0; i < n; i++) {
			d = i == slow ? dur : 1000 + i % 7
			printf "{\"ph\":\"X\",\"name\":\"ProfilerStep#%d\",", i
			printf "\"ts\":%d,\"dur\":%d,\"pid\":1,\"tid\":1},\n", t, d
			printf "{\"ph\":\"X\",\"name\":\"op\",\"cat\":\"cpu_op\","
			printf "\"ts\":%d,\"dur\":%d,\"pid\":1,\"tid\":1},\n", t, d / 2
			t += d + 10
		}
		printf "{\"ph\":\"i\",\"name\":\"end\",\"ts\":%d}]\n", t
	}'
}

# bats test_tags=slow
@test "tracegate opens at a stall and keeps what is around it" {
	steps 300 200 90000 >t.json
	run -1 tracegate --before=5ms --after=5ms -o small.json t.json
	[ "$(field reason <<<"$output")" = far ]
	[ "$(field windows <<<"$output")" = 1 ]
	# All steps are kept; of the others those within 5 ms, and the stall.
	[ "$(grep -c ProfilerStep small.json)" = 300 ]
	ops=$(grep -c '"name":"op"' small.json)
	[ "$ops" -ge 8 ]
	[ "$ops" -le 14 ]
	python3 "$root/tests/perfetto_rules.py" small.json
}

@test "tracegate judges a stream as it judges the file" {
	steps 300 200 90000 >t.json
	run -1 tracegate -q t.json
	run -1 tracegate -q - < <(cat t.json)
	[ "$(field reason <<<"$output")" = far ]
	steps 300 >t.json
	run -0 tracegate -q t.json
	run -0 tracegate -q - < <(cat t.json)
}

@test "tracegate is not blinded by slow steps at the start" {
	awk 'BEGIN { print "["
		for (t = i = 0; i < 2000; i++) {
			d = i < 10 ? 30000000 : 1000
			if (i == 1500) d = 200000
			printf "{\"ph\":\"X\",\"name\":\"step\",\"ts\":%d,\"dur\":%d},\n", t, d
			t += d
		}
		printf "{\"ph\":\"i\",\"name\":\"e\",\"ts\":%d}]", t }' >t.json
	for how in --file --live; do
		run -1 tracegate -v $how -o s.json t.json
		grep -P '^open\t.*dur=0.2\t' <<<"$output"
	done
}

@test "tracegate sees a stall in two of a thousand steps" {
	awk 'BEGIN { srand(3); print "["
		for (t = i = 0; i < 10000; i++) {
			d = 20000 + int(rand() * 2000)
			if (i % 500 == 250) d += 300000
			printf "{\"ph\":\"X\",\"name\":\"step\",\"ts\":%d,\"dur\":%d},\n", t, d
			t += d
		}
		printf "{\"ph\":\"i\",\"name\":\"e\",\"ts\":%d}]", t }' >t.json
	for how in --file --live; do
		run -1 tracegate -q $how t.json
	done
}

# random SEED: rand() for awk, the same everywhere.
random='function rnd() { x = (x * 16807) % 2147483647; return x / 2147483647 }
	function normal() {
		return sqrt(-2 * log(rnd())) * cos(6.283185307 * rnd()) }
	function slice(name, ts, dur, tid, args) {
		printf "{\"ph\":\"X\",\"name\":\"%s\",\"ts\":%d,", name, ts
		printf "\"dur\":%d,\"pid\":1,\"tid\":%d,", dur, tid
		printf "\"args\":{%s}},\n", args }
	BEGIN { x = 12345; print "[" }
	END { printf "{\"ph\":\"i\",\"name\":\"end\",\"ts\":%d}]\n", t }'

@test "tracegate does not call a heavy tail an anomaly" {
	awk "$random"' BEGIN { for (i = 0; i < 20000; i++) {
		d = 20000 * (1 - rnd()) ^ (-1 / 2.5)
		slice("step", t, d, 1); t += d } exit }' >t.json
	for how in --file --live; do
		run -0 tracegate -q $how t.json
		[ "$(field openings <<<"$output")" -gt 20 ]
	done
}

@test "tracegate --cost measures a slice by its tokens" {
	prefill=$random' BEGIN { for (i = 0; i < 6000; i++) {
		tokens = int(2 ^ (3 + 9 * rnd()))
		d = (2000 + 50 * tokens) * exp(0.2 * normal())
		if (i % 100 == 99 && i > 3000 && stall) {
			tokens = 16; d = 20000 }
		slice("forward", t, d, 1, "\"tokens\":" tokens)
		t += d + 100 } exit }'
	awk "$prefill" >good.json
	awk -v stall=1 "$prefill" >bad.json
	for how in --file --live; do
		run -0 tracegate -q $how --cost=tokens good.json
		run -1 tracegate -q $how --cost=tokens bad.json
		[ "$(field reason <<<"$output")" = many ]
	done
	# 20 ms are nothing odd for those who do not know the tokens.
	run -0 tracegate -q bad.json
	run -1 tracegate -v --cost=tokens -o s.json bad.json
	grep -q $'^open.*reason=cost' <<<"$output"
	# An argument that is not there changes nothing.
	run -0 tracegate -q --cost=batch good.json
}

@test "tracegate --fields finds the cost in a column" {
	awk 'BEGIN { print "ts,dur,name,tok"
		for (i = 0; i < 3000; i++) {
			tok = 1 + i % 40; d = 1000 + 100 * tok + i * 7 % 90
			if (i % 50 == 7) { tok = 2; d = 4500 }
			printf "%d,%d,step,%d\n", t, d, tok; t += d } }' >t.csv
	run -0 tracegate -q --floor=100us --fields=ts=ts,dur=dur,name=name t.csv
	run -1 tracegate -q --floor=100us \
		--fields=ts=ts,dur=dur,name=name,cost=tok t.csv
	[ "$(field reason <<<"$output")" = many ]
}

@test "tracegate says unknown when costs are too different to compare" {
	awk "$random"' BEGIN { for (i = 0; i < 200; i++) {
		slice("forward", t, 1000 + 50 * i, 1, "\"tokens\":" i * i * i)
		t += 20000 } exit }' >t.json
	run -3 tracegate -q --cost=tokens t.json
	[ "$(field reason <<<"$output")" = untested ]
}

@test "tracegate --peers finds the lane that the others wait for" {
	ranks=$random' BEGIN { for (i = 0; i < 300; i++) {
		most = 0
		for (k = 1; k <= 8; k++) {
			d = 20000 * exp(0.1 * normal())
			if (k == 5 && stall) d *= 3
			if (d > most) most = d
			slice("step", t + k, d, k) }
		t += most + 500 } exit }'
	awk "$ranks" >good.json
	awk -v stall=1 "$ranks" >bad.json
	for how in --file --live; do
		run -0 tracegate -q $how --peers=step good.json
		# It is slow from its first step on: no history sees it.
		run -0 tracegate -q $how bad.json
		run -1 tracegate -q $how --peers=step bad.json
		[ "$(field reason <<<"$output")" = many ]
		run -1 tracegate -v $how --peers=step -o s.json bad.json
		grep -q $'^open.*reason=peer.*thread=5' <<<"$output"
		run ! grep -P '^open.*reason=peer.*thread=(?!5\t)' <<<"$output"
	done
}

@test "tracegate --peers goes on when one of them ends" {
	awk 'BEGIN { print "["
		for (i = 0; i < 400; i++)
			for (k = 1; k <= 4; k++) {
				if (k == 4 && i > 100)
					continue
				d = k == 2 && i > 300 ? 9000 : 1000 + i * 7 % 5
				printf "{\"ph\":\"X\",\"name\":\"step\",\"ts\":%d,", i * 10000
				printf "\"dur\":%d,\"pid\":1,\"tid\":%d},\n", d, k }
		print "{}]" }' >t.json
	for how in --file --live; do
		run -1 tracegate -v $how --peers=step -o s.json t.json
		n=$(grep -c $'^open.*reason=peer.*thread=2' <<<"$output")
		[ "$n" -ge 90 ]
	done
}

@test "tracegate --steady sees that events come too often or too rarely" {
	requests=$random' BEGIN { while (t < 60e6) {
		rate = t > 30e6 && t < 32e6 ? odd : 100
		t -= log(rnd()) * 1e6 / rate
		slice("req", t, 50, 1) } exit }'
	for how in --file --live; do
		awk -v odd=100 "$requests" >t.json
		run -0 tracegate -q $how --steady=req t.json
		for odd in 400 10; do
			awk -v odd=$odd "$requests" >t.json
			run -0 tracegate -q $how t.json
			run -1 tracegate -q $how --steady=req=1s t.json
			[ "$(field reason <<<"$output")" = rate ]
		done
	done
	run -2 tracegate -q --steady=req=1ns t.json
}

@test "tracegate --fast opens on what takes far too little" {
	awk "$random"' BEGIN { for (i = 0; i < 2000; i++) {
		d = 20000 * exp(0.1 * normal())
		if (i % 40 == 30) d = 900
		slice("step", t, d, 1); t += 25000 } exit }' >t.json
	for how in --file --live; do
		run -0 tracegate -q $how t.json
		run -1 tracegate -v $how --fast -o s.json t.json
		[ "$(grep -c $'^open.*reason=fast' <<<"$output")" -ge 45 ]
	done
}

# bats test_tags=slow
@test "tracegate --split writes a whole trace for every window" {
	need python3
	steps 900 200 90000 >a.json
	# A second stall, names of processes, and a pair around it all.
	awk -v meta='{"ph":"M","name":"process_name","pid":1,"args":{}},' '
		NR == 2 { print meta }
		/ProfilerStep#700"/ { sub(/"dur":[0-9]*/, "\"dur\":95000") }
		1' a.json | sed '2i {"ph":"B","name":"run","ts":0,"pid":1,"tid":2},
		$i {"ph":"E","ts":1200000,"pid":1,"tid":2},' >t.json
	run -1 --separate-stderr tracegate --audit=0 --before=3ms --after=3ms \
		--split=d --progress=always t.json
	[ "$(grep -c ^window <<<"$output")" = 2 ]
	[ "$(grep -o 'file=[^[:space:]]*' <<<"$output" | paste -sd ' ')" = \
		"file=window-0001.json file=window-0002.json" ]
	for f in d/window-000[12].json; do
		python3 "$root/tests/perfetto_rules.py" $f
		[ "$(grep -c process_name $f)" = 1 ]
		[ "$(grep -c '"ph":"[BE]"' $f)" = 2 ]
		n=$(grep -c '"ph":"X"' $f)
		[ "$n" -ge 10 ]
		[ "$n" -le 220 ]
	done
	grep -q '#200"' d/window-0001.json
	run ! grep -q '#200"' d/window-0002.json
	# It does not mix two runs.
	run -2 --separate-stderr tracegate --split=d t.json
	[[ $stderr == *window-0001.json*"File exists"* ]]
	# The total is capped; what is there is still whole.
	run -1 tracegate --audit=0 --before=3ms --after=3ms --split=e \
		--max-bytes=600 t.json
	grep -q 'class=over-split' <<<"$output"
	cat e/* | wc -c | {
		read -r n
		[ "$n" -lt 1500 ]
	}
	python3 "$root/tests/perfetto_rules.py" e/window-0001.json
	# Compressed, and a stream.
	run -1 tracegate --live -z --before=3ms --after=3ms --split=f t.json
	zcat f/window-0001.json.gz >w.json
	python3 "$root/tests/perfetto_rules.py" w.json
	run -2 tracegate -q --split=g t.json
}

@test "tracegate --split says that the disk is full" {
	steps 300 200 90000 >t.json
	mkdir d
	ln -s /dev/full d/window-0001.json
	run -2 --separate-stderr tracegate --split=d t.json
	[[ $stderr == *window-0001.json* ]]
	run -2 tracegate --split=t.json t.json
	run -2 tracegate --split=no/such/dir t.json
}

# bats test_tags=slow
@test "tracegate windows hold exactly the events within them" {
	need python3
	skip_sanitized
	run -0 timeout 100 python3 "$root/tests/trace_property.py" \
		"$build/tracegate" 1 12
}

@test "tracegate counts events that come too late" {
	steps 300 >t.json
	# The first half of the file comes last.
	{ echo '['; tail -n +300 t.json | head -n 300; sed -n 2,299p t.json; } >m.json
	run -3 tracegate -q --live m.json
	[ "$(field reason <<<"$output")" = late ]
	[ "$(field lost <<<"$output")" -gt 200 ]
}

@test "tracegate tells a cut trace from a whole one" {
	steps 300 >t.json
	head -c 20000 t.json >cut.json
	run -3 tracegate -q cut.json
	[ "$(field reason <<<"$output")" = truncated ]
	run -0 tracegate -q --partial cut.json
	[ "$(field scope <<<"$output")" = partial ]
	# A cut does not hide a stall before it.
	steps 300 20 90000 | head -c 20000 >cut.json
	run -1 tracegate -q cut.json
	gzip -c t.json | head -c 2000 >cut.json.gz
	run -3 tracegate -q cut.json.gz
}

@test "tracegate output is valid when the input is not JSON" {
	printf '[{"ph":"X","name":"a\\q\x01b\xff","ts":1,"dur":5,"pid":1},\n' >t.json
	printf '{"ph":"X","name":"ok","ts":2,"dur":1,"pid":1}]' >>t.json
	run tracegate --all -o out.json t.json
	grep -q 'class=repaired' <<<"$output"
	grep -q 'class=bad' <<<"$output"
	python3 "$root/tests/perfetto_rules.py" out.json
	[ "$(grep -c '"ph"' out.json)" -ge 2 ]
}

@test "tracegate refuses stamps beyond 64 bits and goes on" {
	steps 100 >t.json
	sed -i '2i {"ph":"X","name":"far","ts":99999999999999999999,"dur":1},' t.json
	run -3 tracegate -q t.json
	[ "$(field bad <<<"$output")" = 1 ]
}

# bats test_tags=slow
@test "tracegate finishes its output when it is interrupted" {
	mkfifo pipe
	tracegate --live -o out.json pipe >rec 2>err &
	pid=$!
	exec 7>pipe
	steps 300 200 90000 | head -n 500 >&7
	for _ in $(seq 100); do
		[ -s out.json ] && break
		sleep 0.1
		kill -0 $pid
	done
	kill -INT $pid
	status=0
	wait $pid || status=$?
	exec 7>&-
	[ "$status" = 1 ]
	grep -q class=interrupted rec
	python3 "$root/tests/perfetto_rules.py" out.json
}

@test "tracegate fails when its trace cannot be written" {
	steps 3000 >t.json
	run -2 --separate-stderr tracegate --all -o /dev/full t.json
	[[ $stderr == *"/dev/full: cannot write"* ]]
	[[ $output == *status=2* ]]
}

@test "tracegate sorts a trace larger than its memory" {
	awk 'BEGIN { print "["
		for (i = 0; i < 200000; i++) {
			t = (i * 7919) % 200000
			printf "{\"ph\":\"X\",\"name\":\"op\",\"ts\":%d,\"dur\":%d},\n",
				t * 10, t == 77777 ? 900000 : 3
		}
		printf "{\"ph\":\"i\",\"name\":\"e\",\"ts\":%d}]", t }' >t.json
	run -1 tracegate -q --memory=512M t.json
	whole=$output
	run -1 tracegate -q --memory=1M t.json
	[ "$output" = "$whole" ]
}

@test "tracegate baseline sees what is slow all the time" {
	steps 500 >good.json
	run -0 tracegate baseline -o good.base good.json
	run -0 tracegate -q --baseline=good.base good.json
	# Every step 1.8 times as long.
	awk '{ gsub(/"dur":10[0-9]*/, "\"dur\":1800") } 1' good.json >slow.json
	run -0 tracegate -q slow.json
	run -1 tracegate -q --baseline=good.base slow.json
	[ "$(field reason <<<"$output")" = baseline ]
	head -n 2 good.base >half.base
	run -2 tracegate -q --baseline=half.base good.json
}

@test "tracegate sees a heartbeat that stops" {
	awk 'BEGIN { print "["
		for (i = 0; i < 400; i++) {
			if (i > 200 && i < 300) continue
			t = i * 1000
			printf "{\"ph\":\"X\",\"name\":\"beat\",\"ts\":%d,\"dur\":5},\n", t
		}
		printf "{\"ph\":\"i\",\"name\":\"e\",\"ts\":%d}]", t }' >t.json
	for how in --file --live; do
		run -0 tracegate -q $how t.json
		run -1 tracegate -q $how --heartbeat=beat t.json
		[ "$(field reason <<<"$output")" = gap ] ||
			[ "$(field reason <<<"$output")" = far ]
	done
}

@test "tracegate keeps within its byte budget" {
	steps 300 200 90000 >t.json
	run -1 tracegate --max-bytes=300 --before=50ms -o small.json t.json
	grep -P 'class=over-budget\tn=' <<<"$output"
	[ "$(grep -c '"name":"op"' small.json)" -le 4 ]
	python3 "$root/tests/perfetto_rules.py" small.json
}

@test "tracegate reads tables by their columns" {
	{
		echo begin,took,what
		for i in $(seq 0 299); do
			echo "$((i * 10)),$((i == 250 ? 900 : 5)),job"
		done
	} >t.csv
	run -1 tracegate -q --fields=ts=begin,dur=took,name=what,unit=ms t.csv
	[ "$(field name <<<"$output")" = job ]
	tr ',' '\t' <t.csv >t.tsv
	run -1 tracegate -q --fields=ts=begin,dur=took,name=what,unit=ms t.tsv
	sed '1d; s/\(.*\),\(.*\),\(.*\)/{"begin":\1,"took":\2,"what":"\3"}/' \
		t.csv >t.jsonl
	run -1 tracegate -q --fields=ts=begin,dur=took,name=what,unit=ms t.jsonl
	run -2 tracegate -q --fields=ts=nothing t.csv
}

@test "tracegate reads the ev lines that it writes" {
	steps 300 200 90000 >t.json
	tracegate --all --to=ev -o t.ev t.json >/dev/null || [ $? = 1 ]
	run -1 tracegate -q t.ev
	[ "$(field events <<<"$output")" = 601 ]
	sed '$d' t.ev | head -n 400 >cut.ev
	run tracegate -q cut.ev
	[ "$status" = 1 ] || [ "$(field reason <<<"$output")" = truncated ]
}

# key=value of the graph record.
graph_of() {
	tracegate path --longest "$@" | tr '\t' '\n' |
		sed -n '/^graph$/,/^[a-z]*$/s/^\(nodes\|edges\|critical\|dur\)=//p' |
		paste -sd ' '
}

@test "tracegate path --longest finds what HTA finds" {
	need_data traces/hta_simple_add.json.gz
	step='ProfilerStep*'
	run -0 graph_of --inside='*measure|forward]' --nth=1 \
		"$traces/hta_simple_add.json.gz"
	[ "$output" = "414 415 315 0.241724" ]
	run -0 graph_of --inside="$step" --nth=0 \
		"$traces/hta_cuda_event_sync.json.gz"
	[ "$output" = "54 57 40 0.002411" ]
	run -0 graph_of "$traces/hta_cuda_event_sync_multi_stream.json.gz"
	[ "$output" = "78 82 59 0.001178" ]
	run -0 graph_of --inside="$step" --nth=1 \
		"$traces/hta_ns_resolution.json.gz"
	[ "$output" = "11228 11225 2438 0.095735" ]
	run -0 graph_of --inside="$step" --nth=1 "$traces/hta_nccl_data.json.gz"
	[ "$output" = "15600 15598 13056 0.18891" ]
	run -0 graph_of "$traces/dlrm8/worker0.pt.trace.json.gz"
	[ "$output" = "4002 3999 1964 0.005092" ]
	run -0 graph_of "$traces/dlrm8/worker7.pt.trace.json.gz"
	[ "$output" = "4004 4002 1453 0.004549" ]
}

@test "tracegate path --longest blames whom HTA blames" {
	need_data traces/hta_simple_add.json.gz
	run -0 tracegate path --longest -v --inside='*measure|forward]' \
		--nth=1 "$traces/hta_simple_add.json.gz"
	dur=$'\tdur='
	[[ $output == *"name=cudaMalloc${dur}0.235418"* ]]
	[[ $output == *"name=aten::empty_like${dur}0.000971"* ]]
	[[ $output == *"name=aten::cudnn_convolution${dur}0.000709"* ]]
	[[ $output == *"name=cudaLaunchKernel${dur}0.000562"* ]]
	[[ $output == *class=launch*"${dur}0.000017"*class=gap* ]]
	# 99.8 % of its path is CPU, says HTA; most of the step is not on it.
	run -3 tracegate path --longest "$traces/dlrm8/worker0.pt.trace.json.gz"
	[ "$(field reason <<<"$output")" = no-sync-events ]
}

# slice CAT NAME LANE TS DUR ARGS: one event of a hand-made profile.
slice() {
	printf '{"ph":"X","cat":"%s","name":"%s","pid":%s,"tid":%s,' \
		"$1" "$2" "${3%.*}" "${3#*.}"
	printf '"ts":%s,"dur":%s,"args":{%s}},\n' "$4" "$5" "$6"
}

# launch CORR TS: of a kernel.
launch() {
	slice cuda_runtime cudaLaunchKernel 9.9 "$2" 1 "\"correlation\":$1"
}

# kernel CORR STREAM TS DUR
kernel() {
	slice kernel k$1 "0.$2" "$3" "$4" "\"correlation\":$1,\"stream\":$2"
}

@test "tracegate path --longest goes through a kernel and its release" {
	{
		echo '['
		slice cpu_op A 9.9 0 100
		launch 1 10
		slice cuda_runtime cudaStreamSynchronize 9.9 25 65 '"correlation":2'
		kernel 1 7 30 50
		slice cuda_sync 'Stream Sync' 0.7 26 64 \
			'"correlation":2,"stream":7,"wait_on_stream":7'
		echo '{}]'
	} >t.json
	# 10 to the launch, 20 to the kernel, its 50, 10 after the wait.
	run -0 graph_of t.json
	[ "$output" = "8 8 6 0.00009" ]
	run -0 tracegate path --longest t.json
	[[ $output == *$'class=slice\tproc=0\tthread=7\tname=k1\tdur=0.00005'* ]]
	[[ $output == *$'class=launch\tdur=0.00002'* ]]
	[[ $output != *name=cudaStreamSynchronize* ]]
	# Without the record of the wait the kernel is on no path.
	grep -v cuda_sync t.json >cut.json
	run -3 tracegate path --longest cut.json
	[ "$(field reason <<<"$output")" = no-sync-events ]
}

@test "tracegate path --longest refuses what waits for itself" {
	wait='"wait_on_cuda_event_record_corr_id"'
	{
		echo '['
		launch 1 1
		slice cuda_runtime cudaEventRecord 9.9 2 1 '"correlation":2'
		slice cuda_runtime cudaStreamWaitEvent 9.9 3 1 '"correlation":3'
		launch 4 4
		launch 5 5
		slice cuda_runtime cudaEventRecord 9.9 6 1 '"correlation":6'
		slice cuda_runtime cudaStreamWaitEvent 9.9 7 1 '"correlation":7'
		launch 8 8
		slice cuda_sync 'Stream Wait Event' 0.8 3 1 \
			'"correlation":3,"stream":8,"wait_on_stream":7,'"$wait:2"
		slice cuda_sync 'Stream Wait Event' 0.7 7 1 \
			'"correlation":7,"stream":7,"wait_on_stream":8,'"$wait:6"
		kernel 8 7 10 10
		kernel 1 7 30 10
		kernel 4 8 50 10
		kernel 5 8 70 10
		echo '{}]'
	} >t.json
	run -3 tracegate path --longest t.json
	[ "$(field reason <<<"$output")" = cycle ]
	[[ $output == *graph*reason=cycle* ]]
}

@test "tracegate control turns a tracer on at an anomaly and off again" {
	cat >tracer <<-'END'
		#!/bin/sh
		echo "$1" >>calls
	END
	chmod +x tracer
	steps 300 200 90000 >t.json
	run -1 tracegate control --on='./tracer on' --off='./tracer off' \
		--hold=1ms t.json
	[ "$(cat calls)" = "$(printf 'on\noff')" ]
	[ "$(grep -c '^control.*result=on$' <<<"$output")" = 1 ]
	# A run without an anomaly asks for nothing.
	rm calls
	steps 300 >t.json
	run -0 tracegate control --on='./tracer on' --off='./tracer off' t.json
	[ ! -e calls ]
}

@test "tracegate control turns the tracer off also when on failed" {
	printf '#!/bin/sh\necho "$1" >>calls\n[ "$1" = off ]\n' >tracer
	chmod +x tracer
	steps 300 200 90000 >t.json
	run -1 tracegate control --on='./tracer on' --off='./tracer off' t.json
	grep -P '^control.*reason=tracer-failed' <<<"$output"
	[ "$(tail -n 1 calls)" = off ]
}

@test "tracegate control sends no signal that would kill" {
	sleep 60 &
	pid=$!
	steps 300 200 90000 >t.json
	run -1 tracegate control --signal=USR1 -p $pid t.json
	kill -0 $pid
	kill $pid
	grep -P 'reason=tracer-failed\tnote=process \d+ does not catch' <<<"$output"
	# One that is caught arrives: on, then off.
	mkfifo ready
	sh -c 'trap "echo got >>signals" USR1; echo >ready
		while [ ! -e stop ]; do sleep 0.05; done' &
	pid=$!
	read -r _ <ready
	run -1 tracegate control --signal=SIGUSR1 -p $pid --hold=100ms t.json
	for _ in $(seq 100); do
		[ -s signals ] && break
		sleep 0.1
	done
	touch stop
	[ -s signals ]
}

@test "tracegate control says that nobody listens" {
	mkfifo ctl
	steps 10 >t.json
	run -2 tracegate control --fifo=ctl t.json
	[[ $output == *"nobody reads ctl"* ]]
}

@test "tracegate takes the longer of two that begin together for the outer one" {
	x() { printf '{"ph":"X","name":"%s","pid":1,"tid":1,"ts":%s,"dur":%s}' "$@"; }
	local inside
	inside="$(x a 100 50),$(x b 100 90),$(x c 100 200),$(x d 120 30)"
	echo "[$inside]" >in.json
	run -3 tracegate -o out.json in.json
	[[ $output != *class=nest* ]]
	echo "[$inside,$(x e 130 300),$(x f 400 1)]" >in.json
	run -3 tracegate -o out.json in.json
	[[ $output == *$'class=nest\tn=1\t'* ]]
}

@test "tracegate knows the format of a pipe as it knows that of a file" {
	printf 'head\tof=t\tversion=1\ttool=t\nev\tts=1\tdur=0.5\tname=a\n' >a.ev
	printf 'end\trecords=1\tsum=%s\n' \
		"$(printf 'ev\tts=1\tdur=0.5\tname=a' | xxhsum -H2 2>/dev/null |
			cut -d ' ' -f 1)" >>a.ev
	printf '7 1700000000.5 futex(0x1, 2) = 0 <0.25>\n' >a.strace
	printf '{\n "data": [{"traceID": "1", "spans": [{"spanID": "2",\n' >a.json
	printf '"operationName": "a", "startTime": 1, "duration": 5}]}]}\n' >>a.json
	printf '{"ph":"X","name":"a","ts":1,"dur":5}\n' >a.lines
	for f in a.ev a.strace a.json a.lines; do
		run tracegate path --coverage=0 "$f"
		[ "$status" != 2 ]
		[ "$output" = "$(cat "$f" | tracegate path --coverage=0 -)" ]
	done
}
