#!/bin/sh
# The layer rules of the tree, checked from the lists in the Makefile:
#
#   - a file of lib/ includes headers of its own layer or a lower one
#   - every module of lib/ is in exactly one list
#   - a command includes nothing of another command
#   - each third-party header is included by exactly one file
#   - below CLI nothing exits, reads the environment, touches signals or the
#     locale, or writes to a standard stream
#
# usage: tests/layers.sh [ROOT]     prints what is wrong; status 1 if anything
set -u
export LC_ALL=C
cd "${1:-.}" || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

complain() {
	echo "layers: $*"
	echo >>"$work/wrong"
}

# "module rank" a line, lowest layer first.
rank=0
for layer in BASE INPUT DOMAIN API CLI; do
	rank=$((rank + 1))
	for m in $(make -s --no-print-directory "print-$layer"); do
		echo "$m $rank"
	done
done >"$work/ranks"
# What is in front of every translation unit is in front of all layers.
echo "banned 0" >>"$work/ranks"
# The public header stands alone, and has the error codes all of us use.
echo "straightedge 0" >>"$work/ranks"

rank_of() {
	awk -v m="$1" '$1 == m { print $2; exit }' "$work/ranks"
}

includes_of() {
	sed -n 's/^[ \t]*#[ \t]*include[ \t]*"\([^"]*\)".*/\1/p' "$1"
}

cut -d ' ' -f 1 "$work/ranks" | sort | uniq -d | while read -r m; do
	complain "$m is in two lists"
done

for f in lib/*.c lib/*.h; do
	[ -e "$f" ] || continue
	m=$(basename "$f" | sed 's/\.[ch]$//')
	mine=$(rank_of "$m")
	if [ -z "$mine" ]; then
		# A header without a source takes the layer of what it needs.
		[ "$f" = "lib/$m.c" ] && complain "$f is in no layer list"
		continue
	fi
	for h in $(includes_of "$f"); do
		theirs=$(rank_of "${h%.h}")
		if [ ! -e "lib/$h" ]; then
			complain "$f includes $h, which is not in lib/"
		elif [ -z "$theirs" ]; then
			complain "$f includes $h, which is in no layer list"
		elif [ "$theirs" -gt "$mine" ]; then
			complain "$f includes $h of a higher layer"
		fi
	done
done

# In a command: headers of lib/ by their names, its own by theirs.
find cmd -name '*.[ch]' 2>/dev/null | sort | while read -r f; do
	dir=$(dirname "$f")
	for h in $(includes_of "$f"); do
		[ -e "lib/$h" ] && continue
		case $h in
		# A folder of the command's own (a preloaded library).
		*/*) [ -e "$dir/$h" ] ||
			complain "$f includes $h of another place" ;;
		*)
			[ "$dir" = cmd ] || [ ! -e "$dir/$h" ] || continue
			complain "$f includes $h, which is not its own"
			;;
		esac
	done
done

# Everything in <> that is not C11 or POSIX is third-party.
known=" assert complex ctype dirent dlfcn errno fcntl fenv fnmatch float ftw \
getopt glob grp inttypes langinfo libgen limits link linux locale math netdb \
poll pthread pwd regex sched semaphore setjmp signal spawn stdalign stdarg \
stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string strings \
syslog termios tgmath threads time ucontext unistd wchar wctype elf endian \
sys arpa net netinet asm immintrin x86intrin cpuid arm_neon byteswap features "
find lib cmd -name '*.[ch]' -exec \
	grep -HEo '^[[:blank:]]*#[[:blank:]]*include[[:blank:]]*<[^>]*>' {} + \
	2>/dev/null |
	sed 's/:.*</ /; s/>$//' | sort -u >"$work/system"
while read -r f h; do
	top=${h%%/*}
	case $known in
	*" ${top%.h} "*) ;;
	*) echo "$h $f" ;;
	esac
done <"$work/system" | sort >"$work/foreign"
cut -d ' ' -f 1 "$work/foreign" | uniq -d | while read -r h; do
	complain "<$h> is included by" \
		"$(sed -n "s|^$h ||p" "$work/foreign" | tr '\n' ' ')"
done

# Comments do not count; words must stand alone.
words='exit|_exit|quick_exit|abort|getenv|secure_getenv|setenv|putenv|signal'
words="$words|sigaction|sigprocmask|setlocale|printf|puts|putchar|perror"
words="$words|stdin|stdout|stderr|getopt|getopt_long|isatty|umask"
awk '$2 < 4 && $2 > 0 { print $1 }' "$work/ranks" | while read -r m; do
	for f in "lib/$m.c" "lib/$m.h"; do
		[ -e "$f" ] || continue
		sed 's://.*::' "$f" | awk '
			{ line = $0 }
			# Blank out comments and strings, keep line numbers.
			{
				out = ""
				while (length(line)) {
					if (in_c) {
						i = index(line, "*/")
						if (!i) { line = ""; continue }
						line = substr(line, i + 2)
						in_c = 0
						continue
					}
					if (match(line, /\/\*|"([^"\\]|\\.)*"/)) {
						out = out substr(line, 1, RSTART - 1)
						if (substr(line, RSTART, 2) == "/*")
							in_c = 1
						line = substr(line, RSTART + RLENGTH)
						continue
					}
					out = out line
					line = ""
				}
				print NR ":" out
			}' |
			grep -E "(^|[^A-Za-z0-9_])($words)([^A-Za-z0-9_]|\$)" |
			grep -vE '__attribute__' |
			while IFS=: read -r n text; do
				complain "$f:$n: below CLI:$text"
			done
	done
done

[ ! -e "$work/wrong" ]
