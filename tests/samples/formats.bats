# Tensor formats: what the readers find against what numpy finds. The readers
# are asked through the unit test program, which lists files it is given.

setup() {
	load ../common
	list=$build/unit/formats
	[[ -x $list ]] || skip "not run: no $list"
	python=
	for p in python3 /usr/bin/python3; do
		"$p" -c 'import numpy' 2>/dev/null && python=$p && break
	done
	[[ -n $python ]] || skip 'not run: no python3 with numpy'
	want=$BATS_TEST_TMPDIR/want
	got=$BATS_TEST_TMPDIR/got
}

# compare FILE...: both lists, without the scalars that numpy does not know.
compare() {
	[[ $# -gt 0 ]]
	"$python" "$root/tests/tools/numpy-list" "$@" >"$want"
	"$list" "$@" | grep -v $'\tkv:' >"$got"
	diff -u "$want" "$got"
	[[ -s $want ]]
}

@test "formats: numpy agrees on every npy file of the samples" {
	need_data tensors
	files=()
	for f in "$data"/tensors/*/*.npy; do
		[[ $f == *pickle.npy ]] || files+=("$f")
	done
	[[ ${#files[@]} -ge 25 ]]
	compare "${files[@]}"
}

@test "formats: numpy agrees on every npz file of the samples" {
	need_data tensors
	compare "$data"/tensors/*/*.npz
}

@test "formats: safetensors and GGUF samples hold what their headers say" {
	need_data tensors
	compare "$data"/tensors/*/*.safetensors \
		"$data"/tensors/hyparam_hyllama/*.gguf
}

@test "formats: an array of objects is refused because it is a pickle" {
	need_data tensors
	run -1 "$list" "$data"/tensors/ExpHP_npyz/test-data_pickle.npy
	[[ $output == *'object arrays are Python pickles and are not read' ]]
}

@test "formats: vocabularies of a GGUF without tensors are scalars" {
	need_data tensors
	run -0 "$list" "$data"/tensors/nomic-ai_llama.cpp/*bert-bge.gguf
	[[ ${#lines[@]} -ge 15 ]]
	[[ $output == *$'\tkv:general.name\tstr\t\tbert-bge'* ]]
	[[ $output == *$'\tkv:tokenizer.ggml.tokens\tstr[30522]\t\txxh3-128:'* ]]
}

@test "formats: numpy agrees on 400 arrays of any type, order and shape" {
	"$python" "$root/tests/tools/numpy-list" --random 400 \
		"$BATS_TEST_TMPDIR" >"$want"
	[[ $(wc -l <"$want") -eq 400 ]]
	for i in {0..399}; do
		echo "$BATS_TEST_TMPDIR/$i.npy"
	done | xargs "$list" >"$got"
	diff -u "$want" "$got"
}

@test "formats: the samples in the repository are what the script makes" {
	mkdir -p "$BATS_TEST_TMPDIR/formats"
	cd "$BATS_TEST_TMPDIR"
	"$python" "$root/tests/data/make_formats.py"
	diff -u "$root/tests/data/formats/expected.tsv" formats/expected.tsv
	for f in formats/*.npy formats/*.gguf formats/*.safetensors; do
		cmp "$f" "$root/tests/data/$f"
	done
}

@test "fpdump keeps the long double of numpy apart from the half" {
	cd "$BATS_TEST_TMPDIR"
	local head="{'descr': '<f16', 'fortran_order': False, 'shape': (1,), }"
	printf '\x93NUMPY\x01\x00\x46\x00%-69s\n%16s' "$head" >long.npy
	run -0 fpdump long.npy
	[[ $output == *"	dtype=numpy-f16	shape=1	bytes=16	"* ]]
}
