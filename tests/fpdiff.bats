# fpdiff: two runs compared. Streams are written here, so that what must come
# out is known beforehand.

setup() {
	load common
	cd "$BATS_TEST_TMPDIR"
	PATH=$build/tools:$PATH
}

# run_lines CHANGE: 5 steps of 4 layers with in, param and out each; outputs
# feed the next layer. CHANGE "flip" breaks the output of layers.1 at step 2
# and what follows from it, "data" the input of the first layer at step 3.
run_lines() {
	awk -v change="$1" -v rank="${2:-0}" '
	function line(name, io, step, v) {
		printf "fp\tname=%s\tdtype=f32\tshape=2,3\tbytes=24\t" \
		    "hash=xxh3-128:%032x\tstep=%d\tphase=fwd\trank=%s\t" \
		    "io=%s\tseq=%d\n", name, v, step, rank, io, seq++
	}
	BEGIN {
		for (s = 0; s < 5; s++)
			for (l = 0; l < 4; l++) {
				bad = change == "flip" && (s > 2 || \
				    (s == 2 && l > 1)) ? 100000 : 0
				if (change == "data" && s >= 3)
					bad = 200000
				line("layers." l, "in", s, s * 100 + l + bad)
				line("layers." l, "param", s, s * 100 + 50 + l)
				if (change == "flip" && s == 2 && l == 1)
					bad = 100000
				line("layers." l, "out", s,
				    s * 100 + l + 1 + bad)
			}
	}'
}

verdict() {
	grep '^verdict' | tr '\t' '\n'
}

# ---- the main job ---------------------------------------------------------

@test "fpdiff says same and status 0 for equal runs" {
	run_lines "" | seal order=exec >a
	run -0 fpdiff a a
	[[ $output == *$'prefix\trank=0\trecords=60\tstep=4\tname=layers.3\tio=out'* ]]
	[[ $output == *$'verdict\tresult=same\tstatus=0\tprefix=60\tcompared=60\tequal=60'* ]]
	[[ ${lines[-1]} == end*$'result=same\tstatus=0' ]]
}

@test "fpdiff names the first divergence, its root and the prefix before it" {
	run_lines "" | seal order=exec >a
	run_lines flip | seal order=exec >b
	run -1 fpdiff a b
	[[ $output == *$'prefix\trank=0\trecords=29\tstep=2\tname=layers.1\tio=param\tnext=layers.1'* ]]
	[[ $output == *$'diff\tclass=first\tname=layers.1\tstep=2'*$'role=root'* ]]
	[[ $output == *$'count\tclass=consequence\tn=20'* ]]
	[[ $output == *$'verdict\tresult=different\tstatus=1\tstep=2\tphase=fwd\trank=0\tio=out\tname=layers.1\tprefix=29'* ]]
	((${#lines[@]} <= 15))
}

@test "fpdiff calls an input that differs root among recorded" {
	run_lines "" | seal order=exec >a
	run_lines data | seal order=exec >b
	run -1 fpdiff a b
	[[ $output == *$'class=first\tname=layers.0\tstep=3'*$'io=in'*$'role=root-among-recorded'* ]]
}

@test "fpdiff -v prints every difference, without it at most 15 lines" {
	run_lines "" | seal order=exec >a
	run_lines flip | seal order=exec >b
	run -1 fpdiff -v a b
	(($(grep -c ^diff <<<"$output") == 21))
	run -1 fpdiff -q a b
	((${#lines[@]} == 1))
	[[ $output == verdict* ]]
}

@test "fpdiff -F json prints the same verdict" {
	run_lines "" | seal order=exec >a
	run_lines flip | seal order=exec >b
	run -1 fpdiff -q -F json a b
	[[ $output == '{"record":"verdict","result":"different","status":1,"step":2,"phase":"fwd","rank":0'* ]]
}

@test "fpdiff reads one operand from standard input and gzip" {
	run_lines "" | seal order=exec >a
	gzip -k a
	run -0 fpdiff a.gz - <a
	run -2 fpdiff - - <a
	[[ $output == *"only one operand"* ]]
}

@test "fpdiff finds an isolated difference and says so" {
	run_lines "" | seal order=exec >a
	run_lines "" | awk 'NR == 20 || NR == 30 {
		sub(/128:0/, "128:f") } 1' | seal order=exec >b
	run -1 fpdiff -v a b
	[[ $output == *$'class=first'*$'note=neighbours match again'* ]]
	[[ $output == *$'class=isolated'*$'note=different like the others, between two that match'* ]]
	[[ $output == *$'count\tclass=isolated\tn=1\tnote=different like the others'* ]]
	[[ $output == *$'result=different'*$'different=2'* ]]
	[[ $output != *"class=consequence"* ]]
}

@test "fpdiff --first stops at the first divergence" {
	run_lines "" | seal order=exec >a
	run_lines flip | seal order=exec >b
	run -1 fpdiff --first a b
	[[ $output == *$'name=layers.1\tprefix=29'*$'different=1'* ]]
}

@test "fpdiff --steps and --select look at a part" {
	run_lines "" | seal order=exec >a
	run_lines flip | seal order=exec >b
	run -0 fpdiff --steps 0:1 a b
	run -1 fpdiff --steps 2 a b
	run -0 fpdiff --select layers.0 --steps 2 a b
	run -1 fpdiff --select 'layers.[12]' --steps 2 a b
	run -2 fpdiff --steps 4:x a b
}

@test "fpdiff -F json prints step and rank as numbers, if they are integers" {
	run_lines "" | sed 's/rank=0/rank=node7/; s/step=2/step=02/' |
		seal order=exec >a
	sed 's/hash=xxh3-128:0/hash=xxh3-128:f/' a >b
	run -1 fpdiff -F json b a
	[[ $output == *'"name":"layers.0","step":0,"phase":"fwd","rank":"node7"'* ]]
	run -1 fpdiff -v --steps 2 -F json b a
	[[ $output == *'"step":"02"'* && $output != *'"step":2'* ]]
}

@test "fpdiff counts the records without a partner by rank" {
	(run_lines "" 0; run_lines "" 1) | seal order=exec >a
	(run_lines "" 0 | sed 5d; run_lines "" 1 | sed '7d;9d') |
		seal order=exec >b
	run -1 fpdiff a b
	[[ $output == *$'prefix\trank=0\trecords=59\t'*$'\tunmatched=1\n'* ]]
	[[ $output == *$'prefix\trank=1\trecords=58\t'*$'\tunmatched=2\n'* ]]
}

@test "fpdiff fingerprints an array or a table on standard input in place" {
	npy 2,2 1 2 3 4 >a.npy
	npy 2,2 1 2 3 5 >b.npy
	run -0 fpdiff -q a.npy - <a.npy
	[[ $output == *compared=1* ]]
	run -1 fpdiff -q a.npy - < <(cat b.npy)
	[[ $output == *different=1* ]]
	run -0 fpdiff -q <(gzip -c a.npy) a.npy
	safetensors c.safetensors ''
	run -0 fpdiff -q c.safetensors <(cat c.safetensors)
	printf 'step,loss\n0,1.5\n1,1.25\n' >a.csv
	run -0 fpdiff a.csv - < <(cat a.csv)
	[[ $output == *$'prefix\trecords=2\tstep=1\tname=loss'* ]]
	run -1 fpdiff -q a.csv - < <(sed s/1.25/1.35/ a.csv)
	# What is neither is no stream, and said to be, once.
	run -2 --separate-stderr fpdiff -q "$root/tests/demo/data/good.fp.gz" - <<<"hello world"
	[[ $stderr == "fpdiff: -: neither records nor tensors nor a table"* ]]
}

# ---- alignment ------------------------------------------------------------

@test "fpdiff counts an insertion among repeated names as one record" {
	log() { awk -v at="$1" 'BEGIN { for (i = 0; i < 2600; i++) {
		if (i == at) print "fp\tname=op3\tdtype=f32\tshape=4\tbytes=16\thash=xxh3-128:" sprintf("%032d", 9)
		print "fp\tname=op" i % 40 "\tdtype=f32\tshape=4\tbytes=16\thash=xxh3-128:" sprintf("%032x", i + 4096)
	}}'; }
	log -1 | seal order=exec >a
	log 1000 | seal order=exec >b
	run -1 fpdiff a b
	[[ $output == *$'count\tclass=unmatched\tn=1\tnote=0 in A alone, 1 in B alone'* ]]
	[[ $output == *$'reason=unmatched'*$'equal=2600\tdifferent=0\tunmatched=1' ]] ||
		[[ $output == *$'equal=2600\tdifferent=0\tunmatched=1'* ]]
}

# A log like OpGuard's showcase: 2,600 operations of 40 names that repeat, 22
# of B's inserted, and in one of the two runs 108 operations with other bits.
log_pair() {
	awk -v diffs="$1" 'BEGIN {
		srand(7)
		for (i = 0; i < 22; i++)
			ins[40 + int(i * 115 + rand() * 60)] = 1
		for (i = 0; i < diffs; i++)
			bad[30 + int(i * 23)] = 1
		for (i = 0; i < 2600; i++) {
			n = int(rand() * 40)
			v = sprintf("%032x", 65536 + i)
			line = "fp\tname=op" n "\tdtype=f16\tshape=8,8\tbytes=128\thash=xxh3-128:"
			print line v > "la"
			if (i in ins)
				print "fp\tname=op" int(rand() * 40) "\tdtype=f16\tshape=8,8\tbytes=128\thash=xxh3-128:" sprintf("e%031x", i) > "lb"
			if (i in bad)
				v = sprintf("d%031x", i)
			print line v > "lb"
		}
	}'
	seal order=exec <la >a
	seal order=exec <lb >b
}

@test "fpdiff finds exactly 22 insertions in a log of 2,600 operations" {
	log_pair 0
	run -1 fpdiff a b
	[[ $output == *$'equal=2600\tdifferent=0\tunmatched=22'* ]]
	[[ $output == *'0 in A alone, 22 in B alone'* ]]
	fpdiff -v a b | sed -n 's/^diff\tclass=unmatched\t.*\tb=//p' | sort >found
	grep -o 'xxh3-128:e[0-9a-f]*' lb | sort | diff - found
}

@test "fpdiff finds exactly 108 differences among 22 insertions" {
	log_pair 108
	run -1 fpdiff a b
	[[ $output == *$'equal=2492\tdifferent=108\tunmatched=22'* ]]
	[[ $output == *$'prefix\trecords=30\t'* ]]
	fpdiff -v a b >all || [[ $? == 1 ]]
	sed -n 's/^diff\tclass=unmatched\t.*\tb=//p' all | sort >found
	grep -o 'xxh3-128:e[0-9a-f]*' lb | sort | diff - found
	grep '^diff' all | grep -v class=unmatched |
		grep -o '\<b=xxh3-128:[0-9a-f]*' | sed s/b=// | sort >found
	grep -o 'xxh3-128:d[0-9a-f]*' lb | sort | diff - found
	(($(wc -l <found) == 108))
}

llama() { # ORDER: module or name
	awk 'BEGIN {
		split("self_attn.q_proj self_attn.k_proj self_attn.v_proj self_attn.o_proj mlp.gate_proj mlp.up_proj mlp.down_proj input_layernorm post_attention_layernorm", part, " ")
		print "model.embed_tokens.weight"
		for (l = 0; l < 32; l++)
			for (p = 1; p <= 9; p++)
				print "model.layers." l "." part[p] ".weight"
		print "model.norm.weight"
		print "lm_head.weight"
	}' | if [[ $1 == name ]]; then LC_ALL=C sort; else cat; fi |
	awk '{ h = 0; for (i = 1; i <= length($0); i++) h = (h * 31 + index("abcdefghijklmnopqrstuvwxyz._0123456789", substr($0, i, 1))) % 1000003
		printf "fp\tname=%s\tdtype=bf16\tshape=64,64\tbytes=8192\thash=xxh3-128:%032x\n", $0, h }'
}

@test "fpdiff matches 32 layers in module order with name order" {
	llama module | seal order=exec >a
	llama name | seal order=set >b
	run -0 fpdiff a b
	[[ $output == *$'compared=291\tequal=291\tdifferent=0\tunmatched=0'* ]]
	[[ $output != *prefix* ]]
}

@test "fpdiff finds a loss series different at step 3081 by 1.0e-05 and equal again" {
	loss() { awk -v bad="$1" 'BEGIN { for (s = 0; s < 5000; s++) {
		v = 6.25 - s / 1024
		if (bad && s >= 3081 && s != 4000) v += 0.00001 * (s == 3081 ? 1 : 3)
		printf "scalar\tname=loss\tvtype=text\tvalue=%.6f\tstep=%d\n", v, s
	}}' | seal order=exec; }
	loss 0 >a
	loss 1 >b
	run -1 fpdiff a b
	[[ $output == *$'prefix\trecords=3081\tstep=3080\tname=loss'* ]]
	[[ $output == *$'class=first\tname=loss\tstep=3081'*$'abs=1.0000000000'*e-05* ]] ||
		[[ $output == *$'class=first\tname=loss\tstep=3081'*$'abs=9.99999999'*e-06* ]]
	[[ $output == *$'equal=3082\tdifferent=1918'* ]]
	[[ $output == *$'verdict\tresult=different\tstatus=1\tstep=3081'* ]]
	# Of the steps behind it exactly 4000 is not among the differences.
	fpdiff -v a b | sed -n 's/^diff\t.*\tstep=\([0-9]*\).*/\1/p' >found || true
	seq 3081 4999 | grep -vx 4000 | diff - found
}

