# rcacompose on recorded telemetry: what must come out right. The data are not
# part of the repository; without them these tests are not run.

setup() {
	load ../common
	cd "$BATS_TEST_TMPDIR"
	netns=$root/tests/netns
}

# counters DIRECTORY: what its devices counted, as evidence of the ports.
counters() {
	local file
	for file in "$1"/*/latest_generic-counters.csv*; do
		rcacompose read csv --time '' --agent crc \
			--entity 'rx:{Producer}/{interface-name}' \
			--rule 'crc-errors faulty>0 healthy<=0' \
			--rule 'input-errors faulty>0 healthy<=0' "$file"
		rcacompose read csv --time '' --agent flap \
			--entity 'port:{Producer}/{interface-name}' \
			--rule 'carrier-transitions faulty>0 healthy<=0' "$file"
	done
	for file in "$1"/*/nodes_node_drops.csv; do
		rcacompose read csv --time '' --agent drops \
			--entity 'node:{Producer}/{node-name}' \
			--rule 'checksum-error-packets faulty>0 healthy<=0' \
			--rule 'discard-packets faulty>0 healthy<=0' "$file"
	done
}

# The routing processor of each device speaks for it.
nodes() {
	local device
	for device in "$1"/*/; do
		device=${device%/}
		printf 'alias\tentity=switch:%s\tsame=node:%s/0/0/CPU0\n' \
			"${device##*/}" "${device##*/}"
	done
}

cisco_stack() {
	cat >stack <<-'END'
		stack 1
		agent crc
		agent flap
		agent drops
		window lead=60s lag=60s
		kind link
		sufficient crc
		sufficient flap
		kind switch
		sufficient drops
	END
}

@test "rcacompose names the link that was shut, not the one with a CRC error" {
	need_data rca/cisco/S-200122_1729_iflap_ifdown
	dir=$data/rca/cisco/S-200122_1729_iflap_ifdown
	cisco_stack
	counters "$dir" >evidence
	{ printf 'incident\tid=iflap\tstart=1579714882.1\tend=1579715281\tnow=1579715290\n'
	  rcacompose read lldp "$dir/cdp_map.json" | grep -E '^(alias|attach)'
	  nodes "$dir"
	  for port in 4/12 5/13 6/14 7/15; do
		printf 'candidate\tentity=link:leaf4:%s--spine1:%s\n' \
			"HundredGigE0/0/0/${port%/*}" \
			"HundredGigE0/0/0/${port#*/}"
	  done; } >incident
	run -1 rcacompose -s ./stack -i incident evidence
	[[ $output == *$'result=culprit\tstatus=1\tentity=link:leaf4:HundredGigE0/0/0/4--spine1:HundredGigE0/0/0/12\t'* ]]
	# The other error is real, and of another link.
	grep -q $'entity=rx:spine1/HundredGigE0/0/0/30\tagent=crc\tstatus=faulty' evidence
	# With that link in scope as well, it broke minutes later.
	printf 'candidate\tentity=link:leaf8:HundredGigE0/0/0/6--spine1:HundredGigE0/0/0/30\n' >>incident
	run -1 rcacompose -s ./stack -i incident evidence
	[[ $output == *$'result=culprit\tstatus=1\tentity=link:leaf4:HundredGigE0/0/0/4--spine1'* ]]
	[[ $output == *"crc=U:consequence"* ]]
}

@test "rcacompose cannot tell where the culprit exports nothing" {
	need_data rca/cisco/S-200122_1624_blackhole_big
	dir=$data/rca/cisco/S-200122_1624_blackhole_big
	cisco_stack
	counters "$dir" >evidence
	rcacompose read lldp "$dir/cdp_map.json" | grep -E '^(alias|attach)' \
		>topology
	{ printf 'incident\tid=blackhole\tstart=1579711783\tend=1579712063\tnow=1579712070\n'
	  cat topology
	  nodes "$dir"
	  printf 'path\tflow=x\thops=%s\n' \
		'switch:leaf4 link:leaf4:HundredGigE0/0/0/4--spine1:HundredGigE0/0/0/12 switch:spine1 link:leaf3:HundredGigE0/0/0/4--spine1:HundredGigE0/0/0/8 switch:leaf3'
	} >incident
	run -3 rcacompose -s ./stack -i incident evidence
	[[ $output == *$'\nverdict\tresult=unknown\t'*reason=coverage* ]]
	[[ $output == *$'finding\tentity=switch:leaf3\tresult=unknown'*unobserved* ]]
	run ! grep 'status=faulty' evidence
}

