# The Python module with PyTorch: run by tests/check-torch.sh.

setup() {
	load ../common
	for python in python3 /usr/bin/python3; do
		command -v $python >/dev/null &&
			$python -c "import torch" 2>/dev/null && return 0
	done
	skip "not run: no python3 with torch"
}

@test "straightedge.py computes mix64 in torch bit for bit like the library" {
	PYTHONPATH=$root/lib/python run -0 $python - <<-'EOF'
	import ctypes, torch, straightedge
	torch.manual_seed(3)
	n = 0
	for dt in (torch.float32, torch.float64, torch.bfloat16, torch.float16,
	           torch.int8, torch.int64, torch.bool, torch.complex64):
	    for size in (0, 1, 3, 7, 8, 9, 64, 1001):
	        t = (torch.randn(size) * 50).to(dt)
	        for u in (t, t[1:], t.view(-1, 1).expand(-1, 2).t()):
	            u = u.contiguous()
	            raw = ctypes.string_at(u.data_ptr(),
	                                   u.numel() * u.element_size()) if u.numel() else b""
	            here = int(straightedge.mix64(u)) & (1 << 64) - 1
	            assert straightedge.fingerprint(raw, "mix64") == f"mix64:{here:016x}", (dt, size)
	            n += 1
	print(n)
	EOF
	[[ $output == 192 ]]
}

@test "straightedge.py records an unchanged script: every step, in order" {
	cd "$BATS_TEST_TMPDIR"
	cat >train.py <<-'EOF'
	import sys
	import torch
	torch.manual_seed(0)
	model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2))
	adam = torch.optim.Adam(model.parameters())
	for _ in range(int(sys.argv[1])):
	    adam.zero_grad()
	    model(torch.randn(5, 4)).sum().backward()
	    adam.step()
	EOF
	export PYTHONPATH=$root/lib/python
	run -0 $python -m straightedge -o run.{rank}.fp train.py 3
	run -0 fpdump run.0.fp
	# Per step: 3 modules in and out, 4 parameters, 3 + 4 gradients,
	# 4 parameters with 3 state values each after the step.
	[[ $(grep -c '^fp	' run.0.fp) == $((3 * (6 + 4 + 7 + 16))) ]]
	[[ $(grep -c '	step=2	' run.0.fp) == $((6 + 4 + 7 + 16)) ]]
	grep '	step=1	' run.0.fp | sed -n '1p' | grep -q 'name=0	.*	io=in	'
	grep '	step=1	' run.0.fp | tail -n 1 | grep -q 'phase=opt	io=param	'
	# A script that calls no module records nothing, and says so.
	echo 'print(1)' >nothing.py
	run -1 $python -m straightedge -o none.fp nothing.py
	[[ $output == *"nothing was recorded"* ]]
	[[ ! -e none.fp ]]
}