@test "fpdiff names the rows of an embedding race from its tiles" {
	emb() { awk -v bad="$1" 'BEGIN {
		printf "fp\tname=emb\tdtype=f32\tshape=64,8\tbytes=2048\thash=xxh3-128:%032x\tstep=1\ttiles=xxh3-128:", 7 + bad
		for (i = 0; i < 16; i++)
			printf "%s%032x", i ? "," : "", i + (bad && (i == 3 || i == 4 || i == 9) ? 99 : 0)
		print "" }' | seal order=set; }
	emb 0 >a
	emb 1 >b
	run -1 fpdiff a b
	[[ $output == *$'rows=12-19,36-39\tnrows=12'* ]]
}

@test "fpdiff says what the second hashes tell about a change" {
	one() { printf 'fp\tname=w\tdtype=f32\tshape=4\tbytes=16\thash=xxh3-128:%032x%s\n' "$1" "$2" | seal order=set; }
	same=$'\tcanon=xxh3-128:00000000000000000000000000000005'
	one 1 "$same" >a
	one 2 "$same" >b
	run -1 fpdiff a b
	[[ $output == *$'change=zero-sign-or-nan'* ]]
	one 2 "" >b
	run -1 fpdiff a b
	[[ $output != *change=* ]]
	one 1 $'\trows=xxh3-128:00000000000000000000000000000006' >a
	one 2 $'\trows=xxh3-128:00000000000000000000000000000006' >b
	run -1 fpdiff a b
	[[ $output == *$'change=rows-permuted'* ]]
}

# ---- what cannot be compared ----------------------------------------------

@test "fpdiff does not compare what has another dtype, shape or algorithm" {
	one() { printf 'fp\tname=w\tdtype=%s\tshape=%s\tbytes=16\thash=%s\n' "$@" | seal order=set; }
	h=xxh3-128:00000000000000000000000000000005
	one f32 4 $h >a
	one i32 4 $h >b
	run -3 fpdiff a b
	[[ $output == *$'class=incomparable\tname=w\ta=f32\tb=i32\tnote=dtype'* ]]
	[[ $output == *$'result=unknown\tstatus=3\treason=incomparable'* ]]
	one f32 2,2 $h >b
	run -3 fpdiff a b
	[[ $output == *$'a=4\tb=2,2\tnote=shape'* ]]
	one f32 4 mix64:0000000000000005 >b
	run -3 fpdiff a b
	[[ $output == *note=hash* ]]
}

@test "fpdiff turns different into unknown only when the conditions differ" {
	run_lines "" | seal order=exec switches=tf32=1 >a
	run_lines flip | seal order=exec switches=tf32=0 >b
	run_lines "" | seal order=exec switches=tf32=0 >c
	run_lines flip | seal order=exec >d
	run -3 fpdiff a b
	[[ $output == *$'reason=conditions-differ'* ]]
	run -0 fpdiff a c
	run -1 fpdiff a d
}

@test "fpdiff masks what a file names, counts each use, and keeps the rest" {
	run_lines "" | seal order=exec >a
	run_lines "" | awk 'NR == 20 || NR == 32 {
		sub(/128:0/, "128:f") } 1' | seal order=exec >b
	run -1 fpdiff a b
	printf 'mask\tname=layers[.][0-9]\tio=param|out|in\treason=scratch\n' >m
	run -0 fpdiff -m m a b
	[[ $output == *$'count\tclass=masked\tn=2'* ]]
	[[ $output == *$'count\tclass=masked\tn=2\trule=m:1\tnote=scratch'* ]]
	[[ $output == *masked=2* ]]
	printf '# padding\nmask\tname=layers.3\n' >m
	run -1 fpdiff -m m a b
}

@test "fpdiff reads a mask, a map or an array from standard input, once" {
	run_lines "" | seal order=exec >a
	run_lines data | seal order=exec >b
	run -1 fpdiff -q a b
	run -0 fpdiff -q -m - a b < <(printf "mask\\tname=.*\\n")
	[[ $output == *masked=* ]]
	run -2 fpdiff -m - a b < <(printf 'mask\tname=x\nmask\n')
	[[ $output == *"standard input:2: mask record without name="* ]]
	# Records that are no rules.
	run -2 fpdiff -m b a b
	[[ $output == *'b:2: expected mask or unstable, found "fp"'* ]]
	run -2 fpdiff -m - - b < <(printf 'mask\tname=x\n')
	[[ $output == *"standard input can only be read once"* ]]
	local demo=$root/tests/demo/data
	run -1 fpdiff -q --tensors - "$demo/bad-grad.npy" <"$demo/good-grad.npy"
	run -0 fpdiff -q --tensors - "$demo/bad-grad.npy" < <(cat "$demo/bad-grad.npy")
}

@test "fpdiff names file and line of a mask it does not understand" {
	run_lines "" | seal order=exec >a
	printf '# one\nmask\tname=ok\nmask\tnane=x\n' >m
	run -2 fpdiff -m m a a
	[[ $output == *"m: 3:"* || $output == *"m:3:"* ]]
	printf 'mask\tname=(\n' >m
	run -2 fpdiff -m m a a
	[[ $output == *m:*1:* ]]
	printf 'map\ta=x\tb=y\n' >m
	run -2 fpdiff -m m a a
	printf 'maks\tname=x\n' >m
	run -2 fpdiff -m m a a
}

@test "fpdiff gives only unknown after an unstable boundary flipped" {
	run_lines "" | seal order=exec >a
	run_lines flip | seal order=exec >b
	printf 'unstable\tname=layers.1\tio=out\tphase=fwd\tflips=2\truns=10\tbound=0.26\n' >m
	run -3 fpdiff -m m a b
	[[ $output == *$'reason=unstable'* ]]
	[[ $output == *$'count\tclass=unstable\tn=3'* ]]
	printf 'unstable\tname=layers.3\tio=out\tflips=2\truns=10\n' >m
	run -1 fpdiff -m m a b
}

@test "fpdiff --map compares under other names" {
	run_lines "" | seal order=exec >a
	run_lines "" | sed 's/name=layers/name=module.layers/' | seal order=exec >b
	run -3 fpdiff a b
	[[ $output == *reason=nothing-compared* ]]
	printf 'map\ta=layers.$1\tb=module[.]layers[.](.*)\n' >m
	run -0 fpdiff --map m a b
	[[ $output == *equal=60* ]]
}

# ---- input that is not whole ----------------------------------------------

@test "fpdiff never calls a filtered stream same, and still sees a difference" {
	run_lines "" | seal order=exec >a
	run_lines flip | seal order=exec >b
	grep -v '^end' a >c
	run -3 fpdiff a c
	[[ $output == *reason=filtered* ]]
	run -0 fpdiff --partial a c
	[[ $output == *scope=partial* ]]
	sed 10,20d a >c
	run -3 fpdiff a c
	[[ $output == *reason=filtered*unmatched=11* ]]
	sed 5d b >c
	run -1 fpdiff a c
}

@test "fpdiff counts bad lines, forbids same and keeps different" {
	run_lines "" | seal order=exec >a
	run_lines flip | seal order=exec >b
	sed 's/^\(fp\tname=layers.3\tdtype=f32\)\(.*step=1.*io=out\)/\1\tdtype=f32\2/' a >c
	run -3 --separate-stderr fpdiff a c
	[[ $stderr == *"c:"*"duplicate key"* ]]
	[[ $output == *bad=1* ]]
	run -2 fpdiff --strict a c
	printf 'fp\trubbish\n' >>b
	run -1 --separate-stderr fpdiff a b
	[[ $output == *bad=1* ]]
}

@test "fpdiff reports a bad line that both sides have on both" {
	run_lines "" | sed '7s/xxh3-128:0/xxh3-128:g/' | seal order=exec >a
	run -3 fpdiff a a
	[[ $output == *equal=59*bad=2* ]]
}

@test "fpdiff puts a sorted stream back in order" {
	run_lines "" | seal order=exec >a
	run_lines flip | seal order=exec | LC_ALL=C sort >b
	run -1 fpdiff a b
	[[ $output == *$'name=layers.1\tprefix=29'* ]]
}

@test "fpdiff says unknown(order) where a sequence falls" {
	run_lines "" | seal order=exec >a
	(head -n 1 a; sed '1d;$d' a | LC_ALL=C sort; tail -n 1 a) >b
	run -3 fpdiff a b
	[[ $output == *reason=order* ]]
}

