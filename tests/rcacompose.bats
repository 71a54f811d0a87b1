# rcacompose: findings, the incident table, relevance, stack files, agents.

setup() {
	load common
	cd "$BATS_TEST_TMPDIR"
	cat >stack <<-'END'
		stack 1
		agent counter ttl=1h
		agent probe ttl=1h
		agent switch ttl=1h
		agent retrans ttl=1h
		window lead=60s lag=60s
		kind link
		sufficient probe
		sufficient counter
		kind switch
		sufficient switch
		symptom retrans
	END
}

# rec TYPE KEY=VALUE...: one record.
rec() {
	local IFS=$'\t'
	echo "$*"
}

# f|h|u AGENT ENTITY [KEY=VALUE...]: evidence at 1100, faulty since 1010.
f() { rec evidence time=1100 "entity=$2" "agent=$1" status=faulty \
	"${@:3}" $( [[ "$*" == *onset=* ]] || echo onset=1010 ); }
h() { rec evidence time=1100 "entity=$2" "agent=$1" status=healthy "${@:3}"; }
u() { rec evidence time=1100 "entity=$2" "agent=$1" status=unknown "${@:3}"; }

# The path a>b b>c c>d, judged at 1200.
incident() {
	rec incident id=i start=1000 end=1150 now=1200
	rec flow id=x src=a dst=d
	rec path flow=x 'hops=a>b b>c c>d'
}

# All three links healthy for both agents, but for those named.
rest() {
	local link agent
	for link in 'a>b' 'b>c' 'c>d'; do
		for agent in probe counter; do
			[[ " $* " == *" $agent:$link "* ]] ||
				h $agent "link:$link"
		done
	done
}

# verdict STATUS RESULT[(REASON)] [ENTITY]: of standard input as incident.
verdict() {
	local want=$1 said v
	cat >case.new
	mv case.new case
	rc=0
	rcacompose -s ./"${STACK:-stack}" "${OPTS[@]}" case >out 2>err || rc=$?
	v=$(grep '^verdict' out) || v=
	said=$(field result "$v")
	[[ $v != *reason=* ]] || said+="($(field reason "$v"))"
	[[ $v != *entity=* ]] || said+=" $(field entity "$v")"
	if [[ $rc != "$want" || $said != "${*:2}" ]]; then
		echo "expected $*, found $rc $said" >&2
		cat out err >&2
		return 1
	fi
}

# field KEY RECORD
field() {
	tr '\t' '\n' <<<"$2" | sed -n "s/^$1=//p"
}

finding() {
	grep -P "^finding\tentity=\Q$1\E\t" out
}

# ---- one incident ---------------------------------------------------------

@test "rcacompose names one faulty link as the culprit" {
	{ incident; f probe 'link:b>c'; rest 'probe:b>c'
	  f retrans flow:x; } | verdict 1 culprit 'link:b>c'
	[[ $(field result "$(finding 'link:a>b')") == healthy ]]
	[[ $(finding 'link:b>c') == *"by=sufficient probe (stack:8)"* ]]
	[[ $(finding 'link:b>c') == *"probe=F(case:4)"* ]]
}

# bats test_tags=slow
@test "rcacompose finds innocent only if all are healthy and the flow is well" {
	{ incident; rest; h retrans flow:x; } | verdict 0 innocent
	{ incident; rest; f retrans flow:x; } | verdict 3 'unknown(unexplained)'
	{ incident; rest; } | verdict 3 'unknown(unexplained)'
	{ incident; rest 'probe:a>b'; h retrans flow:x; } |
		verdict 3 'unknown(coverage)'
	[[ $(grep ^verdict out) == *"need=probe on link:a>b (missing): healthy would make it innocent"* ]]
	sed -i '/symptom/d' stack
	{ incident; rest; } | verdict 3 'unknown(no-symptom)'
}

@test "rcacompose names several culprits as multiple, not their switch" {
	{ incident; f probe 'link:b>c'; f counter 'link:c>d'
	  rest 'probe:b>c' 'counter:c>d'
	  rec attach 'child=link:b>c' parent=switch:c
	  rec attach 'child=link:c>d' parent=switch:c
	  h switch switch:c; f retrans flow:x; } | verdict 1 multiple
	[[ $(grep ^verdict out) == *"members=link:b>c,link:c>d"* ]]
}

@test "rcacompose waits for a parent that is silent" {
	{ incident; f probe 'link:b>c'; rest 'probe:b>c'
	  rec attach 'child=link:b>c' parent=switch:c
	  f retrans flow:x; } | verdict 3 'unknown(parent-silent)'
	[[ $(field cause "$(grep ^verdict out)") == switch ]]
}

@test "rcacompose folds children into a parent that is faulty itself" {
	{ incident; for l in 'a>b' 'b>c' 'c>d'; do
		f probe "link:$l"; h counter "link:$l"
		rec attach "child=link:$l" parent=switch:s
	  done; f switch switch:s; f retrans flow:x; } |
		verdict 1 culprit switch:s
	# Two children are too few: which of them is it?
	{ incident; for l in 'a>b' 'b>c'; do
		f probe "link:$l"; h counter "link:$l"
		rec attach "child=link:$l" parent=switch:s
	  done; rest 'probe:a>b' 'counter:a>b' 'probe:b>c' 'counter:b>c'
	  f switch switch:s; f retrans flow:x; } | verdict 3 'unknown(nested)'
}

