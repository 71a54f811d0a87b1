# bats file_tags=cmd:fpdump
#
# fpdump: what it prints for which input, and what it says to damaged ones.

setup() {
	load common
	cd "$BATS_TEST_TMPDIR"
}

# le64 N: eight bytes, little-endian.
le64() {
	local i n=$1
	for i in 1 2 3 4 5 6 7 8; do
		printf "\\x$(printf %02x $((n & 255)))"
		n=$((n >> 8))
	done
}

# npy DESCR SHAPE [FORTRAN]: an array around the bytes on stdin.
npy() {
	local h="{'descr': '$1', 'fortran_order': ${3:-False}, 'shape': ($2), }"
	local n=$(((${#h} + 11 + 63) / 64 * 64 - 10))
	printf '\x93NUMPY\x01\x00'
	printf "\\x$(printf %02x $((n & 255)))\\x$(printf %02x $((n >> 8)))"
	printf "%-$((n - 1))s\n" "$h"
	cat
}

# safetensors JSON: a file with this header around the bytes on stdin.
safetensors() {
	le64 "${#1}"
	printf %s "$1"
	cat
}

# Two tensors: a of 2 x 3 bytes, b of 4.
two() {
	printf 'abcdefWXYZ' | safetensors '{"a":{"dtype":"U8","shape":[2,3],"data_offsets":[0,6]},"b":{"dtype":"U8","shape":[4],"data_offsets":[6,10]}}'
}

# field KEY: its values, one a line.
field() {
	sed -nE "/^(fp|scalar)	/s/.*	$1=([^	]*).*/\\1/p"
}

digest() {
	xxhsum -H2 | cut -d ' ' -f 1
}

@test "fpdump prints the digest that xxhsum prints for the same bytes" {
	need xxhsum
	head -c 100000 /dev/zero | tr '\0' 'x' >data
	npy '|u1' '100000,' <data >a.npy
	run -0 fpdump a.npy
	[ "$(field hash <<<"$output")" = "xxh3-128:$(digest <data)" ]
	[ "$(field bytes <<<"$output")" = 100000 ]
}

@test "fpdump prints one hash for one tensor out of every layout and format" {
	printf '\1\0\2\0\3\0\4\0\5\0\6\0' | npy '<i2' '2, 3' >c.npy
	printf '\1\0\4\0\2\0\5\0\3\0\6\0' | npy '<i2' '2, 3' True >f.npy
	printf '\0\1\0\2\0\3\0\4\0\5\0\6' | npy '>i2' '2, 3' >big.npy
	printf '\1\0\2\0\3\0\4\0\5\0\6\0' | safetensors '{"t":{"dtype":"I16","shape":[2,3],"data_offsets":[0,12]}}' >t.safetensors
	printf '\1\0\2\0\3\0\4\0\5\0\6\0' >plain
	gzip -k c.npy
	run -0 --separate-stderr fpdump c.npy f.npy big.npy t.safetensors c.npy.gz
	[ "$(field hash <<<"$output" | sort -u | wc -l)" = 1 ]
	[ "$(field dtype <<<"$output" | sort -u)" = i16 ]
	[ "$(field shape <<<"$output" | sort -u)" = 2,3 ]
	[ "$(field name <<<"$output" | wc -l)" = 5 ]
	hash=$(field hash <<<"$output" | tail -n 1)
	run -0 fpdump --dtype int16 --shape 2,3 plain
	[ "$(field hash <<<"$output")" = "$hash" ]
}

# bats test_tags=slow
@test "fpdump sorts by name and prints the same bytes for any number of threads" {
	mkdir -p d/sub
	two >two.safetensors
	for ((i = 1; i <= 60; i++)); do
		printf "%$((i * 1000))s" $i >d/x$((i * 7 % 61))
		echo d/sub/$i.safetensors
	done | xargs -n 1 cp two.safetensors
	fpdump d >one
	fpdump -j 2 d >two
	fpdump -j 7 d >seven
	cmp one two
	cmp one seven
	field name <one >names
	LC_ALL=C sort -c names
	[ "$(wc -l <names)" = 180 ]
}

@test "fpdump puts no time and no host into streams of files" {
	two >m.safetensors
	fpdump m.safetensors >one
	fpdump m.safetensors >two
	cmp one two
	run grep -E 'time=|host=' one
	[ "$status" = 1 ]
}

@test "fpdump names arrays of a directory as an archive of them would" {
	mkdir -p d/e
	printf ab | npy '|u1' 2, >d/w.npy
	printf ab | npy '|u1' 2, >d/e/w.npy
	printf plain >d/plain.txt
	run -0 fpdump d
	[ "$(field name <<<"$output")" = $'e/w\nplain.txt\nw' ]
	[ "$(field file <<<"$output")" = $'e/w.npy\nplain.txt\nw.npy' ]
}

@test "fpdump reads frames and keeps their place" {
	{
		printf '@\tname=w\tstep=3\trank=0\tio=grad\tpart=q\tdev=gpu\\t0\n'
		printf ab | npy '|u1' 2,
		printf '@\tname=w\tstep=3\trank=0\tio=grad\n'
		printf ab | npy '|u1' 2,
		printf '@\tname=w\tstep=4\trank=0\tio=grad\n'
		printf ab | npy '|u1' 2,
		printf '@\tname=m\tstep=4\n'
		two
	} >frames
	run -0 --separate-stderr fpdump --now 7 <frames
	[ "${lines[0]}" = $'head\tof=fp\tversion=1\ttool=fpdump\thash=xxh3-128\torder=exec' ]
	[[ ${lines[1]} == *$'\tname=w\t'*$'\tstep=3\trank=0\tio=grad\tseq=0\tdev=gpu\\t0\tx.part=q' ]]
	[[ ${lines[2]} == *$'\tstep=3\trank=0\tio=grad\tseq=1\tocc=1' ]]
	[[ ${lines[3]} == *$'\tstep=4\trank=0\tio=grad\tseq=2' ]]
	[[ ${lines[4]} == *$'\tname=m.a\t'*$'\tstep=4\tseq=3' ]]
	[[ ${lines[5]} == *$'\tname=m.b\t'*$'\tstep=4\tseq=4' ]]
	# From a pipe a program speaks: then time and host are known.
	cat frames | fpdump --now 7 >piped
	grep -q $'^head.*\ttime=7\thost=' piped
	tail -n +2 piped | cmp - <(printf '%s\n' "${lines[@]:1}")
}

@test "fpdump numbers arrays that come back to back" {
	{
		printf ab | npy '|u1' 2,
		printf cd | npy '|u1' 2,
		two
	} >images
	run -0 fpdump <images
	[ "$(field name <<<"$output")" = $'arr_0\narr_1\na\nb' ]
	[ "$(field seq <<<"$output")" = $'0\n1\n2\n3' ]
	cat images | fpdump | cmp - <(printf '%s\n' "$output")
	gzip -c images | fpdump | cmp - <(printf '%s\n' "$output")
}

# bats test_tags=slow
@test "fpdump gives every one of many small arrays its own digest" {
	# What was read ahead of one file must not serve for the next.
	mkdir d
	head -c 7 /dev/zero | npy '|u1' 7, >zero.npy
	size=$(stat -c %s zero.npy)
	for i in $(seq 40); do
		{
			head -c $((size - 7)) zero.npy
			printf "%7d" $i
		} >d/$i.npy
	done
	cat d/*.npy >images
	run -0 fpdump d
	[ "$(field hash <<<"$output" | sort -u | wc -l)" = 40 ]
	field hash <<<"$output" | sort >files
	fpdump -j 3 d | field hash | sort | cmp - files
	fpdump <images | field hash | sort | cmp - files
	cat images | fpdump | field hash | sort | cmp - files
}

@test "fpdump prints a record before the next image has come" {
	printf ab | npy '|u1' 2, >a.npy
	mkfifo in
	fpdump <in >out &
	pid=$!
	exec 7>in
	cat a.npy >&7
	for i in $(seq 500); do
		grep -q name=arr_0 out && break
		read -r -t 0.01 <> <(:) || :
	done
	grep -q name=arr_0 out
	cat a.npy >&7
	exec 7>&-
	wait $pid
	grep -q name=arr_1 out
}

@test "fpdump goes on behind a frame line that is wrong" {
	{
		printf '@\tname=w\tname=w\n'
		printf ab | npy '|u1' 2,
		printf '@\tname=v\thash=xxh3-128:1\n'
		printf ab | npy '|u1' 2,
	} >frames
	run -3 --separate-stderr fpdump <frames
	[[ $stderr == *'frame that ends at offset 16: duplicate key "name"'* ]]
	[ "$(field name <<<"$output")" = v ]
	[ "$(field x.hash <<<"$output")" = xxh3-128:1 ]
	[[ ${lines[-1]} == *$'status=3\tskipped=1' ]]
}

@test "fpdump says where a stream of images breaks" {
	{
		printf ab | npy '|u1' 2,
		printf garbage-garbage-garbage
	} >images
	run -3 --separate-stderr fpdump <images
	[[ $stderr == *"expected a frame, an .npy or a safetensors image at offset 130, found byte 0x67"* ]]
	[ "$(field name <<<"$output")" = arr_0 ]
	printf '@\tname=w\n' >frames
	run -2 --separate-stderr fpdump <frames
	[[ $stderr == *"a frame without its image at offset 9"* ]]
}

@test "fpdump names the last whole tensor of a truncated file and both sizes" {
	two >whole
	size=$(stat -c %s whole)
	head -c $((size - 1)) whole >cut.safetensors
	run -3 --separate-stderr fpdump cut.safetensors
	[[ $stderr == "fpdump: cut.safetensors: "*"b"*"last whole tensor: a"* ]]
	[[ $stderr == *"$size"* ]]
	[[ $stderr == *"$((size - 1))"* ]]
	[ "$(field name <<<"$output")" = a ]
	[[ ${lines[-1]} == *$'status=3\tskipped=1' ]]
}

# bats test_tags=slow
@test "fpdump prints no digest of a short tensor, wherever the file is cut" {
	two >whole.safetensors
	printf abcdef | npy '|u1' 6, >whole.npy
	mkdir cut
	n=0
	for f in whole.safetensors whole.npy; do
		size=$(stat -c %s $f)
		for ((len = 0; len < size; len++)); do
			head -c $len $f >cut/$len.${f#*.}
			n=$((n + 1))
		done
	done
	run -3 --separate-stderr fpdump cut
	# One message a file, and nothing but the tensor that is whole in some.
	[ "$(grep -c '^fpdump: cut/' <<<"$stderr")" = $n ]
	[[ ${lines[-1]} == *$'\tskipped='$n ]]
	[ "$(field name <<<"$output" | sort -u)" = a ]
	[ "$(field hash <<<"$output" | sort -u)" = "$(fpdump --select a whole.safetensors | field hash)" ]
	# Of the 10 bytes of data 6 are those of a: it is whole in four.
	[ "$(field name <<<"$output" | wc -l)" = 4 ]
}

@test "fpdump refuses a file that is not what its name promises" {
	printf 'not at all' >m.safetensors
	run -2 --separate-stderr fpdump m.safetensors
	[[ $stderr == "fpdump: m.safetensors: does not begin like a safetensors file"* ]]
	run -0 fpdump -t bytes m.safetensors
	[ "$(field dtype <<<"$output")" = bytes ]
}

@test "fpdump says status 2 when nothing can be read and 3 when something is" {
	printf x >x
	run -2 fpdump none
	[[ $output == *"none: cannot open: No such file or directory"* ]]
	run -3 fpdump none x
	run -2 --separate-stderr fpdump </dev/null
	[ "$stderr" = "fpdump: standard input: empty" ]
}

@test "fpdump leaves FIFOs, loops and dangling links out, and counts them" {
	mkdir -p d/e
	printf x >d/x
	mkfifo d/fifo
	ln -s .. d/e/loop
	ln -s nowhere d/dangling
	run -3 --separate-stderr timeout 10 fpdump d
	[ "$(field name <<<"$output")" = x ]
	[[ ${lines[-1]} == *skipped=3 ]]
	[[ $stderr == *"d/fifo: neither a regular file nor a directory"* ]]
	[[ $stderr == *"d/e/loop: is a directory that it lies in"* ]]
	[[ $stderr == *"d/dangling: cannot stat"* ]]
}

@test "fpdump follows links to files and directories" {
	mkdir -p blobs d
	printf x >blobs/1
	ln -s ../blobs/1 d/file
	ln -s ../blobs d/dir
	run -0 fpdump d
	[ "$(field name <<<"$output")" = $'dir/1\nfile' ]
}

@test "fpdump lets an index speak for its shards" {
	mkdir d
	printf abcdef | safetensors '{"a":{"dtype":"U8","shape":[6],"data_offsets":[0,6]}}' >d/m-1.safetensors
	printf abcd | safetensors '{"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}' >d/m-2.safetensors
	printf abcd | safetensors '{"c":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}' >d/other.safetensors
	printf '{"metadata":{"total_size":10},"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}}' >d/m.safetensors.index.json
	run -0 fpdump d
	[ "$(field name <<<"$output")" = $'a\nb\nc' ]
	[ "$(field file <<<"$output")" = $'m-1.safetensors\nm-2.safetensors\nother.safetensors' ]
	run -0 fpdump d/m.safetensors.index.json
	[ "$(field name <<<"$output")" = $'a\nb' ]
	rm d/m-2.safetensors
	run -3 --separate-stderr fpdump d
	[[ $stderr == *"m-2.safetensors"* ]]
}

@test "fpdump says that a distributed checkpoint without .metadata is unfinished" {
	mkdir d
	touch d/__0_0.distcp d/__1_0.distcp
	run -2 --separate-stderr fpdump d
	[[ $stderr == *"without .metadata: the save did not finish"* ]]
	[[ ${lines[-1]} == *skipped=1 ]]
}

@test "fpdump escapes names that would harm a terminal or a line" {
	printf abc | safetensors '{"new\nline":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"esc\u001b[31m":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},"nul\u0000\u202e":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}' >m.safetensors
	run -0 fpdump m.safetensors
	[ "${#lines[@]}" = 5 ]
	[ "$(field name <<<"$output")" = $'esc\\x1b[31m\nnew\\nline\nnul\\x00\\xe2\\x80\\xae' ]
	printf '%s\n' "$output" >s.fp
	run -0 fpdump --select $'new\nline' s.fp
	[ "$(field name <<<"$output")" = 'new\nline' ]
}

@test "fpdump numbers names that are there twice" {
	two >1.safetensors
	two >2.safetensors
	run -0 fpdump 1.safetensors 2.safetensors
	[ "$(field name <<<"$output")" = $'a\na\nb\nb' ]
	[ "$(field occ <<<"$output")" = $'1\n1' ]
}

# bats test_tags=slow
@test "fpdump gives a whole stream again when it selects from one" {
	{
		for step in 1 2 3 4; do
			printf '@\tname=w\tstep=%d\n' $step
			printf "a$step" | npy '|u1' 2,
			printf '@\tname=b\tstep=%d\n' $step
			printf "b$step" | npy '|u1' 2,
		done
	} >frames
	fpdump <frames >all.fp
	run -0 --separate-stderr fpdump --steps 2:3 --select 'w*' all.fp
	[ "$(field step <<<"$output")" = $'2\n3' ]
	[ "$(field seq <<<"$output")" = $'2\n4' ]
	[ "$stderr" = "" ]
	printf '%s\n' "$output" >some.fp
	run -0 --separate-stderr fpdump some.fp
	[ "$stderr" = "" ]
	printf '%s\n' "$output" | cmp - some.fp
	# The same through pipes, compressed, and of two streams in a row.
	fpdump --steps 2:3 --select 'w*' <all.fp | cmp - some.fp
	fpdump -z all.fp | gzip -dc | cmp - all.fp
	cat all.fp all.fp >both.fp
	run -0 --separate-stderr fpdump --steps 4: both.fp
	[ "$(grep -c ^head <<<"$output")" = 2 ]
	[ "$(grep -c ^end <<<"$output")" = 2 ]
	[ "$(grep -c $'^fp\t' <<<"$output")" = 4 ]
}

@test "fpdump selects from a stream that is not whole, but does not make it whole" {
	two >m.safetensors
	fpdump m.safetensors >all.fp
	grep -v name=a all.fp >filtered.fp
	run -3 --separate-stderr fpdump filtered.fp
	[ "$(field name <<<"$output")" = b ]
	[[ $output != *$'\nend'* ]]
	[[ $stderr == *"records or ends are missing"* ]]
	sed 's/shape=4/shape=5/' all.fp >altered.fp
	run -3 --separate-stderr fpdump altered.fp
	[[ $output != *$'\nend'* ]]
	[[ $stderr == *"changed after it was written"* ]]
	sed 's/shape=4/shape=4	shape=4/' all.fp >bad.fp
	run -3 --separate-stderr fpdump bad.fp
	[[ $stderr == *'bad.fp:3: duplicate key "shape"'* ]]
	[[ $output != *$'\nend'* ]]
}

# bats test_tags=slow
@test "fpdump puts labels into every record" {
	two >m.safetensors
	run -0 fpdump -l rank=3 -l node=n1 m.safetensors
	[ "$(field rank <<<"$output")" = $'3\n3' ]
	[ "$(field node <<<"$output")" = $'n1\nn1' ]
	printf '%s\n' "$output" >s.fp
	run -0 fpdump -l rank=4 -l step=7 s.fp
	[ "$(field rank <<<"$output")" = $'4\n4' ]
	[ "$(field step <<<"$output")" = $'7\n7' ]
	[ "$(field node <<<"$output")" = $'n1\nn1' ]
	run -2 fpdump -l hash=1 m.safetensors
	run -2 fpdump -l =1 m.safetensors
	run -2 fpdump -l a=1 -l a=2 m.safetensors
}

# bats test_tags=slow
@test "fpdump leaves padding out and counts it" {
	two >m.safetensors
	printf ad | safetensors '{"a":{"dtype":"U8","shape":[2,1],"data_offsets":[0,2]}}' >cut.safetensors
	run -0 fpdump --slice 'a[:,0:1]' m.safetensors
	[ "$(field slice <<<"$output")" = :,0:1 ]
	[ "$(field left <<<"$output")" = 4 ]
	[ "$(field shape <<<"$output" | head -n 1)" = 2,1 ]
	hash=$(field hash <<<"$output" | head -n 1)
	run -0 fpdump --select a cut.safetensors
	[ "$(field hash <<<"$output")" = "$hash" ]
	run -3 --separate-stderr fpdump --slice 'a[:3]' m.safetensors
	[[ $stderr == *"tensor a: a slice up to 3, dimension 0 has 2"* ]]
	[ "$(field name <<<"$output")" = b ]
	run -3 --separate-stderr fpdump --slice 'nobody[:3]' m.safetensors
	[[ $stderr == *"--slice nobody"*"no tensor"* ]]
}

# bats test_tags=slow
@test "fpdump adds up the shardsum of shards to that of the whole" {
	need xxhsum
	# One unit: XXH3-128(le64 0, le64 length, XXH3-128(unit)).
	printf abcdef >unit
	hex=$(digest <unit)
	{
		le64 0
		le64 6
		printf "$(sed 's/../\\x&/g' <<<"$hex")"
	} >term
	npy '|u1' 6, <unit >a.npy
	run -0 fpdump --shardsum 6 a.npy
	[ "$(field shardsum <<<"$output")" = "xxh3-128:$(digest <term)" ]
	[ "$(field unit <<<"$output")" = 6 ]
	# Two shards by columns, told by frames.
	{
		printf '@\tname=w\tglobal=2,4\toffset=0,0\n'
		printf abef | npy '|u1' '2, 2'
		printf '@\tname=w\tglobal=2,4\toffset=0,2\n'
		printf cdgh | npy '|u1' '2, 2'
		printf '@\tname=w\n'
		printf abcdefgh | npy '|u1' '2, 4'
	} | fpdump --shardsum 2 >out
	sums=($(field shardsum <out | sed 's/xxh3-128://'))
	[ "${#sums[@]}" = 3 ]
	sum=$(echo "ibase=16;(${sums[0]^^}+${sums[1]^^})%100000000000000000000000000000000" | bc)
	[ "$sum" = "$(echo "ibase=16;${sums[2]^^}" | bc)" ]
}

# bats test_tags=slow
@test "fpdump tells rows in another order from other rows" {
	printf abcdef | npy '|u1' '3, 2' >a.npy
	printf efabcd | npy '|u1' '3, 2' >b.npy
	printf efabcx | npy '|u1' '3, 2' >c.npy
	run -0 fpdump --rows --tiles 3 a.npy b.npy c.npy
	rows=($(field rows <<<"$output"))
	[ "${rows[0]}" = "${rows[1]}" ]
	[ "${rows[0]}" != "${rows[2]}" ]
	tiles=($(field tiles <<<"$output" | sed 's/xxh3-128://'))
	IFS=, read -ra a <<<"${tiles[0]}"
	IFS=, read -ra b <<<"${tiles[1]}"
	[ "${a[0]} ${a[1]} ${a[2]}" = "${b[1]} ${b[2]} ${b[0]}" ]
}

@test "fpdump hashes by mix64 on demand and says so" {
	printf '\1\0\0\0\0\0\0\0\2' | npy '|u1' 9, >a.npy
	# mix(1) + mix(2 ^ K), by hand with Python's integers
	run -0 fpdump --hash mix64 a.npy
	[[ ${lines[0]} == *hash=mix64* ]]
	[ "$(field hash <<<"${lines[1]}")" = mix64:edea4bfb2ca25cb3 ]
}

@test "fpdump adds statistics and a canonical hash" {
	# 1, -0, NaN, -inf as f32
	printf '\0\0\x80\x3f\0\0\0\x80\1\0\xc0\x7f\0\0\x80\xff' | npy '<f4' 4, >a.npy
	printf '\0\0\x80\x3f\0\0\0\0\0\0\xc0\x7f\0\0\x80\xff' | npy '<f4' 4, >b.npy
	run -0 fpdump --stats --canon a.npy b.npy
	[[ ${lines[0]} == *$'\tcanon=zero,nan\t'* ]]
	[[ ${lines[1]} == *$'\tmin=-inf\tmax=1\tmean=0.5\tnan=1\tinf=1\tzero=1' ]]
	[ "$(field hash <<<"$output" | sort -u | wc -l)" = 2 ]
	[ "$(field canon <<<"$output" | sort -u | wc -l)" = 1 ]
	[ "$(field canon <<<"${lines[2]}")" = "$(field hash <<<"${lines[2]}")" ]
}

@test "fpdump cuts plain files into chunks" {
	need xxhsum
	head -c 2500 /dev/zero | tr '\0' x >big
	run -0 fpdump --chunk 1K big
	[ "$(field name <<<"$output")" = $'big:0\nbig:1\nbig:2' ]
	[ "$(field bytes <<<"$output")" = $'1024\n1024\n452' ]
	[ "$(field hash <<<"$output" | tail -n 1)" = "xxh3-128:$(head -c 452 big | digest)" ]
}

@test "fpdump makes scalars of the cells of a table, in order" {
	printf 'step,loss,lr\n1,0.5,1e-3\n2,0.25,1e-3\n' >log.csv
	run -0 fpdump --step step log.csv
	[[ ${lines[0]} == *order=exec* ]]
	[ "$(field name <<<"$output")" = $'loss\nlr\nloss\nlr' ]
	[ "$(field step <<<"$output")" = $'1\n1\n2\n2' ]
	[ "$(field value <<<"$output")" = $'0.5\n1e-3\n0.25\n1e-3' ]
	fpdump --step step <log.csv | sed 's/	file=-//' >piped
	fpdump --step step log.csv | sed 's/	file=log.csv//' | grep -v ^end | cmp - <(grep -v ^end piped)
	run -0 fpdump --step step --steps 2 --select loss log.csv
	[ "$(field value <<<"$output")" = 0.25 ]
}

# bats test_tags=slow
@test "fpdump prints sums that xxhsum checks" {
	need xxhsum
	mkdir d
	printf x >'d/a b'
	two >d/m.safetensors
	: >d/empty
	fpdump -F sum d >sums
	[ "$(wc -l <sums)" = 3 ]
	xxhsum -c sums
	xxhsum -H2 'd/a b' d/empty d/m.safetensors 2>/dev/null | cmp - sums
	run -3 --separate-stderr fpdump -F sum d/empty none
	[ "$output" = '99aa06d3014798d86001c324468d497f  d/empty' ]
}

@test "fpdump -c says same, different, or unknown" {
	mkdir d
	two >d/m.safetensors
	printf ab | npy '|u1' 2, >d/w.npy
	printf plain >d/plain
	cd d
	fpdump . >../ref.fp
	run -0 fpdump -c ../ref.fp
	[[ $output == *$'\nverdict\tresult=same\tstatus=0\tcompared=4\tequal=4\n'* ]]
	cd ..
	run -0 fpdump -c ref.fp d
	printf Plain >d/plain
	run -1 fpdump -c ref.fp d
	[[ $output == *$'\ndiff\tclass=different\tname=plain\ta=xxh3-128:'* ]]
	[[ $output == *$'\nend\t'*$'result=different\tstatus=1'* ]]
	run -1 fpdump -q -c ref.fp d
	[ "${#lines[@]}" = 1 ]
	# Damage hides no finding and allows no clean answer.
	head -n 4 ref.fp >cut.fp
	run -1 fpdump -c cut.fp --select plain --select a d
	run -3 fpdump -c cut.fp --select a d
	[[ $output == *$'result=unknown\tstatus=3\treason=filtered'* ]]
	run -0 fpdump --partial -c cut.fp --select a d
	[[ $output == *scope=partial* ]]
	run -2 fpdump --strict -c <(echo garbage; cat ref.fp) --select a d
}

@test "fpdump -c reports a file that is gone and cannot tell of one it cannot read" {
	mkdir d
	printf x >d/x
	printf y >d/y
	cd d
	fpdump . >../ref.fp
	rm x
	run -1 fpdump -c ../ref.fp
	[[ $output == *$'class=unmatched\tname=x'*note=missing* ]]
	mkdir x
	mkfifo x/fifo
	run -3 timeout 10 fpdump -c ../ref.fp
}

@test "fpdump -c takes another hash for incomparable, not for different" {
	printf x >x
	fpdump x | sed 's/hash=xxh3-128:[0-9a-f]*/hash=sha256:00/' | grep -v ^end | grep -v ^head >ref.fp
	run -3 fpdump -c ref.fp
	[[ $output == *reason=incomparable* ]]
	fpdump --hash mix64 x >ref.fp
	run -0 fpdump -c ref.fp
}

@test "fpdump --host prints every fact, and unknown where there is none" {
	NCCL_ALGO=Ring fpdump --host --now 5 >one
	grep -q $'^head.*\ttime=5\thost=' one
	grep -q $'^scalar\tname=env.NCCL_ALGO\tvtype=text\tvalue=Ring\tclass=container$' one
	grep -q $'^scalar\tname=env.PYTHONHASHSEED\tvtype=text\tvalue=not set' one
	for name in kernel.release kernel.cmdline cpu.microcode cpu.governor \
		firmware.version ecc.corrected machine.id hugepages.transparent; do
		grep -qE $'^scalar\tname='$name$'(\\.[^\t]*)?\tvtype=text\tvalue=' one
	done
	[ "$(grep $'name=kernel.release\t' one | field value)" = "$(uname -r)" ]
	field name <one | LC_ALL=C sort -c
	# No value is missing, and the stream is whole.
	run grep -vE $'^(head|end|scalar\tname=[^\t]+\tvtype=text\tvalue=)' one
	[ "$status" = 1 ]
	run -0 --separate-stderr fpdump one
	[ "$stderr" = "" ]
}

@test "fpdump --libs finds the libraries that the dynamic linker finds" {
	need ldd
	ldd "$(command -v bash)" | sed -n 's/^\t\(lib[^ ]*\) => \([^ ]*\).*/\1 \2/p' | sort >want
	[ -s want ]
	fpdump --host --libs "$(command -v bash)" >out
	sed -n 's/^scalar\tname=lib\.\(lib[^\t]*\)\.path\tvtype=text\tvalue=\([^\t]*\).*/\1 \2/p' out | sort >got
	# The linker itself is asked for by name as well.
	grep -v ^ld- got | same_text want -
	grep -q $'^fp\tname=lib.program\tdtype=bytes' out
	printf 'no program' >script
	chmod +x script
	run --separate-stderr fpdump --host --libs ./script
	[[ $stderr == *"script: not an ELF file"* ]]
	[[ $output == *$'name=program.path\tvtype=text\tvalue=unknown'* ]]
}

@test "fpdump says that the disk is full" {
	[ -w /dev/full ] || skip "not run: no /dev/full"
	printf x >x
	run -2 --separate-stderr bash -c 'fpdump x >/dev/full'
	[[ $stderr == "fpdump: standard output: cannot write: No space left on device" ]]
	run -2 --separate-stderr bash -c 'fpdump -F sum x >/dev/full'
	run -2 --separate-stderr fpdump -o /dev/full x
}

@test "fpdump ends quietly when nobody reads" {
	head -c 100000 /dev/zero >zeros
	run --separate-stderr bash -c 'set -o pipefail; fpdump --chunk 1 zeros | head -n 1'
	[ "$status" = 141 ]
	[ "$stderr" = "" ]
}

@test "fpdump leaves no half file behind with -o" {
	printf x >x
	mkdir out
	run -0 fpdump -o out/s.fp x
	[ "$(ls out)" = s.fp ]
	run -2 fpdump -o out/t.fp none
	fpdump x | cmp - out/s.fp
}

@test "fpdump works in little memory and says when it is too little" {
	skip_sanitized
	head -c 50000000 /dev/zero >zeros
	run -0 bash -c 'ulimit -v 65536; fpdump zeros'
	run bash -c 'ulimit -v 4000; fpdump --tiles 4096 zeros'
	[ "$status" != 0 ]
	[[ $output == *"memory"* || $output == *"cannot"* ]]
}

@test "fpdump reads names from a list" {
	printf x >'a b'
	printf y >$'c\nd'
	printf 'a b\0c\nd\0' >list
	run -0 fpdump --files0-from list
	[ "$(field name <<<"$output")" = $'a b\nc\\nd' ]
	run -0 fpdump --files0-from - <list
}

@test "fpdump writes metrics, also when it fails" {
	printf x >x
	run -0 fpdump --now 5 --prom m.prom x
	grep -q '^straightedge_status{tool="fpdump",job="m"} 0$' m.prom
	run -2 fpdump --now 5 --prom m.prom none
	grep -q '^straightedge_status{tool="fpdump",job="m"} 2$' m.prom
	grep -q '^straightedge_skipped_total{tool="fpdump",job="m"} 1$' m.prom
}

@test "fpdump prints its state when it gets SIGUSR1, also while it waits" {
	mkfifo in
	fpdump <in >/dev/null 2>err &
	pid=$!
	exec 7>in
	printf ab | npy '|u1' 2, >&7
	for i in $(seq 500); do
		[ "$(cut -d ' ' -f 1 /proc/$pid/wchan 2>/dev/null)" ] && kill -USR1 $pid
		grep -q 'fpdump: 2 B, 1 records' err && break
		read -r -t 0.01 <> <(:) || :
	done
	exec 7>&-
	wait $pid
	grep -q 'fpdump: 2 B, 1 records' err
}

@test "fpdump refuses options that make no sense" {
	printf x >x
	run -2 fpdump --no-such x
	run -2 fpdump -t elephants x
	[[ $output == *"expected npy"*"live or records"* ]]
	run -2 fpdump --dtype f33 x
	run -2 fpdump --shape 2 x
	run -2 fpdump --tiles 5000 x
	run -2 fpdump --shardsum 0 x
	run -2 fpdump --slice 'a' x
	run -2 fpdump --steps 5:3 x
	run -2 fpdump --hash md5 x
	run -2 fpdump --libs x
	run -2 fpdump -j 1000 x
	run -2 fpdump - x
}

@test "fpdump reads all samples, or refuses them for the stated reason" {
	need_data tensors
	run -3 --separate-stderr fpdump "$data/tensors"
	sed -E 's|^fpdump: .*/tensors/||' <<<"$stderr" | sort >refused
	same_text "$root/tests/data/fpdump/refused" refused
	printf '%s\n' "$output" >all.fp
	run -0 --separate-stderr fpdump --select '*' all.fp
	fpdump -j 4 "$data/tensors" 2>/dev/null | cmp - all.fp
}

@test "fpdump marks storage that two tensors share, and only that" {
	need_data tensors/tracel-ai_burn
	dir=$data/tensors/tracel-ai_burn
	run -0 fpdump "$dir"/*reader_test_data_legacy_uncloned_views.pt
	[ "$(field name <<<"$output")" = $'tensor1\ntensor2' ]
	[ "$(field storage <<<"$output" | sort | uniq -d | wc -l)" = 1 ]
	run -0 fpdump "$dir"/*reader_test_data_state_dict.pt
	[ -z "$(field storage <<<"$output")" ]
}

# ---- what a newcomer tried ------------------------------------------------

@test "fpdump - of a file that is no bare array stream prints a set, as from the file" {
	body='{"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}'
	printf '\x70\0\0\0\0\0\0\0%-112s\1\0\0\0' "$body" >x.safetensors
	fpdump x.safetensors | sed 's/\tfile=[^\t]*//;/^end/d' >file
	run -0 fpdump - <x.safetensors
	[[ $output == *order=set* ]]
	sed 's/\tfile=[^\t]*//;/^end/d' <<<"$output" | diff file -
	# On a pipe it can be followed by another one.
	run -0 bash -c 'cat x.safetensors x.safetensors | fpdump -'
	[[ $output == *order=exec* ]]
	need_data tensors
	for f in "$data"/tensors/*.pt "$data"/tensors/*.gguf "$data"/tensors/*.npz; do
		[[ -f $f ]] || continue
		fpdump "$f" | grep ^fp | sed 's/\tfile=[^\t]*//' >file
		run fpdump - <"$f"
		[[ $output == head*order=set* ]]
		grep ^fp <<<"$output" | sed 's/\tfile=[^\t]*//' | diff file -
	done
}

@test "fpdump gives the cells of a row by name, in whatever order the columns are" {
	printf 'step,loss,acc\n1,2.5,7\n2,2.25,8\n' >a.csv
	printf 'acc,step,loss\n7,1,2.5\n8,2,2.25\n' >b.csv
	printf '{"loss":2.5,"step":1,"acc":7}\n{"acc":8,"loss":2.25,"step":2}\n' >c.jsonl
	tr , '\t' <b.csv >d.tsv
	for f in a.csv b.csv c.jsonl d.tsv; do
		run -0 fpdump --step step "$f"
		grep ^scalar <<<"$output" | sed 's/\tfile=[^\t]*//' >"$f.out"
		diff a.csv.out "$f.out"
		run -0 fpdiff a.csv "$f"
	done
	grep -q . a.csv.out
	[[ $(cut -f 2 a.csv.out | tr '\n' ' ') == 'name=acc name=loss name=acc name=loss ' ]]
	printf 'step,loss\n1,2.5\n2,2.25\n' >e.csv
	run -1 fpdiff a.csv e.csv
	[[ $output == *$'class=unmatched\tn=2\tnote=2 in A alone'* ]]
}

@test "fpdump reads NaN in JSON Lines and goes on behind a bad line" {
	printf '%s\n' '{"step":1,"loss":NaN}' '{"step":2,"loss":-Infinity,"x":[Infinity]}' \
		'{"step":3,"loss":Nan}' '{"step":4' '{"loss":1}' '{"step":5,"loss":2}' >a.jsonl
	run -3 --separate-stderr fpdump --step step a.jsonl
	[[ $output == *$'name=loss\tvtype=num\tvalue=NaN\tstep=1'* ]]
	[[ $output == *$'name=loss\tvtype=num\tvalue=-Infinity\tstep=2'* ]]
	[[ $output == *$'name=x.0\tvtype=num\tvalue=Infinity\tstep=2'* ]]
	[[ $output == *$'name=loss\tvtype=num\tvalue=2\tstep=5'* ]]
	[[ $output == *$'status=3'*skipped=3* ]]
	[[ $stderr == *"line 3:"*"line 4:"*"line 5:"* ]]
	printf 'step,loss\n1,2\n2\n3,4\n' >a.csv
	run -3 --separate-stderr fpdump --step step a.csv
	[[ $output == *$'value=4\tstep=3'* && $stderr == *"line 3: expected 2 cells, found 1"* ]]
	yes '{' | head -n 500 >bad.jsonl
	run -2 --separate-stderr fpdump --step step bad.jsonl
	((${#stderr_lines[@]} < 30))
	[[ $output == *skipped=500* ]]
}

@test "fpdump --strict and --allow-bad mean what they mean in fpdiff" {
	body='{"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}'
	printf '\x70\0\0\0\0\0\0\0%-112s\1\0\0' "$body" >cut.safetensors
	run -3 --separate-stderr fpdump cut.safetensors
	[[ $output == *$'status=3\tskipped=1'* ]]
	run -2 --separate-stderr fpdump --strict cut.safetensors
	[[ ${lines[-1]} == *status=2* && $output == *name=w* ]]
	run -0 --separate-stderr fpdump --allow-bad 1 cut.safetensors
	[[ ${lines[-1]} == *status=0* && ${lines[-1]} == *skipped=1* ]]
	run -0 --separate-stderr fpdump --strict --allow-bad 1 cut.safetensors
	run -2 fpdiff --strict cut.safetensors cut.safetensors
	run -0 fpdiff --allow-bad 2 cut.safetensors cut.safetensors
}

@test "fpdump says that a selection is empty, and status 2" {
	printf 'abc' >f
	run -2 --separate-stderr fpdump --select nosuch f
	[[ $stderr == *"nothing matches --select"* ]]
	run -0 fpdump --select f f
}

# tables: step and epoch have the same cells under two names of the first column.
tables() {
	printf '%s,loss,lr\n0,1.5,0.1\n1,1.4,0.1\n' step >step.csv
	sed 's/^step/epoch/' step.csv >epoch.csv
}

@test "fpdump reads a table with a column step as fpdiff does, from a file or a pipe" {
	tables
	run -0 --separate-stderr fpdump step.csv
	[[ $stderr == '' && $output == *order=exec* && $output == *$'name=lr\tvtype=num\tvalue=0.1\tstep=1'* ]]
	fpdump step.csv >ref.fp
	fpdump --step step step.csv | diff ref.fp -
	fpdump <step.csv | sed 's/file=-/file=step.csv/;/^end/d' | diff <(sed /^end/d ref.fp) -
	fpdump <(cat step.csv) | sed 's|file=/dev/fd/[0-9]*|file=step.csv|;/^end/d' | diff <(sed /^end/d ref.fp) -
	run -0 fpdiff ref.fp step.csv
	run -0 fpdiff step.csv ref.fp
	run -0 fpdiff ref.fp - <step.csv
	run -0 fpdump -c ref.fp
	# JSON Lines and TABs say it, too; a member further in does not.
	printf '{"a":{"step":1},"b":2}\n{"a":{"step":1},"b":3}\n' >inner.jsonl
	run -0 --separate-stderr fpdump inner.jsonl
	[[ $output == *dtype=bytes* && $stderr == *'no column "step"'* ]]
	printf '{"b":2,"step":7}\n' >outer.jsonl
	run -0 fpdump outer.jsonl
	[[ $output == *$'name=b\tvtype=num\tvalue=2\tstep=7'* ]]
	# In a directory it is a file like others.
	mkdir d
	cp step.csv d
	run -0 --separate-stderr fpdump d
	[[ $output == *dtype=bytes* && $stderr == '' ]]
}

@test "fpdump says what a table without a step is taken for, and what to give" {
	tables
	run -0 --separate-stderr fpdump epoch.csv
	[[ $stderr == 'fpdump: epoch.csv: taken as plain bytes: no column "step"; --step COLUMN reads the cells, of epoch, loss, lr' ]]
	run -0 --separate-stderr fpdump - <epoch.csv
	[[ $stderr == *'standard input: taken as plain bytes'* ]]
	run -0 --separate-stderr fpdump epoch.csv step.csv
	[[ $stderr == *'step.csv: one of several files'* || $stderr == *'epoch.csv: taken as plain bytes'* ]]
	run -0 --separate-stderr fpdump --step epoch epoch.csv
	[[ $stderr == '' && $output == *$'name=loss\tvtype=num\tvalue=1.4\tstep=1'* ]]
	run -2 --separate-stderr fpdump --step nix epoch.csv
	[[ $stderr == *'step column nix: no such column in line 1, it has epoch, loss, lr'* ]]
	# Text with commas is none, nor is a document in one line.
	printf 'once, upon\na time, 7\n' >prose
	printf '{"a":1}\n' >doc.json
	for f in prose doc.json; do
		run -0 --separate-stderr fpdump "$f"
		[[ $output == *dtype=bytes* ]]
	done
	[ "$stderr" = '' ]
}

@test "fpdiff gives no verdict on a table beside plain bytes" {
	tables
	run -2 --separate-stderr fpdiff step.csv epoch.csv
	[[ $stderr == *'nothing to compare: step.csv is read as a table with steps, epoch.csv as plain bytes; --step COLUMN'* ]]
	[ "$output" = '' ]
	printf '\1\0\2\0' | npy '<i2' 2, >a.npy
	run -2 fpdiff step.csv a.npy
	run -1 --separate-stderr fpdiff <(sed s/1.4/1.5/ step.csv) step.csv
	[[ $output == *$'step=1\tname=loss'* ]]
	run -1 --separate-stderr fpdiff epoch.csv step.csv --step loss
	# Bytes beside bytes: said, and compared.
	run -0 --separate-stderr fpdiff epoch.csv epoch.csv
	[[ $stderr == *'epoch.csv: taken as plain bytes'* ]]
	# A file beside records has the name that fpdump gave it.
	fpdump a.npy >a.fp
	run -0 fpdiff a.fp a.npy
	run -0 fpdiff a.npy - <a.npy
}

@test "fpdiff says once what a pipe is not, and still reads one with a damaged beginning" {
	fpdump "$root/tests/demo/data/good-loss.csv" >a.fp
	for f in "$root/LICENSE" /bin/sh; do
		run -2 --separate-stderr fpdiff a.fp - <"$f"
		[ "${#stderr_lines[@]}" = 1 ]
		[[ $stderr == *'-: neither records nor tensors nor a table'* && $output == '' ]]
	done
	sed '1s/.*/noise=1/;/name=loss/{s/value=[^\t]*/value=9/}' a.fp >b.fp
	run -1 fpdiff a.fp - <b.fp
	[[ $output == *bad=1* ]]
	run -1 fpdiff a.fp b.fp
	run -2 --separate-stderr fpdump -c /bin/sh a.fp
	[[ $stderr == 'fpdump: /bin/sh: expected records of fpdump' ]]
}

# bats test_tags=slow
@test "fpdump refuses containers of others and names the command that converts them" {
	tables
	local n=0
	# The first bytes of each, as its specification has them.
	while read -r name bytes; do
		{ printf "$bytes"; head -c 600 /dev/zero; } >"x.$name"
		run -2 --separate-stderr fpdump "x.$name"
		[[ $stderr == "fpdump: x.$name: is "*'not read here: convert it first, as with '* ]]
		run -2 --separate-stderr fpdump - <"x.$name"
		run -2 --separate-stderr fpdiff "x.$name" "x.$name"
		[[ $stderr == *'convert it first'* && $output == '' ]]
		run -2 --separate-stderr fpdiff step.csv - <"x.$name"
		[[ $stderr == *'convert it first'* && $output == '' ]]
		run -0 fpdump -t bytes "x.$name"
		((++n))
	done <<-'END'
		zstd \x28\xb5\x2f\xfd
		skip \x5a\x2a\x4d\x18
		xz \xfd7zXZ\0
		bz2 BZh91AY&SY
		lz4 \x04\x22\x4d\x18
		lz LZIP\x01
		7z 7z\xbc\xaf\x27\x1c
		h5 \x89HDF\r\n\x1a\n
		sqlite SQLite\x20format\x203\0
		parquet PAR1
	END
	[ "$n" = 10 ]
	# In a directory the others are printed, and this one is counted.
	mkdir d
	cp x.xz step.csv d
	run -3 --separate-stderr fpdump d
	[[ $output == *file=step.csv* && ${lines[-1]} == *skipped=1* && $stderr == *'xz -dc FILE'* ]]
	# What begins alike is none.
	printf 'BZh9 is a word' >word
	printf 'PAR' >par
	run -0 fpdump word par
	for tool in xz zstd bzip2 lz4; do
		command -v $tool >/dev/null || continue
		$tool -c <step.csv >real
		run -2 --separate-stderr fpdump real
		[[ $stderr == *"$tool -dc FILE"* ]]
	done
	if command -v tar >/dev/null; then
		tar cf real step.csv
		run -2 --separate-stderr fpdump real
		[[ $stderr == *'tar -xf FILE -C DIR'* ]]
	fi
}

@test "fpdump says which name two values of a JSON line share" {
	printf '%s\n' '{"step":1,"a.b":1,"a":{"b":2}}' '{"step":2,"a.b":1}' \
		'{"step":3,"a":{"b":2}}' '{"step":4,"x":[5],"x.0":6}' >a.jsonl
	run -3 --separate-stderr fpdump a.jsonl
	[[ ${stderr_lines[0]} == *'line 1: name a.b: two values, one under a key with a dot'* ]]
	[[ ${stderr_lines[1]} == *'line 4: name x.0: two values'* ]]
	[ "$(field value <<<"$output")" = $'1\n2' ]
	[[ ${lines[-1]} == *skipped=2* ]]
	printf '{"a":{"b":1},"a.b":2,"c":3}\n' >b.jsonl
	run -2 --separate-stderr fpdump --step a.b b.jsonl
	[[ $stderr == *'a second key for the step'* ]]
}

@test "fpdump refuses columns that no record can have, and keeps labels" {
	printf x >x
	run -2 --separate-stderr fpdump -F csv --columns name,nosuch x
	[[ ${stderr_lines[0]} == *'fp records have no "nosuch", but name dtype shape'* && $output == '' ]]
	run -0 fpdump -l run=7 -F csv --columns name,run,x.k x
	[ "${lines[1]%$'\r'}" = '"x","7",""' ]
	fpdump -l run=7 x >l.fp
	run -0 fpdump -F csv --columns name,run l.fp
	[ "${lines[1]%$'\r'}" = '"x","7"' ]
	run -2 --separate-stderr fpdump -F csv --columns name,runs l.fp
	[[ $stderr == *'no record has a "runs"'* ]]
	run -2 fpdiff -F tsv --columns name,nosuch l.fp l.fp
}

@test "fpdump prints the scalars of a table and of the host as their own table" {
	tables
	run -0 --separate-stderr fpdump -F csv --columns step,name,value step.csv
	[ "${lines[4]%$'\r'}" = '"1","lr","0.1"' ]
	run -0 --separate-stderr fpdump -F csv --columns step,name,value <step.csv
	[ "${lines[4]%$'\r'}" = '"1","lr","0.1"' ]
	run -0 --separate-stderr fpdump --host -F tsv --columns name,value
	[[ $output == *$'\nkernel.release\t'* ]]
	fpdump step.csv >s.fp
	run -0 --separate-stderr fpdump -F tsv s.fp
	[[ $stderr == *'4 scalar records are not in this table: --type scalar'* ]]
}

# bats test_tags=slow
@test "fpdump says that there is nothing to read, and what it cannot do with records" {
	mkdir empty
	run -2 --separate-stderr fpdump empty
	[[ $stderr == 'fpdump: empty: nothing in it' && ${lines[-1]} == *status=2* ]]
	: >list
	run -2 --separate-stderr fpdump --files0-from list
	[[ $stderr == 'fpdump: list: no names in it' ]]
	printf x >x
	fpdump x >x.fp
	for option in --stats --rows --canon --tiles=2 --shardsum=1 --hash=mix64 '--slice=x[0:1]'; do
		run -2 --separate-stderr fpdump "$option" x.fp
		[[ $stderr == *"${option%%=*} needs the data"* ]]
	done
	run -3 --separate-stderr fpdump -c x.fp --slice 'y[0:1]'
	[[ $stderr == *'--slice y: there is no tensor of that name'* ]]
	[[ $output == *result=unknown* ]]
	run -2 fpdump -c list x
}

# ---- more files than descriptors -------------------------------------------

@test "fpdump reads a model in more shards than there may be descriptors" {
	skip_sanitized
	local i head json='{"metadata":{},"weight_map":{'
	mkdir m
	for i in {100..219}; do
		head="{\"t$i\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}"
		[ "${#head}" = 56 ]
		printf '\x38\0\0\0\0\0\0\0%sx%d' "$head" "$i" >m/s$i.safetensors
		json+="\"t$i\":\"s$i.safetensors\","
	done
	printf '%s' "${json%,}}}" >m/model.safetensors.index.json
	fpdump m/model.safetensors.index.json >all
	[ "$(grep -c ^fp all)" = 120 ]
	run -0 bash -c 'ulimit -n 100; fpdump m/model.safetensors.index.json | cmp - all'
	run -0 bash -c 'ulimit -n 100; fpdump -j 8 m/model.safetensors.index.json | cmp - all'
	# And many files that have nothing to do with each other.
	rm m/*.json
	fpdump m >all
	run -0 bash -c 'ulimit -n 40; fpdump -j 4 m | cmp - all'
}

# bats test_tags=slow
@test "fpdump reads a distributed checkpoint of more files than descriptors" {
	skip_sanitized
	local python
	for python in python3 /usr/bin/python3 ''; do
		[ "$python" ] || skip "not run: no torch"
		$python -c 'import torch' 2>/dev/null && break
	done
	$python - "$root" <<-'END'
		import sys
		sys.path.insert(0, sys.argv[1] + "/tests/data")
		sys.dont_write_bytecode = True
		import make_torch, torch
		d = make_torch.Dcp("many.dcp")
		w = torch.arange(800, dtype=torch.int32).reshape(400, 2)
		d.tensor("w", w, [("__%d_0.distcp" % i, (i, 0), (1, 2))
		                  for i in range(400)], True)
		d.write()
	END
	fpdump many.dcp >all
	[ "$(grep -c 'global=400,2' all)" = 400 ]
	run -0 bash -c 'ulimit -n 100; fpdump many.dcp | cmp - all'
}

# one DIR FILE BYTE: a file with one tensor w.
one() {
	mkdir -p "$1"
	printf %s "$3" | safetensors \
		'{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' >"$1/$2"
}

# bats test_tags=slow
@test "fpdump -c pairs what has one name by file, and repeats in their order" {
	one a 1 x
	one a 2 y
	one b 1 y
	one b 2 x
	one c 1 x
	one c 3 y
	one d 1 x
	one d 2 y
	one e 2 y
	fpdump a >a.fp
	run -0 fpdump -c a.fp d
	run -1 fpdump -c a.fp b
	[[ $output == *$'\tcompared=2\tequal=0\tdifferent=2\n'* ]]
	run -1 fpdump -c a.fp c
	[[ $output == *$'\tcompared=1\tequal=1\tunmatched=2\n'* ]]
	# One and one are a pair; of several the one of the same file is.
	fpdump e >e.fp
	run -1 fpdump -c e.fp a
	[[ $output == *$'\tcompared=1\tequal=1\tunmatched=1\n'* ]]
	one f 7 y
	run -0 fpdump -c e.fp f
	one f 7 x
	run -1 fpdump -c e.fp f
	[[ $output == *$'\tdifferent=1\n'* && $output == *$'\tfile=2'* ]]
	printf 'step,loss\n1,0.5\n1,0.4\n' >t.csv
	fpdump t.csv >t.fp
	run -0 fpdump -c t.fp t.csv
	printf 'step,loss\n1,0.4\n1,0.5\n' >t.csv
	run -1 fpdump -c t.fp t.csv
	[[ $output == *$'\tdifferent=2\n'* ]]
	# A reference that lost one of the repeats is no finding.
	fpdump t.csv | grep -v value=0.4 >cut.fp
	run -3 fpdump -c cut.fp t.csv
	[[ $output == *$'\tcompared=1\tequal=1\tunmatched=1\n'* ]]
}

@test "fpdump -c cannot tell where nothing was compared" {
	one a 1 x
	(cd a && fpdump 1) >a.fp
	run -3 fpdump -c a.fp
	[[ $output == *$'result=unknown\tstatus=3\treason=nothing-compared'* ]]
	printf 'ab' | npy '|u1' 2, | fpdump -t live >live.fp
	run -3 fpdump -c live.fp
	[[ $output == *reason=nothing-compared* ]]
	# A file that is there and lacks the tensor is another one.
	cd a
	sed -i 's/"w"/"v"/' 1
	run -1 fpdump -c ../a.fp
	[[ $output == *reason=unmatched* ]]
}

@test "fpdump -c prints diff records in tables" {
	one a 1 x
	fpdump a >a.fp
	one a 1 y
	for form in csv tsv table; do
		run -1 fpdump -c a.fp -F "$form" a
		[[ $output == *different*w*xxh3-128* ]]
	done
	run -1 fpdump -c a.fp -F tsv --columns class,name a
	[ "${lines[1]}" = $'different\tw' ]
	run -2 fpdump -c a.fp -F tsv --columns dtype a
}

@test "fpdump -o leaves the file as it was where nothing could be read" {
	printf good >out
	run -2 fpdump -o out none
	[ "$(cat out)" = good ]
	run -2 fpdump -F sum -o out none
	[ "$(cat out)" = good ]
	printf x >x
	fpdump x >x.fp
	run -2 fpdump --strict -o out -c <(echo garbage; cat x.fp) none
	[ "$(cat out)" = good ]
	run -3 fpdump -o out none x
	grep -q '^fp' out
}

@test "fpdump takes a fingerprint without digits or its head for a bad line" {
	printf x >x
	printf y >y
	fpdump x y >xy.fp
	sed '/name=y/s/hash=xxh3-128:[^\t]*/hash=xxh3-128:/' xy.fp >short.fp
	run -3 --separate-stderr fpdump short.fp
	[[ $output != *name=y* && $stderr == *'short.fp:3: hash: expected'* ]]
	sed 's/of=fp/of=diff/' xy.fp >other.fp
	run -2 --separate-stderr fpdump other.fp
	[[ $output != *name=* && $stderr == *'head of another kind'* ]]
	cat other.fp xy.fp >both.fp
	run -3 fpdump both.fp
	[ "$(grep -c $'^fp\t' <<<"$output")" = 2 ]
}

@test "fpdump takes no records for a tensor of bytes" {
	mkdir d
	printf 'abcd' | npy '|u1' 4, >d/a.npy
	fpdump d >g.fp
	cp g.fp d
	run -3 --separate-stderr fpdump d
	[[ $output != *g.fp* && $output == *name=a* ]]
	[[ $stderr == 'fpdump: d/g.fp: is a stream of records'* ]]
	run -3 --separate-stderr fpdump d/a.npy g.fp
	[[ $stderr == 'fpdump: g.fp: is a stream of records'* ]]
	run -3 fpdump -c g.fp d
	[[ $output == *reason=damaged* ]]
	run -0 fpdump -t bytes d
	[[ $output == *name=g.fp* ]]
}

# bats test_tags=slow
@test "fpdump refuses options that would do nothing" {
	printf x >x
	for option in --select=x '--slice=x[0:1]' --stats -la=b --chunk=1 \
		-tlines -z --steps=1:2 --hash=mix64 --rows --skip=1 -E \
		--partial; do
		run -2 --separate-stderr fpdump -F sum "$option" x
		[[ $output == '' && $stderr == *'-F sum'* ]] ||
			[[ $stderr == *'-E goes with -c'* ]]
	done
	for option in -E --partial; do
		run -2 --separate-stderr fpdump "$option" x
		[[ $output == '' && $stderr == *"goes with"* ]]
	done
	run -0 fpdump -F sum -t bytes x
	run -0 fpdump -F sum --allow-bad 1 x none
	run -2 fpdump -F sum --strict x none
	fpdump x | sed /^end/d >cut.fp
	run -0 fpdump --partial cut.fp
}

@test "fpdump takes a table for one whatever its first line lacks" {
	printf '{"step":1,"a":1\n{"step":2,"a":3}\n' >torn.jsonl
	run -3 --separate-stderr fpdump torn.jsonl
	[[ $output == *$'name=a\tvtype=num\tvalue=3\tstep=2'* ]]
	[[ $stderr == *'torn.jsonl: line 1: '* ]]
	printf '\n{"step":1,"a":1}\n' >blank.jsonl
	run -0 fpdump blank.jsonl
	[[ $output == *$'name=a\tvtype=num\tvalue=1\tstep=1'* ]]
	# A first line of 48 KB.
	{
		printf step
		printf ',layer%d' {1..5000}
		printf '\n1'
		printf ',%d' {1..5000}
		echo
	} >wide.csv
	run -0 fpdump wide.csv
	[[ $output == *$'name=layer5000\tvtype=num\tvalue=5000\tstep=1'* ]]
	# A document is none.
	printf '{"step": 1,\n "a": 2\n}\n' >one.json
	run -0 fpdump one.json
	[[ $output == *dtype=bytes* || $output == *dtype=u8* ]]
}