@test "fpdiff counts a missing rank and does not call it different" {
	run_lines "" 0 >r0
	run_lines "" 1 >r1
	cat r0 r1 | seal order=exec >a
	seal order=exec <r0 >b
	run -3 fpdiff a b
	[[ $output == *reason=missing-ranks*skipped=1* ]]
	run_lines flip 0 | seal order=exec >b
	run -1 fpdiff a b
}

@test "fpdiff judges the rank with the lowest step first" {
	(run_lines data 0; run_lines flip 1) | seal order=exec >b
	(run_lines "" 0; run_lines "" 1) | seal order=exec >a
	run -1 fpdiff a b
	[[ $output == *$'verdict\tresult=different\tstatus=1\tstep=2\tphase=fwd\trank=1'* ]]
	[[ $(grep -c ^prefix <<<"$output") == 2 ]]
}

@test "fpdiff does not care how ranks are interleaved" {
	run_lines "" 0 >r0
	run_lines "" 1 >r1
	(cat r0 r1) | seal order=exec >a
	paste -d '\n' r0 r1 | seal order=exec >b
	run -0 fpdiff a b
	[[ $output == *equal=120* ]]
}

@test "fpdiff reports a duplicate identity in a set" {
	printf 'fp\tname=w\tdtype=f32\tshape=4\tbytes=16\thash=xxh3-128:%032d\n' 1 2 | seal order=set >a
	run -3 --separate-stderr fpdiff a a
	[[ $stderr == *'duplicate identity "w"'* ]]
	[[ $output == *reason=damaged* ]]
}

@test "fpdiff refuses a stream of a later version, an empty and a missing file" {
	run_lines "" | seal order=exec >a
	sed '1s/version=1/version=9/' a >b
	run -2 fpdiff a b
	[[ $output == *"version 9"* ]]
	run -2 fpdiff a nowhere
	run -2 fpdiff a
	run -2 fpdiff --window 3 a a
}

@test "fpdiff has no verdict where nothing was compared" {
	seal order=exec </dev/null >a
	run -2 fpdiff a a
	[[ $output != *verdict* ]]
}

@test "fpdiff takes records without head and end for filtered" {
	run_lines "" >a
	run_lines flip >b
	run -3 fpdiff a a
	[[ $output == *reason=filtered* ]]
	run -1 fpdiff a b
}

# bats test_tags=slow
@test "fpdiff joins directories of streams rank by rank" {
	mkdir a b c
	for r in 0 1 2 10; do
		run_lines "" $r | seal order=exec >a/run.$r.fp
		run_lines "" $r | seal order=exec | gzip >b/r$r.gz
		run_lines flip $r | seal order=exec >c/run.$r.fp
	done
	run -0 fpdiff a b
	[[ $output == *$'equal=240'* ]]
	run_lines "" 1 | seal order=exec >c/run.1.fp
	run -1 fpdiff a c
	[[ $output == *$'verdict\tresult=different\tstatus=1\tstep=2\tphase=fwd\trank=0'* ]]
	[[ $output == *different=63* ]]
	rm b/r2.gz
	run -3 fpdiff --window 64 a b
	[[ $output == *reason=missing-ranks*equal=180*unmatched=60*skipped=1* ]]
	echo hello >b/README
	run -3 --separate-stderr fpdiff a b
	[[ $stderr == *"b/README: no record stream, left out"* ]]
	[[ $output == *skipped=2* ]]
}

@test "fpdiff fingerprints files and directories in place" {
	printf 'step,loss\n0,1.5\n1,1.25\n2,1.125\n' >a.csv
	printf 'step,loss\n0,1.5\n1,1.25\n2,1.130\n' >b.csv
	run -1 fpdiff a.csv b.csv
	[[ $output == *$'prefix\trecords=2\tstep=1\tname=loss'* ]]
	[[ $output == *abs=0.00499999* ]]
	mkdir a b
	echo one >a/x; echo two >a/y
	cp a/x a/y b
	run -0 fpdiff a b
	echo three >b/y
	run -1 fpdiff a b
	[[ $output == *$'class=incomparable\tname=y'* || $output == *$'class=different\tname=y'* ]]
}

@test "fpdiff -E prints evidence for rcacompose" {
	run_lines "" | seal order=exec time=1700000000 >a
	run_lines flip | seal order=exec time=1700000001 >b
	run -1 fpdiff -E a b
	[[ $output == *$'evidence\ttime=1700000001\tentity=boundary:layers.1\tagent=fpdiff\tstatus=faulty'* ]]
	run -0 fpdiff -E a a
	[[ $output == *$'evidence\t'*$'status=healthy'* ]]
}

# bats test_tags=slow
@test "fpdiff aligns a large stream in memory of the window" {
	skip_sanitized
	fpstream 300000 5 7 4 >a
	fpstream 300000 5 8 4 >b
	run -1 bash -c 'ulimit -v 40000; fpdiff a b'
	[[ $output == *different=0* ]]
}

# ---- the data itself ------------------------------------------------------

@test "fpdiff --tensors names the element and the bit that flipped" {
	d=$root/tests/demo/data
	run -1 fpdiff --tensors "$d/good-grad.npy" "$d/bad-grad.npy"
	[[ $output == *$'diff\tclass=single-bit\tname=tensor\telements=1\tshare=0.00048828125\tfirst=13,40\tbox=13,40\trows=13\tnrows=1\tulp=1048576'* ]]
	[[ $output == *$'\tbits=20x1'* ]]
	run -0 fpdiff --tensors "$d/good-grad.npy" "$d/good-grad.npy"
}

# npy SHAPE VALUE...: little-endian int32 as .npy
npy() {
	local shape=$1 v
	shift
	printf '\x93NUMPY\x01\x00\x76\x00'
	printf '%-117s\n' "{'descr': '<i4', 'fortran_order': False, 'shape': ($shape), }"
	for v; do
		printf "\\x$(printf %02x $((v & 255)))\\x$(printf %02x $((v >> 8 & 255)))\\x00\\x00"
	done
}

# bats test_tags=slow
@test "fpdiff --tensors tells permuted rows from zeros and from other changes" {
	npy 3,2 1 2 3 4 5 6 >a.npy
	npy 3,2 3 4 1 2 5 6 >b.npy
	run -1 fpdiff --tensors a.npy b.npy
	[[ $output == *$'class=rows-permuted'*$'elements=4'*$'rows=0-1\tnrows=2'* ]]
	npy 3,2 1 0 3 0 5 0 >b.npy
	run -1 fpdiff --tensors a.npy b.npy
	[[ $output == *$'class=nullified'*$'box=0-2,1'*$'stride=2'* ]]
	npy 3,2 1 2 3 4 5 1029 >b.npy
	run -1 fpdiff --tensors a.npy b.npy
	[[ $output == *$'class=multi-bit'*$'first=2,1'*$'abs=1023'* ]]
}

@test "fpdiff --tensors does not compare other shapes, and reads no half tensor" {
	npy 3,2 1 2 3 4 5 6 >a.npy
	npy 2,3 1 2 3 4 5 6 >b.npy
	run -3 fpdiff --tensors a.npy b.npy
	[[ $output == *$'class=incomparable'*$'a=3,2\tb=2,3\tnote=shape'* ]]
	head -c 148 a.npy >b.npy
	run -2 fpdiff --tensors a.npy b.npy
	run -2 fpdiff --tensors a.npy:nope a.npy
	[[ $output == *'no tensor "nope"'* ]]
}

# ---- bad input ------------------------------------------------------------

# bats test_tags=slow
@test "fpdiff survives a stream cut at any length, and never calls it same" {
	run_lines "" | head -n 12 | seal order=exec >a
	n=$(wc -c <a)
	z=$(($(gzip -c a | wc -c) - 1))
	for ((i = 1; i < n; i += 37)); do
		head -c $i a >b
		rc=0
		fpdiff -q a b >out 2>/dev/null || rc=$?
		[[ $rc == 3 || $rc == 2 ]]
		gzip -c a | head -c $((i % z + 1)) >b.gz
		rc=0
		fpdiff -q a b.gz >out 2>/dev/null || rc=$?
		[[ $rc == 3 || $rc == 2 ]]
	done
}

# bats test_tags=slow
@test "fpdiff never calls a stream with a flipped byte same" {
	run_lines "" | head -n 6 | seal order=exec >a
	n=$(wc -c <a)
	for ((i = 20; i < n; i += 23)); do
		{ head -c $i a; printf '~'; tail -c +$((i + 2)) a; } >b
		rc=0
		fpdiff -q a b >out 2>/dev/null || rc=$?
		# What only a person reads (tool=, a comment) may change.
		[[ $rc != 0 || $i -lt 60 ]]
	done
}

@test "fpdiff says in the verdict that a stream was changed after it was written" {
	zcat "$root/tests/demo/data/good.fp.gz" >good.fp
	# One digit of one digest: whether the run or the file differs is open.
	sed '100s/hash=xxh3-128:./hash=xxh3-128:f/' good.fp >changed.fp
	run -1 fpdiff -q good.fp changed.fp
	[[ $output == *"different=1	"*"altered=1"* ]]
}

@test "fpdiff gives up on a device that never ends" {
	run -2 timeout 20 fpdiff -q "$root/tests/demo/data/good.fp.gz" - </dev/zero
	[[ $output == *"-: neither records nor tensors"* ]]
	run -2 timeout 20 fpdiff -q "$root/tests/demo/data/good.fp.gz" - \
		< <(exec yes)
	[[ $output == *"-: neither records nor tensors"* ]]
}

@test "fpdiff gives up on a line that never ends" {
	local big='head\tof=fp\tversion=1\ttool=x\n'
	run -3 timeout 20 fpdiff -q "$root/tests/demo/data/good.fp.gz" \
		<(printf "$big"; timeout 10 tr '\0' a </dev/zero)
	[[ $output == *"no record stream"* ]]
}

# ---- reruns ---------------------------------------------------------------

# job FILE DEVICES [RANK STEP VALUE [NAME]]: one run of as many ranks as there
# are devices (words), 3 steps of 2 boundaries; at RANK and STEP the output of
# NAME (layers.1) comes out as VALUE, and everything of later steps differs.
job() {
	awk -v devs="$2" -v rank="${3:--1}" -v step="${4:-99}" \
		-v value="${5:-0}" -v name="${6:-layers.1}" '
	function line(n, io, s, r, v) {
		printf "fp\tname=%s\tdtype=f32\tshape=4\tbytes=16\thash=xxh3-128:%032x\tstep=%d\tphase=fwd\trank=%d\tio=%s\tdev=%s\n", n, v, s, r, io, d[r + 1]
	}
	BEGIN {
		n = split(devs, d, " ")
		for (s = 0; s < 3; s++)
			for (r = 0; r < n; r++)
				for (l = 0; l < 2; l++) {
					off = s > step ? 5000 + value : 0
					line("layers." l, "in", s, r, s * 100 + l + off)
					if (s == step && r == rank && name == "layers." l)
						off = 9000 + value
					line("layers." l, "out", s, r, s * 100 + 10 + l + off)
				}
	}' | seal order=exec >"$1"
}
A="h1/0 h1/1 h1/2 h1/3"
B="h2/0 h2/1 h2/2 h2/3"

