# What all commands share: help, version, usage errors, output that fails,
# option letters, forms; and that help, manual pages, completions and record
# types say the same. It finds the commands in the Makefile; a new one adds its
# line to `typical` below.

# The option tables of all commands and verbs, once for all tests.
setup_file() {
	load common
	local c v dir=$BATS_FILE_TMPDIR
	: >"$dir/programs"
	for c in $(make -s --no-print-directory -C "$root" print-COMMANDS); do
		echo "$c" >>"$dir/programs"
		"$root/tests/tools/options" "$c" >"$dir/$c"
		"$root/tests/tools/options" --verbs "$build/$c" | cut -f 1 |
			while read -r v; do
				echo "$c $v" >>"$dir/programs"
				"$root/tests/tools/options" "$c" "$v" \
					>"$dir/$c $v"
			done
	done
}

setup() {
	load common
	commands=$(grep -v ' ' "$BATS_FILE_TMPDIR/programs") ||
		skip "not run: there is no command yet"
	cd "$BATS_TEST_TMPDIR"
}

# Fails the test, but lets it go on to the next command.
wrong() {
	printf '%s\n' "$*" >&2
	echo >>"$BATS_TEST_TMPDIR/.wrong"
}

teardown() {
	[[ ! -e $BATS_TEST_TMPDIR/.wrong ]]
}

# "COMMAND" and "COMMAND VERB", one a line.
programs() {
	cat "$BATS_FILE_TMPDIR/programs"
}

options_of() {
	cat "$BATS_FILE_TMPDIR/$1"
}

# -x and --long, one a line, sorted; of a command with all its verbs.
names_of() {
	cat "$BATS_FILE_TMPDIR/$1" "$BATS_FILE_TMPDIR/$1 "* 2>/dev/null |
		awk -F '\t' '
			$1 != "-" { print "-" $1 }
			{ print "--" $2 }' | sort -u
}

# The words of a run that succeeds (status 0 or 1) and prints records; makes
# its input in the current directory.
typical() {
	seq 1 2000 >data
	case $1 in
	fpdump) echo fpdump data ;;
	fpdiff)
		fpdump -o a.fp data
		echo fpdiff a.fp a.fp
		;;
	rcacompose)
		printf 'evidence\tentity=host:a\tagent=mce\tstatus=faulty\n' >ev
		echo rcacompose -s gpu-node ev
		;;
	tracegate)
		printf '[{"ph":"X","name":"a","ts":1,"dur":5}]' >t.json
		echo tracegate path t.json
		;;
	gpureplay)
		echo gpureplay devices
		;;
	pmucount)
		{
			printf 'counter\tname=instructions\texact=yes\n'
			printf 'pmu\tfunc=f\tcalls=2\tself.instructions=10\t'
			printf 'incl.instructions=10\terr.instructions=0\n'
		} | "$build"/tools/seal of=pmu >a.pmu
		echo pmucount diff a.pmu a.pmu
		;;
	*) return 1 ;;
	esac
}

# Its output is more than a pipe holds.
bulky() {
	case $1 in
	fpdump)
		seq 1 200000 >big
		echo fpdump --chunk=256 big
		;;
	tracegate)
		awk 'BEGIN { for (; i < 40000; i++) printf \
			"{\"ph\":\"X\",\"name\":\"a\",\"ts\":%d,\"dur\":5}\n", i * 9
			}' >big
		echo tracegate --all big
		;;
	*) return 1 ;;
	esac
}

# Does an example use a command that is not there yet?
needs_more() {
	local c
	for c in fpdump fpdiff gpureplay pmucount rcacompose tracegate; do
		[[ -x $build/$c ]] || ! grep -qw "$c" "$1" || return 0
	done
	return 1
}

# capture COMMAND...: runs it; $rc, its streams in the files out and err, and
# the lines of err in the array said. (Few processes: there are many runs.)
capture() {
	rc=0
	"$@" >out 2>err </dev/null || rc=$?
	mapfile -t said <err
}

@test "every command prints its help and version on standard output" {
	local p
	while read -r p; do
		for word in --help -h --version -V; do
			capture $p $word
			[[ $rc == 0 && -s out && ! -s err ]] ||
				wrong "$p $word: status $rc"
		done
		[[ $(cat out) =~ ^${p%% *}( [a-z-]+)?\ [0-9]+\.[0-9]+\.[0-9]+$ ]] ||
			wrong "$p --version: $(cat out)"
	done < <(programs)
}