@test "rcacompose does not convict while a rival is accused" {
	cat >>stack <<-'END'
		kind device
		required probe
		required counter
	END
	{ incident; f probe 'link:b>c'; rest 'probe:b>c'
	  rec candidate entity=device:g; f probe device:g
	  f retrans flow:x; } >input
	verdict 3 'unknown(rival)' <input
	echo rivals allow >>stack
	verdict 1 culprit 'link:b>c' <input
}

@test "rcacompose does not convict anybody of a symptom that is absent" {
	{ incident; f probe 'link:b>c'; rest 'probe:b>c'
	  h retrans flow:x; } | verdict 3 'unknown(symptom-absent)'
}

@test "rcacompose has nothing to test without candidates" {
	{ rec incident id=i start=1000 end=1150; h probe 'link:a>b'; } |
		verdict 2 ''
	[[ $(cat err) == *"no candidates"* ]]
	[[ $(tail -n 1 out) == *status=2 ]]
}

# bats test_tags=slow
@test "rcacompose excuses what nobody looked at up to innocent-coverage" {
	echo 'innocent-coverage 0.6' >>stack
	{ incident; rest 'probe:a>b' 'counter:a>b'; h retrans flow:x; } |
		verdict 0 innocent
	# An observed unknown is not excused, nor is a flow without a path.
	{ incident; rest 'probe:a>b'; h retrans flow:x; } |
		verdict 3 'unknown(coverage)'
	{ incident; rec flow id=y src=a dst=q; rest; h retrans flow:x
	  h retrans flow:y; } | verdict 3 'unknown(coverage)'
}

@test "rcacompose takes both directions of a link for one culprit" {
	{ rec incident id=i start=1000 end=1150 now=1200
	  rec path flow=x 'hops=a>b b>c c>b b>a'
	  f probe 'link:b>c'; f probe 'link:c>b'
	  h counter 'link:b>c'; h counter 'link:c>b'
	  for l in 'a>b' 'b>a'; do h probe "link:$l"; h counter "link:$l"; done
	  f retrans flow:x; } | verdict 1 culprit link:b--c
}

# bats test_tags=slow
@test "rcacompose joins a link and its directions" {
	# Evidence of the cable counts for the direction on the path.
	{ incident; f probe link:b--c; h counter 'link:b>c'
	  rest 'probe:b>c' 'counter:b>c'; f retrans flow:x; } |
		verdict 1 culprit 'link:b>c'
	# A cable is healthy if both directions are.
	{ rec incident id=i start=1000 end=1150 now=1200
	  rec candidate entity=link:b--c
	  h probe 'link:b>c'; h counter link:b--c; h retrans flow:x
	  } | verdict 3 'unknown(coverage)'
	{ cat case; h probe 'link:c>b'; rec flow id=x src=b dst=c; } |
		verdict 0 innocent
	{ cat case; f probe 'link:c>b' onset=1020; } >case2
	sed -i '/link:c>b.*healthy/d' case2
	verdict 3 'unknown(symptom-absent)' <case2
}

@test "rcacompose knows an entity by any of its names" {
	{ incident; rest 'probe:b>c'
	  rec alias 'entity=link:b>c' same=port:b/eth0
	  rec alias 'entity=port:b/eth0' same=tx:b/eth0
	  f probe tx:b/eth0; f retrans flow:x; } |
		verdict 1 culprit 'link:b>c'
}

# ---- relevance ------------------------------------------------------------

@test "rcacompose takes the ends of the flow for hosts, other nodes for switches" {
	{ rec incident id=i start=1000 end=1150 now=1200
	  rec flow id=x src=a dst=d
	  rec path flow=x 'hops=a b c d'
	  f probe 'link:b>c'; f retrans flow:x; } | verdict 1 culprit 'link:b>c'
	grep -o 'entity=[^	]*' out | sort -u | tr '\n' ' ' >names
	[[ $(cat names) == *"entity=host:a entity=host:d "* ]]
	[[ $(cat names) == *"entity=switch:b entity=switch:c "* ]]
	# A path between switches, typed before the flow, has no hosts.
	{ rec incident id=i start=1000 end=1150 now=1200
	  rec path flow=x 'hops=b c'; h probe 'link:b>c'; } |
		verdict 3 'unknown(coverage)'
	! grep -q entity=host: out
}

# bats test_tags=slow
@test "rcacompose says when the past is judged by the clock of today" {
	sed -i 's/ttl=1h/ttl=15m/' stack
	OPTS=(--now 1000000)
	{ f probe 'link:b>c'; h counter 'link:b>c'; } |
		verdict 3 'unknown(coverage)'
	[[ $(finding 'link:b>c') == *"probe=U:stale"* ]]
	[[ $(grep ^verdict out) == *"the newest evidence is of 1100: --now says"* ]]
	OPTS=(--now 1000000 -q)
	verdict 3 'unknown(coverage)' <case
	[[ $(grep ^verdict out) == *"(stale)"*"newest evidence is of 1100"* ]]
	OPTS=(--now 1101)
	verdict 1 culprit 'link:b>c' <case
	[[ $(grep ^verdict out) != *newest* ]]
}

@test "rcacompose leaves faults that the flow does not touch aside" {
	{ incident; rest; f probe 'link:q>r'; h retrans flow:x; } |
		verdict 0 innocent
	grep -qP '^count\tclass=out-of-scope\tn=1' out
}

