#!/bin/bash
# make check-netns: rcacompose on live fabrics.
#
# Builds leaf-spine fabrics of network namespaces, breaks something in one,
# probes and counts, and asks rcacompose (stack clos) who it was: two incidents
# of each of eight kinds, 0 to 3 faults elsewhere that were there before, a
# fresh seed each time. All evidence comes from `rcacompose read` of what
# tests/netns/traffic has probed and counted. The symptom is TCP of the
# complaining pair that runs while it is broken. Fails if anybody is blamed or
# cleared wrongly, or if fewer than half of the faults that probes or counters
# can see (five kinds) are found.
#
# usage: tests/check-netns.sh [SEED [ROUNDS]]	needs root, ip, tc, nft
# Environment: BUILD (build), KINDS (all), LANES (fabrics at the same time, 2 a
# processor), KEEP (a file for the records).
set -u
export LC_ALL=C
root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-build}
[[ $build == /* ]] || build=$root/$build
PATH=$build:$PATH

not_run() {
	echo "not run: $1"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
}

for tool in ip tc nft cc; do
	command -v $tool >/dev/null || not_run "no $tool"
done
[[ $(id -u) == 0 ]] || not_run "needs root"
ip netns add se-try 2>/dev/null || not_run "no namespaces"
works=$(ip netns exec se-try nft add table netdev t 2>&1) || works=no
ip netns del se-try
[[ -z $works ]] || not_run "no nft in a namespace"

seed=${1:-$(($(date +%s) % 100000))}
rounds=${2:-2}
lanes=${LANES:-$((2 * $(getconf _NPROCESSORS_ONLN)))}
all=$(mktemp -d)
spines=(s1 s2) leaves=(l1 l2 l3 l4) hosts=(h11 h12 h21 h22 h31 h41)
nodes=("${spines[@]}" "${leaves[@]}" "${hosts[@]}")
cc -O2 -D_GNU_SOURCE -std=c11 -o "$all/traffic" \
	"$root/tests/netns/traffic.c" || exit 1

# ---- one fabric: $ns is what its namespaces' names begin with ---------------

on() { ip netns exec "$ns$1" "${@:2}"; }
address() { echo "10.200.${1:1:1}.${1:2:1}"; }

down() {
	[[ -z ${traffic_PID:-} ]] || kill "$traffic_PID" 2>/dev/null
	printf "netns del $ns%s\n" "${nodes[@]}" | ip -force -batch - 2>/dev/null
}

# Two ends, named after both nodes: l1-s1 in l1, s1-l1 in s1.
cable() {
	ends[$1]+=" $1-$2" ends[$2]+=" $2-$1"
	cables+="link add $1-$2 netns $ns$1 type veth peer name $2-$1 netns $ns$2"$'\n'
}

# What node $1 has: its interfaces, addresses and routes; ECMP over the spines.
configuration() {
	local n=$1 l s x
	# shellcheck disable=SC2086 # words, on purpose
	printf 'link set %s up gso_max_segs 1\n' ${ends[$n]}
	case $n in
	h*)	l=l${n:1:1}
		echo "addr add $(address "$n")/32 dev $n-$l"
		echo "route add 169.254.0.1 dev $n-$l"
		echo "route add default via 169.254.0.1 dev $n-$l" ;;
	l*)	for x in "${hosts[@]}"; do
			[[ ${x:1:1} == "${n:1}" ]] || continue
			echo "addr add 169.254.0.1/32 dev $n-$x"
			echo "route add $(address "$x")/32 dev $n-$x"
		done
		for s in 1 2; do
			echo "addr add 10.201.${n:1}$s.0/31 dev $n-s$s"
		done
		for l in "${leaves[@]}"; do
			[[ $l != "$n" ]] && echo "route add 10.200.${l:1}.0/24 nexthop via 10.201.${n:1}1.1 dev $n-s1 nexthop via 10.201.${n:1}2.1 dev $n-s2"
		done ;;
	s*)	for l in "${leaves[@]}"; do
			echo "addr add 10.201.${l:1}${n:1}.1/31 dev $n-$l"
		done
		for l in "${leaves[@]}"; do
			echo "route add 10.200.${l:1}.0/24 via 10.201.${l:1}${n:1}.0 dev $n-$l"
		done ;;
	esac
}

up() {
	local n l s h k=1 cables='' with=()
	local -A ends=()
	for l in "${leaves[@]}"; do
		for s in "${spines[@]}"; do cable "$l" "$s"; done
	done
	for h in "${hosts[@]}"; do cable "$h" "l${h:1:1}"; done
	{ printf "netns add $ns%s\n" "${nodes[@]}"; echo "$cables"; } |
		ip -batch - || return 1
	for n in "${nodes[@]}"; do
		# With one seed, packets there and back take the same spine, and
		# no probe could tell the two directions of a link apart.
		on "$n" sysctl -qw net.ipv4.ip_forward=1 \
			net.ipv4.fib_multipath_hash_seed=$((k++)) \
			net.ipv4.fib_multipath_hash_policy=3 \
			net.ipv4.fib_multipath_hash_fields=0x37 \
			net.ipv6.conf.all.disable_ipv6=1 \
			net.ipv6.conf.default.disable_ipv6=1
		configuration "$n" | ip -n "$ns$n" -batch - || return 1
	done
	for h in "${hosts[@]}"; do
		with+=("$h=$(address "$h")")
	done
	coproc traffic { exec "$all/traffic" "$ns" "$temp" "${spines[@]}" \
		"${leaves[@]}" "${with[@]}"; }
	hear ready && paths
}

tell() { echo "$*" >&"${traffic[1]}"; }
hear() { # WORD: what traffic says when something is done
	local word
	read -r -t 20 -u "${traffic[0]}" word && [[ $word == "$1" ]]
}

# The path of each probe there and back, as the nodes route it.
paths() {
	local h d p l
	rm -f "$temp"/ask-*
	for h in "${hosts[@]}"; do
		for d in "${hosts[@]}"; do
			[[ ${h:1:1} != "${d:1:1}" ]] || continue
			for ((p = 20000; p < 20008; p++)); do
				echo "$h,$d,$p"
			done
		done
	done >"$temp/probes"
	awk -F , -v dir="$temp" '
	function ip(h) { return "10.200." substr(h, 2, 1) "." substr(h, 3, 1) }
	function ask(leaf, to, from, host, sport, dport) {
		print "route get " ip(to) " from " ip(from) " iif " leaf "-" \
			host " ipproto udp sport " sport " dport " dport \
			>(dir "/ask-" leaf) }
	{ ask("l" substr($1, 2, 1), $2, $1, $1, $3, 7777)
	  ask("l" substr($2, 2, 1), $1, $2, $2, 7777, $3) }' "$temp/probes"
	for l in "${leaves[@]}"; do
		ip -n "$ns$l" -batch "$temp/ask-$l" 2>/dev/null |
			sed -n 's/.* dev l[0-9]-\(s[0-9]\).*/\1/p' >"$temp/got-$l"
	done
	awk -F , -v dir="$temp" '{
		sl = "l" substr($1, 2, 1); dl = "l" substr($2, 2, 1)
		getline there <(dir "/got-" sl); getline back <(dir "/got-" dl)
		print $0 "," $1 ">" sl " " sl ">" there " " there ">" dl " " \
			dl ">" $2 " " $2 ">" dl " " dl ">" back " " \
			back ">" sl " " sl ">" $1 }' "$temp/probes" >"$temp/paths"
}

