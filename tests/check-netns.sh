#!/bin/bash
# make check-netns: rcacompose on a live fabric.
#
# Builds a leaf-spine fabric of network namespaces, breaks something in it,
# probes and counts, and asks rcacompose (stack clos) who it was: two incidents
# of each of eight kinds, 0 to 3 faults elsewhere that were there before, a
# fresh seed each time. All evidence comes from `rcacompose read` and from two
# small agents: tests/netns/traffic and the counters of `ip`. The symptom is a
# TCP flow of the complaining pair that runs while it is broken. Fails if
# anybody is blamed or cleared wrongly, or if fewer than half of the faults
# that probes or counters can see (five kinds) are found.
#
# usage: tests/check-netns.sh [SEED [ROUNDS]]	needs root, ip, tc, nft
# Environment: BUILD (build), KINDS (all), KEEP (a file for the records).
set -u
export LC_ALL=C
root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-build}
[[ $build == /* ]] || build=$root/$build
PATH=$build:$PATH

for tool in ip tc nft cc; do
	command -v $tool >/dev/null || { echo "not run: no $tool"; exit 0; }
done
[[ $(id -u) == 0 ]] || { echo "not run: needs root"; exit 0; }
ip netns add se-try 2>/dev/null || { echo "not run: no namespaces"; exit 0; }
ip netns exec se-try nft add table netdev t 2>/dev/null || {
	ip netns del se-try
	echo "not run: no nft in a namespace"
	exit 0
}
ip netns del se-try

seed=${1:-$(($(date +%s) % 100000))}
RANDOM=$seed
temp=$(mktemp -d)
spines=(s1 s2) leaves=(l1 l2 l3 l4) hosts=(h11 h12 h21 h22 h31 h41)
nodes=("${spines[@]}" "${leaves[@]}" "${hosts[@]}")
declare -A echoes=() # the process that answers on each host
undo=()             # commands that repair what was broken

down() {
	[[ ${#echoes[@]} == 0 ]] || kill "${echoes[@]}" 2>/dev/null
	wait 2>/dev/null
	for n in "${nodes[@]}"; do
		ip netns del "se-$n" 2>/dev/null
	done
}
trap 'down; rm -rf "$temp"' EXIT
cc -O2 -D_GNU_SOURCE -std=c11 -o "$temp/traffic" \
	"$root/tests/netns/traffic.c" || exit 1

on() { ip netns exec "se-$1" "${@:2}"; }
address() { echo "10.200.${1:1:1}.${1:2:1}"; }

# Two ends, named after both nodes: l1-s1 in l1, s1-l1 in s1.
cable() {
	echo "link add $1-$2 netns se-$1 type veth peer name $2-$1 netns se-$2"
}

up() { # one namespace a node, ECMP over both spines
	local n l s h x k=1
	for n in "${nodes[@]}"; do
		ip netns add "se-$n"
		# With one seed, packets there and back take the same spine, and
		# no probe could tell the two directions of a link apart.
		on "$n" sysctl -qw net.ipv4.ip_forward=1 \
			net.ipv4.fib_multipath_hash_seed=$((k++)) \
			net.ipv4.fib_multipath_hash_policy=3 \
			net.ipv4.fib_multipath_hash_fields=0x37 \
			net.ipv6.conf.all.disable_ipv6=1 \
			net.ipv6.conf.default.disable_ipv6=1
	done
	{ for l in "${leaves[@]}"; do
		for s in "${spines[@]}"; do cable "$l" "$s"; done
	  done
	  for h in "${hosts[@]}"; do cable "$h" "l${h:1:1}"; done
	} | ip -batch -
	for n in "${nodes[@]}"; do
		ip -n "se-$n" -o link | sed -n 's/^[0-9]*: \([^@:]*\)@.*/link set \1 up gso_max_segs 1/p' \
			>"$temp/up"
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
		esac >"$temp/routes"
		cat "$temp/up" "$temp/routes" | ip -n "se-$n" -batch -
	done
	for h in "${hosts[@]}"; do
		answer "$h" 0
	done
	for h in "${hosts[@]}"; do
		ready "$h"
	done
}

answer() { # HOST PER_MILLE: from now on it loses so many answers
	if [[ -n ${echoes[$1]:-} ]]; then
		kill "${echoes[$1]}"
		wait "${echoes[$1]}" 2>/dev/null
	fi
	: >"$temp/ready-$1"
	# Not `on`: the process itself is to be the one that ends.
	ip netns exec "se-$1" "$temp/traffic" echo "$2" >"$temp/ready-$1" &
	echoes[$1]=$!
}

ready() { # HOST: a late one looks like a broken one
	local k
	for ((k = 0; k < 1000; k++)); do
		[[ ! -s $temp/ready-$1 ]] || return 0
		sleep 0.01
	done
	echo "no answers from $1" >&2
	exit 1
}

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
	mtu)	ip -n "se-$3" link set "$3-$2" mtu 700
		undo+=("ip -n se-$3 link set $3-$2 mtu 1500") ;;
	limit)	on "$2" tc qdisc add dev "$2-$3" root tbf rate 300kbit burst 2kb \
			latency 5ms
		undo+=("on $2 tc qdisc del dev $2-$3 root") ;;
	flap)	sleep 1.1
		ip -n "se-$3" link set "$3-$2" down
		sleep 0.2
		ip -n "se-$3" link set "$3-$2" up
		ip -n "se-$3" route replace "10.200.${2:1}.0/24" \
			via "10.201.${2:1}${3:1}.0" dev "$3-$2" ;;
	esac
}