@test "rcacompose blames nobody wrongly in 40 recorded fabric incidents" {
	need_data rca/netns
	"$netns/convert" "$data"/rca/netns/* >corpus
	run -0 rcacompose score -s clos corpus
	[[ $output == *$'name=false-culprit\tk=0\tn=40\t'* ]]
	[[ $output == *$'name=false-innocent\tk=0\tn=35\t'* ]]
	# Loss, subsets of paths, rate limits and MTU are found; corruption shows
	# in no counter and no probe.
	hits=$(sed -n 's/.*name=miss\tk=\([0-9]*\)\t.*/\1/p' <<<"$output")
	[[ $hits -le 16 ]]
	# Only the scope keeps background faults from being blamed.
	sed 's/^scope.*/scope all/' "$root/cmd/rcacompose/stacks/clos" >wide
	run -0 rcacompose score -s ./wide corpus
	[[ $output != *$'name=false-culprit\tk=0\t'* ]]
}

@test "rcacompose read probes accuses nobody of a fabric without a fault" {
	need_data rca/flock
	"$root/tests/sim/flock" "$data/rca/flock/out_silent_0.txt.gz" >none
	run -0 rcacompose read probes --since 1000 --at 1060 none
	[[ $output != *status=faulty* && $output != *ambiguous* ]]
	[[ $(grep -c status=healthy <<<"$output") -gt 1300 ]]
	# Whoever only asks for the most suspicious one gets somebody anyway.
	"$root/tests/sim/flock" "$data/rca/flock/out_silent_1.txt.gz" >one
	run -0 rcacompose read probes --since 1000 --at 1060 one
	[[ $output != *status=faulty* ]]
	[[ $(grep ambiguous <<<"$output" | cut -f 3 | sort | tr '\n' ' ') == \
		"entity=host:10113 entity=link:10113>14 " ]]
}

@test "rcacompose names one, two and four lossy links of a flock fabric" {
	need_data rca/flock
	cat >stack <<-'END'
		stack 1
		agent probe
		agent retrans
		kind link
		sufficient probe
		kind host
		sufficient probe
		symptom retrans
	END
	for links in '16>49' '16>49 66>44' '16>49 66>44 39>79 22>52'; do
		# shellcheck disable=SC2086 # words, on purpose
		"$root/tests/sim/flock" "$data/rca/flock/out_silent_0.txt.gz" \
			1 $links >flows
		# The first twenty flows that suffer complain.
		{ printf 'incident\tid=f\tstart=1000\tend=1060\tnow=1060\n'
		  awk -F , -v links="$links" 'NR > 1 && $4 < $3 - 3 && n < 20 {
			printf "flow\tid=%d\tsrc=%s\tdst=%s\n", ++n, $1, $2
			printf "path\tflow=%d\thops=%s\n", n, $5
			printf "evidence\ttime=1060\tentity=flow:%d\tagent=retrans\tstatus=faulty\n", n
			}' flows
		  rcacompose read probes --agent probe --since 1000 --at 1060 flows |
			grep ^evidence; } >case
		run -1 rcacompose -s ./stack case
		guilty=$(grep -P 'entity=link:.*\tresult=faulty' <<<"$output" |
			cut -f 2 | sed 's/.*://' | sort | xargs)
		[[ $guilty == "$(tr ' ' '\n' <<<"$links" | sort | xargs)" ]]
		case $links in
		*' '*)	[[ $output == *$'\nverdict\tresult=multiple\t'* ]] ;;
		*)	[[ $output == *$'\nverdict\tresult=culprit\tstatus=1\tentity=link:16>49\t'* ]] ;;
		esac
	done
}

@test "rcacompose takes a clock that is years off for skew, not for a fault" {
	need_data rca/nezha/2022-08-22
	metric=$data/rca/nezha/2022-08-22/metric
	file=$(echo "$metric"/adservice-*.csv)
	printf 'stack 1\nagent cpu\nsufficient cpu\n' >stack
	{ printf 'incident\tid=n\tstart=1661140434\tend=1661140734\tnow=1661140800\n'
	  rcacompose read csv --time TimeStamp --entity 'pod:{PodName}' \
		--agent cpu --rule 'CpuUsageRate(%) gauge faulty>80 healthy<=50' \
		"$file" "$metric"/frontend-*.csv | grep ^evidence
	  printf 'candidate\tentity=pod:%s\n' \
		"$(basename "$file" _metric.csv)"; } >case
	run -3 rcacompose -s ./stack case
	[[ $output == *"cpu=U:skew"* ]]
}