# ---- faults ------------------------------------------------------------------

repair() {
	local k
	for ((k = 0; k < ${#undo[@]}; k++)); do
		${undo[k]} 2>/dev/null
	done
	undo=()
}

# drop A B RULE: on what B receives from A.
drop() {
	printf 'table netdev t {\n chain from_%s {\n  type filter hook ingress device "%s" priority 0;\n  %s\n }\n}\n' \
		"$1" "$2-$1" "$3" | on "$2" nft -f -
	undo+=("on $2 nft delete table netdev t")
}

fault() { # KIND A B
	case $1 in
	loss) drop "$2" "$3" 'meta protocol ip numgen random mod 1000 < 20 drop' ;;
	subset) drop "$2" "$3" 'meta protocol ip meta l4proto { tcp, udp } th sport & 3 == 0 drop' ;;
	corrupt) drop "$2" "$3" 'meta protocol ip meta l4proto tcp numgen random mod 100 < 3 @th,96,8 set 0' ;;
	mtu)	ip -n "$ns$3" link set "$3-$2" mtu 700
		undo+=("ip -n $ns$3 link set $3-$2 mtu 1500") ;;
	limit)	on "$2" tc qdisc add dev "$2-$3" root tbf rate 300kbit burst 2kb \
			latency 5ms
		undo+=("on $2 tc qdisc del dev $2-$3 root") ;;
	flap)	ip -n "$ns$3" link set "$3-$2" down
		sleep 0.2
		ip -n "$ns$3" link set "$3-$2" up
		ip -n "$ns$3" route replace "10.200.${2:1}.0/24" \
			via "10.201.${2:1}${3:1}.0" dev "$3-$2" ;;
	application) tell lose "$3" 50 && hear ok ;;
	esac
}