@test "every command's help fits 80 columns and a screen" {
	local p
	while read -r p; do
		capture $p --help
		[[ $(head -n 1 out) == "usage: $p"* ]] ||
			wrong "$p --help does not begin with its usage"
		expand out | awk -v p="$p" 'length($0) > 80 {
			print p " --help: " length($0) " columns: " $0; exit 1 }' ||
			wrong "$p"
		[[ $(wc -l <out) -le 60 ]] || wrong "$p: $(wc -l <out) lines"
		[[ -n $(options_of "$p") ]] || wrong "$p: no options in --help"
		options_of "$p" | awk -F '\t' '$4 == "" { exit 1 }' ||
			wrong "$p: an option without help"
	done < <(programs)
}

@test "every command answers a usage error with two lines and status 2" {
	local p long
	while read -r p; do
		long=$(options_of "$p" | awk -F '\t' '
			$3 !~ /^[[-]/ { print $2; exit }')
		for words in --no-such-option '-#' --hel --versio \
			--help=yes "${long:+--$long}"; do
			[[ -n $words ]] || continue
			capture $p $words
			[[ $rc == 2 && ! -s out && ${#said[@]} == 2 &&
				${said[0]} == "$p: "* &&
				${said[1]} == "usage: see $p --help" ]] ||
				wrong "$p $words: status $rc, ${said[*]}"
		done
	done < <(programs)
}

@test "every command refuses prefixes of long options" {
	local p name
	while read -r p; do
		for name in format help $(options_of "$p" | head -n 2 | cut -f 2); do
			[[ ${#name} -gt 1 ]] || continue
			capture $p "--${name%?}"
			[[ $rc == 2 && ${said[0]} == \
				"$p: unknown option --${name%?}" ]] ||
				wrong "$p --${name%?}: status $rc, ${said[*]}"
		done
	done < <(programs)
}

# letter, long name (* any), commands (* all)
letters() {
	cat <<'END'
F format *
o output *
q quiet *
v verbose *
E evidence *
z compress *
l label *
t type-in *
j jobs *
n * *
b backend *
h help *
V version *
c check fpdump
m mask fpdiff
f function pmucount
p pid pmucount
p pid tracegate
s stack rcacompose
i incident rcacompose
r rules tracegate
END
}

@test "every command means the same by an option letter" {
	local p
	letters >table
	while read -r p; do
		options_of "$p" | awk -v c="${p%% *}" '
			NR == FNR {
				split($0, t, " ")
				ok[t[1], t[2], t[3]] = 1
				if (t[3] == "*") letter[t[2]] = t[1]
				next
			}
			{ split($0, o, "\t"); l = o[1]; n = o[2] }
			l != "-" && !((l, n, "*") in ok) &&
				!((l, "*", "*") in ok) && !((l, n, c) in ok) {
				print "-" l " --" n " is not in the table"
				bad = 1
			}
			n in letter && letter[n] != l {
				print "--" n " has the letter " l
				bad = 1
			}
			END { exit bad }' table - || wrong "$p"
	done < <(programs)
}

@test "every command has a manual page with the same options as --help" {
	local c
	for c in $commands; do
		[[ -e $root/man/$c.1 ]] || {
			wrong "no man/$c.1"
			continue
		}
		names_of "$c" >help
		"$root/tests/tools/page" options "$root/man/$c.1" | sort -u >page
		same_text help page || wrong "$c.1 and $c --help differ"
		for s in NAME SYNOPSIS DESCRIPTION "EXIT STATUS" EXAMPLES \
			"SEE ALSO"; do
			grep -q "^\.Sh $s\$" "$root/man/$c.1" ||
				wrong "$c.1 has no section $s"
		done
	done
}

# bats test_tags=slow
@test "every command's completions are what --help makes of them" {
	# shellcheck disable=SC2086 # a list
	BUILD=$build "$root/tests/tools/completions" made $commands
	for f in made/*/*; do
		same_text "$root/completions/${f#made/}" "$f" ||
			wrong "make completions: ${f#made/} is not up to date"
	done
}

@test "every command's completions work in bash" {
	local c
	for c in $commands; do
		run -0 bash -c '
			. "$1"
			COMP_WORDS=("$2" --form) COMP_CWORD=1
			_$2
			[[ ${COMPREPLY[*]} == --format ]] || exit 1
			COMP_WORDS=("$2" --format = j) COMP_CWORD=3
			_$2
			[[ ${COMPREPLY[*]} == json ]] || exit 2
			COMP_WORDS=("$2" -o .) COMP_CWORD=2
			_$2
			[[ ${#COMPREPLY[@]} -gt 0 ]] || exit 3
		' - "$root/completions/bash/$c" "$c"
	done
}

@test "every command's completions are accepted by zsh and fish" {
	local c
	need zsh fish
	for c in $commands; do
		zsh -n "$root/completions/zsh/_$c" || wrong "zsh $c"
		HOME=$BATS_TEST_TMPDIR fish -n \
			"$root/completions/fish/$c.fish" || wrong "fish $c"
		HOME=$BATS_TEST_TMPDIR run -0 fish --no-config -c \
			"source '$root/completions/fish/$c.fish'
			complete -C '$c --format '"
		[[ $output == *json* ]] || wrong "fish $c --format: $output"
	done
}

@test "every command's manual page lists the reason codes of its source" {
	local c
	for c in $commands; do
		find "$root/cmd/$c" "$root/cmd/$c.c" -name '*.[ch]' \
			2>/dev/null >sources || true
		xargs sed -n \
			's/^#define REASON_[A-Z0-9_]*[ \t]*"\([^"]*\)".*/\1/p' \
			<sources >codes
		# Commands that judge have the two that input can cause.
		if names_of "$c" | grep -qx -- --strict; then
			sed -n 's/^#define REASON_[A-Z]* "\(.*\)"/\1/p' \
				"$root/lib/verdict.h" >>codes
		fi
		sort -u codes -o codes
		"$root/tests/tools/page" reasons "$root/man/$c.1" |
			sort -u >page
		same_text codes page || wrong "$c: REASONS"
		xargs grep -nE 'reason = "|"reason", "' <sources &&
			wrong "$c: a reason code without a name"
		[[ $(sort codes | uniq -d) == "" ]] || wrong "$c: a code twice"
	done
}

@test "every record type has its keys in a section 5 page" {
	"$build/tools/schema" | awk '
		{ line[$1] = line[$1] " " $2 ":" $3 $4 }
		END { for (t in line) print t ":" line[t] }' | sort >schema
	"$root/tests/tools/page" types "$root"/man/*.5 >pages
	same_text schema pages
}

# bats test_tags=slow
@test "every manual page's examples do what they say" {
	local page f want got tree=$BATS_TEST_TMPDIR/tree
	mkdir tree
	(
		cd "$root"
		git ls-files -z 2>/dev/null | tar --null -T - -cf - ||
			tar --exclude=./build --exclude=./.git -cf - .
	) | tar -xf - -C tree 2>/dev/null
	[[ -e tree/Makefile ]]
	for page in "$root"/man/*.[1578]; do
		mkdir -p examples
		rm -f examples/*
		"$root/tests/tools/page" examples examples "$page"
		for f in examples/*.sh; do
			[[ -e $f ]] || continue
			grep -q '^# not run:' "$f" && continue
			needs_more "$f" && continue
			want=$(sed -n 's/^# exits \([0-9]*\)$/\1/p' "$f")
			got=0
			(cd "$tree" && timeout 20 bash "../$f") \
				>out 2>err </dev/null || got=$?
			[[ $got == "${want:-0}" ]] || wrong "${page##*/}: status" \
				"$got, expected ${want:-0}:" "$(cat "$f" err)"
		done
	done
}

@test "every command fails on a full disk" {
	[[ -c /dev/full ]] || skip "not run: no /dev/full"
	local c p words
	while read -r p; do
		for word in --help --version; do
			rc=0
			$p $word >/dev/full 2>err || rc=$?
			[[ $rc == 2 && $(wc -l <err) == 1 ]] ||
				wrong "$p $word: status $rc, $(cat err)"
		done
	done < <(programs)
	for c in $commands; do
		words=$(typical "$c") ||
			wrong "$c: add a line to typical() in contract.bats"
		for form in lines json table csv; do
			rc=0
			$words -F $form >/dev/full 2>err || rc=$?
			[[ $rc == 2 && $(wc -l <err) == 1 &&
				$(cat err) == "$c"[:\ ]*'standard output: cannot write: '* ]] ||
				wrong "$words -F $form: status $rc, $(cat err)"
		done
		rc=0
		$words -o /dev/full 2>err || rc=$?
		[[ $rc == 2 && $(cat err) == "$c"[:\ ]*'/dev/full: cannot write: '* ]] ||
			wrong "$words -o /dev/full: status $rc"
		rc=0
		$words >&- 2>err || rc=$?
		[[ $rc == 2 && -s err ]] || wrong "$words with stdout closed: $rc"
	done
}

@test "every command ends quietly when its reader goes away" {
	local c words
	for c in $commands; do
		words=$(bulky "$c") || continue
		rm -f pipe
		mkfifo pipe
		(exec 3<pipe) &
		exec 4>pipe
		wait $!
		rc=0
		(
			trap - PIPE
			exec $words
		) >&4 2>err || rc=$?
		exec 4>&-
		[[ $rc == 141 && ! -s err ]] || wrong "$words: $rc, $(cat err)"
	done
}

@test "every command without an operand refuses a terminal as its input" {
	need script
	local p
	while read -r p; do
		rc=0
		timeout 10 script -qec "stty cols 80; $p" log \
			>out 2>&1 </dev/null || rc=$?
		# A verb that needs no input may do its work; none may wait.
		[[ $rc != 124 ]] || wrong "$p waits for a terminal"
		[[ $p == *\ * || $rc == 2 ]] || wrong "$p: status $rc, $(cat out)"
	done < <(programs)
}

@test "every command prints the same records in every form" {
	local c words rows n
	for c in $commands; do
		words=$(typical "$c") || continue
		capture $words
		n=$rc
		[[ $n -le 1 ]] || wrong "$words: status $n, $(cat err)"
		mv out lines
		[[ $(tail -n 1 lines) == end$'\t'* ]] || wrong "$c: no end"
		for form in json table tsv csv; do
			capture $words -F $form
			[[ $rc == "$n" && ! -s err ]] ||
				wrong "$words -F $form: status $rc, $(cat err)"
			case $form in
			json)
				[[ $(wc -l <out) == $(grep -vc '^#' lines) ]] ||
					wrong "$c -F json: other records"
				! command -v jq >/dev/null ||
					jq -e . out >/dev/null || wrong "$c: json"
				;;
			tsv)
				awk -F '\t' 'NR > 1 && NF != n { exit 1 }
					{ n = NF }' out || wrong "$c -F tsv: cells"
				rows=$(wc -l <out)
				;;
			csv)
				[[ $(wc -l <out) == "$rows" ]] ||
					wrong "$c: -F csv and -F tsv differ"
				;;
			esac
		done
		capture $words -F nosuch
		[[ $rc == 2 && $(wc -l <err) == 2 ]] || wrong "$c -F nosuch: $rc"
		capture $words -q
		[[ $rc == "$n" ]] || wrong "$words -q: status $rc, not $n"
		[[ $(grep -vc '^verdict' out) == 0 ]] || wrong "$c -q: $(cat out)"
	done
}

@test "every command gives the same bytes again, to a file, compressed, in any locale" {
	local c words
	for c in $commands; do
		words=$(typical "$c") || continue
		capture $words --now=0
		mv out first
		capture $words --now=0
		cmp first out || wrong "$words: other bytes the second time"
		LC_ALL=C.UTF-8 LANG=de_DE.UTF-8 capture $words --now=0
		cmp first out || wrong "$words: other bytes in another locale"
		capture $words --now=0 -o file
		[[ ! -s out ]] || wrong "$words -o: prints something"
		cmp first file || wrong "$words -o: other bytes"
		capture $words --now=0 -z
		gzip -dc out | cmp first || wrong "$words -z: other bytes"
	done
}

@test "every command names a missing operand once and goes to status 2" {
	local c
	for c in $commands; do
		case $c in
		fpdiff) capture fpdiff none-1 none-2 ;;
		rcacompose) capture rcacompose -s clos none-1 ;;
		pmucount) capture pmucount report none-1 ;;
		*) capture "$c" none-1 ;;
		esac
		[[ $rc == 2 && $(grep -c none-1 err) == 1 ]] ||
			wrong "$c none-1: status $rc, $(cat err)"
		grep -q '^verdict' out && wrong "$c: a verdict with status 2"
	done
	true
}

@test "every layer of the library includes what lies below it only" {
	run -0 "$root/tests/layers.sh" "$root"
}

@test "make install puts everything in place, and make uninstall takes it away" {
	local c
	run -0 make -s -C "$root" BUILD="$build" DESTDIR="$PWD/to" \
		PREFIX=/opt/se install
	for c in $commands; do
		[[ -x to/opt/se/bin/$c ]]
		[[ -e to/opt/se/share/man/man1/$c.1 ]]
		run -0 env PATH="$PWD/to/opt/se/bin:/usr/bin:/bin" "$c" --version
		[[ $output == "$c "* ]]
		run -0 grep -q "$c" \
			"to/opt/se/share/bash-completion/completions/$c" \
			"to/opt/se/share/zsh/site-functions/_$c" \
			"to/opt/se/share/fish/vendor_completions.d/$c.fish"
	done
	[[ -e to/opt/se/share/man/man5/straightedge-records.5 ]]
	run -0 make -s -C "$root" BUILD="$build" DESTDIR="$PWD/to" \
		PREFIX=/opt/se uninstall
	run -0 find to ! -type d
	[[ $output == "" ]]
}
