# The public library: symbols, soname, an example built against an
# installed prefix, and the Python module over it.

setup() {
	load common
	lib=$build/libstraightedge.so
}

# python_with MODULE: an interpreter that has it, in $python; else skip.
python_with() {
	for python in python3 /usr/bin/python3; do
		command -v $python >/dev/null &&
			$python -c "import $1" 2>/dev/null && return 0
	done
	skip "not run: no python3 with $1"
}

@test "libstraightedge exports exactly what straightedge.map and the header name" {
	need nm
	nm -D --defined-only "$lib" | sed -n 's/.* T \(se_[a-z0-9_]*\)@.*/\1/p' |
		sort >"$BATS_TEST_TMPDIR/exported"
	sed -n 's/^\t\(se_[a-z0-9_]*\);/\1/p' "$root/lib/straightedge.map" |
		sort >"$BATS_TEST_TMPDIR/map"
	grep -o 'se_[a-z0-9_]*(' "$root/lib/straightedge.h" | tr -d '(' |
		sort -u >"$BATS_TEST_TMPDIR/header"
	test -s "$BATS_TEST_TMPDIR/map"
	same_text "$BATS_TEST_TMPDIR/map" "$BATS_TEST_TMPDIR/exported"
	same_text "$BATS_TEST_TMPDIR/map" "$BATS_TEST_TMPDIR/header"
}

@test "libstraightedge shows nothing but se_ symbols, static archive included" {
	need nm
	run -0 bash -c "nm -g --defined-only '$build/libstraightedge.a' |
		awk 'NF == 3 && \$3 !~ /^se_/ && \$3 !~ /san|gcov|\\.[0-9]+$/'"
	[[ -z $output ]]
	skip_sanitized
	run -0 bash -c "nm -D --defined-only '$lib' | awk 'NF == 3 && \$2 != \"A\" && \$3 !~ /^se_/'"
	[[ -z $output ]]
}

@test "libstraightedge has every function in a section 3 page" {
	while read -r f; do
		grep -q "^\.Fn $f " "$root"/man/*.3 || { echo "$f: no page"; false; }
	done < <(sed -n 's/^\t\(se_[a-z0-9_]*\);/\1/p' "$root/lib/straightedge.map")
}

@test "straightedge.h compiles alone, as C11 and as C++" {
	need cc
	echo '#include "straightedge.h"' >"$BATS_TEST_TMPDIR/t.c"
	cc -std=c11 -Wall -Wextra -pedantic -Werror -iquote "$root/lib" \
		-fsyntax-only "$BATS_TEST_TMPDIR/t.c"
	command -v c++ >/dev/null || skip "not run: no c++"
	cp "$BATS_TEST_TMPDIR/t.c" "$BATS_TEST_TMPDIR/t.cc"
	c++ -Wall -Wextra -Werror -iquote "$root/lib" -fsyntax-only \
		"$BATS_TEST_TMPDIR/t.cc"
}

# installed: a prefix with the library, in $usr; $flags compile against it.
installed() {
	skip_sanitized
	need cc pkg-config
	usr=$BATS_TEST_TMPDIR/usr
	make -s -C "$root" BUILD="$build" PREFIX="$usr" install >/dev/null
	sed -n "s,^libdir=.*,libdir=$usr/lib,; s,^includedir=.*,includedir=$usr/include,; p" \
		"$usr/lib/pkgconfig/straightedge.pc" >"$BATS_TEST_TMPDIR/straightedge.pc"
	flags=$(PKG_CONFIG_PATH=$BATS_TEST_TMPDIR pkg-config --cflags --libs straightedge)
}

# bats test_tags=slow
@test "libstraightedge builds the example of its manual from an installed prefix" {
	need xxhsum
	installed
	sed -n '/^\.Bd -literal/,/^\.Ed/p' "$root/man/straightedge.3" |
		sed '1d;$d' >"$BATS_TEST_TMPDIR/example.c"
	cc -o "$BATS_TEST_TMPDIR/example" "$BATS_TEST_TMPDIR/example.c" $flags
	want=$(printf abc | xxhsum -H2 | cut -d ' ' -f 1)
	LD_LIBRARY_PATH=$usr/lib run -0 "$BATS_TEST_TMPDIR/example"
	[[ $output == "xxh3-128:$want" ]]
	# The same program, static.
	cc -o "$BATS_TEST_TMPDIR/static" "$BATS_TEST_TMPDIR/example.c" \
		-I"$usr/include" "$usr/lib/libstraightedge.a" -lz -lcsv -lm -pthread
	run -0 "$BATS_TEST_TMPDIR/static"
	[[ $output == "xxh3-128:$want" ]]
}

# bats test_tags=slow
@test "libstraightedge is enough for a small fpdiff that agrees with the large one" {
	installed
	cd "$BATS_TEST_TMPDIR"
	cc -std=c11 -D_XOPEN_SOURCE=700 -Wall -Wextra -Werror -o firstdiff \
		"$root/tests/api/firstdiff.c" $flags
	# Nothing of the inside of the house.
	run -1 grep '#include "' "$root/tests/api/firstdiff.c"
	export LD_LIBRARY_PATH=$usr/lib
	good=$root/tests/demo/data/good.fp.gz bad=$root/tests/demo/data/bad.fp.gz
	keys='s/^verdict.*\(result=[a-z]*\).*\(status=[0-9]\).*\(\tstep=[0-9]*\).*\(\tname=[^\t]*\)\(\tprefix=[0-9]*\).*/\1 \2\3\4\5/p'
	run -1 ./firstdiff "$good" "$bad"
	small=$(sed -n "$keys" <<<"$output")
	run -1 fpdiff "$good" "$bad"
	[[ -n $small && $small == "$(sed -n "$keys" <<<"$output")" ]]
	run -0 ./firstdiff "$good" "$good"
	[[ $output == *$'verdict\tresult=same\tstatus=0\tprefix=1800'* ]]
	zcat "$good" | head -n 500 >cut.fp
	run -3 ./firstdiff cut.fp cut.fp
	[[ $output == *reason=filtered* ]]
	zcat "$good" | sed '100s/f32/f99/' >altered.fp
	run -3 ./firstdiff altered.fp altered.fp
	run -2 ./firstdiff "$good" nowhere
}

# bats test_tags=slow
@test "straightedge.py records what fpdump records of the same array" {
	skip_sanitized
	python_with numpy
	cd "$BATS_TEST_TMPDIR"
	PYTHONPATH=$root/lib/python $python - <<-'EOF'
	import numpy, straightedge
	a = numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4)
	numpy.save("a.npy", a)
	with straightedge.record("a.fp", static=True) as r:
	    r.tensor("a", a, io="out")
	    r.tensor("t", a.T, io="out")
	    r.tensor("empty", a[:0], io="out")
	    r.scalar("loss", 0.1)
	    r.tensor("strange", numpy.array(["x"]), io="out")
	numpy.save("t.npy", a.T)
	numpy.save("empty.npy", a[:0])
	EOF
	for t in a t empty; do
		want=$(fpdump $t.npy | sed -n 's/^fp\t.*\t\(hash=[^\t]*\).*/\1/p')
		shape=$(fpdump $t.npy | sed -n 's/^fp\t.*\t\(shape=[^\t]*\).*/\1/p')
		test -n "$want"
		grep "	*name=$t	dtype=f32	$shape	" a.fp | grep -q "$want	step=0	io=out"
	done
	grep -q '^scalar	name=loss	vtype=f64	value=0.1	step=0' a.fp
	# An array of text has no dtype here: counted, not guessed.
	grep -q '^end	.*	lost=1$' a.fp
}