# ---- evidence ----------------------------------------------------------------

evidence() { # T0 T1
	rcacompose read csv --agent counter --entity 'rx:{ifname}' \
		--rule 'rx_dropped faulty>5 healthy<=0' \
		--rule 'rx_errors faulty>5 healthy<=0' \
		--rule 'carrier_changes faulty>0 healthy<=0' \
		--previous "$temp/before" --previous-at "$1" \
		--at "$2" "$temp/after"
	awk -F , 'NR == FNR { path[$1 $2 $3] = $4; next }
		FNR == 1 { print "src,dst,sport,since,time,sent,recv,path" }
		{ print $0 "," path[$1 $2 $3] }' "$temp/paths" "$temp/rows" |
		rcacompose read probes --agent probe --at "$2"
	rcacompose read csv --header retransmits --agent retrans \
		--entity flow:x --since "$1" --at "$2" \
		--rule 'retransmits gauge faulty>4 healthy<=1' "$temp/sent"
}

describe() { # ID SRC DST T0 T1 TRUTH
	local a b s la=l${2:1:1} lb=l${3:1:1}
	printf 'incident\tid=%s\tstart=%s\tend=%s\tnow=%s\n' "$1" "$4" "$5" "$5"
	printf 'flow\tid=x\tsrc=%s\tdst=%s\n' "$2" "$3"
	for s in "${spines[@]}"; do
		printf 'path\tflow=x\thops=%s\n' \
			"$2>$la $la>$s $s>$lb $lb>$3 $3>$lb $lb>$s $s>$la $la>$2"
	done
	printf 'candidate\tentity=host:%s\n' "$2" "$3"
	printf 'truth\tentity=%s\n' "$6"
	for a in "${nodes[@]}"; do
		for b in "${nodes[@]}"; do
			printf 'alias\tentity=link:%s>%s\tsame=rx:%s-%s\n' \
				"$a" "$b" "$b" "$a"
		done
	done
}