@test "fpdiff --reruns says same and the rate that is excluded" {
	job ref "$A"
	for i in 1 2 3 4 5; do job r$i "$B"; done
	run -0 fpdiff --reruns ref -- r1 r2 r3 r4 r5
	[[ $output == *$'result=same\tstatus=0\tbound=0.450'* ]]
}

@test "fpdiff --reruns blames the code where all sets give the same other bits" {
	job ref1 "$A"; job ref2 "$B"
	job r1 "$A" 1 1 7; job r2 "$B" 1 1 7; job r3 "$A" 1 1 7
	run -1 fpdiff --reruns ref1 ref2 -- r1 r2 r3
	[[ $output == *$'verdict\tresult=different\tstatus=1\tentity=code:layers.1\tcause=code-or-data\tstep=1\tphase=fwd\trank=1\tio=out\tname=layers.1'* ]]
}

@test "fpdiff --reruns follows a device whose ranks are rotated" {
	job ref1 "$A"; job ref2 "$B"
	local d=(h1/0 h1/1 h1/2 h1/3) runs=() i
	for i in 0 1 2 3 4 5 6; do
		job r$i "${d[$((i % 4))]} ${d[$(((i + 1) % 4))]} ${d[$(((i + 2) % 4))]} ${d[$(((i + 3) % 4))]}" \
			$(((6 - i % 4) % 4)) $((i % 2)) $i
		runs+=(r$i)
	done
	run -1 fpdiff --reruns ref1 ref2 -- "${runs[@]}"
	[[ $output == *$'entity=device:h1/2\tcause=device'* ]]
	run -3 fpdiff --reruns ref1 ref2 -- r0 r1
	[[ $output == *reason=role-confounded* || $output == *reason=thin* ]]
	run -3 fpdiff --reruns ref1 -- "${runs[@]}"
	[[ $output == *reason=reference-suspect*'need=a clean run on another set'* ]]
}

@test "fpdiff --reruns does not know without devices, thin or unstable references" {
	job ref1 "$A"; job ref2 "$B"
	job r1 "$A" 1 1 7; job r2 "$A"
	run -3 fpdiff --reruns ref1 ref2 -- r1 r2
	[[ $output == *reason=thin* ]]
	grep -v '^head\|^end' r1 | sed 's/\tdev=.*//' | seal order=exec >r3
	run -3 fpdiff --reruns ref1 ref2 -- r3 r2
	[[ $output == *reason=no-devices* ]]
	run -3 fpdiff --reruns ref1 r1 -- r2
	[[ $output == *reason=reference-unstable* ]]
}

@test "fpdiff --reruns leaves out a run that is not whole and counts it" {
	job ref1 "$A"; job ref2 "$B"
	job r1 "$A"; job r2 "$A"
	grep -v '^end' r2 >r3
	run -3 --separate-stderr fpdiff --reruns ref1 ref2 -- r1 r3
	[[ $output == *reason=damaged*skipped=1* ]]
	[[ $stderr == *"r3: not used: filtered"* ]]
	run -2 fpdiff --reruns ref1
	run -2 fpdiff --reruns --alpha 2 ref1 -- r1
}

# safetensors NAME METADATA: one f32 tensor "w" of two elements.
safetensors() {
	local json="{$2\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}"
	printf "\\x$(printf %02x ${#json})\\0\\0\\0\\0\\0\\0\\0" >"$1"
	printf '%sABCDEFGH' "$json" >>"$1"
}

@test "fpdiff does not count metadata that the other format cannot have" {
	safetensors a.safetensors '"__metadata__":{"format":"pt"},'
	safetensors b.safetensors ''
	run -0 fpdiff a.safetensors b.safetensors
	[[ $output == *"count	class=container	n=1"* ]]
	[[ $output == *"unmatched=0"* ]]
	# Where both have some, each is a record like any other.
	safetensors c.safetensors '"__metadata__":{"other":"x"},'
	run -1 fpdiff a.safetensors c.safetensors
	[[ $output == *"reason=unmatched"*"unmatched=2"* ]]
	safetensors d.safetensors '"__metadata__":{"format":"np"},'
	run -1 fpdiff a.safetensors d.safetensors
	[[ $output == *"name=kv:format"* ]]
}

# ---- learning -------------------------------------------------------------

@test "fpdiff --learn makes a mask of unstable roots, and only of roots" {
	for i in 1 2 3 4; do job g$i "$A"; done
	run -0 fpdiff --learn g1 g2 g3 g4
	[[ $output == *$'result=same\tstatus=0\tbound=0.527'* ]]
	job g2 "$A" 1 1 7; job g3 "$A" 2 0 8
	run -1 fpdiff --learn g1 g2 g3 g4 -o m
	grep -q $'^unstable\tname=layers.1\tphase=fwd\tio=out\tflips=2\truns=4\tbound=0.5271291954984' m
	(($(grep -c ^unstable m) == 1))
	grep -q $'^finding\tentity=boundary:layers.1\tresult=unknown\treason=unstable' m
	job x "$A" 3 2 9
	run -3 fpdiff -m m g1 x
	[[ $output == *reason=unstable* ]]
	job x "$A" 3 2 9 layers.0
	run -1 fpdiff -m m g1 x
}

@test "fpdiff --learn does not learn one odd run of one device" {
	for i in 1 2 3 4; do job g$i "$A"; done
	job g3 "$A" 2 1 7
	run -3 fpdiff --learn g1 g2 g3 g4
	[[ $output == *$'finding\tentity=device:h1/2\tresult=unknown\treason=suspect'* ]]
	[[ $output != *$'\nunstable'* && $output == *reason=suspect* ]]
	# The odd one may be the first.
	run -3 fpdiff --learn g3 g1 g2 g4
	[[ $output == *$'reason=suspect'*'note=1 of 4 runs'* ]]
}

# ---- replicas -------------------------------------------------------------

# replicas N [BAD]: N data-parallel ranks, 2 steps of 3 gradients that are all
# reduced; rank BAD has other bits from step 1, layer 1 on.
replicas() {
	awk -v n="$1" -v bad="${2:--1}" 'BEGIN {
		for (s = 0; s < 2; s++)
			for (r = 0; r < n; r++)
				for (l = 0; l < 3; l++) {
					v = s * 10 + l + (r == bad && s == 1 && l >= 1 ? 500 : 0)
					printf "fp\tname=w%d\tdtype=f32\tshape=4\tbytes=16\thash=xxh3-128:%032x\tstep=%d\tphase=bwd\trank=%d\tdp=%d\tio=grad\treplicated=dp\n", l, v, s, r, r
					printf "fp\tname=x\tdtype=f32\tshape=4\tbytes=16\thash=xxh3-128:%032x\tstep=%d\tphase=fwd\trank=%d\tdp=%d\tio=in\n", r * 99 + s, s, r, r
				}
	}' | seal order=exec
}

@test "fpdiff --across names the replica that is not like the other two" {
	replicas 3 >a
	run -0 fpdiff --across dp a
	[[ $output == *$'result=same'*$'equal=6\tdifferent=0'* ]]
	replicas 3 2 >a
	run -1 fpdiff --across dp a
	[[ $output == *$'entity=rank:2\tcause=replica\tstep=1'*$'name=w1'* ]]
	[[ $output == *$'different=2'* ]]
	replicas 3 0 >a
	run -1 fpdiff --across dp a
	[[ $output == *$'entity=rank:0\tcause=replica'* ]]
}

@test "fpdiff --across abstains with two, and where a replica lacks records" {
	replicas 2 1 >a
	run -3 fpdiff --across dp a
	[[ $output == *$'reason=no-majority\tneed=a third replica'* ]]
	replicas 3 | grep -v '^head\|^end' | sed '/rank=2.*name=w9/d;$d' |
		sed '/name=w2.*step=1.*rank=2/d' | seal order=exec >a
	run -3 fpdiff --across dp a
	[[ $output == *reason=missing-replicas*skipped=1* ]]
	run -2 fpdiff --across tp a
	run -2 fpdiff --across name a
	run -2 fpdiff --across dp a a
}

@test "fpdiff --across compares everything where the head says replicated" {
	run_lines "" 0 >r0; run_lines "" 1 >r1; run_lines flip 2 >r2
	cat r0 r1 r2 | seal order=exec inputs=replicated >a
	run -1 fpdiff --across rank a
	[[ $output == *$'entity=rank:2\tcause=replica\tstep=2'*$'name=layers.1'* ]]
}

# ---- shards ---------------------------------------------------------------

@test "fpdiff --combine says same for row and column shards of one tensor" {
	# Two parts by rows, four by columns; the sums are made up so that both
	# give 111, as the terms of one tensor would.
	part() { # NAME SUM OFFSET SHAPE RANK
		printf 'fp\tname=%s\tdtype=f32\tshape=%s\tbytes=1\thash=xxh3-128:%032x\trank=%s\tshardsum=xxh3-128:%032x\tunit=4\tglobal=32,32\toffset=%s\n' \
			"$1" "$4" 7 "$5" "$2" "$3"
	}
	{ part w 100 0,0 16,32 0; part w 11 16,0 16,32 1; } | seal order=set >rows
	{ part w 60 0,0 32,8 0; part w 40 0,8 32,8 1; part w 10 0,16 32,8 2
	  part w 1 0,24 32,8 3; } | sed '3,4s/bytes=1/bytes=0/' |
		seal order=set >cols
	run -0 fpdiff --combine rows cols
	[[ $output == *$'equal=1\tdifferent=0'* ]]
	# A replica is counted once, one that differs is found.
	{ part w 100 0,0 16,32 0; part w 100 0,0 16,32 2; part w 11 16,0 16,32 1; } |
		seal order=set >rep
	run -0 fpdiff --combine rep rows
	{ part w 100 0,0 16,32 0; part w 101 0,0 16,32 2; part w 11 16,0 16,32 1; } |
		seal order=set >rep
	run -1 fpdiff --combine rep
	[[ $output == *'note=replicas of one shard'* ]]
	# Another sum is different; gaps, overlaps and cut units are not same.
	{ part w 100 0,0 16,32 0; part w 12 16,0 16,32 1; } | seal order=set >x
	run -1 fpdiff --combine rows x
	part w 100 0,0 16,32 0 | seal order=set >x
	run -3 --separate-stderr fpdiff --combine rows x
	[[ $stderr == *"x: w: the shards leave gaps"* ]]
	{ part w 100 0,0 16,32 0; part w 11 15,0 17,32 1; } | seal order=set >x
	run -3 --separate-stderr fpdiff --combine rows x
	[[ $stderr == *"shards overlap"* ]]
	{ part w 100 0,0 32,6 0; part w 11 0,6 32,26 1; } | seal order=set >x
	run -3 --separate-stderr fpdiff --combine rows x
	[[ $stderr == *"the unit does not divide"* ]]
}

# ---- what filtered and sorted streams cannot show -------------------------