counters() { # what every interface has counted, one JSON text a node
	for n in "${nodes[@]}"; do
		ip -n "se-$n" -s -s -j link >"$temp/$1-$n"
	done
}

# The path of each probe there and back, as the nodes would route it.
paths() { # reads SRC,DST,SPORT,SENT,RECV
	cat >"$temp/rows"
	awk -F , -v dir="$temp" '
	function ip(h) { return "10.200." substr(h, 2, 1) "." substr(h, 3, 1) }
	function ask(leaf, to, from, host, sport, dport) {
		print "route get " ip(to) " from " ip(from) " iif " leaf "-" \
			host " ipproto udp sport " sport " dport " dport \
			>(dir "/ask-" leaf) }
	{ ask("l" substr($1, 2, 1), $2, $1, $1, $3, 7777)
	  ask("l" substr($2, 2, 1), $1, $2, $2, 7777, $3) }' "$temp/rows"
	local l
	for l in "${leaves[@]}"; do
		ip -n "se-$l" -batch "$temp/ask-$l" 2>/dev/null |
			sed -n 's/.* dev l[0-9]-\(s[0-9]\).*/\1/p' >"$temp/got-$l"
	done
	echo src,dst,sport,sent,recv,path
	awk -F , -v dir="$temp" '{
		sl = "l" substr($1, 2, 1); dl = "l" substr($2, 2, 1)
		getline there <(dir "/got-" sl); getline back <(dir "/got-" dl)
		print $0 "," $1 ">" sl " " sl ">" there " " there ">" dl " " \
			dl ">" $2 " " $2 ">" dl " " dl ">" back " " \
			back ">" sl " " sl ">" $1 }' "$temp/rows"
}

probe() {
	local src jobs=() start
	start=$(($(date +%s%3N) + 700)) # launching takes a while
	rm -f "$temp"/{rows,who,ask-*,got-*,probe-*}
	for src in "${hosts[@]}"; do
		(
			dst=()
			for h in "${hosts[@]}"; do
				[[ ${h:1:1} == "${src:1:1}" ]] || dst+=("$(address "$h")")
			done
			on "$src" "$temp/traffic" probe $start 8 "${dst[@]}" |
				sed "s/^10.200.\(.\).\(.\),/$src,h\1\2,/" \
				>"$temp/probe-$src"
		) &
		jobs+=($!)
	done
	wait "${jobs[@]}"
	cat "$temp"/probe-* | paths >"$temp/probes.csv"
}

