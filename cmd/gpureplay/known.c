/*
 * The switches that make frameworks and libraries reproducible: see
 * switches.h. Values are from the manuals of PyTorch, Megatron-LM, cuBLAS,
 * NCCL, Transformer Engine, TensorFlow, rocBLAS, oneMKL and CPython.
 */
#include "switches.h"

#include <string.h>

#include "str.h"

// clang-format off
const struct known_switch known_switches[] = {
	{ "CUBLAS_WORKSPACE_CONFIG", ":4096:8", ":16:8", "cuBLAS" },
	{ "NCCL_ALGO", "Ring", "ring CollnetDirect CollnetChain ^NVLS",
	    "NCCL" },
	{ "NCCL_NVLS_ENABLE", "0", NULL, "NCCL" },
	{ "NVTE_ALLOW_NONDETERMINISTIC_ALGO", "0", NULL,
	    "Transformer Engine" },
	{ "MAMBA_DETERMINISTIC", "1", NULL, "Mamba" },
	{ "CAUSAL_CONV1D_DETERMINISTIC", "1", NULL, "causal-conv1d" },
	{ "CUDA_DEVICE_MAX_CONNECTIONS", "1", NULL, "Megatron-LM" },
	{ "TF_DETERMINISTIC_OPS", "1", "true", "TensorFlow" },
	{ "TF_CUDNN_DETERMINISTIC", "1", "true", "TensorFlow" },
	{ "ROCBLAS_DEFAULT_ATOMICS_MODE", "0", NULL, "rocBLAS" },
	{ "HCCL_DETERMINISTIC", "true", "strict", "HCCL" },
	{ "MKL_CBWR", "COMPATIBLE",
	    "AVX2 AVX2,STRICT AVX512 AVX512,STRICT SSE4_2 AVX", "oneMKL" },
	{ "MKL_DYNAMIC", "FALSE", "false 0", "oneMKL" },
	{ "OMP_DYNAMIC", "FALSE", "false 0", "OpenMP" },
	{ "PYTHONHASHSEED", "0", NULL, "CPython" },
	{ 0 },
};
// clang-format on

enum switch_state
switch_state(const struct known_switch *s, const char *now)
{
	if (!now)
		return SWITCH_SET;
	if (!strcmp(now, s->value))
		return SWITCH_KEPT;
	struct str rest = str_c(s->also), word;
	while (str_cut(&rest, ' ', &word))
		if (str_is(word, now))
			return SWITCH_KEPT;
	return SWITCH_CONFLICT;
}