# plain VALUE...: steps 8 to 11 of three names without seq; VALUE replaces that
# of layer b at step 10.
plain() {
	awk -v v="$1" 'BEGIN { for (s = 8; s < 12; s++) for (n = 1; n < 4; n++)
		printf "fp\tname=%s\tdtype=f32\tshape=2\tbytes=8\t" \
		    "hash=xxh3-128:%032x\tstep=%d\trank=0\n",
		    substr("abc", n, 1), v && s == 10 && n == 2 ? v : s * 10 + n, s }'
}

@test "fpdiff --partial does not say same where both sides have unmatched records" {
	plain | sed 's/\trank=0//' >lines
	seal order=exec <lines >a
	# A sorted copy without its end: step 10 comes before step 8.
	sed '/step=9/d' lines | LC_ALL=C sort | sed 's/name=c/name=d/' >b
	run -3 fpdiff --partial a b
	[[ $output == *$'result=unknown'* ]]
	head -n 8 a >cut
	run -0 fpdiff --partial a cut
	[[ $output == *scope=partial* ]]
	# The order of a set: a renamed tensor.
	sed 's/name=c/name=d/' lines | seal order=set | sed '$d' >b
	seal order=set <lines >a
	run -3 fpdiff --partial a b
	[[ $output == *reason=unmatched-partial* ]]
	# A is whole: what B has more is no loss of A's.
	(head -n 8 b; printf 'fp\tname=z\tdtype=u8\tshape=1\tbytes=1\thash=x:1\n') |
		sed 's/name=d/name=c/' >more
	run -3 fpdiff --partial a more
	[[ $output == *reason=unmatched-partial* ]]
}

# bats test_tags=slow
@test "fpdiff never says first or different of sorted streams without seq" {
	plain | seal order=exec >a
	plain 999 | seal order=exec >b
	run -1 fpdiff a b
	[[ $output == *class=first* ]]
	for side in b a; do
		LC_ALL=C sort $side >sorted.$side
	done
	for pair in 'a sorted.b' 'sorted.a sorted.b' 'a sorted.a'; do
		for opt in '' -v --first -q; do
			run -3 fpdiff $opt $pair
			[[ $output == *reason=order* ]]
			[[ $output != *class=first* && $output != *prefix[$'\t=']* ]]
			[[ $output != *$'verdict\t'*name=* ]]
		done
	done
	run -0 fpdiff sorted.a sorted.a
}

@test "fpdiff compares scalars as text whatever their types are" {
	for v in 1.5 NaN null ''; do
		printf 'step,loss\n1,2\n2,%s\n3,2\n' "$v" >"$v.csv"
	done
	printf '{"step":1,"loss":2}\n{"step":2,"loss":null}\n{"step":3,"loss":2}\n' >j.jsonl
	for other in NaN.csv null.csv .csv j.jsonl; do
		run -1 fpdiff 1.5.csv "$other"
		[[ $output == *$'class=first\tname=loss\tstep=2'* ]]
		[[ $output != *incomparable* ]]
	done
	run -0 fpdiff null.csv j.jsonl
}

@test "fpdiff --tensors compares what a damaged file still has" {
	st() { # LAST: two tensors of two u32; LAST is the last byte
		printf '\x90\0\0\0\0\0\0\0%-144s' '{"a":{"dtype":"U32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"U32","shape":[2],"data_offsets":[8,16]}}'
		printf "\\1\\0\\0\\0\\2\\0\\0$1\\3\\0\\0\\0\\4\\0\\0\\0"
	}
	st '\0' >a.safetensors
	st '\5' >b.safetensors
	head -c -5 b.safetensors >cut.safetensors
	head -c -5 a.safetensors >same.safetensors
	run -1 fpdiff --tensors a.safetensors b.safetensors
	[[ $output == *$'result=different'*name=a* ]]
	run -1 --separate-stderr fpdiff --tensors a.safetensors cut.safetensors
	[[ $output == *$'result=different'*name=a*skipped=1* ]]
	[[ $stderr == *cut.safetensors* ]]
	run -3 --separate-stderr fpdiff --tensors a.safetensors same.safetensors
	[[ $output == *$'result=unknown'*reason=damaged*skipped=1* ]]
	[[ $output != *reason=unmatched* ]]
	head -c 100 a.safetensors >head.safetensors
	run -2 fpdiff --tensors a.safetensors head.safetensors
	plain | seal order=exec >records
	run -2 fpdiff --tensors a.safetensors records
	[[ $output == *"records: records hold no data"* ]]
	mkdir d
	run -2 fpdiff --tensors d a.safetensors
	[[ $output == *"d: is a directory: compare it without --tensors"* ]]
}

@test "fpdiff names the first record without a partner, and where a side ends" {
	plain | seal order=exec >a
	plain | head -n 7 | seal order=exec >b
	run -1 fpdiff a b
	[[ $output == *$'class=unmatched\tname=b\tstep=10\trank=0\ta='*$'note=B ends before this'* ]]
	plain | sed 5d | seal order=exec >b
	run -1 fpdiff a b
	[[ $output == *$'class=unmatched\tname=b\tstep=9\trank=0\ta='*$'note=the first'* ]]
	((${#lines[@]} <= 15))
}

# ---- the map and the page -------------------------------------------------

# ranks N [STEPS]: the same steps on every rank; a sed command in CHANGE edits
# the lines of rank 3.
ranks() {
	awk -v n="$1" -v steps="${2:-200}" 'BEGIN {
		for (r = 0; r < n; r++)
			for (s = 0; s < steps; s++)
				for (l = 0; l < 2; l++)
					printf "fp\tname=l%d\tdtype=f32\tshape=2\tbytes=8\thash=xxh3-128:%032x\tstep=%d\trank=%d\tseq=%d\n", l, s * 9 + l, s, r, seq++
	}' | sed "/rank=3\t/{${CHANGE-}
}" | seal order=exec
}

# The map of an output on standard input.
map() {
	sed -n '/^# map:/,/^[^#]/{/^#/p;}'
}

@test "fpdiff --plot draws ranks and steps, and says how they are folded" {
	ranks 12 >a
	CHANGE='/step=1[0-9][0-9]\t/s/128:0/128:f/' ranks 12 >b
	run -1 fpdiff --plot a b
	map <<<"$output" >drawn
	same_text - drawn <<'E'
# map: a row a rank, steps to the right, 4 steps a column, 2 ranks a row
#  rank 0         40        80        120       160
#   0-1 ..................................................
#   2-3 .........................Fxxxxxxxxxxxxxxxxxxxxxxxx
#   4-5 ..................................................
#   6-7 ..................................................
#   8-9 ..................................................
# 10-11 ..................................................
# . same  x different  F first divergence of a rank  blank: no record
# a cell shows its worst
E
	# Nothing else changes, and the comments count for nothing.
	fpdiff a b >without || true
	grep -vxFf drawn <<<"$output" | diff without -
	COLUMNS=40 fpdiff --plot a b | map >narrow
	head -n 1 narrow | grep -q '8 steps a column'
	grep -qxF '#   2-3 ............Fxxxxxxxxxxxx' narrow
	run ! grep -E '^.{41}' <(sed 1d narrow)
	# -v: every rank has its row.
	fpdiff -v --plot a b | map | grep '^# .*[0-9] [.F]' >rows
	(($(wc -l <rows) == 12))
	sed -n 4p rows | grep -q '^#    3 \.\{25\}Fx*$'
}

# bats test_tags=slow
@test "fpdiff --plot marks every fate of a record" {
	row() { # RANK OPTION...: its row, and the status
		local rank=$1
		shift
		rc=0
		fpdiff --plot "$@" >out || rc=$?
		map <out | grep "^#  *$rank " || true
		return $rc
	}
	ranks 6 20 >a
	CHANGE='/step=7\t/d;/step=9\t/s/f32/i32/;/step=11\t/s/128:0/128:f/' \
		ranks 6 20 >b
	run -1 row 3 a b
	[[ $output == '#    3 .......-.?.F........' ]]
	run -1 row 2 a b
	[[ $output == '#    2 ....................' ]]
	printf 'mask\tname=l[01]\n' >m
	run -1 row 3 -m m a b
	[[ $output == '#    3 .......-.?.m........' ]]
	printf 'unstable\tname=l0\tflips=1\truns=9\n' >u
	run -3 row 3 -m u a b
	[[ $output == '#    3 .......-.?.u........' ]]
	# A rank that one side lacks; a step that is no number; no rank.
	ranks 2 20 >c
	run -3 row 5 a c
	[[ $output == '#    5 --------------------' ]]
	sed 's/step=3\t/step=x\t/;s/\trank=1//' a | grep -v '^head\|^end' |
		seal order=exec >d
	run -0 row 0 d d
	[[ $output == '#    0 ... ................ .' ]]
	run -0 row - d d
	[[ $output == '#    - ... ................ .' ]]
	grep -q '^#.*last column: no step' out
}

@test "fpdiff --plot draws sets, and refuses what has no steps or no lines" {
	ranks 4 20 | grep -v '^head\|^end' >lines
	sort lines | seal order=set >a
	sed '/step=5\trank=2/s/128:0/128:f/' lines | sort -r | seal order=set >b
	fpdiff --plot a b | map >drawn
	grep -qxF '#    2 .....x..............' drawn
	run ! grep F drawn
	npy 2,2 1 2 3 4 >x.npy
	run -0 --separate-stderr fpdiff --plot x.npy x.npy
	[[ $stderr == *'no map: no record has a step'* && $output != *map:* ]]
	run -2 fpdiff --plot -q a b
	run -2 fpdiff --plot -F json a b
	run -2 fpdiff --plot --across rank a
	[[ $output == *'--plot goes with two runs'* ]]
}

# Records without seq whose steps fall, in n and s; of rank 2 other bits in s.
disorder() {
	ranks 4 20 | grep -v '^head\|^end' | sed 's/\tseq=.*//' >lines
	seal order=exec <lines >n
	tac lines | sed '/rank=2/s/128:0/128:f/' | seal order=exec >s
}

@test "fpdiff --plot marks nothing as the first that is out of order" {
	disorder
	run -3 fpdiff --plot n s
	[[ $output == *$'\n#    2 '*x* && $output != *'#    2 '*F*$'\n#    3'* ]]
	[[ $output != *'F first'* ]]
}

# bats test_tags=slow
@test "fpdiff --plot takes steps and ranks of any size in the same memory" {
	line='fp\tname=w\tdtype=f32\tshape=2\tbytes=8\thash=xxh3-128:%032x\tstep=%s\trank=%s\n'
	for ((i = 0; i < 64; i++)); do
		printf "$line" $i "$(printf %u $((1 << i)))" \
			"$(printf %u $((i % 2 ? i : 1 << (63 - i))))"
	done >l
	printf "$line" 1 18446744073709551615 18446744073709551615 >>l
	tac l | seal order=set >a
	seal order=set <l >b
	fpdiff --plot a b | map >ab
	fpdiff --plot b a | map >ba
	same_text ab ba
	# As many bins as are held: the last is not taken for the first.
	for ((i = 1; i <= 256; i++)); do printf "$line" 7 $((i * 4)) $i; done >l
	seal order=set <l >a
	sed 's/128:0\(.*rank=256$\)/128:f\1/' l | seal order=set >b
	(($(fpdiff --plot a b | map | grep -c '^# *[0-9][0-9-]* .*x') == 1))
	fpdiff --plot a b | map | grep -q '^# *256 .*x'
	grep -q '576460752303423488 steps a column' ab
	skip_sanitized
	awk 'BEGIN { for (i = 0; i < 200000; i++)
		printf "fp\tname=w%d\tdtype=f32\tshape=2\tbytes=8\thash=xxh3-128:%032x\tstep=%d\trank=%d\n", i, i, i * 7, i % 3000 }' |
		seal order=set >big
	run -0 bash -c 'ulimit -v 40000; fpdiff --plot big big'
	(($(map <<<"$output" | wc -l) <= 15))
}