@test "rcacompose takes an older fault for background" {
	{ incident; rest 'probe:a>b'; f probe 'link:a>b' onset=500
	  h retrans flow:x; } | verdict 3 'unknown(background-in-scope)'
	[[ $(finding 'link:a>b') == *"probe=U:background"* ]]
	# It does not hide a fresh culprit, nor is it one.
	{ incident; rest 'probe:a>b' 'counter:b>c'
	  f probe 'link:a>b' onset=500; f counter 'link:b>c'
	  f retrans flow:x; } | verdict 1 culprit 'link:b>c'
}

@test "rcacompose takes reports minute after minute for one old fault" {
	{ incident; rest 'probe:a>b'
	  for t in 700 760 820 880 940 1000 1060; do
		rec evidence time=$((t + 60)) 'entity=link:a>b' agent=probe \
			status=faulty onset=$t until=$((t + 60))
	  done; f retrans flow:x; } | verdict 3 'unknown(background-in-scope)'
}

@test "rcacompose takes what broke later for a consequence" {
	{ incident; rest 'probe:c>d'; f probe 'link:c>d' onset=1090
	  f retrans flow:x; } | verdict 3 'unknown(coverage)'
	[[ $(finding 'link:c>d') == *"probe=U:consequence"* ]]
}

@test "rcacompose needs an onset to accuse" {
	{ incident; rest 'probe:c>d'
	  rec evidence time=1100 'entity=link:c>d' agent=probe status=faulty
	  f retrans flow:x; } | verdict 3 'unknown(coverage)'
	[[ $(finding 'link:c>d') == *"probe=U:no-onset"* ]]
}

@test "rcacompose takes a flap for a fault, whatever was healthy around it" {
	{ incident; rest; rec evidence time=1040 'entity=link:c>d' \
		agent=probe status=faulty onset=1030 until=1040
	  f retrans flow:x; } | verdict 1 culprit 'link:c>d'
}

@test "rcacompose sees a contradiction of one agent" {
	{ incident; rest 'probe:c>d'
	  rec evidence time=1100 'entity=link:c>d' agent=probe \
		status=faulty onset=1010 until=1050
	  rec evidence time=1100 'entity=link:c>d' agent=probe \
		status=healthy onset=1000 until=1100
	  f retrans flow:x; } | verdict 3 'unknown(coverage)'
	[[ $(finding 'link:c>d') == *"probe=U:conflict"* ]]
}

@test "rcacompose takes health before the incident for stale" {
	{ incident; rest 'probe:c>d'
	  rec evidence time=990 'entity=link:c>d' agent=probe status=healthy
	  h retrans flow:x; } | verdict 3 'unknown(coverage)'
	[[ $(finding 'link:c>d') == *"probe=U:stale"* ]]
}

# bats test_tags=slow
@test "rcacompose takes nobody's word for health that is still to come" {
	{ incident; rest 'probe:c>d'; h retrans flow:x
	  rec evidence time=900 'entity=link:c>d' agent=probe status=healthy \
		onset=800 until=1150; } | verdict 3 'unknown(coverage)'
	[[ $(finding 'link:c>d') == *"probe=U:stale"* ]]
	sed 's/until=1150/until=9999/' case >prophet
	verdict 3 'unknown(coverage)' <prophet
	[[ $(finding 'link:c>d') == *"probe=U:skew"* ]]
	sed 's/time=900\(.*\)until=9999/time=1150\1until=1150/' prophet >well
	verdict 0 innocent <well
}

@test "rcacompose refuses evidence from the future, and old evidence" {
	{ incident; rest 'probe:c>d'
	  rec evidence time=1300 'entity=link:c>d' agent=probe \
		status=faulty onset=1010
	  f retrans flow:x; } | verdict 3 'unknown(coverage)'
	[[ $(finding 'link:c>d') == *"probe=U:skew"* ]]
	sed -i 's/agent probe ttl=1h/agent probe ttl=30s/' stack
	{ incident; rest 'probe:c>d'
	  rec evidence time=1020 'entity=link:c>d' agent=probe status=healthy
	  h retrans flow:x; } | verdict 3 'unknown(coverage)'
	[[ $(finding 'link:c>d') == *"probe=U:stale"* ]]
}

@test "rcacompose takes thin evidence of health for none" {
	sed -i 's/agent probe ttl=1h/agent probe max-bound=0.01/' stack
	{ incident; rest 'probe:a>b' 'probe:b>c' 'probe:c>d'
	  h probe 'link:a>b' bound=0.001; h probe 'link:b>c' bound=0.05
	  h probe 'link:c>d'; h retrans flow:x; } |
		verdict 3 'unknown(coverage)'
	[[ $(finding 'link:a>b') == *"probe=H"* ]]
	[[ $(finding 'link:b>c') == *"probe=U:thin"* ]]
	[[ $(finding 'link:c>d') == *"probe=U:thin"* ]]
}

@test "rcacompose refuses evidence that rests on its own verdicts" {
	{ incident; rest 'probe:c>d'
	  f probe 'link:c>d' chain=tracker,rcacompose:42
	  f retrans flow:x; } | verdict 3 'unknown(coverage)'
	[[ $(finding 'link:c>d') == *"probe=U:circular"* ]]
	grep -qP '^count\tclass=circular\tn=1' out
}

@test "rcacompose counts witnesses with one source once for a quorum" {
	cat >quorum <<-'END'
		stack 1
		agent one
		agent two
		agent three
		required one
		required two
		required three
		quorum 2
	END
	STACK=quorum
	{ incident; f one 'link:b>c' chain=a,root; f two 'link:b>c' chain=b,root
	} >input
	verdict 3 'unknown(accused)' <input
	sed -i 's/chain=b,root/chain=b,other/' input
	verdict 1 culprit 'link:b>c' <input
}