evidence() { # SRC DST T0 T1
	local n
	for n in "${nodes[@]}"; do
		rcacompose read ip-link --agent counter --set host="$n" \
			--entity 'rx:{host}/{ifname}' \
			--rule 'rx.dropped faulty>5 healthy<=0' \
			--rule 'rx.errors faulty>5 healthy<=0' \
			--rule 'tx.carrier_changes faulty>0 healthy<=0' \
			--previous "$temp/before-$n" --previous-at "$3" \
			--at "$4" "$temp/after-$n"
	done
	rcacompose read probes --agent probe --since "$3" --at "$4" \
		"$temp/probes.csv"
	rcacompose read csv --header retransmits --agent retrans \
		--entity flow:x --since "$3" --at "$4" \
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
			printf 'alias\tentity=link:%s>%s\tsame=rx:%s/%s-%s\n' \
				"$a" "$b" "$b" "$b" "$a"
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

incident() { # KIND NUMBER: everything about one, as records
	local kind=$1 src dst la lb s link a b k truth=none t0 t1
	local other spine sender
	pick src "${hosts[@]}"
	# shellcheck disable=SC2046 # words, on purpose
	pick dst $(printf '%s\n' "${hosts[@]}" | grep -v "^h${src:1:1}")
	la=l${src:1:1} lb=l${dst:1:1}
	pick s "${spines[@]}"
	pick link "$la $s" "$s $lb"
	[[ $kind != flap ]] || pick link "$la $s" "$lb $s"
	read -r a b <<<"$link"
	if [[ $kind == application ]]; then
		answer "$dst" 50
		ready "$dst"
	fi
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
	t0=$(date +%s.%N | cut -c 1-14)
	counters before
	on "$src" "$temp/traffic" send 1800 16 "$(address "$dst")" \
		>"$temp/sent" &
	sender=$!
	if [[ $kind == flap ]]; then # in the middle of it
		fault "$kind" "$a" "$b" &
		probe
		wait $!
	else
		fault "$kind" "$a" "$b"
		probe
	fi
	wait "$sender"
	counters after
	t1=$(date +%s.%N | cut -c 1-14)
	repair
	[[ $kind != application ]] || answer "$dst" 0
	describe "$2-$kind" "$src" "$dst" "$t0" "$t1" "$truth"
	evidence "$src" "$dst" "$t0" "$t1" | grep ^evidence
	[[ $kind != application ]] || ready "$dst"
}

SECONDS=0
echo "# seed $seed"
count=0
up
for ((round = 0; round < ${2:-2}; round++)); do
	for kind in ${KINDS:-none loss subset mtu flap limit corrupt application}; do
		incident $kind $((++count)) >>"$temp/corpus" 2>"$temp/err" ||
			cat "$temp/err" >&2
	done
done
rcacompose -s clos -q "$temp/corpus" | tr '\t' ' ' | sed 's/^verdict //'
rcacompose score -s clos "$temp/corpus" >"$temp/score"
grep -E 'name=(false-culprit|miss|false-innocent|coverage)'$'\t' "$temp/score" |
	tr '\t' ' '
echo "# $count incidents in $SECONDS s"
[[ -z ${KEEP:-} ]] || cp "$temp/corpus" "$KEEP"
k() { sed -n "s/.*name=$1\tk=\([0-9]*\)\t.*/\1/p" "$temp/score"; }
rounds=${2:-2} # of seven kinds of faults, two that no agent can see
[[ $(k false-culprit) == 0 && $(k false-innocent) == 0 &&
	($(k miss) -le $((4 * rounds + rounds / 2)) || -n ${KINDS:-}) ]]