@test "fpdiff compares a set of one name and many steps in good time" {
	awk 'BEGIN { for (i = 0; i < 60000; i++)
		printf "scalar\tname=loss\tvtype=text\tvalue=%d\tstep=%d\n", i, i }' |
		seal order=set >a
	run -0 timeout 20 fpdiff a a
	[[ $output == *equal=60000* ]]
}

@test "fpdiff --html writes one page: verdict, map, divergence, differences" {
	ranks 12 >a
	CHANGE='/step=1[0-9][0-9]\t/s/128:0/128:f/' ranks 12 >b
	run -1 fpdiff --html p.html a b
	[[ $output == "$(fpdiff a b)" ]]
	grep -q '^<h1>fpdiff: different</h1>$' p.html
	grep -q '^   3 .*<b class="bad">F</b><span class="bad">x*</span>$' p.html
	grep -q '<tr class="here"><td data-k="at">here</td><td data-k="step">100</td>' p.html
	# A bounded table, and the number that is missing there.
	(($(grep -c '<td data-k="class">consequence' p.html) == 101))
	grep -q '^<p>Left out: 99 of class consequence.</p>$' p.html
	# Nothing to fetch, nothing to run.
	run ! grep -iE '<(script|link|img|iframe|object)|(src|href)=|url\(|@import|http' p.html
	# The same bytes each time; and nothing half written.
	cp p.html q.html
	run -1 fpdiff -q --html p.html a b
	same_text q.html p.html
	run -2 fpdiff --html p.html a nowhere
	same_text q.html p.html
	[[ -z $(ls p.html.* 2>/dev/null) ]]
	run -2 fpdiff --html no/p.html a b
	run -2 fpdiff -o x --html x a b
	run -2 fpdiff --html x --across rank a
	[[ ! -e x ]]
}

@test "fpdiff --html gives no verdict with a page it could not write" {
	[[ -c /dev/full ]] || skip "not run: no /dev/full"
	run_lines "" | seal order=exec >a
	run_lines data | seal order=exec >b
	run -2 --separate-stderr fpdiff --html /dev/full a b
	[[ $stderr == 'fpdiff: /dev/full: cannot write: No space left on device' ]]
	[[ $output != *$'\nverdict'* && ${lines[-1]} == end*$'\tstatus=2' ]]
}

@test "fpdiff --html escapes what comes from the input" {
	evil() {
		printf 'fp\tname=<script>alert(1)</script>\tdtype=f32\tshape=2\tbytes=8\thash=xxh3-128:%032x\tstep=1\tkernel=%s\tdev=&lt;\n' \
			"$1" "\"'><img src=x onerror=y>"
		printf 'fp\tname=bidi\xe2\x80\xaetxt.exe\xff\x1b[31m\tdtype=f32\tshape=2\tbytes=8\thash=xxh3-128:%032x\tstep=<b>\n' "$1"
	}
	evil 1 | seal order=exec >'a<i>&"'
	evil 2 | seal order=exec >b
	run -1 fpdiff -q --html p.html 'a<i>&"' b
	grep -qF '<dd>a&lt;i&gt;&amp;&quot;</dd>' p.html
	grep -qF '&lt;script&gt;alert(1)&lt;/script&gt;' p.html
	grep -qF 'kernel &quot;&#39;&gt;&lt;img src=x onerror=y&gt;' p.html
	grep -qF 'dev &amp;lt;' p.html
	grep -qF 'bidi\xe2\x80\xaetxt.exe\xff\x1b[31m' p.html
	grep -qF '<td data-k="step">&lt;b&gt;</td>' p.html
	run ! grep -iF -e '<script' -e '<img' -e '<b>' p.html
	run ! grep -P '[^\x20-\x7e\t]' p.html
}

@test "fpdiff --html never says first of records that are out of order" {
	disorder
	run -3 fpdiff --html p.html n s
	grep -q '<td data-k="class">different</td>' p.html
	run ! grep -E '>(first|consequence|isolated)<|>F<|First divergence|root[^{]' p.html
	# Also where the order falls long behind the first difference.
	ranks 1 200 >a
	sed '4s/128:0/128:f/' a | grep -v '^head\|^end' >l
	(sed '$d' l | sed '1{h;d;}'; tail -n 1 l; head -n 1 l) | seal order=exec >b
	run -3 fpdiff --html p.html a b
	grep -q '<td data-k="class">different</td>' p.html
	run ! grep -E '>(first|consequence|isolated)<|>F<|First divergence|root[^{]' p.html
}

@test "fpdiff --html is as small for a hundred thousand differences" {
	skip_sanitized
	awk 'BEGIN { for (i = 0; i < 100000; i++)
		printf "fp\tname=w%d\tdtype=f32\tshape=2\tbytes=8\thash=xxh3-128:%032x\tstep=%d\n", i, i, i }' >l
	seal order=exec <l >a
	sed 's/128:0/128:f/' l | seal order=exec >b
	run -1 bash -c 'ulimit -v 60000; fpdiff -q --html p.html a b'
	grep -q '^<p>Left out: 99899 of class consequence.</p>$' p.html
	(($(wc -c <p.html) < 100000))
}

# ---- streams that grow ----------------------------------------------------

# slowly FROM TO: appends in pieces, some of which end within a line.
slowly() {
	local n at step
	n=$(wc -c <"$1")
	step=$((n / 6 + 1))
	for ((at = 0; at < n; at += step)); do
		tail -c +$((at + 1)) "$1" | head -c $step >>"$2"
		sleep 0.05
	done
}

# until_seen FILE TEXT: waits until it is there, 10 s at most.
until_seen() {
	local i
	for ((i = 0; i < 100; i++)); do
		grep -q "$2" "$1" && return
		sleep 0.1
	done
	cat "$1"
	return 1
}

# plain_part: of what --follow printed, all that a plain run prints.
plain_part() {
	grep -v $'^diff\tclass=seen\|^end\t\|^# more as' "$@"
}

# bats test_tags=slow
@test "fpdiff --follow gives the verdict of a plain run when both have ended" {
	run_lines "" | seal order=exec >a
	run_lines flip | seal order=exec >b
	for pair in "a b" "a a" "b a"; do
		set -- $pair
		: >x; : >y
		slowly $1 x &
		slowly $2 y &
		rc=0
		timeout 20 fpdiff --follow x y >out || rc=$?
		wait
		want=0
		fpdiff x y >plain || want=$?
		((rc == want))
		plain_part out | diff <(grep -v ^end plain) -
	done
	# Gzip members as they are closed, and a pipe that stays open.
	: >y.gz
	(head -n 9 b | gzip; sleep 0.4; tail -n +10 b | gzip) >>y.gz &
	run -1 --separate-stderr timeout 20 fpdiff -q --follow a y.gz
	[[ $output == "$(fpdiff -q a b)" && -z $stderr ]]
	mkfifo pipe
	(cat b; sleep 30) >pipe 3>&- &
	writer=$!
	run -1 timeout 20 fpdiff -q --follow a - <pipe
	[[ $output == "$(fpdiff -q a b)" ]]
	kill $writer
}

# bats test_tags=slow
@test "fpdiff --follow prints a difference before the streams end, and waits idle" {
	run_lines "" | seal order=exec >a
	run_lines flip | seal order=exec | head -n 40 >b
	/usr/bin/time -f '%U %S' -o cpu fpdiff --follow a b >out 2>err &
	pid=$!
	until_seen out $'^diff\tclass=seen\tname=layers.1\tstep=2.*io=out.*note=as it came'
	run ! grep -q ^verdict out
	sleep 1
	run_lines flip | seal order=exec | tail -n +41 >>b
	rc=0
	wait $pid || rc=$?
	((rc == 1))
	grep -q $'^verdict\tresult=different.*step=2.*name=layers.1\tprefix=29' out
	# At most some: the others are told once.
	(($(grep -c class=seen out) == 8))
	grep -q '^# more as they come only with -v' out
	tail -n 1 cpu | awk '{ exit $1 + $2 > 0.5 }'
}

# following ARG...: fpdiff in the background as $pid, come so far that it only
# waits for more; out and err are its streams.
following() {
	local last="" now caught idle=0
	# What a shell puts in the background ignores SIGINT.
	env --default-signal=INT fpdiff "$@" >out 2>err &
	pid=$!
	for _ in {1..300}; do
		sleep 0.1
		now=$(cut -d ' ' -f 14,15 /proc/$pid/stat) || return 0
		caught=$(sed -n 's/^SigCgt:[^0-9a-f]*/0x/p' /proc/$pid/status)
		[[ $now == "$last" ]] && ((caught & 0x4000)) || idle=0
		last=$now
		((++idle >= 6)) && return 0
	done
	kill -KILL $pid
	return 1
}

# ended STATUS [SIGNAL]: it ends by itself, or after the signal.
ended() {
	local rc=0
	[[ -z ${2-} ]] || kill -s "$2" $pid
	wait $pid || rc=$?
	[[ $rc == "$1" ]]
	output=$(cat out err)
}

# bats test_tags=slow
@test "fpdiff --follow gives the verdict of what was seen on SIGTERM and SIGINT" {
	run_lines "" | seal order=exec >a
	run_lines flip | seal order=exec >b
	head -n 20 b >part; printf 'fp\tname=half' >>part
	following --follow --plot a part
	ended 3 TERM
	[[ $output == *$'verdict\tresult=unknown\tstatus=3\treason=filtered'* ]]
	[[ $output == *$'map: '* && $output != *bad=* ]]
	[[ $output != *"stopped by"* ]]
	following -q --follow --partial a part
	ended 0 INT
	[[ $output == *$'scope=partial'*$'equal=19'* ]]
	head -n 40 b >part
	following -q --follow --html p.html a part
	ended 1 TERM
	[[ $output == *$'result=different'*$'name=layers.1'* ]]
	grep -q 'fpdiff: different' p.html
	: >none
	following --follow a none
	ended 2 TERM
	[[ $output == *"none: stopped by a signal"* ]]
}

# bats test_tags=slow
@test "fpdiff --follow never calls a file clean that shrank or was replaced" {
	run_lines "" | seal order=exec >a
	for change in 'head -n 9 a >b.short; cat b.short >b' 'cp a c; mv c b' 'rm b'; do
		head -n 30 a >b
		following -q --follow --partial a b
		eval "$change"
		ended 3
		grep -q $'^verdict\tresult=unknown.*altered=1' out
		grep -q 'b: \(shrank to [0-9]* bytes, [0-9]* were read\|removed or renamed\|replaced by another file\)' err
	done
}