@test "rcacompose takes silence for health only with a heartbeat" {
	sed -i 's/agent probe ttl=1h/agent probe absent=healthy heartbeat=60s/
		' stack
	{ incident; for l in 'a>b' 'b>c' 'c>d'; do h counter "link:$l"; done
	  h retrans flow:x; } >input
	beats() { # SINCE UNTIL: what a program wrote that looked all the time
		rcacompose read csv --header l --entity 'link:{l}' --agent probe \
			--alive --since "$1" --at "$2" </dev/null
	}
	beats 990 1080 >one
	beats 1080 1150 >two
	run -0 rcacompose -s ./stack -i input -v one two
	[[ $output == *"probe=H:absent"* && $output == *result=innocent* ]]
	# A gap between two beats, a filtered or a typed file: unknown.
	beats 1090 1150 >late
	run -3 rcacompose -s ./stack -i input one late
	[[ $output == *"probe=U:missing"* ]]
	sed '$d' two >cut
	run -3 rcacompose -s ./stack -i input one cut
	[[ $output == *"probe=U:missing"* ]]
	sed '1d;$d' two >typed
	run -3 rcacompose -s ./stack -i input one typed
	[[ $output == *"probe=U:missing"* ]]
}

# ---- input ----------------------------------------------------------------

@test "rcacompose finds a culprit but no innocence in damaged input" {
	{ incident; rest; h retrans flow:x; echo 'evidence	broken'; } |
		verdict 3 'unknown(damaged)'
	[[ $(cat err) == *"case:11: "* ]]
	OPTS=(--allow-bad 1)
	verdict 0 innocent <case
	OPTS=(--strict)
	verdict 2 '' <case
	OPTS=()
	{ incident; rest 'probe:b>c'; f probe 'link:b>c'; f retrans flow:x
	  echo 'evidence	broken'; } | verdict 1 culprit 'link:b>c'
	[[ $(grep ^verdict out) == *bad=1* ]]
}

@test "rcacompose takes a line it cannot read for an unknown of its agent" {
	{ incident; rest; h retrans flow:x
	  rec evidence time=1100 'entity=link:b>c' agent=probe status=dead
	} | verdict 3 'unknown(coverage)'
	[[ $(finding 'link:b>c') == *"probe=U:garbled"* ]]
	{ incident; rest; h retrans flow:x
	  rec evidence time=soon 'entity=link:b>c' agent=probe status=faulty
	} | verdict 3 'unknown(coverage)'
}

@test "rcacompose says filtered where records are missing" {
	{ rec head of=evidence version=1 tool=x; incident; rest
	  h retrans flow:x; } | verdict 3 'unknown(filtered)'
	OPTS=(--partial)
	verdict 0 innocent <case
	[[ $(grep ^verdict out) == *scope=partial* ]]
}

@test "rcacompose refuses circles in the topology" {
	{ incident; rest; h retrans flow:x
	  rec attach 'child=link:a>b' parent=switch:b
	  rec attach child=switch:b parent=rack:1
	  rec attach child=rack:1 'parent=link:a>b'; } |
		verdict 3 'unknown(coverage)'
	[[ $(cat err) == *"attach closes a circle"* ]]
}

# bats test_tags=slow
@test "rcacompose survives evidence about very many entities" {
	{ incident; f probe 'link:b>c'; rest 'probe:b>c'; f retrans flow:x
	  awk 'BEGIN { for (i = 0; i < 200000; i++)
		print "evidence\ttime=1100\tentity=link:x" i \
		">y\tagent=probe\tstatus=healthy" }'; } |
		verdict 1 culprit 'link:b>c'
}

# Each of these took hours while a loop stood in a loop.
# bats test_tags=slow
@test "rcacompose needs no time for what hostile evidence repeats" {
	skip_sanitized
	SECONDS=0
	OPTS=(--now 400000 -q)
	awk -v OFS='\t' 'BEGIN { for (i = 0; i < 200000; i++)
		print "evidence", "time=" 300000 + i / 10, "entity=link:a>b",
		    "agent=probe", "status=" (i % 2 ? "faulty" : "healthy"),
		    "onset=" 300000 + i / 10 }' >in
	sed -i 's/ttl=1h/ttl=100d/' stack
	verdict 3 'unknown(coverage)' <in
	awk -v OFS='\t' 'BEGIN { for (i = 0; i < 50000; i++)
		print "evidence", "time=399990", "entity=link:a" i ">b",
		    "agent=probe", "status=faulty", "onset=399990" }' >in
	verdict 1 multiple <in
	[[ $(grep ^verdict out) == *,...$'\t'candidates=50000* ]]
	awk -v OFS='\t' 'BEGIN { print "incident", "id=i", "start=399000"
		for (i = 0; i < 100000; i++)
			print "flow", "id=f" i, "src=a", "dst=b" }' >in
	verdict 2 '' <in
	awk -v OFS='\t' 'BEGIN { for (i = 0; i < 100000; i++)
		print "evidence", "time=399990", "entity=flow:x",
		    "agent=retrans", "status=faulty", "onset=399990" }' >in
	verdict 2 '' <in
	awk -v OFS='\t' 'BEGIN { for (i = 0; i < 100000; i++)
		print "attach", "child=n:" i + 1, "parent=n:" i }' >in
	verdict 2 '' <in
	[[ $(cat err) == *"more than 256 parents above"* ]]
	[[ $SECONDS -lt 60 ]] # some seconds; a minute on a busy machine
}