# pick VARIABLE WORD...: one of the words. Not in a subshell, where RANDOM
# would not go on.
pick() {
	local -n chosen=$1
	shift $((1 + RANDOM % ($# - 1)))
	# shellcheck disable=SC2034
	chosen=$1
}

# ---- incidents ---------------------------------------------------------------

incident() { # KIND NUMBER: everything about one, as records
	local kind=$1 src dst la lb s link a b k truth=none t0 t1 other spine
	pick src "${hosts[@]}"
	# shellcheck disable=SC2046 # words, on purpose
	pick dst $(printf '%s\n' "${hosts[@]}" | grep -v "^h${src:1:1}")
	la=l${src:1:1} lb=l${dst:1:1}
	pick s "${spines[@]}"
	pick link "$la $s" "$s $lb"
	[[ $kind != flap ]] || pick link "$la $s" "$lb $s"
	[[ $kind != application ]] || link="$lb $dst"
	read -r a b <<<"$link"
	for ((k = RANDOM % 4; k > 0; k--)); do # faults that were there before
		# shellcheck disable=SC2046 # words, on purpose
		pick other $(printf '%s\n' "${leaves[@]}" | grep -v "$la\|$lb")
		pick spine "${spines[@]}"
		drop "$spine" "$other" \
			'meta protocol ip numgen random mod 100 < 5 drop' 2>/dev/null
	done
	case $kind in
	none) ;;
	application) truth=host:$dst ;;
	flap) truth=link:$a--$b ;;
	*) truth="link:$a>$b" ;;
	esac
	tell connect "$src" "$dst" && hear ok || return 1
	t0=${EPOCHREALTIME%???}
	tell count before && hear ok || return 1
	[[ $kind == flap ]] || fault "$kind" "$a" "$b"
	tell run && hear middle || return 1
	[[ $kind != flap ]] || fault "$kind" "$a" "$b"
	tell stop && hear "done" || return 1
	tell count after && hear ok || return 1
	t1=${EPOCHREALTIME%???}
	repair
	[[ $kind != application ]] || { tell lose "$dst" 0 && hear ok; }
	[[ $kind != flap ]] || paths # with the routes that are there now
	describe "$2-$kind" "$src" "$dst" "$t0" "$t1" "$truth"
	evidence "$t0" "$t1" | grep ^evidence
}

# Its share of the incidents, on a fabric of its own.
lane() {
	local k
	# Not local: the trap needs them, and this is a shell of its own.
	ns=se$$-$1- temp=$all/lane-$1 traffic_PID=
	undo=() # commands that repair what was broken
	mkdir "$temp"
	trap down EXIT
	up || exit 1
	for ((k = $1; k < ${#plan[@]}; k += lanes)); do
		RANDOM=${seeds[k]}
		incident "${plan[k]}" $((k + 1)) >"$all/incident-$k" || exit 1
	done
}

SECONDS=0
echo "# seed $seed"
RANDOM=$seed
plan=() seeds=() # of each incident, whichever lane it falls to
for ((k = 0; k < rounds; k++)); do
	for kind in ${KINDS:-none loss subset mtu flap limit corrupt application}; do
		plan+=("$kind") seeds+=($((RANDOM << 15 | RANDOM)))
	done
done
jobs=() failed=0
trap 'kill "${jobs[@]}" 2>/dev/null; wait; rm -rf "$all"' EXIT
for ((k = 0; k < lanes && k < ${#plan[@]}; k++)); do
	(lane $k) </dev/null &
	jobs+=($!)
done
for k in "${jobs[@]}"; do
	wait "$k" || failed=1
done
[[ $failed == 0 ]] || { echo "a fabric did not work"; exit 1; }
for k in "${!plan[@]}"; do
	cat "$all/incident-$k"
done >"$all/corpus"
rcacompose -s clos -q "$all/corpus" | tr '\t' ' ' | sed 's/^verdict //'
rcacompose score -s clos "$all/corpus" >"$all/score"
grep -E 'name=(false-culprit|miss|false-innocent|coverage)'$'\t' "$all/score" |
	tr '\t' ' '
echo "# ${#plan[@]} incidents in $SECONDS s"
[[ -z ${KEEP:-} ]] || cp "$all/corpus" "$KEEP"
k() { sed -n "s/.*name=$1\tk=\([0-9]*\)\t.*/\1/p" "$all/score"; }
[[ -n $(k false-culprit) ]] || { echo "no score"; exit 1; }
wrong=$(($(k false-culprit) + $(k false-innocent)))
# Of seven kinds of faults, two that no agent can see.
[[ $(k miss) -le $((4 * rounds + rounds / 2)) || -n ${KINDS:-} ]] ||
	wrong=$((wrong + 1))
echo "$((${#plan[@]} - wrong)) passed, $wrong failed, 0 skipped"
[[ $wrong == 0 ]]