# bats test_tags=slow
@test "fpdiff --follow says that a recording was restarted" {
	run_lines "" | seal order=exec >a
	head -n 30 a >b
	following -q --follow a b
	cat a >>b
	ended 3
	grep -q 'fpdiff: b:31: a head, and the stream before it has no end' err
	grep -q 'reason=filtered' out
	diff out <(fpdiff -q a b 2>/dev/null)
}

@test "fpdiff --follow refuses what cannot be followed" {
	run_lines "" | seal order=exec >a
	mkdir d
	cp a d
	run -2 timeout 20 fpdiff --follow a d
	[[ $output == *"d: is a directory: follow the stream of each rank"* ]]
	run -2 timeout 20 fpdiff --follow a nowhere
	run -2 timeout 20 fpdiff --follow --across rank a
	# A set, and a mask: what is known is not shown as it comes.
	run_lines "" | seal order=set >s
	run_lines flip | seal order=set >t
	run -1 timeout 20 fpdiff --follow s t
	[[ $output == *class=different*different=21* ]]
	run_lines flip | seal order=exec >b
	printf 'mask\tname=.*\n' >m
	run -0 timeout 20 fpdiff --follow -m m a b
	[[ $output != *class=seen* ]]
}

# ---- what happens to streams ----------------------------------------------

# bats test_tags=slow
@test "fpdiff reads what a recorder wrote before kill -9, and calls it incomplete" {
	recorder all 20000
	run -0 fpdiff -q all all
	recorder other 20000 300
	recorder killed 2>out &
	pid=$!
	until_seen out running
	until_seen killed step=600
	kill -9 $pid
	wait $pid || true
	run ! grep -q ^end killed
	# At most the last line is torn, and then it is a bad line.
	head -n 400 killed >start
	run -3 fpdiff -q all start
	[[ $output == *$'reason=filtered'*$'equal=399\tdifferent=0'* ]]
	run -0 fpdiff -q --partial all start
	[[ $output == *scope=partial* ]]
	run -1 fpdiff -q other start
	[[ $output == *$'step=150\trank=0\tname=layer.0\tprefix=300'* ]]
	rc=0
	fpdiff -q --partial <(recorder /dev/stdout 400000 2>/dev/null) killed >out 2>err || rc=$?
	((rc == 0 || rc == 3))
	[[ $rc == 0 ]] || grep -q bad=1 out
	grep -q $'different=0\t' out
}

@test "fpdiff reads what fitted on a full disk, and calls it incomplete" {
	recorder all 20000
	recorder other 20000 300
	# The same to the writer: a write that is cut short, then an error.
	run -1 bash -c 'trap "" XFSZ; ulimit -f 500; recorder full 20000'
	(($(wc -c <full) == 512000))
	rc=0
	fpdiff -q all full >out 2>err || rc=$?
	((rc == 3))
	grep -q $'^verdict\tresult=unknown\tstatus=3\treason=\(damaged\|filtered\)' out
	(($(sed 's/.*equal=\([0-9]*\).*/\1/' out) > 3000))
	run -1 fpdiff -q other full
	[[ $output == *$'step=150\trank=0\tname=layer.0\tprefix=300'* ]]
}

@test "fpdiff does not say same of a stream that grew behind its end" {
	run_lines "" | seal order=exec >a
	(cat a; run_lines "" | head -n 1 | sed 's/seq=0/seq=60/;s/name=[^\t]*/name=late/;s/step=0/step=5/') >grown
	run -3 fpdiff a grown
	[[ $output == *$'reason=damaged'*altered=1* ]]
	# Nor with --partial, nor of both; what differs in it counts.
	run -3 fpdiff --partial grown grown
	run_lines flip | seal order=exec >b
	run -1 fpdiff b grown
	[[ $output == *altered=1* ]]
	# Two whole streams in one file are a whole.
	cat a a >two
	run -0 fpdiff two two
	[[ $output == *equal=120* ]]
}

@test "fpdiff names the line where a recording was restarted" {
	run_lines "" | seal order=exec >a
	(head -n 31 a; cat a) >restarted
	run -3 --separate-stderr fpdiff a restarted
	[[ $stderr == *"fpdiff: restarted:32: a head, and the stream before it has no end: restarted, or cut"* ]]
	[[ $output == *$'reason=filtered'*$'different=0\tunmatched=30'* ]]
	run -3 --separate-stderr fpdiff --partial a restarted
	run_lines flip | seal order=exec >b
	run -1 --separate-stderr fpdiff b restarted
}

# bats test_tags=slow
@test "fpdiff says where a stream changed its dtype, shape or hash midway" {
	run_lines "" | seal order=exec >a
	for change in s/dtype=f32/dtype=bf16/ s/shape=2,3/shape=3,2/ \
		s/hash=xxh3-128:0/hash=sha3:0/; do
		run_lines "" | sed "/step=[34]/$change" | seal order=exec >b
		run -3 fpdiff a b
		[[ $output == *$'prefix\trank=0\trecords=36\tstep=2\t'* ]]
		[[ $output == *$'count\tclass=incomparable\tn=24'* ]]
		[[ $output == *$'reason=incomparable'*$'equal=36\tdifferent=0'* ]]
		# --allow-bad and --partial do not make it the same.
		run -3 fpdiff -q --partial --allow-bad 9 a b
		# And it hides no difference before or behind.
		sed '/step=1.*layers.2/s/128:0/128:f/' b >c
		run -1 --separate-stderr fpdiff -q a <(sed '20s/128:0/128:f/' b)
		run -1 --separate-stderr fpdiff -q a \
			<(run_lines "" | sed "/step=[3]/$change;60s/128:0/128:f/" | seal order=exec)
	done
}

@test "fpdiff reads streams of the version before and of later tools" {
	run_lines "" | seal order=exec >a
	sed '1s/version=1/version=0/' a >older
	run -0 fpdiff a older
	# What a later tool may add: keys and types nobody knows here.
	(run_lines "" | sed 's/$/\tcolour=blue/'; printf 'mood\tof=day\n') |
		seal order=exec later=1 >newer
	run -0 fpdiff a newer
	[[ $output == *$'equal=60\tdifferent=0\tunmatched=0' || $output == *equal=60* ]]
	sed '1s/version=1/version=2/' a >next
	run -2 fpdiff a next
	[[ $output == *"next: line 1: stream version 2, expected at most 1"* ]]
	sed '1s/version=1/version=x/' a >odd
	run -3 --separate-stderr fpdiff a odd
	[[ $stderr == *"odd:1: version: "* ]]
}

@test "fpdiff pairs keys that repeat in order, and counts what is too much" {
	for n in 1 2 3 4; do
		printf 'fp\tname=op\tdtype=f32\tshape=2\tbytes=8\thash=xxh3-128:%032x\n' $n
	done >l
	seal order=exec <l >a
	sed 3d l | seal order=exec >b
	run -1 fpdiff -v a b
	[[ $output == *$'class=unmatched\tname=op\ta=xxh3-128:00000000000000000000000000000003'* ]]
	[[ $output == *$'equal=3\tdifferent=0\tunmatched=1' || $output == *$'equal=3\tdifferent=0\tunmatched=1\n'* ]]
	# A record that was written twice.
	sed 2p l | seal order=exec >b
	run -1 fpdiff a b
	[[ $output == *'0 in A alone, 1 in B alone'* ]]
}

