# pmucount: a flat profile, thousands of short functions, none of which a
# sampling profile would see; uftrace counts the same in the same run.

setup() {
	load common
}

FUNCTIONS=3000 ROUNDS=100

# Functions f0..: each a call of a few instructions; the time is the CPU's.
generate() {
	awk -v n=$FUNCTIONS -v r=$ROUNDS 'BEGIN {
		print "#include <stdio.h>\n#include <time.h>\nstatic int s;"
		for (i = 0; i < n; i++)
			printf "__attribute__((noinline)) void f%d(int x)" \
				"{ s += x ^ %d; __asm__ volatile(\"\"); }\n", i, i
		print "static double now(void) __attribute__((" \
			"no_instrument_function));"
		print "static double now(void) { struct timespec t;" \
			"clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);" \
			"return t.tv_sec * 1e9 + t.tv_nsec; }"
		print "int main(void) { double a = now();"
		printf "for (int k = 0; k < %d; k++) {\n", r
		for (i = 0; i < n; i++)
			printf "f%d(k);", i
		printf "}\nprintf(\"%%.1f\\n\", (now() - a) / %d);", n * r
		print "return 0; }"
	}' >flat.c
}

@test "pmucount counts all of a flat profile, as uftrace does" {
	skip_sanitized
	generate
	cc -O1 -o plain flat.c
	cc -O1 -fpatchable-function-entry=5 -o sleds flat.c
	count -b sled --event tsc -o o.pmu -- ./sleds >ours
	awk -F '\t' -v want=$ROUNDS '
		$1 == "pmu" && $2 ~ /^func=f[0-9]+$/ {
			n++
			bad += $3 != "calls=" want
		}
		END { exit !(n == '$FUNCTIONS' && !bad) }' o.pmu
	grep -q $'^coverage\t.*asked=3002\ton=3002' o.pmu
	need uftrace
	cc -O1 -pg -o pg flat.c
	timeout 120 uftrace record --no-pager -d uf ./pg >theirs
	timeout 120 uftrace report --no-pager -d uf -f call >report
	awk -v want=$ROUNDS '$NF ~ /^f[0-9]+$/ { n++; bad += $1 != want }
		END { exit !(n == '$FUNCTIONS' && !bad) }' report
	echo "# ns a call: plain $(./plain), sleds $(cat ours)," \
		"uftrace $(head -n 1 theirs)" >&3
}