@test "rcacompose judges without an incident, but finds nobody innocent" {
	OPTS=(--now 1200)
	{ f probe 'link:b>c'; h counter 'link:b>c'; } |
		verdict 1 culprit 'link:b>c'
	{ h probe 'link:b>c'; h counter 'link:b>c'; } |
		verdict 3 'unknown(no-incident)'
}

@test "rcacompose takes a path and times from its options" {
	{ rest 'probe:b>c'; f probe 'link:b>c'; h switch switch:b
	  h switch switch:c; h probe host:a; h probe host:d; } >evidence
	printf '%s\n' 'kind host' 'sufficient probe' >>stack
	sed -i /symptom/d stack
	run -1 rcacompose -s ./stack --path a,b,c,d --start 1000 --end 1150 \
		--now 1200 -q evidence
	[[ $output == *"entity=link:b>c"* ]]
	run -2 rcacompose -s ./stack --path a,b -q evidence
	run -2 rcacompose -s ./stack --start 1000 -q evidence
}

@test "rcacompose judges a stream of incidents one by one" {
	{ rec attach 'child=link:b>c' parent=switch:c
	  for id in 1 2 3; do
		incident | sed "s/id=i/id=$id/"
		rest 'probe:b>c'
		[[ $id == 3 ]] || f probe 'link:b>c'
		[[ $id != 1 ]] || h switch switch:c
		f retrans flow:x
	  done; } >stream
	run -1 rcacompose -s ./stack -q stream
	[[ ${#lines[@]} == 3 ]]
	[[ ${lines[0]} == *result=culprit*incident=1* ]]
	[[ ${lines[1]} == *reason=parent-silent*incident=2* ]]
	[[ ${lines[2]} == *reason=coverage*incident=3* ]]
	run -1 rcacompose -s ./stack -q - <stream
	[[ ${#lines[@]} == 3 ]]
	# The end is looked at before the first verdict.
	{ rec head of=x version=1 tool=x
	  incident; rest; h retrans flow:x; incident; } >stream
	run -3 rcacompose -s ./stack -q - <stream
	[[ ${lines[0]} == *reason=filtered* ]]
}

@test "rcacompose gives the same bytes for the same input" {
	{ incident; f probe 'link:b>c'; rest 'probe:b>c'; f retrans flow:x
	} >input
	rcacompose -s ./stack input >one || :
	TZ=Asia/Tokyo LC_ALL=C.UTF-8 rcacompose -s ./stack input >two || :
	cmp one two
	# The order of lines is no evidence.
	{ head -n 3 input; tail -n +4 input | sort -r; } >input2
	rcacompose -s ./stack -q input2 >three || :
	[[ $(cat three) == "$(grep ^verdict one)" ]]
}

@test "rcacompose -E prints evidence that it would refuse itself" {
	{ incident; f probe 'link:b>c'; rest 'probe:b>c'; f retrans flow:x
	} >input
	run -1 rcacompose -s ./stack -E input
	[[ $output == *$'agent=rcacompose\tstatus=faulty'*chain=rcacompose* ]]
}

# ---- stack files ----------------------------------------------------------

# broken LINE TEXT MESSAGE: that text as stack is an error in that line.
broken() {
	printf '%b' "$2" >bad
	run -2 --separate-stderr rcacompose -s ./bad -q case
	[[ -z $output && $stderr == "rcacompose: ./bad:$1: "*"$3"* ]] || {
		echo "found: $stderr" >&2
		return 1
	}
}

# bats test_tags=slow
@test "rcacompose names file and line of every mistake in a stack" {
	incident >case
	broken 1 '' 'expected "stack 1"' || broken 0 '' 'expected "stack 1"'
	broken 1 'stack 2\n' 'expected "stack 1"'
	broken 1 'agent a\n' 'expected "stack 1"'
	broken 2 'stack 1\nagnet a\n' 'unknown statement "agnet"'
	broken 2 'stack 1\nRequired a\n' 'unknown statement "Required"'
	broken 2 'stack 1\nrequired a\n' 'agent "a" is not declared above'
	broken 3 'stack 1\nagent a\nagent a\n' 'agent a twice'
	broken 4 'stack 1\nagent a\nrequired a\nsufficient a\n' 'twice for one'
	broken 4 'stack 1\nkind x\nkind y\nkind x\n' 'kind x twice'
	broken 2 'stack 1\nagent a ttl=5\n' ttl=
	broken 2 'stack 1\nagent a ttl=1m ttl=1m\n' 'ttl= twice'
	broken 2 'stack 1\nagent a tll=1m\n' 'unknown word "tll=1m"'
	broken 2 'stack 1\nagent a exec="x" file=y\n' 'exclude each other'
	broken 2 'stack 1\nagent a exec="x\n' 'quote without its end'
	broken 2 'stack 1\nagent a absent=faulty\n' 'expected healthy'
	broken 2 'stack 1\nagent a max-bound=2\n' 'max-bound='
	broken 2 'stack 1\nagent rcacompose\n' 'own verdicts'
	broken 2 'stack 1\nquorum 0\n' 'expected an integer'
	broken 3 'stack 1\nrivals allow\nrivals allow\n' 'again'
	broken 2 'stack 1\ninnocent-coverage 0\n' 'a share above 0'
	broken 2 'stack 1\nwindow leed=1s\n' 'expected lead='
	broken 2 'stack 1\nscope fabric\n' 'expected scope'
	broken 2 'stack 1\ninclude none\n' 'cannot open'
}

@test "rcacompose includes files once they say something, and no circles" {
	incident >case
	echo 'stack 1' >empty
	printf 'stack 1\ninclude empty\n' >top
	run -2 rcacompose -s ./top case
	[[ $output == *"./top:2: ./empty:1: nothing in it"* ]]
	printf 'stack 1\ninclude b\n' >a
	printf 'stack 1\ninclude a\n' >b
	run -2 rcacompose -s ./a case
	[[ $output == *"./a:2: ./b:2: ./a: it includes itself"* ]]
	mkdir sub
	printf 'stack 1\nagent probe\n' >sub/agents
	printf 'stack 1\r\ninclude agents # ours\r\nsufficient probe\r\n' \
		>sub/main
	{ incident; f probe 'link:b>c'; } >case
	run -1 rcacompose -s ./sub/main -q case
}

@test "rcacompose finds its shipped stacks by name" {
	for name in clos gpu-node serving; do
		run -0 rcacompose lint "$name"
		[[ $output != *$'\nwarning\t'* ]]
	done
	run -2 rcacompose -s no-such-stack case
	[[ $output == *'no shipped stack "no-such-stack"'* ]]
}

@test "rcacompose runs nothing that others could have written" {
	incident >case
	printf 'stack 1\nagent a exec="/bin/true"\nsufficient a\n' >exec
	chmod 666 exec
	run -2 rcacompose -s ./exec case
	[[ $output == *"writable by others"* ]]
	chmod 644 exec
	run -3 rcacompose -s ./exec -q case
	printf '#!/bin/sh\n' >prog
	chmod 777 prog
	printf 'stack 1\nagent a exec="%s/prog"\nsufficient a\n' "$PWD" >exec
	run -2 rcacompose -s ./exec case
	[[ $output == *"writable by others"* ]]
}

# ---- agents ---------------------------------------------------------------

# agent NAME: a program from standard input.
agent() {
	{ echo '#!/bin/bash'; cat; } >"$1"
	chmod 755 "$1"
}

@test "rcacompose asks programs, with the candidates on standard input" {
	agent prober <<-'END'
		[[ $RCA_INCIDENT == i && $RCA_T0 == 1000 && $RCA_T1 == 1150 ]] ||
			exit 1
		while read -r entity; do
			status=healthy onset=
			[[ $entity != 'link:b>c' ]] ||
				status=faulty onset=$'\tonset=1010'
			printf 'evidence\ttime=1100\tentity=%s\tagent=probe\tstatus=%s%s\n' \
				"$entity" "$status" "$onset"
		done
	END
	cat >execs <<-END
		stack 1
		agent probe exec="$PWD/prober" timeout=10s
		sufficient probe
	END
	STACK=execs
	incident | verdict 1 culprit 'link:b>c'
	[[ $(finding 'link:b>c') == *"probe=F(agent:probe:"* ]]
}

# bats test_tags=slow
@test "rcacompose survives agents that hang, flood, crash, fork and stammer" {
	agent hang <<-'END'
		sleep 600
	END
	agent flood <<-'END'
		exec yes 'evidence	entity=link:q	agent=flood	status=healthy'
	END
	agent crash <<-'END'
		printf 'evidence\ttime=1100\tentity=link:a>b\tagent=crash\tstatus=healthy\n'
		kill -SEGV $$
	END
	agent daemon <<-'END'
		printf 'evidence\ttime=1100\tentity=link:a>b\tagent=daemon\tstatus=healthy\n'
		setsid sleep 5 &
	END
	agent half <<-'END'
		printf 'evidence\ttime=1100\tentity=link:a>b\tagent=half\tstatus=healthy\n'
		printf 'evidence\ttime=1100\tentity=link:b>c\tagent=half\tstatus=heal'
	END
	agent liar <<-'END'
		printf 'evidence\ttime=1100\tentity=link:a>b\tagent=half\tstatus=faulty\tonset=1010\n'
	END
	{ echo 'stack 1'
	  for a in hang flood crash daemon half liar; do
		echo "agent $a exec=\"$PWD/$a\" timeout=1s"
		echo "required $a"
	  done; } >execs
	STACK=execs
	SECONDS=0
	incident | verdict 3 'unknown(coverage)'
	[[ $SECONDS -lt 60 ]] # a minute on a busy machine
	line=$(finding 'link:b>c')
	[[ $line == *"hang=U:timeout"* ]]
	[[ $line == *"flood=U:flood"* ]]
	[[ $line == *"crash=U:error"* ]]
	[[ $line == *"daemon=U:timeout"* ]]
	[[ $line == *"half=U:missing"* ]]
	line=$(finding 'link:a>b')
	[[ $line == *"crash=H"* && $line == *"daemon=H"* && $line == *"half=H"* ]]
	[[ $(cat err) == *"agent:liar:1: evidence of another agent"* ]]
	! pgrep -f "$PWD/hang" >/dev/null
}

# bats test_tags=slow
@test "rcacompose takes no silence for health beside what it could not read" {
	# It lives, and says nothing about anybody: health, but for the last.
	agent quiet <<-'END'
		printf 'alive\tagent=quiet\tentity=*\tsince=900\tuntil=1190\n'
	END
	agent stammer <<-'END'
		printf 'alive\tagent=stammer\tentity=*\tsince=900\tuntil=1190\n'
		printf 'evidence\tenti\xff\x00ty=link:b>c\tstatus=faulty\n'
	END
	agent cut <<-'END'
		printf 'head\tof=evidence\tversion=1\ttool=cut\n'
		printf 'alive\tagent=cut\tentity=*\tsince=900\tuntil=1190\n'
	END
	agent later <<-'END'
		printf 'head\tof=evidence\tversion=99\ttool=later\n'
		printf 'alive\tagent=later\tentity=*\tsince=900\tuntil=1190\n'
	END
	for a in quiet stammer cut later; do
		cat >execs <<-END
			stack 1
			agent $a exec="$PWD/$a" absent=healthy heartbeat=60s
			agent retrans
			sufficient $a
			symptom retrans
		END
		{ incident; h retrans flow:x; } >case
		OPTS=(--allow-bad 9 --partial) STACK=execs
		if [[ $a == quiet ]]; then
			verdict 0 innocent <case
			[[ $(finding 'link:a>b') == *"quiet=H:absent"* ]]
		else
			verdict 3 'unknown(coverage)' <case
			[[ $(finding 'link:a>b') == *"$a=U:garbled"* ]]
		fi
	done
}

# bats test_tags=slow
@test "rcacompose survives agents that print bytes, signal themselves, or look around" {
	agent bytes <<-'END'
		head -c 100000 /dev/urandom
	END
	agent stopped <<-'END'
		printf 'evidence\ttime=1100\tentity=link:a>b\tagent=stopped\tstatus=healthy\n'
		kill -STOP $$
	END
	agent deaf <<-'END'
		trap '' TERM
		while :; do sleep 0.1; done
	END
	agent forks <<-'END'
		for i in 1 2 3 4 5 6 7 8; do
			(exec -a "$0-child" sleep 600) &
		done
		exit 3
	END
	agent wrong <<-'END'
		printf 'incident\tid=other\tstart=1\n'
		printf 'truth\tentity=link:a>b\n'
		printf 'attach\tchild=link:a>b\tparent=link:b>c\n'
		printf 'evidence\ttime=1100\tentity=link:a>b\tagent=wrong\tstatus=faulty\tonset=1010\tchain=rcacompose\n'
	END
	agent fds <<-'END'
		for fd in /proc/self/fd/*; do
			[[ ${fd##*/} -lt 3 || ! -e $fd ]] ||
				readlink "$fd" | grep -v '^/proc/' >&2
		done
	END
	{ echo 'stack 1'
	  for a in bytes stopped deaf forks wrong fds; do
		echo "agent $a exec=\"$PWD/$a\" timeout=1s"
		echo "required $a"
	  done; } >execs
	STACK=execs OPTS=(-o saved --log log)
	rc=0
	incident >case
	SECONDS=0
	rcacompose -s ./execs "${OPTS[@]}" case 2>err || rc=$?
	[[ $rc == 3 && $SECONDS -lt 60 ]]
	line=$(grep -P '^finding\tentity=link:a>b\t' saved)
	[[ $line == *"bytes=U:garbled"* && $line == *"stopped=H"* ]]
	[[ $line == *"deaf=U:timeout"* && $line == *"forks=U:timeout"* ]]
	[[ $line == *"wrong=U:circular"* ]]
	line=$(grep -P '^finding\tentity=link:b>c\t' saved)
	[[ $line == *"stopped=U:timeout"* && $line == *"wrong=U:missing"* ]]
	# No file of ours is open in an agent; nothing of theirs goes on.
	! grep -E 'saved|log|case' err
	! pgrep -f "$PWD/(deaf|stopped|forks)" >/dev/null
	# The log holds the verdict, as a stream that is whole.
	run -0 rcacompose score --unlabelled log
	[[ $output == *$'name=unknown\tk=1\tn=1'* ]]
}

@test "rcacompose --lazy stops when no answer could matter" {
	agent one <<-'END'
		while read -r e; do
			printf 'evidence\ttime=1100\tentity=%s\tagent=one\tstatus=healthy\n' "$e"
		done
	END
	agent two <<-'END'
		touch "$PWD/asked"
	END
	cat >execs <<-END
		stack 1
		agent one exec="$PWD/one"
		agent two exec="$PWD/two"
		requisite one
		optional two
	END
	STACK=execs OPTS=(--lazy)
	incident | verdict 3 'unknown(no-symptom)'
	[[ ! -e asked ]]
	[[ $(finding 'link:a>b') == *"two=U:not-consulted"* ]]
	sed -i 's/optional two/sufficient two/' execs
	incident | verdict 3 'unknown(no-symptom)'
	[[ -e asked ]]
}

# bats test_tags=slow
@test "rcacompose asks its programs at the same time, or as many as -j says" {
	# Each waits for the other: alone, neither ever answers.
	for a in one two; do
		agent $a <<-END
			touch "$PWD/came-\$(basename "\$0")"
			for ((i = 0; i < 500; i++)); do
				[[ ! -e $PWD/came-one || ! -e $PWD/came-two ]] || break
				sleep 0.02
			done
			((i < 500)) || exit 1
			printf 'evidence\ttime=1100\tentity=link:b>c\tagent=%s\tstatus=faulty\tonset=1010\n' "\$(basename "\$0")"
		END
	done
	cat >execs <<-END
		stack 1
		agent one exec="$PWD/one" timeout=8s
		agent two exec="$PWD/two" timeout=8s
		required one
		required two
	END
	STACK=execs
	incident | verdict 1 culprit 'link:b>c'
	rm came-*
	sed -i 's/8s/500ms/' execs
	OPTS=(-j 1)
	incident >in
	rcacompose -s ./execs -j 1 in >out || :
	[[ $(finding 'link:b>c') == *"one=U:timeout"* ]]
}

@test "rcacompose counts a line of two megabytes as bad and finds the culprit" {
	{ incident; f probe 'link:b>c'; rest 'probe:b>c'; f retrans flow:x
	  printf 'evidence\ttime=1100\tagent=probe\tstatus=healthy\tentity=link:'
	  head -c 2000000 /dev/zero | tr '\0' x
	  echo; } | verdict 1 culprit 'link:b>c'
	[[ $(grep ^verdict out) == *bad=1* ]]
	{ incident; rest; h retrans flow:x; tail -n 1 case; } |
		verdict 3 'unknown(damaged)'
}

@test "rcacompose reads agents from files and descriptors" {
	{ f probe 'link:b>c'; } >probe.rec
	{ h counter 'link:b>c'; } >counter.rec
	cat >files <<-'END'
		stack 1
		agent probe file=probe.rec
		agent counter fd=7
		sufficient probe
		sufficient counter
	END
	incident >case
	run -1 rcacompose -s ./files -q -i case 7<counter.rec
	[[ $output == *"entity=link:b>c"* ]]
	rm probe.rec
	run -3 rcacompose -s ./files -i case 7<counter.rec
	[[ $output == *"probe=U:error"* ]]
}

@test "rcacompose --every judges again and says what it replaces" {
	agent probe <<-END
		n=\$(cat "$PWD/n" 2>/dev/null || echo 0)
		echo \$((n + 1)) >"$PWD/n"
		[[ \$n -gt 0 ]] || exit 0
		printf 'evidence\ttime=1100\tentity=link:b>c\tagent=probe\tstatus=faulty\tonset=1010\n'
	END
	printf 'stack 1\nagent probe exec="%s/probe"\nsufficient probe\n' \
		"$PWD" >execs
	incident >case
	run -1 rcacompose -s ./execs -i case -q --every 50ms --for 2s
	[[ ${#lines[@]} == 3 ]]
	[[ ${lines[0]} == *"result=unknown"* ]]
	[[ ${lines[1]} == *"result=culprit"*"supersedes=unknown(coverage)"* ]]
	[[ ${lines[2]} == *"result=culprit"*"final=yes"* ]]
}

@test "rcacompose --log keeps verdicts for score --unlabelled" {
	{ incident; rest; h retrans flow:x; } >one
	{ incident; rest 'probe:a>b'; h retrans flow:x; } >two
	rcacompose -s ./stack --log log -q one
	rcacompose -s ./stack --log log -q two || :
	run -0 rcacompose score --unlabelled log
	[[ $output == *$'name=unknown\tk=1\tn=2\tshare=0.5'* ]]
	[[ $output == *$'name=unknown-reason\tk=1\tn=2'*reason=coverage* ]]
	[[ $output == *$'name=unknown-agent\tk=1\tn=2'*agent=probe* ]]
}

@test "rcacompose score --cluster counts incidents that repeat once" {
	{ for id in 1 2 3 4; do
		incident | sed "s/id=i/id=$id\tx.site=$((id / 4))/"
		rest 'probe:b>c'; f probe 'link:b>c'; f retrans flow:x
		# Three times the wrong one, at one site.
		rec truth "entity=link:$([[ $id == 4 ]] && echo 'b>c' || echo 'c>d')"
	  done; } >corpus
	run -0 rcacompose score -s ./stack corpus
	[[ $output == *$'name=false-culprit\tk=3\tn=4\t'* ]]
	[[ $output == *$'name=false-culprit-claim\tk=3\tn=4\t'* ]]
	run -0 rcacompose score -s ./stack --cluster x.site corpus
	[[ $output == *$'name=false-culprit\tk=3\tn=4\t'* ]]
	[[ $output == *$'name=false-culprit-cluster\tk=1\tn=2\t'* ]]
	[[ $output == *$'name=miss-cluster\tk=1\tn=2\t'* ]]
	[[ $output == *$'name=false-culprit-claim\tk=1\tn=2\t'* ]]
	# Without the key each stands for itself.
	run -0 rcacompose score -s ./stack --cluster x.day corpus
	[[ $output == *$'name=false-culprit-cluster\tk=3\tn=4\t'*"4 incidents without the key"* ]]
	run -2 rcacompose score --unlabelled --cluster x.site corpus
}

@test "rcacompose --prom writes metrics, also of an unknown" {
	{ incident; rest; } >case
	run -3 rcacompose -s ./stack --prom m -q case
	grep -q '^straightedge_status{tool="rcacompose".*} 3' m
	grep -q 'result="unknown",reason="unexplained"} 1' m
}

@test "rcacompose --lazy judges links of both spellings again and again" {
	agent one <<-'END'
		printf 'evidence\ttime=1100\tentity=link:b>a\tagent=one\tstatus=faulty\tonset=1010\n'
	END
	agent two <<-'END'
		printf 'evidence\ttime=1100\tentity=link:a>b\tagent=two\tstatus=healthy\n'
	END
	cat >execs <<-END
		stack 1
		agent one exec="$PWD/one"
		agent two exec="$PWD/two"
		sufficient one
		sufficient two
	END
	STACK=execs OPTS=(--lazy)
	{ rec incident id=i start=1000 end=1150 now=1200
	  rec candidate entity=link:a--b; } | verdict 1 culprit link:a--b
}

# bats test_tags=slow
@test "rcacompose agrees with a model of its page on random incidents, also lazily" {
	need python3
	skip_sanitized
	run -0 python3 "$root/tests/rcacompose_model.py" \
		"$build/rcacompose" 1 60 "$BATS_TEST_TMPDIR"
	[[ $output == "1200 incidents agree" ]]
}