# bats test_tags=slow
@test "fpdiff names file, line and reason of a mask or map it cannot use" {
	run_lines "" | seal order=exec >a
	# OPTION LINE REASON: the line is the third of the file.
	while IFS='|' read -r option line reason; do
		printf "# a comment\n\n$line\n" >rules
		run -2 --separate-stderr fpdiff $option rules a a
		[[ $stderr == "fpdiff: rules:3: "*"$reason"* ]] || {
			echo "$option $line: $stderr"
			return 1
		}
		[[ -z $output ]]
	done <<'E'
-m|mask\tname=(|name
-m|mask\tnane=x|name
-m|mask|name
-m|mask\tname=a\tname=b|duplicate key "name"
-m|mask\tname=a\tstep=[|step
-m|mask name=a|fields are separated by TAB
-m|maks\tname=a|maks
-m|map\ta=x\tb=y|map
-m|mask\tname=\\q|name
--map|map\ta=x|map record without b=
--map|map\ta=x\tb=(|b
--map|map\ta=$2\tb=(x)|a: $2, and b has 1 groups in parentheses
--map|map\ta=$1\tb=x|a: $1, and b has 0 groups
--map|mask\tname=x|mask
E
	run -2 fpdiff -m nowhere a a
	[[ $output == *"nowhere: cannot open"* ]]
}

@test "fpdiff never says same of a run that lacks ranks which its heads promise" {
	mkdir a b
	for r in 0 1 2; do
		for run in a b; do
			run_lines "" | sed "s/rank=0/rank=$r/" |
				seal order=exec rank=$r world=3 >$run/run.$r.fp
		done
	done
	run -0 fpdiff a b
	run -0 fpdiff a/run.1.fp b/run.1.fp
	rm a/run.2.fp b/run.2.fp
	run -3 fpdiff a b
	[[ $output == *reason=missing-ranks*skipped=2* ]]
	cat a/*.fp >joined
	run -3 fpdiff joined joined
	rm a/run.1.fp b/run.1.fp
	run -3 fpdiff a b
	# A difference stays one.
	sed '/^fp/{s/hash=xxh3-128:./hash=xxh3-128:e/;}' a/run.0.fp | grep -v '^end' >b/run.0.fp
	run -1 fpdiff a b
}

@test "fpdiff has compared nothing where no record has a partner" {
	run_lines "" | seal order=exec >a
	run_lines "" | sed 's/name=/name=other./' | seal order=exec >b
	run -3 fpdiff a b
	[[ $output == *reason=nothing-compared*compared=0* ]]
	mkdir m n
	printf x >m/p
	printf x >n/q
	run -3 fpdiff m n
	[[ $output == *reason=nothing-compared* ]]
}

@test "fpdiff says what a head is of when it is not of fingerprints" {
	run_lines "" | seal order=exec >a
	sed '1s/of=fp/of=diff/' a >b
	run -3 --separate-stderr fpdiff b b
	[[ $stderr == *"b:1: expected a head of=fp"* ]]
}

@test "fpdiff --follow refuses at once what is no record stream" {
	printf 'step,loss\n1,2\n' >l.csv
	run -2 --separate-stderr timeout 10 fpdiff --follow l.csv l.csv
	[[ $stderr == *"l.csv: no record stream to follow"* ]]
	run -2 fpdiff --html=- a b
}

@test "fpdiff counts a torn file once, and names no tensor that has no name" {
	mkdir a b
	cp "$root/tests/demo/data/good-grad.npy" a/x.npy
	cp a/x.npy b
	cp a/x.npy a/y.npy
	head -c 3000 a/y.npy >b/y.npy
	run -3 --separate-stderr fpdiff -q a b
	[[ $output == *reason=damaged*$'\tskipped=1' ]]
	[[ $stderr == 'fpdiff: b/y.npy: needs 8192 bytes at offset 128, '* ]]
}

@test "fpdiff --prom counts what the verdict counts as skipped" {
	mkdir d
	run_lines "" | seal order=exec >d/a
	echo x >d/README
	run -3 fpdiff --prom m.prom d d
	[[ $output == *skipped=2* ]]
	grep -q '^straightedge_skipped_total{.*} 2$' m.prom
}

# ---- evidence counts once -------------------------------------------------

@test "fpdiff --reruns and --learn refuse one run that is named twice" {
	job ref "$A"; job r0 "$A" 1 1 7; job r1 "$A"
	ln ref hard; ln -s r0 soft; mkdir dir; cp ref dir/run.0.fp
	while read -r operands name; do
		run -2 fpdiff --${operands//,/ }
		[[ $output == *"$name is named twice"* ]]
	done <<'E2'
reruns,ref,ref,--,r0 ref
reruns,ref,--,ref ref
reruns,ref,--,r0,./r0 ./r0
reruns,ref,--,r0,r1,soft soft
reruns,ref,hard,--,r0 hard
reruns,dir,--,r0,dir/ dir/
learn,ref,r1,ref ref
learn,ref,r1,hard hard
E2
	# A copy shows only where the head says when it was.
	sed '1s/$/\ttime=2026-01-01T00:00:00Z/' ref >timed
	cp timed copy
	run -2 fpdiff --reruns timed copy -- r0
	[[ $output == *"copy is a copy of timed"* ]]
	run -2 fpdiff --learn r1 timed copy
	sed '1s/00Z/01Z/' timed >later
	run -0 fpdiff --learn r1 timed later
	run -0 fpdiff --reruns ref -- r1
}

@test "fpdiff --reruns does not let a reference without devices confirm" {
	job ref "$A"; job clean "$A"
	grep -v '^head\|^end' ref | sed 's/\tdev=.*//' | seal order=exec >none1
	local d=(h1/0 h1/1 h1/2 h1/3) runs=() i
	for i in 0 1 2 3 4 5 6; do
		job r$i "${d[$((i % 4))]} ${d[$(((i + 1) % 4))]} ${d[$(((i + 2) % 4))]} ${d[$(((i + 3) % 4))]}" \
			$(((6 - i % 4) % 4)) $((i % 2)) $i
		runs+=(r$i)
	done
	cp none1 none2
	run -3 fpdiff --reruns none1 none2 -- "${runs[@]}" clean
	[[ $output == *reason=reference-suspect* ]]
	run -1 fpdiff --reruns none1 ref -- "${runs[@]}" clean
	[[ $output == *$'entity=device:h1/2\tcause=device'* ]]
}

@test "fpdiff --across does not compare replicas of another dtype or shape" {
	replicas 3 >good
	sed '/name=w1.*step=1.*rank=1/s/dtype=f32/dtype=i32/' good >a
	run -3 fpdiff --across dp a
	[[ $output == *"class=incomparable"*"a=f32	b=i32"* ]]
	[[ $output == *"reason=incomparable"*"different=0"*"incomparable=1"* ]]
	# A value that differs beside it still counts, and is compared with its own.
	replicas 4 3 | sed '/name=w0.*step=1.*rank=1/s/shape=4/shape=2,2/' >a
	run -1 fpdiff --across dp a
	[[ $output == *"entity=rank:3	cause=replica	step=1"*"name=w1"* ]]
	[[ $output == *"different=2"*"incomparable=1"* ]]
	# Two of each form, and of one form two values: nobody is named.
	replicas 4 3 | sed '/name=w1.*step=1.*rank=[01]/s/dtype=f32/dtype=i32/' >a
	run -3 fpdiff --across dp a
	[[ $output == *"reason=no-majority"*"different=2"* ]]
}

@test "fpdiff --combine of one run counts once and names both replicas" {
	part() { # NAME SUM OFFSET RANK
		printf 'fp\tname=%s\tdtype=f32\tshape=16,32\tbytes=1\thash=xxh3-128:%032x\trank=%s\tshardsum=xxh3-128:%032x\tunit=4\tglobal=32,32\toffset=%s\n' \
			"$1" 7 "$4" "$2" "$3"
	}
	{ part w 100 0,0 0; part w 101 0,0 2; part w 11 16,0 1
	  part v 5 0,0 0; part v 6 16,0 1; } | seal order=set >bad
	run -1 fpdiff --combine bad
	(($(grep -c ^diff <<<"$output") == 1))
	[[ $output == *"note=replicas of one shard: rank 0 and 2"* ]]
	[[ $output == *"name=w"*"compared=2	equal=1	different=1"* ]]
	{ part w 100 0,0 0; part w 100 0,0 2; part w 11 16,0 1; } |
		seal order=set >good
	run -0 fpdiff --combine good
	[[ $output == *"compared=1	equal=1	different=0"* ]]
	{ part w 11 16,0 1; part v 5 0,0 0; part v 6 16,0 1; } |
		seal order=set >gap
	run -3 --separate-stderr fpdiff --combine gap
	[[ $stderr == *"gap: w: the shards leave gaps"* ]]
	[[ $output == *skipped=1* ]]
	run -0 fpdiff --combine - <good
}

@test "fpdiff refuses options that have no meaning in a way to compare" {
	run_lines "" | seal order=exec >a
	run_lines "" 1 | seal order=exec >b
	printf 'mask\tname=x\n' >m
	printf 'map\ta=x\tb=y\n' >map
	while read -r way option; do
		run -2 fpdiff $option ${way//,/ }
		[[ $output == *"${option%% *} has no meaning with ${way%%,*}"* ]]
	done <<'E'
--across,rank,a --mask m
--across,rank,a --map map
--across,rank,a --first
--across,rank,a --window 64
--combine,a,b --first
--combine,a,b --window 64
--combine,a,b --alpha 0.1
--learn,a,b --alpha 0.1
--learn,a,b --first
--reruns,a,--,b --first
--tensors,a,b --mask m
--tensors,a,b --partial
E
	run -2 fpdiff --map map --combine a
	[[ $output == *"--map goes with two runs, found one"* ]]
	run -2 fpdiff --alpha 0.1 a b
	[[ $output == *"--alpha has no meaning with two runs"* ]]
}

@test "fpdiff --tensors never says same of damaged gzip" {
	cp "$root/tests/data/formats/c_f32.npy" a.npy
	cp a.npy b.npy
	printf XXXX | dd of=b.npy bs=1 seek=200 conv=notrunc status=none
	head -c 3000 /dev/urandom >a.bin
	cp a.bin b.bin
	local f size
	for f in a.npy b.npy a.bin; do
		gzip -nc "$f" >"$f.gz"
		size=$(stat -c %s "$f.gz")
		head -c 1000 "$f.gz" >"torn-$f.gz"
		cp "$f.gz" "junk-$f.gz"
		printf junk >>"junk-$f.gz"
		printf '\0\0\0\0' |
			dd of="$f.gz" bs=1 seek=$((size - 8)) conv=notrunc status=none
	done
	run -2 --separate-stderr fpdiff -q --tensors a.npy.gz b.npy.gz
	[[ $stderr == *"a.npy.gz: "*"incorrect data check"* ]]
	run -3 --separate-stderr fpdiff --tensors a.bin.gz a.bin.gz
	[[ $output == *result=unknown*reason=damaged*skipped=2* ]]
	[[ $stderr == *"a.bin.gz: "*"incorrect data check"* ]]
	for f in torn junk; do
		run -3 --separate-stderr fpdiff --tensors $f-a.bin.gz $f-a.bin.gz
		[[ $output == *result=unknown*reason=damaged*skipped=2* ]]
		[[ $stderr == *"$f-a.bin.gz: "* ]]
		run -2 fpdiff --strict --tensors $f-a.bin.gz $f-a.bin.gz
	done
}

@test "fpdiff --tensors refuses what its name or first bytes give the lie" {
	printf 'not at all' >bytes
	run -0 fpdiff --tensors bytes bytes
	local name
	for name in m.npy m.pt m.safetensors.gz m.index.json; do
		cp bytes "$name"
		run -2 fpdiff --tensors "$name" "$name"
		[[ $output == "fpdiff: $name: does not begin like a "* ]]
	done
	: >m.npz
	run -2 fpdiff --tensors m.npz m.npz
	[[ $output == "fpdiff: m.npz: does not begin like a NumPy archive"* ]]
	printf '\xfd7zXZ\0....' >m.xz
	run -2 fpdiff --tensors m.xz m.xz
	[[ $output == "fpdiff: m.xz: is xz data"* ]]
}

@test "fpdiff takes no torn index for a file of bytes" {
	mkdir d
	safetensors d/m-1.safetensors ''
	local index='{"metadata":{"total_size":8},"weight_map":{"w":"m-1.safetensors","v":"m-2.safetensors"}}' torn
	for torn in '' "${index:0:40}" "${index:0:80}"; do
		printf %s "$torn" >d/model.index.json
		run -3 --separate-stderr fpdiff d d
		[[ $output == *reason=damaged* ]]
		[[ $stderr == *model.index.json* ]]
		run -2 fpdiff d/model.index.json d/model.index.json
		run -3 --separate-stderr fpdump d
	done
	# That of another format is one file among others.
	printf %s "${index//.safetensors/.bin}" >d/model.index.json
	run -0 fpdiff d d
}

# bats test_tags=slow
@test "fpdiff --tensors blames the damaged one of two archives" {
	need python3
	python3 - <<'P'
import zipfile
def npy(n):
    h = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % n
    h = h.ljust(117) + "\n"
    return b"\x93NUMPY\1\0\x76\0" + h.encode() + bytes(4 * n)
with zipfile.ZipFile("ok.npz", "w") as z:
    z.writestr("w.npy", npy(1 << 20))
raw = bytearray(open("ok.npz", "rb").read())
for at in (14, raw.rindex(b"PK\1\2") + 16):
    raw[at] ^= 1
open("bad.npz", "wb").write(raw)
P
	local pair
	for pair in "bad.npz ok.npz" "ok.npz bad.npz"; do
		# shellcheck disable=SC2086
		run -2 --separate-stderr fpdiff --tensors $pair
		[[ $stderr == "fpdiff: bad.npz: "*CRC* ]]
		[[ $stderr != *ok.npz* ]]
	done
	run -2 --separate-stderr fpdiff --tensors bad.npz bad.npz
	[[ $stderr == *"bad.npz: "*CRC* ]]
	[[ $stderr != *"ended early"* ]]
}

@test "fpdiff --tensors refuses options that mean nothing there" {
	: >f
	: >m
	local option
	for option in "-m m" "--map m" "--steps 1:2" "--step t" --first; do
		# shellcheck disable=SC2086
		run -2 fpdiff --tensors $option f f
		[[ $output == *" has no meaning with --tensors"* ]]
	done
	run -2 fpdiff --tensors --across dp f
	[[ $output == *"--across, "*" and --tensors exclude each other"* ]]
}
