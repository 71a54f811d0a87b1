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

lists=
for layer in BASE INPUT DOMAIN API CLI; do
	lists="$lists|$(make -s --no-print-directory "print-$layer")"
done

find lib cmd -name '*.[ch]' 2>/dev/null | sort | xargs awk -v lists="$lists" '
	function complain(text) {
		print "layers: " text
		bad = 1
	}
	function module(path) {
		sub(/.*\//, "", path)
		sub(/\.[ch]$/, "", path)
		return path
	}
	function folder(path) {
		sub(/\/[^\/]*$/, "", path)
		return path
	}

	# A command includes headers of lib/, and its own beside it.
	function check_command(f, h) {
		if (("lib/" h) in is_file)
			return
		if (folder(f) != "cmd" && (folder(f) "/" h) in is_file)
			return
		if (index(h, "/") && !index(h, "..")) {
			split(f, part, "/")
			if (("cmd/" part[2] "/" h) in is_file ||
			    (folder(f) "/" h) in is_file)
				return
		}
		complain(f " includes " h ", which is not its own")
	}
	function check_library(f, h) {
		if (!(("lib/" h) in is_file))
			complain(f " includes " h ", which is not in lib/")
		else if (!(module(h) in rank))
			complain(f " includes " h ", which is in no layer list")
		else if (rank[module(h)] > rank[module(f)])
			complain(f " includes " h " of a higher layer")
	}
	# Comments and strings do not count; in_comment lasts over lines.
	function code(line, out) {
		out = ""
		while (line != "") {
			if (in_comment) {
				if (!(i = index(line, "*/")))
					return out
				line = substr(line, i + 2)
				in_comment = 0
			} else if (match(line, /\/\*|\/\/|"([^"\\]|\\.)*"/)) {
				out = out substr(line, 1, RSTART - 1)
				token = substr(line, RSTART, 2)
				if (token == "//")
					return out
				in_comment = token == "/*"
				line = substr(line, RSTART + RLENGTH)
			} else {
				return out line
			}
		}
		return out
	}

	BEGIN {
		n = split(lists, layer, "|")
		for (l = 2; l <= n; l++) {
			count = split(layer[l], name, " ")
			for (k = 1; k <= count; k++) {
				if (name[k] in rank)
					complain(name[k] " is in two lists")
				rank[name[k]] = l - 1
			}
		}
		cli = n - 1
		# In front of everything; and what stands alone.
		rank["banned"] = rank["sort"] = rank["xxh"] = rank["straightedge"] = 0
		# C11 and POSIX; everything else in <> is third-party.
		n = split("aio arpa asm assert byteswap complex cpuid ctype " \
			"dirent dlfcn elf endian errno fcntl features fenv " \
			"float fnmatch ftw getopt glob grp immintrin inttypes " \
			"langinfo libgen limits link linux locale math net " \
			"netdb netinet poll pthread pwd regex sched semaphore " \
			"setjmp signal spawn stdalign stdarg stdatomic stdbool " \
			"stddef stdint stdio stdlib stdnoreturn string strings " \
			"sys syslog termios tgmath threads time ucontext unistd " \
			"wchar wctype x86intrin arm_neon", name, " ")
		for (k = 1; k <= n; k++)
			known[name[k]] = 1
		for (k = 1; k < ARGC; k++)
			is_file[ARGV[k]] = 1
		words = "(^|[^A-Za-z0-9_])(exit|_exit|quick_exit|abort|getenv|" \
			"secure_getenv|setenv|putenv|signal|sigaction|" \
			"sigprocmask|setlocale|printf|puts|putchar|perror|" \
			"stdin|stdout|stderr|getopt|getopt_long|isatty|umask)" \
			"([^A-Za-z0-9_]|$)"
	}

	FNR == 1 {
		in_comment = 0
		lib = FILENAME ~ /^lib\//
		mine = module(FILENAME)
		# A header without a source is judged by who includes it.
		if (lib && FILENAME ~ /\.c$/ && !(mine in rank))
			complain(FILENAME " is in no layer list")
		below = lib && mine in rank && rank[mine] &&
			rank[mine] < cli
	}
	/^[ \t]*#[ \t]*include[ \t]*"/ {
		h = $0
		sub(/^[^"]*"/, "", h)
		sub(/".*/, "", h)
		if (!lib)
			check_command(FILENAME, h)
		else if (mine in rank)
			check_library(FILENAME, h)
		next
	}
	/^[ \t]*#[ \t]*include[ \t]*</ {
		h = $0
		sub(/^[^<]*</, "", h)
		sub(/>.*/, "", h)
		top = h
		sub(/[\/.].*/, "", top)
		if (!(top in known) && !((h, FILENAME) in seen)) {
			seen[h, FILENAME] = 1
			users[h] = users[h] " " FILENAME
			nusers[h]++
		}
		next
	}
	below {
		text = code($0)
		# The API promises to look at this one: se_stream_open(3).
		sub(/getenv\(SIG_VARIABLE\)/, "", text)
		if (text ~ words && text !~ /__attribute__/)
			complain(FILENAME ":" FNR ": below CLI: " $0)
	}

	END {
		for (h in nusers)
			if (nusers[h] > 1)
				complain("<" h "> is included by" users[h])
		exit bad
	}'
